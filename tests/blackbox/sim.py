#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The simulated driver from outside: a static program makes raw system calls on the files of a
mounted aliquot-sim.

    sim.py ALIQUOT_SIM RM_RAW

Runs in a mount namespace of its own, so its mounts are not visible elsewhere. Exits with 77 without
FUSE or without the right to make such a namespace.
"""
import ctypes
import json
import mmap
import os
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import unittest

from patience import PATIENCE, until

SIM, RAW = sys.argv[1:3]
MIB = 1 << 20

ALLOC, FREE, CONTROL, DUP, HEAP, XFER = 0x2B, 0x29, 0x2A, 0x34, 0x4A, 211
ROOT, DEVICE, SUBDEVICE, MEMORY, GROUP = 0x41, 0x80, 0x2080, 0x40, 0xA06C
OK, NO_MEMORY, INVALID_ADDRESS, INVALID_ARGUMENT, INVALID_CLIENT, INVALID_HANDLE = 0, 0x51, 0x1E, 0x1F, 0x23, 0x33
EFAULT, EINVAL = -14, -22
PARAMS, NESTED = 0, 0x10000  # addresses in a program's memory
MEMORY_PARAMS = struct.Struct("<5Ii6IQQQQQQQ4IiI")
ALL_ONES = (1 << 64) - 1


def say_why_not(text):
    print("skipped: " + text)
    sys.exit(77)


def enter_namespace(*more):
    """Starts this test again in a mount namespace of its own, by root or in a user namespace."""
    if os.environ.get("ALIQUOT_SIM_TEST_INSIDE"):
        return
    try:
        os.close(os.open("/dev/fuse", os.O_RDWR))
    except OSError as e:
        say_why_not("/dev/fuse: %s" % e.strerror)
    ways = [["unshare", "-m", "--propagation", "private"], ["unshare", "-Urm"]]
    for way in ways if os.geteuid() == 0 else ways[1:]:
        # Some systems allow the namespace and forbid the mount, so the mount is tried.
        probe = subprocess.run(way + [sys.executable, "-c", PROBE], stdin=subprocess.DEVNULL, capture_output=True, text=True)
        if probe.returncode == 0:
            os.environ["ALIQUOT_SIM_TEST_INSIDE"] = "1"
            os.execvp(way[0], way + [sys.executable] + sys.argv)
    say_why_not("no mount namespace with FUSE: " + probe.stderr.strip())


PROBE = """
import os, subprocess, sys, tempfile
with tempfile.TemporaryDirectory() as d:
    p = subprocess.run([%r, "--cards", "T:1GiB", "--dir", d], stdout=subprocess.PIPE, text=True)
    if p.returncode == 0:
        subprocess.run(["umount", d], check=True)
    sys.exit(p.returncode)
""" % SIM


class Program:
    """A static program that makes the requested calls."""

    def __init__(self, test, directory, *, prefix=(), **options):
        self.process = subprocess.Popen(list(prefix) + [RAW, directory], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        text=True, **options)
        test.addCleanup(self.end)
        self.base = int(self.process.stdout.readline())
        self.ctl = None

    def end(self):
        """It ends by itself at the end of its input; it may have been killed before."""
        if self.process.stdin.closed:
            return
        try:
            self.process.stdin.close()
        except BrokenPipeError:
            pass
        self.process.wait(PATIENCE)
        self.process.stdout.close()

    def kill(self):
        self.process.kill()
        self.process.wait(PATIENCE)
        self.end()

    def tell(self, *words):
        self.process.stdin.write(" ".join(str(w) for w in words) + "\n")
        self.process.stdin.flush()
        line = self.process.stdout.readline()
        if not line:
            raise BrokenPipeError("the program has ended")
        return line.strip()

    def number(self, *words):
        return int(self.tell(*words))

    def open(self, name="nvidiactl"):
        fd = self.number("open", name)
        assert fd >= 0, (name, fd)
        return fd

    def put(self, place, data):
        self.number("put", self.base + place, data.hex())

    def get(self, place, n):
        return bytes.fromhex(self.tell("get", self.base + place, n))

    def ioctl(self, nr, size, address, fd=None):
        fd = self.ctl if fd is None else fd
        return self.number("ioctl", fd, 0xC0004600 | size << 16 | nr, address)

    def call(self, nr, params, fd=None):
        """Returns the parameters as the call left them; a result other than 0 fails the test."""
        self.put(PARAMS, params)
        r = self.ioctl(nr, len(params), self.base + PARAMS, fd)
        assert r == 0, (nr, r)
        return self.get(PARAMS, len(params))

    # The calls of a library.

    def alloc(self, client, parent, handle, class_, nested=0, fd=None):
        """The handle and the status."""
        out = self.call(ALLOC, struct.pack("<4IQII", client, parent, handle, class_, nested, 0, 99), fd)
        return struct.unpack_from("<I", out, 8)[0], struct.unpack_from("<I", out, 28)[0]

    def start(self, card=0):
        """A client with device 1 and subdevice 2."""
        if self.ctl is None:
            self.ctl = self.open()
        self.client, status = self.alloc(0, 0, 0, ROOT)
        assert status == OK
        self.put(NESTED, struct.pack("<I", card).ljust(56, b"\0"))
        assert self.alloc(self.client, self.client, 1, DEVICE, self.base + NESTED)[1] == OK
        assert self.alloc(self.client, 1, 2, SUBDEVICE)[1] == OK
        return self

    def memory(self, handle, size, nested=None):
        self.put(NESTED, memory_params(size))
        return self.alloc(self.client, 1, handle, MEMORY, self.base + NESTED if nested is None else nested)[1]

    def free(self, handle, client=None):
        out = self.call(FREE, struct.pack("<4I", client or self.client, 0, handle, 99))
        return struct.unpack_from("<I", out, 12)[0]

    def control(self, object_, cmd, params):
        self.put(NESTED, params)
        out = self.call(CONTROL, struct.pack("<4IQII", self.client, object_, cmd, 0, self.base + NESTED, len(params), 99))
        return struct.unpack_from("<I", out, 28)[0], self.get(NESTED, len(params))

    def dup(self, handle, source_client, source):
        out = self.call(DUP, struct.pack("<7I", self.client, 1, handle, source_client, source, 0, 99))
        return struct.unpack_from("<I", out, 24)[0]

    def free_memory(self):
        """Memory of the card in bytes, as the driver reports it."""
        status, out = self.control(2, 0x20801303, struct.pack("<3I", 1, 0x16, 0).ljust(1028, b"\0"))
        assert status == OK
        return struct.unpack_from("<I", out, 8)[0] << 10

    def pids(self):
        status, out = self.control(2, 0x2080018D, struct.pack("<2I", 0, SUBDEVICE).ljust(3812, b"\0"))
        assert status == OK
        return list(struct.unpack_from("<%dI" % struct.unpack_from("<I", out, 8)[0], out, 12))

    def used_by(self, pid):
        status, out = self.control(2, 0x2080018E, struct.pack("<IIII", 1, 0, pid, 0).ljust(14408, b"\0"))
        assert status == OK
        return sum(struct.unpack_from("<3Q", out, 8 + 16))


def memory_params(size, owner=1):
    return MEMORY_PARAMS.pack(owner, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, size, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0)


class Machine(unittest.TestCase):
    """A mounted driver of two cards."""

    CARDS = "2xA100-SXM4:16160MiB"

    def setUp(self):
        self.directory = tempfile.mkdtemp(prefix="aliquot-sim-")
        self.addCleanup(os.rmdir, self.directory)
        self.server = subprocess.Popen([SIM, "--cards", self.CARDS, "--dir", self.directory, "--foreground", "--name", "n1",
                                        "--driver", "595.45.04"], stdout=subprocess.PIPE, text=True)
        self.addCleanup(self.stop)
        self.assertEqual(self.server.stdout.readline(), "ready\n")

    def stop(self):
        if self.server.poll() is None:
            self.server.send_signal(signal.SIGTERM)
        self.assertEqual(self.server.wait(PATIENCE), 0)
        self.server.stdout.close()
        subprocess.run(["umount", "-l", self.directory], stderr=subprocess.DEVNULL)

    def program(self, **options):
        return Program(self, self.directory, **options)

    def status(self):
        return json.loads(subprocess.run([SIM, "--status", self.directory], check=True, stdout=subprocess.PIPE, text=True).stdout)

    def used(self, card=0):
        return self.status()["cards"][card]["used"]

    def gone(self, bytes_left=0):
        until(lambda: self.used() == bytes_left, "%d bytes in use, %d expected" % (self.used(), bytes_left))


class Files(Machine):
    def test_all_are_known_when_it_is_ready(self):
        """The kernel no longer asks for them: two first callers at the same time would disturb each
        other."""
        names = [self.directory + "/" + name for name in
                 ("nvidiactl", "nvidia-uvm", "nvidia-uvm-tools", "status", "nvidia0", "nvidia1")]
        self.server.send_signal(signal.SIGSTOP)
        asks = subprocess.Popen(["stat", "--format=%i", *names], stdout=subprocess.PIPE, text=True)
        try:
            inodes = asks.communicate(timeout=PATIENCE)[0].split()
        finally:
            self.server.send_signal(signal.SIGCONT)
            asks.wait()
        self.assertEqual(inodes, ["2", "3", "4", "5", "16", "17"])

    def test_what_is_there(self):
        self.assertEqual(sorted(os.listdir(self.directory)),
                         ["nvidia-uvm", "nvidia-uvm-tools", "nvidia0", "nvidia1", "nvidiactl", "status"])
        self.assertEqual(os.stat(self.directory + "/nvidiactl").st_ino, 2)
        self.assertEqual(os.stat(self.directory + "/nvidia1").st_ino, 17)
        program = self.program()
        fd = program.open("nvidia1")
        held = os.stat("/proc/%d/fd/%d" % (program.process.pid, fd))
        self.assertEqual((held.st_dev, held.st_ino), (os.stat(self.directory).st_dev, 17))
        self.assertEqual(program.number("open", "nvidia2"), -2)

    def test_they_are_no_files_to_write(self):
        # a device ignores O_TRUNC
        with open(self.directory + "/nvidiactl", "wb", buffering=0) as f:
            self.assertRaises(OSError, f.write, b"x")
            self.assertRaises(OSError, f.truncate, 4096)
            self.assertEqual(os.stat(self.directory + "/nvidiactl").st_size, 0)
        self.assertRaises(OSError, os.chmod, self.directory + "/nvidiactl", 0o777)
        self.assertRaises(OSError, open, self.directory + "/another", "w")
        self.assertRaises(OSError, os.unlink, self.directory + "/nvidiactl")

    def test_a_card_is_mapped(self):
        """All processes see the same memory, separate for each card; its content is the server's.
        """
        with open(self.directory + "/nvidia0", "r+b") as a, open(self.directory + "/nvidia1", "r+b") as b:
            size = os.fstat(a.fileno()).st_size
            with mmap.mmap(a.fileno(), size) as first, mmap.mmap(a.fileno(), size) as second, mmap.mmap(b.fileno(), size) as other:
                first[-5:] = b"hello"
                self.assertEqual((second[-5:], other[-5:]), (b"hello", bytes(5)))
                slice_ = first[:8]
                self.assertEqual(struct.unpack("<Q", slice_)[0], 1000000)
                first[:8] = bytes(8)
        with open(self.directory + "/nvidia0", "r+b") as a:
            a.truncate(0)
            self.assertEqual(os.fstat(a.fileno()).st_size, size)
        self.assertEqual(subprocess.run(["sync", "-f", self.directory]).returncode, 0)
        with open(self.directory + "/nvidia0", "rb") as f:
            f.seek(size - 5)
            self.assertEqual(f.read(), b"hello")

    def test_parameters_in_a_mapped_card(self):
        """Their page must come from the server during the call that needs it. The kernel fetches
        parameters that the call's number describes in advance, so these are behind a pointer."""
        libc = ctypes.CDLL(None, use_errno=True)
        libc.ioctl.argtypes = [ctypes.c_int, ctypes.c_ulong, ctypes.c_void_p]
        with open(self.directory + "/nvidia0", "r+b") as card, open(self.directory + "/nvidiactl", "r+b", buffering=0) as ctl:
            with mmap.mmap(card.fileno(), os.fstat(card.fileno()).st_size) as memory:
                start = ctypes.addressof(ctypes.c_char.from_buffer(memory))
                for page in range(100, 200):
                    xfer = ctypes.create_string_buffer(struct.pack("<IIQ", 210, 72, start + page * 4096))
                    r = libc.ioctl(ctl.fileno(), 0xC0004600 | 16 << 16 | XFER, xfer)
                    self.assertEqual((r, ctypes.get_errno() if r else 0), (-1, -EINVAL))
                    self.assertEqual(memory[page * 4096 + 8:page * 4096 + 17], b"595.45.04")

    def test_a_bind_mount_is_the_same(self):
        other = tempfile.mkdtemp(prefix="aliquot-sim-")
        self.addCleanup(os.rmdir, other)
        subprocess.run(["mount", "--bind", self.directory, other], check=True)
        try:
            self.assertEqual(os.stat(other + "/nvidiactl").st_dev, os.stat(self.directory + "/nvidiactl").st_dev)
            program = Program(self, other).start()
            self.assertEqual(program.memory(3, MIB), OK)
            self.assertEqual(self.used(), MIB)
            program.end()
        finally:
            subprocess.run(["umount", other], check=True)

    def test_status_is_private(self):
        with open("/proc/self/uid_map") as f:
            if f.read().split() != ["0", "0", "4294967295"] or not shutil.which("setpriv"):
                self.skipTest("one user only")
        read = subprocess.run(["setpriv", "--reuid", "65534", "--clear-groups", "cat", self.directory + "/status"],
                              capture_output=True, text=True)
        self.assertIn("Permission denied", read.stderr)


class Memory(Machine):
    def test_sizes_and_sums(self):
        program = self.program().start()
        self.assertEqual(program.memory(3, 3 * MIB), OK)
        self.assertEqual(struct.unpack_from("<Q", program.get(NESTED, 128), 64)[0], 4 * MIB)
        self.assertEqual(program.memory(4, 1), OK)
        self.assertEqual(self.used(), 4 * MIB + 65536)
        self.assertEqual(program.free_memory(), 16160 * MIB - 4 * MIB - 65536)
        self.assertEqual(program.free(1), OK)  # the device and everything below it
        self.assertEqual(self.used(), 0)

    def test_all_of_it_and_no_more(self):
        program = self.program().start(1)
        self.assertEqual(program.memory(3, 16160 * MIB + 1), NO_MEMORY)
        self.assertEqual(program.memory(3, 16160 * MIB), OK)
        self.assertEqual(program.memory(4, 1), NO_MEMORY)
        self.assertEqual(self.program().start(0).memory(3, MIB), OK)
        self.assertEqual(program.free(3), OK)
        self.assertEqual(program.memory(4, 1), OK)

    def test_the_dead_give_it_back(self):
        keeper, victim = self.program().start(), self.program().start()
        self.assertEqual(keeper.memory(3, 2 * MIB), OK)
        for handle in range(3, 40):
            self.assertEqual(victim.memory(handle, 10 * MIB), OK)
        victim.kill()
        self.gone(2 * MIB)

    def test_closing_takes_effect_at_once(self):
        watcher, program = self.program().start(), self.program()
        for _ in range(50):
            program.ctl = None
            program.start()
            self.assertEqual(program.memory(3, 100 * MIB), OK)
            self.assertEqual(program.number("close", program.ctl), 0)
            self.assertEqual(watcher.free_memory(), 16160 * MIB)

    def test_a_fork_keeps_it(self):
        program = self.program().start()
        self.assertEqual(program.memory(3, 2 * MIB), OK)
        child = program.number("fork")
        self.addCleanup(lambda: os.path.exists("/proc/%d" % child) and os.kill(child, signal.SIGKILL))
        program.process.kill()
        program.process.wait(PATIENCE)
        self.assertEqual(self.used(), 2 * MIB)
        os.kill(child, signal.SIGKILL)
        self.gone()

    def test_a_passed_descriptor_keeps_it(self):
        a, b = socket.socketpair()
        with a, b:
            giver = self.program(pass_fds=[a.fileno()]).start()
            taker = self.program(pass_fds=[b.fileno()])
            self.assertEqual(giver.memory(3, 2 * MIB), OK)
            self.assertEqual(giver.number("send", a.fileno(), giver.ctl), 1)
            giver.kill()
            self.assertEqual(self.used(), 2 * MIB)
            taker.ctl = taker.number("receive", b.fileno())
            taker.client = giver.client
            # it belongs to the file's client, whichever process has the file
            self.assertEqual(taker.memory(4, 2 * MIB), OK)
            self.assertEqual(self.used(), 4 * MIB)
            taker.end()
            self.gone()

    def test_a_descriptor_on_its_way_keeps_it(self):
        a, b = socket.socketpair()
        with a, b:
            giver = self.program(pass_fds=[a.fileno()]).start()
            self.assertEqual(giver.memory(3, 2 * MIB), OK)
            self.assertEqual(giver.number("send", a.fileno(), giver.ctl), 1)
            giver.kill()
            self.assertEqual(self.used(), 2 * MIB)
        self.gone()

    def test_duplicates(self):
        one, two = self.program().start(), self.program().start()
        self.assertEqual(one.memory(3, 2 * MIB), OK)
        self.assertEqual(two.dup(9, one.client, 3), OK)
        self.assertEqual(self.used(), 2 * MIB)
        self.assertEqual(one.used_by(two.process.pid), 2 * MIB)
        one.kill()
        self.assertEqual(self.used(), 2 * MIB)
        self.assertEqual(two.free(9), OK)
        self.assertEqual(self.used(), 0)

    def test_a_channel_group_costs_others_nothing(self):
        program = self.program().start()
        self.assertEqual(program.alloc(program.client, 1, 3, GROUP)[1], OK)
        self.assertEqual(self.used(), 16 * MIB)
        self.assertEqual(program.used_by(program.process.pid), 0)
        status, out = program.control(2, 0x20801218, struct.pack("<IIQ", 3, 0, 0))
        self.assertEqual((status, struct.unpack_from("<Q", out, 8)[0]), (OK, 16 * MIB))

    def test_many_processes_at_once(self):
        programs = [self.program() for _ in range(64)]
        for i, program in enumerate(programs):
            program.start(i % 2)
        # all are started before any answer is read, so that their calls overlap
        for handle in range(3, 8):
            for program in programs:
                program.put(NESTED, memory_params(4 * MIB))
                program.put(PARAMS, struct.pack("<4IQII", program.client, 1, handle, MEMORY, program.base + NESTED, 0, 99))
            for program in programs:
                program.process.stdin.write("ioctl %d %d %d\n" % (program.ctl, 0xC0004600 | 32 << 16 | ALLOC, program.base))
                program.process.stdin.flush()
            for program in programs:
                self.assertEqual(program.process.stdout.readline(), "0\n")
        self.assertEqual([self.used(card) for card in range(2)], [32 * 5 * 4 * MIB] * 2)
        for program in programs[:32]:
            program.process.kill()
        for program in programs[:32]:
            program.kill()
        until(lambda: len(self.status()["clients"]) == 32, "the driver has heard that their files are closed")
        for program in programs[32:]:
            self.assertEqual(program.free(program.client), OK)
        self.assertEqual(self.status()["objects"], 0)
        self.gone()


class Processes(Machine):
    def test_which_process_has_what(self):
        one, two, other = self.program().start(), self.program().start(), self.program().start(1)
        self.assertEqual(one.memory(3, 2 * MIB), OK)
        self.assertEqual(two.memory(3, 5 * MIB), OK)
        self.assertEqual(two.memory(4, 1), OK)
        self.assertEqual(one.pids(), [one.process.pid, two.process.pid])
        self.assertEqual(other.pids(), [other.process.pid])
        self.assertEqual(one.used_by(one.process.pid), 2 * MIB)
        self.assertEqual(one.used_by(two.process.pid), 6 * MIB + 65536)
        self.assertEqual(other.used_by(two.process.pid), 0)

    def test_a_thread_is_its_process(self):
        program = self.program()
        self.assertEqual(program.number("thread"), 0)
        program.start()
        self.assertEqual(program.memory(3, 2 * MIB), OK)
        self.assertEqual(program.pids(), [program.process.pid])

    def test_pids_are_the_callers(self):
        inside = self.program(prefix=["unshare", "--pid", "--fork", "--kill-child"]).start()
        outside = self.program().start()
        self.assertEqual(inside.memory(3, 2 * MIB), OK)
        pids = outside.pids()
        self.assertEqual(len(pids), 2)
        self.assertEqual(pids[1], outside.process.pid)
        self.assertEqual(outside.used_by(pids[0]), 2 * MIB)
        self.assertEqual(inside.pids(), [1])  # its own; the other process is not visible to it
        self.assertEqual(inside.used_by(1), 2 * MIB)
        self.assertEqual(inside.used_by(outside.process.pid), 0)


class Hostile(Machine):
    """For any input the caller gets the driver's answer, and the next call is answered."""

    def setUp(self):
        super().setUp()
        self.hostile = self.program().start()
        self.clean = self.status()["objects"]

    def alive(self):
        self.assertEqual(self.hostile.memory(0x777, MIB), OK)
        self.assertEqual(self.hostile.free(0x777), OK)
        self.assertEqual(self.status()["objects"], self.clean)
        self.assertEqual(self.used(), 0)

    def addresses(self):
        unmapped = self.hostile.base + 0x80000
        self.assertEqual(self.hostile.number("protect", unmapped, 4096, 0), 0)
        return [1, 4095, unmapped, unmapped - 8, 1 << 47, 1 << 63, ALL_ONES, ALL_ONES - 4095]

    def test_parameters_that_are_not_there(self):
        for address in [0] + self.addresses():
            for nr, size in (ALLOC, 32), (ALLOC, 48), (FREE, 16), (CONTROL, 32), (DUP, 28), (HEAP, 184), (XFER, 16), (210, 72):
                self.assertEqual(self.hostile.ioctl(nr, size, address), EFAULT, (nr, hex(address)))
        self.alive()

    def test_nested_parameters_that_are_not_there(self):
        for address in self.addresses():
            self.assertEqual(self.hostile.memory(3, MIB, address), INVALID_ADDRESS, hex(address))
            for cmd, size in (0x20801303, 1028), (0x2080018E, 14408), (0x2080014A, 268):
                out = self.hostile.call(CONTROL, struct.pack("<4IQII", self.hostile.client, 2, cmd, 0, address, size, 99))
                self.assertEqual(struct.unpack_from("<I", out, 28)[0], INVALID_ADDRESS)
            status, _ = self.hostile.control(2, 0x20801301, struct.pack("<IIQ", 2, 0, address))
            self.assertEqual(status, INVALID_ADDRESS)
        self.assertEqual(self.hostile.memory(3, MIB, 0), INVALID_ARGUMENT)
        self.alive()

    def test_memory_that_cannot_be_written(self):
        """The driver has acted when it finds that it cannot return the result."""
        closed = self.hostile.base + 0x80000
        self.hostile.put(0x80000, memory_params(MIB))
        self.hostile.put(0x81000, struct.pack("<4IQII", self.hostile.client, 1, 4, MEMORY, self.hostile.base + NESTED, 0, 99))
        self.hostile.put(NESTED, memory_params(MIB))
        self.assertEqual(self.hostile.number("protect", closed, 8192, 1), 0)
        self.assertEqual(self.hostile.alloc(self.hostile.client, 1, 3, MEMORY, closed)[1], INVALID_ADDRESS)
        self.assertEqual(self.used(), MIB)
        self.assertEqual(self.hostile.ioctl(ALLOC, 32, closed + 4096), EFAULT)
        self.assertEqual(self.used(), 2 * MIB)
        self.assertEqual(self.hostile.free(3), OK)
        self.assertEqual(self.hostile.free(4), OK)
        self.alive()

    def test_a_page_of_the_driver_itself(self):
        """A mapping of the server's own file as parameters: the server must not wait for itself to
        fill a page."""
        address = self.hostile.number("map", self.hostile.ctl, 2)
        if address > 0:
            self.assertEqual(self.hostile.ioctl(ALLOC, 32, address), EFAULT)
        self.alive()

    def test_numbers_and_sizes(self):
        for nr in range(256):
            for size in 0, 1, 4, 31, 33, 64, 0x3FFF:
                self.assertIn(self.hostile.ioctl(nr, size, self.hostile.base), (EINVAL, 0 if nr == 201 else EINVAL), (nr, size))
        for size in 1 << 14, 1 << 31, 0xFFFFFFFF:
            self.hostile.put(PARAMS, struct.pack("<IIQ", ALLOC, size, self.hostile.base + NESTED))
            self.assertEqual(self.hostile.ioctl(XFER, 16, self.hostile.base), EINVAL)
        self.alive()

    def test_sizes_that_overflow(self):
        for size in ALL_ONES, ALL_ONES - 65535, 1 << 63, (1 << 63) - 1, 1 << 52:
            self.assertEqual(self.hostile.memory(3, size), NO_MEMORY, hex(size))
            heap = struct.pack("<4I hHI QQ 8I 4I Q", self.hostile.client, 1, 2, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0,
                               0, 0, 0, 0, size).ljust(184, b"\0")
            self.assertEqual(struct.unpack_from("<I", self.hostile.call(HEAP, heap), 20)[0], NO_MEMORY, hex(size))
        self.assertEqual(self.hostile.memory(3, 0), INVALID_ARGUMENT)
        self.alive()

    def test_lists_longer_than_their_buffer(self):
        for n in 129, 1 << 31, 0xFFFFFFFF:
            status, _ = self.hostile.control(2, 0x20801303, struct.pack("<I", n).ljust(1028, b"\xff"))
            self.assertEqual(status, INVALID_ARGUMENT)
            status, _ = self.hostile.control(2, 0x20801301, struct.pack("<IIQ", n, 0, self.hostile.base + NESTED))
            self.assertEqual(status, 0x5B)
        for n in 0, 201, 0xFFFFFFFF:
            status, _ = self.hostile.control(2, 0x2080018E, struct.pack("<I", n).ljust(14408, b"\xff"))
            self.assertEqual(status, INVALID_ARGUMENT)
        end = self.hostile.base + 0x80000  # two entries, then unmapped memory
        self.assertEqual(self.hostile.number("protect", end, 4096, 0), 0)
        for n, expected in (2, OK), (3, INVALID_ADDRESS), (128, INVALID_ADDRESS):
            status, _ = self.hostile.control(2, 0x20801301, struct.pack("<IIQ", n, 0, end - 16))
            self.assertEqual(status, expected, n)
        self.alive()

    def test_handles(self):
        program = self.hostile
        self.assertEqual(program.memory(3, MIB), OK)
        self.assertEqual(program.memory(3, MIB), 0x19)
        self.assertEqual(program.free(3), OK)
        self.assertEqual(program.free(3), OK)  # twice: the driver finds nothing left to do
        self.assertEqual(program.free(12345), OK)
        self.assertEqual(program.free(3, client=0xDEAD), INVALID_HANDLE)
        self.assertEqual(program.alloc(program.client, 77, 3, GROUP)[1], 0x57)
        self.assertEqual(program.alloc(program.client, program.client, 3, GROUP)[1], 0x36)
        stranger = self.program().start()
        stranger.client, mine = program.client, stranger.client
        self.assertEqual(stranger.memory(3, MIB), INVALID_CLIENT)
        self.assertEqual(stranger.free(1), INVALID_CLIENT)
        self.assertEqual(stranger.free(mine, client=mine), OK)
        self.assertEqual(stranger.memory(3, MIB), INVALID_CLIENT)
        stranger.client = mine
        self.assertEqual(stranger.memory(3, MIB), INVALID_HANDLE)  # after its client's end
        self.alive()

    def test_killed_in_the_middle(self):
        """SIGKILL at any moment in a stream of calls leaves nothing behind."""
        for round_ in range(20):
            program = self.program().start()
            for handle in range(3, 3 + 50):
                program.put(NESTED, memory_params(MIB))
                program.put(PARAMS, struct.pack("<4IQII", program.client, 1, handle, MEMORY, program.base + NESTED, 0, 99))
                if handle == 3 + 2 * round_:
                    program.process.stdin.write("ioctl %d %d %d\n" %
                                                (program.ctl, 0xC0004600 | 32 << 16 | ALLOC, program.base))
                    program.process.stdin.flush()
                    break
                self.assertEqual(program.ioctl(ALLOC, 32, program.base), 0)
            program.kill()
        self.gone()
        self.alive()


class Server(unittest.TestCase):
    """The program itself."""

    def run_sim(self, *words):
        return subprocess.run([SIM, *words], stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=PATIENCE)

    def test_wrong_usage(self):
        for words in [], ["--cards", "T:1GiB"], ["--dir", "/proc"], ["--nonsense"], ["--status"], \
                ["--cards", "T:1GiB", "--dir", "/proc", "more"], ["--cards", "T", "--dir", "/proc"], \
                ["--cards", "33xT:1GiB", "--dir", "/proc"], ["--cards", "T:1GiB", "--dir", "/proc", "--reserved", "1025"], \
                ["--cards", "T:1GiB", "--dir", "/proc", "--reserved", "x"]:
            done = self.run_sim(*words)
            self.assertEqual(done.returncode, 2, words)
            self.assertTrue(done.stderr)
            self.assertEqual(done.stdout, "")

    def test_a_directory_that_is_none(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        absent = folder.name + "/absent"
        done = self.run_sim("--cards", "T:1GiB", "--dir", absent + "/dir")
        self.assertEqual((done.returncode, done.stdout), (3, ""))
        self.assertIn(absent, done.stderr)
        self.assertEqual(self.run_sim("--status", absent).returncode, 3)

    def place(self):
        """An empty directory, unmounted however the test ends."""
        directory = tempfile.mkdtemp(prefix="aliquot-sim-")
        self.addCleanup(os.rmdir, directory)
        self.addCleanup(subprocess.run, ["umount", "-l", directory], stderr=subprocess.DEVNULL)
        return directory

    def test_background(self):
        directory = self.place()
        done = self.run_sim("--cards", "T:1GiB", "--dir", directory, "--reserved", "24")
        self.assertEqual((done.returncode, done.stdout, done.stderr), (0, "ready\n", ""))
        card = json.loads(self.run_sim("--status", directory).stdout)["cards"][0]
        self.assertEqual((card["bytes"], card["reserved"], card["largestFree"]), (1 << 30, 24 * MIB, 1000 * MIB))
        subprocess.run(["umount", directory], check=True)  # which also ends it
        self.assertEqual(os.listdir(directory), [])

    def test_files_outlive_the_server(self):
        """A process that still has its files open gets an error, and does not hang."""
        directory = self.place()
        server = subprocess.Popen([SIM, "--cards", "T:1GiB", "--dir", directory, "--foreground"], stdout=subprocess.PIPE,
                                  text=True)
        self.assertEqual(server.stdout.readline(), "ready\n")
        program = Program(self, directory).start()
        server.kill()
        server.wait(PATIENCE)
        server.stdout.close()
        self.assertIn(program.ioctl(ALLOC, 32, program.base), (-107, -103, -5))
        program.end()

    def test_a_dead_server_is_replaced(self):
        directory = self.place()
        os.rmdir(directory)  # it is made again
        for _ in range(2):
            server = subprocess.Popen([SIM, "--cards", "T:1GiB", "--dir", directory, "--foreground"], stdout=subprocess.PIPE,
                                      text=True)
            self.assertEqual(server.stdout.readline(), "ready\n")
            server.kill()
            server.wait(PATIENCE)
            server.stdout.close()
        server = subprocess.Popen([SIM, "--cards", "T:1GiB", "--dir", directory, "--foreground"], stdout=subprocess.PIPE,
                                  text=True)
        self.assertEqual(server.stdout.readline(), "ready\n")
        program = Program(self, directory).start()
        self.assertEqual(program.memory(3, MIB), OK)
        program.end()
        with open("/proc/self/mounts") as f:
            self.assertEqual(len([line for line in f if line.split()[1] == directory]), 1)
        server.send_signal(signal.SIGTERM)
        self.assertEqual(server.wait(PATIENCE), 0)
        server.stdout.close()

    def test_an_open_file_does_not_keep_the_server(self):
        directory = self.place()
        server = subprocess.Popen([SIM, "--cards", "T:1GiB", "--dir", directory, "--foreground"], stdout=subprocess.PIPE,
                                  text=True)
        self.assertEqual(server.stdout.readline(), "ready\n")
        program = Program(self, directory).start()
        self.assertEqual(program.memory(3, MIB), OK)
        server.send_signal(signal.SIGTERM)
        self.assertEqual(server.wait(PATIENCE), 0)
        server.stdout.close()
        self.assertEqual(os.listdir(directory), [])
        self.assertIn(program.ioctl(ALLOC, 32, program.base), (-107, -103, -5))

    def test_root_of_a_user_namespace(self):
        """The same without any privilege on the machine."""
        script = 'set -e; "$1" --cards T:1GiB --dir "$2"; "$3" "$2" <&0; umount "$2"'
        with tempfile.TemporaryDirectory() as directory:
            shell = subprocess.Popen(["unshare", "-Urm", "sh", "-c", script, "sh", SIM, directory, RAW],
                                     stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
            first = shell.stdout.readline()
            if first != "ready\n":
                self.skipTest("no FUSE in a user namespace: " + shell.communicate()[1].strip())
            program = Program.__new__(Program)
            program.process, program.base, program.ctl = shell, int(shell.stdout.readline()), None
            program.start()
            self.assertEqual(program.memory(3, MIB), OK)
            self.assertEqual(program.free_memory(), 1023 * MIB)
            self.assertEqual(len(program.pids()), 1)
            out, err = shell.communicate(timeout=PATIENCE)
            self.assertEqual((shell.returncode, out, err), (0, "", ""))


if __name__ == "__main__":
    enter_namespace()
    unittest.main(argv=sys.argv[:1] + sys.argv[3:])
