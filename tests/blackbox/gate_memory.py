# SPDX-License-Identifier: Apache-2.0
"""Programs of the tests of libaliquot.so: memory of one process, by every call that gives some."""

import contextlib
import ctypes
import mmap
import os
import random
import select
import struct
import threading
import time

from driver_release import DRIVER
from rm_client import (
    ALLOC, BAD, CHANNEL, CONTROL, DISABLE_CHANNELS, DUP, FB_INFO, FB_INFO_V2, FB_REGIONS, FREE, GET_TIMESLICE, GROUP, GROUP_SCHEDULE, HEAP, LIBC, LOCAL,
    L_ALLOC, L_CONTROL, L_FREE, MEMORY, MIB, OK, PATIENCE, PREEMPT, SET_PREEMPTION, SET_TIMESLICE, XFER, Client, Refused, address_of, call,
    end_child, give_descriptor, in_child, inside, memory_params, packed, raw_ioctl, say, size_in, status_of, take_descriptor, wait_for_word)


@inside
def doors():
    """Memory by each call, up to the limit and one step over it."""
    c = Client()
    a = c.memory(60 * MIB)
    b, size = c.heap(20 * MIB)
    d, pitched = c.heap(0, function=6, pitch=(1024, 4096))
    e, ranged = c.heap(10 * MIB, function=14)
    say(over=status_of(c.memory, 7 * MIB), ranged=status_of(c.heap, 64 << 30, function=14), rights=status_of(c.memory, 7 * MIB, rights=True),
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
def taken_over():
    """A child of fork uses devices and subdevices of two cards, which its parent has made."""
    found = [Client(card=i) for i in range(2)]
    pid = os.fork()
    if pid == 0:
        say(over=[status_of(c.memory, 200 * MIB) for c in found], fits=[status_of(c.memory, 40 * MIB) for c in found])
        wait_for_word()
        os._exit(0)
    os.waitpid(pid, 0)


@inside
def questions():
    c = Client()
    c.memory(30 * MIB)
    indices = (7, 8, 9, 0xA, 0x20, 0x16, 0x12, 0x11)
    say(inline=c.fb(*indices), pointer=c.fb_list(*indices), heap=c.heap_info())
    regions, stride = ctypes.create_string_buffer(DRIVER.size("RmFbRegions")), DRIVER.size("RmFbRegion")
    raw = c.control(c.subdevice, FB_REGIONS, regions)
    n = struct.unpack_from("<I", raw)[0]
    say(regions=[list(struct.unpack_from("<QQ", raw, 8 + stride * i)) for i in range(n)])
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
    for group in made:
        c.free(group)
    wait_for_word()


@inside
def schedules():
    """How the card's time is shared: as libcuda sets it for each context, and what others would gain or lose by."""
    c = Client()
    group = c.allocate(c.root, c.device, GROUP, ctypes.create_string_buffer(64))
    other, foreign = (int(word) for word in wait_for_word().split())

    def timeslice(usec):
        status = status_of(c.control, group, SET_TIMESLICE, packed("<Q", usec))
        return status, struct.unpack("<Q", c.control(group, GET_TIMESLICE, packed("<Q", 0)))[0]

    params = ctypes.create_string_buffer(b"\1\0\0"[:DRIVER.size("RmGroupSchedule")], DRIVER.size("RmGroupSchedule"))
    say(root=c.root, scheduled=status_of(c.control, group, GROUP_SCHEDULE, params),
        sizes=[status_of(c.control, group, GROUP_SCHEDULE, ctypes.create_string_buffer(n)) for n in (1, 4)])
    say(slices=[timeslice(usec) for usec in (1000, 2048, 5000, (1 << 64) - 1)],
        modes=[status_of(c.preemption, group, mode) for mode in (2, 1, 0)], graphics=status_of(c.preemption, group, 0, flags=2),
        preempt=status_of(c.control, group, PREEMPT, packed("<BBxxI", 1, 1, 1000)))
    say(own=status_of(c.disable, [(c.root, group)]), foreign=status_of(c.disable, [(c.root, group), (other, foreign)]),
        no_client=status_of(c.disable, [(c.device, group)]), many=status_of(c.disable, [], n=65))
    say(sizes=[status_of(c.control, group, SET_TIMESLICE, ctypes.create_string_buffer(n)) for n in (7, 9)] +
        [status_of(c.preemption, group, 2, size=n) for n in (31, 33)] + [status_of(c.disable, [], size=n) for n in (535, 537)],
        preempts=[status_of(c.control, group, PREEMPT, ctypes.create_string_buffer(n)) for n in (7, 9)],
        bad=[call(c.fd, CONTROL, L_CONTROL, c.root, o, command, 0, BAD, n, 0)[6]
             for o, command, n in ((group, SET_TIMESLICE, 8), (c.subdevice, SET_PREEMPTION, 32), (c.subdevice, DISABLE_CHANNELS, 536))])
    wait_for_word()


@inside
def unmeasured():
    """Memory of another process whose size the driver does not tell, and an object that has none."""
    c = Client()
    client, handle = (int(word) for word in wait_for_word().split())
    plain, statuses = c.allocate(c.root, c.device, 0xDA), []
    say(plain=status_of(c.export, plain, c.empty_file()))

    def ask():
        request = 0xC0000000 | 32 << 16 | ord("F") << 8 | CONTROL
        number = {"x86_64": 16, "aarch64": 29}[os.uname().machine]
        code = [(0x20, 0, 0, 0), (0x15, 0, 3, number), (0x20, 0, 0, 24), (0x15, 0, 1, request), (6, 0, 0, 0x50001), (6, 0, 0, 0x7FFF0000)]
        lines = packed("<" + "HBBI" * len(code), *[x for line in code for x in line])
        program = packed("<HxxxxxxQ", len(code), address_of(lines))
        assert LIBC.prctl(38, 1, 0, 0, 0) == 0 and LIBC.prctl(22, 2, ctypes.c_void_p(address_of(program)), 0, 0) == 0
        statuses.append(status_of(c.dup, client, handle))

    thread = threading.Thread(target=ask)
    thread.start()
    thread.join()
    say(statuses=statuses)
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

    say(initialized=[initialize(fds[0], 0), initialize(fds[0], 0), initialize(fds[1], 3), initialize(fds[2], 8),
                     initialize(fds[2], 4)],
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
    lie = ctypes.create_string_buffer(DRIVER.size("RmFbInfoV2"))
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
def newer():
    """What newer drivers tell of the card, beside what a slice has: indices of FB info, and two controls."""
    c = Client()
    c.memory(10 * MIB)
    words = {"%#x" % index: [c.fb(index)[0], c.fb_list(index)[0]] for index in map(int, os.environ["INDICES"].split())}
    for name, command, size in (("ugpu", 0x20801362, 48), ("stats", 0x2080132F, 9728)):
        try:
            raw = c.control(c.subdevice, command, ctypes.create_string_buffer(size))
        except Refused as refused:
            words[name] = refused.status
        else:
            values = struct.unpack("<%dQ" % (size // 8), raw)
            words[name] = values[:10], max(values[10:], default=0)
    say(**words)


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
