//! The studies that a mesh measures, run in their quick form.

use std::fs;
use std::path::Path;

use serde_json::Value;

use crate::common::{is_root, json};
use crate::studies::quick_runs::Folder;

/// Results of a study with a mesh, and its folder; `None` if it cannot run.
fn found(study: &str) -> Option<(Value, Folder)> {
    if !is_root() {
        return None;
    }
    let folder = Folder::of_quick_runs();
    let path = folder.path().to_str().unwrap();
    let found = json(&["study", study, "--mesh", "--quick", "--json", "-o", path]);
    assert_eq!((&found["interrupted"], &found["repetitions"]), (&false.into(), &1.into()));
    let report = Path::new(found["report"].as_str().unwrap());
    assert_eq!(report, folder.path().join(format!("{study}-mesh.html")));
    assert!(fs::read_to_string(report).unwrap().contains("wirestamp probe"));
    Some((found, folder))
}

#[test]
fn mesh_delay_and_loss_agree_with_known_values() {
    let Some((found, folder)) = found("passive-delay") else { return };
    let cells = found["cells"].as_array().unwrap();
    assert_eq!(cells.len(), 4);
    for cell in cells.iter().filter(|cell| cell["runs"] == 1) {
        let number = |key: &str| cell[key].as_u64().unwrap();
        assert!(0 < number("truly_lost") && number("truly_lost") < number("sent"), "{cell:#}");
        if number("own_loss") == 0 {
            assert_eq!(number("lost"), number("truly_lost"), "{cell:#}");
        }
        let error = cell["mean_error_ns"]["mean"].as_f64().unwrap();
        // A hundredth, because other programs may run on this machine.
        assert!(error < cell["truth_ns"][1].as_f64().unwrap() / 1e2, "{cell:#}");
    }
    let claims = found["claims"].as_array().unwrap();
    assert_eq!(claims[2]["verdict"], "confirmed", "never negative: {:#}", claims[2]);
    let raw = folder.path().join("passive-delay-mesh-frames/001-300-bytes-100-percent-4-tasks.csv");
    assert!(raw.exists(), "{}", raw.display());
}

#[test]
fn active_and_passive_tasks_agree() {
    let Some((found, folder)) = found("active-delay") else { return };
    let cells = found["cells"].as_array().unwrap();
    assert_eq!(cells.len(), 2);
    for cell in cells {
        let [active, passive] = [0, 1].map(|which| cell["received"][which].as_u64().unwrap());
        let is_overloaded = cell["name"].as_str().unwrap().contains("4167");
        assert_eq!(passive < cell["sent"].as_u64().unwrap(), is_overloaded, "{cell:#}");
        assert_eq!((active, &cell["disagreement"]), (passive, &0.into()), "{cell:#}");
        let difference = cell["difference_ns"][1]["mean"].as_f64().unwrap().abs();
        // A hundred times the normal value, because other programs may run on this machine.
        assert!(difference < 500_000.0, "{cell:#}");
    }
    let claims = found["claims"].as_array().unwrap();
    assert_eq!(claims[1]["verdict"], "confirmed", "never negative: {:#}", claims[1]);
    assert!(folder.path().join("active-delay-mesh/001-600-bytes-500-a-second.csv").exists());
}

#[test]
fn mesh_accounts_for_every_frame() {
    let Some((found, folder)) = found("limit-rate") else { return };
    let levels = found["levels"].as_array().unwrap();
    let tasks: Vec<_> = levels.iter().map(|level| level["tasks"].as_str().unwrap()).collect();
    assert_eq!(tasks, ["1", "4"]);
    for level in levels {
        let [probe, load] =
            ["probe", "load"].map(|of| level[format!("limited_by_{of}")].as_u64().unwrap());
        assert_eq!(probe + load, 1, "{level:#}");
        assert!(level["load_percent"]["mean"].as_f64() > Some(0.0), "{level:#}");
    }
    assert!(found["measured"].as_u64() > Some(0), "{found:#}");
    // The interface's drop counter includes packets of other senders.
    assert!(found["unaccounted"].as_i64() <= Some(0), "{found:#}");
    assert!(folder.path().join("limit-rate-mesh/001-4.csv").exists());
}
