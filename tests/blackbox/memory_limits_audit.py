#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Memory that the driver does not charge, with the limits of both accounts: what the audit finds, census by census.

    memory_limits_audit.py LIBRARY SIMULATOR SIM_FOLDER AUDIT_STEPS [TEST...]

Real processes in real cgroups hold what is charged, in three containers of two pods on one card. In each round one container takes more
than its slice by a client whose creator has ended, or by managed memory. With THOROUGH=1 1,000 rounds of each account. SEED=N draws the
same."""
import ctypes
import json
import os
import random
import signal
import subprocess
import sys
import time
import unittest

import memory_limits
from cgroup_lab import enter_cgroups, make
from memory_limits import MIB
from patience import rounds
from rm_client import GID, LIBC, OK, Client, address_of, inside, ok, packed, say, status_of, wait_for_word

ROUNDS = rounds(24, 1_000)
CARD_MIB, UNITS = 16 * 1024, 16
CONTAINERS = {("a", "main"): 2, ("a", "side"): 3, ("b", "main"): 4}  # (pod, name): units of a GiB
UIDS = {name: f"{i}a0a0a0a-0000-0000-0000-00000000000{i}" for i, name in enumerate("ab", 1)}
SPARE = 32               # MiB of each slice that honest processes leave
GRACE = 64               # MiB beyond a slice that are never reported
PER_PROCESS = 32         # MiB beside the known processes of a card that are tolerated, for each of them
CENSUSES, QUIET = 3, 12  # an excess is told of with the third; then it is forgotten
INITIALIZE, REGISTER, ADD_SPACE, MIGRATE = 0x30000001, 37, 25, 51
SUBREAPER = 36


# ---- programs ----

def uvm_call(fd, request, params, status_at):
    assert LIBC.ioctl(fd, request, address_of(params)) == 0, request
    ok(int.from_bytes(params.raw[status_at:status_at + 4], "little"))


def take_managed(size):
    """As cuMemAllocManaged() with a prefetch to the card, by raw calls."""
    c = Client()
    text = c.control(c.subdevice, GID, ctypes.create_string_buffer(268))[12:12 + 40].decode()
    uuid = bytes.fromhex(text[4:].replace("-", ""))
    fd = os.open(os.environ["SIM_DIR"] + "/nvidia-uvm", os.O_RDWR | os.O_CLOEXEC)
    uvm_call(fd, INITIALIZE, packed("<QII", 1, 0, 0), 8)
    uvm_call(fd, REGISTER, packed("<16sIiiIII", uuid, 0, 0, -1, 0, 0, 0), 36)
    uvm_call(fd, ADD_SPACE, packed("<16siIII", uuid, -1, 0, 0, 0), 28)
    uvm_call(fd, MIGRATE, packed("<QQ16sIIQIiQQII", 0x700000000000, size, uuid, 0, 0, 0, 0, -1, 0, 0, 0, 0), 72)


class Maker:
    """A process that makes a client and a child, and ends. The child, which lives on, allocates with the client."""

    def __init__(self, first, size):
        self.end, ended = os.pipe(), os.pipe()
        self.told = os.pipe()
        self.pid = os.fork()
        if self.pid != 0:
            for fd in ended:
                os.close(fd)
            return
        c = Client()
        if first:
            c.memory(first)
        if os.fork() == 0:
            os.close(ended[1])  # the maker has the last one
            os.read(ended[0], 1)
            os.read(self.end[0], 1)
            os.write(self.told[1], b"%d" % status_of(c.memory, size))
            signal.pause()
        os.write(self.told[1], b"x")
        signal.pause()

    def is_ready(self):
        assert os.read(self.told[0], 1) == b"x"

    def kill(self):
        os.kill(self.pid, signal.SIGKILL)
        os.waitpid(self.pid, 0)

    def take(self):
        os.write(self.end[1], b"x")
        status = int(os.read(self.told[0], 16))
        for fd in self.end + self.told:
            os.close(fd)
        return status


def hold(what, *arguments):
    """A child of this process that holds memory. Returns the driver's status."""
    told = os.pipe()
    if os.fork() == 0:
        os.write(told[1], b"%d" % status_of(what, *arguments))
        signal.pause()
    status = int(os.read(told[0], 16))
    for fd in told:
        os.close(fd)
    return status


def drop():
    """Ends all children but the first, which is honest, and those that were made for them."""
    with open(f"/proc/self/task/{os.getpid()}/children") as f:
        for pid in f.read().split()[1:]:
            os.kill(int(pid), signal.SIGKILL)
            os.waitpid(int(pid), 0)


@inside
def container():
    """The first process of a container. It holds no file of the driver, and makes processes as it is told."""
    with open(os.environ["LEAF"] + "/cgroup.procs", "w") as f:
        f.write("0")
    assert LIBC.prctl(SUBREAPER, 1, 0, 0, 0) == 0
    maker = None
    while word := wait_for_word():
        name, *sizes = word.split()
        sizes = [int(size) for size in sizes]
        status = OK
        if name == "honest":
            status = hold(lambda: Client().memory(sizes[0]))
        elif name == "managed":
            status = hold(take_managed, sizes[0])
        elif name == "make":
            maker = Maker(*sizes)
            maker.is_ready()
        elif name == "end":
            maker.kill()
        elif name == "take":
            status = maker.take()
        else:
            drop()
        say(status=status)


# ---- the audit ----

class Audit:
    """The agent's audit, which takes a census when it is told."""

    def __init__(self, sim_dir):
        self.process = subprocess.Popen([AUDIT_STEPS, memory_limits.SIM_FOLDER + "/libnvidia-ml.so.1", "/proc", f"1xT:{CARD_MIB}MiB"],
                                        env=dict(os.environ, ALIQUOT_SIM_DIR=sim_dir), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def tell(self, text):
        self.process.stdin.write(text + "\n")
        self.process.stdin.flush()
        lines = []
        while not lines or lines[-1] != "done":
            line = self.process.stdout.readline().rstrip("\n")
            assert line not in ("", "failed"), text
            lines.append(line)
        return [line.split() for line in lines[:-1]]

    def add(self, pod, containers):
        """containers: name, units and the runtime's id of each."""
        spec = [{"name": name, "resources": {"limits": {"aliyun.com/gpu-mem": str(units)}}} for name, units, _ in containers]
        status = [{"name": name, "containerID": "containerd://" + runtime} for name, _, runtime in containers]
        self.tell("pod " + json.dumps({"metadata": {"name": pod, "namespace": "default", "uid": UIDS[pod]},
                                       "spec": {"nodeName": "n1", "containers": spec}, "status": {"containerStatuses": status}}))
        for name, units, _ in containers:
            self.tell(f"give {UIDS[pod]} {pod} {name} 0 {units}")

    def close(self):
        self.process.stdin.close()
        self.process.stdout.close()
        return self.process.wait()


class Uncharged:
    def pod_tree(self, *parts):
        """The path of a cgroup for NVML, and for processes."""
        return make(*parts), make(*parts)

    def begin(self):
        self.seed = int(os.environ.get("SEED") or random.randrange(1 << 32))
        self.rng = random.Random(self.seed)
        print(f"seed {self.seed}, {ROUNDS} rounds", flush=True)
        self.start(self.LIMITS, cards=1, card_mib=CARD_MIB)
        self.audit = Audit(self.sim.dir)
        self.addCleanup(lambda: self.assertEqual(self.audit.close(), 0))
        self.honest, self.paths, self.inside = {}, {}, {}
        for pod, uid in UIDS.items():
            self.begin_pod(pod, uid, [(name, units) for (of, name), units in CONTAINERS.items() if of == pod])

    def begin_pod(self, pod, uid, containers):
        parts = ("kubepods", "burstable", "pod" + uid)
        self.paths[pod], _ = self.pod_tree(*parts)
        self.assertEqual(self.nvml.set(self.paths[pod], sum(units for _, units in containers) << 30), 0)
        made = []
        for name, units in containers:
            runtime = "%064x" % self.rng.getrandbits(256)
            made.append((name, units, runtime))
            program = self.run_in(self.pod_tree(*parts, runtime)[1], "container")
            self.honest[pod, name] = self.rng.randrange(2, units * 1024 - SPARE, 2)
            self.inside[pod, name] = program
            self.tell((pod, name), "honest", self.honest[pod, name])
        self.audit.add(pod, made)

    def tell(self, culprit, word, *mib, status=OK):
        program = self.inside[culprit]
        program.go_on(" ".join((word, *(str(size * MIB) for size in mib))))
        self.assertEqual(program.hear()["status"], status, f"{word} {mib} in {culprit} (seed {self.seed})")

    def census(self):
        if self.rng.random() < 0.3:
            time.sleep(self.rng.random() / 50)  # at any phase of the kernel's ticks
        return self.audit.tell("census")

    # ---- ways: each ends when the memory is held, and returns what the finding is of ----

    def quick(self, culprit, size):
        """All of it between two censuses."""
        self.tell(culprit, "make", 0, size)
        self.tell(culprit, "end")
        self.tell(culprit, "take")
        return "excess"

    def seen(self, culprit, size):
        """A census has seen the creator, with memory that is charged."""
        self.tell(culprit, "make", SPARE // 2, size - SPARE // 2)
        self.quiet(self.rng.randrange(1, 4))
        self.tell(culprit, "end")
        self.quiet(self.rng.randrange(2))
        self.tell(culprit, "take")
        return "excess"

    def late(self, culprit, size):
        """The creator has ended before a census, without memory: the card's finding names the container that may have it."""
        self.tell(culprit, "make", 0, size)
        self.tell(culprit, "end")
        self.quiet(self.rng.randrange(1, 4))
        time.sleep(0.02)  # more than a tick: it is older than the census that finds its memory
        self.quiet(1)
        self.tell(culprit, "take")
        return "holder"

    def managed(self, culprit, size):
        """No process of NVML's has it, so that the card's finding names no container."""
        self.tell(culprit, "managed", size)
        return "card"

    def quiet(self, n):
        for _ in range(n):
            self.assertEqual(self.census(), [], f"seed {self.seed}")

    def charged(self):
        return [self.nvml.get(path) for path in self.paths.values()]

    def check(self, kind, culprit, size, found):
        """The third census tells of this container, or of the card, and of nothing else."""
        where = f"{size} MiB of {culprit} by {kind} (seed {self.seed})"
        self.assertEqual(found[:-1], [[]] * (CENSUSES - 1), where)
        self.assertEqual(len(found[-1]), 1, f"{where}: {found[-1]}")
        what, *words = found[-1][0]
        pod, name = culprit
        if kind == "excess":
            used = self.honest[culprit] + size
            self.assertEqual((what, words), ("excess", [pod, name, "0", str(used * MIB), str(CONTAINERS[culprit] << 30)]), where)
            return
        self.assertEqual((what, words[0], words[1], words[3:]), ("card", "0", str(size * MIB), [f"{pod}/{name}"] if kind == "holder" else []), where)

    def test_what_is_not_charged_is_found(self):
        self.begin()
        self.quiet(1)  # what the first census of an agent finds may be older than the agent
        before = self.charged()
        counts = dict.fromkeys((self.quick, self.seen, self.late, self.managed), 0)
        room = CARD_MIB - sum(self.honest.values()) - 64
        for _ in range(ROUNDS):
            culprit = self.rng.choice(list(CONTAINERS))
            way = self.rng.choice(list(counts))
            least = CONTAINERS[culprit] * 1024 - self.honest[culprit] + GRACE
            if way == self.managed:
                least = GRACE + PER_PROCESS * (len(CONTAINERS) + 1)
            size = self.rng.randrange(least // 2 * 2 + 2, room, 2)
            self.quiet(self.rng.randrange(3))
            kind = way(culprit, size)
            self.check(kind, culprit, size, [self.census() for _ in range(CENSUSES)])
            extra = (SPARE // 2) * MIB if way == self.seen else 0
            held = [used for _, used in self.charged()]
            self.assertLessEqual(sum(held), sum(used for _, used in before) + extra, f"it is charged (seed {self.seed})")
            self.tell(culprit, "drop")
            while self.audit.tell("census"):
                pass
            self.quiet(QUIET)
            counts[way] += 1
        self.assertEqual(self.charged(), before)
        print(", ".join(f"{way.__name__}: {n} of {n}" for way, n in counts.items()), "found with census", CENSUSES, flush=True)


class Misc(Uncharged, memory_limits.Lab):
    """The driver's own account."""


class Dmem(Uncharged, memory_limits.DmemLab):
    """The kernel's controller."""

    def pod_tree(self, *parts):
        for n in range(1, len(parts)):
            self.make(*parts[:n])
        procs, path = self.make(*parts)
        return path, procs


if __name__ == "__main__":
    if "PLAIN_OPTIONS" not in os.environ:
        enter_cgroups()
    memory_limits.load_sanitizer(os.path.abspath(sys.argv[3]) + "/libnvidia-ml.so.1")
    signal.alarm(rounds(600, 7200))
    memory_limits.SIM_FOLDER, AUDIT_STEPS = (os.path.abspath(name) for name in sys.argv[3:5])
    del sys.argv[1:5]
    unittest.main()
