//! NAPI, the part of the softIRQ that reads packets from the driver (`Documentation/networking/napi.rst`).

use super::super::goal::Goal;
use super::super::machine::Machine;
use super::super::place::{Attribute, Knob, Place};
use super::super::setting::Setting;
use super::super::softirq::Placement;

const THREADED: &str = "threads of the driver's own wait for no other softIRQ and can be pinned \
                        (napi.rst, Threaded NAPI)";
const PINNED: &str = "each on one core, that of the interrupt (napi.rst, Threaded NAPI)";
const PRIORITY: &str = "nothing else on the core delays the stamp (sched(7))";
const DEFERRED: &str = "after packets, interrupts stay off and a timer polls for more: good for \
                        busy polling, else a delay (napi.rst, Software IRQ coalescing)";

/// One above the priority of the acquisition thread ([`wirestamp_sys::scheduling::set_realtime`]), which waits for the
/// NAPI threads anyway; below the kernel's own real-time threads, which have 50.
const REALTIME: &str = "SCHED_FIFO 41";

pub(super) fn settings(goal: &Goal, machine: &Machine, softirq: &Placement) -> Vec<Setting> {
    let threaded = threaded(goal, machine, softirq);
    let cores = softirq.first(machine.queues.len());
    let cores = cores.iter().map(ToString::to_string).collect::<Vec<_>>().join(",");
    let threads = |name, attribute, why| {
        let here = (Place::Threads(attribute), threaded.changes().then_some("-"));
        Setting::new(name, here, missing(&threaded), why)
    };
    let pinned = threads("cores of the NAPI threads", Attribute::Cores, PINNED).wanting(cores);
    let first = threads("priority of the NAPI threads", Attribute::Scheduling, PRIORITY);
    let first =
        if goal.realtime { first.wanting(REALTIME) } else { first.left("only with --realtime") };
    let [defer, timer] = deferral(goal, machine);
    vec![defer, timer, threaded, pinned, first]
}

fn threaded(goal: &Goal, machine: &Machine, softirq: &Placement) -> Setting {
    let here = machine.at(machine.file("threaded"));
    let setting = Setting::new("threaded NAPI", here, "the kernel has none (since 5.12)", THREADED);
    let gro = machine.now(&Place::Ethtool(Knob::Gro));
    if machine.driver == "veth" && (gro != Some("on") || !goal.taken_before_gro) {
        setting.left("veth has NAPI only with GRO, which would merge packets")
    } else if machine.driver.is_empty() {
        setting.left("the interface has no driver with NAPI")
    } else if *softirq == Placement::Anywhere {
        setting.left("there is only one core")
    } else if matches!(softirq, Placement::Shared(_)) && !goal.realtime {
        setting.left(
            "a thread would wait for the others on its core: add --realtime, or leave a core free",
        )
    } else {
        setting.wanting("1")
    }
}

/// Why there are no threads that could be changed.
fn missing(threaded: &Setting) -> &'static str {
    match threaded.now.as_deref() {
        None | Some("0") => "there are none",
        _ => "NAPI was threaded before, and its threads are placed",
    }
}

/// Values for busy polling are those of `Documentation/networking/af_xdp.rst`.
fn deferral(goal: &Goal, machine: &Machine) -> [Setting; 2] {
    let [times, nanos] = if goal.busy_polls { ["2", "200000"] } else { ["0", "0"] };
    let row = |name, file, value: &str| {
        let here = machine.at(machine.file(file));
        Setting::new(name, here, "the kernel has no deferral", DEFERRED).wanting(value)
    };
    [
        row("polls with interrupts off", "napi_defer_hard_irqs", times),
        row("timer of these polls in ns", "gro_flush_timeout", nanos),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tune::fake::{goal, machine};

    const THREADED_ROW: usize = 2;

    fn card() -> Machine {
        let mut machine = Machine { driver: "ice".into(), ..machine("eth0", 4) };
        machine.queues = vec!["rx-0".into(), "rx-1".into()];
        let threaded = machine.file("threaded");
        machine.with(threaded, "0").with(Place::Ethtool(Knob::Gro), "on")
    }

    fn changes(goal: Goal, machine: &Machine, softirq: &Placement) -> [bool; 3] {
        let settings = settings(&goal, machine, softirq);
        [0, 1, 2].map(|row| settings[THREADED_ROW + row].changes())
    }

    #[test]
    fn threads_get_a_core_of_their_own_or_real_time_priority() {
        let (own, shared) = (Placement::Own(vec![1, 0]), Placement::Shared(3));
        let realtime = Goal { realtime: true, ..goal() };
        assert_eq!(changes(goal(), &card(), &own), [true, true, false]);
        assert_eq!(changes(realtime.clone(), &card(), &own), [true; 3]);
        assert_eq!(changes(goal(), &card(), &shared), [false; 3]);
        assert_eq!(changes(realtime.clone(), &card(), &shared), [true; 3]);
        assert_eq!(changes(realtime, &card(), &Placement::Anywhere), [false; 3]);
        let cores = settings(&goal(), &card(), &own)[THREADED_ROW + 1].wanted.clone();
        assert_eq!(cores.as_deref(), Some("1,0"));
    }

    #[test]
    fn existing_threads_are_not_changed() {
        let threaded = card().file("threaded");
        let card = card().with(threaded, "1");
        let realtime = Goal { realtime: true, ..goal() };
        assert_eq!(changes(realtime, &card, &Placement::Own(vec![1])), [false; 3]);
    }

    #[test]
    fn veth_is_threaded_only_where_gro_may_stay() {
        let veth = Machine { driver: "veth".into(), ..card() };
        let own = Placement::Own(vec![1]);
        let xdp = Goal { taken_before_gro: true, ..goal() };
        assert!(changes(xdp.clone(), &veth, &own)[0]);
        assert!(!changes(goal(), &veth, &own)[0]);
        let without = veth.with(Place::Ethtool(Knob::Gro), "off");
        assert!(!changes(xdp, &without, &own)[0]);
    }

    #[test]
    fn interrupts_are_deferred_for_busy_polling_only() {
        let card = card();
        let deferred = card
            .clone()
            .with(card.file("napi_defer_hard_irqs"), "2")
            .with(card.file("gro_flush_timeout"), "200000");
        let own = Placement::Own(vec![1]);
        let busy = Goal { busy_polls: true, ..goal() };
        assert!(settings(&busy, &deferred, &own)[..2].iter().all(|s| !s.changes()));
        assert!(settings(&goal(), &deferred, &own)[..2].iter().all(Setting::changes));
    }
}
