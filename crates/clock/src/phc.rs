//! A network card's clock: what Linux calls a PTP hardware clock (PHC), `/dev/ptpN`.
//!
//! It counts nanoseconds from an epoch of its own, TAI where a PTP daemon keeps it, or the moment at
//! which the driver was loaded. A daemon may slew and step it, or nobody may.
//!
//! The open device is a clock that clock_gettime(2) reads (`Documentation/driver-api/ptp.rst`),
//! between two readings of which the system's clocks are read as for any counter. A reading asks the
//! card over its bus and takes a microsecond or two, which is how wide the bracket is: half of it is
//! the error of an anchor. `PTP_SYS_OFFSET_EXTENDED` of linux/ptp_clock.h would bracket the moment
//! in which the card is asked more tightly, the other way round: with two readings of the system
//! clock, and, before Linux 6.12, of no other. Where that half microsecond counts, so does the rest
//! of the card's error against the wire, which neither way tells.

use std::fs::File;
use std::io;
use std::os::fd::AsFd;

use wirestamp_sys::clock::{self, ClockId};

use crate::{Clocks, MonotonicRaw, Time, Utc};

/// The steps that a card's clock is taken to move in, in nanoseconds. No driver tells: the kernel
/// says 1 ns of all (`ptp_clock_getres` of drivers/ptp/ptp_clock.c). They are 6.4 to 64 ns from
/// 1 Gbit/s up in Intel's ixgbe (ixgbe_ptp.c), 8 ns or so in others.
pub(crate) const STEP: u64 = 64;

/// What the names of network cards' clocks begin with.
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
    /// One of the kernel's own clocks in place of a card's.
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

/// Why a network card's clock cannot be read.
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
    /// Opens `/dev/ptpN`, with the number that the driver names (`ethtool -T`, "PTP Hardware
    /// Clock").
    ///
    /// # Errors
    /// If there is no such device, this process may not read it, or it gives no time.
    pub fn open(number: u32) -> Result<Self, PhcError> {
        let failed = |cause| PhcError { number, cause };
        let device = File::open(format!("/dev/ptp{number}")).map_err(failed)?;
        let source = Source::Device(device);
        source.read().map_err(failed)?;
        Ok(Self { number, source })
    }

    /// One of the kernel's own clocks in place of a card's.
    #[cfg(test)]
    pub(crate) const fn stand_in(clock: ClockId) -> Self {
        Self { number: 0, source: Source::Kernel(clock) }
    }

    /// The number of the device.
    #[must_use]
    pub const fn number(&self) -> u32 {
        self.number
    }

    /// The name of the clock with this number in files: `phc0`.
    #[must_use]
    pub fn name(number: u32) -> String {
        format!("{PREFIX}{number}")
    }

    /// Whether a clock is a network card's, by its name.
    pub(crate) fn is_name(clock: &str) -> bool {
        clock.strip_prefix(PREFIX).is_some_and(|number| number.parse::<u32>().is_ok())
    }

    /// Nanoseconds since the clock's epoch; none if it cannot be read, or has not got there yet.
    fn now(&self) -> Option<u64> {
        self.source.read().ok().and_then(|nanos| u64::try_from(nanos).ok())
    }
}

/// A network card's clock and those that it is calibrated against.
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
    /// Of a card that was taken out, ever less: a calibrator uses no readings that descend, and its
    /// bounds grow.
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
    fn a_device_that_is_missing_is_an_error_that_names_it() {
        let error = Phc::open(4_000_000_000).unwrap_err().to_string();
        assert!(error.starts_with("cannot read the network card's clock /dev/ptp4000000000: "));
    }

    #[test]
    fn a_card_that_is_gone_is_no_clock_that_runs() {
        let file = File::open("/dev/null").unwrap();
        let gone = Phc { number: 0, source: Source::Device(file) };
        let refused = Calibrator::new(Domain::Nic, NicClocks::new(gone), STEP);
        assert_eq!(refused.unwrap_err(), CalibrationError::Backwards);
    }

    #[test]
    fn another_clock_of_the_kernels_in_its_place_is_calibrated() {
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
