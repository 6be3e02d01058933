//! The high precision event timer (HPET) of a PC, read through `/dev/hpet`.
//!
//! Registers and bits are those of the IA-PC HPET specification 1.0a, section 2.3.

use std::fs::File;
use std::io;
use std::sync::OnceLock;
use std::sync::atomic::{Ordering, fence};

use wirestamp_sys::mmap::Registers;

use super::raw::RawSource;
use crate::ratio::approx;

const DEVICE: &str = "/dev/hpet";

/// Byte offsets of the registers that are read here.
const CAPABILITIES: usize = 0x000;
const CONFIGURATION: usize = 0x010;
const MAIN_COUNTER: usize = 0x0f0;

/// Capabilities: the main counter is 64 bits wide.
const COUNTER_IS_64_BIT: u64 = 1 << 13;
/// Configuration: the main counter runs.
const COUNTER_RUNS: u64 = 1;

/// The longest period in the specification, in femtoseconds: 100 ns.
const LONGEST_PERIOD_FS: u32 = 100_000_000;
/// Min plausible period, in femtoseconds: 100 ps, as in the kernel's driver (drivers/char/hpet.c); no known HPET
/// comes near it.
const SHORTEST_PERIOD_FS: u32 = 100_000;

/// The mapping, made at most once per process, with the frequency in Hz. Outside of [`Hpet`], so that a
/// [`crate::Counter`] stays small.
static DEVICE_IN_USE: OnceLock<Result<(Registers, f64), HpetError>> = OnceLock::new();

/// Error of the HPET.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub(crate) enum HpetError {
    #[error("there is no /dev/hpet")]
    Missing,
    #[error("only root may read /dev/hpet; give this user read access to it")]
    Forbidden,
    #[error(
        "/dev/hpet has no free timer: there is no HPET behind it, or other programs use its timers"
    )]
    Busy,
    #[error("/dev/hpet cannot be {action}: {reason}")]
    Unreadable { action: &'static str, reason: String },
    #[error(
        "its main counter has 32 bits: at {frequency_mhz:.1} MHz it wraps every {wrap_s:.0} s, \
         and stamps on both sides of a wrap cannot be distinguished"
    )]
    Narrow { frequency_mhz: f64, wrap_s: f64 },
    #[error("this CPU cannot read a 64-bit register in one step")]
    NarrowCpu,
    #[error("its register gives a period of {0} fs, outside of 0.1 ns to 100 ns")]
    Period(u32),
    #[error("its main counter is stopped")]
    Stopped,
}

/// Proof of a usable HPET: an instance exists only after the device was mapped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hpet(());

impl Hpet {
    pub(crate) fn open() -> Result<Self, HpetError> {
        match DEVICE_IN_USE.get_or_init(map) {
            Ok(_) => Ok(Self(())),
            Err(error) => Err(error.clone()),
        }
    }

    /// Frequency from the period in the capability register.
    pub(crate) fn frequency_hz(self) -> f64 {
        self.device().1
    }

    #[inline]
    fn device(self) -> &'static (Registers, f64) {
        let device = DEVICE_IN_USE.get().and_then(|device| device.as_ref().ok());
        device.expect("an `Hpet` is made only after the device was mapped")
    }
}

impl RawSource for Hpet {
    const NAME: &'static str = "hpet";

    /// A read of the device takes some hundred nanoseconds; finding the mapping is negligible.
    #[inline]
    fn read(self) -> u64 {
        self.device().0.read::<MAIN_COUNTER>()
    }

    /// The device's registers are uncached memory, and fences order accesses to it.
    #[inline]
    fn read_ordered(self) -> u64 {
        fence(Ordering::SeqCst);
        let value = self.read();
        fence(Ordering::SeqCst);
        value
    }
}

fn map() -> Result<(Registers, f64), HpetError> {
    if cfg!(not(target_pointer_width = "64")) {
        return Err(HpetError::NarrowCpu);
    }
    // The return closes the file, which releases the timer that the kernel reserved for it. The mapping remains.
    let device = File::open(DEVICE).map_err(|error| not_opened(&error))?;
    let unreadable = |error: io::Error| {
        let reason = format!("{error} (the kernel needs CONFIG_HPET_MMAP and hpet_mmap=1)");
        HpetError::Unreadable { action: "mapped", reason }
    };
    let registers = Registers::map(&device).map_err(unreadable)?;
    let frequency_hz =
        check_registers(registers.read::<CAPABILITIES>(), registers.read::<CONFIGURATION>())?;
    Ok((registers, frequency_hz))
}

fn not_opened(error: &io::Error) -> HpetError {
    match error.kind() {
        io::ErrorKind::NotFound => HpetError::Missing,
        io::ErrorKind::PermissionDenied => HpetError::Forbidden,
        // The driver also returns this error if it has no HPET (drivers/char/hpet.c, hpet_open).
        io::ErrorKind::ResourceBusy => HpetError::Busy,
        _ => HpetError::Unreadable { action: "opened", reason: error.to_string() },
    }
}

/// Frequency of the main counter in Hz, if its registers allow its use.
///
/// A counter of 32 bits is rejected, as in Fedotova and Siemens, section 2: it wraps within minutes (every 7.16 at 10
/// MHz), and after a longer sleep the number of wraps is unknown.
fn check_registers(capabilities: u64, configuration: u64) -> Result<f64, HpetError> {
    let [_, _, _, _, period @ ..] = capabilities.to_le_bytes();
    let period_fs = u32::from_le_bytes(period);
    if !(SHORTEST_PERIOD_FS..=LONGEST_PERIOD_FS).contains(&period_fs) {
        return Err(HpetError::Period(period_fs));
    }
    let frequency_hz = 1e15 / f64::from(period_fs);
    if capabilities & COUNTER_IS_64_BIT == 0 {
        let wrap_s = approx(1 << 32) / frequency_hz;
        return Err(HpetError::Narrow { frequency_mhz: frequency_hz / 1e6, wrap_s });
    }
    if configuration & COUNTER_RUNS == 0 {
        return Err(HpetError::Stopped);
    }
    Ok(frequency_hz)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An Intel chipset's register: 64 bits, 14.318 MHz.
    const INTEL: u64 = 0x0429_b17f_8086_a701;

    const fn with_period(period_fs: u32) -> u64 {
        (INTEL & 0xffff_ffff) | (period_fs as u64) << 32
    }

    #[test]
    fn frequency_follows_from_the_period() {
        assert!((check_registers(INTEL, 1).unwrap() - 14.318_18e6).abs() < 10.0);
        assert!((check_registers(with_period(LONGEST_PERIOD_FS), 3).unwrap() - 10e6).abs() < 1e-6);
    }

    #[test]
    fn counter_of_32_bits_is_rejected() {
        let narrow = with_period(LONGEST_PERIOD_FS) & !COUNTER_IS_64_BIT;
        let error = check_registers(narrow, 1).unwrap_err();
        // 7.16 minutes at 10 MHz, as in the paper.
        assert!(
            matches!(error, HpetError::Narrow { wrap_s, .. } if (wrap_s / 60.0 - 7.16).abs() < 0.01)
        );
        assert!(error.to_string().contains("wraps every 429 s"), "{error}");
    }

    #[test]
    fn implausible_period_is_rejected() {
        for period in [0, 1, SHORTEST_PERIOD_FS - 1, LONGEST_PERIOD_FS + 1, u32::MAX] {
            assert_eq!(check_registers(with_period(period), 1), Err(HpetError::Period(period)));
        }
        // A device that does not answer reads as all ones, or all zeros.
        assert!(check_registers(u64::MAX, u64::MAX).is_err());
        assert!(check_registers(0, 0).is_err());
    }

    #[test]
    fn stopped_counter_is_rejected() {
        assert_eq!(check_registers(INTEL, 0), Err(HpetError::Stopped));
    }

    #[test]
    fn missing_and_forbidden_device_have_different_errors() {
        let missing = not_opened(&io::ErrorKind::NotFound.into());
        assert_eq!(missing.to_string(), "there is no /dev/hpet");
        let forbidden = not_opened(&io::ErrorKind::PermissionDenied.into());
        assert_eq!(forbidden, HpetError::Forbidden);
    }

    #[test]
    fn device_without_free_timer_has_its_own_error() {
        let busy = not_opened(&io::ErrorKind::ResourceBusy.into());
        assert!(busy.to_string().contains("no HPET behind it"), "{busy}");
    }
}
