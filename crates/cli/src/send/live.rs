//! Live frames: `send --method live`.

use std::net::{IpAddr, SocketAddr};
use std::sync::atomic::AtomicBool;

use clap::Args;
use wirestamp_clock::{ClockService, Span};
use wirestamp_traffic::live::{
    self, Direction, Limit, LiveError, LiveFrames, LiveReport, Pace, Template,
};
use wirestamp_traffic::{MacAddress, ServiceClock};

use super::present::{Document, Traffic};

/// Arguments for `--method live`.
#[derive(Args)]
#[command(next_help_heading = "Live frames")]
pub(super) struct LiveArguments {
    /// Frames per second, or max
    #[arg(long, value_name = "PPS", allow_negative_numbers = true, value_parser = rate,
          required_if_eq("method", "live"))]
    pub(super) rate: Option<Pace>,
    /// Frames sent back to back [default: the min that keeps the rate]
    #[arg(long, value_name = "FRAMES", allow_negative_numbers = true)]
    pub(super) burst: Option<u32>,
    /// Number of source ports over which the frames are distributed [default: 1]
    #[arg(long, value_name = "FLOWS", allow_negative_numbers = true)]
    pub(super) flows: Option<u16>,
    /// UDP source port of the first flow [default: 5004]
    #[arg(long, value_name = "PORT", allow_negative_numbers = true)]
    pub(super) source_port: Option<u16>,
    /// Source address [default: chosen by the kernel]
    #[arg(long, value_name = "ADDRESS", required_if_eq("receive", "true"))]
    pub(super) from: Option<IpAddr>,
    /// Inject the frames as received on the interface instead of sending them; --mac is then the
    /// sender's
    #[arg(long)]
    pub(super) receive: bool,
}

/// A send job of live frames.
pub(super) struct LiveJob {
    pub(super) direction: Direction,
    pub(super) to: SocketAddr,
    /// None with [`Direction::Transmit`]: the kernel's choice.
    pub(super) from: Option<IpAddr>,
    pub(super) source_port: u16,
    pub(super) mac: Option<MacAddress>,
    pub(super) frame_bytes: u16,
    pub(super) flows: u16,
    pub(super) pace: Pace,
    pub(super) limit: Limit,
}

impl LiveJob {
    /// Sends on `interface` in the calling thread's network namespace, where the kernel looks it up
    /// at preparation and at each send.
    pub(super) fn send(
        &self,
        interface: &str,
        clock: &ClockService,
        stop: &AtomicBool,
    ) -> Result<LiveReport, LiveError> {
        let mut frames = LiveFrames::open(interface, self.template(interface)?, self.direction)?;
        frames.run(&ServiceClock::new(clock), self.pace, self.limit, stop)
    }

    fn template(&self, interface: &str) -> Result<Template, LiveError> {
        let Self { to, from, source_port, mac, frame_bytes, flows, .. } = *self;
        let [source, destination] = match (self.direction, from) {
            (Direction::Receive, Some(from)) => {
                live::incoming(interface, to, SocketAddr::new(from, source_port), mac)?
            }
            _ => live::outgoing(interface, to, from, source_port, mac)?,
        };
        Ok(Template { source, destination, frame_bytes, flows, stream: 1 })
    }

    pub(super) fn document(&self, report: &LiveReport) -> Document {
        let traffic = Traffic::Live {
            destination: self.to,
            burst: self.pace.burst(),
            dropped: report.dropped,
            elapsed_ns: report.elapsed.as_nanos(),
            packets_per_second: per_second(report.sent, report.elapsed),
            latest_ns: report.latest.map(Span::as_nanos),
        };
        let (sent, bytes, late) = (report.sent, report.bytes, report.overslept);
        Document { sent, bytes, late, ..Document::new(traffic, "live") }
    }
}

#[expect(clippy::cast_precision_loss, reason = "shown with fewer digits than a double has")]
fn per_second(sent: u64, elapsed: Span) -> f64 {
    let seconds = elapsed.as_nanos() as f64 / 1e9;
    if seconds > 0.0 { sent as f64 / seconds } else { 0.0 }
}

/// Parses a number of frames per second, or `max`.
fn rate(text: &str) -> Result<Pace, String> {
    if text == "max" {
        return Ok(Pace::full_speed());
    }
    let number = text.parse().map_err(|_| "expected frames per second, such as 1000000, or max")?;
    Pace::rate(number).map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_is_a_number_or_max() {
        assert_eq!(rate("max"), Ok(Pace::full_speed()));
        assert_eq!(rate("1000").unwrap().burst(), 1);
        assert!(rate("0").is_err() && rate("fast").is_err() && rate("-1").is_err());
    }
}
