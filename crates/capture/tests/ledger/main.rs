//! Losses are counted: each stage is overloaded in turn, and the ledger is compared with a counting sender. Drops
//! of an interface are in `crates/traffic`, which has a sender fast enough for them.

mod bed;
mod consumer;
mod endpoint;
mod hostile;
mod kernel;
mod missed;
