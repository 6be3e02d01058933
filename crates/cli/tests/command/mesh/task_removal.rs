//! Ended tasks are removed with their results, also at a collector that is away meanwhile.

use serde_json::Value;

use crate::common::{Leftovers, is_root};
use crate::mesh::{in_lab, read};

const SCRIPT: &str = r#"
    let_in_collector store collector.log
    let_in roof roof.log
    let_in cellar cellar.log
    "$0" -q pki issue olaf --role operator -o olaf.pem --authority authority > issued
    send 100
    wait $sending
    await_seconds 1
    send 1000
    wait $sending
    await_results 1000 '[.results // [] | .[].sent] | add // 0'
    delete() { # WHO WHAT
        curl -sS --cert $1.pem --cacert ann.pem -o answer -w '%{http_code}\n' \
            -X DELETE "https://$address/api/v1/tasks/$2" >> statuses
    }
    ask tasks > before
    number=$(jq '.[] | select(.name == "path") | .number' before)
    delete olaf "path/results?number=$number"
    delete olaf path
    delete ann "path/results?number=$number"
    delete olaf "path/results?number=99"
    delete olaf path/results
    killed $store
    delete olaf "path/results?number=$number"
    delete olaf "path/results?number=$number"
    start_collector store $listens collector2.log
    await "deleted the results of task $number" collector2.log
    # The file of tasks still has one of this name.
    killed $controller
    killed $store
    start_controller $address controller2.log
    start_collector store $listens collector3.log
    ask tasks > after
    ask "tasks/path/results?number=$number" > removed
    end
    kill -INT $store
    wait $store
    count="select count(*) from window where task = $number"
    /usr/bin/python3 -c "import sqlite3
print(sqlite3.connect('store/results.sqlite').execute('$count').fetchone()[0])" > left
    echo $number > number
"#;

#[test]
fn removed_task_leaves_no_results_and_its_number_is_not_reused() {
    if !is_root() {
        return;
    }
    let before = Leftovers::now();
    let (folder, message) = in_lab(SCRIPT);
    let read = |name: &str| read(folder.path(), name);
    // Running, ended, not allowed, no such number, no number, removed, removed already.
    assert_eq!(read("statuses"), "409\n204\n403\n404\n400\n204\n404\n", "{message}");
    assert_eq!(read("left").trim(), "0", "{message}");
    assert!(read("removed").contains("there is no task path"), "{}", read("removed"));
    let number: u64 = read("number").trim().parse().unwrap();
    let after: Value = serde_json::from_str(&read("after")).unwrap();
    let numbers = after.as_array().unwrap().iter().filter(|it| it["name"] == "path");
    let numbers: Vec<_> = numbers.map(|it| it["number"].as_u64().unwrap()).collect();
    assert!(numbers.len() == 1 && numbers[0] > number, "{after:#}");
    assert!(message.contains(&format!("the operator olaf removed task path with number {number}")));
    assert_eq!(Leftovers::now(), before);
}
