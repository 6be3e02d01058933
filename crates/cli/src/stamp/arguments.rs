//! The command line of `wirestamp stamp`.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, ToSocketAddrs};
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, bail};
use clap::Args;
use wirestamp_active::PORT;
use wirestamp_active::sender::{PacketFormat, PacketSchedule, SIZES, TestConfig};
use wirestamp_clock::Span;

use super::key::read_key;
use crate::files::check_outputs;
use crate::parse::{at_least_one, dscp, interval, seconds};
use crate::usage::usage;

#[derive(Args)]
#[command(after_help = "\
Run `wirestamp reflect` on the other host, or use any reflector of STAMP (RFC 8762), with --light also \
of TWAMP Light. One-way delays require two synchronised clocks. Without them, delay variation, loss and \
round-trip times are still reported.

Examples:
  wirestamp stamp 192.0.2.7                              # ten packets per second, until Ctrl-C
  wirestamp stamp probe.example.net -c 1000 -i 1ms
  wirestamp stamp '[2001:db8::7]:5000' -c 500 --poisson --size 200 --dscp 46
  wirestamp stamp 192.0.2.7 -d 60 --csv answers.csv      # a row for each packet
  wirestamp stamp 192.0.2.7 -d 60 --key-file stamp.key --json")]
pub(crate) struct Arguments {
    /// The reflector: a name or an address, with or without a port [default port: 862]
    #[arg(value_name = "HOST")]
    host: String,
    /// Use IPv4 if the name has IPv4 and IPv6 addresses
    #[arg(short = '4', conflicts_with = "ipv6")]
    ipv4: bool,
    /// Use IPv6 if the name has IPv4 and IPv6 addresses
    #[arg(short = '6')]
    ipv6: bool,
    /// End after this many packets. More may follow to request the telemetry of the last ones; they are not counted
    #[arg(short, long, value_name = "PACKETS", conflicts_with = "duration",
          allow_negative_numbers = true, value_parser = at_least_one::<u64>)]
    count: Option<u64>,
    /// End after this many seconds
    #[arg(short, long, value_name = "SECONDS", allow_negative_numbers = true,
          value_parser = seconds)]
    duration: Option<f64>,
    /// Interval between packets, such as 20ms or 50us
    #[arg(short, long, value_name = "TIME", default_value = "100ms", value_parser = interval)]
    interval: Span,
    /// Random intervals (Poisson) with --interval as their mean (RFC 2330)
    #[arg(long)]
    poisson: bool,
    /// UDP payload in bytes; the extensions need 72, a key 88 more, --dscp 8 more
    #[arg(short, long, value_name = "BYTES", allow_negative_numbers = true,
          value_parser = clap::value_parser!(u16).range(44..=65_507))]
    size: Option<u16>,
    /// Differentiated services code point (DSCP) of the packets, as a number or name such as EF, also requested for the
    /// answers
    #[arg(long, allow_negative_numbers = true, value_parser = dscp)]
    dscp: Option<u8>,
    /// Packets without an answer within this time count as lost
    #[arg(long, value_name = "TIME", default_value = "1000ms", value_parser = interval)]
    timeout: Span,
    /// Authenticate packets with the key in this file: hexadecimal digits, or any bytes
    #[arg(short, long, value_name = "FILE")]
    key_file: Option<PathBuf>,
    /// Session identifier (SSID), for reflectors that use it [default: random]
    #[arg(long, value_name = "NUMBER", allow_negative_numbers = true)]
    session: Option<u16>,
    /// Send from this address
    #[arg(long, value_name = "ADDRESS")]
    from: Option<IpAddr>,
    /// Send no extensions, for TWAMP Light reflectors
    #[arg(long, conflicts_with = "dscp")]
    light: bool,
    /// Both ends use the same clock, such as two namespaces of one host; its error to UTC is ignored
    #[arg(long)]
    same_clock: bool,
    /// Send from this network namespace
    #[arg(long, value_name = "NAME")]
    pub(super) namespace: Option<String>,
    /// Add the packets and delays of each second to the document of --json
    #[arg(long)]
    pub(super) per_second: bool,
    #[command(flatten)]
    pub(super) rows: RowArguments,
}

/// Files of the single answers.
#[derive(Args, Clone)]
pub(super) struct RowArguments {
    /// Write a row for each answer, and for each packet without one, to this file, as CSV
    #[arg(long, value_name = "FILE")]
    csv: Option<PathBuf>,
    /// The same as Parquet
    #[arg(long, value_name = "FILE")]
    parquet: Option<PathBuf>,
}

impl RowArguments {
    pub(super) fn csv(&self) -> Option<&Path> {
        self.csv.as_deref()
    }

    pub(super) fn parquet(&self) -> Option<&Path> {
        self.parquet.as_deref()
    }

    /// Rejects files that cannot be written, before the test.
    pub(super) fn check(&self) -> anyhow::Result<()> {
        check_outputs(&[("--csv", self.csv()), ("--parquet", self.parquet())], &[])
    }
}

impl Arguments {
    /// The requested test.
    pub(super) fn test(self) -> anyhow::Result<TestConfig> {
        let to = self.resolve()?;
        let any = match to {
            SocketAddr::V4(_) => IpAddr::V4(Ipv4Addr::UNSPECIFIED),
            SocketAddr::V6(_) => IpAddr::V6(Ipv6Addr::UNSPECIFIED),
        };
        let from = self.from.unwrap_or(any);
        if self.timeout <= Span::ZERO {
            bail!(usage("--timeout must be above 0"));
        }
        if from.is_ipv4() != to.is_ipv4() {
            bail!(usage(format!("--from {from} and {} have different address families", to.ip())));
        }
        let mean = Duration::from_nanos(u64::try_from(self.interval.as_nanos()).unwrap_or(0));
        Ok(TestConfig {
            to,
            from: SocketAddr::new(from, 0),
            packets: self.count,
            lasting: self.duration.map(Duration::from_secs_f64),
            schedule: if self.poisson {
                PacketSchedule::Poisson(mean)
            } else {
                PacketSchedule::Periodic(mean)
            },
            timeout: self.timeout,
            format: PacketFormat {
                key: self.key_file.as_deref().map(read_key).transpose()?,
                // Random: the reflector may still count packets of an earlier test with the same number.
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
        let family = if self.ipv4 { "IPv4" } else { "IPv6" };
        if let Ok(address) = host.parse::<IpAddr>() {
            let address = SocketAddr::new(address.to_canonical(), PORT);
            if !wanted(&address) {
                bail!(usage(format!("{host} is not an {family} address")));
            }
            return Ok(address);
        }
        let found = if host.parse::<SocketAddr>().is_ok() || has_port(host) {
            host.to_socket_addrs()
        } else {
            (host.as_str(), PORT).to_socket_addrs()
        };
        let found = found.with_context(|| format!("cannot resolve {host}"))?;
        found.into_iter().find(wanted).with_context(|| format!("{host} has no {family} address"))
    }
}

/// Whether the host is a name with a port.
fn has_port(host: &str) -> bool {
    host.rsplit_once(':').is_some_and(|(name, port)| {
        !name.is_empty() && !name.contains(':') && port.parse::<u16>().is_ok()
    })
}
