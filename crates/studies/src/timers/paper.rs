//! Results of the paper: numbers as printed, converted to nanoseconds.

use serde::{Deserialize, Serialize};

/// Source of the numbers; our copy has no page numbers.
pub(crate) const PAPER: &str = "Fedotova and Siemens, \"HighPerTimer\", section 5";

/// A time source by the name that the paper gives it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Timer {
    /// The time stamp counter of the CPU.
    #[serde(rename = "TSC Timer")]
    Tsc,
    /// The high precision event timer.
    #[serde(rename = "HPET Timer")]
    Hpet,
    /// `clock_gettime`.
    #[serde(rename = "OS Timer")]
    Os,
}

impl Timer {
    /// All of them, in the order of the paper's tables.
    pub(super) const ALL: [Self; 3] = [Self::Tsc, Self::Hpet, Self::Os];

    /// The paper's name.
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Tsc => "TSC Timer",
            Self::Hpet => "HPET Timer",
            Self::Os => "OS Timer",
        }
    }

    /// The timer that a source of the clock library is.
    pub(super) fn of_source(name: &str) -> Option<Self> {
        match name {
            "tsc" => Some(Self::Tsc),
            "hpet" => Some(Self::Hpet),
            "os" => Some(Self::Os),
            _ => None,
        }
    }
}

/// The measurements on one of the paper's machines.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub(super) struct Published {
    /// The table with the numbers.
    pub(super) table: &'static str,
    /// The figure of the same measurements.
    pub(super) figure: &'static str,
    /// The processor in two words.
    pub(super) processor: &'static str,
    /// The machine, as the paper describes it.
    pub(super) machine: &'static str,
    /// Clock source of its kernel, by the kernel's name.
    pub(super) clocksource: &'static str,
    /// The costs, peaks filtered, in the order of the table.
    pub(super) costs: [PublishedCost; 3],
}

/// A row of a table of the paper.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub(super) struct PublishedCost {
    /// The time source.
    pub(super) timer: Timer,
    /// The mean in nanoseconds.
    pub(super) mean: f64,
    /// The standard deviation in nanoseconds.
    pub(super) stddev: f64,
}

impl Published {
    /// Cost of a timer.
    pub(super) fn cost(&self, timer: Timer) -> Option<PublishedCost> {
        self.costs.into_iter().find(|cost| cost.timer == timer)
    }
}

const fn cost(timer: Timer, mean: f64, stddev: f64) -> PublishedCost {
    PublishedCost { timer, mean, stddev }
}

/// Both machines. Table 2 is printed in microseconds.
pub(super) const PUBLISHED: [Published; 2] = [
    Published {
        table: "Table 1",
        figure: "Figure 2",
        processor: "VIA Nano",
        machine: "VIA Nano X2 U4025 at 1.067 GHz, 2 cores, TSC of constant rate, HPET of 14 MHz",
        clocksource: "tsc",
        costs: [
            cost(Timer::Tsc, 38.231, 0.3134),
            cost(Timer::Hpet, 598.72, 76.015),
            cost(Timer::Os, 102.20, 0.5253),
        ],
    },
    Published {
        table: "Table 2",
        figure: "Figure 3",
        processor: "AMD Athlon",
        machine: "AMD Athlon X2 BE-2350 at 1 GHz, 2 cores, unstable TSC, HPET of 25 MHz",
        clocksource: "hpet",
        costs: [
            cost(Timer::Tsc, 25.1, 1.5),
            cost(Timer::Hpet, 1063.3, 207.9),
            cost(Timer::Os, 1117.4, 374.3),
        ],
    },
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_numbers_agree_with_what_the_paper_says_of_them() {
        let [_, athlon] = PUBLISHED;
        let [hpet, os] = [Timer::Hpet, Timer::Os].map(|timer| athlon.cost(timer).unwrap().mean);
        // "the difference of mean values of the HPET and OS Timer, is about 0.0541 usec"
        assert!((os - hpet - 54.1).abs() < 1e-9, "{}", os - hpet);
        for published in PUBLISHED {
            assert_eq!(published.costs.map(|cost| cost.timer), Timer::ALL);
        }
    }
}
