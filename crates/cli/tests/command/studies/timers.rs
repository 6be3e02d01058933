//! The cost of a read of each time source.

use std::fs;

use serde_json::Value;

use crate::common::{json, run, stderr};

#[test]
fn timer_reads_are_compared_with_the_paper() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("new").to_str().unwrap().to_owned();
    let short = ["study", "timers", "--rounds", "10", "--json", "-o", &path];
    let found = json(&short);
    assert_eq!((&found["rounds"], &found["repetitions"]), (&10.into(), &10.into()));
    let ways = found["ways"].as_array().unwrap();
    let os = ways.iter().find(|way| way["timer"] == "OS Timer").unwrap();
    let (peaks, all) = (os["peaks"].as_u64().unwrap(), &os["unfiltered"]["count"]);
    assert_eq!(
        (os["filtered"]["count"].as_u64().unwrap() + peaks, all),
        (100_000, &100_000.into())
    );
    let claims = found["claims"].as_array().unwrap();
    assert!(claims.len() >= 5, "{claims:#?}");
    assert!(claims[0]["sentence"].as_str().unwrap().contains("Table 1: 38.2"), "{claims:#?}");
    assert_eq!(found["published"][0]["costs"][0]["mean"], 38.231);

    let page = fs::read_to_string(found["report"].as_str().unwrap()).unwrap();
    // Two figures, for two sizes of screen.
    assert_eq!(page.matches("<svg ").count(), 4);
    let raw = fs::read_to_string(folder.path().join("new/timers/001.csv")).unwrap();
    assert_eq!(raw.lines().next(), Some("source,call,tick_ns,step_ns,ticks,reads"));

    let again = json(&short);
    let costs = |found: &Value| {
        let ways = found["ways"].as_array().unwrap().iter();
        ways.map(|way| [way["filtered"].clone(), way["step_ns"].clone()]).collect::<Vec<_>>()
    };
    assert_eq!((costs(&again), &again["sittings"]), (costs(&found), &1.into()));
    let both = run(&["study", "timers", "--quick", "--rounds", "10"]);
    assert_eq!(both.status.code(), Some(2), "{}", stderr(&both));
}
