//! Prometheus metrics: the newest results of tasks that measure delay, sums of tasks that count, and health of probes.
//!
//! The newest results are those of the last second with packets; they are absent after a minute without packets, or
//! without news of them. Counters and the histogram of delays contain all seconds.
//!
//! Ended tasks are not shown. Of a probe that is not connected, only whether it is up, its last report and its refused
//! connections are shown. Counters of delay tasks start with the controller. If a collector is away at that time, its
//! counters start when it first answers.

mod collectors;
mod counted;
mod delays;
mod probes;
mod return_path;
pub(super) mod totals;
mod window;

use std::collections::BTreeSet;

use axum::extract::State;
use axum::http::header::CONTENT_TYPE;
use axum::response::IntoResponse;
use wirestamp_results::{Families, TEXT};

use self::probes::{show_probe, show_rejected};
use super::api::{Api, Reader};
use super::clocks;
use super::error_response::{ApiError, CommonErrors, ErrorBody};
use crate::Name;
use crate::task::Tasks;

/// Metrics for Prometheus
#[utoipa::path(get, path = "/metrics", responses(
    (status = 200, description = "The newest results of each task, and the health of probes", body = String, content_type = TEXT),
    (status = 500, description = "A value cannot be represented in the format of Prometheus", body = ErrorBody),
    CommonErrors,
))]
pub(super) async fn scrape(
    _: Reader,
    State(api): State<Api>,
) -> Result<impl IntoResponse, ApiError> {
    let tasks = api.plan.subscribe().borrow().clone();
    let mut families = Families::default();
    let version = [("version", env!("CARGO_PKG_VERSION").to_owned())];
    families.info("wirestamp_build_info", &version);
    let totals = api.totals.catch_up(&tasks, &api.sources);
    // Concurrent, so that the timeouts do not add up.
    let (last, counted) = tokio::join!(totals, counted::ask(&tasks, &api.sources));
    last?;
    api.totals.show(&tasks, &mut families).await;
    counted::show(counted, &tasks, &mut families)?;
    collectors::show(&api, &tasks, &mut families);
    for (number, entered) in tasks.iter().filter(|(_, it)| it.ended.is_none()) {
        let epoch = (api.placement.history(*number).len() as u64).saturating_sub(1);
        let mut labels = vec![("task", entered.task.name.to_string())];
        if entered.task.part().is_some() {
            labels.push(("shard", entered.task.shard.to_string()));
        }
        families.add("wirestamp_task_epoch", &labels, epoch);
    }
    let probes = api.probes.all();
    for (name, attending) in &probes {
        show_probe(name, attending, &mut families);
        if let Some(health) = attending.current_health() {
            clocks::show(name, health, &tasks, &mut families);
            show_rejected(name, health, &tasks, &mut families);
        }
    }
    // Since the controller started.
    let has_not_connected = |name: &&Name| !probes.contains_key(*name);
    for name in probes_of(&tasks).into_iter().filter(has_not_connected) {
        families.add("wirestamp_probe_up", &[("probe", name.to_string())], false);
    }
    let text = families.text().map_err(ApiError::failure)?;
    Ok(([(CONTENT_TYPE, TEXT)], text))
}

/// The probes of running tasks.
fn probes_of(tasks: &Tasks) -> BTreeSet<&Name> {
    let running = tasks.values().filter(|it| it.ended.is_none());
    running.flat_map(|it| it.task.measure.probes()).collect()
}

#[cfg(test)]
mod tests;
