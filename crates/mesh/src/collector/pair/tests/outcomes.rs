//! Each packet counts once, with its outcome, in any order of the batches and after crashes.

use super::*;

/// The point was not observed during these batches.
fn leave_out(batches: &mut Vec<ObservationBatch>, gone: std::ops::Range<usize>) {
    let begin = batches[gone.end - 1].complete_until;
    batches.drain(gone.clone());
    batches[gone.start].begin = Some(begin);
}

fn counts(stored: &Stored) -> Vec<(Time<Utc>, Counts)> {
    stored.windows.iter().map(|(begin, it)| (*begin, *it.quality.counts())).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]

    #[test]
    fn crashes_change_nothing_and_nothing_is_counted_twice(
        fates in prop::collection::vec(fate(100), 100..600),
        steps in prop::collection::vec((any::<bool>(), 0..30_u8), 1..400),
        gap in prop::option::of((0..2_usize, 1..60_usize, 1..20_usize)),
        malformed in prop::option::of((0..2_usize, 1..60_usize, 1..4_usize)),
    ) {
        let mut batches = batches(&fates);
        if let Some((side, from, length)) = gap {
            leave_out(&mut batches[side], from..from + length);
        }
        if let Some((side, from, count)) = malformed {
            batches[side][from..from + count].iter_mut().for_each(|it| it.clock = MALFORMED);
        }
        // After a longer silence, the variation of a flow is not exact. The batch after a malformed one is silent, too.
        let silent = gap.map_or(0, |it| it.2) + malformed.map_or(0, |it| it.2 + 1);
        let silence = i64::try_from(silent).unwrap() * BATCH;
        let is_short = at(silence) + TIMING.matching.skew < at(0) + TIMING.matching.timeout;
        let (through, crashed) = (collected(&batches, &[]), collected(&batches, &steps));
        prop_assert_eq!(counts(&crashed), counts(&through));
        for (one, other) in crashed.windows.values().zip(through.windows.values()) {
            prop_assert_eq!(one.offset, other.offset);
            let [one, other] = [one, other].map(|it| &it.quality);
            prop_assert_eq!(format!("{:?}", one.delay()), format!("{:?}", other.delay()));
            if is_short {
                prop_assert_eq!(one.variation().summary(), other.variation().summary());
            }
        }
    }

    /// If the path keeps the order, it is known which packets a capture lost.
    #[test]
    fn every_packet_counts_with_its_outcome(
        fates in prop::collection::vec(fate(8), 1..200), delay in 0..150_000_i64,
    ) {
        let steady = |fate| match fate {
            Fate::Comes(_) => Fate::Comes(delay),
            Fate::ComesTwice(..) => Fate::ComesTwice(delay, delay),
            Fate::Lost => Fate::Lost,
            Fate::Missed(_) => Fate::Missed(delay),
            Fate::Unseen(_) => Fate::Unseen(delay),
        };
        let fates: Vec<_> = fates.into_iter().map(steady).collect();
        let stored = collected(&batches(&fates), &[]);
        let number = |of: &dyn Fn(&Fate) -> bool| fates.iter().filter(|it| of(it)).count() as u64;
        let comes = number(&|it| matches!(it, Fate::Comes(_) | Fate::ComesTwice(..)));
        prop_assert_eq!(sum(&stored, |it| it.matched), comes);
        let twice = number(&|it| matches!(it, Fate::ComesTwice(..)));
        prop_assert_eq!(sum(&stored, |it| it.duplicated), twice);
        let lost = number(&|it| matches!(it, Fate::Lost));
        let missed = number(&|it| matches!(it, Fate::Missed(_)));
        let undetermined = sum(&stored, |it| it.undetermined_sent);
        prop_assert_eq!((sum(&stored, |it| it.lost), undetermined), (lost, missed));
        let unseen = number(&|it| matches!(it, Fate::Unseen(_)));
        let undetermined = sum(&stored, |it| it.undetermined_received);
        prop_assert_eq!((sum(&stored, |it| it.unexpected), undetermined), (0, unseen));
    }

    /// On any other path, all packets are counted, and network losses are not attributed to captures.
    #[test]
    fn every_packet_is_counted_once(fates in prop::collection::vec(fate(8), 1..200)) {
        let stored = collected(&batches(&fates), &[]);
        let number = |of: &dyn Fn(&Fate) -> bool| fates.iter().filter(|it| of(it)).count() as u64;
        let lost = number(&|it| matches!(it, Fate::Lost));
        let sent = number(&|it| !matches!(it, Fate::Unseen(_)));
        let comes = number(&|it| matches!(it, Fate::Comes(_) | Fate::ComesTwice(..)));
        prop_assert_eq!(sum(&stored, |it| it.sent), sent);
        prop_assert_eq!(sum(&stored, |it| it.matched), comes);
        prop_assert_eq!(sum(&stored, |it| it.lost + it.undetermined_sent), sent - comes);
        prop_assert!(sum(&stored, |it| it.lost) >= lost);
        let unseen = number(&|it| matches!(it, Fate::Unseen(_)));
        prop_assert_eq!(sum(&stored, |it| it.unexpected + it.undetermined_received), unseen);
    }
}
