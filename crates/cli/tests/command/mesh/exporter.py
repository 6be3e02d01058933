"""An exporter of packet digests (IPFIX, RFC 7011; PSAMP, RFC 5476) that shares no code with what it is to test.

Usage: exporter.py INTERFACE in|out SOURCE-ADDRESS COLLECTOR-PORT UDP-PORT

It reports each packet to a port of UDP that comes in or goes out at an interface: twice, as observation domain 3 the
way it should, and as domain 4 over a bad network, which loses every 7th message, delivers every 5th behind the one
after it and every 11th twice. Between them it sends what is no IPFIX. When it is interrupted it prints, as JSON, how
many packets it saw and when which of them.
"""

import json
import signal
import socket
import struct
import sys
import time
import zlib

interface, direction, source, collector_port, udp_port = sys.argv[1:]
collector = ("127.0.0.1", int(collector_port))

SO_RCVBUFFORCE = 33  # also above net.core.rmem_max (socket(7))
SO_TIMESTAMPNS = 35
PACKET_OUTGOING = 4
SINCE_1900 = 2_208_988_800
TEMPLATE = 300
# observationTimeNanoseconds, digestHashValue, both addresses, ports, protocol, ipTotalLength
FIELDS = [(325, 8), (326, 4), (8, 4), (12, 4), (7, 2), (11, 2), (4, 1), (224, 2)]


def content(number, body):
    return struct.pack(">HH", number, 4 + len(body)) + body


class Domain:
    def __init__(self, number, is_bad):
        self.number, self.is_bad = number, is_bad
        self.sequence = self.messages = 0
        self.delayed = []

    def send(self, records):
        fields = b"".join(struct.pack(">HH", *field) for field in FIELDS)
        sets = content(2, struct.pack(">HH", TEMPLATE, len(FIELDS)) + fields)
        if records:
            sets += content(TEMPLATE, b"".join(records))
        header = (10, 16 + len(sets), int(time.time()), self.sequence, self.number)
        message = struct.pack(">HHIII", *header) + sets
        self.sequence += len(records)
        self.messages += 1
        nth = self.messages
        if not self.is_bad:
            out.sendto(message, collector)
        elif nth % 7 == 0:
            out.sendto(message[:-1], collector)
        elif nth % 5 == 0:
            self.delayed.append(message)
        else:
            for _ in range(2 if nth % 11 == 0 else 1):
                out.sendto(message, collector)
            while self.delayed:
                out.sendto(self.delayed.pop(), collector)


def record(frame, stamp):
    seconds, nanos = stamp
    ip = frame[14:]
    udp = ip[(ip[0] & 15) * 4 :]
    # What no router changes: addresses, ports and payload.
    digest = zlib.crc32(ip[12:20] + udp[:4] + udp[8:])
    seen[digest] = seconds * 1_000_000_000 + nanos
    fraction = (nanos << 32) // 1_000_000_000
    when = struct.pack(">II", seconds + SINCE_1900, fraction)
    # The order of FIELDS.
    return when + struct.pack(">I", digest) + ip[12:20] + udp[:4] + ip[9:10] + ip[2:4]


out = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
out.bind((source, 0))
tap = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3))
tap.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, 8 << 20)
tap.setsockopt(socket.SOL_SOCKET, SO_TIMESTAMPNS, 1)
tap.bind((interface, 0))
tap.settimeout(0.02)

is_over = False


def end(*_):
    global is_over
    is_over = True


signal.signal(signal.SIGTERM, end)

seen, packets, waiting = {}, 0, []
domains = [Domain(3, False), Domain(4, True)]
begun, is_known, flushed = int(time.time()), False, 0.0
while not is_over:
    try:
        frame, ancillary, _, address = tap.recvmsg(65535, 1024)
        is_out = address[2] == PACKET_OUTGOING
        is_meant = frame[12:14] == b"\x08\x00" and frame[23] == 17
        port = (frame[14 + (frame[14] & 15) * 4 :])[2:4]
        if is_meant and is_out == (direction == "out") and port == struct.pack(">H", int(udp_port)):
            packets += 1
            waiting.append(record(frame, struct.unpack("qq", ancillary[0][2])))
    except TimeoutError:
        pass
    # Without packets, that there are none is known by the templates.
    if len(waiting) >= 20 or time.monotonic() - flushed > 0.1:
        for domain in domains:
            domain.send(waiting)
        waiting, flushed = [], time.monotonic()
        out.sendto(b"this is no message", collector)
    if not is_known and int(time.time()) >= begun + 2:
        is_known = True
        print("exporting", file=sys.stderr, flush=True)

print(json.dumps({"packets": packets, "seen": seen}))
