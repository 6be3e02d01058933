//! The broker of Apache Kafka in the lab: one process, which is also its own controller (KRaft).

use std::env;
use std::ffi::OsString;
use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use anyhow::{Context, bail};
use wirestamp_lab::{CONTROLLER_V4, Netns};

use super::nodes::Broker;

/// The folder of Kafka if none is given, and the variable that replaces it.
const DEFAULT_FOLDER: &str = "target/tools/kafka";
const FOLDER_VARIABLE: &str = "WIRESTAMP_KAFKA_FOLDER";

/// Ports for the nodes, and for the broker's own controller.
const PORT: u16 = 9092;
const CONTROLLER_PORT: u16 = 9093;

/// The program that runs Kafka, and its limit of memory.
const JAVA: &str = "java";
const MAX_MEMORY: &str = "-Xmx512m";

/// Number of the cluster, which a new folder of data requires.
const CLUSTER: &str = "AAAAAAAAAAAAAAAAAAAAAA";

/// The jars of Kafka.
pub(super) struct Jars(PathBuf);

impl Jars {
    /// Finds the jars in a folder, in that of `WIRESTAMP_KAFKA_FOLDER`, or in `target/tools/kafka`.
    ///
    /// # Errors
    /// If there are none.
    pub(super) fn find(folder: Option<&Path>) -> anyhow::Result<Self> {
        let folder = folder.map(Path::to_owned);
        let folder = folder.or_else(|| env::var_os(FOLDER_VARIABLE).map(PathBuf::from));
        let jars = folder.unwrap_or_else(|| DEFAULT_FOLDER.into()).join("libs");
        let is_of_kafka = |name: OsString| {
            let name = name.to_string_lossy();
            name.starts_with("kafka_") && name.ends_with(".jar")
        };
        let has_any = fs::read_dir(&jars)
            .is_ok_and(|files| files.flatten().any(|file| is_of_kafka(file.file_name())));
        if !has_any {
            bail!(
                "cannot find Apache Kafka: {} has no kafka_*.jar; run tools/setup-kafka, or name the folder with \
                 --kafka FOLDER",
                jars.display()
            );
        }
        Ok(Self(jars))
    }

    /// Prepares a broker in a namespace, with its data in the folder `kafka` of this folder.
    ///
    /// # Errors
    /// If Java is missing, or the folder cannot be prepared.
    pub(super) fn prepare(&self, folder: &Path, host: &Netns) -> anyhow::Result<Broker> {
        let properties = folder.join("kafka.properties");
        fs::write(&properties, text(&data(folder)))
            .with_context(|| format!("cannot write {}", properties.display()))?;
        let mut format = self.java("kafka.tools.StorageTool");
        format.extend(["format", "-t", CLUSTER, "-c"].map(Into::into));
        format.push(properties.clone().into());
        let formatted = host.command(JAVA).args(&format).stdin(Stdio::null()).output();
        let formatted = formatted.context(
            "cannot start java; Apache Kafka needs Java 17 or newer, for example openjdk-17-jre-headless",
        )?;
        if !formatted.status.success() {
            let why = String::from_utf8_lossy(&formatted.stderr);
            let why = why.lines().last().unwrap_or("no message");
            bail!("cannot prepare the folder of Apache Kafka ({}): {why}", formatted.status);
        }
        let mut arguments = self.java("kafka.Kafka");
        arguments.push(properties.into());
        Ok(Broker { address: address(), program: JAVA.into(), arguments })
    }

    fn java(&self, class: &str) -> Vec<OsString> {
        let jars = self.0.join("*").into_os_string();
        vec![MAX_MEMORY.into(), "-cp".into(), jars, class.into()]
    }
}

fn address() -> SocketAddr {
    (CONTROLLER_V4, PORT).into()
}

/// The folder of the broker's data.
pub(super) fn data(folder: &Path) -> PathBuf {
    folder.join("kafka")
}

/// Bytes of all records that the broker has stored of the topic of the batches; none if it is unknown.
pub(super) fn stored_bytes(folder: &Path) -> Option<u64> {
    let is_of_topic = |name: &str| {
        let number = name.strip_prefix(wirestamp_mesh::kafka::OBSERVATIONS);
        number.is_some_and(|it| it.starts_with('-'))
    };
    let mut total = 0_u64;
    for partition in fs::read_dir(data(folder)).ok()? {
        let partition = partition.ok()?;
        if !is_of_topic(&partition.file_name().to_string_lossy()) {
            continue;
        }
        for file in fs::read_dir(partition.path()).ok()? {
            let file = file.ok()?;
            if file.path().extension().is_some_and(|it| it == "log") {
                total = total.checked_add(file.metadata().ok()?.len())?;
            }
        }
    }
    Some(total)
}

fn text(data: &Path) -> String {
    let (address, controller) = (address(), SocketAddr::from((CONTROLLER_V4, CONTROLLER_PORT)));
    format!(
        "process.roles=broker,controller
node.id=1
controller.quorum.voters=1@{controller}
listeners=PLAINTEXT://{address},CONTROLLER://{controller}
advertised.listeners=PLAINTEXT://{address}
controller.listener.names=CONTROLLER
listener.security.protocol.map=CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT
log.dirs={}
auto.create.topics.enable=false
offsets.topic.replication.factor=1
",
        data.display()
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folder_without_jars_is_rejected() {
        let folder = tempfile::tempdir().unwrap();
        let why = Jars::find(Some(folder.path())).err().unwrap().to_string();
        assert!(why.contains("run tools/setup-kafka"), "{why}");
        let jars = folder.path().join("libs");
        fs::create_dir(&jars).unwrap();
        fs::write(jars.join("kafka_2.13-3.9.1.jar"), "").unwrap();
        assert_eq!(Jars::find(Some(folder.path())).unwrap().0, jars);
    }

    #[test]
    fn stored_bytes_are_those_of_the_logs_of_the_topic() {
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(stored_bytes(folder.path()), None);
        for (name, file) in [
            ("wirestamp.observations.v1-0", "0.log"),
            ("wirestamp.observations.v1-11", "0.log"),
            ("wirestamp.observations.v1-0", "0.index"),
            ("wirestamp.settled.v1-0", "0.log"),
        ] {
            let partition = data(folder.path()).join(name);
            fs::create_dir_all(&partition).unwrap();
            fs::write(partition.join(file), "12345").unwrap();
        }
        assert_eq!(stored_bytes(folder.path()), Some(10));
    }
}
