//! Descriptions of the points.

use wirestamp_capture::layers::Direction;

/// A point, where it is in the kernel, and what happens there.
type Term = (&'static str, &'static str, &'static str);

/// The points that packets of this direction pass, in order.
pub(super) fn of(direction: Direction) -> &'static [Term] {
    match direction {
        Direction::In => &IN,
        Direction::Out => &OUT,
    }
}

const IN: [Term; 4] = [
    (
        "driver",
        "napi_gro_receive, netif_rx, netif_receive_skb",
        "The driver hands the packet over to the kernel's network stack.",
    ),
    (
        "stack",
        "__netif_receive_skb_core",
        "The stack begins with it. Before that it may have waited for others of its flow (GRO), or in \
         the backlog of a core.",
    ),
    (
        "socket",
        "sk_filter_trim_cap",
        "Its socket is found and about to take it. Before that come routing, packet filters and the \
         protocol's checks.",
    ),
    (
        "application",
        "recvmsg(2)",
        "The application has it. Before that it waited until the application ran and asked for it.",
    ),
];

const OUT: [Term; 4] = [
    (
        "socket",
        "ip_finish_output, ip6_finish_output",
        "Its socket lets it go. Before that the application's data became a packet, was routed and \
         passed packet filters, which is not seen. A packet that is sent on for others has no socket.",
    ),
    (
        "queue",
        "__dev_queue_xmit",
        "It is about to be queued at its interface (tc(8)). Before that it may have waited for the \
         hardware address of the next host.",
    ),
    (
        "driver",
        "dev_hard_start_xmit",
        "The driver is given it. Before that it waited in the queue, and was cut into segments if the \
         driver does not do that.",
    ),
    (
        "sent",
        "ndo_start_xmit",
        "The driver is done with it: it is in the network card's ring, or with the other end of a \
         virtual cable.",
    ),
];
