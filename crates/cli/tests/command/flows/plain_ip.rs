//! Calls through an interface without Ethernet headers (tun, as of WireGuard): `capture`, `flows`, `delay`, and a file of
//! `tcpdump -i any`.

use std::path::Path;

use crate::common::{Leftovers, is_root, run, stderr};
use crate::flows::files::{assert_agrees, ours};
use crate::real_rtp::tshark;
use crate::schema;

/// Receives a call at the interface tun0, some packets of which are missing or late, and sends an answer to each. `$0` is
/// the binary, `$1` the folder.
const SCRIPT: &str = r#"
    cd "$1"
    call='
import fcntl, os, socket, struct, sys, time
tun = os.open("/dev/net/tun", os.O_RDWR)
# TUNSETIFF with IFF_TUN and IFF_NO_PI (linux/if_tun.h).
fcntl.ioctl(tun, 0x400454ca, struct.pack("16sH", b"tun0", 0x1001))
print("ready", flush=True)
sys.stdin.readline()
answering = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
answering.bind(("10.99.0.1", 5004))
def rtp(source, number):
    return struct.pack(">BBHII", 128, 0, number, 160 * number, source) + bytes(number % 251 for _ in range(160))
def packet(number):
    body = struct.pack(">HHHH", 5006, 5004, 8 + 172, 0) + rtp(7, number)
    head = struct.pack(">BBHHHBBH4s4s", 69, 0, 20 + len(body), number, 0, 64, 17, 0, socket.inet_aton("10.99.0.2"),
                       socket.inet_aton("10.99.0.1"))
    words = struct.unpack(">10H", head)
    total = sum(words)
    total = (total & 0xffff) + (total >> 16)
    return head[:10] + struct.pack(">H", 0xffff - total) + head[12:] + body
for number in range(100):
    if number % 20 != 9:
        os.write(tun, packet(number))
    answering.sendto(rtp(9, number), ("10.99.0.2", 5006))
    time.sleep(0.03 if number % 10 == 3 else 0.005)
sys.stdin.readline()
'
    await() { until grep -q "$1" "$2" 2> grepping; do sleep 0.05; done; }
    mkfifo steps
    python3 -c "$call" < steps > call.log & call=$!
    exec 9> steps
    await ready call.log
    ip address add 10.99.0.1/24 dev tun0
    ip link set tun0 up
    "$0" capture -i tun0 -w tun.pcapng --json udp port 5004 > capture.json 2> capture.log & running=$!
    "$0" capture -i tun0 --method recvmmsg -w mmsg.pcap udp port 5004 2> mmsg.log & running="$running $!"
    "$0" flows -i tun0 --json > live.json 2> live.log & running="$running $!"
    tcpdump -i any -U -w any.pcap udp port 5004 2> any.log & dumping=$!
    for log in capture mmsg live; do await Ctrl-C $log.log; done
    await 'listening on' any.log
    echo >&9
    until "$0" flows any.pcap --partial --json 2> asking | grep -q '"packets": 195'; do sleep 0.1; done
    kill -INT $running $dumping
    wait $running $dumping
    ! "$0" capture -i tun0 --method xdp-pass 2> refused
    echo >&9
    wait $call
"#;

#[test]
fn calls_without_ethernet_headers_agree_with_tshark() {
    if !is_root() {
        return;
    }
    let before = Leftovers::now();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    let shell = ["lab", "run", "timeout", "60", "sh", "-euc", SCRIPT];
    let output =
        run(&[&shell[..], &[env!("CARGO_BIN_EXE_wirestamp"), path.to_str().unwrap()]].concat());
    assert!(output.status.success(), "{}", stderr(&output));
    for name in ["tun.pcapng", "mmsg.pcap", "any.pcap"] {
        let file = path.join(name);
        let (ours, theirs) = (ours(&file), tshark::streams(&file));
        assert_eq!(ours.keys().collect::<Vec<_>>(), theirs.keys().collect::<Vec<_>>(), "{name}");
        assert_eq!(ours.len(), 2, "{name}");
        for (source, flow) in &ours {
            assert_agrees(flow, &theirs[source]);
        }
        assert_eq!(ours[&(5006, 7)]["lost"], 5, "{name}");
    }
    let read = |name: &str| std::fs::read_to_string(path.join(name)).unwrap();
    let capture = schema::document("capture", read("capture.json").as_bytes());
    assert_eq!((&capture["link"], &capture["ledger"]["delivered"]), (&"ip".into(), &195.into()));
    let live = schema::document("flows", read("live.json").as_bytes());
    assert_eq!(live["not_ip"], 0, "{live:#}");
    assert!(read("refused").contains("no Ethernet header"), "{}", read("refused"));
    assert_delay(path);
    assert_eq!(Leftovers::now(), before);
}

/// The same packets in two files, one with headers of Linux's `any`.
fn assert_delay(folder: &Path) {
    let [a, b] =
        ["any.pcap", "tun.pcapng"].map(|name| folder.join(name).to_str().unwrap().to_owned());
    let output = run(&["delay", &a, &b, "--json"]);
    let found = schema::document("delay", &output.stdout);
    let counts = ["sent", "matched", "lost", "unexpected"].map(|key| found[key].as_u64());
    assert_eq!(counts, [195, 195, 0, 0].map(Some), "{found:#}");
}
