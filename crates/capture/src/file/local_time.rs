//! Times in file names: strftime(3) in the local time zone, as in tcpdump.

use std::fmt::Display;
use std::io;
use std::path::{Path, PathBuf};

use jiff::Timestamp;
use jiff::fmt::strtime;
use jiff::tz::TimeZone;
use wirestamp_clock::{Time, Utc};

/// Max length of a path (PATH_MAX of linux/limits.h).
const MAX_PATH: usize = 4096;

/// Replaces the conversions in `path`, such as %H, by the parts of `time`.
///
/// # Errors
/// A conversion is unknown, the path is not UTF-8, or the result is empty or too long for a path.
pub(super) fn format(path: &Path, time: Time<Utc>) -> io::Result<PathBuf> {
    let invalid = |why: &dyn Display| {
        let text = format!("cannot put the time into the name {}: {why}", path.display());
        io::Error::new(io::ErrorKind::InvalidFilename, text)
    };
    let pattern = path.to_str().ok_or_else(|| invalid(&"it is not UTF-8"))?;
    let time = Timestamp::from_nanosecond(time.as_nanos().into()).map_err(|why| invalid(&why))?;
    let time = time.to_zoned(TimeZone::system());
    let name = strtime::format(pattern, &time).map_err(|why| invalid(&why))?;
    if !(1..=MAX_PATH).contains(&name.len()) {
        return Err(invalid(&"the result is empty or too long"));
    }
    Ok(name.into())
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
