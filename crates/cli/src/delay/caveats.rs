//! Notes on how far the results can be trusted.

use std::collections::{BTreeMap, BTreeSet};

use wirestamp_metrics::{Counts, Quality};
use wirestamp_packet::MatchRule;
use wirestamp_session::PointState;

use super::result::DelayResult;
use super::rtp::RatedCodec;
use super::unknown_loss::UnknownLoss;
use crate::output::{plural, rated_by, time};

impl DelayResult {
    /// All notes, a line each.
    pub(super) fn caveats(&self, total: &Quality) -> Vec<String> {
        let mut lines = self.sample(total);
        lines.extend(self.lost_reason().map(|reason| sentence(&reason)));
        lines.extend(recognised_by(self.rule()).map(str::to_owned));
        lines.extend(self.divided_segments());
        lines.extend(self.rated_codecs());
        lines.extend(self.clocks.notes());
        lines.extend(self.capture_losses());
        let is_known = matches!(
            self.unknown_loss,
            None | Some(
                UnknownLoss::OtherSegments
                    | UnknownLoss::OtherDatagrams
                    | UnknownLoss::OfSomeFlows(_)
            )
        );
        if self.lost_outside_capture > 0 && is_known {
            lines.push(format!(
                "{} of the lost packets left A before the first or after the last packet observed at B: \
                 if B did not capture at that time, these are not network losses.",
                self.lost_outside_capture
            ));
        }
        lines.extend(self.identical_packets(total));
        lines.extend(self.stamps_out_of_order());
        lines.extend(self.negative_delays(total));
        lines.extend(coarse(total));
        if self.layers.is_some() {
            lines.push(
                "The layer programs run before packets are stamped at B: delays contain the time that \
                 they take."
                    .into(),
            );
        }
        lines.extend(self.left_out(total));
        lines
    }

    /// A note on packets of files that are not in the order of their stamps.
    fn stamps_out_of_order(&self) -> Option<String> {
        let [a, b] = self.stamped_earlier;
        (a + b > 0).then(|| {
            format!(
                "{a} packets at A and {b} at B are stamped before a packet captured before: reordering follows the order \
                 of capture; `reordercap` puts a file in the order of its stamps."
            )
        })
    }

    /// A note on TCP segments that the network does not carry as captured.
    fn divided_segments(&self) -> Option<String> {
        let [a, b] = self.divided();
        let assumed = a.assumed + b.assumed;
        (a.divided + b.divided > 0).then(|| {
            let note = format!(
                "{} TCP segments at A and {} at B are longer than the network carries (TSO, GRO): they count as the {} and \
                 {} packets of the network, all with the time stamp of the segment.",
                a.divided, b.divided, a.parts, b.parts
            );
            if assumed == 0 {
                return note;
            }
            note + &format!(
                " For {assumed} of them the begin of the connection was not captured, and an MTU of 1500 bytes is assumed: if \
                 it is larger, they are fewer packets."
            )
        })
    }

    /// The codecs used for rating and their sources, and the RTP that is not rated, a line each.
    fn rated_codecs(&self) -> Vec<String> {
        let flows = self.flows.flows();
        let voices: Vec<_> = flows.iter().filter_map(|(flow, _)| self.voice(flow)).collect();
        let mut lines = Vec::new();
        if !voices.is_empty() {
            lines.push(format!(
                "R and MOS by {}, for the measured delay and a de-jitter buffer of {} (--jitter-buffer); late: \
                 packets that came too late for it.",
                rated_by(voices.iter().map(|voice| voice.codecs.scale())),
                self.flows.jitter_buffer()
            ));
        }
        let mut unknown = BTreeMap::<_, u64>::new();
        for reason in flows.iter().filter_map(|(flow, quality)| self.unknown_rating(flow, quality))
        {
            *unknown.entry(reason).or_default() += 1;
        }
        lines.extend(unknown.into_iter().map(|(reason, count)| {
            format!("R and MOS of {} are unknown: {reason}.", plural(count, "flow", "flows"))
        }));
        if self.codec.is_some() {
            return lines;
        }
        let sources: BTreeSet<_> = voices.iter().flat_map(RatedCodec::sources).collect();
        lines.extend(sources.iter().map(|source| format!("Codec: {source}.")));
        lines.extend(self.media.unrated().into_iter().map(|(reason, encodings)| {
            let encodings: Vec<_> = encodings.into_iter().collect();
            format!("No R and MOS for RTP with {}: {reason}.", encodings.join(", "))
        }));
        lines
    }

    /// Notes on packets that the captures lost.
    fn capture_losses(&self) -> Vec<String> {
        let mut lines = Vec::new();
        let silent = match self.capture_dropped {
            [None, None] => Some("The captures do not say whether they"),
            [None, Some(_)] => Some("The capture at A does not say whether it"),
            [Some(_), None] => Some("The capture at B does not say whether it"),
            [Some(_), Some(_)] => None,
        };
        lines.extend(silent.map(|beginning| {
            format!(
                "{beginning} lost packets: such packets count as lost in the network, or as observed at B only."
            )
        }));
        let [a, b] = self.capture_dropped.map(Option::unwrap_or_default);
        if a + b > 0 {
            lines.push(format!(
                "The captures lost {a} packets at A and {b} at B: packets that only the other point observed \
                 at that time count neither as lost nor as unexpected."
            ));
        }
        let [a, b] = self.undated;
        if a + b > 0 {
            lines.push(format!(
                "For {a} of these at A and {b} at B the time is unknown: up to that many packets counted \
                 as lost, or as observed at B only, may be capture losses."
            ));
        }
        lines
    }

    /// Notes on packets that no result contains.
    fn left_out(&self, total: &Quality) -> Vec<String> {
        let mut lines = Vec::new();
        let Counts { unexpected, lost, .. } = *total.counts();
        if unexpected > 0 {
            // Each late packet is also a lost one.
            let are_as_many = lost >= unexpected && unexpected.saturating_mul(2) >= lost;
            let may_be_lost = if are_as_many && self.unknown_loss.is_none() {
                " They may be the lost ones, if these took longer than the timeout: then use a larger --timeout."
            } else {
                ""
            };
            lines.push(format!("{unexpected} packets were observed at B only.{may_be_lost}"));
        }
        let evicted: u64 = self.points.iter().map(PointState::evicted_flows).sum();
        if evicted > 0 {
            lines.push(format!(
                "The flow table was full: {evicted} idle flows were evicted, and their RTP and TCP \
                 round-trip results are not shown."
            ));
        }
        let unidentified = self.unidentified();
        if unidentified > 0 {
            lines.push(excluded(unidentified, self.rule()));
        }
        lines
    }
}

/// A note on packets without identity, with the reasons that the rule allows.
fn excluded(unidentified: u64, rule: MatchRule) -> String {
    let reasons = match rule {
        MatchRule::Reassembled => {
            "not IP, captured too short to be identified, or fragments of a packet that contradict each other"
        }
        _ => "not IP, or captured too short to be identified",
    };
    format!("{} excluded: {reasons}.", plural(unidentified, "packet was", "packets were"))
}

/// A text with a capital letter and a full stop.
fn sentence(text: &str) -> String {
    let mut characters = text.chars();
    let first = characters.next().map(|first| first.to_ascii_uppercase());
    let text: String = first.into_iter().chain(characters).collect();
    if text.ends_with('?') { text } else { text + "." }
}

/// A note if delays are so large that the resolution of percentiles hides their variation.
fn coarse(total: &Quality) -> Option<String> {
    let delay = total.delay().summary()?;
    let largest = delay.min.unsigned_abs().max(delay.max.unsigned_abs());
    // The relative resolution of percentiles is 1/2048.
    let within = i64::try_from(largest / 2048).unwrap_or(i64::MAX);
    (delay.above_minimum().p99 < within.saturating_mul(20)).then(|| {
        format!(
            "Percentiles are within {}, which is large compared with the delay variation: mean, min and max \
             are exact; for two files, --align makes all of them exact.",
            time(within)
        )
    })
}

/// What the rule means for the results; none for the usual one.
const fn recognised_by(rule: MatchRule) -> Option<&'static str> {
    match rule {
        MatchRule::Packet => None,
        MatchRule::Beginning => Some(
            "Packets are recognised by their first bytes (--match beginning): those that differ only behind them count \
             as the same.",
        ),
        MatchRule::Reassembled => Some(
            "Fragments are joined (--match reassembled): a packet arrives with its last fragment, and is lost if one is \
             missing.",
        ),
        MatchRule::Inner => Some(
            "Packets are those inside of tunnels (--match inner), and flows have their addresses.",
        ),
        MatchRule::Payload => Some(
            "Packets are recognised by their payload, without addresses and ports (--match payload), and flows have the \
             addresses at A.",
        ),
        MatchRule::Rtp => Some(
            "Packets are recognised by the numbers of RTP (--match rtp): all others are unidentified, and flows have \
             the addresses at A.",
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn contradictory_fragments_are_named_where_fragments_are_joined() {
        let note = excluded(2, MatchRule::Reassembled);
        assert_eq!(
            note,
            "2 packets were excluded: not IP, captured too short to be identified, or fragments of a packet that \
             contradict each other."
        );
        let note = excluded(1, MatchRule::Packet);
        assert_eq!(note, "1 packet was excluded: not IP, or captured too short to be identified.");
    }
}
