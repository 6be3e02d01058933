//! The capabilities that a node keeps (capabilities(7)).
//!
//! Capabilities are per thread and inherited by new threads. They are dropped while the process has one
//! thread.

use std::fs;
use std::os::unix::fs::lchown;
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

/// The user of a node.
#[derive(Args)]
pub(super) struct RunAs {
    /// Switch to this user after opening what needs root
    #[arg(long, value_name = "NAME", value_parser = user)]
    user: Option<User>,
}

fn user(name: &str) -> Result<User, String> {
    let found = User::from_name(name).map_err(|error| error.to_string())?;
    found.ok_or_else(|| "no such user on this machine".to_owned())
}

impl RunAs {
    /// Creates a folder, if it is missing, owned by the node's user.
    pub(super) fn make_folder(&self, folder: &Path) -> anyhow::Result<()> {
        let what = || format!("cannot create the folder {}", folder.display());
        let is_there = folder.exists();
        fs::create_dir_all(folder).with_context(what)?;
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
