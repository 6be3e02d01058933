//! Raw counters, their calibration, and time with an error bound.
//!
//! Reading the system clock takes longer than many of the intervals to be measured, and returns no error. A CPU's
//! counter is read in some nanoseconds, but its ticks have no meaning outside the machine. This crate reads the
//! counter, calibrates it against the system's clocks, and gives every time an error bound.
//!
//! | purpose | use |
//! |---|---|
//! | the current time | [`WallClock::now`], or [`WallClock::now_with_error`] |
//! | the time of an event, cheap now and exact later | [`Counter::read`], then [`ClockService::convert`], or for many at once [`Timeline::convert_batch`] |
//! | a duration | [`Counter::read`] twice, then [`ClockService::span`] |
//! | the counter's value at the time of a kernel stamp | [`ClockService::counter_value`], or for many [`CounterValues`] |
//! | waking up at a time | [`TickTime`], [`Sleeper`] |
//! | the kernel's own conversion, and its inverse | [`vdso::ExactConversion`] |
//!
//! ```
//! use wirestamp_clock::{ClockService, Counter};
//!
//! let clock = ClockService::start(Counter::select())?;
//! let wall_clock = clock.wall_clock();
//! println!("it is {:?}", wall_clock.now());
//!
//! let counter = clock.counter();
//! let (sent, received) = (counter.read(), counter.read());
//!
//! let stamp = clock.convert(sent);
//! let (delay, error) = clock.span(sent, received);
//! println!("sent at {:?} ± {}, delay {delay} ± {error}", stamp.utc, stamp.error);
//! # Ok::<(), wirestamp_clock::StartError>(())
//! ```
//!
//! # From a counter to a time
//!
//! 1. [`Counter::read`] takes a raw value. [`Counter::select`] selects its source once, at the start: the CPU's counter
//!    (the TSC, or CNTVCT on aarch64) if it is trusted, otherwise the HPET or the kernel's clock. [`survey()`] gives the
//!    reason. A process keeps its counter.
//! 2. A [`Calibrator`] periodically reads the counter together with the system's clocks. Each such joint read is an
//!    [`Anchor`]. [`ClockService`] runs calibrators on its own thread.
//! 3. A [`Timeline`], an immutable snapshot, converts raw values into [`Stamp`]s: UTC with an error bound. Where the
//!    kernel's own conversion of the counter is readable ([`vdso`]), it is used: the error is 2 ns. Otherwise the timeline
//!    consists of the last minute's anchors: a raw value between two of them is interpolated, one beyond the newest is
//!    extrapolated. [`ClockService::is_exact`] is true in the first case, [`ClockService::no_exact_conversion`]
//!    has the reason of the second.
//! 4. A [`DifferenceClock`] measures between two stamps of one clock without UTC, for delays on one machine.
//! 5. A [`WallClock`] follows the newest anchors and never goes back, unless the system clock is stepped.
//! 6. An [`AnchorWriter`] writes the anchors to a file. With stored raw values, the timeline of an [`AnchorFile`] can
//!    convert them again at any time.
//!
//! # Units and errors
//!
//! Raw values count ticks of their [`Domain`]'s clock. Everything else is in nanoseconds: a [`Time`] on a named scale, or
//! a [`Span`]. An error is half the width of an interval around a value. It is meant to hold for every stamp, not on
//! average. A stamp that the kernel's own lines convert ([`ClockService::is_exact`]) has an error of 2 ns. The service
//! observes the lines every 50 ms, and every 4 ms after a change of rate. Between two observations with different lines the
//! error includes their distance; this assumes one step or change of rate in between.
//!
//! Without such lines the error combines a measurement, the bracket of each joint read, with an assumption about the time
//! between the reads:
//!
//! - Between two anchors (250 ms) the system clock is stepped, or its rate changed, at most once. This does not happen
//!   in three successive intervals, nor in two if the second event is just before the newest anchor. The size does not
//!   matter, because the surrounding anchors show it.
//! - Beyond the newest anchor, and before the oldest, its rate does not change by more than it did in the last minute, or
//!   than the 1 ppm of a time daemon's ordinary corrections.
//!
//! Simulations of a thousand machines each confirm this: less than one violation in ten thousand conversions
//! (`tests/simulation.rs`).
//!
//! # Events and effects
//!
//! | event | effect |
//! |---|---|
//! | the service starts | exact times at once with the kernel's own conversion; otherwise a bound of half a microsecond (median in simulation; max 3 us), and a quarter of that one second later (max 0.7 us) |
//! | the system clock is slewed | the next anchors follow; the wall clock bends and stays monotone. A slew above 500 ppm, which a time daemon may use if it must not step, is a step at its beginning and another at its end |
//! | the system clock is stepped | counted ([`Timeline::steps`]) with the next anchor; new stamps follow it, and earlier ones keep their time for the minute of a timeline. Afterwards they are unknown, unless an [`AnchorFile`] exists |
//! | the kernel inserts a leap second | a step of -1 s like any other: stamps of both passes of the repeated second are converted, each by its own anchors. A smeared leap second is a slew |
//! | suspend | a step, if the counter stopped together with `CLOCK_MONOTONIC_RAW`; otherwise a disruption |
//! | the machine moves to another host, the counter goes back or changes its rate | a disruption: counted with the next anchor, up to 250 ms later, and the counter calibrated anew within 200 us more. The hypervisor reports it by a [`VmClock`], if there is one; otherwise inconsistent anchors show it |
//! | a network card's clock is slewed or stepped | as for the system clock; the two are not distinguished. If it is set back by more than the time between two anchors, as for a counter |
//! | the process forks | the child's clocks continue with growing bounds, until it starts its own service |
//!
//! # Limits
//!
//! - **Accuracy of the system clock.** UTC here is `CLOCK_REALTIME`, and the error is against that clock. Its distance from
//!   true UTC is known only to the program that synchronises it; [`ClockSources`] queries it.
//! - **Length of a second.** The difference clock measures in seconds of `CLOCK_MONOTONIC_RAW`, which have the error of the
//!   oscillator's frequency, often some ppm, sometimes tens.
//! - **A step or a slew before it is visible.** A stamp converted at once is extrapolated. It is off by a step until the
//!   next anchor, up to 250 ms later, and by an unprecedented slew until two anchors have shown it (three if it counts as
//!   a step; the further ones follow within milliseconds): 100 ppm are up to 50 us by then. Converted again, with an
//!   anchor after it, the stamp is inside its bound.
//! - **Small steps.** A step that ordinary slewing can explain is not counted: 500 ppm of the time between two anchors,
//!   which is 125 us in 250 ms, twice that against a slew in the other direction, and more if the thread is delayed. It
//!   is inside the error of the stamps around it, and for a minute the error of live stamps allows for another such
//!   step.
//! - **The end of slewing.** For a minute after a slew the error of live stamps allows for another such slew: milliseconds
//!   after one of some per cent. Converted again, with an anchor after it, a stamp has the usual bound.
//! - **Two slews that cancel out.** If a clock is slewed forth and back between two anchors, they do not show it.
//! - **A disruption before it is visible.** Until the next anchor after a suspend or a migration, stamps of a counter
//!   that jumped are off by the jump, and so are spans across it. Stamps from before, converted only afterwards, have
//!   an unbounded error. But if the counter was set back, their raw values repeat, and they are converted as later
//!   stamps. A jump of less than 2.5 us against `CLOCK_MONOTONIC_RAW`, or a change of rate by less than 10 ppm, is no
//!   disruption: it increases the error of the counter's rate for a minute, if it exceeds the errors of the anchors.
//! - **Steps in the kernel's stamps.** They are readings of the system clock. With the kernel's own conversion they are
//!   converted to the counter, and their difference includes neither steps nor slews; a stamp within 50 ms of a step has
//!   the step in its error. Otherwise the difference includes a step between them; [`Timeline::steps`] reveals it. The same
//!   holds for a slew. The error of their spans then allows for 500 ppm; faster slews are counted only at their beginning
//!   and end.
//! - **The kernel's data are no ABI.** An update of the kernel may change them. A layout is used only after 5,000 readings of
//!   the kernel's clocks agreed with it, and one reading of each clock is compared at least every 50 ms.
//! - **Reordering by the CPU.** [`Counter::read`] takes a raw stamp without fences; [`Counter::read_ordered`] has them, and
//!   costs more.
//!
//! # When not to use it
//!
//! - If a millisecond is accurate enough, or times are taken some thousand times a second: [`std::time::SystemTime`] and
//!   [`std::time::Instant`] need no thread and no calibration.
//! - To synchronise the system clock. chrony, ntpd-rs and ptp4l do that; this crate follows and queries them.
//! - For times by a network card's own clock, if it stamps packets in hardware. Its stamps as system time:
//!   [`ClockService::start_with_nic`].
//! - In a process that lives for a millisecond: the selection of the source and the first calibration take as long, and
//!   some milliseconds more on a busy machine.
//! - On a machine without a trusted counter ([`survey()`]). Everything works with the kernel's clock, but the bounds are
//!   the only benefit.
#![deny(unsafe_code)]

// The simulated machine of the integration tests is also used by unit tests.
#[cfg(test)]
extern crate self as wirestamp_clock;

mod anchor;
mod anchor_file;
mod calibrator;
pub mod clock_sources;
mod convert;
mod counter;
mod difference;
mod history;
mod phc;
mod piece;
mod pieces;
mod rate;
mod ratio;
mod service;
mod sleep;
mod source;
mod stamp;
mod survey;
mod ticks;
mod time;
mod timeline;
pub mod vdso;
mod vmclock;
mod wall;

pub use anchor::{Anchor, Clocks};
pub use anchor_file::{AnchorFile, AnchorFileError, AnchorWriter};
pub use calibrator::{CalibrationError, Calibrator};
pub use clock_sources::{ClockSource, ClockSources, KernelSync, SyncStatus, utc_error};
pub use convert::OutOfRange;
pub use counter::Counter;
pub use difference::DifferenceClock;
pub use phc::{Phc, PhcError};
pub use service::{ClockService, ClockStatus, CounterValues, StartError};
pub use sleep::{CounterSleep, Interrupter, Margin, SleepClock, Sleeper, Wake};
pub use source::{hpet::Hpet, selection::SourceError};
pub use stamp::{Domain, RawStamp, Stamp};
pub use survey::{CounterSource, Survey, survey};
pub use ticks::{
    ClockMismatch, CounterTicks, MonotonicTicks, RealtimeTicks, TickSpan, TickTime, Ticking,
};
pub use time::{MonotonicRaw, Scale, Span, Time, Utc};
pub use timeline::Timeline;
pub use vmclock::{VmClock, VmClockError};
pub use wall::WallClock;
