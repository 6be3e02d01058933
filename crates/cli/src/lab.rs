//! `wirestamp lab`.

use std::ffi::OsString;
use std::process::ExitCode;

use clap::{Args, Subcommand};
use schemars::JsonSchema;
use serde::Serialize;
use wirestamp_lab::{PREFIX, PathLab, SINK_V4, SINK_V6, SOURCE_INTERFACE, TAP_A, TAP_B};

use crate::bottleneck::Bottleneck;
use crate::mesh;
use crate::output::Output;

#[derive(Args)]
#[command(
    after_help = "The test bed: source -- router with a bottleneck -- sink, in the namespaces \
    wirestamp-source, wirestamp-router and wirestamp-sink. Tap A (tap-a) is the receiving \
    interface of the router, tap B (tap-b) that of the sink.\n\nExample:\n  \
    wirestamp lab up\n  \
    wirestamp delay tap-a@wirestamp-router tap-b@wirestamp-sink --duration 5 &\n  \
    wirestamp send -i out@wirestamp-source --to 10.77.2.2 --pattern voip --duration 4; wait\n  \
    wirestamp lab down"
)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    action: Action,
}

#[derive(Subcommand)]
enum Action {
    /// Build the test bed, replacing an existing one; `lab down` removes it
    Up(Bottleneck),
    /// Remove the test bed
    Down,
    /// Run a complete mesh in its own test bed, measure traffic across a bottleneck, and check the
    /// results against known values
    Mesh(mesh::lab::Arguments),
    /// Build a test bed, run a command in which its namespaces exist, remove the bed, and exit with
    /// the command's status
    Run {
        #[command(flatten)]
        path: Bottleneck,
        /// The command and its arguments
        #[arg(required = true, trailing_var_arg = true, value_name = "COMMAND")]
        command: Vec<OsString>,
    },
}

/// A test bed.
#[derive(Serialize, JsonSchema)]
pub(crate) struct TestBed {
    /// Where to send.
    source: Point,
    /// Tap A: the receiving interface of the router.
    tap_a: Point,
    /// Tap B: the receiving interface of the sink.
    tap_b: Point,
    /// IPv4 and IPv6 address of the sink.
    sink_addresses: [std::net::IpAddr; 2],
}

/// An interface of the test bed.
#[derive(Serialize, JsonSchema)]
struct Point {
    /// Its network namespace.
    namespace: String,
    /// Its name.
    interface: &'static str,
}

/// The removed test bed.
#[derive(Serialize, JsonSchema)]
pub(crate) struct Removed {
    /// Network namespaces that were removed.
    removed: Vec<String>,
}

pub(crate) fn run(arguments: Arguments, output: Output) -> anyhow::Result<ExitCode> {
    wirestamp_lab::check_privilege()?;
    match arguments.action {
        Action::Up(path) => {
            if !wirestamp_lab::down(PREFIX)?.is_empty() {
                output.remark(
                    "replaced the existing test bed; programs that still run in the old one are not in this one",
                );
            }
            wirestamp_lab::up(PREFIX, &path.impairments())?;
            output.result(&bed(), text)?;
        }
        Action::Down => {
            let removed = wirestamp_lab::down(PREFIX)?;
            output.result(&Removed { removed }, |Removed { removed }| {
                match removed.as_slice() {
                    [] => "no test bed to remove\n".into(),
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

fn bed() -> TestBed {
    let point = |role, interface| Point { namespace: format!("{PREFIX}-{role}"), interface };
    TestBed {
        source: point("source", SOURCE_INTERFACE),
        tap_a: point("router", TAP_A),
        tap_b: point("sink", TAP_B),
        sink_addresses: [SINK_V4.into(), SINK_V6.into()],
    }
}

fn text(bed: &TestBed) -> String {
    let TestBed { source, tap_a, tap_b, sink_addresses: [v4, v6] } = bed;
    let name = |point: &Point| format!("{}@{}", point.interface, point.namespace);
    format!(
        "send from   {}\ntap A       {}\ntap B       {}\nsend to     {v4} or {v6}\n\
         remove it with `wirestamp lab down`\n",
        name(source),
        name(tap_a),
        name(tap_b)
    )
}
