//! Raw counters, their calibration, and time with an error bound.
//!
//! # From a counter to a time
//!
//! A packet is stamped with the cheapest clock there is, and the stamp is converted later, on
//! another core:
//!
//! 1. [`Counter::read`] takes a raw value. [`Counter::select`] decides once, at the start, which
//!    source to take it from: the CPU's counter (the TSC, or CNTVCT on aarch64) if it can be
//!    trusted, otherwise the HPET or the kernel's clock; [`survey()`] says why.
//! 2. A [`Calibrator`] reads the counter together with the system's clocks from time to time. Each
//!    such joint read is an anchor. [`ClockService`] runs calibrators on a thread of its own.
//! 3. A [`Timeline`], an immutable snapshot of the last minute's anchors, converts raw values into
//!    [`Stamp`]s: UTC, and how far off it can be.
//! 4. A [`DifferenceClock`] measures between two stamps of one clock without UTC in between, which
//!    is what a delay on one machine needs.
//! 5. Deadlines stay in ticks: [`TickTime`] and [`TickSpan`] calculate with them, and a [`Sleeper`]
//!    sleeps until one.
//!
//! ```
//! use wirestamp_clock::{ClockService, Counter};
//!
//! let clock = ClockService::start(Counter::select())?;
//! let counter = clock.counter();
//! let (sent, received) = (counter.read(), counter.read());
//!
//! let timeline = clock.timeline(counter.domain());
//! let (sent, received) = (timeline.convert(sent), timeline.convert(received));
//! let difference = timeline.difference();
//! let delay = difference.span(sent.raw, received.raw).expect("both are of the counter's domain");
//! println!("at {:?} ± {:?}: {delay:?} ± {:?}", sent.utc, sent.error, difference.error(delay));
//! # Ok::<(), std::io::Error>(())
//! ```
//!
//! # Units and errors
//!
//! Raw values count ticks of their [`Domain`]'s clock. Everything else is in nanoseconds: a
//! [`Time`] on a named scale, or a [`Span`]. An error is half the width of an interval around a
//! value and is meant to hold for every stamp, not on average. It is made of what was measured,
//! the bracket of each joint read, and of one assumption about what happens between the anchors:
//! that within a sampling interval (250 ms) the rate of the system clock against the counter does
//! not change by more than it was seen to change between intervals.
//!
//! # What this cannot know
//!
//! - **Whether the system clock is right.** UTC here is `CLOCK_REALTIME`, and the error is against
//!   that clock. How far it is from true UTC is known to whoever synchronises it.
//! - **How long a second is.** The difference clock measures in seconds of `CLOCK_MONOTONIC_RAW`,
//!   which are off by the error of the oscillator's frequency, often some ppm, sometimes tens.
//! - **A slew before it shows.** When the system clock starts to be slewed without precedent,
//!   stamps converted in the next half second are off by up to the new rate times that. The bound
//!   holds again with the anchors that follow, also for those stamps if they are converted again.
//! - **A small step.** One that slewing could have explained (500 ppm of a sampling interval,
//!   125 us) is taken for slewing. Faster slewing, which some time daemons do when they start, is
//!   taken for steps: counted, and inside the error.
//! - **What a step does to the kernel's stamps.** They are readings of the system clock, and a step
//!   between two of them is in their difference; [`Timeline::steps`] tells that there was one.
//! - **What the CPU reordered.** [`Counter::read`] takes a raw stamp without fences;
//!   [`Counter::read_ordered`] has them, and costs more.
#![deny(unsafe_code)]

mod anchor;
mod calibrator;
mod convert;
mod counter;
mod difference;
mod history;
mod pieces;
mod ratio;
mod service;
mod sleep;
mod source;
mod stamp;
mod survey;
mod sys;
mod ticks;
mod time;
mod timeline;

pub use anchor::Clocks;
pub use calibrator::{CalibrationError, Calibrator};
pub use convert::OutOfRange;
pub use counter::Counter;
pub use difference::DifferenceClock;
pub use service::{ClockService, ClockStatus};
pub use sleep::{CounterSleep, Interrupter, Margin, SleepClock, Sleeper, Wake};
pub use source::{SourceError, hpet::Hpet};
pub use stamp::{Domain, RawStamp, Stamp};
pub use survey::{Source, Survey, survey};
pub use ticks::{
    CounterTicks, MonotonicTicks, OtherClock, RealtimeTicks, TickSpan, TickTime, Ticking,
};
pub use time::{MonotonicRaw, Scale, Span, Time, Utc};
pub use timeline::Timeline;
