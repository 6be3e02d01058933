//! `wirestamp reflect`.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::num::NonZeroU32;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;
use schemars::JsonSchema;
use serde::Serialize;
use wirestamp_active::PORT;
use wirestamp_active::reflector::{RateLimit, ReflectorCounts, Server};

use crate::interrupt::stop_on_signal;
use crate::output::{Output, plural};
use crate::parse::at_least_one;
use crate::stamp::key::read_key;
use crate::target::enter_namespace;

#[derive(Args)]
#[command(after_help = "\
Answers are as long as the received packets, unless the answer's fields need more. The kernel \
stamps received and sent packets. On request, an answer contains the send time of the answer before \
(RFC 8972, follow-up telemetry). TWAMP Light senders are answered too.

Examples:
  wirestamp reflect                                  # for this host only
  wirestamp reflect --listen 0.0.0.0 --listen ::     # for all hosts
  wirestamp reflect --listen 192.0.2.7:5000 --key-file stamp.key")]
pub(crate) struct Arguments {
    /// Listen on this address, with or without a port; may be repeated [default: 127.0.0.1 and ::1,
    /// port 862]
    #[arg(short, long, value_name = "ADDRESS", value_parser = listened)]
    listen: Vec<SocketAddr>,
    /// Answer only packets authenticated with the key in this file: hexadecimal digits, or any bytes
    /// (RFC 8762 section 4.4)
    #[arg(short, long, value_name = "FILE")]
    key_file: Option<PathBuf>,
    /// Answer at most this many packets a second in each session, and as many in one burst. A session
    /// is an address, port and session number of a sender. Other packets are counted [default: 100000]
    #[arg(long, value_name = "PACKETS", allow_negative_numbers = true,
          value_parser = at_least_one::<u32>)]
    max_rate: Option<u32>,
    /// Listen in this network namespace
    #[arg(long, value_name = "NAME")]
    namespace: Option<String>,
}

/// Parses an address with or without a port.
fn listened(text: &str) -> Result<SocketAddr, String> {
    let alone = text.parse::<IpAddr>().map(|address| SocketAddr::new(address, PORT));
    let address: SocketAddr = alone.or_else(|_| text.parse()).map_err(|_| {
        "expected an address such as 192.0.2.7, 192.0.2.7:862 or [2001:db8::7]:862".to_owned()
    })?;
    Ok(SocketAddr::new(address.ip().to_canonical(), address.port()))
}

pub(crate) fn run(arguments: &Arguments, output: Output) -> anyhow::Result<ExitCode> {
    let key = arguments.key_file.as_deref().map(read_key).transpose()?;
    let is_open = key.is_none();
    let stop = stop_on_signal()?;
    let bind = || match &arguments.listen[..] {
        [] => Server::bind(&own_addresses(), key),
        listen => Server::bind(listen, key),
    };
    let server = enter_namespace(arguments.namespace.as_deref(), bind)??;
    let limit = arguments.max_rate.and_then(NonZeroU32::new).map(RateLimit::per_second);
    let server = server.with_limit(limit.unwrap_or_default());
    let listening = server.addresses()?;
    let named: Vec<String> = listening.iter().map(SocketAddr::to_string).collect();
    output.remark(format!("reflecting at {}; Ctrl-C ends it", named.join(" and ")));
    if arguments.listen.is_empty() {
        output.remark("reachable from this host only; add --listen for other hosts");
    } else if is_open && listening.iter().any(|at| !at.ip().is_loopback()) {
        output.remark("answers every sender; add --key-file to require a key");
    }
    let counts = server.run(&stop, ())?;
    output.result(&Document { listening, counts }, text)?;
    Ok(ExitCode::SUCCESS)
}

/// The loopback addresses of the available address families.
fn own_addresses() -> Vec<SocketAddr> {
    let own = [IpAddr::V4(Ipv4Addr::LOCALHOST), IpAddr::V6(Ipv6Addr::LOCALHOST)];
    let own = own.map(|address| SocketAddr::new(address, PORT));
    let has = |address: &&SocketAddr| UdpSocket::bind((address.ip(), 0)).is_ok();
    let had: Vec<_> = own.iter().filter(has).copied().collect();
    // If there is none, the error names the first.
    if had.is_empty() { vec![own[0]] } else { had }
}

/// Counts of a reflector of STAMP test packets (RFC 8762).
#[derive(Serialize, JsonSchema)]
pub(crate) struct Document {
    /// Addresses and ports at which it received.
    listening: Vec<SocketAddr>,
    #[serde(flatten)]
    counts: ReflectorCounts,
}

fn text(document: &Document) -> String {
    let ReflectorCounts {
        reflected,
        not_stamp,
        forged,
        answers,
        failed,
        sessions,
        stamped_late,
        dropped,
        limited,
        ..
    } = document.counts;
    let mut text = format!(
        "{} of {} reflected\n",
        plural(reflected, "packet", "packets"),
        plural(sessions, "session", "sessions")
    );
    let mut add = |count, what: &str| {
        if count > 0 {
            text.push_str(&format!("{} {what}\n", plural(count, "packet", "packets")));
        }
    };
    add(not_stamp, "ignored: not test packets");
    add(forged, "rejected: wrong authentication code");
    add(answers, "rejected: answers of reflectors");
    add(limited, "not answered: their session exceeded --max-rate");
    add(failed, "not answered: the kernel rejected the answer");
    add(
        dropped,
        "dropped by the kernel: the buffer of the socket was full, or the checksum was wrong",
    );
    add(stamped_late, "stamped by this program instead of the kernel");
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn port_of_an_address_is_optional() {
        assert_eq!(listened("192.0.2.7"), Ok(([192, 0, 2, 7], 862).into()));
        assert_eq!(listened("[::1]:5000").unwrap().port(), 5000);
        assert_eq!(listened("::").unwrap().port(), 862);
        assert!(listened("host").is_err_and(|error| error.contains("expected an address")));
    }
}
