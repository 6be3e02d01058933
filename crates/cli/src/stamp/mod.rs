//! `wirestamp stamp`.

mod answer_rows;
mod arguments;
pub(crate) mod key;
mod present;
mod seconds;

use std::process::ExitCode;

use wirestamp_active::sender::{ReceivedAnswer, Sender};
use wirestamp_active::{PacketObserver, TestPacket};
use wirestamp_clock::Span;
use wirestamp_metrics::ReplyKind;

use crate::interrupt::stop_on_signal;
use crate::output::{Output, time};
use crate::target::enter_namespace;
use answer_rows::{AnswerRows, one_way};
use present::{Document, text};
use seconds::Seconds;

pub(crate) use arguments::Arguments;
pub(crate) use present::Members;

pub(crate) fn run(arguments: Arguments, output: Output) -> anyhow::Result<ExitCode> {
    let name = arguments.namespace.clone();
    output.check_per_second(arguments.per_second)?;
    arguments.rows.check()?;
    let rows = arguments.rows.clone();
    let with_seconds = arguments.per_second;
    let test = arguments.test()?;
    let stop = stop_on_signal()?;
    let (to, schedule, timeout, same_clock) =
        (test.to, test.schedule, test.timeout, test.same_clock);
    let is_endless = test.packets.is_none() && test.lasting.is_none();
    let sender = enter_namespace(name.as_deref(), || Sender::open(test))??;
    output.remark(format!(
        "testing the path to {to} and back{}",
        if is_endless { "; Ctrl-C ends it" } else { "" }
    ));
    // At high rates, single answers are too many to read.
    let shows_each = output.verbose && !output.json;
    let mut observer = Observer {
        rows: AnswerRows::create(&rows, same_clock)?,
        seconds: with_seconds.then(|| Seconds::new(timeout, same_clock)),
        show: shows_each.then_some((output, same_clock)),
    };
    let report = sender.run(&stop, &mut observer)?;
    let Observer { rows, seconds, .. } = observer;
    let written = rows.finish(report.both.counts.sent);
    let nothing_sent = report.both.counts.sent == 0;
    let error = report.first_error.clone();
    let document = Document::new(to, schedule, report, seconds)?;
    // Print the result even if the rows could not be written.
    output.result(&document, text)?;
    written?;
    if let (true, Some(error)) = (nothing_sent, error) {
        anyhow::bail!("no packet was sent to {to}: {error}");
    }
    if document.answered() == 0 {
        output.remark(format!(
            "no answer within the timeout; start `wirestamp reflect` at {to}, with the same key"
        ));
        return Ok(ExitCode::FAILURE);
    }
    Ok(ExitCode::SUCCESS)
}

/// Records the packets and answers of a test.
struct Observer {
    rows: AnswerRows,
    /// With `--per-second`.
    seconds: Option<Seconds>,
    /// Prints each answer; with the value of `--same-clock`.
    show: Option<(Output, bool)>,
}

impl PacketObserver for &mut Observer {
    fn packet(&mut self, packet: &TestPacket) {
        self.seconds.iter_mut().for_each(|seconds| seconds.sent(packet));
    }

    fn answer(&mut self, answer: &ReceivedAnswer) {
        self.rows.record(answer);
        self.seconds.iter_mut().for_each(|seconds| seconds.answered(answer));
        if let Some((output, same_clock)) = self.show {
            output.detail(line(answer, same_clock));
        }
    }
}

/// A line about an answer, as ping prints it. One-way delays are known only if both clocks are synchronised to UTC, or
/// are one clock.
fn line(answer: &ReceivedAnswer, same_clock: bool) -> String {
    let note = match answer.taken {
        ReplyKind::First => "",
        ReplyKind::Duplicate => ", duplicate",
        ReplyKind::Late => ", late",
        ReplyKind::Foreign => ", answers no sent packet",
    };
    let known = |span: Option<Span>| span.map_or_else(|| "-".into(), |span| time(span.as_nanos()));
    let ReceivedAnswer { sequence, round_trip, ttl, .. } = *answer;
    let [there, back] = one_way(answer, same_clock).map(known);
    let trip = known(round_trip);
    format!("{sequence}: round trip {trip}, there {there}, back {back}, TTL there {ttl}{note}")
}

#[cfg(test)]
mod tests {
    use wirestamp_clock::Time;

    use super::*;

    #[test]
    fn one_way_delays_of_unsynchronised_clocks_are_not_printed() {
        let ms = Span::from_millis;
        let answer = ReceivedAnswer {
            sequence: 7,
            mark: 0,
            sent: None,
            at: Time::from_nanos(0),
            round_trip: Some(ms(5)),
            there: Some(ms(3)),
            back: ms(2),
            ttl: 64,
            taken: ReplyKind::First,
            own: None,
            theirs: Some(ms(1)),
        };
        let unknown = line(&answer, false);
        assert_eq!(unknown, "7: round trip 5.00 ms, there -, back -, TTL there 64");
        let known = "7: round trip 5.00 ms, there 3.00 ms, back 2.00 ms, TTL there 64";
        assert_eq!(line(&answer, true), known);
        assert_eq!(line(&ReceivedAnswer { own: Some(ms(1)), ..answer }, false), known);
    }
}
