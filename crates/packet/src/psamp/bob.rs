//! Bob Jenkins' hash of 1996, as in RFC 5475 appendix A.2.

/// "An arbitrary value" that keeps zeros from hashing to zero (RFC 5475 appendix A.2).
const GOLDEN_RATIO: u32 = 0x9e37_79b9;

/// Bytes mixed at a time: three words.
const BLOCK: usize = 12;

/// The BOB hash of `key` (RFC 5475 appendix A.2). PSAMP requires it for selection (section 6.2.4.1) and recommends it
/// for digests (section 6.2.4.2).
///
/// `initial` is the RFC's init value; points that must agree use the same one, and keep it private. That does not
/// make the hash cryptographic: a sender of many packets can find out which are selected (section 6.2.3).
#[must_use]
pub fn bob(key: &[u8], initial: u32) -> u32 {
    let mut state = [GOLDEN_RATIO, GOLDEN_RATIO, initial];
    let (blocks, rest) = key.as_chunks::<BLOCK>();
    for block in blocks {
        add(&mut state, block);
        mix(&mut state);
    }
    // The length uses the lowest byte of the third word, so the bytes after the eighth move up.
    let mut last = [0; BLOCK];
    let (low, high) = rest.split_at(rest.len().min(8));
    last[..low.len()].copy_from_slice(low);
    last[9..9 + high.len()].copy_from_slice(high);
    add(&mut state, &last);
    #[expect(clippy::cast_possible_truncation, reason = "the RFC's length has 32 bits")]
    let length = key.len() as u32;
    state[2] = state[2].wrapping_add(length);
    mix(&mut state);
    state[2]
}

/// Adds the three little-endian words of a block to the state.
fn add(state: &mut [u32; 3], block: &[u8; BLOCK]) {
    for (word, bytes) in state.iter_mut().zip(block.as_chunks::<4>().0) {
        *word = word.wrapping_add(u32::from_le_bytes(*bytes));
    }
}

/// The RFC's `mix`: nine times the two other words are subtracted from one, and one of them is XORed into it, shifted
/// right, left and right in turn.
fn mix([a, b, c]: &mut [u32; 3]) {
    for [right, left, last] in [[13, 8, 13], [12, 16, 5], [3, 10, 15]] {
        *a = a.wrapping_sub(*b).wrapping_sub(*c) ^ (*c >> right);
        *b = b.wrapping_sub(*c).wrapping_sub(*a) ^ (*a << left);
        *c = c.wrapping_sub(*a).wrapping_sub(*b) ^ (*b >> last);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::bob;

    /// The RFC has no test vectors. These were printed by the C code in its appendix A.2,
    /// compiled with `ub4` as 32 bits, for the keys 00 01 02 ... of each length.
    #[test]
    fn hash_equals_the_reference_code() {
        let key: Vec<u8> = (0..40).collect();
        let expected = [
            (0, 0xbd49_d10d, 0x3df6_41a9),
            (1, 0x6ddf_b8c9, 0x2342_247b),
            (4, 0x821c_c2db, 0xfa45_e6e6),
            (5, 0x641b_59c9, 0x38b0_221c),
            (8, 0xa491_f494, 0x9b7e_bc7d),
            (11, 0xf189_c885, 0x44bf_8dbd),
            (12, 0x99bd_d9ef, 0x2271_a4b1),
            (13, 0xecad_9b0d, 0x6736_12b1),
            (20, 0x3cd4_09f6, 0x810b_8d52),
            (24, 0x7678_3385, 0x1d91_2b47),
            (40, 0xaab6_55d0, 0x4e49_0017),
        ];
        for (length, from_zero, from_other) in expected {
            let initial = if length == 0 { 0x1234_5678 } else { 0x0003_2545 };
            assert_eq!(bob(&key[..length], 0), from_zero, "{length} bytes");
            assert_eq!(bob(&key[..length], initial), from_other, "{length} bytes");
        }
    }

    proptest! {
        #[test]
        fn flipped_bit_changes_the_hash(
            key in prop::collection::vec(any::<u8>(), 1..60),
            initial in any::<u32>(),
            place in any::<prop::sample::Index>(),
            bit in 0..8u32,
        ) {
            let mut changed = key.clone();
            changed[place.index(key.len())] ^= 1u8 << bit;
            prop_assert_ne!(bob(&key, initial), bob(&changed, initial));
        }
    }
}
