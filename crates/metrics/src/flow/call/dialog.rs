//! Progress of a call by its messages.

use std::net::SocketAddr;

use wirestamp_clock::{Span, Time, Utc};
use wirestamp_packet::FlowKey;
use wirestamp_packet::sdp::{self, Direction};
use wirestamp_packet::sip::{Message, StartLine};

use super::ladder::Ladder;
use super::side::CallSide;

/// Max media addresses of a side.
const MAX_MEDIA: usize = 16;
/// Max ports of one medium.
const MAX_PORTS: u16 = 4;
/// Max tags of the caller, because each attempt may have a new one, and of callees that answered.
const MAX_TAGS: usize = 4;
/// Max characters of the reason of a response that are kept.
const MAX_REASON: usize = 256;
/// Time after the first answer in which the caller ends the dialogs of further ones: 64·T1 (section 13.2.2.4).
const SURPLUS: Span = Span::from_secs(32);

/// A call: an INVITE dialog (RFC 3261 sections 12 and 13).
#[derive(Clone, Debug)]
pub(super) struct Dialog {
    pub(super) caller: Box<str>,
    pub(super) callee: Box<str>,
    /// Tags of the caller.
    caller_tags: Vec<Box<str>>,
    /// Tags of the callees that answered and were not ended: a proxy may call several.
    callee_tags: Vec<Box<str>>,
    /// Time of the first message.
    pub(super) begin: Time<Utc>,
    /// Times of the first INVITE, the first provisional response (101 to 199), and the answer; none if they were not
    /// captured.
    pub(super) invited: Option<Time<Utc>>,
    /// Host that sent the first INVITE: what other hosts receive concerns a branch of the call, not the call.
    inviter: Option<SocketAddr>,
    pub(super) ringing: Option<Time<Utc>>,
    pub(super) answered: Option<Time<Utc>>,
    /// Whether the call was answered, possibly before the capture.
    pub(super) is_established: bool,
    pub(super) is_cancelled: bool,
    /// Time of the first BYE, and its sender.
    pub(super) ended: Option<(Time<Utc>, CallSide)>,
    /// Last final response to the INVITE.
    pub(super) outcome: Option<Outcome>,
    /// Media of the caller and of the callee.
    pub(super) media: [SideMedia; 2],
    pub(super) ladder: Ladder,
}

/// A final response.
#[derive(Clone, Debug)]
pub(super) struct Outcome {
    pub(super) status: u16,
    pub(super) reason: Box<str>,
    pub(super) time: Time<Utc>,
}

/// Where a side receives RTP, by its session descriptions.
#[derive(Clone, Debug, Default)]
pub(super) struct SideMedia {
    pub(super) addresses: Vec<SocketAddr>,
    /// Whether it described audio in both directions.
    pub(super) is_audio_two_way: bool,
}

impl Dialog {
    /// A call that begins with this message, which is not recorded yet.
    pub(super) fn new(first: &Message<'_>, time: Time<Utc>) -> Self {
        // An INVITE within a dialog has the tags of both sides (section 14.1).
        let is_request = matches!(first.start, StartLine::Request { .. });
        Self {
            caller: first.from.uri.into(),
            callee: first.to.uri.into(),
            caller_tags: first.from.tag.map(Into::into).into_iter().collect(),
            callee_tags: Vec::new(),
            begin: time,
            invited: None,
            inviter: None,
            ringing: None,
            answered: None,
            is_established: is_request && first.to.tag.is_some(),
            is_cancelled: false,
            ended: None,
            outcome: None,
            media: Default::default(),
            ladder: Ladder::default(),
        }
    }

    /// When the call was over: ended or refused.
    pub(super) fn over(&self) -> Option<Time<Utc>> {
        let refused = self.outcome.as_ref().filter(|outcome| outcome.status >= 300);
        self.ended.map(|(time, _)| time).or(refused.map(|outcome| outcome.time))
    }

    /// Records a message. The same message may pass several times: repeated, or forwarded by proxies.
    pub(super) fn record(&mut self, message: &Message<'_>, flow: &FlowKey, time: Time<Utc>) {
        if self.ladder.record(message, flow, time) {
            return; // repeated
        }
        if message.start == (StartLine::Request { method: "INVITE" }) {
            self.invite(message, flow, time);
        }
        let sender = self.sender(message);
        match message.start {
            StartLine::Request { method: "CANCEL" } => {
                self.is_cancelled |= self.inviter.is_none_or(|inviter| inviter == flow.source);
            }
            StartLine::Request { method: "BYE" } if self.ends(message, time) => {
                self.ended.get_or_insert((time, sender));
            }
            StartLine::Response { status, reason } if message.method == "INVITE" => {
                let is_for_call = self.inviter.is_none_or(|it| it == flow.destination);
                if is_for_call || status < 300 {
                    self.respond(message, status, reason, time);
                }
            }
            StartLine::Request { .. } | StartLine::Response { .. } => {}
        }
        self.describe(message.body, sender);
    }

    /// The side that sent a message: responses have From and To of the request (section 8.2.6.2).
    fn sender(&self, message: &Message<'_>) -> CallSide {
        let is_by_caller =
            message.from.tag.is_none_or(|tag| self.caller_tags.iter().any(|known| **known == *tag));
        let is_request = matches!(message.start, StartLine::Request { .. });
        if is_by_caller == is_request { CallSide::Caller } else { CallSide::Callee }
    }

    /// Whether a BYE ends the call, and not only the dialog of a callee that answered too.
    fn ends(&mut self, message: &Message<'_>, time: Time<Utc>) -> bool {
        let tags = [message.from.tag, message.to.tag];
        self.callee_tags.retain(|callee| !tags.contains(&Some(&**callee)));
        let is_soon = self.answered.is_some_and(|answered| time - answered <= SURPLUS);
        self.callee_tags.is_empty() || !is_soon
    }

    fn invite(&mut self, message: &Message<'_>, flow: &FlowKey, time: Time<Utc>) {
        if message.to.tag.is_some() {
            return; // within the dialog
        }
        if let Some(tag) = message.from.tag
            && self.caller_tags.len() < MAX_TAGS
            && self.caller_tags.iter().all(|known| **known != *tag)
        {
            self.caller_tags.push(tag.into());
        }
        self.invited.get_or_insert(time);
        let inviter = *self.inviter.get_or_insert(flow.source);
        if !self.is_established && inviter == flow.source {
            // A new attempt, such as one with credentials (section 22.2), or to another address.
            (self.outcome, self.is_cancelled) = (None, false);
        }
    }

    fn respond(&mut self, message: &Message<'_>, status: u16, reason: &str, time: Time<Utc>) {
        if let Some(tag) = message.to.tag.filter(|_| (200..300).contains(&status))
            && self.callee_tags.len() < MAX_TAGS
            && self.callee_tags.iter().all(|known| **known != *tag)
        {
            self.callee_tags.push(tag.into());
        }
        if self.is_established || status == 100 {
            return; // to an INVITE within the dialog, or without news
        }
        if status < 200 {
            self.ringing.get_or_insert(time);
            return;
        }
        if status < 300 {
            self.is_established = true;
            self.answered = self.invited.map(|_| time);
        }
        let reason: String = reason.chars().take(MAX_REASON).collect();
        self.outcome = Some(Outcome { status, reason: reason.into(), time });
    }

    /// Notes where the sender of a session description receives.
    fn describe(&mut self, body: &[u8], sender: CallSide) {
        let SideMedia { addresses, is_audio_two_way } = &mut self.media[sender as usize];
        for medium in sdp::find(body).unwrap_or_default() {
            // Without an address it is a host name, or the call is on hold (RFC 3264 section 8.4).
            let Some(host) = medium.address else { continue };
            *is_audio_two_way |=
                medium.kind == "audio" && medium.direction == Direction::SendReceive;
            let ports = (0..medium.port_count.min(MAX_PORTS))
                .filter_map(|number| medium.port.checked_add(2 * number));
            for address in ports.map(|port| SocketAddr::new(host, port)) {
                if addresses.len() < MAX_MEDIA && !addresses.contains(&address) {
                    addresses.push(address);
                }
            }
        }
    }
}
