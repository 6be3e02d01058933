//! What the path does to packets, as `tc` is told it.

use std::fmt::Write;

use crate::LabError;

/// Length of the longest frame of the bed, without its check sequence: 1500 bytes and the Ethernet
/// header.
const FULL_FRAME: u64 = 1514;

/// Picks packets of test traffic by UDP destination port and one byte of the payload.
///
/// With the low byte of a sequence number, `mask: 0x0f, value: 7` picks every sixteenth packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Selector {
    /// UDP destination port.
    pub port: u16,
    /// Where in the UDP payload the byte is, 0 for its first.
    pub offset: u8,
    /// The bits of the byte that count.
    pub mask: u8,
    /// What those bits are in a packet that is picked.
    pub value: u8,
}

impl Selector {
    /// A `u32` match (tc-u32(8)) for IPv4 without options or IPv6 without extension headers, which
    /// is what the bed's packets are. Offsets count from the network header.
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

    /// One filter for each IP version, on `parent` of `interface`, doing `action`.
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

/// What the bed's path does to packets.
///
/// The bottleneck is a token bucket (tc-tbf(8)) with a tail-drop queue: it delays what waits in the
/// queue and drops what finds it full.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Impairments {
    /// The bottleneck's rate, in bits of Ethernet frame (without check sequence, preamble and gap)
    /// a second; 8 kbit/s to 100 Gbit/s.
    pub rate_bits_per_s: u64,
    /// Its queue, in bytes of Ethernet frame; at least one full frame of 1514.
    pub queue_bytes: u32,
    /// Packets that the router sees twice from here on: copied behind tap A, before the queue.
    pub duplicate: Option<Selector>,
    /// Packets that overtake the queue, and so leave the router before packets that came earlier.
    pub expedite: Option<Selector>,
}

impl Impairments {
    /// A bottleneck of the given rate and queue that neither copies nor reorders.
    #[must_use]
    pub const fn bottleneck(rate_bits_per_s: u64, queue_bytes: u32) -> Self {
        Self { rate_bits_per_s, queue_bytes, duplicate: None, expedite: None }
    }

    /// The token bucket's depth: the bytes that leave at once after the path was idle.
    ///
    /// One full frame, without which the bucket would pass none (tc-tbf(8)), and what the rate
    /// brings in 1 ms, so that a timer up to 1 ms late costs the path none of its rate.
    const fn burst_bytes(&self) -> u64 {
        FULL_FRAME + self.rate_bits_per_s / 8 / 1000
    }

    /// Refuses what `tc` would refuse, or would take and pass no packet with.
    pub(crate) fn check(&self) -> Result<(), LabError> {
        if !(8_000..=100_000_000_000).contains(&self.rate_bits_per_s) {
            return Err(LabError::Rate(self.rate_bits_per_s));
        }
        if u64::from(self.queue_bytes) < FULL_FRAME {
            return Err(LabError::Queue(self.queue_bytes));
        }
        Ok(())
    }

    /// The batch that makes the bottleneck on `egress`.
    ///
    /// The express lane is a strict priority inside the bucket, so that rate and counters are the
    /// bucket's with and without it. `htb` gives the priority, with classes far faster than the
    /// bucket, because `prio` is missing from small kernels. `htb` hands the bucket one packet
    /// ahead of time: that packet waits outside `queue_bytes`, and is not overtaken, like one
    /// whose transmission has begun.
    pub(crate) fn bottleneck_script(&self, egress: &str) -> String {
        let (rate, burst, limit) = (self.rate_bits_per_s, self.burst_bytes(), self.queue_bytes);
        let bucket = format!(
            "qdisc add dev {egress} root handle 1: tbf rate {rate}bit burst {burst} limit {limit}\n"
        );
        let Some(selector) = self.expedite else { return bucket };
        // A quantum of its own, because the one derived from the rate draws a warning.
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

    /// The batch that copies packets arriving at `ingress` out of `copier`; empty when there is
    /// nothing to copy.
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
    fn a_selector_counts_from_the_network_header_of_each_version() {
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
    fn a_path_that_could_pass_nothing_is_refused() {
        assert!(Impairments::bottleneck(10_000_000, 1514).check().is_ok());
        assert!(matches!(Impairments::bottleneck(0, 50_000).check(), Err(LabError::Rate(0))));
        assert!(matches!(
            Impairments::bottleneck(10_000_000, 1000).check(),
            Err(LabError::Queue(1000))
        ));
    }
}
