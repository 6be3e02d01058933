//! The examples of RFC 7011 appendix A.

use super::*;

const HOPS: &[u8] = &[1, 0, 0, 5, 0, 8, 0, 4, 0, 12, 0, 4, 0, 15, 0, 4, 0, 2, 0, 4, 0, 1, 0, 4];
const NEXT_HOP: Element = Element { enterprise: 0, number: 15 };

#[test]
fn template_and_records_are_decoded() {
    // A.2.1 and A.3.
    let records = [
        [192, 0, 2, 12, 192, 0, 2, 254, 192, 0, 2, 1, 0, 0, 0x13, 0x91, 0, 0x51, 0x8c, 0x81],
        [192, 0, 2, 27, 192, 0, 2, 23, 192, 0, 2, 2, 0, 0, 2, 0xec, 0, 5, 0xef, 0x46],
        [192, 0, 2, 56, 192, 0, 2, 65, 192, 0, 2, 3, 0, 0, 0, 5, 0, 0, 0x19, 0x86],
    ];
    let bytes = message(1, 0, &[(TEMPLATES, HOPS), (256, records.as_flattened())]);
    let mut session = fresh();
    let read = session.read(&bytes).unwrap().records;
    let packets: Vec<_> = read.iter().map(|it| it.unsigned(element::PACKET_DELTA_COUNT)).collect();
    assert_eq!(packets, [Some(5009), Some(748), Some(5)]);
    let octets = Element { enterprise: 0, number: 1 };
    let octets: Vec<_> = read.iter().map(|it| it.unsigned(octets)).collect();
    assert_eq!(octets, [Some(5_344_385), Some(388_934), Some(6534)]);
    assert_eq!(read[2].address(NEXT_HOP), Some([192, 0, 2, 3].into()));
    assert_eq!(read[0].get(element::IP_TOTAL_LENGTH), None);
    // The template is stored now.
    let bytes = message(1, 3, &[(256, &records[0])]);
    assert_eq!(session.read(&bytes).unwrap().records.len(), 1);
    assert_eq!(session.unread(), Unread::default());
}

#[test]
fn enterprise_element_is_decoded() {
    // A.2.2, with an enterprise number for documentation.
    let template = [
        1, 1, 0, 5, 0, 8, 0, 4, 0, 12, 0, 4, 0x80, 15, 0, 4, 0, 0, 0x7e, 0xd9, 0, 2, 0, 4, 0, 1, 0,
        4,
    ];
    let bytes = message(1, 0, &[(TEMPLATES, &template), (257, &[7; 20])]);
    let read = fresh().read(&bytes).unwrap().records;
    assert_eq!(read[0].get(NEXT_HOP), None);
    let own = Element { enterprise: 32_473, number: 15 };
    assert_eq!(read[0].unsigned(own), Some(0x0707_0707));
    assert_eq!(read[0].template().part(), Part::template(false, template.to_vec()));
}

#[test]
fn options_template_and_records_are_decoded() {
    // A.4.1 and A.4.2, with two bytes of padding behind the template.
    let template = [1, 2, 0, 3, 0, 1, 0, 141, 0, 4, 0, 41, 0, 2, 0, 42, 0, 2];
    let padded = [&template[..], &[0, 0]].concat();
    let records = [0, 0, 0, 1, 1, 0x59, 0x27, 0xd9, 0, 0, 0, 2, 2, 0xb2, 0x4f, 0xb2];
    let bytes = message(1, 0, &[(OPTIONS_TEMPLATES, &padded), (258, &records)]);
    let mut session = fresh();
    let read = session.read(&bytes).unwrap().records;
    let flows = Element { enterprise: 0, number: 42 };
    let flows: Vec<_> = read.iter().map(|it| it.unsigned(flows)).collect();
    assert_eq!(flows, [Some(10_201), Some(20_402)]);
    assert_eq!(read[0].template().scope(), 1);
    assert_eq!(read[0].template().part(), Part::template(true, template.to_vec()));
    assert_eq!(session.unread(), Unread::default());
}

#[test]
fn variable_lengths_are_decoded() {
    // A.5.1 and A.5.2: five bytes, and a thousand.
    let template = [1, 0, 0, 1, 0, 82, 0xff, 0xff];
    let short = [&[5][..], b"hello"].concat();
    let long = [&[255, 3, 0xe8][..], &[b'x'; 1000]].concat();
    let bytes = message(1, 0, &[(TEMPLATES, &template), (256, &[short, long].concat())]);
    let read = fresh().read(&bytes).unwrap().records;
    let name = Element { enterprise: 0, number: 82 };
    assert_eq!(read[0].get(name), Some(&b"hello"[..]));
    assert_eq!(read[1].get(name).map(<[u8]>::len), Some(1000));
    assert_eq!(read[1].unsigned(name), None);
}
