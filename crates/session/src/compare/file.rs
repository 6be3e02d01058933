//! The observations of a capture file.

use std::collections::{BTreeSet, VecDeque};

use wirestamp_capture::file::{Packet, Provenance, Reader};
use wirestamp_capture::{CaptureLoss, Error, Filter};
use wirestamp_clock::{Domain, RawStamp, Span, Stamp, Time, Utc};
use wirestamp_metrics::Observation;
use wirestamp_packet::MatchRule;

use crate::point_state::PointState;

/// Largest accepted step back between stamps: the correlator's default tolerance.
const MAX_STEP_BACK: Span = Span::from_millis(100);

/// A capture file and its read position.
pub(super) struct File<'a> {
    pub(super) reader: Reader,
    filter: Option<&'a Filter>,
    partial: bool,
    /// The interfaces of the packets that were recognised.
    interfaces: BTreeSet<usize>,
    /// Observations of the last frame that are not returned yet.
    ready: VecDeque<Observation>,
    /// Max error of the stamp of the last frame, and its interface.
    frame: (Option<Span>, usize),
    pub(super) state: PointState,
    /// The latest stamp of all packets read, also of those that do not pass the filter.
    pub(super) latest: Option<Time<Utc>>,
    /// Packets lost by the capture whose times are in the file, and the losses not yet reported.
    dated: u64,
    missed: Vec<CaptureLoss>,
    pub(super) damage: Option<String>,
    disorder: Disorder,
}

/// Packets out of order: after packets with much later stamps.
#[derive(Clone, Copy, Debug, Default)]
struct Disorder {
    /// The latest stamp so far.
    latest: Option<Time<Utc>>,
    packets: u64,
    /// Max step back from the latest stamp.
    most: Span,
    /// Packets after packets with later stamps, also slightly later ones.
    earlier: u64,
}

impl Disorder {
    /// Records the next stamp. A step back of at most `bearable` counts as in order.
    fn record(&mut self, time: Time<Utc>, bearable: Span) {
        let latest = self.latest.map_or(time, |latest| latest.max(time));
        self.latest = Some(latest);
        self.earlier += u64::from(time < latest);
        if latest - time > bearable {
            self.packets += 1;
            self.most = self.most.max(latest - time);
        }
    }
}

impl<'a> File<'a> {
    /// Opens a file.
    pub(super) fn new(
        reader: Reader,
        partial: bool,
        filter: Option<&'a Filter>,
        state: PointState,
    ) -> Self {
        let (interfaces, disorder) = (BTreeSet::new(), Disorder::default());
        Self {
            reader,
            filter,
            partial,
            interfaces,
            ready: VecDeque::new(),
            frame: (None, 0),
            state,
            latest: None,
            dated: 0,
            missed: Vec::new(),
            damage: None,
            disorder,
        }
    }

    /// The next packet that passes the filter, has an identity, and is in the sample.
    pub(super) fn next(&mut self) -> Result<Option<Observation>, Error> {
        self.next_with(|_| {})
    }

    /// The same; `each` is called with all packets read that pass the filter.
    pub(super) fn next_with(
        &mut self,
        mut each: impl FnMut(&Packet<'_>),
    ) -> Result<Option<Observation>, Error> {
        if let Some(observation) = self.ready.pop_front() {
            return Ok(Some(observation));
        }
        while self.damage.is_none() {
            let mut packet = match self.reader.next_packet() {
                Ok(Some(packet)) => packet,
                Ok(None) => break,
                Err(error @ Error::NoInterfaceInFile { .. }) => return Err(error),
                Err(error) if self.partial => {
                    self.damage = Some(error.to_string());
                    break;
                }
                Err(error) => return Err(error),
            };
            self.missed.append(&mut packet.missed);
            self.latest = self.latest.max(Some(packet.time));
            if self.filter.is_some_and(|filter| !passes(filter, &packet)) {
                continue;
            }
            each(&packet);
            let stamp = stamp(packet.time);
            let Self { state, ready, .. } = self;
            state.take(packet.link, &packet.bytes, packet.length, stamp, |it| ready.push_back(it));
            if let Some(observation) = self.ready.pop_front() {
                self.interfaces.insert(packet.interface);
                self.frame = (packet.error, packet.interface);
                self.disorder.record(packet.time, MAX_STEP_BACK);
                return Ok(Some(observation));
            }
        }
        self.missed.extend(self.reader.take_missed());
        Ok(None)
    }

    /// The max error of the stamp of the last packet, if the file has it, and the index of its interface.
    pub(super) const fn frame(&self) -> (Option<Span>, usize) {
        self.frame
    }

    /// Packets lost by the capture between the last two packets read.
    pub(super) fn take_missed(&mut self) -> impl Iterator<Item = CaptureLoss> {
        let packets = self.missed.iter().map(|missed| missed.packets);
        self.dated = packets.fold(self.dated, u64::saturating_add);
        self.missed.drain(..)
    }

    /// Packets lost by the capture at times that are not in the file.
    pub(super) fn undated(&self) -> u64 {
        self.reader.capture_lost().map_or(0, |lost| lost.saturating_sub(self.dated))
    }

    /// Begins again with another rule.
    pub(super) fn switch(&mut self, rule: MatchRule) {
        self.state.switch(rule);
        self.ready.clear();
    }

    /// Packets after packets with later stamps.
    pub(super) const fn stamped_earlier(&self) -> u64 {
        self.disorder.earlier
    }

    /// Warnings about the file that limit the results.
    pub(super) fn remarks(&self) -> impl Iterator<Item = String> {
        let Disorder { packets, most, .. } = self.disorder;
        let disorder = (packets > 0).then(|| {
            format!(
                "{packets} packets of {} stand after others that were stamped up to {most} later, and may \
                 be missed where they belong: `reordercap` puts a file in order",
                self.reader.path().display()
            )
        });
        self.damage.clone().into_iter().chain(disorder)
    }

    /// Interfaces with packets in the comparison; all, if there is none.
    pub(super) fn used(&self) -> Vec<Option<&Provenance>> {
        let interfaces = self.reader.interfaces();
        let said = |place: usize| interfaces[place].provenance.as_ref();
        if self.interfaces.is_empty() {
            (0..interfaces.len()).map(said).collect()
        } else {
            self.interfaces.iter().copied().map(said).collect()
        }
    }
}

/// A file's stamps are system time already; their error is stated for the whole interface.
pub(super) fn stamp(time: Time<Utc>) -> Stamp {
    let value = u64::try_from(time.as_nanos()).unwrap_or(0);
    let raw = RawStamp { domain: Domain::Realtime, value };
    Stamp { raw, utc: time, error: Span::ZERO }
}

/// Filters are compiled for Ethernet frames: a frame of another link type gets an Ethernet header. Its length is that of
/// its own link type, as with tcpdump.
pub(crate) fn passes(filter: &Filter, packet: &Packet<'_>) -> bool {
    let frame = packet.link.as_ethernet(&packet.bytes);
    frame.is_some_and(|frame| filter.passes(&frame, packet.length))
}

#[cfg(test)]
mod tests {
    use wirestamp_packet::LinkType;

    use super::*;

    #[test]
    fn filters_compare_the_length_on_the_wire_of_every_link_type() {
        let ip = [&[0x45, 0, 3, 0xda][..], &[0; 92]].concat();
        let ethernet = [&[0; 12][..], &[8, 0], &ip].concat();
        let cooked = [&[8, 0][..], &[0; 18], &ip].concat();
        for (link, bytes) in [
            (LinkType::Ethernet, &ethernet),
            (LinkType::Ip, &ip),
            (LinkType::LinuxCooked2, &cooked),
        ] {
            let packet = Packet {
                interface: 0,
                time: Time::from_nanos(0),
                error: None,
                link,
                bytes: bytes.as_slice().into(),
                length: 1000,
                missed: Vec::new(),
            };
            for (expression, expected) in
                [("greater 500", true), ("len = 1000", true), ("greater 1001", false)]
            {
                let filter = Filter::compile(expression).unwrap();
                assert_eq!(passes(&filter, &packet), expected, "{link:?} {expression}");
            }
        }
    }
}
