//! The C library: `wirestamp_clock` behind functions that C can call.
//!
//! Its documentation is the header, `include/wirestamp_clock.h`, which is generated from this
//! source: the comments on public items are written for C, and the text at the top of the header
//! is in `cbindgen.toml`. No panic leaves a function, and every pointer is checked for null.
//!
//! A pointer that may be null is an `Option` of a reference here, so that little is left unsafe.
//! The references are sound as far as C keeps to the header: a pointer that is not null points to
//! what its type says, and a clock is not used after it was closed.
//!
//! The names that are exported unmangled begin with `wirestamp_clock_` and clash with nobody's.

mod convert;
mod error;
mod handle;

pub use convert::*;
pub use error::*;
pub use handle::*;
