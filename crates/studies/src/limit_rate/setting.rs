//! Settings of a trial, and their levels.

use std::net::Ipv6Addr;
use std::time::Duration;

use wirestamp_capture::{Config, Cores, Method, StampSource};
use wirestamp_clock::Span;
use wirestamp_traffic::live::{Limit, Pace};

use super::paper::{FILTERS, Filter, SOURCE_PORT};
use crate::tester::{CAPTURE_CORE, Ends, INTERFACE, Load};
use wirestamp_report::format::{count, real};

/// Rate in bit/s of the wire for which gaps are computed: ten times the paper's, because a trial has to reach
/// almost the limit of a modern machine.
const WIRE: u64 = 1_000_000_000;

/// All that a trial is made with.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Setting {
    /// Frames a second; none for full speed.
    pub(super) rate: Option<u64>,
    /// Bytes of a frame, check sequence included.
    pub(super) frame_bytes: u16,
    /// Memory between the kernel and the capture, in KiB.
    pub(super) buffer_kib: u16,
    /// Limit on the memory of the probe, in MiB; none for that of the machine.
    pub(super) machine_mib: Option<u16>,
    pub(super) filter: Filter,
    /// Measurement tasks: 1 or 4.
    pub(super) tasks: u8,
    /// The capture has this fraction (1/parts) of its core.
    pub(super) parts: u8,
    pub(super) lasts: Duration,
}

/// A level of a factor.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Level {
    Rate(Option<u64>),
    FrameBytes(u16),
    BufferKib(u16),
    MachineMib(u16),
    Filter(Filter),
    Tasks(u8),
    /// Share of the core: 1/N.
    Part(u8),
    /// From the end of a frame to the beginning of the next, in microseconds.
    GapMicros(u16),
    Seconds(f64),
}

impl Level {
    /// Name of the level in files.
    pub(super) fn name(self) -> String {
        match self {
            Self::Rate(Some(rate)) => format!("{rate}pps"),
            Self::Rate(None) => "max".to_owned(),
            Self::FrameBytes(bytes) => format!("{bytes}B"),
            Self::BufferKib(kib) => format!("{kib}KiB"),
            Self::MachineMib(mib) => format!("{mib}MiB"),
            Self::Filter(filter) => FILTERS[filter as usize].0.to_owned(),
            Self::Tasks(tasks) => format!("{tasks}"),
            Self::Part(1) => "whole".to_owned(),
            Self::Part(parts) => format!("1of{parts}"),
            Self::GapMicros(gap) => format!("{gap}us"),
            Self::Seconds(seconds) => format!("{seconds}s"),
        }
    }

    /// Name of the level in tables and figures.
    pub(super) fn words(self) -> String {
        match self {
            Self::Rate(Some(rate)) => format!("{}/s", count(rate)),
            Self::Rate(None) => "as fast as it goes".to_owned(),
            Self::FrameBytes(bytes) => format!("{} bytes", count(bytes.into())),
            Self::BufferKib(kib) if kib.is_multiple_of(1024) => format!("{} MiB", kib / 1024),
            Self::BufferKib(kib) => format!("{kib} KiB"),
            Self::MachineMib(mib) => format!("{mib} MiB"),
            Self::Filter(filter) => FILTERS[filter as usize].0.to_owned(),
            Self::Tasks(1) => "one task".to_owned(),
            Self::Tasks(tasks) => format!("{tasks} tasks"),
            Self::Part(1) => "the whole core".to_owned(),
            Self::Part(parts) => format!("1/{parts} of the core"),
            Self::GapMicros(gap) => format!("{gap} µs"),
            Self::Seconds(seconds) => format!("{seconds} s"),
        }
    }

    /// The level as a number, for the x axis of a figure; a rate without a limit is infinite.
    pub(super) fn number(self) -> f64 {
        match self {
            Self::Rate(rate) => rate.map_or(f64::INFINITY, real),
            Self::FrameBytes(number)
            | Self::BufferKib(number)
            | Self::MachineMib(number)
            | Self::GapMicros(number) => f64::from(number),
            Self::Filter(filter) => f64::from(filter as u8),
            Self::Tasks(number) | Self::Part(number) => f64::from(number),
            Self::Seconds(seconds) => seconds,
        }
    }

    /// The setting with this level.
    pub(super) fn of(self, setting: Setting) -> Setting {
        match self {
            Self::Rate(rate) => Setting { rate, ..setting },
            Self::FrameBytes(frame_bytes) => Setting { frame_bytes, ..setting },
            Self::BufferKib(buffer_kib) => Setting { buffer_kib, ..setting },
            Self::MachineMib(mib) => Setting { machine_mib: Some(mib), ..setting },
            Self::Filter(filter) => Setting { filter, ..setting },
            Self::Tasks(tasks) => Setting { tasks, ..setting },
            Self::Part(parts) => Setting { parts, ..setting },
            Self::GapMicros(gap) => {
                Setting { rate: Some(rate_of(gap, setting.frame_bytes)), ..setting }
            }
            Self::Seconds(seconds) => {
                Setting { lasts: Duration::from_secs_f64(seconds), ..setting }
            }
        }
    }
}

/// Frames a second with a gap of `gap_micros` behind each: the paper's Tp and Tbp (Figure 2-2).
pub(super) fn rate_of(gap_micros: u16, frame_bytes: u16) -> u64 {
    let frame_ns = u64::from(frame_bytes) * 8 * 1_000_000_000 / WIRE;
    1_000_000_000 / (u64::from(gap_micros) * 1000 + frame_ns).max(1)
}

impl Setting {
    /// Traffic.
    pub(super) fn load(self) -> anyhow::Result<Load> {
        let pace = self.rate.map_or(Ok(Pace::full_speed()), Pace::rate)?;
        let nanos = i64::try_from(self.lasts.as_nanos()).unwrap_or(i64::MAX);
        let limit = Limit { frames: None, duration: Some(Span::from_nanos(nanos)) };
        let end = |last| Ipv6Addr::new(0x2001, 0xdb8, 0x400, 0x800, 0, 0, 0, last);
        let ends = Ends::v6((end(0x13), SOURCE_PORT), (end(0x14), 5004));
        Ok(Load { frame_bytes: self.frame_bytes, pace, limit, ends })
    }

    /// How it is captured: on one core, stamped by the kernel.
    pub(super) fn capture(self) -> Config {
        let mut config = Config::new(INTERFACE, Method::Ring, StampSource::Kernel);
        config.ring_bytes = usize::from(self.buffer_kib) << 10;
        config.filter = FILTERS[self.filter as usize].1.map(str::to_owned);
        config.lanes = vec![Cores { consume: Some(CAPTURE_CORE), ..Cores::default() }];
        config
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_gap_lies_between_the_end_of_a_frame_and_the_next() {
        // 300 bytes take 2.4 µs: 3.4 µs with a gap of 1 µs.
        assert_eq!(rate_of(1, 300), 294_117);
        assert_eq!(rate_of(25, 300), 36_496);
        assert_eq!(rate_of(0, 0), 1_000_000_000);
    }
}
