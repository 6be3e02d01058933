//! What one capture saw and lost, in words.

use std::fmt::Write as _;

use wirestamp_capture::Ledger;
use wirestamp_session::{Figures, TapReport};

use crate::output::{things, time};

/// A line about a tap of a measurement.
pub(crate) fn line(tap: &TapReport) -> String {
    let facts = &tap.facts;
    let taken = match lag(&tap.figures) {
        Some(lag) => format!(", {lag}"),
        None => format!(" {}", facts.taken),
    };
    format!(
        "{}: {} stamped with {}{taken}; {} lost by the capture",
        facts.interface,
        things(tap.figures.packets, "packet"),
        facts.clock,
        tap.ledger.lost()
    )
}

/// How much later than the kernel the stamps were taken, if they are not the kernel's.
pub(crate) fn lag(figures: &Figures) -> Option<String> {
    let lag = figures.acquisition_lag_ns.summary()?;
    Some(format!(
        "after the kernel's own stamp by {} (median), {} (99 %), {} (longest)",
        time(lag.p50),
        time(lag.p99),
        time(lag.max)
    ))
}

/// What went wrong with the account of packets, a line each.
pub(crate) fn complaints(ledger: &Ledger) -> String {
    let mut text = String::new();
    if ledger.stamped_late > 0 {
        let _ = writeln!(
            text,
            "{} taken later than asked for: when the packet was copied to the ring, or by the kernel \
             in place of the network card",
            things(ledger.stamped_late, "stamp")
        );
    }
    if ledger.out_of_order > 0 {
        let _ = writeln!(
            text,
            "{} came after one with a later stamp",
            things(ledger.out_of_order, "packet")
        );
    }
    if !ledger.balances() {
        let _ = writeln!(text, "the account of packets does not balance: {ledger:?}");
    }
    text
}
