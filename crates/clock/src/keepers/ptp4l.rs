//! What ptp4l says when it is asked: management messages of PTP (IEEE 1588-2008 section 15) over its socket.
//!
//! | message, at | octets | what |
//! |---|---|---|
//! | 0 | 1, 1, 2 | the type, 13 in its low half; version; length |
//! | 4 | 1 | domain |
//! | 20 | 10 | who sends it |
//! | 30 | 2 | the number of the request |
//! | 34 | 10 | whom it is for: everybody |
//! | 46 | 1 | what is wanted, in its low half: 0 to get, 2 to respond |
//! | 48 | 2, 2, 2 | one field of type 1; its length; which data |

use thiserror::Error;

use super::{Keeper, Statement};
use crate::Span;

/// Octets of the longest answer that is read.
pub(super) const LONGEST: usize = 1500;

const MANAGEMENT: u8 = 0xd;
const VERSION: u8 = 2;
const GET: u8 = 0;
const RESPONSE: u8 = 2;
const TLV_MANAGEMENT: u16 = 1;
/// Octets in front of the data.
const HEAD: usize = 54;
/// Octets of the field's length that are no data.
const ID_LENGTH: usize = 2;

/// Which data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ManagementId {
    /// `CURRENT_DATA_SET` of IEEE 1588.
    CurrentDataSet,
    /// `TIME_STATUS_NP` of ptp4l.
    TimeStatus,
}

impl ManagementId {
    const fn number(self) -> u16 {
        match self {
            Self::CurrentDataSet => 0x2001,
            Self::TimeStatus => 0xc000,
        }
    }
}

/// Asks ptp4l of domain 0 for data; the answer has the same number.
#[must_use]
pub fn management_request(what: ManagementId, number: u16) -> [u8; HEAD] {
    let mut request = [0; HEAD];
    request[0] = MANAGEMENT;
    request[1] = VERSION;
    request[2..4].copy_from_slice(&length(HEAD));
    // A port of nobody's clock: ptp4l does not heed messages of its own.
    request[29] = 1;
    request[30..32].copy_from_slice(&number.to_be_bytes());
    request[32..34].copy_from_slice(&[4, 0x7f]);
    request[34..44].copy_from_slice(&[0xff; 10]);
    request[46] = GET;
    request[48..50].copy_from_slice(&TLV_MANAGEMENT.to_be_bytes());
    request[50..52].copy_from_slice(&length(ID_LENGTH));
    request[52..54].copy_from_slice(&what.number().to_be_bytes());
    request
}

fn length(octets: usize) -> [u8; 2] {
    u16::try_from(octets).unwrap_or(u16::MAX).to_be_bytes()
}

/// Why something is no answer.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
pub enum NotManagement {
    /// It is not as long as it says, or as it has to be.
    #[error("{0} octets are not a whole answer")]
    Length(usize),
    /// It is of another version of PTP.
    #[error("version {0} of PTP, and not {VERSION}")]
    Version(u8),
    /// It does not answer this request, or says that ptp4l cannot.
    #[error("no answer to what was asked")]
    Other,
}

/// The data of an answer to a request of this number.
fn data<const N: usize>(
    message: &[u8],
    what: ManagementId,
    number: u16,
) -> Result<[u8; N], NotManagement> {
    let wrong_length = NotManagement::Length(message.len());
    let (head, behind) = message.split_first_chunk::<HEAD>().ok_or(wrong_length)?;
    let short = |at: usize| u16::from_be_bytes([head[at], head[at + 1]]);
    if head[1] & 0xf != VERSION {
        return Err(NotManagement::Version(head[1] & 0xf));
    }
    let is_answer = head[0] & 0xf == MANAGEMENT
        && head[46] & 0xf == RESPONSE
        && (short(30), short(48), short(52)) == (number, TLV_MANAGEMENT, what.number());
    if !is_answer {
        return Err(NotManagement::Other);
    }
    let is_whole = usize::from(short(2)) == HEAD + N && usize::from(short(50)) == ID_LENGTH + N;
    // Behind its end a message may be padded.
    let data = behind.first_chunk().filter(|_| is_whole);
    data.copied().ok_or(wrong_length)
}

/// What ptp4l follows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TimeStatus {
    /// How far its clock was ahead of its master's when it was compared last.
    pub ahead: Span,
    /// The identity of the clock that all follow; none if that is its own.
    pub grandmaster: Option<[u8; 8]>,
}

impl TimeStatus {
    /// Reads the answer to the request of this number.
    ///
    /// # Errors
    /// [`NotManagement`].
    pub fn parse(message: &[u8], number: u16) -> Result<Self, NotManagement> {
        let data: [u8; 50] = data(message, ManagementId::TimeStatus, number)?;
        let ahead = i64::from_be_bytes(octets(&data, 0));
        let is_there = u32::from_be_bytes(octets(&data, 38)) != 0;
        let grandmaster = is_there.then(|| octets(&data, 42));
        Ok(Self { ahead: Span::from_nanos(ahead), grandmaster })
    }
}

/// How ptp4l's clock does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CurrentDataSet {
    /// How many clocks are between it and the grandmaster, with that one.
    pub steps_removed: u16,
    /// How far its clock was ahead of its master's when it was compared last.
    pub offset_from_master: Span,
    /// How long messages take from its master to it, if they take as long in both directions.
    pub mean_path_delay: Span,
}

impl CurrentDataSet {
    /// Reads the answer to the request of this number.
    ///
    /// # Errors
    /// [`NotManagement`].
    pub fn parse(message: &[u8], number: u16) -> Result<Self, NotManagement> {
        let data: [u8; 18] = data(message, ManagementId::CurrentDataSet, number)?;
        // Nanoseconds and 16 bits of their fractions.
        let interval = |at: usize| Span::from_nanos(i64::from_be_bytes(octets(&data, at)) >> 16);
        Ok(Self {
            steps_removed: u16::from_be_bytes(octets(&data, 0)),
            offset_from_master: interval(2),
            mean_path_delay: interval(10),
        })
    }
}

/// Those from a place on, which lie within.
fn octets<const N: usize>(data: &[u8], at: usize) -> [u8; N] {
    data.get(at..).and_then(|rest| rest.first_chunk()).copied().unwrap_or([0; N])
}

/// That of the clock; none if ptp4l follows nobody: others may keep the clock that it gives away.
///
/// The error is the offset and the mean delay of the path, because a message from the master may have taken no
/// time at all, or twice as much. How wrong the grandmaster and boundary clocks on the way are, ptp4l is not told.
pub(super) fn statement(status: &TimeStatus, current: &CurrentDataSet) -> Option<Statement> {
    let grandmaster = status.grandmaster?;
    let offset = status.ahead.abs().max(current.offset_from_master.abs());
    let [begin, middle, end] = [&grandmaster[..3], &grandmaster[3..5], &grandmaster[5..]];
    let hex = |octets: &[u8]| octets.iter().map(|it| format!("{it:02x}")).collect::<String>();
    Some(Statement {
        by: Keeper::Ptp4l,
        source: Some([hex(begin), hex(middle), hex(end)].join(".")),
        stratum: None,
        ahead: status.ahead,
        error: Some(offset + current.mean_path_delay.abs()),
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn answer(what: ManagementId, number: u16, data: &[u8]) -> Vec<u8> {
        let mut answer = management_request(what, number).to_vec();
        answer[46] = RESPONSE;
        answer[3] += u8::try_from(data.len()).unwrap();
        answer[51] += u8::try_from(data.len()).unwrap();
        answer.extend(data);
        answer
    }

    fn time_status(ahead: i64, is_there: u32) -> Vec<u8> {
        let mut data = ahead.to_be_bytes().to_vec();
        data.extend([0; 30]);
        data.extend(is_there.to_be_bytes());
        data.extend([0xaa, 0xbb, 0xcc, 0xff, 0xfe, 1, 2, 3]);
        data
    }

    fn current_data_set(steps: u16, offset: i64, delay: i64) -> Vec<u8> {
        let intervals = [offset, delay].map(|it| it.wrapping_shl(16).to_be_bytes());
        [&steps.to_be_bytes()[..], &intervals.concat()].concat()
    }

    #[test]
    fn what_ptp4l_says_is_read() {
        let status = answer(ManagementId::TimeStatus, 7, &time_status(-300, 1));
        let status = TimeStatus::parse(&status, 7).unwrap();
        let current = answer(ManagementId::CurrentDataSet, 8, &current_data_set(1, -290, 5000));
        // Padded, as on Ethernet.
        let current = CurrentDataSet::parse(&[current, vec![0; 3]].concat(), 8).unwrap();
        let expected = CurrentDataSet {
            steps_removed: 1,
            offset_from_master: Span::from_nanos(-290),
            mean_path_delay: Span::from_nanos(5000),
        };
        assert_eq!(current, expected);
        let said = statement(&status, &current).unwrap();
        assert_eq!(said.to_string(), "ptp4l, aabbcc.fffe.010203, ±5.3 us");
        assert_eq!(said.ahead, Span::from_nanos(-300));
        let alone = answer(ManagementId::TimeStatus, 9, &time_status(0, 0));
        assert_eq!(statement(&TimeStatus::parse(&alone, 9).unwrap(), &current), None);
    }

    #[test]
    fn what_is_no_answer_is_refused() {
        let good = answer(ManagementId::TimeStatus, 7, &time_status(0, 1));
        let changed = |at: usize, octet: u8| {
            let mut answer = good.clone();
            answer[at] = octet;
            TimeStatus::parse(&answer, 7).unwrap_err()
        };
        assert_eq!(changed(1, 1), NotManagement::Version(1));
        for (at, octet) in [(0, 0), (31, 8), (46, GET), (49, 2), (53, 1)] {
            assert_eq!(changed(at, octet), NotManagement::Other, "{at}");
        }
        for at in [3, 51] {
            assert_eq!(changed(at, 9), NotManagement::Length(104), "{at}");
        }
        assert_eq!(TimeStatus::parse(&good[..103], 7), Err(NotManagement::Length(103)));
        assert_eq!(TimeStatus::parse(&good[..53], 7), Err(NotManagement::Length(53)));
        assert_eq!(CurrentDataSet::parse(&good, 7), Err(NotManagement::Other));
    }

    proptest! {
        #[test]
        fn every_value_is_read(
            number: u16,
            steps: u16,
            offset in -(1_i64 << 47)..1 << 47,
            delay in -(1_i64 << 47)..1 << 47,
            ahead: i64,
        ) {
            let data = current_data_set(steps, offset, delay);
            let answered = answer(ManagementId::CurrentDataSet, number, &data);
            let current = CurrentDataSet::parse(&answered, number).unwrap();
            prop_assert_eq!(current.offset_from_master, Span::from_nanos(offset));
            prop_assert_eq!(current.mean_path_delay, Span::from_nanos(delay));
            prop_assert_eq!(current.steps_removed, steps);
            let answered = answer(ManagementId::TimeStatus, number, &time_status(ahead, 1));
            let status = TimeStatus::parse(&answered, number).unwrap();
            prop_assert_eq!(status.ahead, Span::from_nanos(ahead));
            let error = statement(&status, &current).unwrap().error.unwrap();
            prop_assert!(error >= current.mean_path_delay.abs());
        }

        #[test]
        fn no_octets_harm(octets in prop::collection::vec(any::<u8>(), 0..120), number: u16) {
            let _ = (TimeStatus::parse(&octets, number), CurrentDataSet::parse(&octets, number));
        }
    }
}
