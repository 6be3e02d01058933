//! `wirestamp extcap`: installs and removes the link through which Wireshark finds this program.
//!
//! A link instead of a copy: it has the capabilities and the version of the program.

use std::env;
use std::fs;
use std::io;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};

use anyhow::{Context, anyhow, bail};
use clap::{Args, Subcommand};
use schemars::JsonSchema;
use serde::Serialize;

use crate::files::are_one;
use crate::output::Output;
use crate::usage::usage;

/// Name of the link, and of the program it points to.
const NAME: &str = "wirestamp";

/// Capabilities for all capture methods, in the syntax of setcap(8).
const CAPABILITIES: &str = "cap_net_raw,cap_net_admin,cap_bpf,cap_perfmon,cap_sys_nice";

#[derive(Args)]
#[command(arg_required_else_help = true)]
#[command(after_help = "Example:\n  \
    wirestamp extcap install\n  \
    tshark -D\n  \
    tshark -i wirestamp-eth0 -f 'udp port 5000' -w calls.pcapng\n  \
    tshark -i wirestamp-lo -o extcap.wirestamp_lo.method:recvmsg")]
pub(crate) struct Arguments {
    #[command(subcommand)]
    action: Action,
}

#[derive(Subcommand)]
enum Action {
    /// Create a link to this program in Wireshark's folder of capture tools
    Install(Place),
    /// Remove the link
    Remove(Place),
}

#[derive(Args)]
struct Place {
    /// For all users of this machine, instead of the current user
    #[arg(long)]
    system: bool,
    /// Use this existing folder instead of the one that tshark reports
    #[arg(long, value_name = "DIR", conflicts_with = "system")]
    dir: Option<PathBuf>,
}

/// The link through which Wireshark finds this program.
#[derive(Serialize, JsonSchema)]
pub(crate) struct Done {
    /// The link.
    link: PathBuf,
    /// This program.
    binary: PathBuf,
    /// Whether the link was created or removed now.
    changed: bool,
}

pub(crate) fn run(arguments: &Arguments, output: Output) -> anyhow::Result<ExitCode> {
    let binary = env::current_exe().context("cannot find the path of this program")?;
    match &arguments.action {
        Action::Install(place) => {
            let link = place.folder()?.join(NAME);
            place.check()?;
            let changed = install(&link, &binary).map_err(with_next_step)?;
            let done = Done { link, binary, changed };
            output.result(&done, |done| installed(done, place.is_usual()))?;
        }
        Action::Remove(place) => {
            let link = place.folder()?.join(NAME);
            let changed = remove(&link).map_err(with_next_step)?;
            output.result(&Done { link, binary, changed }, removed)?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn installed(done: &Done, is_usual: bool) -> String {
    let Done { link, binary, changed } = done;
    let (link, binary) = (link.display(), binary.display());
    let what = if *changed { "is now" } else { "is already" };
    let next = if is_usual {
        "`tshark -D` lists the interfaces; in Wireshark: Capture, Refresh Interfaces (F5)"
    } else {
        "tshark does not search this folder; leave --dir out to use one that it does"
    };
    format!(
        "{link} {what} a link to {binary}\n\
         {next}\n\
         to capture without being root: sudo setcap {CAPABILITIES}+ep {binary}\n"
    )
}

fn removed(done: &Done) -> String {
    let what = if done.changed { "removed" } else { "nothing to remove:" };
    format!("{what} {}\n", done.link.display())
}

/// Adds the next step to a permission error.
fn with_next_step(error: anyhow::Error) -> anyhow::Error {
    let is_denied = |io: &io::Error| io.kind() == io::ErrorKind::PermissionDenied;
    if error.chain().filter_map(|cause| cause.downcast_ref()).any(is_denied) {
        anyhow!(
            "{error:#}; run it as root, or leave --system and --dir out to install for the current user"
        )
    } else {
        error
    }
}

impl Place {
    /// Rejects a folder that does not exist.
    fn check(&self) -> anyhow::Result<()> {
        match &self.dir {
            Some(folder) if !folder.is_dir() => Err(usage(format!(
                "no folder {0}; create it with `mkdir -p {0}`, or leave --dir out",
                folder.display()
            ))),
            _ => Ok(()),
        }
    }

    /// Whether Wireshark searches the folder by default.
    fn is_usual(&self) -> bool {
        let Some(folder) = &self.dir else { return true };
        let folders = tshark_folders();
        let usual = [personal(&folders), system(&folders)];
        usual.iter().flatten().any(|usual| are_one(usual, folder))
    }

    fn folder(&self) -> anyhow::Result<PathBuf> {
        if let Some(folder) = &self.dir {
            return Ok(folder.clone());
        }
        let folders = tshark_folders();
        let folder = if self.system { system(&folders) } else { personal(&folders) };
        folder.or_else(|| newest_default().filter(|_| !self.system)).context(
            "cannot find Wireshark's folder of capture tools, because tshark does not report it; give it \
             with --dir (Wireshark shows it in Help, About, Folders)",
        )
    }
}

/// The output of `tshark -G folders`; empty without tshark.
fn tshark_folders() -> String {
    let mut tshark = Command::new("tshark");
    let output = tshark.args(["-G", "folders"]).stdin(Stdio::null()).output();
    output.map_or_else(|_| String::new(), |output| String::from_utf8_lossy(&output.stdout).into())
}

/// The user's folder of capture tools. Wireshark up to 4.0 does not list it: it is in the configuration
/// folder.
fn personal(folders: &str) -> Option<PathBuf> {
    listed(folders, "Personal Extcap path")
        .or_else(|| Some(listed(folders, "Personal configuration")?.join("extcap")))
}

/// The system's folder of capture tools, by its new or old title.
fn system(folders: &str) -> Option<PathBuf> {
    listed(folders, "Global Extcap path").or_else(|| listed(folders, "Extcap path"))
}

/// The folder of a line such as `Extcap path:<tab>/usr/lib/wireshark/extcap`.
fn listed(folders: &str, title: &str) -> Option<PathBuf> {
    let mut lines = folders.lines().filter_map(|line| line.split_once(':'));
    let (_, path) = lines.find(|(found, _)| *found == title)?;
    Some(PathBuf::from(path.trim())).filter(|path| path.is_absolute())
}

/// The user's folder of capture tools since Wireshark 4.2 (release notes).
fn newest_default() -> Option<PathBuf> {
    Some(env::home_dir()?.join(".local/lib/wireshark/extcap"))
}

/// Whether `link` exists; an error if it is not from `wirestamp extcap`.
fn is_there(link: &Path) -> anyhow::Result<bool> {
    let foreign =
        || format!("{} was not created by `wirestamp extcap`; move it away", link.display());
    match fs::read_link(link) {
        Ok(target) if target.file_name().is_some_and(|name| name == NAME) => Ok(true),
        Ok(_) => bail!(foreign()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        // Not a link.
        Err(error) if error.kind() == io::ErrorKind::InvalidInput => bail!(foreign()),
        Err(error) => Err(error).with_context(|| format!("cannot read {}", link.display())),
    }
}

/// Links `link` to `binary`. Returns whether anything had to be done.
fn install(link: &Path, binary: &Path) -> anyhow::Result<bool> {
    let failed = || format!("cannot make the link {}", link.display());
    if is_there(link)? {
        if fs::read_link(link).is_ok_and(|target| target == binary) {
            return Ok(false);
        }
        fs::remove_file(link).with_context(failed)?;
    }
    if let Some(folder) = link.parent() {
        fs::create_dir_all(folder).with_context(failed)?;
    }
    symlink(binary, link).with_context(failed)?;
    Ok(true)
}

/// Takes `link` away. Returns whether there was one.
fn remove(link: &Path) -> anyhow::Result<bool> {
    if !is_there(link)? {
        return Ok(false);
    }
    fs::remove_file(link).with_context(|| format!("cannot remove {}", link.display()))?;
    Ok(true)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_folders_are_found_in_what_old_and_new_versions_list() {
        let old = "Personal configuration:\t/home/a/.config/wireshark\n\
                   Extcap path:         \t/usr/lib/wireshark/extcap\n";
        assert_eq!(personal(old).unwrap(), Path::new("/home/a/.config/wireshark/extcap"));
        assert_eq!(system(old).unwrap(), Path::new("/usr/lib/wireshark/extcap"));
        let new = "Personal configuration:\t/home/a/.config/wireshark\n\
                   Personal Extcap path:\t/home/a/.local/lib/wireshark/extcap\n\
                   Global Extcap path:  \t/usr/lib/wireshark/extcap\n";
        assert_eq!(personal(new).unwrap(), Path::new("/home/a/.local/lib/wireshark/extcap"));
        assert_eq!(system(new).unwrap(), Path::new("/usr/lib/wireshark/extcap"));
        assert_eq!((personal(""), system("Extcap path: \n")), (None, None));
    }

    #[test]
    fn a_link_is_made_once_renewed_and_removed_once() {
        let folder = tempfile::tempdir().unwrap();
        let link = folder.path().join("a/b/wirestamp");
        let [old, new] = ["/old/wirestamp", "/new/wirestamp"].map(Path::new);
        assert!(install(&link, old).unwrap());
        assert!(!install(&link, old).unwrap());
        assert!(install(&link, new).unwrap());
        assert_eq!(fs::read_link(&link).unwrap(), new);
        assert!(remove(&link).unwrap());
        assert!(!remove(&link).unwrap());
    }

    #[test]
    fn what_is_not_ours_stays() {
        let folder = tempfile::tempdir().unwrap();
        let place = folder.path().join(NAME);
        let refused = |result: anyhow::Result<bool>| {
            let error = result.unwrap_err().to_string();
            assert!(error.contains("move it away") && !error.contains('\n'), "{error}");
        };
        symlink("/usr/bin/other", &place).unwrap();
        refused(install(&place, Path::new("/new/wirestamp")));
        refused(remove(&place));
        fs::remove_file(&place).unwrap();
        fs::write(&place, "precious").unwrap();
        refused(install(&place, Path::new("/new/wirestamp")));
        refused(remove(&place));
        assert_eq!(fs::read(&place).unwrap(), b"precious");
    }
}
