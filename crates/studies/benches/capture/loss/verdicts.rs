//! Targets for loss and CPU time, with 64-byte frames.

use super::tables::spread;
use super::{Rate, Row};
use crate::results::Results;

/// Min loss of dumpcap, as a ratio, at which a rate counts as hard.
const HARD: f64 = 0.3;
/// Min ratio of two rates that count as equal.
const SAME: f64 = 0.95;
/// Max CPU time of `ring` per packet, as a share of tcpdump's.
const SHARE: f64 = 0.7;

/// Max ratio of the CPU time of `ring` with raw stamps, without spinning, to that with kernel stamps.
const RAW_RATIO: f64 = 3.0;

pub(super) fn give(rows: &[Row], results: &mut Results) {
    let short: Vec<&Row> = rows.iter().filter(|row| row.frame_bytes == 64).collect();
    let mut rates: Vec<Rate> = short.iter().map(|row| row.rate).collect();
    rates.sort_unstable();
    rates.dedup();
    loss(&short, &rates, results);
    cost(&short, &rates, results);
    raw_loss(&short, &rates, results);
    raw_cost(&short, &rates, results);
    account(rows, results);
}

/// Loss at the lowest hard rate, or at the highest rate if none is hard.
fn loss(rows: &[&Row], rates: &[Rate], results: &mut Results) {
    let dumpcap = |rate| spread(rows.iter().copied(), "dumpcap", rate, |row| row.loss);
    let is_hard = |rate: &&Rate| dumpcap(**rate).is_some_and(|loss| loss.median >= HARD);
    let hard = rates.iter().find(is_hard);
    let Some(&rate) = hard.or(rates.last()) else { return };
    let Some(of_dumpcap) = dumpcap(rate) else { return };
    let of_dumpcap = 100.0 * of_dumpcap.median;
    if hard.is_none() {
        let text = format!(
            "dumpcap loses 30 % of 64-byte frames at one of the rates; at {rate} a second it loses \
             {of_dumpcap:.1} %: keep a core busy (--busy) or send for longer (--seconds)"
        );
        results.verdict(false, text);
    }
    for name in ["ring/kernel", "xdp/xdp"] {
        let of = |name, number| spread(rows.iter().copied(), name, rate, number);
        let came = |name| Some(of(name, |row| row.frames_per_second / 1e6)?.median);
        let (Some(loss), Some(ours), Some(dumpcaps)) =
            (of(name, |row| row.loss), came(name), came("dumpcap"))
        else {
            continue;
        };
        let text = format!(
            "{name} loses nothing at {rate} frames a second of 64 bytes, where dumpcap loses \
             {of_dumpcap:.1} % of {dumpcaps:.2} million a second: it loses at most {:.4} % of \
             {ours:.2} million",
            100.0 * loss.max
        );
        results.verdict(loss.max <= 0.0 && ours >= SAME * dumpcaps, text);
    }
}

/// CPU time at every rate.
fn cost(rows: &[&Row], rates: &[Rate], results: &mut Results) {
    let cpu = |name, rate| {
        let cpu = spread(rows.iter().copied(), name, rate, |row| row.cpu_seconds_per_million)?;
        Some(cpu.median)
    };
    let ratio = |&rate: &Rate| Some((rate, cpu("ring/kernel", rate)? / cpu("tcpdump", rate)?));
    let ratios: Vec<(Rate, f64)> = rates.iter().filter_map(ratio).collect();
    let Some(worst) = ratios.iter().map(|(_, ratio)| *ratio).reduce(f64::max) else { return };
    let each: Vec<String> =
        ratios.iter().map(|(rate, ratio)| format!("{ratio:.2} at {rate}")).collect();
    let text = format!(
        "ring/kernel costs at most {SHARE} of tcpdump's CPU time for a packet of 64 bytes: {}",
        each.join(", ")
    );
    results.verdict(worst <= SHARE, text);
}

/// Loss of spinning raw stamps and of kernel stamps, at every paced rate.
fn raw_loss(rows: &[&Row], rates: &[Rate], results: &mut Results) {
    for &rate in rates.iter().filter(|rate| **rate != Rate::Max) {
        let loss = |name| Some(100.0 * spread(rows.iter().copied(), name, rate, |r| r.loss)?.max);
        let (Some(raw), Some(kernel)) = (loss("ring/raw+spin"), loss("ring/kernel")) else {
            continue;
        };
        let text = format!(
            "ring/raw+spin loses no more than ring/kernel at {rate} frames a second: at most {raw:.4} % \
             to {kernel:.4} %"
        );
        results.verdict(raw <= kernel, text);
    }
}

/// CPU time of raw stamps without spinning, at every paced rate.
fn raw_cost(rows: &[&Row], rates: &[Rate], results: &mut Results) {
    for &rate in rates.iter().filter(|rate| **rate != Rate::Max) {
        let cpu = |name| {
            let cpu = spread(rows.iter().copied(), name, rate, |row| row.cpu_seconds_per_million)?;
            Some(cpu.median)
        };
        let (Some(raw), Some(kernel)) = (cpu("ring/raw"), cpu("ring/kernel")) else { continue };
        let text = format!(
            "ring/raw costs at most {RAW_RATIO} times the CPU time of ring/kernel at {rate} frames a \
             second: {:.1} times",
            raw / kernel
        );
        results.verdict(raw <= RAW_RATIO * kernel, text);
    }
}

/// Our own account against what capinfos counts.
fn account(rows: &[Row], results: &mut Results) {
    let ours: Vec<_> = rows.iter().filter_map(|row| Some((row.accounted?, row.written))).collect();
    if !ours.is_empty() {
        let wrong = ours.iter().filter(|(accounted, written)| accounted != written).count();
        let text = format!(
            "the ledger says how many packets are in the file: it differs from capinfos in {wrong} of \
             {} runs",
            ours.len()
        );
        results.verdict(wrong == 0, text);
    }
}
