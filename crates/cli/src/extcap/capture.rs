//! Capture into Wireshark's pipe.

use std::fs::{File, OpenOptions};
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::thread;

use anyhow::{Context, bail};
use clap::{Args, Command, FromArgMatches};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::process::{Signal, set_parent_process_death_signal};
use wirestamp_capture::capabilities::card_clock;
use wirestamp_capture::file::{Provenance, Writer};
use wirestamp_capture::{Capture, Config, Error, Facts, Stop, pair};
use wirestamp_session::Recording;

use super::request::Request;
use crate::capture::Arguments;
use crate::clock;
use crate::interrupt::stop_on_signal;
use crate::output::to_stderr;
use crate::usage::usage;

/// Captures on `interface` into `fifo` until Wireshark closes it, sends a signal or ends.
///
/// Prints only notes for the user to standard error: Wireshark shows them as errors.
pub(super) fn run(interface: &str, fifo: &Path, request: &Request) -> anyhow::Result<ExitCode> {
    set_parent_process_death_signal(Some(Signal::TERM))
        .context("cannot request a signal at Wireshark's end")?;
    // Opened first, and open until the process ends: Wireshark reads our error when the pipe ends, and
    // waits forever if no process has opened it. Until the capture begins, a signal ends the process
    // at once.
    let pipe: &'static File = Box::leak(Box::new(open(fifo)?));
    let config = config(interface, request)?;
    let pair = pair(config.method, config.stamp)?;
    let (clock, domain) = (clock::start_service(card_clock(pair, interface)?)?, pair.domain);
    let capture = Capture::open(config, &clock)?;
    let facts = capture.facts().clone();
    facts.notes.iter().for_each(|note| to_stderr(format_args!("wirestamp: {note}")));
    let mut recording = Recording::new(
        &clock,
        domain,
        Some(writer(pipe, &facts, Provenance::now(&facts, &clock, domain))?),
    );
    let stop = stop_on_signal()?;
    stop_without_reader(pipe, stop.clone())?;
    let (ledger, outcome) = capture.run(&clock, &stop, &mut recording);
    let (_, written) = recording.finish(&ledger);
    outcome.and(written)?;
    if !ledger.balances() {
        bail!("the packet ledger does not balance: {ledger:?}");
    }
    Ok(ExitCode::SUCCESS)
}

/// The capture configuration of the dialog's options, parsed as those of `wirestamp capture`.
fn config(interface: &str, request: &Request) -> anyhow::Result<Config> {
    let fixed = ["capture", "--interface", interface].map(str::to_owned);
    let filter = request.filter.iter().flat_map(|filter| ["--".into(), filter.clone()]);
    let line = fixed.into_iter().chain(request.options.iter().cloned()).chain(filter);
    let parser = Arguments::augment_args(Command::new("capture"));
    let parsed = parser.try_get_matches_from(line);
    let arguments = parsed.and_then(|matches| Arguments::from_arg_matches(&matches));
    arguments.map_err(|error| usage(first_line(&error)))?.config_of_one(interface)
}

/// The first line of clap's error, without the usage text.
fn first_line(error: &clap::Error) -> String {
    let text = error.to_string();
    let line = text.lines().next().unwrap_or_default();
    line.trim_start_matches("error: ").to_owned()
}

/// Opens a pipe, which waits for a reader. Never creates a file: if Wireshark has removed the pipe, a file
/// in its place would grow unnoticed.
fn open(fifo: &Path) -> Result<File, Error> {
    let opened = OpenOptions::new().write(true).open(fifo);
    opened.map_err(|cause| Error::Write { path: fifo.to_owned(), cause })
}

/// Requests the stop when the pipe's reader closes it, which a capture without packets would not notice.
fn stop_without_reader(pipe: &'static File, stop: Stop) -> anyhow::Result<()> {
    let watch = move || {
        let mut watched = [PollFd::new(pipe, PollFlags::empty())];
        // Returns only on an error of the pipe: no other event is requested.
        while poll(&mut watched, None) == Err(rustix::io::Errno::INTR) {}
        stop.request();
    };
    thread::Builder::new()
        .name("ws-reader".into())
        .spawn(watch)
        .context("cannot start a thread")?;
    Ok(())
}

/// Creates a writer for the pipe by its name in /proc, which stays valid when Wireshark removes the pipe.
fn writer(pipe: &File, facts: &Facts, provenance: Provenance) -> Result<Writer, Error> {
    let path = PathBuf::from(format!("/proc/self/fd/{}", pipe.as_raw_fd()));
    Writer::create(&path, facts, provenance)
}

#[cfg(test)]
mod tests {
    use wirestamp_capture::{Method, StampSource, Wait};

    use super::*;

    fn config_of(line: &str, filter: Option<&str>) -> anyhow::Result<Config> {
        let options = line.split_whitespace().map(str::to_owned).collect();
        let filter = filter.map(str::to_owned);
        config("lo", &Request { options, filter, ..Request::default() })
    }

    #[test]
    fn dialog_options_are_capture_options() {
        let config = config_of("--method recvmsg --stamp raw --spin", Some("udp or tcp")).unwrap();
        assert_eq!((config.method, config.stamp), (Method::Recvmsg, StampSource::Raw));
        assert_eq!((config.wait, config.interface.as_str()), (Wait::Spin, "lo"));
        assert_eq!(config.filter.as_deref(), Some("udp or tcp"));
        assert_eq!(config_of("", Some("")).unwrap().filter, None);
    }

    #[test]
    fn dialog_defaults_and_bounds_are_accepted() {
        let plain = config_of("", None).unwrap();
        let parameter = |line: &str, name: &str| {
            let (_, rest) = line.split_once(&format!("{{{name}="))?;
            Some(rest.split_once('}')?.0.to_owned())
        };
        let described = super::super::dialog::options(None);
        let mut call = String::new();
        for line in described.lines() {
            call = parameter(line, "call").unwrap_or(call);
            if line.contains("boolflag") {
                config_of(&call, None).unwrap();
            } else if line.contains("default=true") {
                let value = parameter(line, "value").unwrap();
                let chosen =
                    if value.is_empty() { String::new() } else { format!("{call} {value}") };
                let config = config_of(&chosen, None).unwrap();
                assert_eq!((config.method, config.stamp), (plain.method, plain.stamp));
                assert_eq!(config.direction, plain.direction);
            } else if let Some(range) = parameter(line, "range") {
                let (min, max) = range.split_once(',').unwrap();
                let [least, most] = [min, max].map(|bound| bound.parse::<i64>().unwrap());
                let [below, above] = [least - 1, most + 1];
                let given = |value: &str| config_of(&format!("{call} {value}"), None);
                assert!(given(min).is_ok() && given(max).is_ok(), "{line}");
                assert!(given(&below.to_string()).is_err(), "{line}");
                assert!(given(&above.to_string()).is_err(), "{line}");
                let config = given(&parameter(line, "default").unwrap()).unwrap();
                assert_eq!(config.snaplen, plain.snaplen);
                assert_eq!(config.ring_bytes, plain.ring_bytes);
                assert_eq!(config.lanes.len(), plain.lanes.len());
            }
        }
    }

    #[test]
    fn redirection_of_all_packets_is_refused() {
        let error = config_of("--method xdp", Some("")).unwrap_err();
        assert!(crate::usage::is_usage(&error), "{error}");
        assert!(error.to_string().contains("set a capture filter"), "{error}");
        config_of("--method xdp", Some("udp")).unwrap();
        config_of("--method xdp --yes", None).unwrap();
    }

    #[test]
    fn invalid_option_fails_with_one_line() {
        for line in ["--nonsense", "--snaplen 262145", "--spin --realtime", "--method rong"] {
            let error = config_of(line, None).unwrap_err();
            assert!(crate::usage::is_usage(&error), "{line}");
            let text = error.to_string();
            assert!(!text.contains('\n') && !text.starts_with("error"), "{text}");
        }
    }
}
