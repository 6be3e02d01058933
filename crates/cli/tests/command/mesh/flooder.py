"""Burdens nodes of a mesh as a stranger could, for some seconds. Prints how many attempts reached a node.

Usage: flooder.py connections HOST:PORT SECONDS
       flooder.py tokens HOST:PORT SECONDS REQUEST
       flooder.py recording FILE RATE PORT SESSION PORT SESSION

`connections` opens connections that send nothing, from 127.0.0.9. `tokens` enrols with tokens that were never issued and
the certificate signing request of a file, by gRPC over HTTP/2 (RFC 9113). `recording` writes packets of STAMP from the
lab's source to its sink as a capture file of a tenth of a second, which `wirestamp send --replay` sends: for the first
port and session, open ones and authenticated ones whose code is that of another key (RFC 8762 section 4.2); for the
second, open ones.
"""

import collections
import os
import socket
import ssl
import struct
import sys
import time

# Of a process that ends connections at once, without a state that keeps the port (socket(7)).
AT_ONCE = struct.pack("ii", 1, 0)
# The port is chosen when the connection is opened, which is faster (ip(7)).
IP_BIND_ADDRESS_NO_PORT = 24
MAX_OPEN = 1000

# Requests of HTTP/2 that are sent at once, and those of a connection. Two times the first are below what servers accept
# before they have answered.
AT_A_TIME = 64
OF_A_CONNECTION = 100 * AT_A_TIME
DATA, HEADERS, RST_STREAM, SETTINGS, PING, GOAWAY = 0, 1, 3, 4, 6, 7
END_STREAM, ACK, END_HEADERS = 1, 1, 4


def connections(to, seconds):
    opened, number, end = collections.deque(), 0, time.monotonic() + seconds
    while time.monotonic() < end:
        connection = socket.socket(socket.AF_INET, socket.SOCK_STREAM | socket.SOCK_NONBLOCK)
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, AT_ONCE)
        connection.setsockopt(socket.IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, 1)
        connection.bind(("127.0.0.9", 0))
        connection.connect_ex(to)
        opened.append(connection)
        if len(opened) > MAX_OPEN:
            oldest = opened.popleft()
            number += is_established(oldest)
            oldest.close()
    return number + sum(map(is_established, opened))


def is_established(connection):
    """Whether the kernel has accepted the connection. It drops attempts beyond the queue of the listener."""
    try:
        connection.getpeername()
        return True
    except OSError:
        return False


def frame(kind, flags, stream, payload):
    return len(payload).to_bytes(3, "big") + struct.pack("!BBI", kind, flags, stream) + payload


def header(name, value):
    """A field without indexing and without Huffman's code (RFC 7541 section 6.2.2)."""
    return b"\0" + bytes([len(name)]) + name + bytes([len(value)]) + value


FIELDS = b"".join(
    header(name, value)
    for name, value in [
        (b":method", b"POST"),
        (b":scheme", b"https"),
        (b":path", b"/wirestamp.mesh.v1.Control/Enrol"),
        (b":authority", b"controller"),
        (b"content-type", b"application/grpc"),
        (b"te", b"trailers"),
    ]
)


def member(number, content):
    """A member of a message (https://protobuf.dev/programming-guides/encoding/), shorter than 16 KiB."""
    return bytes([number << 3 | 2, len(content) & 127 | 128, len(content) >> 7]) + content


def enrolment(stream, request):
    token = os.urandom(16).hex() + "-" + os.urandom(16).hex()
    message = member(1, token.encode()) + member(2, request)
    body = b"\0" + struct.pack("!I", len(message)) + message
    return frame(HEADERS, END_HEADERS, stream, FIELDS) + frame(DATA, END_STREAM, stream, body)


def answers(connection, reader, awaited):
    """Reads the answers to this number of requests. Returns whether the connection can be used again."""
    while awaited:
        head = reader.read(9)
        if len(head) < 9:
            return False
        length, kind, flags = int.from_bytes(head[:3], "big"), head[3], head[4]
        payload = reader.read(length)
        if kind == GOAWAY:
            return False
        if kind == SETTINGS and not flags & ACK:
            connection.sendall(frame(SETTINGS, ACK, 0, b""))
        if kind == PING and not flags & ACK:
            connection.sendall(frame(PING, ACK, 0, payload))
        awaited -= kind == RST_STREAM or (kind == HEADERS and flags & END_STREAM)
    return True


def tokens(to, seconds, request):
    with open(request, "rb") as file:
        request = file.read()
    # Each connection sends the same requests, because to write them takes longer than to send them.
    streams = range(1, 2 * OF_A_CONNECTION, 2 * AT_A_TIME)
    batch = lambda first: b"".join(enrolment(first + 2 * nth, request) for nth in range(AT_A_TIME))
    batches = [batch(first) for first in streams]
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    context.set_alpn_protocols(["h2"])
    number, end = 0, time.monotonic() + seconds
    while time.monotonic() < end:
        try:
            with context.wrap_socket(socket.create_connection(to)) as connection:
                reader = connection.makefile("rb")
                connection.sendall(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + frame(SETTINGS, 0, 0, b""))
                connection.sendall(batches[0])
                for following in batches[1:]:
                    # The controller has requests to answer while the answers before them are read.
                    connection.sendall(following)
                    if time.monotonic() > end or not answers(connection, reader, AT_A_TIME):
                        break
                    number += AT_A_TIME
        except OSError:
            time.sleep(0.01)  # The controller closes the connections of strangers.
    return number


# Of the lab: Ethernet addresses of the router and the source, and the IPv4 addresses of the source and the sink.
ETHERNET = bytes.fromhex("027700000102 027700000101 0800")
SOURCE, SINK = bytes([10, 77, 1, 1]), bytes([10, 77, 2, 2])
# The source has no service at this port, discard.
SOURCE_PORT = 9


def checksum(header):
    total = sum(struct.unpack("!10H", header))
    total = (total & 0xFFFF) + (total >> 16)
    return ~(total + (total >> 16)) & 0xFFFF


def datagram(port, payload):
    """An Ethernet frame with a datagram to the sink, whose UDP checksum is absent (RFC 768)."""
    udp = struct.pack("!HHHH", SOURCE_PORT, port, 8 + len(payload), 0) + payload
    fields = [0x45, 0, 20 + len(udp), 0, 0, 64, 17]
    header = lambda code: struct.pack("!BBHHHBBH", *fields, code) + SOURCE + SINK
    return ETHERNET + header(checksum(header(0))) + udp


def recording(path, rate, forged_port, forged_session, other_port, other_session):
    sequence = struct.pack("!I", 1)
    now = int(time.time()) + 2_208_988_800
    fields = lambda session: struct.pack("!IIHH", now, 0, 0x8001, int(session))
    plain = lambda session: (sequence + fields(session)).ljust(112, b"\0")
    sealed = (sequence + bytes(12) + fields(forged_session)).ljust(96, b"\0") + b"\x07" * 16
    packets = [
        datagram(int(forged_port), plain(forged_session)),
        datagram(int(forged_port), sealed),
        datagram(int(other_port), plain(other_session)),
    ]
    count = int(rate) // 10
    with open(path, "wb") as file:
        # A capture file with times in nanoseconds (https://www.tcpdump.org/manpages/pcap-savefile.5.html).
        file.write(struct.pack("!IHHIIII", 0xA1B23C4D, 2, 4, 0, 0, 65_535, 1))
        for nth in range(count):
            packet = packets[nth % len(packets)]
            nanos = nth * 100_000_000 // count
            file.write(struct.pack("!IIII", 1, nanos, len(packet), len(packet)) + packet)
    return count


def main(kind, *arguments):
    if kind == "recording":
        return recording(*arguments)
    to, seconds, *more = arguments
    host, port = to.rsplit(":", 1)
    flood = {"connections": connections, "tokens": tokens}[kind]
    return flood((host, int(port)), float(seconds), *more)


print(main(*sys.argv[1:]))
