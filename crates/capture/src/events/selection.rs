//! Which events are recorded, and for which interface.

use std::collections::HashMap;
use std::fs;

use super::Error;
use super::format::EventFormat;
use super::tracefs::Instance;
use crate::interface::Interface;

/// Events of the receive path that are recorded by default, in the order in which a packet passes them.
pub const DEFAULT_EVENTS: &[&str] = &[
    "irq:irq_handler_entry",
    "irq:irq_handler_exit",
    "irq:softirq_entry",
    "irq:softirq_exit",
    "napi:napi_poll",
    "xdp:xdp_exception",
    "xdp:xdp_redirect",
    "xdp:xdp_redirect_err",
    "xdp:xdp_cpumap_enqueue",
    "xdp:xdp_cpumap_kthread",
    "net:netif_rx_entry",
    "net:netif_rx",
    "net:napi_gro_receive_entry",
    "net:netif_receive_skb_list_entry",
    "net:netif_receive_skb_entry",
    "net:netif_receive_skb",
];

/// The interface whose events are recorded.
///
/// Tracepoints report events of all network namespaces, and contain only the name or the index of the interface:
/// interfaces of other namespaces with the same name or index are recorded too.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InterfaceFilter {
    /// Its name.
    pub name: String,
    /// Its index.
    pub index: i32,
}

impl InterfaceFilter {
    /// The interface of this name in the calling thread's network namespace.
    ///
    /// # Errors
    /// There is none.
    pub fn find(name: &str) -> Result<Self, crate::Error> {
        let Interface { name, index, .. } = Interface::find(name)?;
        Ok(Self { name, index })
    }

    /// The filter of an event, in the language of Documentation/trace/events.rst. None for events without interface, such
    /// as those of interrupts: these are all recorded.
    fn of(&self, event: &EventFormat) -> Option<String> {
        let has = |name: &&&str| event.field(name).is_some();
        // The language has no way to write a quotation mark.
        let field = event.interface().filter(|_| !self.name.contains('"'));
        let by_name =
            field.into_iter().map(|field| format!("{} == \"{}\"", field.name(), self.name));
        let indices = ["ifindex", "from_ifindex", "to_ifindex"];
        let by_index = indices.iter().filter(has).map(|it| format!("{it} == {}", self.index));
        let terms: Vec<_> = by_name.chain(by_index).collect();
        (!terms.is_empty()).then(|| terms.join(" || "))
    }
}

/// The formats of the recorded events.
#[derive(Debug, Default)]
pub(super) struct Formats(HashMap<u16, EventFormat>);

impl Formats {
    /// The format of a record; none if its event is unknown.
    pub(super) fn of(&self, record: &[u8]) -> Option<&EventFormat> {
        // `common_type` is the first field of every event (`struct trace_entry` of linux/trace_events.h).
        self.0.get(&u16::from_ne_bytes(*record.first_chunk()?))
    }

    /// Names of the events, sorted.
    pub(super) fn names(&self) -> Vec<String> {
        let mut names: Vec<_> = self.0.values().map(|it| it.name().to_owned()).collect();
        names.sort();
        names
    }
}

/// Enables events in `instance`; an event is `SYSTEM:EVENT`, or `SYSTEM:*` for all of a system. Without `requested`,
/// enables those of [`DEFAULT_EVENTS`] that exist. Returns their formats, and the missing default ones.
pub(super) fn enable(
    instance: &Instance,
    requested: Option<&[String]>,
    interface: Option<&InterfaceFilter>,
) -> Result<(Formats, Vec<&'static str>), Error> {
    let (mut formats, mut missing) = (Formats::default(), Vec::new());
    let mut enable = |system: &str, event: &str| {
        let folder = format!("events/{system}/{event}");
        let format = EventFormat::parse(system, &instance.read(&format!("{folder}/format"))?);
        let format = format.ok_or_else(|| Error::Layout(format!("{folder}/format")))?;
        if let Some(filter) = interface.and_then(|interface| interface.of(&format)) {
            instance.write(&format!("{folder}/filter"), &filter)?;
        }
        instance.write(&format!("{folder}/enable"), "1")?;
        formats.0.insert(format.id(), format);
        Ok(())
    };
    for &name in requested.map_or(DEFAULT_EVENTS, |_| &[]) {
        let (system, event) = name.split_once(':').unwrap_or_default();
        match instance.path(&format!("events/{system}/{event}/format")).exists() {
            true => enable(system, event)?,
            false => missing.push(name),
        }
    }
    for name in requested.unwrap_or_default() {
        let (system, known) = events_of_system(instance, name)?;
        match name.split_once(':') {
            Some((_, "*")) => known.iter().try_for_each(|event| enable(system, event))?,
            Some((_, event)) if known.iter().any(|it| it == event) => enable(system, event)?,
            _ => {
                let choice = format!("the system {system} has {}", known.join(", "));
                return Err(Error::NoSuchEvent { event: name.clone(), choice });
            }
        }
    }
    if formats.0.is_empty() { Err(Error::NoEvents) } else { Ok((formats, missing)) }
}

/// The system of the requested event, and its events, sorted.
fn events_of_system<'a>(
    instance: &Instance,
    requested: &'a str,
) -> Result<(&'a str, Vec<String>), Error> {
    let folders = |path: &str| {
        let entries = fs::read_dir(instance.path(path)).into_iter().flatten().flatten();
        let folders = entries.filter(|entry| entry.file_type().is_ok_and(|it| it.is_dir()));
        let mut names: Vec<_> =
            folders.filter_map(|entry| entry.file_name().into_string().ok()).collect();
        names.sort();
        names
    };
    let system = requested.split(':').next().unwrap_or_default();
    let systems = folders("events");
    if systems.iter().any(|it| it == system) {
        return Ok((system, folders(&format!("events/{system}"))));
    }
    let choice = format!("write SYSTEM:EVENT; this kernel has the systems {}", systems.join(", "));
    Err(Error::NoSuchEvent { event: requested.to_owned(), choice })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn filter(system: &str, fields: &str) -> Option<String> {
        let text = format!("name: x\nID: 7\n{fields}\n");
        let interface = InterfaceFilter { name: "eth0".into(), index: 3 };
        interface.of(&EventFormat::parse(system, &text).unwrap())
    }

    #[test]
    fn events_are_filtered_by_the_interface_they_contain() {
        let name = "\tfield:__data_loc char[] name;\toffset:20;\tsize:4;\tsigned:0;";
        assert_eq!(filter("net", name).unwrap(), "name == \"eth0\"");
        assert_eq!(filter("irq", name), None, "the name of an interrupt");
        let dev_name = name.replace("name;", "dev_name;");
        assert_eq!(filter("napi", &dev_name).unwrap(), "dev_name == \"eth0\"");
        let index = "\tfield:int ifindex;\toffset:8;\tsize:4;\tsigned:1;";
        let both = format!("{index}\n{}", index.replace("ifindex", "to_ifindex"));
        assert_eq!(filter("xdp", &both).unwrap(), "ifindex == 3 || to_ifindex == 3");
        assert_eq!(filter("irq", &index.replace("ifindex", "irq")), None);
    }

    #[test]
    fn interface_name_with_quotation_mark_is_not_filtered_by() {
        let name =
            "name: x\nID: 7\n\tfield:__data_loc char[] name;\toffset:20;\tsize:4;\tsigned:0;\n";
        let interface = InterfaceFilter { name: "a\"b".into(), index: 3 };
        assert_eq!(interface.of(&EventFormat::parse("net", name).unwrap()), None);
    }
}
