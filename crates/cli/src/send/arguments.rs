//! The command line of `wirestamp send`.

use std::net::IpAddr;
use std::path::PathBuf;

use clap::Args;
use clap::builder::PossibleValuesParser;
use wirestamp_clock::Span;
use wirestamp_traffic::{MacAddress, SendMethod, Speed};

use super::live::LiveArguments;
use crate::parse::{at_least_one, dscp, interval, seconds};
use crate::target::Target;

/// The additional method that is not in [`SendMethod`].
pub(super) const LIVE: &str = "live";

#[derive(Args)]
#[command(after_help = "\
Patterns of Orosz & Skopko 2013:
  voip      140-byte frames every 20 ms (G.729)
  hd-video  1368-byte frames every 1,367,992 ns

Methods:
  udp     a UDP socket
  packet  complete frames through a packet socket, one system call for each
  ring    complete frames in a ring shared with the kernel, one system call for all that are due
  xdp     complete frames past the network stack (AF_XDP); zero-copy if the driver supports it
  live    one frame sent repeatedly, numbered and stamped by an XDP program; the fastest. The send
          time in the payload is of the kernel's monotonic clock
Complete frames bypass routing and firewall, and with xdp and live the queueing discipline. The
kernel drops such frames to 127.0.0.1, except live ones with --receive.

Examples:
  wirestamp send -i eth0 --to 192.0.2.7 --pattern voip --duration 10
  wirestamp send -i eth0 --to 2001:db8::7 --pattern free --size 200 --interval 50us -c 1000
  wirestamp send -i eth0 --to 192.0.2.7 --pattern voip -d 10 --tx-stamps --log sent.csv
  wirestamp send -i eth0 --replay call.pcapng --speed 2
  wirestamp send -i eth0 --to 192.0.2.7 --method live --rate max -d 10
  wirestamp send -i eth0 --to 192.0.2.1 --method live --rate 1000000 --receive --from 192.0.2.7")]
pub(crate) struct Arguments {
    /// The interface, or interface@namespace
    #[arg(short, long, value_name = "IF")]
    pub(super) interface: Target,
    /// Destination: an IPv4 or IPv6 address
    #[arg(long, value_name = "ADDRESS", required_unless_present = "replay")]
    pub(super) to: Option<IpAddr>,
    /// UDP destination port [default: 5004]
    #[arg(long, allow_negative_numbers = true)]
    pub(super) port: Option<u16>,
    /// Traffic pattern: voip, hd-video, or free with --size and --interval
    #[arg(long, value_name = "PATTERN", hide_possible_values = true,
          value_parser = ["voip", "hd-video", "free"])]
    pub(super) pattern: Option<String>,
    /// Frame size of the free pattern or of live frames in bytes, with Ethernet header
    /// [default: 60 for live frames, 80 with IPv6]
    #[arg(
        long,
        value_name = "BYTES",
        allow_negative_numbers = true,
        required_if_eq("pattern", "free")
    )]
    pub(super) size: Option<u16>,
    /// Interval of the free pattern, such as 20ms, 50us or 1500ns; 0ns sends back to back
    #[arg(long, value_name = "TIME", value_parser = interval,
          required_if_eq("pattern", "free"))]
    pub(super) interval: Option<Span>,
    /// End after this many packets
    #[arg(short, long, value_name = "PACKETS", conflicts_with = "duration",
          allow_negative_numbers = true, value_parser = at_least_one::<u64>)]
    pub(super) count: Option<u64>,
    /// End after this many seconds
    #[arg(short, long, value_name = "SECONDS", allow_negative_numbers = true,
          value_parser = seconds)]
    pub(super) duration: Option<f64>,
    /// Differentiated services code point, as a number or name such as EF or AF41 [default: 0]
    #[arg(long, allow_negative_numbers = true, value_parser = dscp)]
    pub(super) dscp: Option<u8>,
    /// Send the unchanged frames of this capture file with its timing, instead of a pattern
    #[arg(long, value_name = "FILE", help_heading = "Replay")]
    pub(super) replay: Option<PathBuf>,
    /// Speed factor of the replay, such as 2 or 0.5
    #[arg(long, value_name = "FACTOR", allow_negative_numbers = true, help_heading = "Replay")]
    pub(super) speed: Option<Speed>,
    /// Number of repetitions of the replay
    #[arg(long, value_name = "N", help_heading = "Replay",
          allow_negative_numbers = true, value_parser = at_least_one::<u64>)]
    pub(super) loops: Option<u64>,
    /// Send method: udp, packet, ring, xdp or live [default: udp; packet for a replay]
    #[arg(long, value_name = "METHOD", hide_possible_values = true,
          value_parser = methods(), help_heading = "Method")]
    pub(super) method: Option<String>,
    /// Destination hardware address of frames [default: the next hop's, from the kernel]
    #[arg(long, value_name = "MAC", help_heading = "Method")]
    pub(super) mac: Option<MacAddress>,
    /// Transmit queue of the interface for xdp [default: 0]
    #[arg(long, value_name = "N", allow_negative_numbers = true, help_heading = "Method")]
    pub(super) queue: Option<u32>,
    /// Bypass the interface's queueing discipline, as xdp and live always do
    #[arg(long, help_heading = "Method")]
    pub(super) qdisc_bypass: bool,
    #[command(flatten)]
    pub(super) live: LiveArguments,
    /// Request transmit stamps from the kernel: when each packet was queued and when it left
    #[arg(long, help_heading = "Report")]
    pub(super) tx_stamps: bool,
    /// Write a row for each packet to this CSV file: sequence number, intended and actual send time
    /// and transmit stamps, in nanoseconds since 1970 (UTC)
    #[arg(long, value_name = "FILE", help_heading = "Report")]
    pub(super) log: Option<PathBuf>,
}

fn methods() -> PossibleValuesParser {
    let names = SendMethod::ALL.into_iter().map(SendMethod::name);
    PossibleValuesParser::new(names.chain([LIVE]))
}
