//! The tests that run inside the virtual machine. `vm/README.md` says how they get there.
//!
//! Emulation keeps order, domains, counts and choices, and these are tested. It keeps no time: what
//! is asserted of durations has room for a machine that stands still now and then.

mod choice;
mod kmod;
mod methods;
mod netem;
mod timers;
mod tools;
mod traffic;
