//! `xdp`: an XDP program stamps each frame in the driver's softIRQ and gives it to the AF_XDP
//! socket of its queue ([`crate::xsk`], `bpf/redirect.bpf.c`). The network stack does not see it.
//!
//! Every queue of the interface has a socket, rings and memory of its own. The acquisition thread
//! takes frames from the receive rings in turn; whoever is done with a frame puts its chunks into
//! the fill ring of the queue that they came from ([`loans`]). So each ring has one owner.

mod loans;
mod program;
mod queue;
mod stamp;

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;

use rustix::event::epoll;

use self::loans::{Loans, Return};
use self::program::Program;
use self::queue::{Plan, Queue};
use self::stamp::Stamping;
use crate::Error;
use crate::bpf_program::{Place, StampedBy};
use crate::filter::Filter;
use crate::interface::Interface;
use crate::packet_socket::{Promiscuous, Setup, longest_frame};
use crate::receiver::{Frame, KernelCounts, Lender, Receiver};
use crate::xsk::Bound;

/// What the sockets, the program and its link take.
pub(crate) const CAPABILITIES: &str = "cap_bpf,cap_net_admin,cap_net_raw,cap_perfmon";
/// Frames taken from a queue before the next one has its turn: enough to spread the cost of
/// publishing that they are taken, few enough for no queue to wait for long.
const BATCH: usize = 64;

/// The attached program and the sockets that it fills. The program is detached when this is
/// dropped, and by the kernel when the process ends in any way.
pub(crate) struct AfXdp {
    program: Program,
    queues: Vec<Queue>,
    /// The queue that has the next turn.
    turn: usize,
    loans: Arc<Loans>,
    stamping: Stamping,
    /// An epoll instance that watches the sockets of all queues. It is level-triggered and never
    /// waited for itself: it is readable while a ring has frames, and each new one is news to an
    /// edge-triggered epoll instance that watches it (`fs/eventpoll.c`, `ep_poll_callback`).
    news: OwnedFd,
    /// Whether the thread that finds nothing runs the driver's queues itself.
    busy_polls: bool,
    _promiscuous: Promiscuous,
}

/// What was granted.
#[derive(Clone, Debug)]
pub(crate) struct Granted {
    /// Where the program runs.
    pub(crate) place: Place,
    /// Bytes kept of each frame at the most.
    pub(crate) snaplen: u32,
    /// Where less was granted than asked for, in words.
    pub(crate) notes: Vec<String>,
}

impl AfXdp {
    /// Opens a socket for every queue of `interface` and attaches the program that has frames
    /// `stamped_by` whom it says. The queues share the memory asked for.
    pub(crate) fn open(
        interface: &Interface,
        filter: Option<&Filter>,
        setup: &Setup,
        stamped_by: StampedBy,
    ) -> Result<(Self, Granted), Error> {
        let failed = |what| move |e| Error::system(what, &interface.name, CAPABILITIES, e);
        let known = interface.receive_queues().map_err(failed("count the queues"))?;
        let count = known.unwrap_or(1);
        let plan = Plan::new(longest_frame(interface)?, setup.bytes, count);
        let promiscuous = Promiscuous::enter(interface).map_err(failed("see all packets"))?;
        let (mut queues, mut returns) = (Vec::new(), Vec::new());
        for number in 0..count {
            let (queue, fill) = Queue::open(interface, number, plan)?;
            returns.push(Return::new(fill, Arc::clone(queue.socket())));
            queues.push(queue);
        }
        let news = watch(&queues).map_err(failed("wait for packets"))?;
        let busy_poll = if setup.spins { busy_poll(&queues) } else { Ok(false) };
        let mut notes = Vec::from_iter(copies(interface, &queues));
        notes.extend(busy_poll.as_ref().err().cloned());
        notes.extend(known.is_none().then(|| only_one_queue(interface)));
        // Last: from here on frames arrive.
        let (program, place) = Program::attach(interface, filter, &queues, stamped_by)?;
        let receiver = Self {
            program,
            queues,
            turn: 0,
            loans: Arc::new(Loans::new(returns, plan.chunks())),
            stamping: Stamping::new(stamped_by),
            news,
            busy_polls: busy_poll.unwrap_or(false),
            _promiscuous: promiscuous,
        };
        Ok((receiver, Granted { place, snaplen: setup.snaplen.min(plan.room()), notes }))
    }

    /// Whether frames come with their stamps.
    pub(crate) fn is_stamped(&self) -> bool {
        self.stamping.is_by_program()
    }
}

/// Says so where frames are copied, and where those that are too long for a chunk are dropped.
fn copies(interface: &Interface, queues: &[Queue]) -> impl Iterator<Item = String> {
    let any = |is: fn(Bound) -> bool| queues.iter().any(|queue| is(queue.bound()));
    let copied = any(|bound| !bound.zero_copy).then(|| {
        format!(
            "the kernel copies each packet to us: {}'s driver has no zero-copy mode for AF_XDP",
            interface.name
        )
    });
    let cut = any(|bound| !bound.zero_copy && !bound.multi_buffer).then(|| {
        "packets that do not fit into a chunk of memory are dropped and counted: this kernel has \
         no AF_XDP for packets in several pieces, which came with Linux 6.6"
            .to_owned()
    });
    copied.into_iter().chain(cut)
}

fn only_one_queue(interface: &Interface) -> String {
    format!(
        "{}'s driver does not say how many queues it has: the first is captured, packets of others \
         are counted as dropped and go to the network stack",
        interface.name
    )
}

/// Makes our calls run the driver's queues. The error says in words why they do not.
fn busy_poll(queues: &[Queue]) -> Result<bool, String> {
    for queue in queues {
        queue.socket().busy_poll().map_err(|cause| {
            format!(
                "the driver's queues are not polled by the stamping thread: {cause}; it takes \
                 cap_net_admin and a kernel with CONFIG_NET_RX_BUSY_POLL, 5.11 or newer"
            )
        })?;
    }
    Ok(true)
}

/// An epoll instance that is readable while a queue has frames.
fn watch(queues: &[Queue]) -> io::Result<OwnedFd> {
    let news = epoll::create(epoll::CreateFlags::CLOEXEC)?;
    for queue in queues {
        let nothing = epoll::EventData::new_u64(0); // all queues are looked at anyway
        epoll::add(&news, queue.socket().as_fd(), nothing, epoll::EventFlags::IN)?;
    }
    Ok(news)
}

impl Receiver for AfXdp {
    fn lender(&self) -> Arc<dyn Lender> {
        Arc::clone(&self.loans) as _
    }

    fn acquire(&mut self, room: usize, mut take: impl FnMut(Frame)) -> usize {
        let mut taken = 0;
        for _ in 0..self.queues.len() {
            let room = BATCH.min(room - taken);
            let queue = &mut self.queues[self.turn];
            taken += queue.acquire(room, &self.loans, &mut self.stamping, &mut take);
            self.turn = (self.turn + 1) % self.queues.len();
        }
        if taken == 0 && self.busy_polls {
            for queue in &self.queues {
                // An interface that is down is noticed by whoever asks for its state.
                let _ = queue.socket().wake_receive();
            }
        }
        taken
    }

    /// What is given back goes to the kernel at once, which is then woken if it has to be.
    fn is_lent_out(&self) -> bool {
        false
    }

    fn descriptor(&self) -> BorrowedFd<'_> {
        self.news.as_fd()
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
            stamped_late: self.stamping.late(),
            fill_ring_empty: no_chunk,
        })
    }
}
