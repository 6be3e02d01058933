use proptest::prelude::*;
use wirestamp_clock::{Span, Time};

use super::*;

fn sent() -> impl Strategy<Value = Sent> {
    any::<(u32, u64, u16, u16)>().prop_map(|(sequence, time, error, session)| Sent {
        sequence,
        timestamp: Stamped(time),
        error: ErrorEstimate(error),
        session,
    })
}

fn reflected() -> impl Strategy<Value = Reflected> {
    (sent(), any::<(u32, u64, u16, u64, u8)>()).prop_map(
        |(sent, (sequence, time, error, received, ttl))| Reflected {
            sequence,
            timestamp: Stamped(time),
            error: ErrorEstimate(error),
            received: Stamped(received),
            sent,
            ttl,
        },
    )
}

fn key() -> Key {
    Key::new(b"a secret of some length, as one should have").unwrap()
}

#[test]
fn open_packet_has_the_standards_layout() {
    let time = Time::from_nanos(1_500_000_000);
    let sent = Sent {
        sequence: 7,
        timestamp: Stamped::of(time, Format::Ntp, Span::ZERO),
        error: ErrorEstimate(0x8101),
        session: 0x1234,
    };
    let mut packet = Vec::new();
    sent.write(Mode::Open, &mut packet);
    let head = [0, 0, 0, 7, 0x83, 0xaa, 0x7e, 0x81, 0x80, 0, 0, 0, 0x81, 1, 0x12, 0x34];
    assert_eq!((&packet[..16], packet.len()), (&head[..], 44));
    // TWAMP Light has no session and, with the shortest padding, no further bytes.
    let light = Sent::parse(&packet[..14], Mode::Open).unwrap();
    assert_eq!(light, Sent { session: 0, ..sent });
    assert_eq!(Sent::parse(&packet[..13], Mode::Open), Err(NotStamp::TooShort(13, 14)));
    assert_eq!(Reflected::parse(&packet[..43], Mode::Open), Err(NotStamp::TooShort(43, 44)));
}

#[test]
fn changed_bit_or_key_makes_a_packet_forged() {
    let (key, other) = (key(), Key::new(b"another").unwrap());
    let sent = Sent { sequence: 1, timestamp: Stamped(2), error: ErrorEstimate(3), session: 4 };
    let mut packet = Vec::new();
    sent.write(Mode::Authenticated(&key), &mut packet);
    assert_eq!(packet.len(), 112);
    assert_eq!(Sent::parse(&packet, Mode::Authenticated(&key)), Ok(sent));
    assert_eq!(Sent::parse(&packet, Mode::Authenticated(&other)), Err(NotStamp::Forged));
    for bit in [0, 100, 700, 800, 895] {
        let mut forged = packet.clone();
        forged[bit / 8] ^= 1 << (bit % 8);
        let read = Sent::parse(&forged, Mode::Authenticated(&key));
        assert_eq!(read, Err(NotStamp::Forged), "bit {bit}");
    }
}

#[test]
fn too_long_extension_is_last_and_malformed() {
    let mut packet = Vec::new();
    let padding = Extension {
        flags: ExtensionFlags { unrecognised: true, ..ExtensionFlags::default() },
        kind: Extension::PADDING,
        value: &[0; 5],
    };
    padding.write(&mut packet);
    packet.extend([0, 4, 0, 9, 1, 2]);
    let read: Vec<_> = extensions(&packet).collect();
    let [first, last] = read[..] else { panic!("{read:?}") };
    assert_eq!(first, padding);
    assert_eq!((last.kind, last.value, last.flags.malformed), (4, &[1, 2][..], true));
    assert_eq!(extensions(&[0, 1, 0]).count(), 0);
}

proptest! {
    #[test]
    fn written_packets_are_parsed(sent in sent(), reflected in reflected(), is_open: bool) {
        let key = key();
        let mode = if is_open { Mode::Open } else { Mode::Authenticated(&key) };
        let mut packet = Vec::new();
        sent.write(mode, &mut packet);
        prop_assert_eq!((Sent::parse(&packet, mode), packet.len()), (Ok(sent), mode.length()));
        packet.clear();
        reflected.write(mode, &mut packet);
        prop_assert_eq!(Reflected::parse(&packet, mode), Ok(reflected));
        // Bytes after the fields do not belong to them.
        packet.extend([1; 9]);
        prop_assert_eq!(Reflected::parse(&packet, mode), Ok(reflected));
    }

    #[test]
    fn arbitrary_bytes_do_not_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let key = key();
        for mode in [Mode::Open, Mode::Authenticated(&key)] {
            let _ = (Sent::parse(&bytes, mode), Reflected::parse(&bytes, mode));
        }
        let mut written = Vec::new();
        let whole = extensions(&bytes).all(|extension| {
            extension.write(&mut written);
            !extension.flags.malformed
        });
        // Reserved bits are dropped.
        if whole {
            prop_assert!(written.len() <= bytes.len());
        }
    }
}
