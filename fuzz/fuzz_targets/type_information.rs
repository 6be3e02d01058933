//! Type information of the kernel must never panic its reader.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|btf: &[u8]| wirestamp_clock::vdso::parse_type_information(btf));
