//! One socket that sends, and the account of what went through it.

use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};

use crate::transmit::{PATIENCE, Transmission, Transmit};
use crate::tx_stamps::{Pending, StampQueue};
use crate::{SendError, SendMethod, Sent, Unavailable};

/// How many frames wait for the others of their batch at most: what the first waits is no more
/// than what some ten system calls would have taken.
const BATCH: usize = 64;
/// How long after the last packet the stamps that are still out may take. A queue that needs
/// longer to run empty was overfilled.
const LAST_STAMPS: Duration = Duration::from_millis(500);

/// What is said of a packet that was not sent where the kernel has said nothing.
const DROPPED: &str = "the interface dropped it: it has no carrier, or no room";

/// A way out, and what became of the packets that took it.
#[derive(Debug)]
pub(crate) struct Outlet {
    transmit: Box<dyn Transmit>,
    stamps: Option<StampQueue>,
    pending: Pending,
    pub(crate) sent: u64,
    pub(crate) bytes: u64,
    pub(crate) failed: u64,
    pub(crate) first_error: Option<String>,
}

impl Outlet {
    /// The account of `transmit`, with transmit stamps if `transmission` says so.
    pub(crate) fn new(
        transmit: Box<dyn Transmit>,
        interface: Option<&str>,
        transmission: &Transmission,
    ) -> Result<Self, SendError> {
        if transmission.tx_stamps && transmission.method == SendMethod::Xdp {
            return Err(SendError::NoTxStamps(transmission.method));
        }
        let open = || StampQueue::open(transmit.socket(), interface, transmission.bypass_queue);
        let stamps = transmission.tx_stamps.then(open).transpose().map_err(SendError::TxStamps)?;
        let pending = Pending::new(stamps.as_ref());
        let (sent, bytes, failed, first_error) = (0, 0, 0, None);
        Ok(Self { transmit, stamps, pending, sent, bytes, failed, first_error })
    }

    /// Why a kind of transmit stamp cannot be had; none if none were asked for.
    pub(crate) fn unavailable(&self) -> Option<&Unavailable> {
        self.stamps.as_ref().map(StampQueue::unavailable)
    }

    /// How the kernel sends, where that is up to the interface's driver.
    pub(crate) fn mode(&self) -> Option<&'static str> {
        self.transmit.mode()
    }

    /// Hands over a packet that makes a frame of `bytes`.
    pub(crate) fn send(&mut self, packet: &[u8], bytes: u64, sent: Sent) {
        match self.transmit.send(packet) {
            Ok(()) => {
                self.sent += 1;
                self.bytes += bytes;
                self.pending.push(sent);
            }
            Err(error) => {
                self.pending.refused(0);
                self.failed += 1;
                self.first_error.get_or_insert_with(|| error.to_string());
            }
        }
        if self.transmit.waiting().packets >= BATCH {
            self.flush();
        }
    }

    /// Has the kernel take what waits. What it has no room for after some time, or does not want,
    /// waits for the next time.
    pub(crate) fn flush(&mut self) {
        let begun = Instant::now();
        while let Err(error) = self.transmit.flush() {
            // A packet that is tried again is numbered again.
            self.pending.refused(self.transmit.waiting().packets);
            let has_no_room = matches!(error.raw_os_error(), Some(libc::ENOBUFS | libc::EAGAIN));
            if !has_no_room || begun.elapsed() > PATIENCE {
                self.first_error.get_or_insert_with(|| error.to_string());
                break;
            }
        }
    }

    /// Reports the packets that have all their stamps. Takes stamps for as long as `has_time`, and
    /// in any case if too many packets wait for theirs.
    pub(crate) fn collect(
        &mut self,
        mut has_time: impl FnMut() -> bool,
        mut on_sent: impl FnMut(&Sent),
    ) {
        if let Some(queue) = &mut self.stamps {
            while self.pending.is_waiting() && (has_time() || self.pending.is_full()) {
                match self.pending.take(queue, self.transmit.socket()) {
                    Ok(true) => {}
                    Ok(false) | Err(_) => break,
                }
            }
        }
        self.pending.settle(self.transmit.waiting().packets, &mut on_sent);
    }

    /// Ends the account: waits for the last stamps, and counts what the kernel never took.
    pub(crate) fn finish(&mut self, mut on_sent: impl FnMut(&Sent)) {
        self.flush();
        let deadline = Instant::now() + LAST_STAMPS;
        loop {
            self.collect(|| true, &mut on_sent);
            let left = deadline.saturating_duration_since(Instant::now());
            if !self.pending.is_waiting() || left.is_zero() {
                break;
            }
            let left = Timespec::try_from(left).unwrap_or_default();
            // An error queue that is not empty is an error to poll(2), asked for or not.
            let socket = self.transmit.socket();
            let _ = poll(&mut [PollFd::new(&socket, PollFlags::empty())], Some(&left));
        }
        let left = self.transmit.waiting();
        self.pending.give_up(left.packets, &mut on_sent);
        for lost in [left, self.transmit.refused()] {
            let packets = u64::try_from(lost.packets).unwrap_or(u64::MAX);
            self.sent -= packets;
            self.bytes -= lost.bytes;
            self.failed += packets;
            if packets > 0 {
                self.first_error.get_or_insert_with(|| DROPPED.to_owned());
            }
        }
    }
}
