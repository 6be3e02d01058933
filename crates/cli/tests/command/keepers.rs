//! Who keeps the clock: chronyd and ptp4l as they are, which follow a clock of the test and steer none.

use std::os::unix::net::UnixDatagram;
use std::path::Path;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant, SystemTime};
use std::{fs, thread};

use crate::common::{is_root, stderr};
use serde_json::Value;
use wirestamp_clock::{Keeper, Keepers, Statement};
use wirestamp_lab::Netns;

/// Until then everything has come that is waited for.
const PATIENCE: Duration = Duration::from_secs(60);

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

    /// What it says, as soon as that is wanted; does something before it is asked again.
    fn says(&self, mut before: impl FnMut(), is_wanted: impl Fn(&Statement) -> bool) -> Statement {
        let end = Instant::now() + PATIENCE;
        loop {
            before();
            let statements = self.namespace.run(|| Keepers::ask().statements()).unwrap();
            let said = statements.into_iter().find(|it| it.by == Keeper::Chrony);
            match said {
                Some(said) if is_wanted(&said) => return said,
                said => assert!(Instant::now() < end, "{said:?}"),
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

/// A sample for chronyd's reference clock of the kind `SOCK`: the clock is this far behind.
fn sample(behind: f64) -> Vec<u8> {
    let now = SystemTime::UNIX_EPOCH.elapsed().unwrap();
    let mut sample = now.as_secs().to_ne_bytes().to_vec();
    sample.extend(u64::from(now.subsec_micros()).to_ne_bytes());
    sample.extend(behind.to_ne_bytes());
    // No pulse, no leap second, nothing, and the mark of a sample.
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
fn chronyd_says_what_it_follows_and_how_well() {
    if !is_root() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let socket = folder.path().join("gps");
    let gps = format!("refclock SOCK {} refid GPS poll 0 dpoll -3 filter 4", socket.display());
    let chronyd = Chronyd::start(folder.path(), &gps);
    let nothing = chronyd.says(|| (), |_| true);
    assert_eq!((nothing.error, nothing.source.as_deref()), (None, Some("nothing")));
    let receiver = UnixDatagram::unbound().unwrap();
    // Where it takes none, the next one is taken.
    let feed = || drop(receiver.send_to(&sample(0.25), &socket));
    let said = chronyd.says(feed, |it| it.error.is_some());
    assert_eq!((said.source.as_deref(), said.stratum), (Some("GPS"), Some(1)));
    let behind = -said.ahead.as_nanos();
    assert!((200_000_000..300_000_000).contains(&behind), "{said:?}");
    assert!(said.error.unwrap() >= said.ahead.abs(), "{said:?}");
    let document = clock(&chronyd.namespace);
    let keepers = document["keepers"].as_array().unwrap();
    assert_eq!((&keepers[0]["by"], &keepers[1]["by"]), (&"kernel".into(), &"chrony".into()));
    assert_eq!((&keepers[1]["source"], &keepers[1]["stratum"]), (&"GPS".into(), &1.into()));
    // The kernel may not have been told of anything.
    let known = document["utc_error_ns"].as_i64();
    assert_eq!(known.is_some(), keepers[0]["error_ns"].is_i64());
    assert!(known.is_none_or(|known| known > 200_000_000), "{document}");
}

#[test]
fn chronyd_that_follows_the_machines_own_clock_knows_nothing_of_utc() {
    if !is_root() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let chronyd = Chronyd::start(folder.path(), "local stratum 5");
    let said = chronyd.says(|| (), |it| it.source.as_deref() == Some("itself"));
    assert_eq!((said.stratum, said.error), (Some(5), None));
    assert_eq!(clock(&chronyd.namespace)["utc_error_ns"], Value::Null);
}

/// Two ptp4l at the ends of a cable, neither of which steers a clock. They have a `/run` of their own, and end
/// with the first process of their namespace.
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
	said=$("$0" clock --json --duration 0.1) || exit 1
	case $said in *'"ptp4l"'*) echo "$said"; exit 0;; esac
	kill -0 $grand && kill -0 $slave || exit 1
done
exit 1
"#;

#[test]
fn ptp4l_says_what_it_follows_and_how_well() {
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
    let keepers = document["keepers"].as_array().unwrap();
    let said = keepers.iter().find(|it| it["by"] == "ptp4l").unwrap();
    // One clock, and the delay between two programs of one machine.
    let error = said["error_ns"].as_i64().unwrap();
    assert!(error >= said["ahead_ns"].as_i64().unwrap().abs() && error < 1_000_000_000, "{said}");
    let source = said["source"].as_str().unwrap();
    assert!(source.len() == 18 && source.contains(".fffe."), "{said}");
}
