//! Errors of the delays that senders report.

use std::time::Duration;

use anyhow::{Context, ensure};
use serde::Serialize;
use wirestamp_lab::{Impairments, PathLab, SINK_V4};
use wirestamp_studies::tester::Spinner;

use crate::contenders::{Contender, Ends, Figures, ReportedDelays};
use crate::extent::Extent;
use crate::spread::{Spread, real};
use crate::truth::{Truth, Witnesses};

const INTERVAL: Duration = Duration::from_millis(1);

/// The path: its rate in bits a second, and its queue in bytes.
const RATE: u64 = 1_000_000_000;
const QUEUE: u32 = 1_000_000;

/// One test: reported minus true, in nanoseconds.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Row {
    contender: Contender,
    /// Whether a program kept each core busy meanwhile.
    busy: bool,
    repetition: u32,
    packets: usize,
    payload_bytes: u16,
    round_trip_mean_error_ns: f64,
    round_trip_median_error_ns: f64,
    there_mean_error_ns: Option<f64>,
    there_median_error_ns: Option<f64>,
    back_mean_error_ns: Option<f64>,
    back_median_error_ns: Option<f64>,
    true_round_trip_mean_ns: f64,
    /// CPU time of the reflector's threads from the first packet to the last, for each packet.
    reflector_cpu_ns: f64,
}

pub(crate) fn run(extent: &Extent, cores: usize) -> anyhow::Result<Vec<Row>> {
    let lab = PathLab::new(&Impairments::bottleneck(RATE, QUEUE))?;
    let mut rows = Vec::new();
    for busy in [false, true] {
        let _spinners: Vec<Spinner> = (0..if busy { cores } else { 0 }).map(Spinner::on).collect();
        for (repetition, contender) in extent.turns() {
            let load = if busy { "busy" } else { "idle" };
            eprintln!("delays, {load} cores: {}, repetition {repetition}", contender.name());
            let row = test(&lab, extent, contender)
                .with_context(|| format!("the test of {} failed", contender.name()))?;
            rows.push(Row { busy, repetition, ..row });
        }
    }
    Ok(rows)
}

fn test(lab: &PathLab, extent: &Extent, contender: Contender) -> anyhow::Result<Row> {
    let ends = Ends { sender: lab.source(), reflector: lab.sink(), address: SINK_V4 };
    let reflector = contender.reflect(ends)?;
    let witnesses = Witnesses::start(lab, contender)?;
    let before = reflector.cpu_seconds()?;
    let output = contender.sender(ends, INTERVAL, extent.packets).output()?;
    let cpu = reflector.cpu_seconds()? - before;
    let said = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "{}", said.trim());
    let reported = contender.reported(&String::from_utf8_lossy(&output.stdout))?;
    let truth = witnesses.end(contender, extent.packets)?;
    Row::of(contender, reported, &truth, cpu)
}

impl Row {
    fn of(
        contender: Contender,
        reported: ReportedDelays,
        truth: &Truth,
        cpu: f64,
    ) -> anyhow::Result<Self> {
        let [trip, there, back] = [truth.round_trip(contender)?, truth.there()?, truth.back()?];
        let mean = |reported: Option<Figures>, truth: Figures| Some(reported?.mean - truth.mean);
        let median =
            |reported: Option<Figures>, truth: Figures| Some(reported?.median - truth.median);
        Ok(Self {
            contender,
            busy: false,
            repetition: 0,
            packets: truth.packets(),
            payload_bytes: contender.payload(),
            round_trip_mean_error_ns: reported.round_trip.mean - trip.mean,
            round_trip_median_error_ns: reported.round_trip.median - trip.median,
            there_mean_error_ns: mean(reported.there, there),
            there_median_error_ns: median(reported.there, there),
            back_mean_error_ns: mean(reported.back, back),
            back_median_error_ns: median(reported.back, back),
            true_round_trip_mean_ns: trip.mean,
            reflector_cpu_ns: cpu * 1e9 / real(truth.packets() as u64),
        })
    }
}

pub(crate) fn print(rows: &[Row]) {
    for busy in [false, true] {
        let load = if busy { "a busy program on each core" } else { "cores otherwise idle" };
        println!(
            "\nerror of the delay in µs, reported minus true, 1,000 packets a second, {load}:"
        );
        let heads = ["round trip, mean", "median", "there, mean", "back, mean"];
        println!(
            "{:<12} {:>26} {:>26} {:>26} {:>26} {:>24}",
            "", heads[0], heads[1], heads[2], heads[3], "reflector, CPU µs/packet"
        );
        for contender in Contender::ALL {
            let mine =
                || rows.iter().filter(move |row| row.contender == contender && row.busy == busy);
            let cell = |of: fn(&Row) -> Option<f64>| {
                Spread::of(mine().filter_map(|row| Some(of(row)? / 1e3)))
                    .map_or_else(|| "-".into(), |spread| format!("{spread:.2}"))
            };
            println!(
                "{:<12} {:>26} {:>26} {:>26} {:>26} {:>24}",
                contender.name(),
                cell(|row| Some(row.round_trip_mean_error_ns)),
                cell(|row| Some(row.round_trip_median_error_ns)),
                cell(|row| row.there_mean_error_ns),
                cell(|row| row.back_mean_error_ns),
                cell(|row| Some(row.reflector_cpu_ns)),
            );
        }
    }
}
