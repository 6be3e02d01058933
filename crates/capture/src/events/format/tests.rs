//! Formats of Linux 6.18, and any text.

use proptest::prelude::*;

use super::*;

const COMMON: &str = "	field:unsigned short common_type;	offset:0;	size:2;	signed:0;
	field:unsigned char common_flags;	offset:2;	size:1;	signed:0;
	field:unsigned char common_preempt_count;	offset:3;	size:1;	signed:0;
	field:int common_pid;	offset:4;	size:4;	signed:1;
";

fn event(name: &str, fields: &str) -> EventFormat {
    let text =
        format!("name: {name}\nID: 2303\nformat:\n{COMMON}\n{fields}\nprint fmt: \"field:\"");
    EventFormat::parse("net", &text).unwrap()
}

fn netif_receive_skb() -> EventFormat {
    event(
        "netif_receive_skb",
        "	field:void * skbaddr;	offset:8;	size:8;	signed:0;
	field:unsigned int len;	offset:16;	size:4;	signed:0;
	field:__data_loc char[] name;	offset:20;	size:4;	signed:0;",
    )
}

#[test]
fn fields_of_a_received_packet_are_read() {
    let format = netif_receive_skb();
    assert_eq!((format.name(), format.id()), ("net:netif_receive_skb", 2303));
    let names: Vec<_> = format.fields().iter().map(Field::name).collect();
    assert_eq!(names, ["skbaddr", "len", "name"]);
    let parts: [&[u8]; 6] = [
        &[0xff, 8, 0x10, 0],
        &(-7_i32).to_ne_bytes(),
        &0xffff_8881_0000_1000_u64.to_ne_bytes(),
        &60_u32.to_ne_bytes(),
        &(24_u32 | 6 << 16).to_ne_bytes(),
        b"veth1\0\0\0",
    ];
    let record = parts.concat();
    let value = |name: &str| format.field(name).unwrap().value(&record).unwrap();
    assert_eq!(value("skbaddr"), Value::Pointer(0xffff_8881_0000_1000));
    assert_eq!(value("len"), Value::Unsigned(60));
    assert_eq!(value("name"), Value::Text("veth1".into()));
    assert_eq!(value("common_pid"), Value::Signed(-7));
    assert_eq!(value("common_flags").number(), Some(0x10));
    assert_eq!(value("skbaddr").to_string(), "0xffff888100001000");
    assert_eq!(format.field("len").unwrap().value(&record[..19]), None, "too short");
    assert_eq!(format.field("name").unwrap().value(&record[..29]), None, "text beyond the record");
}

#[test]
fn arrays_and_other_types_are_read() {
    let format = event(
        "other",
        "	field:char comm[4];	offset:8;	size:4;	signed:0;
	field:unsigned char mac[6];	offset:12;	size:6;	signed:0;
	field:struct sk_buff *skb;	offset:24;	size:8;	signed:0;
	field:__rel_loc char[] text;	offset:32;	size:4;	signed:0;
	field:const u16 * pointer;	offset:24;	size:8;	signed:0;
	field:s16 small;	offset:12;	size:2;	signed:1;",
    );
    let mut record = vec![0; 42];
    record[8..12].copy_from_slice(b"abcd");
    record[12..18].copy_from_slice(&[0xff, 0xff, 2, 3, 4, 5]);
    record[32..36].copy_from_slice(&(1_u32 | 3 << 16).to_ne_bytes());
    record[37..40].copy_from_slice(b"xyz");
    let text = |name: &str| format.field(name).unwrap().value(&record).unwrap().to_string();
    assert_eq!(text("comm"), "abcd");
    assert_eq!(text("mac"), "ffff02030405");
    assert_eq!(text("skb"), "0x0");
    assert_eq!(text("pointer"), "0x0");
    assert_eq!(text("text"), "xyz");
    assert_eq!(text("small"), "-1");
    assert!(format.field("text").unwrap().is_text() && !format.field("mac").unwrap().is_text());
}

#[test]
fn text_without_number_or_with_unknown_fields_is_no_format() {
    assert_eq!(EventFormat::parse("net", "name: x\nformat:\n"), None);
    assert_eq!(EventFormat::parse("net", "name: x\nID: 70000\n"), None);
    let broken = "name: x\nID: 7\n	field:int a;	offset:x;	size:4;	signed:1;";
    assert_eq!(EventFormat::parse("net", broken), None);
}

proptest! {
    #[test]
    fn any_format_and_record_is_read(
        text in "(name: [a-z]{1,3}\nID: [0-9]{1,6}\n)?(\tfield:[ a-z_*\\[\\]0-9]{0,20};\toffset:[0-9]{1,20};\tsize:[0-9]{1,20};\tsigned:[01];\n){0,4}.{0,40}",
        record in prop::collection::vec(any::<u8>(), 0..80),
    ) {
        if let Some(format) = EventFormat::parse("net", &text) {
            for field in format.fields() {
                let _ = field.value(&record).map(|value| (value.number(), value.to_string()));
            }
        }
        let format = netif_receive_skb();
        for field in format.fields() {
            let _ = field.value(&record).map(|value| (value.number(), value.to_string()));
        }
    }
}
