//! What UDP carries: RTP streams and the sources that may be some, and tests of iperf3.

use super::gap::Gap;
use super::header::{Header, Surroundings};
use super::iperf3;
use super::missed::MissedTimes;
use super::recognition::Recognition;
use super::stream::Stream;

/// The RTP streams of a flow, and the test of iperf3 that the rest of it may be.
#[derive(Clone, Debug, Default)]
pub(super) struct Media {
    pub(super) streams: Vec<Stream>,
    pub(super) test: iperf3::Found,
    recognition: Recognition,
}

/// What a packet that may be RTP was found to be.
pub(super) enum Found {
    /// One of a stream.
    OfStream,
    /// The one by which so many packets, itself included, are known to be a stream, of so many bytes.
    Recognised { packets: u64, bytes: u64 },
    /// Nothing that is known to be RTP.
    Unknown,
}

impl Media {
    /// Takes a packet; `room` if there may be one more stream.
    pub(super) fn record(
        &mut self,
        header: &Header,
        room: bool,
        around: Surroundings<'_>,
        missed: &mut MissedTimes,
    ) -> Found {
        if let Some(stream) = self.streams.iter_mut().find(|it| it.ssrc == header.ssrc) {
            stream.record(header, around, missed);
            return Found::OfStream;
        }
        if !room {
            return Found::Unknown;
        }
        let packets = if around.announced.expects(around.flow) {
            Some(vec![*header])
        } else {
            self.recognition.record(header)
        };
        packets.map_or(Found::Unknown, |packets| self.begin(&packets, around, missed))
    }

    /// The gaps that may be the capture's.
    pub(super) fn gaps(&mut self) -> impl Iterator<Item = &mut Gap> {
        let Self { streams, test, .. } = self;
        let tests = test.test_mut().into_iter();
        streams.iter_mut().flat_map(Stream::gaps).chain(tests.flat_map(iperf3::Test::gaps))
    }

    /// Counts as was decided.
    pub(super) fn settle(&mut self, missed: &mut MissedTimes) {
        self.streams.iter_mut().for_each(|stream| stream.settle(missed));
        self.test.test_mut().into_iter().for_each(|test| test.settle(missed));
    }

    fn begin(
        &mut self,
        packets: &[Header],
        around: Surroundings<'_>,
        missed: &mut MissedTimes,
    ) -> Found {
        let Some(first) = packets.first() else { return Found::Unknown };
        let mut stream = Stream::new(first, around);
        packets.iter().for_each(|header| stream.record(header, around, missed));
        self.streams.push(stream);
        let bytes = packets.iter().map(|header| u64::from(header.length)).sum();
        Found::Recognised { packets: packets.len() as u64, bytes }
    }
}
