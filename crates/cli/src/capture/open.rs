//! Opening of captures.

use std::time::Duration;

use wirestamp_capture::{Capture, Config, Error, Stop};
use wirestamp_clock::ClockService;

use super::Arguments;
use crate::output::Output;
use crate::target::Target;

/// Interval of checks whether the interface is up.
const INTERFACE_INTERVAL: Duration = Duration::from_millis(200);

/// Opens the capture, with --wait-for-interface as soon as that is possible.
pub(super) fn open(
    arguments: &Arguments,
    target: &Target,
    config: &Config,
    clock: &ClockService,
    stop: &Stop,
    output: Output,
) -> anyhow::Result<Capture> {
    if arguments.wait_for_interface {
        open_when_up(target, config, clock, stop, output)
    } else {
        target.query(|| Capture::open(config.clone(), clock))
    }
}

/// Opens the capture as soon as its interface exists and is up, or fails when the stop is requested before.
fn open_when_up(
    target: &Target,
    config: &Config,
    clock: &ClockService,
    stop: &Stop,
    output: Output,
) -> anyhow::Result<Capture> {
    let mut is_reported = false;
    loop {
        let opened = target.enter(|| Capture::open(config.clone(), clock))?;
        match opened {
            Err(error @ (Error::NoSuchInterface(_) | Error::Unusable { .. }))
                if !stop.is_requested() =>
            {
                if !is_reported {
                    output.remark(format_args!("waiting: {error}"));
                    is_reported = true;
                }
                stop.wait(INTERFACE_INTERVAL);
            }
            opened => return Ok(opened?),
        }
    }
}
