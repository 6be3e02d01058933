//! All of them in one command.

use std::fs;
use std::path::Path;
use std::process::Stdio;
use std::thread;
use std::time::{Duration, Instant};

use crate::common::{run, stderr, tool, wirestamp};
use crate::schema;

fn has_runs(folder: &Path) -> bool {
    let entries = fs::read_dir(folder).into_iter().flatten();
    entries.flatten().any(|entry| entry.path().extension().is_some_and(|it| it == "csv"))
}

#[test]
fn failed_study_does_not_stop_the_others() {
    let folder = tempfile::tempdir().unwrap();
    let site = folder.path().join("site");
    fs::create_dir_all(site.join("timers")).unwrap();
    fs::write(site.join("timers/design.json"), "{}").unwrap();
    let all = ["study", "all", "--quick", "--json", "-o", site.to_str().unwrap()];
    let child = wirestamp(&all).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let begun = Instant::now();
    while !has_runs(&site.join("overhead")) {
        assert!(begun.elapsed() < Duration::from_secs(120), "no run is done");
        thread::sleep(Duration::from_millis(1));
    }
    tool("kill", &["-INT", &child.id().to_string()]);
    let output = child.wait_with_output().unwrap();
    let message = stderr(&output);
    assert_eq!(output.status.code(), Some(1), "{message}");
    assert!(message.starts_with("wirestamp: study timers cannot be run: "), "{message}");
    assert!(message.contains("run the same command again"), "{message}");

    let outcomes = schema::document("study-all", &output.stdout);
    let [timers, overhead] = outcomes.as_array().unwrap().clone().try_into().unwrap();
    assert_eq!((&timers["study"], &overhead["study"]), (&"timers".into(), &"overhead".into()));
    assert!(timers["error"].as_str().unwrap().contains("not a record of a study"), "{timers}");
    assert_eq!(overhead["interrupted"], true);
    let index = fs::read_to_string(site.join("index.html")).unwrap();
    assert!(index.contains("<a href=\"overhead.html\">Cost of timestamping a packet</a>"));
    assert!(index.contains("Cannot be run: "), "{index}");
    assert!(site.join("overhead.html").exists());
}

#[test]
fn invalid_folder_fails_before_measuring() {
    let file = tempfile::NamedTempFile::new().unwrap();
    let output = run(&["study", "all", "--quick", "-o", file.path().to_str().unwrap()]);
    let message = stderr(&output);
    assert_eq!((output.status.code(), message.lines().count()), (Some(1), 1), "{message}");
    assert!(message.starts_with("wirestamp: cannot make the folder "), "{message}");
}
