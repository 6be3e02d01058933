//! A path that loses known packets in both directions.

use wirestamp_lab::{EGRESS, Impairments, Netns, PathLab, TAP_A};

/// Of 100 packets, 7, 23, 39, 55, 71 and 87 on the way there.
pub(crate) const LOST_THERE: u64 = 6;
/// Of the 94 answers, if the reflector counts them, 3, 19, 35, 51, 67 and 83 on the way back.
pub(crate) const LOST_BACK: u64 = 6;

pub(crate) fn lossy_path() -> PathLab {
    let lab = PathLab::new(&Impairments::bottleneck(1_000_000_000, 1_000_000)).unwrap();
    let there = Dropped { interface: TAP_A, port_at: 2, low_bits: 7 };
    let back = Dropped { interface: EGRESS, port_at: 0, low_bits: 3 };
    drop_in(lab.router(), &[there, back]);
    lab
}

/// Packets by a port and by the lowest four bits of their number.
struct Dropped {
    interface: &'static str,
    /// Offset of the port 862 in the UDP header.
    port_at: usize,
    low_bits: u8,
}

/// Makes the router drop these incoming packets: they are redirected to a cable whose other end is down, because
/// small kernels do not have the action `drop`.
fn drop_in(router: &Netns, all: &[Dropped]) {
    let run = |line: &str| {
        let mut words = line.split_whitespace();
        let status = router.command(words.next().unwrap()).args(words).status().unwrap();
        assert!(status.success(), "{line}");
    };
    run("ip link add name away type veth peer name nowhere");
    run("ip link set away up");
    for &Dropped { interface, port_at, low_bits } in all {
        run(&format!("tc qdisc add dev {interface} clsact"));
        for (protocol, udp) in [("ip", 20), ("ipv6", 40)] {
            run(&format!(
                "tc filter add dev {interface} ingress protocol {protocol} prio {udp} u32 \
                 match u16 862 0xffff at {} match u8 {low_bits} 0x0f at {} \
                 action mirred egress redirect dev away",
                udp + port_at,
                udp + 8 + 3,
            ));
        }
    }
}
