//! PTP management messages (IEEE 1588-2008 section 15), which ptp4l answers on its socket.
//!
//! | message, at | octets | fields |
//! |---|---|---|
//! | 0 | 1, 1, 2 | message type, 13 in the low four bits; version; length |
//! | 4 | 1 | domain |
//! | 20 | 10 | sender's port identity |
//! | 30 | 2 | sequence number of the request |
//! | 34 | 10 | target port identity: all ports |
//! | 46 | 1 | action in the low four bits: 0 get, 2 response |
//! | 48 | 2, 2, 2 | TLV type 1; its length; management identifier |

use thiserror::Error;

use super::status::{ClockSource, SyncStatus};
use crate::Span;

/// Octets of the longest reply that is read.
pub(super) const MAX_REPLY: usize = 1500;

const MANAGEMENT: u8 = 0xd;
const VERSION: u8 = 2;
const GET: u8 = 0;
const RESPONSE: u8 = 2;
const TLV_MANAGEMENT: u16 = 1;
/// Octets before the data.
const HEADER: usize = 54;
/// Octets of the management identifier, which the TLV length includes.
const ID_LENGTH: usize = 2;

/// Data set of a management message.
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

/// Encodes a request for a data set to ptp4l of domain 0. The reply repeats `number`.
#[must_use]
pub fn management_request(id: ManagementId, number: u16) -> [u8; HEADER] {
    let mut request = [0; HEADER];
    request[0] = MANAGEMENT;
    request[1] = VERSION;
    request[2..4].copy_from_slice(&length(HEADER));
    // A port number that no clock uses: ptp4l ignores messages from its own port identity.
    request[29] = 1;
    request[30..32].copy_from_slice(&number.to_be_bytes());
    request[32..34].copy_from_slice(&[4, 0x7f]);
    request[34..44].copy_from_slice(&[0xff; 10]);
    request[46] = GET;
    request[48..50].copy_from_slice(&TLV_MANAGEMENT.to_be_bytes());
    request[50..52].copy_from_slice(&length(ID_LENGTH));
    request[52..54].copy_from_slice(&id.number().to_be_bytes());
    request
}

fn length(octets: usize) -> [u8; 2] {
    u16::try_from(octets).unwrap_or(u16::MAX).to_be_bytes()
}

/// Error of a parser of management replies.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
pub enum ManagementError {
    /// Inconsistent or unexpected length.
    #[error("{0} octets are not a complete reply")]
    Length(usize),
    /// Unsupported version of PTP.
    #[error("version {0} of PTP instead of {VERSION}")]
    Version(u8),
    /// Reply to another request, or an error report of ptp4l.
    #[error("the message does not answer the request")]
    OtherRequest,
}

/// Data of the reply to request `number` for `id`.
fn data<const N: usize>(
    message: &[u8],
    id: ManagementId,
    number: u16,
) -> Result<[u8; N], ManagementError> {
    let wrong_length = ManagementError::Length(message.len());
    let (header, rest) = message.split_first_chunk::<HEADER>().ok_or(wrong_length)?;
    let short = |at: usize| u16::from_be_bytes([header[at], header[at + 1]]);
    if header[1] & 0xf != VERSION {
        return Err(ManagementError::Version(header[1] & 0xf));
    }
    let is_reply = header[0] & 0xf == MANAGEMENT
        && header[46] & 0xf == RESPONSE
        && (short(30), short(48), short(52)) == (number, TLV_MANAGEMENT, id.number());
    if !is_reply {
        return Err(ManagementError::OtherRequest);
    }
    let is_complete =
        usize::from(short(2)) == HEADER + N && usize::from(short(50)) == ID_LENGTH + N;
    // A message may be padded at its end.
    let data = rest.first_chunk().filter(|_| is_complete);
    data.copied().ok_or(wrong_length)
}

/// `TIME_STATUS_NP`: ptp4l's offset and grandmaster.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TimeStatus {
    /// Last measured offset: ptp4l's clock minus its master's.
    pub offset: Span,
    /// Identity of the grandmaster clock; none if ptp4l's own clock is the grandmaster.
    pub grandmaster: Option<[u8; 8]>,
}

impl TimeStatus {
    /// Parses the reply to request `number`.
    ///
    /// # Errors
    /// [`ManagementError`].
    pub fn parse(message: &[u8], number: u16) -> Result<Self, ManagementError> {
        let data: [u8; 50] = data(message, ManagementId::TimeStatus, number)?;
        let offset = i64::from_be_bytes(octets(&data, 0));
        let is_present = u32::from_be_bytes(octets(&data, 38)) != 0;
        let grandmaster = is_present.then(|| octets(&data, 42));
        Ok(Self { offset: Span::from_nanos(offset), grandmaster })
    }
}

/// `CURRENT_DATA_SET`: ptp4l's offset and path delay.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CurrentDataSet {
    /// Number of clocks on the path to the grandmaster, including the grandmaster.
    pub steps_removed: u16,
    /// Last measured offset: ptp4l's clock minus its master's.
    pub offset_from_master: Span,
    /// One-way delay from the master, if the path is symmetric.
    pub mean_path_delay: Span,
}

impl CurrentDataSet {
    /// Parses the reply to request `number`.
    ///
    /// # Errors
    /// [`ManagementError`].
    pub fn parse(message: &[u8], number: u16) -> Result<Self, ManagementError> {
        let data: [u8; 18] = data(message, ManagementId::CurrentDataSet, number)?;
        // Nanoseconds with 16 fractional bits.
        let interval = |at: usize| Span::from_nanos(i64::from_be_bytes(octets(&data, at)) >> 16);
        Ok(Self {
            steps_removed: u16::from_be_bytes(octets(&data, 0)),
            offset_from_master: interval(2),
            mean_path_delay: interval(10),
        })
    }
}

/// `N` octets from `at`, which lie within `data`.
fn octets<const N: usize>(data: &[u8], at: usize) -> [u8; N] {
    data.get(at..).and_then(|rest| rest.first_chunk()).copied().unwrap_or([0; N])
}

/// Sync status of the clock; none if ptp4l is the grandmaster, because another program may steer that clock.
///
/// The error is the offset plus the mean path delay: a message from the master takes between zero and twice that
/// delay. ptp4l has no information about errors of the grandmaster and of boundary clocks on the path.
pub(super) fn status(time: &TimeStatus, current: &CurrentDataSet) -> Option<SyncStatus> {
    let grandmaster = time.grandmaster?;
    let offset = time.offset.abs().max(current.offset_from_master.abs());
    let [begin, middle, end] = [&grandmaster[..3], &grandmaster[3..5], &grandmaster[5..]];
    let hex = |octets: &[u8]| octets.iter().map(|it| format!("{it:02x}")).collect::<String>();
    Some(SyncStatus {
        clock_source: ClockSource::Ptp4l,
        reference: Some([hex(begin), hex(middle), hex(end)].join(".")),
        stratum: None,
        offset: time.offset,
        error: Some(offset + current.mean_path_delay.abs()),
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn reply_to(id: ManagementId, number: u16, data: &[u8]) -> Vec<u8> {
        let mut reply = management_request(id, number).to_vec();
        reply[46] = RESPONSE;
        reply[3] += u8::try_from(data.len()).unwrap();
        reply[51] += u8::try_from(data.len()).unwrap();
        reply.extend(data);
        reply
    }

    fn time_status(offset: i64, is_present: u32) -> Vec<u8> {
        let mut data = offset.to_be_bytes().to_vec();
        data.extend([0; 30]);
        data.extend(is_present.to_be_bytes());
        data.extend([0xaa, 0xbb, 0xcc, 0xff, 0xfe, 1, 2, 3]);
        data
    }

    fn current_data_set(steps: u16, offset: i64, delay: i64) -> Vec<u8> {
        let intervals = [offset, delay].map(|it| it.wrapping_shl(16).to_be_bytes());
        [&steps.to_be_bytes()[..], &intervals.concat()].concat()
    }

    #[test]
    fn replies_are_parsed_and_combined() {
        let time = reply_to(ManagementId::TimeStatus, 7, &time_status(-300, 1));
        let time = TimeStatus::parse(&time, 7).unwrap();
        let current = reply_to(ManagementId::CurrentDataSet, 8, &current_data_set(1, -290, 5000));
        // Padded, as on Ethernet.
        let current = CurrentDataSet::parse(&[current, vec![0; 3]].concat(), 8).unwrap();
        let expected = CurrentDataSet {
            steps_removed: 1,
            offset_from_master: Span::from_nanos(-290),
            mean_path_delay: Span::from_nanos(5000),
        };
        assert_eq!(current, expected);
        let sync = status(&time, &current).unwrap();
        assert_eq!(sync.to_string(), "ptp4l, aabbcc.fffe.010203, ±5.3 us");
        assert_eq!(sync.offset, Span::from_nanos(-300));
        let alone = reply_to(ManagementId::TimeStatus, 9, &time_status(0, 0));
        assert_eq!(status(&TimeStatus::parse(&alone, 9).unwrap(), &current), None);
    }

    #[test]
    fn invalid_replies_are_rejected() {
        let good = reply_to(ManagementId::TimeStatus, 7, &time_status(0, 1));
        let changed = |at: usize, octet: u8| {
            let mut reply = good.clone();
            reply[at] = octet;
            TimeStatus::parse(&reply, 7).unwrap_err()
        };
        assert_eq!(changed(1, 1), ManagementError::Version(1));
        for (at, octet) in [(0, 0), (31, 8), (46, GET), (49, 2), (53, 1)] {
            assert_eq!(changed(at, octet), ManagementError::OtherRequest, "{at}");
        }
        for at in [3, 51] {
            assert_eq!(changed(at, 9), ManagementError::Length(104), "{at}");
        }
        assert_eq!(TimeStatus::parse(&good[..103], 7), Err(ManagementError::Length(103)));
        assert_eq!(TimeStatus::parse(&good[..53], 7), Err(ManagementError::Length(53)));
        assert_eq!(CurrentDataSet::parse(&good, 7), Err(ManagementError::OtherRequest));
    }

    proptest! {
        #[test]
        fn all_values_are_parsed(
            number: u16,
            steps: u16,
            offset in -(1_i64 << 47)..1 << 47,
            delay in -(1_i64 << 47)..1 << 47,
            time_offset: i64,
        ) {
            let data = current_data_set(steps, offset, delay);
            let reply = reply_to(ManagementId::CurrentDataSet, number, &data);
            let current = CurrentDataSet::parse(&reply, number).unwrap();
            prop_assert_eq!(current.offset_from_master, Span::from_nanos(offset));
            prop_assert_eq!(current.mean_path_delay, Span::from_nanos(delay));
            prop_assert_eq!(current.steps_removed, steps);
            let reply = reply_to(ManagementId::TimeStatus, number, &time_status(time_offset, 1));
            let time = TimeStatus::parse(&reply, number).unwrap();
            prop_assert_eq!(time.offset, Span::from_nanos(time_offset));
            let error = status(&time, &current).unwrap().error.unwrap();
            prop_assert!(error >= current.mean_path_delay.abs());
        }

        #[test]
        fn arbitrary_octets_do_not_panic(octets in prop::collection::vec(any::<u8>(), 0..120), number: u16) {
            let _ = (TimeStatus::parse(&octets, number), CurrentDataSet::parse(&octets, number));
        }
    }
}
