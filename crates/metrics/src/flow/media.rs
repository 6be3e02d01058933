//! Content of a UDP flow: RTP streams, candidates for them, UDP tests, and MPEG transport streams.

use wirestamp_clock::{Span, Time, Utc};
use wirestamp_packet::transport_stream::is_transport_stream;

use super::gap::Gap;
use super::header::{Header, StreamContext};
use super::loss_times::LossTimes;
use super::missed::CaptureLosses;
use super::recognition::Recognition;
use super::stream::Stream;
use super::transport_stream::{TransportStream, TransportStreamReport};
use super::udp_test::TestState;

/// RTP streams of a flow, and the UDP test that the rest may be.
#[derive(Clone, Debug, Default)]
pub(super) struct Media {
    /// Those of earlier calls come first.
    pub(super) streams: Vec<Stream>,
    /// Number of those streams: no packet belongs to them any more.
    ended: usize,
    /// [`Announcements::earlier_calls`](super::signalling::Announcements) of the present call, and the generation of the
    /// announcements used for it.
    earlier_calls: u32,
    generation: u32,
    pub(super) test: TestState,
    recognition: Recognition,
    transport_stream: Option<Box<TransportStream>>,
}

/// Classification of a packet that may be RTP.
pub(super) enum PacketKind {
    /// Packet of a known stream.
    OfStream,
    /// First packet after recognition of a stream; counts include it.
    Recognised { packets: u64, bytes: u64 },
    /// Not RTP as far as is known.
    Unknown,
}

impl Media {
    /// Records a packet; `room` if one more stream is allowed.
    pub(super) fn record(
        &mut self,
        header: &Header,
        room: bool,
        context: StreamContext<'_>,
        missed: &mut CaptureLosses,
    ) -> PacketKind {
        self.follow_calls(context);
        let mut streams = self.streams.iter_mut().skip(self.ended);
        if let Some(stream) = streams.find(|it| it.ssrc == header.ssrc) {
            stream.record(header, context, missed);
            return PacketKind::OfStream;
        }
        if !room {
            return PacketKind::Unknown;
        }
        let packets = if context.announced.expects(context.flow) {
            Some(vec![*header])
        } else {
            self.recognition.record(header)
        };
        packets.map_or(PacketKind::Unknown, |packets| self.begin(&packets, context, missed))
    }

    /// Ends the streams of the call before, if another one began since.
    fn follow_calls(&mut self, context: StreamContext<'_>) {
        if self.generation == context.announced.generation {
            return;
        }
        self.generation = context.announced.generation;
        let earlier_calls = context.announced.earlier_calls(context.flow);
        if let Some(now) = earlier_calls.filter(|now| *now > self.earlier_calls) {
            (self.earlier_calls, self.ended) = (now, self.streams.len());
        }
    }

    /// Records the payload of a datagram, or that of its RTP: the captured bytes, and the length on the wire. `period` is
    /// [`FlowConfig::pid_period`](super::FlowConfig).
    pub(super) fn record_payload(
        &mut self,
        payload: &[u8],
        length: usize,
        time: Time<Utc>,
        period: Span,
        losses: &LossTimes,
    ) {
        if self.transport_stream.is_some() || is_transport_stream(payload) {
            let new = || Box::new(TransportStream::new(period));
            self.transport_stream.get_or_insert_with(new).record(payload, length, time, losses);
        }
    }

    /// Errors of the MPEG transport stream; none for other flows.
    pub(super) fn transport_stream(&self, losses: &LossTimes) -> Option<TransportStreamReport> {
        self.transport_stream.as_ref()?.report(losses)
    }

    /// Gaps that the capture may have caused.
    pub(super) fn gaps(&mut self) -> impl Iterator<Item = &mut Gap> {
        let Self { streams, test, .. } = self;
        let tests = test.test_mut().into_iter();
        let streams = streams.iter_mut().flat_map(|stream| stream.gaps.iter_mut());
        streams.chain(tests.flat_map(|test| test.gaps.iter_mut()))
    }

    /// Applies the latest assignment of losses.
    pub(super) fn apply_decisions(&mut self, missed: &mut CaptureLosses) {
        self.streams.iter_mut().for_each(|stream| stream.apply_decisions(missed));
        self.test.test_mut().into_iter().for_each(|test| test.apply_decisions(missed));
    }

    fn begin(
        &mut self,
        packets: &[Header],
        context: StreamContext<'_>,
        missed: &mut CaptureLosses,
    ) -> PacketKind {
        let Some(first) = packets.first() else { return PacketKind::Unknown };
        let mut stream = Stream::new(first, context);
        packets.iter().for_each(|header| stream.record(header, context, missed));
        self.streams.push(stream);
        let bytes = packets.iter().map(|header| u64::from(header.length)).sum();
        PacketKind::Recognised { packets: packets.len() as u64, bytes }
    }
}
