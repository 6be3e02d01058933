//! The change to an unprivileged user (`-Z`).

use std::fs;
use std::os::unix::fs::{MetadataExt as _, lchown};
use std::path::Path;

use anyhow::{Context as _, bail};
use clap::Args;
use rustix::fs::{Access, access};
use wirestamp_sys::user::{User, is_root};

#[derive(Args)]
#[command(next_help_heading = "Privileges")]
pub(super) struct Privileges {
    /// Change to this user and its groups after the interface and the first file are opened, as root
    /// only; with method ring, recvmsg, recvmmsg or libpcap. The files of -w belong to the user
    #[arg(short = 'Z', long = "relinquish-privileges", visible_alias = "user", value_name = "USER", value_parser = user)]
    user: Option<User>,
}

impl Privileges {
    /// Whether the process changes to another user.
    pub(super) fn are_dropped(&self) -> bool {
        self.user.is_some()
    }

    /// Rejects a change that is not possible.
    pub(super) fn check(&self) -> anyhow::Result<()> {
        match &self.user {
            Some(user) if !is_root() => bail!(
                "-Z: cannot change to the user {}: only root can; run it with sudo, or leave -Z out",
                name(user)
            ),
            _ => Ok(()),
        }
    }

    /// Changes to the user, if one is requested. `first` is the first file, which is given to the user; if the capture
    /// `continues` in further files, the user must be able to create them.
    pub(super) fn drop_now(&self, first: Option<&Path>, continues: bool) -> anyhow::Result<()> {
        let Some(user) = &self.user else { return Ok(()) };
        let name = name(user);
        if let Some(file) = first {
            give(file, user).with_context(|| {
                format!("-Z: cannot give {} to the user {name}", file.display())
            })?;
        }
        user.assume().with_context(|| format!("-Z: cannot change to the user {name}"))?;
        let Some(file) = first.filter(|_| continues) else { return Ok(()) };
        let parent = file.parent().filter(|parent| !parent.as_os_str().is_empty());
        let folder = parent.unwrap_or(Path::new("."));
        access(folder, Access::WRITE_OK | Access::EXEC_OK).with_context(|| {
            format!(
                "-Z: the user {name} cannot create the further files of -C and -G in {}; give the user \
                 write permission there, or choose another folder",
                folder.display()
            )
        })
    }
}

/// Changes the owner of a file that this process has created. A link stays as it is: its target may belong to others.
fn give(file: &Path, user: &User) -> std::io::Result<()> {
    if file == Path::new("-") {
        return Ok(());
    }
    let metadata = fs::symlink_metadata(file)?;
    if metadata.is_file() && metadata.nlink() == 1 {
        lchown(file, Some(user.id()), Some(user.group()))?;
    }
    Ok(())
}

fn name(user: &User) -> String {
    user.name().to_string_lossy().into_owned()
}

fn user(name: &str) -> Result<User, String> {
    match User::find(name) {
        Ok(Some(user)) => Ok(user),
        Ok(None) => Err("there is no such user; `getent passwd` lists them".into()),
        Err(error) => Err(format!("cannot read the list of users: {error}")),
    }
}
