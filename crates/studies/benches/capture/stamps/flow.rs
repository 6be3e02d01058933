//! A paced flow, and the sender's own record of it.

use anyhow::{bail, ensure};
use wirestamp_clock::{Span, Time, Utc};
use wirestamp_studies::tester::{DESTINATION, SENDING_INTERFACE, UNUSED_MAC};
use wirestamp_traffic::PacingClock;
use wirestamp_traffic::{
    Pattern, SendMethod, SendOptions, Sender, SentPacket, ServiceClock, Stream, StreamPlan,
};

use crate::bench::Bench;

/// Max delay of a packet, and max duration of its send call, before the sender's thread counts as interrupted.
/// A call takes a few microseconds, and some tens if it wakes several sleeping captures. Another thread on the
/// core may run for 700 µs and more (`base_slice_ns` of the scheduler).
///
/// A packet can leave when it is due and the previous call has returned. If the taps take more time than the
/// interval between packets, the sender lags behind its plan, but its record stays valid.
pub(super) const BOUND: Span = Span::from_micros(250);

const FRAME_BYTES: u16 = 140;

/// Packets at an interval, for some time.
pub(super) struct Flow {
    pub(super) name: &'static str,
    plan: StreamPlan,
}

/// Send time of each packet, by its sequence number; none if the sender's thread was interrupted.
#[derive(Default)]
pub(super) struct Departures {
    times: Vec<Option<Time<Utc>>>,
    /// When the last call returned.
    free: Option<Time<Utc>>,
    /// Packets that left more than [`BOUND`] after the earliest possible time.
    pub(super) late: u64,
    /// Other packets whose call took longer than [`BOUND`].
    pub(super) held: u64,
}

impl Flow {
    pub(super) fn new(name: &'static str, interval: Span, time: Span) -> anyhow::Result<Self> {
        let pattern = Pattern::new(name, FRAME_BYTES, interval)?;
        let packets = pattern.packets_in(time);
        Ok(Self { name, plan: StreamPlan { pattern, start: Span::ZERO, packets } })
    }

    /// Sends the flow, each packet as a frame to an unused hardware address.
    pub(super) fn send(&self, bench: &Bench) -> anyhow::Result<Departures> {
        bench.bed.send(|| {
            let mut stream = Stream::new(1, self.plan.clone(), DESTINATION.into());
            stream.interface = Some(SENDING_INTERFACE.into());
            let way = SendOptions {
                method: SendMethod::Packet,
                mac: Some(UNUSED_MAC),
                ..SendOptions::default()
            };
            let sender = Sender::open_with(vec![stream], &way)?;
            let watch = ServiceClock::new(&bench.clock);
            let mut departures = Departures::default();
            // Called as soon as the call that sent the packet has returned.
            let note = |sent: &SentPacket| departures.note(sent, watch.utc(watch.now()));
            let report = sender.run(&mut ServiceClock::new(&bench.clock), &bench.stop, note);
            ensure!(!report.stopped, "interrupted");
            if let Some(error) = report.streams.iter().find_map(|it| it.first_error.as_ref()) {
                bail!("the kernel refused a packet: {error}");
            }
            Ok(departures)
        })
    }
}

impl Departures {
    fn note(&mut self, sent: &SentPacket, returned: Time<Utc>) {
        let could = self.free.replace(returned).map_or(sent.intended, |it| it.max(sent.intended));
        let late = sent.actual - could > BOUND;
        let held = !late && returned - sent.actual > BOUND;
        self.late += u64::from(late);
        self.held += u64::from(held);
        self.times.push((!late && !held).then_some(sent.actual));
    }

    pub(super) fn sent(&self) -> u64 {
        u64::try_from(self.times.len()).unwrap_or(u64::MAX)
    }

    /// Send time of packet `sequence`; none if the sender's thread was interrupted.
    pub(super) fn of(&self, sequence: u64) -> Option<Time<Utc>> {
        *self.times.get(usize::try_from(sequence).ok()?)?
    }
}
