//! Loss by the mechanism of the paper: frames wait in a bounded queue, as in that of a network card, for a core whose
//! softIRQ receives them. What is done with each packet there decides when the queue is full.
//!
//! The queue is the receive ring of a veth, which its driver polls (NAPI) in a kernel thread of that core. So an XDP
//! program runs where it runs with a network card: before the kernel allocates a packet.

mod claims;
mod contender;
mod findings;
mod round;
mod scale;

use std::thread;
use std::time::Duration;

use anyhow::Context;
use serde::Serialize;
use wirestamp_capture::softirq_cost::{PacketStamping, SoftirqStamp};
use wirestamp_capture::{Cores, Stop};
use wirestamp_clock::{ClockService, Counter};
use wirestamp_traffic::live::LiveReport;

use super::capture::{Capturing, OUR_BUFFER_MIB};
use super::paper::PACKETS;
use super::rounds::load;
use crate::experiment::{Cell, Design, Study};
use crate::tester::{Bed, CAPTURE_CORE, INTERFACE, Load, SENDING_CORE, SoftirqThread};

pub(super) use claims::claims;
use contender::{CONTENDERS, Contender};
pub(super) use findings::SoftirqResult;
pub(super) use round::SoftirqRound;
pub(super) use scale::SoftirqScale;

/// Frames that the queue has room for (`VETH_RING_SIZE` of drivers/net/veth.c): as many as receive descriptors of the
/// paper's network card (default of Linux's driver e1000e, `E1000_DEFAULT_RXD`).
const QUEUE_FRAMES: u32 = 256;

/// The core whose softIRQ receives.
const SOFTIRQ_CORE: usize = CAPTURE_CORE;

/// The kernel enables its stamps in a work item of its own (`netstamp_work` of net/core/dev.c), which nothing reports.
const STAMPS_ENABLED_AFTER: Duration = Duration::from_millis(20);

/// Cores of a round.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub(super) struct RoundCores {
    /// Of the sender.
    sender: usize,
    /// Of the softIRQ.
    softirq: usize,
    /// Of the program that reads the packets: one of its own where there are three.
    reader: usize,
}

impl RoundCores {
    fn of_this_machine() -> Self {
        let cores = thread::available_parallelism().map_or(1, usize::from);
        let reader = if cores > SOFTIRQ_CORE + 1 { SOFTIRQ_CORE + 1 } else { SOFTIRQ_CORE };
        Self { sender: SENDING_CORE, softirq: SOFTIRQ_CORE, reader }
    }
}

/// The study, with the bed that it sends over.
pub(super) struct RoundsInSoftirq {
    size: SoftirqScale,
    bed: Bed,
    softirq: SoftirqThread,
    clock: ClockService,
    capturing: Capturing,
    pub(super) cores: RoundCores,
}

impl RoundsInSoftirq {
    /// # Errors
    /// When privileges or a second core are missing, or this kernel cannot run the thread or the programs that stamp.
    pub(super) fn new(size: SoftirqScale) -> anyhow::Result<Self> {
        wirestamp_lab::check_privilege()?;
        let clock =
            ClockService::start(Counter::select()).context("cannot calibrate the counter")?;
        let cores = RoundCores::of_this_machine();
        let bed = Bed::build()?;
        let softirq = SoftirqThread::receive_on(&bed, cores.softirq)?;
        // A kernel that cannot run these programs is found before the first round.
        for stamp in [SoftirqStamp::Counter, SoftirqStamp::Kernel] {
            bed.receiver().run(|| PacketStamping::by_program(INTERFACE, stamp))??;
        }
        Ok(Self { size, bed, softirq, clock, capturing: Capturing::new()?, cores })
    }

    fn contenders(&self) -> [Contender; CONTENDERS] {
        let Self { capturing, .. } = self;
        Contender::all([capturing.generic(), capturing.generic_with_our_buffer()])
    }

    /// Sends a round of packets. Also returns the CPU time of the softIRQ meanwhile.
    fn send(&self, load: &Load, stop: &Stop) -> anyhow::Result<(LiveReport, Duration)> {
        let before = self.softirq.cpu_time()?;
        let sent = load.send_in_realtime(&self.bed, &self.clock, stop.flag())?;
        Ok((sent, self.softirq.cpu_time()?.saturating_sub(before)))
    }

    /// A round of a contender.
    fn round(
        &self,
        contender: Contender,
        load: &Load,
        stop: &Stop,
    ) -> anyhow::Result<SoftirqRound> {
        let mut softirq = Duration::ZERO;
        let mut send = || {
            let (sent, time) = self.send(load, stop)?;
            softirq = time;
            Ok(sent)
        };
        let round = match contender {
            Contender::Nothing => SoftirqRound::without_capture(&send()?),
            Contender::Program(stamp) => {
                let start = || PacketStamping::by_program(INTERFACE, stamp);
                let _stamping = self.bed.receiver().run(start)??;
                SoftirqRound::without_capture(&send()?)
            }
            Contender::KernelStamp => {
                let _stamping = PacketStamping::by_kernel()?;
                thread::sleep(STAMPS_ENABLED_AFTER);
                SoftirqRound::without_capture(&send()?)
            }
            Contender::Capture(program) => {
                let reader = Some(self.cores.reader);
                let cores = Cores { acquire: reader, convert: reader, consume: reader };
                let on = (&self.bed, &self.clock);
                let settings = (cores, OUR_BUFFER_MIB);
                SoftirqRound::of_capture(&self.capturing.capture(program, settings, on, send)?)
            }
        };
        let softirq_ns = u64::try_from(softirq.as_nanos()).unwrap_or(u64::MAX);
        Ok(SoftirqRound { softirq_ns: Some(softirq_ns), ..round })
    }
}

impl Study for RoundsInSoftirq {
    type Sample = SoftirqRound;

    fn design(&self) -> Design {
        self.size.design(self.contenders().map(Contender::name))
    }

    fn lasts(&self, cell: &Cell) -> Duration {
        let condition = self.size.condition(cell);
        let round = Duration::from_nanos(condition.gap_ns.max(1_000) * PACKETS);
        round + self.contenders()[condition.contender % CONTENDERS].around()
    }

    fn run(&mut self, cell: &Cell, stop: &Stop) -> anyhow::Result<Vec<SoftirqRound>> {
        let condition = self.size.condition(cell);
        let load = load(condition.frame_bytes, condition.gap_ns)?;
        let contender = self.contenders()[condition.contender % CONTENDERS];
        let mut round = self.round(contender, &load, stop)?;
        for _ in 1..self.size.attempts {
            if round.is_compared(condition.gap_ns) || stop.is_requested() {
                break;
            }
            round = self.round(contender, &load, stop)?;
        }
        Ok(vec![round])
    }
}

#[cfg(test)]
mod tests;
