//! One run: a test of the path, with captures at both ends of it.

use std::net::SocketAddr;
use std::thread;
use std::time::Duration;

use anyhow::Context;
use wirestamp_active::reflector::{ReflectorCounts, Server};
use wirestamp_active::sender::{
    PacketFormat, PacketSchedule, ReceivedAnswer, Sender, TestConfig, TestReport,
};
use wirestamp_capture::{Capture, Config, Method, StampSource, Stop};
use wirestamp_clock::{ClockService, Span};
use wirestamp_lab::{Netns, PathLab, SINK_V6, TAP_A, TAP_B};
use wirestamp_metrics::{self as metrics, Point};

use super::measured::{Active, Measured, Passive};
use super::setting::Setting;
use crate::passive_delay::{Bottleneck, capture_point, join};
use wirestamp_session::PairSession;

/// Ethernet and IPv6 headers, and the check sequence that interfaces do not show.
const BELOW: u16 = 14 + 40 + 4;
const UDP_HEADER: u16 = 8;
/// Timeout of an answer: three times the queueing delay of the full queue.
const TIMEOUT: Span = Span::from_secs(1);

/// Runs a setting once, or until `stop` is requested.
///
/// # Errors
/// When the lab, a capture, the sender or the reflector is not available.
pub(super) fn run(setting: Setting, clock: &ClockService, stop: &Stop) -> anyhow::Result<Measured> {
    let lab = PathLab::new(&Bottleneck::of_ethernet(setting.frame).impairments(setting.frame))?;
    let address = SocketAddr::new(SINK_V6.into(), wirestamp_active::PORT);
    let tap = |namespace: &Netns, interface: &str| {
        let filter = format!("udp dst port {}", address.port());
        let config = Config {
            filter: Some(filter),
            ..Config::new(interface, Method::Ring, StampSource::Kernel)
        };
        let open = || Capture::open(config, clock);
        anyhow::Ok(namespace.run(open).context("cannot enter the lab")??)
    };
    let taps = [(tap(lab.router(), TAP_A)?, Point::A), (tap(lab.sink(), TAP_B)?, Point::B)];
    let bind = || Server::bind(&[address], None);
    let reflector = lab.sink().run(bind).context("cannot enter the lab")??;
    let open = || Sender::open(test(setting, address));
    let sender = lab.source().run(open).context("cannot enter the lab")??;

    let mut passive = Passive::default();
    let correlation = metrics::Config { timeout: TIMEOUT, ..metrics::Config::default() };
    let session = PairSession::new(correlation, |outcome| passive.record(&outcome));
    let end = Stop::new().context("cannot make the stop event")?;
    let mut active = Active::default();
    let (report, counts, reports) = thread::scope(|scope| {
        let (session, end) = (&session, &end);
        let taps = taps.map(|(capture, point)| {
            scope.spawn(move || capture_point(session, point, capture, clock, end))
        });
        let reflector = scope.spawn(move || reflector.run(end, ()));
        let report: Result<TestReport, _> =
            sender.run(stop, |answer: &ReceivedAnswer| active.record(answer));
        end.request();
        let counts: Result<ReflectorCounts, _> = join(reflector);
        let [a, b] = taps.map(join);
        anyhow::Ok((report?, counts?, [a?, b?]))
    })?;
    session.finish();
    Ok(Measured::of(&report, counts, &active, &passive, &reports))
}

/// The bytes above IP of a frame with check sequence.
pub(super) fn above_ip(frame: u16) -> u16 {
    frame.saturating_sub(BELOW)
}

/// Options of the sender.
fn test(setting: Setting, to: SocketAddr) -> TestConfig {
    let Setting { frame, rate, packets } = setting;
    let length = usize::from(above_ip(frame).saturating_sub(UDP_HEADER));
    let format = PacketFormat { length, ..PacketFormat::default() };
    TestConfig {
        to,
        from: (std::net::Ipv6Addr::UNSPECIFIED, 0).into(),
        packets: Some(packets),
        lasting: None,
        schedule: PacketSchedule::Periodic(Duration::from_secs(1) / rate.max(1)),
        timeout: TIMEOUT,
        format,
        same_clock: true,
    }
}
