//! `wirestamp flows`.

mod files;
mod interfaces;
mod iperf3;
mod plain_ip;
mod rtcp;
mod tunnels;
