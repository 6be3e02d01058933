//! A reflector's table of sessions.

use std::collections::HashMap;
use std::net::{IpAddr, SocketAddr};

use wirestamp_packet::stamp::{FollowUp, StampMethod, Stamped};

use super::rate_limit::Credit;

/// Max sessions in the table; each takes about 130 bytes.
const MAX_SESSIONS: usize = 1 << 16;

/// Identity of a session (RFC 8972 section 3): addresses, ports, and the sender's number for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct SessionId {
    /// The sender's address.
    pub from: SocketAddr,
    /// The reflector's address.
    pub to: Option<IpAddr>,
    /// The sender's number for the session.
    pub number: u16,
}

/// State of a session.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Session {
    /// The number of the next answer.
    pub(super) next: u32,
    /// Number and transmit stamp of the last answer with a known stamp.
    pub(super) last: Option<(u32, Stamped)>,
    /// What it may still be answered.
    pub(super) credit: Credit,
    /// Last use, counted in answers of all sessions.
    used: u64,
}

impl Session {
    /// The follow-up in answer `number`: the transmit stamp of the previous answer.
    pub(super) fn follow_up(&self, number: u32) -> FollowUp {
        let before = number.wrapping_sub(1);
        match self.last {
            Some((number, left)) if number == before => {
                FollowUp { number, left, how: StampMethod::Local as u8 }
            }
            _ => FollowUp::default(),
        }
    }
}

/// The table of sessions.
#[derive(Debug, Default)]
pub(super) struct Sessions {
    table: HashMap<SessionId, Session>,
    used: u64,
}

impl Sessions {
    /// A session, whether it is new, and the number of sessions evicted for it.
    pub(super) fn of(&mut self, id: SessionId) -> (&mut Session, bool, usize) {
        self.used += 1;
        let is_new = !self.table.contains_key(&id);
        let forgotten = if is_new && self.table.len() >= MAX_SESSIONS { self.evict() } else { 0 };
        let session = self.table.entry(id).or_default();
        session.used = self.used;
        (session, is_new, forgotten)
    }

    /// Evicts the longest idle half, so that the cost of a flood of sessions is amortized.
    fn evict(&mut self) -> usize {
        let before = self.table.len();
        let mut used: Vec<u64> = self.table.values().map(|session| session.used).collect();
        let (_, median, _) = used.select_nth_unstable(before / 2);
        let median = *median;
        self.table.retain(|_, session| session.used > median);
        before - self.table.len()
    }

    pub(super) fn get_mut(&mut self, id: &SessionId) -> Option<&mut Session> {
        self.table.get_mut(id)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn session_flood_is_bounded_and_keeps_active_sessions() {
        let mut sessions = Sessions::default();
        let id = |port: usize| SessionId {
            from: ([192, 0, 2, 1], u16::try_from(port % (1 << 16)).unwrap()).into(),
            to: None,
            number: u16::try_from(port >> 16).unwrap(),
        };
        sessions.of(id(0)).0.next = 7;
        let mut forgotten = 0;
        for port in 1..3 * MAX_SESSIONS {
            forgotten += sessions.of(id(port)).2;
            assert_eq!(sessions.of(id(0)).0.next, 7);
            assert!(sessions.table.len() <= MAX_SESSIONS);
        }
        assert_eq!(forgotten + sessions.table.len(), 3 * MAX_SESSIONS);
    }
}
