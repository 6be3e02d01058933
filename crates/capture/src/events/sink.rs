//! The consumer of recorded events.

use super::Error;
use super::event::TraceEvent;

/// Consumer of recorded events, called on the thread that reads the rings. While it works, the rings fill up; events
/// that find no room are counted.
pub trait EventSink {
    /// Receives an event. Events of one CPU arrive in the order of their stamps.
    ///
    /// # Errors
    /// An error ends the recording.
    fn event(&mut self, event: &TraceEvent<'_>) -> Result<(), Error>;

    /// Called when the rings have been read to their end, or a batch of many events is complete: the place to convert
    /// the stamps of the events since the last call.
    ///
    /// # Errors
    /// An error ends the recording.
    fn end_of_batch(&mut self) -> Result<(), Error> {
        Ok(())
    }
}

impl<F: FnMut(&TraceEvent<'_>) -> Result<(), Error>> EventSink for F {
    fn event(&mut self, event: &TraceEvent<'_>) -> Result<(), Error> {
        self(event)
    }
}
