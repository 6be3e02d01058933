//! The adaptive buffer on long streams, compared with a receiver that is simulated packet by packet.

use proptest::prelude::*;
use wirestamp_clock::Span;

use super::{JitterBuffer, Playout, Timeliness};

const MILLISECOND: i64 = 1_000_000;
/// Time between two packets.
const INTERVAL: i64 = 20 * MILLISECOND;
/// Sums of thousands of nanoseconds in floating point: a packet this close to its deadline may be on either side.
const ROUNDING_NS: f64 = 1.0;

/// Parameters of algorithm 1 as they are published: the weight of the past, and the mean deviations of the buffer.
const ALPHA: f64 = 0.998_002;
const BETA: f64 = 4.0;
/// Packets and deviation by which the buffer begins with 60 ms.
const ASSUMED_PACKETS: usize = 15;
const ASSUMED_DEVIATION: f64 = 15e6;
/// Part of its excess by which the transit time of the fastest packets rises with each packet.
const RISE: f64 = 1.0 / 256.0;

/// A packet that arrives.
#[derive(Clone, Copy, Debug)]
struct Packet {
    sent: i64,
    arrival: i64,
}

/// How the delay of a stream changes.
#[derive(Clone, Copy, Debug)]
enum Delay {
    /// Each packet changes the delay by up to this many milliseconds.
    RandomWalk(i64),
    /// Some packets in a row wait for up to this many milliseconds, and arrive together.
    Bursts(i64),
    /// Single packets are later by up to this many milliseconds.
    Spikes(i64),
    /// Every packet is later by up to this many milliseconds, which reorders them if they are more than an interval.
    Noise(i64),
}

/// What happens to a packet: independent random numbers.
#[derive(Clone, Copy, Debug)]
struct Chance {
    delay: i64,
    /// Of 1000.
    event: u16,
    loss: u16,
    pause: u16,
}

fn chances() -> impl Strategy<Value = Vec<Chance>> {
    let chance = (any::<u32>(), 0..1000_u16, 0..1000_u16, 0..1000_u16);
    let chance = chance.prop_map(|(delay, event, loss, pause)| Chance {
        delay: delay.into(),
        event,
        loss,
        pause,
    });
    prop::collection::vec(chance, 2000..4000)
}

fn delays() -> impl Strategy<Value = Delay> {
    prop_oneof![
        (1..10_i64).prop_map(Delay::RandomWalk),
        (20..400_i64).prop_map(Delay::Bursts),
        (20..400_i64).prop_map(Delay::Spikes),
        (1..200_i64).prop_map(Delay::Noise),
    ]
}

/// The packets of a stream in the order of arrival. `loss` of 1000 are lost; about 5 of 1000 begin a talk spurt after a
/// pause.
fn stream(chances: &[Chance], kind: Delay, base_ms: i64, loss: u16) -> Vec<Packet> {
    let (mut sent, mut walk, mut burst_end) = (0, base_ms * MILLISECOND, 0);
    let mut packets = Vec::new();
    for chance in chances {
        sent += INTERVAL;
        if chance.pause < 5 {
            sent += (1 + chance.delay / 1000 % 100) * INTERVAL;
        }
        let up_to = |millis: i64| chance.delay % (millis * MILLISECOND + 1);
        let delay = match kind {
            Delay::RandomWalk(millis) => {
                walk = (walk + up_to(2 * millis) - millis * MILLISECOND).max(0);
                walk
            }
            Delay::Bursts(millis) => {
                if chance.event < 10 {
                    burst_end = sent + up_to(millis);
                }
                base_ms * MILLISECOND + (burst_end - sent).max(0)
            }
            Delay::Spikes(millis) if chance.event < 20 => base_ms * MILLISECOND + up_to(millis),
            Delay::Spikes(_) => base_ms * MILLISECOND + up_to(2),
            Delay::Noise(millis) => base_ms * MILLISECOND + up_to(millis),
        };
        if chance.loss >= loss {
            packets.push(Packet { sent, arrival: sent + delay });
        }
    }
    packets.sort_by_key(|packet| packet.arrival);
    packets
}

/// The average of all values but with weights: equal ones until an older value would weigh less than by [`ALPHA`], then
/// powers of that. `assumed` values of the same size precede them.
fn average(values: &[f64], (assumed, assumed_value): (usize, f64)) -> f64 {
    // 1 / (1 - 0.998002) = 500.5
    let equal = 500_usize.saturating_sub(assumed).min(values.len());
    let (first, later) = values.split_at(equal);
    let sum: f64 = as_f64(assumed) * assumed_value + first.iter().sum::<f64>();
    let mut weight = 1.0;
    let mut average = 0.0;
    for value in later.iter().rev() {
        average += weight * (1.0 - ALPHA) * value;
        weight *= ALPHA;
    }
    average + weight * sum / as_f64(assumed + equal)
}

/// A receiver by the definition: for each packet, its arrival after its time of playing (late if positive), and the time
/// that a packet as fast as the fastest waits for playing.
fn simulated(packets: &[Packet]) -> Vec<[f64; 2]> {
    let (mut transits, mut deviations) = (Vec::new(), Vec::new());
    let mut fastest = f64::INFINITY;
    let mut found = Vec::new();
    for packet in packets {
        let transit = nanos(packet.arrival - packet.sent);
        let before = if transits.is_empty() { transit } else { average(&transits, (0, 0.0)) };
        let deviation = average(&deviations, (ASSUMED_PACKETS, ASSUMED_DEVIATION));
        let fastest_now = fastest.min(transit);
        let played = nanos(packet.sent) + (before + BETA * deviation).max(fastest_now);
        found.push([nanos(packet.arrival) - played, played - nanos(packet.sent) - fastest_now]);
        fastest = if transit <= fastest { transit } else { fastest + RISE * (transit - fastest) };
        transits.push(transit);
        deviations.push((average(&transits, (0, 0.0)) - transit).abs());
    }
    found
}

fn nanos(nanos: i64) -> f64 {
    i32::try_from(nanos / 1_000_000).map_or(f64::NAN, f64::from) * 1e6
        + i32::try_from(nanos % 1_000_000).map_or(f64::NAN, f64::from)
}

fn as_f64(count: usize) -> f64 {
    u32::try_from(count).map_or(f64::NAN, f64::from)
}

/// Compares the buffer with the simulation; returns the number of late packets.
fn compare(packets: &[Packet]) -> Result<usize, TestCaseError> {
    let mut playout = Playout::default();
    let (mut late, mut waits, mut was_late) = (0, 0.0, None);
    for (number, (packet, [lateness, wait])) in packets.iter().zip(simulated(packets)).enumerate() {
        let transit = Span::from_nanos(packet.arrival - packet.sent);
        let found = playout.record(transit, JitterBuffer::Adaptive);
        let is_late = found != Timeliness::InTime;
        let is_close = lateness.abs() < ROUNDING_NS;
        prop_assert!(is_close || is_late == (lateness > 0.0), "packet {}: {} ns", number, lateness);
        if let (Timeliness::Late { again }, Some(before)) = (found, was_late) {
            prop_assert_eq!(again, before, "packet {}", number);
        }
        was_late = Some(is_late);
        late += usize::from(is_late);
        waits += wait;
    }
    let mean = waits / as_f64(packets.len());
    let found = playout.mean_wait().map_or(f64::NAN, |it| nanos(it.as_nanos()));
    prop_assert!((found - mean).abs() <= 1.0, "mean wait {} ns, not {} ns", found, mean);
    Ok(late)
}

proptest! {
    // Each case has thousands of packets, each compared with averages of all before it.
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn adaptive_buffer_matches_a_simulated_receiver(
        chances in chances(),
        kind in delays(),
        base_ms in 0..200_i64,
        loss in 0..300_u16,
    ) {
        compare(&stream(&chances, kind, base_ms, loss))?;
    }
}

/// A stream of 3000 packets whose numbers come from a linear congruential generator.
fn fixed_stream(kind: Delay) -> Vec<Packet> {
    let mut state = 1_u64;
    let mut next = || {
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        u32::try_from(state >> 33).unwrap()
    };
    let mut of_1000 = || u16::try_from(next() % 1000).unwrap();
    let mut chances = Vec::new();
    for _ in 0..3000 {
        let [event, loss, pause, high, low] = [(); 5].map(|()| of_1000());
        let delay = (i64::from(high) * 1000 + i64::from(low)) * 4000;
        chances.push(Chance { delay, event, loss, pause });
    }
    stream(&chances, kind, 40, 30)
}

/// The comparison means something only for streams that have both late packets and packets in time.
#[test]
fn each_kind_of_stream_has_late_packets() {
    for kind in [Delay::RandomWalk(5), Delay::Bursts(400), Delay::Spikes(400), Delay::Noise(100)] {
        let packets = fixed_stream(kind);
        let late = compare(&packets).unwrap();
        assert!((1..packets.len() / 4).contains(&late), "{kind:?}: {late} of {}", packets.len());
    }
}

#[test]
fn noise_longer_than_an_interval_reorders_packets() {
    let packets = fixed_stream(Delay::Noise(100));
    let reordered = packets.windows(2).filter(|two| two[0].sent > two[1].sent).count();
    assert!(reordered > 100, "{reordered}");
    let pauses = packets.windows(2).filter(|two| two[1].sent - two[0].sent > 300 * MILLISECOND);
    assert!(pauses.count() > 3);
}
