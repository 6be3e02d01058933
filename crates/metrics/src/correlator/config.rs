//! Configuration of a correlator.

use wirestamp_clock::Span;

/// Configuration of a [`Correlator`](crate::Correlator).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Config {
    /// Time after its departure at which an unmatched packet counts as lost (RFC 7680 section 2.5).
    ///
    /// Too short a timeout counts slow packets as lost, and then as unexpected. A long one needs memory: about 0.1 kB
    /// for each packet sent in this time. The default is 1 s, more than twice the 400 ms of one-way delay that ITU-T
    /// G.114 sets as the limit for networks. Satellite links and overfilled buffers need more.
    pub timeout: Span,
    /// Max memory in bytes. Where it is not sufficient, the oldest packets become undetermined.
    ///
    /// A packet that left A takes 80 bytes until its outcome is final, and a packet at B that waits for A takes 136. An
    /// identity shared by several packets takes 32, a flow 144, and a packet that a capture may have missed 320. Flows
    /// take at most two thirds of the memory, and the flows idle for longest are removed first. Packets at B take at
    /// most a quarter, packets missed an eighth, and packets that left A the rest. Hash tables grow in steps and have
    /// at most a quarter more slots than these figures include. So up to 9 % more may be taken, and up to half a
    /// megabyte more, because memory is allocated in pages.
    ///
    /// The default is 128 MiB: one second of 1.3 million packets a second in some thousand flows.
    pub memory: usize,
    /// Max amount by which B's clock may be behind A's, beyond the delay of the packet. A packet that seems to arrive
    /// earlier than this before its departure is not matched.
    ///
    /// The default is 100 ms, typical of badly synchronised hosts. A larger value only delays the decision on packets
    /// observed at B alone.
    pub skew: Span,
}

impl Default for Config {
    fn default() -> Self {
        Self { timeout: Span::from_secs(1), memory: 128 << 20, skew: Span::from_millis(100) }
    }
}
