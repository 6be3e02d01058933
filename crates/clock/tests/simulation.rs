//! Accuracy limits of the conversion, with simulated clocks.
//!
//! Each scenario runs with a thousand seeds and prints one line for each way of conversion; `cargo test -p
//! wirestamp-clock --test simulation -- --show-output` shows them.

mod machine;
mod scenarios;
