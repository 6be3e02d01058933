//! Has the network card stamp every packet that arrives, for as long as a capture runs.
//!
//! The driver is asked by `SIOCGHWTSTAMP` and told by `SIOCSHWTSTAMP`
//! (`Documentation/networking/timestamping.rst`, 3). Others use the same setting: a daemon of the
//! Precision Time Protocol has the packets of its protocol stamped. To stamp all of them takes
//! nothing from it, so that is what is set, with all else left as it was. What was set before comes
//! back at the end, unless somebody has changed it meanwhile.
//!
//! Of several captures on one card, the one that began first switches the stamps off again. Packets
//! that come to the others after that have stamps of the kernel, and are counted.

use std::io;

use wirestamp_sys::interface::{HardwareStamping, hardware_stamping, set_hardware_stamping};

use crate::Error;
use crate::interface::Interface;

/// Where a receiver has no stamp of the network card. It is also what the kernel means by 0
/// (`ktime_to_timespec64_cond` of include/linux/ktime.h).
pub(crate) const NONE: u64 = 0;

/// What a socket is told to hand out (linux/net_tstamp.h).
pub(crate) const WANTED: u32 =
    libc::SOF_TIMESTAMPING_RX_HARDWARE | libc::SOF_TIMESTAMPING_RAW_HARDWARE;

/// `HWTSTAMP_FILTER_ALL` of linux/net_tstamp.h.
const EVERY_PACKET: i32 = 1;

/// A network card that stamps packets.
trait Card {
    fn read(&self) -> io::Result<HardwareStamping>;

    /// Returns what the driver made of it: it may stamp more than it was told to.
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

/// The stamps of a network card, switched on until this is dropped.
#[derive(Debug)]
pub(crate) struct CardStamping(Switched<Interface>);

impl CardStamping {
    /// Switches them on, in the calling thread's network namespace.
    pub(crate) fn of(interface: &str) -> Result<Self, Error> {
        let failed = |cause| {
            Error::system("have the network card stamp packets", interface, "cap_net_admin", cause)
        };
        Ok(Self(Switched::on(Interface::find(interface)?).map_err(failed)?))
    }

    /// Puts back what was set before.
    pub(crate) fn restore(mut self) -> io::Result<()> {
        self.0.restore()
    }
}

#[derive(Debug)]
struct Switched<C: Card> {
    card: C,
    /// What has to be put back.
    before: Option<HardwareStamping>,
}

impl<C: Card> Switched<C> {
    fn on(card: C) -> io::Result<Self> {
        let before = card.read()?;
        if before.arriving == EVERY_PACKET {
            return Ok(Self { card, before: None });
        }
        let granted = card.write(HardwareStamping { arriving: EVERY_PACKET, ..before })?;
        let mut switched = Self { card, before: Some(before) };
        if granted.arriving == EVERY_PACKET {
            return Ok(switched);
        }
        switched.before = None;
        switched.card.write(before)?;
        let filter = granted.arriving;
        Err(io::Error::other(format!(
            "its driver stamps some packets only (filter {filter}); take stamps of the kernel"
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

impl<C: Card> Drop for Switched<C> {
    fn drop(&mut self) {
        // A capture that ends puts it back itself, and tells of a failure. Otherwise there is nobody
        // to tell.
        let _ = self.restore();
    }
}

#[cfg(test)]
mod tests;
