//! The Ethernet header, and hardware addresses of Ethernet interfaces.

use std::fmt;
use std::str::FromStr;

/// The Ethernet header: two addresses and a type (IEEE 802.3).
pub(crate) const ETHERNET_HEADER: usize = 14;

/// The address of an Ethernet interface (IEEE 802, 48 bits).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MacAddress(pub [u8; 6]);

impl MacAddress {
    /// The address with these bytes; `None` unless there are six.
    pub(crate) fn from_slice(bytes: &[u8]) -> Option<Self> {
        bytes.try_into().ok().map(Self)
    }
}

impl fmt::Display for MacAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [a, b, c, d, e, g] = self.0;
        write!(f, "{a:02x}:{b:02x}:{c:02x}:{d:02x}:{e:02x}:{g:02x}")
    }
}

impl FromStr for MacAddress {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        const EXPECTED: &str = "expected six bytes in hexadecimal, such as 02:77:00:00:01:02";
        let mut parts = text.split(':');
        let mut bytes = [0; 6];
        for byte in &mut bytes {
            let part = parts.next().filter(|part| (1..=2).contains(&part.len()));
            let part = part.filter(|part| part.bytes().all(|c| c.is_ascii_hexdigit()));
            *byte = part.and_then(|part| u8::from_str_radix(part, 16).ok()).ok_or(EXPECTED)?;
        }
        if parts.next().is_none() { Ok(Self(bytes)) } else { Err(EXPECTED) }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn printed_address_parses_to_itself(bytes: [u8; 6]) {
            let mac = MacAddress(bytes);
            prop_assert_eq!(mac.to_string().parse(), Ok(mac));
        }
    }

    #[test]
    fn invalid_addresses_are_rejected() {
        for text in ["", "02:77", "02:77:00:00:01:0g", "02:77:00:00:01:02:03", "+2:77:0:0:1:2"] {
            assert!(text.parse::<MacAddress>().is_err(), "{text}");
        }
    }
}
