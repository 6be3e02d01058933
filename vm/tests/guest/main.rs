//! The tests that run inside the virtual machine. `vm/README.md` says how they get there.
//!
//! Emulation preserves order, domains, counts and choices, which are tested. It does not preserve time: assertions
//! about durations tolerate a machine that stops sometimes.

mod choice;
mod exact_time;
mod kmod;
mod methods;
mod netem;
mod timers;
mod tools;
mod traffic;
