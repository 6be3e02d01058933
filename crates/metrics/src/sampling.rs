//! Hash-based sampling of packets: the same packets at every point.

use std::fmt;
use std::str::FromStr;

use crate::Observation;

/// Selects packets by their identity (hash-based selection, RFC 5475 section 6.2). Points with the same sampling and
/// identity key select the same packets, so that loss and delay of the sample estimate those of all packets, within
/// the sampling error.
///
/// The hash is the upper half of the identity, which covers more of the packet than the hashes of the RFC. With BOB
/// over the bytes that the RFC recommends, all segments of a TCP connection in one direction may be selected together
/// in IPv6. Interoperability with other implementations is not needed here.
///
/// Delay variation, reordering and loss patterns of a sample are those between selected packets, which were not
/// neighbours on the way.
///
/// Capture losses ([`Correlator::missed`](crate::Correlator::missed)) include packets outside the sample. So they may
/// explain more losses of the sample than the capture caused, never fewer.
#[derive(Clone, Debug, PartialEq)]
pub struct Sampling {
    /// Share of packets selected, 0 to 1.
    pub share: f64,
    /// Number of hash values that select a packet: the lowest ones.
    values: u64,
}

/// Error of a share below 0, above 1, or not a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("cannot use the share of packets: it is not a number from 0 to 1")]
pub struct InvalidShare;

/// Min share: one value of the hash.
const MIN_SHARE: f64 = 1.0 / 4_294_967_296.0;

impl Sampling {
    /// Selects this share of all packets, 0 to 1: the configured selection fraction of RFC 5475 section 6.2.2.1. A
    /// smaller share is a subset of a larger one.
    ///
    /// # Errors
    ///
    /// [`InvalidShare`].
    pub fn share(share: f64) -> Result<Self, InvalidShare> {
        if !(0.0..=1.0).contains(&share) {
            return Err(InvalidShare);
        }
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "0 to 2^32 values, rounded to a whole one"
        )]
        let values = (share * 2f64.powi(32)).round() as u64;
        Ok(Self { share, values })
    }

    /// Whether the packet is selected.
    #[must_use]
    pub fn chooses(&self, observation: &Observation) -> bool {
        observation.id.0 >> 32 < self.values
    }
}

/// Parses a fraction such as `1/16`, or a number such as `0.1`.
impl FromStr for Sampling {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let number = |text: &str| text.trim().parse::<f64>().ok();
        let share = match text.split_once('/') {
            Some((part, whole)) => number(part).zip(number(whole)).map(|(part, of)| part / of),
            None => number(text),
        };
        let invalid = || {
            format!(
                "cannot parse the share `{text}`: not between 0 and 1; write 1/16, or a number up to 1"
            )
        };
        let share = share.filter(|share| *share >= MIN_SHARE).ok_or_else(invalid)?;
        Self::share(share).map_err(|_| invalid())
    }
}

/// Writes `1 packet in 16`, or `0.3 of all packets` for other shares.
impl fmt::Display for Sampling {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let one_in = self.share.recip();
        if (one_in - one_in.round()).abs() < 1e-9 * one_in {
            write!(f, "1 packet in {one_in:.0}")
        } else {
            write!(f, "{} of all packets", self.share)
        }
    }
}

#[cfg(test)]
mod tests {
    use wirestamp_clock::{Domain, RawStamp, Span, Stamp, Time};
    use wirestamp_packet::{LinkType, Packet};

    use super::*;
    use crate::{CaptureLoss, Config, Correlator, Point, Quality};

    const PACKETS: u32 = 200_000;

    /// A packet of a sequence, sent every 10 us, as captured after `hops` routers.
    fn seen(number: u32, hops: u8, delay_us: u32) -> Observation {
        let mut packet = [0; 40];
        packet[..10].copy_from_slice(&[0x45, 0, 0, 40, 0, 0, 0x40, 0, 64 - hops, 17]);
        packet[4..6].copy_from_slice(&number.to_be_bytes()[2..]);
        packet[12..20].copy_from_slice(&[10, 77, 1, 1, 10, 77, 2, 2]);
        packet[20..28].copy_from_slice(&[0x13, 0x88, 0x17, 0x70, 0, 20, 0, 0]);
        packet[28..32].copy_from_slice(&number.to_be_bytes());
        let micros = i64::from(number) * 10 + i64::from(delay_us);
        let raw = RawStamp { domain: Domain::Realtime, value: 0 };
        let utc = Time::from_nanos(0) + Span::from_micros(micros);
        let stamp = Stamp { raw, utc, error: Span::ZERO };
        let packet = Packet::parse(LinkType::Ip, &packet).expect("an IP packet");
        Observation::of(&packet, 40, stamp).expect("one with an identity")
    }

    /// Quality of the selected packets: one in 20 is lost, and delays are 1 ms to 5 ms, independent of the identity.
    fn measured(sampling: &Sampling) -> Quality {
        let mut quality = Quality::new();
        let mut correlator = Correlator::new(Config::default());
        let mut sink = |outcome| quality.record(&outcome);
        let mix = |number: u32| number.wrapping_mul(0x9e37_79b9) >> 12;
        for number in 0..PACKETS {
            let mut pass = |point, observation: Observation| {
                if sampling.chooses(&observation) {
                    correlator.observe(point, observation, &mut sink);
                }
            };
            pass(Point::A, seen(number, 0, 0));
            if !mix(number).is_multiple_of(20) {
                pass(Point::B, seen(number, 3, 1000 + mix(number) % 4000));
            }
        }
        correlator.finish(&mut sink);
        quality
    }

    fn real(count: u64) -> f64 {
        f64::from(u32::try_from(count).expect("at most 200,000"))
    }

    #[test]
    fn sample_estimates_loss_and_delay() {
        let whole = measured(&Sampling::share(1.0).expect("all"));
        assert_eq!(whole.counts().sent, u64::from(PACKETS));
        let sample = measured(&"1/16".parse().expect("a share"));
        let (all, chosen) = (whole.counts(), sample.counts());
        // Five standard deviations of each estimate; exceeded by chance once in two million runs.
        let share = 1.0 / 16.0;
        let room = 5.0 * (real(all.sent) * share * (1.0 - share)).sqrt();
        assert!((real(chosen.sent) - real(all.sent) * share).abs() < room, "{chosen:?}");
        // A packet selected at one point only would be unexpected, or increase the loss.
        assert_eq!(chosen.unexpected + chosen.duplicated, 0, "{chosen:?}");
        let loss = real(all.lost) / real(all.sent);
        let error = 5.0 * (loss * (1.0 - loss) / real(chosen.sent)).sqrt();
        let found = real(chosen.lost) / real(chosen.sent);
        assert!((found - loss).abs() < error, "{found} of the sample, {loss} of all");
        let delays = [&whole, &sample].map(|quality| quality.delay().summary().expect("delays"));
        let error = 5.0 * delays[0].stddev / real(delays[1].count).sqrt();
        let [all, found] = delays.map(|delay| delay.mean);
        assert!((found - all).abs() < error, "{found} ns of the sample, {all} ns of all");
    }

    #[test]
    fn capture_loss_is_no_network_loss_in_a_sample() {
        let sampling: Sampling = "1/16".parse().expect("a share");
        let (mut quality, mut correlator) = (Quality::new(), Correlator::new(Config::default()));
        let mut sink = |outcome| quality.record(&outcome);
        let lost = 5000..6000;
        for number in 0..10_000 {
            let [sent, received] = [seen(number, 0, 0), seen(number, 3, 2000)];
            if number == lost.end {
                let at = |number| seen(number, 3, 2000).stamp.utc;
                let missed =
                    CaptureLoss { from: at(lost.start), until: at(lost.end), packets: 1000 };
                correlator.missed(Point::B, missed);
            }
            if sampling.chooses(&sent) {
                correlator.observe(Point::A, sent, &mut sink);
            }
            if !lost.contains(&number) && sampling.chooses(&received) {
                correlator.observe(Point::B, received, &mut sink);
            }
        }
        correlator.finish(&mut sink);
        let counts = quality.counts();
        assert_eq!((counts.lost, counts.unexpected), (0, 0), "{counts:?}");
        assert!((30..100).contains(&counts.undetermined_sent), "{counts:?}");
    }

    #[test]
    fn shares_are_parsed_from_fractions_or_numbers() {
        let share = |text: &str| text.parse::<Sampling>();
        assert_eq!(share("1/16"), share("0.0625"));
        assert_eq!(share("1"), Ok(Sampling::share(1.0).expect("all")));
        for invalid in ["", "1/", "0", "-1/2", "3/2", "1/0", "x", "0/0", "inf", "1e-12"] {
            let error = share(invalid).expect_err(invalid);
            assert!(error.contains("write 1/16"), "{error}");
        }
    }

    #[test]
    fn sample_is_displayed_as_one_packet_in_n() {
        let named = |text: &str| text.parse::<Sampling>().map(|it| it.to_string());
        for (share, name) in [
            ("1/16", "1 packet in 16"),
            ("0.1", "1 packet in 10"),
            ("1/3", "1 packet in 3"),
            ("1/4294967296", "1 packet in 4294967296"),
            ("0.3", "0.3 of all packets"),
        ] {
            assert_eq!(named(share).as_deref(), Ok(name));
        }
    }
}
