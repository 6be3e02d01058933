//! Two probes that deliver through Kafka.

use std::net::SocketAddr;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use tokio::runtime::Runtime;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use wirestamp_mesh::kafka::Settings;
use wirestamp_mesh::probe::{Carrier, CarrierTroubles, Kafka};

use crate::common::{Probe, batches};

const POINTS: [(&str, u32); 2] = [("roof", 0), ("cellar", 1)];

/// The probes of a mesh and their deliveries.
pub(crate) struct Probes {
    pub(crate) runtime: Runtime,
    pub(crate) probes: [Arc<Probe>; 2],
    deliveries: [Option<JoinHandle<()>>; 2],
    troubles: [Arc<CarrierTroubles>; 2],
}

impl Probes {
    pub(crate) fn let_in(folder: &Path, controller: SocketAddr) -> Self {
        let runtime = Runtime::new().unwrap();
        let let_in = |(name, point)| Probe::let_in(&runtime, folder, controller, name, point);
        let probes = POINTS.map(let_in).map(Arc::new);
        Self { runtime, probes, deliveries: Default::default(), troubles: Default::default() }
    }

    /// Probes that deliver.
    pub(crate) fn delivering(folder: &Path, controller: SocketAddr, settings: &Settings) -> Self {
        let mut probes = Self::let_in(folder, controller);
        [0, 1].into_iter().for_each(|point| probes.restart(point, settings));
        probes
    }

    /// Stops the delivery of a probe, and starts it again: what was not acknowledged is delivered again.
    pub(crate) fn restart(&mut self, point: usize, settings: &Settings) {
        if let Some(before) = self.deliveries[point].take() {
            before.abort();
            let ended = self.runtime.block_on(before);
            assert!(ended.is_err_and(|it| it.is_cancelled()));
        }
        let probe = Arc::clone(&self.probes[point]);
        let troubles = Arc::clone(&self.troubles[point]);
        let delivery = deliver(probe, settings.clone(), troubles);
        self.deliveries[point] = Some(self.runtime.spawn(delivery));
    }

    /// Both probes observe these batches.
    pub(crate) fn hold(&self, numbers: Range<i64>) {
        for (point, probe) in (0..).zip(&self.probes) {
            probe.hold(batches(point, numbers.clone()));
        }
    }

    /// Waits until a probe has a trouble with its delivery; at most two minutes.
    pub(crate) fn wait_for_trouble(&self, point: usize) -> String {
        let trouble = (0..1200).find_map(|_| {
            thread::sleep(Duration::from_millis(100));
            self.troubles[point].current().pop()
        });
        trouble.expect("a trouble within two minutes").1
    }
}

/// Delivers through Kafka, forever.
async fn deliver(probe: Arc<Probe>, settings: Settings, troubles: Arc<CarrierTroubles>) {
    let credentials = watch::Sender::new(probe.credentials.clone());
    let carrier = Kafka::new(settings, credentials.subscribe(), troubles).unwrap();
    loop {
        if let Err(error) = carrier.carry(&probe.stock, probe.channel).await {
            println!("{error}");
        }
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
}
