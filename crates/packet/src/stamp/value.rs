//! What extensions say: the values of those that are understood here.

use super::{Extension, ExtensionFlags, Stamped};

/// The value of an extension of a fixed length.
pub trait Value: Sized {
    /// Its type (IANA, STAMP TLV Types).
    const KIND: u8;
    /// Its length in bytes.
    const LENGTH: usize;
    /// The bytes of the value, which are [`Self::LENGTH`].
    fn encode(&self) -> Vec<u8>;
    /// What these bytes say; none if they are not so many.
    fn decode(value: &[u8]) -> Option<Self>;

    /// Appends the extension as a sender does: marked as not understood, until a reflector has.
    fn ask(&self, packet: &mut Vec<u8>) {
        let flags = ExtensionFlags { unrecognised: true, ..ExtensionFlags::default() };
        Extension { flags, kind: Self::KIND, value: &self.encode() }.write(packet);
    }

    /// What an extension says that a reflector has answered.
    fn answered(extension: &Extension<'_>) -> Option<Self> {
        let understood =
            extension.kind == Self::KIND && extension.flags == ExtensionFlags::default();
        understood.then(|| Self::decode(extension.value)).flatten()
    }
}

/// Who keeps a clock right (RFC 8972 section 4.3, table 3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SyncSource {
    /// NTP.
    Ntp = 1,
    /// PTP.
    Ptp = 2,
    /// A building's supply of timing (SSU, BITS).
    Supply = 3,
    /// Satellites.
    Satellites = 4,
    /// Nobody.
    FreeRunning = 5,
}

/// How packets are stamped (RFC 8972 section 4.3, table 5).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StampMethod {
    /// By hardware.
    Hardware = 1,
    /// By software that forwards packets: here by the kernel, in the driver's softIRQ and before the
    /// driver sends.
    Local = 2,
    /// By the program that makes the packets.
    ControlPlane = 3,
}

/// How the reflector stamps (RFC 8972 section 4.3). Numbers, because there may be new ones.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TimestampInformation {
    /// What keeps the clock right that stamps what is received ([`SyncSource`]).
    pub received_by: u8,
    /// How what is received is stamped ([`StampMethod`]).
    pub received_how: u8,
    /// The same of what is sent.
    pub sent_by: u8,
    /// The same of what is sent.
    pub sent_how: u8,
}

impl Value for TimestampInformation {
    const KIND: u8 = 3;
    const LENGTH: usize = 4;

    fn encode(&self) -> Vec<u8> {
        vec![self.received_by, self.received_how, self.sent_by, self.sent_how]
    }

    fn decode(value: &[u8]) -> Option<Self> {
        let &[received_by, received_how, sent_by, sent_how] = value else { return None };
        Some(Self { received_by, received_how, sent_by, sent_how })
    }
}

/// Which class packets belong to on their way (RFC 8972 section 4.4).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ClassOfService {
    /// The differentiated services code point that the reflector is to return the packet with.
    pub wanted: u8,
    /// That with which the packet reached the reflector.
    pub received: u8,
    /// The congestion bits with which it did.
    pub congestion: u8,
    /// Whether the reflector may not use what is wanted.
    pub refused: bool,
}

impl Value for ClassOfService {
    const KIND: u8 = 4;
    const LENGTH: usize = 4;

    fn encode(&self) -> Vec<u8> {
        let Self { wanted, received, congestion, refused } = *self;
        let [wanted, received] = [wanted, received].map(|point| u16::from(point & 0x3f));
        let fields =
            wanted << 10 | received << 4 | u16::from(congestion & 3) << 2 | u16::from(refused);
        let [high, low] = fields.to_be_bytes();
        vec![high, low, 0, 0]
    }

    fn decode(value: &[u8]) -> Option<Self> {
        let &[high, low, _, _] = value else { return None };
        Some(Self {
            wanted: high >> 2,
            received: high << 4 & 0x30 | low >> 4,
            congestion: low >> 2 & 3,
            refused: low & 3 == 1,
        })
    }
}

/// When the reflector's packet before this one really left (RFC 8972 section 4.7), which it cannot say in
/// that packet itself.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FollowUp {
    /// That packet's number, by the reflector.
    pub number: u32,
    /// When it left; 0 if there was none, or it is not known.
    pub left: Stamped,
    /// How that was stamped ([`StampMethod`]).
    pub how: u8,
}

impl Value for FollowUp {
    const KIND: u8 = 7;
    const LENGTH: usize = 16;

    fn encode(&self) -> Vec<u8> {
        let mut value = self.number.to_be_bytes().to_vec();
        value.extend(self.left.0.to_be_bytes());
        value.extend([self.how, 0, 0, 0]);
        value
    }

    fn decode(value: &[u8]) -> Option<Self> {
        let value: &[u8; 16] = value.try_into().ok()?;
        let (number, rest) = value.split_first_chunk()?;
        let (left, rest) = rest.split_first_chunk()?;
        Some(Self {
            number: u32::from_be_bytes(*number),
            left: Stamped(u64::from_be_bytes(*left)),
            how: rest[0],
        })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Written as it is read, and no other length is taken.
    fn round_trip<V: Value + PartialEq + std::fmt::Debug>(value: &V) {
        let bytes = value.encode();
        assert_eq!((bytes.len(), V::decode(&bytes).as_ref()), (V::LENGTH, Some(value)));
        assert_eq!(V::decode(&bytes[1..]), None);
        let mut packet = Vec::new();
        value.ask(&mut packet);
        let asked = super::super::extensions(&packet).next().unwrap();
        assert_eq!(V::answered(&asked), None);
        let answered = Extension { flags: ExtensionFlags::default(), ..asked };
        assert_eq!(V::answered(&answered).as_ref(), Some(value));
        assert_eq!(V::answered(&Extension { kind: 99, ..answered }), None);
    }

    #[test]
    fn a_class_of_service_has_its_fields_where_the_standard_has_them() {
        let class = ClassOfService { wanted: 46, received: 10, congestion: 2, refused: true };
        assert_eq!(class.encode(), [46 << 2, 10 << 4 | 2 << 2 | 1, 0, 0]);
    }

    proptest! {
        #[test]
        fn values_are_read_as_they_were_written(
            bytes: [u8; 4], number: u32, left: u64, how: u8, refused: bool,
        ) {
            let [received_by, received_how, sent_by, sent_how] = bytes;
            round_trip(&TimestampInformation { received_by, received_how, sent_by, sent_how });
            round_trip(&FollowUp { number, left: Stamped(left), how });
            let [wanted, received, congestion] = [bytes[0] & 63, bytes[1] & 63, bytes[2] & 3];
            round_trip(&ClassOfService { wanted, received, congestion, refused });
        }
    }
}
