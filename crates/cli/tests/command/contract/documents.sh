# Runs commands in a lab; what they print stays in the folder "$1". "$0" is the binary.
cd "$1"
a=tap-a@wirestamp-router b=tap-b@wirestamp-sink
# 50 packets of RTP (PCMU), one every 20 ms.
rtp='
import socket, struct, time
out = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
for i in range(50):
    head = struct.pack(">BBHII", 128, 0, 1000 + i, 160 * i, 77)
    out.sendto(head + bytes(160), ("10.77.2.2", 5004))
    time.sleep(0.02)
'
# Ten datagrams as iperf3 sends them: time and count.
iperf3='
import socket, struct, time
out = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
for i in range(10):
    out.sendto(struct.pack(">III", 7, 1000 * i, i + 1) + bytes(100), ("10.77.2.2", 5201))
'
# 200 kB over TCP.
tcp='
import socket, sys
if sys.argv[1] == "receive":
    listener = socket.create_server(("10.77.2.2", 5005))
    print("ready", flush=True)
    peer = listener.accept()[0]
    while peer.recv(65536): pass
else:
    socket.create_connection(("10.77.2.2", 5005)).sendall(bytes(200000))
'
await() { until grep -q "$1" "$2" 2> grepping; do sleep 0.05; done; }
"$0" capture -i $a -w a.pcapng --events capture-events.csv --json > capture-kernel.json 2> capture-a.log & captures=$!
"$0" capture -i $b -w b.pcapng --json --stamp raw --anchors anchors.csv > capture-raw.json 2> capture-b.log & captures="$captures $!"
"$0" capture -i $b --method xdp-pass -w c.pcapng --json > capture-xdp-pass.json 2> capture-c.log & captures="$captures $!"
"$0" capture -i $a -i $b -w d.pcapng --json > capture-several.json 2> capture-d.log & captures="$captures $!"
"$0" delay $a $b --json --metrics 127.0.0.1:0 > delay-live.json 2> delay.log & captures="$captures $!"
"$0" flows -i $b --json --metrics 127.0.0.1:0 > flows-live.json 2> flows.log & captures="$captures $!"
"$0" capture -i $b --metrics 127.0.0.1:0 --json > capture-metrics.json 2> capture.log & captures="$captures $!"
"$0" layers -i $b --json > layers.json 2> layers.log & captures="$captures $!"
for log in capture-a capture-b capture-c capture-d delay flows capture layers; do await 'Ctrl-C' $log.log; done
ip netns exec wirestamp-sink "$0" reflect --listen 10.77.2.2:8620 --json > reflect.json 2> reflect.log & reflector=$!
ip netns exec wirestamp-sink python3 -c "$tcp" receive > receive.log & receiver=$!
await 'ready' receive.log
await ':8620' reflect.log
"$0" send -i out@wirestamp-source --to 10.77.2.2 --port 7000 --pattern voip -c 50 --tx-stamps --log sent.csv --json > send.json
ip netns exec wirestamp-source python3 -c "$rtp"
ip netns exec wirestamp-source python3 -c "$iperf3"
ip netns exec wirestamp-source python3 -c "$tcp" send
ip netns exec wirestamp-source "$0" stamp 10.77.2.2:8620 -c 20 -i 10ms --per-second --json > stamp.json
wait $receiver
for command in capture delay flows; do
    curl -sS $(sed -n 's|metrics at \(http://.*/metrics\)$|\1|p' $command.log) > $command.prom
done
kill -INT $reflector $captures
wait $reflector $captures
"$0" delay a.pcapng b.pcapng --csv delay-packets.csv --json > delay-files.json
"$0" delay a.pcapng a.pcapng b.pcapng --csv delay-chain.csv > chain.log
"$0" restamp b.pcapng --anchors anchors.csv -w again.pcapng --json > restamp.json
"$0" flows b.pcapng --json --csv flows.csv > flows-file.json
"$0" clock --duration 0.3 --json > clock.json
"$0" capture --list --json > capture-list.json
"$0" capture --list -i $b --json > capture-list-interface.json
"$0" capture --tune -i $b --json > capture-tune.json
"$0" study list --json > study-list.json
