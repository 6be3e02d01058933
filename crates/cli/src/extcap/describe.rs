//! What Wireshark is told of us, in the sentences of extcap(4).

use std::fmt::Write as _;

use super::PREFIX;

/// The link type of every interface that we capture on (LINKTYPE_ETHERNET of
/// <https://www.tcpdump.org/linktypes.html>).
pub(super) const LINK_TYPES: &str = "dlt {number=1}{name=EN10MB}{display=Ethernet}\n";

pub(super) fn version() -> String {
    format!("extcap {{version={}}}\n", env!("CARGO_PKG_VERSION"))
}

pub(super) fn interfaces(names: &[String]) -> String {
    let mut text = version();
    // Braces would end a sentence's parameter early, and @ stands before a namespace.
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
    fn an_interface_whose_name_would_upset_the_grammar_is_left_out() {
        let names = ["lo", "a}{b", "a@b", "eth0.5"].map(str::to_owned);
        let text = interfaces(&names);
        assert_eq!(text.lines().count(), 3, "{text}");
        assert!(text.starts_with("extcap {version="), "{text}");
        assert!(text.ends_with("{display=Wirestamp: eth0.5 (precise stamps)}\n"), "{text}");
    }
}
