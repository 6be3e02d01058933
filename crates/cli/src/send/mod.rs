//! `wirestamp send`.

mod arguments;
mod job;
mod live;
mod log;
mod present;
mod stamps;

use std::process::ExitCode;
use std::sync::atomic::AtomicBool;

use anyhow::{anyhow, bail};
use wirestamp_clock::ClockService;
use wirestamp_metrics::Distribution;
use wirestamp_traffic::live::Limit;
use wirestamp_traffic::{
    Replay, ReplayOptions, SendOptions, Sender, SentPacket, ServiceClock, Stream, UnavailableStamps,
};

use crate::clock;
use crate::files::check_outputs;
use crate::interrupt::stop_on_signal;
use crate::output::Output;
use crate::target::Target;
use job::Job;
use live::LiveJob;
use log::Log;
use present::{ReplaySummary, Traffic, text};
use stamps::TransmitStamps;

pub(crate) use arguments::Arguments;
pub(crate) use present::Document;

pub(crate) fn run(arguments: &Arguments, output: Output) -> anyhow::Result<ExitCode> {
    let job = arguments.job()?;
    let replayed = arguments.replay.as_deref();
    check_outputs(&[("--log", arguments.log.as_deref())], replayed.as_slice())?;
    let log = arguments.log.as_deref().map(Log::create).transpose()?;
    let clock = clock::start_service(None)?;
    let stop = stop_on_signal()?;
    let mut statistics = SendStatistics { pacing: Distribution::new(), stamps: None, log };
    let sending =
        Sending { target: &arguments.interface, clock: &clock, stop: stop.flag(), output };
    let (mut document, read_error) = match job {
        Job::Pattern(stream, by) => (sending.pattern(stream, &by, &mut statistics)?, None),
        Job::Replay(recording, by) => sending.replay(recording, &by, &mut statistics)?,
        Job::Live(live) => (sending.live(&live)?, None),
    };
    document.pacing_error_ns = statistics.pacing;
    document.tx_stamps = statistics.stamps;
    document.clock_error_ns = clock.status().error_ns;
    output.result(&document, text)?;
    statistics.log.map_or(Ok(()), Log::finish)?;
    if let Some(error) = read_error {
        return Err(error.into());
    }
    match (&document.first_error, document.sent) {
        (Some(error), 0) => {
            bail!("no packet was sent over {}: {error}", arguments.interface.interface)
        }
        _ => Ok(ExitCode::SUCCESS),
    }
}

/// Statistics and log of the sent packets.
struct SendStatistics {
    pacing: Distribution,
    stamps: Option<TransmitStamps>,
    log: Option<Log>,
}

impl SendStatistics {
    fn expect(&mut self, unavailable: Option<&UnavailableStamps>) {
        self.stamps = unavailable.map(TransmitStamps::new);
    }

    fn record(&mut self, sent: &SentPacket) {
        self.pacing.record(sent.pacing_error);
        if let Some(stamps) = &mut self.stamps {
            stamps.record(sent);
        }
        if let Some(log) = &self.log {
            log.record(sent);
        }
    }
}

/// Interface, clock and stop of a run.
struct Sending<'a> {
    target: &'a Target,
    clock: &'a ClockService,
    stop: &'a AtomicBool,
    output: Output,
}

impl Sending<'_> {
    fn pattern(
        &self,
        stream: Stream,
        by: &SendOptions,
        statistics: &mut SendStatistics,
    ) -> anyhow::Result<Document> {
        let (pattern, destination) = (stream.plan.pattern.name().to_owned(), stream.destination);
        let is_endless = stream.plan.packets == u64::MAX;
        let open = || Sender::open_with(vec![stream], by);
        let sender = self.target.enter(open)??;
        statistics.expect(sender.unavailable_stamps());
        let mode = sender.mode();
        if is_endless {
            self.output.remark(format!("sending {pattern} to {destination}; Ctrl-C ends it"));
        }
        let mut clock = ServiceClock::new(self.clock);
        let report = sender.run(&mut clock, self.stop, |sent| statistics.record(sent));
        let [stream] = <[_; 1]>::try_from(report.streams)
            .map_err(|streams| anyhow!("one stream was sent, {} reported", streams.len()))?;
        Ok(Document {
            sent: stream.sent,
            bytes: stream.bytes,
            failed: stream.failed,
            first_error: stream.first_error,
            late: report.overslept,
            mode,
            ..Document::new(Traffic::Pattern { pattern, destination }, by.method.name())
        })
    }

    fn replay(
        &self,
        recording: ReplayOptions,
        by: &SendOptions,
        statistics: &mut SendStatistics,
    ) -> anyhow::Result<(Document, Option<wirestamp_capture::Error>)> {
        let file = recording.path.clone();
        let open = || Replay::open(recording, &self.target.interface, by);
        let replay = self.target.enter(open)??;
        statistics.expect(replay.unavailable_stamps());
        let mode = replay.mode();
        let mut clock = ServiceClock::new(self.clock);
        let report = replay.run(&mut clock, self.stop, |sent| statistics.record(sent));
        let traffic = Traffic::Replay {
            replay: ReplaySummary {
                file,
                too_long: report.too_long,
                not_ethernet: report.not_ethernet,
                cut_short: report.cut_short,
                time_went_back: report.time_went_back,
            },
        };
        let document = Document {
            sent: report.sent,
            bytes: report.bytes,
            failed: report.failed,
            first_error: report.first_error,
            late: report.overslept,
            mode,
            ..Document::new(traffic, by.method.name())
        };
        Ok((document, report.read_error))
    }

    fn live(&self, live: &LiveJob) -> anyhow::Result<Document> {
        if live.limit == Limit::default() {
            self.output.remark(format!("sending live frames to {}; Ctrl-C ends it", live.to));
        }
        let send = || live.send(&self.target.interface, self.clock, self.stop);
        Ok(live.document(&self.target.enter(send)??))
    }
}
