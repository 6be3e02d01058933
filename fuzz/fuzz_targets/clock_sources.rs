//! Replies of chronyd and ptp4l.
#![no_main]

use libfuzzer_sys::fuzz_target;
use wirestamp_clock::Span;
use wirestamp_clock::clock_sources::{CurrentDataSet, TimeStatus, Tracking};

fuzz_target!(|input: (u16, &[u8])| {
    let (number, bytes) = input;
    if let Ok(tracking) = Tracking::parse(bytes, number.into()) {
        assert!(tracking.error().is_none_or(|error| error >= Span::ZERO));
    }
    let _ = TimeStatus::parse(bytes, number);
    let _ = CurrentDataSet::parse(bytes, number);
});
