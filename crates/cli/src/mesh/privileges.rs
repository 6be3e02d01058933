//! What a node keeps of the privileges that it was started with (capabilities(7)).
//!
//! The kernel knows them for each thread: they are given up while there is one, which passes on to others what
//! it has left.

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

/// Whom a node runs as.
#[derive(Args)]
pub(super) struct As {
    /// Go on as this user once the node has what only root may have
    #[arg(long, value_name = "NAME", value_parser = user)]
    user: Option<User>,
}

fn user(name: &str) -> Result<User, String> {
    let found = User::from_name(name).map_err(|error| error.to_string())?;
    found.ok_or_else(|| "there is no such user on this machine".to_owned())
}

impl As {
    /// Makes a folder, if there is none, of whom the node will run as.
    pub(super) fn make_folder(&self, folder: &Path) -> anyhow::Result<()> {
        let what = || format!("cannot make the folder {}", folder.display());
        let is_there = folder.exists();
        fs::create_dir_all(folder).with_context(what)?;
        match &self.user {
            Some(User { uid, gid, .. }) if !is_there => {
                lchown(folder, Some(uid.as_raw()), Some(gid.as_raw())).with_context(what)
            }
            _ => Ok(()),
        }
    }

    /// Gives up, for good, all capabilities that the process has but some. It works in these folders from now on.
    ///
    /// To be called before there is a second thread.
    pub(super) fn keep_only(
        &self,
        capabilities: CapabilitySet,
        folders: &[&Path],
        output: Output,
    ) -> anyhow::Result<()> {
        // While it still may: the next lines take that away.
        let bounded = bound(capabilities);
        let mut runs = "goes on".to_owned();
        if let Some(user) = &self.user {
            become_user(user).with_context(|| format!("cannot become the user {}", user.name))?;
            runs = format!("goes on as {}", user.name);
        }
        match bounded.and_then(|()| keep(capabilities)) {
            Ok(kept) => output.remark(format!("{runs} with {}", shown(kept))),
            // As in a sandbox, which has ways of its own.
            Err(error) => {
                output.remark(format!("{runs}, and cannot give up its capabilities: {error}"));
            }
        }
        folders.iter().try_for_each(|folder| check(folder))
    }
}

/// Programs that it might start could not have any others either.
fn bound(kept: CapabilitySet) -> io::Result<()> {
    if !capabilities(None)?.effective.contains(CapabilitySet::SETPCAP) {
        // Whoever may not change that has nothing to gain: see `set_no_new_privs` below.
        return Ok(());
    }
    let all = (0..u64::BITS).map(|number| CapabilitySet::from_bits_retain(1 << number));
    for capability in all.filter(|it| !kept.contains(*it)) {
        // The kernel knows no more than so many.
        if let Ok(true) = capability_is_in_bounding_set(capability) {
            remove_capability_from_bounding_set(capability)?;
        }
    }
    Ok(())
}

/// Keeps what the process was permitted before, with nothing in effect yet.
fn become_user(user: &User) -> io::Result<()> {
    let (uid, gid) = (Uid::from_raw(user.uid.as_raw()), Gid::from_raw(user.gid.as_raw()));
    set_keep_capabilities(true)?;
    set_thread_groups(&[gid])?;
    set_thread_res_gid(gid, gid, gid)?;
    set_thread_res_uid(uid, uid, uid)
}

/// Which of them there were to keep.
fn keep(wanted: CapabilitySet) -> io::Result<CapabilitySet> {
    let kept = capabilities(None)?.permitted & wanted;
    clear_ambient_capability_set()?;
    let sets =
        CapabilitySets { effective: kept, permitted: kept, inheritable: CapabilitySet::empty() };
    set_capabilities(None, sets)?;
    set_no_new_privs(true)?;
    Ok(kept)
}

/// Says what to do where files belong to somebody else: root, too, needs to be let in from now on.
fn check(folder: &Path) -> anyhow::Result<()> {
    access(folder, Access::WRITE_OK | Access::EXEC_OK).with_context(|| {
        let me = geteuid().as_raw();
        let me = User::from_uid(me.into()).ok().flatten().map_or(me.to_string(), |it| it.name);
        let folder = folder.display();
        format!("cannot work in {folder} as {me}, to whom `chown -R {me} {folder}` would give it")
    })
}

fn shown(kept: CapabilitySet) -> String {
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
    fn what_is_kept_is_named() {
        assert_eq!(shown(CapabilitySet::empty()), "no capabilities");
        let kept = CapabilitySet::NET_RAW | CapabilitySet::SYS_ADMIN;
        assert_eq!(shown(kept), "CAP_NET_RAW, CAP_SYS_ADMIN and no other capabilities");
    }

    #[test]
    fn a_user_is_one_of_this_machine() {
        assert_eq!(user("root").unwrap().uid.as_raw(), 0);
        assert!(user("no such user").unwrap_err().contains("there is no such user"));
    }
}
