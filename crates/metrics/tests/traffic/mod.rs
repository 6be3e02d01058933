//! Endless traffic past two points, with losses, copies and reordering, that is made without
//! remembering any of it.

use wirestamp_clock::{Domain, RawStamp, Span, Stamp, Time};
use wirestamp_metrics::{Observation, Point};
use wirestamp_packet::{FlowKey, PacketId};

/// Packets a microsecond apart, 0.1 % of which are lost, 0.1 % copied and 1 % overtaken.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Traffic {
    /// How many packets leave A before the first comes to B.
    pub(crate) under_way: u64,
    pub(crate) flows: u64,
    /// Whether the packets of a flow are far from each other: else flows take turns.
    pub(crate) random_flows: bool,
}

const SPACING: Span = Span::from_micros(1);
/// Of so many packets, one is lost, one copied and ten change places with the next.
const PART: u64 = 1000;

/// What becomes of a packet on the way.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Fate {
    Arrives,
    Lost,
    Copied,
    Overtaken,
}

/// SplitMix64 (G. Steele, D. Lea, C. Flood, Fast Splittable Pseudorandom Number Generators, 2014).
fn random(number: u64) -> u64 {
    let mut z = number.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

fn fate(number: u64) -> Fate {
    match random(number ^ 0x5eed << 48) % PART {
        0 => Fate::Lost,
        1 => Fate::Copied,
        2..12 => Fate::Overtaken,
        _ => Fate::Arrives,
    }
}

impl Traffic {
    /// The observations that are made while packet `number` passes A.
    pub(crate) fn step(&self, number: u64, seen: &mut Vec<(Point, Observation)>) {
        seen.push((Point::A, self.observation(number, number)));
        let Some(arriving) = number.checked_sub(self.under_way) else { return };
        // Pairs change places, so that no packet is overtaken twice.
        let swapped = fate(arriving & !1) == Fate::Overtaken;
        let arriving = if swapped { arriving ^ 1 } else { arriving };
        let copies = match fate(arriving) {
            Fate::Lost => 0,
            Fate::Copied => 2,
            Fate::Arrives | Fate::Overtaken => 1,
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
