//! Results of the report.

use serde::Serialize;

/// Source of the numbers.
pub(crate) const PAPER: &str =
    "6QM, \"D4.2: Final System Test Report\" (IST-2001-37611, 2007), section 2";

/// "There is guaranty that the probe is able to capture the packets flowing on the network without
/// producing packet loss greater than 0,1%" (section 2.1.1): the definition of the maximum rate.
pub(super) const TOLERATED_PERCENT: f64 = 0.1;

/// Rates of the tests of durations (Figure 2-36), and the limit rate of their probe, a Pentium 4 (section 2.1.5), in
/// packets a second.
pub(super) const RATES_OF_DURATIONS: [f64; 2] = [54_087.0, 60_096.0];
pub(super) const LIMIT_OF_DURATIONS: f64 = 70_000.0;

/// Complexity of a filter (section 2.4).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub(super) enum Filter {
    None,
    Medium,
    High,
}

/// "src port 1500".
pub(super) const SOURCE_PORT: u16 = 1500;

/// Names and filters, in the order of [`Filter`]. The report's traffic is TCP, ours UDP.
pub(super) const FILTERS: [(&str, Option<&str>); 3] = [
    ("none", None),
    ("src", Some("src 2001:db8:400:800::13")),
    (
        "four-terms",
        Some("src 2001:db8:400:800::13 and dst 2001:db8:400:800::14 and udp and src port 1500"),
    ),
];
