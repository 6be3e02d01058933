//! Reports as self-contained HTML files.
//!
//! [`html`] renders a [`Report`] as one page that contains its style and its figures. The page loads no script, font,
//! picture or link from elsewhere, so the file can be mailed and archived. [`html`] does not measure or judge: it
//! formats the given numbers, and computes shares and histograms from these numbers alone.
//!
//! Times are nanoseconds unless a name says otherwise.

#![forbid(unsafe_code)]

pub mod axis;
mod circumstances;
mod delay;
pub mod estimate;
pub mod figures;
pub mod format;
mod histogram;
pub mod layers;
mod page;
mod report;
pub mod sheet;
mod stream;
mod table;
mod timeline;

pub use circumstances::{Circumstances, date};
pub use delay::{Call, DelayReport, Subject, verdict};
pub use page::html;
pub use report::{Check, Ledger, Report, Stream};
pub use table::Table;

#[cfg(test)]
mod tests;
