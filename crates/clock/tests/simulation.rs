//! Accuracy as numeric limits, with simulated clocks in and conversion errors out.
//!
//! Each scenario runs with a thousand seeds and prints what it found, a line for each way of
//! conversion; `cargo test -p wirestamp-clock --test simulation -- --show-output` shows them.

mod machine;
mod scenarios;
