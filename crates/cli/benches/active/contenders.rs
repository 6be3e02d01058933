//! The compared programs: commands as in their manuals, and output formats.

use std::net::Ipv4Addr;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, ensure};
use serde::Serialize;
use serde_json::Value;
use wirestamp_lab::Netns;
use wirestamp_studies::tester::Tool;

/// Where `tools/setup-active` installs the peers.
const SUITE: &str =
    concat!(env!("CARGO_MANIFEST_DIR"), "/../../target/tools/stamp-suite-1/bin/stamp-suite");
const IRTT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../target/tools/irtt/irtt");

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Contender {
    Wirestamp,
    StampSuite,
    Irtt,
}

/// Namespaces of sender and reflector, and address of the reflector.
#[derive(Clone, Copy)]
pub(crate) struct Ends<'a> {
    pub(crate) sender: &'a Netns,
    pub(crate) reflector: &'a Netns,
    pub(crate) address: Ipv4Addr,
}

/// The delays that a sender reports for a test, in nanoseconds.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ReportedDelays {
    pub(crate) round_trip: Figures,
    pub(crate) there: Option<Figures>,
    pub(crate) back: Option<Figures>,
}

/// A mean and a median in nanoseconds.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Figures {
    pub(crate) mean: f64,
    pub(crate) median: f64,
}

impl Contender {
    pub(crate) const ALL: [Self; 3] = [Self::Wirestamp, Self::StampSuite, Self::Irtt];

    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Wirestamp => "wirestamp",
            Self::StampSuite => "stamp-suite",
            Self::Irtt => "irtt",
        }
    }

    pub(crate) const fn port(self) -> u16 {
        match self {
            Self::Wirestamp | Self::StampSuite => 862,
            Self::Irtt => 2112,
        }
    }

    /// Bytes of UDP payload of its test packets: the program's default, if it has one. Packets that open and close
    /// a session have another length.
    pub(crate) const fn payload(self) -> u16 {
        match self {
            Self::Wirestamp => 116,
            Self::StampSuite => 64,
            Self::Irtt => 60,
        }
    }

    /// Whether its round-trip time contains the reflector's processing time.
    pub(crate) const fn counts_the_reflector(self) -> bool {
        matches!(self, Self::StampSuite)
    }

    const fn program(self) -> &'static str {
        match self {
            Self::Wirestamp => env!("CARGO_BIN_EXE_wirestamp"),
            Self::StampSuite => SUITE,
            Self::Irtt => IRTT,
        }
    }

    /// Starts its reflector, and waits until it listens. It is killed when it is dropped.
    pub(crate) fn reflect(self, ends: Ends<'_>) -> anyhow::Result<Tool> {
        let (mut command, address) = (ends.reflector.command(self.program()), ends.address);
        let (arguments, announcement) = match self {
            Self::Wirestamp => {
                (format!("reflect --listen {address} --max-rate 1000000000"), "reflecting at")
            }
            Self::StampSuite => {
                // It reports the actual send time of an answer only if it counts answers.
                let arguments =
                    format!("-i -S {address} --clock-synchronized --stateful-reflector");
                (arguments, "Reflector listening on")
            }
            // Without `-i 0`, its server answers at most a hundred packets a second of a client.
            Self::Irtt => (format!("server -b {address} -i 0"), "starting IPv4 listener"),
        };
        command.args(arguments.split(' '));
        Tool::start(self.name(), &mut command, announcement, Duration::ZERO)
    }

    /// The command of its sender, for this number of packets with this interval.
    pub(crate) fn sender(self, ends: Ends<'_>, interval: Duration, packets: u32) -> Command {
        let (micros, payload) = (interval.as_micros(), self.payload());
        let (mut command, address) = (ends.sender.command(self.program()), ends.address);
        let arguments = match self {
            Self::Wirestamp => format!(
                "stamp {address} --json --same-clock --size {payload} -i {micros}us -c {packets}"
            ),
            Self::StampSuite => format!(
                "-r {address} -o 0 --clock-synchronized --follow-up-telemetry --output-format json \
                 -L 1 --send-delay {micros}us -c {packets}"
            ),
            Self::Irtt => {
                // It has a duration, not a count. The first packet is sent at once, so one interval less suffices.
                let lasting = (interval * packets).saturating_sub(interval / 2).as_nanos();
                format!("client -Q -o - -l {payload} -i {micros}us -d {lasting}ns {address}")
            }
        };
        command.args(arguments.split_whitespace());
        command
    }

    /// Final output of its sender.
    pub(crate) fn reported(self, printed: &str) -> anyhow::Result<ReportedDelays> {
        let of = |document: &Value, path: &str, mean: &str, median: &str, unit: f64| {
            let figure = |name| document.pointer(&format!("{path}{name}"))?.as_f64();
            Some(Figures { mean: figure(mean)? * unit, median: figure(median)? * unit })
        };
        let found = match self {
            Self::Wirestamp => {
                let document: Value = serde_json::from_str(printed)?;
                let one = |path| of(&document, path, "/mean", "/p50", 1.0);
                [one("/round_trip_ns"), one("/there/owd_ns"), one("/back/owd_ns")]
            }
            Self::StampSuite => {
                let summary = printed.lines().find(|line| line.starts_with('{'));
                let document: Value = serde_json::from_str(summary.context("no summary")?)?;
                let one = |mean, median| of(&document, "/", mean, median, 1e6);
                // The actual send time of an answer is reported with the next one, and only as a mean.
                let back = document.pointer("/measurements/follow_up/reverse_delay/avg_ms");
                let back = back.and_then(Value::as_f64).map(|mean| mean * 1e6);
                [
                    one("avg_rtt_ms", "median_rtt_ms"),
                    of(&document, "/owd/", "forward_avg_ms", "forward_median_ms", 1e6),
                    back.map(|mean| Figures { mean, median: f64::NAN }),
                ]
            }
            Self::Irtt => {
                let document: Value = serde_json::from_str(printed)?;
                ["rtt", "send_delay", "receive_delay"]
                    .map(|name| of(&document, &format!("/stats/{name}"), "/mean", "/median", 1.0))
            }
        };
        let [round_trip, there, back] = found;
        let round_trip = round_trip.with_context(|| format!("no round trip in {printed:.300}"))?;
        Ok(ReportedDelays { round_trip, there, back })
    }
}

/// Fails if a peer is not installed.
pub(crate) fn check() -> anyhow::Result<()> {
    for program in [SUITE, IRTT] {
        ensure!(
            Path::new(program).exists(),
            "{program} is missing: `tools/setup-active` installs it"
        );
    }
    Ok(())
}
