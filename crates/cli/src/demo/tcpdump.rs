//! Reference measurement of the same packets: tcpdump with the kernel's stamps at both taps.

use std::io::{BufRead, BufReader, Read};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStderr, Stdio};

use anyhow::{Context, bail};
use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempPath;
use wirestamp_capture::file::Reader;
use wirestamp_clock::{Span, Time, Utc};
use wirestamp_lab::{Netns, PathLab, TAP_A, TAP_B};
use wirestamp_metrics::{Outcome, Quality};

use wirestamp_session::{Terms, compare};

/// Two tcpdumps that are listening.
pub(super) struct TcpdumpPair {
    taps: [Tcpdump; 2],
}

struct Tcpdump {
    child: Child,
    stderr: BufReader<ChildStderr>,
    /// Removed with this, however the run ends.
    file: TempPath,
}

impl TcpdumpPair {
    /// Starts tcpdump at both taps and waits until both listen. `None` when it is not installed.
    pub(super) fn start(lab: &PathLab, folder: &Path) -> anyhow::Result<Option<Self>> {
        let start = |namespace: &Netns, tap: &str| {
            Tcpdump::start(namespace, tap, folder.join(format!("tcpdump-{tap}.pcap")))
        };
        let Some(a) = start(lab.router(), TAP_A)? else { return Ok(None) };
        let Some(b) = start(lab.sink(), TAP_B)? else { return Ok(None) };
        Ok(Some(Self { taps: [a, b] }))
    }

    /// Stops both and returns their results.
    pub(super) fn finish(mut self) -> anyhow::Result<TcpdumpResult> {
        self.taps.iter_mut().try_for_each(Tcpdump::finish)?;
        let [a, b] = self.taps.each_ref().map(|tap| Reader::open(&tap.file));
        let mut result = TcpdumpResult::default();
        compare(a?, b?, &Terms::default(), &mut |outcome, _| result.record(&outcome))?;
        Ok(result)
    }
}

/// Results of the two tcpdumps.
#[derive(Default)]
pub(super) struct TcpdumpResult {
    pub(super) quality: Quality,
    /// Stamps at tap B, duplicates included.
    arrivals: Vec<Time<Utc>>,
    /// Stamp at tap A and delay of the packet with the max delay.
    longest: Option<(Time<Utc>, Span)>,
}

impl TcpdumpResult {
    fn record(&mut self, outcome: &Outcome) {
        self.quality.record(outcome);
        match outcome {
            Outcome::Matched { sent, received, delay, .. } => {
                self.arrivals.push(received.stamp.utc);
                if self.longest.is_none_or(|(_, longest)| longest < *delay) {
                    self.longest = Some((sent.stamp.utc, *delay));
                }
            }
            Outcome::Duplicated { received, .. } | Outcome::Unexpected { received } => {
                self.arrivals.push(received.stamp.utc);
            }
            Outcome::Lost { .. } | Outcome::Undetermined { .. } | Outcome::Identical { .. } => {}
        }
    }

    /// The part of the max delay in which no packet arrived at tap B, beyond the time `frame` of sending one
    /// packet. A packet was waiting in the queue, so the machine was stalled.
    pub(super) fn stalled(&self, frame: Span) -> Span {
        let Some((sent, delay)) = self.longest else { return Span::ZERO };
        let waiting = sent..=sent + delay;
        let mut during: Vec<_> =
            self.arrivals.iter().copied().filter(|at| waiting.contains(at)).collect();
        during.push(sent);
        during.sort_unstable();
        let beyond = during.windows(2).map(|pair| (pair[1] - pair[0] - frame).max(Span::ZERO));
        beyond.fold(Span::ZERO, |sum, gap| sum + gap)
    }
}

impl Tcpdump {
    fn start(namespace: &Netns, tap: &str, file: PathBuf) -> anyhow::Result<Option<Self>> {
        let mut command = namespace.command("tcpdump");
        // Nanoseconds, no batches, and a large buffer, as its manual advises against drops. Without a snap length each
        // packet takes 64 KiB of it. Without `-Z root` tcpdump cannot write to a folder of root.
        command.args(["-n", "--time-stamp-precision=nano", "--immediate-mode", "-B", "16384"]);
        command.args(["-s", "2000"]);
        command.args(["-Z", "root", "-i", tap, "-w"]).arg(&file).arg("udp");
        // Ctrl-C in a terminal must not end tcpdump before the last packets.
        command.process_group(0);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
        let mut child = match command.spawn() {
            Ok(child) => child,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error).context("cannot start tcpdump"),
        };
        let stderr = child.stderr.take().context("tcpdump has no standard error")?;
        let file = TempPath::try_from_path(file).context("cannot read the current folder")?;
        let mut tcpdump = Self { child, stderr: BufReader::new(stderr), file };
        let mut all = String::new();
        while !all.contains("listening on") {
            if tcpdump.stderr.read_line(&mut all)? == 0 {
                bail!("tcpdump does not listen on {tap}: {}", all.trim());
            }
        }
        Ok(Some(tcpdump))
    }

    fn finish(&mut self) -> anyhow::Result<()> {
        let pid = Pid::from_child(&self.child);
        kill_process(pid, Signal::INT).context("cannot end tcpdump")?;
        let mut summary = String::new();
        self.stderr.read_to_string(&mut summary)?;
        self.child.wait()?;
        let dropped = summary
            .lines()
            .find_map(|line| line.strip_suffix(" packets dropped by kernel"))
            .context("tcpdump did not report its drops")?;
        if dropped != "0" {
            bail!("tcpdump dropped {dropped} packets, so it is no reference; run the demo again");
        }
        Ok(())
    }
}

impl Drop for Tcpdump {
    fn drop(&mut self) {
        // For a run that failed before `finish`.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
