//! The committed header equals the generated one.

use std::fs;
use std::path::Path;

const COMMITTED: &str = "include/wirestamp_clock.h";

/// Environment variable that regenerates the header instead of comparing it.
const REGENERATE: &str = "WIRESTAMP_REGENERATE_HEADER";

fn generated() -> String {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"));
    let config = cbindgen::Config::from_file(folder.join("cbindgen.toml")).unwrap();
    let sources = ["error.rs", "handle.rs", "convert.rs"];
    let builder = cbindgen::Builder::new().with_config(config);
    let builder = sources
        .iter()
        .fold(builder, |builder, file| builder.with_src(folder.join("src").join(file)));
    let mut header = Vec::new();
    builder.generate().unwrap().write(&mut header);
    String::from_utf8(header).unwrap()
}

#[test]
fn committed_header_is_up_to_date() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(COMMITTED);
    let generated = generated();
    if std::env::var_os(REGENERATE).is_some() {
        fs::write(&path, &generated).unwrap();
    }
    let committed = fs::read_to_string(&path).unwrap_or_default();
    assert!(
        committed == generated,
        "crates/clock-c/{COMMITTED} is out of date; regenerate it with: \
         {REGENERATE}=1 cargo test -p wirestamp-clock-c --test header"
    );
}
