//! The high precision event timer (HPET) of a PC, read through `/dev/hpet`.
//!
//! Registers and bits are those of the IA-PC HPET specification 1.0a, section 2.3.

use std::fs::File;
use std::io;
use std::sync::OnceLock;
use std::sync::atomic::{Ordering, fence};

use wirestamp_sys::mmap::Registers;

use super::RawSource;
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

/// The longest period that the specification allows, in femtoseconds: 100 ns.
const LONGEST_PERIOD_FS: u32 = 100_000_000;
/// The shortest period that can be meant, in femtoseconds: 100 ps, as in the kernel's driver
/// (drivers/char/hpet.c); no HPET is known to come near it.
const SHORTEST_PERIOD_FS: u32 = 100_000;

/// The mapping, made at most once in a process, with the frequency in Hz. Outside of [`Hpet`],
/// so that a [`crate::Counter`] stays as small as its other sources need it.
static DEVICE_IN_USE: OnceLock<Result<(Registers, f64), HpetError>> = OnceLock::new();

/// Why the HPET cannot be used.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub(crate) enum HpetError {
    #[error("there is no /dev/hpet")]
    Missing,
    #[error("/dev/hpet may be read by root only; give this user the right to read it")]
    Forbidden,
    #[error("/dev/hpet has no free timer: there is no HPET behind it, or others hold its timers")]
    Busy,
    #[error("/dev/hpet cannot be {action}: {reason}")]
    Unreadable { action: &'static str, reason: String },
    #[error(
        "its main counter has 32 bits: at {frequency_mhz:.1} MHz it wraps every {wrap_s:.0} s, \
         and stamps on either side of a wrap cannot be told apart"
    )]
    Narrow { frequency_mhz: f64, wrap_s: f64 },
    #[error("this CPU reads 64-bit registers in halves, between which the counter can carry")]
    NarrowCpu,
    #[error("its register gives a period of {0} fs, outside of 0.1 ns to 100 ns")]
    Period(u32),
    #[error("its main counter is stopped")]
    Stopped,
}

/// The right to read the HPET; there is one only where the device is usable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hpet(());

impl Hpet {
    pub(crate) fn open() -> Result<Self, HpetError> {
        match DEVICE_IN_USE.get_or_init(map) {
            Ok(_) => Ok(Self(())),
            Err(error) => Err(error.clone()),
        }
    }

    /// From the period in the capability register.
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

    /// A read of the device takes some hundred nanoseconds, beside which the look for the mapping
    /// is nothing.
    #[inline]
    fn read(self) -> u64 {
        self.device().0.read::<MAIN_COUNTER>()
    }

    /// The device's registers are memory that is not cached, and fences order accesses to it.
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
    // Closed on return, which gives back the timer that the kernel reserved for this file. The
    // mapping remains.
    let device = File::open(DEVICE).map_err(|error| not_opened(&error))?;
    let unreadable = |error: io::Error| {
        let reason = format!("{error} (the kernel needs CONFIG_HPET_MMAP and hpet_mmap=1)");
        HpetError::Unreadable { action: "mapped", reason }
    };
    let registers = Registers::map(&device).map_err(unreadable)?;
    let frequency_hz = judge(registers.read::<CAPABILITIES>(), registers.read::<CONFIGURATION>())?;
    Ok((registers, frequency_hz))
}

fn not_opened(error: &io::Error) -> HpetError {
    match error.kind() {
        io::ErrorKind::NotFound => HpetError::Missing,
        io::ErrorKind::PermissionDenied => HpetError::Forbidden,
        // What the driver says also where it knows of no HPET (drivers/char/hpet.c, hpet_open).
        io::ErrorKind::ResourceBusy => HpetError::Busy,
        _ => HpetError::Unreadable { action: "opened", reason: error.to_string() },
    }
}

/// The main counter's frequency in Hz, if its registers say that it can be used.
///
/// A counter of 32 bits is refused, as in Fedotova and Siemens, section 2: it wraps within minutes
/// (every 7.16 at 10 MHz), and a reader that sleeps for longer cannot know how often.
fn judge(capabilities: u64, configuration: u64) -> Result<f64, HpetError> {
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
    fn a_64_bit_counter_has_the_frequency_of_its_period() {
        assert!((judge(INTEL, 1).unwrap() - 14.318_18e6).abs() < 10.0);
        assert!((judge(with_period(LONGEST_PERIOD_FS), 3).unwrap() - 10e6).abs() < 1e-6);
    }

    #[test]
    fn a_32_bit_counter_is_refused_because_it_wraps_within_minutes() {
        let narrow = with_period(LONGEST_PERIOD_FS) & !COUNTER_IS_64_BIT;
        let error = judge(narrow, 1).unwrap_err();
        // 7.16 minutes at 10 MHz, as the paper has it.
        assert!(
            matches!(error, HpetError::Narrow { wrap_s, .. } if (wrap_s / 60.0 - 7.16).abs() < 0.01)
        );
        assert!(error.to_string().contains("wraps every 429 s"), "{error}");
    }

    #[test]
    fn a_zero_or_absurd_period_is_refused() {
        for period in [0, 1, SHORTEST_PERIOD_FS - 1, LONGEST_PERIOD_FS + 1, u32::MAX] {
            assert_eq!(judge(with_period(period), 1), Err(HpetError::Period(period)));
        }
        // A device that does not answer reads as all ones, or all zeros.
        assert!(judge(u64::MAX, u64::MAX).is_err());
        assert!(judge(0, 0).is_err());
    }

    #[test]
    fn a_stopped_counter_is_refused() {
        assert_eq!(judge(INTEL, 0), Err(HpetError::Stopped));
    }

    #[test]
    fn a_missing_device_is_told_from_one_that_is_forbidden() {
        let missing = not_opened(&io::ErrorKind::NotFound.into());
        assert_eq!(missing.to_string(), "there is no /dev/hpet");
        let forbidden = not_opened(&io::ErrorKind::PermissionDenied.into());
        assert_eq!(forbidden, HpetError::Forbidden);
    }

    #[test]
    fn a_device_without_a_timer_is_told_from_both() {
        let busy = not_opened(&io::ErrorKind::ResourceBusy.into());
        assert!(busy.to_string().contains("no HPET behind it"), "{busy}");
    }
}
