//! The path of one packet through the host, as recorded by `bpf/layers.bpf.c`.

use serde::Serialize;
use strum::{IntoStaticStr, VariantArray};

use super::{Direction, Point};

/// The layout of `struct journey` in the BPF program, native byte order.
mod layout {
    use std::ops::Range;

    pub(super) const TIMES: usize = 0;
    pub(super) const OWN: usize = 32;
    pub(super) const CARD: usize = 48;
    pub(super) const LENGTH: usize = 56;
    pub(super) const REASON: usize = 60;
    pub(super) const CAPTURED: Range<usize> = 64..66;
    pub(super) const END: usize = 66;
    pub(super) const HEAD: usize = 80;
    pub(super) const BYTES: usize = HEAD + 192;
}

/// End of a packet's path through the host, in the order of the numbers in the BPF program.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, IntoStaticStr, VariantArray,
)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
#[strum(serialize_all = "kebab-case")]
pub enum End {
    /// None yet: on its way or in a queue at the end of the measurement. Includes segments that TCP merged with
    /// others, because it frees them without an event.
    Open,
    /// Read by an application.
    Read,
    /// Dropped by the kernel, with its reason.
    Dropped,
    /// Consumed by the kernel: an acknowledgement, an ARP or an ICMP packet.
    Consumed,
    /// Merged by GRO with the packet before it, which now contains its bytes.
    Joined,
    /// Forwarded to another interface.
    Forwarded,
    /// Not observed: the kernel reused its memory for another packet.
    Unknown,
    /// Completed by the driver.
    Sent,
    /// Split into other packets, such as the segments of a large one.
    Split,
}

impl End {
    /// Name in the output and in the JSON.
    #[must_use]
    pub fn name(self) -> &'static str {
        self.into()
    }
}

/// One packet's path through the host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Journey {
    /// Direction of the packet.
    pub direction: Direction,
    /// Time at each of the direction's points, if observed there: nanoseconds of `CLOCK_MONOTONIC`, read at the
    /// start of the program there.
    pub times: [Option<u64>; 4],
    /// Duration of the program at each point in nanoseconds, from that reading to its end; unknown for the last
    /// point.
    pub own: [u32; 4],
    /// The network card's stamp in nanoseconds of the card's clock, if there is one.
    pub card: Option<u64>,
    /// Frame length in bytes, at the first point.
    pub length: u32,
    /// End of the path.
    pub end: End,
    /// Drop reason: `enum skb_drop_reason` of the kernel (include/net/dropreason-core.h); [`super::Reasons`] has
    /// the names.
    pub reason: u32,
    /// First bytes of the frame, from the Ethernet header on: max 192, and not beyond its first contiguous part.
    pub head: Vec<u8>,
}

impl Journey {
    /// Parses a record of the BPF program; `None` if it is invalid.
    pub(super) fn read(bytes: &[u8], direction: Direction) -> Option<Self> {
        let bytes: &[u8; layout::BYTES] = bytes.try_into().ok()?;
        let captured = u16::from_ne_bytes(bytes[layout::CAPTURED].try_into().ok()?);
        Some(Self {
            direction,
            times: std::array::from_fn(|point| present(long(bytes, layout::TIMES + 8 * point))),
            own: std::array::from_fn(|point| word(bytes, layout::OWN + 4 * point)),
            card: present(long(bytes, layout::CARD)),
            length: word(bytes, layout::LENGTH),
            end: *End::VARIANTS.get(usize::from(bytes[layout::END]))?,
            reason: word(bytes, layout::REASON),
            head: bytes[layout::HEAD..].get(..usize::from(captured))?.to_vec(),
        })
    }

    /// Time of the packet at `point`, as in [`Self::times`].
    #[must_use]
    pub fn time(&self, point: Point) -> Option<u64> {
        self.times[self.number(point)?]
    }

    /// Nanoseconds from one point to a later one, minus the durations of the programs at the first and between the
    /// two; `None` if it was not observed at both.
    ///
    /// The entry and exit of these programs remain included.
    #[must_use]
    pub fn between(&self, from: Point, to: Point) -> Option<u64> {
        let whole = self.time(to)?.checked_sub(self.time(from)?)?;
        let own = self.own.get(self.number(from)?..self.number(to)?)?;
        Some(whole.saturating_sub(own.iter().copied().map(u64::from).sum()))
    }

    /// The last point at which it was observed.
    #[must_use]
    pub fn last(&self) -> Option<Point> {
        self.direction.points().into_iter().rev().find(|&point| self.time(point).is_some())
    }

    /// Index of the point in the direction's points.
    fn number(&self, point: Point) -> Option<usize> {
        self.direction.points().iter().position(|&other| other == point)
    }
}

fn present(value: u64) -> Option<u64> {
    (value != 0).then_some(value)
}

fn long(bytes: &[u8; layout::BYTES], at: usize) -> u64 {
    u64::from_ne_bytes(std::array::from_fn(|byte| bytes[at + byte]))
}

fn word(bytes: &[u8; layout::BYTES], at: usize) -> u32 {
    u32::from_ne_bytes(std::array::from_fn(|byte| bytes[at + byte]))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A packet that was dropped at the socket.
    fn record() -> [u8; layout::BYTES] {
        let mut record = [0; layout::BYTES];
        for (at, time) in [100_u64, 250, 300].into_iter().enumerate() {
            record[8 * at..][..8].copy_from_slice(&time.to_ne_bytes());
        }
        record[layout::OWN..][..4].copy_from_slice(&40_u32.to_ne_bytes());
        record[layout::OWN + 4..][..4].copy_from_slice(&7_u32.to_ne_bytes());
        record[layout::LENGTH..][..4].copy_from_slice(&1514_u32.to_ne_bytes());
        record[layout::REASON..][..4].copy_from_slice(&6_u32.to_ne_bytes());
        record[layout::CAPTURED].copy_from_slice(&3_u16.to_ne_bytes());
        record[layout::END] = 2;
        record[layout::HEAD..][..4].copy_from_slice(&[1, 2, 3, 4]);
        record
    }

    #[test]
    fn record_has_times_and_end() {
        let journey = Journey::read(&record(), Direction::In).unwrap();
        let times = Direction::In.points().map(|point| journey.time(point));
        assert_eq!(times, [Some(100), Some(250), Some(300), None]);
        assert_eq!((journey.last(), journey.card), (Some(Point::Socket), None));
        assert_eq!((journey.length, journey.end, journey.reason), (1514, End::Dropped, 6));
        assert_eq!(journey.head, [1, 2, 3]);
    }

    #[test]
    fn sent_packet_has_other_points() {
        let journey = Journey::read(&record(), Direction::Out).unwrap();
        assert_eq!((journey.time(Point::Socket), journey.last()), (Some(100), Some(Point::Driver)));
        assert_eq!((journey.time(Point::Stack), journey.time(Point::Sent)), (None, None));
        assert_eq!(journey.between(Point::Socket, Point::Driver), Some(153));
    }

    #[test]
    fn program_time_is_subtracted() {
        let journey = Journey::read(&record(), Direction::In).unwrap();
        let between = |from, to| journey.between(from, to);
        assert_eq!(between(Point::Driver, Point::Stack), Some(110));
        assert_eq!(between(Point::Stack, Point::Socket), Some(43));
        assert_eq!(between(Point::Driver, Point::Socket), Some(153));
        assert_eq!(between(Point::Socket, Point::Application), None);
        assert_eq!(between(Point::Socket, Point::Stack), None);
    }

    #[test]
    fn invalid_records_are_rejected() {
        let read = |bytes: &[u8]| Journey::read(bytes, Direction::In);
        let mut record = record();
        assert_eq!(read(&record[1..]), None);
        record[layout::END] = 9;
        assert_eq!(read(&record), None);
        record[layout::END] = 6;
        record[layout::CAPTURED].copy_from_slice(&193_u16.to_ne_bytes());
        assert_eq!(read(&record), None);
    }
}
