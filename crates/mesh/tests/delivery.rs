//! Probes deliver to a controller and its collector, over TLS on the loopback interface.

mod common;
mod exporting;

use std::net::Ipv4Addr;
use std::ops::Range;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use common::{
    BATCHES, PACKETS, Probe, Running, authority, batches, check, mesh, now, subject, token,
};
use tokio::net::TcpSocket;
use tokio::runtime::Runtime;
use wirestamp_mesh::controller::Removal;
use wirestamp_mesh::member;
use wirestamp_mesh::pki::{Authority, Credentials, Request, Role, Token};
use wirestamp_mesh::probe::{self, ChannelName};
use wirestamp_mesh::transport::{Trust, call};

#[test]
fn observations_of_two_probes_become_results() {
    let (folder, mesh) = mesh();
    let runtime = Runtime::new().unwrap();
    let [first, second] = [("roof", 0), ("cellar", 1)]
        .map(|(name, point)| Probe::let_in(&runtime, folder.path(), mesh.address, name, point))
        .map(Arc::new);
    // The first probe has all batches before its delivery starts, the second one receives them during delivery.
    first.hold(batches(0, 0..BATCHES));
    runtime.spawn(Arc::clone(&first).deliver(mesh.address));
    runtime.spawn(Arc::clone(&second).deliver(mesh.address));
    batches(1, 0..BATCHES).for_each(|batch| second.hold([batch]));
    check(&mesh.wait_for(PACKETS.unsigned_abs()));
}

#[test]
fn killed_controller_produces_the_same_results() {
    let (folder, mesh) = mesh();
    let runtime = Runtime::new().unwrap();
    let probes = [("roof", 0), ("cellar", 1)]
        .map(|(name, point)| Probe::let_in(&runtime, folder.path(), mesh.address, name, point))
        .map(Arc::new);
    let begin =
        |address| probes.each_ref().map(|probe| runtime.spawn(Arc::clone(probe).deliver(address)));
    let hold = |numbers: Range<i64>| {
        for (point, probe) in (0..).zip(&probes) {
            probe.hold(batches(point, numbers.clone()));
        }
    };
    hold(0..BATCHES / 2);
    let ends = begin(mesh.address);
    mesh.wait_for(500);
    let address = mesh.kill();
    ends.into_iter().for_each(|end| drop(runtime.block_on(end).unwrap()));
    // The spools still hold the batches that the collector needs again.
    assert!(probes.iter().all(|probe| probe.stock.bytes() > 0));
    let mesh = Running::start(folder.path(), address);
    begin(mesh.address);
    hold(BATCHES / 2..BATCHES);
    check(&mesh.wait_for(PACKETS.unsigned_abs()));
}

#[test]
fn unauthorized_delivery_is_rejected() {
    let (folder, mesh) = mesh();
    let (runtime, folder) = (Runtime::new().unwrap(), folder.path());
    let address = mesh.address.to_string();
    let let_in = |name, point| Probe::let_in(&runtime, folder, mesh.address, name, point);
    let refused = |probe: Probe| runtime.block_on(Arc::new(probe).deliver(mesh.address));
    // For the point of another probe, and for a task that does not exist.
    let first = let_in("roof", 0);
    let why = refused(Probe { channel: ChannelName { task: 1, point: 1 }, ..first });
    assert!(why.ends_with("probe roof does not observe point 1 of task p"), "{why}");
    let why = refused(Probe { channel: ChannelName { task: 9, point: 0 }, ..let_in("ann", 0) });
    assert!(why.ends_with("there is no task 9"), "{why}");
    // With the certificate of a viewer, and without a certificate.
    let (request, viewer) = (Request::new().unwrap(), subject("ben", Role::Viewer));
    let mut register = Authority::open(&authority(folder)).unwrap();
    let issued = register.issue(&viewer, &request.pem().unwrap(), &[], now()).unwrap();
    let reader = let_in("ben", 0);
    let why = refused(Probe { credentials: Credentials::new(&request, &issued), ..reader });
    assert!(
        why.ends_with("permission denied: the role of the viewer ben does not allow this request"),
        "{why}"
    );
    let unused = token(folder, "eve");
    let trust = Trust::Token(&unused);
    let anonymous = runtime.block_on(async { call(&address, Role::Controller, &trust) }).unwrap();
    let eve = let_in("eve", 0);
    let why = runtime.block_on(probe::deliver(anonymous, &eve.stock, eve.channel, 0)).unwrap_err();
    assert!(why.to_string().contains("this requires a certificate of the mesh"), "{why}");
    // With a revoked certificate.
    let revoked = let_in("cellar", 1);
    register.revoke(&"cellar".parse().unwrap(), None, now()).unwrap();
    let why = refused(revoked);
    assert!(why.ends_with("the certificate of the probe cellar is not valid any more"), "{why}");
}

#[test]
fn token_works_once_and_with_its_ca_only() {
    let (folder, mesh) = mesh();
    let (runtime, folder) = (Runtime::new().unwrap(), folder.path());
    let address = mesh.address.to_string();
    let enrol = |token: &Token, request: &Request| {
        runtime.block_on(member::enrol(&address, token, request)).map_err(|it| it.to_string())
    };
    let (roof, request) = (token(folder, "roof"), Request::new().unwrap());
    enrol(&roof, &request).unwrap();
    // Again with the same key, as if the response had been lost.
    let credentials = enrol(&roof, &request).unwrap();
    let begin = Instant::now();
    let why = enrol(&roof, &Request::new().unwrap()).map(drop).unwrap_err();
    assert!(why.contains("the token for probe roof was used at"), "{why}");
    // A caller that waits for answers can try few tokens.
    assert!(begin.elapsed() >= Duration::from_secs(1), "{:?}", begin.elapsed());
    // The controller of another mesh is detected before the token is sent.
    let elsewhere = tempfile::tempdir().unwrap();
    Authority::create(&authority(elsewhere.path()), now()).unwrap();
    let foreign = token(elsewhere.path(), "roof");
    let why = enrol(&foreign, &request).map(drop).unwrap_err();
    assert!(why.contains("UnknownIssuer"), "{why}");
    let renewed = runtime.block_on(member::renew(&address, &credentials)).unwrap();
    assert!(renewed.certificate_pem != credentials.certificate_pem);
}

/// A probe has batches of a task that was removed: they leave its spool, and no results come back.
#[test]
fn late_batches_of_a_removed_task_are_discarded() {
    let (folder, mesh) = mesh();
    let runtime = Runtime::new().unwrap();
    let probes = [("roof", 0), ("cellar", 1)]
        .map(|(name, point)| Probe::let_in(&runtime, folder.path(), mesh.address, name, point))
        .map(Arc::new);
    let begin =
        |address| probes.each_ref().map(|probe| runtime.spawn(Arc::clone(probe).deliver(address)));
    let hold = |numbers: Range<i64>| {
        for (point, probe) in (0..).zip(&probes) {
            probe.hold(batches(point, numbers.clone()));
        }
    };
    let spools_are_empty = || {
        let until = Instant::now() + Duration::from_secs(60);
        while probes.iter().any(|probe| probe.stock.bytes() > 0) {
            assert!(Instant::now() < until, "batches are still in a spool");
            thread::sleep(Duration::from_millis(20));
        }
    };
    hold(0..BATCHES / 2);
    let ends = begin(mesh.address);
    mesh.wait_for(500);
    let name = "p".parse().unwrap();
    assert_eq!(mesh.plan.end(&name, now()).unwrap(), Some(1));
    assert_eq!(mesh.plan.remove(&name, 1).unwrap(), Removal::Removed);
    // The deliveries end. When they begin again, all batches are acknowledged.
    ends.into_iter().for_each(|end| drop(runtime.block_on(end).unwrap()));
    let ends = begin(mesh.address);
    spools_are_empty();
    hold(BATCHES / 2..BATCHES);
    spools_are_empty();
    let until = Instant::now() + Duration::from_secs(60);
    while mesh.collector.results().is_stored(1).unwrap() {
        assert!(Instant::now() < until, "the results are still stored");
        thread::sleep(Duration::from_millis(20));
    }
    assert!(mesh.measured().is_empty());
    // Also after a restart of the controller.
    let address = mesh.kill();
    ends.into_iter().for_each(|end| drop(runtime.block_on(end).unwrap()));
    let mesh = Running::start_with(folder.path(), address, None);
    begin(mesh.address);
    hold(BATCHES..BATCHES + 9);
    spools_are_empty();
    assert!(mesh.measured().is_empty() && !mesh.collector.results().is_stored(1).unwrap());
    assert!(mesh.plan.subscribe().borrow().is_empty());
}

/// A host opens many connections and sends nothing. Most of them are closed at once, and others can still enrol.
#[test]
fn idle_connections_of_a_stranger_do_not_block_members() {
    const CONNECTIONS: usize = 600;
    let (folder, mesh) = mesh();
    let runtime = Runtime::new().unwrap();
    let idle: Vec<_> = runtime.block_on(async {
        let connect = || async {
            let socket = TcpSocket::new_v4().unwrap();
            socket.bind((Ipv4Addr::new(127, 0, 0, 2), 0).into()).unwrap();
            socket.connect(mesh.address).await.unwrap()
        };
        let mut idle = Vec::new();
        for _ in 0..CONNECTIONS {
            idle.push(connect().await);
        }
        idle
    });
    let probe = Probe::let_in(&runtime, folder.path(), mesh.address, "roof", 0);
    let (subject, _) = probe.credentials.subject_and_serial().unwrap();
    assert_eq!(subject.name.as_ref(), "roof");
    // Each connection beyond the limit of its host was closed.
    let closed = idle.iter().filter(|it| matches!(it.try_read(&mut [0]), Ok(0)));
    assert!(closed.count() > CONNECTIONS / 2);
}
