//! Two capture files of the same packets, at two points.

use std::collections::BTreeSet;

use wirestamp_capture::file::{Provenance, Reader};
use wirestamp_capture::{Error, Filter, Missed};
use wirestamp_clock::{Domain, RawStamp, Span, Stamp};
use wirestamp_metrics::{Config, Correlator, Observation, Outcome, Point};
use wirestamp_packet::LinkType;

use crate::meeting::{as_metrics_have_it, observe};

/// What comparing two files found, beside the outcomes.
#[derive(Clone, Debug)]
pub struct Comparison {
    /// How wrong a delay can be because of the clocks, or why that cannot be known.
    pub clock_error: Result<Span, String>,
    /// Packets of both files that could not be recognised: not IP, or cut too short.
    pub unidentified: u64,
    /// Packets that the systems that captured say they dropped, at A and at B.
    pub capture_lost: [u64; 2],
    /// Those of them of which a file does not say when: so many of the packets counted as lost, or as
    /// seen at B only, may be of these.
    pub undated: [u64; 2],
    /// Where a file was damaged and the part before that was used (`partial`).
    pub damage: Vec<String>,
}

/// Correlates the packets of file `a` with those of file `b`. With `partial`, a damaged file
/// counts up to the damage; with a filter, only the packets that pass it count, while what the
/// captures lost is not known to pass it: then it may account for losses that are the network's.
///
/// # Errors
/// When a file is damaged and `partial` is not set.
pub fn compare(
    a: Reader,
    b: Reader,
    config: Config,
    partial: bool,
    filter: Option<&Filter>,
    record: &mut impl FnMut(Outcome),
) -> Result<Comparison, Error> {
    let mut correlator = Correlator::new(config);
    let mut files = [File::new(a, partial, filter)?, File::new(b, partial, filter)?];
    // In the order of time, so that neither runs ahead of the other by more than it must.
    loop {
        for (file, point) in files.iter_mut().zip([Point::A, Point::B]) {
            file.tell_missed(point, &mut correlator);
        }
        let [a, b] = &files;
        let point = match (&a.next, &b.next) {
            (None, None) => break,
            (Some(a), Some(b)) if b.stamp.utc < a.stamp.utc => Point::B,
            (Some(_), _) => Point::A,
            (None, Some(_)) => Point::B,
        };
        let file = &mut files[usize::from(point == Point::B)];
        if let Some(observation) = file.take()? {
            correlator.observe(point, observation, record);
        }
    }
    correlator.finish(record);
    let [a, b] = files;
    Ok(Comparison {
        clock_error: clock_error(&a.used(), &b.used()),
        unidentified: a.unidentified + b.unidentified,
        capture_lost: [a.reader.capture_lost(), b.reader.capture_lost()],
        undated: [a.undated(), b.undated()],
        damage: a.damage.into_iter().chain(b.damage).collect(),
    })
}

/// A file and the next packet in it.
struct File<'a> {
    reader: Reader,
    filter: Option<&'a Filter>,
    next: Option<Observation>,
    partial: bool,
    /// The interfaces of the packets that were recognised.
    interfaces: BTreeSet<usize>,
    unidentified: u64,
    /// What the capture lost at times that the file says, and of that what is yet to be told.
    dated: u64,
    missed: Vec<Missed>,
    damage: Option<String>,
}

impl<'a> File<'a> {
    fn new(reader: Reader, partial: bool, filter: Option<&'a Filter>) -> Result<Self, Error> {
        let interfaces = BTreeSet::new();
        let (next, unidentified, dated, damage) = (None, 0, 0, None);
        let missed = Vec::new();
        let mut file =
            Self { reader, filter, next, partial, interfaces, unidentified, dated, missed, damage };
        file.next = file.read()?;
        Ok(file)
    }

    fn take(&mut self) -> Result<Option<Observation>, Error> {
        let next = self.read()?;
        Ok(std::mem::replace(&mut self.next, next))
    }

    /// Tells what the capture lost before the next packet.
    fn tell_missed(&mut self, point: Point, correlator: &mut Correlator) {
        for missed in self.missed.drain(..) {
            self.dated = self.dated.saturating_add(missed.packets);
            correlator.missed(point, as_metrics_have_it(&missed));
        }
    }

    /// What the capture lost at times that the file does not say.
    fn undated(&self) -> u64 {
        self.reader.capture_lost().saturating_sub(self.dated)
    }

    /// The next packet that passes the filter and can be recognised.
    fn read(&mut self) -> Result<Option<Observation>, Error> {
        while self.damage.is_none() {
            let mut packet = match self.reader.next_packet() {
                Ok(Some(packet)) => packet,
                Ok(None) => break,
                Err(error) if self.partial => {
                    self.damage = Some(error.to_string());
                    break;
                }
                Err(error) => return Err(error),
            };
            self.missed.append(&mut packet.missed);
            if self.filter.is_some_and(|filter| !passes(filter, packet.link, &packet.bytes)) {
                continue;
            }
            // A file's stamps are system time already; how wrong they are is said for an interface
            // as a whole.
            let value = u64::try_from(packet.time.as_nanos()).unwrap_or(0);
            let raw = RawStamp { domain: Domain::Realtime, value };
            let stamp = Stamp { raw, utc: packet.time, error: Span::ZERO };
            match observe(packet.link, &packet.bytes, packet.length, stamp) {
                Some(observation) => {
                    self.interfaces.insert(packet.interface);
                    return Ok(Some(observation));
                }
                None => self.unidentified += 1,
            }
        }
        self.missed.extend(self.reader.take_missed());
        Ok(None)
    }

    /// What is said of the interfaces that took part; of all, if no packet did.
    fn used(&self) -> Vec<Option<&Provenance>> {
        let interfaces = self.reader.interfaces();
        let said = |place: usize| interfaces[place].provenance.as_ref();
        if self.interfaces.is_empty() {
            (0..interfaces.len()).map(said).collect()
        } else {
            self.interfaces.iter().copied().map(said).collect()
        }
    }
}

/// Filters are compiled for Ethernet frames; a packet that was captured without gets a header.
pub(crate) fn passes(filter: &Filter, link: LinkType, bytes: &[u8]) -> bool {
    match link {
        LinkType::Ethernet => filter.passes(bytes),
        LinkType::Ip => {
            let version = bytes.first().map_or(0, |byte| byte >> 4);
            let ethertype: [u8; 2] = if version == 6 { [0x86, 0xdd] } else { [0x08, 0x00] };
            filter.passes(&[&[0; 12], &ethertype[..], bytes].concat())
        }
    }
}

/// How wrong a delay can be whose ends were stamped at any of these interfaces.
fn clock_error(a: &[Option<&Provenance>], b: &[Option<&Provenance>]) -> Result<Span, String> {
    let known = |used| Vec::from(used).into_iter().collect();
    let (Some::<Vec<&Provenance>>(a), Some::<Vec<_>>(b)) = (known(a), known(b)) else {
        return Err("a file does not say which clock made its stamps".into());
    };
    if !a.iter().all(|a| b.iter().all(|b| a.shares_clock_with(b))) {
        return Err("the files come from two machines, or two boots of one, whose clocks may \
                    differ by any amount"
            .into());
    }
    let worst = |used: Vec<&Provenance>| used.iter().map(|said| said.error_ns).max();
    match (worst(a), worst(b)) {
        (Some(a), Some(b)) => Ok(Span::from_nanos(a) + Span::from_nanos(b)),
        _ => Err("a file describes no interface".into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn provenance(boot_id: &str, error_ns: i64) -> Provenance {
        Provenance {
            method: "ring".into(),
            stamp: "raw".into(),
            clock: "tsc".into(),
            boot_id: boot_id.into(),
            error_ns,
            granularity_ns: Some(10),
            restamped: false,
        }
    }

    #[test]
    fn errors_of_both_files_add_up_on_one_machine_and_are_unknown_between_two() {
        let (a, b, far) = (provenance("x", 30), provenance("x", 12), provenance("y", 12));
        let [a, b, far] = [&a, &b, &far].map(|said| [Some(said)]);
        assert_eq!(clock_error(&a, &b), Ok(Span::from_nanos(42)));
        assert!(clock_error(&a, &far).unwrap_err().contains("two machines"));
        assert!(clock_error(&a, &[None]).unwrap_err().contains("does not say"));
        assert!(clock_error(&a, &[]).unwrap_err().contains("no interface"));
    }

    #[test]
    fn of_several_interfaces_the_worst_counts_and_all_have_to_share_the_clock() {
        let (a, worse, b) = (provenance("x", 30), provenance("x", 90), provenance("x", 12));
        let of_a = [Some(&a), Some(&worse)];
        assert_eq!(clock_error(&of_a, &[Some(&b)]), Ok(Span::from_nanos(102)));
        let far = provenance("y", 1);
        assert!(clock_error(&of_a, &[Some(&b), Some(&far)]).unwrap_err().contains("two machines"));
    }
}
