//! The compared tools. Each is set up as its manual says, with a buffer of 64 MiB between kernel and tool.
//! Packets are delivered in blocks, not one by one (tcpdump's "immediate mode" is off).

use std::env;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, ensure};
use tempfile::TempDir;
use wirestamp_capture::capabilities::works_without_card;
use wirestamp_capture::{Method, PAIRS, Pair, StampSource};
use wirestamp_studies::tester::{Bed, CAPTURE_CORE, INTERFACE};

const BUFFER_MIB: u32 = 64;
const BUFFER_KIB: u32 = BUFFER_MIB * 1024;

/// A capture tool, or a method of ours.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Contender {
    Tcpdump,
    Dumpcap,
    NetsniffNg,
    Netring,
    Wirestamp(&'static Pair),
    /// The same, whose acquisition thread polls without pause (`--spin`).
    Spinning(&'static Pair),
}

impl Contender {
    pub(crate) const PEERS: [Self; 4] =
        [Self::Tcpdump, Self::Dumpcap, Self::NetsniffNg, Self::Netring];

    /// The peers and all our pairs, those with raw stamps also spinning; `brief` keeps only the default stamp of each
    /// method.
    pub(crate) fn all(brief: bool) -> Vec<Self> {
        let is_wanted = |pair: &&Pair| {
            works_without_card(pair) && (!brief || pair.stamp == pair.method.default_stamp())
        };
        let of_pair = |pair: &'static Pair| {
            let spinning = (pair.stamp == StampSource::Raw).then_some(Self::Spinning(pair));
            [Self::Wirestamp(pair)].into_iter().chain(spinning)
        };
        let ours = PAIRS.iter().filter(is_wanted).flat_map(of_pair);
        Self::PEERS.into_iter().chain(ours).collect()
    }

    /// The contender with this [`Self::name`].
    pub(crate) fn named(name: &str) -> Result<Self, String> {
        let all = Self::all(false);
        let names = || all.iter().map(|it| it.name()).collect::<Vec<_>>().join(", ");
        let found = all.iter().find(|it| it.name() == name);
        found.copied().ok_or_else(|| format!("there are {}", names()))
    }

    /// Our method and stamp, which are one of [`PAIRS`].
    pub(crate) fn ours(method: Method, stamp: StampSource, spins: bool) -> anyhow::Result<Self> {
        let pair = wirestamp_capture::pair(method, stamp)?;
        Ok(if spins { Self::Spinning(pair) } else { Self::Wirestamp(pair) })
    }

    /// Whether its acquisition thread keeps a core busy.
    pub(crate) const fn spins(self) -> bool {
        matches!(self, Self::Spinning(_))
    }

    pub(crate) fn name(self) -> String {
        match self {
            Self::Tcpdump => "tcpdump".into(),
            Self::Dumpcap => "dumpcap".into(),
            Self::NetsniffNg => "netsniff-ng".into(),
            Self::Netring => "netring".into(),
            Self::Wirestamp(pair) => format!("{}/{}", pair.method, pair.stamp),
            Self::Spinning(pair) => format!("{}/{}+spin", pair.method, pair.stamp),
        }
    }

    /// The command that captures to `file`.
    pub(crate) fn command(self, programs: &Programs, bed: &Bed, file: &Path) -> Command {
        let arguments = match self {
            // Without `-Z root`, tcpdump switches to a user that cannot write here.
            Self::Tcpdump => format!("-i {INTERFACE} -n -B {BUFFER_KIB} -Z root -w"),
            Self::Dumpcap => format!("-i {INTERFACE} -B {BUFFER_MIB} -q -w"),
            // "--ring-size" corresponds to tcpdump's "-B". The manual recommends "--silent", and with it
            // "--bind-cpu" for middle to high rates. Socket memory cannot be set in a namespace.
            Self::NetsniffNg => format!(
                "--in {INTERFACE} --ring-size {BUFFER_MIB}MiB --silent --bind-cpu {CAPTURE_CORE} \
                 --no-sock-mem --out"
            ),
            Self::Netring => INTERFACE.into(),
            Self::Wirestamp(Pair { method, stamp, .. })
            | Self::Spinning(Pair { method, stamp, .. }) => format!(
                "capture --json -i {INTERFACE} -B {BUFFER_KIB} --method {method} --stamp {stamp} \
                 {} -w",
                if self.spins() { "--spin" } else { "" }
            ),
        };
        let mut command = bed.receiver().command(programs.path(self));
        command.args(arguments.split_whitespace()).arg(file);
        if matches!(self, Self::Netring) {
            command.arg(BUFFER_MIB.to_string());
        }
        command
    }

    /// Text that the tool prints when the capture has started.
    pub(crate) const fn announcement(self) -> &'static str {
        match self {
            Self::Tcpdump => "listening on",
            Self::Dumpcap => "File:",
            Self::NetsniffNg => "Running!",
            Self::Netring | Self::Wirestamp(_) | Self::Spinning(_) => "capturing on",
        }
    }

    /// Max time for which the kernel holds back a block that is not full: tcpdump's value for
    /// pcap_set_timeout(3PCAP), dumpcap's `CAP_READ_TIMEOUT`, and netring's default, which is more than
    /// ours and the kernel's default for netsniff-ng (some 10 ms).
    pub(crate) const fn retires_within(self) -> Duration {
        Duration::from_millis(match self {
            Self::Tcpdump => 1000,
            Self::Dumpcap => 250,
            Self::NetsniffNg | Self::Netring | Self::Wirestamp(_) | Self::Spinning(_) => 60,
        })
    }
}

/// Paths of the programs, and the folder of their captures.
pub(crate) struct Programs {
    wirestamp: PathBuf,
    netring: PathBuf,
    /// Removed on drop. It is in the folder of the results, so that captures are on a disk.
    captures: TempDir,
}

impl Programs {
    /// Finds our program and netring's in `target/release` and `target/netring/release`.
    pub(crate) fn find(output: &Path) -> anyhow::Result<Self> {
        let here = env::current_exe()?;
        let release = here.parent().and_then(Path::parent).context("no target folder")?;
        let wirestamp = release.join("wirestamp");
        let netring = release.join("../netring/release/netring-capture");
        for program in [&wirestamp, &netring] {
            ensure!(program.exists(), "{} is missing: `make bench-capture`", program.display());
        }
        std::fs::create_dir_all(output)
            .with_context(|| format!("cannot make the folder {}", output.display()))?;
        let captures = tempfile::Builder::new().prefix("captures-").tempdir_in(output)?;
        Ok(Self { wirestamp, netring, captures })
    }

    fn path(&self, contender: Contender) -> &Path {
        match contender {
            Contender::Tcpdump => Path::new("tcpdump"),
            Contender::Dumpcap => Path::new("dumpcap"),
            Contender::NetsniffNg => Path::new("netsniff-ng"),
            Contender::Netring => &self.netring,
            Contender::Wirestamp(_) | Contender::Spinning(_) => &self.wirestamp,
        }
    }

    /// A file to capture to.
    pub(crate) fn capture_file(&self, contender: Contender) -> PathBuf {
        self.captures.path().join(contender.name().replace('/', "-") + ".pcap")
    }
}
