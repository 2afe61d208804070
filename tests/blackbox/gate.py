#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""libaliquot.so in processes that ask the simulated driver for memory, by the driver's own calls.

    gate.py LIBRARY SIMULATOR [TEST...]

The programs under test are functions of gate_memory.py and gate_processes.py, with the library preloaded.
"""
import contextlib
import errno
import fcntl
import os
import random
import select
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import time
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "fake"))

import page as layout  # noqa: E402
import slice_page  # noqa: E402
from compiler import compiler  # noqa: E402
from driver_release import DRIVER  # noqa: E402
from gate_lab import LIBRARY, GateBase, Program, alone, in_rows, lock_all, mounted, refusals, rows, used  # noqa: E402
from patience import rounds  # noqa: E402
from rm_client import (  # noqa: E402
    BAD_ARGUMENT, CONTROL, DUP, GROUP, INVALID_DEVICE, IN_USE, LIBC, MIB, NOT_FOUND, NOT_SUPPORTED, NO_MEMORY, NO_PERMISSION, OK, PATIENCE, Client)
import gate_memory  # noqa: F401  its programs are run by name
import gate_processes  # noqa: F401


LEFT_BY = ("fork", "socket", "export", "exec")  # how memory stays behind on a file


class Gate(GateBase):
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

    def check_exports(self, neighbour=None):
        """neighbour: has locked the whole inode, and hides whether an export's file is closed. Then it counts as open."""
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
        self.assertEqual((used(slices), self.sim.held()), ((90 if neighbour else 30) * MIB, 30 * MIB))
        if neighbour:
            lock_all(neighbour, fcntl.F_UNLCK)
        program.go_on()
        self.assertEqual(program.hear(), {"itself": NO_MEMORY})
        self.assertEqual((used(slices), self.sim.held()), (60 * MIB, 60 * MIB))
        program.end()
        self.assertEqual(self.sim.held(), 0)
        self.assert_at_rest(slices)

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

    def check_leaves_exported(self):
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


class Calls(Gate):
    """Depends on the driver's answers, as Exports does: also run as older drivers."""

    def test_doors(self):
        slices = self.sim.slices(100)
        program = self.run_program("doors", slices)
        self.assertEqual(program.hear(), {"over": NO_MEMORY, "ranged": NO_MEMORY, "rights": NO_MEMORY, "heap": NO_MEMORY,
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

    def test_cards(self):
        slices = self.sim.slices(100, 50, None)
        program = self.run_program("cards", slices)
        self.assertEqual(program.hear(), {"over": [NO_MEMORY] * 3, "fits": [OK, OK, NO_MEMORY], "second": [OK, NO_MEMORY, NO_MEMORY],
                                          "totals": [100 * 1024, 50 * 1024, 16160 * 1024]})
        self.assertEqual(program.hear(), {"subdevices": [NO_MEMORY, OK, NO_MEMORY]})
        self.assertEqual((used(slices, 0), used(slices, 1)), (100 * MIB, 44 * MIB))
        self.assertEqual([self.sim.held(i) for i in range(3)], [100 * MIB, 44 * MIB, 0])
        program.end()

    def test_a_device_made_elsewhere(self):
        """Its subdevice is there, and a device has only one: that one tells the card."""
        slices = self.sim.slices(100, 50)
        program = self.run_program("taken_over", slices)
        self.assertEqual(program.hear(), {"over": [NO_MEMORY] * 2, "fits": [OK, OK]})
        self.assertEqual((used(slices, 0), used(slices, 1)), (40 * MIB, 40 * MIB))
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
        program.end()

    def test_schedules(self):
        other = Client(self.sim.dir)
        self.addCleanup(os.close, other.fd)
        foreign = other.allocate(other.root, other.device, GROUP, None)
        program = self.run_program("schedules", self.sim.slices(100))
        program.go_on("%d %d" % (other.root, foreign))
        told = program.hear()
        root = told.pop("root")
        self.assertEqual(told, {"scheduled": OK, "sizes": [BAD_ARGUMENT] * 2})
        self.assertEqual(program.hear(), {
            "slices": [[OK, 1000], [OK, 2048], [OK, 2048], [OK, 2048]],
            "modes": [OK, NOT_SUPPORTED, NOT_SUPPORTED], "graphics": OK, "preempt": OK})
        self.assertEqual(program.hear(), {"own": OK, "foreign": NO_PERMISSION, "no_client": NO_PERMISSION, "many": BAD_ARGUMENT})
        self.assertEqual(program.hear(), {"sizes": [BAD_ARGUMENT] * 6, "preempts": [BAD_ARGUMENT] * 2, "bad": [0x1E] * 3})
        self.assertEqual(self.sim.schedules(other.root), [
            {"handle": foreign, "class": GROUP, "timesliceUs": 1024, "computeMode": 0, "preempts": 0, "scheduled": False, "disabled": False}])
        own = {"timesliceUs": 2048, "computeMode": 2, "preempts": 1, "scheduled": True}
        self.assertEqual([{name: group[name] for name in own} for group in self.sim.schedules(root)], [own])
        program.end()

    def test_unmeasured(self):
        """What cannot be measured is not kept, and what has no memory is not counted."""
        slices, stranger = self.sim.slices(100), Client(self.sim.dir)
        self.addCleanup(os.close, stranger.fd)
        program = self.run_program("unmeasured", slices)
        program.go_on("%d %d" % (stranger.root, stranger.memory(30 * MIB)))
        self.assertEqual(program.hear(), {"plain": OK})
        self.assertEqual(program.hear(), {"statuses": [NO_MEMORY]})
        self.assertEqual((used(slices), self.sim.held()), (0, 30 * MIB))
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
            of_610 = OK if DRIVER.value("UVM_INIT_FLAGS") & 4 else 0x1F
            self.assertEqual(program.hear(), {"initialized": [[0, 0, OK], [0, 0, OK], [0, 3, OK], [0, 8, 0x1F], [0, 4, of_610]],
                                              "bad": [-1, -1], "pageable": [[0, 0], [0, 0]]}, known)
            self.assertEqual(program.hear(), {"no_slice": [[0, NO_MEMORY], [0, NO_MEMORY]]}, known)
            program.end()
        program = self.run_program("hmm", "", UUID2=self.sim.uuid(2).decode()[4:].replace("-", ""))
        self.assertEqual(program.hear()["pageable"], [[0, 1], [0, 0]])
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


class Drivers(Gate):
    def test_newer_drivers(self):
        limit, left, held, none = 100 * MIB, 90 * MIB, 10 * MIB, [0, 0]
        kib, mask = [left >> 10] * 2, [0xFFFFFF00] * 2
        ugpu = [[limit, left, limit // 2, limit // 2, left // 2, left // 2], 0]
        stats = [[1, limit, 0, limit, 0, 0, left, held, 1, held], 0]
        for version, indices, halves, statistics in (
                ("580.142", {60: none}, NOT_SUPPORTED, NOT_SUPPORTED), ("595.71.05", {60: none}, ugpu, NOT_SUPPORTED),
                ("595.99.02", {60: kib, 68: none}, ugpu, NOT_SUPPORTED), ("610.57.04", {60: mask}, ugpu, NOT_SUPPORTED),
                ("615.71.09", {60: none, 68: kib}, ugpu, stats), ("620.70.06", {60: none, 80: kib}, ugpu, stats)):
            with self.subTest(version), contextlib.closing(mounted("1xTesla-V100-SXM2-16GB:16160MiB", version)) as sim:
                program = Program("newer", sim.slices(100), sim, INDICES=" ".join(map(str, indices)))
                try:
                    words = program.hear()
                finally:
                    program.kill()
                self.assertEqual(words.pop("ugpu"), halves)
                self.assertEqual(words.pop("stats"), statistics)
                self.assertEqual(words, {"%#x" % index: value for index, value in indices.items()})


class Exports(Gate):
    def test_exports(self):
        self.check_exports()

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


class Slices(Gate):
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
                    f.seek(layout.VERSION_AT)
                    f.write(b"\7")
            program = self.run_program("hold", slices)
            self.assertEqual(program.hear(), {"status": NO_MEMORY}, damage)
            program.end()

    def test_groups_of_no_good_slice(self):
        for group in (0, MIB):
            slices = self.sim.slices(100, group=group)
            os.unlink(slices + "/0/counters")
            program = self.run_program("groups_of_nothing", slices)
            self.assertEqual(program.hear(), {"statuses": [NO_MEMORY, NO_MEMORY]})
            program.end()

    def test_without_slices(self):
        """Without slices the driver's own answers pass. Slices that are named but cannot be read are not the same as none."""
        for slices, status in (("", OK), (self.sim.dir + "/absent", NO_MEMORY), ("relative", NO_MEMORY), (self.sim.dir + "/nvidiactl", NO_MEMORY),
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


class Processes(Gate):
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

    def test_passes_on(self):
        slices = self.sim.slices(100)
        program = self.run_program("passes_on", slices)
        self.assertEqual(program.hear(), {"over": NO_MEMORY})
        self.assertEqual((used(slices), self.sim.held()), (60 * MIB, 60 * MIB))
        program.go_on()
        self.assertEqual(program.hear(), {"closed": OK})
        program.end()
        self.assert_at_rest(slices)

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


class Leaves(Gate):
    def test_leaves(self):
        self.check_leaves(*LEFT_BY)

    def test_leaves_what_was_exported(self):
        """The file of the export is closed at the end, while another file still has it."""
        self.check_leaves("exec-own", "fork-own", "fork-duplicate", "fork-import", "fork-shared")

    def test_leaves_on_files_open_for_one_thing(self):
        self.check_leaves("read", "write")

    def test_leaves_exported(self):
        self.check_leaves_exported()


class Neighbours(Gate):
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
        self.check_leaves(*LEFT_BY)
        self.check_leaves_exported()
        self.check_exports(neighbour)

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


class Crowds(Gate):
    def test_generations(self):
        slices = self.sim.slices(100)
        program = self.run_program("generations", slices)
        self.assertEqual(program.hear(), {"generations": OK})
        self.assertEqual((used(slices), self.sim.held()), (100 * MIB, 100 * MIB))
        program.go_on()

    def test_more_processes_than_rows(self):
        n = rounds(257 + 43, 2000)
        says = self.file_of_lines()
        slices = self.sim.slices(4000, log=says)
        program = self.run_program("askers", slices, ASKERS=str(n), SAYS=says)
        self.assertEqual(program.hear(), {"asked": [[4000 * 1024, 4000 * 1024]]})
        self.assertEqual(rows(slices), layout.N_ROWS // 2)  # the others are for processes that allocate
        program.go_on()
        self.assertEqual(program.hear(), {"got": layout.N_ROWS, "refused": n - layout.N_ROWS})
        self.assertEqual((used(slices), self.sim.held()), (layout.N_ROWS * MIB, layout.N_ROWS * MIB))
        with open(says, encoding="utf-8") as f:
            said = f.read().splitlines()
        self.assertEqual(said, ["aliquot: memory of gpu0 refused: the slice of ns/pod/main has rows for 256 processes, "
                                "and all are taken"] * (n - layout.N_ROWS))
        with open(slices + "/0/counters", "rb") as f:
            self.assertEqual(struct.unpack_from("<Q", f.read(), layout.ROWLESS)[0], n - layout.N_ROWS)
        program.go_on()
        self.assertEqual(program.hear(), {"then": OK})
        self.assertEqual(program.hear(), {"codes": [0]})
        self.assertEqual(program.end(), 0)

    def test_user_changed_in_place(self):
        with open("/proc/self/uid_map", encoding="ascii") as f:
            if os.getuid() != 0 or int(f.read().split()[2]) < 34:
                self.skipTest("there is no other user here")
        slices = self.sim.slices(100)
        for path, mode in ((self.sim.base, 0o755), (slices, 0o755), (slices + "/0/counters", 0o666)):
            os.chmod(path, mode)
        program = self.run_program("changed_user", slices)
        for _ in range(2):
            self.assertEqual(program.hear(), {"auxv": False, "fits": OK, "over": NO_MEMORY})
            self.assertEqual(program.hear(), {"code": 0})

    def test_standard_error_that_takes_nothing(self):
        for slices, environment in ((self.sim.slices(100), {"ALIQUOT_LOG": "2"}), (self.sim.slices(100, flags=layout.FLAG_SAY), {})):
            program = self.run_program("loud", slices, **environment)
            self.assertEqual(program.hear(), {"full": NO_MEMORY, "gone": NO_MEMORY, "closed": NO_MEMORY})

    def file_of_lines(self):
        path = self.sim.base + "/says"
        with open(path, "w", encoding="utf-8"):
            pass
        return path

    def test_refusals_are_said(self):
        """Once for a process, in one write, and nowhere but where standard error is a log."""
        says, how = self.file_of_lines(), "pipe pipe file both exec"
        said = "aliquot: 100 MiB refused: this container's slice of gpu0 is 100 MiB, 20 in use (aliyun.com/gpu-mem: 2)\n"
        page = {"flags": layout.FLAG_SAY, "asked": b"aliyun.com/gpu-mem: 2"}
        for more, log, lines in (({}, "", [said, said, "", said, ""]), ({"log": says}, "1", [said, said, said, said, ""]), ({"log": says}, "0", [""] * 5),
                                 ({"flags": 0}, "1", [""] * 5)):
            program = self.run_program("speaks", self.sim.slices(100, **{**page, **more}), HOW=how, TRIED="100 100 200", SAYS=says, ALIQUOT_LOG=log)
            self.assertEqual((more, program.hear()), (more, {"said": lines}))
            self.assertEqual(program.end(), 0)

    def test_what_is_said_of_a_refusal(self):
        """At most 200 bytes, whatever the page says; what was asked is left out where the slice has another size since."""
        slices = self.sim.slices(100, flags=layout.FLAG_SAY, asked=b"a" * layout.ASKED_SIZE)
        with open(slices + "/0/limits", "r+b") as f:
            f.seek(layout.CARD)
            f.write(b"\xff" * 4)
            f.seek(layout.LIMIT)
            f.write(struct.pack("<Q", 100 * MIB))
        program = self.run_program("speaks", slices, HOW="pipe", TRIED="200 100")
        (line,) = program.hear()["said"]
        self.assertEqual(line, "aliquot: 200 MiB refused: this container's slice of gpu4294967295 is 100 MiB, 20 in use (%s)\n" % ("a" * layout.ASKED_SIZE))
        self.assertLessEqual(len(line) + 3 * (len(str(1 << 44)) - 3), 200)  # with the largest of amounts
        with open(slices + "/0/limits", "r+b") as f:
            f.seek(layout.LIMIT)
            f.write(struct.pack("<Q", 101 * MIB))
        program = self.run_program("speaks", slices, HOW="pipe", TRIED="200 100")
        self.assertEqual(program.hear()["said"], ["aliquot: 200 MiB refused: this container's slice of gpu4294967295 is 101 MiB, 20 in use\n"])

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


class Managed(Gate):
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
            self.assertEqual((how, refusals(slices)), (how, [managed, plain].count(NO_MEMORY) + [managed, plain].count(-errno.ENOMEM)))
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
            source = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../fake/interposer-behind.c")
            command = compiler() + ["-w", "-O2", "-shared", "-fPIC", *flags, source, "-o", behind, "-ldl"]
            if not compiler():
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
        check({"both": OK, "again": OK, "twice": INVALID_DEVICE, "none": NO_MEMORY}, 40, 40)
        check({"unregistered": OK}, 40, 40)
        check({"once_more": OK}, 0, 40)
        check({"held": OK, "no_room": NO_MEMORY}, 70, 40)
        check({"unmapped": OK}, 80, 10)
        program.end()


if __name__ == "__main__":
    alone()
    unittest.main(argv=[sys.argv[0]] + sys.argv[3:], verbosity=2)
