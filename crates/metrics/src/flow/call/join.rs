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
#[derive(Clone, Debug, Default)]
struct Audio {
    /// Packets by the side that received them, and its address.
    packets: [HashMap<SocketAddr, u64>; 2],
    last: Option<Time<Utc>>,
}

/// Adds to each call its streams. RTP streams were evicted until the given time.
pub(super) fn add_streams(
    dialogs: &[&Dialog],
    flows: &[FlowReport],
    evicted_until: Option<Time<Utc>>,
    calls: &mut [CallReport],
) {
    let known = Calls::new(dialogs);
    let mut audio = vec![Audio::default(); calls.len()];
    let mut add = |flow: &FlowReport, stream: CallStream, (place, side): (usize, CallSide)| {
        audio[place].add(dialogs[place], flow, side);
        match side {
            CallSide::Caller => calls[place].to_caller.push(stream),
            CallSide::Callee => calls[place].to_callee.push(stream),
        }
    };
    // Behind address translation, hosts receive where they send from (RFC 4961), not where they announced.
    let mut senders: HashMap<SocketAddr, Vec<(usize, CallSide)>> = HashMap::new();
    let mut left = Vec::new();
    for flow in flows {
        let Some(stream) = CallStream::of(flow) else { continue };
        match known.receiver(&stream, Time::from_nanos(flow.first_ns)) {
            Some((place, side)) => {
                senders.entry(stream.src).or_default().push((place, side.other()));
                add(flow, stream, (place, side));
            }
            None => left.push((flow, stream)),
        }
    }
    for (flow, stream) in left {
        let begin = Time::from_nanos(flow.first_ns);
        let all = senders.get(&stream.dst).map_or(&[][..], Vec::as_slice);
        let during = all.iter().filter(|(place, _)| is_during(dialogs[*place], begin, SLACK));
        if let Some(found) = only(during) {
            add(flow, stream, *found);
        }
    }
    for ((dialog, call), audio) in dialogs.iter().zip(calls).zip(audio) {
        let is_complete = evicted_until.is_none_or(|until| until < dialog.begin);
        call.silent_side = audio.silent_side(dialog).filter(|_| is_complete);
        call.one_way_audio = match call.silent_side {
            Some(_) => Some(true),
            None => audio.is_two_way(dialog).then_some(false),
        };
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
        let between = self.candidates(&stream.dst, begin, SLACK).find(|(place, side)| {
            self.dialogs[*place].media[side.other() as usize].addresses.contains(&stream.src)
        });
        // A call that is not over goes before one that is over by now.
        let one_of = |address| {
            let running = only(self.candidates(address, begin, Span::ZERO));
            running.or_else(|| only(self.candidates(address, begin, SLACK)))
        };
        let sender = || one_of(&stream.src).map(|(place, side)| (place, side.other()));
        between.or_else(|| one_of(&stream.dst)).or_else(sender)
    }

    /// Calls that announced an address and were in progress at this time, the newest first.
    fn candidates(
        &self,
        address: &SocketAddr,
        time: Time<Utc>,
        slack: Span,
    ) -> impl Iterator<Item = (usize, CallSide)> {
        let all = self.receivers.get(address).map_or(&[][..], Vec::as_slice);
        let begun = all.partition_point(|(place, _)| self.dialogs[*place].begin <= time);
        // Of a call that began before the capture, the first message may be later.
        let near = all[..begun].iter().rev().chain(&all[begun..]).take(MAX_CANDIDATES);
        near.filter(move |(place, _)| is_during(self.dialogs[*place], time, slack)).copied()
    }
}

/// The item, if there is exactly one.
fn only<T>(mut items: impl Iterator<Item = T>) -> Option<T> {
    let first = items.next()?;
    items.next().is_none().then_some(first)
}

/// Whether a stream that begins at this time can belong to the call, which may be over for as long as `slack`.
fn is_during(dialog: &Dialog, begin: Time<Utc>, slack: Span) -> bool {
    let is_after_begin = dialog.invited.is_none_or(|invited| begin >= invited);
    is_after_begin && dialog.over().is_none_or(|end| begin <= end + slack)
}

impl Audio {
    fn add(&mut self, dialog: &Dialog, flow: &FlowReport, side: CallSide) {
        let is_audio = flow.rtp.as_ref().is_some_and(|rtp| rtp.media_delivery.is_none());
        let last = Time::from_nanos(flow.last_ns);
        if is_audio && dialog.answered.is_none_or(|answered| last > answered) {
            let packets = self.packets[side as usize].entry(flow.flow().destination).or_default();
            *packets += flow.packets;
            self.last = self.last.max(Some(last));
        }
    }

    fn to(&self, side: CallSide) -> u64 {
        self.packets[side as usize].values().sum()
    }

    /// The side that was silent after the answer, while the other one sent; none if it is unknown.
    fn silent_side(&self, dialog: &Dialog) -> Option<CallSide> {
        let is_two_way = dialog.media.iter().all(|side| side.is_audio_two_way);
        let end = dialog.ended.map(|(end, _)| end).or(self.last)?;
        let has_talked = dialog.answered.is_none_or(|answered| end - answered >= MIN_TALK);
        if !dialog.is_established || !is_two_way || !has_talked {
            return None;
        }
        match [self.to(CallSide::Caller), self.to(CallSide::Callee)] {
            [some, 0] if some >= MIN_AUDIO => Some(CallSide::Caller),
            [0, some] if some >= MIN_AUDIO => Some(CallSide::Callee),
            _ => None,
        }
    }

    /// Whether audio passed in both directions, at each address that a side announced: with a media relay, one part of the
    /// way may be silent.
    fn is_two_way(&self, dialog: &Dialog) -> bool {
        let has_all = [CallSide::Caller, CallSide::Callee].map(|side| {
            let addresses = &dialog.media[side as usize].addresses;
            let packets = &self.packets[side as usize];
            !packets.is_empty()
                && (addresses.len() < 2 || addresses.iter().all(|it| packets.contains_key(it)))
        });
        dialog.is_established && has_all == [true; 2]
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
            first_ns: flow.first_ns,
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
