//! The controller's web page for users of the same machine. Its content is tested in a browser
//! (`make test-web`).

use crate::common::{run, stderr, tool};

/// Each line has the beginning of an answer, and its status.
const ASKED: &str = r#"
    cd "$1"
    "$0" controller --listen 127.0.0.1:0 --page 127.0.0.1:0 --folder controller --authority authority 2> log &
    trap "kill -INT $!; wait" EXIT
    until grep -q 'page at' log; do sleep 0.1; done
    page=$(sed -n 's/page at //p' log)
    ask() { curl -sS -w ' %{http_code}\n' "$@"; }
    ask $page/api/v1/me
    ask $page/api/v1/me -H "Host: localhost:${page##*:}"
    ask $page/api/v1/me -H 'Host: evil.example'
    curl -sS $page/api/v1/me -H 'Host: evil.example' -o refused -D - | grep -ci '^content-security-policy: '
    ask $page/api/v1/nothing
    ask $page/nothing
    put() { ask $page/api/v1/tasks/v -X PUT -d '{"measure":"flows","at":"roof/eth0"}' -H "$@"; }
    put 'Content-Type: text/plain'
    put 'Content-Type: application/json' -H 'Origin: http://evil.example'
    put 'Content-Type: application/json' -H "Origin: $page"
    ask $page -o page
    grep -c Wirestamp page
    ask $page -o same -H "If-None-Match: $(curl -sS -I $page | sed -n 's/^etag: //p' | tr -d '\r')"
    ask $page/wirestamp.mesh.v1.Control/Renew -X POST -H "Content-Type: application/json"
    # A change of tasks is sent at once; then the stream is silent for a while.
    curl -sSN --max-time 20 $page/api/v1/events > events &
    listening=$!
    until grep -q 'event: tasks' events; do
        ask $page/api/v1/tasks/v -X DELETE > ended
        put 'Content-Type: application/json' > entered
    done
    kill $listening
    grep -m 1 event events
"#;

#[test]
fn page_needs_no_certificate_but_rejects_other_origins() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().to_str().unwrap();
    let shell = ["60", "sh", "-euc", ASKED, env!("CARGO_BIN_EXE_wirestamp"), path];
    let message = tool("timeout", &shell);
    let lines: Vec<_> = message.lines().collect();
    let expected = [
        (r#"{"name":"local","role":"operator"}"#, "200"),
        (r#"{"name":"local","role":"operator"}"#, "200"),
        ("wrong host", "403"),
        // Rejected clients get a public error message.
        ("", "1"),
        ("there is nothing at this path", "404"),
        ("there is nothing at this path", "404"),
        ("Content-Type: application/json", "403"),
        ("requests of other web pages are not allowed", "403"),
        (r#""number":1"#, "201"),
        ("", "200"),
        ("", "1"),
        ("", "304"),
        ("there is nothing at this path", "404"),
        ("event:", "tasks"),
    ];
    assert_eq!(lines.len(), expected.len(), "{message}");
    for (line, (text, end)) in lines.iter().zip(expected) {
        assert!(line.contains(text) && line.ends_with(end), "{text}: {line}");
    }
}

#[test]
fn page_requires_a_loopback_address() {
    let output = run(&["controller", "--page", "0.0.0.0:4748"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("is not a loopback address"), "{}", stderr(&output));
}
