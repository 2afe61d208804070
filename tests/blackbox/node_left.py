#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Memory that is not with one process for long. A process leaves it to another one and ends, or holds it now and then. Or another
process comes whenever one is killed.

Usage: node_left.py ALIQUOT STORE_SERVER CLOCK_SHIM SIM GATE SAMPLE RM_RAW [both]

both: the driver limits memory, too, and charges nothing for these programs, as for a client of a process that has ended.

A static program allocates on a simulated driver. A proc of the test's own says which container a
process is of. Left: the program sends its open file to a holder, or forks, while the agent is
stopped, so that all of it happens between two censuses. It is in no container, as one that has
ended."""

import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time
import types

import node_simulated  # reads its own arguments, and makes a mount namespace
import node_limits
from node_lab import PODS, container, pod
from grpc_process import run_tests

BOTH = sys.argv[-1] == "both" and bool(sys.argv.pop())
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


class Pods(node_limits.Both if BOTH else node_simulated.SimulatedNode):
    """Containers on a simulated driver, and static programs in them."""

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

    def program(self, lab, c, **options):
        """A static program of the container, with a client of the driver."""
        program = sim.Program(self, self.machine.dir, **options)
        self.add(lab, program.process.pid, c)
        return program

    def told(self, kind):
        """The newest text of each object of that kind."""
        events = self.lab_of_left.api.get("/api/v1/namespaces/default/events")["items"]
        return {e["involvedObject"]["name"]: e["message"] for e in events
                if e["reason"] == "GPUMemoryUnaccounted" and e["involvedObject"]["kind"] == kind}

    def exceeded(self):
        """The Events by pod."""
        return {e["involvedObject"]["name"]: e for e in self.lab_of_left.api.get("/api/v1/namespaces/default/events")["items"]
                if e["reason"] == "GPUMemoryExceeded"}

    def is_told_alone(self, lab, name, words):
        """That pod has the Event, and no other one. What it held is free again."""
        lab.wait(lambda: self.held() < MORE, "the memory is back")
        lab.wait(lambda: any(re.search(words, text) for text in lab.events("GPUMemoryExceeded")), f"an Event says {words}")
        self.assertEqual(list(self.exceeded()), [name])


class Left(Pods):
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


class NowAndThen(Pods):
    """Memory that is held for a part of the time."""

    def mib(self, lab, program):
        return sum(v for k, v in lab.metrics().items()
                   if k.startswith("DCGM_CUSTOM_PROCESS_MEM_USED") and f'ProcessId="{program.process.pid}"' in k)

    def censuses(self, lab, beat, n):
        """Waits for at least so many censuses: an honest program takes and frees memory, and each shows it."""
        for i in range(n):
            self.assertEqual(beat.memory(10, 64 << 20) if i % 2 == 0 else beat.free(10), sim.OK)
            lab.wait(lambda i=i: (self.mib(lab, beat) >= 64) == (i % 2 == 0), "another census")

    def test_in_step_with_the_census(self):
        """One census sees the memory, and four do not."""
        lab, found = self.left(pod("a", container("main", 2)), pod("b", container("main", 2)))
        holder, beat = (self.program(lab, found[name, "main"]).start(1) for name in "ab")
        rounds = 0
        while holder.process.poll() is None:
            rounds += 1
            self.assertLess(rounds, 100, "it is never reported")
            try:
                holder.memory(10, MORE << 20)
                lab.wait(lambda: self.mib(lab, holder) >= MORE or holder.process.poll() is not None, "a census sees it")
                holder.free(10)
            except BrokenPipeError:  # it was killed
                break
            self.censuses(lab, beat, 4)
        self.is_told_alone(lab, "a", r"^container main: holds 4\d\d\d MiB of gpu1, and its slice is 2154 MiB: .* processes were killed")
        self.assertIsNone(beat.process.poll())

    def hold(self, program, seconds):
        """Holds the memory for that time, and for twice that time not, until it is killed."""
        try:
            while True:
                program.memory(10, MORE << 20)
                time.sleep(seconds)
                program.free(10)
                time.sleep(2 * seconds)
        except BrokenPipeError:
            pass

    def test_holds_from_a_third_of_a_census_to_five(self):
        """A third of the time, at any phase."""
        names = "abc"
        lab, found = self.left(*(pod(name, container("main", 2)) for name in (*names, "good")))
        beat = self.program(lab, found["good", "main"]).start(1)
        self.assertEqual(beat.memory(10, 2000 << 20), sim.OK)
        threads = []
        for name, part in zip(names, (0.3, 1, 5)):
            program = self.program(lab, found[name, "main"]).start(1)
            threads.append(threading.Thread(target=self.hold, args=(program, part * 0.02), daemon=True))
            threads[-1].start()
        for thread in threads:
            lab.wait(lambda thread=thread: not thread.is_alive(), "it is killed")
        lab.wait(lambda: sorted(self.exceeded()) == list(names), "an Event of each")
        lab.wait(lambda: self.held() < MORE, "the memory is back")
        self.assertIsNone(beat.process.poll())


class Others(Pods):
    """Holders that are not found under the first pid that one looks at."""

    def test_a_process_whose_first_thread_has_ended(self):
        lab, found = self.left(pod("a", container("main", 2)), pod("b", container("main", 2)))
        self.beside(lab, found["b", "main"])
        program = self.program(lab, found["a", "main"])
        self.assertEqual(program.number("leave"), 0)
        program.start(1)
        self.assertEqual(program.memory(10, MORE << 20), sim.OK)
        self.is_told_alone(lab, "a", "^container main: holds 4.* processes were killed")

    def test_a_process_that_is_not_waited_for(self):
        """It has ended, and its child has the file."""
        lab, found = self.left(pod("a", container("main", 2)), pod("b", container("main", 2)))
        self.beside(lab, found["b", "main"])
        program = self.program(lab, found["a", "main"]).start(1)
        self.assertEqual(program.memory(10, 1000 << 20), sim.OK)
        child = program.number("fork")
        self.addCleanup(self.end_child, child)
        self.add(lab, child, found["a", "main"])
        self.assertEqual(program.memory(11, MORE << 20), sim.OK)
        os.kill(program.process.pid, signal.SIGKILL)
        self.is_told_alone(lab, "a", "^container main: holds 5.*")

    def receiver(self, lab, sender, c):
        """A program of that container, which works with a file that the sender has opened."""
        ours, theirs = socket.socketpair()
        with ours, theirs:
            maker = self.program(lab, sender, pass_fds=[ours.fileno()])
            taker = self.program(lab, c, pass_fds=[theirs.fileno()])
            self.assertEqual(maker.number("send", ours.fileno(), maker.open()), 1)
            taker.ctl = taker.number("receive", theirs.fileno())
        self.assertGreaterEqual(taker.ctl, 0)
        taker.start(1)
        self.assertEqual(taker.memory(10, MORE << 20), sim.OK)
        return maker, taker

    def test_a_descriptor_in_a_container_without_a_slice(self):
        """It allocates and is killed. The file is open in the container that gave it, and is closed by the end of that one."""
        lab, found = self.left(pod("a", container("main", 2), container("side")), pod("b", container("main", 2)))
        self.beside(lab, found["b", "main"])
        self.receiver(lab, found["a", "main"], found["a", "side"])
        for text in ("^container side: holds 4.* of gpu1, and its slice is 0 MiB: .*processes were killed",
                     "^container main: holds 4.* of gpu1, and its slice is 2154 MiB: .* 1 of 1 have ended and others have the driver's file of theirs; "):
            self.is_told_alone(lab, "a", text)

    def test_an_ephemeral_container(self):
        """As of `kubectl debug`: it has no slice, and takes the file from a container that has one."""
        lab, found = self.left(pod("a", container("main", 2)), pod("b", container("main", 2)))
        self.beside(lab, found["b", "main"])
        debugger = types.SimpleNamespace(uid=found["a", "main"].uid, id="e" * 64)
        lab.api.patch(PODS + "/a/status", {"status": {"ephemeralContainerStatuses": [
            {"name": "debugger", "containerID": "containerd://" + debugger.id, "state": {"running": {}}}]}})
        self.receiver(lab, found["a", "main"], debugger)
        self.is_told_alone(lab, "a", "^container debugger: holds 4.* of gpu1, and its slice is 0 MiB: .*processes were killed")

    def test_a_descriptor_in_a_pod_without_a_slice(self):
        """It has none, so there is no excess of it: the Node is told."""
        lab, found = self.left(pod("a", container("main", 2)))
        made = lab.api.post(PODS, pod("n", container("main")))
        lab.bind(made, {})
        lab.wait(lambda: lab.running(made["metadata"]["uid"]), "it runs")
        maker, taker = self.receiver(lab, found["a", "main"], lab.kubelet.runtime.of(made["metadata"]["uid"], "main"))
        lab.wait(lambda: self.told("Node"), "an Event of the node says so")
        self.assertRegex(self.told("Node")["n1"], f"process {taker.process.pid}, which is in pod default/n without a slice, holds 4")
        self.assertEqual((maker.process.poll(), taker.process.poll(), self.exceeded()), (None, None, {}))

    def test_a_parent_that_makes_a_holder_again(self):
        """Whenever one is killed. The third kill is of the parent, too."""
        lab, found = self.left(pod("a", container("main", 2)), pod("b", container("main", 2)))
        self.beside(lab, found["b", "main"])
        c, before = found["a", "main"], self.held()
        parent = subprocess.Popen(["/bin/sh", "-c", 'while :; do "$@"; done', "sh", node_simulated.SAMPLE, "--gpu-mem-mib", str(MORE), "--", "sleep",
                                   "1000000"], env=self.environment(c, gate=False)[1], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                                  start_new_session=True)
        known = {parent.pid}
        self.add(lab, parent.pid, c)

        def end():
            try:
                os.killpg(parent.pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
            parent.wait()
        self.addCleanup(end)

        def ended():
            """The last child may outlive the parent, because it is not in that proc before it is found here."""
            for pid in of_session(parent.pid):
                if pid not in known:
                    known.add(pid)
                    self.add(lab, pid, c)
            return parent.poll() is not None and self.held() < MORE
        lab.wait(ended, "the parent is killed, and no holder is left")
        self.is_told_alone(lab, "a", "^container main: holds .* were killed")
        lab.wait(lambda: self.held() <= before, "the memory is back")
        lab.wait(lambda: self.exceeded()["a"]["count"] >= 3, "one Event, counted up")


def of_session(leader):
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            if os.getsid(int(pid)) == leader:
                found.append(int(pid))
        except OSError:
            pass
    return found


if __name__ == "__main__":
    run_tests(warnings="ignore")
