//! Reads and writes settings, on the machine or in a folder that replaces it in tests.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::PathBuf;

use rustix::mount::{FsMountFlags, FsOpenFlags, MountAttrFlags, fsconfig_create, fsmount, fsopen};

use super::ethtool::Ethtool;
use super::place::Place;
use super::threads::{self, NapiThread};

const CPU_LATENCY: &str = "/dev/cpu_dma_latency";

/// Access to settings. Values are text without the newline.
pub(super) trait Host {
    /// Value of the setting at `place`.
    fn read(&self, place: &Place) -> io::Result<String>;

    /// Sets it to `value`, in the format of [`Host::read`].
    fn write(&self, place: &Place, value: &str) -> io::Result<()>;

    /// The names in a folder below `/sys`; empty if there is no such folder.
    fn list(&self, folder: &str) -> Vec<String>;

    /// Driver name of the interface; empty if it has none.
    fn driver(&self) -> String;

    /// The threads of threaded NAPI, in the order of their creation.
    fn napi_threads(&self) -> Vec<NapiThread>;
}

/// The running system.
pub(super) struct System {
    sys: PathBuf,
    proc: PathBuf,
    interface: String,
    ethtool: Option<Ethtool>,
    /// The mount that `sys` points to, if not `/sys`.
    _mounted: Option<OwnedFd>,
}

impl System {
    /// Access for `interface` of the calling thread's network namespace, from any thread. Without the privilege to
    /// mount, it uses `/sys` as it is.
    pub(super) fn of(interface: &str, ethtool: Ethtool) -> Self {
        let mounted = mount_sysfs().ok();
        let sys = mounted.as_ref().map_or_else(
            || PathBuf::from("/sys"),
            |folder| PathBuf::from(format!("/proc/self/fd/{}", folder.as_raw_fd())),
        );
        Self {
            sys,
            proc: "/proc".into(),
            interface: interface.to_owned(),
            ethtool: Some(ethtool),
            _mounted: mounted,
        }
    }

    #[cfg(test)]
    pub(super) fn fake(root: &std::path::Path, interface: &str) -> Self {
        let [sys, proc] = ["sys", "proc"].map(|name| root.join(name));
        Self { sys, proc, interface: interface.to_owned(), ethtool: None, _mounted: None }
    }

    fn file(&self, place: &Place) -> Option<PathBuf> {
        match place {
            Place::Sys(path) => Some(self.sys.join(path)),
            Place::Proc(path) => Some(self.proc.join(path)),
            _ => None,
        }
    }
}

/// Mounts sysfs for the calling thread's network namespace. `/sys` shows the interfaces of the namespace in which it
/// was mounted. This mount is private and ends with its descriptor (ip-netns(8) mounts one for each command, for the
/// same reason). Requires `CAP_SYS_ADMIN`.
fn mount_sysfs() -> io::Result<OwnedFd> {
    let sysfs = fsopen("sysfs", FsOpenFlags::FSOPEN_CLOEXEC)?;
    fsconfig_create(&sysfs)?;
    let flags = MountAttrFlags::MOUNT_ATTR_NOSUID | MountAttrFlags::MOUNT_ATTR_NOEXEC;
    Ok(fsmount(&sysfs, FsMountFlags::FSMOUNT_CLOEXEC, flags)?)
}

impl Host for System {
    fn read(&self, place: &Place) -> io::Result<String> {
        if let Some(path) = self.file(place) {
            return Ok(fs::read_to_string(path)?.trim().to_owned());
        }
        match (place, &self.ethtool) {
            (Place::Ethtool(knob), Some(ethtool)) => ethtool.read(*knob),
            (Place::Thread { pid, name, attribute }, _) => threads::read(*pid, name, *attribute),
            (Place::CpuLatency, Some(_)) => fs::metadata(CPU_LATENCY).map(|_| "not held".into()),
            _ => Err(io::ErrorKind::NotFound.into()),
        }
    }

    fn write(&self, place: &Place, value: &str) -> io::Result<()> {
        if let Some(path) = self.file(place) {
            let mut file = OpenOptions::new().write(true).truncate(true).open(path)?;
            return file.write_all(value.as_bytes());
        }
        match (place, &self.ethtool) {
            (Place::Ethtool(knob), Some(ethtool)) => ethtool.write(*knob, value),
            (Place::Thread { pid, name, attribute }, _) => {
                threads::write(*pid, name, *attribute, value)
            }
            _ => Err(io::ErrorKind::NotFound.into()),
        }
    }

    fn list(&self, folder: &str) -> Vec<String> {
        let entries = fs::read_dir(self.sys.join(folder)).into_iter().flatten().flatten();
        let mut names: Vec<_> =
            entries.filter_map(|entry| entry.file_name().into_string().ok()).collect();
        names.sort();
        names
    }

    fn driver(&self) -> String {
        self.ethtool.as_ref().and_then(|ethtool| ethtool.driver().ok()).unwrap_or_default()
    }

    fn napi_threads(&self) -> Vec<NapiThread> {
        threads::of(&self.proc, &self.interface)
    }
}

/// Keeps idle cores awake until the file is closed (`Documentation/power/pm_qos_interface.rst`: a 32-bit number of
/// microseconds).
pub(super) fn keep_awake() -> io::Result<File> {
    let mut request = OpenOptions::new().write(true).open(CPU_LATENCY)?;
    request.write_all(&0_i32.to_ne_bytes())?;
    Ok(request)
}
