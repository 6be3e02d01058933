//! Changes and restores on machines made of files.

use std::cell::RefCell;
use std::fs;
use std::path::{Path, PathBuf};

use proptest::collection::vec;
use proptest::prelude::*;
use tempfile::TempDir;

use super::*;
use crate::tune::host::System;

/// A machine made of files, with failing writes.
struct FakeHost {
    system: System,
    /// Outcome of the coming writes, the last first; true fails.
    fails: RefCell<Vec<bool>>,
    record: PathBuf,
}

impl Host for FakeHost {
    fn read(&self, place: &Place) -> io::Result<String> {
        self.system.read(place)
    }

    fn write(&self, place: &Place, value: &str) -> io::Result<()> {
        let recorded = fs::read_to_string(&self.record).unwrap();
        let line = serde_json::to_string(place).unwrap();
        assert!(recorded.contains(&line), "{place} is not in the record: {recorded}");
        if self.fails.borrow_mut().pop().unwrap_or(false) {
            return Err(io::ErrorKind::PermissionDenied.into());
        }
        self.system.write(place, value)
    }

    fn list(&self, _: &str) -> Vec<String> {
        Vec::new()
    }

    fn driver(&self) -> String {
        String::new()
    }

    fn napi_threads(&self) -> Vec<NapiThread> {
        self.system.napi_threads()
    }
}

struct Bench(TempDir);

impl Bench {
    fn new(values: &[String]) -> Self {
        let bench = Self(tempfile::tempdir().unwrap());
        for (number, value) in values.iter().enumerate() {
            let path = bench.path(number);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, format!("{value}\n")).unwrap();
        }
        bench
    }

    fn path(&self, number: usize) -> PathBuf {
        let Place::Sys(path) = place(number) else { unreachable!() };
        self.0.path().join("sys").join(path)
    }

    fn host(&self, fails: &[bool]) -> Box<FakeHost> {
        let system = System::fake(self.0.path(), "eth0");
        let record = self.0.path().join("run").join("1-eth0");
        Box::new(FakeHost { system, fails: fails.to_vec().into(), record })
    }

    fn record(&self) -> Record {
        Record::open(&self.0.path().join("run"), "1-eth0").unwrap().unwrap()
    }

    fn tune(&self, wanted: &[String], fails: &[bool]) -> Tuned {
        let plan = |host: &dyn Host| {
            let rows = wanted.iter().enumerate();
            rows.map(|(number, wanted)| {
                let now = host.read(&place(number)).unwrap();
                Setting::new("x", (place(number), Some(&*now)), "", "").wanting(wanted)
            })
            .collect()
        };
        Tuned::begin(self.host(fails), self.record(), 7, plan).unwrap()
    }

    fn values(&self, count: usize) -> Vec<String> {
        let read = |number| fs::read_to_string(self.path(number)).unwrap().trim().to_owned();
        (0..count).map(read).collect()
    }

    fn has_records(&self) -> bool {
        let records = fs::read_dir(self.0.path().join("run")).unwrap();
        records.count() > 0
    }
}

fn place(number: usize) -> Place {
    Place::of_interface("eth0", &format!("s{number}"))
}

/// Ends like a killed process: nothing is restored, and its files are closed.
fn kill(tuned: Tuned, elsewhere: &Path) {
    let mut tuned = tuned;
    let nothing = Record::open(elsewhere, "nothing").unwrap().unwrap();
    drop(std::mem::replace(&mut tuned.record, nothing));
}

fn values(count: usize) -> impl Strategy<Value = Vec<String>> {
    vec("[0-9a-f]{1,8}", count)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn changes_are_restored_after_refusals(
        (before, wanted) in (1_usize..8).prop_flat_map(|n| (values(n), values(n))),
        refused in vec(any::<bool>(), 0..8),
    ) {
        let bench = Bench::new(&before);
        // Failures during the changes only: unused failures would make the restore fail.
        let changes = before.iter().zip(&wanted).filter(|(b, w)| b != w).count();
        let refused: Vec<_> = refused.into_iter().chain([false; 8]).take(changes).collect();
        let tuned = bench.tune(&wanted, &refused);
        let count = refused.iter().filter(|&&refused| refused).count();
        prop_assert_eq!(tuned.report().refused.len(), count);
        prop_assert_eq!(tuned.report().changed.len(), changes - count);
        let report = tuned.restore();
        prop_assert!(report.changed.iter().all(|change| change.restored));
        prop_assert_eq!(bench.values(before.len()), before);
        prop_assert!(!bench.has_records());
    }

    #[test]
    fn original_values_survive_kills_and_failed_restores(
        (before, wanted, other) in
            (1_usize..6).prop_flat_map(|n| (values(n), values(n), values(n))),
        refused in vec(any::<bool>(), 0..24),
    ) {
        let bench = Bench::new(&before);
        let elsewhere = tempfile::tempdir().unwrap();
        kill(bench.tune(&wanted, &refused), elsewhere.path());
        // The next run finds the record, and may fail to restore its settings.
        kill(bench.tune(&other, &refused), elsewhere.path());
        drop(bench.tune(&wanted, &refused));
        restore_record(&*bench.host(&[]), &mut bench.record(), 7).unwrap();
        prop_assert_eq!(bench.values(before.len()), before);
        prop_assert!(!bench.has_records());
    }
}

#[test]
fn panic_restores_everything() {
    let bench = Bench::new(&["0".to_owned()]);
    let tuned = bench.tune(&["1".to_owned()], &[]);
    assert_eq!(bench.values(1), ["1"]);
    let panicked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(move || {
        let _tuned = tuned;
        std::panic::resume_unwind(Box::new(()));
    }));
    assert!(panicked.is_err());
    assert_eq!(bench.values(1), ["0"]);
}

#[test]
fn values_of_an_old_interface_are_not_restored() {
    let bench = Bench::new(&["0".to_owned()]);
    let mut record = bench.record();
    let governor = Place::governor(0);
    for place in [place(0), governor.clone()] {
        record.add(&Entry { index: 6, place, before: "old".to_owned() }).unwrap();
    }
    let path = bench.0.path().join("sys/devices/system/cpu/cpu0/cpufreq/scaling_governor");
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(&path, "performance").unwrap();
    restore_record(&*bench.host(&[]), &mut record, 7).unwrap();
    assert_eq!(bench.values(1), ["0"]);
    assert_eq!(fs::read_to_string(path).unwrap(), "old", "a core is the same for both");
}

#[test]
fn failed_record_is_the_reason_of_settings_not_restored() {
    let bench = Bench::new(&["0".to_owned()]);
    let tuned = bench.tune(&["1".to_owned()], &[]);
    fs::write(bench.0.path().join("run").join("1-eth0"), [0xff]).unwrap();
    let report = tuned.restore();
    assert!(!report.changed[0].restored);
    let [Refusal { place: refused, wanted, reason }] = &report.refused[..] else {
        panic!("{report:?}")
    };
    assert_eq!((refused, &**wanted), (&place(0), "0"));
    assert!(reason.contains("cannot use the record"), "{reason}");
}
