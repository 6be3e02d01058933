//! Reports of the far ends by RTCP, joined with the RTP streams that they are about.
//!
//! | file | contents |
//! |---|---|
//! | `join.rs` | finds the stream of a report |
//! | `state.rs` | the reports on one stream, in constant memory |
//! | `round_trip.rs` | round trips from this point to one end, and back |
//! | `arrivals.rs`, `comparison.rs` | losses beyond this point: those of the receiver without those before this point |
//! | `report.rs`, `unknown.rs` | the values of a flow's report; why one is unknown |

mod arrivals;
mod comparison;
mod join;
mod report;
mod round_trip;
mod state;
mod unknown;

pub(super) use join::{Unjoined, record};
pub use report::{LossComparison, RoundTripReport, RtcpReport, VoipReport};
pub(super) use state::StreamRtcp;
pub use unknown::UnknownRtcpValue;
