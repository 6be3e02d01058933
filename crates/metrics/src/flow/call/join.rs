//! Assignment of RTP streams to calls, by the addresses in session descriptions.

use std::collections::HashMap;
use std::net::SocketAddr;

use wirestamp_clock::{Span, Time, Utc};

use super::dialog::Dialog;
use super::report::{CallReport, CallStream};
use super::side::CallSide;
use crate::flow::report::FlowReport;

/// RTP that begins at most this long after the end of a call still belongs to it.
const SLACK: Span = Span::from_secs(5);
/// Max calls with the same address that are considered for a stream.
const MAX_CANDIDATES: usize = 256;
/// Min packets of a direction that prove that audio passed: a second of 20 ms each.
const MIN_AUDIO: u64 = 50;
/// Min time after the answer in which both sides should have sent.
const MIN_TALK: Span = Span::from_secs(2);

/// The calls, and where their sides receive RTP.
struct Calls<'a> {
    dialogs: &'a [&'a Dialog],
    /// By address, in the order of the calls.
    receivers: HashMap<SocketAddr, Vec<(usize, CallSide)>>,
}

/// Audio of a call after its answer.
#[derive(Clone, Copy, Debug, Default)]
struct Audio {
    /// Packets to the caller and to the callee.
    packets: [u64; 2],
    last: Option<Time<Utc>>,
}

/// Adds to each call its streams.
pub(super) fn add_streams(dialogs: &[&Dialog], flows: &[FlowReport], calls: &mut [CallReport]) {
    let known = Calls::new(dialogs);
    let mut audio = vec![Audio::default(); calls.len()];
    for flow in flows {
        let Some(stream) = CallStream::of(flow) else { continue };
        let Some((place, side)) = known.receiver(&stream, Time::from_nanos(flow.first_ns)) else {
            continue;
        };
        audio[place].add(dialogs[place], flow, side);
        match side {
            CallSide::Caller => calls[place].to_caller.push(stream),
            CallSide::Callee => calls[place].to_callee.push(stream),
        }
    }
    for ((dialog, call), audio) in dialogs.iter().zip(calls).zip(audio) {
        call.one_way_audio = audio.is_one_way(dialog);
    }
}

impl<'a> Calls<'a> {
    fn new(dialogs: &'a [&'a Dialog]) -> Self {
        let mut receivers: HashMap<_, Vec<_>> = HashMap::new();
        for (place, dialog) in dialogs.iter().enumerate() {
            for side in [CallSide::Caller, CallSide::Callee] {
                for address in &dialog.media[side as usize].addresses {
                    receivers.entry(*address).or_default().push((place, side));
                }
            }
        }
        Self { dialogs, receivers }
    }

    /// The call of a stream that begins at this time, and the side that receives it: a call that announced both its ends;
    /// otherwise the only call that announced its destination; otherwise, behind address translation, the only one that
    /// announced its source, because phones send from where they receive (RFC 4961).
    fn receiver(&self, stream: &CallStream, begin: Time<Utc>) -> Option<(usize, CallSide)> {
        let between = self.candidates(&stream.dst, begin).find(|(place, side)| {
            self.dialogs[*place].media[side.other() as usize].addresses.contains(&stream.src)
        });
        let sender = || {
            let (place, side) = only(self.candidates(&stream.src, begin))?;
            Some((place, side.other()))
        };
        between.or_else(|| only(self.candidates(&stream.dst, begin))).or_else(sender)
    }

    /// Calls that announced an address and were in progress at this time, the newest first.
    fn candidates(
        &self,
        address: &SocketAddr,
        time: Time<Utc>,
    ) -> impl Iterator<Item = (usize, CallSide)> {
        let all = self.receivers.get(address).map_or(&[][..], Vec::as_slice);
        let begun = all.partition_point(|(place, _)| self.dialogs[*place].begin <= time);
        // Of a call that began before the capture, the first message may be later.
        let near = all[..begun].iter().rev().chain(&all[begun..]).take(MAX_CANDIDATES);
        near.filter(move |(place, _)| is_during(self.dialogs[*place], time)).copied()
    }
}

/// The item, if there is exactly one.
fn only<T>(mut items: impl Iterator<Item = T>) -> Option<T> {
    let first = items.next()?;
    items.next().is_none().then_some(first)
}

/// Whether a stream that begins at this time can belong to the call.
fn is_during(dialog: &Dialog, begin: Time<Utc>) -> bool {
    let is_after_begin = dialog.invited.is_none_or(|invited| begin >= invited);
    is_after_begin && dialog.over().is_none_or(|end| begin <= end + SLACK)
}

impl Audio {
    fn add(&mut self, dialog: &Dialog, flow: &FlowReport, side: CallSide) {
        let is_audio = flow.rtp.as_ref().is_some_and(|rtp| rtp.media_delivery.is_none());
        let last = Time::from_nanos(flow.last_ns);
        if is_audio && dialog.answered.is_none_or(|answered| last > answered) {
            self.packets[side as usize] += flow.packets;
            self.last = self.last.max(Some(last));
        }
    }

    fn is_one_way(self, dialog: &Dialog) -> Option<bool> {
        let is_two_way = dialog.media.iter().all(|side| side.is_audio_two_way);
        let end = dialog.ended.map(|(end, _)| end).or(self.last)?;
        let has_talked = dialog.answered.is_none_or(|answered| end - answered >= MIN_TALK);
        if !dialog.is_established || !is_two_way || !has_talked {
            return None;
        }
        match self.packets {
            [0, 0] => None,
            [some, 0] | [0, some] => (some >= MIN_AUDIO).then_some(true),
            [_, _] => Some(false),
        }
    }
}

impl CallStream {
    /// None for flows without RTP.
    fn of(flow: &FlowReport) -> Option<Self> {
        let rtp = flow.rtp.as_ref()?;
        let key = flow.flow();
        Some(Self {
            src: key.source,
            dst: key.destination,
            ssrc: rtp.ssrc,
            codec: rtp.codec.clone(),
            packets: flow.packets,
            lost: flow.lost,
            loss_ratio: flow.loss_ratio(),
            mean_jitter_ms: rtp.mean_jitter_ms,
            mos: rtp.mos,
            dtmf: rtp.dtmf.clone(),
        })
    }
}
