//! The component that stamps the frames of a program (`bpf/clocks.h`). An object file has one program for each
//! case; one of them is loaded.

use std::io;

use libbpf_rs::libbpf_sys::BPF_F_XDP_DEV_BOUND_ONLY;
use libbpf_rs::{Object, OpenObject};
use wirestamp_clock::Counter;

use super::{Attached, Hook, Place, with_filter};
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
}

/// The component that stamps, and its clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum StampedBy {
    /// The reading thread, with the counter, because the program cannot read the counter.
    Reader { counter: Counter, reason: Obstacle },
    /// The program, with the counter, read by a kernel function when the program begins. The reading thread stamps
    /// frames that arrive without a stamp.
    Counter { counter: Counter, function: CounterFunction },
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
    /// As [`crate::receiver::Frame::kernel`]: the kernel's stamp if the card's stamp is missing.
    pub(crate) kernel: Option<u64>,
}

impl StampedBy {
    /// Stamps of a frame with `value` read from the clock of that number.
    pub(crate) fn stamped(self, value: u64, clock: u32) -> Stamped {
        if self == Self::Card && clock != clock::CARD {
            Stamped { raw: card_stamps::NONE, kernel: Some(value) }
        } else {
            Stamped { raw: value, kernel: None }
        }
    }

    /// Whether the program stamps.
    pub(crate) fn is_by_program(self) -> bool {
        !matches!(self, Self::Reader { .. })
    }

    /// Name of the program for `hook`.
    fn program(self, hook: Hook) -> String {
        let prefix = match hook {
            Hook::Xdp => "",
            Hook::Tc => "tc_",
        };
        let name = match self {
            Self::Reader { .. } => "unstamped",
            Self::Counter { function, .. } => function.program(),
            Self::Kernel => "stamped_by_kernel",
            Self::Card => "stamped_by_card",
        };
        prefix.to_owned() + name
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
        let name = self.program(hook);
        for mut program in object.progs_mut() {
            let chosen = program.name() == name.as_str();
            program.set_autoload(chosen);
            if chosen && self == Self::Card {
                // A bound program can be attached only to this interface, so only this program is bound.
                program.set_ifindex(interface.index.cast_unsigned());
                program.set_flags(BPF_F_XDP_DEV_BOUND_ONLY);
            }
        }
        let Some(filter) = filter else { return Ok(()) };
        let passes = hook.passes(filter)?;
        with_filter::prepare(object).map_err(refused)?;
        let mut chosen = object.progs_mut().filter(|program| program.autoload());
        chosen
            .try_for_each(|mut program| with_filter::insert(&mut program, &passes))
            .map_err(refused)
    }

    /// Attaches this program of a loaded `object` to `hook`; returns where the kernel runs it.
    pub(crate) fn attach(
        self,
        hook: Hook,
        object: &Object,
        interface: &Interface,
    ) -> libbpf_rs::Result<(Attached, Place)> {
        let name = self.program(hook);
        let program = object.progs_mut().find(|program| program.name() == name.as_str());
        let program =
            program.ok_or_else(|| io::Error::other(format!("no program is called {name}")))?;
        hook.attach(&program, interface)
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

    #[test]
    fn unstamped_by_card_has_marked_kernel_stamp() {
        let by_card = StampedBy::Card;
        assert_eq!(by_card.stamped(7, clock::CARD), Stamped { raw: 7, kernel: None });
        let instead = Stamped { raw: card_stamps::NONE, kernel: Some(7) };
        for clock in [clock::MONOTONIC, u32::MAX] {
            assert_eq!(by_card.stamped(7, clock), instead);
        }
        let by_kernel = StampedBy::Kernel.stamped(7, clock::MONOTONIC);
        assert_eq!(by_kernel, Stamped { raw: 7, kernel: None });
    }
}
