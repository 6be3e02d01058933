//! Test packets of STAMP with their extensions, open and authenticated.
#![no_main]

use libfuzzer_sys::fuzz_target;
use wirestamp_clock::Span;
use wirestamp_packet::stamp::{Key, Mode, Reflected, Sent, extensions};

fuzz_target!(|input: (bool, i64, &[u8])| {
    let (is_open, tai, bytes) = input;
    let Some(key) = Key::new(b"a key that sender and reflector share") else { return };
    let mode = if is_open { Mode::Open } else { Mode::Authenticated(&key) };
    let mut written = Vec::new();
    if let Ok(sent) = Sent::parse(bytes, mode) {
        sent.write(mode, &mut written);
        assert_eq!(Sent::parse(&written, mode), Ok(sent));
        let _ = (sent.timestamp.time(sent.error.format(), Span::from_nanos(tai)), sent.error.bound());
    }
    written.clear();
    if let Ok(reflected) = Reflected::parse(bytes, mode) {
        reflected.write(mode, &mut written);
        assert_eq!(Reflected::parse(&written, mode), Ok(reflected));
    }
    written.clear();
    let read: usize = extensions(bytes).map(|extension| 4 + extension.value.len()).sum();
    assert!(read <= bytes.len());
    extensions(bytes).for_each(|extension| extension.write(&mut written));
    assert_eq!(written.len(), read);
});
