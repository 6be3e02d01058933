//! Results of the report.

/// Source of the numbers.
pub(crate) const PAPER: &str =
    "6QM, \"D4.2: Final System Test Report\" (IST-2001-37611, 2007), section 3.7";

/// Max difference of the mean delays in the report's tests, active and passive (test 5), in milliseconds.
pub(super) const MEAN_DIFFERENCE_MS: f64 = 63.37;
/// Min active delay in the report's tests (test 2), in milliseconds.
pub(super) const MIN_ACTIVE_MS: f64 = -569.121;
