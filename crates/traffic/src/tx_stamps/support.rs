//! Which stamps an interface can give.

use std::os::fd::AsFd;

use wirestamp_sys::ethtool::timestamping;
use wirestamp_sys::interface::hardware_stamping;

use super::{PerStampKind, UnavailableStamps};

/// Why a kind cannot be had of packets that `socket` sends over `interface`.
pub(super) fn unavailable(
    socket: &impl AsFd,
    interface: Option<&str>,
    bypasses_queue: bool,
) -> UnavailableStamps {
    let sched = bypasses_queue.then(|| "packets go round the queue that would stamp them".into());
    let Some(interface) = interface else {
        let hardware = Some("it takes a named interface to ask for them".into());
        return PerStampKind { sched, software: None, hardware };
    };
    let flags = timestamping(socket, interface).map(|can| can.flags);
    let lacks = |flag, what| match &flags {
        Ok(flags) if flags & flag != 0 => None,
        Ok(_) => Some(format!(
            "{interface} takes no {what} transmit stamps; `ethtool -T {interface}` lists what it can"
        )),
        Err(error) => Some(format!("{interface} does not say what stamps it takes: {error}")),
    };
    let hardware = lacks(libc::SOF_TIMESTAMPING_TX_HARDWARE, "hardware");
    PerStampKind {
        sched,
        software: lacks(libc::SOF_TIMESTAMPING_TX_SOFTWARE, "software"),
        hardware: hardware.or_else(|| switched_off(socket, interface)),
    }
}

/// Whether hardware stamps are on is the whole machine's affair (a PTP daemon may depend on it), so
/// it is not changed here.
fn switched_off(socket: &impl AsFd, interface: &str) -> Option<String> {
    match hardware_stamping(socket, interface).map(|setting| setting.sent != 0) {
        Ok(true) => None,
        Ok(false) => Some(format!(
            "hardware transmit stamps of {interface} are off; `hwstamp_ctl -i {interface} -t 1` \
             turns them on"
        )),
        Err(error) => {
            Some(format!("{interface} does not say whether its hardware stamps are on: {error}"))
        }
    }
}
