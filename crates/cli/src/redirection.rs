//! Method xdp redirects packets: the network stack does not receive them. Without a filter, that cuts the interface off.

use clap::Args;
use wirestamp_capture::Method;

use crate::output::Output;
use crate::usage::usage;

/// Consent to capture all packets with method xdp.
#[derive(Args)]
pub(crate) struct Consent {
    /// Capture with --method xdp and without a filter, although the interface is then cut off from the network stack
    #[arg(long)]
    yes: bool,
}

impl Consent {
    /// Whether `--yes` is given.
    pub(crate) fn is_given(&self) -> bool {
        self.yes
    }

    /// Rejects method xdp without a filter, unless `--yes` is given.
    pub(crate) fn check(&self, method: Method, filter: Option<&str>) -> anyhow::Result<()> {
        self.check_with_hint(method, filter, "add --yes, or a filter, or use xdp-pass")
    }

    /// As [`Self::check`], for Wireshark, whose dialog has no `--yes`.
    pub(crate) fn check_for_wireshark(
        &self,
        method: Method,
        filter: Option<&str>,
    ) -> anyhow::Result<()> {
        self.check_with_hint(method, filter, "set a capture filter, or use xdp-pass")
    }

    fn check_with_hint(
        &self,
        method: Method,
        filter: Option<&str>,
        hint: &str,
    ) -> anyhow::Result<()> {
        if method != Method::Xdp || has_filter(filter) || self.yes {
            return Ok(());
        }
        Err(usage(format!(
            "--method xdp takes all packets away from the network stack, those of your own connections too: {hint}"
        )))
    }
}

/// Warns that the packets of method xdp do not reach the network stack.
pub(crate) fn warn(method: Method, filter: Option<&str>, output: Output) {
    if method != Method::Xdp {
        return;
    }
    let packets = if has_filter(filter) { "packets that match the filter" } else { "all packets" };
    output.remark(format_args!(
        "method xdp redirects {packets}: the network stack does not receive them while the capture runs"
    ));
}

/// Whether there is a filter. An empty one matches all packets.
fn has_filter(filter: Option<&str>) -> bool {
    filter.is_some_and(|filter| !filter.trim().is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn redirection_of_all_packets_needs_consent() {
        let (refused, given) = (Consent { yes: false }, Consent { yes: true });
        for all in [None, Some(""), Some(" ")] {
            let error = refused.check(Method::Xdp, all).unwrap_err();
            assert!(crate::usage::is_usage(&error), "{all:?}");
            assert!(error.to_string().contains("add --yes, or a filter"), "{error}");
            let error = refused.check_for_wireshark(Method::Xdp, all).unwrap_err();
            assert!(error.to_string().contains("set a capture filter"), "{error}");
            given.check(Method::Xdp, all).unwrap();
        }
        refused.check(Method::Xdp, Some("udp")).unwrap();
        for method in [Method::Ring, Method::XdpPass, Method::TcPass] {
            refused.check(method, None).unwrap();
        }
    }
}
