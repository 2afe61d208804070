#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""libaliquot.so while processes do random things with the driver's files.

    puppets.py LIBRARY SIMULATOR [FIRST LAST]

Puppets make and free clients, devices and memory, duplicate, export and import it, pass files on,
fork, exec and are killed. After each step all held memory must be counted, and no more than the
slice's size. At the end all of it must be available again. The seed determines all steps, and each
seed is printed.
"""
import contextlib
import json
import os
import random
import signal
import socket
import sys
import unittest

import gate_memory  # noqa: F401  its programs are run by name
from gate_lab import Program, alone, mounted, used
from rm_client import DEVICE, MIB, OK, Client, Refused, inside, inside_command, packed, say
from patience import until

LIMIT, STEPS, MOST_PUPPETS, TOLD = 100, 100, 5, 14
PLACES = 2  # slots of a file with several
SEEDS = range(1, 13)


# ---- a puppet, inside ----


def client_of(fd, root, device, subdevice):
    """A client that already exists: made before exec, or received by a socket."""
    client = object.__new__(Client)
    client.fd, client.root, client.device, client.subdevice, client.directory = fd, root, device, subdevice, os.environ["SIM_DIR"]
    return client


class Strings:
    """What a puppet can be told to do. Clients and files are named by their order, memory by the
    driver's handle."""

    def __init__(self):
        self.clients = [client_of(*c) for c in json.loads(os.environ.get("CLIENTS", "[]"))]
        self.files = []
        self.socket = socket.socket(fileno=os.dup(int(os.environ["SOCKET"])))

    def come(self, make):
        """A client that could not be made also takes a number."""
        self.clients.append(None)
        self.clients[-1] = make()
        return self.clients[-1].root

    def new(self):
        return self.come(Client)

    def share(self, client):
        return self.come(lambda: Client(share=self.clients[client]))

    def memory(self, client, size):
        return self.clients[client].memory(size)

    def heap(self, client, size):
        return self.clients[client].heap(size)[0]

    def free(self, client, handle):
        self.clients[client].free(handle)

    def free_device(self, client):
        c = self.clients[client]
        c.free(c.device)
        c.device = c.allocate(c.root, c.root, DEVICE, packed("<IIIIIIQQQII", 0, *[0] * 10))

    def free_client(self, client):
        c = self.clients[client]
        c.free(c.root, root=c.root)

    def close(self, client):
        os.close(self.clients[client].fd)

    def duplicate(self, client, root, handle):
        return self.clients[client].dup(root, handle)

    def export(self, client, handle):
        self.files.append(self.clients[client].empty_file())
        self.clients[client].export(handle, self.files[-1])

    def import_(self, client, file):
        return self.clients[client].import_(self.files[file])

    def export_places(self, client, handle):
        self.files.append(self.clients[client].empty_file())
        self.clients[client].export_many([handle], self.files[-1], room=PLACES)

    def replace(self, client, handle, file, place):
        self.clients[client].export_many([handle], self.files[file], place)

    def import_places(self, client, file):
        handles, types = self.clients[client].import_many(self.files[file], PLACES)
        return [h for h, t in zip(handles, types) if t]

    def close_file(self, file):
        os.close(self.files[file])

    def send_client(self, client):
        c = self.clients[client]
        socket.send_fds(self.socket, [json.dumps([c.root, c.device, c.subdevice]).encode()], [c.fd])

    def send_file(self, file):
        socket.send_fds(self.socket, [b"[]"], [self.files[file]])

    def receive(self):
        words, fds, _, _ = socket.recv_fds(self.socket, 4096, 1)
        identity = json.loads(words)
        if not identity:
            self.files.append(fds[0])
            return None
        return self.come(lambda: client_of(fds[0], *identity))

    def fork(self, todo):
        """The child does some steps and continues to live."""
        done, tell = os.pipe()
        pid = os.fork()
        if pid == 0:
            try:
                for name, *arguments in todo:
                    with contextlib.suppress(Refused, OSError):
                        getattr(self, name)(*arguments)
                os.write(tell, b"x")
                while True:
                    signal.pause()
            finally:
                os._exit(0)
        os.read(done, 1)
        os.close(done)
        os.close(tell)
        return pid

    def new_with_memory(self, size):
        Client().memory(size)

    def exec(self):
        for client in filter(None, self.clients):
            with contextlib.suppress(OSError):
                os.set_inheritable(client.fd, True)
        os.set_inheritable(int(os.environ["SOCKET"]), True)
        clients = [[c.fd, c.root, c.device, c.subdevice] if c else [-1, 0, 0, 0] for c in self.clients]
        os.execve(sys.executable, inside_command("puppet"), dict(os.environ, CLIENTS=json.dumps(clients)))


@inside
def puppet():
    strings = Strings()
    say(ready=True)
    for line in sys.stdin:
        name, *arguments = json.loads(line)
        status, result = OK, None
        try:
            result = getattr(strings, name)(*arguments)
        except Refused as refused:
            status = refused.status
        except OSError as e:
            status = -e.errno
        say(status=status, result=result)


# ---- the controller, outside ----


class Puppet:
    """The state of a puppet: roots of its clients, None for a client that is gone; memory as
    (client, handle); numbers of its files."""

    def __init__(self, simulator, slices):
        self.socket, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.program = Program("puppet", slices, simulator, fds=(theirs.fileno(),), SOCKET=str(theirs.fileno()))
        theirs.close()
        self.program.hear()
        self.clients, self.memory, self.files, self.n_files = [], [], [], 0

    def alive(self):
        return [i for i, root in enumerate(self.clients) if root]

    def do(self, name, *arguments):
        self.program.go_on(json.dumps([name, *arguments]))
        return self.program.hear()

    def kill(self):
        self.program.kill()
        self.socket.close()


class Play:
    """Plays one seed. A step that is impossible at the moment is skipped."""

    def __init__(self, simulator, seed):
        self.simulator, self.random, self.log = simulator, random.Random(seed), []
        self.slices = simulator.slices(LIMIT)
        self.puppets = [self.start() for _ in range(3)]
        self.children = []

    def start(self):
        return Puppet(self.simulator, self.slices)

    def size(self):
        return self.random.choice([1, 2, 3, 5, 10, 20, 40]) * MIB

    def came(self, p, answer):
        """A client was made, or could not be."""
        p.clients.append(answer["result"])
        return answer

    def got(self, p, client, answer):
        if answer["status"] == OK:
            p.memory.append((client, answer["result"]))
        return answer

    def new(self, p):
        return self.came(p, p.do("new"))

    def share(self, p):
        return self.came(p, p.do("share", self.random.choice(p.alive()))) if p.alive() else None

    def allocate(self, p):
        if not p.alive():
            return None
        client = self.random.choice(p.alive())
        return self.got(p, client, p.do(self.random.choice(["memory"] * 4 + ["heap"]), client, self.size()))

    def free(self, p):
        return p.do("free", *p.memory.pop(self.random.randrange(len(p.memory)))) if p.memory else None

    def end(self, p, how):
        if not p.alive() or self.random.random() < 0.5:
            return None
        client = self.random.choice(p.alive())
        if how != "free_device":
            p.clients[client] = None
        return p.do(how, client)

    def free_device(self, p):
        return self.end(p, "free_device")

    def free_client(self, p):
        return self.end(p, "free_client")

    def close(self, p):
        return self.end(p, "close")

    def duplicate(self, p):
        owner = self.random.choice(self.puppets)
        if not p.alive() or not owner.memory:
            return None
        client, (source, handle) = self.random.choice(p.alive()), self.random.choice(owner.memory)
        return self.got(p, client, p.do("duplicate", client, owner.clients[source], handle)) if owner.clients[source] else None

    def some_memory(self, p):
        """Also memory that is freed by now, with its client."""
        client, handle = self.random.choice(p.memory) if p.memory else (0, 0)
        return (client, handle) if handle and p.clients[client] else None

    def export(self, p, how="export"):
        what = self.some_memory(p)
        if not what:
            return None
        p.files.append(p.n_files)
        p.n_files += 1
        return p.do(how, *what)

    def export_places(self, p):
        return self.export(p, "export_places")

    def replace(self, p):
        what = self.some_memory(p)
        if not what or not p.files:
            return None
        handle = what[1] if self.random.random() < 0.8 else 0
        return p.do("replace", what[0], handle, self.random.choice(p.files), self.random.randrange(PLACES))

    def import_(self, p):
        if not p.files or not p.alive():
            return None
        client = self.random.choice(p.alive())
        return self.got(p, client, p.do("import_", client, self.random.choice(p.files)))

    def import_places(self, p):
        if not p.files or not p.alive():
            return None
        client = self.random.choice(p.alive())
        answer = p.do("import_places", client, self.random.choice(p.files))
        p.memory += [(client, handle) for handle in answer["result"] or []]
        return answer

    def close_file(self, p):
        return p.do("close_file", p.files.pop(self.random.randrange(len(p.files)))) if p.files else None

    def pass_on(self, p):
        others, kind = [x for x in self.puppets if x is not p], self.random.choice(["client", "file"])
        mine = p.alive() if kind == "client" else p.files
        if not others or not mine:
            return None
        to = self.random.choice(others)
        sent = p.do("send_" + kind, self.random.choice(mine))
        if sent["status"] != OK:
            return sent
        words, fds, _, _ = socket.recv_fds(p.socket, 4096, 1)
        socket.send_fds(to.socket, [words], fds)
        os.close(fds[0])
        answer = to.do("receive")
        if kind == "client":
            return self.came(to, answer)
        to.files.append(to.n_files)
        to.n_files += 1
        return answer

    def todo(self, p):
        name = self.random.choice(["memory", "free", "new_with_memory", "close", "replace"])
        if name == "new_with_memory":
            return [[name, self.size()]]
        if name == "free":
            return [[name, *self.random.choice(p.memory)]] if p.memory else []
        if name == "replace":
            return [[name, *self.random.choice(p.memory), self.random.choice(p.files), 0]] if p.memory and p.files else []
        if not p.alive():
            return []
        client = self.random.choice(p.alive())
        return [[name, client, self.size()] if name == "memory" else [name, client]]

    def fork(self, p):
        if self.random.random() < 0.4:
            return None
        answer = p.do("fork", sum((self.todo(p) for _ in range(self.random.randrange(3))), []))
        if answer["status"] == OK:
            self.children.append(answer["result"])
        return answer

    def exec(self, p):
        if self.random.random() < 0.6:
            return None
        p.files, p.n_files = [], 0  # exec closes them
        return p.do("exec")

    def kill(self, p):
        if self.random.random() < 0.4:
            return None
        if self.children and self.random.random() < 0.5:
            os.kill(self.children.pop(self.random.randrange(len(self.children))), signal.SIGKILL)
            return "a child"
        p.kill()
        self.puppets.remove(p)
        return "itself"

    def begin(self, p):
        if len(self.puppets) == MOST_PUPPETS:
            return None
        self.puppets.append(self.start())
        return "beside it"

    WAYS = ([new] * 3 + [share, free_device, free_client, close, close_file, kill, begin, exec, fork] +
            [allocate] * 5 + [free] * 3 + [duplicate] * 2 + [export] * 2 + [import_] * 3 + [pass_on] * 3 +
            [export_places] * 2 + [replace] * 4 + [import_places] * 4)

    def sums(self):
        """MiB: what the driver has allocated, and what is counted."""
        return self.simulator.held() // MIB, used(self.slices) // MIB

    def is_right(self):
        held, counted = self.sums()
        return held <= counted <= LIMIT

    def step(self):
        if not self.puppets:
            self.puppets.append(self.start())
        p, way = self.random.choice(self.puppets), self.random.choice(self.WAYS)
        who = self.puppets.index(p)
        answer = way(self, p)
        if answer is None:
            return
        self.log.append("%d: puppet %d, %s: %s" % (len(self.log), who, way.__name__, answer))
        # When a process is killed, the kernel releases its row's lock before the driver learns of
        # it.
        until(self.is_right, "what the driver holds is counted, and fits: %s MiB" % (self.sums(),))

    def end_all(self):
        for child in self.children:
            with contextlib.suppress(ProcessLookupError):
                os.kill(child, signal.SIGKILL)
        for p in self.puppets:
            p.kill()
        self.children, self.puppets = [], []

    def play(self):
        while len(self.log) < STEPS:
            self.step()
        self.end_all()
        until(lambda: self.simulator.held() == 0, "the driver has all of it back")
        until(self.all_is_to_be_had, "all is to be had again: counted %d MiB" % (used(self.slices) // MIB))

    def all_is_to_be_had(self):
        """A killed child closes the driver's files before it releases its row of the counters."""
        last = Program("hold", self.slices, self.simulator, HOLD=str(LIMIT))
        answer = last.hear()
        last.kill()
        return answer == {"status": OK}


class PuppetsTest(unittest.TestCase):
    def test_seeds(self):
        simulator = mounted("1xTesla-V100-SXM2-16GB:16160MiB")
        self.addCleanup(simulator.close)
        for seed in SEEDS:
            play = Play(simulator, seed)
            self.addCleanup(play.end_all)
            try:
                play.play()
            except AssertionError as e:
                self.fail("seed %d: %s\n%s" % (seed, e, "\n".join(play.log[-TOLD:])))
            print("seed %d" % seed, flush=True)


if __name__ == "__main__":
    if len(sys.argv) > 4:
        SEEDS = range(int(sys.argv[3]), int(sys.argv[4]) + 1)
    alone()
    unittest.main(argv=sys.argv[:1], verbosity=2)
