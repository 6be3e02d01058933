//! How well the clock is known.

use wirestamp_clock::ClockStatus;
use wirestamp_results::Families;

/// Adds to a scrape how well the counter is calibrated that raw stamps are made of.
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
        "How far the counter's frequency can be off, as a share of it.",
        &[],
        status.rate_error_ppm * 1e-6,
    );
    families.seconds(
        "wirestamp_clock_error_seconds",
        "How far a raw stamp taken now can be off from system time.",
        &[],
        status.error_ns,
    );
    families.seconds(
        "wirestamp_clock_granularity_seconds",
        "The smallest usual step of the counter.",
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
