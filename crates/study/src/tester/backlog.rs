//! How many packets the kernel keeps for a core that has no time for them.

use std::fs;
use std::path::PathBuf;

use anyhow::Context as _;

/// All namespaces have one (`netdev_max_backlog` in `Documentation/admin-guide/sysctl/net.rst`).
const FILE: &str = "/proc/sys/net/core/netdev_max_backlog";

/// A longer backlog than usual, and the usual one again when this is dropped.
#[derive(Debug)]
pub(crate) struct Backlog {
    file: PathBuf,
    /// What it was, if that was less.
    usual: Option<String>,
}

impl Backlog {
    /// Has the kernel keep at least so many packets.
    ///
    /// # Errors
    /// When that cannot be read or changed, as in a container without privileges.
    pub(crate) fn of_at_least(packets: u32) -> anyhow::Result<Self> {
        Self::in_file(FILE.into(), packets)
    }

    fn in_file(file: PathBuf, packets: u32) -> anyhow::Result<Self> {
        let cannot = |verb| format!("cannot {verb} {}", file.display());
        let usual = fs::read_to_string(&file).with_context(|| cannot("read"))?;
        let usual = usual.trim().to_owned();
        let is_enough = usual.parse::<u32>().is_ok_and(|usual| usual >= packets);
        if is_enough {
            return Ok(Self { file, usual: None });
        }
        fs::write(&file, packets.to_string()).with_context(|| cannot("change"))?;
        Ok(Self { file, usual: Some(usual) })
    }
}

impl Drop for Backlog {
    fn drop(&mut self) {
        if let Some(usual) = &self.usual {
            // It could be written before, and there is nobody left to tell if it cannot be now.
            let _ = fs::write(&self.file, usual);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_less_is_as_it_was_afterwards() {
        let folder = tempfile::tempdir().unwrap();
        for (usual, meanwhile) in [("1000\n", "5000"), ("5000\n", "5000\n"), ("8000\n", "8000\n")] {
            let file = folder.path().join("backlog");
            fs::write(&file, usual).unwrap();
            let backlog = Backlog::in_file(file.clone(), 5000).unwrap();
            assert_eq!(fs::read_to_string(&file).unwrap(), meanwhile);
            drop(backlog);
            assert_eq!(fs::read_to_string(&file).unwrap().trim(), usual.trim());
        }
        assert!(Backlog::in_file(folder.path().join("none"), 1).is_err());
    }
}
