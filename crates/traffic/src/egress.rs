//! A sending socket with its counters and transmit stamps.

use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};

use crate::transmit::{SEND_TIMEOUT, SendOptions, Transmit};
use crate::tx_stamps::{PendingStamps, StampQueue};
use crate::{SendError, SendMethod, SentPacket, UnavailableStamps};

/// Max frames of a batch: limits the wait of the first frame to the time of about ten system calls.
const BATCH: usize = 64;
/// Max wait for stamps after the last packet. A queue that needs longer to empty was overfilled.
const LAST_STAMPS_TIMEOUT: Duration = Duration::from_millis(500);

/// Message for a packet that was not sent and for which the kernel reported no error.
const DROPPED: &str = "the interface dropped the packet: no carrier, or no room in its queue";

/// A sending socket, and the counts of its packets.
#[derive(Debug)]
pub(crate) struct Egress {
    transmit: Box<dyn Transmit>,
    stamps: Option<StampQueue>,
    pending: PendingStamps,
    pub(crate) sent: u64,
    pub(crate) bytes: u64,
    pub(crate) failed: u64,
    pub(crate) first_error: Option<String>,
}

impl Egress {
    /// Wraps `transmit`, with transmit stamps if `options` requests them.
    pub(crate) fn new(
        transmit: Box<dyn Transmit>,
        interface: Option<&str>,
        options: &SendOptions,
    ) -> Result<Self, SendError> {
        if options.tx_stamps && options.method == SendMethod::Xdp {
            return Err(SendError::NoTxStamps(options.method));
        }
        let open = || StampQueue::open(transmit.socket(), interface, options.bypass_queue);
        let stamps = options.tx_stamps.then(open).transpose().map_err(SendError::TxStamps)?;
        let pending = PendingStamps::new(stamps.as_ref());
        let (sent, bytes, failed, first_error) = (0, 0, 0, None);
        Ok(Self { transmit, stamps, pending, sent, bytes, failed, first_error })
    }

    /// Unavailable kinds of transmit stamps, with the reason; none if no stamps were requested.
    pub(crate) fn unavailable(&self) -> Option<&UnavailableStamps> {
        self.stamps.as_ref().map(|stamps| &stamps.unavailable)
    }

    /// The kernel's send mode, where it depends on the interface's driver.
    pub(crate) fn mode(&self) -> Option<&'static str> {
        self.transmit.mode()
    }

    /// Sends a packet whose frame has `bytes` bytes.
    pub(crate) fn send(&mut self, packet: &[u8], bytes: u64, sent: SentPacket) {
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

    /// Makes the kernel take the waiting packets. Packets that it has no room for after the timeout,
    /// or rejects, wait for the next call.
    pub(crate) fn flush(&mut self) {
        let begun = Instant::now();
        while let Err(error) = self.transmit.flush() {
            // The kernel numbers a packet again when it is sent again.
            self.pending.refused(self.transmit.waiting().packets);
            let has_no_room = matches!(error.raw_os_error(), Some(libc::ENOBUFS | libc::EAGAIN));
            if !has_no_room || begun.elapsed() > SEND_TIMEOUT {
                self.first_error.get_or_insert_with(|| error.to_string());
                break;
            }
        }
    }

    /// Reports the packets that have all their stamps. Reads stamps while `has_time`, and always if
    /// too many packets wait for stamps.
    pub(crate) fn collect(
        &mut self,
        mut has_time: impl FnMut() -> bool,
        mut on_sent: impl FnMut(&SentPacket),
    ) {
        if let Some(queue) = &mut self.stamps {
            while self.pending.is_waiting() && (has_time() || self.pending.is_full()) {
                match self.pending.read_stamp(queue, self.transmit.socket()) {
                    Ok(true) => {}
                    Ok(false) | Err(_) => break,
                }
            }
        }
        self.pending.release_complete(self.transmit.waiting().packets, &mut on_sent);
    }

    /// Waits for the last stamps, and counts packets that the kernel never took as failed.
    pub(crate) fn finish(&mut self, mut on_sent: impl FnMut(&SentPacket)) {
        self.flush();
        let deadline = Instant::now() + LAST_STAMPS_TIMEOUT;
        loop {
            self.collect(|| true, &mut on_sent);
            let left = deadline.saturating_duration_since(Instant::now());
            if !self.pending.is_waiting() || left.is_zero() {
                break;
            }
            let left = Timespec::try_from(left).unwrap_or_default();
            // poll(2) always reports a non-empty error queue, also without requested events.
            let socket = self.transmit.socket();
            let _ = poll(&mut [PollFd::new(&socket, PollFlags::empty())], Some(&left));
        }
        let left = self.transmit.waiting();
        self.pending.release_all(left.packets, &mut on_sent);
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
