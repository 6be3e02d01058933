//! Raw counters, their calibration, and time with an error bound.
//!
//! The system clock is kept right by others; reading it takes longer than what is to be timed, and
//! nobody says how far off the reading is. A CPU's counter is read in some nanoseconds, and counts
//! nothing that anybody else knows of. This crate reads the counter, finds out what it counts, and
//! says of every time how far off it can be.
//!
//! | to know | take |
//! |---|---|
//! | what time it is | [`WallClock::now`], or [`WallClock::now_with_error`] |
//! | when something happened, cheaply now and exactly later | [`Counter::read`], then [`ClockService::convert`], or for many at once [`Timeline::convert_batch`] |
//! | how long something took | [`Counter::read`] twice, then [`ClockService::span`] |
//! | when to wake up | [`TickTime`], [`Sleeper`] |
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
//! println!("sent at {:?} ± {}, under way for {delay} ± {error}", stamp.utc, stamp.error);
//! # Ok::<(), wirestamp_clock::StartError>(())
//! ```
//!
//! # From a counter to a time
//!
//! 1. [`Counter::read`] takes a raw value. [`Counter::select`] decides once, at the start, which
//!    source to take it from: the CPU's counter (the TSC, or CNTVCT on aarch64) if it can be
//!    trusted, otherwise the HPET or the kernel's clock; [`survey()`] says why. A process keeps its
//!    counter.
//! 2. A [`Calibrator`] reads the counter together with the system's clocks from time to time. Each
//!    such joint read is an [`Anchor`]. [`ClockService`] runs calibrators on a thread of its own.
//! 3. A [`Timeline`], an immutable snapshot of the last minute's anchors, converts raw values into
//!    [`Stamp`]s: UTC, and how far off it can be. A raw value between two anchors is interpolated
//!    from both; one beyond the newest is extrapolated, and better known a quarter of a second later.
//! 4. A [`DifferenceClock`] measures between two stamps of one clock without UTC in between, which
//!    is what a delay on one machine needs.
//! 5. A [`WallClock`] follows the newest anchors without ever going back, unless the system clock is
//!    stepped.
//! 6. An [`AnchorWriter`] keeps the anchors in a file. Raw values that were kept too can be converted
//!    again at any time, by the timeline of an [`AnchorFile`].
//!
//! # Units and errors
//!
//! Raw values count ticks of their [`Domain`]'s clock. Everything else is in nanoseconds: a
//! [`Time`] on a named scale, or a [`Span`]. An error is half the width of an interval around a
//! value and is meant to hold for every stamp, not on average. It is made of what was measured,
//! the bracket of each joint read, and of an assumption about what happens where nobody looks:
//!
//! - Between two anchors (250 ms) the system clock is stepped, or its rate changed, once and not
//!   more, and that not three times in a row; not twice where the second is just before the newest
//!   anchor. By how much does not matter: the anchors around tell.
//! - Beyond the newest anchor, and before the oldest, its rate does not change by more than it did in
//!   the last minute, or than the 1 ppm of a time daemon's ordinary corrections.
//!
//! Simulations of a thousand machines each hold this to less than one violation in ten thousand
//! conversions (`tests/simulation.rs`).
//!
//! # What happens when
//!
//! | event | what follows |
//! |---|---|
//! | the service starts | times at once, with a bound of half a microsecond (median in simulation; 3 us at most), which is a quarter of one a second later (0.7 us at most) |
//! | the system clock is slewed | followed by the next anchors; the wall clock bends and stays monotone. Faster than 500 ppm, as a time daemon may that must not step, it is a step where it begins and another where it ends |
//! | the system clock is stepped | counted ([`Timeline::steps`]) with the next anchor; new stamps follow it, and those from before keep the time they had for the minute that a timeline reaches back. Afterwards they are unknown, unless an [`AnchorFile`] was kept |
//! | a leap second that the kernel inserts | a step of -1 s like any other: the repeated second belongs to the stamps of both passes, each by its own anchors. Where it is smeared, a slew |
//! | suspend | a step, if the counter stood still with `CLOCK_MONOTONIC_RAW`; otherwise a disruption |
//! | the machine moves to another host, the counter goes back or changes its rate | a disruption: counted with the next anchor, up to 250 ms later, and the counter learnt anew in 200 us more. The hypervisor tells of it where there is a [`VmClock`]; otherwise anchors that disagree do |
//! | a network card's clock is slewed or stepped | followed as the system clock is, whichever of the two it was; set back by more than passed between two anchors, as a counter that was |
//! | the process forks | the child's clocks run on by what was known, with bounds that grow, until it starts a service of its own |
//!
//! # What this cannot know
//!
//! - **Whether the system clock is right.** UTC here is `CLOCK_REALTIME`, and the error is against
//!   that clock. How far it is from true UTC is known to whoever synchronises it: [`ClockSources`] queries it.
//! - **How long a second is.** The difference clock measures in seconds of `CLOCK_MONOTONIC_RAW`,
//!   which are off by the error of the oscillator's frequency, often some ppm, sometimes tens.
//! - **A step or a slew before it shows.** A stamp converted at once is extrapolated. It is off by a
//!   step until the next anchor, up to 250 ms later, and by a slew without precedent until two
//!   anchors have shown it (three if it counts as a step, which the next ones follow within
//!   milliseconds): 100 ppm are up to 50 us by then. Converted again, with an anchor after it, the
//!   stamp is inside its bound.
//! - **A small step as a step.** One that ordinary slewing could have made is not counted: 500 ppm of
//!   the time between two anchors, which is 125 us in 250 ms, twice that against a slew the other
//!   way, and more if the thread is held up. It is inside the error of the stamps around it, and for
//!   a minute the error of live stamps allows for another.
//! - **That a slew was the last one.** For a minute after a slew the error of live stamps
//!   allows for another such: milliseconds after one of some per cent. Converted again, with an
//!   anchor after it, a stamp is known as well as ever.
//! - **Two slews that cancel out.** A clock that is slewed forth and back between two anchors leaves
//!   no trace in them.
//! - **A disruption before it shows.** Until the next anchor after a suspend or a migration, stamps
//!   of a counter that jumped are off by the jump, and so are spans across it. Stamps from before,
//!   converted only afterwards, have an unbounded error; but where the counter was set back, their
//!   raw values are those of later times, and are taken for them. A jump of less than 2.5 us against
//!   `CLOCK_MONOTONIC_RAW`, or a change of rate by less than 10 ppm, is no disruption: it widens the
//!   error of the counter's rate for a minute, if it is more than the errors of the anchors.
//! - **What a step does to the kernel's stamps.** They are readings of the system clock, and a step
//!   between two of them is in their difference; [`Timeline::steps`] tells that there was one. So
//!   is a slew. The error of their spans allows for 500 ppm, and faster ones are counted only where
//!   they begin and end.
//! - **What the CPU reordered.** [`Counter::read`] takes a raw stamp without fences;
//!   [`Counter::read_ordered`] has them, and costs more.
//!
//! # When not to use it
//!
//! - Where a time is good to a millisecond, or taken some thousand times a second:
//!   [`std::time::SystemTime`] and [`std::time::Instant`] need no thread and no calibration.
//! - To keep the system clock right. That is the work of chrony, ntpd-rs or ptp4l; this follows, and asks them.
//! - Where a network card stamps packets in hardware, and times by its own clock are wanted. Its stamps
//!   as system time: [`ClockService::start_with_nic`].
//! - In a process that lives for a millisecond: the choice of the source and the first calibration
//!   take as long, and some milliseconds more on a busy machine.
//! - On a machine whose counter is not trusted ([`survey()`]). Everything works, over the kernel's
//!   clock, and nothing is gained but the bounds.
#![deny(unsafe_code)]

// The simulated machine is written for users of the crate, and simulates inside it too.
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
pub use service::{ClockService, ClockStatus, StartError};
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
