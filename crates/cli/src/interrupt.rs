//! Signal handling: Ctrl-C ends a command cleanly, with its summary.

use std::thread;

use anyhow::Context;
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use wirestamp_capture::Stop;

/// Returns a stop that SIGINT or SIGTERM requests. A second signal ends the process at once.
pub(crate) fn stop_on_signal() -> anyhow::Result<Stop> {
    let stop = Stop::new().context("cannot create the stop event")?;
    let mut signals = Signals::new([SIGINT, SIGTERM]).context("cannot handle signals")?;
    let requested = stop.clone();
    thread::Builder::new()
        .name("ws-signals".into())
        .spawn(move || {
            for signal in signals.forever() {
                if requested.is_requested() {
                    std::process::exit(128 + signal);
                }
                requested.request();
            }
        })
        .context("cannot start a thread")?;
    Ok(stop)
}
