//! All results of a simulated mesh, as its controller reads them from its collectors.

use tokio::runtime::Runtime;

use super::*;
use crate::collector::{ResultRange, Step};
use crate::task::Measure;

/// The results of all tasks: one line of JSON for each of them and each step, and one for each histogram and sum.
pub(in crate::controller) fn export(
    placement: Arc<TaskPlacement>,
    members: Arc<ValidCertificates>,
    tasks: Arc<Tasks>,
    collectors: BTreeMap<Name, Arc<Collector>>,
) -> String {
    // No task is placed at the controller's own collector.
    let own = Arc::clone(collectors.values().next().unwrap());
    let all = watch::channel(Arc::clone(&tasks)).1;
    let credentials = Credentials {
        key_pem: String::new(),
        certificate_pem: String::new(),
        trust_pem: String::new(),
    };
    // A receiver keeps the last value.
    let members = watch::channel(members).1;
    let credentials = watch::channel(credentials).1;
    let new = Sources::new(own, placement, members, credentials, all);
    let sources = Sources { simulated: collectors, ..new };
    let lines = async {
        let mut lines = Vec::new();
        for (number, entered) in tasks.iter() {
            lines.extend(sources.exported(*number, &entered.task.measure).await);
        }
        lines
    };
    Runtime::new().unwrap().block_on(lines).join("\n")
}

impl Sources {
    /// The results of a task. All its collectors must answer.
    async fn exported(&self, task: u64, measure: &Measure) -> Vec<String> {
        let mut lines = Vec::new();
        let mut add = |what: &str, json: String| lines.push(format!("{task} {what} {json}"));
        for (name, step) in [("1", Step::AsMeasured), ("60", Step::Minute), ("3600", Step::Hour)] {
            let range = ResultRange { step, from: i64::MIN, until: i64::MAX, most: u32::MAX };
            let (json, missing) = if let Measure::Volume { .. } = measure {
                let (counted, missing) = self.counted_parts(task, &range).await.unwrap();
                (serde_json::to_string(&counted), missing)
            } else {
                let (measured, missing) = self.measured_parts(task, &range).await.unwrap();
                (serde_json::to_string(&measured), missing)
            };
            assert_eq!(missing, []);
            add(name, json.unwrap());
        }
        let histograms = self.histograms(task, i64::MIN..i64::MAX).await.unwrap();
        add("histograms", serde_json::to_string(&histograms).unwrap());
        add("sum", serde_json::to_string(&self.sum(task).await.unwrap()).unwrap());
        let until = self.settled_until(task).await.unwrap();
        add("settled", until.as_nanos().to_string());
        lines
    }
}
