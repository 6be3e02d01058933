//! The built binary, as people and scripts run it: on real packets in namespaces, and beside other programs.
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
mod flows;
mod layers;
#[cfg(feature = "mesh")]
mod mesh;
mod real_rtp;
mod restamp;
mod scraping;
mod send;
mod stamp;
#[cfg(feature = "studies")]
mod studies;
mod tune;
