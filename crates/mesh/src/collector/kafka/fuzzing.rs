//! Any records in the topics, for fuzzing and a test.

use std::sync::Arc;
use std::time::Instant;

use jiff::Timestamp;
use prost::Message;
use tokio::sync::watch;

use super::intake::Intake;
use super::positions::Positions;
use crate::Name;
use crate::collector::{Collector, Results};
use crate::kafka::v1::record::What;
use crate::kafka::v1::{Answers, Dropped, Inquiry, Part, Record, Signed};
use crate::kafka::{OBSERVATIONS, Verifier, task_and_point};
use crate::pki::{Authority, Credentials, Request, Role, Subject};
use crate::task::{TaskRecord, Tasks};

/// The probes of the tasks: one of a delay between both, one of the packets at the first, one of its flows.
const PROBES: [&str; 2] = ["roof", "cellar"];
const TASKS: [&str; 3] = [
    r#"{"name":"p","measure":"passive-delay","from":"roof/eth0","to":"cellar/eth0"}"#,
    r#"{"name":"v","measure":"volume","at":"roof/eth0"}"#,
    r#"{"name":"f","measure":"flows","at":"roof/eth0"}"#,
];

/// Max bytes of batches that wait, as small as batches of the fuzzer are.
const MAX_WAITING: usize = 1500;

/// A record: the probe that sent it, its envelope, and its content.
pub(crate) type FuzzedRecord = (bool, (u8, bool, u8, bool, Option<u8>), FuzzedContent);

/// The content: which kind, two numbers, whether they are near the max, whether more parts follow, and bytes.
pub(crate) type FuzzedContent = (u8, u8, u8, bool, bool, Vec<u8>);

/// Takes the value of a record from anyone: it is not authentic.
pub(crate) fn take_value(bytes: &[u8]) {
    let own = credentials();
    let verified = watch::channel(own).1;
    let Ok(mut verifier) = Verifier::new(verified) else { return };
    let now = Instant::now();
    let roles = [Role::Probe, Role::Collector, Role::Controller];
    assert!(verifier.verify(OBSERVATIONS, bytes, &roles, now).is_err());
    if let Ok(signed) = Signed::decode(bytes) {
        assert_eq!(Signed::decode(signed.encode_to_vec().as_slice()), Ok(signed));
    }
    if let Ok(answers) = Answers::decode(bytes) {
        assert_eq!(Answers::decode(answers.encode_to_vec().as_slice()), Ok(answers));
    }
    let _ = task_and_point(bytes);
}

/// Takes authentic records of probes, in the order of a partition.
pub(crate) fn take_records(records: Vec<FuzzedRecord>) {
    // Databases in memory are fast.
    let folder = tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir());
    let Ok(folder) = folder else { return };
    let at = |name: &str| folder.path().join(name);
    let (Ok(results), Ok(mut positions)) =
        (Results::open(&at("results.sqlite")), Positions::open(&at("kafka.sqlite")))
    else {
        return;
    };
    // A receiver keeps the last value.
    let collector = Arc::new(Collector::new(results, watch::channel(Arc::new(tasks())).1));
    let mut intake = Intake::new(collector, MAX_WAITING);
    let mut next = 0;
    for (is_first, head, content) in records {
        let probe: Option<Name> = PROBES[usize::from(!is_first)].parse().ok();
        let (Some(probe), Some(record)) = (probe, record(head, content)) else { continue };
        assert_eq!(Record::decode(record.encode_to_vec().as_slice()), Ok(record.clone()));
        if intake.is_own(record.task) {
            let _ = intake.take(&mut positions, next, &probe, record);
        }
        next += 1;
        let _ = intake.advance_all(&mut positions);
        for answer in intake.answers(next) {
            assert!(answer.restart || answer.up_to < answer.next, "{answer:?}");
            assert!((1..=TASKS.len() as u64).contains(&answer.task), "{answer:?}");
        }
        assert!((0..=next).contains(&intake.needed(next)));
    }
}

/// A record of these tasks, or of another one; none if the bytes of one cannot be decoded.
fn record(
    (task, point, session, is_same_spool, epoch): (u8, bool, u8, bool, Option<u8>),
    (kind, low, high, is_large, more, body): FuzzedContent,
) -> Option<Record> {
    let number = |it: u8| if is_large { u64::MAX - u64::from(it) } else { it.into() };
    let what = match kind % 5 {
        0 => Some(What::Inquiry(Inquiry { sent: number(low) })),
        1 | 2 => {
            let begin = if kind % 5 == 1 { 0 } else { number(high) };
            Some(What::Part(Part { number: low.into(), begin, more, body }))
        }
        3 => {
            let (first, last) = (low.into(), number(high));
            Some(What::Dropped(Dropped { first, last, until: 0, packets: number(low) }))
        }
        _ => return Record::decode(body.as_slice()).ok(),
    };
    Some(Record {
        spool: i64::from(is_same_spool),
        task: u64::from(task % 5),
        point: point.into(),
        first: 1,
        instance: 7,
        session: session.into(),
        what,
        epoch: epoch.map(|it| (it % 2).into()),
        settled_until: None,
        begin: None,
    })
}

fn tasks() -> Tasks {
    let record = |text: &str| {
        let task = serde_json::from_str(text).ok()?;
        Some(TaskRecord { task, made: Timestamp::UNIX_EPOCH, ended: None })
    };
    (1..).zip(TASKS).filter_map(|(number, text)| Some((number, record(text)?))).collect()
}

/// Credentials of a collector, of a CA that has signed nothing else. They are made once.
fn credentials() -> Credentials {
    static MADE: std::sync::OnceLock<Credentials> = std::sync::OnceLock::new();
    let make = || {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("authority.sqlite");
        let now = Timestamp::from_second(Timestamp::now().as_second()).unwrap();
        Authority::create(&file, now).unwrap();
        let mut authority = Authority::open(&file).unwrap();
        let request = Request::new().unwrap();
        let subject = Subject { name: "store".parse().unwrap(), role: Role::Collector };
        let issued = authority.issue(&subject, &request.pem().unwrap(), &[], now).unwrap();
        Credentials::new(&request, &issued)
    };
    MADE.get_or_init(make).clone()
}

#[cfg(test)]
mod tests {
    use fastrand::Rng;

    use super::*;

    #[test]
    fn any_records_are_taken_or_refused() {
        let mut rng = Rng::with_seed(1);
        for _ in 0..10 {
            let records = (0..60).map(|_| {
                let body: Vec<u8> = (0..rng.usize(..40)).map(|_| rng.u8(..)).collect();
                // Mostly what continues a session.
                let head = (rng.u8(..5), rng.bool(), rng.u8(..3), rng.u8(..9) > 0, None);
                let large = rng.u8(..9) == 0;
                let content = (rng.u8(..5), rng.u8(..6), rng.u8(..20), large, rng.bool(), body);
                (rng.bool(), head, content)
            });
            take_records(records.collect());
        }
        for length in 0..200 {
            take_value(&(0..length).map(|_| rng.u8(..)).collect::<Vec<_>>());
        }
    }
}
