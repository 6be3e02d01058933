//! What to send and how, as the command line says it.

use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;

use clap::Args;
use wirestamp_clock::Span;
use wirestamp_traffic::{
    MacAddress, Pattern, Plan, Recording, SendMethod, Speed, Stream, Transmission,
};

use crate::clock::seconds;
use crate::target::Target;
use crate::usage::usage;

#[derive(Args)]
#[command(
    after_help = "Patterns of Orosz & Skopko 2013: voip is 140-byte frames every 20 ms (G.729), \
    hd-video 1368-byte frames every 1,367,992 ns.\n\nMethods: udp is a UDP socket; packet sends \
    whole frames through a packet socket; ring puts them into memory shared with the kernel, \
    which takes those that are due at once in one call. Of such frames, the kernel lets none \
    to 127.0.0.1 in.\n\nExamples:\n  \
    wirestamp send -i eth0 --to 192.0.2.7 --pattern voip --duration 10\n  \
    wirestamp send -i eth0 --to 2001:db8::7 --pattern free --size 200 --interval 50us -c 1000\n  \
    wirestamp send -i eth0 --to 192.0.2.7 --pattern voip -d 10 --tx-stamps --log sent.csv\n  \
    wirestamp send -i eth0 --replay call.pcapng --speed 2"
)]
pub(crate) struct Arguments {
    /// The interface, or interface@namespace
    #[arg(short, long, value_name = "IF")]
    pub(super) interface: Target,
    /// Where to: an IPv4 or IPv6 address
    #[arg(long, value_name = "ADDRESS", required_unless_present = "replay")]
    to: Option<IpAddr>,
    /// UDP destination port [default: 5004]
    #[arg(long)]
    port: Option<u16>,
    /// voip, hd-video, or free with --size and --interval
    #[arg(long, value_name = "PATTERN", hide_possible_values = true,
          value_parser = ["voip", "hd-video", "free"], required_unless_present = "replay")]
    pattern: Option<String>,
    /// Frame size of the free pattern in bytes, Ethernet header included
    #[arg(long, value_name = "BYTES", required_if_eq("pattern", "free"))]
    size: Option<u16>,
    /// Interval of the free pattern, such as 20ms, 50us or 1500ns; 0ns sends back to back
    #[arg(long, value_name = "TIME", value_parser = interval,
          required_if_eq("pattern", "free"))]
    interval: Option<Span>,
    /// End after so many packets
    #[arg(short, long, value_name = "PACKETS", conflicts_with = "duration",
          value_parser = clap::value_parser!(u64).range(1..))]
    count: Option<u64>,
    /// End after so many seconds
    #[arg(short, long, value_name = "SECONDS", value_parser = seconds)]
    duration: Option<f64>,
    /// Differentiated services code point [default: 0]
    #[arg(long, value_parser = clap::value_parser!(u8).range(0..=63))]
    dscp: Option<u8>,
    /// Send the frames of this capture file as they are, with its timing, instead of a pattern
    #[arg(long, value_name = "FILE", help_heading = "Replay")]
    replay: Option<PathBuf>,
    /// Replay so many times faster than recorded, such as 2 or 0.5
    #[arg(long, value_name = "FACTOR", help_heading = "Replay")]
    speed: Option<Speed>,
    /// Replay the file so many times
    #[arg(long, value_name = "N", help_heading = "Replay",
          value_parser = clap::value_parser!(u64).range(1..))]
    loops: Option<u64>,
    /// How packets are handed to the kernel: udp, packet or ring [default: udp; packet to replay]
    #[arg(long, value_name = "METHOD", hide_possible_values = true,
          value_parser = SendMethod::ALL.map(SendMethod::name), help_heading = "Method")]
    method: Option<String>,
    /// Address frames to this hardware address, instead of the next hop's that the kernel knows
    #[arg(long, value_name = "MAC", help_heading = "Method")]
    mac: Option<MacAddress>,
    /// Go round the interface's queueing discipline
    #[arg(long, help_heading = "Method")]
    qdisc_bypass: bool,
    /// Have the kernel say when each packet was queued and when it left
    #[arg(long, help_heading = "Report")]
    tx_stamps: bool,
    /// Write a line for each packet to this CSV file: sequence number; intended and actual time
    /// and transmit stamps in nanoseconds since 1970
    #[arg(long, value_name = "FILE", help_heading = "Report")]
    pub(super) log: Option<PathBuf>,
}

/// What to send.
pub(super) enum Job {
    Pattern(Stream),
    Replay(Recording),
}

impl Arguments {
    pub(super) fn job(&self) -> anyhow::Result<Job> {
        match &self.replay {
            Some(path) => {
                self.refuse_with_replay()?;
                let speed = self.speed.unwrap_or(Speed::RECORDED);
                let (path, loops) = (path.clone(), self.loops.unwrap_or(1));
                Ok(Job::Replay(Recording { path, speed, loops }))
            }
            None if self.speed.is_some() || self.loops.is_some() => {
                Err(usage("--speed and --loops belong to --replay"))
            }
            None => Ok(Job::Pattern(self.stream()?)),
        }
    }

    pub(super) fn transmission(&self) -> anyhow::Result<Transmission> {
        let otherwise = if self.replay.is_some() { SendMethod::Packet } else { SendMethod::Udp };
        let method = self.method.as_deref().and_then(SendMethod::by_name).unwrap_or(otherwise);
        let (mac, bypass_queue, tx_stamps) = (self.mac, self.qdisc_bypass, self.tx_stamps);
        if method == SendMethod::Udp {
            let frames = "with udp the kernel makes the frames: use --method packet or ring for";
            match (&self.replay, mac, bypass_queue) {
                (Some(_), ..) => return Err(usage(format!("{frames} --replay"))),
                (_, Some(_), _) => return Err(usage(format!("{frames} --mac"))),
                (.., true) => return Err(usage(format!("{frames} --qdisc-bypass"))),
                _ => {}
            }
        }
        Ok(Transmission { method, mac, bypass_queue, tx_stamps })
    }

    /// What a file says for itself.
    fn refuse_with_replay(&self) -> anyhow::Result<()> {
        let given = [
            ("--to", self.to.is_some()),
            ("--port", self.port.is_some()),
            ("--pattern", self.pattern.is_some()),
            ("--size", self.size.is_some()),
            ("--interval", self.interval.is_some()),
            ("--count", self.count.is_some()),
            ("--duration", self.duration.is_some()),
            ("--dscp", self.dscp.is_some()),
            ("--mac", self.mac.is_some()),
        ];
        match given.into_iter().find(|(_, given)| *given) {
            Some((name, _)) => Err(usage(format!(
                "{name} does not go with --replay, which sends the frames of the file as they are"
            ))),
            None => Ok(()),
        }
    }

    fn stream(&self) -> anyhow::Result<Stream> {
        let pattern = self.pattern()?;
        let packets = match (self.count, self.duration) {
            (Some(count), _) => count,
            (None, Some(seconds)) => pattern.packets_in(span(seconds)),
            (None, None) => u64::MAX,
        };
        let to = self.to.ok_or_else(|| usage("--pattern needs --to"))?;
        let destination = SocketAddr::new(to, self.port.unwrap_or(5004));
        Ok(Stream {
            interface: Some(self.interface.interface.clone()),
            dscp: self.dscp.unwrap_or(0),
            ..Stream::new(1, Plan { pattern, start: Span::ZERO, packets }, destination)
        })
    }

    fn pattern(&self) -> anyhow::Result<Pattern> {
        let named = self.pattern.as_deref().and_then(Pattern::by_name);
        match (named, self.size, self.interval) {
            (Some(pattern), None, None) => Ok(pattern),
            (Some(_), ..) => Err(usage("--size and --interval belong to --pattern free")),
            (None, Some(size), Some(interval)) => Ok(Pattern::new("free", size, interval)?),
            (None, ..) => Err(usage("--pattern free needs --size and --interval")),
        }
    }
}

/// `20ms`, `50us`, `1500ns`, `2s`.
fn interval(text: &str) -> Result<Span, String> {
    let digits = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    let scale = match unit {
        "ns" => 1,
        "us" | "µs" => 1_000,
        "ms" => 1_000_000,
        "s" => 1_000_000_000,
        _ => return Err("expected a whole number and a unit, such as 20ms, 50us or 1500ns".into()),
    };
    let number = number.parse::<i64>().map_err(|_| "expected a whole number before the unit")?;
    number.checked_mul(scale).map(Span::from_nanos).ok_or_else(|| "this is too long".into())
}

/// Seconds, as they are checked to be below a year, in nanoseconds.
#[expect(clippy::cast_possible_truncation, reason = "below a year, which is 3.2e16 ns")]
fn span(seconds: f64) -> Span {
    Span::from_nanos((seconds * 1e9) as i64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interval_has_a_unit() {
        assert_eq!(interval("20ms"), Ok(Span::from_millis(20)));
        assert_eq!(interval("1367992ns"), Ok(Span::from_nanos(1_367_992)));
        assert!(interval("20").is_err());
        assert!(interval("ms").is_err());
        assert!(interval("99999999999s").is_err());
    }
}
