//! A network interface as the kernel counts it.
#![expect(unsafe_code, reason = "if_nametoindex(3)")]

use std::ffi::CString;
use std::fs::File;
use std::io::{self, Read, Seek};

use crate::Error;

/// An interface of the network namespace in which it was opened.
#[derive(Debug)]
pub(crate) struct Interface {
    pub(crate) name: String,
    pub(crate) index: i32,
    /// `/proc/thread-self/net/dev` shows the namespace it was opened in, whoever reads it later.
    counters: File,
}

impl Interface {
    pub(crate) fn open(name: &str) -> Result<Self, Error> {
        let missing = || Error::NoSuchInterface(name.to_owned());
        let c_name = CString::new(name).map_err(|_| missing())?;
        // SAFETY: the name is a NUL-terminated string that outlives the call.
        let index = unsafe { libc::if_nametoindex(c_name.as_ptr()) };
        let index = i32::try_from(index).ok().filter(|&index| index > 0).ok_or_else(missing)?;
        let counters = File::open("/proc/thread-self/net/dev").map_err(|cause| Error::System {
            what: "read the counters",
            interface: name.to_owned(),
            cause,
        })?;
        Ok(Self { name: name.to_owned(), index, counters })
    }

    /// The packets that the driver has dropped since the interface came up; zero where the kernel
    /// no longer knows the interface.
    pub(crate) fn dropped(&mut self) -> io::Result<u64> {
        let mut table = String::new();
        self.counters.rewind()?;
        self.counters.read_to_string(&mut table)?;
        Ok(dropped(&table, &self.name).unwrap_or(0))
    }
}

/// Finds an interface's line in `/proc/net/dev`: name, then eight receive columns of which the
/// fourth is drops (proc_net(5)).
fn dropped(table: &str, name: &str) -> Option<u64> {
    let columns = table.lines().find_map(|line| {
        let (interface, columns) = line.split_once(':')?;
        (interface.trim() == name).then_some(columns)
    })?;
    columns.split_whitespace().nth(3)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    const TABLE: &str = "Inter-|   Receive                                                |\n \
        face |bytes    packets errs drop fifo frame compressed multicast|bytes\n    \
        lo:  100  2    0    3    0     0          0         0      100       2    0\n \
        tap-b: 5000 40 1 7 0 0 0 0 0 0 0\n";

    #[test]
    fn drops_are_read_from_the_interfaces_own_line() {
        assert_eq!(dropped(TABLE, "tap-b"), Some(7));
        assert_eq!(dropped(TABLE, "tap"), None);
        assert_eq!(dropped("tap: 1", "tap"), None);
    }

    #[test]
    fn an_unknown_interface_is_an_error_that_names_it() {
        let error = Interface::open("no-such-if").unwrap_err();
        assert!(error.to_string().contains("there is no interface no-such-if"), "{error}");
    }
}
