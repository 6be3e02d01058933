//! `wirestamp stamp`.

mod arguments;
pub(crate) mod key;
mod present;

use std::process::ExitCode;

use wirestamp_active::sender::{ReceivedAnswer, Sender};
use wirestamp_clock::Span;
use wirestamp_metrics::ReplyKind;

use crate::interrupt::stop_on_signal;
use crate::output::{Output, time};
use crate::target::enter_namespace;
use present::{Document, text};

pub(crate) use arguments::Arguments;

pub(crate) fn run(arguments: Arguments, output: Output) -> anyhow::Result<ExitCode> {
    let name = arguments.namespace.clone();
    let test = arguments.test()?;
    let stop = stop_on_signal()?;
    let (to, schedule) = (test.to, test.schedule);
    let is_endless = test.packets.is_none() && test.lasting.is_none();
    let sender = enter_namespace(name.as_deref(), || Sender::open(test))??;
    output.remark(format!(
        "testing the path to {to} and back{}",
        if is_endless { "; Ctrl-C ends it" } else { "" }
    ));
    // At high rates, single answers are too many to read.
    let shows_each = output.verbose && !output.json;
    let report = sender.run(&stop, |answer: &ReceivedAnswer| {
        if shows_each {
            output.detail(line(answer));
        }
    })?;
    let nothing_sent = report.both.counts.sent == 0;
    let error = report.first_error.clone();
    let document = Document::new(to, schedule, report)?;
    output.result(&document, text)?;
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

/// A line about an answer, as ping prints it.
fn line(answer: &ReceivedAnswer) -> String {
    let note = match answer.taken {
        ReplyKind::First => "",
        ReplyKind::Duplicate => ", duplicate",
        ReplyKind::Late => ", late",
        ReplyKind::Foreign => ", answers no sent packet",
    };
    let known = |span: Option<Span>| span.map_or_else(|| "-".into(), |span| time(span.as_nanos()));
    let ReceivedAnswer { sequence, round_trip, there, ttl, .. } = *answer;
    let (trip, there, back) = (known(round_trip), known(there), known(Some(answer.back)));
    format!("{sequence}: round trip {trip}, there {there}, back {back}, TTL there {ttl}{note}")
}
