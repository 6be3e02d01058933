//! `--namespace NAME`: running code in a named network namespace.

use anyhow::Context;
use wirestamp_sys::netns::Netns;

/// Runs `work` in the named namespace, or in the current one for none.
pub(crate) fn enter<T: Send>(
    name: Option<&str>,
    work: impl FnOnce() -> T + Send,
) -> anyhow::Result<T> {
    match name {
        None => Ok(work()),
        Some(name) => Netns::open(name)?
            .run(work)
            .with_context(|| format!("cannot enter the namespace {name}")),
    }
}
