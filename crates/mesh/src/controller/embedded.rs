//! The dashboard of the mesh: what was built of `web/`, in the binary.

use std::borrow::Cow;

use rust_embed::RustEmbed;

#[derive(RustEmbed)]
#[folder = "../../web/dist"]
#[allow_missing = true]
struct Files;

/// A file of the dashboard.
#[derive(Clone, Debug)]
pub(super) struct File {
    /// What is in it.
    pub(super) body: Cow<'static, [u8]>,
    /// What that is, as a media type (RFC 6838).
    pub(super) kind: String,
    /// What no other content has: hexadecimal digits.
    pub(super) fingerprint: String,
}

/// The page itself.
pub(super) const PAGE: &str = "index.html";

/// The page where it was not built, so that Rust needs no Node.
const STAND_IN: &str = "<!doctype html><html lang=en><title>Wirestamp</title>
<p>This wirestamp was built without its page: <code>make build-mesh</code> builds one with it.";

/// The file of a name, if there is one.
pub(super) fn file(name: &str) -> Option<File> {
    // What begins with a dot is for git.
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
    fn there_is_a_page_whether_it_was_built_or_not() {
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
