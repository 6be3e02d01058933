//! `capture --metrics`.

use std::sync::Arc;

use wirestamp_capture::Capture;
use wirestamp_clock::ClockService;
use wirestamp_results::Families;
use wirestamp_session::LiveFigures;

use super::Endpoint;
use super::calibration::calibration;
use super::tap::Tap;
use crate::output::Output;

/// Serves the metrics of a capture and its clock at `endpoint`, if open. Returns the figures that the
/// capture has to update.
pub(crate) fn serve(
    endpoint: &Endpoint,
    capture: &Capture,
    clock: &Arc<ClockService>,
    output: Output,
) -> anyhow::Result<Option<Arc<LiveFigures>>> {
    serve_with(endpoint, capture, clock, output, |_| ())
}

/// Like [`serve`], with the metrics that `more` adds at each scrape.
pub(super) fn serve_with(
    endpoint: &Endpoint,
    capture: &Capture,
    clock: &Arc<ClockService>,
    output: Output,
    more: impl Fn(&mut Families) + Send + 'static,
) -> anyhow::Result<Option<Arc<LiveFigures>>> {
    if !endpoint.is_open() {
        return Ok(None);
    }
    let tap = Tap::of(capture, None);
    let figures = tap.figures();
    let clock = Arc::clone(clock);
    endpoint.serve(output, move |families| {
        tap.collect(families);
        calibration(families, &clock.status());
        more(families);
    })?;
    Ok(Some(figures))
}
