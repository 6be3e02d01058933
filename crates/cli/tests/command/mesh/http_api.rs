//! Tasks are created and ended over HTTP, by operators only.

use crate::common::tool;

/// Creates and ends a task, and requests missing resources. Each line has an answer and its status.
const OVER_HTTP: &str = r#"
    cd "$1"
    "$0" -q pki create --authority authority > made
    for role in viewer operator; do
        "$0" -q pki issue $role --role $role -o $role.pem --authority authority > issued
    done
    "$0" controller --listen 127.0.0.1:0 --folder controller --authority authority 2> log &
    trap "kill -INT $!; wait" EXIT
    until grep -q 'listening at' log; do sleep 0.1; done
    api=https://$(sed -n 's/.*listening at \(127[^;]*\);.*/\1/p' log)/api/v1
    ask() { # ROLE ARGUMENTS
        role=$1
        shift
        curl -sS --cert $role.pem --cacert $role.pem -w ' %{http_code}\n' "$@"
    }
    ask viewer -X PUT -d '{"measure":"flows","at":"roof/eth0"}' $api/tasks/v
    ask operator -X PUT -d '{"measure":"flows","at":"roof/eth0"}' $api/tasks/v
    ask operator -X PUT -d '{"measure":"flows","at":"roof/eth0"}' $api/tasks/v
    ask operator -X PUT -d '{"measure":"flows","at":"roof"}' $api/tasks/v
    ask operator -X PUT -d '{"name":"w","measure":"flows","at":"roof/eth0"}' $api/tasks/v
    ask operator -X PUT -d '{' $api/tasks/v
    ask operator -X PUT -d '{}' $api/tasks/V
    ask viewer $api/tasks
    ask viewer $api/tasks/v/results
    ask viewer $api/tasks/v/results?limit=x
    ask viewer $api/tasks/v/histogram
    ask viewer $api/tasks/x/histogram
    ask viewer $api/results?from=2026-01-01T00:00:00Z
    ask viewer $api/results?since=x
    ask operator -X DELETE $api/tasks/v
    ask operator -X DELETE $api/tasks/v
    ask viewer $api/tasks
    ask viewer $api/nothing
    ask viewer -X POST $api/tasks
    curl -sS --cacert viewer.pem -w ' %{http_code}\n' $api/tasks
    curl -sS --cacert viewer.pem -w ' %{http_code}\n' $api/openapi.json
    curl -sS --cacert viewer.pem -w ' %{http_code}\n' ${api%/api/v1}/metrics
"#;

#[test]
fn only_operators_change_tasks_over_http() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().to_str().unwrap();
    let shell = ["60", "sh", "-euc", OVER_HTTP, env!("CARGO_BIN_EXE_wirestamp"), path];
    let message = tool("timeout", &shell);
    let lines: Vec<_> = message.lines().collect();
    let expected = [
        ("permission denied: the role of the viewer viewer does not allow this request", "403"),
        (r#""number":1,"name":"v","measure":"flows""#, "201"),
        (r#""number":1"#, "200"),
        ("`at` \\\"roof\\\" is not an observation point", "400"),
        ("cannot create task v: the body names it w", "422"),
        (r#"{"error":"EOF while parsing"#, "400"),
        ("is not a name", "400"),
        (r#""ended":null"#, "200"),
        (r#""results":[]"#, "200"),
        ("limit: invalid digit", "400"),
        ("cannot show histograms of task v: it measures flows, not delay", "422"),
        ("there is no task x", "404"),
        (r#"{"results":{}}"#, "200"),
        ("unknown field `since`", "400"),
        ("", "204"),
        ("there is no task v", "404"),
        (r#""ended":"20"#, "200"),
        ("there is nothing at this path", "404"),
        ("this method is not supported here: see `Allow`", "405"),
        ("this requires a certificate of the mesh", "401"),
        ("this requires a certificate of the mesh", "401"),
        ("this requires a certificate of the mesh", "401"),
    ];
    assert_eq!(lines.len(), expected.len(), "{message}");
    for (line, (text, status)) in lines.iter().zip(expected) {
        assert!(line.contains(text) && line.ends_with(&format!(" {status}")), "{text}: {line}");
    }
}
