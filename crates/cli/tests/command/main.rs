//! Tests of the built binary on real packets in namespaces, and against other programs.
//!
//! All in one program, because linking one for each subject took longer than running most of them;
//! `cargo test -p wirestamp --features mesh,studies --test command delay::` runs one subject.

mod capture;
mod clock_sources;
mod commands;
mod common;
mod contract;
mod delay;
mod demo;
mod exporter;
mod flows;
mod layers;
#[cfg(feature = "mesh")]
mod mesh;
mod real_rtp;
mod restamp;
mod schema;
mod send;
mod stamp;
#[cfg(feature = "studies")]
mod studies;
mod tune;
