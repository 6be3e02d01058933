//! The demo: correct results, files that all tools read alike, nothing left behind.

use std::process::{Command, Stdio};

use serde_json::Value;

use crate::common::{Leftovers, is_root, json, run, stderr, tool, wirestamp};

#[test]
fn demo_results_agree_with_known_values() {
    if !is_root() {
        return;
    }
    let before = Leftovers::now();
    for version in [&[][..], &["--ipv6"]] {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path().to_str().unwrap();
        let arguments =
            [&["demo", "--duration", "5", "-o", folder, "--json"][..], version].concat();
        let found = json(&arguments);
        let checks = found["checks"].as_array().unwrap();
        let names: Vec<_> = checks.iter().map(|check| check["what"].as_str().unwrap()).collect();
        assert!(names.contains(&"Mean one-way delay"), "no reference measurement: {names:?}");
        assert!(names.contains(&"Max delay"), "the queue was never full: {names:?}");
        for check in checks {
            assert_eq!(check["holds"], true, "{version:?}: {check:#}");
        }
        for (stream, packets) in [(0, 250), (1, 3653), (2, 300)] {
            assert_eq!(found["streams"][stream]["sent"], packets);
        }
        let video = &found["streams"][1];
        assert!(video["reordered"].as_u64() > Some(0), "nothing overtook: {video:#}");
        assert!(video["duplicated"].as_u64() > Some(0), "nothing was copied: {video:#}");
        let burst = &found["streams"][2];
        assert!(burst["lost"].as_u64() > Some(0), "nothing was lost: {burst:#}");
        assert!(burst["clock_error_ns"].as_i64() > Some(0));
        assert_tools_agree(folder, &found);
        assert_media_are_recognised(folder);
    }
    assert_eq!(Leftovers::now(), before);
}

/// tcpdump and tshark find the same packets at the same nanoseconds, `delay` the same quality.
fn assert_tools_agree(folder: &str, found: &Value) {
    let [a, b] = ["a", "b"].map(|tap| format!("{folder}/tap-{tap}.pcapng"));
    for (tap, file) in [&a, &b].into_iter().enumerate() {
        let tshark = tool("tshark", &["-r", file, "-T", "fields", "-e", "frame.time_epoch"]);
        let tcpdump = tool("tcpdump", &["-r", file, "-n", "-tt", "--nano", "-q"]);
        let tcpdump: Vec<_> = tcpdump.lines().map(|line| line.split_once(' ').unwrap().0).collect();
        assert_eq!(tshark.lines().collect::<Vec<_>>(), tcpdump);
        let delivered = found["taps"][tap]["ledger"]["delivered"].as_u64();
        assert_eq!(delivered, Some(tcpdump.len() as u64));
        let fractions = tcpdump.iter().filter(|time| !time.ends_with("000")).count();
        assert!(fractions > tcpdump.len() / 2, "these are no nanoseconds: {}", tcpdump[0]);
    }
    let again = json(&["delay", &a, &b, "--json"]);
    for key in ["sent", "received", "matched", "lost", "duplicated", "reordered"] {
        assert_eq!(again[key], found["total"][key], "{key}");
    }
    let means = [&again, &found["total"]].map(|found| found["owd_ns"]["mean"].as_f64().unwrap());
    assert!((means[0] - means[1]).abs() < 1000.0, "{means:?} ns");
    let report = std::fs::read_to_string(format!("{folder}/report.html")).unwrap();
    assert!(report.contains("<svg"), "a report without figures");
    let tshark = tool("tshark", &["-r", &a, "-T", "fields", "-e", "frame.number"]);
    assert_eq!(again["sent"].as_u64(), Some(tshark.lines().count() as u64));
    assert!(again["clock_error_ns"].as_i64() > Some(0), "{again:#}");
}

/// The call has a MOS, the video a media delivery index, and the burst neither.
fn assert_media_are_recognised(folder: &str) {
    let found = json(&["flows", &format!("{folder}/tap-b.pcapng"), "--json"]);
    let flows = found["flows"].as_array().unwrap();
    let flow = |port: u64| flows.iter().find(|flow| flow["dport"] == port).unwrap();
    let [call, video, burst] = [5004, 5006, 5008].map(flow);
    assert_eq!((&call["codec"], &video["codec"]), (&"G729".into(), &"MP2T".into()));
    assert!(call["mos"].as_f64() > Some(2.0), "{call:#}");
    assert!(video["media_delivery"]["media_rate_bps"].as_f64() > Some(7e6), "{video:#}");
    assert!(burst["codec"].is_null(), "{burst:#}");
    for flow in flows {
        assert!(flow["iperf3"].is_null(), "{flow:#}");
    }
}

#[test]
fn killed_demo_leaves_nothing_behind() {
    if !is_root() {
        return;
    }
    let before = Leftovers::now();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().to_str().unwrap();
    for signal in ["INT", "KILL"] {
        let mut demo = wirestamp(&["demo", "--duration", "600", "-o", path])
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        while file_length(&format!("{path}/tap-b.pcapng")) < 10_000 {
            assert_eq!(demo.try_wait().unwrap(), None, "the demo ended early");
            std::thread::yield_now();
        }
        tool("kill", &[&format!("-{signal}"), &demo.id().to_string()]);
        let status = demo.wait().unwrap();
        assert_eq!(status.success(), signal == "INT", "{signal}: {status}");
        // The kernel takes namespaces down in the background.
        while Leftovers::now() != before {
            std::thread::yield_now();
        }
        let read = tool("tshark", &["-r", &format!("{path}/tap-b.pcapng"), "-c", "5"]);
        assert_eq!(read.lines().count(), 5, "what was captured before SIG{signal} is lost");
        std::fs::remove_file(format!("{path}/tap-b.pcapng")).unwrap();
    }
    let next = run(&["demo", "--duration", "2", "-o", path]);
    assert!(next.status.success(), "{}", String::from_utf8_lossy(&next.stdout));
    assert_eq!(Leftovers::now(), before);
}

#[test]
fn failed_demo_leaves_no_tcpdump() {
    if !is_root() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    // Where its capture should go.
    std::fs::create_dir(folder.path().join("tap-a.pcapng")).unwrap();
    let output = run(&["demo", "--duration", "1", "-o", folder.path().to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(1));
    let left = std::fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().file_name());
    let left: Vec<_> = left.filter(|name| name.to_string_lossy().contains("tcpdump")).collect();
    assert!(left.is_empty(), "{left:?}");
}

fn file_length(path: &str) -> u64 {
    std::fs::metadata(path).map_or(0, |metadata| metadata.len())
}

#[test]
fn missing_privileges_are_named_with_a_next_step() {
    if !is_root() {
        return;
    }
    // A copy, because the build folder may be closed to others.
    let folder = tempfile::Builder::new().prefix("wirestamp").tempdir_in("/tmp").unwrap();
    let binary = folder.path().join("wirestamp");
    std::fs::copy(env!("CARGO_BIN_EXE_wirestamp"), &binary).unwrap();
    tool("chmod", &["755", folder.path().to_str().unwrap(), binary.to_str().unwrap()]);
    let capture = &["capture", "-i", "lo"][..];
    let xdp = &["capture", "-i", "lo", "--method", "xdp", "--yes"][..];
    for arguments in [&["demo"][..], &["lab", "up"], capture, xdp] {
        let mut command = Command::new("setpriv");
        command.args(["--reuid=65534", "--regid=65534", "--clear-groups", "--inh-caps=-all"]);
        let output = command.arg(&binary).args(arguments).current_dir("/").output().unwrap();
        let message = stderr(&output);
        assert_eq!(output.status.code(), Some(1), "{arguments:?}: {message}");
        assert!(message.contains("sudo") && message.contains("setcap"), "{message}");
        assert_eq!(message.lines().count(), 1, "{message}");
    }
}

#[test]
fn killed_capture_leaves_no_xdp_program() {
    if !is_root() {
        return;
    }
    let script = r#"
        for method in xdp-pass xdp; do
            "$0" -q capture -i tap-b@wirestamp-sink --method $method --yes -w - > /dev/null &
            until ip -n wirestamp-sink link show tap-b | grep -q xdp; do :; done
            kill -KILL $!
            wait $!
            while ip -n wirestamp-sink link show tap-b | grep -q xdp; do :; done
            echo gone
        done
    "#;
    let binary = env!("CARGO_BIN_EXE_wirestamp");
    let output = run(&["lab", "run", "sh", "-c", script, binary]);
    assert_eq!(String::from_utf8_lossy(&output.stdout), "gone\ngone\n", "{}", stderr(&output));
}

#[test]
fn killed_capture_leaves_no_tc_program() {
    if !is_root() {
        return;
    }
    // A link's descriptor contains what it attaches, and where: 46 is BPF_TCX_INGRESS of linux/bpf.h.
    let script = r#"
        "$0" -q capture -i tap-b@wirestamp-sink --method tc-pass -w - > /dev/null &
        until link=$(grep -ls '^attach_type:.46' /proc/$!/fdinfo/*); do :; done
        program=$(sed -n 's/^prog_id:.//p' $link)
        bpftool prog show id $program
        kill -KILL $!
        wait $!
        while bpftool prog show id $program > /dev/null 2>&1; do :; done
        echo gone
    "#;
    let output = run(&["lab", "run", "sh", "-c", script, env!("CARGO_BIN_EXE_wirestamp")]);
    let message = String::from_utf8_lossy(&output.stdout);
    assert!(message.contains("sched_cls  name tc_stamped_by_k"), "{message}{}", stderr(&output));
    assert!(message.ends_with("gone\n"), "{message}{}", stderr(&output));
}
