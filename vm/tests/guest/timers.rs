//! The study `timers` on a machine with an HPET.

use std::fs;

use crate::tools::{json, run};

/// The third serial port, whose output is a file on the host (`vm/boot`).
const HOST: &str = "/dev/ttyS2";

#[test]
fn timers_have_rows_of_the_hpet_that_say_they_are_emulated() {
    let study = ["study", "timers", "-q", "--rounds", "10"];
    let text = run("wirestamp", &study);
    assert!(text.contains("HPET Timer (emulated)"), "{text}");
    let document = run("wirestamp", &[&study[..], &["--json"]].concat());
    let found = json(&document);
    let ways = found["ways"].as_array().unwrap().iter();
    // The paper's Table 2: the kernel keeps time by the HPET, and so does the OS timer.
    assert_eq!(found["clocksource"], "hpet");
    let os = ways.clone().find(|way| way["timer"] == "OS Timer").unwrap();
    assert!(os["filtered"]["mean"].as_f64() > Some(0.0), "{os:#}");
    let hpet: Vec<_> = ways.filter(|way| way["source"] == "hpet").collect();
    assert!(hpet.len() >= 3, "{found:#}");
    for way in hpet {
        assert!(way["filtered"]["mean"].as_f64() > Some(0.0), "{way:#}");
        assert!(way["emulated_by"].is_string(), "{way:#}");
    }
    fs::write(HOST, document).unwrap();
}
