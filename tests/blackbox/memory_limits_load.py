#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Limits of device memory under load: processes in real cgroups that avoid the library, while limits change and processes are killed.

    memory_limits_load.py LIBRARY SIMULATOR SIM_FOLDER GPU_CASE [TEST...]

With THOROUGH=1 64 processes and a million attempts to get memory. SEED=N draws the same."""
import json
import os
import random
import select
import signal
import sys
import time
import unittest

import memory_limits
from cgroup_lab import enter_cgroups, make
from memory_limits import HARD_LIMIT, MIB
from patience import PATIENCE, rounds, until
from rm_client import Client, Refused, inside, say

PODS, PROCESSES = 4, rounds(16, 64)  # each pod on a card of its own: what is used there is what it holds
ATTEMPTS = rounds(3_200, 1_000_000)
KILLS = rounds(10, 1_000)
PIECES = (2, 4, 8, 30)  # MiB; the card gives out multiples of 2 MiB
MOST, LEAST = 128, 16   # MiB of a pod's limit
HELD = 12               # pieces that one process keeps at most


class Raider:
    """One process. It never loads the library, and tries each way to memory of a card."""

    def __init__(self, rng, card, leaves):
        self.rng, self.card, self.leaves = rng, card, leaves
        self.got = self.refused = 0
        self.clients, self.held = [Client(card=card)], []  # held: (client, handle)

    def take(self, how):
        client = self.rng.choice(self.clients)
        try:
            size = self.rng.choice(PIECES) * MIB
            handle = client.heap(size)[0] if how == "heap" else client.memory(size)
            self.held.append((client, handle))
            self.got += 1
        except Refused as refused:
            if refused.status != HARD_LIMIT:
                raise
            self.refused += 1

    def memory(self):
        self.take("class")

    def heap(self):
        self.take("heap")

    def duplicate(self):
        """The duplicate holds the memory when its source is free."""
        if not self.held:
            return
        i = self.rng.randrange(len(self.held))
        client, handle = self.held[i]
        other = self.rng.choice(self.clients)
        copy = other.dup(client.root, handle)
        client.free(handle)
        self.held[i] = (other, copy)

    def another_client(self):
        if len(self.clients) < 4:
            self.clients.append(Client(card=self.card))

    def end_client(self):
        """Its memory is free then."""
        if len(self.clients) > 1:
            gone = self.clients.pop()
            os.close(gone.fd)
            self.held = [(c, h) for c, h in self.held if c is not gone]

    def from_child(self):
        """A child uses the client of this process, which lives."""
        pid = os.fork()
        if pid == 0:
            code = 1
            try:
                self.clients[0].memory(self.rng.choice(PIECES) * MIB)
                code = 0
            except Refused as refused:
                code = 2 if refused.status == HARD_LIMIT else 1
            finally:
                os._exit(code)
        code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        if code not in (0, 2):
            raise AssertionError("a child ended with %d" % code)
        self.got += code == 0
        self.refused += code == 2

    def move(self):
        """To another container of the pod, which a process in the host's namespace can."""
        with open(self.rng.choice(self.leaves) + "/cgroup.procs", "w") as f:
            f.write("0")

    def step(self):
        way = self.rng.choices((self.memory, self.heap, self.duplicate, self.another_client, self.end_client, self.from_child, self.move),
                               (60, 20, 5, 2, 2, 1, 5))[0]
        way()
        while len(self.held) > self.rng.randrange(1, HELD):
            client, handle = self.held.pop(self.rng.randrange(len(self.held)))
            client.free(handle)


@inside
def raider():
    leaves = json.loads(os.environ["LEAVES"])
    with open(leaves[0] + "/cgroup.procs", "w") as f:
        f.write("0")
    r = Raider(random.Random(os.environ["RAID"]), int(os.environ["CARD"]), leaves)
    attempts = int(os.environ["ATTEMPTS"])
    while r.got + r.refused < attempts:
        r.step()
        if (r.got + r.refused) % 50 == 0:
            say(attempts=r.got + r.refused)
    say(attempts=attempts, got=r.got, refused=r.refused)


class Load:
    """Both accounts, without the known hole of the first process that ends (H1): a child may outlive a killed process."""
    IN_FILES = False

    def setUp(self):
        super().setUp()
        self.seed = int(os.environ.get("SEED") or random.randrange(1 << 32))
        self.rng = random.Random(self.seed)

    def pod_tree(self, pod):
        """The paths of a pod for NVML, and of its containers for processes."""
        return make(pod), [make(pod, leaf) for leaf in ("a", "b")]

    def begin(self, pod, attempts):
        """A process of that pod."""
        p = self.run_in("", "raider", CARD=str(pod), LEAVES=json.dumps(self.leaves[pod]), RAID=str(self.rng.random()), ATTEMPTS=str(attempts))
        p.pod, p.left, p.said = pod, attempts, {}
        return p

    def hear(self, p):
        """What a process has said by now. False when it has ended."""
        words = os.read(p.process.stdout.fileno(), 65536)
        p.heard += words
        *lines, p.heard = p.heard.split(b"\n")
        if lines:
            p.said = json.loads(lines[-1])
        return bool(words)

    def resize(self, pod):
        """As the agent does it: below the use the limit is the use."""
        wanted = self.rng.randrange(LEAST, MOST + 1, 2) * MIB
        hard, used = self.limit_of(pod)
        self.nvml_of(pod).set(self.pods[pod], max(wanted, used))  # it is refused, or ignored, where the use has grown
        self.before[pod] = hard if self.IN_FILES else 0

    def nvml_of(self, pod):
        self.nvml.card = self.nvml.handle(pod)
        return self.nvml

    def limit_of(self, pod):
        found = self.nvml_of(pod).get(self.pods[pod])
        self.assertIsInstance(found, tuple, f"NVML answers {found} (seed {self.seed})")
        return found

    def used(self):
        with open(self.sim.dir + "/status") as f:
            return [c["used"] for c in json.load(f)["cards"]]

    def check(self):
        """No card has more in use than its pod's limit."""
        used = self.used()
        for pod in range(PODS):
            hard, charged = self.limit_of(pod)
            self.before[pod] = 0 if used[pod] <= hard else self.before[pod]
            self.assertLessEqual(used[pod], max(hard, self.before[pod]),
                                 f"pod {pod} holds {used[pod]} of {hard}, of which {charged} are charged (seed {self.seed})")

    def test_no_byte_beyond_the_limit(self):
        print(f"seed {self.seed}, {ATTEMPTS} attempts", flush=True)
        self.start(self.LIMITS + ",orphans", cards=PODS)
        self.pods, self.leaves = zip(*(self.pod_tree(f"load{i}") for i in range(PODS)))
        for pod in range(PODS):
            self.assertEqual(self.nvml_of(pod).set(self.pods[pod], MOST // 2 * MIB), 0)
        self.before = [0] * PODS
        self.assertEqual(self.used(), [0] * PODS)
        living = [self.begin(i % PODS, ATTEMPTS // PROCESSES) for i in range(PROCESSES)]
        done = refused = kills = resizes = checks = 0
        heard = time.monotonic()
        while living:
            ready = select.select([p.process.stdout for p in living], [], [], 0.02)[0]
            heard = time.monotonic() if ready else heard
            self.assertLess(time.monotonic() - heard, PATIENCE, f"no process says anything (seed {self.seed})")
            for p in [p for p in living if p.process.stdout in ready]:
                if self.hear(p):
                    continue
                living.remove(p)
                self.assertEqual((p.process.wait(PATIENCE), p.said.get("attempts")), (0, p.left), f"seed {self.seed}")
                done += p.left
                refused += p.said["refused"]
            self.check()
            checks += 1
            if living and kills < KILLS and self.rng.random() < 0.4:
                p = living.pop(self.rng.randrange(len(living)))
                at = p.said.get("attempts", 0)
                p.kill()
                done += at
                kills += 1
                if p.left > at:
                    living.append(self.begin(p.pod, p.left - at))
            self.resize(self.rng.randrange(PODS))
            resizes += 1
        print(f"{done} attempts, {kills} kills, {resizes} resizes, {checks} checks; at least {refused} refused", flush=True)
        self.assertGreater(refused, 0, "nothing was tried beyond the limit")
        until(lambda: self.used() == [0] * PODS, "all memory is free")
        self.assertEqual([self.limit_of(pod)[1] for pod in range(PODS)], [0] * PODS)


class Misc(Load, memory_limits.Lab):
    """The driver's own account."""


class Dmem(Load, memory_limits.DmemLab):
    """The kernel's controller. Its counters are files here, so that a charge and a new limit may cross, and the limit of before counts for it."""
    IN_FILES = True

    def pod_tree(self, pod):
        _, path = self.make(pod)
        return path, [self.make(pod, leaf)[0] for leaf in ("a", "b")]


if __name__ == "__main__":
    if "PLAIN_OPTIONS" not in os.environ:
        enter_cgroups()
    memory_limits.load_sanitizer(os.path.abspath(sys.argv[3]) + "/libnvidia-ml.so.1")
    signal.alarm(rounds(600, 7200))
    memory_limits.SIM_FOLDER = os.path.abspath(sys.argv[3])
    del sys.argv[1:5]
    unittest.main()
