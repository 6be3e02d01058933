//! The test second by second (`--per-second`).

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Serialize;
use wirestamp_active::TestPacket;
use wirestamp_active::sender::{ReceivedAnswer, unsynchronised};
use wirestamp_clock::{Span, Time, Utc};
use wirestamp_metrics::{Distribution, ReplyKind, Summary};

/// Max number of seconds that are kept: a week.
const MAX_SECONDS: usize = 604_800;

const SECOND: Span = Span::from_secs(1);

/// After its end and this many timeouts, a second has all its answers: within one of them an answer arrives, and within
/// the next one its follow-up.
const TIMEOUTS: i64 = 3;

/// Packets and delays of each second. The delays of a second are summarised when it has all its answers, so that memory
/// depends on the seconds, and not on the packets.
pub(super) struct Seconds {
    timeout: Span,
    same_clock: bool,
    /// By their begin, in nanoseconds since 1970 UTC.
    seconds: BTreeMap<i64, Second>,
    /// Delays of the seconds that may have more answers.
    open: BTreeMap<i64, Delays<Distribution>>,
    /// The begin of the second of each packet, by its number, for seconds in `open`.
    packets: BTreeMap<u64, i64>,
    omitted: u64,
}

/// Packets of a second, and their delays once these are summarised.
#[derive(Clone, Copy, Debug, Default)]
struct Second {
    sent: u64,
    received: u64,
    matched: u64,
    duplicated: u64,
    is_own_clock_unknown: bool,
    is_their_clock_unknown: bool,
    delays: Delays<Option<Summary>>,
}

/// Delays of the round trip and of both directions.
#[derive(Clone, Copy, Debug, Default)]
struct Delays<T> {
    round_trip: T,
    there: T,
    back: T,
}

/// The test second by second. Seconds without a packet are left out.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Seconds")]
pub(super) struct SecondsDocument {
    /// The seconds in order, at most a week of them.
    seconds: Vec<SecondDocument>,
    /// Packets of further seconds, and of seconds that were complete before the system clock was set back.
    packets_omitted: u64,
}

/// A second of the test. A packet and its answers belong to the second in which the packet was sent.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Second")]
struct SecondDocument {
    /// Begin, in nanoseconds since 1970 UTC.
    begin_ns: i64,
    /// Packets sent.
    sent: u64,
    /// Answers received, with duplicates and answers after the timeout.
    received: u64,
    /// Packets with an answer within the timeout.
    matched: u64,
    /// Packets without an answer within the timeout.
    lost: u64,
    /// Further answers to packets that were answered.
    duplicated: u64,
    /// Min round-trip time without the response time of the reflector, in nanoseconds. Null without answers in time.
    round_trip_min_ns: Option<i64>,
    /// Mean round-trip time, in nanoseconds. Null as the min.
    round_trip_mean_ns: Option<f64>,
    /// Median of the round-trip time, in nanoseconds. Null as the min.
    round_trip_p50_ns: Option<i64>,
    /// 99th percentile of the round-trip time, in nanoseconds. Null as the min.
    round_trip_p99_ns: Option<i64>,
    /// Max round-trip time, in nanoseconds. Null as the min.
    round_trip_max_ns: Option<i64>,
    /// Delays to the reflector.
    there: DelaysDocument,
    /// Delays back from the reflector.
    back: DelaysDocument,
    /// Why the one-way delays of this second are unknown. Null if they are known, and without answers in time.
    owd_reason: Option<&'static str>,
}

/// One-way delays of a second in one direction.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "SecondDelays")]
struct DelaysDocument {
    /// Min one-way delay, in nanoseconds. Null without answers in time, and if one-way delays are unknown.
    delay_min_ns: Option<i64>,
    /// Mean one-way delay, in nanoseconds. Null as the min.
    delay_mean_ns: Option<f64>,
    /// Median of the one-way delay, in nanoseconds. Null as the min.
    delay_p50_ns: Option<i64>,
    /// 99th percentile of the one-way delay, in nanoseconds. Null as the min.
    delay_p99_ns: Option<i64>,
    /// Max one-way delay, in nanoseconds. Null as the min.
    delay_max_ns: Option<i64>,
}

impl Seconds {
    pub(super) fn new(timeout: Span, same_clock: bool) -> Self {
        Self {
            timeout,
            same_clock,
            seconds: BTreeMap::new(),
            open: BTreeMap::new(),
            packets: BTreeMap::new(),
            omitted: 0,
        }
    }

    /// Adds a packet.
    pub(super) fn sent(&mut self, packet: &TestPacket) {
        let Some(sequence) = packet.sequence else { return };
        let now = packet.at;
        match self.second_of(sequence, now) {
            Some(second) => second.sent += 1,
            None => self.omitted += 1,
        }
        self.close_before(now);
    }

    /// Adds an answer. One that is so late that the second of its packet is complete is ignored.
    pub(super) fn answered(&mut self, answer: &ReceivedAnswer) {
        let ReceivedAnswer { sequence, sent, round_trip, there, back, taken, own, theirs, .. } =
            *answer;
        if taken == ReplyKind::Foreign {
            return;
        }
        // The answer may arrive before the send time of its packet is known.
        let Some(sent) = sent.filter(|_| taken == ReplyKind::First) else {
            if let Some(begin) = self.packets.get(&sequence)
                && let Some(second) = self.seconds.get_mut(begin)
            {
                second.received += 1;
                second.duplicated += u64::from(taken == ReplyKind::Duplicate);
            }
            return;
        };
        let same_clock = self.same_clock;
        let Some(second) = self.second_of(sequence, sent.utc) else { return };
        second.received += 1;
        second.matched += 1;
        second.is_own_clock_unknown |= own.is_none() && !same_clock;
        second.is_their_clock_unknown |= theirs.is_none() && !same_clock;
        let delays = self.packets.get(&sequence).and_then(|begin| self.open.get_mut(begin));
        if let Some(delays) = delays {
            round_trip.into_iter().for_each(|it| delays.round_trip.record(it));
            there.into_iter().for_each(|it| delays.there.record(it));
            delays.back.record(back);
        }
    }

    /// The second of a packet. Its first notification, with this send time, decides which one. None if it is omitted.
    fn second_of(&mut self, sequence: u64, sent: Time<Utc>) -> Option<&mut Second> {
        let width = SECOND.as_nanos();
        let begin = sent.as_nanos().div_euclid(width).saturating_mul(width);
        let begin = self.packets.get(&sequence).copied().unwrap_or(begin);
        let is_full = self.seconds.len() >= MAX_SECONDS;
        if !self.open.contains_key(&begin) && (is_full || self.seconds.contains_key(&begin)) {
            return None;
        }
        self.open.entry(begin).or_default();
        self.packets.insert(sequence, begin);
        Some(self.seconds.entry(begin).or_default())
    }

    /// Summarises the seconds that have all their answers.
    fn close_before(&mut self, now: Time<Utc>) {
        let wait = Span::from_nanos(self.timeout.as_nanos().saturating_mul(TIMEOUTS)) + SECOND;
        while let Some(first) = self.open.first_entry()
            && Time::from_nanos(*first.key()) + wait < now
        {
            let (begin, delays) = first.remove_entry();
            self.close(begin, &delays);
        }
        while let Some(first) = self.packets.first_entry()
            && !self.open.contains_key(first.get())
        {
            first.remove();
        }
    }

    fn close(&mut self, begin: i64, delays: &Delays<Distribution>) {
        if let Some(second) = self.seconds.get_mut(&begin) {
            second.delays = Delays {
                round_trip: delays.round_trip.summary(),
                there: delays.there.summary(),
                back: delays.back.summary(),
            };
        }
    }

    /// The document. With `unknown_scale`, no one-way delay is known.
    pub(super) fn document(mut self, unknown_scale: Option<&'static str>) -> SecondsDocument {
        for (begin, delays) in std::mem::take(&mut self.open) {
            self.close(begin, &delays);
        }
        let seconds = self.seconds.iter();
        let seconds = seconds.map(|(begin, second)| second.document(*begin, unknown_scale));
        SecondsDocument { seconds: seconds.collect(), packets_omitted: self.omitted }
    }
}

impl Second {
    fn document(&self, begin_ns: i64, unknown_scale: Option<&'static str>) -> SecondDocument {
        let unknown = unknown_scale
            .or_else(|| unsynchronised(!self.is_own_clock_unknown, !self.is_their_clock_unknown));
        let trip = self.delays.round_trip;
        let direction = |delays: Option<Summary>| {
            let delays = delays.filter(|_| unknown.is_none());
            DelaysDocument {
                delay_min_ns: delays.map(|delays| delays.min),
                delay_mean_ns: delays.map(|delays| delays.mean),
                delay_p50_ns: delays.map(|delays| delays.p50),
                delay_p99_ns: delays.map(|delays| delays.p99),
                delay_max_ns: delays.map(|delays| delays.max),
            }
        };
        SecondDocument {
            begin_ns,
            sent: self.sent,
            received: self.received,
            matched: self.matched,
            lost: self.sent.saturating_sub(self.matched),
            duplicated: self.duplicated,
            round_trip_min_ns: trip.map(|trip| trip.min),
            round_trip_mean_ns: trip.map(|trip| trip.mean),
            round_trip_p50_ns: trip.map(|trip| trip.p50),
            round_trip_p99_ns: trip.map(|trip| trip.p99),
            round_trip_max_ns: trip.map(|trip| trip.max),
            there: direction(self.delays.there),
            back: direction(self.delays.back),
            owd_reason: unknown.filter(|_| self.matched > 0),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};
    use wirestamp_clock::{Domain, RawStamp, Stamp};

    use super::*;

    const MS: i64 = 1_000_000;

    fn packet(sequence: u64, at_ms: i64) -> TestPacket {
        let address = ([10, 0, 0, 1], 862).into();
        TestPacket {
            mark: 0,
            session: 1,
            sequence: Some(sequence),
            at: Time::from_nanos(at_ms * MS),
            error: Span::ZERO,
            length: 100,
            from: address,
            to: address,
        }
    }

    /// The answer to a packet sent at this time, of which `there_ms` and 1 ms back are the delays.
    fn answer(sequence: u64, sent_ms: i64, there_ms: i64) -> ReceivedAnswer {
        let utc = Time::from_nanos(sent_ms * MS);
        let raw = RawStamp { domain: Domain::Realtime, value: 0 };
        ReceivedAnswer {
            sequence,
            mark: 0,
            sent: Some(Stamp { raw, utc, error: Span::ZERO }),
            at: utc + Span::from_millis(there_ms + 1),
            round_trip: Some(Span::from_millis(there_ms + 1)),
            there: Some(Span::from_millis(there_ms)),
            back: Span::from_millis(1),
            ttl: 64,
            taken: ReplyKind::First,
            own: Some(Span::ZERO),
            theirs: Some(Span::ZERO),
        }
    }

    fn seconds() -> Seconds {
        Seconds::new(Span::from_millis(500), false)
    }

    fn document(seconds: Seconds) -> Value {
        serde_json::to_value(seconds.document(None)).unwrap()
    }

    #[test]
    fn packets_and_answers_belong_to_the_second_of_sending() {
        let mut seconds = seconds();
        for (sequence, at) in [(0, 1_100), (1, 1_900), (2, 1_999), (3, 9_000)] {
            seconds.sent(&packet(sequence, at));
            if sequence < 2 {
                seconds.answered(&answer(
                    sequence,
                    at,
                    10 * (i64::try_from(sequence).unwrap() + 1),
                ));
            }
        }
        let duplicate = ReceivedAnswer { taken: ReplyKind::Duplicate, ..answer(3, 9_000, 5) };
        seconds.answered(&answer(3, 9_000, 5));
        seconds.answered(&duplicate);
        let found = document(seconds);
        let first = &found["seconds"][0];
        let keys = ["begin_ns", "sent", "received", "matched", "lost", "duplicated"];
        let of = |second: &Value| keys.map(|key| second[key].as_i64().unwrap());
        assert_eq!(of(first), [1_000 * MS, 3, 2, 2, 1, 0]);
        assert_eq!(of(&found["seconds"][1]), [9_000 * MS, 1, 2, 1, 0, 1]);
        assert_eq!(first["round_trip_min_ns"], 11 * MS);
        assert_eq!(first["round_trip_max_ns"], 21 * MS);
        assert_eq!(first["there"]["delay_mean_ns"], 15.0 * 1e6);
        assert_eq!(first["there"]["delay_p99_ns"], 20 * MS);
        assert_eq!(first["back"]["delay_p50_ns"], MS);
        assert_eq!(first["owd_reason"], Value::Null);
    }

    #[test]
    fn one_way_delays_of_unsynchronised_clocks_are_null_with_the_reason() {
        let mut seconds = seconds();
        seconds.sent(&packet(0, 1_000));
        seconds.answered(&ReceivedAnswer { theirs: None, ..answer(0, 1_000, 5) });
        seconds.sent(&packet(1, 2_000));
        let found = document(seconds);
        let [first, unanswered] = [0, 1].map(|nth| &found["seconds"][nth]);
        assert_eq!(first["there"]["delay_min_ns"], Value::Null);
        assert_eq!(first["owd_reason"], "the reflector's clock is not synchronised to UTC");
        assert_eq!(first["round_trip_min_ns"], 6 * MS);
        assert_eq!(unanswered["owd_reason"], Value::Null, "there is no delay");
        assert_eq!(unanswered["lost"], 1);
    }

    #[test]
    fn answer_before_the_send_time_is_counted_with_its_packet() {
        let mut seconds = seconds();
        seconds.answered(&answer(0, 1_999, 5));
        seconds.sent(&packet(0, 2_000));
        let found = document(seconds);
        assert_eq!(found["seconds"].as_array().unwrap().len(), 1);
        assert_eq!(
            [&found["seconds"][0]["sent"], &found["seconds"][0]["lost"]],
            [&json!(1), &json!(0)]
        );
    }

    #[test]
    fn complete_seconds_keep_no_packets() {
        let mut seconds = seconds();
        for sequence in 0..100_u32 {
            let at = i64::from(sequence) * 100;
            seconds.sent(&packet(sequence.into(), at));
            seconds.answered(&answer(sequence.into(), at, 5));
        }
        assert!(
            seconds.packets.len() <= 40 && seconds.open.len() <= 4,
            "{}",
            seconds.packets.len()
        );
        // The clock is set back.
        seconds.sent(&packet(100, 0));
        let found = document(seconds);
        assert_eq!(found["packets_omitted"], 1);
        assert_eq!(found["seconds"][0]["matched"], 10);
        assert_eq!(found["seconds"][0]["round_trip_p50_ns"], 6 * MS);
    }
}
