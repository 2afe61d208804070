#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""libaliquot.so in processes that ask the simulated driver for memory, by the driver's own calls.

    gate.py LIBRARY SIMULATOR [TEST...]

A program under test is this file again, with the library preloaded: `gate.py --inside NAME` runs
the function of that name.
"""
import argparse
import contextlib
import ctypes
import errno
import fcntl
import json
import mmap
import os
import random
import resource
import select
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "fake"))

import page as layout  # noqa: E402
import slice_page  # noqa: E402

PATIENCE = 120  # seconds until a wait counts as failed; no test asserts speed
MIB = 1 << 20
OK, NO_MEMORY, NO_PERMISSION, NOT_FOUND = 0, 0x51, 0x1B, 0x57
LOCAL, DEVICE, SUBDEVICE, GROUP, CHANNEL, SYSTEM = 0x40, 0x80, 0x2080, 0xA06C, 0xC86F, 0x3E
FB_INFO, FB_INFO_V2, FB_REGIONS, GID, SET_TIMESLICE = 0x20801301, 0x20801303, 0x20801320, 0x2080014A, 0xA06C0103
BAD = 0xDEAD000  # nothing is mapped there


# ---- the driver's calls, from inside ----

LIBC = ctypes.CDLL(None, use_errno=True)
LIBC.ioctl.argtypes = [ctypes.c_int, ctypes.c_ulong, ctypes.c_void_p]
LIBC.mmap.restype = ctypes.c_void_p
LIBC.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long]
LIBC.munmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t]
LIBC.mremap.restype = ctypes.c_void_p
LIBC.mremap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_size_t, ctypes.c_int, ctypes.c_void_p]


def raw_ioctl(fd, number, size, address):
    """0 or a negative errno."""
    request = 0xC0000000 | size << 16 | ord("F") << 8 | number
    return 0 if LIBC.ioctl(fd, request, address) >= 0 else -ctypes.get_errno()


def address_of(buffer):
    return ctypes.addressof(buffer)


def packed(layout, *values):
    return ctypes.create_string_buffer(struct.pack(layout, *values), struct.calcsize(layout))


def call(fd, number, layout, *values):
    """The structure after the call; an errno of the driver fails the test."""
    buffer = packed(layout, *values)
    r = raw_ioctl(fd, number, len(buffer), address_of(buffer))
    if r < 0:
        raise OSError(-r, os.strerror(-r))
    return struct.unpack(layout, buffer.raw)


ALLOC, FREE, CONTROL, DUP, HEAP, MEMORY, XFER = 0x2B, 0x29, 0x2A, 0x34, 0x4A, 0x27, 211
L_ALLOC, L_RIGHTS, L_FREE, L_CONTROL, L_DUP = "<IIIIQII", "<IIIIQQIIII", "<IIII", "<IIIIQII", "<IIIIIII"
L_MEMORY_PARAMS = "<IIIIIiIIIIIIQQQQQQQIIIIiI"


def memory_params(size, owner=1):
    return packed(L_MEMORY_PARAMS, owner, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, size, 0, 0, 0, 0, 0, 0, 0, 0, -1, 0)


def size_in(params):
    return struct.unpack_from("<Q", params.raw, 64)[0]


EXPORT, IMPORT, EXPORT_MANY, IMPORT_MANY = 0x3D05, 0x3D06, 0x3D0B, 0x3D0C
IN_USE = 0x63


class Refused(Exception):
    """The driver answered with a status other than OK."""

    def __init__(self, status):
        super().__init__("status %#x" % status)
        self.status = status


def ok(status):
    if status != OK:
        raise Refused(status)


class Client:
    """A client of the driver on a file of its own, with a device and a subdevice of one card."""

    def __init__(self, directory=None, card=0, share=None, mode=os.O_RDWR):
        self.directory = directory or os.environ["SIM_DIR"]
        self.fd = share.fd if share else os.open(self.directory + "/nvidiactl", mode | os.O_CLOEXEC)
        self.begin()
        self.device = self.allocate(self.root, self.root, DEVICE, packed("<IIIIIIQQQII", card, *[0] * 10))
        self.subdevice = self.allocate(self.root, self.device, SUBDEVICE, packed("<I", 0))

    def begin(self):
        self.root = self.allocate(0, 0, 0x41)

    def allocate(self, root, parent, class_, params=None, handle=0, rights=False):
        at, n = (address_of(params), len(params)) if params else (0, 0)
        if rights:
            answer = call(self.fd, ALLOC, L_RIGHTS, root, parent, handle, class_, at, 0, n, 0, 0, 0)
            ok(answer[8])
        else:
            answer = call(self.fd, ALLOC, L_ALLOC, root, parent, handle, class_, at, n, 0)
            ok(answer[6])
        return answer[2]

    def memory(self, size, handle=0, parent=None, rights=False):
        return self.allocate(self.root, parent or self.device, LOCAL, memory_params(size), handle, rights)

    def heap(self, size, function=2, handle=0, virtual=False, pci=False, pitch=None):
        """Allocates by the other call, the heap's. Returns handle and size."""
        b = bytearray(184)
        struct.pack_into("<III", b, 0, self.root, self.device, function)
        struct.pack_into("<III", b, 40, 1, handle, 0)
        struct.pack_into("<I", b, 52, (0x4000 if handle else 0) | (0x80000 if virtual else 0))
        if function == 6:
            struct.pack_into("<Ii", b, 56, *pitch)
        else:
            struct.pack_into("<I", b, 56, 1 << 25 if pci else 0)
            struct.pack_into("<Q", b, 88, size)
        buffer = ctypes.create_string_buffer(bytes(b), 184)
        r = raw_ioctl(self.fd, HEAP, 184, address_of(buffer))
        if r < 0:
            raise OSError(-r, os.strerror(-r))
        ok(struct.unpack_from("<I", buffer.raw, 20)[0])
        return struct.unpack_from("<I", buffer.raw, 44)[0], struct.unpack_from("<Q", buffer.raw, 88)[0]

    def heap_free(self, handle):
        b = bytearray(184)
        struct.pack_into("<III", b, 0, self.root, self.device, 3)
        struct.pack_into("<III", b, 40, 1, handle, 1)
        buffer = ctypes.create_string_buffer(bytes(b), 184)
        assert raw_ioctl(self.fd, HEAP, 184, address_of(buffer)) == 0
        ok(struct.unpack_from("<I", buffer.raw, 20)[0])

    def heap_info(self):
        b = bytearray(184)
        struct.pack_into("<III", b, 0, self.root, self.device, 5)
        buffer = ctypes.create_string_buffer(bytes(b), 184)
        assert raw_ioctl(self.fd, HEAP, 184, address_of(buffer)) == 0
        ok(struct.unpack_from("<I", buffer.raw, 20)[0])
        return struct.unpack_from("<QQ", buffer.raw, 24) + struct.unpack_from("<Q", buffer.raw, 56)

    def free(self, handle, root=None):
        ok(call(self.fd, FREE, L_FREE, root or self.root, 0, handle, 0)[3])

    def dup(self, source, handle, to=0):
        answer = call(self.fd, DUP, L_DUP, self.root, self.device, to, source, handle, 0, 0)
        ok(answer[6])
        return answer[2]

    def control(self, object_, command, params):
        answer = call(self.fd, CONTROL, L_CONTROL, self.root, object_, command, 0, address_of(params), len(params), 0)
        ok(answer[6])
        return params.raw

    def empty_file(self):
        """A file that objects can be exported to."""
        return os.open(self.directory + "/nvidiactl", os.O_RDWR | os.O_CLOEXEC)

    def export(self, handle, fd):
        self.control(self.root, EXPORT, packed("<IIIIiI", 1, self.device, self.device, handle, fd, 0))

    def import_(self, fd, handle=0):
        return struct.unpack("<iIIII", self.control(self.root, IMPORT, packed("<iIIII", fd, 1, self.device, self.device, handle)))[4]

    def export_many(self, handles, fd, index=0, room=8):
        params = ctypes.create_string_buffer(2128)
        struct.pack_into("<iIH", params, 0, fd, self.device, room)
        struct.pack_into("<%dI" % len(handles), params, 76, *handles)
        struct.pack_into("<HH", params, 2124, len(handles), index)
        self.control(self.root, EXPORT_MANY, params)

    def import_many(self, fd, n, index=0):
        params = ctypes.create_string_buffer(652)
        struct.pack_into("<iI", params, 0, fd, self.device)
        struct.pack_into("<HH", params, 648, n, index)
        raw = self.control(self.root, IMPORT_MANY, params)
        return list(struct.unpack_from("<%dI" % n, raw, 8)), list(raw[520:520 + n])

    def fb(self, *indices):
        """KiB by index, through the inline list."""
        params = ctypes.create_string_buffer(1028)
        struct.pack_into("<I", params, 0, len(indices))
        for i, index in enumerate(indices):
            struct.pack_into("<II", params, 4 + 8 * i, index, 0)
        raw = self.control(self.subdevice, FB_INFO_V2, params)
        return [struct.unpack_from("<II", raw, 4 + 8 * i)[1] for i in range(len(indices))]

    def fb_list(self, *indices):
        """The same through the list at a pointer."""
        entries = packed("<%dI" % (2 * len(indices)), *[x for index in indices for x in (index, 0)])
        self.control(self.subdevice, FB_INFO, packed("<IIQ", len(indices), 0, address_of(entries)))
        return list(struct.unpack("<%dI" % (2 * len(indices)), entries.raw)[1::2])


def say(**words):
    print(json.dumps(words), flush=True)


def status_of(what, *arguments, **options):
    """The driver's status, or a negative errno."""
    try:
        what(*arguments, **options)
    except Refused as refused:
        return refused.status
    except OSError as error:
        return -error.errno
    return OK


# ---- programs under test: each prints lines of JSON ----

INSIDE = {}


def inside(function):
    INSIDE[function.__name__] = function
    return function


def wait_for_word():
    """Waits until the test says to go on."""
    return sys.stdin.readline().strip()


@inside
def doors():
    """Memory by each call, up to the limit and one step over it."""
    c = Client()
    a = c.memory(60 * MIB)
    b, size = c.heap(20 * MIB)
    d, pitched = c.heap(0, function=6, pitch=(1024, 4096))
    e, ranged = c.heap(10 * MIB, function=14)
    say(over=status_of(c.memory, 7 * MIB), rights=status_of(c.memory, 7 * MIB, rights=True),
        heap=status_of(c.heap, 7 * MIB), sizes=[size, pitched, ranged])
    say(rest=status_of(c.memory, 6 * MIB), one_more=status_of(c.memory, 1))
    say(virtual=status_of(c.heap, 500 * MIB, virtual=True), system=status_of(c.heap, 500 * MIB, pci=True),
        negative=status_of(c.heap, 0, function=6, pitch=(1, -1)),
        huge=[status_of(c.memory, n) for n in (1 << 63, (1 << 64) - 1, 1 << 50)])
    c.heap_free(b)
    say(freed=status_of(c.memory, 20 * MIB))
    for handle in (a, d, e):
        c.free(handle)
    wait_for_word()


@inside
def modes():
    """Files that are open for reading or for writing only: the driver ignores the mode."""
    clients = [Client(mode=mode) for mode in (os.O_WRONLY, os.O_RDONLY, os.O_WRONLY, os.O_RDWR)]
    say(status=[status_of(c.memory, 10 * MIB) for c in clients])
    wait_for_word()


@inside
def trees():
    """Memory that is freed with its device, its client, or its file."""
    c = Client()
    c.memory(10 * MIB)
    c.memory(10 * MIB, parent=c.subdevice)
    c.free(c.device)
    say(device=True)
    wait_for_word()
    d = Client(share=c)
    d.memory(20 * MIB)
    d.free(d.root, root=d.root)
    say(client=True)
    wait_for_word()
    e = Client()
    e.memory(90 * MIB)
    os.close(e.fd)
    # The gate did not see this; before it refuses memory it must find out.
    f = Client()
    say(closed=status_of(f.memory, 90 * MIB), over=status_of(f.memory, 20 * MIB))
    kept = Client()
    kept.memory(4 * MIB)
    other = os.dup(kept.fd)
    os.close(kept.fd)
    say(kept=status_of(f.memory, 8 * MIB), fits=status_of(f.memory, 6 * MIB))
    os.close(other)
    say(gone=status_of(f.memory, 4 * MIB))
    wait_for_word()


@inside
def handles():
    """Handles that are chosen by the client, used again, freed twice, and unknown."""
    c = Client()
    for _ in range(300):
        c.memory(50 * MIB, handle=0xCAFE0001)
        c.free(0xCAFE0001)
    say(twice=status_of(c.free, 0xCAFE0001), unknown=status_of(c.free, 0xCAFE0002))
    c.memory(50 * MIB, handle=0xCAFE0001)
    say(again=status_of(c.memory, 10 * MIB, handle=0xCAFE0001))
    wait_for_word()
    say(parent=status_of(c.memory, 10 * MIB, parent=0x12345678))
    stranger = Client(share=c)
    stranger.root = 0x99999999
    say(client=status_of(stranger.memory, 10 * MIB))
    wait_for_word()


@inside
def duplicates():
    c = Client()
    d = Client(share=c)
    a = c.memory(40 * MIB)
    b = d.dup(c.root, a)
    e = d.dup(d.root, b)
    say(one=True)
    wait_for_word()
    c.free(a)
    d.free(b)
    say(last=True)
    wait_for_word()
    d.free(e)
    say(none=True)
    wait_for_word()


@inside
def foreign_owner():
    c = Client()
    a = c.memory(30 * MIB)
    say(client=c.root, handle=a)
    wait_for_word()
    c.free(a)
    say(freed=True)
    wait_for_word()


@inside
def foreign():
    """Memory of another process of the container, and of one without the gate."""
    client, handle = (int(word) for word in wait_for_word().split())
    c = Client()
    a = c.dup(client, handle)
    say(mine=True)
    if not wait_for_word():
        return
    c.free(a)
    c.memory(50 * MIB)
    say(full=status_of(c.dup, client, handle))
    wait_for_word()


def take_descriptor():
    """A descriptor from the test, by an inherited socket with its number in the environment."""
    return socket.recv_fds(socket.socket(fileno=os.dup(int(os.environ["SOCKET"]))), 1, 1)[1][0]


def give_descriptor(fd):
    socket.send_fds(socket.socket(fileno=os.dup(int(os.environ["SOCKET"]))), [b"x"], [fd])


@inside
def exports():
    """Exported memory that is freed stays charged as long as the file is open, in any descriptor."""
    c = Client()
    a = c.memory(60 * MIB)
    fd = c.empty_file()
    c.export(a, fd)
    say(again=status_of(c.export, a, fd), bad=status_of(c.export, a, -1) != OK, none=status_of(c.export, 0x77777777, c.empty_file()) != OK)
    c.free(a)
    say(freed=True)
    wait_for_word()
    say(over=status_of(c.memory, 60 * MIB))
    other = os.dup(fd)
    os.close(fd)
    say(still=status_of(c.memory, 60 * MIB))
    b = c.import_(other)
    say(imported=True)
    wait_for_word()
    d = c.memory(30 * MIB)  # the gate has to look, and finds that the file is open
    os.close(other)
    say(file=status_of(c.memory, 60 * MIB))  # the import holds it
    wait_for_word()
    c.free(b)
    say(gone=True)
    wait_for_word()
    c.free(d)
    # By the client's own file, and by a file that is closed before its room is needed.
    e = c.memory(60 * MIB)
    c.export(e, c.fd)
    c.free(e)
    say(itself=status_of(c.memory, 60 * MIB))
    wait_for_word()


@inside
def exports_many():
    c = Client()
    made = [c.memory(10 * MIB) for _ in range(3)]
    fd = c.empty_file()
    say(range_=status_of(c.export_many, made, fd, 7) != OK, unknown=status_of(c.export_many, made + [0x77777777], fd) != OK)
    c.export_many(made, fd)
    for a in made:
        c.free(a)
    say(freed=True)
    wait_for_word()
    handles, types = c.import_many(fd, 4)
    say(types=types, n=len([h for h in handles if h]))
    wait_for_word()
    for handle in handles[:3]:
        c.free(handle)
    c.export_many([0, 0], fd)
    say(replaced=True)
    wait_for_word()
    os.close(fd)
    say(closed=status_of(c.memory, 100 * MIB))
    wait_for_word()


@inside
def stranger_exports():
    """Memory that this slice has not counted, of a client that came with its file."""
    other = Client.__new__(Client)
    other.directory, other.fd = os.environ["SIM_DIR"], take_descriptor()
    other.root, other.device, handle = (int(word) for word in os.environ["HANDLES"].split())
    fd = other.empty_file()
    say(first=status_of(other.export, handle, fd))
    wait_for_word()
    say(second=status_of(other.export, handle, other.empty_file()))
    wait_for_word()
    os.close(fd)
    say(closed=status_of(Client().memory, 100 * MIB))
    wait_for_word()


@inside
def exporter():
    c = Client()
    a = c.memory(40 * MIB)
    fd = c.empty_file()
    c.export(a, fd)
    give_descriptor(fd)
    os.close(fd)
    c.free(a)
    say(given=True)
    wait_for_word()
    say(status=status_of(c.memory, 80 * MIB))
    wait_for_word()


@inside
def importer():
    c = Client()
    fd = take_descriptor()
    c.memory(int(os.environ["HOLD"]) * MIB)
    say(one=status_of(c.import_, fd))
    wait_for_word()
    say(many=status_of(c.import_many, fd, 1))
    wait_for_word()
    os.close(fd)
    say(closed=True)
    wait_for_word()


@inside
def cards():
    """Each card has a limit of its own, and a third card none."""
    found = [Client(card=i) for i in range(3)]
    say(over=[status_of(c.memory, 200 * MIB) for c in found], fits=[status_of(c.memory, 40 * MIB) for c in found],
        second=[status_of(c.memory, 60 * MIB) for c in found], totals=[c.fb(8)[0] for c in found])
    say(subdevices=[status_of(c.memory, 4 * MIB, parent=c.subdevice) for c in found])
    wait_for_word()


@inside
def questions():
    c = Client()
    c.memory(30 * MIB)
    indices = (7, 8, 9, 0xA, 0x20, 0x16, 0x12, 0x11)
    say(inline=c.fb(*indices), pointer=c.fb_list(*indices), heap=c.heap_info())
    regions = ctypes.create_string_buffer(904)
    raw = c.control(c.subdevice, FB_REGIONS, regions)
    n = struct.unpack_from("<I", raw)[0]
    say(regions=[list(struct.unpack_from("<QQ", raw, 8 + 56 * i)) for i in range(n)])
    device = os.open(c.directory + "/nvidia0", os.O_RDWR | os.O_CLOEXEC)
    register = ctypes.create_string_buffer(struct.pack("<i", c.fd), 4)
    assert raw_ioctl(device, 201, 4, address_of(register)) == 0
    answer = call(device, MEMORY, "<IIIIIIQQIIiI", c.root, c.device, 0, LOCAL, 1 << 16, 0, 0, 0, 0, 0, -1, 0)
    say(limit=answer[7] + 1, status=answer[8])
    wait_for_word()


@inside
def groups():
    c = Client()
    params = ctypes.create_string_buffer(64)
    made = [c.allocate(c.root, c.device, GROUP, params)]
    say(one=True)
    wait_for_word()
    while True:
        status = status_of(lambda: made.append(c.allocate(c.root, c.device, GROUP, params)))
        if status != OK:
            break
    say(n=len(made), status=status)
    say(timeslice=status_of(c.control, made[0], SET_TIMESLICE, packed("<Q", 1000)))
    for group in made:
        c.free(group)
    wait_for_word()


@inside
def channels():
    """Objects of a group belong to the group; without one each process has its own, which is no object."""
    c = Client()
    params = ctypes.create_string_buffer(512)

    def more(parent, n):
        made = []
        status = OK
        while status == OK and len(made) < n:
            status = status_of(lambda: made.append(c.allocate(c.root, parent, CHANNEL, params)))
        return status, made

    group = c.allocate(c.root, c.device, GROUP, params)
    say(grouped=[more(group, 20)[0], more(c.dup(c.root, group), 20)[0]])
    wait_for_word()
    status, made = more(c.device, 100)
    say(n=len(made), status=status)
    wait_for_word()
    for channel in made:
        c.free(channel)
    say(freed=True)
    wait_for_word()


@inside
def groups_of_nothing():
    c = Client()
    say(statuses=[status_of(c.allocate, c.root, c.device, class_, ctypes.create_string_buffer(512)) for class_ in (GROUP, CHANNEL)])
    wait_for_word()


class Stopped:
    """Stops calls of another thread, of one request, before the kernel sees their arguments."""

    def __init__(self, request):
        number = {"x86_64": (317, 16), "aarch64": (277, 29)}.get(os.uname().machine)
        code = [(0x20, 0, 0, 0), (0x15, 0, 3, number[1]), (0x20, 0, 0, 24), (0x15, 0, 1, request),
                (6, 0, 0, 0x7FC00000), (6, 0, 0, 0x7FFF0000)] if number else []
        self.code = packed("<" + "HBBI" * len(code), *[x for line in code for x in line])
        self.program = packed("<HxxxxxxQ", len(code), address_of(self.code))
        self.number, self.listener, self.result, self.started = number, -1, None, threading.Event()

    def _run(self, function):
        if self.number and LIBC.prctl(38, 1, 0, 0, 0) == 0:
            self.listener = LIBC.syscall(self.number[0], 1, 8, ctypes.c_void_p(address_of(self.program)))
        self.started.set()
        if self.listener >= 0:
            self.result = status_of(function)

    def meanwhile(self, function, swap):
        """Does swap() at the first stop. Returns the result of function(); None: threads cannot be stopped here."""
        thread = threading.Thread(target=self._run, args=[function])
        thread.start()
        self.started.wait()
        ready = select.poll()
        if self.listener >= 0:
            ready.register(self.listener, select.POLLIN)
        while self.listener >= 0:
            events = dict(ready.poll(50)).get(self.listener, 0)
            if events & select.POLLHUP or not thread.is_alive():
                break
            if not events & select.POLLIN:
                continue
            notice = ctypes.create_string_buffer(80)
            if LIBC.ioctl(self.listener, 0xC0502100, address_of(notice)) != 0:
                continue
            if swap:
                swap()
                swap = None
            answer = packed("<QqiI", *struct.unpack_from("<Q", notice.raw), 0, 0, 1)
            assert LIBC.ioctl(self.listener, 0xC0182101, address_of(answer)) == 0
        thread.join()
        if self.listener >= 0:
            os.close(self.listener)
        return self.result


@inside
def swapped():
    """The object has become another, larger one when the driver looks."""
    c = Client()
    d = Client(share=c)
    handle, request, size = 0xCAFE0001, int(os.environ["REQUEST"]), int(os.environ["SIZE"]) * MIB
    while True:
        c.memory(64 * 1024, handle=handle)
        fd = c.empty_file()

        def swap():
            c.free(handle)
            with contextlib.suppress(Refused):  # there is no room left at the end
                c.memory(size, handle=handle)

        status = Stopped(request).meanwhile(
            (lambda: d.dup(c.root, handle)) if os.environ["HOW"] == "duplicate" else (lambda: c.export(handle, fd)), swap)
        with contextlib.suppress(Refused):
            c.free(handle)
        say(status=status)
        wait_for_word()


@inside
def hmm():
    """Plain memory does not move to the card, whatever the application advises."""
    fds = [os.open(os.environ["SIM_DIR"] + "/nvidia-uvm", os.O_RDWR | os.O_CLOEXEC) for _ in range(3)]

    def initialize(fd, flags):
        params = packed("<QII", flags, 77, 0)
        return (LIBC.ioctl(fd, 0x30000001, address_of(params)), *struct.unpack_from("<QI", params.raw))

    def pageable(fd):
        params = ctypes.create_string_buffer(8)
        return LIBC.ioctl(fd, 39, address_of(params)), params.raw[0]

    say(initialized=[initialize(fds[0], 0), initialize(fds[0], 0), initialize(fds[1], 3), initialize(fds[2], 4)],
        bad=[LIBC.ioctl(fds[2], 0x30000001, BAD), LIBC.ioctl(-1, 0x30000001, BAD)],
        pageable=[pageable(fd) for fd in fds[:2]])
    uuid = bytes.fromhex(os.environ["UUID2"])
    statuses = []
    for request in (37, 1 << 32 | 37):
        params = packed("<16sIiiIII", uuid, 0, 0, -1, 0, 0, 0)
        statuses.append((LIBC.ioctl(fds[0], request, address_of(params)), struct.unpack_from("<I", params.raw, 36)[0]))
    say(no_slice=statuses)
    wait_for_word()


@inside
def many_clients():
    live = [Client() for _ in range(90)]
    for _ in range(10):
        c = Client()
        c.memory(9 * MIB)
        os.close(c.fd)
    say(status=status_of(live[0].memory, 90 * MIB))
    wait_for_word()


@inside
def workers():
    """Children that use memory but no card take no rows."""
    c = Client()
    c.memory(MIB)
    LIBC.ioctl(-1, 0x30000001, None)

    def work():
        pages = mmap.mmap(-1, 16 * MIB)
        pages.close()
        assert LIBC.munmap(LIBC.mmap(0, 4096, 1, 2, os.open("/proc/self/exe", os.O_RDONLY), 0), 4096) == 0
        if os.environ["UVM_TOO"]:
            assert LIBC.mmap(0, MIB, 3, 1, os.open(os.environ["UVM_FILE"], os.O_RDWR), 0)

    children = [in_child(work) for _ in range(int(os.environ["CHILDREN"]))]
    say(ready=True)
    wait_for_word()
    for child in reversed(children):  # later ones inherited the pipes of earlier ones
        end_child(child)
    say(ended=True)
    wait_for_word()


@inside
def hostile():
    c = Client()
    fd = c.fd
    say(null=[raw_ioctl(fd, n, s, None) for n, s in ((ALLOC, 32), (ALLOC, 48), (FREE, 16), (CONTROL, 32), (HEAP, 184),
                                                     (DUP, 28), (XFER, 16))],
        unmapped=[raw_ioctl(fd, n, s, BAD) for n, s in ((ALLOC, 32), (CONTROL, 32), (HEAP, 184), (XFER, 16))],
        high=[raw_ioctl(fd, n, s, (1 << 64) - 8) for n, s in ((ALLOC, 32), (CONTROL, 32), (HEAP, 184), (XFER, 16))])

    def alloc(params, n=128):
        return call(fd, ALLOC, L_ALLOC, c.root, c.device, 0, LOCAL, params, n, 0)[6]

    say(params=[alloc(p) for p in (0, BAD, 8, (1 << 64) - 8)])
    pages = mmap.mmap(-1, 3 * 4096)
    base = ctypes.addressof(ctypes.c_char.from_buffer(pages))
    assert LIBC.munmap(base + 4096, 4096) == 0
    good = memory_params(4 * MIB).raw
    ctypes.memmove(base + 4096 - 128, good, 128)
    odd = ctypes.create_string_buffer(b"\0" + good, 129)
    say(edge=alloc(base + 4096 - 128), cut=alloc(base + 4096 - 64), misaligned=alloc(address_of(odd) + 1))
    # Read-only: the driver would have made the object and returned EFAULT.
    ctypes.memmove(base, good, 128)
    LIBC.mprotect(ctypes.c_void_p(base), 4096, 1)
    say(read_only=alloc(base))
    inner = memory_params(4 * MIB)
    outer = struct.pack(L_ALLOC, c.root, c.device, 0xCAFE0077, LOCAL, address_of(inner), 128, 0)
    ctypes.memmove(base + 8192, outer, 32)
    LIBC.mprotect(ctypes.c_void_p(base + 8192), 4096, 1)
    say(outer=raw_ioctl(fd, ALLOC, 32, base + 8192))
    wait_for_word()
    # Lists with a length beyond their end.
    lie = ctypes.create_string_buffer(1028)
    struct.pack_into("<I", lie, 0, 0xFFFFFFFF)
    say(lie=status_of(c.control, c.subdevice, FB_INFO_V2, lie))
    say(pointers=[status_of(c.control, c.subdevice, FB_INFO, packed("<IIQ", n, 0, p))
                  for n, p in ((1, 0), (1, BAD), (0xFFFFFFFF, BAD), (0, BAD), (2, (1 << 64) - 8))],
        short=[status_of(c.control, c.subdevice, command, ctypes.create_string_buffer(n))
               for command in (FB_INFO, FB_INFO_V2, FB_REGIONS) for n in (1, 4, 8)])
    wild = random.Random(7)
    for _ in range(3000):
        number, size = wild.choice(((ALLOC, 32), (ALLOC, 48), (FREE, 16), (CONTROL, 32), (HEAP, 184), (DUP, 28), (0x28, 20)))
        words = [wild.choice((0, 1, LOCAL, 2, 6, 14, 0xFFFFFFFF, BAD, c.root, FB_INFO, FB_INFO_V2, wild.getrandbits(32)))
                 for _ in range(size // 4)]
        if number != FREE and words[0] == c.root and words[2] == c.root:
            continue
        params = packed("<%dI" % (size // 4), *words)  # lives as long as the call, which writes to it
        raw_ioctl(fd, number, size, address_of(params))
    say(alive=True)
    wait_for_word()


@inside
def xfer():
    """The same call through a wrapper."""
    c = Client()

    def wrapped(number, size, address):
        outer = packed("<IIQ", number, size, address)
        return raw_ioctl(c.fd, XFER, 16, address_of(outer))

    params = memory_params(60 * MIB)
    inner = packed(L_ALLOC, c.root, c.device, 0, LOCAL, address_of(params), 128, 0)
    say(first=wrapped(ALLOC, 32, address_of(inner)), status=struct.unpack(L_ALLOC, inner.raw)[6], size=size_in(params))
    wait_for_word()
    again = packed(L_ALLOC, c.root, c.device, 0, LOCAL, address_of(params), 128, 0)
    say(second=wrapped(ALLOC, 32, address_of(again)), status=struct.unpack(L_ALLOC, again.raw)[6])
    say(bad=[wrapped(ALLOC, 32, BAD), wrapped(ALLOC, 31, address_of(again)), wrapped(ALLOC, 1 << 30, address_of(again)),
             wrapped(0x12B, 32, address_of(again))])
    free = packed(L_FREE, c.root, 0, struct.unpack(L_ALLOC, inner.raw)[2], 0)
    say(freed=wrapped(FREE, 16, address_of(free)))
    wait_for_word()


@inside
def hold():
    c = Client()
    say(status=status_of(c.memory, int(os.environ.get("HOLD", "40")) * MIB))
    wait_for_word()


@inside
def asks():
    """How much is free, by the driver's call, each time the test asks."""
    c = Client()
    c.memory(10 * MIB)
    word = ""
    while True:
        if word == "close":
            d = Client()
            d.memory(60 * MIB)
            say(free=c.fb(0x16)[0])
            os.close(d.fd)
        elif word == "export":
            fd = c.empty_file()
            a = c.memory(40 * MIB)
            c.export(a, fd)
            c.free(a)
            say(free=c.fb(0x16)[0])
            os.close(fd)
        else:
            want = int(word.split()[1]) * 1024 if word else 0
            deadline = time.monotonic() + PATIENCE
            while c.fb(0x16)[0] != want and want and time.monotonic() < deadline:
                time.sleep(0.01)
            say(free=c.fb(0x16)[0])
        word = wait_for_word()


@inside
def forks():
    """A child has its own row; inherited memory stays charged while either process lives."""
    c = Client()
    a = c.memory(30 * MIB)
    stop = threading.Event()

    def churn():
        mine = Client(share=c)
        while not stop.is_set():
            mine.free(mine.memory(MIB))

    threads = [threading.Thread(target=churn) for _ in range(4)]
    for thread in threads:
        thread.start()
    children = []
    for _ in range(8):
        pid = os.fork()
        if pid == 0:
            signal.alarm(PATIENCE)
            d = Client()
            d.free(d.memory(2 * MIB))
            with contextlib.suppress(Refused):
                for _ in range(3):
                    d.memory(MIB)
            os._exit(0)
        children.append(pid)
    codes = [os.waitpid(pid, 0)[1] for pid in children]
    stop.set()
    for thread in threads:
        thread.join()
    say(codes=codes)
    wait_for_word()
    pid = os.fork()
    if pid == 0:
        c.free(a)  # inherited
        os._exit(0)
    os.waitpid(pid, 0)
    say(inherited=True)
    wait_for_word()


def in_child(function):
    """Runs in a child of fork that lives until the returned descriptor is closed."""
    done, gone = os.pipe(), os.pipe()
    pid = os.fork()
    if pid == 0:
        signal.alarm(PATIENCE)
        os.close(gone[1])
        function()
        os.write(done[1], b"x")
        os.read(gone[0], 1)
        os._exit(0)
    assert os.read(done[0], 1) == b"x"
    for fd in (*done, gone[0]):
        os.close(fd)
    return pid, gone[1]


def end_child(child):
    os.close(child[1])
    assert os.waitpid(child[0], 0)[1] == 0


@inside
def fork_frees():
    """A child frees what it inherited and lives on; the parent frees it again, and it is given back only once."""
    c = Client()
    a, b = c.memory(30 * MIB), c.memory(30 * MIB)
    child = in_child(lambda: c.free(a))
    say(child=True)
    wait_for_word()
    c.free(a)
    say(parent=True, over=status_of(c.memory, 80 * MIB))
    wait_for_word()
    end_child(child)
    made = []  # duplicates of inherited memory, which belong to their maker
    child = in_child(lambda: made.append(c.dup(c.root, b)))
    c.free(b)
    say(duplicate=True)
    wait_for_word()
    end_child(child)
    say(left=True)
    wait_for_word()


def first_call(fd, limit=None, root=None):
    """The very first call, on an open file, without a resource or in another root; then with it."""
    normal = resource.getrlimit(limit) if limit is not None else None
    c = Client.__new__(Client)
    c.fd, c.directory = fd, os.environ["SIM_DIR"]
    if limit is not None:
        enough = max(int(name) for name in os.listdir("/proc/self/fd")) + 1
        for free in range(enough):
            with contextlib.suppress(OSError):
                os.fstat(free)
                continue
            os.dup2(fd, free)
        resource.setrlimit(limit, (enough if limit == resource.RLIMIT_NOFILE else 1, normal[1]))
    if root:
        os.chroot(root)
    words = {"client": status_of(c.begin)}
    if words["client"] != OK:  # by the kernel's own call, so that there is a client
        answer = packed(L_ALLOC, 0, 0, 0, 0x41, 0, 0, 0)
        assert LIBC.syscall({"x86_64": 16, "aarch64": 29}[os.uname().machine], fd, 0xC0000000 | 32 << 16 | ord("F") << 8 | ALLOC,
                            ctypes.c_void_p(address_of(answer))) == 0
        c.root = struct.unpack_from("<I", answer.raw, 8)[0]
    c.device = c.allocate(c.root, c.root, DEVICE, packed("<IIIIIIQQQII", 0, *[0] * 10))
    words["first"] = status_of(c.memory, 200 * MIB), status_of(c.memory, 40 * MIB)
    if limit is not None:
        resource.setrlimit(limit, normal)
    words["then"] = status_of(c.memory, 200 * MIB), status_of(c.memory, 40 * MIB)
    pid = os.fork()
    if pid == 0:
        os._exit(status_of(c.memory, 40 * MIB) != OK or status_of(c.memory, 40 * MIB) != NO_MEMORY)
    words["child"] = os.waitpid(pid, 0)[1]
    return words


@inside
def starved():
    """Without descriptors or address space, and then with them."""
    limit = getattr(resource, os.environ["STARVED"])
    say(**first_call(os.open(os.environ["SIM_DIR"] + "/nvidiactl", os.O_RDWR | os.O_CLOEXEC), limit))
    wait_for_word()


@inside
def rooted():
    """In another root; in its child; and in a child of a process that found its slices before."""
    fd = os.open(os.environ["SIM_DIR"] + "/nvidiactl", os.O_RDWR | os.O_CLOEXEC)
    c = Client() if os.environ["BEFORE"] else None
    if c:
        os.chroot(os.environ["ROOT"])
        child = in_child(lambda: say(child=status_of(c.memory, 40 * MIB)))
        end_child(child)
    else:
        say(**first_call(fd, root=os.environ["ROOT"]))
    wait_for_word()


@inside
def leaves():
    """Memory that stays behind on a file that another process holds, in several ways."""
    how, _, exported = os.environ["HOW"].partition("-")
    if how == "exec":
        c = Client()
        os.set_inheritable(c.fd, True)
        a = c.memory(60 * MIB)
        if exported:
            c.export(a, c.empty_file())
        os.execve(sys.executable, [sys.executable, os.path.abspath(__file__), "--inside", "left"], dict(os.environ, LEFT=str(c.fd)))
    file = os.open(os.environ["SIM_DIR"] + "/nvidiactl", {"read": os.O_RDONLY, "write": os.O_WRONLY}.get(how, os.O_RDWR) | os.O_CLOEXEC)
    how = how if how in ("socket", "export") else "fork"
    if exported == "shared":
        Client(share=argparse.Namespace(fd=file))
    ours, theirs = socket.socketpair()
    pid = os.fork()
    if pid == 0:
        c = Client(share=argparse.Namespace(fd=file)) if how == "fork" else Client()
        owner = Client() if exported in ("duplicate", "import") else c
        a, fd = owner.memory(60 * MIB), owner.empty_file()
        if exported == "duplicate":
            c.dup(owner.root, a)
        if how == "export" or exported:
            owner.export(a, fd)
        if exported == "import":
            c.import_(fd)
        socket.send_fds(theirs, [b"x"], [{"fork": 0, "socket": c.fd, "export": fd if how == "export" else -1}[how]])
        os._exit(0)
    assert os.waitpid(pid, 0)[1] == 0
    if how == "fork":
        left_of(file)
    else:  # first in flight, then received here
        say(first=status_of(Client().memory, 60 * MIB))
        wait_for_word()
        left_of(socket.recv_fds(ours, 1, 1)[1][0])


def soon(what, *arguments):
    """Retries until OK: ended processes are looked for at most once in a millisecond."""
    deadline = time.monotonic() + PATIENCE
    while (status := status_of(what, *arguments)) != OK and time.monotonic() < deadline:
        time.sleep(0.01)
    return status


def left_of(fd):
    c = Client()
    say(over=status_of(c.memory, 60 * MIB), fits=status_of(c.memory, 40 * MIB))
    wait_for_word()
    os.close(fd)
    say(closed=soon(c.memory, 60 * MIB))
    wait_for_word()


@inside
def left():
    left_of(int(os.environ["LEFT"]))


@inside
def passes_on():
    """A child allocates in the client that it inherited, and ends."""
    c = Client()

    def exported():
        a, fd = c.memory(70 * MIB), c.empty_file()
        c.export(a, fd)
        os.close(fd)
        c.free(a)
        c.free(c.memory(100 * MIB))  # the gate has to look

    end_child(in_child(lambda: c.free(c.memory(90 * MIB))))
    end_child(in_child(exported))
    end_child(in_child(lambda: c.memory(60 * MIB)))
    say(over=status_of(c.memory, 60 * MIB))
    wait_for_word()
    other = Client()
    os.close(c.fd)
    say(closed=soon(other.memory, 100 * MIB))
    wait_for_word()


@inside
def leaves_exported():
    """60 MiB, of which 10 stay on a file that the test holds; another file is closed before the end."""
    c = Client()
    made = [c.memory(10 * MIB) for _ in range(6)]
    if os.environ["WAIT"]:
        wait_for_word()
    files = [c.empty_file() for _ in range(2)]
    twice = c.dup(c.root, made[0])
    for fd in files:
        c.export(made[0], fd)
    c.export_many([made[1]], c.empty_file())
    give_descriptor(files[0])
    say(exported=True)
    wait_for_word()
    os.close(files[1])
    c.free(made[0])
    c.free(twice)
    say(over=status_of(c.memory, 50 * MIB))  # the gate has to look
    wait_for_word()


@inside
def exports_at_once():
    """Threads export the same objects of two cards, and duplicates of them, and close the files."""
    clients = [Client(card=card) for card in range(2)]
    made = [c.memory(10 * MIB) for c in clients]

    def export():
        for i in range(60):
            c, a = clients[i % 2], made[i % 2]
            b = c.dup(c.root, a) if i % 3 == 0 else 0
            fd = c.empty_file()
            c.export(b or a, fd)
            if i % 5 == 0:
                c.fb(0x16)
            os.close(fd)
            if b:
                c.free(b)

    threads = [threading.Thread(target=export) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    say(closed=True)
    wait_for_word()
    for c, a in zip(clients, made):
        c.free(a)
        c.free(c.memory(100 * MIB))  # the gate has to look
    say(freed=True)
    wait_for_word()


@inside
def closes_and_stays():
    """A child of fork that closes or keeps the driver's files, and never calls the driver."""
    c = Client()
    c.memory(60 * MIB)
    done, ready = os.pipe()
    pid = os.fork()
    if pid == 0:
        signal.alarm(PATIENCE)
        if os.environ["KEEPS"] == "":
            os.close(c.fd)
        os.write(ready, b"x")
        wait_for_word()
        os._exit(0)
    assert os.read(done, 1) == b"x"
    say(child=pid)
    wait_for_word()
    os._exit(0)


def mapping_of(name):
    with open("/proc/self/maps", encoding="ascii") as f:
        for line in f:
            if line.rstrip().endswith(name):
                return [int(word, 16) for word in line.split()[0].split("-")]
    return None


@inside
def maps_there():
    """Where its parent has the counters mapped, a child of fork has memory of its own."""
    c = Client()
    c.memory(10 * MIB)
    start, end = mapping_of("/0/counters")

    def use():
        assert mapping_of("/0/counters") is None
        fixed = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | 0x10
        assert LIBC.mmap(start, end - start, mmap.PROT_READ | mmap.PROT_WRITE, fixed, -1, 0) == start
        ctypes.memset(start, 0x5A, end - start)
        Client().memory(10 * MIB)
        assert ctypes.string_at(start, end - start) == b"\x5a" * (end - start)
        assert mapping_of("/0/counters") is not None

    end_child(in_child(use))
    say(kept=True)
    wait_for_word()


def locks_on(fd):
    with open("/proc/self/fdinfo/%d" % fd, encoding="ascii") as f:
        return sum(line.startswith("lock:") for line in f)


@inside
def workers_in_turn():
    """More children than there are rows use inherited memory, each in its way, and end."""
    c = Client()
    file = os.open(os.environ["SIM_DIR"] + "/nvidiactl", os.O_RDWR | os.O_CLOEXEC)
    share = argparse.Namespace(fd=file)
    codes = set()
    for i in range(300):
        pid = os.fork()
        if pid == 0:
            signal.alarm(PATIENCE)
            if i % 3 == 2:
                Client().memory(MIB)  # a client of its own
            else:
                worker = Client(share=share) if i % 3 else c
                a = worker.memory(64 * 1024)
                if i % 2:
                    worker.export(a, worker.empty_file())
            os._exit(0)
        codes.add(os.waitpid(pid, 0)[1])
    over = status_of(c.memory, 100 * MIB)  # the gate has to look
    say(codes=list(codes), locks=max(locks_on(c.fd), locks_on(file)), over=over)
    wait_for_word()
    other = Client()
    os.close(file)
    os.close(c.fd)
    say(closed=soon(other.memory, 100 * MIB))
    wait_for_word()


@inside
def beside_a_neighbour():
    """Another process has locked the whole inode: memory is granted all the same, and children keep it without a lock."""
    c = Client()
    say(status=status_of(c.memory, 20 * MIB))
    wait_for_word()
    pid = os.fork()
    if pid == 0:
        signal.alarm(PATIENCE)
        signal.pause()  # only its parent reads commands
        os._exit(1)
    say(child=pid)
    if wait_for_word() == "again":  # the lock is released: from now on the count is exact
        c.memory(20 * MIB)
        give_descriptor(c.fd)
        os.kill(pid, signal.SIGKILL)
    os._exit(0)


@inside
def generations():
    """More than there are rows, each a child of one that has ended."""
    for i in range(300):
        c = Client()
        c.memory(MIB)
        os.close(c.fd)
        pid = os.fork()
        if pid:
            os._exit(0)
    say(generations=soon(Client().memory, 100 * MIB))
    wait_for_word()


@inside
def managed():
    """Mappings of the uvm file, as libcuda makes them. Any file that the limits page names will do."""
    fd = os.open(os.environ["UVM_FILE"], os.O_RDWR | os.O_CLOEXEC)
    flags = ctypes.create_string_buffer(16)
    LIBC.ioctl(fd, 0x30000001, address_of(flags))
    none, read_write, shared, private_anonymous, fixed = 0, 3, 1, 0x22, 0x10

    def map_(n, protection=read_write, flags=shared, at=0, file=fd):
        p = LIBC.mmap(at, n, protection, flags, file, 0)
        return -ctypes.get_errno() if p == 0xFFFFFFFFFFFFFFFF else p

    space = map_(400 * MIB, none, private_anonymous, 0, -1)
    say(space=space > 0, reserved=map_(400 * MIB, none))
    wait_for_word()
    at = map_(64 * MIB, flags=shared | fixed, at=space)
    say(mapped=at == space, over=map_(64 * MIB))
    wait_for_word()
    LIBC.munmap(at + 16 * MIB, 16 * MIB)
    say(hole=True)
    wait_for_word()
    map_(8 * MIB, none, private_anonymous | fixed, at, -1)
    say(covered=True)
    wait_for_word()
    # What the kernel refuses to unmap stays. A page that is unmapped in part is gone, and counts once.
    say(refused=[LIBC.munmap(space, 1 << 60), LIBC.munmap(space + 1, 4096), LIBC.munmap(space, 0)])
    wait_for_word()
    for n in range(1, 4096, 64):
        map_(n, none, private_anonymous | fixed, at + 8 * MIB, -1)
    say(page=True)
    wait_for_word()
    moved = LIBC.mremap(at + 32 * MIB, 32 * MIB, 8 * MIB, 3, space + 200 * MIB)  # shrunk, and moved
    say(moved=moved == space + 200 * MIB)
    wait_for_word()
    shrunk = LIBC.mremap(moved, 8 * MIB, 4 * MIB, 0, None)
    say(shrunk=shrunk == moved and LIBC.mremap(moved, 1 << 60, 1 << 61, 0, None) == 2**64 - 1)
    wait_for_word()
    LIBC.munmap(space, 400 * MIB)
    say(gone=True)
    wait_for_word()


@inside
def managed_again():
    """Mapped over itself, and over half of itself and the range behind: only additional bytes count."""
    fd = os.open(os.environ["UVM_FILE"], os.O_RDWR | os.O_CLOEXEC)
    flags = ctypes.create_string_buffer(16)
    LIBC.ioctl(fd, 0x30000001, address_of(flags))
    read_write, shared, fixed, none, private_anonymous = 3, 1, 0x10, 0, 0x22
    at = LIBC.mmap(0, 400 * MIB, none, private_anonymous, -1, 0)

    def map_(start, n, file=fd):
        p = LIBC.mmap(at + start * MIB, n * MIB, read_write, shared | fixed, file, 0)
        return -ctypes.get_errno() if p == 0xFFFFFFFFFFFFFFFF else p == at + start * MIB

    say(first=map_(0, 60), again=map_(0, 60))
    wait_for_word()
    say(behind=map_(30, 70), over=map_(90, 11), kernel=map_(0, 100, os.open(os.environ["UVM_FILE"], os.O_WRONLY | os.O_CLOEXEC)))
    wait_for_word()
    LIBC.munmap(at, 400 * MIB)
    say(gone=True)
    wait_for_word()


@inside
def managed_after_a_close():
    """Plain memory with its file or export closed: the driver has freed it when managed memory is mapped."""
    how, client = os.environ["HOW"], Client()
    memory = client.memory(60 * MIB)
    spare = Client()
    if how == "export":
        export = client.empty_file()
        client.export(memory, export)
        client.free(memory)
        os.close(export)
    elif how == "close":
        os.close(client.fd)
    uvm = os.open(os.environ["UVM_FILE"], os.O_RDWR | os.O_CLOEXEC)
    flags = ctypes.create_string_buffer(16)
    LIBC.ioctl(uvm, 0x30000001, address_of(flags))
    p = LIBC.mmap(0, 60 * MIB, 3, 1, uvm, 0)
    say(managed=-ctypes.get_errno() if p == 0xFFFFFFFFFFFFFFFF else OK, plain=status_of(spare.memory, 60 * MIB))
    wait_for_word()


@inside
def managed_that_came():
    """A uvm file that another process has initialised: only the mapping shows it."""
    fd = os.open(os.environ["UVM_FILE"], os.O_RDWR | os.O_CLOEXEC)
    read_write, shared, fixed, at = 3, 1, 0x10, 0x200000000000

    def map_(at):
        p = LIBC.mmap(at, 64 * MIB, read_write, shared | fixed, fd, at)
        return -ctypes.get_errno() if p == 0xFFFFFFFFFFFFFFFF else p == at

    say(mapped=[map_(at), map_(at + 64 * MIB)])
    wait_for_word()
    say(gone=LIBC.munmap(at, 64 * MIB))
    wait_for_word()


@inside
def managed_cards():
    """Two files stand for uvm's here: one that can be mapped, and the simulator's, which takes registrations of cards."""
    fd = os.open(os.environ["UVM_FILE"], os.O_RDWR | os.O_CLOEXEC)
    uvm = os.open(os.environ["SIM_DIR"] + "/nvidia-uvm", os.O_RDWR | os.O_CLOEXEC)
    uuids = [bytes.fromhex(os.environ["UUID%d" % i]) for i in range(3)]

    def map_(n):
        p = LIBC.mmap(0, n, 3, 1, fd, 0)
        return -ctypes.get_errno() if p == 0xFFFFFFFFFFFFFFFF else p

    def register(card):
        params = packed("<16sIiiIII", uuids[card], 0, 0, -1, 0, 0, 0)
        return LIBC.ioctl(uvm, 37, address_of(params)) or struct.unpack_from("<I", params.raw, 36)[0]

    def unregister(card):
        params = packed("<16sI", uuids[card], 0)
        return LIBC.ioctl(uvm, 38, address_of(params)) or struct.unpack_from("<I", params.raw, 16)[0]

    flags = ctypes.create_string_buffer(16)
    LIBC.ioctl(uvm, 0x30000001, address_of(flags))
    a = map_(30 * MIB)
    say(guessed=a > 0)
    wait_for_word()
    say(second=register(1))
    wait_for_word()
    say(over=map_(60 * MIB), fits=map_(10 * MIB) > 0)
    wait_for_word()
    say(both=register(0), again=register(0), none=register(2))
    wait_for_word()
    say(unregistered=unregister(0))
    wait_for_word()
    say(once_more=unregister(0))
    wait_for_word()
    say(held=status_of(Client().memory, 70 * MIB), no_room=register(0))
    wait_for_word()
    LIBC.munmap(a, 30 * MIB)
    say(unmapped=register(0))
    wait_for_word()


@inside
def crowd():
    """One of many processes that race for one slice until told to stop. The total never exceeds the limit."""
    c = Client()
    wild = random.Random(os.getpid())
    held, refused, done = [], 0, 0
    sizes = (64 * 1024, 100 * 1024, MIB, 2 * MIB + 1, 5 * MIB)
    say(ready=True)
    deadline = time.monotonic() + PATIENCE
    while done < 400 and time.monotonic() < deadline:
        done += 1
        if held and wild.random() < 0.45:
            c.free(held.pop(wild.randrange(len(held))))
            continue
        status = status_of(lambda: held.append(c.memory(wild.choice(sizes))))
        assert status in (OK, NO_MEMORY), hex(status)
        refused += status != OK
    say(refused=refused, done=done)
    wait_for_word()


def run_inside():
    """Also for a test that imports this file."""
    INSIDE[sys.argv[2]]()
    os._exit(0)  # without the interpreter's clean-up, which frees nothing of the driver's


if __name__ == "__main__" and sys.argv[1] == "--inside":
    run_inside()


# ---- the tests, outside ----

LIBRARY, SIMULATOR = (os.path.abspath(name) for name in sys.argv[1:3])


def skip(why):
    print("gate.py: " + why, file=sys.stderr)
    sys.exit(77)


class Simulator:
    """A mounted aliquot-sim, and slices of its cards."""

    def __init__(self, cards):
        self.base = tempfile.mkdtemp(prefix="gate-")
        self.dir = self.base + "/dev"
        os.mkdir(self.dir)
        self.process = subprocess.Popen([SIMULATOR, "--cards", cards, "--dir", self.dir, "--foreground"],
                                        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.ready = self.process.stdout.readline().strip() == "ready"

    def close(self):
        self.process.terminate()
        self.process.wait(PATIENCE)
        self.process.stdout.close()
        self.process.stderr.close()
        subprocess.run(["umount", "-l", self.dir], stderr=subprocess.DEVNULL, check=False)
        shutil.rmtree(self.base, ignore_errors=True)

    def uuid(self, card):
        c = Client(self.dir, card)
        raw = c.control(c.subdevice, GID, ctypes.create_string_buffer(268))
        os.close(c.fd)
        return raw[12:12 + 40]

    def held(self, card=0):
        """Bytes of a card that the driver has allocated."""
        c = Client(self.dir, card)
        total, free = (value * 1024 for value in c.fb(8, 0x16))
        os.close(c.fd)
        return total - free

    def slices(self, *limits, group=0, uvm=None):
        """A directory of slices: limit in MiB by position, None for a card without one."""
        base = tempfile.mkdtemp(dir=self.base)
        for card, limit in enumerate(limits):
            if limit is None:
                continue
            directory = "%s/%d" % (base, card)
            os.mkdir(directory)
            files = [self.dir + "/nvidiactl", self.dir + "/nvidia%d" % card,
                     (uvm[card] if isinstance(uvm, list) else uvm) or self.dir + "/nvidia-uvm"]
            with open(directory + "/limits", "wb") as f:
                f.write(slice_page.limits(limit * MIB, card, group=group, uuid=self.uuid(card), files=files, minor=0))
            with open(directory + "/counters", "wb") as f:
                f.write(slice_page.counters(minor=0))
        return base


def mounted(cards):
    simulator = Simulator(cards)
    if not simulator.ready:
        why = simulator.process.communicate()[1].strip()
        simulator.close()
        skip("the simulated driver cannot be mounted here: " + why)
    return simulator


def used(slices, card=0):
    with open("%s/%d/counters" % (slices, card), "rb") as f:
        return (struct.unpack_from("<Q", f.read(), layout.USED)[0] >> layout.USED_SHIFT) * layout.UNIT


def lock_all(file, kind, how=37):
    """Locks the inode, once killed processes have released it. 37: F_OFD_SETLK, else F_SETLK. kind F_UNLCK: releases it."""
    lock = bytes(bytearray(struct.pack("hhqqi", kind, 0, 0, 0, 0)) + bytes(4))
    deadline = time.monotonic() + PATIENCE
    while True:
        try:
            fcntl.fcntl(file, how, lock)
            return
        except BlockingIOError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.01)


def in_rows(slices, shared=False, card=0):
    """Rows that count something: all, or those for files that several processes use."""
    with open("%s/%d/counters" % (slices, card), "rb") as f:
        counters = f.read()
    key, n = struct.unpack_from("<Q", counters, layout.SHARED_KEY)[0], 0
    for at in map(slice_page.row_at, range(layout.N_ROWS)):
        held = sum(struct.unpack_from("<q", counters, at + layout.LANE_SIZE * lane + layout.LANE_HELD)[0] >> layout.HELD_SHIFT
                   for lane in range(layout.N_LANES))
        n += held != 0 and (not shared or struct.unpack_from("<Q", counters, at + layout.ROW_KEY)[0] == key)
    return n


def rows(slices, card=0):
    """How many rows are in use."""
    with open("%s/%d/counters" % (slices, card), "rb") as f:
        taken = 0
        for row in range(layout.N_ROWS):
            lock = bytearray(struct.pack("hhqqi", fcntl.F_WRLCK, 0, slice_page.row_at(row), 1, 0)) + bytes(4)
            taken += struct.unpack_from("h", fcntl.fcntl(f, 36, bytes(lock)))[0] != fcntl.F_UNLCK  # F_OFD_GETLK
        return taken


class Program:
    """A program under test, and its output."""

    def __init__(self, name, slices, simulator, fds=(), **environment):
        self.heard = b""
        self.process = subprocess.Popen(
            [sys.executable, os.path.abspath(sys.argv[0]), "--inside", name], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            pass_fds=fds, env=dict(os.environ, **dict({"LD_PRELOAD": LIBRARY, "ALIQUOT_SLICES": slices, "SIM_DIR": simulator.dir}, **environment)))

    def hear(self):
        while b"\n" not in self.heard:
            if not select.select([self.process.stdout], [], [], PATIENCE)[0]:
                raise AssertionError("the program says nothing")
            words = os.read(self.process.stdout.fileno(), 65536)
            if not words:
                raise AssertionError("the program ended with %s" % self.process.wait())
            self.heard += words
        line, self.heard = self.heard.split(b"\n", 1)
        return json.loads(line)

    def go_on(self, word=""):
        self.process.stdin.write((word + "\n").encode())
        self.process.stdin.flush()

    def end(self):
        with contextlib.suppress(BrokenPipeError):  # it has already ended
            self.go_on()
        code = self.process.wait(PATIENCE)
        self.close()
        return code

    def kill(self):
        self.process.kill()
        self.process.wait(PATIENCE)
        self.close()

    def close(self):
        with contextlib.suppress(BrokenPipeError):
            self.process.stdin.close()
        self.process.stdout.close()


class GateBase(unittest.TestCase):
    maxDiff = None

    @classmethod
    def setUpClass(cls):
        cls.sim = mounted("3xTesla-V100-SXM2-16GB:16160MiB")

    @classmethod
    def tearDownClass(cls):
        cls.sim.close()

    def run_program(self, name, slices, **environment):
        program = Program(name, slices, self.sim, **environment)
        self.addCleanup(program.kill)
        return program

    def assert_at_rest(self, slices, card=0):
        """Nothing is counted when nothing is held: the row of an ended process is freed by the next process that needs room."""
        with self.subTest("at rest"):
            program = self.run_program("hold", slices, HOLD="100")
            self.assertEqual(program.hear(), {"status": OK})
            self.assertEqual(used(slices, card), 100 * MIB)
            program.end()


class GateTest(GateBase):
    def test_doors(self):
        slices = self.sim.slices(100)
        program = self.run_program("doors", slices)
        self.assertEqual(program.hear(), {"over": NO_MEMORY, "rights": NO_MEMORY, "heap": NO_MEMORY,
                                          "sizes": [20 * MIB, 4 * MIB, 10 * MIB]})
        self.assertEqual(program.hear(), {"rest": OK, "one_more": NO_MEMORY})
        words = program.hear()
        self.assertEqual((words["virtual"], words["system"]), (OK, OK))
        self.assertEqual([words["negative"]] + words["huge"], [NO_MEMORY] * 4)
        self.assertEqual(program.hear(), {"freed": OK})
        program.end()
        self.assertEqual(self.sim.held(), 0)
        self.assert_at_rest(slices)

    def test_modes(self):
        slices = self.sim.slices(100)
        program = self.run_program("modes", slices)
        self.assertEqual(program.hear(), {"status": [OK, OK, OK, OK]})
        self.assertEqual((used(slices), self.sim.held()), (40 * MIB, 40 * MIB))
        program.end()
        self.assert_at_rest(slices)

    def test_trees(self):
        slices = self.sim.slices(100)
        program = self.run_program("trees", slices)
        for word in ("device", "client"):
            self.assertEqual(program.hear(), {word: True})
            self.assertEqual((used(slices), self.sim.held()), (0, 0))
            program.go_on()
        self.assertEqual(program.hear(), {"closed": OK, "over": NO_MEMORY})
        self.assertEqual(program.hear(), {"kept": NO_MEMORY, "fits": OK})
        self.assertEqual(program.hear(), {"gone": OK})
        self.assertEqual(used(slices), 100 * MIB)
        self.assertEqual(self.sim.held(), 100 * MIB)
        program.end()
        self.assert_at_rest(slices)

    def test_handles(self):
        slices = self.sim.slices(100)
        program = self.run_program("handles", slices)
        self.assertEqual(program.hear(), {"twice": OK, "unknown": OK})
        words = program.hear()
        self.assertNotEqual(words["again"], OK)
        self.assertEqual((used(slices), self.sim.held()), (50 * MIB, 50 * MIB))
        program.go_on()
        self.assertNotEqual(program.hear()["parent"], OK)
        self.assertNotEqual(program.hear()["client"], OK)
        self.assertEqual(used(slices), 50 * MIB)
        program.end()

    def test_duplicates(self):
        slices = self.sim.slices(100)
        program = self.run_program("duplicates", slices)
        for word, bytes_ in (("one", 40 * MIB), ("last", 40 * MIB), ("none", 0)):
            self.assertEqual(program.hear(), {word: True})
            self.assertEqual((used(slices), self.sim.held()), (bytes_, bytes_))
            program.go_on()
        program.end()

    def test_foreign_memory(self):
        slices = self.sim.slices(100)
        owner = self.run_program("foreign_owner", slices)
        words = owner.hear()
        program = self.run_program("foreign", slices)
        program.go_on("%(client)d %(handle)d" % words)
        self.assertEqual(program.hear(), {"mine": True})
        self.assertEqual((used(slices), self.sim.held()), (60 * MIB, 30 * MIB))
        owner.go_on()
        self.assertEqual(owner.hear(), {"freed": True})
        self.assertEqual((used(slices), self.sim.held()), (30 * MIB, 30 * MIB))
        owner.end()
        stranger = Client(self.sim.dir)
        self.addCleanup(os.close, stranger.fd)
        program.end()
        slices = self.sim.slices(100)
        program = self.run_program("foreign", slices)
        program.go_on("%d %d" % (stranger.root, stranger.memory(60 * MIB)))
        self.assertEqual(program.hear(), {"mine": True})
        self.assertEqual(used(slices), 60 * MIB)
        program.go_on("more")
        self.assertEqual(program.hear(), {"full": NO_MEMORY})
        self.assertEqual(used(slices), 50 * MIB)
        program.end()

    def test_exports(self):
        slices = self.sim.slices(100)
        program = self.run_program("exports", slices)
        self.assertEqual(program.hear(), {"again": IN_USE, "bad": True, "none": True})
        self.assertEqual(program.hear(), {"freed": True})
        self.assertEqual((used(slices), self.sim.held()), (60 * MIB, 60 * MIB))
        program.go_on()
        self.assertEqual(program.hear(), {"over": NO_MEMORY})
        self.assertEqual(program.hear(), {"still": NO_MEMORY})
        self.assertEqual(program.hear(), {"imported": True})
        self.assertEqual((used(slices), self.sim.held()), (60 * MIB, 60 * MIB))
        program.go_on()
        self.assertEqual(program.hear(), {"file": NO_MEMORY})
        self.assertEqual((used(slices), self.sim.held()), (90 * MIB, 90 * MIB))
        program.go_on()
        self.assertEqual(program.hear(), {"gone": True})
        self.assertEqual((used(slices), self.sim.held()), (30 * MIB, 30 * MIB))
        program.go_on()
        self.assertEqual(program.hear(), {"itself": NO_MEMORY})
        self.assertEqual((used(slices), self.sim.held()), (60 * MIB, 60 * MIB))
        program.end()
        self.assertEqual(self.sim.held(), 0)
        self.assert_at_rest(slices)

    def test_exports_many(self):
        slices = self.sim.slices(100)
        program = self.run_program("exports_many", slices)
        self.assertEqual(program.hear(), {"range_": True, "unknown": True})
        self.assertEqual(program.hear(), {"freed": True})
        self.assertEqual((used(slices), self.sim.held()), (30 * MIB, 30 * MIB))
        program.go_on()
        self.assertEqual(program.hear(), {"types": [1, 1, 1, 0], "n": 3})
        self.assertEqual((used(slices), self.sim.held()), (30 * MIB, 30 * MIB))
        program.go_on()
        self.assertEqual(program.hear(), {"replaced": True})
        self.assertEqual((used(slices), self.sim.held()), (10 * MIB, 10 * MIB))
        program.go_on()
        self.assertEqual(program.hear(), {"closed": OK})
        program.end()

    def test_exports_of_a_stranger(self):
        slices = self.sim.slices(100)
        stranger = Client(self.sim.dir)
        handles = "%d %d %d" % (stranger.root, stranger.device, stranger.memory(60 * MIB))
        ours, theirs = socket.socketpair()
        with ours, theirs:
            socket.send_fds(ours, [b"x"], [stranger.fd])
            program = self.run_program("stranger_exports", slices, fds=[theirs.fileno()], SOCKET=str(theirs.fileno()), HANDLES=handles)
            self.assertEqual(program.hear(), {"first": OK})
            self.assertEqual(used(slices), 60 * MIB)
            program.go_on()
            self.assertEqual(program.hear(), {"second": NO_MEMORY})
            self.assertEqual(used(slices), 60 * MIB)
            program.go_on()
            self.assertEqual(program.hear(), {"closed": OK})
            self.assertEqual(used(slices), 100 * MIB)
            program.end()
        os.close(stranger.fd)

    def test_exports_between_processes(self):
        """A process of one container gives memory to another container's: each counts its own, and all of it is counted."""
        first, second = self.sim.slices(100), self.sim.slices(100)
        ours, theirs = socket.socketpair()
        with ours, theirs:
            owner = self.run_program("exporter", first, fds=[theirs.fileno()], SOCKET=str(theirs.fileno()))
            self.assertEqual(owner.hear(), {"given": True})
            self.assertEqual((used(first), self.sim.held()), (40 * MIB, 40 * MIB))
            fd = socket.recv_fds(ours, 1, 1)[1][0]
            socket.send_fds(ours, [b"x"], [fd])
            os.close(fd)
            user = self.run_program("importer", second, fds=[theirs.fileno()], SOCKET=str(theirs.fileno()), HOLD="50")
            self.assertEqual(user.hear(), {"one": OK})
            self.assertEqual((used(first), used(second), self.sim.held()), (40 * MIB, 90 * MIB, 90 * MIB))
            user.go_on()
            self.assertEqual(user.hear(), {"many": NO_MEMORY})
            self.assertEqual((used(second), self.sim.held()), (90 * MIB, 90 * MIB))
            owner.go_on()  # the file is open in the other process
            self.assertEqual(owner.hear(), {"status": NO_MEMORY})
            user.go_on()
            self.assertEqual(user.hear(), {"closed": True})
            self.assertEqual((used(second), self.sim.held()), (90 * MIB, 90 * MIB))
            user.end()
            owner.end()
        self.assertEqual(self.sim.held(), 0)
        self.assert_at_rest(first)
        self.assert_at_rest(second)

    def test_cards(self):
        slices = self.sim.slices(100, 50, None)
        program = self.run_program("cards", slices)
        self.assertEqual(program.hear(), {"over": [NO_MEMORY] * 3, "fits": [OK, OK, NO_MEMORY], "second": [OK, NO_MEMORY, NO_MEMORY],
                                          "totals": [100 * 1024, 50 * 1024, 16160 * 1024]})
        self.assertEqual(program.hear(), {"subdevices": [NO_MEMORY, OK, NO_MEMORY]})
        self.assertEqual((used(slices, 0), used(slices, 1)), (100 * MIB, 44 * MIB))
        self.assertEqual([self.sim.held(i) for i in range(3)], [100 * MIB, 44 * MIB, 0])
        program.end()

    def test_questions(self):
        slices = self.sim.slices(100)
        program = self.run_program("questions", slices)
        words = program.hear()
        total, free = 100 * 1024, 70 * 1024
        self.assertEqual(words["inline"], [total] * 5 + [free] * 2 + [0])
        self.assertEqual(words["pointer"], words["inline"])
        self.assertEqual(words["heap"], [100 * MIB, 70 * MIB, 70 * MIB])
        self.assertEqual(program.hear(), {"regions": [[0, 100 * MIB - 1]]})
        self.assertEqual(program.hear(), {"limit": 100 * MIB, "status": OK})
        self.assertEqual(used(slices), 30 * MIB)
        program.end()

    def test_groups(self):
        slices = self.sim.slices(100, group=10 * MIB)
        program = self.run_program("groups", slices)
        self.assertEqual(program.hear(), {"one": True})
        self.assertEqual(used(slices), 10 * MIB)
        program.go_on()
        self.assertEqual(program.hear(), {"n": 10, "status": NO_MEMORY})
        self.assertEqual(program.hear(), {"timeslice": NO_PERMISSION})
        program.end()

    def test_channels(self):
        slices = self.sim.slices(100, group=16 * MIB)
        program = self.run_program("channels", slices)
        self.assertEqual(program.hear(), {"grouped": [OK, OK]})
        self.assertEqual((used(slices), self.sim.held()), (16 * MIB, 16 * MIB))
        program.go_on()
        self.assertEqual(program.hear(), {"n": 5, "status": NO_MEMORY})
        self.assertEqual((used(slices), self.sim.held()), (96 * MIB, 96 * MIB))
        program.go_on()
        self.assertEqual(program.hear(), {"freed": True})
        self.assertEqual((used(slices), self.sim.held()), (16 * MIB, 16 * MIB))
        program.end()

    def test_groups_of_no_good_slice(self):
        for group in (0, MIB):
            slices = self.sim.slices(100, group=group)
            os.unlink(slices + "/0/counters")
            program = self.run_program("groups_of_nothing", slices)
            self.assertEqual(program.hear(), {"statuses": [NO_MEMORY, NO_MEMORY]})
            program.end()

    def test_swapped(self):
        """Gate and driver agree even when a handle became another object's during the call."""
        for how, number, size in (("duplicate", DUP, 28), ("export", CONTROL, 32), ("export", DUP, 28)):
            slices = self.sim.slices(100)
            program = self.run_program("swapped", slices, HOW=how, SIZE="30", REQUEST=str(0xC0000000 | size << 16 | ord("F") << 8 | number))
            status = program.hear()["status"]
            if status is None:
                self.skipTest("threads cannot be stopped here")
            for _ in range(4):
                self.assertIn(status, (OK, NO_MEMORY, NOT_FOUND))
                self.assertEqual(used(slices), self.sim.held(), (how, number))
                program.go_on()
                status = program.hear()["status"]
            program.kill()

    def test_hmm(self):
        """Even when the page does not name the file, because it did not exist yet."""
        for known in (True, False):
            slices = self.sim.slices(100)
            if not known:
                with open(slices + "/0/limits", "r+b") as f:
                    f.seek(layout.FILES + 2 * layout.FILE_SIZE)
                    f.write(bytes(layout.FILE_SIZE))
            program = self.run_program("hmm", slices, UUID2=self.sim.uuid(2).decode()[4:].replace("-", ""))
            self.assertEqual(program.hear(), {"initialized": [[0, 0, OK], [0, 0, OK], [0, 3, OK], [0, 4, 0x1F]], "bad": [-1, -1],
                                              "pageable": [[0, 0], [0, 0]]}, known)
            self.assertEqual(program.hear(), {"no_slice": [[0, NO_MEMORY], [0, NO_MEMORY]]}, known)
            program.end()
        program = self.run_program("hmm", "", UUID2=self.sim.uuid(2).decode()[4:].replace("-", ""))
        self.assertEqual(program.hear()["pageable"], [[0, 1], [0, 0]])
        program.end()

    def test_many_clients(self):
        slices = self.sim.slices(100)
        program = self.run_program("many_clients", slices)
        self.assertEqual(program.hear(), {"status": OK})
        self.assertEqual((used(slices), self.sim.held()), (90 * MIB, 90 * MIB))
        program.end()

    def test_workers(self):
        uvm = self.sim.base + "/uvm"
        with open(uvm, "wb") as f:
            f.truncate(400 * MIB)
        for uvm_too, charged in (("", 1), ("yes", 4)):
            slices = self.sim.slices(100, uvm=uvm)
            program = self.run_program("workers", slices, UVM_FILE=uvm, UVM_TOO=uvm_too, CHILDREN="3")
            self.assertEqual(program.hear(), {"ready": True})
            self.assertEqual((used(slices), rows(slices)), (charged * MIB, 4 if uvm_too else 1))
            program.go_on()
            self.assertEqual(program.hear(), {"ended": True})
            program.end()

    def test_hostile(self):
        slices = self.sim.slices(100)
        program = self.run_program("hostile", slices)
        words = program.hear()
        self.assertEqual(words, {"null": [-errno.EFAULT] * 7, "unmapped": [-errno.EFAULT] * 4, "high": [-errno.EFAULT] * 4})
        self.assertNotIn(OK, program.hear()["params"])
        words = program.hear()
        self.assertEqual((words["edge"], words["misaligned"]), (OK, OK))
        self.assertNotEqual(words["cut"], OK)
        self.assertNotEqual(program.hear()["read_only"], OK)
        self.assertEqual(program.hear(), {"outer": -errno.EFAULT})
        self.assertEqual(used(slices), self.sim.held())
        program.go_on()
        program.hear()
        words = program.hear()
        self.assertNotIn(OK, words["short"])
        self.assertEqual(program.hear(), {"alive": True})
        self.assertEqual(used(slices), self.sim.held())
        program.end()
        self.assertEqual(self.sim.held(), 0)
        self.assert_at_rest(slices)

    def test_xfer(self):
        slices = self.sim.slices(100)
        program = self.run_program("xfer", slices)
        self.assertEqual(program.hear(), {"first": 0, "status": OK, "size": 60 * MIB})
        self.assertEqual(used(slices), 60 * MIB)
        program.go_on()
        self.assertEqual(program.hear(), {"second": 0, "status": NO_MEMORY})
        self.assertNotIn(0, program.hear()["bad"])
        self.assertEqual(program.hear(), {"freed": 0})
        self.assertEqual((used(slices), self.sim.held()), (0, 0))
        program.end()

    def test_killed(self):
        slices = self.sim.slices(100)
        for _ in range(3):
            program = self.run_program("hold", slices, HOLD="100")
            self.assertEqual(program.hear(), {"status": OK})
            program.kill()
        self.assert_at_rest(slices)

    def test_free_after_a_kill(self):
        """The free memory is reported correctly, even before the room of ended processes is needed."""
        slices = self.sim.slices(100)
        program = self.run_program("asks", slices)
        self.assertEqual(program.hear(), {"free": 90 * 1024})
        other = self.run_program("hold", slices, HOLD="70")
        self.assertEqual(other.hear(), {"status": OK})
        program.go_on()
        self.assertEqual(program.hear(), {"free": 20 * 1024})
        other.kill()
        program.go_on("until 90")
        self.assertEqual(program.hear(), {"free": 90 * 1024})
        # A file that is closed, and one that received an export.
        program.go_on("close")
        self.assertEqual(program.hear(), {"free": 30 * 1024})
        program.go_on("until 90")
        self.assertEqual(program.hear(), {"free": 90 * 1024})
        program.go_on("export")
        self.assertEqual(program.hear(), {"free": 50 * 1024})
        program.go_on("until 90")
        self.assertEqual(program.hear(), {"free": 90 * 1024})
        self.assertEqual(used(slices), 10 * MIB)
        program.kill()

    def test_no_good_slice(self):
        """A page of another version, no page, or a truncated one: nothing is allocated."""
        for damage in ("version", "counters", "cut"):
            slices = self.sim.slices(100)
            name = slices + "/0/" + ("limits" if damage == "version" else "counters")
            if damage == "counters":
                os.unlink(name)
            elif damage == "cut":
                os.truncate(name, 100)
            else:
                with open(name, "r+b") as f:
                    f.seek(layout.MAJOR_AT)
                    f.write(b"\7")
            program = self.run_program("hold", slices)
            self.assertEqual(program.hear(), {"status": NO_MEMORY}, damage)
            program.end()

    def test_forks(self):
        slices = self.sim.slices(100)
        program = self.run_program("forks", slices)
        self.assertEqual(program.hear(), {"codes": [0] * 8})
        program.go_on()
        self.assertEqual(program.hear(), {"inherited": True})
        program.end()
        self.assertEqual(self.sim.held(), 0)
        self.assert_at_rest(slices)

    def test_fork_frees(self):
        slices = self.sim.slices(100)
        program = self.run_program("fork_frees", slices)
        self.assertEqual(program.hear(), {"child": True})
        self.assertEqual((used(slices), self.sim.held()), (60 * MIB, 30 * MIB))
        program.go_on()
        self.assertEqual(program.hear(), {"parent": True, "over": NO_MEMORY})
        self.assertEqual((used(slices), self.sim.held()), (30 * MIB, 30 * MIB))
        program.go_on()
        self.assertEqual(program.hear(), {"duplicate": True})
        self.assertEqual((used(slices), self.sim.held()), (30 * MIB, 30 * MIB))
        program.go_on()
        self.assertEqual(program.hear(), {"left": True})
        program.end()
        self.assertEqual(self.sim.held(), 0)
        self.assert_at_rest(slices)

    def test_leaves(self):
        self.check_leaves("fork", "socket", "export", "exec")

    def test_leaves_what_was_exported(self):
        """The file of the export is closed at the end, while another file still has it."""
        self.check_leaves("exec-own", "fork-own", "fork-duplicate", "fork-import", "fork-shared")

    def test_leaves_on_files_open_for_one_thing(self):
        self.check_leaves("read", "write")

    def check_leaves(self, *ways):
        for how in ways:
            slices = self.sim.slices(100)
            program = self.run_program("leaves", slices, HOW=how)
            if how in ("socket", "export"):
                self.assertEqual(program.hear(), {"first": NO_MEMORY}, how)
                program.go_on()
            self.assertEqual(program.hear(), {"over": NO_MEMORY, "fits": OK}, how)
            self.assertEqual((used(slices), self.sim.held()), (100 * MIB, 100 * MIB), how)
            program.go_on()
            self.assertEqual(program.hear(), {"closed": OK}, how)
            self.assertEqual((used(slices), self.sim.held()), (100 * MIB, 100 * MIB), how)
            program.end()
            self.assertEqual(self.sim.held(), 0)
            self.assert_at_rest(slices)

    def test_passes_on(self):
        slices = self.sim.slices(100)
        program = self.run_program("passes_on", slices)
        self.assertEqual(program.hear(), {"over": NO_MEMORY})
        self.assertEqual((used(slices), self.sim.held()), (60 * MIB, 60 * MIB))
        program.go_on()
        self.assertEqual(program.hear(), {"closed": OK})
        program.end()
        self.assert_at_rest(slices)

    def sure(self, slices, status, mib):
        """The driver's answer to a new process that asks for so much; waits until it is OK when that is expected."""
        deadline = time.monotonic() + PATIENCE
        while True:
            program = self.run_program("hold", slices, HOLD=str(mib))
            heard = program.hear()
            program.end()
            if heard == {"status": status} or time.monotonic() > deadline or status != OK:
                self.assertEqual(heard, {"status": status})
                return
            time.sleep(0.01)

    def test_leaves_exported(self):
        """The export stays, and nothing else of its process."""
        for rows_left in (True, False):
            slices = self.sim.slices(100)
            ours, theirs = socket.socketpair()
            with ours, theirs:
                counters = os.open(slices + "/0/counters", os.O_RDWR)
                program = self.run_program("leaves_exported", slices, fds=[theirs.fileno()], SOCKET=str(theirs.fileno()), WAIT="" if rows_left else "1")
                if not rows_left:
                    deadline = time.monotonic() + PATIENCE
                    while rows(slices) == 0 and time.monotonic() < deadline:
                        time.sleep(0.001)
                    for row in range(layout.N_ROWS):
                        with contextlib.suppress(BlockingIOError):
                            fcntl.fcntl(counters, 37, bytes(bytearray(struct.pack("hhqqi", fcntl.F_WRLCK, 0, slice_page.row_at(row), 1, 0)) + bytes(4)))
                    program.go_on()
                self.assertEqual(program.hear(), {"exported": True})
                fd = socket.recv_fds(ours, 1, 1)[1][0]
                self.assertEqual((used(slices), self.sim.held()), (60 * MIB, 60 * MIB))
                self.assertEqual(in_rows(slices), 2 if rows_left else 1)
                program.go_on()
                self.assertEqual(program.hear(), {"over": NO_MEMORY})
                self.assertEqual((used(slices), self.sim.held()), (60 * MIB, 60 * MIB))
                program.kill()
                os.close(counters)
                if rows_left:
                    self.sure(slices, OK, 80)  # files have one row, while one is open
                    self.sure(slices, NO_MEMORY, 81)
                else:
                    self.sure(slices, NO_MEMORY, 41)
                self.assertEqual((used(slices), self.sim.held()), ((20 if rows_left else 60) * MIB, 10 * MIB))
                os.close(fd)
            self.sure(slices, OK, 100)

    def test_exports_at_once(self):
        slices = self.sim.slices(100, 100)
        program = self.run_program("exports_at_once", slices)
        self.assertEqual(program.hear(), {"closed": True})
        for card in range(2):
            self.assertEqual((used(slices, card), self.sim.held(card), in_rows(slices, card=card)), (10 * MIB, 10 * MIB, 1))
        program.go_on()
        self.assertEqual(program.hear(), {"freed": True})
        for card in range(2):
            self.assertEqual((used(slices, card), self.sim.held(card), in_rows(slices, card=card)), (0, 0, 0))
        program.end()

    def test_closes_and_stays(self):
        for keeps in ("", "1"):
            slices = self.sim.slices(100)
            program = self.run_program("closes_and_stays", slices, KEEPS=keeps)
            child = program.hear()["child"]
            pidfd = os.pidfd_open(child)
            self.addCleanup(os.close, pidfd)
            program.process.kill()
            program.process.wait(PATIENCE)
            if keeps:
                self.sure(slices, NO_MEMORY, 41)
            else:
                self.sure(slices, OK, 100)
            self.assertFalse(select.select([pidfd], [], [], 0)[0])  # it lives
            program.close()
            self.assertTrue(select.select([pidfd], [], [], PATIENCE)[0])
            self.sure(slices, OK, 100)

    def test_maps_there(self):
        program = self.run_program("maps_there", self.sim.slices(100))
        self.assertEqual(program.hear(), {"kept": True})
        program.end()

    def test_workers_in_turn(self):
        slices = self.sim.slices(100)
        program = self.run_program("workers_in_turn", slices)
        words = program.hear()
        self.assertEqual((words["codes"], words["over"]), ([0], NO_MEMORY))
        self.assertLessEqual(words["locks"], 4)
        self.assertEqual(in_rows(slices, shared=True), 1)
        self.assertEqual(in_rows(slices), 2)  # with the first one's export, in a file of its own
        self.assertEqual((used(slices), self.sim.held()), (200 * 64 * 1024, 200 * 64 * 1024))
        program.go_on()
        self.assertEqual(program.hear(), {"closed": OK})
        program.end()
        self.assert_at_rest(slices)

    def test_neighbour(self):
        """Another process's lock on the whole inode: neither memory nor the detection of ended processes depends on it."""
        neighbour = os.open(self.sim.dir + "/nvidiactl", os.O_RDWR)
        self.addCleanup(os.close, neighbour)
        for kind in (fcntl.F_WRLCK, fcntl.F_RDLCK):
            for how in (37, fcntl.F_SETLK):
                slices = self.sim.slices(100)
                lock_all(neighbour, kind, how)
                self.sure(slices, OK, 40)
                lock_all(neighbour, fcntl.F_UNLCK, how)
                program = self.run_program("hold", slices, HOLD="100")
                self.assertEqual(program.hear(), {"status": OK})
                lock_all(neighbour, fcntl.F_RDLCK, how)
                program.kill()
                self.sure(slices, OK, 100)
                lock_all(neighbour, fcntl.F_UNLCK, how)
        lock_all(neighbour, fcntl.F_RDLCK)
        self.test_leaves()
        self.test_exports()
        self.test_leaves_exported()

    def test_neighbour_while_children_live(self):
        neighbour = os.open(self.sim.dir + "/nvidiactl", os.O_RDWR)
        self.addCleanup(os.close, neighbour)
        for word in ("end", "again"):
            slices = self.sim.slices(100)
            lock_all(neighbour, fcntl.F_WRLCK)
            ours, theirs = socket.socketpair()
            with ours, theirs:
                program = self.run_program("beside_a_neighbour", slices, fds=[theirs.fileno()], SOCKET=str(theirs.fileno()))
                self.assertEqual(program.hear(), {"status": OK})
                program.go_on()
                pidfd = os.pidfd_open(program.hear()["child"])
                self.addCleanup(os.close, pidfd)
                if word == "again":
                    lock_all(neighbour, fcntl.F_UNLCK)
                    program.go_on(word)
                    fd = socket.recv_fds(ours, 1, 1)[1][0]
                    program.process.wait(PATIENCE)
                    self.assertTrue(select.select([pidfd], [], [], PATIENCE)[0])
                    self.sure(slices, NO_MEMORY, 61)
                    os.close(fd)
                else:
                    program.process.kill()
                    program.process.wait(PATIENCE)
                    self.sure(slices, NO_MEMORY, 81)
                    self.assertFalse(select.select([pidfd], [], [], 0)[0])
                    signal.pidfd_send_signal(pidfd, signal.SIGKILL)
                    self.assertTrue(select.select([pidfd], [], [], PATIENCE)[0])
            self.sure(slices, OK, 100)
            lock_all(neighbour, fcntl.F_UNLCK)

    def test_generations(self):
        slices = self.sim.slices(100)
        program = self.run_program("generations", slices)
        self.assertEqual(program.hear(), {"generations": OK})
        self.assertEqual((used(slices), self.sim.held()), (100 * MIB, 100 * MIB))
        program.go_on()

    def check_managed(self, **environment):
        uvm = self.sim.base + "/uvm"
        with open(uvm, "wb") as f:
            f.truncate(400 * MIB)
        slices = self.sim.slices(100, uvm=uvm)
        program = self.run_program("managed", slices, UVM_FILE=uvm, **environment)
        self.assertEqual(program.hear(), {"space": True, "reserved": -errno.ENOMEM})
        self.assertEqual(used(slices), 0)
        program.go_on()
        self.assertEqual(program.hear(), {"mapped": True, "over": -errno.ENOMEM})
        for word, said, kib in (("hole", True, 64 << 10), ("covered", True, 48 << 10), ("refused", [-1, -1, -1], 40 << 10), ("page", True, 40 << 10),
                                ("moved", True, (40 << 10) - 4), ("shrunk", True, (16 << 10) - 4), ("gone", True, (12 << 10) - 4)):
            self.assertEqual(used(slices), kib << 10)
            program.go_on()
            self.assertEqual(program.hear(), {word: said})
        self.assertEqual(used(slices), 0)
        program.end()

    def test_managed(self):
        self.check_managed()

    def test_managed_again(self):
        uvm = self.sim.base + "/uvm"
        with open(uvm, "wb") as f:
            f.truncate(400 * MIB)
        slices = self.sim.slices(100, uvm=uvm)
        program = self.run_program("managed_again", slices, UVM_FILE=uvm)
        self.assertEqual(program.hear(), {"first": True, "again": True})
        self.assertEqual(used(slices), 60 * MIB)
        program.go_on()
        self.assertEqual(program.hear(), {"behind": True, "over": -errno.ENOMEM, "kernel": -errno.EACCES})
        self.assertEqual(used(slices), 100 * MIB)
        program.go_on()
        self.assertEqual(program.hear(), {"gone": True})
        self.assertEqual(used(slices), 0)
        program.end()

    def test_managed_after_a_close(self):
        """Before managed memory is refused, the gate looks for memory that the driver has freed, as for other memory."""
        uvm = self.sim.base + "/uvm"
        with open(uvm, "wb") as f:
            f.truncate(400 * MIB)
        for how, managed, plain in (("close", OK, NO_MEMORY), ("export", OK, NO_MEMORY), ("stay", -errno.ENOMEM, NO_MEMORY)):
            slices = self.sim.slices(100, uvm=uvm)
            program = self.run_program("managed_after_a_close", slices, UVM_FILE=uvm, HOW=how)
            self.assertEqual((how, program.hear()), (how, {"managed": managed, "plain": plain}))
            self.assertEqual((how, used(slices)), (how, 60 * MIB))
            program.end()

    def test_managed_that_came(self):
        uvm = self.sim.base + "/uvm"
        with open(uvm, "wb") as f:
            f.truncate(MIB)
        slices = self.sim.slices(100, uvm=uvm)
        program = self.run_program("managed_that_came", slices, UVM_FILE=uvm)
        self.assertEqual(program.hear(), {"mapped": [True, -errno.ENOMEM]})
        self.assertEqual(used(slices), 64 * MIB)
        program.go_on()
        self.assertEqual(program.hear(), {"gone": 0})
        self.assertEqual(used(slices), 0)
        program.end()

    def test_managed_with_a_library_behind(self):
        """A library between the gate and libc, which takes the gate for libc, changes no sum."""
        for flags in ((), ("-DBY_HANDLE",)):
            behind = "%s/behind%d.so" % (self.sim.base, len(flags))
            source = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../fake/stands-behind.c")
            command = [os.environ.get("CC", "cc"), "-w", "-O2", "-shared", "-fPIC", *flags, source, "-o", behind, "-ldl"]
            if not shutil.which(command[0]):
                self.skipTest("no C compiler")
            subprocess.run(command, check=True)
            with self.subTest(flags=flags):
                self.check_managed(LD_PRELOAD=LIBRARY + " " + behind)

    def test_managed_with_another_gate_behind(self):
        """As in a container where the user preloads the library again: memory is counted once."""
        again = self.sim.base + "/again.so"
        shutil.copyfile(LIBRARY, again)
        self.check_managed(LD_PRELOAD=LIBRARY + " " + again)

    def test_managed_cards(self):
        """Managed memory counts on every card that the process has registered, and on no other."""
        uvm = self.sim.base + "/uvm"
        with open(uvm, "wb") as f:
            f.truncate(400 * MIB)
        slices = self.sim.slices(100, 50, uvm=[uvm, self.sim.dir + "/nvidia-uvm"])
        uuids = {"UUID%d" % i: self.sim.uuid(i).decode()[4:].replace("-", "") for i in range(3)}
        program = self.run_program("managed_cards", slices, UVM_FILE=uvm, **uuids)

        def check(words, *mib):
            self.assertEqual(program.hear(), words)
            self.assertEqual((used(slices, 0), used(slices, 1)), (mib[0] * MIB, mib[1] * MIB))
            program.go_on()

        check({"guessed": True}, 30, 0)
        check({"second": OK}, 0, 30)
        check({"over": -errno.ENOMEM, "fits": True}, 0, 40)
        check({"both": OK, "again": OK, "none": NO_MEMORY}, 40, 40)
        check({"unregistered": OK}, 40, 40)
        check({"once_more": OK}, 0, 40)
        check({"held": OK, "no_room": NO_MEMORY}, 70, 40)
        check({"unmapped": OK}, 80, 10)
        program.end()

    def test_crowd(self):
        """Many processes at once, some killed at any point; the driver never allocates more than the limit."""
        slices = self.sim.slices(100)
        crowd = [self.run_program("crowd", slices) for _ in range(64)]
        for program in crowd:
            self.assertEqual(program.hear(), {"ready": True})
        wild = random.Random(3)
        for program in wild.sample(crowd, 16):
            self.assertLessEqual(self.sim.held(), 100 * MIB)
            program.kill()
            crowd.remove(program)
        refused = 0
        for program in crowd:
            refused += program.hear()["refused"]
            self.assertLessEqual(self.sim.held(), 100 * MIB)
        self.assertGreater(refused, 0)
        for program in crowd:
            program.end()
        self.assertEqual(self.sim.held(), 0)
        self.assert_at_rest(slices)

    def test_without_slices(self):
        """Without slices the driver's own answers pass. Slices that are named but cannot be read are not the same as none."""
        for slices, status in (("", OK), ("/nonexistent", NO_MEMORY), ("relative", NO_MEMORY), (self.sim.dir + "/nvidiactl", NO_MEMORY),
                               ("/" + 300 * "x", NO_MEMORY)):
            program = self.run_program("hold", slices, HOLD="500")
            self.assertEqual(program.hear(), {"status": status}, slices)
            program.end()

    def test_starved(self):
        for limit, client in (("RLIMIT_NOFILE", NO_MEMORY), ("RLIMIT_AS", OK)):
            slices = self.sim.slices(100)
            program = self.run_program("starved", slices, STARVED=limit)
            self.assertEqual(program.hear(), {"client": client, "first": [NO_MEMORY, NO_MEMORY], "then": [NO_MEMORY, OK], "child": 0}, limit)
            self.assertEqual((used(slices), self.sim.held()), (80 * MIB, 80 * MIB))
            program.end()

    def test_another_root(self):
        empty = tempfile.mkdtemp(dir=self.sim.base)
        program = self.run_program("rooted", self.sim.slices(100), ROOT=empty, BEFORE="")
        self.assertEqual(program.hear(), {"client": OK, "first": [NO_MEMORY, NO_MEMORY], "then": [NO_MEMORY, NO_MEMORY], "child": 256})
        program.end()
        program = self.run_program("rooted", self.sim.slices(100), ROOT=empty, BEFORE="1")
        self.assertEqual(program.hear(), {"child": NO_MEMORY})
        program.end()

    def test_installed(self):
        """Loaded from the path of isolated containers: a slice is expected, and one that is not visible has a limit of zero."""
        run = self.sim.base + "/run"
        os.makedirs(run + "/aliquot")
        shutil.copy(LIBRARY, run + "/aliquot/libaliquot.so")
        if LIBC.mount(run.encode(), b"/run", None, 0x1000, None) != 0:
            self.skipTest("nothing can be mounted at /run")
        self.addCleanup(LIBC.umount2, b"/run", 2)
        program = Program("hold", "", self.sim, LD_PRELOAD="/run/aliquot/libaliquot.so")
        self.addCleanup(program.kill)
        self.assertEqual(program.hear(), {"status": NO_MEMORY})
        program.end()


def alone():
    """In a mount namespace of our own, so that no mount is left behind."""
    if not os.path.exists("/dev/fuse"):
        skip("there is no /dev/fuse here")
    if os.environ.get("GATE_ALONE") or LIBC.unshare(0x00020000) == 0:
        LIBC.mount(None, b"/", None, 0x4000 | 0x40000, None)
        return
    arguments = ["unshare", "--user", "--map-root-user", "--mount", sys.executable] + sys.argv
    if not shutil.which("unshare"):
        skip("no private mount namespace is to be had")
    os.environ["GATE_ALONE"] = "1"
    os.execvp(arguments[0], arguments)


if __name__ == "__main__":
    alone()
    unittest.main(argv=[sys.argv[0]] + sys.argv[3:], verbosity=2)
