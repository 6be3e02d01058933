//! The series of trials: what each section of the report varies.

use std::time::Duration;

use super::paper::Filter;
use super::setting::{Level, Setting};

/// Bytes of a frame where the size is not varied, check sequence included: those of section 2.1 of the report.
pub(super) const FRAME_BYTES: u16 = 84;

/// A series: two factors, every level of the one with every level of the other.
#[derive(Clone, Debug)]
pub(super) struct Sweep {
    /// Subject, and name of its raw results after `limit-rate-`.
    pub(super) name: &'static str,
    /// Factor of the lines of its figures, and of their abscissa.
    pub(super) factors: [&'static str; 2],
    pub(super) lines: Vec<Level>,
    pub(super) points: Vec<Level>,
    /// Constant settings.
    pub(super) base: Setting,
    pub(super) repetitions: u32,
}

/// Extent of the study.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct LimitRateScale {
    pub(super) quick: bool,
}

impl LimitRateScale {
    /// Duration of a trial. RFC 2544, section 24, specifies 60 s, which only the series of durations exceeds.
    fn lasts(self) -> Duration {
        Duration::from_millis(if self.quick { 100 } else { 2000 })
    }

    /// How often each trial of a series is made.
    pub(super) const fn repetitions(self) -> u32 {
        if self.quick { 3 } else { 5 }
    }

    /// A trial with 84-byte frames at full speed, on the whole core, with the default memory.
    pub(super) fn base(self) -> Setting {
        Setting {
            rate: None,
            frame_bytes: FRAME_BYTES,
            buffer_kib: 32 << 10,
            machine_mib: None,
            filter: Filter::None,
            tasks: 1,
            parts: 1,
            lasts: self.lasts(),
        }
    }

    /// The parts of a core that stand for the report's processors.
    pub(super) const fn parts(self) -> &'static [u8] {
        if self.quick { &[1, 16] } else { &[1, 4, 16] }
    }

    fn pick<T: Copy>(self, quick: &[T], full: &[T], level: fn(T) -> Level) -> Vec<Level> {
        let all = if self.quick { quick } else { full };
        all.iter().copied().map(level).collect()
    }

    /// Rates in thousands of frames a second, and full speed as the last.
    fn rates(self, quick: &[u64], full: &[u64]) -> Vec<Level> {
        let mut rates = self.pick(quick, full, |thousand| Level::Rate(Some(thousand * 1000)));
        rates.push(Level::Rate(None));
        rates
    }

    /// All series, in the report's order.
    pub(super) fn sweeps(self) -> Vec<Sweep> {
        let (base, repetitions) = (self.base(), self.repetitions());
        // Memory, buffers and filters can only have an effect if packets are lost: on a part of a core.
        let pressed = Setting { parts: 16, buffer_kib: 2 << 10, ..base };
        let sweep = |name, factors, lines, points, base| Sweep {
            name,
            factors,
            lines,
            points,
            base,
            repetitions,
        };
        vec![
            sweep(
                "cpu",
                ["part of the core", "rate"],
                self.parts().iter().copied().map(Level::Part).collect(),
                self.rates(&[100, 300], &[50, 100, 200, 300, 400, 500, 600, 800]),
                Setting { buffer_kib: 2 << 10, ..base },
            ),
            sweep(
                "memory",
                ["memory", "rate"],
                self.pick(&[64, 512], &[64, 256, 512], Level::MachineMib),
                self.rates(&[200], &[100, 200, 400]),
                pressed,
            ),
            sweep(
                "buffer",
                ["buffer", "rate"],
                self.pick(&[256, 32 << 10], &[256, 2 << 10, 32 << 10], Level::BufferKib),
                self.rates(&[], &[100, 200, 400]),
                pressed,
            ),
            sweep(
                "filter",
                ["filter", "rate"],
                vec![
                    Level::Filter(Filter::None),
                    Level::Filter(Filter::Medium),
                    Level::Filter(Filter::High),
                ],
                self.rates(&[], &[100, 200, 400]),
                pressed,
            ),
            sweep(
                "tasks",
                ["tasks", "frame"],
                vec![Level::Tasks(1), Level::Tasks(4)],
                self.pick(&[300, 1500], &[300, 1500], Level::FrameBytes),
                Setting { rate: Some(200_000), ..base },
            ),
            self.frames(),
            sweep(
                "gap",
                ["frame", "gap"],
                vec![Level::FrameBytes(300)],
                self.pick(&[1, 5, 25], &[1, 3, 5, 7, 9, 15, 25], Level::GapMicros),
                base,
            ),
            sweep(
                "duration",
                ["rate", "duration"],
                self.pick(&[200_000], &[400_000], |rate| Level::Rate(Some(rate))),
                self.pick(&[0.3, 0.6], &[60.0, 180.0, 300.0, 600.0], Level::Seconds),
                base,
            ),
        ]
    }

    /// Sizes 1 µs apart: the gap is applied after the size, which it depends on.
    fn frames(self) -> Sweep {
        Sweep {
            name: "frame",
            factors: ["gap", "frame"],
            lines: vec![Level::GapMicros(1)],
            points: self.pick(&[84, 1500], &[84, 300, 600, 900, 1200, 1500], Level::FrameBytes),
            base: self.base(),
            repetitions: self.repetitions(),
        }
    }
}

impl Sweep {
    /// Whether it varies the duration, which takes one trial per run.
    pub(super) fn is_of_durations(&self) -> bool {
        matches!(self.points[..], [Level::Seconds(_), ..])
    }

    /// Setting of a trial of a line at a point. A gap is applied last, because its rate depends on
    /// the frame size.
    pub(super) fn setting(&self, line: Level, point: Level) -> Setting {
        let is_gap = |level: &Level| matches!(level, Level::GapMicros(_));
        let [first, last] = if is_gap(&line) { [point, line] } else { [line, point] };
        last.of(first.of(self.base))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::limit_rate::setting::rate_of;

    #[test]
    fn every_trial_is_made_with_its_levels() {
        for size in [LimitRateScale { quick: true }, LimitRateScale { quick: false }] {
            for sweep in size.sweeps() {
                for (&line, &point) in
                    sweep.lines.iter().flat_map(|line| sweep.points.iter().map(move |p| (line, p)))
                {
                    let setting = sweep.setting(line, point);
                    setting.load().unwrap();
                    match (line, point) {
                        (Level::GapMicros(gap), Level::FrameBytes(bytes))
                        | (Level::FrameBytes(bytes), Level::GapMicros(gap)) => {
                            assert_eq!(setting.rate, Some(rate_of(gap, bytes)));
                        }
                        _ => assert_eq!(point.of(line.of(setting)), setting, "{}", sweep.name),
                    }
                }
            }
        }
    }

    #[test]
    fn full_run_fits_into_80_minutes_and_quick_one_into_half_a_minute() {
        // A trial has some tenths of a second of overhead.
        let lasts = |quick| {
            let of = |sweep: &Sweep| {
                let trials = sweep.lines.iter().flat_map(|&line| {
                    sweep.points.iter().map(move |&point| sweep.setting(line, point).lasts)
                });
                let trials = trials.map(|it| it.as_secs_f64() + 0.3);
                let all =
                    if sweep.is_of_durations() { trials.fold(0.0, f64::max) } else { trials.sum() };
                all * f64::from(sweep.repetitions)
            };
            LimitRateScale { quick }.sweeps().iter().map(of).sum::<f64>()
        };
        assert!(lasts(false) < 80.0 * 60.0, "{}", lasts(false));
        assert!(lasts(true) < 32.0, "{}", lasts(true));
    }
}
