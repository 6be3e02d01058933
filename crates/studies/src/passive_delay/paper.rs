//! Results of the report.

use serde::Serialize;

/// Source of the numbers.
pub(crate) const PAPER: &str =
    "6QM, \"D4.2: Final System Test Report\" (IST-2001-37611, 2007), sections 3.3 to 3.6";

/// A section of the report, and what is varied there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Question {
    /// 3.3: nothing, the same test five times.
    Precision,
    /// 3.4 and 3.5: the frame size, the load and the number of measurement tasks.
    Frames,
    /// 3.6: the duration.
    Duration,
}

impl Question {
    /// All of them, in the order of the report.
    pub(super) const ALL: [Self; 3] = [Self::Precision, Self::Frames, Self::Duration];

    /// In a word.
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Precision => "precision",
            Self::Frames => "frames",
            Self::Duration => "duration",
        }
    }
}

/// A row of the report's tables of errors (Figures 3-17, 3-25, 3-31 and 3-37).
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub(super) struct Published {
    /// Where it is from.
    pub(super) question: Question,
    /// The frame in bytes, with check sequence.
    pub(super) frame: u16,
    /// The load in thousandths of 100 Mbit/s.
    pub(super) load: u32,
    /// The tasks of each probe.
    pub(super) tasks: u32,
    /// The duration in seconds.
    pub(super) seconds: u32,
    /// "ABS. OWD min Error (us)", which only section 3.3 has.
    pub(super) min_error_us: Option<f64>,
    /// "ABS. OWD mean Error (us)".
    pub(super) mean_error_us: f64,
    /// "ABS. OWD max Error (us)".
    pub(super) max_error_us: f64,
    /// "ABS. Relative offset Probe1-Probe2 (us)": how far the clocks of the probes were apart.
    pub(super) offset_us: f64,
    /// "Packet Loss (%)" of the first probe: what it lost itself.
    pub(super) own_loss_percent: f64,
}

/// A test of section 3.3.
const fn test(min: f64, mean: f64, max: f64, offset_us: f64, own_loss_percent: f64) -> Published {
    let question = Question::Precision;
    let min_error_us = Some(min);
    let errors = row(question, 84, [25, 1, 60], [mean, max], offset_us, own_loss_percent);
    Published { min_error_us, ..errors }
}

/// Of load, tasks and seconds; of the errors of the mean and of the longest delay.
const fn row(
    question: Question,
    frame: u16,
    [load, tasks, seconds]: [u32; 3],
    [mean_error_us, max_error_us]: [f64; 2],
    offset_us: f64,
    own_loss_percent: f64,
) -> Published {
    Published {
        question,
        frame,
        load,
        tasks,
        seconds,
        min_error_us: None,
        mean_error_us,
        max_error_us,
        offset_us,
        own_loss_percent,
    }
}

const fn at_40(frame: u16, errors: [f64; 2], offset_us: f64, own_loss: f64) -> Published {
    row(Question::Frames, frame, [400, 1, 60], errors, offset_us, own_loss)
}

const fn at_100(frame: u16, errors: [f64; 2], offset_us: f64, own_loss: f64) -> Published {
    row(Question::Frames, frame, [1000, 1, 60], errors, offset_us, own_loss)
}

/// Section 3.5 has a load of its own.
const fn four_tasks(frame: u16, errors: [f64; 2], offset_us: f64, own_loss: f64) -> Published {
    row(Question::Frames, frame, [200, 4, 60], errors, offset_us, own_loss)
}

const fn lasting(seconds: u32, errors: [f64; 2], offset_us: f64, own_loss: f64) -> Published {
    row(Question::Duration, 300, [400, 1, seconds], errors, offset_us, own_loss)
}

/// All of them, in the order of the report.
pub(super) const PUBLISHED: [Published; 27] = [
    test(387.1, 376.31, 377.30, 228.0, 7.60),
    test(48.6, 46.67, 46.90, 136.0, 7.26),
    test(23.5, 13.03, 22.00, 23.0, 7.58),
    test(99.7, 70.57, 34.40, 16.0, 6.92),
    test(1.5, 16.91, 31.90, 464.0, 6.80),
    at_40(84, [44.75, 425.00], 28.0, 0.05),
    at_40(300, [82.94, 831.00], 132.0, 0.01),
    at_40(600, [39.57, 32.00], 118.0, 0.01),
    at_40(900, [117.14, 110.00], 113.0, 0.00),
    at_40(1200, [128.01, 122.00], 53.0, 0.00),
    at_40(1500, [110.86, 101.00], 17.0, 0.01),
    at_100(84, [802.18, 564.15], 191.0, 58.20),
    at_100(300, [533.12, 1033.30], 29.67, 0.34),
    at_100(600, [863.07, 1463.75], 128.50, 0.02),
    at_100(900, [779.84, 1313.55], 6.50, 0.21),
    at_100(1200, [651.19, 1262.25], 107.50, 0.28),
    at_100(1500, [981.87, 1621.90], 61.00, 0.59),
    four_tasks(84, [65.20, 30.00], 102.0, 0.01),
    four_tasks(300, [15.80, 3.00], 42.0, 0.00),
    four_tasks(600, [109.50, 89.00], 57.0, 1.31),
    four_tasks(900, [51.90, 77.00], 67.0, 0.82),
    four_tasks(1200, [185.50, 413.00], 124.0, 0.00),
    four_tasks(1500, [132.00, 138.00], 52.0, 0.00),
    lasting(60, [82.94, 831.00], 132.0, 0.01),
    lasting(180, [56.10, 292.0], 91.0, 0.00),
    lasting(300, [58.90, 272.0], 3.0, 0.06),
    lasting(600, [94.10, 364.0], 109.0, 0.09),
];
