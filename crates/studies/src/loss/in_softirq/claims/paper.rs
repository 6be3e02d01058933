//! Claims of the paper.

use super::losses::{Losses, NO_MORE, left_out, typical};
use crate::experiment::{Claim, Estimate, mean};
use crate::loss::capture::{BUFFER_MIB, OUR_BUFFER_MIB};
use crate::loss::in_softirq::contender::Contender;

/// Both.
pub(super) fn claims(losses: &Losses<'_>) -> Vec<Claim> {
    let of_stamps = losses.fewer(
        "a raw stamp of each packet costs the softIRQ fewer packets than one of ktime",
        [Contender::RAW, Contender::KTIME],
        String::new(),
    );
    vec![losses.raw_capture_loses_fewer(), of_stamps.caused_by(|| losses.costs_of_stamps())]
}

impl Losses<'_> {
    /// The paper's claim about captures, of which both have the buffer of ours.
    fn raw_capture_loses_fewer(&self) -> Claim {
        let [by_default, with_our_buffer] = Contender::GENERIC;
        let claim = format!(
            "fewer packets are lost with raw stamps that are converted elsewhere than with generic ktime capture (here: \
             both with a buffer of {OUR_BUFFER_MIB} MiB)"
        );
        let of_default: Vec<_> =
            self.by_repetition([by_default; 2]).into_iter().map(|(loss, _)| loss).collect();
        let has_another = self.name(by_default) != self.name(with_our_buffer);
        let of_default = mean(&of_default).filter(|_| has_another).map(|loss| {
            let name = self.name(by_default);
            format!("; not compared: {name} with its default buffer of {BUFFER_MIB} MiB loses {loss:.2} %")
        });
        let contenders = [Contender::RAW_CAPTURE, with_our_buffer];
        self.fewer(&claim, contenders, of_default.unwrap_or_default())
            .caused_by(|| self.costs_of_captures(contenders))
    }

    /// The paper's claim that the first of two loses fewer packets, by the mean over all conditions, without the repetitions
    /// with the least and the most difference. `more` follows the numbers.
    fn fewer(&self, claim: &str, [first, second]: [usize; 2], more: String) -> Claim {
        let losses = self.by_repetition([first, second]);
        let lead: Vec<_> = losses.iter().map(|(a, b)| b - a).collect();
        let (of_first, of_second): (Vec<_>, Vec<_>) = losses.into_iter().unzip();
        let cells = self.of(first).iter().zip(self.of(second));
        let missing = left_out(cells.map(|(first, second)| (first.as_slice(), second.as_slice())));
        let lead = Estimate::trimmed(&lead);
        let difference = lead.map_or_else(String::new, |it| {
            let more = format!("{:.2}", -it.mean).replace('-', "−");
            let interval = it.ci95.map(|it| format!(" ± {it:.2}")).unwrap_or_default();
            format!("; the difference is {more}{interval} points (trimmed mean of the repetitions)")
        });
        let numbers = mean(&of_first).zip(mean(&of_second)).map(|(a, b)| {
            format!(
                "{} {a:.2} % against {} {b:.2} % of all packets (mean of {} conditions){difference}{missing}{more}",
                self.name(first),
                self.name(second),
                self.conditions.len()
            )
        });
        Claim::difference(claim, vec![lead], (NO_MORE, "1 point"), &numbers.unwrap_or_default())
    }

    /// The CPU time of the softIRQ with each capture, under the conditions in which one of them loses packets.
    fn costs_of_captures(&self, [first, second]: [usize; 2]) -> Option<String> {
        let loses = |contender: usize, condition: usize| {
            let losses = self.of(contender).get(condition);
            losses.and_then(|losses| typical(losses)).is_some_and(|loss| loss >= NO_MORE)
        };
        let conditions: Vec<_> = (0..self.conditions.len())
            .filter(|condition| loses(first, *condition) || loses(second, *condition))
            .collect();
        let time = |contender| {
            let of = self.times_of(contender);
            let times = conditions.iter().filter_map(|condition| typical(of.get(*condition)?));
            mean(&times.collect::<Vec<_>>())
        };
        Some(format!(
            "where one of the two loses at least {NO_MORE} point, in {} of {} conditions, the softIRQ needs {:.0} ns a packet with \
             {}, {:.0} ns with {} and {:.0} ns without a capture. Both copy each packet. With a stamp and no \
             capture it needs {:.0} ns for a raw stamp, which a BPF program reads by bpf_perf_event_read, and {:.0} ns for ktime",
            conditions.len(),
            self.conditions.len(),
            time(first)?,
            self.name(first),
            time(second)?,
            self.name(second),
            time(Contender::NOTHING)?,
            time(Contender::RAW)?,
            time(Contender::KTIME)?
        ))
    }

    /// The CPU time of the softIRQ with each stamp.
    fn costs_of_stamps(&self) -> Option<String> {
        let time = |contender| {
            let cells = self.times_of(contender).iter();
            mean(&cells.filter_map(|cell| typical(cell)).collect::<Vec<_>>())
        };
        let (nothing, raw) = (time(Contender::NOTHING)?, time(Contender::RAW)?);
        let ktime = time(Contender::KTIME)?;
        Some(format!(
            "the softIRQ needs {raw:.0} ns a packet with a raw stamp, {ktime:.0} ns with ktime, {nothing:.0} ns with neither \
             (mean of all conditions). The BPF program of the raw stamp cannot execute the counter's instruction; it reads the \
             counter by bpf_perf_event_read"
        ))
    }
}
