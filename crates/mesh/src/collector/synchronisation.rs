//! Clock offset between two machines.

use crate::protocol::MachineClock;
use serde::{Deserialize, Serialize};
use strum::{AsRefStr, EnumString};
use thiserror::Error;
use utoipa::ToSchema;
use wirestamp_clock::Span;

/// Why the delay between two machines is not known.
#[derive(
    Clone, Copy, Debug, Error, PartialEq, Eq, Deserialize, Serialize, ToSchema, EnumString, AsRefStr,
)]
#[serde(rename_all = "kebab-case")]
#[strum(serialize_all = "kebab-case")]
pub enum NotSynchronised {
    /// A's clock is not synchronised.
    #[error("the clock of the first point's machine is not synchronised to UTC")]
    First,
    /// B's clock is not synchronised.
    #[error("the clock of the second point's machine is not synchronised to UTC")]
    Second,
    /// The state of a clock is unknown.
    #[error("the state of the clocks is unknown")]
    Unknown,
}

/// Max offset between the clocks of both points: zero on one machine, the sum of both errors on two.
///
/// # Errors
/// When a clock is not synchronised.
pub(super) fn offset<'a>(
    first: impl Iterator<Item = &'a MachineClock>,
    second: impl Iterator<Item = &'a MachineClock>,
) -> Result<Span, NotSynchronised> {
    let (first, second) = (worst(first), worst(second));
    let (first, second) = first.zip(second).ok_or(NotSynchronised::Unknown)?;
    if first.machine.is_some() && first.machine == second.machine {
        return Ok(Span::ZERO);
    }
    let first = first.error.ok_or(NotSynchronised::First)?;
    Ok(first + second.error.ok_or(NotSynchronised::Second)?)
}

/// Worst clock state of a point.
struct Worst {
    /// None if the machine was rebooted meanwhile.
    machine: Option<[u8; 16]>,
    error: Option<Span>,
}

fn worst<'a>(clocks: impl Iterator<Item = &'a MachineClock>) -> Option<Worst> {
    let worst = |clock: &MachineClock| Worst { machine: Some(clock.machine), error: clock.error };
    clocks.map(worst).reduce(|one, other| Worst {
        machine: one.machine.filter(|_| one.machine == other.machine),
        error: one.error.zip(other.error).map(|(one, other)| one.max(other)),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn clock(machine: u8, error: Option<i64>) -> MachineClock {
        MachineClock { machine: [machine; 16], error: error.map(Span::from_nanos) }
    }

    #[test]
    fn worst_error_counts_and_one_machine_has_no_offset() {
        let of =
            |first: &[MachineClock], second: &[MachineClock]| offset(first.iter(), second.iter());
        let good = [clock(1, Some(100)), clock(1, Some(300)), clock(1, Some(200))];
        assert_eq!(of(&good, &[clock(2, Some(50))]), Ok(Span::from_nanos(350)));
        assert_eq!(of(&[clock(1, None)], &[clock(1, None)]), Ok(Span::ZERO));
        let lost = [good[0], clock(1, None), good[1]];
        assert_eq!(of(&lost, &[clock(2, Some(50))]), Err(NotSynchronised::First));
        assert_eq!(of(&good, &[clock(2, None)]), Err(NotSynchronised::Second));
        assert_eq!(of(&good, &[]), Err(NotSynchronised::Unknown));
        // After a reboot, both may be one machine or two.
        let again = [clock(1, None), clock(3, None)];
        assert_eq!(of(&again, &again), Err(NotSynchronised::First));
    }
}
