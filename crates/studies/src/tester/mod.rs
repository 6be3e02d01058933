//! Equipment to test a capture: a link without other traffic, frames at a rate, busy cores, other
//! tools in processes of their own, and the account of what was sent and what was captured.
//!
//! RFC 2544 calls this the tester. It sends and receives on one machine, so the limits of the sender are
//! known: frames that were never sent are excluded from loss.

mod bed;
mod busy;
mod cpu_use;
mod load;
mod memory_limit;
mod softirq_thread;
mod tool;
mod trial;

pub use bed::{
    Bed, CAPTURE_CORE, DESTINATION, INTERFACE, RECEIVER, SENDING_CORE, SENDING_INTERFACE,
    UNUSED_MAC, source, stay_on,
};
pub(crate) use bed::{WIDE, settle};
pub use busy::Spinner;
pub(crate) use cpu_use::{CpuUse, load_percent};
pub use load::{CHECK_SEQUENCE, Ends, Load};
pub(crate) use memory_limit::MemoryLimit;
pub(crate) use softirq_thread::SoftirqThread;
pub use tool::{Tool, packets_in, processor_time, spawn};
pub(crate) use trial::{Meter, Trial, capture_during};
