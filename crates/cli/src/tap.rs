//! One capture's packets, stamps and losses, as text.

use std::fmt::Write as _;

use wirestamp_capture::Ledger;
use wirestamp_session::{Figures, TapReport};

use crate::output::{things, time};

/// A line about one tap of a measurement.
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

/// The time from the kernel's stamp to ours, unless the stamps are the kernel's.
pub(crate) fn lag(figures: &Figures) -> Option<String> {
    let lag = figures.acquisition_lag_ns.summary()?;
    Some(format!(
        "after the kernel's own stamp by {} (median), {} (p99), {} (max)",
        time(lag.p50),
        time(lag.p99),
        time(lag.max)
    ))
}

/// Problems of the packet ledger, a line each.
pub(crate) fn problems(ledger: &Ledger) -> String {
    let mut text = String::new();
    if ledger.stamped_late > 0 {
        let _ = writeln!(
            text,
            "{} taken later than requested: when the packet was copied to the ring, or by the kernel \
             instead of the network card or a tracing program",
            things(ledger.stamped_late, "stamp")
        );
    }
    if ledger.out_of_order > 0 {
        let _ = writeln!(
            text,
            "{} arrived after a packet with a later stamp",
            things(ledger.out_of_order, "packet")
        );
    }
    if !ledger.balances() {
        let _ = writeln!(text, "the packet ledger does not balance: {ledger:?}");
    }
    text
}
