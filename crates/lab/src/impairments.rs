//! Impairments of a path, configured with `tc`.

use std::fmt::Write;

use crate::LabError;

/// Max frame size of the bed, without check sequence: 1500 bytes and the Ethernet header.
const FULL_FRAME: u64 = 1514;

/// Selects test packets by UDP destination port and one byte of the payload.
///
/// With the low byte of a sequence number, `mask: 0x0f, value: 7` selects every sixteenth packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Selector {
    /// UDP destination port.
    pub port: u16,
    /// Offset of the byte in the UDP payload, from 0.
    pub offset: u8,
    /// The compared bits of the byte.
    pub mask: u8,
    /// Value of those bits in a selected packet.
    pub value: u8,
}

impl Selector {
    /// A `u32` match (tc-u32(8)) for IPv4 without options or IPv6 without extension headers, as the
    /// bed's packets have. Offsets count from the network header.
    fn matches(self, protocol: &str) -> String {
        let (protocol_at, ip_header) = if protocol == "ip" { (9, 20) } else { (6, 40) };
        let Self { port, offset, mask, value } = self;
        format!(
            "u32 match u8 17 0xff at {protocol_at} match u16 {port} 0xffff at {port_at} \
             match u8 {value:#04x} {mask:#04x} at {byte_at}",
            value = value & mask,
            port_at = ip_header + 2,
            byte_at = ip_header + 8 + u16::from(offset),
        )
    }

    /// One filter for each IP version on `parent` of `interface`, with `action`.
    fn filters(self, interface: &str, parent: &str, action: &str) -> String {
        ["ip", "ipv6"].into_iter().zip(1..).fold(String::new(), |mut script, (protocol, prio)| {
            let matches = self.matches(protocol);
            let _ = writeln!(
                script,
                "filter add dev {interface} {parent} protocol {protocol} prio {prio} {matches} \
                 {action}"
            );
            script
        })
    }
}

/// Impairments of the bed's path.
///
/// The bottleneck is a token bucket (tc-tbf(8)) with a tail-drop queue: packets wait in the queue,
/// and are dropped if it is full.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Impairments {
    /// The bottleneck's rate in bits of Ethernet frames per second (without check sequence, preamble
    /// and gap); 8 kbit/s to 100 Gbit/s.
    pub rate_bits_per_s: u64,
    /// Size of its queue in bytes of Ethernet frames; at least a full frame of 1514.
    pub queue_bytes: u32,
    /// Packets that are duplicated, after tap A and before the queue.
    pub duplicate: Option<Selector>,
    /// Packets that overtake the queue, and so leave the router before earlier packets.
    pub expedite: Option<Selector>,
}

impl Impairments {
    /// A bottleneck with this rate and queue, without duplication and reordering.
    #[must_use]
    pub const fn bottleneck(rate_bits_per_s: u64, queue_bytes: u32) -> Self {
        Self { rate_bits_per_s, queue_bytes, duplicate: None, expedite: None }
    }

    /// The token bucket's depth: bytes that leave at once after an idle time.
    ///
    /// One full frame, which is the min for the bucket to pass any (tc-tbf(8)), plus 1 ms at the
    /// rate, so that a timer latency of up to 1 ms does not reduce the rate.
    const fn burst_bytes(&self) -> u64 {
        FULL_FRAME + self.rate_bits_per_s / 8 / 1000
    }

    /// Rejects values that `tc` rejects, or with which it passes no packet.
    pub(crate) fn check(&self) -> Result<(), LabError> {
        if !(8_000..=100_000_000_000).contains(&self.rate_bits_per_s) {
            return Err(LabError::Rate(self.rate_bits_per_s));
        }
        if u64::from(self.queue_bytes) < FULL_FRAME {
            return Err(LabError::Queue(self.queue_bytes));
        }
        Ok(())
    }

    /// The batch that creates the bottleneck on `egress`.
    ///
    /// Expedited packets have strict priority inside the bucket, so that rate and counters are always
    /// those of the bucket. `htb` implements the priority, with classes far faster than the bucket,
    /// because small kernels lack `prio`. `htb` hands one packet to the bucket in advance: it waits
    /// outside `queue_bytes` and is not overtaken, like a packet in transmission.
    pub(crate) fn bottleneck_script(&self, egress: &str) -> String {
        let (rate, burst, limit) = (self.rate_bits_per_s, self.burst_bytes(), self.queue_bytes);
        let bucket = format!(
            "qdisc add dev {egress} root handle 1: tbf rate {rate}bit burst {burst} limit {limit}\n"
        );
        let Some(selector) = self.expedite else { return bucket };
        // An explicit quantum, because the default causes a warning.
        let class = format!("htb rate 200gbit quantum {FULL_FRAME}");
        let filters = selector.filters(egress, "parent 10:", "flowid 10:1");
        format!(
            "{bucket}\
             qdisc add dev {egress} parent 1:1 handle 10: htb default 2\n\
             class add dev {egress} parent 10: classid 10:1 {class} prio 0\n\
             class add dev {egress} parent 10: classid 10:2 {class} prio 1\n\
             qdisc add dev {egress} parent 10:1 bfifo limit {limit}\n\
             qdisc add dev {egress} parent 10:2 bfifo limit {limit}\n\
             {filters}"
        )
    }

    /// The batch that duplicates packets arriving at `ingress` to `copier`; empty without duplication.
    pub(crate) fn duplicate_script(&self, ingress: &str, copier: &str) -> String {
        let Some(selector) = self.duplicate else { return String::new() };
        let mirror = format!("action mirred egress mirror dev {copier}");
        let filters = selector.filters(ingress, "ingress", &mirror);
        format!("qdisc add dev {ingress} clsact\n{filters}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PICK: Selector = Selector { port: 5000, offset: 15, mask: 0x0f, value: 0xf7 };

    #[test]
    fn selector_offsets_count_from_the_network_header() {
        assert_eq!(
            PICK.matches("ip"),
            "u32 match u8 17 0xff at 9 match u16 5000 0xffff at 22 match u8 0x07 0x0f at 43"
        );
        assert_eq!(
            PICK.matches("ipv6"),
            "u32 match u8 17 0xff at 6 match u16 5000 0xffff at 42 match u8 0x07 0x0f at 63"
        );
    }

    #[test]
    fn path_that_passes_nothing_is_rejected() {
        assert!(Impairments::bottleneck(10_000_000, 1514).check().is_ok());
        assert!(matches!(Impairments::bottleneck(0, 50_000).check(), Err(LabError::Rate(0))));
        assert!(matches!(
            Impairments::bottleneck(10_000_000, 1000).check(),
            Err(LabError::Queue(1000))
        ));
    }
}
