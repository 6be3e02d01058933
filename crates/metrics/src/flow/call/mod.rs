//! SIP calls, and the RTP streams that belong to them.
//!
//! | file | contents |
//! |---|---|
//! | `mod.rs` | the calls in memory |
//! | `dialog.rs` | progress of one call by its messages |
//! | `ladder.rs` | the messages of a call in order |
//! | `side.rs` | caller and callee |
//! | `report.rs` | report of a call |
//! | `join.rs` | assigns RTP streams to calls |

mod dialog;
mod join;
mod ladder;
mod report;
mod side;
#[cfg(test)]
mod tests;

use std::collections::{HashMap, VecDeque};

use wirestamp_clock::{Time, Utc};
use wirestamp_packet::FlowKey;
use wirestamp_packet::sip::Message;

use super::report::FlowReport;
use dialog::Dialog;
pub use ladder::CallMessage;
pub use report::{CallReport, CallState, CallStream};
pub use side::CallSide;

/// A bounded number of calls, by Call-ID (RFC 3261 section 8.1.1.4). A new call replaces the oldest.
#[derive(Clone, Debug)]
pub(super) struct Calls {
    limit: usize,
    dialogs: HashMap<Box<str>, Dialog>,
    oldest_first: VecDeque<Box<str>>,
    /// Calls that were replaced.
    pub(super) evicted: u64,
}

impl Calls {
    /// At most `limit` calls; 0 for none.
    pub(super) fn new(limit: usize) -> Self {
        Self { limit, dialogs: HashMap::new(), oldest_first: VecDeque::new(), evicted: 0 }
    }

    /// Records a message. A call begins with an INVITE or a response to one: of a call that was captured only at its end,
    /// nothing is known.
    pub(super) fn record(&mut self, message: &[u8], flow: &FlowKey, time: Time<Utc>) {
        if self.limit == 0 {
            return;
        }
        let Some(message) = Message::parse(message) else { return };
        if let Some(dialog) = self.dialogs.get_mut(message.call_id) {
            dialog.record(&message, flow, time);
        } else if message.method == "INVITE" {
            let mut dialog = Dialog::new(&message, time);
            dialog.record(&message, flow, time);
            self.open(message.call_id.into(), dialog);
        }
    }

    /// Whether the call `later` began after the call `former` was over.
    pub(super) fn follows(&self, later: &str, former: &str) -> bool {
        let begin = self.dialogs.get(later).map(|dialog| dialog.begin);
        let over = self.dialogs.get(former).and_then(Dialog::over);
        later != former && begin.zip(over).is_some_and(|(begin, over)| begin >= over)
    }

    fn open(&mut self, id: Box<str>, dialog: Dialog) {
        self.oldest_first.push_back(id.clone());
        self.dialogs.insert(id, dialog);
        if self.oldest_first.len() > self.limit
            && let Some(oldest) = self.oldest_first.pop_front()
        {
            self.dialogs.remove(&oldest);
            self.evicted += 1;
        }
    }

    /// Reports of all calls, oldest first, with their streams of `flows`; others were evicted until the given time.
    pub(super) fn reports(
        &self,
        flows: &[FlowReport],
        evicted_until: Option<Time<Utc>>,
    ) -> Vec<CallReport> {
        let dialogs: Vec<_> = self
            .oldest_first
            .iter()
            .filter_map(|id| Some((&**id, self.dialogs.get(id)?)))
            .collect();
        let mut reports: Vec<_> =
            dialogs.iter().map(|(id, dialog)| CallReport::of(id, dialog)).collect();
        let dialogs: Vec<_> = dialogs.into_iter().map(|(_, dialog)| dialog).collect();
        join::add_streams(&dialogs, flows, evicted_until, &mut reports);
        reports
    }
}
