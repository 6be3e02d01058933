//! `wirestamp pki`, from a new CA to a revoked certificate, verified with OpenSSL.

use std::path::{Path, PathBuf};

use crate::common::{json, run, stderr, tool};
use serde_json::Value;

/// A CA in a folder.
struct Mesh(tempfile::TempDir);

impl Mesh {
    fn new() -> Self {
        let mesh = Self(tempfile::tempdir().unwrap());
        mesh.json(&["create"]);
        mesh
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn arguments<'a>(file: &'a Path, action: &[&'a str]) -> Vec<&'a str> {
        let file = file.to_str().unwrap();
        [&["pki"], action, &["--authority", file]].concat()
    }

    fn json(&self, action: &[&str]) -> Value {
        json(&[Self::arguments(&self.path("new/authority"), action), vec!["--json"]].concat())
    }

    fn refused(&self, action: &[&str], status: i32) -> String {
        let output = run(&Self::arguments(&self.path("new/authority"), action));
        assert_eq!(output.status.code(), Some(status), "{action:?}");
        stderr(&output)
    }
}

#[test]
fn openssl_verifies_issued_certificate() {
    let mesh = Mesh::new();
    let file = mesh.path("main.pem");
    let file = file.to_str().unwrap();
    let names = ["--also", "mesh.example.org", "--also", "192.0.2.7"];
    let issue = ["issue", "main", "--role", "controller", "-o", file];
    let written = mesh.json(&[issue.as_slice(), names.as_slice()].concat());
    assert_eq!((&written["name"], &written["role"]), (&"main".into(), &"controller".into()));
    let strictly = ["verify", "-x509_strict", "-purpose", "sslserver"];
    let verified = tool("openssl", &[strictly.as_slice(), &["-CAfile", file, file]].concat());
    assert!(verified.ends_with(": OK\n"), "{verified}");
    let text = tool("openssl", &["x509", "-noout", "-text", "-in", file]);
    for message in [
        "DNS:main.controller.wirestamp.internal, DNS:mesh.example.org, IP Address:192.0.2.7",
        "TLS Web Client Authentication, TLS Web Server Authentication",
        "CA:FALSE",
        "ASN1 OID: prime256v1",
    ] {
        assert!(text.contains(message), "no {message} in {text}");
    }
    let own = tool("openssl", &["x509", "-noout", "-pubkey", "-in", file]);
    assert_eq!(tool("openssl", &["pkey", "-pubout", "-in", file]), own);
}

#[test]
fn revoked_certificates_are_listed_as_revoked() {
    let mesh = Mesh::new();
    assert_eq!(mesh.json(&["list"])["certificates"], Value::Array(Vec::new()));
    let token = mesh.json(&["token", "roof", "--for", "10m"]);
    assert_eq!((token["token"].as_str().unwrap().len(), &token["role"]), (65, &"probe".into()));
    assert_eq!(mesh.json(&["list"])["tokens"][0]["name"], "roof");
    let file = mesh.path("ann.pem");
    let file = file.to_str().unwrap();
    let issue = ["issue", "ann", "--role", "viewer", "-o", file, "--overwrite"];
    mesh.json(&issue);
    mesh.json(&["rotate"]);
    mesh.json(&issue);
    let good = |mesh: &Mesh| -> Vec<bool> {
        let list = mesh.json(&["list"]);
        let list = list["certificates"].as_array().unwrap();
        list.iter().map(|it| it["good"].as_bool().unwrap()).collect()
    };
    assert_eq!(good(&mesh), [true, true]);
    assert_eq!(mesh.json(&["revoke", "ann"])["revoked"], 2);
    assert_eq!(good(&mesh), [false, false]);
    // Its token.
    assert_eq!(mesh.json(&["revoke", "roof"])["revoked"], 1);
    let nothing = mesh.refused(&["revoke", "ann"], 1);
    assert!(nothing.contains("see `wirestamp pki list`"), "{nothing}");
    mesh.json(&issue);
    mesh.json(&["rotate", "--at-once"]);
    assert_eq!(good(&mesh), [false; 3]);
}

#[test]
fn one_certificate_or_token_is_revoked_by_its_serial() {
    let mesh = Mesh::new();
    let files = ["one.pem", "two.pem"].map(|name| mesh.path(name));
    let serials = files.each_ref().map(|file| {
        let issue = ["issue", "ann", "--role", "viewer", "-o", file.to_str().unwrap()];
        mesh.json(&issue)["serial"].as_str().unwrap().to_owned()
    });
    mesh.json(&["token", "ann"]);
    let beginning = &serials[0].to_uppercase()[..20];
    assert_eq!(mesh.json(&["revoke", "ann", "--serial", beginning])["revoked"], 1);
    let list = mesh.json(&["list"]);
    let certificates = list["certificates"].as_array().unwrap();
    let revoked = certificates.iter().map(|it| (it["serial"] == *serials[0], it["good"] == false));
    assert!(revoked.clone().all(|(is_it, is_revoked)| is_it == is_revoked), "{list:#}");
    assert_eq!(revoked.count(), 2);
    let token = list["tokens"][0]["serial"].as_str().unwrap();
    assert_eq!(mesh.json(&["revoke", "ann", "--serial", token])["revoked"], 1);
    assert_eq!(mesh.json(&["list"])["tokens"], Value::Array(Vec::new()));
    let again = mesh.refused(&["revoke", "ann", "--serial", beginning], 1);
    assert!(again.contains("has no valid certificate or token"), "{again}");
    let short = mesh.refused(&["revoke", "ann", "--serial", "5"], 2);
    assert!(short.contains("at least 4 hexadecimal digits"), "{short}");
    mesh.refused(&["revoke", "ann", "--serial", beginning, "--role", "viewer"], 2);
}

#[test]
fn failed_actions_report_one_line() {
    let mesh = Mesh::new();
    assert!(mesh.refused(&["create"], 1).contains("cannot create a CA at"));
    assert!(mesh.refused(&["token", "Roof"], 2).contains("is not a name"));
    let viewer = mesh.refused(&["token", "roof", "--role", "viewer"], 2);
    assert!(viewer.contains("`wirestamp pki issue`"), "{viewer}");
    let nowhere = run(&["pki", "list", "--authority", "/nowhere/authority"]);
    assert_eq!(
        stderr(&nowhere),
        "wirestamp: cannot open the CA at /nowhere/authority: no such file; create one with `wirestamp pki create`\n"
    );
    let issue = ["issue", "ann", "--role", "viewer", "-o", "/proc/nowhere"];
    assert!(mesh.refused(&issue, 1).contains("cannot write: /proc/nowhere: "));
    assert_eq!(mesh.json(&["list"])["certificates"], Value::Array(Vec::new()));
    let own = ["--also", "roof.probe.wirestamp.internal"];
    let file = mesh.path("x.pem");
    let issue = ["issue", "x", "--role", "viewer", "-o", file.to_str().unwrap()];
    let refused = mesh.refused(&[issue.as_slice(), own.as_slice()].concat(), 1);
    assert!(refused.contains("only the CA assigns names of the mesh"), "{refused}");
    mesh.json(&issue);
    let again = mesh.refused(&issue, 1);
    assert!(again.contains("exists and may contain a key"), "{again}");
    mesh.json(&[issue.as_slice(), &["--overwrite"]].concat());
}

/// Otherwise every node would be excluded.
#[test]
fn new_authority_of_an_existing_mesh_must_be_requested() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    std::fs::write(path("controller.pem"), "").unwrap();
    let of_it = ["--folder", &path(""), "--authority", &path("authority")];
    let refused = run(&[&["controller", "--listen", "127.0.0.1:0"], of_it.as_slice()].concat());
    assert_eq!(refused.status.code(), Some(1));
    let message = stderr(&refused);
    let last = message.lines().last().unwrap();
    assert!(last.starts_with("wirestamp: cannot find the certificate authority "), "{message}");
    assert!(!folder.path().join("authority").exists());
}

#[test]
fn token_of_a_file_must_be_valid() {
    let folder = tempfile::tempdir().unwrap();
    let [file, state] = ["token", "state"].map(|name| folder.path().join(name));
    let [file, state] = [&file, &state].map(|path| path.to_str().unwrap());
    let probe = ["probe", "127.0.0.1:1", "--folder", state, "--token-file", file];
    let missing = stderr(&run(&probe));
    assert!(missing.starts_with("wirestamp: cannot read "), "{missing}");
    std::fs::write(file, "x\n").unwrap();
    let invalid = stderr(&run(&probe));
    assert!(invalid.starts_with("wirestamp: cannot use the token in "), "{invalid}");
}
