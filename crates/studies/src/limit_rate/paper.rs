//! Results of the report.

use serde::Serialize;

/// Source of the numbers.
pub(crate) const PAPER: &str =
    "6QM, \"D4.2: Final System Test Report\" (IST-2001-37611, 2007), section 2";

/// "There is guaranty that the probe is able to capture the packets flowing on the network without
/// producing packet loss greater than 0,1%" (section 2.1.1): the definition of the maximum rate.
pub(super) const TOLERATED_PERCENT: f64 = 0.1;

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

/// A row of Figures 2-3, 2-5 and 2-7: rate in packets a second, loss and CPU load in percent.
type Row = (f64, f64, f64);

/// A processor of the report.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub(super) struct Processor {
    pub(super) name: &'static str,
    /// Rate in packets a second, loss and CPU load in percent.
    pub(super) rows: &'static [Row],
    /// Its "maximum traffic rate" in packets a second (sections 2.1.1 to 2.1.3).
    pub(super) limit: f64,
}

/// Figure 2-3: AMD K6, 450 MHz.
const K6: [Row; 7] = [
    (6_010.0, 0.0, 15.97),
    (12_019.0, 0.0, 29.99),
    (18_029.0, 0.0, 46.05),
    (24_038.0, 5.37, 99.9),
    (30_048.0, 40.07, 99.88),
    (36_058.0, 61.8, 99.85),
    (42_067.0, 76.97, 99.82),
];

/// Figure 2-5: Pentium III, 750 MHz.
const P3: [Row; 10] = [
    (6_010.0, 0.0, 6.07),
    (12_019.0, 0.0, 12.35),
    (18_029.0, 0.0, 18.3),
    (24_038.0, 0.0, 24.8),
    (30_048.0, 0.05, 33.32),
    (36_058.0, 16.49, 99.57),
    (42_067.0, 54.47, 99.41),
    (48_077.0, 83.18, 98.65),
    (54_087.0, 91.0, 97.19),
    (60_096.0, 94.22, 95.73),
];

/// Figure 2-7: Pentium 4, 2.8 GHz.
const P4: [Row; 14] = [
    (6_010.0, 0.0, 4.79),
    (12_019.0, 0.0, 9.64),
    (18_029.0, 0.0, 13.68),
    (24_038.0, 0.0, 18.81),
    (30_048.0, 0.0, 22.93),
    (36_058.0, 0.0, 28.48),
    (42_067.0, 0.0, 32.78),
    (48_077.0, 0.0, 39.65),
    (54_087.0, 0.0, 53.4),
    (60_096.0, 0.0, 74.03),
    (66_106.0, 0.0, 88.29),
    (73_782.0, 3.18, 99.71),
    (78_125.0, 21.44, 99.9),
    (84_135.0, 37.19, 99.9),
];

/// The report's processors, in its order.
pub(super) const PROCESSORS: [Processor; 3] = [
    Processor { name: "AMD K6, 450 MHz", rows: &K6, limit: 22_000.0 },
    Processor { name: "Pentium III, 750 MHz", rows: &P3, limit: 32_000.0 },
    Processor { name: "Pentium 4, 2.8 GHz", rows: &P4, limit: 70_000.0 },
];
