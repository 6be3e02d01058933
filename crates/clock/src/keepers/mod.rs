//! Who keeps the system clock on UTC, and how well each of them says that it is kept.
//!
//! The kernel says what the program that steers its clock told it last; chronyd and ptp4l are asked
//! themselves, where they run. A clock that they follow, such as a GPS receiver or a pulse a second, is the
//! source that chronyd names.
//!
//! # Which of them counts
//!
//! The greatest of all errors that are stated, and none as soon as one of them says that the clock is not on
//! UTC. Each can be right where another is wrong:
//!
//! - The kernel adds 500 ppm of the time since it was told (RFC 1589 section 3.3), also if the program that
//!   told it is gone. But phc2sys and ptp4l tell it an error of 0, whatever their own is.
//! - chronyd bounds its own error up to the clock at the root. But it may run without steering the clock
//!   (`chronyd -x`), or follow nothing but the machine's own clock (`local`), which is no UTC.
//! - ptp4l knows its offset, and that the path to its master is as long as it measured. But it knows nothing
//!   of how right its grandmaster is.
//!
//! So the bound holds as long as one of them is right, and who wants a closer one sees each word of theirs.

mod ask;
mod chrony;
mod ptp4l;

use std::fmt;
use std::time::Instant;

use serde::{Serialize, Serializer};

pub use chrony::{NotTracking, Reference, TRACKING_LENGTH, Tracking, tracking_request};
pub use ptp4l::{CurrentDataSet, ManagementId, NotManagement, TimeStatus, management_request};

use crate::{Span, Synchronisation};

/// Somebody who keeps the system clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Keeper {
    /// The kernel, by the word of whoever steers it.
    Kernel,
    /// chronyd.
    Chrony,
    /// ptp4l.
    Ptp4l,
}

impl Keeper {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Kernel, Self::Chrony, Self::Ptp4l];

    /// Its name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Kernel => "kernel",
            Self::Chrony => "chrony",
            Self::Ptp4l => "ptp4l",
        }
    }
}

impl fmt::Display for Keeper {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(self.name())
    }
}

/// What one of them says of the system clock.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Statement {
    /// Who says it.
    pub by: Keeper,
    /// What it follows: a clock at this machine, a server, a grandmaster; none if it does not say.
    pub source: Option<String>,
    /// How many steps that is away from a clock that knows the time (RFC 5905 section 7.3), if it says.
    pub stratum: Option<u16>,
    /// How far the system clock is ahead of its time.
    #[serde(rename = "ahead_ns", serialize_with = "nanos")]
    pub ahead: Span,
    /// How far the system clock can be from UTC at the most; none if it is not on UTC.
    #[serde(rename = "error_ns", serialize_with = "maybe_nanos")]
    pub error: Option<Span>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde calls it")]
fn nanos<S: Serializer>(span: &Span, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_i64(span.as_nanos())
}

fn maybe_nanos<S: Serializer>(span: &Option<Span>, serializer: S) -> Result<S::Ok, S::Error> {
    span.map(Span::as_nanos).serialize(serializer)
}

/// `chrony, GPS, stratum 1, ±12 us`.
impl fmt::Display for Statement {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.by.fmt(out)?;
        if let Some(source) = &self.source {
            write!(out, ", {source}")?;
        }
        if let Some(stratum) = self.stratum {
            write!(out, ", stratum {stratum}")?;
        }
        match self.error {
            Some(error) => write!(out, ", ±{error}"),
            None => out.write_str(", not on UTC"),
        }
    }
}

/// How far the system clock can be from UTC, by what was stated of it: the greatest of all errors.
///
/// # Errors
/// Who says that it is not on UTC; the kernel if nobody said anything.
pub fn stated_error(statements: &[Statement]) -> Result<Span, Keeper> {
    let errors = statements.iter().map(|it| it.error.ok_or(it.by));
    let errors: Vec<_> = errors.collect::<Result<_, _>>()?;
    errors.into_iter().max().ok_or(Keeper::Kernel)
}

/// What programs that may steer the clock said when they were asked.
#[derive(Clone, Debug)]
pub struct Keepers {
    asked: Instant,
    said: Vec<Statement>,
}

/// How fast a clock that is steered may run away between two looks at it: chronyd's own assumption
/// (`maxclockerror`, chrony.conf(5)).
const PPM: i64 = 1;

impl Keepers {
    /// Asks those that run. This takes below a millisecond, and 0.2 s for each that is there and does not answer.
    #[must_use]
    pub fn ask() -> Self {
        let said = [ask::chrony(), ask::ptp4l()].into_iter().flatten().collect();
        Self { asked: Instant::now(), said }
    }

    /// What they said, and what the kernel says now.
    #[must_use]
    pub fn statements(&self) -> Vec<Statement> {
        // Where nobody may ask the kernel, nothing is known of it, and nobody states an error for it.
        let unknown = Statement {
            by: Keeper::Kernel,
            source: None,
            stratum: None,
            ahead: Span::ZERO,
            error: None,
        };
        let kernel = Synchronisation::read().map_or(unknown, |it| it.statement());
        let since = i64::try_from(self.asked.elapsed().as_nanos()).unwrap_or(i64::MAX);
        let strayed = Span::from_nanos(since / 1_000_000 * PPM + 1);
        let said = self.said.iter().cloned();
        let aged = said.map(|it| Statement { error: it.error.map(|it| it + strayed), ..it });
        [kernel].into_iter().chain(aged).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn statement(by: Keeper, error: Option<i64>) -> Statement {
        let error = error.map(Span::from_nanos);
        Statement { by, source: None, stratum: None, ahead: Span::ZERO, error }
    }

    #[test]
    fn the_greatest_error_counts_and_one_who_denies() {
        let [kernel, chrony, ptp4l] = Keeper::ALL.map(|by| move |error| statement(by, error));
        let of = |statements: &[Statement]| stated_error(statements);
        let known = Span::from_nanos(12_000);
        assert_eq!(of(&[kernel(Some(500)), chrony(Some(12_000)), ptp4l(Some(40))]), Ok(known));
        assert_eq!(of(&[kernel(Some(500)), chrony(None)]), Err(Keeper::Chrony));
        assert_eq!(of(&[kernel(None), chrony(Some(1))]), Err(Keeper::Kernel));
        assert_eq!(of(&[]), Err(Keeper::Kernel));
    }

    #[test]
    fn a_statement_is_said_in_a_line() {
        let mut said = statement(Keeper::Chrony, Some(12_000));
        (said.source, said.stratum) = (Some("GPS".to_owned()), Some(1));
        assert_eq!(said.to_string(), "chrony, GPS, stratum 1, ±12 us");
        assert_eq!(statement(Keeper::Kernel, None).to_string(), "kernel, not on UTC");
        let json = serde_json::to_value(&said).unwrap();
        let wanted = r#"{"by":"chrony","source":"GPS","stratum":1,"ahead_ns":0,"error_ns":12000}"#;
        assert_eq!(json, serde_json::from_str::<serde_json::Value>(wanted).unwrap());
    }

    #[test]
    fn the_kernel_is_heard_whoever_else_is() {
        let statements = Keepers::ask().statements();
        assert_eq!(statements[0].by, Keeper::Kernel);
        let old = Keepers {
            asked: Instant::now(),
            said: vec![statement(Keeper::Chrony, Some(1000)), statement(Keeper::Ptp4l, None)],
        };
        let statements = old.statements();
        assert!(statements[1].error > Some(Span::from_nanos(1000)), "{statements:?}");
        assert_eq!(statements[2].error, None);
    }
}
