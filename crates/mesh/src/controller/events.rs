//! Telling the page what is new, as server-sent events (HTML Living Standard, section 9.2).

use std::convert::Infallible;
use std::time::Duration;

use axum::extract::State;
use axum::response::Sse;
use axum::response::sse::{Event, KeepAlive};
use tokio::sync::watch;
use tokio_stream::wrappers::WatchStream;
use tokio_stream::{Stream, StreamExt};

use super::api::{Api, Reader};
use super::refusal::Refusals;

/// How often is told of each at the most: results are of seconds, and nobody reads faster.
const RESULTS: Duration = Duration::from_millis(500);
const OTHERS: Duration = Duration::from_secs(1);

/// Tells what is new, as long as somebody listens
///
/// That there are new results (`results`), that the tasks are others (`tasks`), and that a probe came, went or
/// said how it does (`probes`). What it is, is asked for where it says the same to everybody.
#[utoipa::path(get, path = "/api/v1/events", responses(
    (status = 200, description = "Server-sent events, which have a name and the data `{}`", body = String,
     content_type = "text/event-stream"),
    Refusals,
))]
pub(super) async fn events(
    Reader(caller): Reader,
    State(api): State<Api>,
) -> Sse<impl Stream<Item = Result<Event, Infallible>>> {
    let results = changes("results", api.sources.subscribe(), RESULTS);
    let tasks = changes("tasks", api.plan.subscribe(), OTHERS);
    let probes = changes("probes", api.attendance.subscribe(), OTHERS);
    let events = results.merge(tasks).merge(probes);
    // It may be revoked meanwhile.
    let events = events.take_while(move |_| caller.check().is_ok());
    Sse::new(events.map(Ok)).keep_alive(KeepAlive::default())
}

/// An event of this name for all changes of a while together.
fn changes<T: Clone + Send + Sync + 'static>(
    name: &'static str,
    told: watch::Receiver<T>,
    distance: Duration,
) -> impl Stream<Item = Event> {
    let changes = WatchStream::from_changes(told).throttle(distance);
    // An event without data is none.
    changes.map(move |_| Event::default().event(name).data("{}"))
}
