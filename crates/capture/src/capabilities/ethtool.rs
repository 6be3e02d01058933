//! What a driver says of itself: ethtool(8), by the `SIOCETHTOOL` ioctl of netdevice(7).
#![expect(unsafe_code, reason = "each command has a struct of its own")]

use std::ffi::CStr;

use crate::interface::Interface;

/// Commands of linux/ethtool.h.
mod command {
    pub(super) const GDRVINFO: u32 = 0x03;
    pub(super) const GCHANNELS: u32 = 0x3c;
    pub(super) const GET_TS_INFO: u32 = 0x41;
}

/// `HWTSTAMP_FILTER_NONE` of linux/net_tstamp.h.
const FILTER_NONE: u32 = 0;
/// `HWTSTAMP_FILTER_ALL`; those above it are for packets of the Precision Time Protocol, or of NTP.
const FILTER_ALL: u32 = 1;

/// What can stamp the packets of an interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stamping {
    /// The kernel, on arrival.
    pub software_rx: bool,
    /// The driver, when a packet that is sent goes to the network card.
    pub software_tx: bool,
    /// The network card, on arrival.
    pub card: CardStamps,
    /// The number of the network card's clock: `/dev/ptpN`.
    pub clock: Option<u32>,
}

/// Which of the packets that arrive the network card stamps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CardStamps {
    /// None.
    Nothing,
    /// Those of protocols that synchronise clocks.
    SomePackets,
    /// All.
    AllPackets,
}

/// `struct ethtool_ts_info`.
#[repr(C)]
#[derive(Default)]
struct TsInfo {
    command: u32,
    so_timestamping: u32,
    phc_index: i32,
    tx_types: u32,
    tx_reserved: [u32; 3],
    rx_filters: u32,
    rx_reserved: [u32; 3],
}

/// `struct ethtool_drvinfo`: the driver's name, and what nothing is asked of.
#[repr(C)]
struct DriverInfo {
    command: u32,
    driver: [u8; 32],
    rest: [u8; 160],
}

/// `struct ethtool_channels`: the most there can be, and how many there are, each for receiving,
/// sending, other interrupts, and receiving and sending combined.
#[repr(C)]
struct Channels {
    command: u32,
    most: [u32; 4],
    used: [u32; 4],
}

// The sizes of the kernel's structs.
const _: () = assert!(size_of::<TsInfo>() == 44);
const _: () = assert!(size_of::<DriverInfo>() == 196);
const _: () = assert!(size_of::<Channels>() == 36);

impl From<TsInfo> for Stamping {
    fn from(info: TsInfo) -> Self {
        let can = |flag: u32| info.so_timestamping & flag != 0;
        let filters = info.rx_filters & !(1 << FILTER_NONE);
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
            clock: u32::try_from(info.phc_index).ok(), // -1 where there is none
        }
    }
}

/// Without an answer there is nothing but the kernel's own stamps, which take no driver.
pub(super) fn stamping(interface: &Interface) -> Stamping {
    let mut info = TsInfo { command: command::GET_TS_INFO, phc_index: -1, ..TsInfo::default() };
    // SAFETY: TsInfo is that command's struct.
    if unsafe { interface.ethtool(&mut info) }.is_err() {
        info.so_timestamping = libc::SOF_TIMESTAMPING_RX_SOFTWARE;
    }
    info.into()
}

/// The driver's name.
pub(super) fn driver(interface: &Interface) -> Option<String> {
    let mut info = DriverInfo { command: command::GDRVINFO, driver: [0; 32], rest: [0; 160] };
    // SAFETY: DriverInfo is that command's struct.
    unsafe { interface.ethtool(&mut info) }.ok()?;
    let name = CStr::from_bytes_until_nul(&info.driver).ok()?;
    name.to_str().ok().filter(|name| !name.is_empty()).map(str::to_owned)
}

/// The receive queues that are in use.
pub(super) fn queues(interface: &Interface) -> Option<u32> {
    let mut channels = Channels { command: command::GCHANNELS, most: [0; 4], used: [0; 4] };
    // SAFETY: Channels is that command's struct.
    unsafe { interface.ethtool(&mut channels) }.ok()?;
    let [receiving, _, _, combined] = channels.used;
    receiving.checked_add(combined)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stamping(so_timestamping: u32, rx_filters: u32, phc_index: i32) -> Stamping {
        TsInfo { so_timestamping, rx_filters, phc_index, ..TsInfo::default() }.into()
    }

    #[test]
    fn a_card_stamps_what_its_filters_say() {
        let hardware = libc::SOF_TIMESTAMPING_RX_HARDWARE | libc::SOF_TIMESTAMPING_RX_SOFTWARE;
        assert_eq!(stamping(hardware, 0b11, 0).card, CardStamps::AllPackets);
        assert_eq!(stamping(hardware, 1 | 1 << 12, 0).card, CardStamps::SomePackets);
        assert_eq!(stamping(hardware, 1, 0).card, CardStamps::Nothing);
        let software = libc::SOF_TIMESTAMPING_RX_SOFTWARE;
        assert_eq!(stamping(software, 0b11, 0).card, CardStamps::Nothing);
        assert!(stamping(software, 0, -1).software_rx && !stamping(0, 0, -1).software_rx);
    }

    #[test]
    fn a_card_without_a_clock_has_none() {
        assert_eq!(stamping(0, 0, -1).clock, None);
        assert_eq!(stamping(0, 0, 3).clock, Some(3));
    }
}
