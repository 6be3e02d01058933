//! Experiments that are run cell by cell: in a random order, repeated, and resumed where they were
//! stopped.
//!
//! A [`Study`] is data, its [`Design`], and one function that runs one cell. [`run`] makes the runs
//! and stores their results; [`Estimate`] and [`effects()`] are computed from the results.

mod archive;
mod claim;
mod correlation;
mod design;
mod effects;
mod open;
mod runner;

pub use claim::{Claim, Claimant, Verdict};
pub use correlation::{pearson, spearman};
pub use design::{Cell, Design, Factor, RunId};
pub(crate) use effects::factor;
pub use effects::{Effect, effects};
pub use runner::{Progress, Runs, Study, run};
pub use wirestamp_report::estimate::{Estimate, Sign, deviation, mean};
