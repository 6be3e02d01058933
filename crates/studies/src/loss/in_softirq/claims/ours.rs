//! Claims of this project: our captures beside generic ktime capture at the same load.

use wirestamp_report::format::{count, duration, real};

use super::losses::{Losses, NO_MORE, left_out, typical};
use crate::experiment::{Claim, Estimate, Sign};
use crate::loss::capture::{BUFFER_MIB, OUR_BUFFER_MIB};
use crate::loss::in_softirq::contender::Contender;

/// Comparisons that a claim names.
const MOST_NAMED: usize = 3;

/// Loss of the other capture from which ours is to lose at most a tenth of it, in percent.
const MUCH: f64 = 10.0;

/// All, about the conditions with a gap, under which the load is the same for all.
pub(super) fn claims(losses: &Losses<'_>) -> Vec<Claim> {
    let of = |ours| [losses.no_more(ours), losses.tenth(ours)];
    [&BY_DEFAULT, &BY_XDP, &OTHERS].map(of).concat()
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

/// The method that takes the packets before the kernel allocates them.
const BY_XDP: Ours = Ours {
    lose: "xdp/xdp, which redirects the packets (XDP_REDIRECT), loses",
    contenders: &[Contender::XDP],
};

/// The other methods that leave the packets to the network stack.
const OTHERS: Ours = Ours {
    lose: "trace-pass/raw and xdp-pass/xdp lose",
    contenders: &[Contender::RAW_CAPTURE, Contender::XDP_PASS],
};

/// One of our captures and another one under a condition with a gap: losses by repetition, in percent; none of a round that
/// was not at the load.
#[derive(Clone, Copy)]
struct Pair<'a> {
    contender: usize,
    generic: usize,
    condition: usize,
    ours: &'a [Option<f64>],
    other: &'a [Option<f64>],
}

impl Losses<'_> {
    /// Our claim of every condition with a gap: these captures lose no more than the generic one, with both buffers.
    fn no_more(&self, ours: &Ours) -> Claim {
        let generic = Contender::GENERIC.into_iter();
        let pairs: Vec<_> = generic.flat_map(|generic| self.pairs(ours, generic)).collect();
        let leads: Vec<_> = pairs.iter().map(Pair::lead_of_no_more).collect();
        let above = |pair: &Pair| pair.points_more().unwrap_or(0.0);
        let mut more: Vec<_> = pairs.iter().filter(|pair| above(pair) > 0.0).collect();
        more.sort_by(|a, b| above(b).total_cmp(&above(a)));
        let number = |pair: &&Pair| {
            let points = pair.points_more()?;
            let (bytes, gap) = self.conditions.get(pair.condition).copied().unwrap_or_default();
            let [ours, other] = [pair.contender, pair.generic].map(|it| self.name(it));
            let gap = duration(real(gap));
            Some(format!(
                "{ours} loses {points:.2} points more than {other} with {bytes} bytes every {gap}"
            ))
        };
        let is_uncertain = |lead: &Option<Estimate>| lead.is_none_or(|it| it.sign() != Sign::Above);
        let uncertain = || pairs.iter().zip(&leads).filter(|(_, lead)| is_uncertain(lead));
        let less = uncertain().filter(|(pair, _)| pair.points_more().is_some_and(|it| it <= 0.0));
        let (uncertain, less) = (uncertain().count(), less.count());
        let mut numbers = format!(
            "ours lose more in {} of {} comparisons (by trimmed means), and with 95 % confidence less than {NO_MORE} point \
             more in {}",
            more.len(),
            pairs.len(),
            pairs.len() - uncertain
        );
        if uncertain > 0 {
            numbers +=
                &format!("; of the {uncertain} without this confidence, ours lose less in {less}");
        }
        let worst: Vec<_> = more.iter().filter_map(number).take(MOST_NAMED).collect();
        if !worst.is_empty() {
            numbers += &format!("; the largest: {}", worst.join(", "));
        }
        numbers += &left_out(pairs.iter().map(|pair| (pair.ours, pair.other)));
        let claim = format!(
            "at the same load, {} at most {NO_MORE} percentage point more than generic ktime capture with a buffer of \
             {BUFFER_MIB} MiB, and with one of {OUR_BUFFER_MIB} MiB (ours: {OUR_BUFFER_MIB} MiB)",
            ours.lose
        );
        Claim::goal(claim, leads, if pairs.is_empty() { "" } else { &numbers }).caused_by(|| {
            let is_more = |pair: &Pair<'_>| above(pair) >= NO_MORE;
            // A cell in which ours lose more than with both buffers counts once.
            let mut pairs: Vec<_> = pairs.iter().copied().filter(is_more).collect();
            pairs.sort_by_key(|pair| (pair.contender, pair.condition));
            pairs.dedup_by_key(|pair| (pair.contender, pair.condition));
            self.where_lost(&pairs, "at least a point more by the trimmed mean")
        })
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
            "{} of {} conditions hold with 95 % confidence, {} fail with it, {} are not decided; the table of the trimmed means \
             has each{}",
            cells(Sign::Above),
            pairs.len(),
            cells(Sign::Below),
            cells(Sign::Open),
            left_out(pairs.iter().map(|pair| (pair.ours, pair.other)))
        );
        let claim = format!(
            "at the same load, where {} loses {MUCH} % or more, {} at most a tenth of that",
            self.by_default("generic ktime capture"),
            ours.lose
        );
        Claim::goal(claim, leads, if pairs.is_empty() { "" } else { &numbers }).prevented_by(|| {
            let is_more = |pair: &Pair<'_>| lead(pair).is_some_and(|it| it.mean < 0.0);
            let pairs: Vec<_> = pairs.iter().copied().filter(is_more).collect();
            self.where_lost(&pairs, "more than a tenth by the trimmed mean")
        })
    }

    /// Where the packets were lost in these cells, in which ours `lose` more than claimed, and whether the softIRQ has enough
    /// time there.
    fn where_lost(&self, pairs: &[Pair<'_>], lose: &str) -> Option<String> {
        let cells = self.conditions.len();
        let rounds = pairs.iter().flat_map(|it| {
            let gap_ns = self.conditions.get(it.condition).map_or(0, |(_, gap_ns)| *gap_ns);
            let rounds = self.runs.of_cell(it.contender * cells + it.condition).flatten();
            rounds.filter(move |round| round.is_compared(gap_ns))
        });
        let (queue, buffer) = rounds.fold((0, 0), |(queue, buffer), round| {
            (queue + round.queue_dropped, buffer + round.reader_dropped.unwrap_or(0))
        });
        let needs = |pair: &Pair<'_>| {
            let (bytes, gap) = *self.conditions.get(pair.condition)?;
            let ns = typical(self.times_of(pair.contender).get(pair.condition)?)?;
            (ns > real(gap)).then(|| {
                let name = self.name(pair.contender);
                format!("{name} {ns:.0} ns for {bytes} bytes every {}", duration(real(gap)))
            })
        };
        let slow: Vec<_> = pairs.iter().filter_map(needs).collect();
        let named = if slow.is_empty() { String::new() } else { format!(": {}", slow.join(", ")) };
        (!pairs.is_empty()).then(|| {
            format!(
                "ours lose {lose} in {} of these conditions, where the queue of the softIRQ dropped {} packets and their own \
                 buffers {}; in {} of these the softIRQ needs more CPU time for a packet than the gap is{named}",
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
}

impl Pair<'_> {
    /// The lead within each repetition; none if more than half of the repetitions lack one of both losses.
    fn lead(&self, lead: impl Fn(f64, f64) -> f64) -> Option<Estimate> {
        let losses = self.ours.iter().zip(self.other);
        let leads: Vec<_> =
            losses.filter_map(|(ours, other)| Some(lead((*ours)?, (*other)?))).collect();
        (2 * leads.len() >= self.ours.len()).then(|| Estimate::trimmed(&leads)).flatten()
    }

    /// The lead that decides whether ours lose no more. How much less ours lose is not asked: where the other capture loses now
    /// 5 and now 40 %, the interval would be too wide to confirm. So the lead of each repetition is limited first. That makes it
    /// smaller, so that it can only confirm. If it does not, the lead without the limit decides.
    fn lead_of_no_more(&self) -> Option<Estimate> {
        let limited = self.lead(|ours, other| (other - ours).min(NO_MORE) + NO_MORE);
        let confirms = limited.filter(|it| it.sign() == Sign::Above);
        confirms.or_else(|| self.lead(|ours, other| other - ours + NO_MORE))
    }

    /// How many points more ours lose; negative if they lose less.
    fn points_more(&self) -> Option<f64> {
        self.lead(|ours, other| ours - other).map(|it| it.mean)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pair<'a>(ours: &'a [Option<f64>], other: &'a [Option<f64>]) -> Pair<'a> {
        Pair { contender: 0, generic: 0, condition: 0, ours, other }
    }

    #[test]
    fn limited_lead_only_confirms() {
        let ours = [Some(10.0); 20];
        let sign = |often: f64, sometimes: f64| {
            let other = [[Some(often); 14].as_slice(), &[Some(sometimes); 6]].concat();
            pair(&ours, &other).lead_of_no_more().map(|it| it.sign())
        };
        // Without the limit the interval includes zero.
        assert_eq!(sign(10.5, 100.0), Some(Sign::Above));
        // With it, the interval is below zero.
        assert_eq!(sign(0.0, 100.0), Some(Sign::Open));
        assert_eq!(sign(0.0, 0.0), Some(Sign::Below));
    }

    #[test]
    fn half_of_the_repetitions_need_both_losses() {
        let other = [Some(10.0); 20];
        let lead = |missing: usize| {
            let mut ours = other;
            ours[..missing].fill(None);
            pair(&ours, &other).lead_of_no_more().map(|it| it.mean)
        };
        assert_eq!([lead(0), lead(10), lead(11)], [Some(NO_MORE), Some(NO_MORE), None]);
    }
}
