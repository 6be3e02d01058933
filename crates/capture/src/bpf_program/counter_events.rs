//! Perf events by which a tracing program reads the CPU's counter (`bpf/counter_event.h`): one on each core, of the
//! PMU `msr` and its event `tsc`.

use std::fs::{self, File};
use std::io::{self, Read};
use std::os::fd::AsRawFd;

use libbpf_rs::{MapCore, MapFlags, Object, OpenObject, ProgramInput, ProgramMut};
use wirestamp_clock::Counter;
use wirestamp_sys::clock::core_event;

/// The PMU's folder (`Documentation/ABI/testing/sysfs-bus-event_source-devices-events` in the kernel's source).
const UNIT: &str = "/sys/bus/event_source/devices/msr";
/// Cores that are online, as ranges.
const ONLINE: &str = "/sys/devices/system/cpu/online";

/// The maps, and the program that stores an event's origin.
const EVENTS: &str = "counter_events";
const ORIGINS: &str = "counter_origins";
const ORIGIN_PROGRAM: &str = "counter_origin";

/// Comparisons of each event with the counter before its use.
const COMPARISONS: usize = 100;

/// Whether the CPU's counter is available as a perf event.
pub(crate) fn exist() -> bool {
    fs::exists(format!("{UNIT}/events/tsc")).unwrap_or(false)
}

/// Whether `counter` is the one that the events count.
pub(crate) fn count(counter: Counter) -> bool {
    #[cfg(target_arch = "x86_64")]
    return counter == Counter::Tsc;
    #[cfg(not(target_arch = "x86_64"))]
    return false;
}

/// Selects the program that stores origins, and gives the maps of `object` room for every core, if they are `used`;
/// leaves them out otherwise. Call it before loading.
pub(crate) fn choose(object: &mut OpenObject, used: bool) -> libbpf_rs::Result<()> {
    let cores = u32::try_from(libbpf_rs::num_possible_cpus()?).unwrap_or(u32::MAX);
    for mut map in object.maps_mut() {
        if map.name() == EVENTS || map.name() == ORIGINS {
            map.set_autocreate(used)?;
            map.set_max_entries(cores)?;
        }
    }
    for mut program in object.progs_mut() {
        if program.name() == ORIGIN_PROGRAM {
            program.set_autoload(used);
        }
    }
    Ok(())
}

/// Starts an event on every online core, and gives it to the programs of the loaded `object`. Compares each with
/// `counter`.
///
/// # Errors
/// An event does not start, or does not equal the counter; the error names the core.
pub(crate) fn install(object: &Object, counter: Counter) -> io::Result<()> {
    let unit = number(&fs::read_to_string(format!("{UNIT}/type"))?)?;
    let config = number(&fs::read_to_string(format!("{UNIT}/events/tsc"))?)?;
    let unit = u32::try_from(unit).map_err(io::Error::other)?;
    for core in online(&fs::read_to_string(ONLINE)?)? {
        install_one(object, counter, core, || core_event(unit, config, core)).map_err(|error| {
            let reason = format!("the perf event of the counter on core {core}: {error}");
            io::Error::new(error.kind(), reason)
        })?;
    }
    Ok(())
}

fn install_one(
    object: &Object,
    counter: Counter,
    core: usize,
    open: impl FnOnce() -> io::Result<File>,
) -> io::Result<()> {
    let mut event = open()?;
    // The event's last reading of the counter stays until the next read.
    read(&mut event)?;
    let core = u32::try_from(core).map_err(io::Error::other)?;
    let mut programs = object.progs_mut().filter(|program| program.name() == ORIGIN_PROGRAM);
    let program = programs.next().ok_or_else(|| missing(ORIGIN_PROGRAM))?;
    store_origin(&program, &event, core)?;
    let [origins, events] = [ORIGINS, EVENTS].map(|name| {
        let mut maps = object.maps();
        maps.find(|map| map.name() == name).ok_or_else(|| missing(name))
    });
    let origin = origins?.lookup(&core.to_ne_bytes(), MapFlags::ANY).map_err(io::Error::other)?;
    let origin = origin.and_then(|bytes| bytes.try_into().ok()).map(u64::from_ne_bytes);
    let origin = origin.ok_or_else(|| io::Error::other("it has no origin"))?;
    compare(|| counter.read_ordered(), || Ok(origin.wrapping_add(read(&mut event)?)))?;
    // The map keeps the event after the descriptor is closed.
    let descriptor = event.as_raw_fd().to_ne_bytes();
    events?.update(&core.to_ne_bytes(), &descriptor, MapFlags::ANY).map_err(io::Error::other)
}

/// Runs the program that stores the origin of `event`.
fn store_origin(program: &ProgramMut<'_>, event: &File, core: u32) -> io::Result<()> {
    let arguments = [i64::from(event.as_raw_fd()), i64::from(core)];
    let mut context: Vec<u8> = arguments.into_iter().flat_map(i64::to_ne_bytes).collect();
    let input = ProgramInput { context_in: Some(&mut context), ..ProgramInput::default() };
    match program.test_run(input).map_err(io::Error::other)?.return_value {
        0 => Ok(()),
        _ => Err(io::Error::other("its start cannot be read from the kernel's memory")),
    }
}

/// Checks that readings of an event lie between readings of the counter before and after.
fn compare(
    mut counter: impl FnMut() -> u64,
    mut event: impl FnMut() -> io::Result<u64>,
) -> io::Result<()> {
    for _ in 0..COMPARISONS {
        let (before, value, after) = (counter(), event()?, counter());
        if value < before || after < value {
            let reason = format!("{value} is not between {before} and {after} of the counter");
            return Err(io::Error::other(reason));
        }
    }
    Ok(())
}

fn read(event: &mut File) -> io::Result<u64> {
    let mut count = [0; 8];
    event.read_exact(&mut count)?;
    Ok(u64::from_ne_bytes(count))
}

fn missing(name: &str) -> io::Error {
    io::Error::other(format!("the object file has no {name}"))
}

/// The number in a file such as `9` or `event=0x00`.
fn number(text: &str) -> io::Result<u64> {
    let text = text.trim();
    let text = text.strip_prefix("event=").unwrap_or(text);
    match text.strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16),
        None => text.parse(),
    }
    .map_err(io::Error::other)
}

/// Cores in ranges such as `0-2,5`.
fn online(ranges: &str) -> io::Result<Vec<usize>> {
    let mut cores = Vec::new();
    for range in ranges.trim().split(',') {
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        let [first, last] =
            [first, last].map(|core| core.parse::<usize>().map_err(io::Error::other));
        cores.extend(first?..=last?);
    }
    Ok(cores)
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    #[test]
    fn event_outside_of_its_bracket_is_refused() {
        let now = Cell::new(1000);
        let counter = || {
            now.set(now.get() + 10);
            now.get()
        };
        assert!(compare(counter, || Ok(now.get() + 5)).is_ok());
        assert!(compare(counter, || Ok(now.get() - 1)).is_err());
        let error = compare(counter, || Ok(now.get() + 11)).unwrap_err().to_string();
        assert!(error.contains("is not between"), "{error}");
    }

    #[test]
    fn sysfs_numbers_and_ranges_are_parsed() {
        assert_eq!([number("9\n").unwrap(), number("event=0x1f\n").unwrap()], [9, 31]);
        assert!(number("event=tsc").is_err());
        assert_eq!(online("0-2,5\n").unwrap(), [0, 1, 2, 5]);
        assert_eq!(online("0\n").unwrap(), [0]);
        assert!(online("0-x").is_err());
    }
}
