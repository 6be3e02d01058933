//! Programs of classic BPF, and what they are translated to.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| wirestamp_capture::fuzzing::filter_program(bytes));
