//! The steps that measurements with one and with two interfaces share.

use anyhow::bail;
use wirestamp_capture::{Capture, Config, Cores, Error, Limit};
use wirestamp_clock::ClockService;
use wirestamp_metrics::{self as metrics, FlowTable};
use wirestamp_session::{OutcomeRecorder, PairSession, PointState, TapReport};

use super::super::arguments::Arguments;
use super::super::clocks::Clocks;
use super::super::match_option::Matching;
use super::super::result::DelayResult;
use super::super::round_trip::RoundTrips;
use super::super::rtp::RtpStreams;
use crate::capture::{Direction, show_calibration, with_sent_packets};
use crate::output::Output;
use crate::target::Target;
use crate::usage::usage;

/// Prints the notes of the open captures.
pub(super) fn announce<'a>(
    captures: impl IntoIterator<Item = &'a Capture>,
    clock: &ClockService,
    output: Output,
) {
    for capture in captures {
        capture.facts().notes.iter().for_each(|note| output.remark(note));
    }
    output.remark("measuring; Ctrl-C ends it");
    show_calibration(output, clock);
}

pub(super) fn open(
    arguments: &Arguments,
    name: &str,
    cores: Option<Cores>,
    limit: Limit,
    clock: &ClockService,
) -> anyhow::Result<Capture> {
    let target: Target = name.parse().map_err(|reason: String| usage(reason))?;
    let (method, stamp) = arguments.live.pair()?;
    let config = Config {
        filter: arguments.filter.clone(),
        direction: arguments.live.direction.unwrap_or(Direction::In).into(),
        lanes: vec![cores.unwrap_or_default()],
        limit,
        ..Config::new(&target.interface, method, stamp)
    };
    match target.enter(|| Capture::open(config, clock))? {
        Err(Error::NoSuchInterface(_)) => {
            bail!("{name} is neither a file nor an interface; list the interfaces with `ip link`")
        }
        opened => Ok(opened?),
    }
}

/// A hint if no packet was captured on the interface `name`.
pub(super) fn no_packets_hint(
    arguments: &Arguments,
    flows: &FlowTable,
    name: &str,
) -> Option<String> {
    let sent = flows.total().counts().sent;
    (sent == 0 && matches!(arguments.live.direction, None | Some(Direction::In))).then(|| {
        format!(
            "no packet was received on {name}; if packets are sent from there, add {}",
            with_sent_packets(arguments.live.method())
        )
    })
}

/// A session that records in `recorder`. With `--match auto` it tries all rules.
pub(super) fn pair_session<R: OutcomeRecorder + Send>(
    arguments: &Arguments,
    correlation: metrics::Config,
    recorder: R,
) -> PairSession<R> {
    let session = PairSession::new(correlation, recorder).with_state(&arguments.point_state());
    if arguments.matching == Matching::Auto { session.with_trial() } else { session }
}

pub(super) fn result(
    arguments: &Arguments,
    flows: FlowTable,
    (taps, mut points): (Vec<TapReport>, [PointState; 2]),
    clocks: Clocks,
) -> DelayResult {
    DelayResult {
        flows,
        clocks,
        codec: arguments.codec,
        sampling: arguments.sample.clone(),
        media: RtpStreams::of_points(&mut points),
        round_trips: RoundTrips::of_points(&mut points),
        points,
        lost_outside_capture: 0,
        capture_dropped: [0, 1].map(|point| taps.get(point).map(|tap| tap.ledger.lost())),
        undated: [0; 2],
        stamped_earlier: [0; 2],
        taps,
        layers: None,
        remarks: Vec::new(),
        unknown_loss: None,
        changed_flows: None,
        has_tried_rules: false,
        rows_error: None,
        seconds: None,
    }
}
