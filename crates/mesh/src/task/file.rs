//! Task files (TOML).

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use serde::Deserialize;
use thiserror::Error;

use super::Task;
use crate::Name;

/// Why a task file cannot be used.
#[derive(Debug, Error)]
pub enum WrongFile {
    /// The file cannot be read.
    #[error("cannot read {}: {cause}", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// Cause.
        cause: io::Error,
    },
    /// The contents are not valid.
    #[error("{}: {why}", path.display())]
    Senseless {
        /// The file.
        path: PathBuf,
        /// Line and reason.
        why: String,
    },
    /// Two tasks have the same name.
    #[error("{}: two tasks have the name {name}; rename one", path.display())]
    Twice {
        /// The file.
        path: PathBuf,
        /// The name.
        name: Name,
    },
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Tasks {
    #[serde(default)]
    task: Vec<Task>,
}

/// Reads the tasks of a file: tables `[[task]]`.
///
/// # Errors
/// When the file cannot be read or is not valid.
pub fn read_file(path: &Path) -> Result<Vec<Task>, WrongFile> {
    let text = fs::read_to_string(path);
    let text = text.map_err(|cause| WrongFile::Unreadable { path: path.to_owned(), cause })?;
    let Tasks { task: tasks } = toml::from_str(&text).map_err(|error| WrongFile::Senseless {
        path: path.to_owned(),
        why: located(&text, &error),
    })?;
    for task in &tasks {
        task.check_filter().map_err(|wrong| WrongFile::Senseless {
            path: path.to_owned(),
            why: wrong.to_string(),
        })?;
    }
    let mut names = BTreeSet::new();
    match tasks.iter().find(|task| !names.insert(&task.name)) {
        Some(task) => Err(WrongFile::Twice { path: path.to_owned(), name: task.name.clone() }),
        None => Ok(tasks),
    }
}

/// The error in one line, with its line number.
fn located(text: &str, error: &toml::de::Error) -> String {
    let begin = error.span().map_or(0, |span| span.start);
    let line = text.bytes().take(begin).filter(|it| *it == b'\n').count() + 1;
    format!("line {line}: {}", error.message().lines().collect::<Vec<_>>().join(" "))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Vec<Task>, String> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("tasks.toml");
        fs::write(&path, text).unwrap();
        read_file(&path).map_err(|error| error.to_string())
    }

    const BACKBONE: &str = r#"
        [[task]]
        name = "backbone"
        measure = "passive-delay"
        from = "roof/eth0"
        to = "cellar/eth1"
        filter = "udp portrange 5004-5099"
        share = 0.1
        schedule = { every = "1h", for = "10m", until = "2027-01-01T00:00:00Z" }
    "#;

    #[test]
    fn tasks_are_tables() {
        let [task] = &read(BACKBONE).unwrap()[..] else { panic!("one task") };
        assert_eq!(task.name.as_ref(), "backbone");
        let written = serde_json::to_value(task).unwrap();
        assert_eq!((&written["share"], &written["schedule"]["for"]), (&0.1.into(), &"10m".into()));
        assert_eq!(read("").unwrap(), []);
    }

    #[test]
    fn errors_name_their_line() {
        let error = read(&BACKBONE.replace("0.1", "7")).unwrap_err();
        assert!(error.contains("tasks.toml: line "), "{error}");
        assert!(error.contains("task backbone: `share` must be above 0"), "{error}");
        let error = read(&BACKBONE.replace("share", "sahre")).unwrap_err();
        assert!(error.contains("unknown field `sahre`"), "{error}");
        assert!(read("[[tasks]]").unwrap_err().contains("unknown field `tasks`"));
        assert!(read("x").unwrap_err().contains("line 1: "));
        let twice = read(&[BACKBONE, BACKBONE].concat()).unwrap_err();
        assert!(twice.ends_with("two tasks have the name backbone; rename one"), "{twice}");
        let error = read_file(Path::new("/nowhere")).unwrap_err().to_string();
        assert!(error.starts_with("cannot read /nowhere: "), "{error}");
    }
}
