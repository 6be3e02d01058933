//! Metrics of the clock calibration.

use wirestamp_clock::ClockStatus;
use wirestamp_results::Families;

/// Adds the calibration of the counter behind raw stamps to a scrape.
pub(super) fn calibration(families: &mut Families, status: &ClockStatus) {
    let source = [("source", status.selected.to_owned())];
    families.info("wirestamp_clock_info", "The counter that raw stamps are read from.", &source);
    families.gauge(
        "wirestamp_clock_frequency_hertz",
        "The counter's frequency, as calibrated.",
        &[],
        status.frequency_hz,
    );
    families.gauge(
        "wirestamp_clock_rate_error_ratio",
        "Relative error bound of the counter's frequency.",
        &[],
        status.rate_error_ppm * 1e-6,
    );
    families.seconds(
        "wirestamp_clock_error_seconds",
        "Error bound of a raw stamp taken now, against system time.",
        &[],
        status.error_ns,
    );
    families.seconds(
        "wirestamp_clock_granularity_seconds",
        "The usual smallest step of the counter.",
        &[],
        status.granularity_ns,
    );
    families.counter(
        "wirestamp_clock_steps_total",
        "Steps of the system clock and disruptions of the counter.",
        &[],
        status.steps.into(),
    );
}
