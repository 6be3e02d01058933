//! The XDP program that stamps frames and redirects them to the sockets (`bpf/redirect.bpf.c`).

use std::mem::MaybeUninit;
use std::os::fd::{AsFd, AsRawFd};

use libbpf_rs::skel::{OpenSkel, Skel};
use libbpf_rs::{MapCore, MapFlags};

use super::CAPABILITIES;
use super::queue::Queue;
use crate::Error;
use crate::bpf_program::{Attached, Counts, Hook, Place, StampedBy, loaded, opened, refused};
use crate::filter::Filter;
use crate::interface::Interface;
use crate::skeletons::redirect::RedirectSkelBuilder;

/// The attached program. It is detached on drop, and by the kernel when the process ends, because the link is a
/// file descriptor.
pub(super) struct Program {
    link: Option<Attached>,
    pub(super) counts: Counts,
}

impl Program {
    /// Loads the program for the sockets of `queues`, numbered from 0, and attaches it. From then on, frames that
    /// pass `filter` arrive at the sockets.
    pub(super) fn attach(
        interface: &Interface,
        filter: Option<&Filter>,
        queues: &[Queue],
        stamped_by: StampedBy,
    ) -> Result<(Self, Place), Error> {
        let refused = refused(Hook::Xdp, interface, CAPABILITIES);
        let mut object = MaybeUninit::uninit();
        let mut open = opened(RedirectSkelBuilder::default(), &mut object).map_err(refused)?;
        let count = u32::try_from(queues.len()).unwrap_or(u32::MAX);
        open.maps.sockets.set_max_entries(count).map_err(refused)?;
        stamped_by.choose(Hook::Xdp, open.open_object_mut(), interface, filter, refused)?;
        let skeleton = loaded(open, filter, refused)?;
        for (number, queue) in (0_u32..).zip(queues) {
            let socket = queue.socket().as_fd().as_raw_fd();
            let (key, value) = (number.to_ne_bytes(), socket.to_ne_bytes());
            skeleton.maps.sockets.update(&key, &value, MapFlags::ANY).map_err(refused)?;
        }
        let counts = Counts::of(&skeleton.maps.counts).map_err(refused)?;
        let (link, place) =
            stamped_by.attach(Hook::Xdp, skeleton.object(), interface).map_err(refused)?;
        Ok((Self { link: Some(link), counts }, place))
    }

    /// Stops the arrival of new frames.
    pub(super) fn detach(&mut self) {
        self.link = None;
    }
}
