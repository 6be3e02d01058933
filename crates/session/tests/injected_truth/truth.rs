//! Truth of each packet, from the records of the stage and the reference capture.

use wirestamp_clock::{Span, Time, Utc};
use wirestamp_metrics::{Counts, Distribution};
use wirestamp_stage::{ImpairmentPlan, ReferenceReport, SendTimes, StageReport, StagedPacket};

use crate::found::{Found, Matched};
use crate::run::PACKETS;

/// What happened to a packet behind the stage.
#[derive(Clone, Copy, Debug, Default)]
struct Arrival {
    /// The stamp of its first copy at tap B.
    first: Option<Time<Utc>>,
    /// Duplicates.
    copies: u32,
    /// Whether a packet that was sent later arrived earlier (RFC 4737 section 3.3).
    reordered: bool,
}

/// What happened to all packets.
pub(crate) struct Truth<'a> {
    packets: &'a [StagedPacket],
    arrivals: Vec<Arrival>,
    pub(crate) counts: Counts,
}

/// Deviations of the results from the truth.
#[derive(Default)]
pub(crate) struct Margins {
    /// Max deviation of a delay from the difference of the kernel's stamps.
    pub(crate) delay_off: Span,
    /// Min and max stated error of a delay.
    pub(crate) stated: Option<(Span, Span)>,
    /// Max deviation of a delay in UTC.
    pub(crate) in_utc_off: Span,
    /// Delay between the chosen and the real time of sending, in nanoseconds. The machine causes it;
    /// it is not an error of the measurement.
    pub(crate) lateness: Distribution,
}

impl<'a> Truth<'a> {
    pub(crate) fn of(stage: &'a StageReport, reference: &ReferenceReport) -> Self {
        let packets = &stage.packets[..];
        let in_order = packets.iter().map(|packet| packet.number).eq(0..PACKETS);
        assert!(in_order, "the packets came to the stage as they were sent, and all of them");
        let mut arrivals = vec![Arrival::default(); packets.len()];
        let mut next_expected = 0;
        for seen in &reference.arrivals {
            let arrival = &mut arrivals[usize::try_from(seen.number).unwrap()];
            if arrival.first.is_some() {
                arrival.copies += 1;
                continue;
            }
            arrival.first = Some(seen.stamp);
            arrival.reordered = seen.number < next_expected;
            next_expected = next_expected.max(seen.number + 1);
        }
        let count = |of: fn(&Arrival) -> u64| arrivals.iter().map(of).sum();
        let matched = count(|arrival| arrival.first.is_some().into());
        let counts = Counts {
            sent: PACKETS,
            received: reference.arrivals.len() as u64,
            matched,
            lost: PACKETS - matched,
            duplicated: count(|arrival| arrival.copies.into()),
            reordered: count(|arrival| arrival.reordered.into()),
            ..Counts::default()
        };
        Self { packets, arrivals, counts }
    }

    /// Asserts that the output follows the plan: no frame was lost before or behind the stage, and none arrived too
    /// early.
    pub(crate) fn assert_as_planned(&self, plan: &ImpairmentPlan) {
        for (packet, arrival) in self.packets.iter().zip(&self.arrivals) {
            assert_eq!(packet.planned, plan.delivery(packet.number));
            let delays = packet.planned.delays();
            let came = u32::from(arrival.first.is_some()) + arrival.copies;
            assert_eq!(came as usize, delays.into_iter().flatten().count(), "{packet:?}");
            if let Some((first, least)) = arrival.first.zip(delays.into_iter().flatten().min()) {
                assert!(first - packet.arrived >= least, "{packet:?} {arrival:?}");
            }
        }
        let Counts { lost, duplicated, reordered, .. } = self.counts;
        assert!(lost > 0 && duplicated > 0 && reordered > 0, "{:?}", self.counts);
    }

    /// Asserts that the result for each packet is what happened to it.
    pub(crate) fn assert_each_packet(&self, found: &Found) -> Margins {
        assert_eq!(found.packets(), (self.packets.len(), 0));
        let mut margins = Margins::default();
        for (packet, arrival) in self.packets.iter().zip(&self.arrivals) {
            let found = found.at(packet.arrived);
            let found = found.unwrap_or_else(|| panic!("nothing was found of {packet:?}"));
            let lost = u32::from(arrival.first.is_none());
            assert_eq!((found.lost, found.copies), (lost, arrival.copies), "{packet:?}");
            assert_eq!(found.matched.is_some(), arrival.first.is_some(), "{packet:?}");
            if let Some((matched, first)) = found.matched.zip(arrival.first) {
                assert_eq!(matched.reordered, arrival.reordered, "{packet:?}");
                assert_delay(packet, first, &matched, &mut margins);
            }
        }
        margins
    }
}

/// Compares one delay with two truths: the kernel's stamps, which the taps use too; and the stage's own clock
/// readings before and after the send call, which are independent of the taps.
fn assert_delay(packet: &StagedPacket, first: Time<Utc>, matched: &Matched, margins: &mut Margins) {
    let truth = first - packet.arrived;
    let Matched { delay, error, in_utc, in_utc_error, .. } = *matched;
    assert!((delay - truth).abs() <= error, "{delay} +- {error}, in truth {truth}: {packet:?}");
    let off = (in_utc - truth).abs();
    assert!(off <= in_utc_error, "{in_utc} +- {in_utc_error} in UTC, in truth {truth}");

    let sent = packet.sent.iter().flatten().min_by_key(|sent| sent.before).unwrap();
    let SendTimes { before, after, .. } = *sent;
    assert!(packet.arrived + delay + error >= before, "{delay} +- {error}: {packet:?}");
    assert!(packet.arrived + delay - error <= after, "{delay} +- {error}: {packet:?}");

    margins.delay_off = margins.delay_off.max((delay - truth).abs());
    let (least, greatest) = margins.stated.unwrap_or((error, error));
    margins.stated = Some((least.min(error), greatest.max(error)));
    margins.in_utc_off = margins.in_utc_off.max(off);
    margins.lateness.record(sent.lateness());
}
