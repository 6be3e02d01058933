//! Access for the targets in `fuzz/` to private parsers. Compiled only by cargo-fuzz; a unit test of the parsers runs the
//! same checks briefly.

/// A record of a probe.
pub type FuzzedRecord = crate::collector::kafka::fuzzing::FuzzedRecord;

/// A value of a record in Kafka, as it was written by anyone.
pub fn kafka_value(bytes: &[u8]) {
    crate::collector::kafka::fuzzing::take_value(bytes);
}

/// Records of probes, in the order of a partition.
pub fn kafka_records(records: Vec<FuzzedRecord>) {
    crate::collector::kafka::fuzzing::take_records(records);
}
