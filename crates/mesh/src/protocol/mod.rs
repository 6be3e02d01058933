//! Messages of the mesh: protocol buffers (`proto/`) and their Rust types. All input is untrusted: invalid messages are
//! errors. Messages to and from other systems: [`ipfix`].

mod clock;
mod counts;
mod flows;
pub mod ipfix;
mod observations;

pub use clock::MachineClock;
pub use counts::{Count, Counts, MalformedCounts};
pub use flows::Flows;
pub use observations::{Malformed, ObservationBatch};
