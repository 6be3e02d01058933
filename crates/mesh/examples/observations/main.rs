//! Writes an archive with observations and results of synthetic paths, as a collector does: test data for
//! `examples/duckdb` and `examples/spark`.
//!
//! Usage: `observations FOLDER [PATHS] [SECONDS] [SEED]`, by default 100 paths, an hour (3600 s) and seed 1.

mod paths;

use std::error::Error;
use std::path::PathBuf;

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let usage = "usage: observations FOLDER [PATHS] [SECONDS] [SEED]";
    let folder = PathBuf::from(arguments.next().ok_or(usage)?);
    let mut number = |default: u64| arguments.next().map_or(Ok(default), |it| it.parse::<u64>());
    let (count, seconds, seed) = (number(100)?, number(3600)?, number(1)?);
    paths::write(&folder, (count, i64::try_from(seconds)?, seed))
}
