# SPDX-License-Identifier: Apache-2.0
"""Runs in a container: takes card memory by system calls of its own, without any library, and holds
it.

    python3 - MIB [STATIC_PROGRAM] < raw_memory.py      prints the driver's status: 0 is granted, 81 is out of memory

Without STATIC_PROGRAM libc's syscall() makes the calls, which the gate does not hook. With it
(tests/fake/rm-raw.c) a statically linked program makes them. The numbers are those of NVIDIA's open
kernel modules: src/gpu/rm/rm.h."""
import ctypes
import os
import struct
import subprocess
import sys
import time

ALLOC, ROOT, DEVICE, SUBDEVICE, MEMORY = 0x2B, 0x41, 0x80, 0x2080, 0x40
MEMORY_PARAMS = struct.Struct("<5Ii6IQQQQQQQ4IiI")
OPENAT, IOCTL = {"x86_64": (257, 16), "aarch64": (56, 29)}[os.uname().machine]


class Own:
    """System calls by libc's syscall()."""

    def __init__(self):
        self.libc = ctypes.CDLL(None, use_errno=True)
        self.memory = ctypes.create_string_buffer(1 << 17)
        self.base = ctypes.addressof(self.memory)

    def open(self, name):
        return self.libc.syscall(OPENAT, -100, ("/dev/" + name).encode(), os.O_RDWR | os.O_CLOEXEC)

    def ioctl(self, fd, request, address):
        return self.libc.syscall(IOCTL, fd, ctypes.c_ulong(request), ctypes.c_ulong(address))

    def put(self, place, data):
        self.memory[place:place + len(data)] = data

    def get(self, place, n):
        return self.memory[place:place + n]


class Static:
    """A program without any library, which reads a command per line."""

    def __init__(self, program):
        self.process = subprocess.Popen([program, "/dev"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.base = int(self.process.stdout.readline())

    def tell(self, *words):
        self.process.stdin.write(" ".join(str(w) for w in words) + "\n")
        self.process.stdin.flush()
        return self.process.stdout.readline().strip()

    def open(self, name):
        return int(self.tell("open", name))

    def ioctl(self, fd, request, address):
        return int(self.tell("ioctl", fd, request, address))

    def put(self, place, data):
        self.tell("put", self.base + place, data.hex())

    def get(self, place, n):
        return bytes.fromhex(self.tell("get", self.base + place, n))


def alloc(way, fd, client, parent, handle, kind, nested=0):
    """The handle and the status of RM_ALLOC."""
    way.put(0, struct.pack("<4IQII", client, parent, handle, kind, nested, 0, 99))
    if way.ioctl(fd, 0xC0004600 | 32 << 16 | ALLOC, way.base) != 0:
        sys.exit("the driver does not take the call")
    out = way.get(0, 32)
    return struct.unpack_from("<I", out, 8)[0], struct.unpack_from("<I", out, 28)[0]


def main():
    way = Static(sys.argv[2]) if len(sys.argv) > 2 else Own()
    fd = way.open("nvidiactl")
    if fd < 0:
        sys.exit("/dev/nvidiactl cannot be opened")
    client, _ = alloc(way, fd, 0, 0, 0, ROOT)
    card = min(int(n[6:]) for n in os.listdir("/dev") if n.startswith("nvidia") and n[6:].isdigit())
    way.put(1 << 16, struct.pack("<I", card).ljust(56, b"\0"))
    alloc(way, fd, client, client, 1, DEVICE, way.base + (1 << 16))
    alloc(way, fd, client, 1, 2, SUBDEVICE)
    size = int(sys.argv[1]) << 20
    way.put(1 << 16, MEMORY_PARAMS.pack(1, *[0] * 13, size, *[0] * 10))
    _, status = alloc(way, fd, client, 1, 3, MEMORY, way.base + (1 << 16))
    print(status, flush=True)
    while status == 0:
        time.sleep(1)  # holds the memory until this process is killed


main()
