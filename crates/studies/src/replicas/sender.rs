//! The sender, which is also the device under test.

use std::io;
use std::net::{Ipv4Addr, UdpSocket};
use std::thread;
use std::time::Duration;

use anyhow::{Context, ensure};
use rustix::net::netdevice::name_to_index;
use wirestamp_capture::Stop;
use wirestamp_capture::xsk::Transmitter;
use wirestamp_clock::{Counter, DifferenceClock};
use wirestamp_lab::Netns;

use super::frame;
use super::round::Round;

/// Frames that may be on their way over a link at a time.
const FRAMES: u32 = 1024;

/// Warm-up packets before a round, and their gap. The kernel begins to stamp packets a moment after the
/// first socket has requested it (`net_enable_timestamp` of net/core/dev.c), the caches are filled, and at
/// this rate no tap loses packets.
pub(super) const AHEAD: u32 = 30;
const AHEAD_GAP: Duration = Duration::from_millis(1);
/// The number that those carry.
const AHEAD_NUMBER: u64 = u64::MAX;

/// Max attempts to queue a frame before the round fails.
const MAX_QUEUE_ATTEMPTS: u32 = 10_000_000;

/// When both replicas of a packet were handed to the kernel, by the counter.
pub(super) type Sent = [u64; 2];

/// Sends replicas over two links, past all queueing disciplines.
pub(super) struct Sender {
    links: [Link; 2],
    counter: Counter,
    rate: DifferenceClock,
}

/// An AF_XDP socket at the end of a link.
struct Link {
    transmitter: Transmitter,
    template: Vec<u8>,
}

impl Sender {
    /// Opens both ends: each by its namespace and its interface's name.
    pub(super) fn open(
        ends: [(&Netns, &str); 2],
        frame_bytes: u16,
        counter: Counter,
        rate: DifferenceClock,
    ) -> anyhow::Result<Self> {
        let template = frame::template(frame_bytes)?;
        let open = |(netns, interface): (&Netns, &str)| {
            let transmitter = netns.run(|| transmitter(interface)).and_then(|opened| opened);
            let transmitter =
                transmitter.with_context(|| format!("cannot send over {interface}"))?;
            anyhow::Ok(Link { transmitter, template: template.clone() })
        };
        let [first, second] = ends;
        Ok(Self { links: [open(first)?, open(second)?], counter, rate })
    }

    /// Sends the packets of a round on the calling thread, as many as fit in its time, and returns the send
    /// times. No packet is sent before it is due.
    pub(super) fn run(&mut self, round: &Round<'_>, stop: &Stop) -> anyhow::Result<Vec<Sent>> {
        for _ in 0..AHEAD {
            self.replicate(AHEAD_NUMBER, 0, 0)?;
            thread::sleep(AHEAD_GAP);
        }
        let [interval, time] = [round.interval, round.time].map(|span| self.rate.ticks(span));
        let mut sent: Vec<Sent> = Vec::with_capacity(usize::try_from(round.packets)?);
        let mut due = self.counter.read();
        let end = due.saturating_add(time);
        for number in 0..round.packets {
            if stop.is_requested() || self.counter.read() >= end {
                break;
            }
            let delay = self.rate.ticks((round.delay)(number));
            let both = self.replicate(number.into(), due, delay)?;
            // Never faster than the link: a delayed packet also delays the following ones.
            due = both[0].saturating_add(interval);
            sent.push(both);
        }
        Ok(sent)
    }

    /// Sends the first replica when it is `due`, and the second `delay` ticks later; each at once if
    /// that has passed.
    fn replicate(&mut self, number: u64, due: u64, delay: u64) -> anyhow::Result<Sent> {
        let Self { links: [first, second], counter, .. } = self;
        first.prepare(number)?;
        second.prepare(number)?;
        let before = first.send_at(due, *counter)?;
        let after = second.send_at(before.saturating_add(delay), *counter)?;
        Ok([before, after])
    }
}

impl Link {
    /// Queues the frame of a number in the memory shared with the kernel.
    fn prepare(&mut self, number: u64) -> anyhow::Result<()> {
        frame::set_number(&mut self.template, number);
        for _ in 0..MAX_QUEUE_ATTEMPTS {
            let template = &self.template;
            let queued = self.transmitter.queue(|memory| {
                memory[..template.len()].copy_from_slice(template);
                u32::try_from(template.len()).unwrap_or(0)
            });
            if queued {
                return Ok(());
            }
            self.transmitter.reclaim()?;
        }
        anyhow::bail!("the link does not send")
    }

    /// Makes the kernel send it when the counter reaches `due`; returns the counter's value right before.
    fn send_at(&mut self, due: u64, counter: Counter) -> anyhow::Result<u64> {
        while counter.read() < due {}
        let now = counter.read_ordered();
        self.transmitter.flush()?;
        ensure!(self.transmitter.refused() == 0, "the link drops frames: is it up?");
        Ok(now)
    }
}

/// An AF_XDP socket at the interface of this name in the calling thread's namespace.
fn transmitter(interface: &str) -> io::Result<Transmitter> {
    // Any socket can be used for the query.
    let index = name_to_index(UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0))?, interface)?;
    Transmitter::open(index, 0, FRAMES)
}
