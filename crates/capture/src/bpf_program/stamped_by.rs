//! The component that stamps the frames of a program (`bpf/clocks.h`). An object file has one program for each
//! case; one of them is loaded.

use std::io;

use libbpf_rs::libbpf_sys::BPF_F_XDP_DEV_BOUND_ONLY;
use libbpf_rs::{Object, OpenObject};
use wirestamp_clock::Counter;

use super::{Attached, Hook, Place, counter_events, with_filter};
use crate::Error;
use crate::capabilities::{CounterFunction, Obstacle};
use crate::card_stamps;
use crate::filter::Filter;
use crate::interface::Interface;

/// Values of `enum clock`.
pub(crate) mod clock {
    pub(crate) const MONOTONIC: u32 = 0;
    pub(crate) const CARD: u32 = 1;
    pub(crate) const COUNTER: u32 = 2;
    /// The monotonic clock, read later than at the requested place.
    pub(crate) const LATE: u32 = 3;
}

/// The component that stamps, and its clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum StampedBy {
    /// The reading thread, with the counter, because the program cannot read the counter.
    Reader { counter: Counter, reason: Obstacle },
    /// The program, with the counter, read by a kernel function when the program begins. The reading thread stamps
    /// frames that arrive without a stamp.
    Counter { counter: Counter, function: CounterFunction },
    /// The tracing program, with the counter, read through a perf event. Packets without that stamp are stamped with
    /// the kernel's monotonic clock.
    CounterEvent { counter: Counter },
    /// The program, with the kernel's monotonic clock, read when the program begins.
    Kernel,
    /// The network card; the program reads its stamp. Frames without one are stamped as by [`Self::Kernel`].
    Card,
}

/// Stamps of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Stamped {
    /// As [`crate::receiver::Frame::raw`].
    pub(crate) raw: u64,
    /// As [`crate::receiver::Frame::kernel`]: the kernel's stamp if the requested stamp is missing.
    pub(crate) kernel: Option<u64>,
    /// Whether it is another stamp than requested.
    pub(crate) late: bool,
}

impl StampedBy {
    /// Stamps of a frame with `value` read from the clock of that number.
    pub(crate) fn stamped(self, value: u64, clock: u32) -> Stamped {
        let requested = match self {
            Self::Card => clock::CARD,
            Self::CounterEvent { .. } => clock::COUNTER,
            _ => return Stamped { raw: value, kernel: None, late: clock == clock::LATE },
        };
        if clock == requested {
            Stamped { raw: value, kernel: None, late: false }
        } else {
            Stamped { raw: card_stamps::NONE, kernel: Some(value), late: true }
        }
    }

    /// Whether the program stamps.
    pub(crate) fn is_by_program(self) -> bool {
        !matches!(self, Self::Reader { .. })
    }

    /// Name of the program at `hook`.
    fn program(self, hook: Hook) -> String {
        match hook {
            Hook::Xdp => self.stamping().to_owned(),
            Hook::Tc => format!("tc_{}", self.stamping()),
            Hook::Trace => "tc_stamped_at_tracepoint".to_owned(),
        }
    }

    /// Name of the program at the tracepoint of `hook`, if that has one.
    fn tracing_program(self, hook: Hook) -> Option<String> {
        (hook == Hook::Trace).then(|| format!("trace_{}", self.stamping()))
    }

    /// Name of the program that stamps, without the hook.
    fn stamping(self) -> &'static str {
        match self {
            Self::Reader { .. } => "unstamped",
            Self::Counter { function, .. } => function.program(),
            Self::CounterEvent { .. } => "stamped_by_counter_event",
            Self::Kernel => "stamped_by_kernel",
            Self::Card => "stamped_by_card",
        }
    }

    /// Selects this program of `object` for `hook` on `interface`, and inserts `filter`. Call it after setting
    /// constants and map sizes.
    pub(crate) fn choose(
        self,
        hook: Hook,
        object: &mut OpenObject,
        interface: &Interface,
        filter: Option<&Filter>,
        refused: impl Fn(libbpf_rs::Error) -> Error + Copy,
    ) -> Result<(), Error> {
        let (name, tracing) = (self.program(hook), self.tracing_program(hook));
        for mut program in object.progs_mut() {
            let chosen = program.name() == name.as_str();
            let traces = tracing.as_deref().is_some_and(|name| program.name() == name);
            program.set_autoload(chosen || traces);
            if chosen && self == Self::Card {
                // A bound program can be attached only to this interface, so only this program is bound.
                program.set_ifindex(interface.index.cast_unsigned());
                program.set_flags(BPF_F_XDP_DEV_BOUND_ONLY);
            }
        }
        let by_event = matches!(self, Self::CounterEvent { .. });
        counter_events::choose(object, by_event).map_err(refused)?;
        let Some(filter) = filter else { return Ok(()) };
        let passes = hook.passes(filter)?;
        with_filter::prepare(object).map_err(refused)?;
        let mut chosen = object.progs_mut().filter(|program| program.name() == name.as_str());
        chosen
            .try_for_each(|mut program| with_filter::insert(&mut program, &passes))
            .map_err(refused)
    }

    /// Prepares the clock of this program of a loaded `object`.
    ///
    /// # Errors
    /// A perf event of the counter cannot be used.
    pub(crate) fn prepare(self, object: &Object) -> io::Result<()> {
        match self {
            Self::CounterEvent { counter } => counter_events::install(object, counter),
            _ => Ok(()),
        }
    }

    /// Attaches this program of a loaded `object` to `hook`; returns where the kernel runs it.
    pub(crate) fn attach(
        self,
        hook: Hook,
        object: &Object,
        interface: &Interface,
    ) -> libbpf_rs::Result<(Attached, Place)> {
        let find = |name: String| {
            let program = object.progs_mut().find(|program| program.name() == name.as_str());
            program.ok_or_else(|| io::Error::other(format!("no program is called {name}")))
        };
        let program = find(self.program(hook))?;
        let tracing = self.tracing_program(hook).map(find).transpose()?;
        hook.attach(&program, tracing.as_ref(), interface)
    }
}

impl CounterFunction {
    /// Name of the program that calls it.
    pub(crate) const fn program(self) -> &'static str {
        match self {
            Self::Kernel => "stamped_by_counter_of_kernel",
            Self::Module => "stamped_by_counter_of_module",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const REQUESTED: Stamped = Stamped { raw: 7, kernel: None, late: false };
    const INSTEAD: Stamped = Stamped { raw: card_stamps::NONE, kernel: Some(7), late: true };

    #[test]
    fn missing_stamp_has_marked_kernel_stamp() {
        let by_event = StampedBy::CounterEvent { counter: Counter::select() };
        for (by, requested) in [(StampedBy::Card, clock::CARD), (by_event, clock::COUNTER)] {
            assert_eq!(by.stamped(7, requested), REQUESTED);
            for clock in [clock::MONOTONIC, clock::LATE, u32::MAX] {
                assert_eq!(by.stamped(7, clock), INSTEAD);
            }
        }
    }

    #[test]
    fn late_kernel_stamp_is_still_a_kernel_stamp() {
        assert_eq!(StampedBy::Kernel.stamped(7, clock::MONOTONIC), REQUESTED);
        let late = Stamped { late: true, ..REQUESTED };
        assert_eq!(StampedBy::Kernel.stamped(7, clock::LATE), late);
    }
}
