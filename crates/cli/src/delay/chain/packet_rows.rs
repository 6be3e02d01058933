//! The packets of several points in a row as rows of a file (`--csv`, `--parquet`).

use anyhow::bail;
use wirestamp_clock::Span;
use wirestamp_results::Field;
use wirestamp_session::{ChainPacket, Fate, HopDelay};

use super::super::arguments::Arguments;
use super::super::packet_rows::words;
use super::packets::each_packet;
use super::subpaths::Chain;
use crate::row_files::RowFiles;

/// A packet with its outcome. Unknown values are empty.
struct Row {
    packet: ChainPacket,
    outcome: &'static str,
    /// The hop that lost the packet, from 0.
    lost_hop: Option<usize>,
    reason: Option<&'static str>,
}

/// The columns before those of the points, described in docs/guide.md.
const COLUMNS: &[Field<Row>] = &[
    Field::text("outcome", |row| Some(row.outcome.to_owned())),
    Field::text("src", |row| Some(row.packet.flow.source.ip().to_string())),
    Field::text("dst", |row| Some(row.packet.flow.destination.ip().to_string())),
    Field::whole("sport", |row| Some(row.packet.flow.source.port().into())),
    Field::whole("dport", |row| Some(row.packet.flow.destination.port().into())),
    Field::whole("protocol", |row| Some(row.packet.flow.protocol.into())),
    Field::whole("sequence", |row| row.packet.sequence.and_then(|it| it.try_into().ok())),
    Field::whole("length_bytes", |row| Some(row.packet.length.into())),
    Field::whole("lost_hop", |row| i64::try_from(row.lost_hop? + 1).ok()),
    Field::text("reason", |row| row.reason.map(ToOwned::to_owned)),
    Field::whole("delay_ns", |row| delay(row.packet.whole)),
    Field::whole("error_ns", |row| error(row.packet.whole)),
    Field::whole("reordered", |row| reordered(row.packet.whole)),
];

/// The columns of rows with this number of points: those of a packet, of each point, and of each hop.
fn columns(points: usize) -> Vec<Field<Row>> {
    let mut columns = COLUMNS.to_vec();
    for point in 0..points {
        let named = |what| format!("point{}_{what}", point + 1);
        columns.push(Field::whole_at(named("ns"), point, |row, point| {
            Some(row.packet.stamps[point]?.time.as_nanos())
        }));
        columns.push(Field::whole_at(named("error_ns"), point, |row, point| {
            Some(row.packet.stamps[point]?.error?.as_nanos())
        }));
    }
    for hop in 0..points - 1 {
        let named = |what| format!("hop{}_{what}", hop + 1);
        columns
            .push(Field::whole_at(named("delay_ns"), hop, |row, hop| delay(row.packet.hops[hop])));
        columns
            .push(Field::whole_at(named("error_ns"), hop, |row, hop| error(row.packet.hops[hop])));
        columns.push(Field::whole_at(named("reordered"), hop, |row, hop| {
            reordered(row.packet.hops[hop])
        }));
    }
    for point in 0..points {
        columns.push(Field::time_at(format!("point{}_time", point + 1), point, |row, point| {
            Some(row.packet.stamps[point]?.time.as_nanos())
        }));
    }
    columns
}

fn delay(hop: Option<HopDelay>) -> Option<i64> {
    hop.map(|hop| hop.delay.as_nanos())
}

fn error(hop: Option<HopDelay>) -> Option<i64> {
    hop?.error.map(Span::as_nanos)
}

fn reordered(hop: Option<HopDelay>) -> Option<i64> {
    hop.map(|hop| hop.reordered.into())
}

impl Row {
    fn of(packet: ChainPacket, chain: &Chain<'_>) -> Self {
        let is_unknown = |hop: usize, flow| chain.subpaths[hop].result.is_flow_loss_unknown(flow);
        let (outcome, lost_hop, reason) = match &packet.fate {
            Fate::Complete => ("matched", None, None),
            Fate::Lost { hop, flow } if is_unknown(*hop, flow) => {
                ("undetermined", None, Some("loss_unknown"))
            }
            Fate::Lost { hop, .. } => ("lost", Some(*hop), None),
            Fate::Duplicated => ("duplicated", None, None),
            Fate::Unexpected => ("unexpected", None, None),
            Fate::Undetermined(reason) => ("undetermined", None, Some(words(*reason))),
        };
        Self { packet, outcome, lost_hop, reason }
    }
}

/// Writes the requested files; reads the captures once more.
pub(super) fn write(arguments: &Arguments, chain: &Chain<'_>) -> anyhow::Result<()> {
    let (csv, parquet) = (arguments.csv.as_deref(), arguments.parquet.as_deref());
    if csv.is_none() && parquet.is_none() {
        return Ok(());
    }
    let rule = chain.complete.result.rule();
    if let Some(other) = chain.subpaths.iter().find(|it| it.result.rule() != rule) {
        bail!(
            "cannot write the packets: they are recognised by --match {rule} on the complete path and \
             by --match {} in {}; choose one of them",
            other.result.rule(),
            other.name()
        );
    }
    let mut files = RowFiles::create(columns(arguments.points().count()), csv, parquet)?;
    each_packet(arguments, chain, rule, &mut |packet| files.record(Row::of(packet, chain)))?;
    Ok(files.finish()?)
}
