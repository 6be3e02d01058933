//! Memory that a virtual machine has given back to its host.

use std::fs;

/// File with the order of the blocks of free memory that are given back: 2^order pages
/// (mm/page_reporting.c in the kernel's source). Without a driver that does so, the max number.
const ORDER: &str = "/sys/module/page_reporting/parameters/page_reporting_order";
/// Order of the largest blocks of free memory (`MAX_PAGE_ORDER`).
const LARGEST: u32 = 10;

/// A warning if the host has to provide memory again, page by page, when files are written. That can
/// take ten times as long as writing a page, and counts as time of the writing process.
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
