//! The quality of each flow at one point: what `wirestamp flows` shows.
//!
//! A [`FlowMonitor`] takes packets in the order of capture, and gives a [`FlowReport`] of each flow and
//! of each RTP stream when it is asked for. Memory is bounded: when there is no room for a new flow, the
//! one that was idle for longest is given up, and what it had is added up.
//!
//! | file | what is in it |
//! |---|---|
//! | `monitor.rs` | where packets become flows |
//! | `table.rs` | flows by their keys, and which of them has to go |
//! | `volume.rs` | packets, bytes, trains, times between packets |
//! | `tcp.rs` | round trips and retransmissions of TCP |
//! | `recognition.rs` | which datagrams are RTP |
//! | `signalling.rs`, `encoding.rs` | what SIP announced, what payload types mean |
//! | `media.rs`, `stream.rs`, `header.rs` | the RTP streams of a flow; one of them; its packets |
//! | `numbers.rs`, `impairment.rs` | losses, late packets and copies by sequence numbers |
//! | `missed/`, `gaps.rs`, `gap.rs`, `rhythm.rs` | which of the packets that are missing the capture lost |
//! | `doubt.rs`, `unnumbered.rs` | bounds of what cannot be known of that; what else may be missing |
//! | `iperf3.rs` | tests of iperf3 |
//! | `playout.rs` | which packets come too late to be heard |
//! | `series.rs` | how a stream fared over time |
//! | `video.rs` | the media delivery index of a stream whose rate nobody told |
//! | `report.rs`, `media_report.rs` | what is told of a flow, and of an RTP stream |

mod config;
mod encoding;
mod gap;
mod gap_losses;
mod gaps;
mod header;
mod impairment;
mod iperf3;
mod media;
mod media_report;
mod missed;
mod monitor;
mod numbers;
mod playout;
mod recognition;
mod report;
mod rhythm;
mod series;
mod signalling;
mod stream;
mod table;
mod tcp;
mod uncertainty;
mod unnumbered;
mod video;
mod volume;

pub use config::FlowConfig;
pub use iperf3::Iperf3Report;
pub use media_report::RtpReport;
pub use monitor::{FlowMonitor, FlowPacket};
pub use report::{EvictedFlows, FlowReport, TcpReport};
pub use video::VideoReport;

#[cfg(test)]
mod tests;
