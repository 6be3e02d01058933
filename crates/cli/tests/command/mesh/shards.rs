//! A task with two shards at two collectors has the results of the same task with one shard.

use serde_json::Value;

use crate::common::{Leftovers, is_root};
use crate::mesh::two_collectors::ENTER;
use crate::mesh::{in_lab, read, results, sum};

/// A collector is killed under traffic; its shards move to the other one, and it comes back.
const SHARDS: &str = r#"
    kill -INT $controller
    wait $controller
    start_controller $address controller2.log --move-after 2s
    let_in_collector attic attic.log
    let_in_collector store store.log
    let_in roof roof.log
    let_in cellar cellar.log
    enter_shards() { # COUNT
        ask tasks/shards --cert bob.pem -X PUT -w '%{http_code}\n' -o entered.$1 -H 'Content-Type: application/json' \
            -d '{
                "measure": "passive-delay", "filter": "udp and dst port 7000", "shards": '$1',
                "from": "roof/tap-a@wirestamp-router", "to": "cellar/tap-b@wirestamp-sink"
            }'
    }
    send() { # COUNT, of eight flows: each process has its own port
        sending=
        for nth in 1 2 3 4 5 6 7 8; do
            "$0" send --json -q -i out@wirestamp-source --to 10.77.2.2 --port 7000 --pattern free \
                --size 300 --interval 8ms -c $(($1 / 8)) > sent.$nth &
            sending="$sending $!"
        done
    }
    {
        enter one
        enter_shards 0
        enter_shards 65
        enter_shards 2
        enter_shards 2
    } > statuses
    for name in one shards; do await_matched $name; done
    last=$(date +%s)
    until [ $(date +%s) -gt $last ]; do sleep 0.1; done
    since=$(date +%s)
    send 15000
    until [ "$(count one sent)" -ge 2000 ] && [ "$(count shards sent)" -ge 2000 ]; do sleep 0.1; done
    ask ../../metrics > metrics
    killed $store
    ask tasks/shards/results > partial
    ask results > recent
    await 'is away: moved' controller2.log
    start_collector store $listens store2.log
    wait $sending
    from="from=$(date -u -d @$since +%FT%TZ)"
    for name in one shards; do
        until [ "$(count $name sent)" -ge 15000 ]; do sleep 0.1; done
        ask "tasks/$name/results?$from" > $name
        ask "tasks/$name/histogram?$from" > $name.histogram
    done 2> asking
    ask tasks > tasks.json
    move() { # BODY
        ask tasks/shards/move --cert bob.pem -X POST -w ' %{http_code}\n' -H 'Content-Type: application/json' -d "$1"
    }
    {
        move '{"to": "store", "shard": 2}'
        move '{"to": "store", "shard": 1}'
        move '{"to": "attic"}'
    } > moves
    end
    kill -INT $attic $store
    wait $attic $store
"#;

#[test]
fn two_shards_have_the_results_of_one() {
    if !is_root() {
        return;
    }
    let before = Leftovers::now();
    let (folder, message) = in_lab(&[ENTER, SHARDS].concat());
    let file = |name: &str| read(folder.path(), name);
    let document = |name: &str| -> Value { serde_json::from_str(&file(name)).unwrap() };
    let statuses = file("statuses");
    assert_eq!(statuses.lines().collect::<Vec<_>>(), ["201", "400", "400", "201", "200"]);
    assert!(file("entered.65").contains("`shards` must be 1 to 64"), "{}", file("entered.65"));
    let missing = document("partial")["partial"].clone();
    assert_eq!(missing[0]["collector"], "store", "{missing:#}");
    let recent = document("recent");
    let without = recent["without_results"].as_array().unwrap();
    assert!(without.contains(&document("entered.2")["number"]), "{recent:#}");
    let [one, shards] = ["one", "shards"].map(|name| results(&folder, name, &message));
    for windows in [&one, &shards] {
        let counts = ["sent", "matched", "given_up_sent", "given_up_received"];
        let found = counts.map(|it| sum(windows, it));
        assert_eq!(found, [15_000, 15_000, 0, 0], "{message}");
    }
    // Window by window.
    assert_eq!(one.len(), shards.len(), "{message}");
    for (one, shards) in one.iter().zip(&shards) {
        for key in ["begin_ns", "sent", "received", "matched", "reordered", "error_ns"] {
            assert_eq!(one[key], shards[key], "{key}: {one:#}{shards:#}");
        }
        for spread in ["delay_ns", "variation_ns"] {
            for key in ["count", "min", "max"] {
                let [one, shards] = [one, shards].map(|it| &it[spread][key]);
                assert_eq!(one, shards, "{spread} {key}: {message}");
            }
            let [one, shards] = [one, shards].map(|it| it[spread]["mean"].as_f64());
            let apart = one.zip(shards).map_or(0.0, |(one, shards)| (one - shards).abs());
            assert!(apart < 1e-3, "{spread}: {one:?}, {shards:?}");
        }
    }
    let [mut one, mut shards] = ["one", "shards"].map(|it| document(&format!("{it}.histogram")));
    for key in ["delay_ns", "variation_ns", "missing"] {
        assert_eq!(one[key].take(), shards[key].take(), "{key}: {message}");
    }
    // People see one task.
    let tasks = document("tasks.json");
    let names = tasks.as_array().unwrap().iter().map(|it| it["name"].as_str().unwrap());
    assert_eq!(names.filter(|it| *it == "shards").count(), 1, "{tasks:#}");
    let metrics = file("metrics");
    for sample in [
        "wirestamp_task_epoch{task=\"shards\",shard=\"0\"} 0",
        "wirestamp_task_epoch{task=\"shards\",shard=\"1\"} 0",
        "wirestamp_task_loss_ratio{task=\"shards\"} 0",
    ] {
        assert!(metrics.lines().any(|it| it == sample), "{sample}: {metrics}");
    }
    let moves = file("moves");
    let statuses: Vec<_> = moves.lines().filter_map(|it| it.rsplit(' ').next()).collect();
    assert_eq!(statuses, ["404", "200", "200"], "{moves}");
    assert_eq!(Leftovers::now(), before);
}
