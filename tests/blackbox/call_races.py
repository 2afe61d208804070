#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""libaliquot.so when arguments change between the gate's look and the driver's, and with calls that
it does not know.

    call_races.py LIBRARY SIMULATOR [TEST...]
"""
import ctypes
import errno
import os
import random
import struct
import sys
import threading
import time
import unittest

from gate_lab import GateBase, alone, used
from gate_memory import Stopped
from rm_client import (
    ALLOC, DEVICE, FREE, GROUP, HEAP, LIBC, LOCAL, MIB, NO_MEMORY, OK, PATIENCE, SUBDEVICE, XFER, Client, address_of, inside,
    memory_params, ok, packed, raw_ioctl, say, status_of, wait_for_word)

INVALID_ARGUMENT = 0x1F
D = 0xCAFE0080  # a device's handle, first of one card and then of another


def request(number, size):
    return 0xC0000000 | size << 16 | ord("F") << 8 | number


def make_device(c, card):
    c.allocate(c.root, c.root, DEVICE, packed("<IIIIIIQQQII", card, *[0] * 10), handle=D)


def heap_free(c, handle, flags):
    b = bytearray(184)
    struct.pack_into("<III", b, 0, c.root, c.device, 3)
    struct.pack_into("<III", b, 40, 1, handle, flags)
    buffer = ctypes.create_string_buffer(bytes(b), 184)
    assert raw_ioctl(c.fd, HEAP, 184, address_of(buffer)) == 0
    ok(struct.unpack_from("<I", buffer.raw, 20)[0])


@inside
def parent_swapped():
    """The device's handle becomes another card's before the driver sees the object below it."""
    c, how = Client(), os.environ["HOW"]
    make_device(c, 0)
    c.memory(MIB, parent=D)  # so that the gate knows the card

    def swap():
        c.free(D)
        make_device(c, 1)

    if how == "heap":
        c.device = D
        status = Stopped(request(HEAP, 184)).meanwhile(lambda: c.heap(500 * MIB), swap)
    elif how == "group":
        status = Stopped(request(ALLOC, 32)).meanwhile(lambda: c.allocate(c.root, D, GROUP, ctypes.create_string_buffer(32)), swap)
    elif how == "subdevice":
        made = []
        status = Stopped(request(ALLOC, 32)).meanwhile(lambda: made.append(c.allocate(c.root, D, SUBDEVICE, packed("<I", 0))), swap)
        if status is not None:
            status = status_of(c.memory, 500 * MIB, parent=made[0])
    else:
        status = Stopped(request(ALLOC, 32)).meanwhile(lambda: c.memory(500 * MIB, parent=D), swap)
    say(status=status)
    wait_for_word()
    say(over=status_of(c.memory, 101 * MIB, parent=D), fits=status_of(c.memory, 100 * MIB, parent=D))
    wait_for_word()


@inside
def device_swapped():
    """The same while the gate asks which card a new device belongs to: the answer is the second
    one's, or the first one's."""
    c = Client()

    def swap():
        c.free(D)
        make_device(c, 1)

    status = Stopped(request(FREE, 16)).meanwhile(lambda: make_device(c, 0), swap)
    say(status=status)
    wait_for_word()
    say(over=[status_of(c.memory, 101 * MIB, parent=D) for _ in range(3)], fits=status_of(c.memory, 100 * MIB, parent=D))
    wait_for_word()


@inside
def leaving():
    """Below an object that another thread is about to free no memory is granted: its handle may
    become another object's."""
    c, statuses = Client(), []
    make_device(c, 0)
    below = c.allocate(c.root, D, SUBDEVICE, packed("<I", 0))

    def ask():
        statuses.extend(status_of(c.memory, MIB, parent=parent) for parent in (D, below, c.device))

    # the driver refuses this one
    stopped = Stopped(request(HEAP, 184)).meanwhile(lambda: heap_free(c, D, 0), ask)
    ask()
    Stopped(request(FREE, 16)).meanwhile(lambda: c.free(D), ask)
    say(stopped=stopped, statuses=statuses)
    wait_for_word()


@inside
def client_swapped():
    """The file of a new client becomes another one during the call. A child keeps what was made."""
    fds = [os.open(os.environ["SIM_DIR"] + "/nvidiactl", os.O_RDWR | os.O_CLOEXEC) for _ in range(2)]
    fd, got = os.dup(fds[0]), []
    c = Client.__new__(Client)
    c.fd, c.directory = fd, os.environ["SIM_DIR"]
    status = Stopped(request(ALLOC, 32)).meanwhile(lambda: got.append(c.allocate(0, 0, 0x41)), lambda: os.dup2(fds[1], fd))
    if status == OK:
        c.fd, c.root = fds[0], got[0]
        if status_of(c.allocate, c.root, c.root, DEVICE, packed("<IIIIIIQQQII", 0, *[0] * 10)) != OK:
            c.fd = fds[1]  # the client belongs to the new file of that number
        c.device = c.allocate(c.root, c.root, DEVICE, packed("<IIIIIIQQQII", 0, *[0] * 10))
        c.memory(90 * MIB)
        os.close(fd)
        os.close(fds[0] if c.fd == fds[1] else fds[1])
        if os.fork() == 0:
            wait_for_word()
            os._exit(0)
    say(status=status)
    os.kill(os.getpid(), 9)


@inside
def client_without_descriptors():
    import resource
    Client()
    fd = os.open(os.environ["SIM_DIR"] + "/nvidiactl", os.O_RDWR | os.O_CLOEXEC)
    c = Client.__new__(Client)
    c.fd = fd
    resource.setrlimit(resource.RLIMIT_NOFILE, (3, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))
    say(status=status_of(c.allocate, 0, 0, 0x41))
    wait_for_word()


@inside
def unreadable_registration():
    """A card is registered with uvm by parameters that become readable after the gate has looked.
    """
    uvm = os.open(os.environ["SIM_DIR"] + "/nvidia-uvm", os.O_RDWR | os.O_CLOEXEC)
    uuid = bytes.fromhex(os.environ["UUID"])
    params = ctypes.create_string_buffer(16)
    LIBC.ioctl(uvm, 0x30000001, address_of(params))
    at, got = LIBC.mmap(0, 4096, 0, 0x22, -1, 0), []

    def swap():
        got.append("asked")
        assert LIBC.mprotect(ctypes.c_void_p(at), 4096, 3) == 0
        ctypes.memmove(at, struct.pack("<16sIiiIII", uuid, 0, 0, -1, 0, 0, 0), 40)

    for number in (37, 38):
        assert LIBC.mprotect(ctypes.c_void_p(at), 4096, 0) == 0
        got.append(Stopped(number).meanwhile(lambda n=number: got.append(-ctypes.get_errno() if LIBC.ioctl(uvm, n, at) < 0 else 0), swap))
    say(got=got)
    wait_for_word()


@inside
def unknown_calls():
    """Calls of a size, or functions of the heap, that drivers before 535 have."""
    c = Client()
    params, answers = memory_params(500 * MIB), {}
    before_535 = packed("<IIIIQQII", c.root, c.device, 0, LOCAL, address_of(params), 0, 0, 0)

    def ask(name, number, buffer, at=None):
        asked = []

        def send():
            ctypes.set_errno(0)
            r = raw_ioctl(c.fd, number, len(buffer), address_of(buffer))
            answers[name] = [r, struct.unpack_from("<I", buffer.raw, at)[0] if at else None]

        if Stopped(request(number, len(buffer))).meanwhile(send, lambda: asked.append(1)) is None:
            answers["skip"] = True
        else:
            answers[name].append(bool(asked))

    ask("alloc", ALLOC, before_535)
    ask("xfer", XFER, packed("<IIQ", ALLOC, len(before_535), address_of(before_535)))
    for number in (0x27, 0x28, FREE, 0x2A, 0x34, HEAP):
        ask("size of %#x" % number, number, ctypes.create_string_buffer(64))
    for function in (1, 4, 21, 0xFFFFFFFF, 11, 15, 16, 18, 19, 20, 27):
        b = bytearray(184)
        struct.pack_into("<III", b, 0, c.root, c.device, function)
        struct.pack_into("<II", b, 40, 1, 0)
        ask("function %d" % function, HEAP, ctypes.create_string_buffer(bytes(b), 184), 20)
    say(**answers)
    terminal = os.openpty()[1]
    params = ctypes.create_string_buffer(64)
    say(terminal=[LIBC.ioctl(terminal, 0x802C542A, address_of(params)), os.isatty(terminal)])
    wait_for_word()


@inside
def asker_ends():
    """A refused process asks the driver, through one of its clients, which other clients live;
    meanwhile a thread ends that client."""
    keeper, share, made = Client(), Client(), []
    keeper.memory(90 * MIB)
    over = threading.Event()

    def end_clients():
        while not over.is_set():
            if not made:
                time.sleep(0)
                continue
            client, after = made.pop()
            until = time.perf_counter() + after
            while time.perf_counter() < until:
                pass
            client.free(client.root)

    thread = threading.Thread(target=end_clients)
    thread.start()
    refused = 0
    for _ in range(1000):
        client = Client(share=share)
        made.append((client, random.random() * 3e-4))
        for _ in range(5):
            status_of(client.memory, 60 * MIB)
        refused += status_of(keeper.memory, 90 * MIB) == NO_MEMORY
    over.set()
    thread.join()
    say(refused=refused)
    wait_for_word()


class SeatsTest(GateBase):
    def asked(self, program, key="status"):
        status = program.hear()[key]
        if status is None:
            self.skipTest("threads cannot be stopped here")
        return status

    def sums(self, slices, cards=2):
        return [(used(slices, card), self.sim.held(card)) for card in range(cards)]

    def test_parent_swapped(self):
        for how in ("memory", "heap", "group", "subdevice"):
            with self.subTest(how=how):
                slices = self.sim.slices(1000, 100, group=2 * MIB)
                program = self.run_program("parent_swapped", slices, HOW=how)
                self.assertEqual(self.asked(program), NO_MEMORY)
                self.assertEqual(self.sums(slices), [(0, 0), (0, 0)])
                program.go_on()
                self.assertEqual(program.hear(), {"over": NO_MEMORY, "fits": OK})
                self.assertEqual(self.sums(slices), [(0, 0), (100 * MIB, 100 * MIB)])
                program.end()

    def test_device_swapped(self):
        slices = self.sim.slices(1000, 100)
        program = self.run_program("device_swapped", slices)
        self.asked(program)
        program.go_on()
        self.assertEqual(program.hear(), {"over": [NO_MEMORY] * 3, "fits": OK})
        self.assertEqual(self.sums(slices), [(0, 0), (100 * MIB, 100 * MIB)])
        program.end()

    def test_leaving(self):
        slices = self.sim.slices(100)
        program = self.run_program("leaving", slices)
        words = program.hear()
        if words["stopped"] is None:
            self.skipTest("threads cannot be stopped here")
        self.assertEqual(words["statuses"], [NO_MEMORY, NO_MEMORY, OK, OK, OK, OK, NO_MEMORY, NO_MEMORY, OK])
        self.assertEqual(self.sums(slices, 1), [(3 * MIB, 3 * MIB)])
        program.end()

    def test_client_swapped(self):
        slices = self.sim.slices(100)
        program = self.run_program("client_swapped", slices)
        self.assertEqual(self.asked(program), OK)
        program.process.wait(PATIENCE)
        self.assertEqual(self.sim.held(), 90 * MIB)  # the child holds the file
        other = self.run_program("hold", slices, HOLD="90")
        self.assertEqual(other.hear(), {"status": NO_MEMORY})
        other.end()
        program.close()

    def test_client_without_descriptors(self):
        program = self.run_program("client_without_descriptors", self.sim.slices(100))
        self.assertEqual(program.hear(), {"status": NO_MEMORY})
        program.end()

    def test_asker_ends(self):
        slices = self.sim.slices(100)
        program = self.run_program("asker_ends", slices)
        self.assertEqual(program.hear(), {"refused": 1000})
        self.assertEqual((used(slices), self.sim.held()), (90 * MIB, 90 * MIB))
        program.end()
        self.assert_at_rest(slices)

    def test_unreadable_registration(self):
        uuid = self.sim.uuid(1).decode()[4:].rstrip("\0").replace("-", "")
        program = self.run_program("unreadable_registration", self.sim.slices(1000, 100), UUID=uuid)
        got = program.hear()["got"]
        if None in got:
            self.skipTest("threads cannot be stopped here")
        self.assertEqual(got, [-errno.EFAULT, OK] * 2)
        program.end()

    def test_unknown_calls(self):
        program = self.run_program("unknown_calls", self.sim.slices(100))
        words = program.hear()
        if "skip" in words:
            self.skipTest("threads cannot be stopped here")
        for name, answer in words.items():
            function = int(name.split()[1]) if name.startswith("function") else None
            expected = [-errno.EINVAL, None, False] if function is None else [0, INVALID_ARGUMENT, function in (11, 15, 16, 18, 19, 20, 27)]
            self.assertEqual((name, answer), (name, expected))
        self.assertEqual(len(words), 19)
        self.assertEqual(program.hear(), {"terminal": [0, True]})
        program.end()


if __name__ == "__main__":
    alone()
    unittest.main(argv=[sys.argv[0]] + sys.argv[3:], verbosity=2)
