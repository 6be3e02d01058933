//! Error of passive one-way delay and loss.

use std::fs;

use crate::common::{is_root, json};
use crate::studies::Folder;

#[test]
fn delay_and_loss_are_compared_with_the_paper() {
    if !is_root() {
        return;
    }
    let folder = Folder::of_quick_runs();
    let path = folder.path().to_str().unwrap();
    let found = json(&["study", "passive-delay", "--quick", "--json", "-o", path]);
    assert_eq!((&found["interrupted"], &found["repetitions"]), (&false.into(), &2.into()));
    let cells = found["cells"].as_array().unwrap();
    assert_eq!(cells.len(), 11);
    for cell in cells {
        let number = |key: &str| cell[key].as_u64().unwrap();
        if number("runs") == 0 {
            continue;
        }
        // Under any load of this machine, the bottleneck passes some packets and drops the rest.
        assert!(0 < number("truly_lost") && number("truly_lost") < number("sent"), "{cell:#}");
        if number("own_loss") == 0 {
            assert_eq!(number("lost"), number("truly_lost"), "{cell:#}");
        }
        let error = cell["mean_error_ns"]["mean"].as_f64().unwrap();
        let mean = cell["truth_ns"][1].as_f64().unwrap();
        // A thousandth at most, even on a busy machine; delays of wrong packets would differ far more.
        assert!(error < mean / 1e3, "{cell:#}");
    }
    let claims = found["claims"].as_array().unwrap();
    assert_eq!(claims[2]["verdict"], "confirmed", "never negative: {:#}", claims[2]);
    assert_eq!(found["published"][0]["mean_error_us"], 376.31);

    let page = fs::read_to_string(found["report"].as_str().unwrap()).unwrap();
    // 3 figures of section 3.3, 2 for each of two loads, and 2 of 3.6, for two sizes of screen.
    assert_eq!(page.matches("<svg ").count(), 18);
    for text in ["387", "982", "Departures from the paper"] {
        assert!(page.contains(text), "{text}");
    }
    let raw = folder.path().join("passive-delay-frames/001-98-bytes-40-percent-1-task.csv");
    assert!(raw.exists(), "{}", raw.display());
}
