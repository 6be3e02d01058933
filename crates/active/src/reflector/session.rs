//! What a reflector remembers of those that it answers.

use std::collections::HashMap;
use std::net::{IpAddr, SocketAddr};

use wirestamp_packet::stamp::{FollowUp, StampMethod, Stamped};

/// Sessions that are remembered; one takes about 100 bytes.
const MOST: usize = 1 << 16;

/// What makes a session (RFC 8972 section 3): addresses, ports, and the sender's own number for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct SessionId {
    /// The sender.
    pub from: SocketAddr,
    /// The reflector's address that it sends to.
    pub to: Option<IpAddr>,
    /// The sender's number for the session.
    pub number: u16,
}

/// What is remembered of a session.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Session {
    /// The number of the next answer.
    pub(super) next: u32,
    /// The last answer of which it is known when it left, and when that was.
    pub(super) last: Option<(u32, Stamped)>,
    /// When it was last used, in answers of all sessions.
    used: u64,
}

impl Session {
    /// What is told with answer `number` of the one before it.
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

/// The sessions that are remembered.
#[derive(Debug, Default)]
pub(super) struct Sessions {
    known: HashMap<SessionId, Session>,
    used: u64,
}

impl Sessions {
    /// A session, whether it is new, and whether others had to be forgotten for it.
    pub(super) fn of(&mut self, id: SessionId) -> (&mut Session, bool, usize) {
        self.used += 1;
        let is_new = !self.known.contains_key(&id);
        let forgotten = if is_new && self.known.len() >= MOST { self.forget() } else { 0 };
        let session = self.known.entry(id).or_default();
        session.used = self.used;
        (session, is_new, forgotten)
    }

    /// Forgets the half that was not used for longest, so that what a flood of sessions costs is spread.
    fn forget(&mut self) -> usize {
        let before = self.known.len();
        let mut used: Vec<u64> = self.known.values().map(|session| session.used).collect();
        let (_, median, _) = used.select_nth_unstable(before / 2);
        let median = *median;
        self.known.retain(|_, session| session.used > median);
        before - self.known.len()
    }

    pub(super) fn get_mut(&mut self, id: &SessionId) -> Option<&mut Session> {
        self.known.get_mut(id)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flood_of_sessions_takes_bounded_memory_and_spares_those_in_use() {
        let mut sessions = Sessions::default();
        let id = |port: usize| SessionId {
            from: ([192, 0, 2, 1], u16::try_from(port % (1 << 16)).unwrap()).into(),
            to: None,
            number: u16::try_from(port >> 16).unwrap(),
        };
        sessions.of(id(0)).0.next = 7;
        let mut forgotten = 0;
        for port in 1..3 * MOST {
            forgotten += sessions.of(id(port)).2;
            assert_eq!(sessions.of(id(0)).0.next, 7);
            assert!(sessions.known.len() <= MOST);
        }
        assert_eq!(forgotten + sessions.known.len(), 3 * MOST);
    }
}
