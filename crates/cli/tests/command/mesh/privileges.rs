//! Nodes have the capabilities that they need, and no others.

use crate::common::{Leftovers, is_root, run, stderr, tool};
use crate::mesh::nodes::in_mesh;
use crate::mesh::{assert_each_thread, assert_privileges, read, results, sum};

/// `CAP_NET_RAW`, and with `CAP_SYS_ADMIN`, by their numbers in linux/capability.h.
const RAW: &str = "0000000000002000";
const RAW_AND_ADMIN: &str = "0000000000202000";

#[test]
fn nodes_run_as_user_with_min_capabilities() {
    if !is_root() {
        return;
    }
    let before = Leftovers::now();
    let (folder, message) = in_mesh(
        r#"
        end
        chmod 755 .
        chown daemon . authority*
        chown -R daemon controller roof
        start_controller 127.0.0.1:0 controller2.log --user daemon
        start_probe roof roof2.log --user daemon
        start_probe cellar cellar2.log
        send 3000
        wait $sending
        await_last
        for node in controller roof cellar; do
            eval cat "/proc/\$$node/task/*/status" > $node.status
        done
        end
        "#,
    );
    assert!(sum(&results(&folder, "results", &message), "matched") > 1000, "{message}");
    let [controller, roof, cellar] =
        ["controller", "roof", "cellar"].map(|it| read(folder.path(), &format!("{it}.status")));
    assert_privileges(&controller, "0000000000000000");
    assert_privileges(&roof, RAW_AND_ADMIN);
    assert_privileges(&cellar, RAW_AND_ADMIN);
    let user_id = tool("id", &["-u", "daemon"]);
    let user_ids = [user_id.trim(); 4].join(" ");
    assert_each_thread(&controller, "Uid:", &user_ids);
    assert_each_thread(&roof, "Uid:", &user_ids);
    assert_each_thread(&cellar, "Uid:", "0 0 0 0");
    assert!(message.contains("running as daemon with no capabilities"), "{message}");
    assert!(message.contains("running with CAP_NET_RAW, CAP_SYS_ADMIN and no other"), "{message}");
    assert_eq!(Leftovers::now(), before);
}

/// A probe that waits for a missing controller ends with SIGTERM, as from systemd.
const WAITING: &str = r#"
    cd "$1"
    "$0" -q pki create --authority authority
    token=$("$0" -q pki token roof --authority authority)
    "$0" probe 127.0.0.1:1 --folder probe --token $token 2> log &
    until grep -q 'retrying' log; do sleep 0.1; done
    cat /proc/$!/task/*/status
    kill -TERM $!
    wait $!
"#;

/// The same on a machine with the user `wirestamp`.
const WITH_A_USER: &str = r#"
    cd "$1"
    chmod 755 .
    cp /etc/passwd passwd
    echo 'wirestamp:x:61111:61111::/:/usr/sbin/nologin' >> passwd
    mount --bind passwd /etc/passwd
    "$0" -q pki create --authority authority
    token=$("$0" -q pki token roof --authority authority)
    "$0" probe 127.0.0.1:1 --folder probe --token $token 2> log &
    until grep -q 'retrying' log; do sleep 0.1; done
    stat -c 'Folder: %u %a' probe
    cat /proc/$!/task/*/status
    kill -TERM $!
    wait $!
"#;

#[test]
fn node_of_root_runs_as_the_user_wirestamp() {
    if !is_root() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().to_str().unwrap();
    let shell = ["60", "unshare", "-m", "sh", "-euc", WITH_A_USER];
    let arguments = [&shell[..], &[env!("CARGO_BIN_EXE_wirestamp"), path]].concat();
    let statuses = tool("timeout", &arguments);
    assert_privileges(&statuses, RAW);
    assert_each_thread(&statuses, "Uid:", "61111 61111 61111 61111");
    assert!(statuses.contains("Folder: 61111 700\n"), "{statuses}");
}

#[test]
fn probe_drops_capabilities_before_connecting() {
    if !is_root() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().to_str().unwrap();
    let shell = ["60", "sh", "-euc", WAITING, env!("CARGO_BIN_EXE_wirestamp"), path];
    let statuses = tool("timeout", &shell);
    assert_privileges(&statuses, RAW);
    let error = run(&["probe", "--folder", path, "--user", "daemon"]);
    let error = stderr(&error);
    let why =
        format!("cannot write in {path} as daemon; change its owner with `chown -R daemon {path}`");
    assert!(error.contains(&why), "{error}");
}
