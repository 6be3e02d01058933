//! Records of settings that were changed.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| wirestamp_capture::fuzzing::tune_record(text));
