//! Where packets can be lost, they are counted: each stage is overloaded in turn, and the ledger is
//! held against a sender that counts. What an interface drops itself is in `crates/traffic`, which
//! has a sender fast enough for that.

mod bed;
mod consumer;
mod endpoint;
mod hostile;
mod kernel;
mod missed;
