//! Events of the kernel's receive path at the cable's end.

use std::process::Command;

use anyhow::{Context, ensure};
use wirestamp_capture::events::{
    Error, EventLedger, InterfaceFilter, Recorder, RecorderConfig, TraceClock, TraceEvent,
};
use wirestamp_capture::{Cores, Stop};
use wirestamp_lab::TAP_A;
use wirestamp_traffic::Pattern;

use super::Probe;
use super::departures::{Departures, SendTimes};

/// Bytes of a ring for each event of a packet: more than any of the events has, so that no ring is read meanwhile.
const EVENT_BYTES: usize = 160;

/// An event of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PacketEvent {
    /// Which of the requested events.
    pub(crate) event: usize,
    /// Address of the packet's buffer in the kernel. Later packets reuse it.
    pub(crate) buffer: u64,
    /// Stamp in the unit of the trace clock.
    pub(crate) raw: u64,
    /// The core.
    pub(crate) core: u32,
}

impl Probe {
    /// Sends `packets` packets of a pattern, and records `events` (`SYSTEM:EVENT`) at the cable's end, stamped by `clock`.
    /// Events of one core are in the order of their stamps.
    ///
    /// # Errors
    /// The flow cannot be sent, or the kernel does not record such events or has no such clock.
    pub(crate) fn record_events(
        &self,
        clock: TraceClock,
        events: &[&str],
        pattern: Pattern,
        packets: u64,
        stop: &Stop,
    ) -> anyhow::Result<(Vec<PacketEvent>, EventLedger)> {
        let interface = self.wire.wire.run(|| InterfaceFilter::find(TAP_A));
        let interface = interface.context("cannot enter the lab")??;
        let ring_bytes = usize::try_from(packets)?.saturating_mul(events.len() * EVENT_BYTES);
        let config = RecorderConfig {
            events: Some(events.iter().map(|&event| event.to_owned()).collect()),
            interface: Some(interface),
            ring_bytes,
            ..RecorderConfig::new(clock)
        };
        let recorder = Recorder::start(&config)?;
        let core = Cores::choose(1).first().and_then(|cores| cores.convert);
        let send = || Departures::send(&self.clock, pattern, packets, core, SendTimes::Call, stop);
        self.wire.source.run(send).context("cannot enter the lab")??;
        let mut found = Vec::new();
        let mut keep = |event: &TraceEvent<'_>| -> Result<(), Error> {
            let requested = events.iter().position(|it| *it == event.name());
            if let (Some(requested), Some(buffer)) = (requested, event.number("skbaddr")) {
                let (raw, core) = (event.raw, event.cpu);
                found.push(PacketEvent { event: requested, buffer, raw, core });
            }
            Ok(())
        };
        let (ledger, outcome) = recorder.finish(&mut keep);
        outcome?;
        Ok((found, ledger))
    }

    /// Makes the kernel pass packets that arrive at the cable's end to `core` (RPS,
    /// Documentation/networking/scaling.rst).
    ///
    /// # Errors
    /// The setting cannot be written.
    pub(crate) fn steer_to(&self, core: usize) -> anyhow::Result<()> {
        // sysfs shows the interfaces of the namespace in which it was mounted.
        let script = format!(
            "mount -t sysfs sysfs /sys && echo {} > /sys/class/net/{TAP_A}/queues/rx-0/rps_cpus",
            core_mask(core)
        );
        let write = || Command::new("unshare").args(["-m", "sh", "-c", &script]).output();
        let output = self.wire.wire.run(write).context("cannot enter the lab")?;
        let output = output.context("cannot start unshare (Debian package util-linux)")?;
        let error = String::from_utf8_lossy(&output.stderr);
        ensure!(output.status.success(), "cannot set rps_cpus of {TAP_A}: {}", error.trim());
        Ok(())
    }
}

/// A set of cores with one core, as the kernel writes it: 32 bits in hexadecimal, separated by commas.
fn core_mask(core: usize) -> String {
    format!("{:x}{}", 1_u32 << (core % 32), ",00000000".repeat(core / 32))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sets_of_cores_are_written_as_the_kernel_reads_them() {
        assert_eq!([0, 5, 32].map(core_mask), ["1", "20", "1,00000000"]);
    }
}
