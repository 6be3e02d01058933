//! Transmit stamps available on an interface.

use std::os::fd::AsFd;

use wirestamp_sys::ethtool::timestamping;
use wirestamp_sys::interface::hardware_stamping;

use super::{PerStampKind, UnavailableStamps};

/// The unavailable kinds for packets that `socket` sends over `interface`, with the reason.
pub(super) fn unavailable(
    socket: &impl AsFd,
    interface: Option<&str>,
    bypasses_queue: bool,
) -> UnavailableStamps {
    let sched = bypasses_queue.then(|| "packets bypass the queue that stamps them".into());
    let Some(interface) = interface else {
        let hardware = Some("requesting them requires a named interface".into());
        return PerStampKind { sched, software: None, hardware };
    };
    let flags = timestamping(socket, interface).map(|can| can.flags);
    let lacks = |flag, what| match &flags {
        Ok(flags) if flags & flag != 0 => None,
        Ok(_) => Some(format!(
            "{interface} has no {what} transmit stamps; list its stamps with `ethtool -T {interface}`"
        )),
        Err(error) => Some(format!("cannot read the stamps available on {interface}: {error}")),
    };
    let hardware = lacks(libc::SOF_TIMESTAMPING_TX_HARDWARE, "hardware");
    PerStampKind {
        sched,
        software: lacks(libc::SOF_TIMESTAMPING_TX_SOFTWARE, "software"),
        hardware: hardware.or_else(|| switched_off(socket, interface)),
    }
}

/// The reason if hardware stamps are disabled. They are not enabled here, because this affects the
/// whole machine, for instance a PTP daemon.
fn switched_off(socket: &impl AsFd, interface: &str) -> Option<String> {
    match hardware_stamping(socket, interface).map(|setting| setting.sent != 0) {
        Ok(true) => None,
        Ok(false) => Some(format!(
            "hardware transmit stamps of {interface} are off; enable them with \
             `hwstamp_ctl -i {interface} -t 1`"
        )),
        Err(error) => {
            Some(format!("cannot read whether hardware stamps of {interface} are on: {error}"))
        }
    }
}
