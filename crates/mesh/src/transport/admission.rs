//! Limits of connections, so that strangers cannot use up the room of members.
//!
//! An address is known once a connection from it had a valid certificate. Unknown addresses share a limit, and each
//! address has one of its own. After a restart all addresses are unknown: where the shared limit is reached, the address
//! with the most connections loses its oldest one to an address with fewer.

use std::collections::{HashMap, HashSet, VecDeque};
use std::net::{IpAddr, Ipv6Addr};
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::oneshot;

/// Max connections without a verified certificate, during the handshake or after it, of one address.
const MAX_UNKNOWN: usize = 32;
const MAX_KNOWN: usize = 256;

/// Max such connections of all unknown addresses.
const MAX_ALL_UNKNOWN: usize = 512;

/// Max known addresses; further ones count as unknown.
const MAX_ADDRESSES: usize = 100_000;

/// The connections without a verified certificate.
#[derive(Debug, Default)]
pub(super) struct Admission(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    known: HashSet<IpAddr>,
    /// Connections of each address, the oldest first.
    open: HashMap<IpAddr, VecDeque<Open>>,
    /// Open connections whose address was unknown.
    unknown: usize,
    /// Connections so far.
    admitted: u64,
}

/// An open connection.
#[derive(Debug)]
struct Open {
    number: u64,
    is_known: bool,
    /// Dropped to close it.
    _close: oneshot::Sender<()>,
}

/// A place of a connection. It is free again when it is dropped.
#[derive(Debug)]
pub(super) struct Place {
    admission: Arc<Admission>,
    address: IpAddr,
    number: u64,
}

/// Completes when a connection must close, because its place was given away.
pub(super) type Closing = oneshot::Receiver<()>;

impl Admission {
    /// A place for a connection from this address; none if its limit is reached.
    pub(super) fn admit(self: &Arc<Self>, address: IpAddr) -> Option<(Place, Closing)> {
        let address = network(address);
        let mut state = self.0.lock();
        let is_known = state.known.contains(&address);
        let limit = if is_known { MAX_KNOWN } else { MAX_UNKNOWN };
        let open = state.open.get(&address).map_or(0, VecDeque::len);
        let is_full = !is_known && state.unknown >= MAX_ALL_UNKNOWN;
        if open >= limit || (is_full && !state.make_room(open)) {
            return None;
        }
        state.unknown += usize::from(!is_known);
        state.admitted += 1;
        let (number, (close, closing)) = (state.admitted, oneshot::channel());
        let connection = Open { number, is_known, _close: close };
        state.open.entry(address).or_default().push_back(connection);
        drop(state);
        Some((Place { admission: Arc::clone(self), address, number }, closing))
    }
}

impl State {
    /// Closes the oldest connection of the unknown address that has the most, if that is more than `open`.
    fn make_room(&mut self, open: usize) -> bool {
        let strangers = self.open.iter().filter(|(address, _)| !self.known.contains(*address));
        let fullest = strangers.max_by_key(|(_, connections)| connections.len());
        let fullest = fullest.filter(|(_, connections)| connections.len() > open);
        let Some((address, oldest)) =
            fullest.and_then(|(it, all)| Some((*it, all.front()?.number)))
        else {
            return false;
        };
        self.remove(address, oldest);
        true
    }

    fn remove(&mut self, address: IpAddr, number: u64) {
        let Some(connections) = self.open.get_mut(&address) else { return };
        let place = connections.iter().position(|it| it.number == number);
        if let Some(removed) = place.and_then(|place| connections.remove(place)) {
            self.unknown -= usize::from(!removed.is_known);
        }
        if connections.is_empty() {
            self.open.remove(&address);
        }
    }
}

impl Place {
    /// Frees the place of a connection with a valid certificate. Its address is known from now on.
    pub(super) fn verified(self) {
        let mut state = self.admission.0.lock();
        if state.known.len() < MAX_ADDRESSES {
            state.known.insert(self.address);
        }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.admission.0.lock().remove(self.address, self.number);
    }
}

/// What a single host has: an IPv4 address, or an IPv6 network of 64 bits (RFC 4291 section 2.5.4).
fn network(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V4(it) => it.into(),
        IpAddr::V6(it) => Ipv6Addr::from_bits(it.to_bits() >> 64 << 64).into(),
    }
}

#[cfg(test)]
mod tests {
    use oneshot::error::TryRecvError::{Closed, Empty};

    use super::*;

    fn host(number: u32) -> IpAddr {
        std::net::Ipv4Addr::from_bits(0xc000_0200 + number).into()
    }

    /// Opens connections from an address until there is no place.
    fn fill(admission: &Arc<Admission>, address: IpAddr) -> Vec<(Place, Closing)> {
        std::iter::from_fn(|| admission.admit(address)).take(1000).collect()
    }

    fn closed(places: &mut [(Place, Closing)]) -> usize {
        places
            .iter_mut()
            .filter_map(|(_, it)| it.try_recv().err())
            .filter(|it| *it == Closed)
            .count()
    }

    #[test]
    fn strangers_leave_room_for_members() {
        let admission = Arc::<Admission>::default();
        admission.admit(host(0)).unwrap().0.verified();
        let mut strangers: Vec<_> = (1..=16).map(|it| fill(&admission, host(it))).collect();
        assert!(strangers.iter_mut().all(|it| it.len() == MAX_UNKNOWN && closed(it) == 0));
        assert_eq!(fill(&admission, host(0)).len(), MAX_KNOWN);
        drop(strangers);
        assert_eq!(fill(&admission, host(200)).len(), MAX_UNKNOWN);
        assert_eq!(admission.0.lock().unknown, 0);
    }

    #[test]
    fn address_with_the_most_connections_loses_its_oldest_to_another() {
        let admission = Arc::<Admission>::default();
        let mut strangers: Vec<_> = (1..=16).flat_map(|it| fill(&admission, host(it))).collect();
        let (mut member, mut closing) = admission.admit(host(17)).unwrap();
        assert_eq!((closed(&mut strangers), closing.try_recv()), (1, Err(Empty)));
        // The place was free when its connection closed.
        let (victims, mut strangers): (Vec<_>, Vec<_>) =
            strangers.into_iter().partition(|(_, closing)| closing.is_terminated());
        assert_eq!(admission.0.lock().unknown, MAX_ALL_UNKNOWN);
        // A full address takes no place of another.
        let full = [1, 2].map(host).into_iter().find(|it| *it != victims[0].0.address).unwrap();
        assert!(admission.admit(full).is_none() && closed(&mut strangers) == 0);
        // Each address has a place of its own.
        for number in 18..200 {
            drop(std::mem::replace(&mut member, admission.admit(host(number)).unwrap().0));
        }
        member.verified();
        assert_eq!(fill(&admission, host(199)).len(), MAX_KNOWN);
    }

    #[test]
    fn host_is_an_address_or_a_network_of_64_bits() {
        let network = |text: &str| network(text.parse().unwrap()).to_string();
        assert_eq!(network("::ffff:192.0.2.1"), "192.0.2.1");
        assert_eq!(network("2001:db8:1:2:3:4:5:6"), "2001:db8:1:2::");
    }
}
