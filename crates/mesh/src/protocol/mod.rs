//! What the parts of the mesh say to each other: messages of protocol buffers (`proto/`), and what they are to
//! us. Nothing that comes from outside is trusted here: what cannot be is an error that says what it is. What the
//! mesh says to others, and hears from them, is [`ipfix`].

mod clock;
mod counts;
mod flows;
pub mod ipfix;
mod observations;

pub use clock::MachineClock;
pub use counts::{Count, Counts, MalformedCounts};
pub use flows::Flows;
pub use observations::{Malformed, ObservationBatch};
