//! Report of a call.

use std::net::SocketAddr;

use serde::Serialize;
use wirestamp_clock::{Time, Utc};

use super::dialog::Dialog;
use super::ladder::{CallMessage, FIRST};
use super::side::CallSide;
use crate::flow::report::FlowReport;
use crate::numeric::nanos_to_f64;

/// A call, by its messages of SIP, with its RTP streams. Unknown values are null.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CallReport {
    /// The Call-ID.
    pub call_id: String,
    /// Address of the caller: From of the first message.
    pub caller: String,
    /// Address of the callee: To of the first message.
    pub callee: String,
    /// Progress.
    pub state: CallState,
    /// Last final response to the INVITE, 200 to 699.
    pub status: Option<u16>,
    /// Text of that response.
    pub reason: Option<String>,
    /// Time of the first message, in nanoseconds since 1970 UTC.
    pub begin_ns: i64,
    /// From the first INVITE to the first provisional response (101 to 199), such as ringing: the session request delay of
    /// RFC 6076.
    pub ringing_ms: Option<f64>,
    /// From the first INVITE to the answer (200 to 299).
    pub setup_ms: Option<f64>,
    /// From the answer to the first BYE.
    pub duration_ms: Option<f64>,
    /// The side that sent the first BYE.
    pub ended_by: Option<CallSide>,
    /// Messages that were captured again between the same hosts.
    pub repeated_messages: u64,
    /// Whether RTP audio was captured in one direction only after the answer, although both sides announced both
    /// directions. Null for calls without an answer or without RTP, for those of less than 2 s, and where a session
    /// description is missing.
    pub one_way_audio: Option<bool>,
    /// With one-way audio, the side of which no RTP was captured after the answer.
    pub silent_side: Option<CallSide>,
    /// RTP streams from the caller to the callee.
    pub to_callee: Vec<CallStream>,
    /// RTP streams from the callee to the caller.
    pub to_caller: Vec<CallStream>,
    /// The messages; of more than 32 the first 24 and the last 8.
    pub messages: Vec<CallMessage>,
    /// Messages between the first 24 and the last 8, of which there is only the number.
    pub messages_omitted: u64,
}

impl CallReport {
    /// The messages before and after the omitted ones. If none were omitted, all are in the first part.
    #[must_use]
    pub fn messages_around_omitted(&self) -> (&[CallMessage], &[CallMessage]) {
        let all = &self.messages;
        let first = if self.messages_omitted > 0 { FIRST.min(all.len()) } else { all.len() };
        all.split_at(first)
    }
}

/// Progress of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum CallState {
    /// Invited, without a sign of ringing.
    Calling,
    /// Ringing, or another sign of progress.
    Ringing,
    /// Answered, and no BYE was captured.
    Answered,
    /// Answered and ended by a BYE.
    Ended,
    /// Ended by the caller before the answer.
    Cancelled,
    /// Refused, redirected or failed: see the status.
    Failed,
}

/// An RTP stream of a call; its flow has all figures.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CallStream {
    /// Sending host.
    pub src: SocketAddr,
    /// Receiving host.
    pub dst: SocketAddr,
    /// The synchronisation source.
    pub ssrc: u32,
    /// Time of the first packet, in nanoseconds since 1970 UTC. Streams of calls one after the other may have the same
    /// addresses and source.
    pub first_ns: i64,
    /// Encoding name.
    pub codec: Option<String>,
    /// Packets captured.
    pub packets: u64,
    /// Packets lost.
    pub lost: Option<u64>,
    /// Share of packets lost, 0 to 1.
    pub loss_ratio: Option<f64>,
    /// Mean of the jitter over the packets.
    pub mean_jitter_ms: Option<f64>,
    /// Conversational MOS.
    pub mos: Option<f64>,
    /// Digits dialled during the call, if they are kept.
    pub dtmf: Option<String>,
}

impl CallStream {
    /// Whether this is the stream of a report.
    #[must_use]
    pub fn is_of(&self, report: &FlowReport) -> bool {
        let key = report.flow();
        let source = report.rtp.as_ref().map(|rtp| (rtp.ssrc, report.first_ns));
        (self.src, self.dst, Some((self.ssrc, self.first_ns)))
            == (key.source, key.destination, source)
    }
}

impl CallState {
    /// Name in documents.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Calling => "calling",
            Self::Ringing => "ringing",
            Self::Answered => "answered",
            Self::Ended => "ended",
            Self::Cancelled => "cancelled",
            Self::Failed => "failed",
        }
    }

    /// Whether the call is over: ended, cancelled or failed.
    #[must_use]
    pub const fn is_over(self) -> bool {
        match self {
            Self::Calling | Self::Ringing | Self::Answered => false,
            Self::Ended | Self::Cancelled | Self::Failed => true,
        }
    }

    fn of(dialog: &Dialog) -> Self {
        match (dialog.ended, dialog.is_established, dialog.over()) {
            (Some(_), true, _) => Self::Ended,
            (None, true, _) => Self::Answered,
            // The caller ended it before the answer (RFC 3261 section 15).
            (Some(_), false, _) => Self::Cancelled,
            (None, false, _) if dialog.is_cancelled => Self::Cancelled,
            (None, false, Some(_)) => Self::Failed,
            (None, false, None) if dialog.ringing.is_some() => Self::Ringing,
            (None, false, None) => Self::Calling,
        }
    }
}

impl CallReport {
    /// The report without streams.
    pub(super) fn of(id: &str, dialog: &Dialog) -> Self {
        let between = |begin: Option<Time<Utc>>, end: Option<Time<Utc>>| {
            begin.zip(end).map(|(begin, end)| nanos_to_f64((end - begin).as_nanos()) / 1e6)
        };
        let Dialog { invited, ringing, answered, ended, outcome, ladder, .. } = dialog;
        Self {
            call_id: id.to_owned(),
            caller: dialog.caller.to_string(),
            callee: dialog.callee.to_string(),
            state: CallState::of(dialog),
            status: outcome.as_ref().map(|outcome| outcome.status),
            reason: outcome.as_ref().map(|outcome| outcome.reason.to_string()),
            begin_ns: dialog.begin.as_nanos(),
            ringing_ms: between(*invited, *ringing),
            setup_ms: between(*invited, *answered),
            duration_ms: between(*answered, ended.map(|(time, _)| time)),
            ended_by: ended.map(|(_, side)| side),
            repeated_messages: ladder.repeated,
            one_way_audio: None,
            silent_side: None,
            to_callee: Vec::new(),
            to_caller: Vec::new(),
            messages: ladder.messages().collect(),
            messages_omitted: ladder.omitted,
        }
    }
}
