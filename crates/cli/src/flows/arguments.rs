//! The command line of `wirestamp flows`.

use std::io::{self, IsTerminal};
use std::path::{Path, PathBuf};

use clap::Args;
use wirestamp_capture::file::split_interface;
use wirestamp_capture::{Error, Method, StampSource, pair};
use wirestamp_clock::Span;
use wirestamp_metrics::JitterBuffer;
use wirestamp_metrics::emodel::Codec;
use wirestamp_metrics::flow::{FlowConfig, RtpMapEntry};

use super::parties::Parties;
use crate::capture::Direction;
use crate::metrics::Endpoint;
use crate::output::Output;
use crate::parse::{jitter_buffer, milliseconds, seconds};
use crate::redirection::Consent;
use crate::target::Target;
use crate::usage::usage;

#[derive(Args)]
#[command(after_help = "Examples:\n  \
    wirestamp flows calls.pcapng\n  \
    wirestamp flows calls.pcapng --json --filter 'udp portrange 16384-32767'\n  \
    wirestamp flows calls.pcapng --delay 80 --jitter-buffer 40\n  \
    wirestamp flows calls.pcapng --parquet calls.parquet\n  \
    wirestamp flows eth0.pcapng eth1.pcapng.gz ring/ udp\n  \
    wirestamp flows -i eth0 --duration 60 udp\n\n\
    SIP calls (UDP, TCP) are listed with their streams; -v adds the messages of each call. \
    A single point cannot measure one-way delay. Voice is rated (MOS, R-factor) for the sum of \
    --delay and --jitter-buffer.")]
pub(crate) struct Arguments {
    /// A capture file: pcapng or pcap, also compressed with zstd, gzip or xz; FILE#IF for one interface of it; or a folder,
    /// whose captures are read as one, such as a ring. Further files, and folders with a / in their name, may follow: all are
    /// read as one capture, in the order of the stamps
    #[arg(value_name = "FILE")]
    file: Option<String>,
    /// A filter in pcap-filter(7) syntax
    #[arg(value_name = "FILTER")]
    words: Vec<String>,
    /// Capture live on this interface, or on interface@namespace; any captures at all interfaces
    #[arg(short, long, value_name = "IF")]
    interface: Option<Target>,
    /// Same as FILTER at the end
    #[arg(long = "filter", value_name = "FILTER")]
    filter: Option<String>,
    /// End after this many packets
    #[arg(short, long, value_name = "PACKETS", value_parser = clap::value_parser!(u64).range(1..))]
    pub(super) count: Option<u64>,
    /// Read a damaged file up to the damage
    #[arg(long)]
    pub(super) partial: bool,
    /// Max number of flows in the table, worst first; --json has all
    #[arg(long, value_name = "ROWS", default_value_t = 40)]
    pub(super) top: usize,
    /// Flows of the packets inside of tunnels (IPIP, 6in4, GRE, VXLAN, Geneve, GTP-U), instead of those of the tunnels
    #[arg(long, overrides_with = "outer")]
    pub(super) inner: bool,
    /// Flows of the packets as they are on the wire (the default)
    #[arg(long, overrides_with = "inner")]
    outer: bool,
    /// Browse the flows of a file interactively, as those of an interface
    #[arg(long, conflicts_with = "json")]
    pub(super) screen: bool,
    /// One-way network delay assumed for rating voice, in milliseconds or with a unit such as 80ms
    #[arg(long, value_name = "MS", default_value_t = 0, value_parser = milliseconds(0..=5000))]
    delay: u32,
    /// De-jitter buffer assumed for rating voice, in milliseconds or with a unit such as 60ms, or adaptive: adds to the
    /// delay; packets that are later count as lost
    #[arg(long, value_name = "MS", default_value = "60", value_parser = jitter_buffer)]
    jitter_buffer: JitterBuffer,
    /// Codec of an RTP payload type whose session description is not in the capture: payload type, encoding name and clock rate
    /// in Hz, such as 97=opus/48000; repeat for more
    #[arg(long, value_name = "PT=NAME/HZ")]
    rtp_map: Vec<RtpMapEntry>,
    /// Rate streams of EVS or Opus as this codec, such as evs-swb-24.4 or opus-swb-vbr-25: their packets do not contain the
    /// mode. Also for a variant of another codec, such as g711 without loss concealment; repeat for more. delay --help lists
    /// the codecs
    #[arg(long, value_name = "CODEC")]
    codec: Vec<Codec>,
    /// Show the digits that were dialled during calls (DTMF as telephone events); they may be secret
    #[arg(long)]
    dtmf: bool,
    #[command(flatten)]
    pub(super) parties: Parties,
    /// A gap longer than this ends a packet train: milliseconds, or with a unit such as 100ms or 1s
    #[arg(long, value_name = "MS", default_value_t = 100, value_parser = milliseconds(1..=3_600_000))]
    train_gap: u32,
    /// Time without a packet of a PID of video or audio that is an error of an MPEG transport stream (PID_error of ETSI TR
    /// 101 290), and without a CAT while packets are encrypted: milliseconds, or with a unit such as 2s
    #[arg(long, value_name = "MS", default_value_t = 5000, value_parser = milliseconds(1..=3_600_000))]
    pid_period: u32,
    /// Max number of flows, and of calls, in memory; new flows evict the longest idle, which is only aggregated
    #[arg(long, value_name = "FLOWS", default_value_t = 16_384,
          value_parser = clap::value_parser!(u32).range(1..=16_777_216))]
    max_flows: u32,
    /// Write a row for each flow to this file, as CSV
    #[arg(long, value_name = "FILE")]
    pub(super) csv: Option<PathBuf>,
    /// Write a row for each flow to this file, as Parquet
    #[arg(long, value_name = "FILE")]
    pub(super) parquet: Option<PathBuf>,
    #[command(flatten)]
    pub(super) live: LiveArguments,
}

/// Arguments for live capture.
#[derive(Args)]
#[command(next_help_heading = "For interfaces")]
pub(super) struct LiveArguments {
    /// End after this many seconds [default: until Ctrl-C]
    #[arg(short, long, value_name = "SECONDS", value_parser = seconds)]
    pub(super) duration: Option<f64>,
    /// Capture method: ring, recvmsg, recvmmsg, libpcap, xdp (which redirects the packets, so that
    /// they do not reach the network stack), xdp-pass, tc-pass or trace-pass [default:
    /// ring]
    #[arg(long, value_name = "METHOD")]
    method: Option<Method>,
    /// Stamp source: kernel, raw, xdp, tc, trace or hardware [default: kernel, but xdp for xdp and
    /// xdp-pass, tc for tc-pass, and trace for trace-pass]
    #[arg(long, value_name = "STAMP")]
    stamp: Option<StampSource>,
    /// in: only received packets; out: only packets sent by this machine; inout: both [default: inout]
    #[arg(short = 'Q', long, value_enum, hide_possible_values = true)]
    pub(super) direction: Option<Direction>,
    /// Print the flows at the end only, even on a terminal
    #[arg(long, conflicts_with_all = ["screen", "json"])]
    pub(super) no_screen: bool,
    #[command(flatten)]
    pub(super) consent: Consent,
    #[command(flatten)]
    pub(super) endpoint: Endpoint,
}

/// Where the packets come from.
pub(super) enum Source<'a> {
    /// One or more.
    Files(Vec<&'a Path>),
    Interface(&'a Target),
}

impl<'a> Source<'a> {
    /// The files, if there are any.
    pub(super) fn files(&self) -> &[&'a Path] {
        match self {
            Self::Files(paths) => paths,
            Self::Interface(_) => &[],
        }
    }
}

impl Arguments {
    /// Where the packets come from.
    ///
    /// # Errors
    /// If options of the other kind of source are given.
    pub(super) fn source(&self) -> anyhow::Result<Source<'_>> {
        let LiveArguments { duration, method, stamp, direction, no_screen, consent, endpoint } =
            &self.live;
        let given = [
            ("--duration", duration.is_some()),
            ("--method", method.is_some()),
            ("--stamp", stamp.is_some()),
            ("--direction", direction.is_some()),
            ("--no-screen", *no_screen),
            ("--yes", consent.is_given()),
            ("--metrics", endpoint.is_open()),
        ];
        if self.filter.is_some() && !self.filter_words().is_empty() {
            return Err(usage("a filter is given with --filter and at the end; leave one out"));
        }
        match (&self.interface, &self.file) {
            (Some(_), _) if self.partial => {
                Err(usage("--partial applies to files, not to interfaces"))
            }
            (Some(target), _) => Ok(Source::Interface(target)),
            (None, Some(file)) => match given.into_iter().find(|&(_, given)| given) {
                Some((option, _)) => {
                    Err(usage(format!("{option} applies to interfaces, and {file} is a file")))
                }
                None if is_interface_only(file) => Err(usage(format!(
                    "no file {file}, but an interface of that name; use `flows -i {file}`"
                ))),
                None => {
                    let more = self.words.iter().take_while(|word| is_file(word));
                    Ok(Source::Files([file].into_iter().chain(more).map(Path::new).collect()))
                }
            },
            (None, None) => Err(usage("no input; give a capture FILE, or an interface with -i IF")),
        }
    }

    /// Whether the flows of an interface are shown interactively.
    pub(super) fn shows_screen(&self, output: Output) -> bool {
        is_interactive() && !output.json && !self.live.no_screen
    }

    /// Whether the flows of a file are shown interactively before they are printed.
    ///
    /// # Errors
    /// If there is no terminal.
    pub(super) fn browses(&self) -> anyhow::Result<bool> {
        if self.screen && !is_interactive() {
            return Err(usage("--screen needs a terminal; leave it out to print the flows"));
        }
        Ok(self.screen)
    }

    /// The filter, if there is one.
    pub(super) fn filter(&self) -> Option<String> {
        let words: Vec<_> = self.filter_words().into_iter().chain(self.filter.as_deref()).collect();
        Some(words.join(" ")).filter(|text| !text.trim().is_empty())
    }

    /// The words of the filter at the end.
    fn filter_words(&self) -> Vec<&str> {
        let words = self.words.iter().map(String::as_str);
        match &self.interface {
            // The positional FILE is the filter's first word.
            Some(_) => self.file.as_deref().into_iter().chain(words).collect(),
            None => words.skip_while(|word| is_file(word)).collect(),
        }
    }

    /// The configuration of the flow monitor.
    pub(super) fn config(&self) -> FlowConfig {
        FlowConfig {
            // Not more than 2^24.
            flows: usize::try_from(self.max_flows).unwrap_or(usize::MAX),
            train_gap: Span::from_millis(self.train_gap.into()),
            delay: Span::from_millis(self.delay.into()),
            buffer: self.jitter_buffer,
            rtp_map: self.rtp_map.iter().cloned().collect(),
            codecs: self.codec.clone(),
            calls: usize::try_from(self.max_flows).unwrap_or(usize::MAX),
            digits: self.dtmf,
            pid_period: Span::from_millis(self.pid_period.into()),
        }
    }
}

impl LiveArguments {
    /// Capture method and stamp source.
    pub(super) fn pair(&self) -> Result<(Method, StampSource), Error> {
        let method = self.method.unwrap_or(Method::Ring);
        let stamp = self.stamp.unwrap_or_else(|| method.default_stamp());
        pair(method, stamp).map(|_| (method, stamp))
    }
}

/// Whether the name is an interface and not a file.
fn is_interface_only(name: &str) -> bool {
    // The kernel's list of interfaces: sysfs(5).
    let is_there = || Path::new("/sys/class/net").join(name).exists();
    !name.contains('/') && !Path::new(name).exists() && is_there()
}

/// Whether a word after the first file is another file or folder, and not the begin of a filter. A folder needs a `/`: it may
/// have the name of a keyword, such as `net`.
fn is_file(word: &str) -> bool {
    let (path, _) = split_interface(Path::new(word));
    // The name of a file that does not exist is not in the syntax of filters.
    path.is_file() || word.contains('/') && path.is_dir() || word == "-" || word.contains(".pcap")
}

/// Whether standard input and output are a terminal.
fn is_interactive() -> bool {
    io::stdin().is_terminal() && io::stdout().is_terminal()
}

#[cfg(test)]
mod tests {
    use clap::{Command, FromArgMatches as _};

    use super::*;

    #[test]
    fn times_are_milliseconds_or_have_a_unit() {
        let config = |options: &[&str]| -> Result<FlowConfig, clap::Error> {
            let line = ["flows", "a.pcap"].iter().chain(options);
            // --screen refers to --json.
            let parser = Output::augment_args(Arguments::augment_args(Command::new("flows")));
            let matches = parser.try_get_matches_from(line)?;
            Arguments::from_arg_matches(&matches).map(|it| it.config())
        };
        for (options, delay, gap) in [
            (&[][..], 0, 100),
            (&["--delay", "80", "--train-gap", "50"], 80, 50),
            (&["--delay", "0.08s", "--train-gap", "1s", "--jitter-buffer", "60ms"], 80, 1000),
        ] {
            let found = config(options).unwrap();
            let expected = [delay, gap].map(Span::from_millis);
            assert_eq!([found.delay, found.train_gap], expected, "{options:?}");
            assert_eq!(found.buffer, JitterBuffer::default(), "{options:?}");
        }
        for wrong in [["--delay", "6s"], ["--delay", "500us"], ["--train-gap", "0ms"]] {
            assert!(config(&wrong).is_err(), "{wrong:?}");
        }
    }
}
