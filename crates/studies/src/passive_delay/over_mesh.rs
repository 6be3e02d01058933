//! One run that a mesh measures: its probes capture at the taps, its collector reports the results.

use std::net::UdpSocket;
use std::thread;

use anyhow::Context;
use wirestamp_capture::Stop;
use wirestamp_clock::ClockService;
use wirestamp_lab::results::{Second, next_second};
use wirestamp_lab::{LAST_EGRESS, SOURCE_INTERFACE};
use wirestamp_traffic::SendReport;

use super::bed::{self, Ends, join, traffic};
use super::measured::{Measured, true_delays};
use super::reference_capture::ReferenceCapture;
use super::setting::{
    ACTIVE_ABOVE_IP, PASSIVE, PASSIVE_PORT, REFLECTOR_PORT, Setting, at_the_sink,
};
use crate::mesh::{self, Mesh, MeshPlan, ReusedMesh, Total, until};
use wirestamp_report::format::approximate;

/// Runs a setting once, or until `stop` is requested.
///
/// # Errors
/// When the mesh, a reference capture or the sender is not available, or a node ends.
pub(super) fn run(
    setting: &Setting,
    kept: &mut ReusedMesh,
    clock: &ClockService,
    stop: &Stop,
) -> anyhow::Result<Measured> {
    let mesh = kept.with(plan(setting), |mesh| await_first(mesh, setting, stop))?;
    let ends = [
        ReferenceCapture::open(mesh.lab().source(), SOURCE_INTERFACE, clock)?,
        ReferenceCapture::open(mesh.lab().last_router(), LAST_EGRESS, clock)?,
    ];
    let before = mesh.lab().bottleneck()?;
    let begin = next_second()?;
    let references_stop = Stop::new().context("cannot make the stop event")?;
    let (traffic, seen, seconds) = thread::scope(|scope| {
        let stopped = &references_stop;
        let ends = ends.map(|end| scope.spawn(move || end.watch(stopped)));
        let sent = send(setting, &mut *mesh, begin, clock, stop);
        references_stop.request();
        let [source, bottleneck] = ends.map(join);
        let (traffic, seconds) = sent?;
        anyhow::Ok((traffic, [source?, bottleneck?], seconds))
    })?;
    let mut measured = bed::known(&traffic, bed::since(before, mesh.lab().bottleneck()?));
    measured.seconds = approximate(setting.lasting.as_nanos()) / 1e9;
    measured.unknown = bed::unknown(&traffic, &seen);
    measured.of_task(&Total::of(&seconds), &true_delays(&seen.map(|seen| seen.departures)));
    Ok(measured)
}

/// The bottleneck, and the tasks: that of passive delay alone, or volume, traffic and active delay too.
fn plan(setting: &Setting) -> MeshPlan {
    let passive = mesh::passive(&format!("udp dst port {PASSIVE_PORT}"), 1.0);
    let active = mesh::active("roof", REFLECTOR_PORT, 1_000, ACTIVE_ABOVE_IP);
    let others = [mesh::at_tap_a("volume"), mesh::at_tap_a("traffic"), active];
    let others = if setting.tasks > 1 { others.concat() } else { String::new() };
    MeshPlan { path: setting.impairments(), tasks: passive + &others, confined: None }
}

/// Waits until every task of delay has reported one.
fn await_first(mesh: &mut dyn Mesh, setting: &Setting, stop: &Stop) -> anyhow::Result<()> {
    let open = || UdpSocket::bind("[::]:0");
    let socket = mesh.lab().source().run(open).context("cannot enter the lab")??;
    let tasks: &[_] = if setting.tasks > 1 { &["passive", "active"] } else { &["passive"] };
    let mut number = 0_u64;
    let first = || {
        // Each packet is unique.
        number += 1;
        socket
            .send_to(&number.to_be_bytes(), at_the_sink(PASSIVE_PORT))
            .context("cannot send in the lab")?;
        for task in tasks {
            if mesh.seconds(task, 0)?.iter().all(|second| second.delay_ns.is_none()) {
                return Ok(None);
            }
        }
        Ok(Some(()))
    };
    until("a first delay", stop, first).map(drop)
}

/// Sends, and waits until the mesh has the outcome of every packet.
fn send(
    setting: &Setting,
    mesh: &mut dyn Mesh,
    begin: i64,
    clock: &ClockService,
    stop: &Stop,
) -> anyhow::Result<(bed::Traffic, Vec<Second>)> {
    let lab = mesh.lab();
    let (source, sink) = (lab.source().clone(), lab.sink().clone());
    let mut seconds = Vec::new();
    let mut await_last = |sent: &SendReport| {
        let of_passive = sent.streams.iter().filter(|stream| stream.id == PASSIVE);
        let sent: u64 = of_passive.map(|stream| stream.sent).sum();
        let settled = || {
            seconds = mesh.seconds("passive", begin)?;
            let counts = Total::of(&seconds).counts;
            // Packets lost by the capture at the first tap are counted at the second tap.
            Ok((counts.sent + counts.undetermined_received >= sent).then_some(()))
        };
        until("the outcome of every packet", stop, settled).map(drop)
    };
    // A mesh with several tasks sends the active traffic itself.
    let setting = Setting { tasks: 1, ..*setting };
    let ends = Ends { source: &source, sink: &sink, await_last: &mut await_last };
    let traffic = traffic(&setting, ends, clock, stop)?;
    Ok((traffic, seconds))
}
