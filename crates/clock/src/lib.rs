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
//! the bracket of each joint read, and of an assumption about what happens where nobody looks:
//!
//! - Between two anchors (250 ms) the system clock is stepped, or its rate changed, once and not
//!   more, and that not three times in a row. By how much does not matter: the anchors around tell.
//! - Beyond the newest anchor its rate does not change by more than it did in the last minute, or
//!   than the 1 ppm of a time daemon's ordinary corrections.
//!
//! Simulations of a thousand machines each hold this to less than one violation in ten thousand
//! conversions (`tests/simulation.rs`).
//!
//! # What this cannot know
//!
//! - **Whether the system clock is right.** UTC here is `CLOCK_REALTIME`, and the error is against
//!   that clock. How far it is from true UTC is known to whoever synchronises it.
//! - **How long a second is.** The difference clock measures in seconds of `CLOCK_MONOTONIC_RAW`,
//!   which are off by the error of the oscillator's frequency, often some ppm, sometimes tens.
//! - **A step or a slew before it shows.** A stamp converted at once is extrapolated. It is off by a
//!   step until the next anchor, up to 250 ms later, and by a slew without precedent until two
//!   anchors have shown it: 100 ppm are up to 50 us by then. Converted again, with an anchor after
//!   it, the stamp is inside its bound.
//! - **A small step as a step.** One that slewing could have explained (500 ppm of a sampling
//!   interval, 125 us) is not counted. It is inside the error of the stamps around it, and for a
//!   minute the error of live stamps allows for another. Faster slewing, which some time daemons do
//!   when they start, is counted as steps, and is inside the error too.
//! - **Two slews that cancel out.** A clock that is slewed forth and back between two anchors leaves
//!   no trace in them.
//! - **A disruption before it shows.** Until the next anchor after a suspend or a migration, stamps
//!   of a counter that jumped are off by the jump, and so are spans across it. Stamps from before,
//!   converted only afterwards, have an unbounded error; but where the counter was set back, their
//!   raw values are those of later times, and are taken for them. A jump of less than 2.5 us against
//!   `CLOCK_MONOTONIC_RAW` is not noticed at all.
//! - **What a step does to the kernel's stamps.** They are readings of the system clock, and a step
//!   between two of them is in their difference; [`Timeline::steps`] tells that there was one.
//! - **What the CPU reordered.** [`Counter::read`] takes a raw stamp without fences;
//!   [`Counter::read_ordered`] has them, and costs more.
#![deny(unsafe_code)]

mod anchor;
mod anchor_file;
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
mod vmclock;
mod wall;

pub use anchor::{Anchor, Clocks};
pub use anchor_file::{AnchorFile, AnchorFileError, AnchorWriter};
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
pub use vmclock::{VmClock, VmClockError};
pub use wall::WallClock;
