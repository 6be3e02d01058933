//! Tasks at two collectors: divided between them, and moved when one is away.

use serde_json::Value;

use crate::common::{Leftovers, is_root};
use crate::mesh::{in_lab, read, results, sum};

/// Delay tasks created over HTTP, and their results.
pub(super) const ENTER: &str = r#"
    "$0" -q pki issue bob --role operator -o bob.pem --authority authority >> issued
    enter() { # TASK
        ask tasks/$1 --cert bob.pem -X PUT -w '%{http_code}\n' -o entered -H 'Content-Type: application/json' -d '{
            "measure": "passive-delay", "filter": "udp and dst port 7000",
            "from": "roof/tap-a@wirestamp-router", "to": "cellar/tap-b@wirestamp-sink"
        }'
    }
    status() { ask tasks/$1/results -o answer -w '%{http_code}\n'; }
    count() { # TASK WHAT, from a second on
        ask tasks/$1/results | jq "[.results // [] | .[] | select(.begin_ns >= ${since-0}000000000).$2] | add // 0"
    }
    await_matched() { # TASK: until both probes look
        until [ "$(count $1 matched)" -ge 1 ]; do
            send 100
            wait $sending
        done 2> asking
    }
"#;

/// Two collectors, and two tasks of the same packets, one at each collector.
const TWO: &str = r#"
    let_in_collector attic attic.log
    let_in_collector store store.log
    let_in roof roof.log
    let_in cellar cellar.log
    for name in one other; do enter $name; done > statuses
    for name in one other; do await_matched $name; done
    last=$(date +%s)
    until [ $(date +%s) -gt $last ]; do sleep 0.1; done
    since=$(date +%s)
    send 15000
    until [ "$(count one sent)" -ge 1000 ] && [ "$(count other sent)" -ge 1000 ]; do sleep 0.1; done
    killed $store
    for name in one other; do status $name; done > away
    ask results > recent
    start_collector store $listens store2.log
    wait $sending
    for name in one other; do
        until [ "$(count $name sent)" -ge 15000 ]; do sleep 0.1; done
        ask "tasks/$name/results?from=$(date -u -d @$since +%FT%TZ)" > $name
    done 2> asking
    end
    kill -INT $attic $store
    wait $attic $store
"#;

/// One of two is killed: its results are unavailable meanwhile, and all packets are counted once at both.
#[test]
fn tasks_are_split_between_two_collectors() {
    if !is_root() {
        return;
    }
    let before = Leftovers::now();
    let (folder, message) = in_lab(&[ENTER, TWO].concat());
    let away = read(folder.path(), "away");
    let mut statuses: Vec<_> = away.lines().collect();
    statuses.sort_unstable();
    assert_eq!(statuses, ["200", "503"], "{message}");
    let recent: Value = serde_json::from_str(&read(folder.path(), "recent")).unwrap();
    let not_answered = recent["not_answered"].as_array().unwrap();
    assert!(
        not_answered.len() == 1 && not_answered[0].as_str().unwrap().contains("store"),
        "{recent:#}"
    );
    for name in ["one", "other"] {
        let found = results(&folder, name, &message);
        let found =
            ["sent", "matched", "given_up_sent", "given_up_received"].map(|it| sum(&found, it));
        assert_eq!(found, [15_000, 15_000, 0, 0], "{name}: {message}");
    }
    assert_eq!(Leftovers::now(), before);
}

/// Two collectors; the tasks of one move to the other when it is killed, and it comes back.
const MOVED: &str = r#"
    kill -INT $controller
    wait $controller
    start_controller $address controller2.log --move-after 2s
    let_in_collector attic attic.log
    let_in_collector store store.log
    let_in roof roof.log
    let_in cellar cellar.log
    for name in one other; do enter $name; done > statuses
    for name in one other; do await_matched $name; done
    last=$(date +%s)
    until [ $(date +%s) -gt $last ]; do sleep 0.1; done
    since=$(date +%s)
    send 20000
    until [ "$(count one sent)" -ge 2000 ] && [ "$(count other sent)" -ge 2000 ] &&
        [ "$(count load packets)" -ge 2000 ]; do sleep 0.1; done
    killed $store
    at=$(date +%s%N)
    newest() { ask tasks/$1/results | tee $1.partial | jq '.results // [] | last | .begin_ns // 0'; }
    until [ "$(newest one)" -gt $at ] && [ "$(newest other)" -gt $at ] && [ "$(newest load)" -gt $at ]; do
        sleep 0.1
    done
    echo $((($(date +%s%N) - at) / 1000000)) > milliseconds
    start_collector store $listens store2.log
    wait $sending
    for name in one other; do
        until [ "$(count $name sent)" -ge 20000 ]; do sleep 0.1; done
        ask "tasks/$name/results?from=$(date -u -d @$since +%FT%TZ)" > $name
    done 2> asking
    until [ "$(count load packets)" -ge 20000 ]; do sleep 0.1; done
    count load packets > load
    ask tasks/load/results | jq '[.results[].packets] | add' > seconds
    ask "tasks/load/results?step=3600" | jq '[.results[].packets] | add' > hours
    ask ../../metrics > metrics
    move() { # CERTIFICATE TASK COLLECTOR
        ask tasks/$2/move --cert $1.pem -X POST -w ' %{http_code}
' -H 'Content-Type: application/json' \
            -d "{\"to\": \"$3\"}"
    }
    {
        move ann one controller
        move bob one nowhere
        move bob nothing store
        move bob one controller
        move bob one controller
    } > moves
    await 'task one moved here' controller2.log
    end
    kill -INT $attic $store
    wait $attic $store
"#;

#[test]
fn tasks_of_a_killed_collector_move_to_another() {
    if !is_root() {
        return;
    }
    let before = Leftovers::now();
    let (folder, message) = in_lab(&[ENTER, MOVED].concat());
    let file = |name: &str| read(folder.path(), name);
    assert!(message.contains("the collector store is away: moved"), "{message}");
    let milliseconds: u64 = file("milliseconds").trim().parse().unwrap();
    assert!(milliseconds < 10_000, "{milliseconds} ms: {message}");
    let mut partial = 0;
    for name in ["one", "other"] {
        let meanwhile: Value = serde_json::from_str(&file(&format!("{name}.partial"))).unwrap();
        if let Some(missing) = meanwhile.get("partial") {
            assert_eq!(missing[0]["collector"], "store", "{meanwhile:#}");
            partial += 1;
        }
        let found: Value = serde_json::from_str(&file(name)).unwrap();
        assert_eq!(found.get("partial"), None, "{found:#}");
        let found = results(&folder, name, &message);
        let begins: Vec<_> = found.iter().map(|it| it["begin_ns"].as_i64()).collect();
        assert!(begins.array_windows().all(|[one, next]| one < next), "{begins:?}");
        let found =
            ["sent", "matched", "given_up_sent", "given_up_received"].map(|it| sum(&found, it));
        assert_eq!(found, [20_000, 20_000, 0, 0], "{name}: {message}");
    }
    assert_eq!(partial, 1, "{message}");
    assert_eq!(file("load").trim(), "20000", "{message}");
    assert_eq!(file("seconds"), file("hours"), "{message}");
    let metrics = file("metrics");
    let moves = metrics.lines().find_map(|it| it.strip_prefix("wirestamp_task_moves_total "));
    assert!(moves.is_some_and(|it| it != "0"), "{metrics}");
    assert!(metrics.contains("wirestamp_task_epoch{task=\"one\"}"), "{metrics}");
    let moves = file("moves");
    let statuses: Vec<_> = moves.lines().filter_map(|it| it.rsplit(' ').next()).collect();
    assert_eq!(statuses, ["403", "404", "404", "200", "200"], "{moves}");
    assert_eq!(Leftovers::now(), before);
}

/// A task of the controller's own collector stays there when another connects, and moves when it is created again.
#[test]
fn restarted_task_moves_to_another_collector() {
    if !is_root() {
        return;
    }
    let before = Leftovers::now();
    let script = r#"
        let_in roof roof.log
        let_in cellar cellar.log
        enter one > statuses
        await_matched one
        let_in_collector store store.log
        enter one >> statuses
        ask tasks/one --cert bob.pem -X DELETE -w '%{http_code}\n' >> statuses
        enter one >> statuses
        await_matched one
        killed $store
        status path >> statuses
        status one >> statuses
        end
    "#;
    let (folder, message) = in_lab(&[ENTER, script].concat());
    let statuses = read(folder.path(), "statuses");
    let statuses: Vec<_> = statuses.lines().collect();
    assert_eq!(statuses, ["201", "200", "204", "201", "200", "503"], "{message}");
    assert_eq!(Leftovers::now(), before);
}
