#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Launches that wait for windows: libaliquot.so before the simulated libcuda.so.1, and this program as the arbiter.

    launch.py LIBRARY ALIQUOT_SIM TURN_RUN TURN_LINKED TURN_LIBRARY FOLDER BARE_CUDA IDLE_CUDA COPY_RUN [TEST...]
"""
import ctypes
import mmap
import os
import re
import select
import shutil
import signal
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
from patience import PATIENCE, until  # noqa: E402
from sim_lab import Machine, enter_namespace  # noqa: E402

LIBRARY, SIM, RUN, LINKED, TURN, FOLDER, BARE, IDLE, COPY_RUN = (os.path.abspath(a) for a in sys.argv[1:10])
MIB, MSEC = 1 << 20, 1000000
HOUR = 3600 * 1000 * MSEC
LIBC = ctypes.CDLL(None, use_errno=True)
SYS_FUTEX = {"x86_64": 202, "aarch64": 98}[os.uname().machine]


# A program that opens a library, which opens libcuda; flag 8 is RTLD_DEEPBIND.
OPENER = """
import ctypes, sys
turn = ctypes.CDLL(sys.argv[1], mode=2 | int(sys.argv[2]))
words = [b"turn"] + [a.encode() for a in sys.argv[3:]]
sys.exit(turn.turn_main(len(words), (ctypes.c_char_p * (len(words) + 1))(*words)))
"""

# Opens two drivers; the first is initialised, and the second differs only in its other functions.
TWO = """
import ctypes, sys
first, second = (ctypes.CDLL(path) for path in sys.argv[1:3])
context = ctypes.c_void_p()
print(first.cuInit(0), second.cuInit(0), second.cuCtxCreate_v2(ctypes.byref(context), 0, 0),
      first.cuCtxCreate_v2(ctypes.byref(context), 0, 0))
"""


def now():
    return time.clock_gettime_ns(time.CLOCK_MONOTONIC)


def uuid_of(machine):
    command = [FOLDER + "/nvidia-smi", "--query-gpu=uuid", "--format=csv,noheader"]
    return subprocess.run(command, env=dict(os.environ, ALIQUOT_SIM_DIR=machine.dir, LD_LIBRARY_PATH=FOLDER), stdin=subprocess.DEVNULL,
                          capture_output=True, check=True).stdout.strip()


class Slice:
    """The pages of one card, mapped by this test as the arbiter."""

    def __init__(self, test, machine, percent=0, flags=0, policy=0):
        folder = tempfile.TemporaryDirectory()
        test.addCleanup(folder.cleanup)
        self.base, self.path = folder.name, folder.name + "/0"
        os.mkdir(self.path)
        files = [machine.dir + "/" + name for name in ("nvidiactl", "nvidia0", "nvidia-uvm")]
        with open(self.path + "/limits", "wb") as f:
            f.write(slice_page.limits(8192 * MIB, percent=percent, flags=flags, policy=policy, uuid=uuid_of(machine), files=files))
        with open(self.path + "/counters", "wb") as f:
            f.write(slice_page.counters())
        os.mkfifo(self.path + "/doorbell")
        self.doorbell = os.open(self.path + "/doorbell", os.O_RDWR | os.O_NONBLOCK)
        test.addCleanup(os.close, self.doorbell)
        with open(self.path + "/limits", "r+b") as f:
            self.page = mmap.mmap(f.fileno(), layout.LIMITS_SIZE)
        self.word = ctypes.c_uint32.from_buffer(self.page, layout.WINDOW)
        self.gated = ctypes.c_uint32.from_buffer(self.page, layout.SCHEDULE_FLAGS)
        self.closes, self.depth, self.seen = (ctypes.c_uint64.from_buffer(self.page, at)
                                             for at in (layout.CLOSES, layout.DEPTH, layout.SEEN))
        self.percent = ctypes.c_uint32.from_buffer(self.page, layout.CORE_PERCENT)
        self.ahead = 5000 * MSEC  # a test machine may be busy
        self.number, self.beats, self.stop = 0, threading.Event(), threading.Event()
        self.thread = threading.Thread(target=self.beat, daemon=True)
        self.thread.start()
        test.addCleanup(self.stop.set)

    def beat(self):
        while not self.stop.wait(0.05):
            if self.beats.is_set():
                self.seen.value = now() + self.ahead

    def here(self):
        self.gated.value = 1
        self.seen.value = now() + self.ahead
        self.beats.set()

    def away(self):
        self.beats.clear()
        self.seen.value = now() - 1000 * MSEC
        time.sleep(0.1)  # a beat that was in progress
        self.seen.value = now() - 1000 * MSEC

    def change(self, word):
        self.word.value = word
        LIBC.syscall(SYS_FUTEX, ctypes.byref(self.word), 1, 0x7FFFFFFF, None, None, 0)

    def open(self, depth=MSEC, nsec=HOUR):
        self.number += 1
        self.depth.value = depth
        self.closes.value = now() + nsec
        self.change(self.number << 1 | 1)

    def close(self):
        self.change(self.number << 1)

    def rows(self):
        """(wants, busy, in flight, drained, launched) of each process."""
        with open(self.path + "/counters", "rb") as f:
            data = f.read()
        rows = [struct.unpack_from("<QQIII", data, slice_page.row_at(i) + layout.ROW_WORK) for i in range(layout.N_ROWS)]
        return [(wants, busy, in_flight, drained, launched) for wants, busy, in_flight, launched, drained in rows
                # `launched` continues in a row that is free again
                if wants or busy or in_flight or drained]

    def row(self):
        rows = self.rows()
        return rows[0] if rows else (0, 0, 0, 0, 0)

    def rung(self):
        try:
            return len(os.read(self.doorbell, 65536)) > 0
        except BlockingIOError:
            return False


class Program:
    def __init__(self, test, machine, slices, task, kind="kernel", n=100, us=100, way="local", preload=True, before=(), command=None,
                 **more):
        self.counter = tempfile.NamedTemporaryFile()
        self.counter.truncate(4096)
        self.numbers = mmap.mmap(self.counter.fileno(), 4096)
        test.addCleanup(self.counter.close)
        environment = dict(os.environ, ALIQUOT_SIM_DIR=machine.dir, LD_LIBRARY_PATH=FOLDER, ALIQUOT_SLICES=slices.base, **more)
        if preload:
            environment["LD_PRELOAD"] = LIBRARY
        self.heard = b""
        if command is None:
            command = [LINKED if way == "linked" else RUN]
        if way in ("library", "library-deepbind"):
            command = [sys.executable, "-c", OPENER, TURN, "8" if way == "library-deepbind" else "0"]
            way = "local"
        self.process = subprocess.Popen([*before, *command, way, self.counter.name, task, kind, str(n), str(us)],
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment)
        test.addCleanup(self.end)

    def line(self, word):
        deadline = time.monotonic() + PATIENCE
        while b"\n" not in self.heard:
            if not select.select([self.process.stdout], [], [], max(0, deadline - time.monotonic()))[0]:
                raise AssertionError("the program does not say %s; %d of %d" % (word, self.taken(), self.tried()))
            words = os.read(self.process.stdout.fileno(), 4096)
            if not words:
                raise AssertionError("the program ended with %s instead of %s" % (self.process.wait(), word))
            self.heard += words
        line, self.heard = self.heard.split(b"\n", 1)
        return line.decode()

    def hears(self, word):
        line = self.line(word)
        if line != word:
            raise AssertionError("%s instead of %s" % (line, word))

    def asks(self, symbol, size, ends):
        self.process.stdin.write(b"%s %d %s\n" % (symbol.encode(), size, ends.encode()))
        self.process.stdin.flush()

    def has_said(self):
        return self.heard != b"" or bool(select.select([self.process.stdout], [], [], 0)[0])

    def go_on(self):
        self.process.stdin.write(b"\n")
        self.process.stdin.flush()

    def taken(self):
        return struct.unpack_from("<Q", self.numbers, 0)[0]

    def tried(self):
        return struct.unpack_from("<Q", self.numbers, 8)[0]

    def ends(self):
        self.go_on()
        self.hears("done")
        if self.process.wait(PATIENCE) != 0:
            raise AssertionError("ended with %d" % self.process.returncode)

    def end(self):
        self.process.kill()
        self.process.wait()
        self.process.stdin.close()
        self.process.stdout.close()


class Turnstile(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.cards = None

    def setUp(self):
        self.machine = Machine(self, SIM, "1xTesla-V100-SXM2-16GB:16160MiB")

    def held(self, slices, program, taken=0):
        """A launch was tried and held, and the page says that the process wants the card."""
        until(lambda: program.tried() == taken + 1 and slices.row()[0] != 0, "a launch that waits")
        self.assertEqual(program.taken(), taken)

    def reaches(self, way, kind="kernel", **more):
        slices = Slice(self, self.machine)
        slices.here()
        program = Program(self, self.machine, slices, "all", kind, n=20, us=100, way=way, **more)
        program.hears("ready")
        self.held(slices, program)
        until(slices.rung, "the doorbell, which comes behind the words")
        slices.open(depth=HOUR)
        program.hears("launched")
        self.assertEqual(program.taken(), 20)
        program.ends()

    # ---- every way to a launch ----

    def test_ways(self):
        for way in ("linked", "local", "default", "next", "dlvsym", "found", "proc1", "proc2", "proc2-ptsz", "proc-of-proc",
                    "library"):
            with self.subTest(way):
                self.reaches(way)

    def test_kinds(self):
        for kind in ("kernel", "ptsz", "ex", "cooperative", "multi", "graph", "old", "grid", "grid-async"):
            for way in ("linked", "local", "proc2"):
                with self.subTest(kind + " " + way):
                    self.reaches(way, kind)

    def test_deepbind_of_the_library_alone(self):
        """RTLD_DEEPBIND for libcuda itself: its functions are found by dlsym() all the same."""
        self.reaches("deepbind")

    def test_deepbind_of_the_asking_library(self):
        """A library that prefers its own symbols to all others, libc's dlsym() among them."""
        self.reaches("library-deepbind")

    # ---- other libraries of libcuda's name ----

    def copy_of_driver(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        return shutil.copy(FOLDER + "/libcuda.so.1", folder.name + "/libcuda.so.2")

    def test_others_of_its_name(self):
        """A file with libcuda's name and nothing else of it, one with its functions but no card,
        and a driver that is never initialised."""
        driver = FOLDER + "/libcuda.so.1"
        for first, cuda in ((BARE, driver), (IDLE, driver), (driver, self.copy_of_driver())):
            for way in ("local", "next", "proc2", "dlvsym"):
                if way == "next" and first != BARE:
                    continue  # the next function is the first library's, and of no use
                with self.subTest(os.path.basename(first) + " " + way):
                    self.reaches(way, TURN_FIRST=first, TURN_CUDA=cuda)

    def test_two_drivers(self):
        """The hooked functions of both are those of the first one that is initialised; the other is never initialised."""
        slices = Slice(self, self.machine)
        environment = dict(os.environ, ALIQUOT_SIM_DIR=self.machine.dir, LD_LIBRARY_PATH=FOLDER, ALIQUOT_SLICES=slices.base,
                           LD_PRELOAD=LIBRARY)
        said = subprocess.run([sys.executable, "-c", TWO, FOLDER + "/libcuda.so.1", self.copy_of_driver()], env=environment, check=True,
                              stdin=subprocess.DEVNULL, capture_output=True, text=True).stdout
        self.assertEqual(said, "0 0 3 0\n")

    # ---- copies and fills ----

    def copies(self, slices):
        """A program that makes one copy for each line. Returns it and the hooked symbols."""
        program = Program(self, self.machine, slices, "", command=[COPY_RUN])
        symbols = []
        while not symbols or symbols[-1] != "ready":
            symbols.append(program.line("a symbol"))
        return program, symbols[:-1]

    def test_copies_are_held(self):
        """What NVIDIA's libcuda does by a kernel, whatever its size, and large copies from the host."""
        slices = Slice(self, self.machine)
        slices.here()
        program, symbols = self.copies(slices)
        self.assertGreater(len(symbols), 70)
        few = 1024  # one row
        for symbol, size, ends in [(symbol, few, ends) for symbol in symbols for ends in ("card", "managed")] + \
                [(symbol, 65536, "host") for symbol in symbols if "HtoD" in symbol or "HtoA" in symbol or "2D" in symbol]:
            if ends == "managed" and re.search("AtoA|AtoH|HtoA", symbol):
                continue  # they have no managed memory
            with self.subTest(symbol, size=size, ends=ends):
                until(lambda: slices.row()[0] == 0, "idle")
                program.asks(symbol, size, ends)
                until(lambda: slices.row()[0] != 0, "a copy that waits")
                self.assertFalse(program.has_said())
                slices.open(depth=HOUR)
                program.hears("done " + symbol)
                slices.close()

    def test_copies_that_are_not_held(self):
        """To the host, and of less than 64 KiB from it."""
        slices = Slice(self, self.machine)
        slices.here()
        program, symbols = self.copies(slices)
        for symbol, size in [(symbol, 65536) for symbol in symbols if "toH" in symbol] + \
                [(symbol, 64512) for symbol in symbols if "HtoD" in symbol or "HtoA" in symbol or "Memcpy2D" in symbol]:
            program.asks(symbol, size, "host")
            program.hears("done " + symbol)
        self.assertEqual(slices.row()[0], 0)

    def test_copies_beside_kernels(self):
        """A kernel may wait for what a copy brings, so the copy passes though the window is closed."""
        slices = Slice(self, self.machine)
        slices.here()
        program, _ = self.copies(slices)
        slices.open(depth=HOUR)
        program.asks("kernel", 600 * 1000 * 1000, "-")  # ends with the program
        program.hears("done kernel")
        slices.close()
        for symbol in ("cuMemcpyHtoDAsync_v2", "cuMemsetD8Async", "cuMemcpyDtoDAsync_v2"):
            program.asks(symbol, 1 << 20, "host")
            program.hears("done " + symbol)
        self.assertNotEqual(slices.row()[0], 0)

    # ---- without a limit ----

    def test_open(self):
        for name, page in (("none", {}), ("open", {"percent": 1, "flags": 1}), ("native", {"percent": 1, "policy": 6})):
            with self.subTest(name):
                slices = Slice(self, self.machine, **page)
                program = Program(self, self.machine, slices, "all", n=1000, us=10)
                program.hears("ready")
                program.hears("launched")
                self.assertEqual(slices.rows(), [])  # nothing was counted
                program.ends()

    def test_limit_that_comes_later(self):
        slices = Slice(self, self.machine)
        program = Program(self, self.machine, slices, "all", n=1 << 30, us=1)
        program.hears("ready")
        until(lambda: program.taken() > 1000, "launches")
        slices.here()
        until(lambda: slices.row()[0] != 0, "a process that waits")
        taken = program.taken()
        self.assertEqual(program.tried(), taken + 1)
        slices.gated.value = 0
        until(lambda: program.taken() > taken + 1000, "launches again")

    # ---- windows ----

    def window(self, slices, program, depth, launches):
        """Opens a window until so many more launches have passed. Returns how many did, and the most that could have."""
        before, begin = program.taken(), now()
        slices.open(depth)
        until(lambda: program.taken() >= before + launches, "launches in a window")
        slices.close()
        # A launch that has been admitted completes; then all wait, and the card is idle.
        until(lambda: slices.row()[3] == slices.number and slices.row()[2] == 0, "drained: %s" % (slices.row(),))
        end, passed = now(), program.taken() - before
        self.assertEqual(program.taken() - before, passed)
        return passed, end - begin

    def test_windows(self):
        """In a window pass the launches that the card can run until its end, and those that may then be in flight."""
        us, depth = 1000, 4 * MSEC
        slices = Slice(self, self.machine)
        slices.here()
        program = Program(self, self.machine, slices, "all", n=1 << 20, us=us)
        program.hears("ready")
        self.held(slices, program)
        self.window(slices, program, depth, 5)  # until their duration is known
        for _ in range(5):
            taken = program.taken()
            passed, nsec = self.window(slices, program, depth, 10)
            self.assertLessEqual(passed * us * 1000, nsec + 2 * us * 1000)
            busy = slices.row()[1]
            self.assertGreater(busy, 0)
            self.held(slices, program, taken + passed)

    def test_busy_is_what_was_measured(self):
        """The sum over all windows is the kernels' own time, whatever was estimated before."""
        us, n = 700, 300
        slices = Slice(self, self.machine)
        slices.here()
        program = Program(self, self.machine, slices, "all", n=n, us=us)
        program.hears("ready")
        self.held(slices, program)
        while program.taken() < n:
            slices.open(4 * MSEC)
            until(lambda: program.taken() == n or slices.row()[2] > 0, "work")
            slices.close()
            until(lambda: program.taken() == n or slices.row()[3] == slices.number, "drained")
        program.hears("launched")
        slices.open()
        until(lambda: slices.row()[0] == 0 and slices.row()[2] == 0, "idle: %s" % (slices.row(),))
        busy = slices.row()[1]
        self.assertGreater(busy, n * us * 1000 * 0.9)
        self.assertLess(busy, n * us * 1000 * 1.1 + 10 * MSEC)
        program.ends()

    def test_depth(self):
        """With a depth of one kernel there is never more than one in flight."""
        slices = Slice(self, self.machine)
        slices.here()
        program = Program(self, self.machine, slices, "all", n=50, us=2000)
        program.hears("ready")
        self.held(slices, program)
        begin = now()
        slices.open(depth=1)
        program.hears("launched")
        # each began after the one before was over
        self.assertGreaterEqual(now() - begin, 48 * 2 * MSEC)
        program.ends()

    def test_end_is_noticed_without_the_application(self):
        slices = Slice(self, self.machine)
        slices.here()
        program = Program(self, self.machine, slices, "all", n=3, us=1500000)  # longer than this test may stand still
        program.hears("ready")
        self.held(slices, program)
        slices.open(depth=HOUR)
        program.hears("launched")
        slices.close()
        while slices.rung():
            pass
        until(lambda: slices.row()[3] == slices.number, "drained: %s" % (slices.row(),))
        self.assertEqual((slices.row()[0], slices.row()[2]), (0, 0))
        self.assertGreaterEqual(slices.row()[1], 100 * MSEC)
        until(slices.rung, "the doorbell, which comes behind the words")
        program.ends()

    def test_window_that_is_not_closed(self):
        slices = Slice(self, self.machine)
        slices.here()
        program = Program(self, self.machine, slices, "all", n=1 << 20, us=1000)
        program.hears("ready")
        self.held(slices, program)
        slices.open(depth=4 * MSEC, nsec=0)
        time.sleep(0.2)  # it must not pass: a late stop would make this test pass, not fail
        self.assertEqual(program.taken(), 0)

    # ---- captures, threads, forks, ends ----

    def test_capture_is_not_held(self):
        slices = Slice(self, self.machine)
        slices.here()
        program = Program(self, self.machine, slices, "capture", "graph", n=20, us=1000)
        program.hears("captured")
        self.held(slices, program)
        slices.open(depth=HOUR)
        program.hears("launched")
        until(lambda: slices.row()[2] == 0 and slices.row()[1] > 0, "idle")
        program.ends()

    def test_beside_a_capture(self):
        slices = Slice(self, self.machine)
        slices.here()
        slices.open(depth=2 * MSEC)
        program = Program(self, self.machine, slices, "beside", n=100, us=500)
        program.hears("ready")
        program.hears("launched")
        self.assertEqual(program.taken(), 100)
        program.ends()

    def test_capture_of_a_stream_with_work(self):
        """The end of the batch is detected at launches into another stream, not by a query that would end the capture."""
        slices = Slice(self, self.machine)
        slices.here()
        slices.open(depth=HOUR)
        program = Program(self, self.machine, slices, "captured", n=30, us=50)
        program.hears("ready")
        program.hears("launched")
        self.assertEqual(program.taken(), 120)
        program.ends()

    def test_64_threads(self):
        for kind in ("kernel", "ptsz", "graph"):
            with self.subTest(kind):
                slices = Slice(self, self.machine)
                slices.here()
                program = Program(self, self.machine, slices, "threads", kind, n=20, us=50)
                program.hears("ready")
                until(lambda: program.tried() == 64, "64 that wait")
                self.assertEqual(program.taken(), 0)
                while program.taken() < 64 * 20:
                    taken = program.taken()
                    slices.open(depth=2 * MSEC)
                    until(lambda: program.taken() == 64 * 20 or program.taken() > taken, "work")
                    slices.close()
                slices.open(depth=HOUR)
                program.hears("launched")
                program.ends()

    def test_fork(self):
        slices = Slice(self, self.machine)
        slices.here()
        slices.open(depth=10 * MSEC)
        program = Program(self, self.machine, slices, "fork", n=20, us=1000)
        program.hears("ready")
        program.hears("launched")
        program.ends()

    def test_contexts_that_end(self):
        slices = Slice(self, self.machine)
        slices.here()
        slices.open(depth=100 * MSEC)
        program = Program(self, self.machine, slices, "destroy", n=50, us=300)
        program.hears("ready")
        program.hears("launched")
        until(lambda: slices.row()[2] == 0 and slices.row()[0] == 0, "idle: %s" % (slices.row(),))
        program.ends()

    def test_what_is_on_the_card_when_a_context_ends(self):
        """Each kernel is charged until the driver has waited for it, whatever was estimated."""
        for task in "leave", "refuse":
            with self.subTest(task):
                slices = Slice(self, self.machine)
                slices.here()
                slices.open(depth=HOUR)
                program = Program(self, self.machine, slices, task, n=10, us=20000)
                program.hears("ready")
                program.hears("launched")
                until(lambda: slices.row()[2] == 0 and slices.row()[0] == 0, "idle: %s" % (slices.row(),))
                self.assertGreater(slices.row()[1], 10 * 20 * MSEC * 0.9)
                program.ends()

    def test_functions_of_the_program_in_the_drivers_thread(self):
        """A host function that does not return must not hide that launches are over; the depth is for one kernel."""
        slices = Slice(self, self.machine)
        slices.here()
        slices.open(depth=1)
        program = Program(self, self.machine, slices, "late", n=50, us=1000, ALIQUOT_SIM_HOST_FUNCTIONS="in-turn")
        program.hears("ready")
        program.hears("launched")
        until(lambda: slices.row()[2] == 0 and slices.row()[0] == 0, "idle: %s" % (slices.row(),))
        program.ends()

    def test_work_that_waits_for_a_launch(self):
        """Work in flight waits for the last launch, so nothing ends. After a hold the launches pass one by one."""
        slices = Slice(self, self.machine)
        slices.here()
        slices.open(depth=HOUR)
        program = Program(self, self.machine, slices, "behind", n=8, us=1000)
        program.hears("ready")
        slices.depth.value = 4 * MSEC
        program.hears("launched")
        program.ends()

    def test_functions_of_the_host_that_want_a_lock(self):
        """All are called with their arguments, also one after the other in one thread, and with a depth of one kernel."""
        for setting in {}, {"ALIQUOT_SIM_HOST_FUNCTIONS": "in-turn"}:
            for way in "local", "proc1", "proc2":
                with self.subTest(way, **setting):
                    slices = Slice(self, self.machine)
                    slices.here()
                    slices.open(depth=1)
                    program = Program(self, self.machine, slices, "locked", way=way, n=320, us=100, **setting)
                    program.hears("ready")
                    program.hears("launched")
                    until(lambda: slices.row()[2] == 0 and slices.row()[0] == 0, "idle: %s" % (slices.row(),))
                    program.ends()

    def test_window_drains_though_a_host_function_waits(self):
        """A host function waits for a launch that is held. The launch passes, and the window drains."""
        slices = Slice(self, self.machine)
        slices.here()
        program = Program(self, self.machine, slices, "locked", n=320, us=1000)
        program.hears("ready")
        while program.taken() < 320:
            taken = program.taken()
            slices.open(depth=4 * MSEC)
            until(lambda: program.taken() >= min(taken + 5, 320), "launches")
            slices.close()
            until(lambda: program.taken() == 320 or (slices.row()[3] == slices.number and slices.row()[2] == 0),
                  "the window is over: %s" % (slices.row(),))
        slices.open(depth=HOUR)
        program.hears("launched")
        program.ends()

    def test_long_kernels_below_a_lock(self):
        """Each window drains, or a launch passes behind a blocked host function."""
        slices = Slice(self, self.machine)
        slices.here()
        program = Program(self, self.machine, slices, "steps", n=12, us=25000)
        program.hears("ready")

        def is_over():
            return slices.row()[3] == slices.number and slices.row()[2] == 0

        def one_window():
            taken = program.taken()
            slices.open(depth=4 * MSEC, nsec=20 * MSEC)
            until(lambda: program.taken() > taken or now() >= slices.closes.value, "a launch")
            slices.close()
            until(lambda: program.taken() == 12 or is_over(), "the window is over: %s" % (slices.row(),))
            return program.taken() == 12

        until(one_window, "all launches")
        slices.open(depth=HOUR)
        program.hears("launched")
        program.ends()

    def test_primary_context_that_others_retain(self):
        slices = Slice(self, self.machine)
        slices.here()
        slices.open(depth=4 * MSEC)
        program = Program(self, self.machine, slices, "retain", n=500, us=50)
        program.hears("ready")
        program.hears("launched")
        until(lambda: slices.row()[2] == 0 and slices.row()[0] == 0, "idle: %s" % (slices.row(),))
        self.assertEqual(slices.row()[4], 8 * 500)
        program.ends()

    def test_kill_in_a_window(self):
        """The next process takes the row over, and begins at zero."""
        slices = Slice(self, self.machine)
        slices.here()
        for _ in range(3):
            program = Program(self, self.machine, slices, "all", n=1 << 20, us=1000)
            program.hears("ready")
            slices.open(depth=4 * MSEC)
            until(lambda: slices.row()[1] > 0, "work")
            program.process.kill()
            program.process.wait()
        slices.close()

    def test_stop_in_a_window(self):
        slices = Slice(self, self.machine)
        slices.here()
        program = Program(self, self.machine, slices, "all", n=1 << 20, us=1000)
        other = Program(self, self.machine, slices, "all", n=200, us=1000)
        for p in (program, other):
            p.hears("ready")
        slices.open(depth=4 * MSEC)
        until(lambda: program.taken() > 10, "launches")
        program.process.send_signal(signal.SIGSTOP)
        other.hears("launched")
        slices.close()
        program.process.send_signal(signal.SIGCONT)
        until(lambda: all(r[3] == slices.number for r in slices.rows() if r[0]), "all drained")
        taken = program.taken()
        slices.open(depth=4 * MSEC)
        until(lambda: program.taken() > taken, "it goes on")
        other.ends()

    # ---- without an arbiter ----

    def shares(self, slices, programs, nsec):
        """The time that they use, by their own rows: at least so long, and until each has used some.
        The time of this clock is no shorter than that between the looks at the rows."""
        until(lambda: sum(1 for r in slices.rows() if r[1] > 0) == len(programs), "all have begun")
        time.sleep(0.3)
        begin, before = now(), [r[1] for r in slices.rows()]
        time.sleep(nsec / 1e9)

        def after():
            found = [r[1] for r in slices.rows()]
            return found if all(b > a for a, b in zip(before, found)) else None
        used = until(after, "each has worked")
        end = now()
        return [(b - a) / (end - begin) for a, b in zip(before, used)]

    def test_duty_cycle(self):
        """Never more than the percentage; whether it is reached depends on the machine's load."""
        for percent, us in ((10, 200), (50, 2000), (30, 50000)):
            with self.subTest(percent):
                slices = Slice(self, self.machine, percent=percent)
                program = Program(self, self.machine, slices, "all", n=1 << 30, us=us)
                program.hears("ready")
                share = self.shares(slices, [program], 2000 * MSEC)[0]
                self.assertLess(share, percent / 100 + 0.04 + 3 * us / 2e6)
                self.assertGreater(share, 0)

    def test_duty_cycle_of_several_processes(self):
        slices = Slice(self, self.machine, percent=40)
        programs = [Program(self, self.machine, slices, "all", n=1 << 30, us=500) for _ in range(3)]
        for program in programs:
            program.hears("ready")
        shares = self.shares(slices, programs, 2000 * MSEC)
        self.assertLess(sum(shares), 0.47, shares)
        self.assertGreater(min(shares), 0, shares)

    def test_the_dead_have_no_share(self):
        """A killed process leaves its row behind; the living one gets the whole percentage again."""
        slices = Slice(self, self.machine, percent=50)
        dead = [Program(self, self.machine, slices, "all", n=1 << 30, us=500) for _ in range(4)]
        for program in dead:
            program.hears("ready")
        until(lambda: sum(1 for r in slices.rows() if r[1] > 0) == 4, "work")
        for program in dead[1:]:
            program.process.kill()
            program.process.wait()
        begin, taken = now(), dead[0].taken()
        # A quarter of the percentage would take 8 s of the card's time for a second of it.
        until(lambda: dead[0].taken() > taken + 2000, "a second of work")
        self.assertGreater(now() - begin, 1500 * MSEC)

    def test_arbiter_goes_and_comes(self):
        slices = Slice(self, self.machine, percent=20)
        slices.here()
        program = Program(self, self.machine, slices, "all", n=1 << 30, us=1000)
        program.hears("ready")
        self.held(slices, program)
        slices.away()
        until(lambda: program.taken() > 50, "launches by its own percentage")
        slices.here()
        until(lambda: slices.row()[3] == slices.number and slices.row()[2] == 0, "held again")
        taken = program.taken()
        slices.open(depth=4 * MSEC)
        until(lambda: program.taken() > taken + 20, "a window")
        slices.close()

    def test_garbage_in_the_rows(self):
        """A process overwrites the counters: its own sums are wrong, but nothing hangs or ends."""
        slices = Slice(self, self.machine, percent=50)
        slices.here()
        program = Program(self, self.machine, slices, "all", n=2000, us=100)
        program.hears("ready")
        with open(slices.path + "/counters", "r+b") as f:
            page = mmap.mmap(f.fileno(), 0)
        for i in range(50):
            for row in range(256):
                work = slice_page.row_at(row) + layout.ROW_WORK
                page[work:work + layout.WORK_SIZE] = os.urandom(layout.WORK_SIZE)
            slices.open(depth=4 * MSEC)
            time.sleep(0.005)
            slices.close()
        slices.open(depth=HOUR)
        program.hears("launched")
        program.ends()


if __name__ == "__main__":
    if os.environ.get("ASAN_OPTIONS"):
        print("skipped: the simulated libraries are sanitized here, and the programs that load them are not")
        sys.exit(77)
    enter_namespace(SIM)
    unittest.main(argv=sys.argv[:1] + sys.argv[10:], verbosity=2)
