//! The archive is kept, again and again.

use std::sync::Arc;

use tokio::sync::watch;

use super::Archive;
use super::archive::INTERVAL;
use crate::task::Tasks;

/// Keeps the archive of these tasks, for ever.
pub(crate) async fn tend(archive: &Arc<Archive>, tasks: watch::Receiver<Arc<Tasks>>) {
    let mut interval = tokio::time::interval(INTERVAL);
    loop {
        interval.tick().await;
        let (archive, tasks) = (Arc::clone(archive), Arc::clone(&tasks.borrow()));
        // One that panicked has told so.
        drop(tokio::task::spawn_blocking(move || archive.tend(&tasks)).await);
    }
}
