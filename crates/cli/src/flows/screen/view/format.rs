//! Short text for values.

use wirestamp_metrics::flow::{FlowReport, RtpReport};
use wirestamp_packet::FlowKey;

use crate::output::percent;

/// Placeholder of a missing value.
pub(super) const NONE: &str = "-";

/// Bits per second, in the unit that fits.
pub(super) fn rate(bits_per_second: f64) -> String {
    let units = [(1e9, "Gbit/s"), (1e6, "Mbit/s"), (1e3, "kbit/s")];
    let unit = units.iter().find(|(unit, _)| bits_per_second >= *unit);
    match unit {
        Some((unit, name)) => format!("{:.2} {name}", bits_per_second / unit),
        None => format!("{bits_per_second:.0} bit/s"),
    }
}

/// `PCMU`, or the payload type's number, or the program of a UDP test.
pub(super) fn payload(report: &FlowReport) -> String {
    match &report.rtp {
        Some(RtpReport { codec: Some(codec), .. }) => codec.clone(),
        Some(rtp) => format!("RTP {}", rtp.payload_type),
        None => report.udp_test().map_or(NONE, |it| it.program).to_owned(),
    }
}

/// The loss ratio in percent.
pub(super) fn lost(report: &FlowReport) -> Option<String> {
    let lost = report.lost?;
    Some(percent(lost, report.sent()))
}

/// A flow in at most `width` characters; shortens the middle of its addresses.
pub(super) fn flow(flow: &FlowKey, width: usize) -> String {
    let whole = flow.to_string();
    if whole.chars().count() <= width {
        return whole;
    }
    // Format of a flow: source, arrow, destination, protocol.
    let parts: Vec<_> = whole.split(' ').collect();
    let [source, arrow, destination, protocol] = parts[..] else { return shorten(&whole, width) };
    let left = width.saturating_sub(protocol.len() + arrow.len() + 3);
    let first = left / 2;
    let (first, second) = (shorten(source, first), shorten(destination, left - first));
    shorten(&format!("{first} {arrow} {second} {protocol}"), width)
}

/// The beginning and the end of a text, in at most `width` characters.
fn shorten(text: &str, width: usize) -> String {
    let length = text.chars().count();
    if length <= width {
        return text.to_owned();
    }
    let Some(kept) = width.checked_sub(1) else { return String::new() };
    let begin = text.chars().take(kept / 2);
    let end = text.chars().skip(length - (kept - kept / 2));
    begin.chain(['…']).chain(end).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rate_has_a_fitting_unit() {
        let rates = [0.0, 999.0, 64_000.0, 1.5e6, 4e10].map(rate);
        assert_eq!(rates, ["0 bit/s", "999 bit/s", "64.00 kbit/s", "1.50 Mbit/s", "40.00 Gbit/s"]);
    }

    #[test]
    fn shortened_flow_keeps_address_ends_and_protocol() {
        let key = FlowKey {
            source: "[2001:db8:1234:5678:9abc:def0:1234:5678]:5004".parse().unwrap(),
            destination: "10.77.2.2:6000".parse().unwrap(),
            protocol: 17,
        };
        assert_eq!(flow(&key, 80), key.to_string());
        for width in 0..70 {
            assert!(flow(&key, width).chars().count() <= width, "{}", flow(&key, width));
        }
        assert_eq!(flow(&key, 40), "[2001:d…78]:5004 > 10.77.2.2:6000 udp");
    }
}
