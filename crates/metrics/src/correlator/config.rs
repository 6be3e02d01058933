//! What a correlator needs to know.

use wirestamp_clock::Span;

/// What a [`Correlator`](crate::Correlator) needs to know.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Config {
    /// How long after its departure a packet is waited for. RFC 7680 section 2.5 leaves the
    /// choice to the measurement: too short counts slow packets as lost (and then as unexpected),
    /// too long only costs memory, about 0.1 kB for each packet sent in this time.
    ///
    /// The default is 1 s, more than twice the 400 ms of one-way delay that ITU-T G.114 tells
    /// networks not to exceed. Measure a satellite or an overfilled buffer with more.
    pub timeout: Span,
    /// How many bytes may be taken. Where they do not do, the oldest packets are given up.
    ///
    /// A packet that has left A takes 80 bytes until it is decided on for good, one at B that has
    /// to wait for A 136, an identity that several have 32, a flow 144, and one that a capture may
    /// have missed 320. Flows take at most two thirds of the memory, and those unused for the longest
    /// time are forgotten first; packets at B take at most a quarter, and packets missed an eighth.
    /// Packets that have left A take all that is left. Hash tables are made larger in steps and have at most a quarter more
    /// slots than these figures allow for, so that up to 9 % more may be taken; and up to half a
    /// megabyte more, because memory is taken in pages.
    ///
    /// The default is 128 MiB: a second of 1.3 million packets a second in some thousand flows.
    pub memory: usize,
    /// How far B's clock may be behind A's, beyond what the packet takes. A packet that seems to
    /// arrive longer than this before it was sent is not matched.
    ///
    /// The default is 100 ms, the order of what badly synchronised hosts show. It costs only that
    /// what was seen at B alone is known this much later.
    pub skew: Span,
}

impl Default for Config {
    fn default() -> Self {
        Self { timeout: Span::from_secs(1), memory: 128 << 20, skew: Span::from_millis(100) }
    }
}
