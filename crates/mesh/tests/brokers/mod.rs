//! Brokers of Apache Kafka on the loopback interface.

mod probes;
pub(crate) mod raw;

use std::fs;
use std::io::{BufRead, BufReader};
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;

pub(crate) use probes::Probes;
use wirestamp_mesh::kafka::Settings;

use crate::common::Running;

/// A task of the two probes.
const TASK: &str =
    r#"{"name":"p","measure":"passive-delay","from":"roof/eth0","to":"cellar/eth0"}"#;

/// A broker, which is also a controller of its cluster (KRaft).
pub(crate) struct Broker {
    pub(crate) folder: tempfile::TempDir,
    pub(crate) address: SocketAddr,
    running: Option<Child>,
    /// Arguments for the format of its folder.
    users: Vec<String>,
}

/// Where tools/setup-kafka stores the program; none if it was not run.
fn libraries() -> Option<PathBuf> {
    let target = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target");
    let target = std::env::var_os("CARGO_TARGET_DIR").map_or(target, PathBuf::from);
    let libraries = target.join("tools/kafka/libs");
    if libraries.is_dir() {
        return Some(libraries);
    }
    assert!(std::env::var_os("WIRESTAMP_NO_SKIP").is_none(), "run tools/setup-kafka");
    println!("skipped: needs tools/setup-kafka");
    None
}

impl Broker {
    /// Starts one broker.
    pub(crate) fn new() -> Option<Self> {
        Self::with("PLAINTEXT", "", Vec::new())
    }

    /// Starts a broker with this protocol for its clients, more settings, and users.
    pub(crate) fn with(protocol: &str, more: &str, users: Vec<String>) -> Option<Self> {
        libraries()?;
        let mut cluster = Self::prepare(1, protocol, more, &users);
        cluster.iter_mut().for_each(Self::start);
        cluster.pop()
    }

    /// Starts a cluster of three brokers, whose topics need two replicas of each record.
    pub(crate) fn cluster() -> Option<Vec<Self>> {
        libraries()?;
        let more = "min.insync.replicas=2\nbroker.session.timeout.ms=3000\nbroker.heartbeat.interval.ms=500\n";
        let mut cluster = Self::prepare(3, "PLAINTEXT", more, &[]);
        // None is up before there are two.
        thread::scope(|scope| {
            for broker in &mut cluster {
                scope.spawn(|| broker.start());
            }
        });
        Some(cluster)
    }

    fn prepare(count: usize, protocol: &str, more: &str, users: &[String]) -> Vec<Self> {
        let free = || TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let sockets: Vec<_> = (0..count).map(|_| [free(), free()]).collect();
        let addresses = sockets.iter().map(|it| it.each_ref().map(|it| it.local_addr().unwrap()));
        let addresses: Vec<_> = addresses.collect();
        let voters = addresses.iter().enumerate();
        let voters: Vec<_> = voters.map(|(id, [_, it])| format!("{id}@{it}")).collect();
        let prepare = |(id, [address, controller]): (usize, &[SocketAddr; 2])| {
            let folder = tempfile::tempdir().unwrap();
            let settings = format!(
                "process.roles=broker,controller
node.id={id}
controller.quorum.voters={}
listeners={protocol}://{address},CONTROLLER://{controller}
advertised.listeners={protocol}://{address}
inter.broker.listener.name={protocol}
controller.listener.names=CONTROLLER
listener.security.protocol.map=CONTROLLER:PLAINTEXT,{protocol}:{protocol}
log.dirs={}
auto.create.topics.enable=false
offsets.topic.replication.factor={count}
{more}",
                voters.join(","),
                folder.path().join("data").display()
            );
            fs::write(folder.path().join("settings"), settings).unwrap();
            Self { folder, address: *address, running: None, users: users.to_vec() }
        };
        addresses.iter().enumerate().map(prepare).collect()
    }

    fn java(&self, class: &str) -> Command {
        let mut command = Command::new("java");
        command.args(["-Xmx256m", "-cp"]).arg(libraries().unwrap().join("*")).arg(class);
        command
    }

    pub(crate) fn start(&mut self) {
        let settings = self.folder.path().join("settings");
        if !self.folder.path().join("data").exists() {
            let mut format = self.java("kafka.tools.StorageTool");
            format.args(["format", "-t", "AAAAAAAAAAAAAAAAAAAAAA", "-c"]).arg(&settings);
            for user in &self.users {
                format.arg("--add-scram").arg(user);
            }
            let output = format.output().unwrap();
            assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        }
        let mut command = self.java("kafka.Kafka");
        command.arg(&settings).stdout(Stdio::null()).stderr(Stdio::piped());
        let mut running = command.spawn().unwrap();
        let mut lines =
            BufReader::new(running.stderr.take().unwrap()).lines().map_while(Result::ok);
        let mut log = Vec::new();
        let is_up = lines.by_ref().any(|line| {
            log.push(line);
            log.last().is_some_and(|it| it.ends_with("Kafka Server started"))
        });
        assert!(is_up, "{log:#?}");
        thread::spawn(move || lines.for_each(drop));
        self.running = Some(running);
    }

    pub(crate) fn kill(&mut self) {
        if let Some(mut running) = self.running.take() {
            running.kill().unwrap();
            running.wait().unwrap();
        }
    }

    /// Stops it as a broker that hangs: connections stay open, and nothing is answered. `CONT` continues it.
    pub(crate) fn signal(&self, signal: &str) {
        let id = self.running.as_ref().unwrap().id().to_string();
        assert!(Command::new("kill").args(["-s", signal, &id]).status().unwrap().success());
    }

    /// Permits operations on a topic to a user. `login` has the properties of a client that may do so.
    pub(crate) fn permit(&self, login: &Path, user: &str, topic: &str, operations: &[&str]) {
        let mut permit = self.java("kafka.admin.AclCommand");
        permit.args(["--bootstrap-server", &self.address.to_string(), "--command-config"]);
        permit.arg(login).args(["--add", "--topic", topic, "--allow-principal"]);
        permit.arg(format!("User:{user}"));
        for operation in operations {
            permit.args(["--operation", operation]);
        }
        let output = permit.output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    }

    pub(crate) fn settings(&self) -> Settings {
        Settings { brokers: vec![self.address.to_string()], ca: None, login: None, partitions: 3 }
    }
}

impl Drop for Broker {
    fn drop(&mut self) {
        self.kill();
    }
}

/// Starts a controller with a task, which is also a collector of these brokers.
pub(crate) fn start(folder: &Path, address: SocketAddr, settings: &Settings) -> Running {
    Running::start_changed(folder, address, Some(TASK), |controller| {
        controller.with_kafka(settings.clone()).unwrap()
    })
}
