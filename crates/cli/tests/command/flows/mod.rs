//! `wirestamp flows`.

mod files;
mod iperf3;
mod tunnels;
