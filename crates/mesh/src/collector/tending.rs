//! Periodic maintenance of the archive.

use std::sync::Arc;

use tokio::sync::watch;

use super::Archive;
use super::archive::INTERVAL;
use crate::task::Tasks;

/// Maintains the archive of these tasks forever.
pub(crate) async fn tend(archive: &Arc<Archive>, tasks: watch::Receiver<Arc<Tasks>>) {
    let mut interval = tokio::time::interval(INTERVAL);
    loop {
        interval.tick().await;
        let (archive, tasks) = (Arc::clone(archive), Arc::clone(&tasks.borrow()));
        // A panic was reported by the thread itself.
        drop(tokio::task::spawn_blocking(move || archive.tend(&tasks)).await);
    }
}
