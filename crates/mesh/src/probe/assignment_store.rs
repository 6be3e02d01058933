//! The tasks assigned to the probe, and what they require at a given time.

use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use jiff::Timestamp;
use tracing::warn;
use wirestamp_active::reflector::RateLimit;
use wirestamp_active::sender::PacketSchedule;
use wirestamp_metrics::Sampling;

use super::ChannelName;
use super::active::{Part, Reflecting, RequiredTests, Sending, TestEnd};
use super::carrier::{Destinations, TaskDestination};
use super::purpose::Purpose;
use super::runner::RequiredCaptures;
use super::tap::ObservationSpec;
use crate::secret::Secret;
use crate::task::{
    ActiveDelay, Distribution, Measure, PassiveDelay, Task, VOLUME, Window, interval,
};
use crate::v1::{Assignment, Destination, Duty};
use crate::{Name, atomic_file};

/// Bytes of the header of UDP (RFC 768).
const UDP_HEADER: u16 = 8;

/// The last assignment from the controller. It is kept in a file, so that a probe continues after a restart even if the
/// controller is not reachable.
pub(super) struct AssignmentStore {
    file: PathBuf,
    assignment: Assignment,
}

impl AssignmentStore {
    /// Reads the file; without a file there are no tasks.
    pub(super) fn open(file: PathBuf) -> Self {
        let assignment = atomic_file::read(&file).unwrap_or_else(|error| {
            if error.kind() != io::ErrorKind::NotFound {
                warn!("cannot read {}: {error}; waiting for the controller", file.display());
            }
            Assignment::default()
        });
        Self { file, assignment }
    }

    /// Replaces the assignment. Returns whether it changed.
    pub(super) fn replace(&mut self, mut assignment: Assignment) -> bool {
        // A restarted controller does not have the addresses of all probes at first. Until it has them, the old ones
        // stay valid.
        for duty in assignment.duties.iter_mut().filter(|duty| duty.address.is_empty()) {
            let before = self.assignment.duties.iter().find(|before| before.task == duty.task);
            duty.address = before.map(|before| before.address.clone()).unwrap_or_default();
        }
        if self.assignment == assignment {
            return false;
        }
        self.assignment = assignment;
        if let Err(error) = atomic_file::write(&self.file, &self.assignment) {
            warn!("cannot save the tasks in {}: {error}", self.file.display());
        }
        true
    }

    /// Where to deliver the batches of each task, also of ended ones.
    pub(super) fn destinations(&self) -> Destinations {
        let destinations = self.assignment.destinations.iter();
        let of = |it: &Destination| {
            let address = (!it.own).then(|| it.collector.clone());
            let epochs = it.epochs.iter().copied().chain(std::iter::repeat(0));
            let to = |epoch| TaskDestination { address: address.clone(), epoch };
            it.tasks.iter().zip(epochs).map(|(task, epoch)| (*task, to(epoch))).collect::<Vec<_>>()
        };
        destinations.flat_map(of).collect()
    }

    /// The measurements due at `now`, the time of the next change, and the impossible measurements.
    pub(super) fn now(&self, probe: &Name, now: Timestamp) -> CurrentWork {
        let mut result = CurrentWork::default();
        for duty in &self.assignment.duties {
            let added = read_duty(duty).and_then(|(task, made)| {
                let is_open = result.is_open(task.schedule.at(now, made));
                if is_open { result.add(duty, &task, probe) } else { Ok(()) }
            });
            if let Err(why) = added {
                result.troubles.push((ChannelName { task: duty.task, point: 0 }, why));
            }
        }
        result
    }
}

/// The work of a probe at a given time.
#[derive(Default)]
pub(super) struct CurrentWork {
    pub(super) wanted: RequiredCaptures,
    pub(super) tests: RequiredTests,
    /// Time of the next change by schedule, if any.
    pub(super) next: Option<Timestamp>,
    pub(super) troubles: Vec<(ChannelName, String)>,
}

impl CurrentWork {
    /// Whether the task's schedule is open. Updates the time of the next change.
    fn is_open(&mut self, window: Window) -> bool {
        let next = match window {
            Window::Open { until, .. } => until,
            Window::Waiting { until } => Some(until),
            Window::Over => None,
        };
        self.next = self.next.into_iter().chain(next).min();
        matches!(window, Window::Open { .. })
    }

    /// Adds the work of the probe for a task.
    fn add(&mut self, duty: &Duty, task: &Task, probe: &Name) -> Result<(), String> {
        let (purpose, points) = match &task.measure {
            Measure::ActiveDelay(active) => return self.add_test(duty, active, probe),
            Measure::PassiveDelay(PassiveDelay { from, to, share, .. }) => {
                let sampling = Sampling::share(*share).map_err(|why| why.to_string())?;
                (Purpose::Observe(sampling), vec![from, to])
            }
            Measure::Volume { at } => (Purpose::Count(VOLUME), vec![at]),
            Measure::Traffic { at, every } => (Purpose::Count(interval(*every)), vec![at]),
            Measure::Flows { at } => (Purpose::Follow, vec![at]),
            // No probe takes part in it.
            Measure::ReportedDelay(_) => return Ok(()),
        };
        for (point, at) in (0..).zip(points).filter(|(_, at)| at.probe == *probe) {
            let (filter, purpose) = (task.filter.clone(), purpose.clone());
            let spec = ObservationSpec { filter, shard: task.part(), purpose };
            let specs = self.wanted.entry(at.interface.clone()).or_default();
            specs.insert(ChannelName { task: duty.task, point }, spec);
        }
        Ok(())
    }

    fn add_test(&mut self, duty: &Duty, active: &ActiveDelay, probe: &Name) -> Result<(), String> {
        let address = active.address.or_else(|| duty.address.parse().ok());
        let address = address.ok_or_else(|| {
            format!(
                "cannot reach {}: its address is unknown; give the task an `address`",
                active.to
            )
        })?;
        let to = SocketAddr::new(address, active.port(duty.task));
        let secret = active.is_authenticated.then(|| {
            Secret::read(&duty.secret).ok_or("cannot run the test: its secret is missing")
        });
        let sending = Sending { secret: secret.transpose()?, ..sending(duty.task, active, to) };
        let (session, secret) = (sending.session, sending.secret.clone());
        let limit = RateLimit::above(active.rate);
        let reflecting = Part::Reflect(Reflecting { at: to, session, secret, limit });
        for (point, end, part) in
            [(0, &active.from, Part::Send(sending)), (1, &active.to, reflecting)]
        {
            if end.probe == *probe {
                let end = TestEnd { namespace: end.namespace.clone(), part };
                self.tests.insert(ChannelName { task: duty.task, point }, end);
            }
        }
        Ok(())
    }
}

fn sending(task: u64, active: &ActiveDelay, to: SocketAddr) -> Sending {
    // The rate is within the limits of tasks.
    let distance = Duration::try_from_secs_f64(active.rate.recip()).unwrap_or(Duration::MAX);
    let schedule = match active.distribution {
        Distribution::Periodic => PacketSchedule::Periodic(distance),
        Distribution::Poisson => PacketSchedule::Poisson(distance),
    };
    let length = usize::from(active.bytes.saturating_sub(UDP_HEADER));
    // A probe never runs 65535 tests at a time.
    let session = u16::try_from(task % u64::from(u16::MAX)).unwrap_or(0) + 1;
    Sending { to, schedule, length, dscp: active.dscp, session, secret: None }
}

fn read_duty(duty: &Duty) -> Result<(Task, Timestamp), String> {
    let task = serde_json::from_str(&duty.body);
    let mut task: Task = task.map_err(|why| format!("cannot read the task: {why}"))?;
    task.set_shard(duty.shard).map_err(|why| format!("cannot read the task: {why}"))?;
    let made = Timestamp::from_second(duty.made);
    Ok((task, made.map_err(|why| format!("cannot read the task's creation time: {why}"))?))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use wirestamp_clock::Span;
    use wirestamp_packet::Shard;

    use super::*;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    fn duty(task: u64, body: &str) -> Duty {
        let address = "192.0.2.7".to_owned();
        Duty { task, body: body.to_owned(), made: 1000, address, ..Duty::default() }
    }

    fn duties(folder: &tempfile::TempDir) -> AssignmentStore {
        AssignmentStore::open(folder.path().join("duties"))
    }

    #[test]
    fn probe_observes_its_own_current_tasks() {
        let folder = tempfile::tempdir().unwrap();
        let always = r#"{"name":"p","measure":"passive-delay","from":"a/eth0","to":"b/eth1"}"#;
        let hourly = r#"{"name":"q","measure":"passive-delay","from":"a/eth0","to":"a/eth1",
                         "share":0.5,"filter":"udp","schedule":{"every":"1h","for":"10m"}}"#;
        let nowhere = r#"{"name":"y","measure":"active-delay","from":"a","to":"b"}"#;
        let mut all = duties(&folder);
        let given = vec![
            duty(1, always),
            duty(2, hourly),
            duty(3, "{"),
            Duty { address: String::new(), ..duty(4, nowhere) },
            duty(5, r#"{"name":"t","measure":"traffic","at":"a/eth0","interval":"5s"}"#),
            duty(6, r#"{"name":"x","measure":"active-delay","from":"a","to":"b@ns","rate":50}"#),
        ];
        let elsewhere = Destination {
            collector: "192.0.2.9:4749".to_owned(),
            tasks: vec![2, 9],
            ..Destination::default()
        };
        let moved = Destination { own: true, tasks: vec![5], epochs: vec![3], ..elsewhere.clone() };
        let destinations = vec![elsewhere, moved];
        let kept = Assignment { duties: given.clone(), destinations: destinations.clone() };
        assert!(all.replace(kept.clone()) && !all.replace(kept));
        // A restarted controller has no addresses yet.
        let unknown = given.into_iter().map(|duty| Duty { address: String::new(), ..duty });
        assert!(!all.replace(Assignment { duties: unknown.collect(), destinations }));
        // After a restart.
        let all = duties(&folder);
        let to = |address: Option<&str>, epoch| TaskDestination {
            address: address.map(str::to_owned),
            epoch,
        };
        let away = || to(Some("192.0.2.9:4749"), 0);
        assert_eq!(all.destinations(), [(2, away()), (5, to(None, 3)), (9, away())].into());
        let (first, second) = ("a".parse().unwrap(), "b".parse().unwrap());
        let now = all.now(&first, at(1599));
        let names = |of: &CurrentWork, interface: &str| -> Vec<ChannelName> {
            of.wanted.get(interface).map_or(vec![], |it| it.keys().copied().collect())
        };
        let name = |task, point| ChannelName { task, point };
        assert_eq!(names(&now, "eth0"), [name(1, 0), name(2, 0), name(5, 0)]);
        let spec = &now.wanted["eth0"][&name(5, 0)];
        assert_eq!(spec.purpose, Purpose::Count(Span::from_secs(5)));
        assert_eq!((names(&now, "eth1"), now.next), (vec![name(2, 1)], Some(at(1600))));
        let spec = &now.wanted["eth1"][&name(2, 1)];
        let half = Purpose::Observe(Sampling::share(0.5).unwrap());
        assert_eq!((spec.filter.as_deref(), &spec.purpose), (Some("udp"), &half));
        assert!(now.troubles[0].1.starts_with("cannot read the task"), "{:?}", now.troubles);
        assert!(now.troubles[1].1.contains("cannot reach b"), "{:?}", now.troubles);
        let now = all.now(&first, at(1600));
        let left = vec![name(1, 0), name(5, 0)];
        assert_eq!((names(&now, "eth0"), now.next), (left, Some(at(4600))));
        let to = SocketAddr::from(([192, 0, 2, 7], 49_158));
        let schedule = PacketSchedule::Periodic(Duration::from_millis(20));
        let sending = Sending { to, schedule, length: 44, dscp: 0, session: 7, secret: None };
        let end = |namespace: Option<&str>, part| TestEnd {
            namespace: namespace.map(str::to_owned),
            part,
        };
        assert_eq!(now.tests, RequiredTests::from([(name(6, 0), end(None, Part::Send(sending)))]));
        let now = all.now(&second, at(1600));
        assert_eq!(names(&now, "eth1"), [name(1, 1)]);
        let limit = RateLimit::above(50.0);
        let reflecting = Part::Reflect(Reflecting { at: to, session: 7, secret: None, limit });
        assert_eq!(now.tests, RequiredTests::from([(name(6, 1), end(Some("ns"), reflecting))]));
    }

    #[test]
    fn probe_observes_each_shard_separately() {
        let folder = tempfile::tempdir().unwrap();
        let mut all = duties(&folder);
        let body =
            r#"{"name":"p","measure":"passive-delay","from":"a/eth0","to":"b/eth1","shards":2}"#;
        let shard = |task, shard| Duty { shard, ..duty(task, body) };
        let given = vec![shard(7, 0), shard(8, 1), shard(9, 2)];
        all.replace(Assignment { duties: given, destinations: Vec::new() });
        let now = all.now(&"a".parse().unwrap(), at(1000));
        let shards: Vec<_> =
            now.wanted["eth0"].iter().map(|(it, spec)| (it.task, spec.shard)).collect();
        assert_eq!(shards, [(7, Shard::new(0, 2)), (8, Shard::new(1, 2))]);
        let why = &now.troubles[0].1;
        assert_eq!(why, "cannot read the task: it has no shard 2, but 2 shards");
    }

    #[test]
    fn authenticated_test_requires_its_secret() {
        let folder = tempfile::tempdir().unwrap();
        let mut all = duties(&folder);
        let body =
            r#"{"name":"x","measure":"active-delay","from":"a","to":"b","authenticated":true}"#;
        let sealed = Duty { secret: vec![7; 32], ..duty(1, body) };
        let short = Duty { secret: vec![7; 31], ..duty(2, body) };
        let given = vec![sealed, short, duty(3, body)];
        all.replace(Assignment { duties: given, destinations: Vec::new() });
        // After a restart.
        let all = duties(&folder);
        let secret = Secret::read(&[7; 32]);
        for (point, probe) in (0..).zip(["a", "b"]) {
            let now = all.now(&probe.parse().unwrap(), at(1600));
            assert_eq!(now.tests.len(), 1);
            let end = &now.tests[&ChannelName { task: 1, point }];
            let (Part::Send(Sending { secret: own, .. })
            | Part::Reflect(Reflecting { secret: own, .. })) = &end.part;
            assert_eq!(*own, secret);
            let is_logged = |it: &(ChannelName, String)| it.1.contains("its secret is missing");
            assert!(
                now.troubles.len() == 2 && now.troubles.iter().all(is_logged),
                "{:?}",
                now.troubles
            );
        }
    }

    #[test]
    fn corrupt_file_is_ignored() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("duties"), [0xff; 9]).unwrap();
        assert!(duties(&folder).now(&"a".parse().unwrap(), at(0)).wanted.is_empty());
    }
}
