//! The arguments of `wirestamp lab mesh`.

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::bail;
use clap::Args;
use jiff::SignedDuration;
use wirestamp_lab::Netns;

#[cfg(feature = "kafka")]
use super::kafka;
use super::nodes::Broker;
use super::streams::Load;
use crate::bottleneck::Bottleneck;

#[derive(Args)]
#[command(after_help = "\
Runs a controller and two probes as processes in a test bed of network namespaces: source, router 1, \
router 2, sink. The probe `roof` captures on the receiving interface of router 1, the probe `cellar` \
on that of the sink; the bottleneck is between them. Separate links connect them to the controller. \
The task `call` measures a phone call, the task `load` bursts that fill the bottleneck every two \
seconds. Finally the results are compared with the counts of sender, receiver and bottleneck. The CPU \
time and memory of each process are those from the start of the traffic until all results were read.

Examples:
  wirestamp lab mesh --for 30s --collector
  wirestamp lab mesh --for 90s --cut 60s --keep mesh
  wirestamp lab mesh --for 30s --collectors 2 --kill-collector 10s
  wirestamp lab mesh --for 30s --packet-rate 50000 --rate 1000 --queue 1000000")]
pub(crate) struct Arguments {
    #[command(flatten)]
    pub(super) path: Bottleneck,
    /// End after this time, such as 30s or 5m [default: until Ctrl-C]
    #[arg(long = "for", value_name = "TIME", value_parser = duration)]
    pub(super) lasting: Option<Duration>,
    /// Disconnect the probes from the controller for this time, two seconds after the traffic has started
    #[arg(long, value_name = "TIME", value_parser = duration)]
    pub(super) cut: Option<Duration>,
    /// Run one collector as a separate process
    #[arg(long)]
    collector: bool,
    /// Run this many collectors as separate processes, beside the controller
    #[arg(long, value_name = "NUMBER", conflicts_with = "collector", value_parser = clap::value_parser!(u16).range(1..=64))]
    collectors: Option<u16>,
    /// Kill one of several collectors at this time after the traffic has started, and start it again once its tasks have
    /// moved to another one
    #[arg(long, value_name = "TIME", value_parser = duration, requires = "collectors")]
    pub(super) kill_collector: Option<Duration>,
    /// Send the batches of the probes through Apache Kafka; the lab starts a broker from the jars in FOLDER/libs [default:
    /// $WIRESTAMP_KAFKA_FOLDER, or target/tools/kafka]
    #[cfg(feature = "kafka")]
    #[arg(long, value_name = "FOLDER", num_args = 0..=1)]
    kafka: Option<Option<PathBuf>>,
    /// Instead of bursts, send this many packets of 128 bytes a second. One task for each collector measures them
    #[arg(long, value_name = "NUMBER", value_parser = clap::value_parser!(u32).range(1..=10_000_000))]
    packet_rate: Option<u32>,
    /// Save logs, results and all other data of the nodes in this folder
    #[arg(long, value_name = "FOLDER")]
    pub(super) keep: Option<PathBuf>,
}

fn duration(text: &str) -> Result<Duration, String> {
    let time: SignedDuration = text.parse().map_err(|_| "expected a time such as 30s or 5m")?;
    match Duration::try_from(time) {
        Ok(time) if time >= Duration::from_secs(1) => Ok(time),
        _ => Err("expected at least 1 second".to_owned()),
    }
}

impl Arguments {
    /// Number of separate collectors.
    pub(super) fn collectors(&self) -> u16 {
        self.collectors.unwrap_or(self.collector.into())
    }

    pub(super) fn load(&self) -> Load {
        let tasks = self.collectors().max(1);
        self.packet_rate.map_or(Load::Bursts, |packets_per_s| Load::Steady { packets_per_s, tasks })
    }

    pub(super) fn check(&self) -> anyhow::Result<()> {
        let Some(kill) = self.kill_collector else { return Ok(()) };
        if self.collectors() < 2 {
            bail!(
                "cannot move the tasks of the killed collector: it is the only one; add --collectors 2"
            );
        }
        if self.lasting.is_some_and(|lasting| kill >= lasting) {
            bail!(
                "cannot kill a collector after the end of the traffic; use --kill-collector with a shorter time"
            );
        }
        Ok(())
    }

    /// Prepares a broker in a namespace, with its data in a folder, if batches pass through Kafka.
    #[cfg(feature = "kafka")]
    pub(super) fn broker(&self, folder: &Path, host: &Netns) -> anyhow::Result<Option<Broker>> {
        let Some(jars) = &self.kafka else { return Ok(None) };
        let jars = kafka::Jars::find(jars.as_deref())?;
        jars.prepare(folder, host).map(Some)
    }

    #[cfg(not(feature = "kafka"))]
    pub(super) fn broker(&self, _folder: &Path, _host: &Netns) -> anyhow::Result<Option<Broker>> {
        Ok(None)
    }

    /// Bytes that the broker has stored; none without Kafka.
    #[cfg(feature = "kafka")]
    pub(super) fn kafka_bytes(&self, folder: &Path) -> Option<u64> {
        self.kafka.as_ref().and_then(|_| kafka::stored_bytes(folder))
    }

    #[cfg(not(feature = "kafka"))]
    pub(super) fn kafka_bytes(&self, _folder: &Path) -> Option<u64> {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn duration_is_at_least_one_second() {
        assert_eq!(duration("90s"), Ok(Duration::from_secs(90)));
        assert_eq!(duration("1h"), Ok(Duration::from_secs(3600)));
        assert!(duration("10ms").unwrap_err().contains("at least 1 second"));
        assert!(duration("-1h").unwrap_err().contains("at least 1 second"));
        assert!(duration("soon").unwrap_err().contains("such as 30s"));
    }
}
