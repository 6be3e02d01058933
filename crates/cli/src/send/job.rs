//! Checks the arguments and turns them into a send job.

use std::net::SocketAddr;
use std::path::Path;

use wirestamp_clock::Span;
use wirestamp_traffic::live::{Direction, Limit};
use wirestamp_traffic::{
    Pattern, ReplayOptions, SendMethod, SendOptions, Speed, Stream, StreamPlan,
};

use super::arguments::{Arguments, LIVE};
use super::live::LiveJob;
use crate::files::is_pipe;
use crate::usage::usage;

/// Default UDP destination port, and default source port of live frames.
const PORT: u16 = 5004;

/// What to send, and how.
pub(super) enum Job {
    Pattern(Stream, SendOptions),
    Replay(ReplayOptions, SendOptions),
    Live(LiveJob),
}

impl Arguments {
    pub(super) fn job(&self) -> anyhow::Result<Job> {
        if self.method.as_deref() == Some(LIVE) {
            return Ok(Job::Live(self.live_frames()?));
        }
        let live = &self.live;
        reject(
            "requires --method live",
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

    fn recording(&self, path: &Path) -> anyhow::Result<ReplayOptions> {
        reject(
            "conflicts with --replay, which sends the frames of the file unchanged",
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
                "cannot replay a pipe: a replay reads the file twice; write it to a file first",
            ));
        }
        let speed = self.speed.unwrap_or(Speed::RECORDED);
        Ok(ReplayOptions { path: path.to_owned(), speed, loops: self.loops.unwrap_or(1) })
    }

    fn stream(&self) -> anyhow::Result<Stream> {
        reject(
            "requires --replay",
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
            ..Stream::new(
                1,
                StreamPlan { pattern, start: Span::ZERO, packets },
                self.destination()?,
            )
        })
    }

    fn destination(&self) -> anyhow::Result<SocketAddr> {
        let to = self.to.ok_or_else(|| usage("no destination; add --to"))?;
        Ok(SocketAddr::new(to, self.port.unwrap_or(PORT)))
    }

    fn pattern(&self) -> anyhow::Result<Pattern> {
        let Some(name) = &self.pattern else {
            return Err(usage("nothing to send; add --pattern, --replay FILE or --method live"));
        };
        match (Pattern::by_name(name), self.size, self.interval) {
            (Some(pattern), None, None) => Ok(pattern),
            (Some(_), ..) => Err(usage("--size and --interval require --pattern free")),
            (None, Some(size), Some(interval)) => Ok(Pattern::new("free", size, interval)?),
            (None, ..) => Err(usage("--pattern free needs --size and --interval")),
        }
    }

    fn transmission(&self) -> anyhow::Result<SendOptions> {
        let otherwise = if self.replay.is_some() { SendMethod::Packet } else { SendMethod::Udp };
        let method = self.method.as_deref().and_then(|it| it.parse().ok()).unwrap_or(otherwise);
        match method {
            SendMethod::Udp => reject(
                "conflicts with --method udp, where the kernel makes the frames; use packet, \
                 ring or xdp",
                [
                    ("--replay", self.replay.is_some()),
                    ("--mac", self.mac.is_some()),
                    ("--qdisc-bypass", self.qdisc_bypass),
                ],
            )?,
            SendMethod::Xdp => reject(
                "is not supported by --method xdp; use udp, packet or ring",
                [("--tx-stamps", self.tx_stamps)],
            )?,
            SendMethod::Packet | SendMethod::Ring => {}
        }
        if method != SendMethod::Xdp {
            reject("requires --method xdp", [("--queue", self.queue.is_some())])?;
        }
        Ok(SendOptions {
            method,
            mac: self.mac,
            queue: self.queue.unwrap_or(0),
            bypass_queue: self.qdisc_bypass,
            tx_stamps: self.tx_stamps,
        })
    }

    fn live_frames(&self) -> anyhow::Result<LiveJob> {
        reject(
            "conflicts with --method live, whose frames are generated at --rate",
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
            // The min size with room for the payload.
            frame_bytes: self.size.unwrap_or(if to.is_ipv6() { 80 } else { 60 }),
            flows: live.flows.unwrap_or(1),
            pace: live.burst.map_or(Ok(pace), |frames| pace.with_burst(frames))?,
            limit: Limit { frames: self.count, duration: self.duration.map(span) },
        })
    }
}

/// Rejects the first given argument of the list, with the reason for all.
fn reject<const N: usize>(reason: &str, arguments: [(&str, bool); N]) -> anyhow::Result<()> {
    match arguments.into_iter().find(|(_, given)| *given) {
        Some((name, _)) => Err(usage(format!("{name} {reason}"))),
        None => Ok(()),
    }
}

/// Converts seconds, already checked to be below a year, to nanoseconds.
#[expect(clippy::cast_possible_truncation, reason = "below a year, which is 3.2e16 ns")]
fn span(seconds: f64) -> Span {
    Span::from_nanos((seconds * 1e9) as i64)
}
