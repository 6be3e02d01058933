//! What chronyd and ptp4l say of the clock.
#![no_main]

use libfuzzer_sys::fuzz_target;
use wirestamp_clock::Span;
use wirestamp_clock::keepers::{CurrentDataSet, TimeStatus, Tracking};

fuzz_target!(|input: (u16, &[u8])| {
    let (number, bytes) = input;
    if let Ok(said) = Tracking::parse(bytes, number.into()) {
        assert!(said.error().is_none_or(|error| error >= Span::ZERO));
    }
    let _ = TimeStatus::parse(bytes, number);
    let _ = CurrentDataSet::parse(bytes, number);
});
