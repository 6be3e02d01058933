//! An active test whose reflector loses its route to the sender for some time.

use serde_json::Value;

use crate::common::{Leftovers, is_root};
use crate::mesh::{in_lab, read, results, sum};

const SCRIPT: &str = r#"
    let_in roof roof.log
    let_in cellar cellar.log
    echo '{}' > test
    counted() { # HOW MANY OF WHICH COUNT
        until [ "$(jq "[.results // [] | .[].return_path.$2 // 0] | add // 0" test)" -ge $1 ]; do
            sleep 0.1
            ask tasks/test/results > test || true
        done 2> asking
    }
    counted 200 answered
    # The reflector receives packets and cannot answer them.
    ip -n wirestamp-sink route add blackhole 10.77.1.1
    counted 50 lost
    ip -n wirestamp-sink route del blackhole 10.77.1.1
    answered=$(jq '[.results[].return_path.answered // 0] | add' test)
    counted $((answered + 200)) answered
    curl -sS --cert ann.pem --cacert ann.pem "https://$address/metrics" > metrics
    end
"#;

/// The mean of a distribution.
fn mean(spread: &Value) -> f64 {
    spread["mean"].as_f64().unwrap()
}

#[test]
fn round_trips_and_losses_of_the_return_path_are_measured() {
    if !is_root() {
        return;
    }
    let before = Leftovers::now();
    let (folder, message) = in_lab(SCRIPT);
    // No packet was lost on the way to the reflector.
    let results = results(&folder, "test", &message);
    let paths: Vec<Value> = results.iter().map(|it| it["return_path"].clone()).collect();
    let mut complete = 0;
    for (result, path) in results.iter().zip(&paths).filter(|(_, path)| path.is_object()) {
        let accounted = ["answered", "lost", "undetermined"].map(|key| path[key].as_u64().unwrap());
        assert_eq!(result["matched"], accounted.iter().sum::<u64>(), "{result:#}");
        let (trips, delays) = (&path["round_trip_ns"], &result["delay_ns"]);
        assert!(trips.is_object() != (path["no_times"] == "no-answer"), "{result:#}");
        // One machine has one clock, so the round trip is the sum of both delays.
        let is_complete =
            path["answered"] == result["matched"] && trips["count"] == delays["count"];
        if trips.is_object() && is_complete {
            let both = mean(delays) + mean(&path["delay_ns"]);
            assert!((mean(trips) - both).abs() < 10.0, "{result:#}");
            let error = path["round_trip_error_ns"].as_i64().unwrap();
            assert!(trips["min"].as_i64().unwrap() + error > 0, "{result:#}");
            complete += 1;
        }
    }
    assert!(complete > 0, "{results:#?}{message}");
    let paths: Vec<Value> = paths.into_iter().filter(Value::is_object).collect();
    assert!(sum(&paths, "answered") >= 400 && sum(&paths, "lost") >= 50, "{paths:#?}");
    let metrics = read(folder.path(), "metrics");
    for name in ["answered_packets_total", "return_lost_packets_total", "round_trip_mean_seconds"] {
        let sample = format!("wirestamp_task_{name}{{task=\"test\"}}");
        assert!(metrics.contains(&sample), "{sample}: {metrics}");
    }
    assert_eq!(Leftovers::now(), before);
}
