//! Counts of recorded and lost events.

use serde::Serialize;

/// Counts of one CPU's ring, from `per_cpu/cpuN/stats`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct RingStatistics {
    /// Events in the ring that were not read.
    entries: u64,
    /// Events that newer ones overwrote.
    overrun: u64,
    /// Events that found no room because an event that they interrupted was not complete.
    commit_overrun: u64,
    /// Events that found no room in a ring that does not overwrite.
    dropped: u64,
    /// Events that were read.
    read: u64,
}

impl RingStatistics {
    /// The counts in the text of the file; none if one is missing.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let count = |name: &str| {
            let value =
                |line: &str| line.strip_prefix(name)?.strip_prefix(':')?.trim().parse().ok();
            text.lines().find_map(value)
        };
        Some(Self {
            entries: count("entries")?,
            overrun: count("overrun")?,
            commit_overrun: count("commit overrun")?,
            dropped: count("dropped events")?,
            read: count("read events")?,
        })
    }

    /// Events in the ring that were not read.
    pub(super) const fn unread(&self) -> u64 {
        self.entries
    }
}

/// Counts of one CPU's events. Serialises with these names.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CpuLedger {
    /// The CPU.
    pub cpu: u32,
    /// Events that occurred: all of those below.
    pub recorded: u64,
    /// Events that the sink received.
    pub delivered: u64,
    /// Events that newer ones overwrote, because the ring was full.
    pub overwritten: u64,
    /// Events without room in the ring, because an event that they interrupted was not complete, or the ring full.
    pub no_room: u64,
    /// Events that were read but not delivered: their form is unknown, or the sink failed.
    pub undelivered: u64,
    /// Events left in the ring at the end.
    pub left_behind: u64,
}

impl CpuLedger {
    /// The counts of the kernel and of the reader.
    pub(super) fn of(cpu: u32, kernel: &RingStatistics, delivered: u64) -> Self {
        let RingStatistics { entries, overrun, commit_overrun, dropped, read } = *kernel;
        let no_room = commit_overrun + dropped;
        Self {
            cpu,
            recorded: entries + overrun + no_room + read,
            delivered,
            overwritten: overrun,
            no_room,
            undelivered: read.saturating_sub(delivered),
            left_behind: entries,
        }
    }
}

/// Counts of all events of a recorder. Serialises with these names.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct EventLedger {
    /// Events that occurred while the recorder ran, counted by the kernel: `delivered` and `lost`.
    pub recorded: u64,
    /// Events that the sink received.
    pub delivered: u64,
    /// Events that occurred but did not reach the sink.
    pub lost: u64,
    /// The counts of each CPU with events.
    pub cpus: Vec<CpuLedger>,
}

impl EventLedger {
    /// The sums over these CPUs.
    pub(super) fn of(cpus: Vec<CpuLedger>) -> Self {
        let cpus: Vec<_> =
            cpus.into_iter().filter(|cpu| cpu.recorded > 0 || cpu.delivered > 0).collect();
        let sum = |count: fn(&CpuLedger) -> u64| cpus.iter().map(count).sum();
        let lost = sum(|cpu| cpu.overwritten + cpu.no_room + cpu.undelivered + cpu.left_behind);
        Self { recorded: sum(|it| it.recorded), delivered: sum(|it| it.delivered), lost, cpus }
    }

    /// Whether the kernel's counts and the reader's agree on each CPU.
    #[must_use]
    pub fn balances(&self) -> bool {
        self.cpus.iter().all(|cpu| {
            let lost = cpu.overwritten + cpu.no_room + cpu.undelivered + cpu.left_behind;
            cpu.recorded == cpu.delivered + lost
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const STATS: &str = "entries: 3\noverrun: 40\ncommit overrun: 2\nbytes: 108\noldest event ts: 7\n\
                         now ts: 9\ndropped events: 5\nread events: 600\n";

    #[test]
    fn every_event_has_one_outcome() {
        let kernel = RingStatistics::parse(STATS).unwrap();
        assert_eq!(kernel.unread(), 3);
        let cpu = CpuLedger::of(1, &kernel, 590);
        assert_eq!((cpu.recorded, cpu.no_room, cpu.undelivered), (650, 7, 10));
        let ledger = EventLedger::of(vec![cpu, CpuLedger::default()]);
        assert_eq!((ledger.recorded, ledger.delivered, ledger.lost), (650, 590, 60));
        assert!(ledger.balances() && ledger.cpus.len() == 1, "{ledger:?}");
    }

    #[test]
    fn more_delivered_events_than_read_ones_do_not_balance() {
        let kernel = RingStatistics::parse(STATS).unwrap();
        assert!(!EventLedger::of(vec![CpuLedger::of(0, &kernel, 601)]).balances());
    }

    #[test]
    fn statistics_without_a_count_are_rejected() {
        assert_eq!(RingStatistics::parse(&STATS.replace("overrun", "overran")), None);
        assert_eq!(RingStatistics::parse(""), None);
    }
}
