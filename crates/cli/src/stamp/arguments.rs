//! What the command line may say.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, ToSocketAddrs};
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, bail};
use clap::Args;
use wirestamp_active::PORT;
use wirestamp_active::sender::{Form, Rhythm, SIZES, Test};
use wirestamp_clock::Span;

use super::key::read_key;
use crate::clock::seconds;
use crate::numbers::at_least_one;
use crate::send::interval;
use crate::usage::usage;

#[derive(Args)]
#[command(after_help = "\
`wirestamp reflect` answers on the other host; so do routers and probes that speak STAMP (RFC 8762), and
with --light those of TWAMP Light. One-way delays take two synchronised clocks: where one is not, they are
not given, and delay variation, losses and round trips are.

Examples:
  wirestamp stamp 192.0.2.7                              # ten a second, until Ctrl-C
  wirestamp stamp probe.example.net -c 1000 -i 1ms
  wirestamp stamp '[2001:db8::7]:5000' -c 500 --poisson --size 200 --dscp 46
  wirestamp stamp 192.0.2.7 -d 60 --key-file stamp.key --json")]
pub(crate) struct Arguments {
    /// The reflector: a name or an address, with or without a port [default port: 862]
    #[arg(value_name = "HOST")]
    host: String,
    /// Use IPv4 where a name has both
    #[arg(short = '4', conflicts_with = "ipv6")]
    ipv4: bool,
    /// Use IPv6 where a name has both
    #[arg(short = '6')]
    ipv6: bool,
    /// End after so many packets
    #[arg(short, long, value_name = "PACKETS", conflicts_with = "duration",
          allow_negative_numbers = true, value_parser = at_least_one::<u64>)]
    count: Option<u64>,
    /// End after so many seconds
    #[arg(short, long, value_name = "SECONDS", allow_negative_numbers = true,
          value_parser = seconds)]
    duration: Option<f64>,
    /// The time from packet to packet, such as 20ms or 50us
    #[arg(short, long, value_name = "TIME", default_value = "100ms", value_parser = interval)]
    interval: Span,
    /// Draw the times between packets at random, with the interval as their mean (RFC 2330)
    #[arg(long)]
    poisson: bool,
    /// Bytes of UDP payload; what is asked of the reflector takes 72, a key 88 more, --dscp 8
    #[arg(short, long, value_name = "BYTES", allow_negative_numbers = true,
          value_parser = clap::value_parser!(u16).range(44..=65_507))]
    size: Option<u16>,
    /// Differentiated services code point of the packets, asked for of the answers too
    #[arg(long, allow_negative_numbers = true, value_parser = clap::value_parser!(u8).range(0..=63))]
    dscp: Option<u8>,
    /// Count packets as lost whose answer takes longer
    #[arg(long, value_name = "TIME", default_value = "1000ms", value_parser = interval)]
    timeout: Span,
    /// Send and take packets with the codes of the key in this file: hexadecimal digits, or any bytes
    #[arg(short, long, value_name = "FILE")]
    key_file: Option<PathBuf>,
    /// The session's number, for reflectors that tell sessions by it [default: drawn at random]
    #[arg(long, value_name = "NUMBER", allow_negative_numbers = true)]
    session: Option<u16>,
    /// Send from this address
    #[arg(long, value_name = "ADDRESS")]
    from: Option<IpAddr>,
    /// Send no extensions, for reflectors of TWAMP Light
    #[arg(long, conflicts_with = "dscp")]
    light: bool,
    /// Both ends have the same clock, as two namespaces of one host: its distance from UTC does not count
    #[arg(long)]
    same_clock: bool,
    /// Send from this network namespace
    #[arg(long, value_name = "NAME")]
    pub(super) namespace: Option<String>,
}

impl Arguments {
    /// The test that is asked for.
    pub(super) fn test(self) -> anyhow::Result<Test> {
        let to = self.resolve()?;
        let any = match to {
            SocketAddr::V4(_) => IpAddr::V4(Ipv4Addr::UNSPECIFIED),
            SocketAddr::V6(_) => IpAddr::V6(Ipv6Addr::UNSPECIFIED),
        };
        let from = self.from.unwrap_or(any);
        if self.timeout <= Span::ZERO {
            bail!(usage("--timeout has to be above 0"));
        }
        if from.is_ipv4() != to.is_ipv4() {
            bail!(usage(format!("--from {from} and {} are not of one family", to.ip())));
        }
        let mean = Duration::from_nanos(u64::try_from(self.interval.as_nanos()).unwrap_or(0));
        Ok(Test {
            to,
            from: SocketAddr::new(from, 0),
            packets: self.count,
            lasting: self.duration.map(Duration::from_secs_f64),
            rhythm: if self.poisson { Rhythm::Poisson(mean) } else { Rhythm::Periodic(mean) },
            timeout: self.timeout,
            form: Form {
                key: self.key_file.as_deref().map(read_key).transpose()?,
                // Not that of an earlier test, whose packets the reflector has counted.
                session: self.session.unwrap_or_else(|| fastrand::u16(1..)),
                length: self.size.map_or(*SIZES.start(), usize::from),
                dscp: self.dscp,
                light: self.light,
            },
            same_clock: self.same_clock,
        })
    }

    fn resolve(&self) -> anyhow::Result<SocketAddr> {
        let host = &self.host;
        let wanted = |address: &SocketAddr| match (self.ipv4, self.ipv6) {
            (true, _) => address.is_ipv4(),
            (_, true) => address.is_ipv6(),
            _ => true,
        };
        if let Ok(address) = host.parse::<IpAddr>() {
            return Ok(SocketAddr::new(address.to_canonical(), PORT));
        }
        let found = if host.parse::<SocketAddr>().is_ok() || has_port(host) {
            host.to_socket_addrs()
        } else {
            (host.as_str(), PORT).to_socket_addrs()
        };
        let found = found.with_context(|| format!("cannot find the host {host}"))?;
        found.into_iter().find(wanted).with_context(|| {
            let family = if self.ipv4 { "IPv4" } else { "IPv6" };
            format!("{host} has no address of {family}")
        })
    }
}

/// Whether a name is followed by a port.
fn has_port(host: &str) -> bool {
    host.rsplit_once(':').is_some_and(|(name, port)| {
        !name.is_empty() && !name.contains(':') && port.parse::<u16>().is_ok()
    })
}
