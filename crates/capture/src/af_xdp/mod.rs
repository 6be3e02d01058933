//! `xdp`: an XDP program stamps each frame in the driver's softIRQ and redirects it (XDP_REDIRECT) to the AF_XDP
//! socket of its queue ([`crate::xsk`], `bpf/redirect.bpf.c`). The network stack does not receive it.
//!
//! Every queue of the interface has a socket, rings and memory of its own. The acquisition thread reads the receive
//! rings in turn. The last stage returns a frame's chunks to the fill ring of their queue ([`chunks`]). So each
//! ring has one owner.

mod chunks;
mod program;
mod queue;
mod stamp;

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;

use rustix::event::epoll;

use self::chunks::{ChunkMemory, FillRing};
use self::program::Program;
use self::queue::{Queue, QueueLayout};
use self::stamp::FrameStamper;
use crate::Error;
use crate::bpf_program::{Place, StampedBy};
use crate::filter::Filter;
use crate::interface::Interface;
use crate::packet_socket::{Promiscuous, Setup, longest_frame};
use crate::receiver::{Frame, FrameMemory, KernelCounts, Receiver};
use crate::xsk::Bound;

/// Capabilities that the sockets, the program and its link require.
pub(crate) const CAPABILITIES: &str = "cap_bpf,cap_net_admin,cap_net_raw,cap_perfmon";
/// Frames read from a queue per turn: enough to amortize the update of the ring, few enough for short waits of the
/// other queues.
const BATCH: usize = 64;

/// The attached program and its sockets. The program is detached on drop, and by the kernel when the process ends.
pub(crate) struct AfXdp {
    program: Program,
    queues: Vec<Queue>,
    /// The queue of the next turn.
    turn: usize,
    chunks: Arc<ChunkMemory>,
    stamper: FrameStamper,
    /// A level-triggered epoll instance over the sockets of all queues. No thread waits on it directly. It is readable
    /// while a ring has frames, and each new frame is an event for the edge-triggered epoll instance that watches it
    /// (`fs/eventpoll.c`, `ep_poll_callback`).
    events: OwnedFd,
    /// Whether the acquisition thread runs the driver's queues when it finds no frame (busy polling).
    busy_polls: bool,
    _promiscuous: Option<Promiscuous>,
}

/// Properties of the opened receiver.
#[derive(Clone, Debug)]
pub(crate) struct OpenedProperties {
    /// Where the program runs.
    pub(crate) place: Place,
    /// Max bytes kept of each frame.
    pub(crate) snaplen: u32,
    /// Notes for the user where the receiver has less than was requested.
    pub(crate) notes: Vec<String>,
}

impl AfXdp {
    /// Opens a socket for every queue of `interface` and attaches the program. The queues share the requested
    /// memory.
    pub(crate) fn open(
        interface: &Interface,
        filter: Option<&Filter>,
        setup: &Setup,
        stamped_by: StampedBy,
    ) -> Result<(Self, OpenedProperties), Error> {
        let failed = |what| move |e| Error::system(what, &interface.name, CAPABILITIES, e);
        let reported = interface.receive_queues().map_err(failed("count the queues"))?;
        let count = reported.unwrap_or(1);
        let layout = QueueLayout::new(longest_frame(interface)?, setup.bytes, count);
        let promiscuous = setup.promiscuous.then(|| Promiscuous::enter(interface));
        let promiscuous = promiscuous.transpose().map_err(failed("see all packets"))?;
        let (mut queues, mut fill_rings) = (Vec::new(), Vec::new());
        for number in 0..count {
            let (queue, fill) = Queue::open(interface, number, layout)?;
            fill_rings.push(FillRing::new(fill, Arc::clone(queue.socket())));
            queues.push(queue);
        }
        let events = watch(&queues).map_err(failed("wait for packets"))?;
        let busy_poll = if setup.spins { busy_poll(&queues) } else { Ok(false) };
        let mut notes = Vec::from_iter(notes_on_copies(interface, &queues));
        notes.extend(busy_poll.as_ref().err().cloned());
        notes.extend(reported.is_none().then(|| only_one_queue(interface)));
        // Last: frames arrive from here on.
        let (program, place) = Program::attach(interface, filter, &queues, stamped_by)?;
        let receiver = Self {
            program,
            queues,
            turn: 0,
            chunks: Arc::new(ChunkMemory::new(fill_rings, layout.chunks())),
            stamper: FrameStamper::new(stamped_by),
            events,
            busy_polls: busy_poll.unwrap_or(false),
            _promiscuous: promiscuous,
        };
        Ok((receiver, OpenedProperties { place, snaplen: setup.snaplen.min(layout.room()), notes }))
    }

    /// Whether frames arrive stamped.
    pub(crate) fn is_stamped(&self) -> bool {
        self.stamper.is_by_program()
    }
}

/// Notes where frames are copied, and where frames larger than a chunk are dropped.
fn notes_on_copies(interface: &Interface, queues: &[Queue]) -> impl Iterator<Item = String> {
    let any = |is: fn(Bound) -> bool| queues.iter().any(|queue| is(queue.bound()));
    let copied = any(|bound| !bound.zero_copy).then(|| {
        format!(
            "the kernel copies each packet: {}'s driver has no zero-copy mode for AF_XDP",
            interface.name
        )
    });
    let cut = any(|bound| !bound.zero_copy && !bound.multi_buffer).then(|| {
        "packets larger than a chunk of memory are dropped and counted: AF_XDP supports packets in \
         several pieces since Linux 6.6"
            .to_owned()
    });
    copied.into_iter().chain(cut)
}

fn only_one_queue(interface: &Interface) -> String {
    format!(
        "{}'s driver does not report its number of queues: the first is captured; packets of \
         others are counted as dropped and pass to the network stack",
        interface.name
    )
}

/// Enables busy polling of the driver's queues. The error is a note for the user.
fn busy_poll(queues: &[Queue]) -> Result<bool, String> {
    for queue in queues {
        queue.socket().busy_poll().map_err(|cause| {
            format!(
                "the stamper thread does not poll the driver's queues: {cause}; this requires \
                 cap_net_admin and Linux 5.11 or later with CONFIG_NET_RX_BUSY_POLL"
            )
        })?;
    }
    Ok(true)
}

/// An epoll instance that is readable while a queue has frames.
fn watch(queues: &[Queue]) -> io::Result<OwnedFd> {
    let events = epoll::create(epoll::CreateFlags::CLOEXEC)?;
    for queue in queues {
        let data = epoll::EventData::new_u64(0); // all queues are read anyway
        epoll::add(&events, queue.socket().as_fd(), data, epoll::EventFlags::IN)?;
    }
    Ok(events)
}

impl Receiver for AfXdp {
    fn frame_memory(&self) -> Arc<dyn FrameMemory> {
        Arc::clone(&self.chunks) as _
    }

    fn capacity(&self) -> usize {
        self.chunks.per_queue()
    }

    fn acquire(&mut self, room: usize, mut take: impl FnMut(Frame)) -> usize {
        let mut taken = 0;
        for _ in 0..self.queues.len() {
            let room = BATCH.min(room - taken);
            let queue = &mut self.queues[self.turn];
            taken += queue.acquire(room, &self.chunks, &mut self.stamper, &mut take);
            self.turn = (self.turn + 1) % self.queues.len();
        }
        if taken == 0 && self.busy_polls {
            for queue in &self.queues {
                // The acquisition thread checks separately whether the interface is down.
                let _ = queue.socket().wake_receive();
            }
        }
        taken
    }

    /// Always false: released chunks return to the kernel at once, with a wake-up if necessary.
    fn is_exhausted(&self) -> bool {
        false
    }

    fn descriptor(&self) -> BorrowedFd<'_> {
        self.events.as_fd()
    }

    fn close_intake(&mut self) -> io::Result<()> {
        self.program.detach();
        Ok(())
    }

    fn counts(&mut self) -> io::Result<KernelCounts> {
        let counts = &mut self.program.counts;
        let (seen, not_redirected) = (counts.seen()?, counts.dropped()?);
        let (mut ring_full, mut no_chunk) = (0, 0);
        for queue in &self.queues {
            let statistics = queue.socket().statistics()?;
            ring_full += statistics.ring_full;
            no_chunk += statistics.dropped;
        }
        Ok(KernelCounts {
            seen,
            dropped: not_redirected + ring_full + no_chunk,
            stamped_late: self.stamper.late(),
            fill_ring_empty: no_chunk,
        })
    }
}
