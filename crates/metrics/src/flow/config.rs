//! Configuration of a flow monitor.

use wirestamp_clock::Span;

/// How flows are watched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FlowConfig {
    /// Flows that have a state of their own, and RTP streams that do; at least 1. A flow takes a few
    /// kilobytes, a stream some more.
    pub flows: usize,
    /// A packet train ends with a gap longer than this.
    pub train_gap: Span,
    /// The network's one-way delay that voice is rated with. One point cannot measure it.
    pub delay: Span,
    /// The de-jitter buffer of the receiver that voice is rated for: it adds to the delay, and what
    /// comes later than it can wait is as good as lost.
    pub buffer: Span,
}

impl Default for FlowConfig {
    fn default() -> Self {
        Self {
            flows: 16_384,
            train_gap: Span::from_millis(100),
            delay: Span::ZERO,
            buffer: Span::from_millis(60),
        }
    }
}
