//! The installed systemd services of the mesh.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use crate::common::tool;

const PREFIX: &str = "/usr";
const SERVICES: [&str; 3] =
    ["wirestamp-controller.service", "wirestamp-collector.service", "wirestamp-probe.service"];

/// Targets of systemd itself, which our services require.
const TARGETS: [&str; 5] = ["basic", "network-online", "shutdown", "sysinit", "time-sync"];

/// Max exposure level of a service, of 100: `systemd-analyze security` calls more than 40 "MEDIUM".
const EXPOSURE: &str = "--threshold=30";

/// Installs for a prefix into a folder, as packagers do.
fn install() -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().display();
    let environment = [
        format!("PREFIX={PREFIX}"),
        format!("DESTDIR={path}"),
        format!("BINARY={}", env!("CARGO_BIN_EXE_wirestamp")),
    ];
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tools/install-mesh");
    tool("env", &[&environment.each_ref().map(|it| &**it)[..], &[script]].concat());
    let below = folder.path().join(PREFIX.trim_start_matches('/'));
    (folder, below)
}

/// Runs systemd-analyze on the services in a root folder.
fn analyze(root: &Path, arguments: &[&str]) -> String {
    let root = format!("--root={}", root.display());
    tool("systemd-analyze", &[arguments, &[&root], &SERVICES].concat())
}

#[test]
fn systemd_accepts_sandboxed_services() {
    let (folder, below) = install();
    let root = folder.path();
    let units = below.join("lib/systemd/system");
    for target in TARGETS {
        fs::write(units.join(format!("{target}.target")), "[Unit]\n").unwrap();
    }
    // It also fails if a service's command does not exist, and because of `--recursive-errors`, if a key is
    // unknown.
    analyze(root, &["verify", "--man=no", "--recursive-errors=yes"]);
    let security = analyze(root, &["security", "--offline=true", EXPOSURE, "--no-pager"]);
    assert!(security.contains("wirestamp-probe.service"), "{security}");
    for service in SERVICES {
        let text = fs::read_to_string(units.join(service)).unwrap();
        assert!(!text.contains("@PREFIX@") && !text.contains("--listen"), "{text}");
    }
    let mode = fs::metadata(below.join("bin/wirestamp")).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o755);
}

/// The settings of the services are passed to the command.
#[test]
fn service_settings_exist_as_command_options() {
    let (_folder, below) = install();
    for (service, command) in SERVICES.iter().zip(["controller", "collector", "probe"]) {
        let text = fs::read_to_string(below.join("lib/systemd/system").join(service)).unwrap();
        let help = tool(env!("CARGO_BIN_EXE_wirestamp"), &[command, "--help"]);
        // Wherever its lines are broken.
        let help = help.split_whitespace().collect::<Vec<_>>().join(" ");
        let is_name = |it: char| it.is_ascii_uppercase() || it == '_';
        let words = text.split(|it| !is_name(it));
        let named: Vec<_> = words.filter(|it| it.starts_with("WIRESTAMP_")).collect();
        assert!(!named.is_empty(), "{text}");
        for name in named {
            assert!(help.contains(&format!("[env: {name}")), "{name}: {help}");
        }
    }
}
