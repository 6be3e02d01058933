//! Messages between nodes: numbers and types of fields, services and methods. Names of fields are not sent, but a name
//! that changes deserves a look.

use std::fs;
use std::path::{Path, PathBuf};

use super::{Names, compare_all};

#[test]
fn protobuf_fields_keep_their_numbers() {
    let mut found = Names::new();
    for path in sources(&Path::new(env!("CARGO_MANIFEST_DIR")).join("..")) {
        let text = fs::read_to_string(path).unwrap();
        let mut scope: Vec<String> = Vec::new();
        for line in text.lines().map(|line| line.split("//").next().unwrap().trim()) {
            let mut words = line.split_whitespace();
            match words.next() {
                Some("message" | "enum" | "service" | "oneof") => {
                    scope.push(words.next().unwrap().to_owned())
                }
                Some("package") => drop(found.insert(line.to_owned())),
                Some("rpc") => drop(found.insert(format!("{} {line}", scope.join(".")))),
                Some(_) if line.contains('=') && !scope.is_empty() => {
                    let field = line.split([';', '[']).next().unwrap().trim();
                    found.insert(format!("{} {field}", scope.join(".")));
                }
                _ => {}
            }
            let depth = |brace| line.matches(brace).count();
            for _ in depth('{')..depth('}') {
                scope.pop();
            }
            if depth('{') > 0 && depth('{') == depth('}') {
                scope.pop();
            }
        }
    }
    assert!(!found.is_empty());
    compare_all("protobuf.txt", &found);
}

fn sources(crates: &Path) -> Vec<PathBuf> {
    let folders = fs::read_dir(crates).unwrap().map(|it| it.unwrap().path().join("proto"));
    let files = folders.filter(|it| it.is_dir()).flat_map(|it| fs::read_dir(it).unwrap());
    files.map(|it| it.unwrap().path()).collect()
}
