//! Type information of the kernel (Documentation/bpf/btf.rst): size and members of a struct.

/// First two bytes.
const MAGIC: u16 = 0xEB9F;

/// Kinds of types that have a member list, and bytes after each type by kind (`enum` and `BTF_KIND_*` of linux/btf.h).
const STRUCT: u32 = 4;
const UNION: u32 = 5;

/// A struct.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Struct {
    /// Bytes.
    pub(super) size: usize,
    /// Names and offsets in bytes; an unnamed union has an empty name. Without bit fields.
    pub(super) members: Vec<(String, usize)>,
}

impl Struct {
    /// The struct of this name; none if there is none, or the type information is not valid.
    pub(super) fn find(btf: &[u8], name: &str) -> Option<Self> {
        let header = Header::read(btf)?;
        let mut rest = header.types;
        while !rest.is_empty() {
            let [name_offset, info, size] = [0, 4, 8].map(|at| word(rest, at));
            let (info, size) = (info?, size?);
            let (kind, count) = (info >> 24 & 0x1F, info as usize & 0xFFFF);
            let end = 12 + after(kind, count)?;
            let members = rest.get(12..end)?;
            if kind == STRUCT && header.text(name_offset?)? == name {
                return Some(Self { size: size as usize, members: header.members(info, members)? });
            }
            rest = &rest[end..];
        }
        None
    }

    /// Offset of a member in bytes.
    pub(super) fn offset(&self, name: &str) -> Option<usize> {
        self.members.iter().find(|member| member.0 == name).map(|member| member.1)
    }
}

/// The sections of the type information.
struct Header<'a> {
    types: &'a [u8],
    strings: &'a [u8],
}

impl<'a> Header<'a> {
    fn read(btf: &'a [u8]) -> Option<Self> {
        let magic = u16::from_ne_bytes(btf.get(..2)?.try_into().ok()?);
        let length = word(btf, 4)? as usize;
        let body = btf.get(length..)?;
        let section = |at: usize| -> Option<&'a [u8]> {
            let (offset, length) = (word(btf, at)? as usize, word(btf, at + 4)? as usize);
            body.get(offset..)?.get(..length)
        };
        (magic == MAGIC).then_some(Self { types: section(8)?, strings: section(16)? })
    }

    fn text(&self, offset: u32) -> Option<&'a str> {
        let text = self.strings.get(offset as usize..)?;
        std::str::from_utf8(text.split(|byte| *byte == 0).next()?).ok()
    }

    fn members(&self, info: u32, members: &[u8]) -> Option<Vec<(String, usize)>> {
        // With this flag the upper byte of an offset is the size of a bit field.
        let has_bit_fields = info >> 31 == 1;
        let read = |member: &[u8]| {
            let (name, offset) = (self.text(word(member, 0)?)?, word(member, 8)?);
            let bits = if has_bit_fields { offset & 0x00FF_FFFF } else { offset };
            Some((name.to_owned(), bits as usize / 8))
        };
        members.chunks_exact(12).map(read).collect()
    }
}

/// Bytes after a type of this kind with `count` elements; none for an unknown kind.
fn after(kind: u32, count: usize) -> Option<usize> {
    Some(match kind {
        2 | 7..=12 | 16 | 18 => 0,
        1 | 14 | 17 => 4,
        3 => 12,
        6 | 13 => 8 * count,
        STRUCT | UNION | 15 | 19 => 12 * count,
        _ => return None,
    })
}

fn word(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_ne_bytes(bytes.get(at..)?.get(..4)?.try_into().ok()?))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Type information with an integer `u32` and the struct `clock { seq; (union); mult }`.
    fn sample() -> Vec<u8> {
        let strings = b"\0u32\0clock\0seq\0mult\0";
        let words = [
            1,
            1 << 24,
            4,
            32, // u32, an integer
            5,
            STRUCT << 24 | 3,
            48,
            11,
            1,
            0,
            0,
            1,
            64,
            15,
            1,
            320, // clock
        ];
        let types: Vec<u8> = words.iter().flat_map(|word: &u32| word.to_ne_bytes()).collect();
        let lengths = [types.len(), strings.len()].map(|it| u32::try_from(it).unwrap());
        let mut btf = MAGIC.to_ne_bytes().to_vec();
        btf.extend([1, 0]);
        for word in [24, 0, lengths[0], lengths[0], lengths[1]] {
            btf.extend(u32::to_ne_bytes(word));
        }
        [btf, types, strings.to_vec()].concat()
    }

    #[test]
    fn members_are_found_by_name() {
        let clock = Struct::find(&sample(), "clock").unwrap();
        assert_eq!(clock.size, 48);
        let offsets = ["seq", "", "mult", "shift"].map(|name| clock.offset(name));
        assert_eq!(offsets, [Some(0), Some(8), Some(40), None]);
        assert_eq!(Struct::find(&sample(), "seq"), None);
    }

    #[test]
    fn kernel_describes_its_structs() {
        let Ok(btf) = std::fs::read("/sys/kernel/btf/vmlinux") else { return };
        let list = Struct::find(&btf, "list_head").unwrap();
        let word = size_of::<usize>();
        assert_eq!(
            (list.size, list.offset("next"), list.offset("prev")),
            (2 * word, Some(0), Some(word))
        );
    }

    proptest! {
        #[test]
        fn damaged_type_information_does_not_panic(at in 0_usize..112, byte in any::<u8>(), end in 0_usize..112) {
            let mut btf = sample();
            let at = at % btf.len();
            btf[at] = byte;
            let _ = Struct::find(&btf, "clock");
            let _ = Struct::find(&btf[..end.min(btf.len())], "clock");
        }
    }
}
