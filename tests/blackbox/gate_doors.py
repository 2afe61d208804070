#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""libaliquot.so and objects of the driver that hold other objects' memory.

    gate_doors.py LIBRARY SIMULATOR [TEST...]

docs/internals/memory-doors.md lists these objects.
"""
import ctypes
import errno
import os
import struct
import subprocess
import sys
import threading
import unittest

import gate_memory  # noqa: F401  its programs are run by name
from compiler import compiler
from driver_release import DRIVER
from gate_lab import LIBRARY, GateBase, alone, used
from rm_client import (
    ALLOC, BAD_ARGUMENT, CONTROL, L_ALLOC, LIBC, MEMORY, MIB, NO_MEMORY, NO_PERMISSION, NOT_SUPPORTED, OK, XFER, Client, Refused, address_of,
    end_child, in_child, inside, packed, raw_ioctl, say, status_of, wait_for_word)

EXPORT_OBJECT, FLA, FABRIC, FABRIC_IMPORT, MULTICAST = 0xE0, 0xF3, 0xF8, 0xF9, 0xFD
EXPORT_MEM, IMPORT_MEM, ATTACH_MEM = 0xE00101, 0xE00102, 0xFD0102
ALLOC_OBJECT, INVALID_CLASS = 0x28, 0x22
REGISTER_FD = 201
DMA_BUF, NEW, OLD = 217, 2608, 2600  # sizes of the parameters since 570, and before


# ---- programs under test ----


def export_mem(c, holder, handle):
    params = ctypes.create_string_buffer(1048)
    struct.pack_into("<HxxII", params, 0, 0, c.device, handle)
    struct.pack_into("<H", params, 1032, 1)
    c.control(holder, EXPORT_MEM, params)


def import_mem(c, holder, handle):
    params = ctypes.create_string_buffer(1540)
    struct.pack_into("<HHI", params, 0, 0, 1, handle)
    c.control(holder, IMPORT_MEM, params)


@inside
def export_object():
    """Memory that an object of class 0xE0 keeps, and gives back under another handle."""
    c = Client()
    a = c.memory(60 * MIB)
    try:
        holder = c.allocate(c.root, c.root, EXPORT_OBJECT)
    except Refused as refused:
        say(status=refused.status)
        wait_for_word()
        return
    export_mem(c, holder, a)
    c.free(a)
    say(status=OK)
    wait_for_word()
    import_mem(c, holder, 0x5555)
    c.free(holder)
    say(imported=True)
    wait_for_word()
    c.free(0x5555)
    say(freed=True)
    wait_for_word()


@inside
def classes_refused():
    """Each class by each call that makes an object."""
    c = Client()
    for class_ in (EXPORT_OBJECT, FABRIC_IMPORT):
        short, rights = (status_of(c.allocate, c.root, c.root, class_, None, 0, rights) for rights in (False, True))
        inner = packed(L_ALLOC, c.root, c.root, 0, class_, 0, 0, 0)
        outer = packed("<IIQ", ALLOC, len(inner), address_of(inner))
        assert raw_ioctl(c.fd, XFER, len(outer), address_of(outer)) == 0
        old = packed("<IIIII", c.root, c.root, 0, class_, 0)
        assert raw_ioctl(c.fd, ALLOC_OBJECT, len(old), address_of(old)) == 0
        say(statuses=[short, rights, struct.unpack(L_ALLOC, inner.raw)[6], struct.unpack("<IIIII", old.raw)[4]])
    wait_for_word()


def fabric_params(memory, flags=0):
    return packed("<QQQIIQII", 0, 60 * MIB, 2 * MIB, flags, 0, 0, memory, 0)


@inside
def fabric():
    """Memory that is freed while an object at a fabric address, and a duplicate of it, have it."""
    c = Client()
    a = c.memory(60 * MIB)
    none = status_of(c.allocate, c.root, c.subdevice, FABRIC)
    flexible, unknown = (status_of(c.allocate, c.root, c.subdevice, FABRIC, p) for p in (fabric_params(0, 1), fabric_params(0x7777)))
    made = c.allocate(c.root, c.subdevice, FABRIC, fabric_params(a), 0x6666)
    again = status_of(c.allocate, c.root, c.subdevice, FABRIC, fabric_params(a), 0x6667, True)
    c.free(a)
    say(none=none, flexible=flexible, unknown=unknown != OK, made=[OK if made == 0x6666 else made, again])
    wait_for_word()
    say(more=status_of(c.memory, 60 * MIB))
    wait_for_word()
    c.free(0x6666)
    say(**{"one left": True})
    wait_for_word()
    c.free(0x6667)
    say(more=status_of(c.memory, 60 * MIB))
    wait_for_word()


@inside
def fla():
    """An object of FLA by each call that makes one. It would keep the memory that its parameters name."""
    c = Client()
    a = c.memory(60 * MIB)
    params = packed("<IIIIQQQIIII", 0, 0, 0, 0, 0, 0, 0, c.subdevice, a, c.root, 0)
    short, rights = (status_of(c.allocate, c.root, c.device, FLA, params, 0, rights) for rights in (False, True))
    old = packed("<IIIIIIQQIIiI", c.root, c.device, 0, FLA, 0, 0, address_of(params), 0, 0, 0, -1, 0)
    device = os.open(c.directory + "/nvidia0", os.O_RDWR | os.O_CLOEXEC)
    params = packed("<i", c.fd)
    assert raw_ioctl(device, REGISTER_FD, 4, address_of(params)) == 0
    assert raw_ioctl(device, MEMORY, len(old), address_of(old)) == 0
    say(statuses=[short, rights, struct.unpack_from("<I", old, 40)[0]])
    wait_for_word()


@inside
def multicast():
    """Memory that is freed while it is attached to a multicast object."""
    c = Client()
    group, a = c.allocate(c.root, c.root, MULTICAST), c.memory(60 * MIB)
    params = packed("<IIQQQII", c.subdevice, a, 0, 0, 60 * MIB, 0, 0)
    say(odd=status_of(c.control, group, ATTACH_MEM, ctypes.create_string_buffer(48)),
        unknown=status_of(c.control, group, ATTACH_MEM, packed("<IIQQQII", c.subdevice, 0x7777, 0, 0, MIB, 0, 0)) != OK,
        attached=status_of(c.control, group, ATTACH_MEM, params))
    c.free(a)
    say(freed=True)
    wait_for_word()
    c.free(group)
    say(more=status_of(c.memory, 60 * MIB))
    c.free(c.root, root=c.root)
    say(ended=True)
    wait_for_word()


def dma_buf(c, handle, size=NEW, fd=-1, xfer=False):
    """A dma-buf of one object: errno, status and descriptor."""
    params = ctypes.create_string_buffer(size)
    struct.pack_into("<iIIII", params, 0, fd, c.root, 1, 1, 0)
    struct.pack_into("<Q", params, 24, MIB)
    struct.pack_into("<I", params, 32 if size == OLD else 36, handle)
    outer = packed("<IIQ", DMA_BUF, size, address_of(params))
    r = raw_ioctl(c.fd, XFER, 16, address_of(outer)) if xfer else raw_ioctl(c.fd, DMA_BUF, size, address_of(params))
    return r, struct.unpack_from("<I", params, size - 8)[0], struct.unpack_from("<i", params, 0)[0]


def status_of_dma_buf(*arguments, **options):
    r, status, fd = dma_buf(*arguments, **options)
    return [r, status, fd != -1]


@inside
def dma_bufs():
    """Memory that is freed while a dma-buf has it."""
    c = Client()
    for options in {"size": NEW}, {"size": OLD}, {"xfer": True}:
        a = c.memory(60 * MIB)
        r, status, fd = dma_buf(c, a, **options)
        c.free(a)
        say(made=[r, status, fd >= 0], over=status_of(c.memory, 60 * MIB))
        wait_for_word()
        other = os.dup(fd)
        os.close(fd)
        say(still=status_of(c.memory, 60 * MIB))
        os.close(other)
        b = c.memory(60 * MIB)
        say(closed=True)
        wait_for_word()
        c.free(b)
    say(odd=dma_buf(c, 0, 2604)[0], unknown=status_of_dma_buf(c, 0x7777), again=status_of_dma_buf(c, 0x7777, fd=c.fd))
    wait_for_word()


@inside
def dma_buf_that_stays():
    """A child keeps a dma-buf after the end of its parent, which the test kills."""
    c = Client()
    a = c.memory(60 * MIB)
    fd = dma_buf(c, a)[2]
    if os.fork() == 0:
        os.closerange(3, fd)
        os.closerange(fd + 1, 64)
        say(child=True)
        wait_for_word()
        os._exit(0)
    os.wait()


@inside
def dma_buf_swapped():
    """During the call, another thread makes other memory with the handle."""
    to, hears = os.pipe(), os.pipe()
    c = Client()
    a = c.memory(30 * MIB, handle=0x1234)
    os.environ["DMA_BUF_PIPES"] = "%d %d" % (to[1], hears[0])
    ctypes.CDLL(None).setenv(b"DMA_BUF_PIPES", os.environ["DMA_BUF_PIPES"].encode(), 1)

    def swap():
        os.read(to[0], 1)
        c.free(a)
        c.memory(60 * MIB, handle=0x1234)
        os.write(hears[1], b".")

    thread = threading.Thread(target=swap)
    thread.start()
    made = status_of_dma_buf(c, a)
    thread.join()
    c.free(0x1234)
    say(made=made)
    wait_for_word()


def hide_sizes():
    """From now on the kernel refuses the library's own controls. Those of the program come from libc, by the library behind."""
    with open("/proc/self/maps", encoding="ascii") as maps:
        text = [line.split()[0] for line in maps if "libaliquot" in line and "x" in line.split()[1]]
    first, end = (int(word, 16) for word in text[0].split("-"))
    assert first >> 32 == end >> 32
    request = 0xC0000000 | 32 << 16 | ord("F") << 8 | CONTROL
    number = {"x86_64": 16, "aarch64": 29}[os.uname().machine]
    code = [(0x20, 0, 0, 0), (0x15, 0, 8, number), (0x20, 0, 0, 24), (0x15, 0, 6, request), (0x20, 0, 0, 12), (0x15, 0, 4, first >> 32),
            (0x20, 0, 0, 8), (0x35, 0, 2, first & 0xFFFFFFFF), (0x35, 1, 0, end & 0xFFFFFFFF), (6, 0, 0, 0x50001), (6, 0, 0, 0x7FFF0000)]
    lines = packed("<" + "HBBI" * len(code), *[x for line in code for x in line])
    program = packed("<HxxxxxxQ", len(code), address_of(lines))
    assert LIBC.prctl(38, 1, 0, 0, 0) == 0 and LIBC.prctl(22, 2, ctypes.c_void_p(address_of(program)), 0, 0) == 0


@inside
def sizes_hidden():
    """A child exports and imports memory of its parent, whose size the driver does not tell it."""
    c = Client()
    a, one, many = c.memory(30 * MIB), c.empty_file(), c.empty_file()
    c.export(a, one)
    c.export_many([a], many)

    def child():
        hide_sizes()
        say(statuses=[status_of(c.export, a, c.empty_file()), status_of(c.export_many, [a], c.empty_file()),
                      status_of(c.import_, one), status_of(c.import_many, many, 1)])
        wait_for_word()

    end_child(in_child(child))


# ---- tests ----


class DoorsTest(GateBase):
    def test_export_object_of_the_driver(self):
        """Without the library: freed memory is held, and comes back."""
        program = self.run_program("export_object", self.sim.slices(100), LD_PRELOAD="")
        if DRIVER.branch < 550:
            self.assertEqual(program.hear(), {"status": INVALID_CLASS})
            program.end()
            return
        self.assertEqual(program.hear(), {"status": OK})
        self.assertEqual(self.sim.held(), 60 * MIB)
        program.go_on()
        self.assertEqual(program.hear(), {"imported": True})
        self.assertEqual(self.sim.held(), 60 * MIB)
        program.go_on()
        self.assertEqual(program.hear(), {"freed": True})
        self.assertEqual(self.sim.held(), 0)
        program.end()

    def test_export_object(self):
        slices = self.sim.slices(100)
        program = self.run_program("export_object", slices)
        status = program.hear()["status"]
        self.assertEqual(used(slices), self.sim.held())
        self.assertEqual(status, NO_PERMISSION)
        program.end()
        self.assert_at_rest(slices)

    def test_classes_refused(self):
        slices = self.sim.slices(100)
        program = self.run_program("classes_refused", slices)
        for _ in range(2):
            self.assertEqual(program.hear(), {"statuses": [NO_PERMISSION] * 4})
        program.end()

    def test_fabric(self):
        """An object at a fabric address holds its memory, which counts until the object is freed, too."""
        slices = self.sim.slices(100)
        program = self.run_program("fabric", slices)
        self.assertEqual(program.hear(), {"none": BAD_ARGUMENT, "flexible": NOT_SUPPORTED, "unknown": True, "made": [OK, OK]})
        self.assertEqual((used(slices), self.sim.held()), (60 * MIB, 60 * MIB))
        program.go_on()
        self.assertEqual(program.hear(), {"more": NO_MEMORY})
        program.go_on()
        self.assertEqual(program.hear(), {"one left": True})
        self.assertEqual((used(slices), self.sim.held()), (60 * MIB, 60 * MIB))
        program.go_on()
        self.assertEqual(program.hear(), {"more": OK})
        self.assertEqual((used(slices), self.sim.held()), (60 * MIB, 60 * MIB))
        program.end()

    def test_fla(self):
        slices = self.sim.slices(100)
        program = self.run_program("fla", slices)
        self.assertEqual(program.hear(), {"statuses": [INVALID_CLASS] * 3})
        program.end()

    def test_multicast(self):
        """Before 570 the driver holds attached memory, which counts until the process ends. Later it ends with its last handle."""
        held, more = (60 * MIB, NO_MEMORY) if DRIVER.branch < 570 else (0, OK)
        slices = self.sim.slices(100)
        program = self.run_program("multicast", slices)
        self.assertEqual(program.hear(), {"odd": BAD_ARGUMENT, "unknown": True, "attached": OK})
        self.assertEqual(program.hear(), {"freed": True})
        self.assertEqual((used(slices), self.sim.held()), (held, held))
        program.go_on()
        self.assertEqual(program.hear(), {"more": more})
        self.assertEqual(program.hear(), {"ended": True})
        self.assertEqual((used(slices), self.sim.held()), (held, 0))  # another client may have the multicast object
        program.end()
        self.assert_at_rest(slices)


class DmaBufTest(GateBase):
    @classmethod
    def setUpClass(cls):
        if not compiler():
            raise unittest.SkipTest("no C compiler")
        super().setUpClass()
        here = os.path.dirname(os.path.abspath(__file__))
        command = compiler() + ["-O2", "-shared", "-fPIC", "-I", here + "/../../src", here + "/../fake/dma-buf.c"]
        cls.driver = cls.sim.base + "/dma-buf.so"
        subprocess.run(command + ["-o", cls.driver], check=True)

    def run_with_driver(self, name, slices, **environment):
        return self.run_program(name, slices, LD_PRELOAD=LIBRARY + " " + self.driver, **environment)

    def test_dma_bufs(self):
        slices = self.sim.slices(100)
        program = self.run_with_driver("dma_bufs", slices)
        for _ in range(3):
            self.assertEqual(program.hear(), {"made": [0, OK, True], "over": NO_MEMORY})
            self.assertEqual((used(slices), self.sim.held()), (60 * MIB, 60 * MIB))
            program.go_on()
            self.assertEqual(program.hear(), {"still": NO_MEMORY})
            self.assertEqual(program.hear(), {"closed": True})
            self.assertEqual((used(slices), self.sim.held()), (60 * MIB, 60 * MIB))
            program.go_on()
        self.assertEqual(program.hear(), {"odd": -errno.EINVAL, "unknown": [0, NOT_SUPPORTED, False], "again": [0, NOT_SUPPORTED, False]})
        self.assertEqual((used(slices), self.sim.held()), (0, 0))
        program.end()
        self.assert_at_rest(slices)

    def test_dma_buf_of_a_killed_process(self):
        slices = self.sim.slices(100)
        program = self.run_with_driver("dma_buf_that_stays", slices)
        self.assertEqual(program.hear(), {"child": True})
        program.process.kill()
        program.process.wait()
        self.assertEqual(self.sim.held(), 60 * MIB)
        other = self.run_program("hold", slices, HOLD="60")
        self.assertEqual(other.hear(), {"status": NO_MEMORY})
        other.end()
        self.assertEqual(used(slices), 60 * MIB)
        program.end()
        self.assert_at_rest(slices)

    def test_dma_buf_of_a_handle_that_changes(self):
        slices = self.sim.slices(100)
        program = self.run_with_driver("dma_buf_swapped", slices)
        self.assertEqual(program.hear(), {"made": [0, NO_MEMORY, False]})
        self.assertEqual((used(slices), self.sim.held()), (0, 0))
        program.end()


    def test_sizes_hidden(self):
        """An export or import whose size the driver does not tell is refused, and nothing of it stays."""
        slices = self.sim.slices(100)
        program = self.run_with_driver("sizes_hidden", slices)
        self.assertEqual(program.hear(), {"statuses": [NO_MEMORY] * 4})
        self.assertEqual((used(slices), self.sim.held()), (30 * MIB, 30 * MIB))
        program.end()
        self.assert_at_rest(slices)


if __name__ == "__main__":
    alone()
    unittest.main(argv=[sys.argv[0]] + sys.argv[3:], verbosity=2)
