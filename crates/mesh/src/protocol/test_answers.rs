//! Answers to the packets of an active test, in the observations of its ends.

use wirestamp_clock::{Span, Time, Utc};
use wirestamp_metrics::CaptureLoss;
use wirestamp_packet::PacketId;

use super::lists::{differences, missed};
use crate::v1;

/// Answers to test packets, since the previous batch.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TestAnswers {
    /// Answers that the sender received, the first one to each packet.
    pub received: Vec<TestAnswer>,
    /// Datagrams that the kernel dropped at the sender's socket. Answers to packets sent in this interval may be among
    /// them.
    pub missed: Vec<CaptureLoss>,
    /// The sender has reported all other answers within the timeout to packets sent before this time.
    pub complete_until: Option<Time<Utc>>,
    /// At the reflector: max time from the stated send time of an answer until it left; none if it is not known of an
    /// answer. Round trips and delays back are overestimated by at most this time.
    pub sending: Option<Span>,
}

/// An answer to a test packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TestAnswer {
    /// Identity of the answered packet.
    pub identity: PacketId,
    /// Send time of the answered packet.
    pub sent: Time<Utc>,
    /// Round-trip time without the time at the reflector (RFC 8762 section 4.2.1), from four stamps, two of each clock.
    pub round_trip: Span,
    /// Delay from the reflector to the sender, by the clocks of both.
    pub back: Span,
    /// Max error of `sent` relative to the sender's clock.
    pub error: Span,
}

impl TestAnswers {
    pub(super) fn encode(&self) -> v1::TestAnswers {
        let received = || self.received.iter();
        v1::TestAnswers {
            identity: received().map(|it| it.identity.0).collect(),
            sent: differences(received().map(|it| it.sent.as_nanos())),
            round_trip: received().map(|it| it.round_trip.as_nanos()).collect(),
            back: received().map(|it| it.back.as_nanos()).collect(),
            error: received().map(|it| it.error.as_nanos().unsigned_abs()).collect(),
            missed: self.missed.iter().map(missed).collect(),
            complete_until: self.complete_until.map(Time::as_nanos),
            sending: self.sending.map(|it| it.as_nanos().unsigned_abs()),
        }
    }

    /// The answers in observations that end at `end`, in nanoseconds since 1970 (UTC). Returns the reason why they are
    /// not valid.
    pub(super) fn decode(message: &v1::TestAnswers, end: i64) -> Result<Self, &'static str> {
        let v1::TestAnswers { identity, sent, round_trip, back, error, .. } = message;
        let lengths = [sent.len(), round_trip.len(), back.len(), error.len()];
        if lengths != [identity.len(); 4] {
            return Err("their lists differ in length");
        }
        let mut at = 0_i64;
        let values = identity.iter().zip(sent).zip(round_trip).zip(back).zip(error);
        let received = values.map(|((((identity, sent), round_trip), back), error)| {
            at = at.wrapping_add(*sent);
            if at > end {
                return Err("a packet is later than the end of the observations");
            }
            Ok(TestAnswer {
                identity: PacketId(*identity),
                sent: Time::from_nanos(at),
                round_trip: Span::from_nanos(*round_trip),
                back: Span::from_nanos(*back),
                error: span(*error).ok_or("an error is too large")?,
            })
        });
        let received = received.collect::<Result<_, _>>()?;
        let missed = message.missed.iter().map(|it| {
            let [from, until] = [it.from, it.until].map(Time::from_nanos);
            let missed = CaptureLoss { from, until, packets: it.packets };
            (it.from <= it.until).then_some(missed).ok_or("a loss ends before it begins")
        });
        let missed = missed.collect::<Result<_, _>>()?;
        if message.complete_until.is_some_and(|it| it > end) {
            return Err("they are complete until after the end of the observations");
        }
        let complete_until = message.complete_until.map(Time::from_nanos);
        let sending = message.sending.map(|it| span(it).ok_or("a sending time is too long"));
        Ok(Self { received, missed, complete_until, sending: sending.transpose()? })
    }
}

fn span(nanos: u64) -> Option<Span> {
    i64::try_from(nanos).ok().map(Span::from_nanos)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const END: i64 = 1_000;

    fn answer(sent: i64) -> TestAnswer {
        TestAnswer {
            identity: PacketId(7),
            sent: Time::from_nanos(sent),
            round_trip: Span::from_nanos(20),
            back: Span::from_nanos(-5),
            error: Span::from_nanos(1),
        }
    }

    proptest! {
        #[test]
        fn answers_round_trip(
            packets in prop::collection::vec(
                (any::<u64>(), i64::MIN..=END, any::<i64>(), any::<i64>(), 0..i64::MAX), 0..9),
            missed in prop::collection::vec((any::<i64>(), any::<i64>(), any::<u64>()), 0..3),
            complete_until in prop::option::of(i64::MIN..=END),
            sending in prop::option::of(0..i64::MAX),
        ) {
            let received = packets.into_iter().map(|(id, sent, round_trip, back, error)| TestAnswer {
                identity: PacketId(id),
                sent: Time::from_nanos(sent),
                round_trip: Span::from_nanos(round_trip),
                back: Span::from_nanos(back),
                error: Span::from_nanos(error),
            });
            let missed = missed.into_iter().map(|(one, other, packets)| {
                let [from, until] = [one.min(other), one.max(other)].map(Time::from_nanos);
                CaptureLoss { from, until, packets }
            });
            let answers = TestAnswers {
                received: received.collect(),
                missed: missed.collect(),
                complete_until: complete_until.map(Time::from_nanos),
                sending: sending.map(Span::from_nanos),
            };
            prop_assert_eq!(TestAnswers::decode(&answers.encode(), END), Ok(answers));
        }
    }

    #[test]
    fn invalid_answers_are_rejected() {
        let whole = TestAnswers { received: vec![answer(END)], ..TestAnswers::default() }.encode();
        assert!(TestAnswers::decode(&whole, END).is_ok());
        let refused = |change: &dyn Fn(&mut v1::TestAnswers)| {
            let mut message = whole.clone();
            change(&mut message);
            TestAnswers::decode(&message, END).unwrap_err()
        };
        assert_eq!(refused(&|it| it.back.clear()), "their lists differ in length");
        assert!(refused(&|it| it.sent[0] += 1).contains("a packet is later"));
        assert_eq!(refused(&|it| it.error[0] = u64::MAX), "an error is too large");
        assert_eq!(refused(&|it| it.sending = Some(u64::MAX)), "a sending time is too long");
        assert!(refused(&|it| it.complete_until = Some(END + 1)).contains("complete until after"));
        let missed = v1::Missed { from: 1, until: 0, packets: 1 };
        assert!(refused(&|it| it.missed.push(missed)).contains("ends before it begins"));
    }
}
