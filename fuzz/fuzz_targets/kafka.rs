//! Values of records in Kafka, and records of probes that a collector takes.
#![no_main]

use libfuzzer_sys::fuzz_target;
use wirestamp_mesh::fuzzing::{FuzzedRecord, kafka_records, kafka_value};

fuzz_target!(|input: (Vec<u8>, Vec<FuzzedRecord>)| {
    let (value, records) = input;
    kafka_value(&value);
    kafka_records(records);
});
