//! The sender's own record of a flow.

use super::busy_clock::BusyClock;
use anyhow::{Context, bail};
use rustix::thread::{CpuSet, sched_setaffinity};
use wirestamp_capture::Stop;
use wirestamp_clock::{ClockService, Span, Time, Utc};
use wirestamp_lab::SOURCE_INTERFACE;
use wirestamp_lab::wire::SINK_V4;
use wirestamp_traffic::{
    PacingClock, Pattern, SendMethod, SendOptions, Sender, ServiceClock, Stream, StreamPlan,
};

/// Max duration of a send call, usually microseconds. A longer call was interrupted: its send time is unknown.
const HELD: Span = Span::from_micros(250);

/// UDP destination port of the packets.
const PORT: u16 = 5004;

/// Which times of a packet the sender records.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SendTimes {
    /// Before the call that sends it.
    Call,
    /// Also the transmit stamp of the driver, which the kernel returns on the error queue: a microsecond more work for
    /// each packet.
    CallAndDriver,
}

/// When each packet was sent, by its number.
pub(crate) struct Departures {
    /// Times of the calls, each with whether it is valid: the sender was not interrupted.
    times: Vec<(Time<Utc>, bool)>,
    /// Transmit stamps of the driver; none without [`SendTimes::CallAndDriver`].
    driver: Vec<Option<Time<Utc>>>,
}

impl Departures {
    /// Sends `packets` packets of a pattern from the calling thread's namespace, on `core` if there is
    /// one.
    pub(super) fn send(
        clock: &ClockService,
        pattern: Pattern,
        packets: u64,
        core: Option<usize>,
        recorded: SendTimes,
        stop: &Stop,
    ) -> anyhow::Result<Self> {
        if let Some(core) = core {
            let mut only = CpuSet::new();
            only.set(core);
            sched_setaffinity(None, &only).with_context(|| format!("cannot run on core {core}"))?;
        }
        let plan = StreamPlan { pattern, start: Span::ZERO, packets };
        let stream = Stream {
            interface: Some(SOURCE_INTERFACE.into()),
            ..Stream::new(1, plan, (SINK_V4, PORT).into())
        };
        let tx_stamps = recorded == SendTimes::CallAndDriver;
        let way = SendOptions { method: SendMethod::Packet, tx_stamps, ..SendOptions::default() };
        let sender = Sender::open_with(vec![stream], &way)?;
        let watch = ServiceClock::new(clock);
        let capacity = usize::try_from(packets).unwrap_or(0);
        let mut times = Vec::with_capacity(capacity);
        let mut driver = Vec::with_capacity(if tx_stamps { capacity } else { 0 });
        // Called as soon as the call that sent the packet has returned, or later with its transmit stamp.
        let report = sender.run(&mut BusyClock(ServiceClock::new(clock)), stop.flag(), |sent| {
            let reached = if tx_stamps {
                driver.push(sent.stamps.software);
                sent.stamps.software
            } else {
                Some(watch.utc(watch.now()))
            };
            times.push((sent.actual, reached.is_some_and(|reached| reached - sent.actual <= HELD)));
        });
        if let Some(error) = report.streams.iter().find_map(|it| it.first_error.as_ref()) {
            bail!("the kernel refused a packet: {error}");
        }
        Ok(Self { times, driver })
    }

    /// How many packets were sent.
    pub(crate) fn sent(&self) -> usize {
        self.times.len()
    }

    /// Send time of the first packet, or a little later.
    pub(crate) fn origin(&self) -> Option<Time<Utc>> {
        self.times.first().map(|(time, _)| *time)
    }

    /// When the driver sent a packet, if that was recorded.
    pub(crate) fn by_driver(&self, packet: u64) -> Option<Time<Utc>> {
        *self.driver.get(usize::try_from(packet).ok()?)?
    }

    /// When a packet was sent, if that is known.
    pub(crate) fn of(&self, packet: u64) -> Option<Time<Utc>> {
        let (time, is_known) = *self.times.get(usize::try_from(packet).ok()?)?;
        is_known.then_some(time)
    }

    /// When a packet left: by the driver, or else by the call, if either is known.
    pub(crate) fn nearest(&self, packet: u64) -> Option<Time<Utc>> {
        self.by_driver(packet).or_else(|| self.of(packet))
    }
}
