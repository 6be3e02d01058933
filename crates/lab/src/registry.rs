//! Beds with names, which stay until they are taken down.

use crate::{Impairments, LabError, Netns, PathLab};

/// What the names of a bed's namespaces begin with, unless asked otherwise.
pub const PREFIX: &str = "wirestamp";

/// The names of a bed's namespaces: source, router, sink.
pub(crate) fn names(prefix: &str) -> [String; 3] {
    ["source", "router", "sink"].map(|role| format!("{prefix}-{role}"))
}

/// Builds a bed whose namespaces are named `PREFIX-source`, `PREFIX-router` and `PREFIX-sink`.
/// It stays when this process ends, until [`down`]. One that is already there, whole or left in
/// part by something that was killed, is taken down first.
///
/// # Errors
/// [`LabError`] as for [`PathLab::new`], or when a name cannot be made; none is left then.
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

/// Takes the bed `prefix` down, also one that is there in part only, and returns the names it
/// removed: none when there was nothing. A namespace with a process in it loses its name here and
/// goes when that process ends.
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
