//! Records events of the kernel's receive path: tracepoints, stamped in the softIRQ.
//!
//! A private trace instance (Documentation/trace/ftrace.rst) stamps the events by a clock of choice. With
//! [`TraceClock::X86Tsc`] a stamp is a raw value of the CPU's counter, read where the event occurs.
//! [`TraceClock::Mono`] is the control: only the clock differs.
//!
//! [`Recorder::start`] starts recording. [`Recorder::run`] reads the rings on the calling thread and passes each
//! [`TraceEvent`] to an [`EventSink`], which converts stamps in batches, off the path of the packets
//! ([`TraceClock::domain`], [`wirestamp_clock::Timeline::convert_batch`]). The final [`EventLedger`] accounts for each
//! event.
//!
//! ```no_run
//! use wirestamp_capture::Stop;
//! use wirestamp_capture::events::{Error, Recorder, RecorderConfig, TraceClock, TraceEvent};
//!
//! let recorder = Recorder::start(&RecorderConfig::new(TraceClock::Mono))?;
//! let stop = Stop::new()?;
//! let mut print = |event: &TraceEvent<'_>| -> Result<(), Error> {
//!     println!("{} {} on CPU {}", event.raw, event.name(), event.cpu);
//!     Ok(())
//! };
//! let (ledger, outcome) = recorder.run(&stop, &mut print);
//! outcome?;
//! println!("{} of {} events were lost", ledger.lost, ledger.recorded);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! [`page`] and [`mod@format`] read the kernel's binary records; they have no input or output.

mod clock;
mod counts;
mod error;
mod event;
pub mod format;
mod guard;
pub mod page;
mod recorder;
mod ring;
mod selection;
mod sink;
mod tracefs;

pub use clock::TraceClock;
pub use counts::{CpuLedger, EventLedger};
pub use error::Error;
pub use event::{Context, TraceEvent};
pub use recorder::{Recorder, RecorderConfig, RecorderFacts};
pub use ring::Reading;
pub use selection::{DEFAULT_EVENTS, InterfaceFilter};
pub use sink::EventSink;
