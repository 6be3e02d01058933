//! A million packets of each IP version. A plan with a seed delays, loses, duplicates and reorders single packets.
//! The result of taps and correlator for each packet must be what happened to it.

mod found;
mod run;
mod truth;

use std::net::IpAddr;

use wirestamp_clock::Span;
use wirestamp_lab::check_privilege;
use wirestamp_lab::wire::{SINK_V4, SINK_V6};
use wirestamp_stage::ImpairmentPlan;

use truth::{Margins, Truth};

/// Jitter of about three packet times: most packets keep their order, except those that the plan reorders.
const ORDERLY: ImpairmentPlan = ImpairmentPlan {
    seed: 0x5eed,
    delay: Span::from_millis(2),
    jitter: Span::from_micros(10),
    loss: 0.02,
    duplicate: 0.01,
    reorder: 0.03,
    reorder_delay: Span::from_millis(4),
};

/// Jitter as long as the interval between bursts: few packets keep their order.
const SHUFFLED: ImpairmentPlan =
    ImpairmentPlan { seed: 0xcafe, jitter: Span::from_millis(1), ..ORDERLY };

#[test]
fn a_million_packets_over_ipv4_have_exact_counts_and_delays_within_their_error() {
    holds_for(SINK_V4.into(), ORDERLY);
}

#[test]
fn a_million_packets_over_ipv6_have_exact_counts_and_delays_within_their_error() {
    holds_for(SINK_V6.into(), SHUFFLED);
}

fn holds_for(destination: IpAddr, plan: ImpairmentPlan) {
    if check_privilege().is_err() {
        eprintln!("skipped: needs root");
        return;
    }
    let run = run::run(destination, plan);
    run.assert_no_capture_missed_packets();
    let truth = Truth::of(&run.stage, &run.reference);
    truth.assert_as_planned(&plan);
    assert_eq!(run.found.quality.counts(), &truth.counts);
    let margins = truth.assert_each_packet(&run.found);
    eprintln!("{destination}: {:?}", truth.counts);
    let Margins { delay_off, in_utc_off, stated, lateness } = margins;
    eprintln!("delays off by up to {delay_off}, in UTC {in_utc_off}; errors stated: {stated:?}");
    eprintln!("the stage sent later than chosen by, in ns: {:?}", lateness.summary());
}
