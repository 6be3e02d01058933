//! `wirestamp flows`.

mod files;
mod folders;
mod interfaces;
mod iperf3;
mod plain_ip;
mod rtcp;
mod several_files;
mod transport_stream;
mod tunnels;
mod video;
mod wireguard;
