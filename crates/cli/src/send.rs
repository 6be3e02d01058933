//! `wirestamp send`.

use std::net::{IpAddr, SocketAddr};
use std::process::ExitCode;

use anyhow::{Context, bail};
use clap::Args;
use serde::Serialize;
use wirestamp_clock::{ClockService, Counter, Span};
use wirestamp_metrics::Distribution;
use wirestamp_traffic::{Pattern, Plan, Sender, ServiceClock, Stream};

use crate::clock::seconds;
use crate::interrupt::stop_on_signal;
use crate::output::{Output, mean, time};
use crate::target::Target;
use crate::usage::usage;

#[derive(Args)]
#[command(
    after_help = "Patterns of Orosz & Skopko 2013: voip is 140-byte frames every 20 ms (G.729), \
    hd-video 1368-byte frames every 1,367,992 ns.\n\nExamples:\n  \
    wirestamp send -i eth0 --to 192.0.2.7 --pattern voip --duration 10\n  \
    wirestamp send -i eth0 --to 2001:db8::7 --pattern free --size 200 --interval 50us -c 1000"
)]
pub(crate) struct Arguments {
    /// The interface, or interface@namespace
    #[arg(short, long, value_name = "IF")]
    interface: Target,
    /// Where to: an IPv4 or IPv6 address
    #[arg(long, value_name = "ADDRESS")]
    to: IpAddr,
    /// UDP destination port
    #[arg(long, default_value_t = 5004)]
    port: u16,
    /// voip, hd-video, or free with --size and --interval
    #[arg(long, value_name = "PATTERN", hide_possible_values = true,
          value_parser = ["voip", "hd-video", "free"])]
    pattern: String,
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
    /// Differentiated services code point
    #[arg(long, default_value_t = 0, value_parser = clap::value_parser!(u8).range(0..=63))]
    dscp: u8,
}

#[derive(Serialize)]
struct Document {
    pattern: String,
    destination: SocketAddr,
    sent: u64,
    bytes: u64,
    failed: u64,
    first_error: Option<String>,
    late: u64,
    pacing_error_ns: Distribution,
}

pub(crate) fn run(arguments: Arguments, output: Output) -> anyhow::Result<ExitCode> {
    let pattern = arguments.pattern()?;
    let packets = match (arguments.count, arguments.duration) {
        (Some(count), _) => count,
        (None, Some(seconds)) => pattern.packets_in(span(seconds)),
        (None, None) => u64::MAX,
    };
    let destination = SocketAddr::new(arguments.to, arguments.port);
    let name = pattern.name().to_owned();
    let stream = Stream {
        interface: Some(arguments.interface.interface.clone()),
        dscp: arguments.dscp,
        ..Stream::new(1, Plan { pattern, start: Span::ZERO, packets }, destination)
    };
    let clock = ClockService::start(Counter::select()).context("cannot calibrate the counter")?;
    let stop = stop_on_signal()?;
    let sender = arguments.interface.enter(|| Sender::open(vec![stream]))??;
    if packets == u64::MAX {
        output.remark(format!("sending {name} to {destination}; Ctrl-C ends it"));
    }
    let mut pacing = Distribution::new();
    let report = sender.run(&mut ServiceClock::new(&clock), stop.flag(), |sent| {
        pacing.record(sent.pacing_error);
    });
    let late = report.overslept;
    let [stream] = <[_; 1]>::try_from(report.streams)
        .map_err(|streams| anyhow::anyhow!("one stream was sent, {} reported", streams.len()))?;
    let document = Document {
        pattern: name,
        destination,
        sent: stream.sent,
        bytes: stream.bytes,
        failed: stream.failed,
        first_error: stream.first_error,
        late,
        pacing_error_ns: pacing,
    };
    output.result(&document, text)?;
    match (&document.first_error, document.sent) {
        (Some(error), 0) => bail!("no packet was sent to {destination}: {error}"),
        _ => Ok(ExitCode::SUCCESS),
    }
}

impl Arguments {
    fn pattern(&self) -> anyhow::Result<Pattern> {
        match (Pattern::by_name(&self.pattern), self.size, self.interval) {
            (Some(pattern), None, None) => Ok(pattern),
            (Some(_), ..) => Err(usage("--size and --interval belong to --pattern free")),
            (None, Some(size), Some(interval)) => Ok(Pattern::new("free", size, interval)?),
            (None, ..) => Err(usage("--pattern free needs --size and --interval")),
        }
    }
}

fn text(document: &Document) -> String {
    let Document { pattern, destination, sent, bytes, failed, .. } = document;
    let mut text = format!("{sent} packets, {bytes} bytes of {pattern} to {destination}\n");
    if let Some(error) = document.pacing_error_ns.summary() {
        text.push_str(&format!(
            "sent after their deadline by: mean {}, median {}, 99 % within {}, latest {}\n",
            mean(error.mean),
            time(error.p50),
            time(error.p99),
            time(error.max)
        ));
    }
    if let Some(reason) = &document.first_error {
        text.push_str(&format!("{failed} packets were refused, the first with: {reason}\n"));
    }
    text
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
