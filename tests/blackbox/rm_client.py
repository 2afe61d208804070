# SPDX-License-Identifier: Apache-2.0
"""A client of the driver's resource manager, by its own calls, and the frame of a program under test.

A test file names its programs with @inside and runs each as inside_command() says, with the library
preloaded. Each program prints lines of JSON.
"""

import ctypes
import json
import os
import signal
import socket
import struct
import sys

from driver_release import DRIVER

PATIENCE = 120  # seconds until a wait counts as failed; no test asserts speed
MIB = 1 << 20
OK, NO_MEMORY, NO_PERMISSION, NOT_FOUND, BAD_ARGUMENT, NOT_SUPPORTED, INVALID_DEVICE = 0, 0x51, 0x1B, 0x57, 0x1F, 0x56, 0x26
LOCAL, DEVICE, SUBDEVICE, GROUP, CHANNEL, SYSTEM = 0x40, 0x80, 0x2080, 0xA06C, 0xC86F, 0x3E
FB_INFO, FB_INFO_V2, FB_REGIONS, GID = 0x20801301, 0x20801303, 0x20801320, 0x2080014A
GROUP_SCHEDULE = 0xA06C0101
SET_TIMESLICE, GET_TIMESLICE, PREEMPT, SET_PREEMPTION, DISABLE_CHANNELS = 0xA06C0103, 0xA06C0104, 0xA06C0105, 0x20801210, 0x2080110B
# Nothing is mapped there. A program that is not position-independent, as Debian's python3, begins
# at 4 MiB, and its heap may lie anywhere in the gigabyte behind it.
BAD = 0x200000


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
    """The caller keeps the buffer in a variable until the address is no longer used."""
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
        size_at = 80 if function == 14 else 88  # nvos.h, NVOS32_PARAMETERS
        struct.pack_into("<III", b, 0, self.root, self.device, function)
        struct.pack_into("<III", b, 40, 1, handle, 0)
        struct.pack_into("<I", b, 52, (0x4000 if handle else 0) | (0x80000 if virtual else 0))
        if function == 6:
            struct.pack_into("<Ii", b, 56, *pitch)
        else:
            struct.pack_into("<I", b, 56, 1 << 25 if pci else 0)
            struct.pack_into("<Q", b, size_at, size)
        buffer = ctypes.create_string_buffer(bytes(b), 184)
        r = raw_ioctl(self.fd, HEAP, 184, address_of(buffer))
        if r < 0:
            raise OSError(-r, os.strerror(-r))
        ok(struct.unpack_from("<I", buffer.raw, 20)[0])
        return struct.unpack_from("<I", buffer.raw, 44)[0], struct.unpack_from("<Q", buffer.raw, size_at)[0]

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

    def preemption(self, channel, compute, flags=1, size=32):
        params = struct.pack("<IIIIQQQ", flags, channel, 0, compute, 0, 0, 0)[:size]
        self.control(self.subdevice, SET_PREEMPTION, ctypes.create_string_buffer(params, size))

    def disable(self, channels, n=None, size=536):
        """Stops channels, each a pair of client and handle."""
        params = ctypes.create_string_buffer(size)
        struct.pack_into("<II", params, 0, 1, len(channels) if n is None else n)
        for i, (client, channel) in enumerate(channels):
            struct.pack_into("<I", params, 24 + 4 * i, client)
            struct.pack_into("<I", params, 280 + 4 * i, channel)
        self.control(self.subdevice, DISABLE_CHANNELS, params)

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
        params = ctypes.create_string_buffer(DRIVER.size("RmFbInfoV2"))
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
    assert function.__name__ not in INSIDE, function.__name__ + " is another program, too"
    INSIDE[function.__name__] = function
    return function


def wait_for_word():
    """Waits until the test says to go on."""
    return sys.stdin.readline().strip()


def take_descriptor():
    """A descriptor from the test, by an inherited socket with its number in the environment."""
    return socket.recv_fds(socket.socket(fileno=os.dup(int(os.environ["SOCKET"]))), 1, 1)[1][0]


def give_descriptor(fd):
    socket.send_fds(socket.socket(fileno=os.dup(int(os.environ["SOCKET"]))), [b"x"], [fd])


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


def inside_command(name):
    """The command that runs a program by name, without site-packages, which no program uses."""
    module = INSIDE[name].__module__
    if module == "__main__":
        module = os.path.splitext(os.path.basename(sys.argv[0]))[0]
    return [sys.executable, "-S", os.path.join(os.path.dirname(os.path.abspath(__file__)), "inside.py"), module, name]
