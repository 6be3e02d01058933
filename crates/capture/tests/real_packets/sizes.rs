//! Frames of the sizes at which methods change how they keep a frame.

use wirestamp_capture::{Capture, Config, Limit, Stop};
use wirestamp_clock::{ClockService, Counter};

use super::bed::{KeptPackets, TAG, frame, lab, pairs};

/// Around the sizes of the ring buffer's records (`bpf/stamp.bpf.c`), with and without a tag, and of a slot.
const FRAME_BYTES: [usize; 13] = [60, 123, 124, 125, 127, 128, 129, 508, 509, 512, 513, 516, 1518];

#[test]
fn frames_are_whole_at_every_size_of_a_record() {
    let Some(lab) = lab() else { return };
    let mut wire =
        lab.source().run(|| pcap::Capture::from_device("out").unwrap().open().unwrap()).unwrap();
    let clock = ClockService::start(Counter::select()).unwrap();
    for (filter, tag) in [("udp port 5000", &[][..]), ("vlan 7 and udp", &TAG[..])] {
        // A frame with a tag may be longer by the tag.
        let frames = FRAME_BYTES.map(|bytes| frame(bytes.min(1514 + tag.len()), tag));
        for pair in pairs() {
            let config = Config {
                filter: Some(filter.into()),
                limit: Limit { packets: Some(frames.len() as u64), duration: None },
                ..Config::new("tap-a", pair.method, pair.stamp)
            };
            let stop = Stop::new().unwrap();
            let capture = lab.router().run(|| Capture::open(config, &clock)).unwrap().unwrap();
            for frame in &frames {
                wire.sendpacket(&**frame).unwrap();
            }
            let mut kept = KeptPackets::default();
            let (ledger, outcome) = capture.run(&clock, &stop, &mut kept);
            outcome.unwrap();
            let name = format!("{} {}: {ledger:?}", pair.method, pair.stamp);
            let kept: Vec<_> = kept.0.into_iter().map(|(_, bytes, _)| bytes).collect();
            assert_eq!(kept, frames, "{name}");
        }
    }
}
