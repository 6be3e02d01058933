//! Quality of each flow at one point, as `wirestamp flows` shows it.
//!
//! A [`FlowMonitor`] takes packets in the order of capture and reports each flow and each RTP stream as a
//! [`FlowReport`]. Memory is bounded: a new flow replaces the flow that was idle for longest, whose counts are added
//! to [`EvictedFlows`].
//!
//! | file | contents |
//! |---|---|
//! | `monitor.rs`, `config.rs` | entry point: assigns packets to flows; its configuration |
//! | `table.rs` | flows by key; which flow is evicted |
//! | `volume.rs` | packets, bytes, trains, times between packets |
//! | `encapsulations.rs` | VLANs, labels and tunnels that carried the packets |
//! | `tcp.rs` | round-trip times and retransmissions of TCP |
//! | `recognition.rs` | detection of RTP |
//! | `signalling.rs`, `sip_stream.rs`, `encoding.rs` | sessions announced by SIP; SIP over TCP; meaning of payload types |
//! | `call/` | calls of SIP with their streams |
//! | `codec_parts.rs`, `digits.rs` | codecs of a stream; dialled digits |
//! | `media.rs`, `stream.rs`, `header.rs`, `payload.rs` | RTP streams of a flow; one stream; fields of its packets; their payload type |
//! | `numbers.rs`, `impairment.rs` | lost, late and duplicate packets by sequence numbers |
//! | `missed/`, `gaps.rs`, `gap.rs`, `gap_losses.rs`, `pacing.rs` | assigns missing packets to the capture or the network |
//! | `uncertainty.rs` | bounds of that assignment; packets without sequence numbers |
//! | `udp_test.rs` | tests of iperf3 and of `wirestamp send` |
//! | `ended_streams.rs` | MOS of the RTP streams that ended |
//! | `rtcp/` | reports of the far ends by RTCP |
//! | `series.rs` | impairment over time |
//! | `video.rs`, `delay_factor.rs` | media delivery index of a stream of unknown rate |
//! | `transport_stream/` | errors and media delivery index of MPEG transport streams |
//! | `video_frames/` | frames, freezes and rates of a video |
//! | `report.rs`, `media_report.rs`, `unknown_mos.rs` | reports of a flow and of an RTP stream |

mod call;
mod codec_parts;
mod config;
mod delay_factor;
mod digits;
mod encapsulations;
mod encoding;
mod ended_streams;
mod gap;
mod gap_losses;
mod gaps;
mod header;
pub(crate) mod impairment;
mod loss_times;
mod media;
mod media_report;
mod missed;
mod monitor;
mod numbers;
mod pacing;
mod payload;
mod recognition;
mod report;
mod rtcp;
mod rtp_map;
mod series;
mod signalling;
mod sip_stream;
mod stream;
mod table;
mod tcp;
mod transport_stream;
mod udp_test;
mod uncertainty;
mod unknown_mos;
mod video;
mod video_frames;
mod volume;

pub use call::{CallMessage, CallReport, CallSide, CallState, CallStream};
pub use config::FlowConfig;
pub use encapsulations::{EncapsulationReport, EncapsulationsReport, LayerReport};
pub use ended_streams::{EndedStreams, MOS_BOUNDS};
pub use media_report::RtpReport;
pub use monitor::{FlowMonitor, FlowPacket};
pub use report::{EvictedFlows, FlowReport, TcpReport, UdpTest};
pub use rtcp::{LossComparison, RoundTripReport, RtcpReport, UnknownRtcpValue, VoipReport};
pub use rtp_map::{RtpMap, RtpMapEntry};
pub use transport_stream::{
    TransportDeliveryReport, TransportStreamReport, UnknownTransportStreamValue,
};
pub use udp_test::{Iperf3Report, WirestampReport};
pub use unknown_mos::UnknownMos;
pub use video::VideoReport;
pub use video_frames::{UnknownVideoValue, VideoFramesReport};

#[cfg(test)]
mod tests;
