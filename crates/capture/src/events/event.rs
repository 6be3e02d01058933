//! A recorded event.

use strum::{Display, IntoStaticStr};

use super::format::{EventFormat, Value};
use super::page::Missed;

/// What the CPU executed when an event occurred.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Display, IntoStaticStr)]
#[strum(serialize_all = "lowercase")]
pub enum Context {
    /// A non-maskable interrupt.
    Nmi,
    /// A hardware interrupt.
    HardIrq,
    /// A softIRQ, on return from an interrupt or in `ksoftirqd`.
    SoftIrq,
    /// A task: a process or a kernel thread.
    Task,
}

impl Context {
    /// The context in `common_flags` (`enum trace_flag_type` of linux/trace_events.h).
    #[must_use]
    pub const fn of(flags: u8) -> Self {
        match flags {
            _ if flags & 0x40 != 0 => Self::Nmi,
            _ if flags & 0x08 != 0 => Self::HardIrq,
            _ if flags & 0x10 != 0 => Self::SoftIrq,
            _ => Self::Task,
        }
    }

    /// The name in files: `nmi`, `hardirq`, `softirq` or `task`.
    #[must_use]
    pub fn name(self) -> &'static str {
        self.into()
    }
}

/// An event of the kernel, as the ring contains it.
#[derive(Clone, Copy, Debug)]
pub struct TraceEvent<'a> {
    /// Stamp in the unit of the trace clock ([`super::TraceClock`]).
    pub raw: u64,
    /// The CPU on which it occurred.
    pub cpu: u32,
    /// Events lost on this CPU since its previous event.
    pub lost_before: Missed,
    /// The event's fields.
    pub(super) format: &'a EventFormat,
    /// The fields' values.
    pub(super) record: &'a [u8],
}

impl<'a> TraceEvent<'a> {
    /// `SYSTEM:EVENT`.
    #[must_use]
    pub fn name(&self) -> &'a str {
        self.format.name()
    }

    /// `common_flags`; none if the record is too short.
    #[must_use]
    pub fn flags(&self) -> Option<u8> {
        self.number("common_flags").and_then(|flags| flags.try_into().ok())
    }

    /// What the CPU executed; none if the record is too short.
    #[must_use]
    pub fn context(&self) -> Option<Context> {
        self.flags().map(Context::of)
    }

    /// The process or thread that the CPU executed, or that an interrupt interrupted; 0 is the idle task. None if the
    /// record is too short.
    #[must_use]
    pub fn pid(&self) -> Option<u64> {
        self.number("common_pid")
    }

    /// The value of a field; none if the event has no such field.
    #[must_use]
    pub fn field(&self, name: &str) -> Option<Value<'a>> {
        self.format.field(name)?.value(self.record)
    }

    /// The value of a field as a number; none if it is no number.
    #[must_use]
    pub fn number(&self, name: &str) -> Option<u64> {
        self.field(name)?.number()
    }

    /// The name of the network interface, in its own namespace; none if the event has none.
    #[must_use]
    pub fn interface(&self) -> Option<Value<'a>> {
        self.format.interface()?.value(self.record)
    }

    /// Names and values of the event's own fields, in the kernel's order.
    pub fn fields(&self) -> impl Iterator<Item = (&'a str, Value<'a>)> {
        let (format, record) = (self.format, self.record);
        format.fields().iter().filter_map(|field| Some((field.name(), field.value(record)?)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn innermost_context_is_named() {
        let names = [0, 0x80, 0x11, 0x18, 0x58].map(|flags| Context::of(flags).name());
        assert_eq!(names, ["task", "task", "softirq", "hardirq", "nmi"]);
    }
}
