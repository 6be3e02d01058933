//! The command line of `wirestamp delay`.

use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::Args;
use wirestamp_capture::{Error, Limit, Method, StampSource, pair};
use wirestamp_clock::Span;
use wirestamp_metrics::emodel::Codec;
use wirestamp_metrics::flow::{FlowConfig, RtpMapEntry};
use wirestamp_metrics::{self as metrics, FlowTable, JitterBuffer, Sampling};
use wirestamp_session::PointState;

use super::clocks;
use super::match_option::Matching;
use crate::capture::Direction;
use crate::files::check_outputs;
use crate::metrics::Endpoint;
use crate::parse::{jitter_buffer, milliseconds, seconds};
use crate::redirection::Consent;
use crate::usage::usage;

/// Flows reported one by one; further flows are aggregated.
const FLOWS: usize = 1000;

#[derive(Args)]
#[command(after_help = "Examples:\n  \
    wirestamp delay a.pcapng b.pcapng --codec g711 --report delay.html\n  \
    wirestamp delay phone.pcapng router.pcapng server.pcapng\n  \
    wirestamp delay tap-a@wirestamp-router tap-b@wirestamp-sink --duration 10 --layers\n  \
    wirestamp delay eth0 eth1 -Q inout --sample 1/16\n  \
    ssh there wirestamp capture -i eth0 -w - udp | wirestamp delay - eth0 --filter udp\n  \
    wirestamp delay here.pcapng there.pcapng --align --remove-skew")]
pub(crate) struct Arguments {
    /// The first point: a capture file, one interface of a file (file.pcapng#eth0), a pipe (- for standard input), an
    /// interface, or interface@namespace
    pub(super) a: String,
    /// The second point
    pub(super) b: String,
    /// Further points, all files, in the order in which packets pass them: shows between which of them packets are lost or
    /// delayed
    #[arg(value_name = "MORE")]
    pub(super) more: Vec<String>,
    /// A packet that has not arrived after this time counts as lost: milliseconds, or with a unit such as 500ms or 2s
    #[arg(long, value_name = "MS", default_value_t = 1000, value_parser = milliseconds(1..=3_600_000))]
    pub(super) timeout: u32,
    /// Measure only packets that match this filter in pcap-filter(7) syntax
    #[arg(long, value_name = "FILTER")]
    pub(super) filter: Option<String>,
    /// Measure only a share of the packets, such as 1/16 or 0.0625; a hash selects the same packets
    /// at both points
    #[arg(long, value_name = "SHARE")]
    pub(super) sample: Option<Sampling>,
    /// How packets of both points are recognised as the same: packet (addresses and content), beginning (fewer bytes, for
    /// a short snap length), reassembled (fragments are joined), inner (inside of tunnels), payload (without addresses
    /// and ports, for NAT), rtp (by its numbers, for NAT and relays); auto: packet; if it recognises almost no packet, also the
    /// other rules: in files, and with an interface on the packets of the first seconds
    #[arg(long = "match", value_name = "RULE", default_value = "auto")]
    pub(super) matching: Matching,
    /// Rate every flow as a phone call with this codec, instead of only RTP by its payload type: g711, g711-plc, g723.1-5.3,
    /// g723.1-6.3, g729, g729a, gsm-fr, gsm-efr, amr-wb- with 6.6, 8.85, 12.65, 14.25, 15.85, 18.25, 19.85, 23.05 or 23.85,
    /// evs-swb- with 9.6, 13.2, 16.4, 24.4, 32 or 48, or Opus such as opus-swb-vbr-25 (nb, wb or swb; vbr or cbr; kbit/s). An
    /// invalid name prints all codecs
    #[arg(long, value_name = "CODEC")]
    pub(super) codec: Option<Codec>,
    /// De-jitter buffer assumed for rating voice, in milliseconds or with a unit such as 60ms, or adaptive: adds to the
    /// delay; packets that are later count as lost
    #[arg(long, value_name = "MS", default_value = "60", value_parser = jitter_buffer)]
    pub(super) jitter_buffer: JitterBuffer,
    /// Codec of an RTP payload type whose session description is not in the capture: payload type, encoding name and clock rate
    /// in Hz, such as 97=opus/48000; repeat for more
    #[arg(long, value_name = "PT=NAME/HZ")]
    rtp_map: Vec<RtpMapEntry>,
    /// Write an HTML report with figures to this file
    #[arg(long, value_name = "FILE")]
    pub(super) report: Option<PathBuf>,
    /// Write a row for each packet to this file, as CSV
    #[arg(long, value_name = "FILE")]
    pub(super) csv: Option<PathBuf>,
    /// Write a row for each packet to this file, as Parquet
    #[arg(long, value_name = "FILE")]
    pub(super) parquet: Option<PathBuf>,
    /// Add the packets and delays of each second to the document of --json
    #[arg(long)]
    pub(super) per_second: bool,
    /// Clock offset of the second point relative to the first, in seconds, positive if it is ahead; it is subtracted from the
    /// stamps of the second point
    #[arg(long, value_name = "SECONDS", value_parser = clocks::offset, allow_hyphen_values = true,
          conflicts_with = "align", help_heading = "For two clocks")]
    pub(super) offset: Option<Span>,
    /// Align two files whose clocks differ by any amount; delays are then relative to the min
    #[arg(long, help_heading = "For two clocks")]
    pub(super) align: bool,
    /// Remove the clock skew between two files from the delays
    #[arg(long, help_heading = "For two clocks")]
    pub(super) remove_skew: bool,
    /// Read a damaged file up to the damage
    #[arg(long, help_heading = "For files")]
    pub(super) partial: bool,
    #[command(flatten)]
    pub(super) live: LiveArguments,
}

/// Arguments for live capture.
#[derive(Args)]
#[command(next_help_heading = "For interfaces")]
pub(super) struct LiveArguments {
    /// Measure for this many seconds [default: until Ctrl-C]
    #[arg(short, long, value_name = "SECONDS", value_parser = seconds)]
    duration: Option<f64>,
    /// Capture method: ring, recvmsg, recvmmsg, libpcap, xdp (which redirects the packets, so that
    /// they do not reach the network stack), xdp-pass, tc-pass or trace-pass [default:
    /// ring]
    #[arg(long, value_name = "METHOD")]
    method: Option<Method>,
    /// Stamp source: kernel, raw, xdp, tc or trace [default: kernel, but xdp for xdp and
    /// xdp-pass, tc for tc-pass, and trace for trace-pass]
    #[arg(long, value_name = "STAMP")]
    stamp: Option<StampSource>,
    /// in: only received packets; out: only packets sent by this machine; inout: both, as on the sender's own
    /// interface [default: in]
    #[arg(short = 'Q', long, value_enum, hide_possible_values = true)]
    pub(super) direction: Option<Direction>,
    /// Also measure the layers behind the second point, from the driver to the application, as
    /// `wirestamp layers` does
    #[arg(long)]
    pub(super) layers: bool,
    #[command(flatten)]
    pub(super) consent: Consent,
    #[command(flatten)]
    pub(super) endpoint: Endpoint,
}

impl LiveArguments {
    /// Rejects these arguments when both points are files.
    pub(super) fn refuse(&self) -> anyhow::Result<()> {
        let given = [
            ("--duration", self.duration.is_some()),
            ("--method", self.method.is_some()),
            ("--stamp", self.stamp.is_some()),
            ("--direction", self.direction.is_some()),
            ("--layers", self.layers),
            ("--yes", self.consent.is_given()),
            ("--metrics", self.endpoint.is_open()),
        ];
        match given.into_iter().find(|&(_, given)| given) {
            Some((option, _)) => {
                Err(usage(format!("{option} applies to interfaces, not to files")))
            }
            None => Ok(()),
        }
    }

    pub(super) fn duration(&self) -> Option<Duration> {
        self.duration.map(Duration::from_secs_f64)
    }

    pub(super) fn limit(&self) -> Limit {
        Limit { packets: None, duration: self.duration() }
    }

    pub(super) fn method(&self) -> Method {
        self.method.unwrap_or(Method::Ring)
    }

    pub(super) fn pair(&self) -> Result<(Method, StampSource), Error> {
        let method = self.method();
        let stamp = self.stamp.unwrap_or_else(|| method.default_stamp());
        pair(method, stamp).map(|_| (method, stamp))
    }
}

impl Arguments {
    /// All points in order.
    pub(super) fn points(&self) -> impl Iterator<Item = &str> {
        [&self.a, &self.b].into_iter().chain(&self.more).map(String::as_str)
    }

    /// Rejects files of the result that would overwrite an input or each other, or that cannot be written.
    pub(super) fn check_outputs(&self, inputs: &[&Path]) -> anyhow::Result<()> {
        let outputs = [
            ("--report", self.report.as_deref()),
            ("--csv", self.csv.as_deref()),
            ("--parquet", self.parquet.as_deref()),
        ];
        check_outputs(&outputs, inputs)
    }

    /// The correlator's configuration.
    pub(super) fn correlation(&self) -> metrics::Config {
        metrics::Config {
            timeout: Span::from_millis(self.timeout.into()),
            ..metrics::Config::default()
        }
    }

    /// How long a packet may take before it counts as lost.
    pub(super) fn timeout(&self) -> Duration {
        Duration::from_millis(self.timeout.into())
    }

    /// The share of the packets that is measured, 0 to 1.
    pub(super) fn share(&self) -> f64 {
        self.sample.as_ref().map_or(1.0, |it| it.share)
    }

    /// An empty table of [`FLOWS`] flows.
    pub(super) fn flow_table(&self) -> FlowTable {
        FlowTable::new(FLOWS).with_jitter_buffer(self.jitter_buffer)
    }

    /// The initial state of a point.
    pub(super) fn point_state(&self) -> PointState {
        PointState::new(self.sample.as_ref()).recognising(self.matching.first()).watching(
            FlowConfig {
                buffer: self.jitter_buffer,
                rtp_map: self.rtp_map.iter().cloned().collect(),
                ..FlowConfig::default()
            },
        )
    }
}

#[cfg(test)]
mod tests {
    use clap::{Command, FromArgMatches as _};

    use super::*;

    fn parsed(options: &[&str]) -> Result<Arguments, clap::Error> {
        let line = ["delay", "a.pcap", "b.pcap"].iter().chain(options);
        let matches = Arguments::augment_args(Command::new("delay")).try_get_matches_from(line)?;
        Arguments::from_arg_matches(&matches)
    }

    #[test]
    fn times_are_milliseconds_or_have_a_unit() {
        let of =
            |options: &[&str]| parsed(options).map(|it| (it.timeout, it.jitter_buffer)).unwrap();
        let buffer = |millis| JitterBuffer::Fixed(Span::from_millis(millis));
        assert_eq!(of(&[]), (1000, buffer(60)));
        assert_eq!(of(&["--timeout", "300", "--jitter-buffer", "80"]), (300, buffer(80)));
        assert_eq!(of(&["--timeout", "2s", "--jitter-buffer", "0.08s"]), (2000, buffer(80)));
        for wrong in [["--timeout", "0"], ["--timeout", "2h"], ["--jitter-buffer", "6s"]] {
            assert!(parsed(&wrong).is_err(), "{wrong:?}");
        }
    }
}
