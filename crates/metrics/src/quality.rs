//! The quality of service of one flow, or of many taken together.

use serde::{Serialize, Serializer};
use wirestamp_clock::{Span, Time, Utc};

use crate::distribution::{count_to_f64, nanos_to_f64};
use crate::{Distribution, Observation, Outcome, Point};

/// How often each thing happened to a packet.
///
/// Once the correlator has finished, the books balance:
/// `sent = matched + lost + given_up_sent` and
/// `received = matched + duplicated + unexpected + given_up_received`. Before that, packets that
/// are not decided yet are in no count at all.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Counts {
    /// Observations at A.
    pub sent: u64,
    /// Observations at B, every copy of a packet and the unexpected ones too.
    pub received: u64,
    /// Packets seen at both points, each counted once.
    pub matched: u64,
    /// Packets seen at A and not at B within the time-out (RFC 7680 section 2.4).
    pub lost: u64,
    /// Copies at B beyond the first of a packet (RFC 5560 section 3): a packet that came three
    /// times counts two.
    pub duplicated: u64,
    /// Matched packets that came after a packet of their flow that had left A later (RFC 4737
    /// section 3.3). A packet that is overtaken by many counts one.
    pub reordered: u64,
    /// Observations at B of packets that A has not seen.
    pub unexpected: u64,
    /// Observations at A of which the correlator could not find out what became.
    pub given_up_sent: u64,
    /// Observations at B of which the correlator could not find out where they came from.
    pub given_up_received: u64,
    /// Observations at A that could not be told from an earlier one; these are in `sent` too.
    pub identical: u64,
}

/// The bounds of the errors that the clocks bring into one-way delays.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct ClockError {
    /// The mean of the bounds, in nanoseconds: how far the mean delay can be off.
    pub mean: f64,
    /// The greatest of the bounds: how far any delay can be off.
    pub max: Span,
}

impl ClockError {
    /// Takes the bound of the delay that is number `count`.
    fn record(&mut self, bound: Span, count: u64) {
        self.mean += (nanos_to_f64(bound.as_nanos()) - self.mean) / count_to_f64(count);
        self.max = self.max.max(bound);
    }
}

/// What the network did to one flow, or to many taken together: counts and distributions over
/// the [`Outcome`]s of a correlator.
///
/// Reordering and delay variation are taken within each flow even where several are recorded
/// together, because packets of different flows have no order to keep.
///
/// Serialised, it is the counts, `owd_ns` and `ipdv_ns` (distributions), and `clock_error_ns`, the
/// greatest bound of the clocks' error in any of the delays (null without delays), with
/// `clock_error_mean_ns` and `throughput_bps`.
#[derive(Clone, Debug, Default)]
pub struct Quality {
    counts: Counts,
    delay: Distribution,
    variation: Distribution,
    clock_error: ClockError,
    arrivals: Arrivals,
}

impl Quality {
    /// A quality over no packets.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds an outcome.
    pub fn record(&mut self, outcome: &Outcome) {
        let counts = &mut self.counts;
        match outcome {
            Outcome::Matched {
                received,
                delay,
                error,
                reordered,
                since_previous,
                until_next,
                ..
            } => {
                counts.sent += 1;
                counts.matched += 1;
                counts.reordered += u64::from(*reordered);
                self.delay.record(*delay);
                self.clock_error.record(*error, counts.matched);
                for variation in [since_previous, until_next].into_iter().flatten() {
                    self.variation.record(*variation);
                }
                self.receive(received);
            }
            Outcome::Lost { .. } => {
                counts.sent += 1;
                counts.lost += 1;
            }
            Outcome::Duplicated { received, .. } => {
                counts.duplicated += 1;
                self.receive(received);
            }
            Outcome::Unexpected { received } => {
                counts.unexpected += 1;
                self.receive(received);
            }
            Outcome::GivenUp { point: Point::A, .. } => {
                counts.sent += 1;
                counts.given_up_sent += 1;
            }
            Outcome::GivenUp { point: Point::B, observation, .. } => {
                counts.given_up_received += 1;
                self.receive(observation);
            }
            Outcome::Identical { .. } => counts.identical += 1,
        }
    }

    fn receive(&mut self, received: &Observation) {
        self.counts.received += 1;
        self.arrivals.record(received);
    }

    /// How often each thing happened.
    #[must_use]
    pub fn counts(&self) -> &Counts {
        &self.counts
    }

    /// The one-way delays of the matched packets (RFC 7679 section 3.4). The delay of a lost packet
    /// is undefined, not infinite: it is in the count of losses and in no percentile.
    #[must_use]
    pub fn delay(&self) -> &Distribution {
        &self.delay
    }

    /// The delay variations (RFC 3393 section 2.4): for each two packets of a flow that left A one
    /// directly after the other and were both matched, the delay of the later less that of the
    /// earlier. Undefined, and left out, where either was lost; a loss therefore costs two.
    /// Reordered packets take part.
    #[must_use]
    pub fn variation(&self) -> &Distribution {
        &self.variation
    }

    /// What the clocks may have added to the delays, or `None` without delays.
    #[must_use]
    pub fn clock_error(&self) -> Option<ClockError> {
        (self.counts.matched > 0).then_some(self.clock_error)
    }

    /// Bits per second at B, link headers included, over the time from the first to the last
    /// packet; the first packet's bits are left out, because they arrived before that time began.
    /// `None` below two packets, or if they all have the same stamp.
    #[must_use]
    pub fn throughput(&self) -> Option<f64> {
        self.arrivals.bits_per_second()
    }
}

impl Serialize for Quality {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        #[derive(Serialize)]
        struct Row<'a> {
            #[serde(flatten)]
            counts: &'a Counts,
            owd_ns: &'a Distribution,
            ipdv_ns: &'a Distribution,
            clock_error_ns: Option<i64>,
            clock_error_mean_ns: Option<f64>,
            throughput_bps: Option<f64>,
        }
        let clock_error = self.clock_error();
        Row {
            counts: &self.counts,
            owd_ns: &self.delay,
            ipdv_ns: &self.variation,
            clock_error_ns: clock_error.map(|error| error.max.as_nanos()),
            clock_error_mean_ns: clock_error.map(|error| error.mean),
            throughput_bps: self.throughput(),
        }
        .serialize(serializer)
    }
}

/// The amount of traffic that arrived, and in what time.
#[derive(Clone, Copy, Debug, Default)]
struct Arrivals {
    first_and_last: Option<(Time<Utc>, Time<Utc>)>,
    /// Bytes of all packets but the first.
    bytes: u64,
}

impl Arrivals {
    fn record(&mut self, received: &Observation) {
        let time = received.stamp.utc;
        self.first_and_last = match self.first_and_last {
            None => Some((time, time)),
            Some((first, last)) => {
                self.bytes += u64::from(received.length);
                Some((first, last.max(time)))
            }
        };
    }

    fn bits_per_second(&self) -> Option<f64> {
        let (first, last) = self.first_and_last?;
        let nanos = (last - first).as_nanos();
        (nanos > 0).then(|| count_to_f64(self.bytes) * 8e9 / nanos_to_f64(nanos))
    }
}
