//! Captures at the end of a cable that stamp the same packets.

use std::time::Duration;

use anyhow::ensure;
use serde::{Deserialize, Serialize};
use wirestamp_capture::{Method, StampSource, Stop};
use wirestamp_clock::{Time, Utc};

use crate::experiment::{Cell, Design, Factor, Study};
use crate::overhead::packets::OverheadScale;
use crate::overhead::paper::Traffic;
use crate::probe::{Observed, Passage, Probe, SendTimes, Source};
use wirestamp_report::format::approximate;

const fn source(method: Method, stamp: StampSource) -> Source {
    Source { method, stamp }
}

/// Captures that stamp the packets, all at the same time.
pub(super) const SOURCES: [Source; 5] = [
    source(Method::Ring, StampSource::Kernel),
    source(Method::Ring, StampSource::Raw),
    source(Method::Recvmsg, StampSource::Kernel),
    source(Method::XdpPass, StampSource::Xdp),
    source(Method::TracePass, StampSource::Raw),
];
/// Places of the stamps of ktime and of the counter, both taken in the softIRQ.
pub(super) const KTIME: usize = 0;
pub(super) const RAW: usize = 4;

/// How long it takes to set captures up and to wait for their last packets.
const AROUND: Duration = Duration::from_millis(400);

/// A packet that was sent. Times are in nanoseconds since the first was.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct Row {
    /// Its number.
    pub(super) packet: u64,
    /// Send time; none if the sender was interrupted meanwhile.
    pub(super) sent_ns: Option<i64>,
    /// Its stamps; none if the capture missed the packet or is not available.
    pub(super) ring_kernel_ns: Option<i64>,
    pub(super) ring_raw_ns: Option<i64>,
    pub(super) recvmsg_kernel_ns: Option<i64>,
    pub(super) xdp_pass_ns: Option<i64>,
    /// Older results do not have it.
    #[serde(default)]
    pub(super) trace_pass_raw_ns: Option<i64>,
}

impl Row {
    /// How much later its raw stamp was taken in the softIRQ than that of ktime; none without both.
    pub(super) fn raw_after_ktime_ns(&self) -> Option<f64> {
        let stamps = self.stamps();
        Some(approximate(stamps[RAW]? - stamps[KTIME]?))
    }

    /// Its stamps in the order of [`SOURCES`].
    fn stamps(&self) -> [Option<i64>; 5] {
        let Self { ring_kernel_ns, ring_raw_ns, recvmsg_kernel_ns, xdp_pass_ns, .. } = *self;
        [ring_kernel_ns, ring_raw_ns, recvmsg_kernel_ns, xdp_pass_ns, self.trace_pass_raw_ns]
    }
}

/// The packets of a run that a source stamped.
pub(super) fn passages(run: &[Row], source: usize) -> impl Iterator<Item = Passage> {
    run.iter().filter_map(move |row| {
        Some(Passage {
            packet: row.packet,
            sent_ns: row.sent_ns.map(approximate),
            stamped_ns: approximate(row.stamps().get(source).copied().flatten()?),
        })
    })
}

/// The packets of a run by their sender's own record, as if they were stamped by it.
pub(super) fn departures(run: &[Row]) -> impl Iterator<Item = Passage> {
    run.iter().filter_map(|row| {
        let stamped_ns = approximate(row.sent_ns?);
        Some(Passage { packet: row.packet, sent_ns: None, stamped_ns })
    })
}

/// The study.
pub(super) struct Cable {
    size: OverheadScale,
    probe: Probe,
}

impl Cable {
    pub(super) fn new(size: OverheadScale) -> anyhow::Result<Self> {
        Ok(Self { size, probe: Probe::new()? })
    }

    /// Traffic of a cell.
    pub(super) fn of(cell: &Cell) -> Traffic {
        Traffic::ALL[cell.0.first().copied().unwrap_or(0) % 2]
    }

    /// The sources that this machine refused, each with the reason.
    pub(super) fn refusals(&self) -> Vec<(String, String)> {
        self.probe.refusals()
    }
}

/// Factors of the study.
pub(super) fn design(size: OverheadScale) -> Design {
    let constant = |(traffic, packets): (Traffic, u32)| {
        (format!("packets of {}", traffic.name()), packets.to_string())
    };
    Design {
        name: "interarrival".to_owned(),
        factors: vec![Factor::new("pattern", Traffic::ALL.map(Traffic::name))],
        repetitions: size.repetitions,
        constants: Traffic::ALL.into_iter().zip(size.packets).map(constant).collect(),
    }
}

impl Study for Cable {
    type Sample = Row;

    fn design(&self) -> Design {
        design(self.size)
    }

    fn lasts(&self, cell: &Cell) -> Duration {
        let traffic = Self::of(cell);
        let gap = u64::try_from(traffic.pattern().interval().as_nanos()).unwrap_or(0);
        Duration::from_nanos(gap) * self.size.packets_of(traffic) + AROUND
    }

    fn run(&mut self, cell: &Cell, stop: &Stop) -> anyhow::Result<Vec<Row>> {
        let traffic = Self::of(cell);
        let packets = self.size.packets_of(traffic).into();
        let observed =
            self.probe.observe(&SOURCES, traffic.pattern(), packets, SendTimes::Call, stop)?;
        for (source, captures) in SOURCES.iter().zip(&observed.captures) {
            let balances = captures.as_ref().is_none_or(|captures| captures.ledger.balances());
            ensure!(
                balances,
                "the ledger of {source} does not balance: its gaps are not to be trusted"
            );
        }
        Ok(rows(&observed))
    }
}

/// Observations by packet.
fn rows(observed: &Observed) -> Vec<Row> {
    let departures = &observed.departures;
    let sent = (0..).take(departures.sent()).map(|packet| (packet, departures.of(packet)));
    let Some(origin) = departures.origin() else { return Vec::new() };
    let since = |time: Time<Utc>| (time - origin).as_nanos();
    let row = |(packet, time): (u64, Option<_>)| Row {
        packet,
        sent_ns: time.map(since),
        ..Row::default()
    };
    let mut rows: Vec<_> = sent.map(row).collect();
    let places: [fn(&mut Row) -> &mut Option<i64>; 5] = [
        |row| &mut row.ring_kernel_ns,
        |row| &mut row.ring_raw_ns,
        |row| &mut row.recvmsg_kernel_ns,
        |row| &mut row.xdp_pass_ns,
        |row| &mut row.trace_pass_raw_ns,
    ];
    for (captures, place) in observed.captures.iter().zip(places) {
        for (packet, stamp) in captures.iter().flat_map(|captures| &captures.stamps) {
            let row = usize::try_from(*packet).ok().and_then(|packet| rows.get_mut(packet));
            if let Some(row) = row {
                *place(row) = Some(since(*stamp));
            }
        }
    }
    rows
}
