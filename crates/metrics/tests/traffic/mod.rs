//! Endless synthetic traffic between two points, with losses, duplicates and reordering, generated without state.

use wirestamp_clock::{Domain, RawStamp, Span, Stamp, Time};
use wirestamp_metrics::{Observation, Point};
use wirestamp_packet::{FlowKey, PacketId};

/// Packets a microsecond apart: 0.1 % lost, 0.1 % duplicated, 1 % reordered.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Traffic {
    /// Packets that leave A before the first arrives at B.
    pub(crate) under_way: u64,
    pub(crate) flows: u64,
    /// Whether flows are random; otherwise they alternate.
    pub(crate) random_flows: bool,
}

const SPACING: Span = Span::from_micros(1);
/// Of this many packets, one is lost, one duplicated and ten swap places with the next.
const PERIOD: u64 = 1000;

/// Path of a packet.
#[derive(Clone, Copy, PartialEq, Eq)]
enum PacketPath {
    Arrives,
    Lost,
    Duplicated,
    Overtaken,
}

/// SplitMix64 (G. Steele, D. Lea, C. Flood, Fast Splittable Pseudorandom Number Generators, 2014).
fn random(number: u64) -> u64 {
    let mut z = number.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

fn path_of(number: u64) -> PacketPath {
    match random(number ^ 0x5eed << 48) % PERIOD {
        0 => PacketPath::Lost,
        1 => PacketPath::Duplicated,
        2..12 => PacketPath::Overtaken,
        _ => PacketPath::Arrives,
    }
}

impl Traffic {
    /// Observations made while packet `number` passes A.
    pub(crate) fn step(&self, number: u64, seen: &mut Vec<(Point, Observation)>) {
        seen.push((Point::A, self.observation(number, number)));
        let Some(arriving) = number.checked_sub(self.under_way) else { return };
        // Pairs swap places, so that no packet is reordered twice.
        let swapped = path_of(arriving & !1) == PacketPath::Overtaken;
        let arriving = if swapped { arriving ^ 1 } else { arriving };
        let copies = match path_of(arriving) {
            PacketPath::Lost => 0,
            PacketPath::Duplicated => 2,
            PacketPath::Arrives | PacketPath::Overtaken => 1,
        };
        let observation = self.observation(arriving, number);
        seen.extend(std::iter::repeat_n((Point::B, observation), copies));
    }

    fn observation(&self, number: u64, micros: u64) -> Observation {
        let micros = i64::try_from(micros).expect("292,000 years");
        let utc = Time::from_nanos(SPACING.as_nanos() * micros);
        let raw = RawStamp { domain: Domain::Realtime, value: utc.as_nanos().unsigned_abs() };
        let turn = if self.random_flows { random(number ^ 0xf10 << 40) } else { number };
        let flow = u32::try_from(turn % self.flows).expect("a number of flows");
        let [_, high, middle, low] = flow.to_be_bytes();
        Observation {
            id: PacketId(random(number)),
            flow: FlowKey {
                source: ([10, high, middle, low], 5000).into(),
                destination: ([10, 77, 2, 2], 6000).into(),
                protocol: 17,
            },
            length: 100,
            stamp: Stamp { raw, utc, error: Span::from_nanos(50) },
        }
    }
}
