//! Codecs that a stream used, with the packets of each.

use super::encoding::Encoding;
use super::header::Header;
use super::unknown_mos::UnknownMos;
use crate::emodel::{Codec, Codecs, Scale};

/// Max combinations of payload type and codec that are kept of a stream.
const MAX_PARTS: usize = 32;

/// Max share of packets without a rated codec, and of those on another scale than most, as one in this many: more leave the
/// stream without a rating.
const UNRATED_ONE_IN: u64 = 100;

/// Media packets by payload type and codec.
#[derive(Clone, Debug, Default)]
pub(super) struct CodecParts {
    /// The newest first.
    parts: Vec<Part>,
    /// Packets of further combinations.
    others: u64,
    /// Packets of AMR-WB without a speech mode: comfort noise, or a layout that is not supported.
    without_mode: u64,
}

#[derive(Clone, Copy, Debug)]
struct Part {
    payload_type: u8,
    is_announced: bool,
    /// The rated codec; none if it has no published values, or if the encoding is unknown.
    codec: Option<Codec>,
    packets: u64,
}

impl CodecParts {
    /// Records a media packet; returns its codec, if it is rated. `stated` are the codecs of their encodings, instead of the usual
    /// ones.
    pub(super) fn record(
        &mut self,
        header: &Header,
        encoding: Option<&Encoding>,
        stated: &[Codec],
    ) -> Option<Codec> {
        let is_of = |codec: &&Codec| encoding.is_some_and(|it| it.is_of(**codec));
        let stated = stated.iter().find(is_of).copied();
        let codec = match encoding {
            Some(_) if stated.is_some() => stated,
            // The mode may change with each packet.
            Some(encoding) if encoding.is_amr_wb() => {
                let codec = header.amr_wb_mode().and_then(Codec::amr_wb);
                self.without_mode += u64::from(codec.is_none());
                Some(codec?)
            }
            encoding => encoding.and_then(Encoding::codec),
        };
        let payload_type = header.payload_type;
        let known = self
            .parts
            .iter()
            .position(|part| part.payload_type == payload_type && part.codec == codec);
        match known {
            Some(place) => self.parts[..=place].rotate_right(1),
            None if self.parts.len() < MAX_PARTS => {
                let is_announced = encoding.is_some();
                self.parts.insert(0, Part { payload_type, is_announced, codec, packets: 0 });
            }
            None => {
                self.others += 1;
                return None;
            }
        }
        self.parts[0].packets += 1;
        self.parts[0].is_announced = encoding.is_some();
        codec
    }

    /// The codecs of the packets, or why they are not rated. Packets before the announcement of their payload type count as
    /// those after it.
    pub(super) fn codecs(&self) -> Result<Codecs, UnknownMos> {
        let is_rated = |payload_type| {
            self.parts.iter().any(|part| part.payload_type == payload_type && part.codec.is_some())
        };
        let unrated =
            self.parts.iter().filter(|part| part.codec.is_none() && !is_rated(part.payload_type));
        let unrated_packets = self.others + unrated.clone().map(|part| part.packets).sum::<u64>();
        let packets = self.others + self.parts.iter().map(|part| part.packets).sum::<u64>();
        if unrated_packets.saturating_mul(UNRATED_ONE_IN) > packets {
            let most = unrated.max_by_key(|part| part.packets);
            return Err(match most {
                Some(part) if !part.is_announced => UnknownMos::UnknownPayloadType,
                _ => UnknownMos::UnratedCodec,
            });
        }
        if packets == 0 {
            return Err(match self.without_mode {
                0 => UnknownMos::NoMedia,
                _ => UnknownMos::UnknownMode,
            });
        }
        let rated = self.parts.iter().filter_map(|part| Some((part.codec?, part.packets)));
        let rated: Vec<_> = rated.collect();
        let (scale, on_scale) = most_used_scale(&rated).ok_or(UnknownMos::UnratedCodec)?;
        let of_others = rated.iter().map(|(_, count)| count).sum::<u64>() - on_scale;
        if of_others.saturating_mul(UNRATED_ONE_IN) > packets {
            return Err(UnknownMos::SeveralScales);
        }
        let on_scale = rated.into_iter().filter(|(codec, _)| codec.scale() == scale);
        Codecs::new(on_scale).ok_or(UnknownMos::SeveralScales)
    }
}

/// The scale with the most packets, and their number; none without packets.
fn most_used_scale(parts: &[(Codec, u64)]) -> Option<(Scale, u64)> {
    let packets = |scale: Scale| {
        parts
            .iter()
            .filter(|(codec, _)| codec.scale() == scale)
            .map(|(_, count)| count)
            .sum::<u64>()
    };
    let scales = parts.iter().map(|(codec, _)| (codec.scale(), packets(codec.scale())));
    scales.max_by_key(|(_, count)| *count)
}
