//! The messages of a call in order.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::net::SocketAddr;

use serde::Serialize;
use wirestamp_clock::{Time, Utc};
use wirestamp_packet::FlowKey;
use wirestamp_packet::sip::{Message, StartLine};

/// Max messages that are kept of a call: the first ones, and the last ones.
const MAX_MESSAGES: usize = 32;
pub(super) const FIRST: usize = 24;
/// Max characters of the reason of a response that are kept.
const MAX_REASON: usize = 40;

/// Messages of a call.
#[derive(Clone, Debug, Default)]
pub(super) struct Ladder {
    messages: Vec<LadderMessage>,
    /// Messages that were captured again between the same hosts.
    pub(super) repeated: u64,
    /// Messages that are not kept.
    pub(super) omitted: u64,
}

#[derive(Clone, Debug)]
struct LadderMessage {
    time: Time<Utc>,
    flow: FlowKey,
    identity: Identity,
    text: Box<str>,
}

/// What distinguishes messages with the same text: CSeq, and of responses of several callees the tag and the body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Identity {
    sequence: u32,
    tag_and_body: u64,
}

/// A message of a call.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CallMessage {
    /// Time of capture, in nanoseconds since 1970 UTC.
    pub time_ns: i64,
    /// Sending host.
    pub src: SocketAddr,
    /// Receiving host.
    pub dst: SocketAddr,
    /// Method of a request, or status of a response with its text and the method: `180 Ringing (INVITE)`.
    pub message: String,
}

impl Ladder {
    /// Records a message; returns whether it is a repetition.
    pub(super) fn record(
        &mut self,
        message: &Message<'_>,
        flow: &FlowKey,
        time: Time<Utc>,
    ) -> bool {
        let (text, identity) = (text(message), Identity::of(message));
        let is_repeated = self
            .messages
            .iter()
            .any(|known| known.identity == identity && known.flow == *flow && *known.text == *text);
        if is_repeated {
            self.repeated += 1;
        } else {
            if self.messages.len() == MAX_MESSAGES {
                self.messages.remove(FIRST);
                self.omitted += 1;
            }
            let (flow, text) = (*flow, text.into());
            self.messages.push(LadderMessage { time, flow, identity, text });
        }
        is_repeated
    }

    pub(super) fn messages(&self) -> impl Iterator<Item = CallMessage> {
        self.messages.iter().map(|it| CallMessage {
            time_ns: it.time.as_nanos(),
            src: it.flow.source,
            dst: it.flow.destination,
            message: it.text.to_string(),
        })
    }
}

impl Identity {
    fn of(message: &Message<'_>) -> Self {
        let mut hasher = DefaultHasher::new();
        (message.to.tag, message.body).hash(&mut hasher);
        Self { sequence: message.sequence, tag_and_body: hasher.finish() }
    }
}

fn text(message: &Message<'_>) -> String {
    match message.start {
        StartLine::Request { method } => method.to_owned(),
        StartLine::Response { status, reason } => {
            let reason: String = reason.chars().take(MAX_REASON).collect();
            format!("{status} {reason} ({})", message.method)
        }
    }
}
