//! A limit on the memory that this process may use, as on a machine that has no more: a control group
//! (`Documentation/admin-guide/cgroup-v1/memory.rst` and `cgroup-v2.rst` in the kernel's source).

use std::path::{Path, PathBuf};
use std::{fs, process};

use anyhow::{Context, ensure};

/// Memory that this process allocates while this exists is limited. What it had before is not counted.
pub(crate) struct MemoryLimit {
    /// The limited group, and the group of this process before.
    group: PathBuf,
    before: PathBuf,
}

/// The memory controller's hierarchy.
#[derive(Debug, PartialEq, Eq)]
struct Hierarchy {
    root: PathBuf,
    /// File of a group's limit, in bytes.
    limit: &'static str,
    /// Prefix of this process's line in /proc/self/cgroup, up to the group's path.
    line: &'static str,
}

impl MemoryLimit {
    /// Why no limit can be set on this machine; none if it can.
    pub(crate) fn obstacle() -> Option<String> {
        Self::of_mib(1024).err().map(|error| format!("{error:#}"))
    }

    /// # Errors
    /// No group can be made: there is no memory controller, or privileges are missing.
    pub(crate) fn of_mib(mib: u16) -> anyhow::Result<Self> {
        let mounts = fs::read_to_string("/proc/self/mounts")?;
        let hierarchy = Hierarchy::find(&mounts, |root| {
            fs::read_to_string(root.join("cgroup.subtree_control")).unwrap_or_default()
        });
        let hierarchy = hierarchy.context("the memory controller of control groups is missing")?;
        let own = fs::read_to_string("/proc/self/cgroup")?;
        let before = hierarchy.group_in(&own).context("this process has no memory group")?;
        let group = hierarchy.root.join(format!("wirestamp-study-{}", process::id()));
        ensure!(!group.exists(), "{} exists already", group.display());
        fs::create_dir(&group).with_context(|| format!("cannot make {}", group.display()))?;
        // From here on, dropping it removes the group.
        let made = Self { group, before };
        let bytes = u64::from(mib) << 20;
        fs::write(made.group.join(hierarchy.limit), bytes.to_string())?;
        enter(&made.group)?;
        Ok(made)
    }
}

impl Drop for MemoryLimit {
    fn drop(&mut self) {
        // Nothing remains to be done if this fails: the process ends with the limit.
        let _ = enter(&self.before).and_then(|()| Ok(fs::remove_dir(&self.group)?));
    }
}

/// Moves this process to a group.
fn enter(group: &Path) -> anyhow::Result<()> {
    fs::write(group.join("cgroup.procs"), process::id().to_string())
        .with_context(|| format!("cannot enter {}", group.display()))
}

impl Hierarchy {
    /// The hierarchy in /proc/self/mounts. `delegated` reads the controllers that a hierarchy of version 2 gives to its
    /// groups.
    fn find(mounts: &str, delegated: impl Fn(&Path) -> String) -> Option<Self> {
        let of_mount = |mount: &str| {
            let mut fields = mount.split(' ').skip(1);
            let (root, kind, options) = (fields.next()?, fields.next()?, fields.next()?);
            let root = PathBuf::from(root);
            match kind {
                "cgroup" if options.split(',').any(|it| it == "memory") => {
                    Some(Self { root, limit: "memory.limit_in_bytes", line: ":memory:" })
                }
                "cgroup2" if delegated(&root).split_whitespace().any(|it| it == "memory") => {
                    Some(Self { root, limit: "memory.max", line: "0::" })
                }
                _ => None,
            }
        };
        mounts.lines().find_map(of_mount)
    }

    /// The group of a process, from its /proc/PID/cgroup.
    fn group_in(&self, groups: &str) -> Option<PathBuf> {
        let path = groups.lines().find_map(|line| Some(line.split_once(self.line)?.1))?;
        Some(self.root.join(path.trim_start_matches('/')))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hierarchies_of_both_versions_are_found() {
        let first = "cgroup /sys/fs/cgroup/cpu cgroup rw,cpu 0 0\n\
                     cgroup /sys/fs/cgroup/memory cgroup rw,relatime,memory 0 0\n\
                     cgroup2 /sys/fs/cgroup/unified cgroup2 rw 0 0\n";
        let hierarchy = Hierarchy::find(first, |_| String::new()).unwrap();
        assert_eq!(hierarchy.limit, "memory.limit_in_bytes");
        let group = hierarchy.group_in("3:cpuset:/\n4:memory:/a/b\n0::/\n").unwrap();
        assert_eq!(group, Path::new("/sys/fs/cgroup/memory/a/b"));
        let second = "cgroup2 /sys/fs/cgroup cgroup2 rw,nsdelegate 0 0\n";
        let hierarchy = Hierarchy::find(second, |_| "cpu memory pids".to_owned()).unwrap();
        let group = hierarchy.group_in("0::/user.slice\n").unwrap();
        assert_eq!(
            (hierarchy.limit, group.as_path()),
            ("memory.max", Path::new("/sys/fs/cgroup/user.slice"))
        );
        assert_eq!(Hierarchy::find(second, |_| "cpu pids".to_owned()), None);
        assert_eq!(Hierarchy::find("", |_| String::new()), None);
    }

    #[test]
    fn limited_process_is_released() {
        let group = || fs::read_to_string("/proc/self/cgroup").unwrap();
        let before = group();
        match MemoryLimit::of_mib(1024) {
            Ok(limit) => {
                assert_ne!(group(), before);
                drop(limit);
                assert_eq!(group(), before);
            }
            Err(reason) => println!("no limit here: {reason:#}"),
        }
    }
}
