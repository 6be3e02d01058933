//! Capabilities reported by a driver: ethtool(8), by the `SIOCETHTOOL` ioctl of netdevice(7).

use wirestamp_sys::ethtool::{self, Timestamping};

use crate::interface::Interface;

/// `HWTSTAMP_FILTER_NONE` of linux/net_tstamp.h.
const FILTER_NONE: u32 = 0;
/// `HWTSTAMP_FILTER_ALL`; those above it are for packets of the Precision Time Protocol, or of NTP.
const FILTER_ALL: u32 = 1;

/// Timestamping support of an interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stamping {
    /// The kernel stamps on arrival.
    pub software_rx: bool,
    /// The driver stamps sent packets when they go to the network card.
    pub software_tx: bool,
    /// Received packets that the network card stamps.
    pub card: CardStamps,
    /// Number of the network card's clock: `/dev/ptpN`.
    pub clock: Option<u32>,
}

/// Received packets that the network card stamps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CardStamps {
    /// None.
    Nothing,
    /// Packets of protocols that synchronise clocks.
    SomePackets,
    /// All.
    AllPackets,
}

impl From<Timestamping> for Stamping {
    fn from(info: Timestamping) -> Self {
        let can = |flag: u32| info.flags & flag != 0;
        let filters = info.receive_filters & !(1 << FILTER_NONE);
        let card = if !can(libc::SOF_TIMESTAMPING_RX_HARDWARE) || filters == 0 {
            CardStamps::Nothing
        } else if filters & 1 << FILTER_ALL != 0 {
            CardStamps::AllPackets
        } else {
            CardStamps::SomePackets
        };
        Self {
            software_rx: can(libc::SOF_TIMESTAMPING_RX_SOFTWARE),
            software_tx: can(libc::SOF_TIMESTAMPING_TX_SOFTWARE),
            card,
            clock: info.clock,
        }
    }
}

/// Timestamping support; without a response only kernel stamps, which require no driver support.
pub(super) fn stamping(interface: &Interface) -> Stamping {
    let without = Timestamping { flags: libc::SOF_TIMESTAMPING_RX_SOFTWARE, ..Default::default() };
    ethtool::timestamping(interface, &interface.name).unwrap_or(without).into()
}

/// Driver name.
pub(super) fn driver(interface: &Interface) -> Option<String> {
    ethtool::driver(interface, &interface.name).ok().filter(|name| !name.is_empty())
}

/// Number of receive queues in use.
pub(super) fn queues(interface: &Interface) -> Option<u32> {
    ethtool::receive_queues(interface, &interface.name).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stamping(flags: u32, receive_filters: u32) -> Stamping {
        Timestamping { flags, clock: None, receive_filters }.into()
    }

    #[test]
    fn filters_decide_which_packets_are_stamped() {
        let hardware = libc::SOF_TIMESTAMPING_RX_HARDWARE | libc::SOF_TIMESTAMPING_RX_SOFTWARE;
        assert_eq!(stamping(hardware, 0b11).card, CardStamps::AllPackets);
        assert_eq!(stamping(hardware, 1 | 1 << 12).card, CardStamps::SomePackets);
        assert_eq!(stamping(hardware, 1).card, CardStamps::Nothing);
        let software = libc::SOF_TIMESTAMPING_RX_SOFTWARE;
        assert_eq!(stamping(software, 0b11).card, CardStamps::Nothing);
        assert!(stamping(software, 0).software_rx && !stamping(0, 0).software_rx);
    }
}
