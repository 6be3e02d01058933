//! The experiments of papers, reproduced on this machine: [`STUDIES`].
//!
//! [`experiment`] runs a design cell by cell and keeps the raw results. [`site`] collects the reports of all studies.
//! [`tester`] is the bed, the load and the tools that captures are measured with.

#![forbid(unsafe_code)]

mod account;
mod active_delay;
mod again;
pub mod experiment;
mod interarrival;
mod limit_rate;
mod loss;
mod making;
pub mod mesh;
mod options;
mod overhead;
mod passive_delay;
mod presentation;
mod probe;
mod reception;
mod replicas;
pub mod site;
mod step;
mod studies;
pub mod tester;
mod timers;
mod timestamp_jitter;

pub use account::{Account, Making, MeasuredDesign, Part, Section};
pub use again::write_again;
pub use options::Options;
pub use studies::{Entry, STUDIES, timers_beside};
pub use timers::Elsewhere;
