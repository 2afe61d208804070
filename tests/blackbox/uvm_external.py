#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""libaliquot.so and memory objects that uvm maps, which are held until the mapping ends.

    uvm_external.py LIBRARY SIMULATOR [TEST...]
"""
import contextlib
import ctypes
import errno
import fcntl
import os
import random
import resource
import select
import signal
import socket
import struct
import subprocess
import sys
import threading
import time
import unittest

from compiler import compiler
from driver_release import DRIVER
from gate_lab import LIBRARY, GateBase, alone, used
from gate_memory import Stopped
from rm_client import (
    BAD, BAD_ARGUMENT, INVALID_DEVICE, LIBC, MIB, NO_MEMORY, NOT_FOUND, OK, PATIENCE, SYSTEM, Client, address_of, end_child, give_descriptor, in_child,
    inside, ok, packed, say, status_of, take_descriptor, wait_for_word)

INITIALIZE, REGISTER, UNREGISTER, ADD_SPACE, REMOVE_SPACE = 0x30000001, 37, 38, 25, 26
MAP, FREE_RANGE, UNMAP, POOL, CREATE, SPARSE, P2P = 33, 34, 66, 68, 73, 74, 78
INVALID_ADDRESS, ILLEGAL = 0x1E, 0x16
AT = 0x700000000000
TAIL = struct.Struct("<QiIII")  # of a mapping: what follows the list of cards


def uuid(card):
    return bytes.fromhex(os.environ["UUID%d" % card])


class Uvm:
    """An open uvm file with its cards, and calls as uvm_ioctl.h of the driver has them."""

    def __init__(self, cards=(0,), fd=None):
        self.gpus = DRIVER.value("UVM_GPUS_MAX")
        self.has_length = DRIVER.size("UvmFree") == 24
        self.fd = os.open(os.environ["SIM_DIR"] + "/nvidia-uvm", os.O_RDWR | os.O_CLOEXEC) if fd is None else fd
        if fd is None:
            self.call(INITIALIZE, ctypes.create_string_buffer(16), 8)
        for card in cards:
            self.call(REGISTER, packed("<16sIiiIII", uuid(card), 0, 0, -1, 0, 0, 0), 36)
            self.call(ADD_SPACE, packed("<16siIII", uuid(card), -1, 0, 0, 0), 28)

    def ioctl(self, request, address):
        if LIBC.ioctl(self.fd, request, address) < 0:
            raise OSError(ctypes.get_errno(), "uvm")

    def call(self, request, params, status_at):
        self.ioctl(request, address_of(params))
        ok(struct.unpack_from("<I", params.raw, status_at)[0])

    def create(self, base, length):
        self.call(CREATE, packed("<QQQ", base, length, 0), 16)

    def mapping(self, base, length, client, handle, cards=(0,), offset=0):
        tail = 24 + 36 * self.gpus
        params = ctypes.create_string_buffer(tail + TAIL.size)
        struct.pack_into("<QQQ", params, 0, base, length, offset)
        for i, card in enumerate(cards):
            struct.pack_into("<16s", params, 24 + 36 * i, uuid(card))
        TAIL.pack_into(params, tail, len(cards), client.fd, client.root, handle, 0)
        return params

    def map(self, *arguments, **options):
        params = self.mapping(*arguments, **options)
        self.call(MAP, params, len(params) - 4)

    def unmap(self, base, length, card=0, request=UNMAP):
        self.call(request, packed("<QQ16sQ", base, length, uuid(card), 0), 32)

    def free(self, base, length):
        self.call(FREE_RANGE, packed("<QQQ", base, length, 0) if self.has_length else packed("<QQ", base, 0), 16 if self.has_length else 8)

    def p2p(self, base, length, client, handle, card=0, offset=0):
        self.call(P2P, packed("<QQQ16siIII", base, length, offset, uuid(card), client.fd, client.root, handle, 0), 52)

    def pool_params(self, base, length):
        """And where the status is."""
        params = ctypes.create_string_buffer(16 + 36 * self.gpus + 16)
        struct.pack_into("<QQ", params, 0, base, length)
        return params, len(params) - 8

    def pool(self, base, length):
        self.call(POOL, *self.pool_params(base, length))

    def remove(self, request, card=0):
        self.call(request, packed("<16sI", uuid(card), 0), 16)


def fits(c, n):
    """Whether so many MiB fit; they are freed again."""
    try:
        c.free(c.memory(n * MIB))
        return True
    except Exception:  # noqa: B902
        return False


def room(c):
    """How many MiB fit."""
    return next((n for n in range(int(os.environ["ROOM"]), 0, -1) if fits(c, n)), 0)


def mapped(uvm, c, n, base, handle=0, release=True, **options):
    """Allocates n MiB, maps and releases them."""
    a = c.memory(n * MIB, handle=handle)
    uvm.map(base, n * MIB, c, a, **options)
    if release:
        c.free(a)
    return a


@inside
def late():
    """The usual order of expandable segments: the object is released before it is unmapped."""
    c, uvm = Client(), Uvm()
    uvm.create(AT, 1024 * MIB)
    mapped(uvm, c, 60, AT)
    say(over=status_of(c.memory, 60 * MIB), room=room(c))
    wait_for_word()
    uvm.unmap(AT, 60 * MIB)
    say(fits=fits(c, 60), room=room(c))
    a = mapped(uvm, c, 60, AT, release=False)
    uvm.unmap(AT, 60 * MIB)
    say(held=room(c))
    c.free(a)
    say(free=room(c))
    wait_for_word()


@inside
def parts():
    """A part keeps the whole; a mapping over another ends it; ranges and cards end what they have."""
    c, uvm = Client(), Uvm()
    uvm.create(AT, 64 * MIB)
    uvm.create(AT + 64 * MIB, 64 * MIB)
    mapped(uvm, c, 16, AT)
    uvm.unmap(AT + 4 * MIB, MIB)
    uvm.unmap(AT, 4 * MIB)
    steps = [room(c)]
    uvm.unmap(AT + 5 * MIB, 11 * MIB)
    steps.append(room(c))
    mapped(uvm, c, 16, AT)
    mapped(uvm, c, 8, AT + 4 * MIB)
    mapped(uvm, c, 8, AT + 64 * MIB)
    steps.append(room(c))
    uvm.unmap(AT, 16 * MIB, request=SPARSE)
    steps.append(room(c))
    steps.append(status_of(uvm.free, AT + 4 * MIB, 60 * MIB))
    mapped(uvm, c, 10, AT)
    uvm.free(AT, 64 * MIB)
    steps.append(room(c))
    uvm.free(AT + 64 * MIB, 64 * MIB)
    steps.append(room(c))
    say(steps=steps)
    wait_for_word()


@inside
def twice():
    """Two mappings of one object, on one file and on two, and an object that is mapped by a part."""
    c, uvm, other = Client(), Uvm(), Uvm()
    uvm.create(AT, 256 * MIB)
    other.create(AT, 256 * MIB)
    a = c.memory(40 * MIB)
    uvm.map(AT, 40 * MIB, c, a)
    uvm.map(AT + 64 * MIB, 2 * MIB, c, a, offset=38 * MIB)
    other.map(AT, 40 * MIB, c, a)
    steps = [room(c)]
    c.free(a)
    steps.append(room(c))
    uvm.unmap(AT, 40 * MIB)
    steps.append(room(c))
    uvm.unmap(AT + 64 * MIB, 2 * MIB)
    steps.append(room(c))  # the other file still has it, at the same addresses
    say(steps=steps, held=True)
    wait_for_word()
    other.unmap(AT, 40 * MIB)
    say(last=room(c))
    wait_for_word()


@inside
def ends():
    """Mappings that end with the address space of the card, the card, and the file."""
    c, uvm, steps = Client(), Uvm(), []
    uvm.create(AT, 64 * MIB)
    mapped(uvm, c, 20, AT)
    uvm.remove(REMOVE_SPACE)
    steps.append(room(c))
    uvm.call(ADD_SPACE, packed("<16siIII", uuid(0), -1, 0, 0, 0), 28)
    mapped(uvm, c, 20, AT)
    steps.append(room(c))
    uvm.remove(UNREGISTER)
    steps.append(room(c))
    uvm.call(REGISTER, packed("<16sIiiIII", uuid(0), 0, 0, -1, 0, 0, 0), 36)
    uvm.call(ADD_SPACE, packed("<16siIII", uuid(0), -1, 0, 0, 0), 28)
    mapped(uvm, c, 20, AT)
    other = os.dup(uvm.fd)
    os.close(uvm.fd)
    steps.append(room(c))
    os.close(other)
    steps.append(room(c))
    say(steps=steps)
    wait_for_word()


@inside
def chrooted():
    """Files of the program's own in place of /proc, which list no locks."""
    c, uvm, root = Client(), Uvm(), os.environ["FALSE_ROOT"]
    uvm.create(AT, 64 * MIB)
    mapped(uvm, c, 60, AT)
    os.makedirs(root + "/proc")
    with open(root + "/proc/locks", "w", encoding="ascii"):
        pass
    kept = os.dup(uvm.fd)
    os.close(uvm.fd)
    os.chroot(root)
    say(room=room(c), kept=kept > 0)
    wait_for_word()


def hide_locks():
    """In place of the kernel's list of locks another file of the kernel, in which no lock is listed."""
    return LIBC.unshare(0x20000) == 0 and LIBC.mount(b"/proc/uptime", b"/proc/locks", None, 0x1000, None) == 0


@inside
def unlisted():
    """A file that is still open, by a descriptor that the library has not seen."""
    c, uvm = Client(), Uvm()
    uvm.create(AT, 64 * MIB)
    mapped(uvm, c, 60, AT)
    kept = os.dup(uvm.fd)
    os.close(uvm.fd)
    if not hide_locks():
        say(skip=True)
        return
    steps = [room(c)]
    os.close(kept)
    say(steps=steps + [room(c)])
    wait_for_word()


@inside
def parent_of_holder():
    """A child keeps one of its parent's two files."""
    c, uvm = Client(), Uvm()
    uvm.create(AT, 64 * MIB)
    a = c.memory(60 * MIB)
    uvm.map(AT, 60 * MIB, c, a)
    pid = os.fork()
    if pid == 0:
        os.close(uvm.fd if os.environ["KEPT"] == "nvidiactl" else c.fd)
        signal.alarm(PATIENCE)
        signal.pause()
        os._exit(1)
    say(child=pid)
    wait_for_word()


@inside
def asks_unlisted():
    if not hide_locks():
        say(skip=True)
        return
    c = Client()
    say(room=room(c))
    wait_for_word()
    deadline = time.monotonic() + PATIENCE  # ended processes are looked for at most once in a millisecond
    while not fits(c, 100) and time.monotonic() < deadline:
        time.sleep(0.01)
    say(room=room(c))
    wait_for_word()


@inside
def p2p():
    c, uvm = Client(), Uvm()
    a = c.memory(30 * MIB)
    uvm.p2p(AT, 2 * MIB, c, a)
    c.free(a)
    steps = [room(c)]
    uvm.free(AT, 2 * MIB)
    steps.append(room(c))
    a = c.memory(30 * MIB)
    uvm.p2p(AT, 2 * MIB, c, a)
    c.free(a)
    uvm.remove(REMOVE_SPACE)
    steps.append(room(c))
    say(steps=steps)
    wait_for_word()


@inside
def two_cards():
    """An object of each card; memory of the machine on both."""
    c, d, uvm = Client(), Client(card=1), Uvm((0, 1))
    uvm.create(AT, 256 * MIB)
    mapped(uvm, c, 30, AT)
    mapped(uvm, d, 50, AT, cards=(1,))
    steps = [room(c), room(d)]
    uvm.unmap(AT, 50 * MIB, card=1)
    steps += [room(c), room(d)]
    system = c.allocate(c.root, c.device, SYSTEM, ctypes.create_string_buffer(128))
    uvm.map(AT + 128 * MIB, MIB, c, system, cards=(0, 1))
    a = c.memory(10 * MIB)
    steps += [status_of(uvm.map, AT, 10 * MIB, c, a, cards=(1,)), status_of(uvm.map, AT, 10 * MIB, c, a, cards=(2,))]
    c.free(a)
    uvm.free(AT, 256 * MIB)
    say(steps=steps + [room(c), room(d)])
    wait_for_word()


@inside
def strangers():
    """Objects that this process has not charged: of a client that a child of fork has made, and none."""
    c, uvm = Client(), Uvm()
    uvm.create(AT, 256 * MIB)
    made = []

    def child():
        own, mine = Client(), Uvm()
        mine.create(AT, 256 * MIB)
        made.append(status_of(mine.map, AT, 30 * MIB, c, a))
        os.write(pipe[1], struct.pack("<IIII", made[0], room(own), own.root, own.memory(10 * MIB)))

    pipe = os.pipe()
    a = c.memory(30 * MIB)
    ended = in_child(child)
    status, left, root, handle = struct.unpack("<IIII", os.read(pipe[0], 16))
    stranger = Client(share=c)
    stranger.root = root
    say(child=[status, left], foreign=status_of(uvm.map, AT, 10 * MIB, stranger, handle), nothing=status_of(uvm.map, AT, MIB, c, 0xCAFE0099))
    wait_for_word()
    end_child(ended)
    c.free(a)
    say(done=room(c))
    wait_for_word()


@inside
def odd():
    """Parameters that cannot be read, and that the driver refuses."""
    c, uvm, bare = Client(), Uvm(), Uvm(cards=())
    uvm.create(AT, 64 * MIB)
    a = c.memory(10 * MIB)
    whole = uvm.mapping(AT, MIB, c, a)
    page = LIBC.mmap(0, 4 * 4096, 3, 0x22, -1, 0)
    LIBC.mprotect(ctypes.c_void_p(page + 3 * 4096), 4096, 0)
    cut = page + 3 * 4096 - len(whole) + 8
    ctypes.memmove(cut, whole, len(whole) - 8)
    bad = [status_of(uvm.ioctl, request, at) for at in (BAD, cut) for request in (MAP, UNMAP, FREE_RANGE, CREATE, POOL, P2P, REMOVE_SPACE)
           if at != cut or request == MAP]
    many = uvm.mapping(AT, MIB, c, a)
    struct.pack_into("<Q", many, len(many) - 24, 1 << 40)
    say(bad=bad, refused=[status_of(uvm.map, AT, 0, c, a), status_of(uvm.map, AT - MIB, MIB, c, a), status_of(uvm.map, AT, MIB, c, a, cards=()),
                          status_of(uvm.call, MAP, many, len(many) - 4), status_of(uvm.map, (1 << 64) - 4096, MIB, c, a),
                          status_of(bare.map, AT, MIB, c, a), status_of(uvm.unmap, AT, 5), status_of(uvm.free, AT + MIB, MIB),
                          status_of(Uvm((), os.open(os.environ["SIM_DIR"] + "/nvidia-uvm", os.O_RDWR)).map, AT, MIB, c, a)],
        other=LIBC.ioctl(0, MAP, page) and ctypes.get_errno())
    c.free(a)
    say(room=room(c))
    wait_for_word()


@inside
def remapped():
    """The handle names another object when the driver looks: a larger one, none, or one of the card in place of one without bytes."""
    c, uvm, handle = Client(), Uvm(), 0xCAFE0001
    uvm.create(AT, 256 * MIB)
    mapped(uvm, c, 1, AT)  # the first call asks the driver how long its lists are
    got = []
    for how in ("larger", "freed", "from nothing", "busy"):
        if how in ("from nothing", "busy"):
            c.allocate(c.root, c.device, SYSTEM, ctypes.create_string_buffer(128), handle=handle)
        else:
            c.memory(MIB, handle=handle)

        def swap(how=how):
            if how == "busy":
                c.free(c.memory(MIB))
                return
            c.free(handle)
            if how != "freed":
                c.memory(30 * MIB, handle=handle)

        status = Stopped(MAP).meanwhile(lambda: uvm.map(AT, MIB, c, handle), swap)
        if status is None:
            say(skip=True)
            return
        status_of(c.free, handle)
        got.append([how, status, room(c)])
        uvm.unmap(AT, MIB)
        got.append([how, room(c)])
    say(got=got)
    wait_for_word()


@inside
def changed():
    """The parameters, or the file, are others when the driver looks."""
    c, uvm, other = Client(), Uvm(), Uvm()
    for file in (uvm, other):
        file.create(AT, 256 * MIB)
    mapped(uvm, c, 1, AT)
    a, b = c.memory(MIB), c.memory(30 * MIB)
    params = uvm.mapping(AT, MIB, c, a)

    def swap():
        ctypes.memmove(params, uvm.mapping(AT, MIB, c, b), len(params))

    status = Stopped(MAP).meanwhile(lambda: uvm.call(MAP, params, len(params) - 4), swap)
    if status is None:
        say(skip=True)
        return
    c.free(a)
    c.free(b)
    steps = [status, room(c)]
    uvm.unmap(AT, MIB)
    steps.append(room(c))
    mapped(uvm, c, 30, AT)
    number = os.dup(other.fd)
    unmap = packed("<QQ16sQ", AT, 30 * MIB, uuid(0), 0)
    Stopped(UNMAP).meanwhile(lambda: LIBC.ioctl(number, UNMAP, address_of(unmap)), lambda: os.dup2(uvm.fd, number))
    steps.append(room(c))
    say(steps=steps)
    wait_for_word()


@inside
def threads():
    """Threads map, release and unmap, each at its own addresses and at the others'."""
    uvm, turns = Uvm(), int(os.environ["TURNS"])
    uvm.create(AT, 1024 * MIB)
    c, failed = Client(), []

    def work(seed):
        dice, mine = random.Random(seed), Client()
        try:
            for _ in range(turns):
                base = AT + dice.randrange(16) * 4 * MIB
                a = status_of(lambda: mapped(uvm, mine, dice.randint(1, 4), base))
                if a not in (OK, NO_MEMORY):
                    failed.append(a)
                uvm.unmap(AT + dice.randrange(16) * 4 * MIB, dice.randint(1, 4) * MIB)
        except Exception as error:  # noqa: B902
            failed.append(repr(error))

    workers = [threading.Thread(target=work, args=[i]) for i in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    say(failed=failed)
    wait_for_word()
    uvm.free(AT, 1024 * MIB)
    say(room=room(c))
    wait_for_word()


@inside
def many():
    """More mappings than a first table holds."""
    c, uvm = Client(), Uvm()
    uvm.create(AT, 1024 * MIB)
    for i in range(200):
        mapped(uvm, c, 1, AT + i * MIB)
    steps = [room(c)]
    for i in range(100):
        uvm.unmap(AT + 2 * i * MIB, MIB)
    steps.append(room(c))
    uvm.free(AT, 1024 * MIB)
    say(steps=steps + [room(c)])
    wait_for_word()


@inside
def keeper():
    """A uvm file that outlives the process that mapped there."""
    c, uvm = Client(), Uvm()
    uvm.create(AT, 256 * MIB)
    mapped(uvm, c, 40, AT)
    give_descriptor(uvm.fd)
    say(mapped=True)
    wait_for_word()


@inside
def came():
    """A uvm file that came by a socket, without UVM_INITIALIZE here."""
    c, uvm = Client(), Uvm((), take_descriptor())
    mapped(uvm, c, 40, AT)
    say(room=room(c))
    wait_for_word()


@inside
def forked():
    """A child has the file; what it maps is counted in its row, and as long as the file is open."""
    c, uvm = Client(), Uvm()
    uvm.create(AT, 256 * MIB)
    mapped(uvm, c, 20, AT)

    def child():
        mapped(uvm, Client(), 20, AT + 64 * MIB)

    ended = in_child(child)
    say(both=room(c))
    wait_for_word()
    end_child(ended)
    say(child=room(c))
    wait_for_word()
    uvm.free(AT, 256 * MIB)
    say(parent=room(c))
    wait_for_word()


@inside
def dies():
    """Ends in the middle of a call."""
    c, uvm = Client(), Uvm()
    uvm.create(AT, 256 * MIB)
    a = c.memory(40 * MIB)
    say(ready=True)
    while True:
        uvm.map(AT, 40 * MIB, c, a)
        uvm.unmap(AT, 40 * MIB)


@inside
def freed_by_child():
    """A child has the file. It frees no range or pool, of which the parent has notes."""
    c, uvm = Client(), Uvm()
    uvm.create(AT, 64 * MIB)
    uvm.pool(AT + 256 * MIB, 90 * MIB)

    def child():
        uvm.create(AT + 128 * MIB, 4 * MIB)
        freed = [status_of(uvm.free, AT, 64 * MIB), status_of(uvm.free, AT + 256 * MIB, 90 * MIB), status_of(uvm.free, AT + 128 * MIB, 4 * MIB)]
        os.write(pipe[1], struct.pack("<iii", *freed))

    pipe = os.pipe()
    end_child(in_child(child))
    steps = list(struct.unpack("<iii", os.read(pipe[0], 12)))
    mapped(uvm, c, 60, AT)
    steps.append(room(c))
    uvm.free(AT, 64 * MIB)
    uvm.free(AT + 128 * MIB, 4 * MIB)
    say(steps=steps + [room(c)])
    wait_for_word()


def map_at(uvm, base, length, offset=None):
    """mmap of the uvm file, as the driver wants it. 0 or a negative errno."""
    p = LIBC.mmap(base, length, 3, 0x11, uvm.fd, base if offset is None else offset)
    return -ctypes.get_errno() if p == (1 << 64) - 1 else p - base


def unmap_at(base, length):
    LIBC.munmap(ctypes.c_void_p(base), length)


def map_uncharged(c, uvm, base, length, **options):
    before = room(c)
    return [map_at(uvm, base, length, **options), before - room(c)]


@inside
def pools():
    """The mapping of a semaphore pool is no managed memory, and nothing else is like it."""
    c, uvm, other, steps = Client(), Uvm(), Uvm(), {}
    uvm.pool(AT, 2 * MIB)
    steps["pool"] = map_uncharged(c, uvm, AT, 2 * MIB)
    unmap_at(AT, 2 * MIB)
    steps["again"] = map_uncharged(c, uvm, AT, 2 * MIB)
    unmap_at(AT, 2 * MIB)
    steps["longer"] = map_uncharged(c, uvm, AT, 4 * MIB)
    unmap_at(AT, 4 * MIB)
    steps["part"] = map_uncharged(c, uvm, AT + MIB, MIB)
    unmap_at(AT + MIB, MIB)
    steps["other file"] = map_uncharged(c, other, AT, 2 * MIB)
    steps["over managed"] = map_uncharged(c, uvm, AT, 2 * MIB)
    unmap_at(AT, 2 * MIB)
    uvm.free(AT, 2 * MIB)
    steps["freed"] = map_uncharged(c, uvm, AT, 2 * MIB)
    unmap_at(AT, 2 * MIB)
    steps["nothing"] = map_uncharged(c, uvm, AT, 102 * MIB)
    if DRIVER.value("UVM_ALLOC_P2P_CMD"):
        uvm.p2p(AT, 2 * MIB, c, c.memory(10 * MIB))
        steps["p2p"] = map_uncharged(c, uvm, AT, 2 * MIB)
        unmap_at(AT, 2 * MIB)
    say(steps=steps)
    wait_for_word()


@inside
def pool_races():
    """The pool is freed, or the parameters name other addresses, when the driver looks."""
    c, uvm = Client(), Uvm()
    uvm.pool(AT, 2 * MIB)
    where, status_at = uvm.pool_params(AT + 16 * MIB, 2 * MIB)
    elsewhere, _ = uvm.pool_params(AT + 32 * MIB, 2 * MIB)
    status = Stopped(POOL).meanwhile(lambda: uvm.call(POOL, where, status_at), lambda: ctypes.memmove(where, elsewhere, 16))
    if status is None:
        say(skip=True)
        return
    steps = [status, map_uncharged(c, uvm, AT + 16 * MIB, 2 * MIB), map_uncharged(c, uvm, AT + 32 * MIB, 2 * MIB)]
    unmap_at(AT + 16 * MIB, 2 * MIB)
    unmap_at(AT + 32 * MIB, 2 * MIB)
    # While a thread frees the pool, another one maps it: it is no pool any more.
    steps.append(Stopped(FREE_RANGE).meanwhile(lambda: uvm.free(AT, 2 * MIB), lambda: steps.append(map_uncharged(c, uvm, AT, 2 * MIB))))
    unmap_at(AT, 2 * MIB)
    # A pool that is made after UVM_FREE began is gone when that ends.
    steps.append(Stopped(FREE_RANGE).meanwhile(lambda: uvm.free(AT, 2 * MIB), lambda: uvm.pool(AT, 2 * MIB)))
    say(steps=steps + [map_uncharged(c, uvm, AT, 2 * MIB)])
    wait_for_word()


def lock_all(fd, kind):
    """An OFD lock of the whole file."""
    fcntl.fcntl(fd, 37, struct.pack("hhqqi", kind, 0, 0, 0, 0) + bytes(4))


@inside
def locked():
    """Another open file has a lock of the whole inode while ranges and pools are freed, or none can be had."""
    c, uvm = Client(), Uvm()
    other = os.open(os.environ["SIM_DIR"] + "/nvidia-uvm", os.O_RDWR)
    if os.environ["FIRST"]:
        lock_all(other, fcntl.F_RDLCK)
    uvm.pool(AT, 90 * MIB)
    uvm.create(AT + 256 * MIB, 64 * MIB)
    with contextlib.suppress(BlockingIOError):
        lock_all(other, fcntl.F_RDLCK)
    uvm.free(AT, 90 * MIB)
    uvm.free(AT + 256 * MIB, 64 * MIB)
    uvm.create(AT + 256 * MIB, 4 * MIB)
    uvm.create(AT + 260 * MIB, 90 * MIB)
    lock_all(other, fcntl.F_UNLCK)
    steps = [map_uncharged(c, uvm, AT, 90 * MIB)]
    unmap_at(AT, 90 * MIB)
    mapped(uvm, c, 60, AT + 260 * MIB)
    uvm.free(AT + 256 * MIB, 4 * MIB)
    say(steps=steps + [room(c)])
    wait_for_word()


@inside
def descriptorless():
    """Without a free descriptor removals reach the driver, and are not noted. A range is not freed: the note of a pool would stay."""
    c, uvm, calls = Client(), Uvm((0, 1)), []
    uvm.create(AT, 64 * MIB)
    a = mapped(uvm, c, 60, AT, release=False)
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (uvm.fd + 1, limits[1]))
    for call in ((uvm.unmap, AT, 60 * MIB), (uvm.free, AT, 64 * MIB), (uvm.map, AT, 60 * MIB, c, a), (uvm.create, AT + 64 * MIB, MIB),
                 (uvm.remove, REMOVE_SPACE), (uvm.remove, UNREGISTER, 1), (c.free, a)):
        calls.append(status_of(*call))
    resource.setrlimit(resource.RLIMIT_NOFILE, limits)
    say(calls=calls)
    wait_for_word()
    rooms = [room(c)]
    uvm.free(AT, 64 * MIB)
    say(rooms=rooms + [room(c)])
    wait_for_word()


@inside
def keyless():
    """With more open files than the table has nothing is noted of the last; what it maps is checked all the same."""
    c, files, handle = Client(), [Uvm() for _ in range(17)], 0xCAFE0001
    for uvm in files:
        uvm.create(AT, 256 * MIB)
    mapped(files[0], c, 1, AT)
    c.memory(MIB, handle=handle)

    def swap():
        c.free(handle)
        c.memory(60 * MIB, handle=handle)

    status = Stopped(MAP).meanwhile(lambda: files[-1].map(AT, 60 * MIB, c, handle), swap)
    if status is None:
        say(skip=True)
        return
    c.free(handle)
    say(status=status, room=room(c))
    wait_for_word()


@inside
def many_files():
    """More files than the table has, one after the other."""
    c = Client()
    for _ in range(40):
        uvm = Uvm()
        uvm.create(AT, 64 * MIB)
        mapped(uvm, c, 2, AT)
        os.close(uvm.fd)
    say(steps=[room(c)])
    wait_for_word()


@inside
def initialized():
    uvm = Uvm()
    give_descriptor(uvm.fd)
    say(given=True)
    wait_for_word()


@inside
def followed():
    """The first calls on a file that came by a socket."""
    c, uvm = Client(), Uvm((), take_descriptor())
    uvm.create(AT, 64 * MIB)
    mapped(uvm, c, 20, AT)
    steps = [room(c)]
    uvm.unmap(AT, 20 * MIB)
    say(steps=steps + [room(c)])
    wait_for_word()


@inside
def asks_room():
    c = Client()
    say(room=room(c))
    wait_for_word()


class ExternalTest(GateBase):
    def start(self, name, slices, room=100, **environment):
        uuids = {"UUID%d" % i: self.sim.uuid(i).decode()[4:].rstrip("\0").replace("-", "") for i in range(3)}
        return self.run_program(name, slices, ROOM=str(room), **uuids, **environment)

    def start_mapping(self, name, **environment):
        """With a library behind that maps memory in place of the simulated file."""
        behind = self.sim.base + "/uvm-mmap.so"
        if not compiler():
            self.skipTest("no C compiler")
        source = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../fake/uvm-mmap.c")
        subprocess.run([*compiler(), "-w", "-O2", "-shared", "-fPIC", source, "-o", behind], check=True)
        return self.start(name, self.sim.slices(100), LD_PRELOAD=LIBRARY + " " + behind, **environment)

    def hear_or_skip(self, program, why):
        words = program.hear()
        if "skip" in words:
            self.skipTest(why)
        return words

    def check_steps(self, name, steps, limits=(100,)):
        slices = self.sim.slices(*limits)
        program = self.start(name, slices, limits[0])
        self.assertEqual(program.hear(), {"steps": steps})
        program.end()
        self.assert_at_rest(slices)

    def test_late(self):
        slices = self.sim.slices(100)
        program = self.start("late", slices)
        self.assertEqual(program.hear(), {"over": NO_MEMORY, "room": 40})
        self.assertEqual(used(slices), 60 * MIB)
        self.assertEqual(self.sim.held(), 60 * MIB)
        program.go_on()
        self.assertEqual(program.hear(), {"fits": True, "room": 100})
        self.assertEqual(program.hear(), {"held": 40})
        self.assertEqual(program.hear(), {"free": 100})
        self.assertEqual(used(slices), 0)
        program.end()
        self.assert_at_rest(slices)

    def test_parts(self):
        self.check_steps("parts", [84, 100, 68, 92, INVALID_ADDRESS, 92, 100])

    def test_twice(self):
        slices = self.sim.slices(100)
        program = self.start("twice", slices)
        self.assertEqual(program.hear(), {"steps": [60, 60, 60, 60], "held": True})
        self.assertEqual(self.sim.held(), 40 * MIB)
        program.go_on()
        self.assertEqual(program.hear(), {"last": 100})
        program.end()

    def test_ends(self):
        self.check_steps("ends", [100, 80, 100, 80, 100])

    @unittest.skipUnless(os.geteuid() == 0, "chroot")
    def test_chrooted(self):
        slices = self.sim.slices(100)
        program = self.start("chrooted", slices, FALSE_ROOT=self.sim.base + "/false-root")
        self.assertEqual(program.hear(), {"room": 40, "kept": True})
        program.end()
        self.assert_at_rest(slices)

    def test_unlisted(self):
        slices = self.sim.slices(100)
        program = self.start("unlisted", slices)
        words = self.hear_or_skip(program, "/proc/locks cannot be hidden here")
        self.assertEqual(words, {"steps": [40, 100]})
        program.end()
        self.assert_at_rest(slices)

    def test_row_unlisted(self):
        """What a dead process left on either inode, asked by a process that has only nvidiactl."""
        for kept in ("nvidiactl", "nvidia-uvm"):
            with self.subTest(kept):
                slices = self.sim.slices(100)
                holder = self.start("parent_of_holder", slices, KEPT=kept)
                pidfd = os.pidfd_open(holder.hear()["child"])
                self.addCleanup(os.close, pidfd)
                holder.kill()
                asker = self.start("asks_unlisted", slices)
                words = self.hear_or_skip(asker, "/proc/locks cannot be hidden here")
                self.assertEqual(words, {"room": 40})
                signal.pidfd_send_signal(pidfd, signal.SIGKILL)
                self.assertTrue(select.select([pidfd], [], [], PATIENCE)[0])
                asker.go_on()
                self.assertEqual(asker.hear(), {"room": 100})
                asker.end()

    @unittest.skipUnless(DRIVER.value("UVM_ALLOC_P2P_CMD"), "this driver has no device P2P")
    def test_p2p(self):
        self.check_steps("p2p", [70, 100, 100])

    def test_cards(self):
        self.check_steps("two_cards", [70, 50, 70, 100, INVALID_DEVICE, INVALID_DEVICE, 100, 100], (100, 100))

    def test_strangers(self):
        slices = self.sim.slices(100)
        program = self.start("strangers", slices)
        # 30 of the parent, 30 more that the child maps, and 10
        self.assertEqual(program.hear(), {"child": [OK, 40], "foreign": NO_MEMORY, "nothing": NO_MEMORY})
        program.go_on()
        self.assertEqual(program.hear(), {"done": 100})
        program.end()
        self.assert_at_rest(slices)

    def test_odd(self):
        slices = self.sim.slices(100)
        program = self.start("odd", slices)
        words = program.hear()
        self.assertEqual(words, {"bad": [-errno.EFAULT] * 8, "other": errno.ENOTTY, "refused": [
            INVALID_ADDRESS, INVALID_ADDRESS, BAD_ARGUMENT, BAD_ARGUMENT, INVALID_ADDRESS, INVALID_ADDRESS, INVALID_ADDRESS,
            INVALID_ADDRESS, ILLEGAL]})
        self.assertEqual(program.hear(), {"room": 100})
        program.end()

    def test_swapped(self):
        slices = self.sim.slices(100)
        program = self.start("remapped", slices)
        words = self.hear_or_skip(program, "threads cannot be stopped here")
        self.assertEqual(words["got"], [["larger", OK, 70], ["larger", 100], ["freed", NOT_FOUND, 100], ["freed", 100],
                                        ["from nothing", OK, 70], ["from nothing", 100], ["busy", OK, 100], ["busy", 100]])
        program.end()
        self.assert_at_rest(slices)

    def test_changed(self):
        slices = self.sim.slices(100)
        program = self.start("changed", slices)
        words = self.hear_or_skip(program, "threads cannot be stopped here")
        self.assertEqual(words, {"steps": [OK, 98, 100, 70]})
        program.end()

    def test_threads(self):
        slices = self.sim.slices(100)
        program = self.start("threads", slices, TURNS="200")
        self.assertEqual(program.hear(), {"failed": []})
        self.assertLessEqual(self.sim.held(), used(slices))
        program.go_on()
        self.assertEqual(program.hear(), {"room": 100})
        program.end()
        self.assert_at_rest(slices)

    def test_pools(self):
        program = self.start_mapping("pools")
        words = program.hear()
        p2p = {"p2p": [0, 0]} if DRIVER.value("UVM_ALLOC_P2P_CMD") else {}
        self.assertEqual(words, {"steps": {
            "pool": [0, 0], "again": [0, 0], "longer": [0, 4], "part": [0, 2], "other file": [0, 2], "over managed": [0, -2],
            "freed": [0, 2], "nothing": [-errno.ENOMEM, 0], **p2p}})
        program.end()

    def test_pool_races(self):
        program = self.start_mapping("pool_races")
        words = self.hear_or_skip(program, "threads cannot be stopped here")
        self.assertEqual(words, {"steps": [OK, [0, 0], [0, 2], [0, 2], OK, OK, [0, 2]]})
        program.end()

    def test_locked(self):
        for first in ("", "1"):
            program = self.start_mapping("locked", FIRST=first)
            self.assertEqual(program.hear(), {"steps": [[0, 90], 40]})
            program.end()

    def test_descriptorless(self):
        slices = self.sim.slices(100, 100)
        program = self.start("descriptorless", slices)
        self.assertEqual(program.hear(), {"calls": [OK, -errno.ENOMEM, -errno.ENOMEM, -errno.ENOMEM, OK, OK, OK]})
        self.assertEqual((self.sim.held(), used(slices)), (0, 60 * MIB))
        program.go_on()
        self.assertEqual(program.hear(), {"rooms": [40, 100]})
        program.end()
        self.assert_at_rest(slices)

    def test_keyless(self):
        slices = self.sim.slices(100)
        program = self.start("keyless", slices)
        words = self.hear_or_skip(program, "threads cannot be stopped here")
        # what is mapped and taken back there stays charged
        self.assertEqual(words, {"status": OK, "room": 38})
        program.end()
        self.assert_at_rest(slices)

    def test_many_files(self):
        self.check_steps("many_files", [100])

    def test_followed(self):
        slices = self.sim.slices(100)
        here, there = socket.socketpair()
        with here, there:
            giver = self.start("initialized", slices, fds=(there.fileno(),), SOCKET=str(there.fileno()))
            self.assertEqual(giver.hear(), {"given": True})
            fd = socket.recv_fds(here, 1, 1)[1][0]
            socket.send_fds(here, [b"x"], [fd])
            user = self.start("followed", slices, fds=(there.fileno(),), SOCKET=str(there.fileno()))
            self.assertEqual(user.hear(), {"steps": [80, 100]})
            user.end()
            giver.end()
            os.close(fd)
        self.assert_at_rest(slices)

    def test_many(self):
        self.check_steps("many", [50, 150, 250], (250,))

    def test_came(self):
        slices = self.sim.slices(100)
        here, there = socket.socketpair()
        with here, there:
            program = self.start("keeper", slices, fds=(there.fileno(),), SOCKET=str(there.fileno()))
            self.assertEqual(program.hear(), {"mapped": True})
            fd = socket.recv_fds(here, 1, 1)[1][0]
            program.kill()
            asker = self.start("asks_room", slices)
            self.assertEqual(asker.hear(), {"room": 60})
            asker.end()
            socket.send_fds(here, [b"x"], [fd])
            user = self.start("came", slices, fds=(there.fileno(),), SOCKET=str(there.fileno()))
            self.assertEqual(user.hear()["room"] <= 60, True)
            user.end()
            os.close(fd)
        self.assert_at_rest(slices)

    def test_forked(self):
        slices = self.sim.slices(100)
        program = self.start("forked", slices)
        self.assertEqual(program.hear(), {"both": 60})
        program.go_on()
        self.assertEqual(program.hear(), {"child": 60})
        program.go_on()
        # what the child mapped and the parent unmaps stays counted until the file is closed
        self.assertEqual(program.hear(), {"parent": 80})
        program.end()
        self.assert_at_rest(slices)

    def test_freed_by_child(self):
        self.check_steps("freed_by_child", [-errno.EPERM] * 3 + [40, 100])

    def test_dies(self):
        slices = self.sim.slices(100)
        dice = random.Random(7)
        for _ in range(10):
            program = self.start("dies", slices)
            program.hear()
            threading.Event().wait(dice.random() / 50)
            program.kill()
            self.assert_at_rest(slices)


if __name__ == "__main__":
    alone()
    unittest.main(argv=[sys.argv[0]] + sys.argv[3:], verbosity=2)
