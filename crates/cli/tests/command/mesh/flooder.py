"""Burdens nodes of a mesh as a stranger could, for some seconds. Prints how many attempts there were.

Usage: flooder.py connections HOST:PORT SECONDS
       flooder.py tokens HOST:PORT SECONDS REQUEST
       flooder.py tests HOST:PORT SECONDS SESSION

`connections` opens connections that send nothing, from 127.0.0.9. `tokens` enrols with tokens that were never issued and
the certificate signing request of a file, by gRPC over HTTP/2 (RFC 9113). `tests` sends packets of STAMP of this session,
open ones and authenticated ones whose code is that of another key (RFC 8762 section 4.2).
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
MAX_OPEN = 1000

# Requests of HTTP/2 before their answers are read, below what servers accept at once.
AT_A_TIME = 64
DATA, HEADERS, RST_STREAM, SETTINGS, PING, GOAWAY = 0, 1, 3, 4, 6, 7
END_STREAM, ACK, END_HEADERS = 1, 1, 4


def connections(to, seconds):
    opened, number, end = collections.deque(), 0, time.monotonic() + seconds
    while time.monotonic() < end:
        connection = socket.socket()
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, AT_ONCE)
        connection.bind(("127.0.0.9", 0))
        connection.setblocking(False)
        connection.connect_ex(to)
        number += 1
        opened.append(connection)
        if len(opened) > MAX_OPEN:
            opened.popleft().close()
    return number


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
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    context.set_alpn_protocols(["h2"])
    number, end = 0, time.monotonic() + seconds
    while time.monotonic() < end:
        try:
            with context.wrap_socket(socket.create_connection(to)) as connection:
                reader = connection.makefile("rb")
                connection.sendall(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + frame(SETTINGS, 0, 0, b""))
                stream = 1
                while time.monotonic() < end:
                    streams = range(stream, stream + 2 * AT_A_TIME, 2)
                    connection.sendall(b"".join(enrolment(it, request) for it in streams))
                    stream, number = streams.stop, number + AT_A_TIME
                    if not answers(connection, reader, AT_A_TIME):
                        break
        except OSError:
            time.sleep(0.01)  # The controller closes the connections of strangers.
    return number


def tests(to, seconds, session):
    sequence = struct.pack("!I", 1)
    fields = struct.pack("!IIHH", int(time.time()) + 2_208_988_800, 0, 0x8001, int(session))
    sealed = (sequence + bytes(12) + fields).ljust(96, b"\0") + b"\x07" * 16
    packets = [(sequence + fields).ljust(112, b"\0"), sealed]
    sender, number, end = socket.socket(socket.AF_INET, socket.SOCK_DGRAM), 0, time.monotonic() + seconds
    sender.connect(to)
    while time.monotonic() < end:
        for packet in packets * 50:
            try:
                sender.send(packet)
                number += 1
            except OSError:
                pass  # No port is open any more, or a queue is full.
    return number


kind, to, seconds = sys.argv[1:4]
host, port = to.rsplit(":", 1)
kinds = {"connections": connections, "tokens": tokens, "tests": tests}
print(kinds[kind]((host, int(port)), float(seconds), *sys.argv[4:]))
