//! What `flows` is asked for.

use std::io::{self, IsTerminal};
use std::path::{Path, PathBuf};

use clap::Args;
use wirestamp_capture::{Error, Method, StampSource, pair};
use wirestamp_clock::Span;
use wirestamp_metrics::flow::FlowConfig;

use crate::capture::Direction;
use crate::clock::seconds;
use crate::metrics::Endpoint;
use crate::output::Output;
use crate::target::Target;
use crate::usage::usage;

#[derive(Args)]
#[command(after_help = "Examples:\n  \
    wirestamp flows calls.pcapng\n  \
    wirestamp flows calls.pcapng --json --filter 'udp portrange 16384-32767'\n  \
    wirestamp flows calls.pcapng --delay 80 --jitter-buffer 40\n  \
    wirestamp flows calls.pcapng --parquet calls.parquet\n  \
    wirestamp flows -i eth0 --duration 60 udp\n\n\
    A point does not know how long packets took to it. Voice is rated (MOS, R-factor) for the delay \
    that --delay and --jitter-buffer add up to.")]
pub(crate) struct Arguments {
    /// A capture file: pcapng or pcap, compressed with zstd or not
    #[arg(value_name = "FILE")]
    file: Option<String>,
    /// A filter in pcap-filter(7) syntax
    #[arg(value_name = "FILTER", trailing_var_arg = true)]
    words: Vec<String>,
    /// Capture on this interface instead, or on interface@namespace
    #[arg(short, long, value_name = "IF")]
    interface: Option<Target>,
    /// The same as FILTER at the end
    #[arg(long = "filter", value_name = "FILTER", conflicts_with = "words")]
    filter: Option<String>,
    /// End after so many packets
    #[arg(short, long, value_name = "PACKETS", value_parser = clap::value_parser!(u64).range(1..))]
    pub(super) count: Option<u64>,
    /// Use a damaged file up to the damage
    #[arg(long)]
    pub(super) partial: bool,
    /// Flows in the table, those that hurt most; --json has all of them
    #[arg(long, value_name = "ROWS", default_value_t = 40)]
    pub(super) top: usize,
    /// Browse the flows on the terminal, as is done with those of an interface
    #[arg(long, conflicts_with = "json")]
    pub(super) screen: bool,
    /// The network's one-way delay that voice is rated with, in milliseconds
    #[arg(long, value_name = "MS", default_value_t = 0,
          value_parser = clap::value_parser!(u16).range(..=5000))]
    delay: u16,
    /// The de-jitter buffer that voice is rated with, in milliseconds: a delay, and what comes later
    /// than it waits is as good as lost
    #[arg(long, value_name = "MS", default_value_t = 60,
          value_parser = clap::value_parser!(u16).range(..=5000))]
    jitter_buffer: u16,
    /// A packet train ends with a gap longer than so many milliseconds
    #[arg(long, value_name = "MS", default_value_t = 100,
          value_parser = clap::value_parser!(u32).range(1..=3_600_000))]
    train_gap: u32,
    /// Flows to keep at once; the one idle for longest makes room for a new one, and is added up
    #[arg(long, value_name = "FLOWS", default_value_t = 16_384,
          value_parser = clap::value_parser!(u32).range(1..=16_777_216))]
    max_flows: u32,
    /// Write a row for each flow to this file, as comma-separated values
    #[arg(long, value_name = "FILE")]
    pub(super) csv: Option<PathBuf>,
    /// The same as Parquet
    #[arg(long, value_name = "FILE")]
    pub(super) parquet: Option<PathBuf>,
    #[command(flatten)]
    pub(super) live: Live,
}

/// What only makes sense where packets are captured now.
#[derive(Args)]
#[command(next_help_heading = "For interfaces")]
pub(super) struct Live {
    /// Watch for so many seconds [default: until Ctrl-C]
    #[arg(short, long, value_name = "SECONDS", value_parser = seconds)]
    pub(super) duration: Option<f64>,
    /// How packets are received: ring, recvmsg, recvmmsg, libpcap, xdp (which takes them from whoever
    /// they were for), xdp-pass or tc-pass [default: ring]
    #[arg(long, value_name = "METHOD")]
    method: Option<Method>,
    /// Which clock stamps them: kernel, raw, xdp, tc or hardware [default: kernel, but xdp for xdp and
    /// xdp-pass, and tc for tc-pass]
    #[arg(long, value_name = "STAMP")]
    stamp: Option<StampSource>,
    /// in: only what arrives; inout: what this machine sends as well [default: inout]
    #[arg(short = 'Q', long, value_enum, hide_possible_values = true)]
    pub(super) direction: Option<Direction>,
    /// Print the flows at the end only, on a terminal too
    #[arg(long, conflicts_with_all = ["screen", "json"])]
    pub(super) no_screen: bool,
    #[command(flatten)]
    pub(super) endpoint: Endpoint,
}

/// Where the packets come from.
pub(super) enum Source<'a> {
    File(&'a Path),
    Interface(&'a Target),
}

impl Source<'_> {
    /// The file, if it is one.
    pub(super) fn file(&self) -> Option<&Path> {
        match self {
            Self::File(path) => Some(path),
            Self::Interface(_) => None,
        }
    }
}

impl Arguments {
    /// Where the packets come from.
    ///
    /// # Errors
    /// Options that are for the other kind.
    pub(super) fn source(&self) -> anyhow::Result<Source<'_>> {
        let Live { duration, method, stamp, direction, no_screen, endpoint } = &self.live;
        let given = [
            ("--duration", duration.is_some()),
            ("--method", method.is_some()),
            ("--stamp", stamp.is_some()),
            ("--direction", direction.is_some()),
            ("--no-screen", *no_screen),
            ("--metrics", endpoint.is_open()),
        ];
        match (&self.interface, &self.file) {
            (Some(_), _) if self.partial => {
                Err(usage("--partial is for files, and this is an interface"))
            }
            (Some(target), _) => Ok(Source::Interface(target)),
            (None, Some(file)) => match given.into_iter().find(|&(_, given)| given) {
                Some((option, _)) => {
                    Err(usage(format!("{option} is for interfaces, and {file} is a file")))
                }
                None if is_interface_only(file) => Err(usage(format!(
                    "there is no file {file}, but an interface: flows -i {file}"
                ))),
                None => Ok(Source::File(Path::new(file))),
            },
            (None, None) => Err(usage("give a capture FILE, or an interface with -i IF")),
        }
    }

    /// Whether the flows of an interface are shown while they are watched.
    pub(super) fn shows_screen(&self, output: Output) -> bool {
        somebody_looks() && !output.json && !self.live.no_screen
    }

    /// Whether the flows of a file are shown on the terminal before they are printed.
    ///
    /// # Errors
    /// When there is no terminal to do so.
    pub(super) fn browses(&self) -> anyhow::Result<bool> {
        if self.screen && !somebody_looks() {
            return Err(usage("--screen needs a terminal; without it the flows are printed"));
        }
        Ok(self.screen)
    }

    /// The filter, if there is one.
    pub(super) fn filter(&self) -> Option<String> {
        // With an interface, what would be the file begins the filter.
        let first = self.file.iter().filter(|_| self.interface.is_some());
        let words: Vec<_> = first.chain(&self.words).chain(&self.filter).map(|it| &**it).collect();
        Some(words.join(" ")).filter(|text| !text.trim().is_empty())
    }

    /// How the flows are watched.
    pub(super) fn config(&self) -> FlowConfig {
        FlowConfig {
            // Not more than 2^24.
            flows: usize::try_from(self.max_flows).unwrap_or(usize::MAX),
            train_gap: Span::from_millis(self.train_gap.into()),
            delay: Span::from_millis(self.delay.into()),
            buffer: Span::from_millis(self.jitter_buffer.into()),
        }
    }
}

impl Live {
    /// How packets are received, and which clock stamps them.
    pub(super) fn pair(&self) -> Result<(Method, StampSource), Error> {
        let method = self.method.unwrap_or(Method::Ring);
        let stamp = self.stamp.unwrap_or_else(|| method.default_stamp());
        pair(method, stamp).map(|_| (method, stamp))
    }
}

/// Whether an interface has this name, and no file.
fn is_interface_only(name: &str) -> bool {
    // The kernel's list of interfaces: sysfs(5).
    let is_there = || Path::new("/sys/class/net").join(name).exists();
    !name.contains('/') && !Path::new(name).exists() && is_there()
}

/// Whether there is a terminal to draw on and to read keys from.
fn somebody_looks() -> bool {
    io::stdin().is_terminal() && io::stdout().is_terminal()
}
