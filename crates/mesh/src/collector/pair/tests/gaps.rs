//! Points that are disconnected, drop batches or stop for a time.

use super::*;

#[test]
fn batch_is_taken_once_and_in_order() {
    let [a, _] = batches(&[Fate::Comes(1000)].repeat(20));
    let mut pair = Pair::new(TIMING, at(0), [6, 0]);
    assert_eq!(pair.take(Point::A, 6, &a[0]), Delivery::Duplicate);
    assert_eq!(pair.take(Point::A, 8, &a[0]), Delivery::Expected(7));
    assert_eq!(pair.take(Point::A, 7, &a[0]), Delivery::Taken);
    assert_eq!(pair.take(Point::A, 7, &a[0]), Delivery::Duplicate);
    assert_eq!(pair.give_up(Point::A, &(9..=10), at(90), 0), Delivery::Expected(8));
    assert_eq!(pair.give_up(Point::A, &(8..=9), at(90), 0), Delivery::Taken);
    assert_eq!(pair.take(Point::A, 10, &a[3]), Delivery::Taken);
}

/// The probe at A is disconnected for three seconds, in which the network loses everything; then A delivers all.
#[test]
fn disconnected_point_leaves_no_loss_uncounted() {
    let fates = [vec![Fate::Comes(1000); 200], vec![Fate::Lost; 600], vec![Fate::Comes(1000); 200]];
    let [a, b] = batches(&fates.concat());
    let (mut stored, mut delivered) = (Stored::default(), [0, 0]);
    let mut pair = stored.pair();
    while delivered != [a.len(), b.len()] {
        let side = usize::from(!pair.is_ahead(Point::B) && delivered[1] < b.len());
        let (point, batches) = [(Point::A, &a), (Point::B, &b)][side];
        let seen = &batches[delivered[side]];
        delivered[side] += 1;
        assert_eq!(pair.take(point, delivered[side] as u64, seen), Delivery::Taken);
        if let Some(settled) = pair.settle() {
            stored.store(settled);
        }
    }
    assert_eq!((sum(&stored, |it| it.lost), sum(&stored, |it| it.matched)), (600, 400));
}

#[test]
fn dropped_batches_are_excluded_from_loss() {
    let fates = [Fate::Comes(1000)].repeat(200);
    let all = batches(&fates);
    let mut stored = Stored::default();
    let mut pair = stored.pair();
    for (number, (a, b)) in (1..).zip(all[0].iter().zip(&all[1])) {
        pair.take(Point::A, number, a);
        // From 300 to 600 ms.
        match number {
            1..11 | 21.. => {
                pair.take(Point::B, number, b);
            }
            20 => {
                pair.give_up(Point::B, &(11..=20), at(600), 60);
            }
            _ => {}
        }
        // The probe reconnects, and then the collector is killed.
        if number == 22 {
            pair = stored.pair();
            let [first, second] = stored.acknowledged;
            assert!(first < 10 && second < 10, "{first} {second}");
            let [a, b] = all.each_ref().map(|it| (1..).zip(it.iter().take(22)));
            a.skip(index(first)).for_each(|(number, seen)| {
                pair.take(Point::A, number, seen);
            });
            b.skip(index(second)).for_each(|(number, seen)| match number {
                11 => {
                    pair.give_up(Point::B, &(11..=20), at(600), 60);
                }
                12..21 => {}
                _ => {
                    pair.take(Point::B, number, seen);
                }
            });
        }
        if let Some(settled) = pair.settle() {
            stored.store(settled);
        }
    }
    assert_eq!((sum(&stored, |it| it.lost), sum(&stored, |it| it.undetermined_sent)), (0, 60));
    assert_eq!((sum(&stored, |it| it.matched), stored.dropped), (140, 60));
}

/// B's probe does not run from 300 to 600 ms, and has lost its spool afterwards.
#[test]
fn stopped_probe_is_excluded_from_loss() {
    let all = batches(&[Fate::Comes(1000)].repeat(200));
    let mut stored = Stored::default();
    let mut pair = stored.pair();
    for (number, (a, b)) in (1..).zip(all[0].iter().zip(&all[1])) {
        pair.take(Point::A, number, a);
        match number {
            1..11 => {
                pair.take(Point::B, number, b);
            }
            21.. => {
                let begin = (number == 21).then_some(at(600));
                if begin.is_some() {
                    pair.number_anew(Point::B, 0);
                }
                let seen = ObservationBatch { begin, ..b.clone() };
                assert_eq!(pair.take(Point::B, number - 20, &seen), Delivery::Taken);
            }
            _ => {}
        }
        if let Some(settled) = pair.settle() {
            stored.store(settled);
        }
    }
    assert_eq!((sum(&stored, |it| it.lost), sum(&stored, |it| it.undetermined_sent)), (0, 60));
    assert_eq!(sum(&stored, |it| it.matched), 140);
}

fn index(number: u64) -> usize {
    usize::try_from(number).unwrap()
}
