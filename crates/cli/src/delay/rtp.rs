//! RTP streams of the flows, and the codecs used to rate a flow.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use schemars::JsonSchema;
use serde::Serialize;
use wirestamp_metrics::emodel::{Codec, Codecs};
use wirestamp_metrics::flow::{RtpReport, UnknownMos};
use wirestamp_packet::FlowKey;
use wirestamp_packet::rtp::StaticPayloadType;
use wirestamp_session::PointState;

/// The RTP streams of each flow, recognised at either point.
#[derive(Default)]
pub(super) struct RtpStreams(HashMap<FlowKey, Vec<Stream>>);

/// An RTP stream.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(rename = "RtpStream")]
pub(crate) struct Stream {
    /// Synchronisation source (SSRC).
    ssrc: u32,
    /// Payload type.
    payload_type: u8,
    /// Encoding name of RFC 3551 or of a session description (SDP). Null if it is unknown.
    encoding: Option<String>,
    #[serde(skip)]
    codecs: Option<Codecs>,
    /// Why the codecs are not rated; none for video.
    #[serde(skip)]
    unrated: Option<UnknownMos>,
}

/// The codecs of a flow, and their source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct RatedCodec {
    pub(super) codecs: Codecs,
    /// The source of the codecs, as text after their names.
    pub(super) reason: String,
}

impl RtpStreams {
    /// The streams of both points. A session description may have passed only one of them.
    pub(super) fn of_points(points: &mut [PointState; 2]) -> Self {
        let mut media = Self::default();
        for report in points.iter_mut().flat_map(PointState::flows) {
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

    /// The codecs of a flow, if they have published values. None if its streams have different codecs,
    /// because delay and loss are those of the whole flow.
    pub(super) fn voice(&self, flow: &FlowKey) -> Option<RatedCodec> {
        let rated = self.streams(flow).iter().filter(|stream| stream.codecs.is_some());
        let first = rated.clone().next()?;
        if rated.clone().any(|stream| stream.encoding != first.encoding) {
            return None;
        }
        let packets = rated.filter_map(|stream| stream.codecs.as_ref()).flat_map(Codecs::iter);
        let codecs = Codecs::new(packets)?;
        let reason = first.reason(&codecs);
        Some(RatedCodec { codecs, reason })
    }

    /// The distinct encodings of streams without a rated codec, by the reason.
    pub(super) fn unrated(&self) -> BTreeMap<String, BTreeSet<String>> {
        let mut unrated = BTreeMap::<_, BTreeSet<_>>::new();
        for stream in self.0.values().flatten().filter(|stream| stream.codecs.is_none()) {
            let reason = stream.unrated.map(|it| it.to_string());
            let reason = reason.unwrap_or_else(|| "only voice is rated".to_owned());
            unrated.entry(reason).or_default().insert(stream.encoding());
        }
        unrated
    }
}

impl Stream {
    fn of(rtp: &RtpReport) -> Self {
        Self {
            ssrc: rtp.ssrc,
            payload_type: rtp.payload_type,
            encoding: rtp.codec.clone(),
            codecs: rtp.rated_codecs.clone(),
            unrated: rtp.mos_unknown,
        }
    }

    fn encoding(&self) -> String {
        let unknown = || format!("payload type {} (not announced)", self.payload_type);
        self.encoding.clone().unwrap_or_else(unknown)
    }

    /// How the codecs are known.
    fn reason(&self, codecs: &Codecs) -> String {
        let (number, encoding) = (self.payload_type, self.encoding());
        let fixed = StaticPayloadType::of(number).is_some_and(|it| it.name == encoding);
        let has_changed = codecs.iter().count() > 1 && !encoding.eq_ignore_ascii_case("AMR-WB");
        if has_changed {
            "from the payload types of the stream".to_owned()
        } else if fixed {
            format!("assumed from payload type {number} ({encoding})")
        } else {
            format!("from SDP or --rtp-map, payload type {number} ({encoding})")
        }
    }
}

impl RatedCodec {
    /// The codec of `--codec`.
    pub(super) fn requested(codec: Codec) -> Self {
        Self { codecs: codec.into(), reason: "as requested".into() }
    }

    /// Each codec with its source: `g711-plc, assumed from payload type 0 (PCMU)`.
    pub(super) fn sources(&self) -> impl Iterator<Item = String> {
        self.codecs.iter().map(|(codec, _)| format!("{codec}, {}", self.reason))
    }
}

/// `g711-plc, assumed from payload type 0 (PCMU)`.
impl std::fmt::Display for RatedCodec {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}, {}", self.codecs, self.reason)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stream(ssrc: u32, payload_type: u8, encoding: &str, codec: Option<Codec>) -> Stream {
        let encoding = (!encoding.is_empty()).then(|| encoding.to_owned());
        let codecs = codec.map(Codecs::from);
        Stream { ssrc, payload_type, encoding, codecs, unrated: None }
    }

    fn flow() -> FlowKey {
        let address = ([10, 0, 0, 1], 4000).into();
        FlowKey { source: address, destination: address, protocol: 17 }
    }

    fn shown(streams: &[Stream]) -> Option<String> {
        let mut media = RtpStreams::default();
        streams.iter().for_each(|stream| media.add(flow(), stream.clone()));
        media.voice(&flow()).map(|voice| voice.to_string())
    }

    #[test]
    fn codec_is_shown_with_its_source() {
        let known = Some(Codec::G711Concealing);
        let shown_of = |number, encoding| shown(&[stream(1, number, encoding, known)]);
        let assumed = "g711-plc, assumed from payload type 0 (PCMU)";
        assert_eq!(shown_of(0, "PCMU").as_deref(), Some(assumed));
        let announced = "g711-plc, from SDP or --rtp-map, payload type 97 (PCMA)";
        assert_eq!(shown_of(97, "PCMA").as_deref(), Some(announced));
        assert_eq!(shown(&[]), None);
    }

    #[test]
    fn announced_encoding_of_either_point_is_used() {
        let (less, more) =
            (stream(1, 97, "", None), stream(1, 97, "GSM", Some(Codec::GsmFullRate)));
        for order in [[less.clone(), more.clone()], [more, less]] {
            assert!(shown(&order).unwrap().starts_with("gsm-fr"));
        }
    }

    #[test]
    fn two_voice_codecs_in_one_flow_are_not_rated() {
        let voice = stream(1, 0, "PCMU", Some(Codec::G711Concealing));
        let video = stream(2, 96, "H264", None);
        let other = stream(3, 18, "G729", Some(Codec::G729A));
        assert!(shown(&[video.clone(), voice.clone()]).is_some());
        assert_eq!(shown(&[voice, other]), None);
    }

    #[test]
    fn unrated_encodings_have_their_reason() {
        let mut media = RtpStreams::default();
        for (ssrc, encoding, unrated) in [
            (1, "", Some(UnknownMos::UnknownPayloadType)),
            (2, "EVS", Some(UnknownMos::UnratedCodec)),
            (3, "opus", Some(UnknownMos::UnratedCodec)),
            (4, "H264", None),
        ] {
            media.add(flow(), Stream { unrated, ..stream(ssrc, 96, encoding, None) });
        }
        let found = media.unrated();
        let of = |reason: &str| {
            let (_, encodings) = found.iter().find(|(it, _)| it.contains(reason)).unwrap();
            encodings.iter().map(String::as_str).collect::<Vec<_>>()
        };
        assert_eq!(found.len(), 3);
        assert_eq!(of("--rtp-map states it"), ["payload type 96 (not announced)"]);
        // EVS has values in ITU-T G.113, Opus has others.
        assert_eq!(of("state it with --codec"), ["EVS", "opus"]);
        assert_eq!(of("only voice is rated"), ["H264"]);
    }
}
