//! Quality of service of one flow, or of several flows combined.

mod accumulator;
mod call;
mod counts;
mod row;
mod sequence;
mod volume;

pub use accumulator::Quality;
pub use call::CallOverTime;
pub use counts::{ClockError, Counts};
pub use sequence::SequenceMetrics;
