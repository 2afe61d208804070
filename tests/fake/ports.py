# SPDX-License-Identifier: Apache-2.0
"""TCP ports for programs of tests."""

import random
import socket

_RESERVED = []  # a socket for each port that free_port() has returned


def free_port():
    """A TCP port of the loopback for a program that is started later, perhaps more than once. The
    kernel gives no connection this port. No other test gets it until this process ends: an abstract
    socket with the port in its name reserves it."""
    with open("/proc/sys/net/ipv4/ip_local_port_range") as f:
        low, high = map(int, f.read().split())
    ports = [p for p in range(10240, 61000) if not low <= p <= high] or range(10240, 61000)
    while True:
        port = random.SystemRandom().choice(ports)
        mark = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        try:
            mark.bind(f"\0aliquot-test-port-{port}")
            with socket.socket() as s:
                s.bind(("127.0.0.1", port))
        except OSError:
            mark.close()
            continue
        _RESERVED.append(mark)
        return port
