//! The capabilities that a node keeps (capabilities(7)).
//!
//! Capabilities are per thread and inherited by new threads. They are dropped while the process has one
//! thread.

use std::fs::{self, DirBuilder};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, lchown};
use std::path::Path;

use anyhow::Context;
use clap::Args;
use nix::unistd::User;
use rustix::fs::{Access, access};
use rustix::io;
use rustix::process::geteuid;
use rustix::thread::{
    CapabilitySet, CapabilitySets, Gid, Uid, capabilities, capability_is_in_bounding_set,
    clear_ambient_capability_set, remove_capability_from_bounding_set, set_capabilities,
    set_keep_capabilities, set_no_new_privs, set_thread_groups, set_thread_res_gid,
    set_thread_res_uid,
};

use crate::output::Output;

/// The user of nodes that root starts, if it exists.
const DEFAULT_USER: &str = "wirestamp";

/// The user of a node.
#[derive(Args, Clone)]
pub(super) struct RunAs {
    /// Switch to this user after opening what needs root [default: wirestamp, if that user exists and the folder is its
    /// own or new]
    #[arg(long, value_name = "NAME", value_parser = user)]
    user: Option<User>,
}

fn user(name: &str) -> Result<User, String> {
    let found = User::from_name(name).map_err(|error| error.to_string())?;
    found.ok_or_else(|| "no such user on this machine".to_owned())
}

/// Creates a folder, if it is missing, which its owner only can open.
pub(super) fn make_private_folder(folder: &Path) -> anyhow::Result<()> {
    let what = || format!("cannot create the folder {}", folder.display());
    if let Some(parent) = folder.parent() {
        fs::create_dir_all(parent).with_context(what)?;
    }
    match DirBuilder::new().mode(0o700).create(folder) {
        Err(_) if folder.is_dir() => Ok(()),
        created => created.with_context(what),
    }
}

/// The default user, for root: if it can reach the folders, and those that exist are its own.
fn default_user(folders: &[&Path]) -> Option<User> {
    if !geteuid().is_root() {
        return None;
    }
    let user = User::from_name(DEFAULT_USER).ok().flatten()?;
    let uid = user.uid.as_raw();
    let can_pass = |folder: &Path| {
        fs::metadata(folder).map_or(true, |it| it.uid() == uid || it.mode() & 0o001 != 0)
    };
    let is_usable = |folder: &&Path| {
        std::path::absolute(folder).is_ok_and(|it| it.ancestors().skip(1).all(can_pass))
            && fs::metadata(folder).map_or(true, |it| it.uid() == uid)
    };
    folders.iter().all(is_usable).then_some(user)
}

impl RunAs {
    /// The user of a node with these folders.
    pub(super) fn or_default(self, folders: &[&Path]) -> Self {
        Self { user: self.user.or_else(|| default_user(folders)) }
    }

    /// Creates a folder, if it is missing, for the node's user only.
    pub(super) fn make_folder(&self, folder: &Path) -> anyhow::Result<()> {
        let what = || format!("cannot create the folder {}", folder.display());
        let is_there = folder.exists();
        make_private_folder(folder)?;
        match &self.user {
            Some(User { uid, gid, .. }) if !is_there => {
                lchown(folder, Some(uid.as_raw()), Some(gid.as_raw())).with_context(what)
            }
            _ => Ok(()),
        }
    }

    /// Permanently drops all other capabilities, and checks access to the folders.
    ///
    /// Must be called before a second thread starts.
    pub(super) fn keep_only(
        &self,
        capabilities: CapabilitySet,
        folders: &[&Path],
        output: Output,
    ) -> anyhow::Result<()> {
        // First: the next steps remove the right to do so.
        let bounded = bound(capabilities);
        let mut runs = "running".to_owned();
        if let Some(user) = &self.user {
            become_user(user).with_context(|| format!("cannot become the user {}", user.name))?;
            runs = format!("running as {}", user.name);
        }
        match bounded.and_then(|()| keep(capabilities)) {
            Ok(kept) => output.remark(format!("{runs} with {}", capability_names(kept))),
            // For example in a sandbox.
            Err(error) => {
                output.remark(format!("{runs}; cannot drop capabilities: {error}"));
            }
        }
        if geteuid().is_root() {
            output.remark(
                "as root, it can change all files of root; `useradd --system wirestamp` makes a user for nodes with new \
                 folders, and --user names another one",
            );
        }
        folders.iter().try_for_each(|folder| check(folder))
    }
}

/// Drops the capabilities from the bounding set, so that child processes cannot gain them.
fn bound(kept: CapabilitySet) -> io::Result<()> {
    if !capabilities(None)?.effective.contains(CapabilitySet::SETPCAP) {
        // Not permitted, and not needed: see `set_no_new_privs` below.
        return Ok(());
    }
    let all = (0..u64::BITS).map(|number| CapabilitySet::from_bits_retain(1 << number));
    for capability in all.filter(|it| !kept.contains(*it)) {
        // Fails for numbers that this kernel does not have.
        if let Ok(true) = capability_is_in_bounding_set(capability) {
            remove_capability_from_bounding_set(capability)?;
        }
    }
    Ok(())
}

/// Switches the user. Permitted capabilities stay permitted, but are not effective yet.
fn become_user(user: &User) -> io::Result<()> {
    let (uid, gid) = (Uid::from_raw(user.uid.as_raw()), Gid::from_raw(user.gid.as_raw()));
    set_keep_capabilities(true)?;
    set_thread_groups(&[gid])?;
    set_thread_res_gid(gid, gid, gid)?;
    set_thread_res_uid(uid, uid, uid)
}

/// Keeps the wanted capabilities and returns those that the process had.
fn keep(wanted: CapabilitySet) -> io::Result<CapabilitySet> {
    let kept = capabilities(None)?.permitted & wanted;
    clear_ambient_capability_set()?;
    let sets =
        CapabilitySets { effective: kept, permitted: kept, inheritable: CapabilitySet::empty() };
    set_capabilities(None, sets)?;
    set_no_new_privs(true)?;
    Ok(kept)
}

/// Fails with the next step if the folder is not accessible: without capabilities, root also needs
/// permission.
fn check(folder: &Path) -> anyhow::Result<()> {
    access(folder, Access::WRITE_OK | Access::EXEC_OK).with_context(|| {
        let me = geteuid().as_raw();
        let me = User::from_uid(me.into()).ok().flatten().map_or(me.to_string(), |it| it.name);
        let folder = folder.display();
        format!("cannot write in {folder} as {me}; change its owner with `chown -R {me} {folder}`")
    })
}

fn capability_names(kept: CapabilitySet) -> String {
    let names: Vec<_> = kept.iter_names().map(|(name, _)| format!("CAP_{name}")).collect();
    if names.is_empty() {
        "no capabilities".to_owned()
    } else {
        format!("{} and no other capabilities", names.join(", "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kept_capabilities_are_named() {
        assert_eq!(capability_names(CapabilitySet::empty()), "no capabilities");
        let kept = CapabilitySet::NET_RAW | CapabilitySet::SYS_ADMIN;
        assert_eq!(capability_names(kept), "CAP_NET_RAW, CAP_SYS_ADMIN and no other capabilities");
    }

    #[test]
    fn unknown_user_is_rejected() {
        assert_eq!(user("root").unwrap().uid.as_raw(), 0);
        assert!(user("no such user").unwrap_err().contains("no such user on"));
    }
}
