//! `wirestamp flows`.

mod files;
mod iperf3;
