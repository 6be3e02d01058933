//! Batches survive restarts, and each is delivered, stored or dropped once.

use std::ops::RangeInclusive;

use proptest::prelude::*;

use super::*;

/// A batch of 100 bytes.
fn batch(number: u8) -> Batch {
    let begin = i64::from(number) * 10;
    let body = vec![number; 100 - usize::try_from(ENTRY_OVERHEAD).unwrap()];
    Batch { items: number.into(), times: begin..=begin + 9, body }
}

fn dropped(sequences: RangeInclusive<u64>, items: u64, times: RangeInclusive<i64>) -> Held {
    Held::Dropped(DroppedBatches { sequences, items, times })
}

#[test]
fn entries_survive_restart_until_acknowledged() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("spool");
    let mut spool = Spool::open(&path, 1000).unwrap();
    let stream = spool.stream("a").unwrap();
    spool.append(&[("a", batch(1)), ("b", batch(2)), ("a", batch(3))]).unwrap();
    drop(spool);
    let mut spool = Spool::open(&path, 1000).unwrap();
    assert_eq!((spool.stream("a").unwrap(), spool.bytes()), (stream, 300));
    let held = [Held::Batch(1, batch(1)), Held::Batch(2, batch(3))];
    assert_eq!(spool.read("a", 0, u64::MAX).unwrap(), held);
    assert_eq!(spool.read("a", 0, 1).unwrap(), held[..1]);
    assert_eq!(spool.read("a", 1, 0).unwrap(), held[1..]);
    assert_eq!(spool.read("other", 0, 1).unwrap(), []);
    assert_eq!(spool.channels().unwrap(), ["a", "b"]);
    assert_eq!(["a", "other"].map(|it| spool.first(it).unwrap()), [1, 1]);
    spool.acknowledge("a", 1).unwrap();
    assert_eq!((spool.read("a", 0, 999).unwrap(), spool.bytes()), (held[1..].to_vec(), 200));
    // Numbers are not reused.
    spool.acknowledge("a", 2).unwrap();
    assert_eq!(spool.first("a").unwrap(), 3);
    assert_eq!(spool.reported_until().unwrap(), [("a".to_owned(), 39), ("b".to_owned(), 29)]);
    spool.append(&[("a", batch(4))]).unwrap();
    assert_eq!(spool.read("a", 0, 999).unwrap(), [Held::Batch(3, batch(4))]);
    let other = Spool::open(&folder.path().join("other"), 1).unwrap();
    assert_ne!(other.stream("a").unwrap(), stream);
}

#[test]
fn settled_time_is_stored_with_the_acknowledgement() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("spool");
    let tables = tables::SCHEMA.tables.replace(", settled INTEGER", "");
    let tables = tables.replace(",\n        checksum INTEGER", "");
    let tables = tables.replace("user_version = 4", "user_version = 2");
    // A spool of an earlier version.
    rusqlite::Connection::open(&path).unwrap().execute_batch(&tables).unwrap();
    let mut spool = Spool::open(&path, 1000).unwrap();
    assert_eq!(spool.known_times("a").unwrap(), (None, None));
    spool.append(&[("a", batch(1)), ("a", batch(2))]).unwrap();
    assert_eq!(spool.known_times("a").unwrap(), (None, Some(10)));
    spool.acknowledge_until("a", 1, Some(15)).unwrap();
    spool.acknowledge_until("a", 1, Some(12)).unwrap();
    spool.acknowledge("a", 1).unwrap();
    drop(spool);
    let mut spool = Spool::open(&path, 1000).unwrap();
    assert_eq!(spool.known_times("a").unwrap(), (Some(15), Some(20)));
    spool.acknowledge("a", 2).unwrap();
    assert_eq!(spool.known_times("a").unwrap(), (Some(15), None));
}

#[test]
fn dropped_batches_are_reported_in_their_place() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("spool");
    let mut spool = Spool::open(&path, 250).unwrap();
    for number in 1..=4 {
        spool.append(&[("a", batch(number))]).unwrap();
    }
    let (third, fourth) = (Held::Batch(3, batch(3)), Held::Batch(4, batch(4)));
    let held = [dropped(1..=2, 3, 10..=29), third, fourth.clone()];
    assert_eq!(spool.read("a", 0, 999).unwrap(), held);
    // The third may have been delivered: it is reported separately.
    spool.append(&[("a", batch(5))]).unwrap();
    let fifth = Held::Batch(5, batch(5));
    let held = [held[0].clone(), dropped(3..=3, 3, 30..=39), fourth, fifth];
    assert_eq!(spool.read("a", 0, 999).unwrap(), held);
    spool.acknowledge("a", 3).unwrap();
    assert_eq!(spool.read("a", 0, 999).unwrap(), held[2..]);
    // A batch that is too large evicts no others.
    spool.append(&[("b", Batch { body: vec![0; 250], ..batch(9) })]).unwrap();
    assert_eq!(spool.read("b", 0, 999).unwrap(), [dropped(1..=1, 9, 90..=99)]);
    assert_eq!(spool.bytes(), 200);
    drop(spool);
    // The limit is smaller now.
    let mut spool = Spool::open(&path, 150).unwrap();
    assert_eq!(spool.read("a", 0, 999).unwrap()[0], dropped(4..=4, 4, 40..=49));
}

#[test]
fn batches_that_were_dropped_before_are_stored_as_such() {
    let folder = tempfile::tempdir().unwrap();
    let mut spool = Spool::open(&folder.path().join("spool"), 1000).unwrap();
    spool.append(&[("a", batch(1)), ("a", batch(2).dropped()), ("a", batch(3).dropped())]).unwrap();
    spool.append(&[("a", batch(4))]).unwrap();
    let held = [Held::Batch(1, batch(1)), dropped(2..=3, 5, 20..=39), Held::Batch(4, batch(4))];
    assert_eq!((spool.read("a", 0, 999).unwrap(), spool.bytes()), (held.to_vec(), 200));
}

#[test]
fn restored_spool_keeps_what_came_after_it_was_opened() {
    let folder = tempfile::tempdir().unwrap();
    let [path, backup] = ["spool", "backup"].map(|name| folder.path().join(name));
    let mut spool = Spool::open(&path, 1000).unwrap();
    spool.append(&[("a", batch(1)), ("a", batch(2))]).unwrap();
    drop(spool);
    std::fs::copy(&path, &backup).unwrap();
    let mut spool = Spool::open(&path, 1000).unwrap();
    spool.append(&[("a", batch(3)), ("a", batch(4))]).unwrap();
    assert!(spool.may_have_delivered("a", 2).unwrap());
    assert!(!spool.may_have_delivered("a", 4).unwrap());
    spool.read("a", 0, u64::MAX).unwrap();
    assert!(spool.may_have_delivered("a", 4).unwrap());
    // The collector has all four. The restored spool has gone on in another way.
    let mut restored = Spool::open(&backup, 1000).unwrap();
    restored.append(&[("a", batch(5)), ("b", batch(6))]).unwrap();
    assert!(!restored.may_have_delivered("a", 4).unwrap());
    assert!(!restored.may_have_delivered("unknown", 1).unwrap());
    let before = ["a", "b"].map(|channel| restored.stream(channel).unwrap());
    restored.begin_anew("a").unwrap();
    let after = ["a", "b"].map(|channel| restored.stream(channel).unwrap());
    assert!(after[0] != before[0] && after[1] == before[1]);
    assert_eq!((restored.first("a").unwrap(), restored.bytes()), (3, 200));
    assert_eq!(restored.read("a", 0, 999).unwrap(), [Held::Batch(3, batch(5))]);
    assert_eq!(restored.read("b", 0, 999).unwrap(), [Held::Batch(1, batch(6))]);
    // What was observed until here is that of another probe.
    restored.mark().unwrap();
    restored.append(&[("a", batch(7))]).unwrap();
    restored.begin_anew("a").unwrap();
    assert_eq!(restored.read("a", 0, 999).unwrap(), [Held::Batch(4, batch(7))]);
    restored.begin_anew("new").unwrap();
    restored.append(&[("new", batch(8))]).unwrap();
    assert_eq!(restored.read("new", 0, 999).unwrap(), [Held::Batch(1, batch(8))]);
}

/// Its bytes, or its times, changed on the disk.
#[test]
fn damaged_batch_cannot_be_read() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("spool");
    let mut spool = Spool::open(&path, 1000).unwrap();
    spool.append(&[1, 2, 3, 4, 5].map(|number| ("a", batch(number)))).unwrap();
    drop(spool);
    let changes = "UPDATE batch SET body = zeroblob(length(body)) WHERE sequence = 1;
                   UPDATE batch SET until = until + (1 << 62) WHERE sequence = 3;
                   UPDATE batch SET checksum = -1 WHERE sequence = 4;
                   UPDATE batch SET sequence = 6 WHERE sequence = 5;";
    rusqlite::Connection::open(&path).unwrap().execute_batch(changes).unwrap();
    let mut spool = Spool::open(&path, 1000).unwrap();
    let held = spool.read("a", 0, 999).unwrap();
    let bodies = held.into_iter().map(|it| match it {
        Held::Batch(number, it) => (number, it.body),
        Held::Dropped(it) => panic!("{it:?}"),
    });
    let unreadable = |number| (number, tables::UNREADABLE.to_vec());
    let intact = (2, batch(2).body);
    let expected = [unreadable(1), intact, unreadable(3), unreadable(4), unreadable(6)];
    assert_eq!(bodies.collect::<Vec<_>>(), expected);
    spool.acknowledge("a", 6).unwrap();
    assert_eq!((spool.read("a", 0, 999).unwrap(), spool.bytes()), (vec![], 0));
}

#[derive(Clone, Copy, Debug)]
enum Step {
    Append(u8),
    Read(u64),
    /// Index of a number that was read.
    Acknowledge(usize),
    Open,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        4 => (1..9u8).prop_map(Step::Append),
        2 => (0..500u64).prop_map(Step::Read),
        1 => any::<prop::sample::Index>().prop_map(|it| Step::Acknowledge(it.index(100))),
        1 => Just(Step::Open),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    #[test]
    fn each_batch_is_stored_or_dropped_once(
        steps in prop::collection::vec(step(), 1..40),
    ) {
        let folder = tempfile::tempdir().unwrap();
        let open = || Spool::open(&folder.path().join("spool"), 350).unwrap();
        let mut spool = Some(open());
        // Items of each batch; last numbers of the reads; last acknowledged number.
        let (mut items, mut read, mut acknowledged) = (vec![0], vec![0], 0);
        for step in steps {
            if matches!(step, Step::Open) {
                spool = None;
            }
            let spool = spool.get_or_insert_with(open);
            match step {
                Step::Append(number) => {
                    spool.append(&[("a", batch(number)), ("b", batch(number))]).unwrap();
                    items.push(u64::from(number));
                }
                Step::Read(bytes) => {
                    let held = spool.read("a", acknowledged, bytes).unwrap();
                    read.extend(held.iter().map(|it| *sequences(it).end()));
                }
                Step::Acknowledge(at) => {
                    acknowledged = acknowledged.max(read[at % read.len()]);
                    spool.acknowledge("a", acknowledged).unwrap();
                }
                Step::Open => {}
            }
            prop_assert!(spool.bytes() <= 350);
        }
        drop(spool);
        let held = open().read("a", acknowledged, u64::MAX).unwrap();
        let mut next = acknowledged + 1;
        for held in held {
            let sequences = sequences(&held);
            prop_assert_eq!(*sequences.start(), next);
            next = sequences.end() + 1;
            let expected: u64 = sequences.map(|it| items[usize::try_from(it).unwrap()]).sum();
            let reported = match held {
                Held::Batch(_, batch) => batch.items,
                Held::Dropped(dropped) => dropped.items,
            };
            prop_assert_eq!(reported, expected);
        }
        prop_assert_eq!(next, items.len() as u64);
    }
}

fn sequences(held: &Held) -> RangeInclusive<u64> {
    match held {
        Held::Batch(sequence, _) => *sequence..=*sequence,
        Held::Dropped(dropped) => dropped.sequences.clone(),
    }
}
