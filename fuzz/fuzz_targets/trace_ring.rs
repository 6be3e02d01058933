//! Pages, headers, formats and records of the kernel's trace ring must never panic their readers.
#![no_main]

use libfuzzer_sys::fuzz_target;
use wirestamp_capture::events::format::EventFormat;
use wirestamp_capture::events::page::{Cursor, PageLayout};

fuzz_target!(|input: (&str, &str, &[u8], u16)| {
    let (header, format, bytes, written) = input;
    let format = EventFormat::parse("net", format);
    let known = "\tfield: u64 timestamp;\toffset:0;\tsize:8;\n\
                 \tfield: local_t commit;\toffset:8;\tsize:8;\n\
                 \tfield: char data;\toffset:16;\tsize:4080;\n";
    for layout in [known, header].into_iter().filter_map(PageLayout::parse) {
        let Some(page) = layout.page(bytes) else { continue };
        // The kernel extends the page: a part first, then all of it.
        let mut cursor = Cursor::new(page.timestamp);
        for written in [page.committed.min(written.into()), page.committed] {
            let Some(data) = page.data.get(..written.max(cursor.position())) else { continue };
            while let Some(record) = cursor.next(data) {
                let (Ok(record), Some(format)) = (record, &format) else { continue };
                for field in format.fields() {
                    let _ = field.value(record.data).map(|value| (value.number(), value.to_string()));
                }
            }
            assert_eq!(cursor.position(), data.len());
        }
    }
});
