//! Ended tasks: their last results are complete.

use crate::common::{Leftovers, is_root};
use crate::mesh::{in_lab, read, results, sum};

#[test]
fn ended_task_keeps_its_last_results() {
    if !is_root() {
        return;
    }
    let before = Leftovers::now();
    let (folder, message) = in_lab(
        r#"
        let_in roof roof.log
        let_in cellar cellar.log
        "$0" -q pki issue operator --role operator -o operator.pem --authority authority > issued
        send 100
        wait $sending
        await_seconds 1
        send 3000
        wait $sending
        # What is not settled by now is by what probes say when they stop to look.
        ask tasks/path -X DELETE --cert operator.pem
        ask tasks/load -X DELETE --cert operator.pem
        await_results 3000 '[.results // [] | .[].sent] | add // 0'
        echo 'task = []' > tasks.toml
        count() { jq '[.results // [] | .[].sent] | add // 0' $1; }
        is_archived() { ls controller/archive/task=$1/*/*.parquet > listed; }
        again() { # NAME
            kill -INT $controller
            wait $controller
            start_controller $address $1.log
            until [ "$(count second.$1)" -ge 3000 ] && [ "$(count hour.$1)" = "$(count second.$1)" ]; do
                sleep 0.1
                ask tasks/path/results > second.$1
                ask "tasks/path/results?step=60" > minute.$1
                ask "tasks/path/results?step=3600" > hour.$1
            done 2> counting
            until is_archived path && is_archived load; do sleep 0.1; done 2> listing
        }
        again first
        again other
        end
        "#,
    );
    let of = |name: &str| results(&folder, name, &message);
    let sums = |name: &str| {
        let results = of(name);
        ["sent", "matched", "given_up_sent"].map(|it| sum(&results, it))
    };
    let all = sums("second.first");
    assert!(all[0] >= 3000, "{all:?}");
    for step in ["second", "minute", "hour"] {
        let [first, other] = ["first", "other"].map(|it| format!("{step}.{it}"));
        assert_eq!(sums(&first), all, "{step}{message}");
        assert_eq!(of(&other), of(&first), "{step}");
    }
    // The other tasks end with the task file, and their archives may come later.
    let archived = |log: &str, task: &str| {
        let of_task = format!("task={task}/");
        let log = read(folder.path(), log);
        log.lines().filter(|it| it.contains("archived ") && it.contains(&of_task)).count()
    };
    for task in ["path", "load"] {
        assert!(archived("first.log", task) > 0, "{task}: {message}");
        assert_eq!(archived("other.log", task), 0, "{task}: {message}");
    }
    assert_eq!(Leftovers::now(), before);
}
