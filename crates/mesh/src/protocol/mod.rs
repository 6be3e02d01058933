//! Messages of the mesh: protocol buffers (`proto/`) and their Rust types. All input is untrusted: invalid messages are
//! errors. Messages to and from other systems: [`ipfix`].

mod clock;
mod counts;
mod flows;
pub mod ipfix;
mod lists;
mod observations;
mod test_answers;

pub use clock::MachineClock;
pub use counts::{Count, Counts, MalformedCounts};
pub use flows::Flows;
pub use observations::{Malformed, ObservationBatch};
pub use test_answers::{TestAnswer, TestAnswers};
