//! The studies, run in their quick form.

mod active_delay;
mod all;
#[expect(dead_code, reason = "not every test file needs all of it")]
#[path = "../common/mod.rs"]
mod common;
mod interarrival;
mod limit_rate;
mod loss;
mod overhead;
mod passive_delay;
mod reception;
mod step;
mod timers;
mod timestamp_jitter;

use std::env;
use std::path::{Path, PathBuf};

use common::{json, run};
use tempfile::TempDir;

/// Where a study keeps what it measures.
enum Folder {
    /// Where `tools/study-quick` has left all of them: nothing is measured twice.
    Left(PathBuf),
    /// Nothing is there yet.
    New { path: PathBuf, _within: TempDir },
}

impl Folder {
    fn of_quick_runs() -> Self {
        if let Some(folder) = env::var_os("WIRESTAMP_STUDIES") {
            return Self::Left(folder.into());
        }
        let within = tempfile::tempdir().unwrap();
        Self::New { path: within.path().join("new"), _within: within }
    }

    fn path(&self) -> &Path {
        match self {
            Self::Left(path) | Self::New { path, .. } => path,
        }
    }
}

#[test]
fn every_study_is_listed_with_its_paper() {
    let list = json(&["study", "list", "--json"]);
    let studies = list["studies"].as_array().unwrap();
    let names: Vec<_> = studies.iter().map(|study| &study["name"]).collect();
    assert_eq!(names[..2], ["timers", "overhead"]);
    for study in studies {
        assert!(["about", "paper"].iter().all(|key| study[key].as_str() > Some("")), "{study}");
    }
    let text = String::from_utf8(run(&["study", "list"]).stdout).unwrap();
    assert!(text.contains("overhead") && text.contains("Orosz"), "{text}");
}
