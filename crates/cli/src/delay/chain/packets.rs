//! The packets of several points in a row, each with its stamps at all of them.

use wirestamp_capture::Filter;
use wirestamp_capture::file::Reader;
use wirestamp_metrics::Counts;
use wirestamp_packet::MatchRule;
use wirestamp_session::{
    ChainCorrections, ChainPacket, Correction, PointState, Terms, compare_chain,
};

use super::super::arguments::Arguments;
use super::super::files::compare_captures;
use super::super::observed_later::ObservedLater;
use super::super::point::Point;
use super::subpaths::{Chain, Subpath};

/// Calls `record` with each packet, recognised by `rule`; reads the captures once more.
pub(super) fn each_packet(
    arguments: &Arguments,
    chain: &Chain<'_>,
    rule: MatchRule,
    record: &mut impl FnMut(ChainPacket),
) -> anyhow::Result<()> {
    let filter = arguments.filter.as_deref().map(Filter::compile).transpose()?;
    let state = PointState::new(arguments.sample.as_ref()).recognising(rule);
    let terms = Terms {
        correlation: arguments.correlation(),
        partial: arguments.partial,
        filter: filter.as_ref(),
        correction: Correction::default(),
        state: Some(&state),
    };
    let corrections = ChainCorrections {
        hops: chain.subpaths.iter().map(|it| it.result.clocks.correction).collect(),
        whole: chain.complete.result.clocks.correction,
    };
    let readers: Result<Vec<_>, _> =
        arguments.points().map(|name| Reader::open(name.as_ref())).collect();
    Ok(compare_chain(readers?, &corrections, &terms, record)?)
}

/// Compares the points of a hop again if packets that are missing at the second one were observed at a later point:
/// these are undetermined, not lost.
pub(super) fn exclude_observed_later(
    arguments: &Arguments,
    chain: &mut Chain<'_>,
    rule: MatchRule,
) -> anyhow::Result<()> {
    let are_any_lost = chain.subpaths.iter().any(|it| counts(it).lost > 0);
    let are_any_new = chain.subpaths.iter().skip(1).any(|it| counts(it).unexpected > 0);
    if !(are_any_lost && are_any_new) {
        return Ok(());
    }
    let mut hops = vec![ObservedLater::default(); chain.subpaths.len()];
    each_packet(arguments, chain, rule, &mut |packet| {
        hops.iter_mut().enumerate().for_each(|(number, hop)| hop.add(number, &packet));
    })?;
    for (subpath, mut observed) in chain.subpaths.iter_mut().zip(hops) {
        if observed.is_empty() {
            continue;
        }
        let lost = counts(subpath).lost;
        let [a, b] = [subpath.from, subpath.to].map(Point::named);
        subpath.result = compare_captures(arguments, [&a, &b], rule, false, &mut observed)?;
        subpath.not_captured = lost.saturating_sub(counts(subpath).lost);
    }
    Ok(())
}

fn counts(subpath: &Subpath<'_>) -> Counts {
    *subpath.result.flows.total().counts()
}
