//! Captures of all interfaces at once (`-i any`), compared with those of tcpdump.

use std::collections::BTreeMap;
use std::path::Path;

use crate::common::{Leftovers, is_root, run, stderr, tool};

/// Sends UDP packets through the router of the test bed, and over loopback, while `any` is captured there with each filter. `$0` is
/// the binary, `$1` the folder, the other arguments are the filters.
const SCRIPT: &str = r#"
    cd "$1"; shift
    await() { until grep -q "$1" "$2" 2> grepping; do sleep 0.05; done; }
    router="ip netns exec wirestamp-router"
    $router ip link set lo up
    number=0; running=
    for filter; do
        number=$((number + 1))
        # The last packet is in each file, so that the end of each can be awaited.
        filter="($filter) or udp dst port 5009"
        "$0" capture -i any@wirestamp-router -w ours-$number.pcapng "$filter" 2> ours-$number.log & running="$running $!"
        $router tcpdump -i any -y LINUX_SLL2 -U -w theirs-$number.pcap "$filter" 2> theirs-$number.log &
        running="$running $!"
    done
    for number in $(seq $#); do
        await Ctrl-C ours-$number.log
        await 'listening on' theirs-$number.log
    done
    send='
import socket, sys
sender = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
sender.bind(("", 6000))
for number in range(20):
    sender.sendto(bytes([number]) * 40, (sys.argv[1], 5004))
sender.sendto(b"last", (sys.argv[1], 5009))
'
    ip netns exec wirestamp-source python3 -c '
import socket
sender = socket.socket(socket.AF_PACKET, socket.SOCK_RAW)
sender.bind(("out", 0))
addresses = bytes.fromhex("027700000101") + socket.inet_aton("10.77.1.1") + bytes(6) + socket.inet_aton("10.77.1.2")
sender.send(bytes.fromhex("ffffffffffff0277000001010806000108000604" + "0001") + addresses)
'
    $router python3 -c "$send" 127.0.0.1
    ip netns exec wirestamp-source python3 -c "$send" 10.77.2.2
    for number in $(seq $#); do
        until tcpdump -n -r theirs-$number.pcap udp dst port 5009 2> reading | grep -q 'Out.*10.77.2.2.5009'; do
            sleep 0.05
        done
    done
    kill -INT $running
    wait $running
    ! "$0" capture -i any --stamp raw 2> refused
    ! "$0" capture -i any --events events.csv 2>> refused
"#;

/// The first has the last packet, for which the script waits.
const FILTERS: [&str; 6] = [
    "udp or arp",
    "udp port 5004",
    "arp",
    "not udp and not icmp6",
    "inbound and udp",
    "udp and src port 6000 and udp[8] = 7",
];

/// Number of packets of a file by interface, packet type, protocol, addresses and first byte.
fn packets(file: &Path) -> BTreeMap<String, usize> {
    let fields =
        ["sll.ifindex", "sll.pkttype", "_ws.col.Protocol", "ip.src", "udp.dstport", "data"];
    let mut arguments = vec!["-r", file.to_str().unwrap(), "-T", "fields"];
    fields.iter().for_each(|field| arguments.extend(["-e", field]));
    let mut packets = BTreeMap::new();
    for line in tool("tshark", &arguments).lines() {
        *packets.entry(line.to_owned()).or_insert(0) += 1;
    }
    packets
}

#[test]
fn all_interfaces_give_the_packets_of_tcpdump() {
    if !is_root() {
        return;
    }
    let before = Leftovers::now();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    let shell = ["lab", "run", "timeout", "90", "sh", "-euc", SCRIPT];
    let files = [env!("CARGO_BIN_EXE_wirestamp"), path.to_str().unwrap()];
    let output = run(&[&shell[..], &files, &FILTERS].concat());
    assert!(output.status.success(), "{}", stderr(&output));
    for (number, filter) in (1..).zip(FILTERS) {
        let [ours, theirs] = [format!("ours-{number}.pcapng"), format!("theirs-{number}.pcap")]
            .map(|name| packets(&path.join(name)));
        assert_eq!(ours, theirs, "{filter}");
        assert!(!ours.is_empty(), "{filter}");
        let log = std::fs::read_to_string(path.join(format!("ours-{number}.log"))).unwrap();
        assert!(!log.contains("the filter runs in this process"), "{filter}: {log}");
    }
    let refused = std::fs::read_to_string(path.join("refused")).unwrap();
    assert!(refused.contains("use ring with kernel stamps"), "{refused}");
    assert!(refused.contains("need one interface"), "{refused}");
    assert_eq!(Leftovers::now(), before);
}

/// Receives UDP packets at an interface of the type PPP (`ARPHRD_PPP` of linux/if_arp.h), while it is captured.
const PPP: &str = r#"
    cd "$1"
    device='
import fcntl, os, socket, struct, sys
tun = os.open("/dev/net/tun", os.O_RDWR)
# TUNSETIFF with IFF_TUN and IFF_NO_PI, and TUNSETLINK (linux/if_tun.h).
fcntl.ioctl(tun, 0x400454ca, struct.pack("16sH", b"ppp0", 0x1001))
fcntl.ioctl(tun, 0x400454cd, 512)
print("ready", flush=True)
sys.stdin.readline()
ends = socket.inet_aton("192.0.2.2") + socket.inet_aton("192.0.2.1")
for number in range(20):
    head = struct.pack(">BBHHHBBH", 69, 0, 32, number, 0, 64, 17, 0)
    os.write(tun, head + ends + struct.pack(">HHHH", 5006, 5004, 12, 0) + bytes([number] * 4))
sys.stdin.readline()
'
    await() { until grep -q "$1" "$2" 2> grepping; do sleep 0.05; done; }
    mkfifo steps
    python3 -c "$device" < steps > device.log & device=$!
    exec 9> steps
    await ready device.log
    ip link set ppp0 up
    "$0" capture -i ppp0 -c 20 -w ppp.pcapng udp dst port 5004 2> capture.log & capture=$!
    await Ctrl-C capture.log
    echo >&9
    wait $capture
    ! "$0" capture -i ppp0 --method recvmsg 2> refused
    echo >&9
    wait $device
"#;

#[test]
fn ppp_interface_is_captured_with_a_cooked_header() {
    if !is_root() {
        return;
    }
    let before = Leftovers::now();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    let shell = ["lab", "run", "timeout", "60", "sh", "-euc", PPP];
    let files = [env!("CARGO_BIN_EXE_wirestamp"), path.to_str().unwrap()];
    let output = run(&[&shell[..], &files].concat());
    assert!(output.status.success(), "{}", stderr(&output));
    let found = packets(&path.join("ppp.pcapng"));
    assert_eq!(found.values().sum::<usize>(), 20, "{found:?}");
    assert!(found.keys().all(|it| it.contains("192.0.2.2\t5004")), "{found:?}");
    let refused = std::fs::read_to_string(path.join("refused")).unwrap();
    assert!(refused.contains("use ring with kernel stamps"), "{refused}");
    assert_eq!(Leftovers::now(), before);
}
