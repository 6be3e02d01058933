//! Version and interfaces, in the format of extcap(4).

use std::fmt::Write as _;

use wirestamp_packet::LinkType;

use super::request::PREFIX;

/// The link type of an interface (<https://www.tcpdump.org/linktypes.html>).
pub(super) const fn link_type(link: Option<LinkType>) -> &'static str {
    match link {
        Some(LinkType::Ip) => "dlt {number=101}{name=RAW}{display=Raw IP}\n",
        _ => "dlt {number=1}{name=EN10MB}{display=Ethernet}\n",
    }
}

pub(super) fn version() -> String {
    format!("extcap {{version={}}}\n", env!("CARGO_PKG_VERSION"))
}

pub(super) fn interfaces(names: &[String]) -> String {
    let mut text = version();
    // Braces delimit parameters, and @ precedes a namespace.
    for name in names.iter().filter(|name| !name.contains(['{', '}', '@'])) {
        let display = format!("Wirestamp: {name} (precise stamps)");
        let _ = writeln!(text, "interface {{value={PREFIX}{name}}}{{display={display}}}");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn interface_with_reserved_characters_is_left_out() {
        let names = ["lo", "a}{b", "a@b", "eth0.5"].map(str::to_owned);
        let text = interfaces(&names);
        assert_eq!(text.lines().count(), 3, "{text}");
        assert!(text.starts_with("extcap {version="), "{text}");
        assert!(text.ends_with("{display=Wirestamp: eth0.5 (precise stamps)}\n"), "{text}");
    }
}
