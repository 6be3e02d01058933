//! DPDK at the line rate, beside the captures that use the same sockets of the kernel. The paper leaves DPDK for later.
//!
//! DPDK has two drivers for links without a network card: one reads the ring of a packet socket, the other an AF_XDP socket.
//! In DPDK 22.11 neither gives a packet a stamp, so that only the loss is compared. The program dpdk-testpmd counts the
//! frames that it receives, in the mode `rxonly`.

use std::os::unix::process::CommandExt;
use std::time::Duration;
use std::{env, thread};

use anyhow::{Context, ensure};
use wirestamp_capture::Stop;

use super::cells::Conditions;
use super::line_rate::{self, Arrived};
use super::paper::{FIGURES_5_AND_6, LINE_RATES, LOADS, Speed};
use crate::experiment::{Cell, Design, Factor, Study};
use crate::replicas::Technique;
use crate::tester::{CAPTURE_CORE, INTERFACE, Load, Tool};

/// The program, and the Debian package that has it with both drivers.
const PROGRAM: &str = "dpdk-testpmd";
const PACKAGE: &str = "dpdk-dev";

/// Name of each receiver, and the device of DPDK that it is; none for a capture of ours. The ring of the packet socket is as
/// large as ours: frames of 2 KiB in 32 MiB instead of 1 MiB. AF_XDP has DPDK's default.
const RECEIVERS: [(&str, Option<&str>); 4] = [
    ("dpdk-af_packet", Some("net_af_packet0,framecnt=16384")),
    ("dpdk-af_xdp", Some("net_af_xdp0")),
    ("ring:kernel", None),
    ("xdp:xdp", None),
];

/// Memory of DPDK without huge pages, in MiB, and its buffers of a frame each.
const MEMORY_MIB: &str = "512";
const BUFFERS: &str = "16384";

/// Printed when it receives, and at the end before its counts.
const COUNTS: &str = "RX-packets:";
/// Time in which it reads what is left in a ring; nothing reports that.
const LAST_FRAMES: Duration = Duration::from_millis(200);

/// Duration of a run without sending: the start of DPDK, its first counts after a second, and its end.
const AROUND: Duration = Duration::from_secs(4);

/// How much is done.
#[derive(Clone, Copy, Debug)]
pub(super) struct DpdkScale {
    pub(super) repetitions: u32,
    /// How long a run sends.
    pub(super) time_ms: u32,
    pub(super) speeds: &'static [Speed],
}

impl DpdkScale {
    /// Takes four minutes.
    pub(super) const FULL: Self = Self { repetitions: 10, time_ms: 200, speeds: &LINE_RATES };
    /// Takes 12 seconds.
    pub(super) const QUICK: Self = Self { repetitions: 1, time_ms: 50, speeds: &[LINE_RATES[0]] };
}

/// The study.
pub(super) struct Dpdk {
    size: DpdkScale,
}

impl Dpdk {
    pub(super) const fn new(size: DpdkScale) -> Self {
        Self { size }
    }
}

impl Study for Dpdk {
    type Sample = Arrived;

    /// The factors of the line rate. They do not depend on what is installed, so that stored results can be shown.
    fn design(&self) -> Design {
        let DpdkScale { repetitions, time_ms, speeds } = self.size;
        let frame_bytes = FIGURES_5_AND_6.0.to_string();
        Design {
            name: "reception-dpdk".to_owned(),
            factors: vec![
                Factor::new("technique", RECEIVERS.map(|(name, _)| name)),
                Factor::new("frame size (bytes)", [frame_bytes.as_str()]),
                Factor::new("link speed", speeds.iter().map(|speed| speed.name)),
                Factor::new("CPU", [LOADS[0]]),
            ],
            repetitions,
            constants: vec![("milliseconds of a run".to_owned(), time_ms.to_string())],
        }
    }

    fn lasts(&self, _: &Cell) -> Duration {
        AROUND + Duration::from_millis(self.size.time_ms.into())
    }

    fn run(&mut self, cell: &Cell, stop: &Stop) -> anyhow::Result<Vec<Arrived>> {
        ensure!(is_installed(), "{PROGRAM} is not installed; install Debian's package {PACKAGE}");
        let conditions = Conditions::of(&self.design(), cell);
        let Conditions { technique, frame_bytes, speed, .. } =
            conditions.context("a cell without levels")?;
        let speed = self.size.speeds.iter().find(|it| it.name == speed);
        let load =
            line_rate::load(frame_bytes, *speed.context("no such speed")?, self.size.time_ms)?;
        let receiver = RECEIVERS.into_iter().find(|(name, _)| *name == technique);
        let arrived = match receiver.context("no such receiver")?.1 {
            Some(device) => receive(device, &load, stop)?,
            None => {
                let technique = Technique::named(&technique).context("no such technique")?;
                line_rate::receive(technique, &load, &line_rate::link()?, stop)?
            }
        };
        Ok(vec![arrived])
    }
}

fn is_installed() -> bool {
    let path = env::var_os("PATH").unwrap_or_default();
    env::split_paths(&path).any(|folder| folder.join(PROGRAM).is_file())
}

/// Sends a load to DPDK over a link of its own, whose interface DPDK changes.
fn receive(device: &str, load: &Load, stop: &Stop) -> anyhow::Result<Arrived> {
    let (bed, clock) = line_rate::link()?;
    // Both threads of DPDK have the core of the capture: the main one sleeps.
    let cores = format!("0@{CAPTURE_CORE},1@{CAPTURE_CORE}");
    let device = format!("{device},iface={INTERFACE}");
    let mut command = bed.receiver().command(PROGRAM);
    command.args(["--lcores", &cores, "--no-pci", "--no-huge", "--no-shconf", "-m", MEMORY_MIB]);
    command.args(["--no-telemetry", "--vdev", &device, "--", "--forward-mode=rxonly"]);
    command.args(["--nb-cores=1", "--stats-period=1", "--total-num-mbufs", BUFFERS]);
    // Ctrl-C in a terminal must not reach it: this process ends the run.
    command.process_group(0);
    let tool = Tool::start(PROGRAM, &mut command, COUNTS, Duration::ZERO)?;
    let sent = load.send(&bed, &clock, stop.flag())?;
    thread::sleep(LAST_FRAMES);
    let lines = tool.stop()?;
    let counts = lines.iter().rev().find_map(|line| counts(line));
    let (captured, capture_lost) =
        counts.with_context(|| format!("{PROGRAM} reports no counts"))?;
    Ok(Arrived {
        sent: sent.sent,
        elapsed_ns: sent.elapsed.as_nanos(),
        ring_dropped: sent.dropped,
        capture_lost,
        captured,
    })
}

/// Frames that DPDK received and those that it reports as dropped, from a line of its last counts.
fn counts(line: &str) -> Option<(u64, u64)> {
    let after = |name: &str| line.split_once(name)?.1.split_whitespace().next()?.parse().ok();
    Some((after(COUNTS)?, after("RX-dropped:")?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_are_those_of_the_end() {
        let last = "  RX-packets: 6353           RX-dropped: 3647          RX-total: 10000";
        assert_eq!(counts(last), Some((6353, 3647)));
        // Counts of a period.
        assert_eq!(
            counts("  RX-packets: 9755       RX-missed: 0          RX-bytes:  585300"),
            None
        );
        assert_eq!(counts("Done."), None);
    }

    #[test]
    fn receivers_are_devices_or_techniques() {
        let design = Dpdk::new(DpdkScale::FULL).design();
        for (cell, name) in design.cells().iter().step_by(2).zip(RECEIVERS) {
            let conditions = Conditions::of(&design, cell).unwrap();
            assert_eq!((&*conditions.technique, conditions.frame_bytes), (name.0, 64));
            assert_eq!(Technique::named(name.0).is_none(), name.1.is_some());
        }
    }
}
