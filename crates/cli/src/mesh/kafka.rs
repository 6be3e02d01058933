//! The options of the nodes for Kafka.

use std::fs;
use std::path::PathBuf;

use anyhow::Context;
use clap::Args;
use wirestamp_mesh::kafka::{Login, Mechanism, Settings};

/// The brokers, and how to reach them.
#[derive(Args, Clone)]
pub(super) struct KafkaBrokers {
    /// Batches of probes pass through Apache Kafka, with these brokers; docs/scale-out.md describes it. A probe then
    /// delivers only through Kafka; a collector accepts both
    #[arg(long, value_name = "HOST:PORT", env = "WIRESTAMP_KAFKA", value_delimiter = ',')]
    kafka: Vec<String>,
    /// Encrypt the connections to the brokers, and verify them by the CA certificates in this file (PEM)
    #[arg(long, value_name = "FILE", requires = "kafka")]
    kafka_ca: Option<PathBuf>,
    /// Log in at the brokers as this user
    #[arg(long, value_name = "NAME", requires_all = ["kafka", "kafka_password_file"])]
    kafka_user: Option<String>,
    /// File with the password of this user
    #[arg(long, value_name = "FILE", requires = "kafka_user")]
    kafka_password_file: Option<PathBuf>,
    /// How to log in: plain (only over encrypted connections), scram-sha-256, scram-sha-512
    #[arg(long, value_name = "NAME", default_value_t, requires = "kafka_user")]
    kafka_mechanism: Mechanism,
}

/// The same for a collector, which creates the topics.
#[derive(Args, Clone)]
pub(super) struct KafkaTopics {
    #[command(flatten)]
    brokers: KafkaBrokers,
    /// Partitions of the topics of the batches and of the results, if they do not exist yet
    #[arg(
        long,
        value_name = "NUMBER",
        default_value_t = 12,
        value_parser = clap::value_parser!(u32).range(1..=10_000),
        requires = "kafka"
    )]
    kafka_partitions: u32,
}

impl KafkaBrokers {
    /// The settings, if there are brokers.
    pub(super) fn settings(&self) -> anyhow::Result<Option<Settings>> {
        let Self { kafka, kafka_ca, kafka_user, kafka_password_file, kafka_mechanism } = self;
        if kafka.is_empty() {
            return Ok(None);
        }
        let login = match (kafka_user, kafka_password_file) {
            (Some(name), Some(file)) => {
                let read = fs::read_to_string(file);
                let password = read.with_context(|| format!("cannot read {}", file.display()))?;
                let password = password.trim_end_matches(['\r', '\n']).to_owned();
                anyhow::ensure!(
                    *kafka_mechanism != Mechanism::Plain || kafka_ca.is_some(),
                    "cannot log in at the brokers: the mechanism plain sends the password; add --kafka-ca, or choose a \
                     scram mechanism"
                );
                Some(Login { mechanism: *kafka_mechanism, name: name.clone(), password })
            }
            _ => None,
        };
        Ok(Some(Settings { brokers: kafka.clone(), ca: kafka_ca.clone(), login, partitions: 1 }))
    }
}

impl KafkaTopics {
    /// The settings, if there are brokers.
    pub(super) fn settings(&self) -> anyhow::Result<Option<Settings>> {
        let settings = self.brokers.settings()?;
        Ok(settings.map(|it| Settings { partitions: self.kafka_partitions, ..it }))
    }
}
