//! Control messages of packets received and sent.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    wirestamp_capture::fuzzing::control_messages(bytes);
});
