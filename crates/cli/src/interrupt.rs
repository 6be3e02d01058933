//! Signal handling: Ctrl-C ends a command cleanly, with its summary, and SIGUSR1 prints its counts.

use std::{fs, thread};

use anyhow::Context;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM, SIGUSR1};
use signal_hook::iterator::Signals;
use wirestamp_capture::Stop;

/// Returns a stop that SIGINT, SIGTERM or SIGHUP requests, SIGHUP only if the process does not ignore it, as under
/// nohup(1). A second signal ends the process at once.
pub(crate) fn stop_on_signal() -> anyhow::Result<Stop> {
    let stop = Stop::new().context("cannot create the stop event")?;
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let hangup = (!is_ignored(&status, SIGHUP)).then_some(SIGHUP);
    let requested = stop.clone();
    on_signals([SIGINT, SIGTERM].into_iter().chain(hangup), move |signal| {
        if requested.is_requested() {
            std::process::exit(128 + signal);
        }
        requested.request();
    })?;
    Ok(stop)
}

/// Calls `report` on each SIGUSR1, as tcpdump(8) prints its counts.
pub(crate) fn report_on_signal(report: impl Fn() + Send + 'static) -> anyhow::Result<()> {
    on_signals([SIGUSR1], move |_| report())
}

fn on_signals(
    signals: impl IntoIterator<Item = i32>,
    handle: impl Fn(i32) + Send + 'static,
) -> anyhow::Result<()> {
    let mut signals = Signals::new(signals).context("cannot handle signals")?;
    thread::Builder::new()
        .name("ws-signals".into())
        .spawn(move || signals.forever().for_each(handle))
        .context("cannot start a thread")?;
    Ok(())
}

/// Whether a process ignores a signal, by its /proc/PID/status.
fn is_ignored(status: &str, signal: i32) -> bool {
    let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let ignored = ignored.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    ignored.is_some_and(|mask| mask & (1 << (signal - 1)) != 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ignored_signals_are_those_of_the_mask() {
        let status = "Name:\tx\nSigIgn:\t0000000000001001\nSigCgt:\t0\n";
        assert!(is_ignored(status, SIGHUP) && !is_ignored(status, SIGINT));
        assert!(!is_ignored("", SIGHUP));
    }
}
