//! Claims of the paper and of this project about loss in the softIRQ, and their verdicts here.

use super::SoftirqRound;
use super::contender::Contender;
use super::scale::SoftirqScale;
use crate::experiment::{Claim, Estimate, Runs, Sign, mean};
use crate::loss::capture::{BUFFER_MIB, OUR_BUFFER_MIB};
use wirestamp_report::format::{count, duration, real};

/// Loss that counts as no more than another's, in percentage points above it.
const NO_MORE: f64 = 1.0;

/// Comparisons that a claim names.
const MOST_NAMED: usize = 3;

/// Loss of the other capture from which ours is to lose at most a tenth of it, in percent.
const MUCH: f64 = 10.0;

/// All claims, with verdicts from complete repetitions. Those of this project are about the conditions with a gap, under
/// which the load is the same for all.
pub(in crate::loss) fn claims(runs: &Runs<SoftirqRound>, size: SoftirqScale) -> Vec<Claim> {
    let conditions =
        size.frame_bytes.iter().flat_map(|bytes| size.gaps_ns.iter().map(|gap| (*bytes, *gap)));
    let losses = Losses {
        runs,
        conditions: conditions.collect(),
        cells: runs.responses(|run| run.first().map(SoftirqRound::loss_percent)),
        times: runs.responses(|run| run.first()?.softirq_ns_per_packet()),
    };
    let of_stamps = losses.fewer(
        "a raw stamp of each packet costs the softIRQ fewer packets than one of ktime",
        [Contender::RAW, Contender::KTIME],
        String::new(),
    );
    let mut claims =
        vec![losses.raw_capture_loses_fewer(), of_stamps.caused_by(|| losses.costs_of_stamps())];
    for ours in [&BY_DEFAULT, &OTHERS] {
        claims.extend([losses.no_more(ours), losses.tenth(ours)]);
    }
    claims
}

/// Captures of ours that a claim is about.
struct Ours {
    /// With their verb.
    lose: &'static str,
    contenders: &'static [usize],
}

/// What `wirestamp capture` does without options.
const BY_DEFAULT: Ours =
    Ours { lose: "ring/kernel, our default, loses", contenders: &[Contender::RING] };

/// The other methods.
const OTHERS: Ours = Ours {
    lose: "trace-pass/raw, xdp-pass/xdp and xdp/xdp lose",
    contenders: &[Contender::RAW_CAPTURE, Contender::XDP_PASS, Contender::XDP],
};

/// The loss of each cell, by repetition.
struct Losses<'a> {
    runs: &'a Runs<SoftirqRound>,
    /// Bytes of a frame, and the gap in nanoseconds, of each condition.
    conditions: Vec<(u16, u64)>,
    /// By contender, then by condition.
    cells: Vec<Vec<f64>>,
    /// CPU time of the softIRQ for a packet, in nanoseconds; in the same order.
    times: Vec<Vec<f64>>,
}

/// One of our captures and another one under a condition with a gap: losses by repetition, in percent.
#[derive(Clone, Copy)]
struct Pair<'a> {
    contender: usize,
    generic: usize,
    condition: usize,
    ours: &'a [f64],
    other: &'a [f64],
}

impl Losses<'_> {
    /// The paper's claim about captures, of which both have the buffer of ours.
    fn raw_capture_loses_fewer(&self) -> Claim {
        let [by_default, with_our_buffer] = Contender::GENERIC;
        let claim = format!(
            "fewer packets are lost with raw stamps that are converted elsewhere than with generic ktime capture (here: \
             both with a buffer of {OUR_BUFFER_MIB} MiB)"
        );
        let of_default = mean(&self.by_repetition(by_default));
        let has_another = self.name(by_default) != self.name(with_our_buffer);
        let of_default = of_default.filter(|_| has_another).map(|loss| {
            let name = self.name(by_default);
            format!("; not compared: {name} with its default buffer of {BUFFER_MIB} MiB loses {loss:.2} %")
        });
        let contenders = [Contender::RAW_CAPTURE, with_our_buffer];
        self.fewer(&claim, contenders, of_default.unwrap_or_default())
    }

    /// The paper's claim that the first of two loses fewer packets, by the mean over all conditions. `more` follows the
    /// numbers.
    fn fewer(&self, claim: &str, [first, second]: [usize; 2], more: String) -> Claim {
        let [of_first, of_second] = [first, second].map(|it| self.by_repetition(it));
        let lead: Vec<_> = of_first.iter().zip(&of_second).map(|(a, b)| b - a).collect();
        let numbers = mean(&of_first).zip(mean(&of_second)).map(|(a, b)| {
            format!(
                "{} {a:.2} % against {} {b:.2} % of all packets (mean of {} conditions){more}",
                self.name(first),
                self.name(second),
                self.conditions.len()
            )
        });
        Claim::of(claim, vec![Estimate::of(&lead)], &numbers.unwrap_or_default())
    }

    /// The CPU time of the softIRQ with each stamp, if a raw one costs more.
    fn costs_of_stamps(&self) -> Option<String> {
        let time = |contender| {
            let cells = self.part(&self.times, contender).iter();
            mean(&cells.filter_map(|cell| mean(cell)).collect::<Vec<_>>())
        };
        let (nothing, raw) = (time(Contender::NOTHING)?, time(Contender::RAW)?);
        let ktime = time(Contender::KTIME)?;
        (raw > ktime).then(|| {
            format!(
                "a raw stamp takes more CPU time here: the softIRQ needs {raw:.0} ns a packet with it, {ktime:.0} ns with \
                 ktime, {nothing:.0} ns with neither (mean of all conditions). Its BPF program cannot execute the \
                 counter's instruction; it reads the counter by bpf_perf_event_read"
            )
        })
    }

    /// Our claim of every condition with a gap: these captures lose no more than the generic one, with both buffers.
    fn no_more(&self, ours: &Ours) -> Claim {
        let generic = Contender::GENERIC.into_iter();
        let pairs: Vec<_> = generic.flat_map(|generic| self.pairs(ours, generic)).collect();
        let leads: Vec<_> =
            pairs.iter().map(|pair| pair.lead(|ours, other| other - ours + NO_MORE)).collect();
        let above = |pair: &Pair| Some(typical(pair.ours)? - typical(pair.other)?);
        let more: Vec<_> =
            pairs.iter().filter(|pair| above(pair).is_some_and(|points| points > 0.0)).collect();
        let number = |pair: &&Pair| {
            let points = above(pair)?;
            let (bytes, gap) = self.conditions.get(pair.condition).copied().unwrap_or_default();
            let [ours, other] = [pair.contender, pair.generic].map(|it| self.name(it));
            let gap = duration(real(gap));
            Some(format!(
                "{ours} than {other} with {bytes} bytes every {gap} by {points:.2} points"
            ))
        };
        let certain = leads.iter().flatten().filter(|lead| lead.sign() == Sign::Above).count();
        let mut numbers = format!(
            "ours lose more in {} of {} comparisons (by trimmed means), and with 95 % confidence less than {NO_MORE} point \
             more in {certain}",
            more.len(),
            pairs.len()
        );
        let worst: Vec<_> = more.iter().filter_map(number).take(MOST_NAMED).collect();
        if !worst.is_empty() {
            numbers += &format!("; the first: {}", worst.join(", "));
        }
        let claim = format!(
            "at the same load, {} no more than generic ktime capture, be its buffer {BUFFER_MIB} or {OUR_BUFFER_MIB} MiB \
             (ours: {OUR_BUFFER_MIB} MiB; here: by {NO_MORE} point or more)",
            ours.lose
        );
        Claim::goal(claim, leads, if pairs.is_empty() { "" } else { &numbers })
    }

    /// Our claim of the conditions with a gap under which the generic capture by default loses much: these captures lose a
    /// tenth.
    fn tenth(&self, ours: &Ours) -> Claim {
        let pairs = self.pairs_of_much(ours);
        let lead = |pair: &Pair| pair.lead(|ours, generic| generic / 10.0 - ours);
        let leads: Vec<_> = pairs.iter().map(lead).collect();
        let cells = |sign: Sign| {
            let signs = leads.iter().map(|lead| lead.map_or(Sign::Open, |it| it.sign()));
            signs.filter(|it| *it == sign).count()
        };
        let numbers = format!(
            "it holds in {} of {} such cells, fails in {}, and is not decided in {}; the table of lost packets has each",
            cells(Sign::Above),
            pairs.len(),
            cells(Sign::Below),
            cells(Sign::Open)
        );
        let claim = format!(
            "at the same load, where {} loses {MUCH} % or more, {} at most a tenth of that",
            self.by_default("generic ktime capture"),
            ours.lose
        );
        Claim::goal(claim, leads, if pairs.is_empty() { "" } else { &numbers })
            .prevented_by(|| self.where_ours_are_lost(ours))
    }

    /// Where the packets were lost in the cells in which ours lose more than a tenth, and whether the softIRQ has enough time
    /// there.
    fn where_ours_are_lost(&self, ours: &Ours) -> Option<String> {
        let fails = |pair: &Pair| {
            typical(pair.ours).zip(typical(pair.other)).is_some_and(|(a, b)| a > b / 10.0)
        };
        let pairs: Vec<_> = self.pairs_of_much(ours).into_iter().filter(fails).collect();
        let rounds = pairs.iter().flat_map(|pair| {
            self.runs.of_cell(pair.contender * self.conditions.len() + pair.condition).flatten()
        });
        let (queue, buffer) = rounds.fold((0, 0), |(queue, buffer), round| {
            (queue + round.queue_dropped, buffer + round.reader_dropped.unwrap_or(0))
        });
        let needs = |pair: &Pair| {
            let (bytes, gap) = *self.conditions.get(pair.condition)?;
            let ns = typical(self.part(&self.times, pair.contender).get(pair.condition)?)?;
            (ns > real(gap)).then(|| {
                let name = self.name(pair.contender);
                format!("{name} {ns:.0} ns for {bytes} bytes every {}", duration(real(gap)))
            })
        };
        let slow: Vec<_> = pairs.iter().filter_map(needs).collect();
        let named = if slow.is_empty() { String::new() } else { format!(": {}", slow.join(", ")) };
        (!pairs.is_empty()).then(|| {
            format!(
                "in the {} cells in which ours lose more than a tenth, the queue of the softIRQ dropped {} of their packets, \
                 and their own buffers {}; in {} of these cells the softIRQ needs more CPU time for a packet than the gap \
                 is{named}",
                pairs.len(),
                count(queue),
                count(buffer),
                slow.len()
            )
        })
    }

    /// Each of these captures of ours with a generic one, under each condition with a gap.
    fn pairs<'a>(&'a self, ours: &'a Ours, generic: usize) -> impl Iterator<Item = Pair<'a>> {
        ours.contenders.iter().copied().flat_map(move |contender| {
            let cells = self.of(contender).iter().zip(self.of(generic)).zip(&self.conditions);
            let cells = cells.enumerate().filter(|(_, (_, (_, gap_ns)))| *gap_ns > 0);
            cells.map(move |(condition, ((ours, other), _))| Pair {
                contender,
                generic,
                condition,
                ours,
                other,
            })
        })
    }

    /// Those under which the generic capture by default loses much.
    fn pairs_of_much<'a>(&'a self, ours: &'a Ours) -> Vec<Pair<'a>> {
        let is_much = |pair: &Pair| typical(pair.other).is_some_and(|it| it >= MUCH);
        self.pairs(ours, Contender::GENERIC[0]).filter(is_much).collect()
    }

    /// The generic capture with its own buffer, and that the buffers differ.
    fn by_default(&self, name: &str) -> String {
        let [by_default, with_our_buffer] = Contender::GENERIC;
        if self.name(by_default) == self.name(with_our_buffer) {
            return name.to_owned();
        }
        format!("{name} with its default buffer of {BUFFER_MIB} MiB (ours: {OUR_BUFFER_MIB} MiB)")
    }

    /// The name of a contender.
    fn name(&self, contender: usize) -> &str {
        let factor = self.runs.design.factors.first();
        factor.and_then(|it| it.levels.get(contender)).map_or("", String::as_str)
    }

    /// The losses of a contender, by condition.
    fn of(&self, contender: usize) -> &[Vec<f64>] {
        self.part(&self.cells, contender)
    }

    /// The values of a contender, by condition.
    fn part<'a>(&self, values: &'a [Vec<f64>], contender: usize) -> &'a [Vec<f64>] {
        let conditions = self.conditions.len();
        let first = contender * conditions;
        values.get(first..first + conditions).unwrap_or_default()
    }

    /// The mean loss of a contender over all conditions.
    fn by_repetition(&self, contender: usize) -> Vec<f64> {
        let cells = self.of(contender);
        let repetitions = cells.iter().map(Vec::len).min().unwrap_or(0);
        let of = |repetition| mean(&cells.iter().map(|cell| cell[repetition]).collect::<Vec<_>>());
        (0..repetitions).filter_map(of).collect()
    }
}

impl Pair<'_> {
    /// The lead within each repetition.
    fn lead(&self, lead: impl Fn(&f64, &f64) -> f64) -> Option<Estimate> {
        let leads = self.ours.iter().zip(self.other).map(|(ours, other)| lead(ours, other));
        Estimate::trimmed(&leads.collect::<Vec<_>>())
    }
}

/// The trimmed mean: without the rounds in which the hypervisor took the core of the softIRQ, which lose packets whatever is
/// done with each.
fn typical(values: &[f64]) -> Option<f64> {
    Estimate::trimmed(values).map(|it| it.mean)
}
