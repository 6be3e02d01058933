//! Users of this machine, and the change of this process to one of them.
#![expect(unsafe_code, reason = "getpwnam_r(3), initgroups(3), setgid(2), setuid(2)")]

use std::ffi::{CStr, CString};
use std::{io, mem, ptr};

use libc::c_int;

/// Max bytes of a user's entry.
const MAX_ENTRY: usize = 1 << 20;

/// A user of this machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct User {
    name: CString,
    id: u32,
    group: u32,
}

impl User {
    /// The user with this name (getpwnam_r(3)), or `None` if there is none.
    ///
    /// # Errors
    /// The list of users cannot be read.
    pub fn find(name: &str) -> io::Result<Option<Self>> {
        let Ok(name) = CString::new(name) else { return Ok(None) };
        let mut buffer = vec![0; 1024];
        loop {
            // SAFETY: a `passwd` has pointers and integers, for which zero is a valid value.
            let mut entry: libc::passwd = unsafe { mem::zeroed() };
            let mut found = ptr::null_mut();
            // SAFETY: the name ends with 0, the others are writable, and the buffer has the stated length.
            let code = unsafe {
                libc::getpwnam_r(
                    name.as_ptr(),
                    &raw mut entry,
                    buffer.as_mut_ptr(),
                    buffer.len(),
                    &raw mut found,
                )
            };
            match code {
                0 if !found.is_null() => {
                    return Ok(Some(Self { name, id: entry.pw_uid, group: entry.pw_gid }));
                }
                // Codes of a missing user (getpwnam(3), "ERRORS").
                0 | libc::ENOENT | libc::ESRCH => return Ok(None),
                libc::EINTR => {}
                libc::ERANGE if buffer.len() < MAX_ENTRY => buffer.resize(buffer.len() * 2, 0),
                code => return Err(io::Error::from_raw_os_error(code)),
            }
        }
    }

    /// The name.
    #[must_use]
    pub fn name(&self) -> &CStr {
        &self.name
    }

    /// Number of the user.
    #[must_use]
    pub fn id(&self) -> u32 {
        self.id
    }

    /// Number of the user's primary group.
    #[must_use]
    pub fn group(&self) -> u32 {
        self.group
    }

    /// Changes this process, with all its threads, to this user and the user's groups. If the caller is root and this
    /// user is not, the process has no capabilities afterwards (capabilities(7), "Effect of user ID changes on
    /// capabilities"), and cannot change back.
    ///
    /// # Errors
    /// `EPERM` if the caller is not root. After an error, the groups may be changed already.
    pub fn assume(&self) -> io::Result<()> {
        // Groups first: they cannot be changed without privileges. The functions of the C library change all threads
        // (nptl(7)); the system calls would change the calling one only.
        // SAFETY: the name ends with 0.
        check(unsafe { libc::initgroups(self.name.as_ptr(), self.group) })?;
        // SAFETY: takes a number.
        check(unsafe { libc::setgid(self.group) })?;
        // SAFETY: takes a number.
        check(unsafe { libc::setuid(self.id) })
    }
}

/// Whether the calling thread acts as root.
#[must_use]
pub fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

fn check(result: c_int) -> io::Result<()> {
    if result == -1 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn user_is_found_by_name() {
        let root = User::find("root").unwrap().expect("every machine has it");
        assert_eq!((root.name(), root.id(), root.group()), (c"root", 0, 0));
        for missing in ["no such user", "", "ro\0ot"] {
            assert_eq!(User::find(missing).unwrap(), None, "{missing}");
        }
    }
}
