//! Conclusions of the report, and their verdicts here.

use super::findings::{LimitRateRuns, saturated};
use super::model::Line;
use super::paper::{LIMIT_OF_DURATIONS, RATES_OF_DURATIONS};
use super::saturation::{Saturation, saturation};
use super::setting::Level;
use super::trials::Trial;
use crate::experiment::{Claim, Estimate, mean};
use wirestamp_report::estimate::decimal;
use wirestamp_report::format::{count, real};

/// Min difference of two losses that count as different, in percentage points. The report calls up to
/// 0.12 "negligible".
const SAME: f64 = 1.0;
/// A line that explains more of the variance than this is "almost linear".
const ALMOST_LINEAR: f64 = 0.9;

const LOAD: fn(&Trial) -> f64 = Trial::load_percent;
const LOSS: fn(&Trial) -> f64 = Trial::loss_percent;

/// Which of several levels.
#[derive(Clone, Copy)]
enum LevelChoice {
    First,
    Last,
    /// The mean of all.
    All,
}
use LevelChoice::{All, First, Last};

/// The report's conclusions (2.1.5, 2.2.6, 2.3.3, 2.4.4, 2.5.1, 2.6.1, 2.7.1 and 2.8.1).
pub(super) fn claims(measured: &LimitRateRuns) -> Vec<Claim> {
    vec![
        processor(measured),
        linear(measured),
        memory(measured),
        network_card(),
        same(
            measured,
            "filter",
            "the complexity of the filter has no influence on the loss",
            // The mean of all rates hides a difference: the lower ones lose little or nothing with either filter.
            (First, Last),
            (Last, Last),
        ),
        more(
            measured,
            "tasks",
            "four tasks take more CPU than one",
            LOAD,
            [((Last, First), (First, First)), ((Last, Last), (First, Last))],
        ),
        same(
            measured,
            "tasks",
            "four tasks and one task have the same loss",
            (First, All),
            (Last, All),
        ),
        more(
            measured,
            "frame",
            "the CPU load falls as frames grow",
            LOAD,
            [((All, First), (All, Last))],
        ),
        more(
            measured,
            "gap",
            "the CPU load grows as the time between packets shrinks",
            LOAD,
            [((All, First), (All, Last))],
        ),
        same(
            measured,
            "gap",
            "the time between packets has no influence on the loss, below the limit rate",
            (All, First),
            (All, Last),
        ),
        duration(measured),
    ]
}

/// Cells of a series: which lines, and which points.
type Cells = (LevelChoice, LevelChoice);

/// Claims that the value `of` is higher for the first of each pair.
fn more<const N: usize>(
    measured: &LimitRateRuns,
    series: &str,
    claim: &str,
    of: fn(&Trial) -> f64,
    pairs: [(Cells, Cells); N],
) -> Claim {
    let pairs = pairs.map(|(a, b)| [a, b].map(|cells| by_repetition(measured, series, cells, of)));
    let leads = pairs.iter().map(|pair| Estimate::of(&differences(pair))).collect();
    let words: Vec<_> = pairs.iter().map(compared).collect();
    Claim::of(claim, leads, &words.join(", "))
}

/// Claims that both have the same loss ratio.
fn same(measured: &LimitRateRuns, series: &str, claim: &str, a: Cells, b: Cells) -> Claim {
    let pair = [a, b].map(|cells| by_repetition(measured, series, cells, LOSS));
    // The claim needs losses to compare: without loss on a part of a core, nothing was tested.
    let is_pressed = measured.of(series).is_some_and(|(sweep, _)| sweep.base.parts > 1);
    if is_pressed && pair.iter().flatten().all(|loss| *loss <= 0.0) {
        return Claim::of(claim, vec![None], "nothing was lost with either");
    }
    let at = if matches!((a, b), ((_, Last), (_, Last))) { "at the highest rate, " } else { "" };
    let difference = Estimate::of(&differences(&pair));
    let points = difference.map_or_else(String::new, |it| {
        format!(", a difference of {} percentage points", decimal(it, 2))
    });
    let words = format!(
        "{at}{}{points} (less than {SAME} percentage point apart counts as the same)",
        compared(&pair)
    );
    let lead = difference.map(|it| it.around(SAME - it.mean.abs()));
    Claim::of(claim, vec![lead], &words)
}

/// The report varies the memory of the machine.
fn memory(measured: &LimitRateRuns) -> Claim {
    let claim = "the amount of memory has no influence on the loss";
    match &measured.no_limit {
        None => same(measured, "memory", claim, (First, Last), (Last, Last)),
        Some(reason) => {
            let reason = format!("the memory of the probe cannot be limited here ({reason})");
            let requirement = "control groups with the memory controller";
            Claim::not_the_same_question(claim, &reason, requirement)
        }
    }
}

/// The report compares a network card of 100 Mbit/s with one of 10 Mbit/s (section 2.3.3).
fn network_card() -> Claim {
    Claim::not_the_same_question(
        "two types of network card need the same CPU load, and frames are lost by the slower one only above its own rate",
        "frames arrive over a veth link, which has neither a rate nor interrupts",
        "two cards of different types or rates in the probe, and a generator on their cables",
    )
}

/// Claims that the loss is higher by more than [`SAME`] after the longest duration than after the shortest. The report asks
/// this near the limit rate of its probe.
fn duration(measured: &LimitRateRuns) -> Claim {
    let claim = "the loss grows with the duration of the measurement";
    if let Some(reason) = far_from_limit(measured) {
        let requirement = "runs of 600 s at 80 % of a measured limit rate, for example on 1/16 of a core with a buffer of 2 MiB";
        return Claim::not_the_same_question(claim, &reason, requirement);
    }
    let pair = [(All, Last), (All, First)];
    let pair = pair.map(|cells| by_repetition(measured, "duration", cells, LOSS));
    let leads: Vec<_> = differences(&pair).iter().map(|more| more - SAME).collect();
    let words =
        format!("{} (an increase below {SAME} percentage point counts as none)", compared(&pair));
    Claim::of(claim, vec![Estimate::of(&leads)], &words)
}

/// Why the series of durations is not near the limit rate: its share of that is unknown, or below those of the report. None if
/// it is near, or if no limit was measured.
fn far_from_limit(measured: &LimitRateRuns) -> Option<String> {
    let (sweep, _) = measured.of("duration")?;
    let Level::Rate(Some(rate)) = *sweep.lines.first()? else { return None };
    let whole_core = saturated(&measured.searches, measured.size).into_iter().next()?;
    let (limit, is_bound) = (whole_core.rate?.mean, whole_core.not_reached > 0);
    let [low, high] = RATES_OF_DURATIONS.map(|rate| 100.0 * rate / LIMIT_OF_DURATIONS);
    let percent = 100.0 * real(rate) / limit;
    if !is_bound && percent >= low {
        return None;
    }
    let [at_most, at_least, why] =
        if is_bound { ["at most ", "at least ", ": the sender is not faster"] } else { [""; 3] };
    Some(format!(
        "the report measures at {low:.0} and {high:.0} % of the limit rate of its probe, and this study at {}/s, \
         {at_most}{percent:.0} % of the limit rate here ({at_least}{}/s{why})",
        count(rate),
        decimal(Estimate::new(limit, None), 0)
    ))
}

/// First minus second, for each repetition with both values.
fn differences([a, b]: &[Vec<f64>; 2]) -> Vec<f64> {
    a.iter().zip(b).map(|(a, b)| a - b).filter(|it| it.is_finite()).collect()
}

/// Text with both means, over the repetitions with both values.
fn compared([a, b]: &[Vec<f64>; 2]) -> String {
    let known = |(a, b): &(&f64, &f64)| a.is_finite() && b.is_finite();
    let (a, b): (Vec<f64>, Vec<f64>) = a.iter().zip(b).filter(known).unzip();
    match mean(&a).zip(mean(&b)) {
        Some((a, b)) => format!("{a:.2} % against {b:.2} %"),
        None => "the sender was too slow for one of the rates".to_owned(),
    }
}

/// Mean of `of` over these cells of a series, for each complete repetition; NaN if the sender was too slow
/// for one of them.
fn by_repetition(
    measured: &LimitRateRuns,
    series: &str,
    (lines, points): Cells,
    of: fn(&Trial) -> f64,
) -> Vec<f64> {
    let Some((sweep, runs)) = measured.of(series) else { return Vec::new() };
    let asked_for = |trial: &&Trial| !trial.is_short_of_the_rate();
    let responses = runs.responses(|run| run.first().filter(asked_for).map(of));
    let is_meant = |which, index: usize, of: usize| match which {
        First => index == 0,
        Last => index + 1 == of,
        All => true,
    };
    let width = sweep.points.len();
    let meant = responses.iter().enumerate().filter(|(cell, _)| {
        is_meant(lines, cell / width, sweep.lines.len()) && is_meant(points, cell % width, width)
    });
    let meant: Vec<_> = meant.map(|(_, response)| response).collect();
    let repetitions = usize::try_from(runs.complete()).unwrap_or(0);
    let of = |repetition| {
        mean(&meant.iter().filter_map(|it| it.get(repetition).copied()).collect::<Vec<_>>())
    };
    (0..repetitions).filter_map(of).collect()
}

/// A better processor, here more of a core, has a higher saturation point.
fn processor(LimitRateRuns { searches, size, .. }: &LimitRateRuns) -> Claim {
    // With one task, which is every other cell.
    let last = searches.design.cells().len().saturating_sub(2);
    let found = |cell| searches.of_cell(cell).filter_map(saturation).collect::<Vec<_>>();
    let (whole, part) = (found(0), found(last));
    let lead = |(whole, part): (&Saturation, &Saturation)| match part {
        Saturation::Reached(part) => Some(whole.at_least() - part),
        // If the part's limit was not reached, the difference is unknown.
        Saturation::NotReached(_) => None,
    };
    let leads: Vec<_> = whole.iter().zip(&part).filter_map(lead).collect();
    let words = |found: &[Saturation]| {
        let mean = mean(&found.iter().map(|it| it.at_least()).collect::<Vec<_>>())?;
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a rate")]
        let rate = count(mean.max(0.0) as u64);
        let is_bound = found.iter().any(|it| matches!(it, Saturation::NotReached(_)));
        Some(format!("{}{rate}", if is_bound { "at least " } else { "" }))
    };
    let parts = size.parts().last().copied().unwrap_or(1);
    let numbers = words(&whole).zip(words(&part)).map(|(whole, part)| {
        format!("{whole} frames a second on a whole core, {part} on 1/{parts} of a core")
    });
    let claim = "the faster the processor is, the higher is the saturation point";
    Claim::of(claim, vec![Estimate::of(&leads)], &numbers.unwrap_or_default())
}

/// Below the saturation point the CPU load is almost a line: that of the mean load at each rate, with the uncertainty that
/// the repetitions leave.
fn linear(measured: &LimitRateRuns) -> Claim {
    let claim = "the CPU load grows almost linearly with the rate as long as nothing is lost";
    let Some((sweep, runs)) = measured.of("cpu") else { return Claim::of(claim, vec![None], "") };
    let repetitions: Vec<_> = (0..usize::try_from(runs.complete()).unwrap_or(0)).collect();
    let explained = |repetitions: &[usize]| {
        let point = |cell: usize| {
            let of_repetition = |it: &usize| runs.of_cell(cell).nth(*it)?.first();
            let trials = repetitions.iter().filter_map(of_repetition);
            let points: Vec<_> = trials
                .filter(|it| it.loss_percent() <= super::paper::TOLERATED_PERCENT)
                .map(|it| (it.rate(), it.load_percent()))
                .collect();
            let (rates, loads): (Vec<_>, Vec<_>) = points.into_iter().unzip();
            mean(&rates).zip(mean(&loads))
        };
        let points: Vec<_> = (0..sweep.points.len()).filter_map(point).collect();
        Line::through(&points).map(|line| line.explained)
    };
    let explained = Estimate::jackknife(&repetitions, explained);
    let lead = explained.map(|it| it.around(it.mean - ALMOST_LINEAR));
    let words = explained.map(|it| {
        let percent = it.times(100.0).text(|percent| format!("{percent:.1}"));
        format!("a line explains {percent} % of the variance of the mean loads, on a whole core")
    });
    Claim::of(claim, vec![lead], &words.unwrap_or_default())
}
