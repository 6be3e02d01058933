//! Clock sources and their sync status.

use std::fmt;

use serde::{Serialize, Serializer};

use crate::Span;

/// A source of information about the error of the system clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum ClockSource {
    /// The kernel. It reports values of the program that steers its clock.
    Kernel,
    /// chronyd.
    Chrony,
    /// ptp4l.
    Ptp4l,
}

impl ClockSource {
    /// All clock sources.
    pub const ALL: [Self; 3] = [Self::Kernel, Self::Chrony, Self::Ptp4l];

    /// Name in JSON and in text.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Kernel => "kernel",
            Self::Chrony => "chrony",
            Self::Ptp4l => "ptp4l",
        }
    }
}

impl fmt::Display for ClockSource {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(self.name())
    }
}

/// Synchronisation of the system clock as one clock source reports it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SyncStatus {
    /// Source of this report.
    #[serde(rename = "by")]
    pub clock_source: ClockSource,
    /// Reference that the source follows: a local clock, a server or a grandmaster; none if unknown.
    #[serde(rename = "source")]
    pub reference: Option<String>,
    /// Stratum (RFC 5905 section 7.3), if reported: 1 for a clock with its own reference clock.
    pub stratum: Option<u16>,
    /// Offset of the system clock from the source's time; positive if the system clock is ahead. In documents, in
    /// nanoseconds.
    #[serde(rename = "ahead_ns", serialize_with = "serialize_nanos")]
    #[cfg_attr(feature = "schema", schemars(with = "i64"))]
    pub offset: Span,
    /// Bound of the system clock's distance from UTC; none if the clock is not synchronised to UTC. In documents, in
    /// nanoseconds.
    #[serde(rename = "error_ns", serialize_with = "serialize_optional_nanos")]
    #[cfg_attr(feature = "schema", schemars(with = "Option<i64>"))]
    pub error: Option<Span>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde calls it")]
fn serialize_nanos<S: Serializer>(span: &Span, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_i64(span.as_nanos())
}

fn serialize_optional_nanos<S: Serializer>(
    span: &Option<Span>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    span.map(Span::as_nanos).serialize(serializer)
}

/// `chrony, GPS, stratum 1, ±12 us`.
impl fmt::Display for SyncStatus {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.clock_source.fmt(out)?;
        if let Some(reference) = &self.reference {
            write!(out, ", {reference}")?;
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

/// Bound of the system clock's distance from UTC: the max of all reported errors.
///
/// # Errors
/// The first source that reports no synchronisation to UTC; the kernel if `statuses` is empty.
pub fn utc_error(statuses: &[SyncStatus]) -> Result<Span, ClockSource> {
    let errors = statuses.iter().map(|it| it.error.ok_or(it.clock_source));
    let errors: Vec<_> = errors.collect::<Result<_, _>>()?;
    errors.into_iter().max().ok_or(ClockSource::Kernel)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn status(clock_source: ClockSource, error: Option<i64>) -> SyncStatus {
        let error = error.map(Span::from_nanos);
        SyncStatus { clock_source, reference: None, stratum: None, offset: Span::ZERO, error }
    }

    #[test]
    fn max_error_counts_and_any_source_can_deny_utc() {
        let [kernel, chrony, ptp4l] = ClockSource::ALL.map(|it| move |error| status(it, error));
        let max = Span::from_nanos(12_000);
        assert_eq!(utc_error(&[kernel(Some(500)), chrony(Some(12_000)), ptp4l(Some(40))]), Ok(max));
        assert_eq!(utc_error(&[kernel(Some(500)), chrony(None)]), Err(ClockSource::Chrony));
        assert_eq!(utc_error(&[kernel(None), chrony(Some(1))]), Err(ClockSource::Kernel));
        assert_eq!(utc_error(&[]), Err(ClockSource::Kernel));
    }

    #[test]
    fn status_is_printed_in_one_line() {
        let mut chrony = status(ClockSource::Chrony, Some(12_000));
        (chrony.reference, chrony.stratum) = (Some("GPS".to_owned()), Some(1));
        assert_eq!(chrony.to_string(), "chrony, GPS, stratum 1, ±12 us");
        assert_eq!(status(ClockSource::Kernel, None).to_string(), "kernel, not on UTC");
        let json = serde_json::to_value(&chrony).unwrap();
        let expected =
            r#"{"by":"chrony","source":"GPS","stratum":1,"ahead_ns":0,"error_ns":12000}"#;
        assert_eq!(json, serde_json::from_str::<serde_json::Value>(expected).unwrap());
    }
}
