//! The flows of a capture file, or of a running capture.
//!
//! [`of_file`] reads a file, and [`of_files`] several, into [`Flows`]; [`FlowTap`] adds the packets of a capture to flows that
//! another thread may read at the same time.

mod file;
mod live;
mod table;

pub use file::{FileOptions, FileReport, of_file, of_files};
pub use live::{FlowTap, SharedFlows};
pub use table::Flows;
