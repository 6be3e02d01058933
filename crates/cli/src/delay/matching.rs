//! By which rule the packets of two points are recognised as the same.

use wirestamp_packet::MatchRule;

use super::arguments::Arguments;
use super::files::{NothingInCommon, compare_captures};
use super::match_option::Matching;
use super::observed_later::ObservedLater;
use super::point::Point;
use super::result::DelayResult;
use super::unknown_loss::UnknownLoss;

/// Compares two capture files or pipes. With `--match auto`, files are compared again by other rules while the loss is
/// unknown. `writes_rows`: whether the requested files of packets are written.
pub(super) fn compare(
    arguments: &Arguments,
    points: [&Point; 2],
    writes_rows: bool,
) -> anyhow::Result<DelayResult> {
    let by =
        |rule, rows| compare_captures(arguments, points, rule, rows, &mut ObservedLater::default());
    let rule = arguments.matching.first();
    let is_read_once = points.iter().any(|point| matches!(point, Point::Pipe(_)));
    if arguments.matching != Matching::Auto || is_read_once {
        return by(rule, writes_rows);
    }
    let found = choose(rule, |rule| by(rule, false))?;
    if !writes_rows || (arguments.csv.is_none() && arguments.parquet.is_none()) {
        return Ok(found);
    }
    // Once more, because only the rows of the chosen rule are written.
    let with_rows = by(found.rule(), true)?;
    let DelayResult { remarks, has_tried_rules, .. } = found;
    Ok(DelayResult { remarks, has_tried_rules, ..with_rows })
}

/// The result by the first rule that recognises the packets: `first`, or others while the loss is unknown. Another rule
/// must match more packets than `first`: some rules exclude a part of them.
fn choose(
    first: MatchRule,
    by: impl Fn(MatchRule) -> anyhow::Result<DelayResult>,
) -> anyhow::Result<DelayResult> {
    let first = by(first);
    let rules = match &first {
        Ok(result) => result.unknown_loss.map_or(&[][..], UnknownLoss::rules),
        Err(error) if error.is::<NothingInCommon>() => &MatchRule::ALL[1..],
        Err(_) => &[],
    };
    let matched = first.as_ref().map_or(0, DelayResult::matched);
    for rule in rules {
        match by(*rule) {
            Ok(found) if found.unknown_loss.is_none() && found.matched() > matched => {
                return Ok(found);
            }
            Ok(_) => {}
            Err(error) if error.is::<NothingInCommon>() => {}
            Err(error) => return Err(error),
        }
    }
    let mut result = first?;
    if !rules.is_empty() {
        let tried: Vec<_> = rules.iter().map(|rule| rule.name()).collect();
        let tried = tried.join(", ");
        result.has_tried_rules = true;
        result.remarks.push(format!("also tried without success: --match {tried}"));
    }
    Ok(result)
}
