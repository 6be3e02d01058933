//! A network interface as the kernel counts it.

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

/// What the driver counted for an interface since it came up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Counters {
    pub(crate) received: u64,
    pub(crate) dropped: u64,
}

impl Interface {
    pub(crate) fn open(name: &str) -> Result<Self, Error> {
        let missing = || Error::NoSuchInterface(name.to_owned());
        let c_name = CString::new(name).map_err(|_| missing())?;
        // SAFETY: the name is a NUL-terminated string that outlives the call.
        let index = unsafe { libc::if_nametoindex(c_name.as_ptr()) };
        let index = i32::try_from(index).ok().filter(|&index| index > 0).ok_or_else(missing)?;
        let counters = File::open("/proc/thread-self/net/dev").map_err(|source| Error::System {
            what: "read the counters",
            interface: name.to_owned(),
            source,
        })?;
        Ok(Self { name: name.to_owned(), index, counters })
    }

    /// Present values of the counters; zero where the kernel no longer knows the interface.
    pub(crate) fn counters(&mut self) -> io::Result<Counters> {
        let mut table = String::new();
        self.counters.rewind()?;
        self.counters.read_to_string(&mut table)?;
        Ok(parse(&table, &self.name).unwrap_or_default())
    }
}

/// Finds an interface's line in `/proc/net/dev`: name, then eight receive columns of which the
/// second is packets and the fourth is drops (proc_net(5)).
fn parse(table: &str, name: &str) -> Option<Counters> {
    let columns = table.lines().find_map(|line| {
        let (interface, columns) = line.split_once(':')?;
        (interface.trim() == name).then_some(columns)
    })?;
    let mut columns = columns.split_whitespace().map(str::parse::<u64>);
    let received = columns.nth(1)?.ok()?;
    let dropped = columns.nth(1)?.ok()?;
    Some(Counters { received, dropped })
}

#[cfg(test)]
mod tests {
    use super::*;

    const TABLE: &str = "Inter-|   Receive                                                |\n \
        face |bytes    packets errs drop fifo frame compressed multicast|bytes\n    \
        lo:  100  2    0    3    0     0          0         0      100       2    0\n \
        tap-b: 5000 40 1 7 0 0 0 0 0 0 0\n";

    #[test]
    fn packets_and_drops_are_read_from_the_interfaces_own_line() {
        assert_eq!(parse(TABLE, "tap-b"), Some(Counters { received: 40, dropped: 7 }));
        assert_eq!(parse(TABLE, "tap"), None);
        assert_eq!(parse("tap: 1", "tap"), None);
    }

    #[test]
    fn an_unknown_interface_is_an_error_that_names_it() {
        let error = Interface::open("no-such-if").unwrap_err();
        assert!(error.to_string().contains("there is no interface no-such-if"), "{error}");
    }
}
