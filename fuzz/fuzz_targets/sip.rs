//! Messages of SIP, and where they end in a stream.
#![no_main]

use libfuzzer_sys::fuzz_target;
use wirestamp_packet::sip::{Framing, Message, framing};

fuzz_target!(|bytes: &[u8]| {
    let message = Message::parse(bytes);
    assert!(message.is_none_or(|message| !message.call_id.contains(char::is_control)));
    if let Framing::Complete(length) = framing(bytes) {
        assert!(0 < length && length <= bytes.len());
        assert_eq!(framing(&bytes[..length]), Framing::Complete(length));
    }
});
