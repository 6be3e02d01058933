//! The state of a machine, as input for decisions.

use std::collections::HashMap;

use super::host::Host;
use super::place::{Knob, Place};
use crate::affinity::parse_cores;

/// A machine and one of its interfaces.
#[derive(Clone, Debug, Default)]
pub(super) struct Machine {
    pub(super) interface: String,
    /// Driver name; empty if it has none.
    pub(super) driver: String,
    /// The cores that this process may use, in ascending order.
    pub(super) cores: Vec<usize>,
    /// Cores near the card, on a NUMA machine; else empty.
    pub(super) near: Vec<usize>,
    /// The numbers of the card's interrupts, in ascending order.
    pub(super) vectors: Vec<u32>,
    /// The receive queues, such as `rx-0`.
    pub(super) queues: Vec<String>,
    /// Value of every existing setting.
    pub(super) values: HashMap<Place, String>,
}

impl Machine {
    /// Reads everything that a plan may require.
    pub(super) fn read(host: &dyn Host, interface: &str, cores: Vec<usize>) -> Self {
        let folder = |name: &str| format!("class/net/{interface}/{name}");
        let mut queues = host.list(&folder("queues"));
        queues.retain(|queue| queue.starts_with("rx-"));
        let near = Place::of_interface(interface, "device/local_cpulist");
        let near = host.read(&near).map_or(Vec::new(), |list| parse_cores(&list));
        let machine = Self {
            interface: interface.to_owned(),
            driver: host.driver(),
            near: near.into_iter().filter(|core| cores.contains(core)).collect(),
            vectors: vectors(host, &folder),
            queues,
            cores,
            values: HashMap::new(),
        };
        let read = |place: Place| host.read(&place).ok().map(|value| (place, value));
        let values = machine.places().into_iter().filter_map(read).collect();
        Self { values, ..machine }
    }

    /// Value of the setting at `place`.
    pub(super) fn now(&self, place: &Place) -> Option<&str> {
        self.values.get(place).map(String::as_str)
    }

    /// A place with its value.
    pub(super) fn at(&self, place: Place) -> (Place, Option<&str>) {
        let now = self.now(&place);
        (place, now)
    }

    /// The file `name` of the interface's folder in sysfs.
    pub(super) fn file(&self, name: &str) -> Place {
        Place::of_interface(&self.interface, name)
    }

    /// The cores over which the kernel distributes the packets of `queue`.
    pub(super) fn steering(&self, queue: &str) -> Place {
        self.file(&format!("queues/{queue}/rps_cpus"))
    }

    /// Every place that may have a value.
    fn places(&self) -> Vec<Place> {
        let files = ["threaded", "napi_defer_hard_irqs", "gro_flush_timeout"];
        let knobs = [Knob::Gro, Knob::Lro, Knob::AdaptiveRx, Knob::RxUsecs];
        let mut places = vec![Place::CpuLatency];
        places.extend(files.map(|name| self.file(name)));
        places.extend(knobs.map(Place::Ethtool));
        places.extend(self.queues.iter().map(|queue| self.steering(queue)));
        places.extend(self.vectors.iter().map(|&vector| Place::vector(vector)));
        places.extend(self.cores.iter().map(|&core| Place::governor(core)));
        places
    }
}

/// The interrupts of the card: those of the device, or of its bus device, as with virtio.
fn vectors(host: &dyn Host, folder: &impl Fn(&str) -> String) -> Vec<u32> {
    let folders = ["device/msi_irqs", "device/../msi_irqs"];
    let numbers = |name: &str| -> Vec<u32> {
        host.list(&folder(name)).iter().filter_map(|number| number.parse().ok()).collect()
    };
    let mut vectors =
        folders.into_iter().map(numbers).find(|read| !read.is_empty()).unwrap_or_default();
    vectors.sort_unstable();
    vectors
}
