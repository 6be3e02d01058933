//! The RTP streams of the flows, and the codec that a flow is rated with.

use std::collections::{BTreeSet, HashMap};

use serde::Serialize;
use wirestamp_metrics::emodel::Codec;
use wirestamp_metrics::flow::RtpReport;
use wirestamp_packet::FlowKey;
use wirestamp_packet::rtp::StaticPayloadType;
use wirestamp_session::PointState;

use super::findings::Findings;

/// The RTP streams of each flow, as either point recognised them.
#[derive(Default)]
pub(super) struct Media(HashMap<FlowKey, Vec<Stream>>);

/// An RTP stream.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(super) struct Stream {
    ssrc: u32,
    payload_type: u8,
    /// In the words of RFC 3551 or of a session description.
    encoding: Option<String>,
    #[serde(skip)]
    codec: Option<Codec>,
}

/// The codec of a flow, and how it is known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Voice {
    pub(super) codec: Codec,
    /// In words that go on after its name.
    pub(super) reason: String,
}

impl Media {
    /// What the points recognised. One of them may know more: a session description can pass by the
    /// other.
    pub(super) fn seen(sights: &mut [PointState; 2]) -> Self {
        let mut media = Self::default();
        for report in sights.iter_mut().flat_map(PointState::flows) {
            if let Some(rtp) = &report.rtp {
                media.add(report.flow(), Stream::of(rtp));
            }
        }
        media
    }

    fn add(&mut self, flow: FlowKey, stream: Stream) {
        let streams = self.0.entry(flow).or_default();
        match streams.iter_mut().find(|known| known.ssrc == stream.ssrc) {
            Some(known) if known.encoding.is_none() => *known = stream,
            Some(_) => {}
            None => streams.push(stream),
        }
    }

    /// The RTP streams of a flow.
    pub(super) fn streams(&self, flow: &FlowKey) -> &[Stream] {
        self.0.get(flow).map_or(&[], Vec::as_slice)
    }

    /// The codec of a flow, if it has one of which ITU-T G.113 has values. Delay and loss are known of
    /// the flow as a whole: streams with different codecs have none.
    pub(super) fn voice(&self, flow: &FlowKey) -> Option<Voice> {
        let mut voices = self.streams(flow).iter().filter_map(Stream::voice);
        let voice = voices.next()?;
        voices.all(|other| other.codec == voice.codec).then_some(voice)
    }

    /// The encodings of streams that no codec is known for, each once.
    pub(super) fn unrated(&self) -> BTreeSet<String> {
        let streams = self.0.values().flatten().filter(|stream| stream.codec.is_none());
        streams.map(Stream::encoding).collect()
    }
}

impl Stream {
    fn of(rtp: &RtpReport) -> Self {
        let RtpReport { ssrc, payload_type, codec: ref encoding, .. } = *rtp;
        Self { ssrc, payload_type, encoding: encoding.clone(), codec: rtp.voice() }
    }

    fn encoding(&self) -> String {
        let unknown = || format!("payload type {}, which nothing announced", self.payload_type);
        self.encoding.clone().unwrap_or_else(unknown)
    }

    fn voice(&self) -> Option<Voice> {
        let (codec, number, encoding) = (self.codec?, self.payload_type, self.encoding());
        let fixed = StaticPayloadType::of(number).is_some_and(|it| it.name == encoding);
        let reason = if fixed {
            format!("assumed from payload type {number} ({encoding})")
        } else {
            format!("as SDP announced payload type {number} ({encoding})")
        };
        Some(Voice { codec, reason })
    }
}

impl Voice {
    /// The codec that was asked for.
    pub(super) fn asked(codec: Codec) -> Self {
        Self { codec, reason: "as asked for".into() }
    }
}

/// `g711-plc, assumed from payload type 0 (PCMU)`.
impl std::fmt::Display for Voice {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}, {}", self.codec, self.reason)
    }
}

impl Findings {
    /// How the codecs are known that flows are rated with, and which RTP is not rated, a line each.
    pub(super) fn voices(&self) -> Vec<String> {
        if self.codec.is_some() {
            return Vec::new();
        }
        let flows = self.flows.flows();
        let voices: BTreeSet<_> =
            flows.iter().filter_map(|(flow, _)| Some(self.voice(flow)?.to_string())).collect();
        let mut lines: Vec<_> = voices.iter().map(|voice| format!("Codec: {voice}.")).collect();
        let unrated: Vec<_> = self.media.unrated().into_iter().collect();
        if !unrated.is_empty() {
            lines.push(format!(
                "RTP without R and MOS, of which ITU-T G.113 has no values: {}.",
                unrated.join(", ")
            ));
        }
        lines
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stream(ssrc: u32, payload_type: u8, encoding: &str, codec: Option<Codec>) -> Stream {
        let encoding = (!encoding.is_empty()).then(|| encoding.to_owned());
        Stream { ssrc, payload_type, encoding, codec }
    }

    fn flow() -> FlowKey {
        let address = ([10, 0, 0, 1], 4000).into();
        FlowKey { source: address, destination: address, protocol: 17 }
    }

    fn said(streams: &[Stream]) -> Option<String> {
        let mut media = Media::default();
        streams.iter().for_each(|stream| media.add(flow(), stream.clone()));
        media.voice(&flow()).map(|voice| voice.to_string())
    }

    #[test]
    fn a_codec_is_said_with_how_it_is_known() {
        let known = Some(Codec::G711Concealing);
        let said_of = |number, encoding| said(&[stream(1, number, encoding, known)]);
        let assumed = "g711-plc, assumed from payload type 0 (PCMU)";
        assert_eq!(said_of(0, "PCMU").as_deref(), Some(assumed));
        let announced = "g711-plc, as SDP announced payload type 97 (PCMA)";
        assert_eq!(said_of(97, "PCMA").as_deref(), Some(announced));
        assert_eq!(said(&[]), None);
    }

    #[test]
    fn the_point_that_knows_more_of_a_stream_counts() {
        let (less, more) =
            (stream(1, 97, "", None), stream(1, 97, "GSM", Some(Codec::GsmFullRate)));
        for order in [[less.clone(), more.clone()], [more, less]] {
            assert!(said(&order).unwrap().starts_with("gsm-fr"));
        }
    }

    #[test]
    fn streams_beside_the_voice_do_not_matter_and_two_codecs_are_none() {
        let voice = stream(1, 0, "PCMU", Some(Codec::G711Concealing));
        let video = stream(2, 96, "", None);
        let other = stream(3, 18, "G729", Some(Codec::G729A));
        assert!(said(&[video.clone(), voice.clone()]).is_some());
        assert_eq!(said(&[voice, other]), None);
        let mut media = Media::default();
        media.add(flow(), video);
        let unrated: Vec<_> = media.unrated().into_iter().collect();
        assert_eq!(unrated, ["payload type 96, which nothing announced"]);
    }
}
