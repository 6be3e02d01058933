//! The VMClock device, by which a hypervisor reports that a migration disrupted the CPU's counter.
//!
//! A migrated guest continues with the oscillator of the new host, and its counter may be stepped. The guest may not
//! notice. If the kernel keeps its own time by the counter, all its clocks are stepped with it, and the anchors of a
//! calibration stay consistent. The hypervisor reports the migration in a page that it shares with the guest.
//!
//! The layout and the protocol of the page are those of `struct vmclock_abi` in Linux's
//! include/uapi/linux/vmclock-abi.h. The driver `ptp_vmclock` (since Linux 6.13) provides it as `/dev/vmclock0`. No
//! machine with the device was available: this has only been tested with synthetic pages.

use std::fs::File;
use std::hint;
use std::io;
use std::path::Path;
use std::sync::OnceLock;
use std::sync::atomic::{Ordering, fence};

use wirestamp_sys::mmap::Registers;

const DEVICE: &str = "/dev/vmclock0";

/// Byte offsets of the 64-bit words that are read here.
const MAGIC_AND_SIZE: usize = 0;
const VERSION_AND_SEQUENCE: usize = 8;
const DISRUPTION_MARKER: usize = 16;

/// First four bytes of the page.
const MAGIC: u32 = u32::from_le_bytes(*b"VCLK");
/// The only defined version of the layout.
const VERSION: u16 = 1;
/// Min bytes that the page must declare: up to the end of the disruption marker.
const SIZE: u32 = 24;

/// Max reads of the marker. An update is a few stores, so that more than one or two reads are needed only if the
/// hypervisor is interrupted during one; a thousand take microseconds.
const MAX_READS: u32 = 1_000;

/// Reason why migrations cannot be detected by a VMClock device.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum VmClockError {
    /// There is no such device, as on most machines: they are not virtual, their hypervisor does not offer one, or
    /// their kernel lacks the driver.
    #[error(
        "there is no /dev/vmclock0; it needs support of the hypervisor and the driver ptp_vmclock"
    )]
    Missing,
    /// The device exists, but this user may not open it.
    #[error(
        "cannot read /dev/vmclock0: permission denied; give this user read access to the device"
    )]
    Forbidden,
    /// The device exists, but cannot be opened or mapped.
    #[error("cannot use /dev/vmclock0: it cannot be {action}: {reason}")]
    Unreadable {
        /// The failed action.
        action: &'static str,
        /// The kernel's error.
        reason: String,
    },
    /// The page is not a VMClock's.
    #[error("cannot use /dev/vmclock0: it begins with {0:#010x} instead of the bytes VCLK")]
    Magic(u32),
    /// The page has another layout.
    #[error("cannot use /dev/vmclock0: version {0} of its layout is not supported, only version 1")]
    Version(u16),
    /// The page ends before the disruption marker.
    #[error("cannot use /dev/vmclock0: it has {0} bytes, too few for a disruption marker")]
    Small(u32),
}

/// The device of this machine, mapped at most once per process.
static MACHINE: OnceLock<Result<VmClock, VmClockError>> = OnceLock::new();

/// A VMClock device, mapped until the process ends.
#[derive(Debug)]
pub struct VmClock {
    page: Registers,
}

impl VmClock {
    /// The machine's VMClock device.
    ///
    /// # Errors
    ///
    /// [`VmClockError::Missing`] if there is none, which is the usual case; another if it is unusable.
    pub fn of_machine() -> Result<&'static Self, &'static VmClockError> {
        MACHINE.get_or_init(|| Self::at(Path::new(DEVICE))).as_ref()
    }

    fn at(path: &Path) -> Result<Self, VmClockError> {
        let device = File::open(path).map_err(|error| not_opened(&error))?;
        let page = Registers::map(&device).map_err(|error| unreadable("mapped", &error))?;
        check_page(page.read::<MAGIC_AND_SIZE>(), page.read::<VERSION_AND_SEQUENCE>())?;
        Ok(Self { page })
    }

    /// The disruption marker: a number without meaning that the hypervisor replaces by a new one after each
    /// disruption of the CPU's counter. Estimates from before a change of the marker are invalid.
    ///
    /// `None` if the hypervisor is in an update and does not finish it within microseconds. Then the marker is
    /// unknown; read it again.
    #[must_use]
    pub fn disruption_marker(&self) -> Option<u64> {
        consistent(
            || sequence(self.page.read::<VERSION_AND_SEQUENCE>()),
            || u64::from_le(self.page.read::<DISRUPTION_MARKER>()),
        )
    }
}

/// Checks the page that begins with these two words.
fn check_page(magic_and_size: u64, version_and_sequence: u64) -> Result<(), VmClockError> {
    let [magic, size] = halves(magic_and_size);
    let [version, _] = halves(version_and_sequence);
    // The bytes after the version select the counter and the time scale; neither matters here.
    let [low, high, ..] = version.to_le_bytes();
    match u16::from_le_bytes([low, high]) {
        _ if magic != MAGIC => Err(VmClockError::Magic(magic)),
        version if version != VERSION => Err(VmClockError::Version(version)),
        _ if size < SIZE => Err(VmClockError::Small(size)),
        _ => Ok(()),
    }
}

/// The sequence number, odd during an update.
fn sequence(version_and_sequence: u64) -> u32 {
    halves(version_and_sequence)[1]
}

/// The two little-endian 32-bit fields of a word, in the order of their addresses.
fn halves(word: u64) -> [u32; 2] {
    let [a, b, c, d, e, f, g, h] = word.to_ne_bytes();
    [u32::from_le_bytes([a, b, c, d]), u32::from_le_bytes([e, f, g, h])]
}

/// A value that was not updated while it was read. The fences pair with the hypervisor's write barriers between the
/// sequence number and the rest.
fn consistent(mut sequence: impl FnMut() -> u32, mut value: impl FnMut() -> u64) -> Option<u64> {
    for _ in 0..MAX_READS {
        let before = sequence();
        fence(Ordering::Acquire);
        let read = value();
        fence(Ordering::Acquire);
        if before.is_multiple_of(2) && sequence() == before {
            return Some(read);
        }
        hint::spin_loop();
    }
    None
}

fn not_opened(error: &io::Error) -> VmClockError {
    match error.kind() {
        io::ErrorKind::NotFound => VmClockError::Missing,
        io::ErrorKind::PermissionDenied => VmClockError::Forbidden,
        _ => unreadable("opened", error),
    }
}

fn unreadable(action: &'static str, error: &io::Error) -> VmClockError {
    VmClockError::Unreadable { action, reason: error.to_string() }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::fs;
    use std::os::unix::fs::FileExt;
    use std::path::PathBuf;

    use super::*;

    /// A page as a hypervisor writes it.
    fn page(sequence: u32, marker: u64) -> Vec<u8> {
        let mut page = Vec::with_capacity(Registers::SIZE);
        page.extend(b"VCLK");
        page.extend(4096_u32.to_le_bytes());
        page.extend(1_u16.to_le_bytes());
        page.extend([1, 0]); // The TSC, and UTC.
        page.extend(sequence.to_le_bytes());
        page.extend(marker.to_le_bytes());
        page.resize(Registers::SIZE, 0);
        page
    }

    /// A file in place of the device, removed when dropped.
    struct Device(PathBuf);

    impl Device {
        fn new(name: &str, page: &[u8]) -> Self {
            let name = format!("wirestamp-vmclock-{name}-{}", std::process::id());
            let path = std::env::temp_dir().join(name);
            fs::write(&path, page).unwrap();
            Self(path)
        }
    }

    impl Drop for Device {
        fn drop(&mut self) {
            let _ = fs::remove_file(&self.0);
        }
    }

    #[test]
    fn new_marker_is_read() {
        let device = Device::new("marker", &page(6, 0x0102_0304_0506_0708));
        let clock = VmClock::at(&device.0).unwrap();
        assert_eq!(clock.disruption_marker(), Some(0x0102_0304_0506_0708));
        let file = File::options().write(true).open(&device.0).unwrap();
        file.write_all_at(&page(8, 42), 0).unwrap();
        assert_eq!(clock.disruption_marker(), Some(42));
    }

    #[test]
    fn no_marker_during_an_update() {
        let device = Device::new("update", &page(7, 42));
        assert_eq!(VmClock::at(&device.0).unwrap().disruption_marker(), None);
    }

    #[test]
    fn value_read_across_an_update_is_read_again() {
        // An update begins during the first read of the value, and ends during the second.
        let reads = Cell::new(0);
        let value = || {
            reads.set(reads.get() + 1);
            reads.get()
        };
        let sequence = || match reads.get() {
            0 => 4,
            1 => 5,
            _ => 6,
        };
        assert_eq!(consistent(sequence, value), Some(3));
    }

    #[test]
    fn endless_update_ends_the_read() {
        let reads = Cell::new(0);
        let sequence = || {
            reads.set(reads.get() + 2);
            reads.get()
        };
        assert_eq!(consistent(sequence, || 42), None);
        assert_eq!(reads.get(), 4 * MAX_READS);
    }

    #[test]
    fn page_of_another_device_is_rejected() {
        let refused = |offset: usize, bytes: &[u8]| {
            let mut page = page(0, 1);
            page[offset..offset + bytes.len()].copy_from_slice(bytes);
            let word =
                |at: usize| u64::from_ne_bytes(page[at..at + 8].try_into().expect("eight bytes"));
            check_page(word(0), word(8)).unwrap_err()
        };
        assert_eq!(refused(0, b"KLCV"), VmClockError::Magic(0x5643_4c4b));
        assert_eq!(refused(8, &2_u16.to_le_bytes()), VmClockError::Version(2));
        assert_eq!(refused(4, &23_u32.to_le_bytes()), VmClockError::Small(23));
        // A device that does not answer reads as all ones, or all zeros.
        assert!(check_page(u64::MAX, u64::MAX).is_err());
        assert!(check_page(0, 0).is_err());
    }

    #[test]
    fn missing_and_forbidden_device_have_different_errors() {
        let missing = VmClock::at(Path::new("/nonexistent/vmclock0")).unwrap_err();
        assert_eq!(missing, VmClockError::Missing);
        assert!(missing.to_string().starts_with("there is no /dev/vmclock0"));
        assert_eq!(not_opened(&io::ErrorKind::PermissionDenied.into()), VmClockError::Forbidden);
    }
}
