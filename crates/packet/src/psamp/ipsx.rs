//! The IP Shift-XOR hash of RFC 5475 appendix A.1.

/// The IPSX hash over four words of an IPv4 packet (RFC 5475 appendix A.1), in network byte order:
///
/// 1. identification, flags and fragment offset;
/// 2. source address;
/// 3. destination address;
/// 4. bytes 4 to 7 above IP: TCP's sequence number, or UDP's length and checksum.
///
/// It is allowed for selection and cheaper than [`bob`](super::bob()). For digests the RFC advises against it
/// (section 6.2.4.2), and it has no secret parameter.
#[must_use]
pub fn ipsx([f1, f2, f3, f4]: [u32; 4]) -> u16 {
    let v1 = f1 ^ f2;
    let v2 = f3 ^ f4;
    let from_v1 = (v1 << 8) ^ (v1 >> 4) ^ (v1 >> 12) ^ (v1 >> 16);
    let from_v2 = (v2 << 6) ^ (v2 << 10) ^ (v2 << 14) ^ (v2 >> 7);
    #[expect(clippy::cast_possible_truncation, reason = "the RFC takes the lowest 16 bits")]
    let hash = (from_v1 ^ from_v2) as u16;
    hash
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::ipsx;

    /// The RFC has no test vectors. These come from its ten steps written in Python; the second and the third can be
    /// checked by hand.
    #[test]
    fn hash_equals_the_ten_steps() {
        let expected = [
            ([0, 0, 0, 0], 0),
            ([1, 0, 0, 0], 1 << 8),
            ([0, 0, 1, 0], 1 << 6 | 1 << 10 | 1 << 14),
            ([0xffff_ffff, 0, 0, 0], 0x00ff),
            ([0, 0, 0xffff_ffff, 0], 0x3c3f),
            ([0x1234_5678, 0x9abc_def0, 0x0fed_cba9, 0x8765_4321], 0x1399),
        ];
        for (words, hash) in expected {
            assert_eq!(ipsx(words), hash, "{words:x?}");
        }
    }

    proptest! {
        #[test]
        fn hash_is_linear(one in any::<[u32; 4]>(), other in any::<[u32; 4]>()) {
            let both = std::array::from_fn(|i| one[i] ^ other[i]);
            prop_assert_eq!(ipsx(both), ipsx(one) ^ ipsx(other));
        }
    }
}
