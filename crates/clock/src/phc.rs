//! A network card's clock: a PTP hardware clock (PHC) of Linux, `/dev/ptpN`.
//!
//! It counts nanoseconds from its own epoch: TAI if a PTP daemon keeps it, otherwise often the load of the driver. A
//! daemon may slew and step it.
//!
//! The open device is a clock for clock_gettime(2) (`Documentation/driver-api/ptp.rst`). As for any counter, the
//! system's clocks are read between two readings of it. A reading goes over the card's bus and takes one or two
//! microseconds, which is the width of the bracket; half of it is the error of an anchor. `PTP_SYS_OFFSET_EXTENDED` of
//! linux/ptp_clock.h brackets the card's reading more tightly, with two readings of the system clock (before Linux
//! 6.12, of no other clock). If half a microsecond matters, so does the card's error against the wire, which neither
//! method shows.

use std::fs::File;
use std::io;
use std::os::fd::AsFd;

use wirestamp_sys::clock::{self, ClockId};

use crate::{Clocks, MonotonicRaw, Time, Utc};

/// Assumed granularity of a card's clock, in nanoseconds. Drivers do not report it: the kernel returns 1 ns for all
/// (`ptp_clock_getres` of drivers/ptp/ptp_clock.c). It is 6.4 to 64 ns from 1 Gbit/s up in Intel's ixgbe
/// (ixgbe_ptp.c), about 8 ns in others.
pub(crate) const STEP: u64 = 64;

/// Prefix of the names of network cards' clocks.
const PREFIX: &str = "phc";

/// A network card's clock, open for reading.
#[derive(Debug)]
pub struct Phc {
    number: u32,
    source: Source,
}

#[derive(Debug)]
enum Source {
    Device(File),
    /// A clock of the kernel in place of a card's.
    #[cfg(test)]
    Kernel(ClockId),
}

impl Source {
    /// Nanoseconds since the clock's epoch.
    fn read(&self) -> io::Result<i64> {
        match self {
            Self::Device(device) => clock::device_time(device.as_fd()),
            #[cfg(test)]
            Self::Kernel(clock) => Ok(clock::now(*clock)),
        }
    }
}

/// Error of a network card's clock.
#[derive(Debug, thiserror::Error)]
#[error("cannot read the network card's clock /dev/ptp{number}: {cause}{}", next_step(cause))]
pub struct PhcError {
    number: u32,
    cause: io::Error,
}

fn next_step(cause: &io::Error) -> &'static str {
    match cause.kind() {
        io::ErrorKind::PermissionDenied => "; run it with sudo, or let this user read the device",
        io::ErrorKind::NotFound => "; a container has to be given the device",
        _ => "",
    }
}

impl Phc {
    /// Opens `/dev/ptpN` with the number that the driver reports (`ethtool -T`, "PTP Hardware Clock").
    ///
    /// # Errors
    /// If there is no such device, this process may not read it, or it returns no time.
    pub fn open(number: u32) -> Result<Self, PhcError> {
        let failed = |cause| PhcError { number, cause };
        let device = File::open(format!("/dev/ptp{number}")).map_err(failed)?;
        let source = Source::Device(device);
        source.read().map_err(failed)?;
        Ok(Self { number, source })
    }

    /// A clock of the kernel in place of a card's.
    #[cfg(test)]
    pub(crate) const fn stand_in(clock: ClockId) -> Self {
        Self { number: 0, source: Source::Kernel(clock) }
    }

    /// Number of the device.
    #[must_use]
    pub const fn number(&self) -> u32 {
        self.number
    }

    /// Name of the clock with this number in files: `phc0`.
    #[must_use]
    pub fn name(number: u32) -> String {
        format!("{PREFIX}{number}")
    }

    /// True if `clock` is the name of a network card's clock.
    pub(crate) fn is_name(clock: &str) -> bool {
        clock.strip_prefix(PREFIX).is_some_and(|number| number.parse::<u32>().is_ok())
    }

    /// Nanoseconds since the clock's epoch; none if unreadable or before the epoch.
    fn now(&self) -> Option<u64> {
        self.source.read().ok().and_then(|nanos| u64::try_from(nanos).ok())
    }
}

/// A network card's clock and its reference clocks.
#[derive(Debug)]
pub(crate) struct NicClocks {
    phc: Phc,
    last: u64,
}

impl NicClocks {
    pub(crate) const fn new(phc: Phc) -> Self {
        Self { phc, last: u64::MAX }
    }
}

impl Clocks for NicClocks {
    /// After removal of the card the values descend. The calibrator ignores descending readings, and its bounds grow.
    fn raw(&mut self) -> u64 {
        self.last = self.phc.now().unwrap_or(self.last.saturating_sub(1));
        self.last
    }

    fn utc(&mut self) -> Time<Utc> {
        Time::from_nanos(clock::now(ClockId::Realtime))
    }

    fn monotonic_raw(&mut self) -> Time<MonotonicRaw> {
        Time::from_nanos(clock::now(ClockId::MonotonicRaw))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{CalibrationError, Calibrator, Domain};

    #[test]
    fn error_names_the_missing_device() {
        let error = Phc::open(4_000_000_000).unwrap_err().to_string();
        assert!(error.starts_with("cannot read the network card's clock /dev/ptp4000000000: "));
    }

    #[test]
    fn removed_card_cannot_be_calibrated() {
        let file = File::open("/dev/null").unwrap();
        let gone = Phc { number: 0, source: Source::Device(file) };
        let refused = Calibrator::new(Domain::Nic, NicClocks::new(gone), STEP);
        assert_eq!(refused.unwrap_err(), CalibrationError::Backwards);
    }

    #[test]
    fn kernel_clock_in_place_of_card_is_calibrated() {
        let clocks = || NicClocks::new(Phc::stand_in(ClockId::Boottime));
        let mut calibrator = Calibrator::new(Domain::Nic, clocks(), STEP).unwrap();
        let timeline = calibrator.sample();
        for _ in 0..1_000 {
            let mut clocks = clocks();
            let before = clocks.utc();
            let stamp = timeline.convert(clocks.raw());
            let after = clocks.utc();
            assert!(stamp.utc + stamp.error >= before && stamp.utc - stamp.error <= after);
        }
    }
}
