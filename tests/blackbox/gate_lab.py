# SPDX-License-Identifier: Apache-2.0
"""The outer side of the tests of libaliquot.so: a simulated driver, slices, programs under test."""

import contextlib
import ctypes
import fcntl
import json
import os
import select
import shutil
import struct
import subprocess
import sys
import tempfile
import time
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "fake"))

import page as layout  # noqa: E402
import slice_page  # noqa: E402
from driver_release import DRIVER  # noqa: E402
from rm_client import GID, LIBC, MIB, OK, PATIENCE, Client, inside_command  # noqa: E402


LIBRARY, SIMULATOR = (os.path.abspath(name) for name in sys.argv[1:3])


def skip(why):
    """Ends the whole program. Within a test unittest would take an exit for an error."""
    print("gate.py: " + why, file=sys.stderr, flush=True)
    os._exit(77)


class Simulator:
    """A mounted aliquot-sim, and slices of its cards."""

    def __init__(self, cards, driver, *options):
        self.base = tempfile.mkdtemp(prefix="gate-")
        self.dir = self.base + "/dev"
        os.mkdir(self.dir)
        self.process = subprocess.Popen([SIMULATOR, "--cards", cards, "--dir", self.dir, "--foreground", "--driver", driver, *options],
                                        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.ready = self.process.stdout.readline().strip() == "ready"

    def close(self):
        self.process.terminate()
        code = self.process.wait(PATIENCE)
        said = "" if self.process.stderr.closed else self.process.stderr.read()  # closed: it did not mount, and was read
        self.process.stdout.close()
        self.process.stderr.close()
        subprocess.run(["umount", "-l", self.dir], stderr=subprocess.DEVNULL, check=False)
        shutil.rmtree(self.base, ignore_errors=True)
        if self.ready and (code != 0 or "Sanitizer" in said or "runtime error" in said):
            raise AssertionError("the simulated driver ended with %s: %s" % (code, said))

    def uuid(self, card):
        c = Client(self.dir, card)
        raw = c.control(c.subdevice, GID, ctypes.create_string_buffer(268))
        os.close(c.fd)
        return raw[12:12 + 40]

    def status(self):
        return json.loads(subprocess.run([SIMULATOR, "--status", self.dir], stdout=subprocess.PIPE, check=True).stdout)

    def schedules(self, client):
        """What the driver was asked about the channel groups of a client."""
        return [group for c in self.status()["clients"] if c["handle"] == client for group in c["schedules"]]

    def held(self, card=0):
        """Bytes of a card that the driver has allocated."""
        c = Client(self.dir, card)
        total, free = (value * 1024 for value in c.fb(8, 0x16))
        os.close(c.fd)
        return total - free

    def slices(self, *limits, group=0, uvm=None, **more):
        """A directory of slices: limit in MiB by position, None for a card without one. more: of slice_page.limits()."""
        base = tempfile.mkdtemp(dir=self.base)
        for card, limit in enumerate(limits):
            if limit is None:
                continue
            directory = "%s/%d" % (base, card)
            os.mkdir(directory)
            files = [self.dir + "/nvidiactl", self.dir + "/nvidia%d" % card,
                     (uvm[card] if isinstance(uvm, list) else uvm) or self.dir + "/nvidia-uvm"]
            with open(directory + "/limits", "wb") as f:
                f.write(slice_page.limits(limit * MIB, card, group=group, uuid=self.uuid(card), files=files, container=b"ns/pod/main", **more))
            with open(directory + "/counters", "wb") as f:
                f.write(slice_page.counters())
        return base


def mounted(cards, driver=DRIVER.version):
    simulator = Simulator(cards, driver)
    if not simulator.ready:
        why = simulator.process.communicate()[1].strip()
        simulator.close()
        skip("the simulated driver cannot be mounted here: " + why)
    return simulator


def used(slices, card=0):
    with open("%s/%d/counters" % (slices, card), "rb") as f:
        return (struct.unpack_from("<Q", f.read(), layout.USED)[0] >> layout.USED_SHIFT) * layout.UNIT


def refusals(slices, card=0):
    with open("%s/%d/counters" % (slices, card), "rb") as f:
        return struct.unpack_from("<Q", f.read(), layout.REFUSED)[0]


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
            inside_command(name), stdin=subprocess.PIPE, stdout=subprocess.PIPE,
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

    DRIVER = DRIVER.version

    @classmethod
    def setUpClass(cls):
        cls.sim = mounted("3xTesla-V100-SXM2-16GB:16160MiB", cls.DRIVER)
        cls.addClassCleanup(cls.sim.close)  # also when the rest of a subclass's setUpClass() fails

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


def alone():
    """In a mount namespace of our own, so that no mount is left behind."""
    if not os.path.exists("/dev/fuse"):
        skip("there is no /dev/fuse here")
    if os.environ.get("GATE_ALONE") or LIBC.unshare(0x00020000) == 0:
        LIBC.mount(None, b"/", None, 0x4000 | 0x40000, None)
        return
    apart = ["unshare", "--user", "--map-root-user", "--mount"]
    if not shutil.which("unshare"):
        skip("no private mount namespace is to be had")
    tried = subprocess.run([*apart, "true"], capture_output=True, text=True, check=False)
    if tried.returncode != 0:
        skip("no mount namespace of our own: " + tried.stderr.strip())
    os.environ["GATE_ALONE"] = "1"
    os.execvp(apart[0], [*apart, sys.executable, *sys.argv])
