//! Metrics of the clock calibration.

use wirestamp_clock::ClockStatus;
use wirestamp_results::{Families, seconds};

/// Adds the calibration of the counter behind raw stamps to a scrape.
pub(super) fn calibration(families: &mut Families, status: &ClockStatus) {
    let source = [("source", status.selected.to_owned())];
    families.info("wirestamp_clock_info", &source);
    families.add("wirestamp_clock_frequency_hertz", &[], status.frequency_hz);
    families.add("wirestamp_clock_rate_error_ratio", &[], status.rate_error_ppm * 1e-6);
    families.add("wirestamp_clock_error_seconds", &[], seconds(status.error_ns));
    families.add("wirestamp_clock_granularity_seconds", &[], seconds(status.granularity_ns));
    families.add("wirestamp_clock_steps_total", &[], u64::from(status.steps));
}
