//! The flows of an interface.

use std::time::Duration;

use anyhow::bail;
use wirestamp_capture::capabilities::card_clock;
use wirestamp_capture::{Capture, Config, Cores, Error, Limit, pair};
use wirestamp_study::Recording;
use wirestamp_study::flows::{FlowTap, SharedFlows};

use super::arguments::Arguments;
use super::document::{Document, Tap};
use crate::capture::{Direction, clock, detail};
use crate::interrupt::stop_on_signal;
use crate::output::Output;
use crate::target::Target;

pub(super) fn run(
    target: &Target,
    arguments: &Arguments,
    output: Output,
) -> anyhow::Result<Document> {
    let (method, stamp) = arguments.live.pair()?;
    let pair = pair(method, stamp)?;
    let clock = clock::start(target.enter(|| card_clock(pair, &target.interface))??)?;
    let stop = stop_on_signal()?;
    let config = Config {
        filter: arguments.filter(),
        outgoing: arguments.live.direction != Some(Direction::In),
        lanes: Cores::choose(1),
        limit: Limit {
            packets: arguments.count,
            duration: arguments.live.duration.map(Duration::from_secs_f64),
        },
        ..Config::new(&target.interface, method, stamp)
    };
    let capture = match target.enter(|| Capture::open(config, &clock))? {
        Err(Error::NoSuchInterface(_)) => {
            bail!("there is no interface {}; `ip link` lists them", target.interface)
        }
        opened => opened?,
    };
    capture.facts().notes.iter().for_each(|note| output.remark(note));
    output.remark(format_args!("watching {}; Ctrl-C ends it", target.interface));
    detail(output, &clock);
    let flows = SharedFlows::new(arguments.config());
    let tap = FlowTap::new(&flows, Recording::new(&clock, pair.domain, None));
    let tap = tap.attend(capture, &stop)?;
    let document = Document::of(&flows.lock());
    Ok(Document {
        capture_dropped: tap.ledger.lost(),
        clock_error_ns: tap.figures.error_ns,
        tap: Some(Tap { tap }),
        ..document
    })
}
