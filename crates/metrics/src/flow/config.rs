//! Configuration of a flow monitor.

use wirestamp_clock::Span;

use super::rtp_map::RtpMap;
use crate::JitterBuffer;
use crate::emodel::Codec;

/// Configuration of a [`FlowMonitor`](super::FlowMonitor).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FlowConfig {
    /// Max flows, and max RTP streams; at least 1. A flow takes a few kilobytes, one with SIP over TCP up to
    /// 128 kilobytes for incomplete messages; a stream takes somewhat more than a flow, of video up to 30 kilobytes.
    pub flows: usize,
    /// Gap that ends a packet train.
    pub train_gap: Span,
    /// One-way network delay for the rating of voice. A single point cannot measure it.
    pub delay: Span,
    /// De-jitter buffer of the receiver, for the rating of voice. It adds to the delay; later packets count as lost.
    pub buffer: JitterBuffer,
    /// Codecs of payload types that are not announced.
    pub rtp_map: RtpMap,
    /// Codecs by which streams with their encoding are rated; the first one counts.
    pub codecs: Vec<Codec>,
    /// Max SIP calls; 0 for none.
    pub calls: usize,
    /// Whether digits dialled during a call are kept. They may be secret.
    pub digits: bool,
    /// Time without a packet of a PID, or without a conditional access table, that is an error of a transport stream (ETSI TR
    /// 101 290 indicators 1.6 and 2.6).
    pub pid_period: Span,
}

impl Default for FlowConfig {
    fn default() -> Self {
        Self {
            flows: 16_384,
            train_gap: Span::from_millis(100),
            delay: Span::ZERO,
            buffer: JitterBuffer::default(),
            rtp_map: RtpMap::default(),
            codecs: Vec::new(),
            calls: 0,
            digits: false,
            pid_period: Span::from_secs(5),
        }
    }
}
