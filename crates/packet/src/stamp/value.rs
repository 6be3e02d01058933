//! Values of the supported extensions.

use super::{Extension, ExtensionFlags, Stamped};

/// The value of an extension of a fixed length.
pub trait Value: Sized {
    /// Type (IANA, STAMP TLV Types).
    const KIND: u8;
    /// Length in bytes.
    const LENGTH: usize;
    /// Encodes the value as [`Self::LENGTH`] bytes.
    fn encode(&self) -> Vec<u8>;
    /// Decodes the value; none if the number of bytes is wrong.
    fn decode(value: &[u8]) -> Option<Self>;

    /// Appends the extension as a sender does: marked as unrecognised until a reflector clears the mark.
    fn ask(&self, packet: &mut Vec<u8>) {
        let flags = ExtensionFlags { unrecognised: true, ..ExtensionFlags::default() };
        Extension { flags, kind: Self::KIND, value: &self.encode() }.write(packet);
    }

    /// Value of an extension that a reflector has answered.
    fn answered(extension: &Extension<'_>) -> Option<Self> {
        let understood =
            extension.kind == Self::KIND && extension.flags == ExtensionFlags::default();
        understood.then(|| Self::decode(extension.value)).flatten()
    }
}

/// Synchronisation source of a clock (RFC 8972 section 4.3, table 3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SyncSource {
    /// NTP.
    Ntp = 1,
    /// PTP.
    Ptp = 2,
    /// Building integrated timing supply (SSU, BITS).
    Supply = 3,
    /// Satellites.
    Satellites = 4,
    /// None.
    FreeRunning = 5,
}

/// Method of time stamping (RFC 8972 section 4.3, table 5).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StampMethod {
    /// By hardware.
    Hardware = 1,
    /// By forwarding software: here the kernel, in the driver's softIRQ and before the driver sends.
    Local = 2,
    /// By the program that generates the packets.
    ControlPlane = 3,
}

/// Time stamping of the reflector (RFC 8972 section 4.3). Numbers, because new ones may be defined.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TimestampInformation {
    /// Synchronisation source of the clock that stamps received packets ([`SyncSource`]).
    pub received_by: u8,
    /// Stamping method of received packets ([`StampMethod`]).
    pub received_how: u8,
    /// Synchronisation source for sent packets.
    pub sent_by: u8,
    /// Stamping method of sent packets.
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

/// Traffic class of packets on the path (RFC 8972 section 4.4).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ClassOfService {
    /// DSCP with which the reflector is requested to return the packet.
    pub requested: u8,
    /// DSCP with which the packet reached the reflector.
    pub received: u8,
    /// ECN bits with which the packet reached the reflector.
    pub congestion: u8,
    /// True if the reflector may not use the requested DSCP.
    pub refused: bool,
}

impl Value for ClassOfService {
    const KIND: u8 = 4;
    const LENGTH: usize = 4;

    fn encode(&self) -> Vec<u8> {
        let Self { requested, received, congestion, refused } = *self;
        let [requested, received] = [requested, received].map(|point| u16::from(point & 0x3f));
        let fields =
            requested << 10 | received << 4 | u16::from(congestion & 3) << 2 | u16::from(refused);
        let [high, low] = fields.to_be_bytes();
        vec![high, low, 0, 0]
    }

    fn decode(value: &[u8]) -> Option<Self> {
        let &[high, low, _, _] = value else { return None };
        Some(Self {
            requested: high >> 2,
            received: high << 4 & 0x30 | low >> 4,
            congestion: low >> 2 & 3,
            refused: low & 3 == 1,
        })
    }
}

/// Actual send time of the reflector's previous packet (RFC 8972 section 4.7), which that packet itself cannot carry.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FollowUp {
    /// The reflector's sequence number of that packet.
    pub number: u32,
    /// Its send time; 0 if there was none, or it is unknown.
    pub left: Stamped,
    /// Method of that stamp ([`StampMethod`]).
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

    /// A value survives encoding, and other lengths are rejected.
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
    fn class_of_service_has_the_standards_layout() {
        let class = ClassOfService { requested: 46, received: 10, congestion: 2, refused: true };
        assert_eq!(class.encode(), [46 << 2, 10 << 4 | 2 << 2 | 1, 0, 0]);
    }

    proptest! {
        #[test]
        fn written_values_are_decoded(
            bytes: [u8; 4], number: u32, left: u64, how: u8, refused: bool,
        ) {
            let [received_by, received_how, sent_by, sent_how] = bytes;
            round_trip(&TimestampInformation { received_by, received_how, sent_by, sent_how });
            round_trip(&FollowUp { number, left: Stamped(left), how });
            let [requested, received, congestion] = [bytes[0] & 63, bytes[1] & 63, bytes[2] & 3];
            round_trip(&ClassOfService { requested, received, congestion, refused });
        }
    }
}
