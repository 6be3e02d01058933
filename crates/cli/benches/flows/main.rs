//! `wirestamp flows`, `capinfos -M` and `tshark -qz rtp,streams` on the same capture of 1 GB.
//!
//! `cargo bench -p wirestamp --bench flows -- --megabytes 1000 --rounds 5` writes the capture into a
//! temporary folder, reads it once into the page cache, and runs the three in turn.
//!
//! With `--flows 100000`, it compares `wirestamp flows` with itself: ten million packets of one flow, and of that many flows.

#![forbid(unsafe_code)]

mod traffic;

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::ensure;
use clap::Parser;

#[derive(Parser)]
struct Arguments {
    /// The size of the capture
    #[arg(long, default_value_t = 1000)]
    megabytes: u64,
    /// Repetitions of each program
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u64).range(1..))]
    rounds: u64,
    /// Compare ten million packets of one flow with ten million of this many flows instead
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..=16_000_000))]
    flows: Option<u32>,
    /// Passed by cargo to benchmarks
    #[arg(long, hide = true)]
    bench: bool,
}

/// The compared programs, ours first.
const PROGRAMS: [(&str, &[&str]); 3] = [
    (env!("CARGO_BIN_EXE_wirestamp"), &["flows", "--json", "--quiet"]),
    ("capinfos", &["-M"]),
    ("tshark", &["-q", "-z", "rtp,streams", "-r"]),
];

fn main() -> anyhow::Result<()> {
    let arguments = Arguments::parse();
    let folder = tempfile::tempdir()?;
    if let Some(flows) = arguments.flows {
        return compare_flows(folder.path(), flows, arguments.rounds);
    }
    let path = folder.path().join("flows.pcapng");
    let packets = traffic::write(&path, arguments.megabytes * 1_000_000)?;
    let bytes = std::fs::read(&path)?.len();
    println!("{packets} packets, {bytes} bytes, {} rounds", arguments.rounds);
    let mut times: [Vec<Duration>; 3] = Default::default();
    for _ in 0..arguments.rounds {
        for ((program, options), times) in PROGRAMS.iter().zip(&mut times) {
            times.push(time(program, options, &path)?);
        }
    }
    let [ours, theirs @ ..] = &times;
    println!("{:<28} {}", "wirestamp flows", spread(ours.iter().map(Duration::as_secs_f64), "s"));
    for ((program, options), times) in PROGRAMS[1..].iter().zip(theirs) {
        let name = format!("{program} {}", options.join(" "));
        println!("{name:<28} {}", spread(times.iter().map(Duration::as_secs_f64), "s"));
        let ratios = ours.iter().zip(times).map(|(ours, it)| ours.as_secs_f64() / it.as_secs_f64());
        println!("{:<28} {}", format!("  ours over {program}'s"), spread(ratios, ""));
    }
    Ok(())
}

/// Packets of each capture that [`compare_flows`] compares.
const PACKETS: u32 = 10_000_000;

/// Compares packets of one flow with the same number of packets of many flows, all of which are kept.
fn compare_flows(folder: &Path, flows: u32, rounds: u64) -> anyhow::Result<()> {
    let paths = ["one.pcapng", "many.pcapng"].map(|name| folder.join(name));
    for (path, flows) in paths.iter().zip([1, flows]) {
        traffic::write_flows(path, PACKETS, flows)?;
        // Into the page cache.
        std::io::copy(&mut std::fs::File::open(path)?, &mut std::io::sink())?;
    }
    let kept = flows.to_string();
    let options = ["flows", "--json", "--quiet", "--max-flows", &kept];
    let mut times: [Vec<f64>; 2] = Default::default();
    for _ in 0..rounds {
        for (path, times) in paths.iter().zip(&mut times) {
            times.push(time(PROGRAMS[0].0, &options, path)?.as_secs_f64());
        }
    }
    let [one, many] = &times;
    println!("{PACKETS} packets, {rounds} rounds");
    println!("{:<28} {}", "one flow", spread(one.iter().copied(), "s"));
    println!("{:<28} {}", format!("{flows} flows"), spread(many.iter().copied(), "s"));
    let ratios = many.iter().zip(one).map(|(many, one)| many / one);
    println!("{:<28} {}", "  many over one", spread(ratios, ""));
    Ok(())
}

/// How long a program takes to read the capture.
fn time(program: &str, options: &[&str], path: &Path) -> anyhow::Result<Duration> {
    let mut command = Command::new(program);
    command.args(options).arg(path).stdin(Stdio::null()).stdout(Stdio::null());
    let begin = Instant::now();
    let output = command.output()?;
    let taken = begin.elapsed();
    ensure!(output.status.success(), "{program}: {}", String::from_utf8_lossy(&output.stderr));
    Ok(taken)
}

/// `1.23 s (1.20..1.31)`: the median, the least and the greatest.
fn spread(values: impl Iterator<Item = f64>, unit: &str) -> String {
    let mut sorted: Vec<_> = values.collect();
    sorted.sort_by(f64::total_cmp);
    let (min, max) = (sorted[0], sorted[sorted.len() - 1]);
    let median = f64::midpoint(sorted[(sorted.len() - 1) / 2], sorted[sorted.len() / 2]);
    format!("{median:.3} {unit} ({min:.3}..{max:.3})")
}
