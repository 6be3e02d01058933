//! The XDP program that generates frames (`bpf/generate.bpf.c`), and the system call that runs it
//! (`BPF_PROG_RUN` with `BPF_F_TEST_XDP_LIVE_FRAMES`, Linux 5.18).
#![expect(unsafe_code, reason = "libbpf's skeleton")]

use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, OwnedFd};

use libbpf_rs::libbpf_sys;
use libbpf_rs::skel::{OpenSkel, SkelBuilder};
use libbpf_rs::{Link as Attached, MapCore, MapFlags, MapHandle, Xdp, XdpFlags};

use self::skeleton::{GenerateSkel, GenerateSkelBuilder};
use super::dispatcher::DispatcherEntry;
use super::libbpf::run_on_live_frames;
use super::pace::repetitions;
use super::template::{FrameImage, Template};
use super::{Direction, LiveError};
use crate::netlink::Link;

#[expect(
    clippy::allow_attributes,
    clippy::undocumented_unsafe_blocks,
    unreachable_pub,
    reason = "generated from the object file by libbpf-cargo"
)]
mod skeleton {
    include!(concat!(env!("OUT_DIR"), "/generate.skel.rs"));
}

/// The program's context, `struct xdp_md`: data, data_end, data_meta, ingress_ifindex,
/// rx_queue_index, egress_ifindex (`linux/bpf.h`).
type Context = [u32; 6];

/// Feature flag of a driver that accepts frames from XDP programs (`linux/netdev.h`).
const NETDEV_XDP_ACT_NDO_XMIT: u64 = 4;

/// Frames that may wait for a receiving core: the longest queue that the kernel makes (`__cpu_map_entry_alloc` of
/// kernel/bpf/cpumap.c), about 15 ms at a million frames per second.
const QUEUE_FRAMES: u32 = 16_384;

/// The loaded program. Only file descriptors refer to it, so the kernel unloads it when this process
/// ends.
pub(super) struct Program {
    program: OwnedFd,
    _dispatcher_entry: DispatcherEntry,
    /// The program's variables: its counters.
    variables: MapHandle,
    /// Counts frames that the receiving core's queue has no room for.
    _refusing: Option<Attached>,
    frame: Vec<u8>,
    context: Context,
    /// Frames that the program has sent.
    pub(super) sent: u64,
}

impl Program {
    pub(super) fn load(
        link: &Link,
        template: &Template,
        direction: Direction,
    ) -> Result<Self, LiveError> {
        let FrameImage { bytes, udp_at, short_payload, fixed_sum } = template.frame()?;
        // libbpf's log lines would mix with ours; its error codes are sufficient.
        libbpf_rs::set_print(None);
        let refused = |error| refused(link, &error);
        let mut object = MaybeUninit::uninit();
        let mut open = GenerateSkelBuilder::default().open(&mut object).map_err(refused)?;
        let core = direction.core();
        open.progs.refuse.set_autoload(core.is_some());
        let core_number = core.unwrap_or(0);
        open.maps.cores.set_max_entries(core_number.saturating_add(1)).map_err(refused)?;
        if let Some(constants) = open.maps.rodata_data.as_mut() {
            constants.verdict = match direction {
                Direction::Transmit => libbpf_sys::XDP_TX,
                Direction::Receive => libbpf_sys::XDP_PASS,
                Direction::ReceiveOn(_) => libbpf_sys::XDP_REDIRECT,
            };
            constants.core = core_number;
            constants.udp_at = udp_at;
            constants.brief = short_payload.into();
            constants.flows = template.flows.into();
            constants.first_port = template.source.address.port();
            constants.rest = fixed_sum.into();
        }
        let mut skeleton = open.load().map_err(refused)?;
        let refusing = core.map(|core| set_up_core(&mut skeleton, core)).transpose();
        let _refusing = refusing.map_err(refused)?;
        let program = skeleton.progs.generate.as_fd();
        if direction == Direction::Transmit
            && !driver_accepts_frames(link, program).map_err(refused)?
        {
            return Err(LiveError::NoTransmit { interface: link.name.clone() });
        }
        let failed = |cause: io::Error| match cause.kind() {
            io::ErrorKind::PermissionDenied => {
                LiveError::Permission { interface: link.name.clone() }
            }
            _ => system("keep the program ready", link, cause),
        };
        let _dispatcher_entry = DispatcherEntry::new(program).map_err(failed)?;
        let program = program.try_clone_to_owned().map_err(failed)?;
        let variables = MapHandle::try_from(&skeleton.maps.bss).map_err(refused)?;
        let context = [0, u32::from(template.frame_bytes), 0, link.index, 0, 0];
        let frame = bytes;
        Ok(Self { program, _dispatcher_entry, variables, _refusing, frame, context, sent: 0 })
    }

    /// Sends `frames` frames; continues after a signal.
    pub(super) fn send(&mut self, frames: u32) -> io::Result<()> {
        let goal = self.sent + u64::from(frames);
        while self.sent < goal {
            let left = u32::try_from(goal - self.sent).unwrap_or(u32::MAX);
            let (repeat, batch) = repetitions(left);
            match self.call(repeat, batch) {
                Ok(()) => self.sent += u64::from(repeat),
                Err(error) => {
                    self.sent = self.next_sequence()?;
                    if error.kind() != io::ErrorKind::Interrupted {
                        return Err(error);
                    }
                }
            }
        }
        Ok(())
    }

    /// Runs the program `repeat` times, in batches of `batch`, which divides it.
    fn call(&self, repeat: u32, batch: u32) -> io::Result<()> {
        run_on_live_frames(self.program.as_fd(), &self.frame, &self.context, repeat, batch)
    }

    /// The next sequence number: the number of frames sent.
    fn next_sequence(&self) -> io::Result<u64> {
        self.number(0)
    }

    /// Frames that the receiving core's queue had no room for.
    pub(super) fn refused(&self) -> io::Result<u64> {
        self.number(1)
    }

    /// A counter of the program.
    fn number(&self, index: usize) -> io::Result<u64> {
        let value = self.variables.lookup(&[0; 4], MapFlags::ANY).map_err(io::Error::other)?;
        let mut numbers = value.iter().flat_map(|bytes| bytes.as_chunks().0);
        numbers
            .nth(index)
            .map(|it| u64::from_ne_bytes(*it))
            .ok_or(io::ErrorKind::InvalidData.into())
    }
}

/// Sets up the queue of the receiving core, and counts the frames that it has no room for until the link is dropped.
fn set_up_core(skeleton: &mut GenerateSkel<'_>, core: u32) -> Result<Attached, libbpf_rs::Error> {
    let cores = &skeleton.maps.cores;
    cores.update(&core.to_ne_bytes(), &QUEUE_FRAMES.to_ne_bytes(), MapFlags::ANY)?;
    let id = cores.info()?.info.id;
    if let Some(variables) = skeleton.maps.bss_data.as_mut() {
        variables.account.id = id.into();
    }
    skeleton.progs.refuse.attach()
}

/// Whether the driver accepts frames from XDP programs now, as reported by netlink. A veth accepts
/// them when its peer has GRO on or an XDP program (see the tests). Without it, the kernel drops
/// every frame and reports that to trace points only (`Documentation/bpf/bpf_prog_run.rst`).
fn driver_accepts_frames(link: &Link, program: impl AsFd) -> Result<bool, libbpf_rs::Error> {
    let query = Xdp::new(program.as_fd()).query(link.index.cast_signed(), XdpFlags::NONE)?;
    Ok(query.feature_flags & NETDEV_XDP_ACT_NDO_XMIT != 0)
}

fn refused(link: &Link, error: &libbpf_rs::Error) -> LiveError {
    if error.kind() == libbpf_rs::ErrorKind::PermissionDenied && !is_root() {
        LiveError::Permission { interface: link.name.clone() }
    } else {
        LiveError::Program { interface: link.name.clone(), reason: error.to_string() }
    }
}

/// The verifier also returns "permission denied"; advice to use sudo does not help root.
fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

/// The error of the failed action `what`.
pub(super) fn system(what: &'static str, link: &Link, cause: io::Error) -> LiveError {
    LiveError::System { what, interface: link.name.clone(), cause }
}
