//! Messages of IPFIX, one after another, and what they report of packets.
#![no_main]

use libfuzzer_sys::fuzz_target;
use wirestamp_mesh::protocol::ipfix::{Digests, Session, Transport};
use wirestamp_mesh::protocol::{MachineClock, ObservationBatch};

fuzz_target!(|input: (bool, Option<u64>, Vec<Vec<u8>>)| {
    let (is_stream, point, messages) = input;
    let transport = if is_stream { Transport::Stream } else { Transport::Datagrams };
    let mut session = Session::new(transport);
    let mut digests = Digests::new(point, MachineClock { machine: [0; 16], error: None });
    for mut bytes in messages {
        // Most would be refused for these alone.
        if let (Ok(length), Some(start)) = (u16::try_from(bytes.len()), bytes.get_mut(..4)) {
            start[..2].copy_from_slice(&10_u16.to_be_bytes());
            start[2..].copy_from_slice(&length.to_be_bytes());
        }
        let Ok(message) = session.read(&bytes) else { continue };
        for record in &message.records {
            assert_eq!(record.values().count(), record.template().fields().len());
        }
        digests.take(&message);
        if let Some(seen) = digests.ready() {
            assert_eq!(ObservationBatch::decode(&seen.encode()), Ok(seen));
        }
    }
});
