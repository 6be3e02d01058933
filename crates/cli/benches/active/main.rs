//! STAMP of ours beside stamp-suite and irtt, side by side in one run: by how much the delays that they tell
//! are off, and what their reflectors and senders can do.
//!
//! `cargo bench -p wirestamp --bench active -- [--quick] [--json]` needs root, two cores, and what
//! `tools/setup-active` brings.
//!
//! All is one machine with one clock. Delays are those of a path through a router to another namespace. What is
//! true is told by four of our captures, at the router and at the ends, with the kernel's stamps: each packet is
//! stamped where it came in, behind the cable of its sender, which takes some tenths of a microsecond, and at the
//! other end. Rates are measured over a cable. Everybody is set up as their manuals say for the best stamps:
//! stamp-suite is built with the kernel's, irtt's server has no least interval.
//!
//! | file | what it does |
//! |---|---|
//! | `contenders.rs` | who is compared: commands, and what they print |
//! | `delay.rs`, `truth.rs` | delays that are told, against the captures |
//! | `rate.rs`, `flood.rs` | what reflectors answer and senders send |
//! | `spread.rs` | numbers of several repetitions |

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
    /// Two repetitions of a second each, to see that it works
    #[arg(long)]
    quick: bool,
    /// How often each measurement is repeated
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..))]
    repetitions: u32,
    /// Print one document of JSON instead of tables
    #[arg(long)]
    json: bool,
    /// What cargo says to a benchmark
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
        println!("{cores} cores, {} repetitions: the median (least..greatest)", extent.repetitions);
        delay::print(&delays);
        rate::print(&rates);
    }
    Ok(())
}
