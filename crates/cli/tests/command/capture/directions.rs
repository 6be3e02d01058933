//! Captures of one direction (`-Q`), compared with those of tcpdump.

use std::path::Path;

use crate::common::{Leftovers, is_root, run, stderr, tool};

/// Sends UDP datagrams to the sink of the test bed, which replies, and over its loopback, while its interfaces are captured in each
/// direction. `$0` is the binary, `$1` the folder.
const SCRIPT: &str = r#"
    cd "$1"
    sink="ip netns exec wirestamp-sink"
    $sink ip link set lo up
    await() { until grep -q "$1" "$2" 2> grepping; do sleep 0.05; done; }
    running=; logs=
    for interface in tap-b lo any; do
        for direction in in out inout; do
            name=$interface-$direction
            "$0" capture -i $interface@wirestamp-sink -Q $direction -w ours-$name.pcapng udp port 5004 2> ours-$name.log &
            running="$running $!"
            $sink tcpdump -i $interface -Q $direction -U -w theirs-$name.pcap udp port 5004 2> theirs-$name.log &
            running="$running $!"
        done
    done
    for interface in tap-b lo any; do
        for direction in in out inout; do
            await Ctrl-C ours-$interface-$direction.log
            await 'listening on' theirs-$interface-$direction.log
        done
    done
    $sink python3 -c '
import socket
receiver = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
receiver.bind(("", 5004))
print("bound", flush=True)
for number in range(40):
    data, source = receiver.recvfrom(100)
    receiver.sendto(data.upper(), source)
' > bound & replying=$!
    await bound bound
    send='
import socket, sys
sender = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
sender.bind(("", 6000))
for number in range(20):
    sender.sendto(b"request %d" % number, (sys.argv[1], 5004))
    sender.recv(100)
'
    $sink python3 -c "$send" 127.0.0.1
    ip netns exec wirestamp-source python3 -c "$send" 10.77.2.2
    wait $replying
    # All of them have read their packets, at the latest with these.
    for file in tap-b-in:20 tap-b-out:20 tap-b-inout:40 lo-in:40 lo-inout:40 any-in:60 any-out:20 any-inout:80; do
        until [ "$(tcpdump -n -r theirs-${file%:*}.pcap 2> reading | wc -l)" = ${file#*:} ]; do sleep 0.05; done
    done
    kill -INT $running
    wait $running
"#;

/// The packets of a file, without their link headers.
fn packets(file: &Path) -> Vec<String> {
    let fields = ["ip.src", "udp.srcport", "udp.dstport", "data"];
    let mut arguments = vec!["-r", file.to_str().unwrap(), "-T", "fields"];
    fields.iter().for_each(|field| arguments.extend(["-e", field]));
    let mut packets: Vec<_> = tool("tshark", &arguments).lines().map(str::to_owned).collect();
    packets.sort();
    packets
}

#[test]
fn directions_are_those_of_tcpdump() {
    if !is_root() {
        return;
    }
    let before = Leftovers::now();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    let shell = ["lab", "run", "timeout", "90", "sh", "-euc", SCRIPT];
    let files = [env!("CARGO_BIN_EXE_wirestamp"), path.to_str().unwrap()];
    let output = run(&[&shell[..], &files].concat());
    assert!(output.status.success(), "{}", stderr(&output));
    for (interface, counts) in [("tap-b", [20, 20, 40]), ("lo", [40, 0, 40]), ("any", [60, 20, 80])]
    {
        for (direction, count) in ["in", "out", "inout"].into_iter().zip(counts) {
            let name = format!("{interface}-{direction}");
            let ours = packets(&path.join(format!("ours-{name}.pcapng")));
            let theirs = packets(&path.join(format!("theirs-{name}.pcap")));
            assert_eq!(ours, theirs, "{name}");
            assert_eq!(ours.len(), count, "{name}");
        }
    }
    let log = std::fs::read_to_string(path.join("ours-lo-out.log")).unwrap();
    assert!(log.contains("lo has no outgoing packets"), "{log}");
    assert_eq!(Leftovers::now(), before);
}

#[test]
fn method_that_only_receives_refuses_outgoing_packets() {
    for (command, method) in [("capture", "xdp-pass"), ("flows", "tc-pass")] {
        let output = run(&[command, "-i", "lo", "-Q", "out", "--method", method]);
        let message = stderr(&output);
        assert_eq!(output.status.code(), Some(2), "{message}");
        assert!(
            message.contains(method) && message.contains("use -Q in, or method ring"),
            "{message}"
        );
    }
}
