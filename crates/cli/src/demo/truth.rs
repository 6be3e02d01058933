//! Comparison of the taps with independent sources: sender, sockets, queue, tcpdump.

use wirestamp_clock::Span;
use wirestamp_lab::{BottleneckCounters, Impairments};
use wirestamp_metrics::{Counts, Quality};
use wirestamp_traffic::{SendReport, SinkReport, StreamArrivals};

use super::bed::{ROLES, full_frame, full_queue};
use super::recorder::Recorder;
use super::result::millis;
use super::tcpdump::TcpdumpResult;
use wirestamp_report::Check;
use wirestamp_session::TapReport;

/// Max difference of the mean delay from tcpdump's.
const MEAN_PERCENT: f64 = 2.0;
/// Max difference of the max delay from the full queue's: packets do not fill the queue to the byte, and the token
/// bucket lets some leave at once.
const QUEUE_PERCENT: f64 = 10.0;

/// Counts of independent sources.
pub(super) struct Truth<'a> {
    /// The sender's own count.
    pub(super) sent: &'a SendReport,
    /// Packets received by each stream's socket, in the order of the streams.
    pub(super) arrived: &'a [SinkReport],
    /// The queue's own count.
    pub(super) bottleneck: BottleneckCounters,
    /// Duplicates made by the router, by its own count.
    pub(super) copies: u64,
    /// Configured impairments of the path.
    pub(super) path: &'a Impairments,
    /// Measurement by tcpdump.
    pub(super) tcpdump: Option<&'a TcpdumpResult>,
}

impl Truth<'_> {
    /// Compares the truth with the results of the taps.
    pub(super) fn checks(&self, found: &Recorder, taps: &[TapReport]) -> Vec<Check> {
        let mut checks = vec![
            self.per_stream(
                "Packets sent",
                found,
                |sent, _| sent,
                |c| c.sent,
                "the sender's count",
            ),
            self.per_stream(
                "Packets lost",
                found,
                |sent, arrived| sent.saturating_sub(arrived.distinct),
                |counts| counts.lost,
                "packets sent minus distinct packets received at the socket",
            ),
            self.per_stream(
                "Duplicates received",
                found,
                |_, arrived| arrived.duplicated,
                |counts| counts.duplicated,
                "repeated sequence numbers at the receiving socket",
            ),
            self.per_stream(
                "Packets reordered",
                found,
                |_, arrived| arrived.reordered,
                |counts| counts.reordered,
                "sequence numbers below the next expected (RFC 4737) at the receiving socket",
            ),
            self.drops(found.total.counts()),
            self.sockets(),
            captures(taps),
        ];
        if self.queue_was_full() {
            checks.extend(self.longest(&found.total));
            checks.extend(self.mean(&found.total));
        }
        checks
    }

    /// Whether the bottleneck's queue reached its limit. A shorter run has only the delays of the machine
    /// itself, some tens of microseconds: two programs do not agree on them within 2 %.
    pub(super) fn queue_was_full(&self) -> bool {
        self.bottleneck.dropped_packets > 0
    }

    fn per_stream(
        &self,
        what: &str,
        found: &Recorder,
        truth: impl Fn(u64, StreamArrivals) -> u64,
        measured: impl Fn(&Counts) -> u64,
        how: &str,
    ) -> Check {
        let truth: Vec<u64> = (self.sent.streams.iter().zip(self.arrived))
            .map(|(sent, arrived)| {
                let arrived = arrived.streams.get(&sent.id).copied().unwrap_or_default();
                truth(sent.sent, arrived)
            })
            .collect();
        let measured: Vec<u64> =
            found.streams.iter().map(|stream| measured(stream.quality.counts())).collect();
        let what = format!("{what}: {}", ROLES.map(|role| role.short).join(", "));
        Check::exact(what, join(&truth), join(&measured), format!("{how}; equal to the packet"))
    }

    fn drops(&self, found: &Counts) -> Check {
        let truth = self.bottleneck.dropped_packets;
        let measured = (found.sent + self.copies).saturating_sub(found.received);
        let what = "Packets dropped by the bottleneck, including duplicates";
        let how = "the queue's own counter; equal to the packet".to_owned();
        Check::exact(what, truth.to_string(), measured.to_string(), how)
    }

    fn sockets(&self) -> Check {
        let complete = self.arrived.iter().all(SinkReport::is_complete);
        let dropped: u32 = self.arrived.iter().map(|report| report.dropped).sum();
        let how = "must be 0, because the counts above are the reference".to_owned();
        let what = "Packets dropped by the receiving sockets";
        Check { holds: complete, ..Check::exact(what, "0".into(), dropped.to_string(), how) }
    }

    /// When the machine stalls, packets stay in the queue for longer; only tcpdump shows it. How much a stall adds depends on how
    /// full the queue is at that time.
    fn longest(&self, found: &Quality) -> Option<Check> {
        let longest = millis(found.delay().summary()?.max);
        let full = millis(full_queue(self.path).as_nanos());
        let stalled = self.tcpdump.map_or(Span::ZERO, |it| it.stalled(full_frame(self.path)));
        let stalled = millis(stalled.as_nanos());
        let (least, most) = (full, full + stalled);
        let is_above = longest >= least || percent_off(longest, least) <= QUEUE_PERCENT;
        let is_below = longest <= most || percent_off(longest, most) <= QUEUE_PERCENT;
        Some(Check {
            what: "Max delay".into(),
            truth: range(least, most),
            measured: format!("{longest:.1} ms"),
            within_percent: Some(QUEUE_PERCENT),
            holds: is_above && is_below,
            how: format!(
                "the full queue at the bottleneck's rate, {full:.1} ms, and at most {stalled:.1} ms more, in \
                 which tcpdump saw nothing leave it"
            ),
        })
    }

    fn mean(&self, found: &Quality) -> Option<Check> {
        let theirs = self.tcpdump?.quality.delay().summary()?;
        let ours = found.delay().summary()?;
        let off = percent_off(ours.mean, theirs.mean);
        Some(Check {
            what: "Mean one-way delay".into(),
            truth: format!("{:.4} ms over {} packets", theirs.mean / 1e6, theirs.count),
            measured: format!("{:.4} ms over {} packets", ours.mean / 1e6, ours.count),
            within_percent: Some(MEAN_PERCENT),
            holds: off <= MEAN_PERCENT,
            how: format!(
                "tcpdump with the kernel's stamps at both taps; they differ by {off:.2} %"
            ),
        })
    }
}

/// A range of milliseconds, or one value where both ends are the same.
fn range(least: f64, most: f64) -> String {
    let [least, most] = [least, most].map(|it| format!("{it:.1}"));
    if least == most { format!("{most} ms") } else { format!("{least} to {most} ms") }
}

fn captures(taps: &[TapReport]) -> Check {
    let lost: Vec<_> = taps.iter().map(|tap| tap.ledger.lost()).collect();
    let what = "Packets lost by the captures: tap A, tap B";
    let how =
        "must be 0, so that capture loss is not counted as network loss; the ledgers must balance";
    let holds = taps.iter().all(|tap| tap.balanced && tap.ledger.lost() == 0);
    Check { holds, ..Check::exact(what, join(&vec![0; taps.len()]), join(&lost), how.to_owned()) }
}

fn join(values: &[u64]) -> String {
    values.iter().map(u64::to_string).collect::<Vec<_>>().join(", ")
}

fn percent_off(value: f64, expected: f64) -> f64 {
    (value - expected).abs() / expected.abs() * 100.0
}
