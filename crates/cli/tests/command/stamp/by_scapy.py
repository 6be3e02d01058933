"""STAMP by scapy's packet classes, as a sender and as a reflector.

    stamp.py send HOST PORT PACKETS    prints the answers, as JSON
    stamp.py reflect HOST PORT         prints the packets that it was sent, as JSON, when its standard
                                       input is closed

scapy has no classes for authenticated packets. It names the flags of an extension from the lowest bit
on, where RFC 8972 section 4 has them from the highest on: its U is 1 in the packet, and not 128.
"""

import json
import select
import socket
import sys
import time

from scapy.contrib.stamp import (
    ErrorEstimate,
    STAMPSessionReflectorTestUnauthenticated as Reflected,
    STAMPSessionSenderTestUnauthenticated as Sent,
    STAMPTestTLV,
)

# Seconds from the first of NTP's to the first of Unix (RFC 5905 figure 4).
NTP_TO_UNIX = 2_208_988_800
# 128 * 2^20 / 2^32 s: 31.25 ms.
ERROR = ErrorEstimate(S=1, Z=0, scale=20, multiplier=128)
UNRECOGNISED = 128
# Of what a sender asks, these are lost on the way there, and these on the way back.
LOST_THERE = {3, 4}
LOST_BACK = {10}


def now():
    return time.time() + NTP_TO_UNIX


def bound(host):
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    return socket.socket(family, socket.SOCK_DGRAM)


def value(packet):
    """The fields of a packet, in what JSON has."""

    def plain(field):
        if isinstance(field, list):
            return [value(part) for part in field]
        if hasattr(field, "fields_desc"):
            return value(field)
        if isinstance(field, bytes):
            return field.hex()
        return int(field)

    fields = {field.name: plain(packet.getfieldval(field.name)) for field in packet.fields_desc}
    return {**fields, "behind": bytes(packet.payload).hex()}


def send(host, port, packets):
    udp = bound(host)
    udp.settimeout(10)
    answers = []
    for number in range(packets):
        padding = STAMPTestTLV(flags=UNRECOGNISED, type=1, len=9, value=b"\x07" * 9)
        stamps = STAMPTestTLV(flags=UNRECOGNISED, type=3, len=4, value=bytes(4))
        unknown = STAMPTestTLV(flags=UNRECOGNISED, type=200, len=5, value=b"what?")
        asked = [stamps, unknown, padding]
        packet = Sent(seq=number, ts=now(), err_estimate=ERROR, ssid=7, tlv_objects=asked)
        packet = bytes(packet)
        sent_at = now()
        udp.sendto(packet, (host, port))
        answer = udp.recv(2000)
        fields = value(Reflected(answer))
        fields["round_trip"] = now() - sent_at
        # What is to come back as it was: number, time and error estimate.
        fields["same"] = answer[24:38] == packet[:14]
        fields["length"] = (len(packet), len(answer))
        answers.append(fields)
    print(json.dumps(answers))


def reflect(host, port):
    udp = bound(host)
    udp.bind((host, port))
    print("reflecting", flush=True)
    packets, count = [], 0
    while True:
        ready, _, _ = select.select([udp, sys.stdin], [], [])
        if udp not in ready:
            break
        received, sender = udp.recvfrom(2000)
        received_at = now()
        sent = Sent(received)
        packets.append({**value(sent), "length": len(received)})
        if sent.seq in LOST_THERE:
            continue
        answer = Reflected(
            seq=count,
            ts_rx=received_at,
            err_estimate=ERROR,
            ssid=sent.ssid,
            seq_sender=sent.seq,
            ts_sender=sent.ts,
            err_estimate_sender=sent.err_estimate,
            ttl_sender=61,
            tlv_objects=sent.tlv_objects,
            ts=now(),
        )
        count += 1
        if sent.seq not in LOST_BACK:
            udp.sendto(bytes(answer), sender)
    print(json.dumps(packets))


if __name__ == "__main__":
    _, what, host, port, *packets = sys.argv
    if what == "send":
        send(host, int(port), int(packets[0]))
    else:
        reflect(host, int(port))
