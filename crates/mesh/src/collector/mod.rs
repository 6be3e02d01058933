//! What the collector makes of what probes have seen.

mod pair;
mod synchronisation;
mod window;

pub use pair::{Delivery, Pair, Settled, Timing};
pub use synchronisation::NotSynchronised;
pub use window::Window;
