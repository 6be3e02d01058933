"""Burdens nodes of a mesh as a stranger could, for some seconds. Prints how many attempts reached a node.

Usage: flooder.py connections HOST:PORT SECONDS RATE
       flooder.py tokens HOST:PORT SECONDS RATE REQUEST
       flooder.py packets ADDRESS SECONDS RATE PORT SESSION PORT SESSION

RATE is the max number of attempts a second. `connections` opens connections that send nothing, from 127.0.0.9. `tokens`
enrols with tokens that were never issued and the certificate signing request of a file, by gRPC over HTTP/2 (RFC 9113);
those that the controller refuses unread, because too many wait for an answer, count, too.
`packets` sends packets of STAMP: to the first port and session, open ones and authenticated ones whose code is that of
another key (RFC 8762 section 4.2); to the second, open ones. The kernel divides each send call into datagrams
(UDP_SEGMENT, udp(7)) where they reach the socket, so that the way there costs little.
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
# Divides the bytes of a send call into datagrams of this length (linux/udp.h).
UDP_SEGMENT = 103
# Length of a test packet, and test packets sent in two calls: a multiple of 3, and at most 64 in a call (UDP_MAX_SEGMENTS).
LENGTH, SEGMENTS = 112, 96

# Sleep between attempts, and max time by which they are late and still sent, in seconds.
TICK, MAX_BEHIND = 0.001, 0.1

# Max wait for a controller that reads nothing, in seconds.
TIMEOUT = 1

# Requests of HTTP/2 that are sent at once, and those of a connection.
AT_A_TIME = 64
OF_A_CONNECTION = 100 * AT_A_TIME
DATA, HEADERS, RST_STREAM, SETTINGS, PING, GOAWAY = 0, 1, 3, 4, 6, 7
END_STREAM, ACK, END_HEADERS = 1, 1, 4


def paced(seconds, rate, size=1):
    """Yields at most at this rate of attempts a second, for each number of attempts."""
    begin, done = time.monotonic(), 0
    while (passed := time.monotonic() - begin) < seconds:
        if done >= passed * rate:
            time.sleep(TICK)
            continue
        # A busy machine does not catch up with more than this.
        done = max(done, (passed - MAX_BEHIND) * rate) + size
        yield


def connections(to, seconds, rate):
    opened, number = collections.deque(), 0
    for _ in paced(seconds, rate):
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


def answers(connection, received):
    """Reads what has arrived, and returns the number of answers. Also acknowledges what the server asks for."""
    connection.setblocking(False)
    try:
        while part := connection.recv(1 << 16):
            received += part
        raise ConnectionError
    except ssl.SSLWantReadError:
        connection.settimeout(TIMEOUT)
    at, number = 0, 0
    while len(received) >= at + 9 + (length := int.from_bytes(received[at : at + 3], "big")):
        kind, flags = received[at + 3], received[at + 4]
        payload, at = bytes(received[at + 9 : at + 9 + length]), at + 9 + length
        if kind == GOAWAY:
            raise ConnectionError
        if kind in (SETTINGS, PING) and not flags & ACK:
            connection.sendall(frame(kind, ACK, 0, payload if kind == PING else b""))
        number += kind == RST_STREAM or (kind == HEADERS and bool(flags & END_STREAM))
    del received[:at]
    return number


def tokens(to, seconds, rate, request):
    with open(request, "rb") as file:
        request = file.read()
    # Each connection sends the same requests, because to write them takes longer than to send them.
    streams = range(1, 2 * OF_A_CONNECTION, 2 * AT_A_TIME)
    batch = lambda first: b"".join(enrolment(first + 2 * nth, request) for nth in range(AT_A_TIME))
    batches = [batch(first) for first in streams]
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    context.set_alpn_protocols(["h2"])
    number, attempts = 0, paced(seconds, rate, AT_A_TIME)
    for _ in attempts:
        try:
            with context.wrap_socket(socket.create_connection(to, TIMEOUT)) as connection:
                received = bytearray()
                connection.sendall(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + frame(SETTINGS, 0, 0, b""))
                connection.sendall(batches[0])
                for following, _ in zip(batches[1:], attempts):
                    connection.sendall(following)
                    number += answers(connection, received)
        except OSError:
            time.sleep(0.01)  # The controller closes the connections of strangers.
    return number


def packets(address, seconds, rate, forged_port, forged_session, other_port, other_session):
    sequence, now = struct.pack("!I", 1), int(time.time()) + 2_208_988_800
    fields = lambda session: struct.pack("!IIHH", now, 0, 0x8001, int(session))
    plain = lambda session: (sequence + fields(session)).ljust(LENGTH, b"\0")
    sealed = (sequence + bytes(12) + fields(forged_session)).ljust(96, b"\0") + b"\x07" * 16
    # Two thirds are forged ones.
    forged = (plain(forged_session) + sealed) * (SEGMENTS // 3)
    others = plain(other_session) * (SEGMENTS // 3)
    sender = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    sender.setsockopt(socket.IPPROTO_UDP, UDP_SEGMENT, LENGTH)
    number = 0
    for _ in paced(seconds, rate, SEGMENTS):
        number += sender.sendto(forged, (address, int(forged_port))) // LENGTH
        number += sender.sendto(others, (address, int(other_port))) // LENGTH
    return number


def main(kind, to, seconds, rate, *more):
    if kind == "packets":
        return packets(to, float(seconds), int(rate), *more)
    host, port = to.rsplit(":", 1)
    flood = {"connections": connections, "tokens": tokens}[kind]
    return flood((host, int(port)), float(seconds), int(rate), *more)


print(main(*sys.argv[1:]))
