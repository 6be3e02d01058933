//! A test bed with continuous traffic.

use std::process::{Child, Stdio};

use wirestamp_lab::{Impairments, PathLab, SINK_V4, SOURCE_INTERFACE, TAP_B};

use crate::tools::{finished, json};

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
        Self { lab, sender }
    }

    /// Runs `work` in the namespace of the sink, with the index of its interface.
    pub(crate) fn at_sink(&self, work: impl FnOnce(i32) + Send) {
        let output = self.lab.sink().command("ip").args(["-j", "link", "show", TAP_B]).output();
        let links = json(&finished("ip", output.unwrap()));
        let index = links[0]["ifindex"].as_i64().unwrap().try_into().unwrap();
        self.lab.sink().run(|| work(index)).unwrap();
    }
}

impl Drop for Traffic {
    fn drop(&mut self) {
        // The sender may have ended already.
        drop(self.sender.kill());
        drop(self.sender.wait());
    }
}
