//! `wirestamp flood`: live frames.

use std::net::{IpAddr, SocketAddr};
use std::process::ExitCode;

use anyhow::Context;
use clap::Args;
use serde::Serialize;
use wirestamp_capture::Stop;
use wirestamp_clock::{ClockService, Counter, Span};
use wirestamp_traffic::ServiceClock;
use wirestamp_traffic::live::{
    Direction, Endpoint, Limit, LiveError, LiveFrames, LiveReport, Pace, Template, own_address,
    own_mac,
};

use crate::clock::seconds;
use crate::interrupt::stop_on_signal;
use crate::output::{Output, time};
use crate::target::Target;

/// Who received frames come from where nobody has said it: a locally administered address.
const SOMEBODY: Mac = Mac([2, 0, 0, 0, 0, 1]);

#[derive(Args)]
#[command(
    after_help = "A frame's payload has its number and, in its field of the actual send time, the \
    kernel's monotonic clock. Frames go out as they are: no route, filter or queue has a say.\n\n\
    Examples:\n  \
    wirestamp flood -i eth0 --to 192.0.2.7 --mac 02:00:00:00:00:07 --size 60 --rate max -d 10\n  \
    wirestamp flood -i eth0 --receive --from 192.0.2.7 --to 192.0.2.1 --rate 1000000 -d 10"
)]
pub(crate) struct Arguments {
    /// The interface, or interface@namespace
    #[arg(short, long, value_name = "IF")]
    interface: Target,
    /// Where to: an IPv4 or IPv6 address
    #[arg(long, value_name = "ADDRESS")]
    to: IpAddr,
    /// Where from; by default what the kernel would send from
    #[arg(long, value_name = "ADDRESS", required_if_eq("receive", "true"))]
    from: Option<IpAddr>,
    /// The next hop's Ethernet address (`ip neighbour` lists them); with --receive the sender's
    #[arg(long, value_name = "MAC", required_unless_present = "receive")]
    mac: Option<Mac>,
    /// UDP destination port
    #[arg(long, default_value_t = 5004)]
    port: u16,
    /// UDP source port of the first flow
    #[arg(long, default_value_t = 5004, value_name = "PORT")]
    source_port: u16,
    /// Spread the frames over so many source ports
    #[arg(long, default_value_t = 1, value_name = "FLOWS")]
    flows: u16,
    /// Frame size in bytes, Ethernet header included, check sequence not
    #[arg(long, default_value_t = 60, value_name = "BYTES")]
    size: u16,
    /// Frames a second, or max
    #[arg(long, value_name = "PPS", value_parser = rate)]
    rate: Pace,
    /// Send so many frames back to back; by default the fewest that keep the rate
    #[arg(long, value_name = "FRAMES")]
    burst: Option<u32>,
    /// Let the frames arrive at the interface instead of leaving it
    #[arg(long)]
    receive: bool,
    /// End after so many frames
    #[arg(short, long, value_name = "FRAMES", conflicts_with = "duration",
          value_parser = clap::value_parser!(u64).range(1..))]
    count: Option<u64>,
    /// End after so many seconds
    #[arg(short, long, value_name = "SECONDS", value_parser = seconds)]
    duration: Option<f64>,
}

#[derive(Serialize)]
struct Document {
    destination: SocketAddr,
    sent: u64,
    bytes: u64,
    dropped: u64,
    burst: u32,
    late_bursts: u64,
    elapsed_ns: i64,
    packets_per_second: f64,
}

pub(crate) fn run(arguments: &Arguments, output: Output) -> anyhow::Result<ExitCode> {
    let pace = match arguments.burst {
        Some(frames) => arguments.rate.with_burst(frames)?,
        None => arguments.rate,
    };
    let clock = ClockService::start(Counter::select()).context("cannot calibrate the counter")?;
    let stop = stop_on_signal()?;
    let destination = SocketAddr::new(arguments.to, arguments.port);
    if arguments.count.is_none() && arguments.duration.is_none() {
        output.remark(format!("sending to {destination}; Ctrl-C ends it"));
    }
    // The kernel looks the interface up in the namespace of the thread that sends.
    let sending = || arguments.send(pace, &clock, &stop);
    let report = arguments.interface.enter(sending)??;
    let document = Document {
        destination,
        sent: report.sent,
        bytes: report.bytes,
        dropped: report.dropped,
        burst: pace.burst(),
        late_bursts: report.overslept,
        elapsed_ns: report.elapsed.as_nanos(),
        packets_per_second: per_second(report.sent, report.elapsed),
    };
    output.result(&document, text)?;
    Ok(ExitCode::SUCCESS)
}

impl Arguments {
    fn send(&self, pace: Pace, clock: &ClockService, stop: &Stop) -> Result<LiveReport, LiveError> {
        let interface = &self.interface.interface;
        let direction = if self.receive { Direction::Receive } else { Direction::Transmit };
        let mut live = LiveFrames::open(interface, self.template()?, direction)?;
        let limit = Limit { frames: self.count, duration: self.duration.map(span) };
        live.run(&ServiceClock::new(clock), pace, limit, stop.flag())
    }

    fn template(&self) -> Result<Template, LiveError> {
        let interface = &self.interface.interface;
        let (own, other) = (own_mac(interface)?, self.mac.unwrap_or(SOMEBODY).0);
        let [from_mac, to_mac] = if self.receive { [other, own] } else { [own, other] };
        let from = self.from.map_or_else(|| own_address(interface, self.to), Ok)?;
        let end = |mac, ip, port| Endpoint { mac, address: SocketAddr::new(ip, port) };
        Ok(Template {
            source: end(from_mac, from, self.source_port),
            destination: end(to_mac, self.to, self.port),
            frame_bytes: self.size,
            flows: self.flows,
            stream: 1,
        })
    }
}

fn text(document: &Document) -> String {
    let Document { destination, sent, bytes, dropped, burst, late_bursts, .. } = document;
    let mut text = format!(
        "{sent} frames, {bytes} bytes to {destination} in {}: {:.0} a second in bursts of {burst}\n",
        time(document.elapsed_ns),
        document.packets_per_second,
    );
    if *dropped > 0 {
        text.push_str(&format!("the interface dropped {dropped} frames meanwhile\n"));
    }
    if *late_bursts > 0 {
        text.push_str(&format!("{late_bursts} bursts were late because a sleep ended late\n"));
    }
    text
}

#[expect(clippy::cast_precision_loss, reason = "shown with fewer digits than a double has")]
fn per_second(sent: u64, elapsed: Span) -> f64 {
    let seconds = elapsed.as_nanos() as f64 / 1e9;
    if seconds > 0.0 { sent as f64 / seconds } else { 0.0 }
}

/// A number of frames a second, or `max`.
fn rate(text: &str) -> Result<Pace, String> {
    if text == "max" {
        return Ok(Pace::full_speed());
    }
    let number = text.parse().map_err(|_| "expected frames a second, such as 1000000, or max")?;
    Pace::rate(number).map_err(|error| error.to_string())
}

/// Seconds, as they are checked to be below a year, in nanoseconds.
#[expect(clippy::cast_possible_truncation, reason = "below a year, which is 3.2e16 ns")]
fn span(seconds: f64) -> Span {
    Span::from_nanos((seconds * 1e9) as i64)
}

/// An Ethernet address, as `02:00:00:00:00:01`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Mac([u8; 6]);

impl std::str::FromStr for Mac {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let byte = |part: &str| {
            let digits = part.len() == 2 && part.bytes().all(|b| b.is_ascii_hexdigit());
            digits.then(|| u8::from_str_radix(part, 16).ok()).flatten()
        };
        let bytes: Option<Vec<_>> = text.split(':').map(byte).collect();
        let mac = bytes.and_then(|bytes| bytes.try_into().ok());
        mac.map(Self).ok_or("expected six bytes such as 02:00:00:00:00:01")
    }
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

    #[test]
    fn an_ethernet_address_has_six_bytes_of_two_digits() {
        assert_eq!("02:00:00:00:00:fF".parse(), Ok(Mac([2, 0, 0, 0, 0, 255])));
        for text in ["", "02:00:00:00:00", "2:0:0:0:0:1", "02:00:00:00:00:+1", "02-00-00-00-00-01"]
        {
            assert!(text.parse::<Mac>().is_err(), "{text}");
        }
    }
}
