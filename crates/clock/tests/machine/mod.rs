//! A machine whose clocks are simulated, what is run on it, and what is counted.

mod clocks;
mod random;
mod run;
mod tally;

pub(crate) use clocks::{Conditions, Event, Sample, SimulatedClocks};
pub(crate) use random::Random;
pub(crate) use run::{Run, run};
pub(crate) use tally::Tally;
