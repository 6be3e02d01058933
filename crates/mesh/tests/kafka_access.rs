//! Access to Apache Kafka: TLS, logins, and permissions.

#[expect(dead_code, reason = "not all of it is needed here")]
mod brokers;
#[expect(dead_code, reason = "not all of it is needed here")]
mod common;

use std::fs;
use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use brokers::{Broker, Probes, start};
use common::{BATCHES, PACKETS, authority, check, now};
use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DistinguishedName, DnType, IsCa, KeyPair,
};
use tokio::sync::watch;
use wirestamp_mesh::kafka::{ANSWERS, Login, Mechanism, OBSERVATIONS, Settings};
use wirestamp_mesh::pki::Authority;
use wirestamp_mesh::probe::{Carrier, Kafka};

/// Settings of a broker with TLS and SASL, and its CA certificate in a file.
fn secured(folder: &Path) -> (String, PathBuf) {
    let key = KeyPair::generate().unwrap();
    let mut parameters = CertificateParams::new(vec!["127.0.0.1".to_owned()]).unwrap();
    parameters.distinguished_name = DistinguishedName::new();
    parameters.distinguished_name.push(DnType::CommonName, "CA of the brokers");
    parameters.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let ca = CertifiedIssuer::self_signed(parameters, key).unwrap();
    let key = KeyPair::generate().unwrap();
    let parameters = CertificateParams::new(vec!["127.0.0.1".to_owned()]).unwrap();
    let certificate = parameters.signed_by(&key, &ca).unwrap();
    let file = folder.join("ca.pem");
    fs::write(&file, ca.pem()).unwrap();
    // In the syntax of properties.
    let line = |pem: &str| pem.replace("\r\n", "\n").replace('\n', "\\n");
    let login = "org.apache.kafka.common.security.scram.ScramLoginModule required";
    let plain = "org.apache.kafka.common.security.plain.PlainLoginModule required";
    let settings = format!(
        "sasl.enabled.mechanisms=SCRAM-SHA-512,SCRAM-SHA-256,PLAIN
sasl.mechanism.inter.broker.protocol=SCRAM-SHA-512
listener.name.sasl_ssl.scram-sha-512.sasl.jaas.config={login} username=\"broker\" password=\"b\";
listener.name.sasl_ssl.scram-sha-256.sasl.jaas.config={login};
listener.name.sasl_ssl.plain.sasl.jaas.config={plain} user_mesh=\"m\";
ssl.keystore.type=PEM
ssl.keystore.certificate.chain={}
ssl.keystore.key={}
ssl.truststore.type=PEM
ssl.truststore.certificates={}
authorizer.class.name=org.apache.kafka.metadata.authorizer.StandardAuthorizer
super.users=User:broker;User:mesh;User:ANONYMOUS
",
        line(&certificate.pem()),
        line(&key.serialize_pem()),
        line(&ca.pem())
    );
    (settings, file)
}

/// A broker with TLS and the users `mesh`, which may do everything, and `other`; the password is the first letter.
struct Secured {
    broker: Broker,
    ca: PathBuf,
    folder: tempfile::TempDir,
}

impl Secured {
    fn start() -> Option<Self> {
        let folder = tempfile::tempdir().unwrap();
        let (more, ca) = secured(folder.path());
        let users = ["broker", "mesh", "other"].map(|name| {
            let password = &name[..1];
            format!("SCRAM-SHA-512=[name={name},password={password}]")
        });
        let broker = Broker::with("SASL_SSL", &more, users.into())?;
        Authority::create(&authority(folder.path()), now()).unwrap();
        Some(Self { broker, ca, folder })
    }

    fn login(&self, name: &str, password: &str) -> Settings {
        let mechanism = Mechanism::ScramSha512;
        let (name, password) = (name.to_owned(), password.to_owned());
        let login = Some(Login { mechanism, name, password });
        Settings { ca: Some(self.ca.clone()), login, ..self.broker.settings() }
    }

    fn plain(&self, password: &str) -> Settings {
        let settings = self.login("mesh", password);
        let login = settings.login.map(|it| Login { mechanism: Mechanism::Plain, ..it });
        Settings { login, ..settings }
    }

    /// Permits operations on a topic to the user `other`.
    fn permit(&self, topic: &str, operations: &[&str]) {
        let (file, ca) = (self.folder.path().join("login"), self.ca.display());
        let login = "org.apache.kafka.common.security.plain.PlainLoginModule required";
        let properties = format!(
            "security.protocol=SASL_SSL
sasl.mechanism=PLAIN
sasl.jaas.config={login} username=\"mesh\" password=\"m\";
ssl.truststore.type=PEM
ssl.truststore.location={ca}
"
        );
        fs::write(&file, properties).unwrap();
        self.broker.permit(&file, "other", topic, operations);
    }
}

#[test]
fn kafka_with_tls_and_logins_accepts_the_right_ones() {
    let Some(kafka) = Secured::start() else { return };
    let (folder, address) = (kafka.folder.path(), (Ipv4Addr::LOCALHOST, 0).into());
    let mesh = start(folder, address, &kafka.login("mesh", "m"));
    let mut probes = Probes::let_in(folder, mesh.address);
    probes.hold(0..BATCHES);
    probes.restart(0, &kafka.login("mesh", "m"));
    probes.restart(1, &kafka.plain("m"));
    check(&mesh.wait_for(PACKETS.unsigned_abs()));
    // A wrong password, a user without permissions, no login, and no encryption.
    let refused = |settings: Settings| {
        let probe = &probes.probes[0];
        let credentials = watch::Sender::new(probe.credentials.clone());
        probes.runtime.block_on(async {
            let carrier = Kafka::new(settings, credentials.subscribe(), Arc::default()).unwrap();
            carrier.carry(&probe.stock, probe.channel).await.unwrap_err().to_string()
        })
    };
    let cannot_connect = "cannot connect to Kafka at 127.0.0.1:";
    for settings in [kafka.login("mesh", "wrong"), kafka.plain("wrong")] {
        let why = refused(settings);
        assert!(why.starts_with(cannot_connect), "{why}");
    }
    let why = refused(kafka.login("other", "o"));
    assert!(why.starts_with("cannot find the topic wirestamp.observations.v1"), "{why}");
    let without_login = Settings { login: None, ..kafka.login("mesh", "m") };
    for settings in [without_login, kafka.broker.settings()] {
        let why = refused(settings);
        assert!(why.starts_with(cannot_connect), "{why}");
    }
}

/// The probe may write batches, but not read the acknowledgements. When it may, everything is delivered.
#[test]
fn probe_that_may_not_read_acknowledgements_says_so_and_loses_nothing() {
    let Some(kafka) = Secured::start() else { return };
    let (folder, address) = (kafka.folder.path(), (Ipv4Addr::LOCALHOST, 0).into());
    let mesh = start(folder, address, &kafka.login("mesh", "m"));
    let mut probes = Probes::let_in(folder, mesh.address);
    probes.hold(0..BATCHES);
    probes.restart(0, &kafka.login("mesh", "m"));
    kafka.permit(OBSERVATIONS, &["Write", "Describe"]);
    kafka.permit(ANSWERS, &["Describe"]);
    probes.restart(1, &kafka.login("other", "o"));
    let trouble = probes.wait_for_trouble(1);
    let expected = format!("nothing is delivered: cannot read from partition 0 of {ANSWERS}");
    assert!(trouble.starts_with(&expected), "{trouble}");
    kafka.permit(ANSWERS, &["Read"]);
    check(&mesh.wait_for(PACKETS.unsigned_abs()));
}
