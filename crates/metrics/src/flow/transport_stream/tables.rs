//! Tables of a transport stream: which programs and elementary streams it has, and their errors.

use wirestamp_clock::{Span, Time, Utc};
use wirestamp_packet::transport_stream::{Section, has_correct_checksum};

use super::{MAX_PARTS, TransportStream};

/// PID and table of the program association table (ISO/IEC 13818-1 tables 2-3 and 2-31).
pub(super) const ASSOCIATION_PID: u16 = 0;
const ASSOCIATION_TABLE: u8 = 0;
/// Those of the conditional access table.
const ACCESS_PID: u16 = 1;
const ACCESS_TABLE: u8 = 1;
/// Table of a program map.
const MAP_TABLE: u8 = 2;
/// PIDs of the tables of DVB (ETSI EN 300 468 table 1): NIT; SDT and BAT; EIT; TDT and TOT.
const NETWORK_PID: u16 = 0x10;
const SERVICE_PID: u16 = 0x11;
const EVENT_PID: u16 = 0x12;
const TIME_PID: u16 = 0x14;

/// Errors of the conditional access table (TR 101 290 indicator 2.6).
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct ConditionalAccess {
    /// Sections of other tables on its PID.
    other_tables: u64,
    /// Periods with encrypted packets and without the table.
    missing: u64,
    has_table: bool,
    has_scrambled: bool,
    /// When the table came last, or an error was counted.
    since: Option<Time<Utc>>,
}

impl ConditionalAccess {
    /// Notes an encrypted packet.
    pub(super) fn record_scrambled(&mut self, time: Time<Utc>, period: Span) {
        self.has_scrambled = true;
        if time - *self.since.get_or_insert(time) > period {
            self.since = Some(time);
            self.missing += 1;
        }
    }

    fn record_table(&mut self, time: Time<Utc>) {
        self.has_table = true;
        self.since = Some(time);
    }

    pub(super) fn errors(&self) -> u64 {
        let is_missing = self.has_scrambled && !self.has_table;
        self.other_tables + self.missing.max(u64::from(is_missing))
    }
}

/// Whether a PID has tables whatever the program association table lists.
pub(super) const fn is_table_pid(pid: u16) -> bool {
    matches!(pid, ASSOCIATION_PID | ACCESS_PID | NETWORK_PID | SERVICE_PID | EVENT_PID | TIME_PID)
}

/// Whether a section has a checksum that TR 101 290 checks (2.2).
const fn is_checked(pid: u16, table: u8, is_map: bool) -> bool {
    match (pid, table) {
        (ASSOCIATION_PID, ASSOCIATION_TABLE) | (ACCESS_PID, ACCESS_TABLE) => true,
        (NETWORK_PID, 0x40 | 0x41) | (SERVICE_PID, 0x42 | 0x46 | 0x4a) => true,
        (EVENT_PID, 0x4e..=0x6f) | (TIME_PID, 0x73) => true,
        (_, MAP_TABLE) => is_map,
        _ => false,
    }
}

impl TransportStream {
    /// Records a whole section.
    pub(super) fn record_section(&mut self, pid: u16, bytes: &[u8], time: Time<Utc>) {
        let Some(table) = bytes.first().copied() else { return };
        match (pid, table) {
            (ASSOCIATION_PID, ASSOCIATION_TABLE) | (ACCESS_PID, ACCESS_TABLE) => {}
            (ASSOCIATION_PID, _) => self.counts.pat_errors += 1,
            (ACCESS_PID, _) => self.access.other_tables += 1,
            _ => {}
        }
        let is_map = self.parts.get(&pid).is_some_and(|part| part.listed_in.is_some());
        if !is_checked(pid, table, is_map) {
            return;
        }
        if !has_correct_checksum(bytes) {
            self.counts.crc_errors += 1;
            return;
        }
        let Ok(section) = Section::parse(bytes) else { return };
        match table {
            ASSOCIATION_TABLE => self.record_associations(&section, time),
            ACCESS_TABLE => self.access.record_table(time),
            MAP_TABLE => self.record_map(pid, &section, time),
            _ => {}
        }
    }

    /// Follows the program association table.
    fn record_associations(&mut self, section: &Section<'_>, time: Time<Utc>) {
        self.counts.pat_errors += self.parts.entry(ASSOCIATION_PID).or_default().table_came(time);
        if !section.is_current {
            return;
        }
        let maps = || section.associations().filter(|it| it.program != 0).map(|it| it.pid);
        let mut left = Vec::new();
        for (pid, part) in &mut self.parts {
            let Some(listed_in) = part.listed_in else { continue };
            let is_outdated = listed_in > section.last_number
                || listed_in == section.number && !maps().any(|map| map == *pid);
            if is_outdated {
                part.leave_association();
                left.push(*pid);
            }
        }
        let has_left = |by: Option<(u16, u16)>| by.is_some_and(|(map, _)| left.contains(&map));
        for part in self.parts.values_mut() {
            if has_left(part.mapped_by) {
                part.leave_map();
            }
            if has_left(part.referred_by) {
                part.leave_media();
            }
        }
        for map in maps() {
            if self.parts.len() < MAX_PARTS || self.parts.contains_key(&map) {
                let part = self.parts.entry(map).or_default();
                part.listed_in.get_or_insert(section.number);
                part.expect_table(time);
            }
        }
    }

    /// Follows a program map.
    fn record_map(&mut self, pid: u16, section: &Section<'_>, time: Time<Utc>) {
        let Some(part) = self.parts.get_mut(&pid) else { return };
        self.counts.pmt_errors += part.table_came(time);
        if !section.is_current {
            return;
        }
        // The PID of the clock may have neither audio nor video.
        let references = || {
            let streams = section.elementary_streams();
            let streams = streams.map(|it| (it.pid, it.is_continuous_medium()));
            streams.chain(section.clock_pid().map(|pid| (pid, false)))
        };
        let by = (pid, section.extension);
        for (pid, part) in &mut self.parts {
            if part.mapped_by == Some(by) && !references().any(|(of, _)| of == *pid) {
                part.leave_map();
            }
            if part.referred_by == Some(by) && !references().any(|it| it == (*pid, true)) {
                part.leave_media();
            }
        }
        for (pid, is_continuous) in references() {
            if self.parts.len() < MAX_PARTS || self.parts.contains_key(&pid) {
                self.parts.entry(pid).or_default().refer(by, is_continuous, time);
            }
        }
    }
}
