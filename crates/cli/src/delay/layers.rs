//! `delay --layers`: the time of packets in this host's layers behind the second point.

use std::panic::resume_unwind;
use std::thread;
use std::time::Duration;

use wirestamp_capture::layers::{Config, Direction, Layers};
use wirestamp_capture::{Error, Limit, Method, Stop};
use wirestamp_clock::ClockService;

use super::arguments::Arguments;
use crate::layers::{Document, follow};
use crate::output::Output;
use crate::target::Target;
use crate::usage::usage;

/// Opens the layer measurement at the second point, with `--layers`.
pub(super) fn open(
    arguments: &Arguments,
    method: Method,
    clock: &ClockService,
    output: Output,
) -> anyhow::Result<Option<Layers>> {
    if !arguments.live.layers {
        return Ok(None);
    }
    if method == Method::Xdp {
        return Err(usage(
            "--layers: --method xdp redirects packets, so that none reaches the layers of this host; \
             use xdp-pass",
        ));
    }
    let target: Target = arguments.b.parse().map_err(|reason: String| usage(reason))?;
    let config = Config {
        interface: target.interface.clone(),
        direction: Direction::In,
        filter: arguments.filter.clone(),
        limit: Limit { packets: None, duration: None::<Duration> },
    };
    let layers = target.enter(|| Layers::open(config, clock))??;
    layers.facts().notes.iter().for_each(|note| output.remark(note));
    Ok(Some(layers))
}

/// Measures layers while `measure` runs, which ends when the stop is requested.
pub(super) fn during<T>(
    layers: Option<Layers>,
    stop: &Stop,
    measure: impl FnOnce() -> T,
) -> (T, Result<Option<Document>, Error>) {
    thread::scope(|scope| {
        let following = layers.map(|layers| {
            scope.spawn(|| {
                let (document, outcome) = follow(layers, stop, |_, _| Ok(()));
                // If it failed, the captures must not wait for Ctrl-C.
                stop.request();
                outcome.map(|()| document)
            })
        });
        let measured = measure();
        stop.request();
        let document = following.map(|it| it.join().unwrap_or_else(|panic| resume_unwind(panic)));
        (measured, document.transpose())
    })
}
