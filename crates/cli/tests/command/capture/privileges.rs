//! The change to an unprivileged user (`-Z`).

use std::fs;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, chown};
use std::path::Path;

use crate::capture::{Traffic, folder, read, summary};
use crate::common::{Leftovers, is_root, run, stderr};

/// Number of the user `daemon` and of its group.
const DAEMON: u32 = 1;

#[test]
fn capture_continues_without_privileges() {
    if !is_root() {
        return;
    }
    let before = Leftovers::now();
    let (_folder, path) = folder();
    let mut traffic = Traffic::new();
    let file = path("x.pcapng");
    for stamp in ["kernel", "raw"] {
        let options = ["-Z", "daemon", "-w", &file, "--stamp", stamp, "-c", "50", "--json"];
        let capture = traffic.capture(&options);
        for thread in fs::read_dir(format!("/proc/{}/task", capture.id())).unwrap() {
            let status = fs::read_to_string(thread.unwrap().path().join("status")).unwrap();
            let line = |begin: &str| {
                let line = status.lines().find_map(|line| line.strip_prefix(begin));
                line.unwrap().split_whitespace().map(str::to_owned).collect::<Vec<_>>()
            };
            assert_eq!(line("Uid:"), ["1"; 4], "{stamp}: {status}");
            assert_eq!(line("Gid:"), ["1"; 4], "{stamp}: {status}");
            assert!(!line("Groups:").contains(&"0".to_owned()), "{stamp}: {status}");
            assert_eq!(line("CapEff:"), ["0000000000000000"], "{stamp}: {status}");
            assert_eq!(line("CapPrm:"), ["0000000000000000"], "{stamp}: {status}");
        }
        traffic.send(50);
        assert_eq!(summary(capture)["ledger"]["delivered"], 50, "{stamp}");
        assert_eq!(read(Path::new(&file)).times.len(), 50, "{stamp}");
        assert_eq!(fs::metadata(&file).unwrap().uid(), DAEMON, "{stamp}");
    }
    assert_eq!(Leftovers::now(), before);
}

#[test]
fn further_files_are_created_by_the_user() {
    if !is_root() {
        return;
    }
    let (folder, path) = folder();
    let mut traffic = Traffic::new();
    let file = path("x");
    let options = ["capture", "-i", "lo", "-Z", "daemon", "-w", &file, "-C", "1", "-W", "2"];
    let output = run(&options);
    let message = stderr(&output);
    assert_eq!(output.status.code(), Some(1), "{message}");
    assert!(message.contains("-Z: the user daemon cannot create the further files"), "{message}");
    assert!(message.contains("choose another folder"), "{message}");

    chown(folder.path(), Some(DAEMON), Some(DAEMON)).unwrap();
    let capture = traffic.capture(&[&options[3..], &["-c", "3500", "--json"]].concat());
    traffic.send(3500);
    assert_eq!(summary(capture)["packets"], 3500);
    // The second file is begun after about 900 packets. Later the first one is overwritten, which root has created.
    for name in ["x0", "x1"] {
        let found = read(Path::new(&path(name)));
        found.end.unwrap();
        assert!(!found.numbers.is_empty() && !found.numbers.contains(&0), "{name}");
        assert_eq!(fs::metadata(path(name)).unwrap().uid(), DAEMON, "{name}");
    }
}

#[test]
fn file_behind_a_link_keeps_its_owner() {
    if !is_root() {
        return;
    }
    let (_folder, path) = folder();
    let mut traffic = Traffic::new();
    let [target, link] = ["target", "link"].map(&path);
    fs::write(&target, "").unwrap();
    std::os::unix::fs::symlink(&target, &link).unwrap();
    let capture = traffic.capture(&["-Z", "daemon", "-w", &link, "-c", "1", "--json"]);
    traffic.send(1);
    summary(capture);
    assert_eq!(fs::metadata(&target).unwrap().uid(), 0);
    assert_eq!(read(Path::new(&target)).times.len(), 1);
}

#[test]
fn file_is_read_without_privileges() {
    if !is_root() {
        return;
    }
    let (_folder, path) = folder();
    let mut traffic = Traffic::new();
    let file = path("x.pcapng");
    let capture = traffic.capture(&["-w", &file, "-c", "2", "--json"]);
    traffic.send(2);
    summary(capture);
    fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).unwrap();
    let output = run(&["capture", "-r", &file, "-Z", "daemon"]);
    assert!(output.status.success(), "{}", stderr(&output));
    assert_eq!(String::from_utf8(output.stdout).unwrap().lines().count(), 2);
}

#[test]
fn impossible_changes_are_refused() {
    let output = run(&["capture", "-i", "lo", "-Z", "no-such-user"]);
    let message = stderr(&output);
    assert_eq!(output.status.code(), Some(2), "{message}");
    assert!(
        message.contains("no such user") && message.contains("--relinquish-privileges"),
        "{message}"
    );
    let refused: [&[&str]; 5] = [
        &["--method", "xdp-pass"],
        &["--stamp", "hardware"],
        &["--realtime"],
        &["--tune=apply"],
        &["--events", "events.csv"],
    ];
    for arguments in refused.iter().filter(|_| is_root()) {
        let output = run(&[&["capture", "-i", "lo", "-Z", "daemon"], *arguments].concat());
        let message = stderr(&output);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {message}");
        assert!(message.contains("-Z: --"), "{arguments:?}: {message}");
        assert!(message.contains("needs privileges until the end"), "{arguments:?}: {message}");
    }
}
