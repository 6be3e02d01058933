//! One header of an encapsulation.

/// A header between the link header and an IP packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EncapsulationLayer {
    /// Its kind.
    pub kind: EncapsulationKind,
    /// Its identifier, as [`EncapsulationKind`] says. None if the header has none.
    pub id: Option<u32>,
}

/// Kind of an encapsulation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EncapsulationKind {
    /// VLAN, with its number (12 bits); none in a tag that has only a priority (IEEE 802.1Q).
    Vlan,
    /// MPLS, with its label (20 bits, RFC 3032).
    Mpls,
    /// PPPoE, with its session (16 bits, RFC 2516).
    Pppoe,
    /// IP in IP (RFC 2003, RFC 4213, RFC 2473).
    Ip,
    /// GRE, with its key if it has one (32 bits, RFC 2890).
    Gre,
    /// ERSPAN, with its session if it has one (10 bits).
    Erspan,
    /// PPTP, with its call (16 bits, RFC 2637).
    Pptp,
    /// VXLAN, with its network (24 bits, RFC 7348).
    Vxlan,
    /// Geneve, with its network (24 bits, RFC 8926).
    Geneve,
    /// GTP-U, with its tunnel (32 bits, 3GPP TS 29.281).
    GtpU,
}

impl EncapsulationKind {
    /// Name in results.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Vlan => "vlan",
            Self::Mpls => "mpls",
            Self::Pppoe => "pppoe",
            Self::Ip => "ip",
            Self::Gre => "gre",
            Self::Erspan => "erspan",
            Self::Pptp => "pptp",
            Self::Vxlan => "vxlan",
            Self::Geneve => "geneve",
            Self::GtpU => "gtp-u",
        }
    }

    /// A layer of this kind.
    pub(crate) fn with(self, id: impl Into<Option<u32>>) -> EncapsulationLayer {
        EncapsulationLayer { kind: self, id: id.into() }
    }
}
