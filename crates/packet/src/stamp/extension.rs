//! Extensions after the fields of a packet: type, length and value (RFC 8972 section 4).

/// Flags of an extension, which the reflector sets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ExtensionFlags {
    /// Unknown type. Senders set it, so that an unchanged flag shows that the reflector ignored the extension.
    pub unrecognised: bool,
    /// Wrong length.
    pub malformed: bool,
    /// Wrong code.
    pub forged: bool,
}

/// An extension; borrows the packet's bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Extension<'a> {
    /// Flags set by the reflector.
    pub flags: ExtensionFlags,
    /// Type (IANA, STAMP TLV Types).
    pub kind: u8,
    /// Value.
    pub value: &'a [u8],
}

impl Extension<'_> {
    /// Bytes before a value: flags, type, length.
    pub const HEAD: usize = 4;

    /// Padding, for packets of a chosen length (section 4.1).
    pub const PADDING: u8 = 1;

    /// The code of the extensions before it (section 4.8), the last one of an authenticated packet.
    pub const CODE: u8 = 8;

    /// Appends the extension. Bytes of its value beyond a 16-bit length are dropped.
    pub fn write(&self, packet: &mut Vec<u8>) {
        let ExtensionFlags { unrecognised, malformed, forged } = self.flags;
        let flags = u8::from(unrecognised) << 7 | u8::from(malformed) << 6 | u8::from(forged) << 5;
        let length = u16::try_from(self.value.len()).unwrap_or(u16::MAX);
        let [high, low] = length.to_be_bytes();
        packet.extend([flags, self.kind, high, low]);
        packet.extend(&self.value[..usize::from(length)]);
    }
}

/// The extensions of a packet in their order, from the bytes after its fields.
#[must_use]
pub const fn extensions(bytes: &[u8]) -> Extensions<'_> {
    Extensions { rest: bytes }
}

/// Iterator over the extensions of a packet. One with a length beyond the end of the packet is the last: its value is
/// the remaining bytes, and it is marked as malformed.
#[derive(Clone, Copy, Debug)]
pub struct Extensions<'a> {
    rest: &'a [u8],
}

impl<'a> Iterator for Extensions<'a> {
    type Item = Extension<'a>;

    fn next(&mut self) -> Option<Extension<'a>> {
        let (&[flags, kind, high, low], behind) =
            self.rest.split_first_chunk::<{ Extension::HEAD }>()?;
        let is_set = |bit: u8| flags >> bit & 1 == 1;
        let length = usize::from(u16::from_be_bytes([high, low]));
        let (value, rest) = behind.split_at(length.min(behind.len()));
        self.rest = rest;
        let malformed = is_set(6) || value.len() < length;
        let flags = ExtensionFlags { unrecognised: is_set(7), malformed, forged: is_set(5) };
        Some(Extension { flags, kind, value })
    }
}
