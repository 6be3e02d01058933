//! Clock sources: unmodified chronyd and ptp4l that follow a clock of the test and steer no clock.

use std::os::unix::net::UnixDatagram;
use std::path::Path;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant, SystemTime};
use std::{fs, thread};

use crate::common::{is_root, stderr};
use serde_json::Value;
use wirestamp_clock::{ClockSource, ClockSources, SyncStatus};
use wirestamp_lab::Netns;

/// Deadline for the expected sync status.
const STATUS_TIMEOUT: Duration = Duration::from_secs(60);

/// chronyd in a namespace of its own.
struct Chronyd {
    namespace: Netns,
    process: Child,
}

impl Chronyd {
    /// `-x`: it steers no clock.
    fn start(folder: &Path, configuration: &str) -> Self {
        let file = folder.join("chrony.conf");
        let own = format!(
            "port 0\nbindcmdaddress /\nbindcmdaddress 127.0.0.1\npidfile {}\n{configuration}\n",
            folder.join("pid").display()
        );
        fs::write(&file, own).unwrap();
        let namespace = Netns::new().unwrap();
        let up = namespace.command("ip").args(["link", "set", "lo", "up"]).status().unwrap();
        assert!(up.success());
        let mut command = namespace.command("chronyd");
        command.args(["-x", "-d", "-u", "root", "-f"]).arg(file);
        let process = command.stdin(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        Self { namespace, process }
    }

    /// Queries until a status matches; calls `before` ahead of each query.
    fn wait_for_status(
        &self,
        mut before: impl FnMut(),
        is_expected: impl Fn(&SyncStatus) -> bool,
    ) -> SyncStatus {
        let end = Instant::now() + STATUS_TIMEOUT;
        loop {
            before();
            let statuses = self.namespace.run(|| ClockSources::query().statuses()).unwrap();
            let status = statuses.into_iter().find(|it| it.clock_source == ClockSource::Chrony);
            match status {
                Some(status) if is_expected(&status) => return status,
                status => assert!(Instant::now() < end, "{status:?}"),
            }
            thread::sleep(Duration::from_millis(50));
        }
    }
}

impl Drop for Chronyd {
    fn drop(&mut self) {
        drop(self.process.kill());
        drop(self.process.wait());
    }
}

/// A sample for chronyd's `SOCK` reference clock; the clock is `behind` seconds behind.
fn sample(behind: f64) -> Vec<u8> {
    let now = SystemTime::UNIX_EPOCH.elapsed().unwrap();
    let mut sample = now.as_secs().to_ne_bytes().to_vec();
    sample.extend(u64::from(now.subsec_micros()).to_ne_bytes());
    sample.extend(behind.to_ne_bytes());
    // No pulse, no leap second, padding, and the magic number of a sample.
    sample.extend([0, 0, 0, 0x534f_434b_i32].map(i32::to_ne_bytes).concat());
    sample
}

fn clock(namespace: &Netns) -> Value {
    let mut command = namespace.command(env!("CARGO_BIN_EXE_wirestamp"));
    let output = command.args(["clock", "--json", "--duration", "0.1"]).output().unwrap();
    assert!(output.status.success(), "{}", stderr(&output));
    serde_json::from_slice(&output.stdout).unwrap()
}

#[test]
fn chronyd_reports_its_reference_and_error() {
    if !is_root() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let socket = folder.path().join("gps");
    let gps = format!("refclock SOCK {} refid GPS poll 0 dpoll -3 filter 4", socket.display());
    let chronyd = Chronyd::start(folder.path(), &gps);
    let nothing = chronyd.wait_for_status(|| (), |_| true);
    assert_eq!((nothing.error, nothing.reference.as_deref()), (None, Some("nothing")));
    let receiver = UnixDatagram::unbound().unwrap();
    // chronyd may drop a sample; the next one arrives soon.
    let feed = || drop(receiver.send_to(&sample(0.25), &socket));
    let status = chronyd.wait_for_status(feed, |it| it.error.is_some());
    assert_eq!((status.reference.as_deref(), status.stratum), (Some("GPS"), Some(1)));
    let behind = -status.offset.as_nanos();
    assert!((200_000_000..300_000_000).contains(&behind), "{status:?}");
    assert!(status.error.unwrap() >= status.offset.abs(), "{status:?}");
    let document = clock(&chronyd.namespace);
    let statuses = document["keepers"].as_array().unwrap();
    assert_eq!((&statuses[0]["by"], &statuses[1]["by"]), (&"kernel".into(), &"chrony".into()));
    assert_eq!((&statuses[1]["source"], &statuses[1]["stratum"]), (&"GPS".into(), &1.into()));
    // No program may have set the kernel's values.
    let known = document["utc_error_ns"].as_i64();
    assert_eq!(known.is_some(), statuses[0]["error_ns"].is_i64());
    assert!(known.is_none_or(|known| known > 200_000_000), "{document}");
}

#[test]
fn chronyd_with_local_reference_has_no_utc_error() {
    if !is_root() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let chronyd = Chronyd::start(folder.path(), "local stratum 5");
    let status = chronyd.wait_for_status(|| (), |it| it.reference.as_deref() == Some("itself"));
    assert_eq!((status.stratum, status.error), (Some(5), None));
    assert_eq!(clock(&chronyd.namespace)["utc_error_ns"], Value::Null);
}

/// Starts two ptp4l processes at the ends of a veth pair. Neither steers a clock. They have their own `/run` and
/// end with the first process of their namespace.
const PTP: &str = r#"
mount -t tmpfs none /run
ip link add grand type veth peer name slave
ip link set grand up
ip link set slave up
quietly() { "$@" >/dev/null 2>&1 & }
settings="-S -2 --free_running=1 --logSyncInterval=-3 --logMinDelayReqInterval=-3 --logAnnounceInterval=-2"
quietly ptp4l $settings -i grand --uds_address=/run/grand --priority1=1
grand=$!
quietly ptp4l $settings -i slave -s
slave=$!
for _ in $(seq 100); do
	status=$("$0" clock --json --duration 0.1) || exit 1
	case $status in *'"ptp4l"'*) echo "$status"; exit 0;; esac
	kill -0 $grand && kill -0 $slave || exit 1
done
exit 1
"#;

#[test]
fn ptp4l_reports_its_grandmaster_and_error() {
    if !is_root() {
        return;
    }
    let namespace = Netns::new().unwrap();
    let mut command = namespace.command("unshare");
    command.args(["--mount", "--pid", "--fork", "--kill-child", "sh", "-c", PTP]);
    command.arg(env!("CARGO_BIN_EXE_wirestamp"));
    let output = command.stdin(Stdio::null()).output().unwrap();
    assert!(output.status.success(), "{}", stderr(&output));
    let document: Value = serde_json::from_slice(&output.stdout).unwrap();
    let statuses = document["keepers"].as_array().unwrap();
    let status = statuses.iter().find(|it| it["by"] == "ptp4l").unwrap();
    // Both run on one clock: the error is the delay between two programs of one machine.
    let error = status["error_ns"].as_i64().unwrap();
    assert!(
        error >= status["ahead_ns"].as_i64().unwrap().abs() && error < 1_000_000_000,
        "{status}"
    );
    let source = status["source"].as_str().unwrap();
    assert!(source.len() == 18 && source.contains(".fffe."), "{status}");
}
