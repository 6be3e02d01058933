use proptest::prelude::*;
use wirestamp_clock::Span;
use wirestamp_packet::stamp::{
    ClassOfService, ErrorEstimate, Extension, ExtensionFlags, FollowUp, TimestampInformation,
    Value, extensions,
};

use super::*;
use crate::system_clock::ClockState;

/// A clock whose reading is a microsecond after its state.
struct Ticking(i64);

impl SystemClock for Ticking {
    fn now(&self) -> Time<Utc> {
        Time::from_nanos(self.0 + 1_000)
    }

    fn state(&mut self) -> ClockState {
        ClockState { synchronised: true, error: Span::from_micros(50), tai: None }
    }
}

const ARRIVAL: i64 = 1_700_000_000_000_000_000;

fn key() -> Key {
    Key::new(b"a key that sender and reflector share").unwrap()
}

fn arrival(bytes: &[u8], port: u16) -> Arrival<'_> {
    Arrival {
        bytes,
        from: ([192, 0, 2, 1], port).into(),
        to: Some([192, 0, 2, 7].into()),
        at: Time::from_nanos(ARRIVAL),
        ttl: 61,
        class: 46 << 2 | 1,
    }
}

fn sent(sequence: u32, session: u16) -> Sent {
    let at = stamped(Time::from_nanos(ARRIVAL - 500_000));
    let error = ErrorEstimate::of(Span::from_millis(1), false, Format::Ntp);
    Sent { sequence, timestamp: at, error, session }
}

fn packet(mode: Mode<'_>, sequence: u32, session: u16) -> Vec<u8> {
    let mut packet = Vec::new();
    sent(sequence, session).write(mode, &mut packet);
    packet
}

fn reflect(reflector: &mut Reflector, bytes: &[u8]) -> Result<(Reflection, Vec<u8>), Unanswered> {
    let mut answer = Vec::new();
    let reflection =
        reflector.reflect(&arrival(bytes, 4000), &mut Ticking(ARRIVAL), &mut answer)?;
    Ok((reflection, answer))
}

#[test]
fn answer_has_receive_time_and_session_number() {
    let mut reflector = Reflector::new(None);
    for (sequence, session, number) in [(5, 1, 0), (9, 1, 1), (7, 2, 0), (10, 1, 2)] {
        let (reflection, answer) =
            reflect(&mut reflector, &packet(Mode::Open, sequence, session)).unwrap();
        assert_eq!((reflection.number, answer.len()), (number, 44));
        let answer = Reflected::parse(&answer, Mode::Open).unwrap();
        let time = |at: Stamped| at.time(Format::Ntp, Span::ZERO).as_nanos() - ARRIVAL;
        assert_eq!((answer.sequence, answer.sent), (number, sent(sequence, session)));
        assert_eq!((time(answer.received), time(answer.timestamp), answer.ttl), (0, 1_000, 61));
        assert!(answer.error.is_synchronised());
        assert!(answer.error.bound().is_some_and(|bound| bound >= Span::from_micros(50)));
    }
    assert_eq!((reflector.counts.reflected, reflector.counts.sessions), (4, 2));
    let not_sent = reflect(&mut reflector, &packet(Mode::Open, 11, 1)).unwrap().0;
    reflector.not_sent(&not_sent);
    let (again, _) = reflect(&mut reflector, &packet(Mode::Open, 12, 1)).unwrap();
    assert_eq!((not_sent.number, again.number, reflector.counts.failed), (3, 3, 1));
}

#[test]
fn extensions_are_answered_rejected_or_returned() {
    let mut asked = packet(Mode::Open, 1, 0);
    FollowUp::default().ask(&mut asked);
    TimestampInformation::default().ask(&mut asked);
    ClassOfService { requested: 10, ..ClassOfService::default() }.ask(&mut asked);
    let plain = |kind, value| Extension {
        flags: ExtensionFlags { unrecognised: true, ..ExtensionFlags::default() },
        kind,
        value,
    };
    plain(Extension::PADDING, &[7; 9]).write(&mut asked);
    plain(FollowUp::KIND, &[1, 2]).write(&mut asked);
    plain(200, b"what?").write(&mut asked);
    let mut reflector = Reflector::new(None);
    let (first, _) = reflect(&mut reflector, &asked).unwrap();
    reflector.left(&first.session, 0, Time::from_nanos(ARRIVAL + 7_000));
    let (second, answer) = reflect(&mut reflector, &asked).unwrap();
    assert_eq!((second.class, answer.len()), (10 << 2, asked.len()));

    let answers: Vec<_> = extensions(&answer[44..]).collect();
    let follow_up = FollowUp::answered(&answers[0]).unwrap();
    let left = follow_up.left.time(Format::Ntp, Span::ZERO).as_nanos() - ARRIVAL;
    assert_eq!((follow_up.number, follow_up.how, left), (0, 2, 7_000));
    let how = TimestampInformation::answered(&answers[1]).unwrap();
    assert_eq!((how.received_by, how.received_how, how.sent_how), (1, 2, 3));
    let class = ClassOfService::answered(&answers[2]).unwrap();
    assert_eq!((class.requested, class.received, class.congestion), (10, 46, 1));
    assert_eq!((answers[3].flags, answers[3].value), (ExtensionFlags::default(), &[7; 9][..]));
    assert_eq!((answers[4].flags.malformed, answers[4].value), (true, &[1, 2][..]));
    assert_eq!((answers[5].flags.unrecognised, answers[5].value), (true, &b"what?"[..]));
}

#[test]
fn twamp_light_padding_is_returned() {
    let mut reflector = Reflector::new(None);
    let mut long = packet(Mode::Open, 1, 0);
    long.resize(100, 0);
    let (_, answer) = reflect(&mut reflector, &long).unwrap();
    assert_eq!((answer.len(), &answer[44..]), (100, &long[44..]));
    let (_, answer) = reflect(&mut reflector, &long[..14]).unwrap();
    assert_eq!(answer.len(), 44);
    assert_eq!(reflect(&mut reflector, &long[..13]), Err(NotStamp::TooShort(13, 14).into()));
    assert_eq!(reflector.counts.not_stamp, 1);
}

#[test]
fn forged_packets_and_extensions_are_detected() {
    let key = key();
    let mode = Mode::Authenticated(&key);
    let mut reflector = Reflector::new(Some(key.clone()));
    let open = packet(Mode::Open, 1, 0);
    assert!(reflect(&mut reflector, &open).is_err());
    let mut forged = packet(mode, 1, 0);
    forged[3] ^= 1;
    assert_eq!(reflect(&mut reflector, &forged), Err(NotStamp::Forged.into()));
    assert_eq!((reflector.counts.forged, reflector.counts.reflected), (1, 0));

    let mut asked = packet(mode, 1, 0);
    TimestampInformation::default().ask(&mut asked);
    let (_, answer) = reflect(&mut reflector, &asked).unwrap();
    let flags = extensions(&answer[112..]).next().unwrap().flags;
    assert!(flags.forged, "{flags:?}");

    let code = key.code_of_extensions(1, &asked[112..]);
    let flags = ExtensionFlags::default();
    Extension { flags, kind: Extension::CODE, value: &code }.write(&mut asked);
    let (reflection, answer) = reflect(&mut reflector, &asked).unwrap();
    assert!(Reflected::parse(&answer, mode).is_ok());
    let first = extensions(&answer[112..]).next().unwrap();
    assert!(TimestampInformation::answered(&first).is_some());
    let behind = &answer[112..];
    assert!(key.verifies_extensions(reflection.number, behind));
    assert!(!key.verifies_extensions(reflection.number + 1, behind));
    assert!(!key.verifies_extensions(reflection.number, &behind[..behind.len() - 1]));
}

#[test]
fn only_padding_may_follow_the_extensions_code() {
    let (key, flags) = (key(), ExtensionFlags::default());
    let mut coded = Vec::new();
    TimestampInformation::default().ask(&mut coded);
    let code = key.code_of_extensions(1, &coded);
    let extension = |kind, value| Extension { flags, kind, value };
    let mut short = coded.clone();
    extension(Extension::CODE, &code[..1]).write(&mut short);
    assert!(!key.verifies_extensions(1, &short), "a part of the code is easy to guess");
    extension(Extension::CODE, &code).write(&mut coded);
    extension(Extension::PADDING, &[7; 5]).write(&mut coded);
    assert!(key.verifies_extensions(1, &coded));

    let mut reflector = Reflector::new(Some(key.clone()));
    let mut asked = packet(Mode::Authenticated(&key), 1, 0);
    asked.extend(&coded);
    let (reflection, answer) = reflect(&mut reflector, &asked).unwrap();
    assert!(key.verifies_extensions(reflection.number, &answer[112..]));
    assert_eq!(&answer[answer.len() - 9..], &asked[asked.len() - 9..]);
    extension(TimestampInformation::KIND, &[0; 4]).write(&mut coded);
    assert!(!key.verifies_extensions(1, &coded));
}

/// Two reflectors on any ports, and a forged packet from one to the other.
#[test]
fn answer_of_a_reflector_is_not_answered() {
    for key in [None, Some(key())] {
        let mode = key.as_ref().map_or(Mode::Open, Mode::Authenticated);
        let [mut one, mut other] = [(); 2].map(|()| Reflector::new(key.clone()));
        let (_, answer) = reflect(&mut one, &packet(mode, 0, 7)).unwrap();
        assert_eq!(reflect(&mut other, &answer), Err(NotStamp::Answer.into()));
        assert_eq!((other.counts.answers, other.counts.reflected), (1, 0));
    }
}

/// Packets from a port at these times, with the number of session 1; returns how many were answered.
fn answered(reflector: &mut Reflector, port: u16, times: impl Iterator<Item = i64>) -> usize {
    let packet = packet(Mode::Open, 0, 1);
    let mut answer = Vec::new();
    let is_answered = |at: &i64| {
        let arrival = Arrival { at: Time::from_nanos(ARRIVAL + at), ..arrival(&packet, port) };
        reflector.reflect(&arrival, &mut Ticking(ARRIVAL + at), &mut answer).is_ok()
    };
    times.filter(is_answered).count()
}

#[test]
fn session_is_answered_at_most_at_the_max_rate() {
    let limit = RateLimit::per_second(std::num::NonZeroU32::new(100).unwrap());
    let mut reflector = Reflector::new(None).with_limit(limit);
    // For a second, at ten times the rate, after a full second of credit.
    let flood = (0..1000).map(|nth| nth * 1_000_000);
    assert_eq!(answered(&mut reflector, 4000, flood), 199);
    assert_eq!((reflector.counts.reflected, reflector.counts.limited), (199, 801));
    // The numbers of answers have no gap.
    let later = ARRIVAL + 60_000_000_000;
    let packet = packet(Mode::Open, 0, 1);
    let arrival = Arrival { at: Time::from_nanos(later), ..arrival(&packet, 4000) };
    let next = reflector.reflect(&arrival, &mut Ticking(later), &mut Vec::new()).unwrap();
    assert_eq!(next.number, 199);
}

/// The flood uses the number of the session, and comes from other ports.
#[test]
fn flood_with_the_number_of_a_session_does_not_limit_it() {
    let limit = RateLimit::per_second(std::num::NonZeroU32::new(100).unwrap());
    let mut reflector = Reflector::new(None).with_limit(limit);
    for second in 0..10 {
        let begin = second * 1_000_000_000;
        let flood = |count: i64| (0..count).map(move |nth| begin + nth);
        answered(&mut reflector, 4001, flood(10_000));
        for port in 5000..6000 {
            answered(&mut reflector, port, flood(1));
        }
        let own = (0..100).map(|nth| begin + nth * 10_000_000);
        assert_eq!(answered(&mut reflector, 4000, own), 100);
    }
    assert_eq!(reflector.counts.limited, 10 * 9_900);
}

/// Packets with a wrong code use up nothing of the session, even from its own address.
#[test]
fn forged_packets_do_not_limit_their_session() {
    let (key, limit) = (key(), RateLimit::per_second(std::num::NonZeroU32::MIN));
    let mut reflector = Reflector::new(Some(key.clone())).with_limit(limit);
    let mut forged = packet(Mode::Authenticated(&key), 1, 1);
    forged[100] ^= 1;
    for _ in 0..100 {
        assert_eq!(reflect(&mut reflector, &forged), Err(NotStamp::Forged.into()));
    }
    let right = packet(Mode::Authenticated(&key), 1, 1);
    assert!(reflect(&mut reflector, &right).is_ok());
    let limited = reflect(&mut reflector, &right);
    assert!(matches!(limited, Err(Unanswered::Limited { session: 1, .. })), "{limited:?}");
    assert_eq!((reflector.counts.forged, reflector.counts.limited), (100, 1));
}

/// Padding of TWAMP Light senders lies where answers have their receive time.
#[test]
fn random_padding_is_no_answer() {
    let mut reflector = Reflector::new(None);
    let mut padded = packet(Mode::Open, 0, 7);
    padded.truncate(14);
    padded.extend([0xa5; 60]);
    assert!(reflect(&mut reflector, &padded).is_ok());
}

proptest! {
    #[test]
    fn answers_to_any_bytes_keep_their_length(
        bytes in prop::collection::vec(any::<u8>(), 0..300), is_open: bool,
    ) {
        let mut reflector = Reflector::new((!is_open).then(key));
        if let Ok((_, answer)) = reflect(&mut reflector, &bytes) {
            // An extension with a length beyond the packet is returned with its actual length.
            prop_assert_eq!(answer.len(), bytes.len().max(44));
        }
    }
}
