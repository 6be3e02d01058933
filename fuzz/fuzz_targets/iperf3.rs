//! The datagrams of a flow that may be those of an iperf3 test.
#![no_main]

use libfuzzer_sys::fuzz_target;
use wirestamp_packet::iperf3::{Counter, Iperf3, Recogniser};

fuzz_target!(|payloads: Vec<&[u8]>| {
    let mut recogniser = Recogniser::default();
    for payload in payloads {
        let counters = [Counter::Bits32, Counter::Bits64];
        let heads = counters.map(|counter| Iperf3::parse(payload, counter));
        for head in heads.iter().flatten() {
            assert!(head.count > 0 && head.sent_micros / 1_000_000 <= u64::from(u32::MAX));
        }
        if recogniser.record(payload).is_some() {
            assert!(heads.iter().any(Option::is_some), "what makes it certain is of the test itself");
        }
    }
});
