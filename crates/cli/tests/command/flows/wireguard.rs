//! A call through a WireGuard tunnel: its interfaces have plain IP packets.

use std::path::Path;

use crate::common::{Leftovers, is_root, json, run, stderr};
use crate::flows::files::{assert_agrees, ours};
use crate::real_rtp::tshark;
use crate::schema;

/// WireGuard in a process, because kernels may be without it.
const PROGRAM: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../target/tools/bin/boringtun-cli");

/// A tunnel between the source and the sink, and a call in it with packets missing or late. `$0` is the binary, `$1` the
/// folder, `$2` boringtun.
const SCRIPT: &str = r#"
    cd "$1"
    await() { until grep -q "$1" "$2" 2> grepping; do sleep 0.05; done; }
    hex() { tail -c 32 | od -An -v -tx1 | tr -d ' \n'; }
    for end in source sink; do
        openssl genpkey -algorithm X25519 -outform DER -out $end.key
        hex < $end.key > $end.private
        openssl pkey -inform DER -in $end.key -pubout -outform DER | hex > $end.public
    done
    # The protocol of https://www.wireguard.com/xplatform/.
    ask='
import socket, sys
interface = socket.socket(socket.AF_UNIX)
interface.connect(sys.argv[1])
interface.sendall(sys.stdin.buffer.read())
print(interface.recv(100).decode())
'
    tunnel() { # END INTERFACE ADDRESS OTHER ITS-ADDRESS ITS-HOST
        rm -f /var/run/wireguard/$2.sock
        ip netns exec wirestamp-$1 env WG_SUDO=true "$tunnels" --foreground $2 > $2.log 2>&1 & running="${running-} $!"
        until [ -S /var/run/wireguard/$2.sock ]; do sleep 0.05; done
        printf 'set=1\nprivate_key=%s\nlisten_port=51820\npublic_key=%s\nallowed_ip=%s/32\nendpoint=%s:51820\n\n' \
            $(cat $1.private) $(cat $4.public) $5 $6 | python3 -c "$ask" /var/run/wireguard/$2.sock > $2.answer
        await errno=0 $2.answer
        ip -n wirestamp-$1 address add $3/24 dev $2
        ip -n wirestamp-$1 link set $2 up
    }
    tunnels=$2
    tunnel source wg-a 10.99.0.1 sink 10.99.0.2 10.77.2.2
    tunnel sink wg-b 10.99.0.2 source 10.99.0.1 10.77.1.1
    for point in wg-a@wirestamp-source wg-b@wirestamp-sink; do
        "$0" capture -i $point -U -w ${point%@*}.pcapng --json udp port 5004 > ${point%@*}.json 2> $point.log &
        captures="${captures-} $!"
        await Ctrl-C $point.log
    done
    receive='
import socket
receiving = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
receiving.bind(("10.99.0.2", 5004))
print("ready", flush=True)
for number in range(190):
    receiving.recv(2000)
'
    send='
import socket, struct, time
sending = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
sending.bind(("10.99.0.1", 5006))
for number in range(200):
    if number % 20 != 9:
        head = struct.pack(">BBHII", 128, 0, number, 160 * number, 7)
        sending.sendto(head + bytes(number % 251 for _ in range(160)), ("10.99.0.2", 5004))
    time.sleep(0.03 if number % 10 == 3 else 0.005)
'
    ip netns exec wirestamp-sink python3 -c "$receive" > received & receiver=$!
    await ready received
    ip netns exec wirestamp-source python3 -c "$send"
    wait $receiver
    for file in wg-a wg-b; do
        until "$0" flows $file.pcapng --partial --json 2> asking | grep -q '"packets": 190'; do sleep 0.1; done
    done
    kill -INT $captures
    wait $captures
    kill $running
    wait $running || true
    rm -f /var/run/wireguard/wg-[ab].sock
"#;

#[test]
fn a_call_in_wireguard_agrees_with_tshark_at_both_ends() {
    if !is_root() {
        return;
    }
    assert!(Path::new(PROGRAM).exists(), "boringtun is missing: tools/setup-peers installs it");
    let before = Leftovers::now();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    let shell = ["lab", "run", "timeout", "60", "sh", "-euc", SCRIPT];
    let arguments = [env!("CARGO_BIN_EXE_wirestamp"), path.to_str().unwrap(), PROGRAM];
    let output = run(&[&shell[..], &arguments].concat());
    assert!(output.status.success(), "{}", stderr(&output));
    for name in ["wg-a", "wg-b"] {
        let file = path.join(name).with_extension("pcapng");
        let (ours, theirs) = (ours(&file), tshark::streams(&file));
        assert_eq!(ours.keys().collect::<Vec<_>>(), theirs.keys().collect::<Vec<_>>(), "{name}");
        let flow = &ours[&(5006, 7)];
        assert_agrees(flow, &theirs[&(5006, 7)]);
        assert_eq!((&flow["lost"], &flow["packets"]), (&10.into(), &190.into()), "{name}");
        let capture = std::fs::read(path.join(name).with_extension("json")).unwrap();
        assert_eq!(schema::document("capture", &capture)["link"], "ip", "{name}");
    }
    let [a, b] = ["wg-a", "wg-b"].map(|name| format!("{}/{name}.pcapng", path.display()));
    let found = json(&["delay", &a, &b, "--json"]);
    let counts = ["sent", "matched", "lost", "unexpected"].map(|key| found[key].as_u64());
    assert_eq!(counts, [190, 190, 0, 0].map(Some), "{found:#}");
    assert!(found["owd_ns"]["min"].as_i64() > Some(0), "{found:#}");
    assert_eq!(Leftovers::now(), before);
}
