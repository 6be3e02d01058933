//! `wirestamp lab`.

use std::ffi::OsString;
use std::process::ExitCode;

use clap::{Args, Subcommand};
use serde::Serialize;
use wirestamp_lab::{
    Impairments, PREFIX, PathLab, SINK_V4, SINK_V6, SOURCE_INTERFACE, TAP_A, TAP_B,
};

use crate::mesh;
use crate::output::Output;

#[derive(Args)]
#[command(after_help = "The bed: source -- router with a bottleneck -- sink, in namespaces \
    wirestamp-source, wirestamp-router and wirestamp-sink. Tap A (tap-a) is where the router \
    receives, tap B (tap-b) where the sink does.\n\nExample:\n  \
    wirestamp lab up\n  \
    wirestamp delay tap-a@wirestamp-router tap-b@wirestamp-sink --duration 5 &\n  \
    wirestamp send -i out@wirestamp-source --to 10.77.2.2 --pattern voip --duration 4; wait\n  \
    wirestamp lab down")]
pub(crate) struct Arguments {
    #[command(subcommand)]
    action: Action,
}

#[derive(Subcommand)]
enum Action {
    /// Build the bed; it stays until `lab down`, and takes the place of one that is there
    Up(Path),
    /// Remove the bed
    Down,
    /// Bring up a whole mesh in a bed of its own, measure traffic across a bottleneck with it, and check
    /// that against the truth
    Mesh(mesh::lab::Arguments),
    /// Build a bed, run a command that sees its namespaces, exit with its status, remove the bed
    /// however that ends
    Run {
        #[command(flatten)]
        path: Path,
        /// The command and its arguments
        #[arg(required = true, trailing_var_arg = true, value_name = "COMMAND")]
        command: Vec<OsString>,
    },
}

#[derive(Args)]
pub(crate) struct Path {
    /// The bottleneck's rate in Mbit/s
    #[arg(long, value_name = "MBIT", default_value_t = 10,
          value_parser = clap::value_parser!(u64).range(1..=100_000))]
    rate: u64,
    /// The bottleneck's queue in bytes
    #[arg(long, value_name = "BYTES", default_value_t = 50_000,
          value_parser = clap::value_parser!(u32).range(1514..))]
    queue: u32,
}

impl Path {
    pub(crate) fn impairments(&self) -> Impairments {
        Impairments::bottleneck(self.rate * 1_000_000, self.queue)
    }
}

#[derive(Serialize)]
struct Bed {
    source: Point,
    tap_a: Point,
    tap_b: Point,
    sink_addresses: [std::net::IpAddr; 2],
}

#[derive(Serialize)]
struct Point {
    namespace: String,
    interface: &'static str,
}

#[derive(Serialize)]
struct Removed {
    removed: Vec<String>,
}

pub(crate) fn run(arguments: Arguments, output: Output) -> anyhow::Result<ExitCode> {
    wirestamp_lab::check_privilege()?;
    match arguments.action {
        Action::Up(path) => {
            if !wirestamp_lab::down(PREFIX)?.is_empty() {
                output.remark(
                    "replaced the bed that was there; what still runs in that is not in this one",
                );
            }
            wirestamp_lab::up(PREFIX, &path.impairments())?;
            output.result(&bed(), text)?;
        }
        Action::Down => {
            let removed = wirestamp_lab::down(PREFIX)?;
            output.result(&Removed { removed }, |Removed { removed }| {
                match removed.as_slice() {
                    [] => "there was no bed\n".into(),
                    names => format!("removed {}\n", names.join(", ")),
                }
            })?;
        }
        Action::Mesh(arguments) => return mesh::lab::run(&arguments, output),
        Action::Run { path, command } => {
            let lab = PathLab::new(&path.impairments())?;
            let [program, arguments @ ..] = command.as_slice() else { unreachable!() };
            let status = wirestamp_lab::run(&lab, PREFIX, program, arguments)?;
            let code = status.code().and_then(|code| u8::try_from(code).ok());
            return Ok(code.map_or(ExitCode::FAILURE, ExitCode::from));
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn bed() -> Bed {
    let point = |role, interface| Point { namespace: format!("{PREFIX}-{role}"), interface };
    Bed {
        source: point("source", SOURCE_INTERFACE),
        tap_a: point("router", TAP_A),
        tap_b: point("sink", TAP_B),
        sink_addresses: [SINK_V4.into(), SINK_V6.into()],
    }
}

fn text(bed: &Bed) -> String {
    let Bed { source, tap_a, tap_b, sink_addresses: [v4, v6] } = bed;
    let name = |point: &Point| format!("{}@{}", point.interface, point.namespace);
    format!(
        "send from   {}\ntap A       {}\ntap B       {}\nsend to     {v4} or {v6}\n\
         `wirestamp lab down` removes it\n",
        name(source),
        name(tap_a),
        name(tap_b)
    )
}
