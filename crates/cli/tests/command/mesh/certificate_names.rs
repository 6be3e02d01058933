//! The controller's certificate contains its configured names.

use crate::common::tool;

/// Each line is the result of a call by a name: the HTTP status, or curl's error.
const ASKED: &str = r#"
    cd "$1"
    "$0" -q pki create --authority authority > made
    "$0" -q pki issue ann --role viewer -o ann.pem --authority authority > issued
    start() { # ARGUMENTS
        : > log
        "$0" controller --folder controller --authority authority "$@" 2> log &
        controller=$!
        until grep -q 'listening at' log; do sleep 0.1; done
        address=$(sed -n 's/.*listening at \([^;]*\);.*/\1/p' log)
    }
    end() {
        kill -INT $controller
        wait $controller
        cksum controller/controller.pem
    }
    ask() { # HOST
        to=$1:${address##*:}
        status=$(curl -sS --cert ann.pem --cacert ann.pem --resolve $to:127.0.0.9 -o answer -w '%{http_code}' \
            https://$to/api/v1/me 2> asking) || status="curl: $?"
        echo "$status"
    }
    start --listen 127.0.0.9:0
    ask localhost
    ask main.example.org
    end
    export WIRESTAMP_NAME=Main.example.org,127.0.0.9
    start --listen 127.0.0.9:0
    ask localhost
    ask main.example.org
    ask 127.0.0.9
    ask other.example.org
    end
    start --listen 127.0.0.9:0
    end
    start --listen 127.0.0.9:0 --name other.example.org
    ask other.example.org
    ask main.example.org
    end
"#;

#[test]
fn controller_certificate_has_only_its_names() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().to_str().unwrap();
    let shell = ["60", "sh", "-euc", ASKED, env!("CARGO_BIN_EXE_wirestamp"), path];
    let message = tool("timeout", &shell);
    let lines: Vec<_> = message.lines().collect();
    let [local, none, first, asked @ .., second, third, new, old, fourth] = &lines[..] else {
        panic!("{message}")
    };
    // curl's error for a certificate with another name.
    const OF_ANOTHER: &str = "curl: 60";
    assert_eq!((*local, *none), ("200", OF_ANOTHER), "{message}");
    assert_eq!(asked, ["200", "200", "200", OF_ANOTHER], "{message}");
    assert_eq!((*new, *old), ("200", OF_ANOTHER), "{message}");
    // A new certificate is created only if the names have changed.
    assert!(first != second && second == third && third != fourth, "{message}");
}
