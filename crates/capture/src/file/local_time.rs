//! Times in file names: strftime(3) in the local time zone, as in tcpdump.
#![expect(unsafe_code, reason = "localtime_r(3) and strftime(3)")]

use std::ffi::{CString, OsString};
use std::io;
use std::mem;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

use wirestamp_clock::{Time, Utc};

/// Max length of a path (PATH_MAX of linux/limits.h).
const MAX_PATH: usize = 4096;

/// Replaces the conversions in `path`, such as %H, by the parts of `time`.
///
/// # Errors
/// The result is too long for a path, or empty, or the time is out of range.
pub(super) fn format(path: &Path, time: Time<Utc>) -> io::Result<PathBuf> {
    let path = CString::new(path.as_os_str().as_bytes())?;
    let seconds: libc::time_t = time.as_nanos().div_euclid(1_000_000_000);
    // SAFETY: `tm` is plain data, for which all zeroes is a valid value: numbers, and a pointer to
    // the zone's name that may be null.
    let mut parts: libc::tm = unsafe { mem::zeroed() };
    // SAFETY: both point to values of the right type that outlive the call.
    if unsafe { libc::localtime_r(&raw const seconds, &raw mut parts) }.is_null() {
        return Err(io::Error::last_os_error());
    }
    let mut name = vec![0_u8; MAX_PATH];
    // SAFETY: there is room for that many bytes, the format ends in a zero, and the parts were filled in; the zone's
    // name that they point to belongs to the C library.
    let length = unsafe {
        libc::strftime(name.as_mut_ptr().cast(), name.len(), path.as_ptr(), &raw const parts)
    };
    name.truncate(length);
    if name.is_empty() {
        return Err(io::Error::new(
            io::ErrorKind::InvalidFilename,
            "the name with that time is empty or too long",
        ));
    }
    Ok(OsString::from_vec(name).into())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn conversions_are_replaced_by_time() {
        let time = Time::from_nanos(1_795_269_909_999_999_999);
        let name = |path: &str| format(Path::new(path), time).unwrap();
        assert_eq!(name("/tmp/at-%s.pcapng"), Path::new("/tmp/at-1795269909.pcapng"));
        assert_eq!(name("plain"), Path::new("plain"));
        assert_eq!(name("minute-%M"), Path::new("minute-05"));
    }

    #[test]
    fn too_long_or_empty_name_is_refused() {
        let time = Time::from_nanos(0);
        assert!(format(Path::new(&"%c".repeat(1000)), time).is_err());
        assert!(format(Path::new(""), time).is_err());
    }

    proptest! {
        #[test]
        fn any_name_and_time_are_handled(name in "(%[a-zA-Z%]|.){0,40}", nanos: i64) {
            if let Ok(name) = format(Path::new(&name), Time::from_nanos(nanos)) {
                prop_assert!(!name.as_os_str().is_empty());
            }
        }
    }
}
