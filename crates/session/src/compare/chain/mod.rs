//! Each packet of several capture files in a row, with its stamps at all points.

mod packet;
mod tracks;

use wirestamp_capture::Error;
use wirestamp_capture::file::{Provenance, Reader};
use wirestamp_clock::{Span, Time, Utc};
use wirestamp_metrics::{CaptureLoss, Config, Correlator, Observation, Point, Segment};

pub use self::packet::{ChainPacket, Fate, HopDelay, PointStamp};

use self::packet::Place;
use self::tracks::Tracks;
use super::correction::Correction;
use super::file::File;
use super::terms::Terms;

/// Corrections of the stamps in a row of files.
#[derive(Clone, Debug)]
pub struct ChainCorrections {
    /// From each point to the next: the correction of the second one.
    pub hops: Vec<Correction>,
    /// From the first point to the last: the correction of the last one.
    pub whole: Correction,
}

impl ChainCorrections {
    /// The stamp of this point on the clock of the first one.
    fn on_first_clock(&self, point: usize, time: Time<Utc>) -> Time<Utc> {
        self.hops[..point].iter().rev().fold(time, |time, hop| hop.of_b(time))
    }
}

/// Calls `record` with each packet of these files, whose points packets pass one after the other. Reads each file once, and
/// correlates it with the next, and the first with the last. There is one correction for each two neighbours; that of
/// `terms` is not used. The correlators of these pairs share the memory of `terms`; that of the packets that are open in them
/// is added.
///
/// # Errors
/// When a file is damaged and `partial` is not set.
pub fn compare_chain(
    readers: Vec<Reader>,
    corrections: &ChainCorrections,
    terms: &Terms<'_>,
    record: &mut impl FnMut(ChainPacket),
) -> Result<(), Error> {
    let state = || terms.state.cloned().unwrap_or_default();
    let open = |reader| File::new(reader, terms.partial, terms.filter, state());
    let mut files: Vec<_> = readers.into_iter().map(open).collect();
    let mut ahead = Vec::new();
    for file in &mut files {
        ahead.push(next(file)?);
    }
    let mut chain = Chain::new(files.len(), corrections, terms);
    let mut clocks = Clocks::default();
    loop {
        for (point, file) in files.iter_mut().enumerate() {
            file.take_missed().for_each(|missed| chain.missed(point, missed));
        }
        let times = ahead.iter().enumerate().filter_map(|(point, read)| {
            let read: &Read = read.as_ref()?;
            Some((corrections.on_first_clock(point, read.observation.stamp.utc), point))
        });
        let Some((_, point)) = times.min() else { break };
        let file = &mut files[point];
        let following = next(file)?;
        let Some(read) = std::mem::replace(&mut ahead[point], following) else { continue };
        let clock = clocks.number(file.reader.interfaces()[read.interface].provenance.as_ref());
        chain.observe(point, &read, clock, record);
    }
    chain.finish(record);
    Ok(())
}

/// An observation with the error of its stamp and its interface.
struct Read {
    observation: Observation,
    error: Option<Span>,
    interface: usize,
}

fn next(file: &mut File<'_>) -> Result<Option<Read>, Error> {
    let observation = file.next()?;
    let (error, interface) = file.frame();
    Ok(observation.map(|observation| Read { observation, error, interface }))
}

/// The system clocks of all interfaces. Only stamps of one clock have a known difference.
#[derive(Default)]
struct Clocks(Vec<Provenance>);

impl Clocks {
    /// The number of the clock of this interface; none if it is unknown.
    fn number(&mut self, provenance: Option<&Provenance>) -> Option<usize> {
        let provenance = provenance.filter(|it| it.shares_clock_with(it))?;
        let known = self.0.iter().position(|it| it.shares_clock_with(provenance));
        Some(known.unwrap_or_else(|| {
            self.0.push(provenance.clone());
            self.0.len() - 1
        }))
    }
}

/// A correlator for each two neighbours, and for the first and the last point.
struct Chain<'a> {
    corrections: &'a ChainCorrections,
    hops: Vec<Correlator>,
    whole: Correlator,
    tracks: Tracks,
}

impl<'a> Chain<'a> {
    fn new(points: usize, corrections: &'a ChainCorrections, terms: &Terms<'_>) -> Self {
        // They share the memory equally.
        let memory = terms.correlation.memory / (corrections.hops.len() + 1);
        let correlator = || Correlator::new(Config { memory, ..terms.correlation });
        Self {
            corrections,
            hops: corrections.hops.iter().map(|_| correlator()).collect(),
            whole: correlator(),
            tracks: Tracks::new(points),
        }
    }

    /// The pairs of this point: its side, the correction of its stamps, and the correlator.
    fn pairs(
        &mut self,
        point: usize,
    ) -> impl Iterator<Item = (Segment, Point, Correction, &mut Correlator)> {
        let (corrections, last) = (self.corrections, self.hops.len());
        let hops = self.hops.iter_mut().enumerate().filter_map(move |(hop, correlator)| {
            if hop == point {
                Some((Segment::Hop(hop), Point::A, Correction::default(), correlator))
            } else if hop + 1 == point {
                Some((Segment::Hop(hop), Point::B, corrections.hops[hop], correlator))
            } else {
                None
            }
        });
        let whole = match point {
            0 => Some((Point::A, Correction::default())),
            _ if point == last => Some((Point::B, corrections.whole)),
            _ => None,
        };
        let whole = whole.map(|(side, correction)| (Segment::Whole, side, correction));
        let of_whole = &mut self.whole;
        hops.chain(
            whole.map(move |(segment, side, correction)| (segment, side, correction, of_whole)),
        )
    }

    fn observe(
        &mut self,
        point: usize,
        read: &Read,
        clock: Option<usize>,
        record: &mut impl FnMut(ChainPacket),
    ) {
        let Read { observation, error, .. } = *read;
        let mut tracks = std::mem::take(&mut self.tracks);
        let number = tracks.open(point, Place::new(&observation, error, clock));
        for (segment, side, correction, correlator) in self.pairs(point) {
            let mut seen = observation;
            seen.stamp.utc = correction.of_b(observation.stamp.utc);
            // The number identifies the observation in its outcomes. Without a difference clock, the correlator does
            // not use the raw value.
            seen.stamp.raw.value = number;
            correlator.observe(side, seen, &mut |outcome| tracks.decide(segment, &outcome, record));
        }
        self.tracks = tracks;
    }

    fn missed(&mut self, point: usize, missed: CaptureLoss) {
        for (_, side, correction, correlator) in self.pairs(point) {
            let [from, until] = [missed.from, missed.until].map(|time| correction.of_b(time));
            correlator.missed(side, CaptureLoss { from, until, ..missed });
        }
    }

    fn finish(self, record: &mut impl FnMut(ChainPacket)) {
        let Self { hops, whole, mut tracks, .. } = self;
        for (hop, correlator) in hops.into_iter().enumerate() {
            correlator.finish(&mut |outcome| tracks.decide(Segment::Hop(hop), &outcome, record));
        }
        whole.finish(&mut |outcome| tracks.decide(Segment::Whole, &outcome, record));
        tracks.finish(record);
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use wirestamp_metrics::UndeterminedReason;

    use super::*;

    /// A classic capture in nanoseconds of `count` UDP packets over IPv4, one every microsecond.
    fn classic(count: u32) -> Vec<u8> {
        let words = [0xa1b2_3c4d_u32, 0x0004_0002, 0, 0, 262_144, 1];
        let mut file: Vec<u8> = words.into_iter().flat_map(u32::to_ne_bytes).collect();
        for number in 0..count {
            let mut frame = [&[0_u8; 12][..], &[8, 0]].concat();
            frame.extend([0x45, 0, 0, 40, 0, 0, 0x40, 0, 64, 17, 0, 0, 10, 77, 1, 1, 10, 77, 2, 2]);
            frame.extend([0x13, 0x88, 0x13, 0x88, 0, 20, 0, 0]);
            frame.extend(number.to_be_bytes());
            frame.extend([0; 8]);
            let length = u32::try_from(frame.len()).unwrap();
            let head = [1_700_000_000, number * 1000, length, length];
            file.extend(head.into_iter().flat_map(u32::to_ne_bytes));
            file.extend(frame);
        }
        file
    }

    #[test]
    fn correlators_share_the_memory() {
        let folder = tempfile::tempdir().unwrap();
        let undetermined = |memory| {
            let readers = [1000, 0, 0].iter().enumerate().map(|(point, count)| {
                let path = folder.path().join(point.to_string());
                fs::write(&path, classic(*count)).unwrap();
                Reader::open(&path).unwrap()
            });
            let corrections = ChainCorrections {
                hops: vec![Correction::default(); 2],
                whole: Correction::default(),
            };
            let correlation = Config { memory, ..Config::default() };
            let terms = Terms { correlation, ..Terms::default() };
            let mut fates = Vec::new();
            let record = &mut |packet: ChainPacket| fates.push(packet.fate);
            compare_chain(readers.collect(), &corrections, &terms, record).unwrap();
            assert_eq!(fates.len(), 1000);
            let memory = Fate::Undetermined(UndeterminedReason::Memory);
            fates.into_iter().filter(|fate| *fate == memory).count()
        };
        // A packet takes 80 bytes: enough for all of them in each correlator, and in one of three.
        assert_eq!(undetermined(300_000), 0);
        assert!((500..1000).contains(&undetermined(100_000)));
    }
}
