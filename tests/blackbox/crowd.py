# SPDX-License-Identifier: Apache-2.0
"""A crowd of connections to one port, that ask for nothing or for one thing, and come again when they are closed.

The crowd is processes of its own, as many as the limit of open files makes necessary."""

import os
import resource
import select
import socket
import ssl
import subprocess
import sys
import time

FORMS = ("idle", "half", "handshake", "used")
OTHERS = 100  # 127.0.0.100 and on are its addresses
SPARE = 64  # open files of a process that are not of the crowd
ROUNDS = 5  # in a second


CONTEXT = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
CONTEXT.check_hostname, CONTEXT.verify_mode = False, ssl.CERT_NONE


def hello():
    """What a TLS client sends first."""
    out = ssl.MemoryBIO()
    try:
        CONTEXT.wrap_bio(ssl.MemoryBIO(), out, server_hostname="x").do_handshake()
    except ssl.SSLWantReadError:
        return out.read()
    raise AssertionError("a handshake without a peer")


class Member:
    """One connection. It is made and said what it says without waiting for more than the peer's next bytes."""

    def __init__(self, peer, form, address, tls):
        self.socket = socket.socket()
        try:
            self.socket.settimeout(60)
            if address:
                self.socket.bind((address, 0))
            self.socket.connect(peer)
            self.greet(form, tls)
        except OSError:
            self.socket.close()
            self.socket = None

    def greet(self, form, tls):
        if form == "handshake":
            self.socket.sendall(hello()[:50])
        if form not in ("half", "used"):
            return
        if tls:
            self.socket = CONTEXT.wrap_socket(self.socket)
        if form == "half":
            self.socket.sendall(b"POST /nothing HTTP/1.1\r\nHost: localhost\r\nContent-Le")
        else:
            self.socket.sendall(b"GET /nothing HTTP/1.1\r\nHost: localhost\r\n\r\n")
            if not self.socket.recv(4096):
                raise ConnectionResetError


def play(peer, form, addresses, tls, many, rate):
    """One process of the crowd. peer: host and port. addresses: as of Crowd, or None for that which the kernel chooses. It writes a
    line when all have been there once, and ends with its standard input."""
    resource.setrlimit(resource.RLIMIT_NOFILE, (resource.getrlimit(resource.RLIMIT_NOFILE)[1],) * 2)
    poll, members, missing, next_address = select.poll(), {}, 0, 0
    poll.register(0, select.POLLHUP | select.POLLIN)

    def enter():
        nonlocal next_address
        address = addresses if addresses is None else f"127.0.0.{OTHERS + next_address % addresses}" if addresses else "127.0.0.1"
        next_address += 1
        member = Member(peer, form, address, tls)
        if member.socket:
            members[member.socket.fileno()] = member
            poll.register(member.socket, select.POLLRDHUP)
        return bool(member.socket)

    missing = sum(not enter() for _ in range(many))
    print("there", flush=True)
    again = time.monotonic()
    while True:
        for fd, _ in poll.poll(1000 / ROUNDS):
            if fd == 0:
                return
            poll.unregister(fd)
            members.pop(fd).socket.close()
            missing += 1
        if time.monotonic() < again:
            continue
        again = time.monotonic() + 1 / ROUNDS
        come = min(missing, max(rate // ROUNDS, 1))
        missing -= sum(enter() for _ in range(come))


class Crowd:
    """form: one of FORMS. addresses: how many it comes from; 0: from 127.0.0.1. rate: how many of those that were closed come again in
    a second."""

    def __init__(self, port, form, addresses=1, tls=False, many=2000, rate=100):
        most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
        most = many if most == resource.RLIM_INFINITY else min(many, most - SPARE)
        parts = -(-many // most)
        self.processes = [subprocess.Popen([sys.executable, os.path.abspath(__file__), "127.0.0.1", str(port), form, str(addresses),
                                            str(int(tls)), str(-(-many // parts)), str(max(rate // parts, 1))], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
                          for _ in range(parts)]

    def __enter__(self):
        for process in self.processes:
            if process.stdout.readline() != b"there\n":
                raise AssertionError("the crowd does not come")
        return self

    def __exit__(self, *_):
        for process in self.processes:
            process.communicate(b"")
            if process.returncode:
                raise AssertionError("the crowd has failed")


if __name__ == "__main__":
    HOST, PORT, FORM, ADDRESSES, TLS, MANY, RATE = sys.argv[1:]
    play((HOST, int(PORT)), FORM, int(ADDRESSES) if ADDRESSES else None, TLS == "1", int(MANY), int(RATE))
