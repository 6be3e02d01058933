"""Sends packets of STAMP that are none of a test, and checks those that are.

Usage: forger.py send ADDRESS PORT SESSION COUNT
       forger.py check DATABASE

`send` sends this number of packets of each mode, as any attacker could: open ones, authenticated ones with zeros for a
code, and some with that of another key. All have the number of the test's session. `check` reads payloads of the test
in hexadecimal digits, a line each, and prints how many there are and how many have the code of the secret in the
controller's database (RFC 8762 sections 4.2.2 and 4.4), by an HMAC that is not the one under test.
"""

import hashlib
import hmac
import socket
import sqlite3
import struct
import sys
import time

SINCE_1900 = 2_208_988_800


def code(key, packet):
    return hmac.new(key, packet[:96], hashlib.sha256).digest()[:16]


def fields(session):
    now = time.time()
    return struct.pack("!IIHH", int(now) + SINCE_1900, int(now % 1 * 2**32), 0x8001, session)


def send(address, port, session, count):
    to = (address, int(port))
    forger = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    for number in range(int(count)):
        sequence = struct.pack("!I", number)
        open_one = (sequence + fields(int(session))).ljust(44, b"\0")
        sealed = (sequence + bytes(12) + fields(int(session))).ljust(96, b"\0")
        for packet in open_one, sealed + bytes(16), sealed + code(b"\x07" * 32, sealed):
            forger.sendto(packet, to)
        time.sleep(0.002)


def check(database):
    [[secret]] = sqlite3.connect(database).execute("SELECT secret FROM task WHERE secret IS NOT NULL")
    packets = [bytes.fromhex(line) for line in sys.stdin]
    right = [packet for packet in packets if packet[96:112] == code(secret, packet)]
    print(len(packets), len(right))
    print(secret.hex(), file=sys.stderr)


{"send": send, "check": check}[sys.argv[1]](*sys.argv[2:])
