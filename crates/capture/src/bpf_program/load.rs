//! Opens and loads the object files of BPF programs.

use std::mem::MaybeUninit;

use libbpf_rs::skel::{OpenSkel, SkelBuilder};
use libbpf_rs::{ErrorKind, OpenObject};

use super::with_filter;
use crate::Error;
use crate::filter::Filter;

/// Opens an object file.
pub(crate) fn opened<'o, B: SkelBuilder<'o>>(
    builder: B,
    object: &'o mut MaybeUninit<OpenObject>,
) -> libbpf_rs::Result<B::Output> {
    // libbpf's own log lines would mix with the output; its error codes are sufficient.
    libbpf_rs::set_print(None);
    builder.open(object)
}

/// Loads the chosen programs of an object file. A load error with a `filter` is attributed to the filter.
pub(crate) fn loaded<'o, O: OpenSkel<'o>>(
    open: O,
    filter: Option<&Filter>,
    refused: impl Fn(libbpf_rs::Error) -> Error,
) -> Result<O::Output, Error> {
    open.load().map_err(|error| match filter {
        Some(_) => with_filter::refused(&error),
        None => refused(error),
    })
}

/// Whether the cause is lack of privileges. The verifier also reports "permission denied", which sudo does not
/// solve.
pub(crate) fn lacks_privileges(error: &libbpf_rs::Error) -> bool {
    error.kind() == ErrorKind::PermissionDenied && !rustix::process::geteuid().is_root()
}
