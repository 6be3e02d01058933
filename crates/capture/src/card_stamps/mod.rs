//! Enables the network card's stamps for every received packet, while a capture runs.
//!
//! `SIOCGHWTSTAMP` reads the setting and `SIOCSHWTSTAMP` writes it
//! (`Documentation/networking/timestamping.rst`, 3). Other programs use the same setting: a daemon of the Precision
//! Time Protocol enables stamps for its packets. Stamping all packets includes those, so only that part of the setting
//! changes. The original setting is restored at the end, unless another program has changed it.
//!
//! Of several captures on one card, the first one opened restores the setting at its end. Later packets of the
//! others have kernel stamps, and are counted.

use std::io;

use wirestamp_sys::interface::{HardwareStamping, hardware_stamping, set_hardware_stamping};

use crate::Error;
use crate::interface::Interface;

/// No stamp of the network card; 0 has the same meaning in the kernel (`ktime_to_timespec64_cond` of
/// include/linux/ktime.h).
pub(crate) const NONE: u64 = 0;

/// Flags that enable card stamps on a socket (linux/net_tstamp.h).
pub(crate) const WANTED: u32 =
    libc::SOF_TIMESTAMPING_RX_HARDWARE | libc::SOF_TIMESTAMPING_RAW_HARDWARE;

/// `HWTSTAMP_FILTER_ALL` of linux/net_tstamp.h.
const EVERY_PACKET: i32 = 1;

/// A network card that stamps packets.
trait Card {
    fn read(&self) -> io::Result<HardwareStamping>;

    /// Returns the setting of the driver, which may stamp more than requested.
    fn write(&self, setting: HardwareStamping) -> io::Result<HardwareStamping>;
}

impl Card for Interface {
    fn read(&self) -> io::Result<HardwareStamping> {
        hardware_stamping(self, &self.name)
    }

    fn write(&self, setting: HardwareStamping) -> io::Result<HardwareStamping> {
        set_hardware_stamping(self, &self.name, setting)
    }
}

/// The enabled stamps of a network card; dropping it restores the setting.
#[derive(Debug)]
pub(crate) struct CardStamping(EnabledStamps<Interface>);

impl CardStamping {
    /// Enables the stamps of `interface` in the calling thread's network namespace.
    pub(crate) fn of(interface: &str) -> Result<Self, Error> {
        let failed = |cause| {
            Error::system("enable stamps of the network card", interface, "cap_net_admin", cause)
        };
        Ok(Self(EnabledStamps::on(Interface::find(interface)?).map_err(failed)?))
    }

    /// Restores the original setting.
    pub(crate) fn restore(mut self) -> io::Result<()> {
        self.0.restore()
    }
}

#[derive(Debug)]
struct EnabledStamps<C: Card> {
    card: C,
    /// Setting to restore.
    before: Option<HardwareStamping>,
}

impl<C: Card> EnabledStamps<C> {
    fn on(card: C) -> io::Result<Self> {
        let before = card.read()?;
        if before.arriving == EVERY_PACKET {
            return Ok(Self { card, before: None });
        }
        let granted = card.write(HardwareStamping { arriving: EVERY_PACKET, ..before })?;
        let mut enabled = Self { card, before: Some(before) };
        if granted.arriving == EVERY_PACKET {
            return Ok(enabled);
        }
        enabled.before = None;
        enabled.card.write(before)?;
        let filter = granted.arriving;
        Err(io::Error::other(format!(
            "its driver stamps only some packets (filter {filter}); use kernel stamps"
        )))
    }

    fn restore(&mut self) -> io::Result<()> {
        let Some(before) = self.before.take() else { return Ok(()) };
        if self.card.read()?.arriving == EVERY_PACKET {
            self.card.write(before)?;
        }
        Ok(())
    }
}

impl<C: Card> Drop for EnabledStamps<C> {
    fn drop(&mut self) {
        // A capture that ends calls `restore` and reports its error. In other cases an error cannot be reported.
        let _ = self.restore();
    }
}

#[cfg(test)]
mod tests;
