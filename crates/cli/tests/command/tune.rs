//! `capture --tune` on veth pairs in the tests' own namespaces.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use crate::common::{Leftovers, is_root, json, run, stderr, tool};
use crate::schema;
use serde_json::Value;
use wirestamp_lab::Netns;

/// Commands for a veth pair with NAPI, which veth has with GRO.
fn making(interface: &str) -> [String; 4] {
    [
        format!("ip link add {interface} type veth peer name peer"),
        format!("ethtool -K {interface} gro on"),
        format!("ip link set {interface} up"),
        "ip link set peer up".to_owned(),
    ]
}

/// A veth pair in its own namespace, which is removed on drop.
struct Pair {
    namespace: Netns,
    interface: String,
}

impl Pair {
    /// `interface` must be a unique name, because threads of other namespaces are also listed.
    fn new(interface: &str) -> Self {
        let pair = Self { namespace: Netns::new().unwrap(), interface: interface.to_owned() };
        making(interface).iter().for_each(|command| drop(pair.shell(command)));
        pair
    }

    fn shell(&self, script: &str) -> String {
        let mut command = self.namespace.command("unshare");
        let script = format!("mount -t sysfs sysfs /sys && {script}");
        let output = command.args(["-m", "sh", "-c", &script]).output().unwrap();
        assert!(output.status.success(), "{script}: {}", stderr(&output));
        String::from_utf8(output.stdout).unwrap().trim().to_owned()
    }

    /// Whether NAPI is threaded, how many receive queues are steered, and whether GRO is on.
    fn state(&self) -> String {
        let interface = &self.interface;
        self.shell(&format!(
            "cd /sys/class/net/{interface} && cat threaded queues/rx-0/rps_cpus && \
             ethtool -k {interface} | grep ^generic-receive"
        ))
    }

    /// A capture inside the namespace, while `/sys` still shows the machine's interfaces.
    fn capture(&self, arguments: &[&str]) -> Command {
        let mut command = self.namespace.command(env!("CARGO_BIN_EXE_wirestamp"));
        command.args(["capture", "-i", &self.interface, "--json"]).args(arguments);
        command.stdin(Stdio::null());
        command
    }

    fn json(&self, arguments: &[&str]) -> Value {
        let output = self.capture(arguments).output().unwrap();
        assert!(output.status.success(), "{arguments:?}: {}", stderr(&output));
        let name = schema::of_command(&[&["capture"], arguments].concat());
        schema::document(&name.unwrap(), &output.stdout)
    }

    /// Starts a capture that tunes, and waits until it captures.
    fn tuned(&self) -> Child {
        let mut command = self.capture(&["--method", "xdp-pass", "--realtime", "--tune=apply"]);
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let message = BufReader::new(child.stderr.as_mut().unwrap());
        let mut lines = message.lines().map_while(Result::ok);
        assert!(lines.any(|line| line.contains("Ctrl-C")), "it does not capture");
        child
    }

    /// The interface's NAPI threads: the cores they may run on, and their real-time priority.
    fn threads(&self) -> Vec<(String, String)> {
        let prefix = format!("napi/{}-", self.interface);
        let processes = fs::read_dir("/proc").unwrap().flatten().map(|entry| entry.path());
        let thread = |path: &Path| {
            fs::read_to_string(path.join("comm")).ok().filter(|name| name.starts_with(&prefix))?;
            let status = fs::read_to_string(path.join("status")).ok()?;
            let cores = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:"));
            // The fields after the name; the real-time priority is the 40th of all (proc(5)).
            let stat = fs::read_to_string(path.join("stat")).ok()?;
            let priority = stat.rsplit(')').next()?.split_whitespace().nth(40 - 3);
            Some((cores?.trim().to_owned(), priority?.to_owned()))
        };
        processes.filter_map(|path| thread(&path)).collect()
    }

    fn assert_is_tuned(&self) {
        assert!(self.state().starts_with("1\n"), "{}", self.state());
        let threads = self.threads();
        assert_eq!(threads.len(), 1, "{threads:?}");
        let (cores, priority) = &threads[0];
        assert!(cores.parse::<usize>().is_ok(), "on {cores} rather than one core");
        assert_eq!(priority, "41");
    }
}

/// The output of a capture after SIGINT.
fn end(child: Child) -> Value {
    tool("kill", &["-INT", &child.id().to_string()]);
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "{}", stderr(&output));
    serde_json::from_slice(&output.stdout).unwrap()
}

fn kill(mut child: Child) {
    child.kill().unwrap();
    child.wait().unwrap();
}

fn change<'a>(report: &'a Value, place: &str) -> &'a Value {
    let changed = report["changed"].as_array().unwrap();
    let found = changed.iter().find(|change| change["place"].as_str().unwrap().contains(place));
    found.unwrap_or_else(|| panic!("no {place} in {report:#}"))
}

#[test]
fn napi_is_tuned_only_during_the_capture() {
    if !is_root() {
        return;
    }
    let pair = Pair::new("wstunea");
    let before = pair.state();
    assert!(before.starts_with("0\n"), "{before}");
    let capture = pair.tuned();
    pair.assert_is_tuned();

    // A second capture must not store the first's values as the original ones.
    let second = pair.capture(&["--tune=apply"]).output().unwrap();
    assert_eq!(second.status.code(), Some(1), "{}", stderr(&second));
    assert!(stderr(&second).contains("another capture has tuned"), "{}", stderr(&second));
    let second = pair.capture(&["--tune=restore"]).output().unwrap();
    assert_eq!(second.status.code(), Some(1), "{}", stderr(&second));
    pair.assert_is_tuned();

    let summary = end(capture);
    let threaded = change(&summary["tuned"], "/threaded");
    assert_eq!((&threaded["before"], &threaded["during"]), (&"0".into(), &"1".into()));
    assert_eq!(threaded["restored"], true);
    assert_eq!(change(&summary["tuned"], "cpu_dma_latency")["restored"], true);
    assert_eq!(pair.state(), before);
    assert_eq!(pair.threads(), []);
    assert_eq!(pair.json(&["--tune=restore"])["changed"], Value::Array(Vec::new()));
}

#[test]
fn killed_captures_settings_are_restored_later() {
    if !is_root() {
        return;
    }
    let pair = Pair::new("wstuneb");
    let before = pair.state();
    kill(pair.tuned());
    pair.assert_is_tuned();
    let report = pair.json(&["--tune=restore"]);
    assert_eq!(change(&report, "/threaded")["before"], "0");
    assert_eq!(pair.state(), before);

    kill(pair.tuned());
    let next = pair.tuned();
    pair.assert_is_tuned();
    assert_eq!(change(&end(next)["tuned"], "/threaded")["before"], "0");
    assert_eq!(pair.state(), before);
    assert_eq!(pair.threads(), []);
}

#[test]
fn failed_capture_restores_gro() {
    if !is_root() {
        return;
    }
    let pair = Pair::new("wstunec");
    let before = pair.state();
    assert!(before.ends_with("generic-receive-offload: on"), "{before}");
    let summary = pair.json(&["--tune=apply", "--stamp", "raw", "--duration", "0.01"]);
    assert_eq!(change(&summary["tuned"], "gro")["during"], "off");
    assert_eq!(pair.state(), before);
    let failed = pair.capture(&["--tune=apply", "-w", "/proc/nowhere"]).output().unwrap();
    assert_eq!(failed.status.code(), Some(1));
    assert_eq!(pair.state(), before);
}

#[test]
fn show_lists_settings_without_changes() {
    if !is_root() {
        return;
    }
    let pair = Pair::new("wstuned");
    let before = pair.state();
    let settings = pair.json(&["--tune"]);
    let row = |place: &str| {
        let mut rows = settings.as_array().unwrap().iter();
        rows.find(|row| row["place"] == *place).unwrap_or_else(|| panic!("{settings:#}"))
    };
    let gro = row("ethtool -K gro");
    assert_eq!((&gro["now"], &gro["wanted"]), (&"on".into(), &"off".into()));
    assert_eq!(gro["changes"], true);
    assert!(row("ethtool -C rx-usecs")["obstacle"].as_str().unwrap().contains("no interrupt"));
    let threaded = row("/sys/class/net/wstuned/threaded");
    assert!(threaded["obstacle"].as_str().unwrap().contains("veth"), "{threaded}");
    assert_eq!(pair.state(), before);
}

#[test]
fn untunable_interface_is_rejected_with_a_next_step() {
    let cases: [(&[&str], i32, &str); 4] = [
        (&["-i", "lo", "--tune=maybe"], 2, "show, apply, restore"),
        (&["--tune"], 2, "--interface"),
        (&["-i", "no-such-if", "--tune"], 1, "ip link"),
        (&["-i", "lo", "--tune", "--cores", "8000,-,-"], 2, "core 8000"),
    ];
    for (arguments, code, hint) in cases {
        let output = run(&[&["capture"], arguments].concat());
        assert_eq!(output.status.code(), Some(code), "{arguments:?}: {}", stderr(&output));
        assert!(stderr(&output).contains(hint), "{arguments:?}: {}", stderr(&output));
    }
}

/// A named namespace, removed on drop.
struct Named(String);

impl Named {
    fn new() -> Self {
        let name = format!("wstune-{}", std::process::id());
        tool("ip", &["netns", "add", &name]);
        Self(name)
    }

    fn shell(&self, script: &str) -> String {
        tool("ip", &["netns", "exec", &self.0, "sh", "-c", script])
    }
}

impl Drop for Named {
    fn drop(&mut self) {
        tool("ip", &["netns", "del", &self.0]);
    }
}

#[test]
fn interface_in_another_namespace_is_tuned() {
    if !is_root() {
        return;
    }
    let before = Leftovers::now();
    let named = Named::new();
    making("wstunee").iter().for_each(|command| drop(named.shell(command)));
    let target = format!("wstunee@{}", named.0);
    let shown = run(&["capture", "-i", &target, "--tune"]);
    let shown = String::from_utf8(shown.stdout).unwrap();
    assert!(shown.contains("(/sys/class/net/wstunee/napi_defer_hard_irqs): 0\n"), "{shown}");

    named.shell("echo 2 > /sys/class/net/wstunee/napi_defer_hard_irqs");
    let tuning = ["capture", "-i", &target, "--tune=apply", "--duration", "0.01", "--json"];
    let summary = json(&tuning);
    let deferral = change(&summary["tuned"], "napi_defer_hard_irqs");
    assert_eq!((&deferral["before"], &deferral["during"]), (&"2".into(), &"0".into()));
    assert_eq!(deferral["restored"], true);
    assert_eq!(named.shell("cat /sys/class/net/wstunee/napi_defer_hard_irqs"), "2\n");
    drop(named);
    assert_eq!(Leftovers::now(), before);
}
