//! What is to be sent and how: which arguments go together, and what they come to.

use std::net::SocketAddr;
use std::path::Path;

use wirestamp_clock::Span;
use wirestamp_traffic::live::{Direction, Limit};
use wirestamp_traffic::{Pattern, Plan, Recording, SendMethod, Speed, Stream, Transmission};

use super::arguments::{Arguments, LIVE};
use super::live::LiveJob;
use crate::files::is_pipe;
use crate::usage::usage;

/// The UDP port that packets go to, and live frames come from, unless another is asked for.
const PORT: u16 = 5004;

/// What to send.
pub(super) enum Job {
    Pattern(Stream, Transmission),
    Replay(Recording, Transmission),
    Live(LiveJob),
}

impl Arguments {
    pub(super) fn job(&self) -> anyhow::Result<Job> {
        if self.method.as_deref() == Some(LIVE) {
            return Ok(Job::Live(self.live_frames()?));
        }
        let live = &self.live;
        refuse(
            "belongs to --method live",
            [
                ("--rate", live.rate.is_some()),
                ("--burst", live.burst.is_some()),
                ("--flows", live.flows.is_some()),
                ("--source-port", live.source_port.is_some()),
                ("--from", live.from.is_some()),
                ("--receive", live.receive),
            ],
        )?;
        match &self.replay {
            Some(path) => Ok(Job::Replay(self.recording(path)?, self.transmission()?)),
            None => Ok(Job::Pattern(self.stream()?, self.transmission()?)),
        }
    }

    fn recording(&self, path: &Path) -> anyhow::Result<Recording> {
        refuse(
            "does not go with --replay, which sends the frames of the file as they are",
            [
                ("--to", self.to.is_some()),
                ("--port", self.port.is_some()),
                ("--pattern", self.pattern.is_some()),
                ("--size", self.size.is_some()),
                ("--interval", self.interval.is_some()),
                ("--count", self.count.is_some()),
                ("--duration", self.duration.is_some()),
                ("--dscp", self.dscp.is_some()),
                ("--mac", self.mac.is_some()),
            ],
        )?;
        if is_pipe(path) {
            return Err(usage(
                "a pipe cannot be replayed, because a replay looks into the file first: write it to \
                 a file",
            ));
        }
        let speed = self.speed.unwrap_or(Speed::RECORDED);
        Ok(Recording { path: path.to_owned(), speed, loops: self.loops.unwrap_or(1) })
    }

    fn stream(&self) -> anyhow::Result<Stream> {
        refuse(
            "belongs to --replay",
            [("--speed", self.speed.is_some()), ("--loops", self.loops.is_some())],
        )?;
        let pattern = self.pattern()?;
        let packets = match (self.count, self.duration) {
            (Some(count), _) => count,
            (None, Some(seconds)) => pattern.packets_in(span(seconds)),
            (None, None) => u64::MAX,
        };
        Ok(Stream {
            interface: Some(self.interface.interface.clone()),
            dscp: self.dscp.unwrap_or(0),
            ..Stream::new(1, Plan { pattern, start: Span::ZERO, packets }, self.destination()?)
        })
    }

    fn destination(&self) -> anyhow::Result<SocketAddr> {
        let to = self.to.ok_or_else(|| usage("say where to send to: --to"))?;
        Ok(SocketAddr::new(to, self.port.unwrap_or(PORT)))
    }

    fn pattern(&self) -> anyhow::Result<Pattern> {
        let Some(name) = &self.pattern else {
            return Err(usage("say what to send: --pattern, --replay FILE or --method live"));
        };
        match (Pattern::by_name(name), self.size, self.interval) {
            (Some(pattern), None, None) => Ok(pattern),
            (Some(_), ..) => Err(usage("--size and --interval belong to --pattern free")),
            (None, Some(size), Some(interval)) => Ok(Pattern::new("free", size, interval)?),
            (None, ..) => Err(usage("--pattern free needs --size and --interval")),
        }
    }

    fn transmission(&self) -> anyhow::Result<Transmission> {
        let otherwise = if self.replay.is_some() { SendMethod::Packet } else { SendMethod::Udp };
        let method = self.method.as_deref().and_then(SendMethod::by_name).unwrap_or(otherwise);
        match method {
            SendMethod::Udp => refuse(
                "does not go with --method udp, where the kernel makes the frames: use packet, \
                 ring or xdp",
                [
                    ("--replay", self.replay.is_some()),
                    ("--mac", self.mac.is_some()),
                    ("--qdisc-bypass", self.qdisc_bypass),
                ],
            )?,
            SendMethod::Xdp => refuse(
                "does not go with --method xdp, which has none: use udp, packet or ring",
                [("--tx-stamps", self.tx_stamps)],
            )?,
            SendMethod::Packet | SendMethod::Ring => {}
        }
        if method != SendMethod::Xdp {
            refuse("belongs to --method xdp", [("--queue", self.queue.is_some())])?;
        }
        Ok(Transmission {
            method,
            mac: self.mac,
            queue: self.queue.unwrap_or(0),
            bypass_queue: self.qdisc_bypass,
            tx_stamps: self.tx_stamps,
        })
    }

    fn live_frames(&self) -> anyhow::Result<LiveJob> {
        refuse(
            "does not go with --method live, whose frames the kernel makes at a --rate",
            [
                ("--pattern", self.pattern.is_some()),
                ("--interval", self.interval.is_some()),
                ("--dscp", self.dscp.is_some()),
                ("--replay", self.replay.is_some()),
                ("--speed", self.speed.is_some()),
                ("--loops", self.loops.is_some()),
                ("--queue", self.queue.is_some()),
                ("--qdisc-bypass", self.qdisc_bypass),
                ("--tx-stamps", self.tx_stamps),
                ("--log", self.log.is_some()),
            ],
        )?;
        let (to, live) = (self.destination()?, &self.live);
        let pace = live.rate.ok_or_else(|| usage("--method live needs --rate"))?;
        Ok(LiveJob {
            direction: if live.receive { Direction::Receive } else { Direction::Transmit },
            to,
            from: live.from,
            source_port: live.source_port.unwrap_or(PORT),
            mac: self.mac,
            // The least that has room for the payload.
            frame_bytes: self.size.unwrap_or(if to.is_ipv6() { 80 } else { 60 }),
            flows: live.flows.unwrap_or(1),
            pace: live.burst.map_or(Ok(pace), |frames| pace.with_burst(frames))?,
            limit: Limit { frames: self.count, duration: self.duration.map(span) },
        })
    }
}

/// Refuses the first argument that was given, with the reason why none of them may be.
fn refuse<const N: usize>(reason: &str, arguments: [(&str, bool); N]) -> anyhow::Result<()> {
    match arguments.into_iter().find(|(_, given)| *given) {
        Some((name, _)) => Err(usage(format!("{name} {reason}"))),
        None => Ok(()),
    }
}

/// Seconds, as they are checked to be below a year, in nanoseconds.
#[expect(clippy::cast_possible_truncation, reason = "below a year, which is 3.2e16 ns")]
fn span(seconds: f64) -> Span {
    Span::from_nanos((seconds * 1e9) as i64)
}
