//! A bed with packets that pass all the time.

use std::fs;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use wirestamp_lab::{Impairments, PathLab, SINK_V4, SOURCE_INTERFACE, TAP_B};

/// Much more time than any of it takes.
const PATIENCE: Duration = Duration::from_secs(20);

/// Packets from the source to the sink, every millisecond until this is dropped.
pub(crate) struct Traffic {
    lab: PathLab,
    sender: Child,
}

impl Traffic {
    pub(crate) fn start() -> Self {
        let lab = PathLab::new(&Impairments::bottleneck(100_000_000, 100_000)).unwrap();
        let sink = SINK_V4.to_string();
        let mut command = lab.source().command("wirestamp");
        command.args(["send", "-q", "-i", SOURCE_INTERFACE, "--to", &sink, "--pattern", "free"]);
        command.args(["--size", "200", "--interval", "1ms", "--duration", "600"]);
        let sender = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        let traffic = Self { lab, sender };
        traffic.wait_for_packets();
        traffic
    }

    /// Works where the packets arrive, and is given the index of the interface there.
    pub(crate) fn at_sink(&self, work: impl FnOnce(i32) + Send) {
        let found = || {
            let index = fs::read_to_string(format!("/sys/class/net/{TAP_B}/ifindex")).unwrap();
            work(index.trim().parse().unwrap());
        };
        self.lab.sink().run(found).unwrap();
    }

    /// Waits until some more have gone through the bottleneck, the last of which is before tap B.
    pub(crate) fn wait_for_packets(&self) {
        let passed = || self.lab.bottleneck().unwrap().sent_packets;
        let enough = passed() + 3;
        let begun = Instant::now();
        while passed() < enough {
            assert!(begun.elapsed() < PATIENCE, "no packets pass");
        }
    }
}

impl Drop for Traffic {
    fn drop(&mut self) {
        // It may have ended by itself.
        drop(self.sender.kill());
        drop(self.sender.wait());
    }
}
