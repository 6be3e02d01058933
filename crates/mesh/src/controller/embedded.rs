//! The dashboard: the build of `web/`, embedded in the binary.

use std::borrow::Cow;

use rust_embed::RustEmbed;

#[derive(RustEmbed)]
#[folder = "../../web/dist"]
#[allow_missing = true]
struct Files;

/// A file of the dashboard.
#[derive(Clone, Debug)]
pub(super) struct File {
    /// Contents.
    pub(super) body: Cow<'static, [u8]>,
    /// Media type (RFC 6838).
    pub(super) kind: String,
    /// Hash of the contents, in hexadecimal.
    pub(super) fingerprint: String,
}

/// The start page.
pub(super) const PAGE: &str = "index.html";

/// Page to serve when `web/` was not built, so that the Rust build needs no Node.
const STAND_IN: &str = "<!doctype html><html lang=en><title>Wirestamp</title>
<p>This wirestamp was built without its page: <code>make build-mesh</code> builds one with it.";

/// The file of a name.
pub(super) fn file(name: &str) -> Option<File> {
    // Names that begin with a dot are git's.
    let Some(found) = Files::get(name).filter(|_| !name.starts_with('.')) else {
        return (name == PAGE).then(stand_in);
    };
    let kind = found.metadata.mimetype().to_owned();
    let digits = found.metadata.sha256_hash().map(|byte| format!("{byte:02x}"));
    Some(File { body: found.data, kind, fingerprint: digits.concat() })
}

fn stand_in() -> File {
    let body = Cow::Borrowed(STAND_IN.as_bytes());
    File { body, kind: "text/html".to_owned(), fingerprint: "0".to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn page_exists_whether_built_or_not() {
        for page in [file(PAGE).unwrap(), stand_in()] {
            assert!(String::from_utf8_lossy(&page.body).contains("Wirestamp"));
            assert_eq!(page.kind, "text/html");
            assert!(!page.fingerprint.is_empty());
        }
        for none in ["", "nothing", "../Cargo.toml", ".gitignore", "/etc/passwd"] {
            assert!(file(none).is_none(), "{none}");
        }
    }
}
