//! Our STAMP, stamp-suite and irtt side by side in one run: the error of reported delays, and the max rates of
//! reflectors and senders.
//!
//! `cargo bench -p wirestamp --bench active -- [--quick] [--json]` needs root, two cores, and what
//! `tools/setup-active` installs.
//!
//! Everything runs on one machine with one clock. Delays are those of a path through a router to another namespace.
//! Four captures with kernel stamps, at the router and at the ends, are the reference: each packet is stamped where it
//! was received, behind its sender's cable (some tenths of a microsecond), and at the other end. Rates are measured
//! over a cable. Each program is set up for the best stamps by its manual: stamp-suite is built with kernel stamps,
//! irtt's server has no min interval.
//!
//! | file | what it does |
//! |---|---|
//! | `contenders.rs` | the compared programs: commands and output formats |
//! | `delay.rs`, `truth.rs` | reported delays, against the captures |
//! | `rate.rs`, `flood.rs` | rates of reflectors and senders |
//! | `spread.rs` | statistics of several repetitions |

#![forbid(unsafe_code)]

mod contenders;
mod delay;
mod extent;
mod flood;
mod rate;
mod spread;
mod truth;

use std::time::Duration;

use clap::Parser;
use serde_json::json;

use extent::Extent;

#[derive(Parser)]
struct Arguments {
    /// Two repetitions of a second each, as a quick check
    #[arg(long)]
    quick: bool,
    /// Repetitions of each measurement
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..))]
    repetitions: u32,
    /// Print one document of JSON instead of tables
    #[arg(long)]
    json: bool,
    /// Passed by cargo to benchmarks
    #[arg(long, hide = true)]
    bench: bool,
}

fn main() -> anyhow::Result<()> {
    let arguments = Arguments::parse();
    wirestamp_lab::check_privilege()?;
    contenders::check()?;
    let extent = if arguments.quick {
        Extent { repetitions: 2, packets: 500, window: Duration::from_secs(1) }
    } else {
        let window = Duration::from_secs(3);
        Extent { repetitions: arguments.repetitions, packets: 5000, window }
    };
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let delays = delay::run(&extent, cores)?;
    let rates = rate::run(&extent)?;
    if arguments.json {
        let document = json!({
            "cores": cores,
            "repetitions": extent.repetitions,
            "delays": delays,
            "rates": rates,
        });
        println!("{document:#}");
    } else {
        println!("{cores} cores, {} repetitions: the median (min..max)", extent.repetitions);
        delay::print(&delays);
        rate::print(&rates);
    }
    Ok(())
}
