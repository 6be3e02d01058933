//! Test beds with names, which exist until they are removed.

use crate::{Impairments, LabError, Netns, PathLab};

/// Default prefix of the namespaces' names.
pub const PREFIX: &str = "wirestamp";

/// The names of a bed's namespaces: source, router, sink.
pub(crate) fn names(prefix: &str) -> [String; 3] {
    ["source", "router", "sink"].map(|role| format!("{prefix}-{role}"))
}

/// Builds a bed whose namespaces are named `PREFIX-source`, `PREFIX-router` and `PREFIX-sink`.
/// It exists until [`down`], also after this process has ended. An existing bed with this prefix,
/// complete or incomplete, is removed first.
///
/// # Errors
/// [`LabError`] as for [`PathLab::new`], or when a name cannot be created; no name remains then.
pub fn up(prefix: &str, impairments: &Impairments) -> Result<PathLab, LabError> {
    down(prefix)?;
    let lab = PathLab::new(impairments)?;
    let named = publish(&lab, prefix);
    if named.is_err() {
        down(prefix)?;
    }
    named.map(|()| lab)
}

fn publish(lab: &PathLab, prefix: &str) -> Result<(), LabError> {
    let roles = [lab.source(), lab.router(), lab.sink()];
    roles.into_iter().zip(names(prefix)).try_for_each(|(netns, name)| Ok(netns.publish(&name)?))
}

/// Removes the bed `prefix`, also an incomplete one, and returns the removed names. A namespace with
/// a process in it loses its name now, and is removed when the process ends.
///
/// # Errors
/// [`LabError`] when a name exists and cannot be removed.
pub fn down(prefix: &str) -> Result<Vec<String>, LabError> {
    let mut removed = Vec::new();
    for name in names(prefix) {
        if Netns::unpublish(&name)? {
            removed.push(name);
        }
    }
    Ok(removed)
}
