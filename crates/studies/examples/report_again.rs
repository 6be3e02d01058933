//! Writes reports of studies again, with the texts and verdicts of this version and without a measurement.
//!
//! ```text
//! report_again FILE.json      from the document: overhead and interarrival; timers, with its raw results beside it
//! report_again NAME FOLDER    from all raw results of a study in FOLDER: NAME.html and NAME.json there
//! ```
//! `NAME-mesh` is a study that was measured with a mesh.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, ensure};
use wirestamp_capture::Stop;
use wirestamp_studies::mesh::MeshPlan;
use wirestamp_studies::{Entry, Options, write_again};

fn main() -> anyhow::Result<()> {
    let arguments: Vec<_> = std::env::args().skip(1).collect();
    let report = match arguments.as_slice() {
        [document] => write_again(Path::new(document))?,
        [name, folder] => from_raw_results(name, folder.into())?,
        _ => anyhow::bail!("give FILE.json, or NAME and FOLDER"),
    };
    println!("{}", report.display());
    Ok(())
}

/// A requested stop prevents every run that is not in the folder.
fn from_raw_results(name: &str, folder: PathBuf) -> anyhow::Result<PathBuf> {
    let (study, has_mesh) = name.strip_suffix("-mesh").map_or((name, false), |study| (study, true));
    let study = Entry::named(study).with_context(|| format!("there is no study {study}"))?;
    let stop = Stop::new()?;
    stop.request();
    let options = Options { quick: false, folder: Some(folder.clone()), seed: 1 };
    let mut account = if has_mesh {
        let bring_up = |_: &MeshPlan| anyhow::bail!("a mesh is started for a measurement only");
        study.run_over_mesh(bring_up, &options, &stop, &mut |_| ())?
    } else {
        study.run(&options, &stop, &mut |_| ())?
    };
    ensure!(
        !account.making.interrupted,
        "not all raw results of {name} are in {}",
        folder.display()
    );
    let report = account.report.take().context("no report was written")?;
    // The document and its report are in the same folder.
    account.report = report.file_name().map(PathBuf::from);
    let document = serde_json::to_string_pretty(&account)? + "\n";
    fs::write(folder.join(name).with_extension("json"), document)?;
    Ok(report)
}
