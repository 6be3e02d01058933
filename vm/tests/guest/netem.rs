//! netem's configured impairments against the results of `delay` between two interfaces.

use std::time::{Duration, Instant};

use serde_json::Value;
use wirestamp_lab::{Impairments, PathLab, SINK_V4, SOURCE_INTERFACE, TAP_A, TAP_B};

use crate::tools::{finished, json, listening, run, wirestamp};

/// Prefix of the bed's namespaces.
const PREFIX: &str = "netem";
/// The router's interface to the sink, as the bed names it.
const EGRESS: &str = "bottleneck";
/// Timeout far above netem's delays, also by an emulated clock.
const DRAIN_TIMEOUT: Duration = Duration::from_secs(60);
const MS: f64 = 1e6;

/// A bed whose bottleneck is replaced by netem.
struct Bed(PathLab);

/// Results of one run.
struct Run {
    /// Packets sent, as `send` reports.
    sent: u64,
    /// Packets passed and dropped, as netem reports.
    passed: u64,
    dropped: u64,
    /// Result of `delay`.
    found: Value,
}

impl Bed {
    fn with(netem: &str) -> Self {
        let lab = wirestamp_lab::up(PREFIX, &Impairments::bottleneck(100_000_000, 100_000));
        let bed = Self(lab.unwrap());
        let line = ["qdisc", "replace", "dev", EGRESS, "root", "netem", "limit", "10000"];
        let arguments = line.into_iter().chain(netem.split(' '));
        finished("tc", bed.0.router().command("tc").args(arguments).output().unwrap());
        bed
    }

    /// Sends `count` packets while `delay` captures and compares both taps.
    fn run(&self, count: u32, interval: &str) -> Run {
        let delay = listening(&["delay", &at(TAP_A, "router"), &at(TAP_B, "sink"), "--json"]);
        let (to, count) = (SINK_V4.to_string(), count.to_string());
        let out = at(SOURCE_INTERFACE, "source");
        let send = ["send", "-i", &out, "--to", &to, "--pattern", "free", "--size", "200"];
        let sent =
            wirestamp(&[&send[..], &["--interval", interval, "-c", &count, "--json"]].concat());
        let netem = self.drained();
        run("kill", &["-INT", &delay.id().to_string()]);
        let found = json(&finished("wirestamp delay", delay.wait_with_output().unwrap()));
        assert_eq!(found["capture_dropped"], json("[0, 0]"), "the captures lost packets");
        assert_eq!(found["sent"], sent["sent"], "tap A is before netem: {found:#}");
        let count = |name: &str| netem[name].as_u64().unwrap();
        let sent = sent["sent"].as_u64().unwrap();
        Run { sent, passed: count("packets"), dropped: count("drops"), found }
    }

    /// netem's own counts, after it has released all packets.
    fn drained(&self) -> Value {
        let begun = Instant::now();
        loop {
            let mut tc = self.0.router().command("tc");
            let output = tc.args(["-s", "-j", "qdisc", "show", "dev", EGRESS]).output().unwrap();
            let counts = json(&finished("tc", output))[0].take();
            assert_eq!(counts["kind"], "netem");
            if counts["qlen"] == 0 {
                return counts;
            }
            assert!(begun.elapsed() < DRAIN_TIMEOUT, "netem keeps packets: {counts}");
        }
    }
}

impl Drop for Bed {
    fn drop(&mut self) {
        wirestamp_lab::down(PREFIX).unwrap();
    }
}

impl Run {
    fn count(&self, name: &str) -> u64 {
        self.found[name].as_u64().unwrap()
    }

    /// A figure of the one-way delay in milliseconds.
    fn delay_ms(&self, figure: &str) -> f64 {
        self.found["owd_ns"][figure].as_f64().unwrap() / MS
    }

    /// Clock error of a delay, in milliseconds.
    fn error_ms(&self) -> f64 {
        self.found["clock_error_ns"].as_f64().unwrap() / MS
    }
}

fn at(interface: &str, role: &str) -> String {
    format!("{interface}@{PREFIX}-{role}")
}

#[test]
fn bed_is_silent_on_this_kernel() {
    let bed = Bed::with("delay 1ms");
    for netns in [bed.0.source(), bed.0.router(), bed.0.sink()] {
        let mut ip = netns.command("ip");
        let output = ip.args(["-6", "address", "show", "scope", "link"]).output().unwrap();
        assert_eq!(finished("ip", output), "", "who has a link-local address looks for routers");
    }
}

#[test]
fn constant_delay_is_measured_alone() {
    let run = Bed::with("delay 30ms").run(200, "5ms");
    let [least, median] = ["min", "p50"].map(|figure| run.delay_ms(figure));
    assert!(least > 30.0 - run.error_ms(), "netem holds each packet for 30 ms, not {least}");
    assert!(median < 60.0, "half of the packets took more than {median} ms");
    assert_eq!(run.count("matched"), run.sent);
    assert_eq!(["lost", "duplicated", "reordered"].map(|name| run.count(name)), [0; 3]);
}

#[test]
fn jitter_has_the_configured_width() {
    // Evenly from 20 to 40 ms: a standard deviation of 20 ms / sqrt(12) = 5.8 ms.
    let run = Bed::with("delay 30ms 10ms").run(400, "4ms");
    let [least, mean, deviation] = ["min", "mean", "stddev"].map(|figure| run.delay_ms(figure));
    assert!(least > 20.0 - run.error_ms() && least < 30.0, "the shortest delay is {least} ms");
    assert!(mean > 27.0 && mean < 60.0, "the mean delay is {mean} ms");
    assert!(deviation > 4.5, "the delays deviate by {deviation} ms");
    assert_eq!(run.count("matched"), run.sent);
    assert!(run.found["ipdv_ns"]["max"].as_f64().unwrap() > 5.0 * MS, "{:#}", run.found);
}

#[test]
fn exactly_the_packets_dropped_by_netem_are_lost() {
    let run = Bed::with("delay 5ms loss 20%").run(1000, "1ms");
    assert_eq!(run.count("lost"), run.dropped);
    assert_eq!(run.count("matched"), run.sent - run.dropped);
    // 200 ± 5 standard deviations of the binomial distribution.
    assert!((137..=263).contains(&run.dropped), "{} of 1000 at 20 %", run.dropped);
}

#[test]
fn duplicates_of_netem_are_counted() {
    let run = Bed::with("delay 5ms duplicate 10%").run(1000, "1ms");
    assert_eq!(run.count("duplicated"), run.passed - run.sent);
    assert_eq!((run.count("matched"), run.count("lost")), (run.sent, 0));
    assert!((53..=147).contains(&run.count("duplicated")), "{} of 1000", run.count("duplicated"));
}

#[test]
fn overtaken_packets_are_reordered() {
    // Every tenth packet goes at once and arrives before the one that left 10 ms before it and
    // takes 15 ms, but after those that left earlier.
    let run = Bed::with("delay 15ms reorder 100% gap 10").run(300, "10ms");
    assert_eq!((run.count("matched"), run.count("lost")), (run.sent, 0));
    let reordered = run.count("reordered");
    assert!((20..=45).contains(&reordered), "{reordered} of 300, where 30 are overtaken");
    assert!(run.delay_ms("min") < 15.0, "no packet went at once");
}
