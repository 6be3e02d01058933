//! `--stamp hardware` where there is no network card.

use std::fs;

use crate::common::{is_root, run, stderr};

#[test]
fn missing_hardware_stamps_list_the_alternatives() {
    if !is_root() {
        return;
    }
    for method in ["ring", "recvmsg", "recvmmsg", "xdp", "xdp-pass"] {
        let arguments = ["capture", "-i", "lo", "--method", method, "--stamp", "hardware", "--yes"];
        let refused = run(&arguments);
        let words = stderr(&refused);
        assert_eq!(refused.status.code(), Some(2), "{words}");
        let reason =
            "with hardware stamps is not available on lo: its network card stamps no packets";
        assert!(words.contains(&format!("{method} {reason}")), "{words}");
        assert!(words.contains("it supports ring (kernel, raw), "), "{words}");
    }

    let folder = tempfile::tempdir().unwrap();
    let pipe = folder.path().join("pipe");
    fs::write(&pipe, "").unwrap();
    let pipe = pipe.to_str().unwrap();
    let extcap = run(&[
        "--capture",
        "--extcap-interface",
        "wirestamp-lo",
        "--fifo",
        pipe,
        "--stamp",
        "hardware",
    ]);
    let words = stderr(&extcap);
    assert!(!extcap.status.success() && words.contains("its network card"), "{words}");

    let other = run(&["capture", "-i", "lo", "--method", "libpcap", "--stamp", "hardware"]);
    let words = stderr(&other);
    assert_eq!(other.status.code(), Some(2), "{words}");
    assert!(words.contains("method libpcap has no hardware stamps; it has kernel, raw"), "{words}");
}

#[test]
fn live_delay_rejects_hardware_stamps() {
    let refused = run(&["delay", "lo", "lo", "--stamp", "hardware"]);
    let words = stderr(&refused);
    assert_eq!(refused.status.code(), Some(2), "{words}");
    assert!(words.contains("its own clock"), "{words}");
}
