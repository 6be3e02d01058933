//! The path: trains of frames, a router with the device, and a tap before and after it.

use std::collections::HashMap;
use std::net::UdpSocket;
use std::sync::atomic::AtomicU64;
use std::thread;

use anyhow::{Context, ensure};
use serde::{Deserialize, Serialize};
use wirestamp_capture::{Capture, Config, Cores, Direction, Method, StampSource, Stop};
use wirestamp_clock::{ClockService, Counter, Span, Time, Utc};
use wirestamp_lab::{EGRESS, Netns, PathLab, SINK_V4, SOURCE_INTERFACE, TAP_A, TAP_B};
use wirestamp_traffic::{
    Pattern, SendMethod, SendOptions, Sender, ServiceClock, Stream, StreamPlan,
};

use super::bucket::{Device, FRAME_BYTES, FRAMES};
use crate::probe::{AtEnd, Captures, await_all};
use crate::tester::{CAPTURE_CORE, CHECK_SEQUENCE, SENDING_CORE, WIDE, settle, stay_on};

/// Time from train to train: the slowest device has forwarded the last one, and its bucket is full again.
pub(super) const INTERVAL: Span = Span::from_millis(10);
/// Trains before the first that is evaluated: the kernel begins to stamp a moment after a socket has requested it.
const WARM_UP_TRAINS: u32 = 3;
/// Destination port of the packets.
const PORT: u16 = 5004;
/// Captured bytes of a packet: its headers and its number.
const SNAPLEN: u32 = 128;

/// A packet of a train: a row of the raw results. Times are in nanoseconds since the first packet of the run at the tap before
/// the device.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(in crate::reception) struct TrainPacket {
    pub(in crate::reception) train: u32,
    /// Its place in the train, from 0.
    pub(in crate::reception) packet: u32,
    /// Stamp before the device; none if that tap missed it.
    pub(in crate::reception) before_ns: Option<i64>,
    /// Stamp after it; none if that tap missed it.
    pub(in crate::reception) after_ns: Option<i64>,
}

/// The path with a clock.
pub(super) struct TrainBed {
    lab: PathLab,
    clock: ClockService,
}

impl TrainBed {
    /// # Errors
    /// When privileges or a second core are missing, or the counter cannot be calibrated.
    pub(super) fn build() -> anyhow::Result<Self> {
        wirestamp_lab::check_privilege()?;
        let cores = thread::available_parallelism().map_or(1, usize::from);
        ensure!(cores > CAPTURE_CORE, "a sender and captures need two cores; there is one");
        let clock = ClockService::start(Counter::select());
        let clock = clock.context("cannot calibrate the counter")?;
        Ok(Self { lab: PathLab::new(&WIDE)?, clock })
    }

    /// Sends `trains` trains through the device, and stamps their packets before and after it.
    ///
    /// # Errors
    /// When the device cannot be set up, a capture cannot be opened or fails, or nothing can be sent.
    pub(super) fn run(
        &self,
        device: Device,
        trains: u32,
        stop: &Stop,
    ) -> anyhow::Result<Vec<TrainPacket>> {
        let Self { lab, clock } = self;
        settle(lab.router(), &device.command(EGRESS))?;
        // Nothing reads it. Without a socket, the sink would answer with ICMP messages.
        let bind = || UdpSocket::bind((SINK_V4, PORT));
        let _receiver = lab.sink().run(bind)?.context("cannot open a socket at the sink")?;
        let packets = u64::from(trains.saturating_add(WARM_UP_TRAINS)) * u64::from(FRAMES);
        let taps = [self.open(lab.router(), TAP_A)?, self.open(lab.sink(), TAP_B)?];
        let counts = [const { AtomicU64::new(0) }; 2];
        let end = Stop::new().context("cannot make the stop event")?;
        let taps = thread::scope(|scope| {
            let at_end = AtEnd(&end);
            let [a, b] = taps;
            let captures = [(a, &counts[0]), (b, &counts[1])].map(|(capture, count)| {
                let end = &end;
                scope.spawn(move || Captures::take(capture, clock, end, count))
            });
            let sent = lab.source().run(|| send(packets, clock, stop));
            await_all(counts.iter(), packets, stop);
            drop(at_end);
            let [a, b] = captures.map(|capture| {
                capture.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
            });
            sent.context("cannot enter the lab")??;
            anyhow::Ok([a?, b?])
        })?;
        let balances = taps.iter().all(|tap| tap.ledger.balances());
        ensure!(balances, "the ledger of a tap does not balance: its gaps are not to be trusted");
        Ok(rows(&taps.map(|tap| tap.stamps), trains))
    }

    /// Opens a capture with stamps of the kernel, away from the core of the sender.
    fn open(&self, namespace: &Netns, interface: &str) -> anyhow::Result<Capture> {
        let core = Some(CAPTURE_CORE);
        let config = Config {
            snaplen: SNAPLEN,
            filter: Some("udp".into()),
            direction: Direction::In,
            lanes: vec![Cores { acquire: core, convert: core, consume: core }],
            ..Config::new(interface, Method::Ring, StampSource::Kernel)
        };
        let open = || Capture::open(config, &self.clock);
        Ok(namespace.run(open).context("cannot enter the lab")??)
    }
}

/// Sends packets in trains on the calling thread, each train as fast as the kernel takes it.
fn send(packets: u64, clock: &ClockService, stop: &Stop) -> anyhow::Result<()> {
    stay_on(SENDING_CORE)?;
    let pattern = Pattern::new("trains", FRAME_BYTES - CHECK_SEQUENCE, INTERVAL)?;
    let pattern = pattern.with_burst(FRAMES, Span::ZERO)?;
    let plan = StreamPlan { pattern, start: Span::ZERO, packets };
    let stream = Stream {
        interface: Some(SOURCE_INTERFACE.into()),
        ..Stream::new(1, plan, (SINK_V4, PORT).into())
    };
    let options = SendOptions { method: SendMethod::Packet, ..SendOptions::default() };
    let sender = Sender::open_with(vec![stream], &options)?;
    let report = sender.run(&mut ServiceClock::new(clock), stop.flag(), |_| ());
    let error = report.streams.iter().find_map(|stream| stream.first_error.as_ref());
    ensure!(error.is_none(), "cannot send a train: {}", error.map_or("", String::as_str));
    Ok(())
}

/// The packets of the trains that are evaluated, with the stamps of both taps in nanoseconds since the first.
fn rows(taps: &[Vec<(u64, Time<Utc>)>; 2], trains: u32) -> Vec<TrainPacket> {
    let packets = (0..trains).flat_map(|train| (0..FRAMES).map(move |packet| (train, packet)));
    let number = |(train, packet): (u32, u32)| {
        u64::from(train.saturating_add(WARM_UP_TRAINS)) * u64::from(FRAMES) + u64::from(packet)
    };
    let first = number((0, 0));
    let origin = taps[0].iter().filter(|(number, _)| *number >= first).map(|(_, time)| *time).min();
    let Some(origin) = origin else { return Vec::new() };
    let taps = taps.each_ref().map(|stamps| stamps.iter().copied().collect::<HashMap<_, _>>());
    let row = |(train, packet)| {
        let number = number((train, packet));
        let stamp =
            |stamps: &HashMap<u64, Time<Utc>>| Some((*stamps.get(&number)? - origin).as_nanos());
        let [before_ns, after_ns] = taps.each_ref().map(stamp);
        TrainPacket { train, packet, before_ns, after_ns }
    };
    packets.map(row).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reception::paper::LINK_SPEEDS;

    #[test]
    fn slowest_device_is_idle_before_the_next_train() {
        let device = Device { speed: LINK_SPEEDS[0], depth_frames: 8 };
        let busy = f64::from(FRAMES + device.depth_frames) * device.frame_ns();
        assert!(busy < wirestamp_report::format::approximate(INTERVAL.as_nanos()));
    }

    #[test]
    fn rows_have_the_stamps_of_both_taps_by_number() {
        let at = |nanos: i64| Time::<Utc>::from_nanos(nanos);
        let first = u64::from(WARM_UP_TRAINS * FRAMES);
        let before = vec![(0, at(5)), (first, at(1_000)), (first + 1, at(1_010))];
        let after = vec![(first + 1, at(1_100)), (first, at(1_050))];
        let rows = rows(&[before, after], 1);
        assert_eq!(rows.len(), usize::try_from(FRAMES).unwrap());
        let stamps = |row: &TrainPacket| (row.before_ns, row.after_ns);
        assert_eq!(stamps(&rows[0]), (Some(0), Some(50)));
        assert_eq!(stamps(&rows[1]), (Some(10), Some(100)));
        assert_eq!(stamps(&rows[2]), (None, None));
        assert!(super::rows(&[Vec::new(), Vec::new()], 1).is_empty());
    }
}
