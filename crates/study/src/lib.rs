//! Experiments, their checks against ground truth, and their reports.
//!
//! This floor joins the ones below it: [`Recording`] keeps what is captured, [`Meeting`] brings the captures of two observation points
//! to one correlator, [`compare`] does the same with two capture files, and [`demo`] runs a whole
//! measurement on one machine and checks it against what is known of it. The experiments of papers
//! are made again here too: [`STUDIES`], and [`site`] brings them together. [`tester`] is what
//! captures are loaded and measured with. [`layers`] is the page about one host's layers.

#![forbid(unsafe_code)]

mod account;
mod active_delay;
mod circumstances;
mod compare;
pub mod demo;
pub mod experiment;
pub mod flows;
mod interarrival;
pub mod layers;
mod limit_rate;
mod live;
mod loss;
mod meeting;
pub mod mesh;
mod overhead;
mod passive_delay;
mod probe;
mod reception;
mod recording;
mod replicas;
pub mod report;
mod sight;
pub mod site;
mod step;
mod studies;
pub mod tester;
mod timers;
mod timestamp_jitter;

pub use account::{Account, Making, Part, Section};
pub use circumstances::Circumstances;
pub use compare::{Comparison, Correction, PipeReport, Survey, Terms, compare, survey};
pub use live::{Glance, LiveFigures};
pub use meeting::{Meeting, TapReport};
pub use recording::{AnchorCount, Figures, Recording};
pub use sight::Sight;
pub use studies::{Entry, Options, STUDIES, timers_beside};
pub use timers::Elsewhere;
