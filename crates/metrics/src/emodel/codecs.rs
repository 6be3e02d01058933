//! Calls with more than one codec.

use std::fmt;

use serde::{Deserialize, Serialize};
use wirestamp_clock::Span;

use super::codec::{Codec, UnknownCodec};
use super::parameters::Parameters;
use super::rating::Rating;
use super::scale::Scale;
use crate::numeric::count_to_f64;

/// The codecs of a call with the packets of each, most packets first. A sender may change the codec, or its mode. At
/// least one, all rated on one scale. Serialised as a list of `{"codec": "g729a", "packets": 500}`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(try_from = "Vec<Part>", into = "Vec<Part>")]
pub struct Codecs(Vec<(Codec, u64)>);

impl Codecs {
    /// `None` without packets, and for codecs of different scales.
    pub fn new(packets: impl IntoIterator<Item = (Codec, u64)>) -> Option<Self> {
        let mut codecs: Vec<(Codec, u64)> = Vec::new();
        for (codec, count) in packets {
            match codecs.iter_mut().find(|(known, _)| *known == codec) {
                Some((_, sum)) => *sum = sum.saturating_add(count),
                None => codecs.push((codec, count)),
            }
        }
        codecs.retain(|(_, count)| *count > 0);
        codecs.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
        let scale = codecs.first()?.0.scale();
        codecs.iter().all(|(codec, _)| codec.scale() == scale).then_some(Self(codecs))
    }

    /// The codecs and their packets, most packets first.
    pub fn iter(&self) -> impl Iterator<Item = (Codec, u64)> {
        self.0.iter().copied()
    }

    /// The scale of all.
    #[must_use]
    pub fn scale(&self) -> Scale {
        self.0.first().map_or_else(Scale::default, |(codec, _)| codec.scale())
    }

    /// Rating of a call with this mouth-to-ear delay, loss and burst ratio ([`Parameters::of_call`]): the mean of the
    /// ratings with each codec, weighted by its packets. `None` where packets were lost and G.113 has no loss robustness
    /// for one of the codecs.
    #[must_use]
    pub fn rating(&self, delay: Span, loss_ratio: f64, burst_ratio: f64) -> Option<Rating> {
        let mut ratings = Vec::new();
        for (codec, count) in self.iter() {
            let rating = Parameters::of_call(codec, delay, loss_ratio, burst_ratio)?.rating();
            ratings.push((rating, count_to_f64(count)));
        }
        let [(first, _), others @ ..] = &ratings[..] else { return None };
        if others.is_empty() {
            return Some(*first);
        }
        let packets: f64 = ratings.iter().map(|(_, packets)| packets).sum();
        let sum: f64 = ratings.iter().map(|(rating, packets)| rating.equipment * packets).sum();
        // All other parts of a rating are equal, because they do not depend on the codec.
        Some(Rating { equipment: sum / packets, ..*first })
    }
}

/// The form of a codec in documents.
#[derive(Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "schema", schemars(rename = "CodecPackets"))]
struct Part {
    /// Name of the codec, as of `delay --codec`.
    codec: String,
    /// Packets of the codec.
    packets: u64,
}

impl From<Codecs> for Vec<Part> {
    fn from(codecs: Codecs) -> Self {
        let part = |(codec, packets): (Codec, u64)| Part { codec: codec.to_string(), packets };
        codecs.iter().map(part).collect()
    }
}

impl TryFrom<Vec<Part>> for Codecs {
    type Error = String;

    fn try_from(parts: Vec<Part>) -> Result<Self, String> {
        let codecs = parts.into_iter().map(|part| Ok((part.codec.parse()?, part.packets)));
        let codecs: Vec<_> =
            codecs.collect::<Result<_, UnknownCodec>>().map_err(|error| error.to_string())?;
        Self::new(codecs).ok_or_else(|| "no codec, or codecs of several scales".to_owned())
    }
}

impl From<Codec> for Codecs {
    fn from(codec: Codec) -> Self {
        Self(vec![(codec, 1)])
    }
}

/// `g711-plc`, or `amr-wb-12.65 (75 %), amr-wb-8.85 (25 %)`.
impl fmt::Display for Codecs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let [(codec, _)] = &self.0[..] {
            return codec.fmt(f);
        }
        let packets = self.iter().fold(0, |sum: u64, (_, count)| sum.saturating_add(count));
        for (place, (codec, count)) in self.iter().enumerate() {
            let share = 100.0 * count_to_f64(count) / count_to_f64(packets);
            let separator = if place == 0 { "" } else { ", " };
            write!(f, "{separator}{codec} ({share:.0} %)")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn codecs<const N: usize>(packets: [(Codec, u64); N]) -> Option<Codecs> {
        Codecs::new(packets)
    }

    #[test]
    fn codecs_are_counted_together() {
        let of = |packets| codecs(packets).map(|codecs| codecs.to_string());
        let [low, high] = [0, 2].map(|mode| Codec::amr_wb(mode).expect("a mode"));
        assert_eq!(
            of([(low, 1), (high, 3), (low, 0)]).unwrap(),
            "amr-wb-12.65 (75 %), amr-wb-6.6 (25 %)"
        );
        assert_eq!(of([(low, 1), (low, 3), (high, 0)]).unwrap(), "amr-wb-6.6");
        assert_eq!(of([(low, 1), (high, 1), (Codec::G711, 1)]), None, "different scales");
        assert_eq!(codecs([(low, 0)]), None);
        assert_eq!(Codecs::from(Codec::G711).to_string(), "g711");
    }

    #[test]
    fn codecs_round_trip_through_json() {
        let some = codecs([(Codec::G729A, 2), (Codec::G711, 3)]).unwrap();
        let text = serde_json::to_string(&some).unwrap();
        assert_eq!(text, r#"[{"codec":"g711","packets":3},{"codec":"g729a","packets":2}]"#);
        assert_eq!(serde_json::from_str::<Codecs>(&text).unwrap(), some);
        for wrong in ["[]", r#"[{"codec":"x","packets":1}]"#, r#"[{"codec":"g711","packets":0}]"#] {
            assert!(serde_json::from_str::<Codecs>(wrong).is_err(), "{wrong}");
        }
    }

    /// Ie,wb is 41 and 13.
    #[test]
    fn rating_is_the_mean_of_the_parts() {
        let [low, high] = [0, 2].map(|mode| Codec::amr_wb(mode).expect("a mode"));
        let rating = codecs([(low, 1), (high, 3)]).unwrap().rating(Span::ZERO, 0.0, 1.0).unwrap();
        assert_eq!((rating.equipment, rating.r_factor()), (20.0, 109.0));
        let mixed = codecs([(Codec::G729A, 10), (Codec::G729, 10)]).unwrap();
        assert!(mixed.rating(Span::ZERO, 0.0, 1.0).is_some());
        assert_eq!(mixed.rating(Span::ZERO, 0.1, 1.0), None, "G.729 has no robustness");
    }
}
