//! Values of information elements that several records have.

use std::net::IpAddr;

use wirestamp_clock::{Time, Utc};

use crate::protocol::ipfix::element::{
    DESTINATION_IPV4_ADDRESS, DESTINATION_IPV6_ADDRESS, SOURCE_IPV4_ADDRESS, SOURCE_IPV6_ADDRESS,
};
use crate::protocol::ipfix::{Element, Value};

/// The number of a task, as the ID of its metering process. There are never 2^32 tasks.
pub(super) fn number_of(task: u64) -> Value<'static> {
    Value::U32(u32::try_from(task).unwrap_or(u32::MAX))
}

/// Milliseconds since 1970; 0 for earlier times.
pub(super) fn millis(time: Time<Utc>) -> Value<'static> {
    Value::U64(u64::try_from(time.as_nanos() / 1_000_000).unwrap_or(0))
}

/// A value in nanoseconds, rounded.
#[expect(clippy::cast_possible_truncation, reason = "rounded; between values that are i64")]
pub(super) fn nanos(value: f64) -> i64 {
    value.round() as i64
}

/// Source and destination address. An IPv4 address beside an IPv6 one is mapped.
pub(super) fn addresses(ends: [IpAddr; 2], is_ipv6: bool) -> [(Element, Value<'static>); 2] {
    let elements = if is_ipv6 {
        [SOURCE_IPV6_ADDRESS, DESTINATION_IPV6_ADDRESS]
    } else {
        [SOURCE_IPV4_ADDRESS, DESTINATION_IPV4_ADDRESS]
    };
    let [source, destination] = ends.map(|end| match end {
        IpAddr::V4(it) if is_ipv6 => Value::Address(it.to_ipv6_mapped().into()),
        it => Value::Address(it),
    });
    [(elements[0], source), (elements[1], destination)]
}
