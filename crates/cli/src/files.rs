//! Checks of input and output paths before a measurement.

use std::fs::{self, Metadata};
use std::io;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use rustix::fs::{Access, access};
use wirestamp_capture::file::split_interface;

use crate::usage::usage;

/// Whether two paths lead to the same existing file.
pub(crate) fn are_one(a: &Path, b: &Path) -> bool {
    let identity = |path| fs::metadata(path).map(|file: Metadata| (file.dev(), file.ino()));
    matches!((identity(a), identity(b)), (Ok(a), Ok(b)) if a == b)
}

/// Whether the path can be read only once: standard input (`-`) or a FIFO.
pub(crate) fn is_pipe(path: &Path) -> bool {
    is_standard(path) || fs::metadata(path).is_ok_and(|found| found.file_type().is_fifo())
}

/// Rejects output files that would overwrite an input or each other, or that cannot be written.
///
/// Called before anything is measured or opened. `outputs` are pairs of option and file.
pub(crate) fn check_outputs(
    outputs: &[(&str, Option<&Path>)],
    inputs: &[&Path],
) -> anyhow::Result<()> {
    let given: Vec<_> =
        outputs.iter().filter_map(|&(option, path)| path.map(|path| (option, path))).collect();
    for (before, &(option, path)) in given.iter().enumerate() {
        if is_standard(path) {
            return Err(usage(format!(
                "{option} needs a file, not standard output; write ./- for a file named -"
            )));
        }
        if inputs.iter().any(|input| are_one(&standard_input(input), path)) {
            return Err(usage(format!(
                "{option} would overwrite an input file; write to another file"
            )));
        }
        if let Some((other, _)) = given[..before].iter().find(|(_, it)| is_same_place(it, path)) {
            return Err(usage(format!("{other} and {option} name the same file; use two files")));
        }
        check_writable(path).with_context(|| format!("cannot write {}", path.display()))?;
    }
    Ok(())
}

/// Whether the path is `-`: standard input or output.
fn is_standard(path: &Path) -> bool {
    path == Path::new("-")
}

/// The path that is read, without an interface of the file; for `-`, standard input, which the shell may redirect from a
/// file.
pub(crate) fn standard_input(path: &Path) -> PathBuf {
    if is_standard(path) { "/dev/stdin".into() } else { split_interface(path).0 }
}

/// Whether both paths name the same file, which need not exist yet.
fn is_same_place(a: &Path, b: &Path) -> bool {
    let place =
        |path: &Path| Some((fs::canonicalize(folder(path)).ok()?, path.file_name()?.to_owned()));
    are_one(a, b) || matches!((place(a), place(b)), (Some(a), Some(b)) if a == b)
}

fn check_writable(path: &Path) -> anyhow::Result<()> {
    match fs::metadata(path) {
        Ok(found) if found.is_dir() => Err(io::Error::from(io::ErrorKind::IsADirectory).into()),
        Ok(_) => Ok(access(path, Access::WRITE_OK)?),
        Err(_) => {
            let folder = folder(path);
            if !folder.exists() {
                bail!("the folder does not exist; create it with `mkdir -p {}`", folder.display());
            }
            access(&folder, Access::WRITE_OK | Access::EXEC_OK)
                .with_context(|| format!("cannot create a file in {}", folder.display()))
        }
    }
}

/// The folder of a file.
pub(crate) fn folder(path: &Path) -> PathBuf {
    // The parent of a bare file name is the empty path.
    let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty());
    parent.map_or_else(|| PathBuf::from("."), Path::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn outputs_must_be_distinct_and_writable() {
        let folder = tempfile::tempdir().unwrap();
        let [input, link, new] = ["in", "link", "new"].map(|name| folder.path().join(name));
        fs::write(&input, "precious").unwrap();
        fs::hard_link(&input, &link).unwrap();
        let check = |csv: &Path, log: Option<&Path>| {
            let checked = check_outputs(&[("--csv", Some(csv)), ("--log", log)], &[&input]);
            checked.map_err(|error| format!("{error:#}"))
        };
        assert_eq!(check(&new, None), Ok(()));
        assert!(check(&link, None).unwrap_err().contains("--csv would overwrite"));
        let detour = folder.path().join(".").join("new");
        let message = check(&new, Some(&detour)).unwrap_err();
        assert!(message.contains("--csv and --log name the same file"), "{message}");
        assert!(check(Path::new("-"), None).unwrap_err().contains("./-"));
        let nowhere = folder.path().join("no/such");
        let message = check(&nowhere, None).unwrap_err();
        assert!(
            message.contains("cannot write") && message.contains("does not exist"),
            "{message}"
        );
        assert!(check(folder.path(), None).unwrap_err().contains("directory"));
        assert_eq!(check(Path::new("plain-name"), None), Ok(()));
        assert!(!new.exists());
    }

    #[test]
    fn folder_of_a_bare_name_is_the_current_one() {
        assert_eq!(folder(Path::new("a.csv")), Path::new("."));
        assert_eq!(folder(Path::new("/a.csv")), Path::new("/"));
    }
}
