//! The C library: `wirestamp_clock` behind functions that C can call.
//!
//! The header `include/wirestamp_clock.h` is its documentation and is generated from this source: the comments on
//! public items are written for C, and `cbindgen.toml` has the text at the top of the header. No panic unwinds into the
//! caller, and every pointer is checked for null.
//!
//! A pointer that may be null is an `Option` of a reference here, which minimises unsafe code. The references are
//! sound if the C program follows the header: a pointer that is not null points to a value of its type, and a clock
//! is not used after it was closed.
//!
//! All exported names begin with `wirestamp_clock_`, which avoids name clashes.

mod convert;
mod error;
mod handle;

pub use convert::*;
pub use error::*;
pub use handle::*;
