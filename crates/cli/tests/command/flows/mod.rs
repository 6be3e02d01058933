//! `wirestamp flows`.

mod files;
mod iperf3;
mod plain_ip;
mod tunnels;
