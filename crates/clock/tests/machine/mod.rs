//! A machine with simulated clocks, captures on it, and the tally of their errors.

mod clocks;
mod random;
mod run;
mod tally;

pub(crate) use clocks::{Conditions, Event, SimulatedClocks, Truth};
pub(crate) use random::Random;
pub(crate) use run::{Run, run};
pub(crate) use tally::Tally;
