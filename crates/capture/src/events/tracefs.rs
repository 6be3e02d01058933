//! The file system tracefs, and a trace instance of this process in it.

use std::fs::{self, File};
use std::io::{self, ErrorKind, Read};
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::process;
use std::sync::atomic::{AtomicU32, Ordering};

use rustix::mount::{FsMountFlags, FsOpenFlags, MountAttrFlags, fsconfig_create, fsmount, fsopen};

use super::Error;
use super::guard::Guard;

/// Where tracefs is usually mounted.
const MOUNTED: &str = "/sys/kernel/tracing";

/// Begin of an instance's name; the process and a number follow.
const PREFIX: &str = "wirestamp-";

/// Access to tracefs: where it is mounted, or by a mount of this process that has no place in the file tree and ends
/// with the process.
#[derive(Debug)]
pub(super) struct Tracefs {
    root: PathBuf,
    /// Keeps the mount.
    _mount: Option<OwnedFd>,
}

impl Tracefs {
    pub(super) fn open() -> Result<Self, Error> {
        if Path::new(MOUNTED).join("instances").is_dir() {
            return Ok(Self { root: MOUNTED.into(), _mount: None });
        }
        let mount = || {
            let context = fsopen("tracefs", FsOpenFlags::FSOPEN_CLOEXEC)?;
            fsconfig_create(&context)?;
            let none = MountAttrFlags::empty();
            fsmount(&context, FsMountFlags::FSMOUNT_CLOEXEC, none)
        };
        let mount = mount().map_err(|cause| Error::Tracefs { cause: cause.into() })?;
        let root = format!("/proc/self/fd/{}", mount.as_raw_fd()).into();
        Ok(Self { root, _mount: Some(mount) })
    }
}

/// The text of a file in tracefs. Some of its files return their text to the first read(2) only, as far as it fits.
fn read_at_once(path: &Path) -> io::Result<String> {
    let mut file = File::open(path)?;
    let (mut text, mut part) = (Vec::new(), vec![0; 1 << 16]);
    loop {
        match file.read(&mut part)? {
            0 => return String::from_utf8(text).map_err(|_| ErrorKind::InvalidData.into()),
            length => text.extend_from_slice(&part[..length]),
        }
    }
}

/// A trace instance: rings, clock and events of its own, apart from other users of the tracer.
///
/// It is removed on drop. If the process ends otherwise, also by SIGKILL, a guard process removes it.
#[derive(Debug)]
pub(super) struct Instance {
    folder: PathBuf,
    guard: Option<Guard>,
    /// An open file of the instance: the kernel refuses to remove it meanwhile ([`remove_orphans`]).
    in_use: Option<File>,
    _tracefs: Tracefs,
}

impl Instance {
    /// Creates an instance that does not record yet.
    pub(super) fn create() -> Result<Self, Error> {
        static CREATED: AtomicU32 = AtomicU32::new(0);
        let tracefs = Tracefs::open()?;
        let instances = tracefs.root.join("instances");
        let failed = || Error::of("create a trace instance");
        remove_orphans(&instances);
        loop {
            let number = CREATED.fetch_add(1, Ordering::Relaxed);
            let name = format!("{PREFIX}{}-{number}", process::id());
            // Before the instance exists, so that it never exists without its guard.
            let guard = Guard::start(&instances, &name)
                .map_err(Error::of("start `sh`, which removes the trace instance after a crash"))?;
            let folder = instances.join(&name);
            let created =
                fs::create_dir(&folder).and_then(|()| File::open(folder.join("tracing_on")));
            match created {
                Ok(file) => {
                    let (guard, in_use) = (Some(guard), Some(file));
                    let instance = Self { folder, guard, in_use, _tracefs: tracefs };
                    instance.write("tracing_on", "0")?;
                    return Ok(instance);
                }
                // A process with the same number in another PID namespace has such an instance, or a recorder there
                // has taken this one for an orphan.
                Err(error)
                    if matches!(error.kind(), ErrorKind::AlreadyExists | ErrorKind::NotFound) =>
                {
                    guard.dismiss();
                }
                Err(error) => {
                    guard.remove();
                    return Err(failed()(error));
                }
            }
        }
    }

    pub(super) fn path(&self, file: &str) -> PathBuf {
        self.folder.join(file)
    }

    pub(super) fn read(&self, file: &str) -> Result<String, Error> {
        let failed = Error::of(format!("read {file} of the trace instance"));
        read_at_once(&self.path(file)).map_err(failed)
    }

    pub(super) fn write(&self, file: &str, value: &str) -> Result<(), Error> {
        let failed = Error::of(format!("write '{value}' to {file} of the trace instance"));
        fs::write(self.path(file), value).map_err(failed)
    }

    /// Removes the instance. Its rings must be closed and unmapped.
    pub(super) fn remove(mut self) -> Result<(), Error> {
        self.try_remove().map_err(Error::of("remove the trace instance"))
    }

    fn try_remove(&mut self) -> io::Result<()> {
        let Some(guard) = self.guard.take() else { return Ok(()) };
        drop(self.in_use.take());
        let removed = fs::remove_dir(&self.folder);
        match &removed {
            Ok(()) => guard.dismiss(),
            Err(_) => guard.remove(),
        }
        removed
    }
}

/// Removes instances whose process and guard were killed together, as with a container or a control group. The kernel
/// does not remove an instance whose rings are open.
fn remove_orphans(instances: &Path) {
    for entry in fs::read_dir(instances).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let owner = name.to_str().and_then(|name| name.strip_prefix(PREFIX)?.split('-').next());
        if owner.is_some_and(|process| !Path::new("/proc").join(process).exists()) {
            // Fails if a process of another PID namespace uses it.
            let _ = fs::remove_dir(entry.path());
        }
    }
}

impl Drop for Instance {
    fn drop(&mut self) {
        // The guard tries again if this fails.
        let _ = self.try_remove();
    }
}
