//! Results computed from the rounds in the softIRQ.

use serde::Serialize;

use super::scale::{Condition, SoftirqScale};
use super::{QUEUE_FRAMES, RoundCores, SoftirqRound};
use crate::experiment::{Estimate, Runs};
use crate::loss::capture::{BUFFER_MIB, OUR_BUFFER_MIB};

/// Why the number of late rounds is unknown.
const LATENESS_UNKNOWN: &str = "an earlier version did not record how late the sender was";

/// Numeric results in the softIRQ.
#[derive(Clone, Debug, Serialize)]
pub(in crate::loss) struct SoftirqResult {
    /// What is done with each packet, by name.
    contenders: Vec<String>,
    /// Frames that the softIRQ's queue has room for.
    queue_frames: u32,
    /// Memory of our captures, and of the generic one by default, in MiB.
    our_buffer_mib: u16,
    generic_buffer_mib: u16,
    cores: RoundCores,
    /// Every contender under every condition.
    cells: Vec<SoftirqCell>,
}

/// One contender under one condition. Packets are those of all rounds.
#[derive(Clone, Debug, Serialize)]
struct SoftirqCell {
    /// What is done with each packet.
    contender: String,
    #[serde(flatten)]
    condition: Condition,
    rounds: usize,
    /// Rounds that are included although the sender was late, or too slow, in all attempts; none if that is unknown.
    late_rounds: Option<usize>,
    /// Reason if it is unknown.
    late_rounds_reason: Option<&'static str>,
    /// Rounds that the claims compare: those at the requested load.
    compared_rounds: usize,
    /// Packets per second that were sent.
    packets_per_second: Option<Estimate>,
    /// Packets per second that the softIRQ received: its max, if its queue was full.
    received_per_second: Option<Estimate>,
    /// The loss of a round.
    loss_percent: Option<Estimate>,
    /// The same without the fifth of the rounds with the least loss and the fifth with the most.
    trimmed_loss_percent: Option<Estimate>,
    /// CPU time of the softIRQ for a packet.
    softirq_ns_per_packet: Option<Estimate>,
    /// The same in cycles of the processor's counter.
    softirq_cycles_per_packet: Option<Estimate>,
    sent: u64,
    /// Dropped because the softIRQ's queue was full.
    queue_dropped: u64,
    /// Dropped because the capture's buffer was full; none without a capture, or if it does not report it.
    reader_dropped: Option<u64>,
    /// None without a capture.
    captured: Option<u64>,
}

impl SoftirqResult {
    /// Computes the results of the runs.
    pub(in crate::loss) fn of(
        runs: &Runs<SoftirqRound>,
        size: SoftirqScale,
        cores: RoundCores,
    ) -> Self {
        let contenders = runs.design.factors.first().map_or(&[][..], |factor| &factor.levels);
        let cells = (0..).zip(runs.design.cells());
        let cells =
            cells.map(|(index, cell)| of_cell(runs, index, contenders, size.condition(&cell)));
        let cells = cells.collect();
        Self {
            contenders: contenders.to_vec(),
            queue_frames: QUEUE_FRAMES,
            our_buffer_mib: OUR_BUFFER_MIB,
            generic_buffer_mib: BUFFER_MIB,
            cores,
            cells,
        }
    }
}

fn of_cell(
    runs: &Runs<SoftirqRound>,
    index: usize,
    contenders: &[String],
    condition: Condition,
) -> SoftirqCell {
    let rounds: Vec<SoftirqRound> = runs.of_cell(index).flatten().copied().collect();
    let estimate = |of: fn(&SoftirqRound) -> Option<f64>| {
        Estimate::of(&rounds.iter().filter_map(of).collect::<Vec<_>>())
    };
    let sum = |of: fn(&SoftirqRound) -> u64| rounds.iter().map(of).sum();
    let softirq_ns_per_packet = estimate(SoftirqRound::softirq_ns_per_packet);
    let is_at_the_load = |round: &SoftirqRound| round.is_at_the_load(condition.gap_ns);
    let late = |round: &SoftirqRound| is_at_the_load(round).map(|is| usize::from(!is));
    let late_rounds: Option<usize> = rounds.iter().map(late).sum();
    SoftirqCell {
        contender: contenders.get(condition.contender).cloned().unwrap_or_default(),
        condition,
        rounds: rounds.len(),
        late_rounds,
        late_rounds_reason: late_rounds.is_none().then_some(LATENESS_UNKNOWN),
        compared_rounds: rounds.iter().filter(|it| it.is_compared(condition.gap_ns)).count(),
        packets_per_second: estimate(|round| Some(round.packets_per_second())),
        received_per_second: estimate(|round| Some(round.received_per_second())),
        loss_percent: estimate(|round| Some(round.loss_percent())),
        trimmed_loss_percent: Estimate::trimmed(
            &rounds.iter().map(SoftirqRound::loss_percent).collect::<Vec<_>>(),
        ),
        softirq_ns_per_packet,
        softirq_cycles_per_packet: softirq_ns_per_packet
            .zip(runs.cycles_per_ns())
            .map(|(ns, each)| ns.times(each)),
        sent: sum(|round| round.sent),
        queue_dropped: sum(|round| round.queue_dropped),
        reader_dropped: rounds.iter().map(|round| round.reader_dropped).sum(),
        captured: rounds.iter().map(|round| round.captured).sum(),
    }
}
