use std::collections::HashSet;

use proptest::prelude::*;
use wirestamp_clock::Span;

use super::*;

const MANY: usize = 1000;
/// Payload of every packet, as in RFC 4737 section 7.1.
const BYTES: u32 = 100;

fn arrival(sequence: u64, millis: i64) -> Arrival {
    Arrival { sequence, time: Time::from_nanos(0) + Span::from_millis(millis), bytes: BYTES }
}

/// A reordered packet: sequence, extent, late time in ms, byte offset, n-reordering.
type Late = (u64, u64, i64, u64, u64);

/// Feeds (sequence, arrival in ms) and returns what was reordered.
fn late(window: usize, arrivals: &[(u64, i64)]) -> (Reordering, Vec<Late>) {
    let mut reordering = Reordering::new(window);
    let late = arrivals
        .iter()
        .filter_map(|&(sequence, millis)| match reordering.record(arrival(sequence, millis)) {
            Order::Reordered(Lateness { extent, time, bytes, n_reordering }) => {
                Some((sequence, extent, time.as_nanos() / 1_000_000, bytes, n_reordering))
            }
            _ => None,
        })
        .collect();
    (reordering, late)
}

/// Table 1 of RFC 4737 section 7.1.
#[test]
fn first_example_of_the_rfc_is_reproduced() {
    let (reordering, late) = late(
        MANY,
        &[
            (1, 68),
            (2, 88),
            (3, 108),
            (5, 148),
            (6, 168),
            (7, 188),
            (8, 208),
            (4, 210),
            (9, 228),
            (10, 248),
        ],
    );
    assert_eq!(late, [(4, 4, 62, 400, 4)]);
    assert_eq!(reordering.ratio(), Some(0.1));
    let n_reordered: Vec<_> = (0..=5).map(|n| reordering.n_reordered(n)).collect();
    assert_eq!(n_reordered, [1, 1, 1, 1, 1, 0]);
}

/// Table 2 of RFC 4737 section 7.2: packet 6 is reordered without being 1-reordered.
#[test]
fn second_example_of_the_rfc_is_reproduced() {
    let (reordering, late) = late(
        MANY,
        &[
            (1, 68),
            (2, 88),
            (3, 108),
            (4, 128),
            (7, 188),
            (5, 189),
            (6, 190),
            (8, 208),
            (9, 228),
            (10, 248),
        ],
    );
    assert_eq!(late, [(5, 1, 1, 100, 1), (6, 2, 2, 100, 0)]);
    assert_eq!((reordering.n_reordered(0), reordering.n_reordered(1)), (2, 1));
}

/// Table 3 of RFC 4737 section 7.3.
#[test]
fn third_example_of_the_rfc_is_reproduced() {
    let (reordering, late) = late(
        MANY,
        &[
            (1, 68),
            (2, 88),
            (3, 108),
            (7, 188),
            (8, 208),
            (9, 228),
            (10, 248),
            (4, 250),
            (5, 252),
            (6, 256),
            (11, 268),
        ],
    );
    assert_eq!(late, [(4, 4, 62, 400, 4), (5, 5, 64, 400, 0), (6, 6, 68, 400, 0)]);
    assert_eq!((reordering.extents.max, reordering.byte_offsets.count), (6, 3));
    assert_eq!(reordering.n_reordered(3), 1);
    assert_eq!(reordering.late_times.summary().expect("late packets").max, 68_000_000);
}

/// Table 4 of RFC 4737 section 7.4, which gives extents but no times: here a packet comes every 20 ms.
#[test]
fn fourth_example_of_the_rfc_is_reproduced() {
    let arrivals = (0..).zip([1, 2, 3, 6, 7, 4, 5, 8, 9, 10, 12, 13, 11, 14, 15, 16]);
    let arrivals: Vec<_> = arrivals.map(|(place, sequence)| (sequence, place * 20)).collect();
    let (reordering, late) = late(MANY, &arrivals);
    assert_eq!(late, [(4, 2, 40, 200, 2), (5, 3, 60, 200, 0), (11, 2, 40, 200, 2)]);
    assert_eq!(reordering.ratio(), Some(3.0 / 16.0));
    assert_eq!((reordering.discontinuities.count, reordering.discontinuities.gaps.count), (2, 1));
    assert_eq!(reordering.discontinuities.gaps.max, 7);
    assert_eq!(reordering.discontinuities.gap_times.summary().expect("a gap").max, 140_000_000);
    let runs = reordering.free_runs.lengths.summary().expect("runs");
    assert_eq!((runs.count, runs.min, runs.p50, runs.max), (3, 0, 5, 5));
    assert_eq!(runs.mean, 10.0 / 3.0);
}

#[test]
fn gap_is_counted_in_arrivals_across_the_window() {
    let arrivals = [1, 3, 2, 4, 5, 6, 8, 7].map(|sequence| (sequence, 0));
    for window in [2, 3, MANY] {
        let (reordering, _) = late(window, &arrivals);
        assert_eq!(
            (reordering.discontinuities.count, reordering.discontinuities.gaps.max),
            (2, 5),
            "{window}"
        );
    }
}

#[test]
fn merged_streams_have_the_figures_of_both() {
    let stream = [1, 3, 4, 2, 5].map(|sequence| (sequence, 0));
    let (mut merged, _) = late(MANY, &stream);
    let (other, _) = late(MANY, &[1, 3, 2, 5, 4].map(|sequence| (sequence, 0)));
    merged.merge(&other);
    assert_eq!(merged.ratio(), Some(0.3));
    assert_eq!((merged.n_reordered(1), merged.n_reordered(2)), (3, 1));
    assert_eq!((merged.discontinuities.count, merged.discontinuities.gaps.count), (3, 1));
    assert_eq!(merged.free_runs.lengths.count, 3);
    // The first stream continues unchanged.
    assert_eq!(merged.record(arrival(6, 0)), Order::InOrder);
}

/// The arrivals in the note of RFC 4737 section 5.3.
#[test]
fn only_the_first_of_a_reordered_block_is_n_reordered() {
    let arrivals = [1, 2, 3, 7, 8, 9, 4, 5, 6].map(|sequence| (sequence, 0));
    let (reordering, late) = late(MANY, &arrivals);
    let n_reordering: Vec<_> = late.iter().map(|&(sequence, .., n)| (sequence, n)).collect();
    assert_eq!(n_reordering, [(4, 3), (5, 0), (6, 0)]);
    assert_eq!([0, 1, 3, 4].map(|n| reordering.n_reordered(n)), [3, 1, 1, 0]);
}

#[test]
fn a_loss_is_no_reordering() {
    let (reordering, late) = late(MANY, &[(1, 0), (5, 1), (6, 2)]);
    assert_eq!((late.len(), reordering.counts.in_order), (0, 3));
}

#[test]
fn duplicates_have_no_order() {
    let mut reordering = Reordering::new(MANY);
    let orders = [1, 1, 3, 1, 2, 2, 3].map(|sequence| reordering.record(arrival(sequence, 0)));
    let late = Lateness { extent: 1, time: Span::ZERO, bytes: 100, n_reordering: 1 };
    use Order::{Duplicate, InOrder, Reordered};
    let expected = [InOrder, Duplicate, InOrder, Duplicate, Reordered(late), Duplicate, Duplicate];
    assert_eq!(orders, expected);
}

#[test]
fn packet_older_than_the_window_is_forgotten() {
    let (reordering, late) = late(2, &[(1, 0), (3, 1), (4, 2), (5, 3), (2, 4), (5, 5)]);
    assert_eq!(late, []);
    let expected = OrderCounts { in_order: 4, reordered: 0, duplicated: 1, forgotten: 1 };
    assert_eq!(reordering.counts, expected);
}

#[test]
fn window_of_the_extent_suffices() {
    let arrivals = [(1, 0), (3, 1), (4, 2), (2, 3)];
    assert_eq!(late(2, &arrivals).1, [(2, 2, 2, 200, 2)]);
    assert_eq!(late(1, &arrivals).1, []);
}

#[test]
fn without_packets_there_is_no_ratio() {
    assert_eq!(Reordering::new(0).ratio(), None);
}

/// The definitions of RFC 4737, literally, over all arrivals.
fn model(earlier: &[u64], sequence: u64) -> Order {
    if earlier.iter().all(|earlier| *earlier < sequence) {
        return Order::InOrder;
    }
    if earlier.contains(&sequence) {
        return Order::Duplicate;
    }
    let first = earlier.iter().position(|it| *it > sequence).expect("not in order");
    let above = earlier.iter().filter(|it| **it > sequence).count() as u64;
    Order::Reordered(Lateness {
        extent: (earlier.len() - first) as u64,
        time: Span::from_millis(i64::try_from(earlier.len() - first).expect("few packets")),
        bytes: above * u64::from(BYTES),
        n_reordering: earlier.iter().rev().take_while(|it| **it > sequence).count() as u64,
    })
}

proptest! {
    #[test]
    fn any_order_matches_the_definitions(
        sequences in prop::collection::vec(0u64..40, 0..60),
        window in 0usize..80,
    ) {
        let mut reordering = Reordering::new(window);
        let mut first_copies = Vec::new();
        for sequence in sequences {
            let position = i64::try_from(first_copies.len())?;
            let truth = model(&first_copies, sequence);
            let found = reordering.record(arrival(sequence, position));
            prop_assert!(found == truth || found == Order::Forgotten, "{found:?} {truth:?}");
            let lately = first_copies.len().saturating_sub(window.max(1));
            let unknown = found == Order::Forgotten;
            if unknown {
                let highest_forgotten = first_copies[..lately].iter().max();
                prop_assert!(highest_forgotten >= Some(&sequence));
                prop_assert!(!first_copies[lately..].contains(&sequence));
            }
            if truth != Order::Duplicate {
                first_copies.push(sequence);
            } else if unknown {
                // It was indistinguishable from a first copy, so the rest is another stream.
                break;
            }
        }
        let distinct: HashSet<_> = first_copies.iter().collect();
        prop_assert_eq!(distinct.len(), first_copies.len());
    }
}
