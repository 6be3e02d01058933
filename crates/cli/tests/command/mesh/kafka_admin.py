"""Requests of an administrator of Kafka, without its Java tools, each of which takes seconds to start.

Usage: kafka_admin.py PORT allow|deny|undo TOPIC        allows everything, denies writing, or removes the denial
       kafka_admin.py PORT partitions TOPIC COUNT       raises the number of partitions
       kafka_admin.py PORT leader TOPIC                 prints the number of the broker that leads partition 0
"""

import socket
import struct
import sys

# Numbers of requests, resources and operations in the protocol of Kafka.
METADATA, CREATE_ACLS, DELETE_ACLS, CREATE_PARTITIONS = 3, 30, 31, 37
TOPIC, LITERAL = 2, 3
ALL, WRITE = 2, 4
DENY, ALLOW = 2, 3

port, action, topic, *rest = sys.argv[1:]


def text(value):
    return struct.pack(">h", len(value)) + value.encode()


def ask(request, version, body):
    message = struct.pack(">hhi", request, version, 1) + text("admin") + body
    with socket.create_connection(("127.0.0.1", int(port))) as connection:
        connection.sendall(struct.pack(">i", len(message)) + message)
        answer = connection.makefile("rb")
        (length,) = struct.unpack(">i", answer.read(4))
        # Without the number of the request.
        return answer.read(length)[4:]


def check(code):
    if code:
        sys.exit(f"Kafka answers with error {code}")


def acl(operation, permission):
    end = struct.pack(">bb", operation, permission)
    return struct.pack(">b", TOPIC) + text(topic) + struct.pack(">b", LITERAL) + text("User:*") + text("*") + end


one = struct.pack(">i", 1)
if action in ("allow", "deny"):
    entry = acl(ALL, ALLOW) if action == "allow" else acl(WRITE, DENY)
    answer = ask(CREATE_ACLS, 1, one + entry)
    check(struct.unpack_from(">h", answer, 8)[0])
elif action == "undo":
    answer = ask(DELETE_ACLS, 1, one + acl(WRITE, DENY))
    check(struct.unpack_from(">h", answer, 8)[0])
elif action == "partitions":
    # No assignment to brokers, a timeout of 10 s, and not only a check.
    body = one + text(topic) + struct.pack(">iiib", int(rest[0]), -1, 10_000, 0)
    answer = ask(CREATE_PARTITIONS, 0, body)
    check(struct.unpack_from(">h", answer, 8 + len(text(topic)))[0])
elif action == "leader":
    answer = ask(METADATA, 1, one + text(topic))
    at = 4
    for _ in range(struct.unpack_from(">i", answer)[0]):  # number, host, port, rack of each broker
        at += 4
        at += 2 + struct.unpack_from(">h", answer, at)[0] + 4
        at += 2 + max(0, struct.unpack_from(">h", answer, at)[0])
    at += 4 + 4  # controller, number of topics
    check(struct.unpack_from(">h", answer, at)[0])
    at += 2
    at += 2 + struct.unpack_from(">h", answer, at)[0] + 1 + 4  # name, whether internal, number of partitions
    partitions = struct.unpack_from(">i", answer, at - 4)[0]
    for _ in range(partitions):
        _, number, leader, replicas = struct.unpack_from(">hiii", answer, at)
        at += 14 + 4 * replicas
        at += 4 + 4 * struct.unpack_from(">i", answer, at)[0]
        if number == 0:
            print(leader)
else:
    sys.exit(__doc__)
