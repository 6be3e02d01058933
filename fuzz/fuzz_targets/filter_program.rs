//! Programs of classic BPF, and their translations.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| wirestamp_capture::fuzzing::filter_program(bytes));
