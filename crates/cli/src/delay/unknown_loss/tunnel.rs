//! Flows that are tunnels.

use wirestamp_packet::FlowKey;

/// IP protocols of tunnels (IANA's protocol numbers).
const TUNNELS: [(u8, &str); 5] =
    [(4, "IPIP"), (41, "6in4"), (47, "GRE"), (50, "ESP"), (115, "L2TP")];
/// UDP ports of tunnels (IANA's service names and port numbers; 3GPP TS 29.281 for GTP-U).
const TUNNEL_PORTS: [(u16, &str); 5] = [
    (2152, "GTP-U"),
    (4500, "ESP in UDP"),
    (4789, "VXLAN"),
    (6081, "Geneve"),
    (51820, "WireGuard"),
];
const UDP: u8 = 17;

/// The name of the tunnel whose packets a flow has; none for other flows.
pub(super) fn tunnel(flow: &FlowKey) -> Option<&'static str> {
    let by_protocol = TUNNELS.iter().find(|(protocol, _)| flow.protocol == *protocol);
    let port = flow.destination.port();
    let by_port = TUNNEL_PORTS.iter().find(|(number, _)| flow.protocol == UDP && port == *number);
    by_protocol.map(|(_, name)| *name).or_else(|| by_port.map(|(_, name)| *name))
}
