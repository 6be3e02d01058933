//! The controller's API matches its OpenAPI description: schemathesis sends valid and invalid requests and checks every
//! answer.

use std::path::Path;
use std::process::Command;

use crate::common::{is_root, stderr};
use crate::stamp::loopback;

/// Where `tools/setup-peers` installs it.
const SCHEMATHESIS: &str =
    concat!(env!("CARGO_MANIFEST_DIR"), "/../../target/tools/schemathesis/bin");
const ASKING: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/command/mesh/schemathesis");

/// A controller in the folder `$1`, with schemathesis's programs in `$2` and their configuration in `$3`.
const CONTROLLER: &str = r#"
    cd "$1"
    bin=$2 asking=$3
    "$0" controller --listen 127.0.0.1:0 --page 127.0.0.1:0 --folder controller --authority authority 2> log &
    controller=$!
    trap 'kill -INT $controller; wait' EXIT
    until grep -q 'page at' log; do sleep 0.1; done
    page=$(sed -n 's/page at //p' log)
    description=$page/api/v1/openapi.json
"#;

/// Whether the test can run; prints a note if not.
fn is_installed() -> bool {
    let is_there = Path::new(SCHEMATHESIS).exists();
    if !is_there {
        eprintln!("skipped: needs schemathesis, which tools/setup-peers installs");
    }
    is_there
}

/// Runs a script with a controller, with a command as its prefix.
fn ask(mut command: Command, script: &str) {
    let folder = tempfile::tempdir().unwrap();
    let script = [CONTROLLER, script].concat();
    command.args(["120", "sh", "-euc", &script, env!("CARGO_BIN_EXE_wirestamp")]);
    let output = command.arg(folder.path()).args([SCHEMATHESIS, ASKING]).output().unwrap();
    let message = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{message}{}", stderr(&output));
}

#[test]
fn api_answers_match_their_description() {
    if is_installed() {
        let script = r#""$bin/schemathesis" --config-file "$asking/schemathesis.toml" run --no-color $description"#;
        ask(Command::new("timeout"), script);
    }
}

/// Every kind of task, on the loopback interface.
const MEASURED: &str = r#"
    start_probe() { # NAME
        token=$("$0" -q pki token $1 --authority authority)
        address=$(sed -n 's/.*listening at \([^;]*\);.*/\1/p' log)
        "$0" probe $address --folder $1 --token $token 2> $1.log &
        probes="${probes-} $!"
        trap 'kill -INT $controller $probes; wait' EXIT
        until grep -q "the probe $1 connected" log; do sleep 0.1; done
    }
    put() { # NAME TASK
        curl -sS -X PUT -H 'Content-Type: application/json' $page/api/v1/tasks/$1 -d "$2" >> put
    }
    start_probe roof
    start_probe cellar
    put volume '{"measure":"volume","at":"roof/lo"}'
    put traffic '{"measure":"traffic","at":"roof/lo","interval":"1s"}'
    put passive '{"measure":"passive-delay","from":"roof/lo","to":"cellar/lo"}'
    put active '{"measure":"active-delay","from":"roof","to":"cellar","rate":50}'
    put flows '{"measure":"flows","at":"roof/lo"}'
    "$bin/python" "$asking/results.py" $description volume traffic passive active flows
"#;

#[test]
fn results_match_the_api_description() {
    if is_root() && is_installed() {
        // Nothing else passes there.
        ask(loopback().command("timeout"), MEASURED);
    }
}
