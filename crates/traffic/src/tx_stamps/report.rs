//! One message of the error queue: control messages, cmsg(3).

use wirestamp_clock::{Time, Utc};

use super::StampKind;

/// The size of the word that control messages are aligned to, and that holds their length.
const WORD: usize = size_of::<usize>();
/// The header: the length of the whole, a level and a type.
const HEADER: usize = (WORD + 2 * size_of::<libc::c_int>()).next_multiple_of(WORD);
/// The extended error, and the longest address that may follow it (ip(7), `IP_RECVERR`).
const ERROR: usize = size_of::<libc::sock_extended_err>() + size_of::<libc::sockaddr_in6>();
/// Three times (struct `scm_timestamping`, linux/errqueue.h).
const TIMES: usize = 3 * size_of::<libc::timespec>();

/// The room that the messages about a stamp take.
pub(super) const ROOM: usize =
    2 * HEADER + ERROR.next_multiple_of(WORD) + TIMES.next_multiple_of(WORD);

/// `SO_EE_ORIGIN_TIMESTAMPING`, `SCM_TSTAMP_SND` and `SCM_TSTAMP_SCHED` (linux/errqueue.h).
const ORIGIN_TIMESTAMPING: u8 = 4;
const SENT: u32 = 0;
const SCHEDULED: u32 = 1;

/// A stamp as it comes from the kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Report {
    /// Which packet of the socket, counted from 0 and modulo 2^32.
    pub(super) number: u32,
    pub(super) kind: StampKind,
    pub(super) time: Time<Utc>,
}

impl Report {
    /// What the control messages say; none if they are not about a stamp.
    pub(super) fn read(control: &[u8]) -> Option<Self> {
        let (mut times, mut error, mut rest) = (None, None, control);
        while let Some((message, next)) = split(rest) {
            match (message.level, message.kind) {
                (libc::SOL_SOCKET, libc::SCM_TIMESTAMPING) => times = Some(message.data),
                (libc::SOL_IP, libc::IP_RECVERR)
                | (libc::SOL_IPV6, libc::IPV6_RECVERR)
                | (libc::SOL_PACKET, libc::PACKET_TX_TIMESTAMP) => error = Some(message.data),
                _ => {}
            }
            rest = next;
        }
        Self::combine(times?, error?)
    }

    /// Struct `sock_extended_err`: error, origin, type, code, a gap, the kind, the number.
    fn combine(times: &[u8], error: &[u8]) -> Option<Self> {
        let word = |offset: usize| Some(u32::from_ne_bytes(*error.get(offset..)?.first_chunk()?));
        let (origin, kind, number) = (*error.get(4)?, word(8)?, word(12)?);
        // The first time is software's, the third hardware's; a time that is not there is 0.
        let (kind, time) = match (origin, kind, time(times, 0), time(times, 2)) {
            (ORIGIN_TIMESTAMPING, SCHEDULED, Some(time), _) => (StampKind::Sched, time),
            (ORIGIN_TIMESTAMPING, SENT, Some(time), _) => (StampKind::Software, time),
            (ORIGIN_TIMESTAMPING, SENT, None, Some(time)) => (StampKind::Hardware, time),
            _ => return None,
        };
        Some(Self { number, kind, time })
    }
}

struct Message<'a> {
    level: libc::c_int,
    kind: libc::c_int,
    data: &'a [u8],
}

/// The first message, and what follows it; none if there is no whole one.
fn split(bytes: &[u8]) -> Option<(Message<'_>, &[u8])> {
    let number = |offset: usize| {
        Some(libc::c_int::from_ne_bytes(*bytes.get(WORD + offset..)?.first_chunk()?))
    };
    let length = usize::from_ne_bytes(*bytes.first_chunk()?);
    let data = bytes.get(HEADER..length)?;
    let message = Message { level: number(0)?, kind: number(size_of::<libc::c_int>())?, data };
    // The last one need not be padded.
    Some((message, bytes.get(length.next_multiple_of(WORD)..).unwrap_or_default()))
}

/// The `nth` struct `timespec`, unless it is 0.
fn time(times: &[u8], nth: usize) -> Option<Time<Utc>> {
    let number =
        |offset: usize| Some(libc::c_long::from_ne_bytes(*times.get(offset..)?.first_chunk()?));
    let at = nth * size_of::<libc::timespec>();
    let nanos = number(at)?.checked_mul(1_000_000_000)?;
    let nanos = nanos.checked_add(number(at + size_of::<libc::c_long>())?)?;
    (nanos != 0).then_some(Time::from_nanos(nanos))
}

/// Takes any bytes for control messages.
#[cfg(any(test, fuzzing))]
pub(crate) fn read_any(bytes: &[u8]) {
    let _ = Report::read(bytes);
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn message(level: libc::c_int, kind: libc::c_int, data: &[u8]) -> Vec<u8> {
        let mut message = (HEADER + data.len()).to_ne_bytes().to_vec();
        message.extend(level.to_ne_bytes());
        message.extend(kind.to_ne_bytes());
        message.extend(data);
        message.resize(message.len().next_multiple_of(WORD), 0);
        message
    }

    /// Struct `scm_timestamping` with a software or a hardware time of so many seconds and 5 ns.
    fn times(software: i64, hardware: i64) -> Vec<u8> {
        let times = [software, hardware].map(|seconds| [seconds, if seconds == 0 { 0 } else { 5 }]);
        let times = [times[0], [0, 0], times[1]].concat();
        let bytes: Vec<_> = times.into_iter().flat_map(i64::to_ne_bytes).collect();
        message(libc::SOL_SOCKET, libc::SCM_TIMESTAMPING, &bytes)
    }

    fn error(level: libc::c_int, kind: libc::c_int, info: u32, number: u32) -> Vec<u8> {
        let error = [42, u32::from_ne_bytes([ORIGIN_TIMESTAMPING, 0, 0, 0]), info, number];
        message(level, kind, &error.map(u32::to_ne_bytes).concat())
    }

    #[test]
    fn each_kind_is_told_from_the_others_on_every_socket() {
        let sockets = [
            (libc::SOL_IP, libc::IP_RECVERR),
            (libc::SOL_IPV6, libc::IPV6_RECVERR),
            (libc::SOL_PACKET, libc::PACKET_TX_TIMESTAMP),
        ];
        for (level, option) in sockets {
            let cases = [
                (SCHEDULED, times(1, 0), StampKind::Sched, 1_000_000_005),
                (SENT, times(1, 0), StampKind::Software, 1_000_000_005),
                (SENT, times(0, 2), StampKind::Hardware, 2_000_000_005),
            ];
            for (info, times, kind, nanos) in cases {
                let said = [times, error(level, option, info, 7)].concat();
                assert!(said.len() <= ROOM);
                let time = Time::from_nanos(nanos);
                assert_eq!(Report::read(&said), Some(Report { number: 7, kind, time }));
            }
        }
    }

    #[test]
    fn what_is_not_about_a_stamp_is_none() {
        let error = error(libc::SOL_IP, libc::IP_RECVERR, SENT, 7);
        assert_eq!(Report::read(&error), None);
        assert_eq!(Report::read(&[times(0, 0), error].concat()), None);
        assert_eq!(Report::read(&times(1, 0)), None);
        assert_eq!(Report::read(&[]), None);
    }

    proptest! {
        #[test]
        fn no_bytes_lead_astray(bytes: [u8; 32], first in 0_usize..200, length in 0_usize..40) {
            let bytes = [&first.to_ne_bytes(), &bytes[..]].concat();
            read_any(&bytes[..length.min(bytes.len())]);
        }
    }
}
