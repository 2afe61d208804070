# SPDX-License-Identifier: Apache-2.0
"""Programs of the tests of libaliquot.so: several processes and files, and managed memory."""

import contextlib
import ctypes
import mmap
import os
import random
import resource
import signal
import socket
import struct
import sys
import threading
import time
import types

from rm_client import (
    ALLOC, DEVICE, LIBC, L_ALLOC, MIB, NO_MEMORY, OK, PATIENCE, Client, Refused, address_of, end_child, give_descriptor, in_child,
    inside, inside_command, packed, say, status_of, wait_for_word)


@inside
def forks():
    """A child has its own row; inherited memory stays charged while either process lives."""
    c = Client()
    a = c.memory(30 * MIB)
    stop = threading.Event()

    def churn():
        mine = Client(share=c)
        while not stop.is_set():
            mine.free(mine.memory(MIB))

    threads = [threading.Thread(target=churn) for _ in range(4)]
    for thread in threads:
        thread.start()
    children = []
    for _ in range(8):
        pid = os.fork()
        if pid == 0:
            signal.alarm(PATIENCE)
            d = Client()
            d.free(d.memory(2 * MIB))
            with contextlib.suppress(Refused):
                for _ in range(3):
                    d.memory(MIB)
            os._exit(0)
        children.append(pid)
    codes = [os.waitpid(pid, 0)[1] for pid in children]
    stop.set()
    for thread in threads:
        thread.join()
    say(codes=codes)
    wait_for_word()
    pid = os.fork()
    if pid == 0:
        c.free(a)  # inherited
        os._exit(0)
    os.waitpid(pid, 0)
    say(inherited=True)
    wait_for_word()


@inside
def fork_frees():
    """A child frees what it inherited and lives on; the parent frees it again, and it is given back only once."""
    c = Client()
    a, b = c.memory(30 * MIB), c.memory(30 * MIB)
    child = in_child(lambda: c.free(a))
    say(child=True)
    wait_for_word()
    c.free(a)
    say(parent=True, over=status_of(c.memory, 80 * MIB))
    wait_for_word()
    end_child(child)
    made = []  # duplicates of inherited memory, which belong to their maker
    child = in_child(lambda: made.append(c.dup(c.root, b)))
    c.free(b)
    say(duplicate=True)
    wait_for_word()
    end_child(child)
    say(left=True)
    wait_for_word()


def first_call(fd, limit=None, root=None):
    """The very first call, on an open file, without a resource or in another root; then with it."""
    normal = resource.getrlimit(limit) if limit is not None else None
    c = Client.__new__(Client)
    c.fd, c.directory = fd, os.environ["SIM_DIR"]
    if limit is not None:
        enough = max(int(name) for name in os.listdir("/proc/self/fd")) + 1
        for free in range(enough):
            with contextlib.suppress(OSError):
                os.fstat(free)
                continue
            os.dup2(fd, free)
        resource.setrlimit(limit, (enough if limit == resource.RLIMIT_NOFILE else 1, normal[1]))
    if root:
        os.chroot(root)
    words = {"client": status_of(c.begin)}
    if words["client"] != OK:  # by the kernel's own call, so that there is a client
        answer = packed(L_ALLOC, 0, 0, 0, 0x41, 0, 0, 0)
        assert LIBC.syscall({"x86_64": 16, "aarch64": 29}[os.uname().machine], fd, 0xC0000000 | 32 << 16 | ord("F") << 8 | ALLOC,
                            ctypes.c_void_p(address_of(answer))) == 0
        c.root = struct.unpack_from("<I", answer.raw, 8)[0]
    c.device = c.allocate(c.root, c.root, DEVICE, packed("<IIIIIIQQQII", 0, *[0] * 10))
    words["first"] = status_of(c.memory, 200 * MIB), status_of(c.memory, 40 * MIB)
    if limit is not None:
        resource.setrlimit(limit, normal)
    words["then"] = status_of(c.memory, 200 * MIB), status_of(c.memory, 40 * MIB)
    pid = os.fork()
    if pid == 0:
        os._exit(status_of(c.memory, 40 * MIB) != OK or status_of(c.memory, 40 * MIB) != NO_MEMORY)
    words["child"] = os.waitpid(pid, 0)[1]
    return words


def asker(pipes):
    """Asks, allocates when the test lets all do so, and tries again for each byte while it is refused."""
    c = Client()
    os.write(pipes["say"][1], b"%d %d\n" % tuple(c.fb(8, 0x16)))
    os.read(pipes["begin"][0], 1)
    status = status_of(c.memory, MIB)
    os.write(pipes["say"][1], b"%d %d\n" % (os.getpid(), status))
    while status != OK and os.read(pipes["again"][0], 1):
        status = status_of(c.memory, MIB)
        os.write(pipes["say"][1], b"%d %d\n" % (os.getpid(), status))
    os.read(pipes["end"][0], 1)


@inside
def askers():
    """Processes that all ask, then all allocate; one that holds memory is killed, and one that was refused tries again."""
    n = int(os.environ["ASKERS"])
    os.dup2(os.open(os.environ["SAYS"], os.O_WRONLY | os.O_APPEND), 2)
    pipes = {name: os.pipe() for name in ("say", "begin", "again", "end")}
    for _ in range(n):
        if os.fork() == 0:
            signal.alarm(PATIENCE)
            for name in ("begin", "again", "end"):
                os.close(pipes[name][1])
            asker(pipes)
            os._exit(0)
    heard = os.fdopen(pipes["say"][0])

    def hear():
        return tuple(map(int, heard.readline().split()))

    say(asked=[list(answer) for answer in {hear() for _ in range(n)}])
    wait_for_word()
    os.close(pipes["begin"][1])
    statuses = dict(hear() for _ in range(n))
    say(got=sum(status == OK for status in statuses.values()), refused=sum(status == NO_MEMORY for status in statuses.values()))
    wait_for_word()
    holder = next(pid for pid, status in statuses.items() if status == OK)
    os.kill(holder, signal.SIGKILL)
    os.waitpid(holder, 0)
    os.write(pipes["again"][1], b"x")
    say(then=hear()[1])
    os.close(pipes["again"][1])
    os.close(pipes["end"][1])
    say(codes=sorted({os.wait()[1] for _ in range(n - 1)}))


@inside
def changed_user():
    """A worker of a server that was started as root gives up root after fork, and is then the first to call the driver."""
    files = [os.open(os.environ["SIM_DIR"] + "/nvidiactl", os.O_RDWR | os.O_CLOEXEC) for _ in range(2)]
    for way in range(2):
        pid = os.fork()
        if pid == 0:
            signal.alarm(PATIENCE)
            if way == 0:
                os.setresuid(33, 33, 33)
            else:
                os.seteuid(33)
                LIBC.prctl(4, 0, 0, 0, 0)  # PR_SET_DUMPABLE
            c = Client.__new__(Client)
            c.fd, c.directory = files[way], os.environ["SIM_DIR"]
            c.begin()
            c.device = c.allocate(c.root, c.root, DEVICE, packed("<IIIIIIQQQII", 0, *[0] * 10))
            say(auxv=os.access("/proc/self/auxv", os.R_OK, effective_ids=True), fits=status_of(c.memory, 40 * MIB),
                over=status_of(c.memory, 100 * MIB))
            os._exit(0)
        say(code=os.waitpid(pid, 0)[1])


def full_pipe():
    read, write = os.pipe()
    os.set_blocking(write, False)
    with contextlib.suppress(BlockingIOError):
        while True:
            os.write(write, bytes(4096))
    os.set_blocking(write, True)
    return read, write


@inside
def loud():
    """Refused with a standard error that is full, has no reader, or is closed; SIGPIPE is as a C program has it."""
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    said = {}

    def refused(how):
        read, write = full_pipe()
        os.dup2(write, 2)
        os.close(write)
        if how == "gone":
            os.close(read)
        if how == "closed":
            os.close(2)
        os._exit(status_of(Client().memory, 200 * MIB))

    for how in ("full", "gone", "closed"):  # a process of its own for each: a sentence is said once
        pid = os.fork()
        if pid == 0:
            signal.alarm(PATIENCE)
            refused(how)
        said[how] = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    say(**said)


def spoken(how):
    """What a process of its own writes where its standard error is, when it is refused memory several times."""
    # Such a pipe keeps writes apart (O_DIRECT).
    read, write = os.pipe2(os.O_DIRECT) if how == "pipe" else [os.open(os.environ["SAYS"], os.O_RDWR | os.O_TRUNC)] * 2
    pid = os.fork()
    if pid == 0:
        signal.alarm(PATIENCE)
        c = Client()
        c.memory(20 * MIB)
        os.dup2(write, 2)
        if how == "both":
            os.dup2(2, 1)
        if how == "exec":  # as a file that Python opens
            os.set_inheritable(2, False)
        os._exit({status_of(c.memory, int(mib) * MIB) for mib in os.environ["TRIED"].split()} != {NO_MEMORY})
    assert os.waitpid(pid, 0)[1] == 0
    if how == "pipe":
        os.close(write)
    else:
        os.lseek(read, 0, os.SEEK_SET)
    text = [os.read(read, 4096).decode() for _ in range(2)]
    os.close(read)
    return text[0] if text[1] == "" else text


@inside
def speaks():
    """What is said, by where standard error leads."""
    say(said=[spoken(how) for how in os.environ["HOW"].split()])


@inside
def starved():
    """Without descriptors or address space, and then with them."""
    limit = getattr(resource, os.environ["STARVED"])
    say(**first_call(os.open(os.environ["SIM_DIR"] + "/nvidiactl", os.O_RDWR | os.O_CLOEXEC), limit))
    wait_for_word()


@inside
def rooted():
    """In another root; in its child; and in a child of a process that found its slices before."""
    fd = os.open(os.environ["SIM_DIR"] + "/nvidiactl", os.O_RDWR | os.O_CLOEXEC)
    c = Client() if os.environ["BEFORE"] else None
    if c:
        os.chroot(os.environ["ROOT"])
        child = in_child(lambda: say(child=status_of(c.memory, 40 * MIB)))
        end_child(child)
    else:
        say(**first_call(fd, root=os.environ["ROOT"]))
    wait_for_word()


@inside
def leaves():
    """Memory that stays behind on a file that another process holds, in several ways."""
    how, _, exported = os.environ["HOW"].partition("-")
    if how == "exec":
        c = Client()
        os.set_inheritable(c.fd, True)
        a = c.memory(60 * MIB)
        if exported:
            c.export(a, c.empty_file())
        os.execve(sys.executable, inside_command("left"), dict(os.environ, LEFT=str(c.fd)))
    file = os.open(os.environ["SIM_DIR"] + "/nvidiactl", {"read": os.O_RDONLY, "write": os.O_WRONLY}.get(how, os.O_RDWR) | os.O_CLOEXEC)
    how = how if how in ("socket", "export") else "fork"
    if exported == "shared":
        Client(share=types.SimpleNamespace(fd=file))
    ours, theirs = socket.socketpair()
    pid = os.fork()
    if pid == 0:
        c = Client(share=types.SimpleNamespace(fd=file)) if how == "fork" else Client()
        owner = Client() if exported in ("duplicate", "import") else c
        a, fd = owner.memory(60 * MIB), owner.empty_file()
        if exported == "duplicate":
            c.dup(owner.root, a)
        if how == "export" or exported:
            owner.export(a, fd)
        if exported == "import":
            c.import_(fd)
        socket.send_fds(theirs, [b"x"], [{"fork": 0, "socket": c.fd, "export": fd if how == "export" else -1}[how]])
        os._exit(0)
    assert os.waitpid(pid, 0)[1] == 0
    if how == "fork":
        left_of(file)
    else:  # first in flight, then received here
        say(first=status_of(Client().memory, 60 * MIB))
        wait_for_word()
        left_of(socket.recv_fds(ours, 1, 1)[1][0])


def soon(what, *arguments):
    """Retries until OK: ended processes are looked for at most once in a millisecond."""
    deadline = time.monotonic() + PATIENCE
    while (status := status_of(what, *arguments)) != OK and time.monotonic() < deadline:
        time.sleep(0.01)
    return status


def left_of(fd):
    c = Client()
    say(over=status_of(c.memory, 60 * MIB), fits=status_of(c.memory, 40 * MIB))
    wait_for_word()
    os.close(fd)
    say(closed=soon(c.memory, 60 * MIB))
    wait_for_word()


@inside
def left():
    left_of(int(os.environ["LEFT"]))


@inside
def passes_on():
    """A child allocates in the client that it inherited, and ends."""
    c = Client()

    def exported():
        a, fd = c.memory(70 * MIB), c.empty_file()
        c.export(a, fd)
        os.close(fd)
        c.free(a)
        c.free(c.memory(100 * MIB))  # the gate has to look

    end_child(in_child(lambda: c.free(c.memory(90 * MIB))))
    end_child(in_child(exported))
    end_child(in_child(lambda: c.memory(60 * MIB)))
    say(over=status_of(c.memory, 60 * MIB))
    wait_for_word()
    other = Client()
    os.close(c.fd)
    say(closed=soon(other.memory, 100 * MIB))
    wait_for_word()


@inside
def leaves_exported():
    """60 MiB, of which 10 stay on a file that the test holds; another file is closed before the end."""
    c = Client()
    made = [c.memory(10 * MIB) for _ in range(6)]
    if os.environ["WAIT"]:
        wait_for_word()
    files = [c.empty_file() for _ in range(2)]
    twice = c.dup(c.root, made[0])
    for fd in files:
        c.export(made[0], fd)
    c.export_many([made[1]], c.empty_file())
    give_descriptor(files[0])
    say(exported=True)
    wait_for_word()
    os.close(files[1])
    c.free(made[0])
    c.free(twice)
    say(over=status_of(c.memory, 50 * MIB))  # the gate has to look
    wait_for_word()


@inside
def exports_at_once():
    """Threads export the same objects of two cards, and duplicates of them, and close the files."""
    clients = [Client(card=card) for card in range(2)]
    made = [c.memory(10 * MIB) for c in clients]

    def export():
        for i in range(60):
            c, a = clients[i % 2], made[i % 2]
            b = c.dup(c.root, a) if i % 3 == 0 else 0
            fd = c.empty_file()
            c.export(b or a, fd)
            if i % 5 == 0:
                c.fb(0x16)
            os.close(fd)
            if b:
                c.free(b)

    threads = [threading.Thread(target=export) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    say(closed=True)
    wait_for_word()
    for c, a in zip(clients, made):
        c.free(a)
        c.free(c.memory(100 * MIB))  # the gate has to look
    say(freed=True)
    wait_for_word()


@inside
def closes_and_stays():
    """A child of fork that closes or keeps the driver's files, and never calls the driver."""
    c = Client()
    c.memory(60 * MIB)
    done, ready = os.pipe()
    pid = os.fork()
    if pid == 0:
        signal.alarm(PATIENCE)
        if os.environ["KEEPS"] == "":
            os.close(c.fd)
        os.write(ready, b"x")
        wait_for_word()
        os._exit(0)
    assert os.read(done, 1) == b"x"
    say(child=pid)
    wait_for_word()
    os._exit(0)


def mapping_of(name):
    with open("/proc/self/maps", encoding="ascii") as f:
        for line in f:
            if line.rstrip().endswith(name):
                return [int(word, 16) for word in line.split()[0].split("-")]
    return None


@inside
def maps_there():
    """Where its parent has the counters mapped, a child of fork has memory of its own."""
    c = Client()
    c.memory(10 * MIB)
    start, end = mapping_of("/0/counters")

    def use():
        assert mapping_of("/0/counters") is None
        fixed = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | 0x10
        assert LIBC.mmap(start, end - start, mmap.PROT_READ | mmap.PROT_WRITE, fixed, -1, 0) == start
        ctypes.memset(start, 0x5A, end - start)
        Client().memory(10 * MIB)
        assert ctypes.string_at(start, end - start) == b"\x5a" * (end - start)
        assert mapping_of("/0/counters") is not None

    end_child(in_child(use))
    say(kept=True)
    wait_for_word()


def locks_on(fd):
    with open("/proc/self/fdinfo/%d" % fd, encoding="ascii") as f:
        return sum(line.startswith("lock:") for line in f)


@inside
def workers_in_turn():
    """More children than there are rows use inherited memory, each in its way, and end."""
    c = Client()
    file = os.open(os.environ["SIM_DIR"] + "/nvidiactl", os.O_RDWR | os.O_CLOEXEC)
    share = types.SimpleNamespace(fd=file)
    codes = set()
    for i in range(300):
        pid = os.fork()
        if pid == 0:
            signal.alarm(PATIENCE)
            if i % 3 == 2:
                Client().memory(MIB)  # a client of its own
            else:
                worker = Client(share=share) if i % 3 else c
                a = worker.memory(64 * 1024)
                if i % 2:
                    worker.export(a, worker.empty_file())
            os._exit(0)
        codes.add(os.waitpid(pid, 0)[1])
    over = status_of(c.memory, 100 * MIB)  # the gate has to look
    say(codes=list(codes), locks=max(locks_on(c.fd), locks_on(file)), over=over)
    wait_for_word()
    other = Client()
    os.close(file)
    os.close(c.fd)
    say(closed=soon(other.memory, 100 * MIB))
    wait_for_word()


@inside
def beside_a_neighbour():
    """Another process has locked the whole inode: memory is granted all the same, and children keep it without a lock."""
    c = Client()
    say(status=status_of(c.memory, 20 * MIB))
    wait_for_word()
    pid = os.fork()
    if pid == 0:
        signal.alarm(PATIENCE)
        signal.pause()  # only its parent reads commands
        os._exit(1)
    say(child=pid)
    if wait_for_word() == "again":  # the lock is released: from now on the count is exact
        c.memory(20 * MIB)
        give_descriptor(c.fd)
        os.kill(pid, signal.SIGKILL)
    os._exit(0)


@inside
def generations():
    """More than there are rows, each a child of one that has ended."""
    for i in range(300):
        c = Client()
        c.memory(MIB)
        os.close(c.fd)
        pid = os.fork()
        if pid:
            os._exit(0)
    say(generations=soon(Client().memory, 100 * MIB))
    wait_for_word()


@inside
def managed():
    """Mappings of the uvm file, as libcuda makes them. Any file that the limits page names will do."""
    fd = os.open(os.environ["UVM_FILE"], os.O_RDWR | os.O_CLOEXEC)
    flags = ctypes.create_string_buffer(16)
    LIBC.ioctl(fd, 0x30000001, address_of(flags))
    none, read_write, shared, private_anonymous, fixed = 0, 3, 1, 0x22, 0x10

    def map_(n, protection=read_write, flags=shared, at=0, file=fd):
        p = LIBC.mmap(at, n, protection, flags, file, 0)
        return -ctypes.get_errno() if p == 0xFFFFFFFFFFFFFFFF else p

    space = map_(400 * MIB, none, private_anonymous, 0, -1)
    say(space=space > 0, reserved=map_(400 * MIB, none))
    wait_for_word()
    at = map_(64 * MIB, flags=shared | fixed, at=space)
    say(mapped=at == space, over=map_(64 * MIB))
    wait_for_word()
    LIBC.munmap(at + 16 * MIB, 16 * MIB)
    say(hole=True)
    wait_for_word()
    map_(8 * MIB, none, private_anonymous | fixed, at, -1)
    say(covered=True)
    wait_for_word()
    # What the kernel refuses to unmap stays. A page unmapped in part is gone, and counts once.
    say(refused=[LIBC.munmap(space, 1 << 60), LIBC.munmap(space + 1, 4096), LIBC.munmap(space, 0)])
    wait_for_word()
    for n in range(1, 4096, 64):
        map_(n, none, private_anonymous | fixed, at + 8 * MIB, -1)
    say(page=True)
    wait_for_word()
    moved = LIBC.mremap(at + 32 * MIB, 32 * MIB, 8 * MIB, 3, space + 200 * MIB)  # shrunk, and moved
    say(moved=moved == space + 200 * MIB)
    wait_for_word()
    shrunk = LIBC.mremap(moved, 8 * MIB, 4 * MIB, 0, None)
    say(shrunk=shrunk == moved and LIBC.mremap(moved, 1 << 60, 1 << 61, 0, None) == 2**64 - 1)
    wait_for_word()
    LIBC.munmap(space, 400 * MIB)
    say(gone=True)
    wait_for_word()


@inside
def managed_again():
    """Mapped over itself, and over half of itself and the range behind: only additional bytes count."""
    fd = os.open(os.environ["UVM_FILE"], os.O_RDWR | os.O_CLOEXEC)
    flags = ctypes.create_string_buffer(16)
    LIBC.ioctl(fd, 0x30000001, address_of(flags))
    read_write, shared, fixed, none, private_anonymous = 3, 1, 0x10, 0, 0x22
    at = LIBC.mmap(0, 400 * MIB, none, private_anonymous, -1, 0)

    def map_(start, n, file=fd):
        p = LIBC.mmap(at + start * MIB, n * MIB, read_write, shared | fixed, file, 0)
        return -ctypes.get_errno() if p == 0xFFFFFFFFFFFFFFFF else p == at + start * MIB

    say(first=map_(0, 60), again=map_(0, 60))
    wait_for_word()
    say(behind=map_(30, 70), over=map_(90, 11), kernel=map_(0, 100, os.open(os.environ["UVM_FILE"], os.O_WRONLY | os.O_CLOEXEC)))
    wait_for_word()
    LIBC.munmap(at, 400 * MIB)
    say(gone=True)
    wait_for_word()


@inside
def managed_after_a_close():
    """Plain memory with its file or export closed: the driver has freed it when managed memory is mapped."""
    how, client = os.environ["HOW"], Client()
    memory = client.memory(60 * MIB)
    spare = Client()
    if how == "export":
        export = client.empty_file()
        client.export(memory, export)
        client.free(memory)
        os.close(export)
    elif how == "close":
        os.close(client.fd)
    uvm = os.open(os.environ["UVM_FILE"], os.O_RDWR | os.O_CLOEXEC)
    flags = ctypes.create_string_buffer(16)
    LIBC.ioctl(uvm, 0x30000001, address_of(flags))
    p = LIBC.mmap(0, 60 * MIB, 3, 1, uvm, 0)
    say(managed=-ctypes.get_errno() if p == 0xFFFFFFFFFFFFFFFF else OK, plain=status_of(spare.memory, 60 * MIB))
    wait_for_word()


@inside
def managed_that_came():
    """A uvm file that another process has initialised: only the mapping shows it."""
    fd = os.open(os.environ["UVM_FILE"], os.O_RDWR | os.O_CLOEXEC)
    read_write, shared, fixed, at = 3, 1, 0x10, 0x200000000000

    def map_(at):
        p = LIBC.mmap(at, 64 * MIB, read_write, shared | fixed, fd, at)
        return -ctypes.get_errno() if p == 0xFFFFFFFFFFFFFFFF else p == at

    say(mapped=[map_(at), map_(at + 64 * MIB)])
    wait_for_word()
    say(gone=LIBC.munmap(at, 64 * MIB))
    wait_for_word()


@inside
def managed_cards():
    """Two files stand for uvm's here: one that can be mapped, and the simulator's, which takes registrations of cards."""
    fd = os.open(os.environ["UVM_FILE"], os.O_RDWR | os.O_CLOEXEC)
    uvm, other = (os.open(os.environ["SIM_DIR"] + "/nvidia-uvm", os.O_RDWR | os.O_CLOEXEC) for _ in range(2))
    uuids = [bytes.fromhex(os.environ["UUID%d" % i]) for i in range(3)]

    def map_(n):
        p = LIBC.mmap(0, n, 3, 1, fd, 0)
        return -ctypes.get_errno() if p == 0xFFFFFFFFFFFFFFFF else p

    def register(card, uvm=uvm):
        params = packed("<16sIiiIII", uuids[card], 0, 0, -1, 0, 0, 0)
        return LIBC.ioctl(uvm, 37, address_of(params)) or struct.unpack_from("<I", params.raw, 36)[0]

    def unregister(card, uvm=uvm):
        params = packed("<16sI", uuids[card], 0)
        return LIBC.ioctl(uvm, 38, address_of(params)) or struct.unpack_from("<I", params.raw, 16)[0]

    flags = ctypes.create_string_buffer(16)
    for file in (uvm, other):
        LIBC.ioctl(file, 0x30000001, address_of(flags))
    a = map_(30 * MIB)
    say(guessed=a > 0)
    wait_for_word()
    say(second=register(1))
    wait_for_word()
    say(over=map_(60 * MIB), fits=map_(10 * MIB) > 0)
    wait_for_word()
    say(both=register(0), again=register(0, other), twice=register(0), none=register(2))
    wait_for_word()
    say(unregistered=unregister(0))
    wait_for_word()
    say(once_more=unregister(0, other))
    wait_for_word()
    say(held=status_of(Client().memory, 70 * MIB), no_room=register(0))
    wait_for_word()
    LIBC.munmap(a, 30 * MIB)
    say(unmapped=register(0))
    wait_for_word()


@inside
def crowd():
    """One of many processes that race for one slice until told to stop. The total never exceeds the limit."""
    c = Client()
    wild = random.Random(os.getpid())
    held, refused, done = [], 0, 0
    sizes = (64 * 1024, 100 * 1024, MIB, 2 * MIB + 1, 5 * MIB)
    say(ready=True)
    deadline = time.monotonic() + PATIENCE
    while done < 400 and time.monotonic() < deadline:
        done += 1
        if held and wild.random() < 0.45:
            c.free(held.pop(wild.randrange(len(held))))
            continue
        status = status_of(lambda: held.append(c.memory(wild.choice(sizes))))
        assert status in (OK, NO_MEMORY), hex(status)
        refused += status != OK
    say(refused=refused, done=done)
    wait_for_word()
