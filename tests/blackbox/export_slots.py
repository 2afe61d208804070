#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""libaliquot.so when a slot of an export file is exported to again: an import may then return
another process's memory.

    export_slots.py LIBRARY SIMULATOR [TEST...]
"""
import contextlib
import ctypes
import errno
import os
import random
import socket
import sys
import threading
import time
import unittest

from gate_lab import GateBase, alone, used
from gate_memory import Stopped
from patience import rounds
from rm_client import (
    CONTROL, LIBC, MIB, NO_MEMORY, OK, Client, Refused, address_of, end_child, give_descriptor, in_child, inside, packed,
    say, status_of, take_descriptor, wait_for_word)

ROUNDS = 1000
CONTROL_REQUEST = 0xC0000000 | 32 << 16 | ord("F") << 8 | CONTROL


def size(name):
    return int(os.environ[name]) * MIB


@inside
def first():
    """Exports memory, and imports the slot after the other process has exported to it."""
    c = Client()
    a, f = c.memory(size("MINE")), c.empty_file()
    c.export_many([a], f)
    give_descriptor(f)
    say(given=True)
    wait_for_word()
    say(imported=status_of(c.import_many, f, 1))
    wait_for_word()
    os.close(f)
    c.free(a)
    say(freed=True)
    wait_for_word()
    time.sleep(0.02)  # after a refusal the gate does not look for ended processes again at once
    say(fits=status_of(c.memory, size("FITS")), over=status_of(c.memory, 10 * MIB))
    wait_for_word()


@inside
def second():
    """Exports its own memory into the other's slot, and leaves nothing else behind."""
    f, c = take_descriptor(), Client()
    b = c.memory(size("OTHER"))
    say(replaced=status_of(c.export_many, [b], f))
    c.free(b)
    os.close(f)
    wait_for_word()


@inside
def in_the_middle():
    """Another thread replaces it by memory of the same size between the gate's look and the
    driver's."""
    c = Client()
    a, b, f = c.memory(40 * MIB), c.memory(40 * MIB), c.empty_file()
    c.export_many([a], f)

    def swap():
        c.export_many([b], f)
        c.free(b)

    status = Stopped(CONTROL_REQUEST).meanwhile(lambda: c.import_many(f, 1), swap)
    os.close(f)
    say(status=status)
    wait_for_word()


def without_files(function):
    """In a thread that cannot open files, so that /proc cannot be read. None: no such thread is
    possible here."""
    number = {"x86_64": (317, 257), "aarch64": (277, 56)}.get(os.uname().machine)
    code = [(0x20, 0, 0, 0), (0x15, 0, 1, number[1]), (6, 0, 0, 0x50000 | errno.EACCES), (6, 0, 0, 0x7FFF0000)] if number else []
    lines = packed("<" + "HBBI" * len(code), *[x for line in code for x in line])
    program, result = packed("<HxxxxxxQ", len(code), address_of(lines)), []

    def go():
        if number and LIBC.prctl(38, 1, 0, 0, 0) == 0 and LIBC.syscall(number[0], 1, 0, ctypes.c_void_p(address_of(program))) == 0:
            result.append(status_of(function))

    run([go])
    return result[0] if result else None


@inside
def no_proc():
    c = Client()
    a, f = c.memory(MIB), c.empty_file()
    say(status=[without_files(lambda: c.export_many([a], f)), status_of(c.export_many, [a], f)])
    wait_for_word()


@inside
def mixed():
    """Memory of the machine beside the card's does not tell which process it belongs to."""
    c = Client()
    a, system, f = c.memory(40 * MIB), c.heap(4 * MIB, pci=True)[0], c.empty_file()
    c.export_many([a], f)
    c.export_many([system], f, 1)
    say(types=c.import_many(f, 2)[1])
    wait_for_word()


@inside
def visitor():
    """Exports memory into another slot, imports it, and ends."""
    f, c = take_descriptor(), Client()
    b = c.memory(10 * MIB)
    c.export_many([b], f, 1)
    c.export_many([0], f, 1)
    say(gone=True)


@inside
def no_descriptor():
    """The driver gets a file of the gate's own, so that no process can change what is behind it."""
    c = Client()
    f, many, files = c.empty_file(), c.empty_file(), []
    c.export_many([c.memory(MIB)], many)
    try:
        while True:
            files.append(os.dup(0))
    except OSError:
        pass
    say(status=[status_of(c.export, c.memory(MIB), f), status_of(c.import_, many)])
    os.close(files[0])
    os.close(files[1])  # another process for looking at the locks of the file, too
    say(status=[status_of(c.export, c.memory(MIB), f), status_of(c.import_, many)])
    wait_for_word()


@inside
def child():
    """The same within a family of processes, which has one file."""
    c = Client()
    a, f = c.memory(50 * MIB), c.empty_file()
    c.export_many([a], f)

    def replace():
        d = Client()
        d.export_many([d.memory(50 * MIB)], f)

    end_child(in_child(replace))
    say(imported=status_of(c.import_many, f, 1))
    wait_for_word()


@inside
def itself():
    """A process that replaces its own export knows what an import returns."""
    c = Client()
    a, b, f = c.memory(40 * MIB), c.memory(50 * MIB), c.empty_file()
    c.export_many([a], f)
    c.export_many([b], f)
    c.free(a)
    say(bad=status_of(c.export_many, [0x5550, 0x5551], f))
    handles, _ = c.import_many(f, 1)
    c.free(b)
    say(imported=True)
    wait_for_word()
    os.close(f)
    say(closed=True)
    wait_for_word()
    c.free(handles[0])
    say(all=status_of(c.memory, 100 * MIB))  # files' memory is looked for when there is no room
    wait_for_word()


def run(functions):
    all_of_them = [threading.Thread(target=f) for f in functions]
    for t in all_of_them:
        t.start()
    for t in all_of_them:
        t.join()


@inside
def exporting():
    """A process replaces what others import, all of the same size, so that sums do not show it."""
    c, d, kept, stop = Client(), Client(), [], threading.Event()
    f = c.empty_file()
    c.export_many([c.memory(MIB)], f)

    def replace():
        for _ in range(int(os.environ["ROUNDS"])):
            try:
                m = c.memory(MIB)
                c.export_many([m], f)
                c.free(m)
            except Refused:
                pass
        stop.set()

    def import_():
        while not stop.is_set() and len(kept) < 60:
            try:
                kept.append(d.import_many(f, 1)[0][0])
            except Refused:
                time.sleep(0.001)

    run([replace, import_, import_])
    say(kept=len(kept))
    wait_for_word()
    for handle in kept:
        d.free(handle)
    os.close(f)
    say(closed=status_of(c.memory, 50 * MIB))
    wait_for_word()


@inside
def closing():
    """Threads export to files and import from them while others close these files."""
    c, pool, files = Client(), [], []

    def some(things, taken):
        at = random.randrange(len(things))
        return things.pop(at) if taken else things[at]

    def step():
        k = random.random()
        if k < 0.4:
            pool.append(c.memory(random.choice([1, 2, 4]) * MIB))
        elif k < 0.5:
            c.free(some(pool, True))
        elif k < 0.6:
            pool.extend(h for h in c.import_many(some(files, False), 1)[0] if h)
        elif k < 0.7:
            os.close(some(files, True))
        else:
            handle = some(pool, True)
            try:
                fd = c.empty_file() if k < 0.85 else some(files, False)
                c.export_many([handle], fd)
                if k < 0.85:
                    files.append(fd)
            finally:
                pool.append(handle)

    def steps():
        for _ in range(ROUNDS // 2):
            with contextlib.suppress(Refused, OSError, IndexError, ValueError):
                step()

    run([steps] * 6)
    say(done=True)
    wait_for_word()
    for handle in pool:
        status_of(c.free, handle)
    os.closerange(3, 4096)  # including files of refused exports
    say(all=status_of(Client().memory, 100 * MIB))
    wait_for_word()


class Places(GateBase):
    def sums(self, slices):
        """MiB: what is counted, and what the driver has allocated."""
        return used(slices) // MIB, self.sim.held() // MIB


class Slots(Places):
    def two(self, mine, other, imported, fits):
        slices = self.sim.slices(100)
        ours, theirs = socket.socketpair()
        with ours, theirs:
            a = self.run_program("first", slices, fds=[theirs.fileno()], SOCKET=str(theirs.fileno()), MINE=str(mine), FITS=str(fits))
            self.assertEqual(a.hear(), {"given": True})
            fd = socket.recv_fds(ours, 1, 1)[1][0]
            socket.send_fds(ours, [b"x"], [fd])
            os.close(fd)
            b = self.run_program("second", slices, fds=[theirs.fileno()], SOCKET=str(theirs.fileno()), OTHER=str(other))
            self.assertEqual(b.hear(), {"replaced": OK})
            a.go_on()
            self.assertEqual(a.hear(), {"imported": imported})
            b.end()
            counted, held = self.sums(slices)
            self.assertLessEqual(held, counted)
            a.go_on()
            self.assertEqual(a.hear(), {"freed": True})
            a.go_on()
            self.assertEqual(a.hear(), {"fits": OK, "over": NO_MEMORY})
            self.assertEqual(self.sums(slices), (100, 100))
            a.end()
        self.assertEqual(self.sim.held(), 0)
        self.assert_at_rest(slices)

    def test_another_process(self):
        self.two(10, 30, OK, 70)
        self.two(30, 10, OK, 90)
        self.two(50, 50, NO_MEMORY, 100)

    def test_another_process_was_there(self):
        """From then on the memory behind that file is unknown. It is counted twice, never not at
        all."""
        slices = self.sim.slices(100)
        ours, theirs = socket.socketpair()
        with ours, theirs:
            a = self.run_program("first", slices, fds=[theirs.fileno()], SOCKET=str(theirs.fileno()), MINE="30", FITS="70")
            self.assertEqual(a.hear(), {"given": True})
            fd = socket.recv_fds(ours, 1, 1)[1][0]
            socket.send_fds(ours, [b"x"], [fd])
            os.close(fd)
            b = self.run_program("visitor", slices, fds=[theirs.fileno()], SOCKET=str(theirs.fileno()))
            self.assertEqual(b.hear(), {"gone": True})
            b.end()
            a.go_on()
            self.assertEqual(a.hear(), {"imported": OK})
            counted, held = self.sums(slices)
            self.assertEqual(held, 30)
            self.assertGreaterEqual(counted, 60)
            a.kill()
        self.assert_at_rest(slices)

    def test_without_a_descriptor(self):
        slices = self.sim.slices(100)
        program = self.run_program("no_descriptor", slices)
        self.assertEqual(program.hear(), {"status": [NO_MEMORY, NO_MEMORY]})
        self.assertEqual(program.hear(), {"status": [OK, OK]})
        program.end()
        self.assert_at_rest(slices)

    def test_a_child(self):
        slices = self.sim.slices(100)
        program = self.run_program("child", slices)
        self.assertEqual(program.hear(), {"imported": NO_MEMORY})
        program.end()
        self.assert_at_rest(slices)

    def test_in_the_middle(self):
        slices = self.sim.slices(200)
        program = self.run_program("in_the_middle", slices)
        if program.hear()["status"] is None:
            self.skipTest("threads cannot be stopped here")
        counted, held = self.sums(slices)
        self.assertEqual(held, 80)
        self.assertGreaterEqual(counted, held)
        program.go_on()
        program.end()
        self.assert_at_rest(slices)

    def test_without_proc(self):
        """A process that cannot look gets no memory."""
        slices = self.sim.slices(100)
        program = self.run_program("no_proc", slices)
        without, with_it = program.hear()["status"]
        self.assertIn(without, (NO_MEMORY, None))
        self.assertEqual(with_it, OK)
        program.end()
        self.assert_at_rest(slices)

    def test_beside_memory_of_the_machine(self):
        slices = self.sim.slices(100)
        program = self.run_program("mixed", slices)
        self.assertEqual(program.hear(), {"types": [1, 2]})
        self.assertEqual(self.sums(slices), (40, 40))
        program.end()
        self.assert_at_rest(slices)

    def test_itself(self):
        slices = self.sim.slices(100)
        program = self.run_program("itself", slices)
        self.assertNotEqual(program.hear()["bad"], OK)
        self.assertEqual(program.hear(), {"imported": True})
        self.assertEqual(self.sums(slices), (50, 50))
        program.go_on()
        self.assertEqual(program.hear(), {"closed": True})
        self.assertEqual(self.sums(slices), (50, 50))
        program.go_on()
        self.assertEqual(program.hear(), {"all": OK})
        self.assertEqual(self.sums(slices), (100, 100))
        program.end()
        self.assert_at_rest(slices)


class Threads(Places):
    def test_threads(self):
        for _ in range(rounds(2, 5)):
            slices = self.sim.slices(100)
            program = self.run_program("exporting", slices, ROUNDS=str(ROUNDS))
            self.assertGreater(program.hear()["kept"], 0)
            counted, held = self.sums(slices)
            self.assertLessEqual(held, counted)
            program.go_on()
            self.assertEqual(program.hear(), {"closed": OK})
            program.end()
            self.assert_at_rest(slices)

    def test_closing_threads(self):
        for _ in range(rounds(2, 5)):
            slices = self.sim.slices(100)
            program = self.run_program("closing", slices)
            self.assertEqual(program.hear(), {"done": True})
            counted, held = self.sums(slices)
            self.assertLessEqual(held, counted)
            program.go_on()
            self.assertEqual(program.hear(), {"all": OK})
            program.end()


if __name__ == "__main__":
    alone()
    unittest.main(argv=[sys.argv[0]] + sys.argv[3:], verbosity=2)
