//! Server-sent events for the page (HTML Living Standard, section 9.2).

use std::convert::Infallible;
use std::time::Duration;

use axum::extract::State;
use axum::response::Sse;
use axum::response::sse::{Event, KeepAlive};
use tokio::sync::watch;
use tokio_stream::wrappers::WatchStream;
use tokio_stream::{Stream, StreamExt};

use super::api::{Api, Reader};
use super::error_response::CommonErrors;

/// Min distance between events: results come once a second.
const RESULTS: Duration = Duration::from_millis(500);
const OTHERS: Duration = Duration::from_secs(1);

/// Notifies of changes
///
/// Events: `results` (new results), `tasks` (tasks changed), `probes` (a probe connected, disconnected or sent a
/// report). Read the changed data from its own path.
#[utoipa::path(get, path = "/api/v1/events", responses(
    (status = 200, description = "Server-sent events with a name and the data `{}`", body = String,
     content_type = "text/event-stream"),
    CommonErrors,
))]
pub(super) async fn events(
    Reader(caller): Reader,
    State(api): State<Api>,
) -> Sse<impl Stream<Item = Result<Event, Infallible>>> {
    let results = changes("results", api.sources.subscribe(), RESULTS);
    let tasks = changes("tasks", api.plan.subscribe(), OTHERS);
    let probes = changes("probes", api.probes.subscribe(), OTHERS);
    let events = results.merge(tasks).merge(probes);
    // The certificate may be revoked while the stream is open.
    let events = events.take_while(move |_| caller.check().is_ok());
    Sse::new(events.map(Ok)).keep_alive(KeepAlive::default())
}

/// One event of this name for all changes within `distance`.
fn changes<T: Clone + Send + Sync + 'static>(
    name: &'static str,
    last: watch::Receiver<T>,
    distance: Duration,
) -> impl Stream<Item = Event> {
    let changes = WatchStream::from_changes(last).throttle(distance);
    // Browsers drop events without data.
    changes.map(move |_| Event::default().event(name).data("{}"))
}
