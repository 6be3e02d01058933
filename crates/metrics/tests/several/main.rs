//! Correlators of several points, and on several threads.

mod chain;
#[path = "../common/mod.rs"]
mod common;
mod shards;
