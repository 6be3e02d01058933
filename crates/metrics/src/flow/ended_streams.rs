//! MOS of the RTP streams that ended, as a histogram that never falls.

use wirestamp_clock::{Span, Time, Utc};

use super::config::FlowConfig;
use super::media_report;
use super::stream::Stream;

/// Upper bounds of the buckets: the limits of user satisfaction in ITU-T G.107 Table B.1.
pub const MOS_BOUNDS: [f64; 5] = [2.58, 3.10, 3.60, 4.03, 4.34];

/// Time without packets after which a stream has ended: RFC 3550 section 6.3.5 has five intervals of RTCP, of which the
/// smallest is 5 s (section 6.2).
const END_AFTER: Span = Span::from_secs(25);

/// MOS of the RTP streams that ended, each counted once, with the MOS that it had then. A stream without a MOS is not counted.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct EndedStreams {
    /// Streams with a MOS up to each of [`MOS_BOUNDS`].
    pub up_to: [u64; MOS_BOUNDS.len()],
    /// All streams.
    pub count: u64,
    /// Sum of their MOS.
    pub sum: f64,
}

impl EndedStreams {
    /// Counts the streams that have ended by `now`, the time of the newest packet. A stream that continues later is not
    /// counted again.
    pub(super) fn count_ended(
        &mut self,
        streams: &mut [Stream],
        now: Time<Utc>,
        config: &FlowConfig,
    ) {
        let has_ended = |it: &Stream| it.volume.last.is_some_and(|last| now - last >= END_AFTER);
        for stream in streams.iter_mut().filter(|it| !it.is_counted && has_ended(it)) {
            stream.is_counted = true;
            self.count(stream, config);
        }
    }

    /// Counts the streams of an evicted flow.
    pub(super) fn count_evicted(&mut self, streams: &[Stream], config: &FlowConfig) {
        let not_counted = streams.iter().filter(|it| !it.is_counted);
        not_counted.for_each(|stream| self.count(stream, config));
    }

    fn count(&mut self, stream: &Stream, config: &FlowConfig) {
        let Some(mos) = media_report::mos(stream, config) else { return };
        for (bound, count) in MOS_BOUNDS.iter().zip(&mut self.up_to) {
            *count += u64::from(mos <= *bound);
        }
        self.count += 1;
        self.sum += mos;
    }
}
