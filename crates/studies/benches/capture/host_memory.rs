//! Memory that a virtual machine has given back to its host.

use std::fs;

/// Free memory is given back in pieces of two to the power of this many pages (mm/page_reporting.c in
/// the kernel's source). While no driver does so it is the largest number there is.
const ORDER: &str = "/sys/module/page_reporting/parameters/page_reporting_order";
/// The largest pieces that free memory is kept in (`MAX_PAGE_ORDER`).
const LARGEST: u32 = 10;

/// A warning for a machine whose host has to bring back what files are written to, page by page: that
/// can take ten times as long as to write a page, and is counted as the writer's time.
pub(crate) fn warning() -> Option<String> {
    let order: u32 = fs::read_to_string(ORDER).ok()?.trim().parse().ok()?;
    (order < LARGEST).then(|| {
        format!(
            "This machine gives free memory back to its host, in pieces of 2^{order} pages, and writing \
             to files then costs what it takes to have it again. `echo {LARGEST} > {ORDER}` keeps \
             most of it here.\n"
        )
    })
}
