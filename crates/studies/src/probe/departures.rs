//! The sender's own record of a flow.

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

/// When each packet was sent, by its number.
pub(crate) struct Departures {
    /// Send times, each with whether it is valid: the sender was not interrupted.
    times: Vec<(Time<Utc>, bool)>,
}

impl Departures {
    /// Sends `packets` packets of a pattern from the calling thread's namespace, on `core` if there is
    /// one.
    pub(super) fn send(
        clock: &ClockService,
        pattern: Pattern,
        packets: u64,
        core: Option<usize>,
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
        let way = SendOptions { method: SendMethod::Packet, ..SendOptions::default() };
        let sender = Sender::open_with(vec![stream], &way)?;
        let watch = ServiceClock::new(clock);
        let mut times = Vec::with_capacity(usize::try_from(packets).unwrap_or(0));
        // Called as soon as the call that sent the packet has returned.
        let report = sender.run(&mut ServiceClock::new(clock), stop.flag(), |sent| {
            let took = watch.utc(watch.now()) - sent.actual;
            times.push((sent.actual, took <= HELD));
        });
        if let Some(error) = report.streams.iter().find_map(|it| it.first_error.as_ref()) {
            bail!("the kernel refused a packet: {error}");
        }
        Ok(Self { times })
    }

    /// How many packets were sent.
    pub(crate) fn sent(&self) -> usize {
        self.times.len()
    }

    /// Send time of the first packet, or a little later.
    pub(crate) fn origin(&self) -> Option<Time<Utc>> {
        self.times.first().map(|(time, _)| *time)
    }

    /// When a packet was sent, if that is known.
    pub(crate) fn of(&self, packet: u64) -> Option<Time<Utc>> {
        let (time, is_known) = *self.times.get(usize::try_from(packet).ok()?)?;
        is_known.then_some(time)
    }
}
