#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Memory that a process leaves to another one and ends, before the agent has seen it.

Usage: node_left.py ALIQUOT STORE_SERVER CLOCK_SHIM SIM GATE SAMPLE RM_RAW

A static program allocates on a simulated driver and sends its open file to a holder, or forks.
The agent is stopped meanwhile, so that all of it happens between two censuses. A proc of the test's
own says which container the holder is of; the maker is in none, as one that has ended."""

import os
import signal
import socket
import subprocess
import sys
import unittest

import node_simulated  # reads its own arguments, and makes a mount namespace
from node_lab import container, pod

sys.argv[1:1] = [node_simulated.SIM]
import sim  # noqa: E402  the static program, which is told what to do
del sys.argv[1:3]
sim.RAW = os.path.abspath(sim.RAW)
MORE = 4000

# Receives the file over a socket, prints which processes have it then, and waits.
HOLDER = """import ctypes, os, socket, sys, threading
way, s = sys.argv[2], socket.socket(fileno=int(sys.argv[1]))
if way == "double fork":
    for _ in range(2):
        if os.fork() != 0:
            os._exit(0)
        os.setsid()
held = socket.recv_fds(s, 1, 1)[1]
s.close()
print(os.getpid(), flush=True)
if way == "first thread ended":
    threading.Thread(target=threading.Event().wait).start()
    ctypes.CDLL(None).syscall(60, 0)
threading.Event().wait()
"""


class Left(node_simulated.SimulatedNode):
    def left(self, *pods, kill=True):
        """A node with these pods on card 1: their containers by pod and name."""
        lab = self.lab_of_left = self.simulated("core_mem", *(("--on-excess", "kill") if kill else ()))
        found = {}
        for p in pods:
            uid, name = self.place(lab, p, 1), p["metadata"]["name"]
            for c in p["spec"]["containers"]:
                made = self.started(lab, uid, c["name"])
                lab.wait(lambda made=made, name=name: any(s.get("containerID") == "containerd://" + made.id for s in lab.get(name)["status"].get(
                    "containerStatuses", [])), "its status names it")
                found[name, c["name"]] = made
        return lab, found

    def add(self, lab, pid, c):
        """Lets the agent see a process, as one of that container."""
        folder = os.path.join(lab.proc, str(pid))
        os.mkdir(folder)
        with open(os.path.join(folder, "cgroup"), "w") as f:
            f.write(f"0::/kubepods/burstable/pod{c.uid}/{c.id}\n")
        for name in "stat", "task":
            os.symlink(f"/proc/{pid}/{name}", os.path.join(folder, name))

    def holder(self, lab, c, way):
        """A process of the container that waits for a file. Returns the socket to it, and what it prints."""
        ours, theirs = socket.socketpair()
        p = subprocess.Popen([sys.executable, "-c", HOLDER, str(theirs.fileno()), way], stdout=subprocess.PIPE, text=True,
                             pass_fds=[theirs.fileno()])
        theirs.close()

        def end():
            ours.close()
            p.kill()
            p.wait()
            p.stdout.close()
        self.addCleanup(end)
        return ours, p

    def make(self, mib=MORE, fork=False, to=None):
        """Allocates, leaves the file, and ends. Returns the child's pid, if there is one."""
        program = sim.Program(self, self.machine.dir, pass_fds=[to.fileno()] if to else [])
        program.start(1)
        self.assertEqual(program.memory(10, mib << 20), sim.OK)
        child = program.number("fork") if fork else None
        if to:
            self.assertEqual(program.number("send", to.fileno(), program.ctl), 1)
        program.kill()
        return child

    def end_child(self, pid):
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            pass

    def between_censuses(self, lab, work):
        """Works while the agent and its census stand still."""
        stopped = [lab.agent.pid, *lab.agent.children(lab.agent.pid)]
        for pid in stopped:
            os.kill(pid, signal.SIGSTOP)
        try:
            return work()
        finally:
            for pid in reversed(stopped):
                os.kill(pid, signal.SIGCONT)

    def held(self):
        return self.machine.used()[1] >> 20

    def is_told_and_back(self, lab, name="main"):
        lab.wait(lambda: self.held() < MORE, "the memory is back")
        lab.wait(lambda: lab.events("GPUMemoryExceeded"), "an Event says so")
        self.assertRegex(lab.events("GPUMemoryExceeded")[0],
                         f"^container {name}: holds 4[0-9]+ MiB of gpu1, and its slice is [0-9]+ MiB: .* have ended .* were killed")

    def beside(self, lab, c):
        """An honest program of another pod. It must be there at the end."""
        p, _, _ = self.hold(lab, c, 1024)
        for name in "stat", "task":
            os.symlink(f"/proc/{p.pid}/{name}", os.path.join(lab.proc, str(p.pid), name))
        self.addCleanup(lambda: self.assertIsNone(p.poll()))

    def passed(self, way):
        lab, found = self.left(pod("a", container("main", 2)), pod("b", container("main", 2)))
        self.beside(lab, found["b", "main"])

        def work():
            to, p = self.holder(lab, found["a", "main"], way)
            self.make(to=to)
            pid = int(p.stdout.readline())
            self.addCleanup(self.end_child, pid)
            self.add(lab, pid, found["a", "main"])
        self.between_censuses(lab, work)
        self.is_told_and_back(lab)

    def test_a_child_has_it(self):
        lab, found = self.left(pod("a", container("main", 2)), pod("b", container("main", 2)))
        self.beside(lab, found["b", "main"])

        def work():
            child = self.make(fork=True)
            self.addCleanup(self.end_child, child)
            self.add(lab, child, found["a", "main"])
        self.between_censuses(lab, work)
        self.is_told_and_back(lab)

    def test_a_grandchild_in_a_session_of_its_own_has_it(self):
        self.passed("double fork")

    def test_a_second_thread_has_it(self):
        self.passed("first thread ended")

    def test_an_older_process_of_a_sidecar_has_it(self):
        """It is alone on the card: no other pod can have it."""
        lab, found = self.left(pod("a", container("main", 2), container("side")))
        to, p = self.holder(lab, found["a", "side"], "wait")
        self.add(lab, p.pid, found["a", "side"])
        self.between_censuses(lab, lambda: self.make(to=to))
        self.is_told_and_back(lab, "side")

    def test_an_older_process_beside_other_pods_is_told(self):
        lab, found = self.left(pod("a", container("main", 2)), pod("b", container("main", 2)))
        to, p = self.holder(lab, found["a", "main"], "wait")
        self.add(lab, p.pid, found["a", "main"])
        lab.wait(lambda: self.age(p.pid) > 1, "it is older than the last census")
        self.between_censuses(lab, lambda: self.make(to=to))
        self.are_told(lab, "a")
        self.assertIsNone(p.poll())

    def age(self, pid):
        """Seconds since the process began."""
        with open("/proc/uptime") as up, open(f"/proc/{pid}/stat") as f:
            return float(up.read().split()[0]) - int(f.read().rsplit(")", 1)[1].split()[19]) / os.sysconf("SC_CLK_TCK")

    def test_a_descriptor_that_waits_in_a_socket_is_told_when_it_is_taken(self):
        lab, found = self.left(pod("a", container("main", 2)), pod("b", container("main", 2)))
        to, p = self.holder(lab, found["a", "main"], "wait")
        self.add(lab, p.pid, found["a", "main"])
        lab.wait(lambda: self.age(p.pid) > 1, "it is older than the last census")
        os.kill(p.pid, signal.SIGSTOP)
        self.make(to=to)
        lab.wait(lambda: self.told("Node"), "the node's Event")
        self.assertEqual(self.told("Pod"), {})
        os.kill(p.pid, signal.SIGCONT)
        self.are_told(lab, "a")

    def told(self, kind):
        """The newest text of each object of that kind."""
        events = self.lab_of_left.api.get("/api/v1/namespaces/default/events")["items"]
        return {e["involvedObject"]["name"]: e["message"] for e in events
                if e["reason"] == "GPUMemoryUnaccounted" and e["involvedObject"]["kind"] == kind}

    def are_told(self, lab, *names):
        lab.wait(lambda: sorted(self.told("Pod")) == sorted(names), "an Event of each pod")
        lab.wait(lambda: "may be with" in self.told("Node")["n1"], "an Event of the node that names them")
        text = self.told("Node")["n1"]
        self.assertRegex(text, "has ended, holds 4[0-9]+ MiB; they may be with ")
        for name in names:
            self.assertIn(f"default/{name} (container main, process ", text)
        self.assertEqual((lab.events("GPUMemoryExceeded"), lab.metrics()["aliquot_node_killed_total"]), ([], 0))

    def test_two_pods_at_once_are_told(self):
        lab, found = self.left(pod("a", container("main", 2)), pod("b", container("main", 2)))

        def work():
            for name in "a", "b":
                child = self.make(fork=True)
                self.addCleanup(self.end_child, child)
                self.add(lab, child, found[name, "main"])
        self.between_censuses(lab, work)
        self.are_told(lab, "a", "b")
        self.assertGreater(self.held(), 2 * MORE - 1)

    def test_a_relay_of_makers(self):
        """Each one leaves a part, and ends."""
        lab, found = self.left(pod("a", container("main", 2)), pod("b", container("main", 2)))
        self.beside(lab, found["b", "main"])
        before = self.held()

        def work():
            child = self.make(1200, fork=True)
            self.addCleanup(self.end_child, child)
            self.add(lab, child, found["a", "main"])
        for _ in range(3):
            self.between_censuses(lab, work)
        lab.wait(lambda: self.held() <= before, "the memory is back")
        lab.wait(lambda: lab.events("GPUMemoryExceeded"), "an Event says so")


if __name__ == "__main__":
    unittest.main(warnings="ignore")
