//! Results of the two taps by stream.

use wirestamp_clock::{Span, Stamp, Time, Utc};
use wirestamp_metrics::{Outcome, Quality};

use super::bed::{ROLES, Role};

/// Sorts the correlator's outcomes by stream.
#[derive(Debug)]
pub(super) struct Recorder {
    pub(super) total: Quality,
    pub(super) streams: [Stream; ROLES.len()],
}

/// Results of one stream: totals and packets.
#[derive(Debug)]
pub(super) struct Stream {
    pub(super) role: Role,
    pub(super) quality: Quality,
    /// Time of sending and delay of each packet that arrived.
    pub(super) delays: Vec<(Time<Utc>, Span)>,
    /// Time of sending of each lost packet.
    pub(super) lost: Vec<Time<Utc>>,
    /// The stamps at tap A and at tap B.
    stamps: [Vec<Stamp>; 2],
}

impl Default for Recorder {
    fn default() -> Self {
        let stream = |role| Stream {
            role,
            quality: Quality::new(),
            delays: Vec::new(),
            lost: Vec::new(),
            stamps: [Vec::new(), Vec::new()],
        };
        Self { total: Quality::new(), streams: ROLES.map(stream) }
    }
}

impl Recorder {
    pub(super) fn record(&mut self, outcome: &Outcome) {
        self.total.record(outcome);
        let port = outcome.flow().destination.port();
        if let Some(stream) = self.streams.iter_mut().find(|stream| stream.role.port == port) {
            stream.record(outcome);
        }
    }
}

impl Stream {
    fn record(&mut self, outcome: &Outcome) {
        self.quality.record(outcome);
        let [at_a, at_b] = &mut self.stamps;
        match outcome {
            Outcome::Matched { sent, received, delay, .. } => {
                self.delays.push((sent.stamp.utc, *delay));
                at_a.push(sent.stamp);
                at_b.push(received.stamp);
            }
            Outcome::Lost { sent, .. } => {
                self.lost.push(sent.stamp.utc);
                at_a.push(sent.stamp);
            }
            Outcome::Duplicated { received, .. } | Outcome::Unexpected { received } => {
                at_b.push(received.stamp);
            }
            Outcome::Undetermined { .. } | Outcome::Identical { .. } => {}
        }
    }

    /// Times between the packets at tap A and at tap B, in nanoseconds. Outcomes come in the order
    /// in which they were decided, so the stamps are put in the order of time first.
    pub(super) fn interarrival(&self) -> [Vec<i64>; 2] {
        self.stamps.each_ref().map(|stamps| {
            let mut times: Vec<_> = stamps.iter().map(|stamp| stamp.utc).collect();
            times.sort_unstable();
            times.windows(2).map(|pair| (pair[1] - pair[0]).as_nanos()).collect()
        })
    }
}
