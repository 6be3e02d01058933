//! Printing of results, remarks and numbers.

use std::collections::BTreeSet;
use std::io::{self, BufWriter, IsTerminal, Write};

use clap::Args;
use serde::Serialize;
use wirestamp_metrics::emodel::Scale;
use wirestamp_report::format;

use crate::usage::usage;

/// Buffer in front of standard output for JSON, in bytes.
const JSON_BUFFER: usize = 1 << 16;

/// Output options of every command.
#[derive(Clone, Copy, Debug, Args)]
pub(crate) struct Output {
    /// Print the result as one JSON document
    #[arg(long, global = true, help_heading = "Output")]
    pub(crate) json: bool,
    /// Print neither progress nor remarks
    #[arg(short, long, global = true, conflicts_with = "verbose", help_heading = "Output")]
    pub(crate) quiet: bool,
    /// Print more remarks
    #[arg(short, long, global = true, overrides_with = "verbose", help_heading = "Output")]
    pub(crate) verbose: bool,
}

impl Output {
    /// Prints the result: `document` as JSON with `--json`, otherwise its `text`.
    pub(crate) fn result<T: Serialize>(
        self,
        document: &T,
        text: impl FnOnce(&T) -> String,
    ) -> anyhow::Result<()> {
        let mut out = io::stdout().lock();
        if self.json {
            // Without it, each line is a write of its own.
            let mut out = BufWriter::with_capacity(JSON_BUFFER, out);
            serde_json::to_writer_pretty(&mut out, document).map_err(io::Error::from)?;
            writeln!(out)?;
            return Ok(out.flush()?);
        }
        out.write_all(text(document).as_bytes())?;
        Ok(out.flush()?)
    }

    /// Rejects `--per-second` without the document that has the seconds.
    pub(crate) fn check_per_second(self, is_given: bool) -> anyhow::Result<()> {
        if is_given && !self.json {
            return Err(usage("--per-second adds to the document of --json; add --json"));
        }
        Ok(())
    }

    /// Prints a line to standard error, unless `--quiet`.
    pub(crate) fn remark(self, text: impl std::fmt::Display) {
        if !self.quiet {
            to_stderr(text);
        }
    }

    /// Prints a line to standard error with `--verbose`.
    pub(crate) fn detail(self, text: impl std::fmt::Display) {
        if self.verbose {
            to_stderr(text);
        }
    }

    /// Whether progress is shown: on a terminal, without `--quiet`.
    pub(crate) fn shows_progress(self) -> bool {
        !self.quiet && io::stderr().is_terminal()
    }
}

/// The recommendations by which calls of these scales are rated.
pub(crate) fn rated_by(scales: impl IntoIterator<Item = Scale>) -> &'static str {
    let scales: BTreeSet<_> = scales.into_iter().collect();
    match scales.into_iter().collect::<Vec<_>>()[..] {
        [] | [Scale::Narrowband] => "ITU-T G.107",
        [Scale::Wideband] => "ITU-T G.107.1 (wideband)",
        [Scale::Fullband] => "ITU-T G.107.2 (fullband)",
        [Scale::Narrowband, Scale::Wideband] => {
            "ITU-T G.107 and G.107.1 (wideband; the two are not comparable)"
        }
        _ => "ITU-T G.107, G.107.1 (wideband) and G.107.2 (fullband), which are not comparable",
    }
}

/// Prints a line to standard error. Where that is closed or full, the line is lost, and the command continues: it has other
/// results.
pub(crate) fn to_stderr(text: impl std::fmt::Display) {
    let _ = writeln!(io::stderr(), "{text}");
}

/// A time in nanoseconds, in the unit that fits its size.
pub(crate) fn time(nanos: i64) -> String {
    plain(&format::nanos(nanos))
}

/// A mean time in nanoseconds, in the unit that fits its size.
pub(crate) fn mean(nanos: f64) -> String {
    plain(&format::duration(nanos))
}

/// A count with digits in groups of three.
pub(crate) fn count(value: u64) -> String {
    plain(&format::count(value))
}

/// A count with its noun: `1 packet`, `2 packets`.
pub(crate) fn things(number: u64, thing: &str) -> String {
    format!("{number} {thing}{}", if number == 1 { "" } else { "s" })
}

/// A count with digits in groups of three, and its noun with a given plural.
pub(crate) fn plural(value: u64, one: &str, many: &str) -> String {
    plain(&format::plural(value, one, many))
}

/// `part` of `whole` in percent.
pub(crate) fn percent(part: u64, whole: u64) -> String {
    plain(&format::percent(part, whole))
}

/// Replaces typographic characters of reports by ones that every terminal and grep support.
pub(crate) fn plain(text: &str) -> String {
    text.replace(format::THIN_SPACE, " ").replace(['\u{2212}', '\u{2013}'], "-")
}
