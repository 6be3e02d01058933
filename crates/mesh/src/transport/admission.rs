//! Limits of connections, so that strangers cannot use up the room of members.
//!
//! An address is known once a connection from it had a valid certificate. Unknown addresses share a limit, and each
//! address has one of its own.

use std::collections::{HashMap, HashSet};
use std::net::{IpAddr, Ipv6Addr};
use std::sync::Arc;

use parking_lot::Mutex;

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
    open: HashMap<IpAddr, usize>,
    /// Open connections of unknown addresses.
    unknown: usize,
}

/// A place of a connection. It is free again when it is dropped.
#[derive(Debug)]
pub(super) struct Place {
    admission: Arc<Admission>,
    address: IpAddr,
    is_known: bool,
}

impl Admission {
    /// A place for a connection from this address; none if its limit is reached.
    pub(super) fn admit(self: &Arc<Self>, address: IpAddr) -> Option<Place> {
        let address = network(address);
        let mut state = self.0.lock();
        let is_known = state.known.contains(&address);
        let limit = if is_known { MAX_KNOWN } else { MAX_UNKNOWN };
        let open = state.open.get(&address).copied().unwrap_or(0);
        if open >= limit || (!is_known && state.unknown >= MAX_ALL_UNKNOWN) {
            return None;
        }
        state.open.insert(address, open + 1);
        state.unknown += usize::from(!is_known);
        drop(state);
        Some(Place { admission: Arc::clone(self), address, is_known })
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
        let mut state = self.admission.0.lock();
        state.unknown -= usize::from(!self.is_known);
        let open = state.open.get(&self.address).copied().unwrap_or(0);
        if open <= 1 {
            state.open.remove(&self.address);
        } else {
            state.open.insert(self.address, open - 1);
        }
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
    use super::*;

    fn host(number: u32) -> IpAddr {
        std::net::Ipv4Addr::from_bits(0xc000_0200 + number).into()
    }

    #[test]
    fn strangers_leave_room_for_members() {
        let admission = Arc::<Admission>::default();
        admission.admit(host(0)).unwrap().verified();
        let of = |address| std::iter::from_fn(move || admission.clone().admit(address));
        let strangers: Vec<_> = (1..100).flat_map(|number| of.clone()(host(number))).collect();
        assert_eq!(strangers.len(), MAX_ALL_UNKNOWN);
        let per_host = strangers.iter().filter(|it| it.address == host(1)).count();
        assert_eq!(per_host, MAX_UNKNOWN);
        assert_eq!(of.clone()(host(0)).take(1000).collect::<Vec<_>>().len(), MAX_KNOWN);
        drop(strangers);
        assert_eq!(of(host(200)).collect::<Vec<_>>().len(), MAX_UNKNOWN);
    }

    #[test]
    fn host_is_an_address_or_a_network_of_64_bits() {
        let network = |text: &str| network(text.parse().unwrap()).to_string();
        assert_eq!(network("::ffff:192.0.2.1"), "192.0.2.1");
        assert_eq!(network("2001:db8:1:2:3:4:5:6"), "2001:db8:1:2::");
    }
}
