//! No part of a test bed remains after its end or after a kill.

use std::env;
use std::ffi::OsStr;
use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::os::fd::{AsFd, AsRawFd};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{self, Receiver};
use std::thread;
use std::time::Duration;

use wirestamp_lab::{Impairments, Netns, PathLab, check_privilege, down, run, up};

/// Set in a process that a test starts from this program in order to kill it.
const VICTIM: &str = "WIRESTAMP_LAB_TEST_VICTIM";

fn is_root() -> bool {
    let permitted = check_privilege().is_ok();
    if !permitted {
        eprintln!("skipped: needs root");
    }
    permitted
}

fn lab() -> PathLab {
    PathLab::new(&Impairments::bottleneck(10_000_000, 50_000)).unwrap()
}

/// Starts the test `name` of this program as a victim.
fn victim(name: &str) -> Child {
    Command::new(env::current_exe().unwrap())
        .args(["--exact", name, "--nocapture"])
        .env(VICTIM, "1")
        .stdout(Stdio::piped())
        .stdin(Stdio::piped())
        .process_group(0)
        .spawn()
        .unwrap()
}

/// Reads lines until one has `mark`, and returns the text after it.
fn after_mark(lines: &mut impl BufRead, mark: &str) -> String {
    for line in lines.lines() {
        let line = line.unwrap();
        if let Some((_, rest)) = line.split_once(mark) {
            return rest.trim().to_owned();
        }
    }
    panic!("the output ended without {mark:?}");
}

/// Max time for the kernel to remove a namespace.
const TEST_TIMEOUT: Duration = Duration::from_secs(30);

/// An interface whose peer is in the victim's namespace, with an `ip monitor` for it.
struct Watch {
    _own: Netns,
    monitor: Child,
    events: Receiver<String>,
}

impl Watch {
    /// Creates the interface, with its peer in the namespace at `path`.
    fn new(path: &str) -> Self {
        let own = Netns::new().unwrap();
        let ip = |arguments: &str| {
            let status = own.command("ip").args(arguments.split(' ')).status().unwrap();
            assert!(status.success(), "ip {arguments}");
        };
        ip(&format!("link add name probe type veth peer probe netns {path}"));
        let mut monitor =
            own.command("ip").args(["monitor", "link"]).stdout(Stdio::piped()).spawn().unwrap();
        let lines = BufReader::new(monitor.stdout.take().unwrap()).lines();
        let (sender, events) = mpsc::channel();
        thread::spawn(move || lines.map_while(Result::ok).try_for_each(|line| sender.send(line)));
        // The monitor does not report when it is ready: change the link until it prints an event.
        for state in ["up", "down"].into_iter().cycle() {
            ip(&format!("link set dev probe {state}"));
            if events.recv_timeout(Duration::from_millis(50)).is_ok() {
                break;
            }
        }
        Self { _own: own, monitor, events }
    }

    /// Waits until the kernel has removed the peer and the interface.
    fn wait_until_deleted(mut self) {
        while !self.events.recv_timeout(TEST_TIMEOUT).unwrap().contains("Deleted") {}
        self.monitor.kill().unwrap();
        self.monitor.wait().unwrap();
    }
}

#[test]
fn a_killed_process_takes_its_bed_with_it() {
    if !is_root() {
        return;
    }
    if env::var_os(VICTIM).is_some() {
        let lab = lab();
        let fd = lab.sink().as_fd().as_raw_fd();
        println!("\nsink: /proc/{}/fd/{fd}", std::process::id());
        let _ = std::io::stdin().read(&mut [0]);
        return;
    }
    let mut victim = victim("a_killed_process_takes_its_bed_with_it");
    let mut lines = BufReader::new(victim.stdout.take().unwrap());
    let path = after_mark(&mut lines, "sink:");
    let watch = Watch::new(&path);
    victim.kill().unwrap();
    victim.wait().unwrap();
    watch.wait_until_deleted();
}

#[test]
fn killed_run_ends_its_command_and_children() {
    if !is_root() {
        return;
    }
    if env::var_os(VICTIM).is_some() {
        let script = "sleep 1000 & echo && echo started: && wait";
        let _ = run(&lab(), "test", OsStr::new("sh"), &["-c", script]);
        return;
    }
    let mut victim = victim("killed_run_ends_its_command_and_children");
    let mut lines = BufReader::new(victim.stdout.take().unwrap());
    after_mark(&mut lines, "started:");
    victim.kill().unwrap();
    victim.wait().unwrap();
    // The pipe is closed when the last process with its write end has ended.
    let mut rest = String::new();
    lines.read_to_string(&mut rest).unwrap();
}

#[test]
fn command_handles_the_terminals_interrupt() {
    if !is_root() {
        return;
    }
    if env::var_os(VICTIM).is_some() {
        let script = "trap 'exit 7' INT; echo; echo started:; sleep 1000 & wait";
        let status = run(&lab(), "test", OsStr::new("sh"), &["-c", script]).unwrap();
        println!("\nended: {:?}", status.code());
        return;
    }
    let mut victim = victim("command_handles_the_terminals_interrupt");
    let mut lines = BufReader::new(victim.stdout.take().unwrap());
    after_mark(&mut lines, "started:");
    let group = rustix::process::Pid::from_child(&victim);
    rustix::process::kill_process_group(group, rustix::process::Signal::INT).unwrap();
    assert_eq!(after_mark(&mut lines, "ended:"), "Some(7)");
    assert!(victim.wait().unwrap().success());
}

#[test]
fn command_sees_the_names_and_returns_its_status() {
    if !is_root() {
        return;
    }
    let lab = lab();
    let shell = |script: &str| run(&lab, "wstest-run", OsStr::new("sh"), &["-c", script]);
    let sees = "ip netns exec wstest-run-sink ip link show dev tap-b >/dev/null && \
                ip -n wstest-run-router link show dev tap-a >/dev/null && exit 42";
    assert_eq!(shell(sees).unwrap().code(), Some(42));
    assert_eq!(shell("kill -9 $$").unwrap().code(), Some(128 + 9));
    assert!(!Path::new("/run/netns/wstest-run-sink").exists());
    let error = run(&lab, "x", OsStr::new("/nonexistent"), &[""; 0]).unwrap_err();
    assert!(error.to_string().starts_with("cannot run `/nonexistent`"), "{error}");
}

#[test]
fn up_replaces_an_old_bed_and_down_lists_removed_names() {
    if !is_root() {
        return;
    }
    let prefix = format!("wstest-{}", std::process::id());
    let names = ["source", "router", "sink"].map(|role| format!("{prefix}-{role}"));
    let impairments = Impairments::bottleneck(10_000_000, 50_000);
    drop(up(&prefix, &impairments).unwrap());
    // As after a kill during removal: one name is gone, one is a file without a mount.
    for name in &names[1..] {
        assert!(Command::new("ip").args(["netns", "delete", name]).status().unwrap().success());
    }
    fs::write(Path::new("/run/netns").join(&names[2]), "").unwrap();
    drop(up(&prefix, &impairments).unwrap());
    let shown = Netns::open(&names[2]).unwrap().command("ip").args(["-o", "link"]).output();
    assert!(String::from_utf8_lossy(&shown.unwrap().stdout).contains("tap-b"));
    assert_eq!(down(&prefix).unwrap(), names);
    assert_eq!(down(&prefix).unwrap(), [""; 0]);
    assert!(names.iter().all(|name| !Path::new("/run/netns").join(name).exists()));
}

#[test]
fn anonymous_bed_adds_nothing_to_the_machine() {
    if !is_root() {
        return;
    }
    let lab = lab();
    let interfaces = fs::read_dir("/sys/class/net").unwrap();
    let names: Vec<_> = interfaces.map(|entry| entry.unwrap().file_name()).collect();
    for ours in ["out", "tap-a", "tap-b", "bottleneck", "copier", "twin"] {
        assert!(!names.iter().any(|name| name == ours), "{ours} is in the root namespace");
    }
    drop(lab);
}
