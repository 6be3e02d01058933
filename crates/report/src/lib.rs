//! Reports as self-contained HTML files.
//!
//! [`html`] turns a [`Report`] into a page with its style and its figures inside: no script, no
//! font, no picture and no link is fetched from elsewhere, so the file may be mailed and kept. It
//! measures nothing and judges nothing. Every number in it was handed over, and what can be
//! computed here (shares, histograms) is computed from those numbers alone.
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
