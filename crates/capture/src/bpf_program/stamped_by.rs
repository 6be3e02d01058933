//! Who stamps the frames that a program handles (`bpf/clocks.h`): an object file has a program for
//! each, and one of them is loaded.

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

/// Numbers of `enum clock`.
pub(crate) mod clock {
    pub(crate) const MONOTONIC: u32 = 0;
    pub(crate) const CARD: u32 = 1;
    pub(crate) const COUNTER: u32 = 2;
}

/// Who stamps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum StampedBy {
    /// Not the program, which cannot read the counter, but whoever reads what it hands over.
    Reader { counter: Counter, because: Obstacle },
    /// The program with the counter, which it has the kernel's function read when it begins. Where its
    /// stamp does not arrive, whoever reads what it hands over.
    Counter { counter: Counter, function: CounterFunction },
    /// The kernel, by its monotonic clock, when the program begins.
    Kernel,
    /// The network card, which the program asks for its stamp; where there is none, the kernel.
    Card,
}

/// What a frame was stamped with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Stamped {
    /// As [`crate::receiver::Frame::raw`].
    pub(crate) raw: u64,
    /// As [`crate::receiver::Frame::kernel`]: the kernel's stamp where there is none of the card.
    pub(crate) kernel: Option<u64>,
}

impl StampedBy {
    /// What a frame is stamped with to which a program gave `value` by the clock of that number.
    pub(crate) fn stamped(self, value: u64, clock: u32) -> Stamped {
        if self == Self::Card && clock != clock::CARD {
            Stamped { raw: card_stamps::NONE, kernel: Some(value) }
        } else {
            Stamped { raw: value, kernel: None }
        }
    }

    /// Whether the program stamps.
    pub(crate) fn is_program(self) -> bool {
        !matches!(self, Self::Reader { .. })
    }

    /// The name of the program for `hook`.
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

    /// Has `object` load this program for `hook` alone, for `interface` and with `filter` in it.
    /// Constants and sizes of maps have been set.
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
                // It can be attached nowhere else then, so the others are not bound.
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

    /// Attaches this program of a loaded `object` to `hook`; says where the kernel runs it.
    pub(crate) fn attach(
        self,
        hook: Hook,
        object: &Object,
        interface: &Interface,
    ) -> libbpf_rs::Result<(Attached, Place)> {
        let name = self.program(hook);
        let program = object.progs_mut().find(|program| program.name() == name.as_str());
        let program =
            program.ok_or_else(|| io::Error::other(format!("there is no program {name}")))?;
        hook.attach(&program, interface)
    }
}

impl CounterFunction {
    /// The name of the program that calls it.
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
    fn what_the_card_did_not_stamp_has_the_kernels_stamp_and_never_passes_for_the_cards() {
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
