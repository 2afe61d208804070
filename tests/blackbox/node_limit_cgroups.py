#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Limits of the driver on pods with containers of real processes in real cgroups, which the simulated driver charges.

Usage: node_limit_cgroups.py ALIQUOT STORE_SERVER CLOCK_SHIM SIM GATE SAMPLE

Processes that avoid the library find the limit: what they get is what the driver grants to the pod."""

import contextlib
import ctypes
import os
import subprocess

from cgroup_lab import ROOT, enter_cgroups, remove_tree

enter_cgroups()
os.environ["ALIQUOT_SIM_TEST_INSIDE"] = "1"  # node_simulated needs no other namespace

from node_simulated import CARDS, GATE, SIM, SimulatedNode  # noqa: E402
from node_lab import PODS, container, pod  # noqa: E402
from grpc_process import run_tests  # noqa: E402
from patience import rounds  # noqa: E402
from runtime import Runtime  # noqa: E402
from sim_lab import Machine  # noqa: E402

PIECE = 256  # MiB that hold() takes at once
NO_LIMIT = (1 << 64) - 1
NOT_SUPPORTED = 3  # NVML's code where the account has no entry for the cgroup
UNITS = {2: 2154, 3: 3232, 4: 4309, 5: 3232 + 2154}


class Limits(ctypes.Structure):
    """What NVML sets (without `used`) and reads."""
    _fields_ = [("path", ctypes.c_char_p), ("soft", ctypes.c_uint64), ("hard", ctypes.c_uint64), ("used", ctypes.c_uint64)]


class CgroupRuntime(Runtime):
    """Containers are cgroups with a process that sleeps."""

    def __init__(self, cgroup_root):
        self.processes = {}
        super().__init__(cgroup_root)

    @staticmethod
    def _write(path, text):
        """The kernel writes these files."""

    def _make_group(self, directory):
        os.makedirs(directory, exist_ok=True)
        self.processes[directory] = subprocess.Popen(["sleep", "infinity"], stdin=subprocess.DEVNULL)
        enter(directory, self.processes[directory].pid)

    def _remove(self, directory):
        remove_tree(directory)
        if directory in self.processes:
            self.processes.pop(directory).wait()


def enter(directory, pid):
    with open(os.path.join(directory, "cgroup.procs"), "w") as f:
        f.write(str(pid))


class Cgroups(SimulatedNode):
    def limited(self, mode, limits="misc"):
        """A node where the driver keeps an account of its own."""
        self.machine = Machine(self, SIM, CARDS, "--name", "n1", "--driver", "615.71.09", "--memory-limits", limits)
        lab = self.lab(cards=CARDS, mode=mode, driver=self.machine.dir, start=False, annotations={"aliquot.dev/memory-isolation": "both"})
        lab.kubelet.runtime = CgroupRuntime(ROOT)
        self.addCleanup(self.end_containers, lab.kubelet.runtime)
        lab.cgroup, lab.library, lab.proc = ROOT, GATE, os.path.join(lab.dir, "proc")
        os.mkdir(lab.proc)
        lab.extra += ["--proc", lab.proc]
        lab.start_agent()
        lab.wait_ready()
        lab.wait(lambda: 'aliquot_node_memory_isolation{mechanism="both",backend="driver"}' in lab.metrics(), "both are in force")
        return lab

    @staticmethod
    def end_containers(runtime):
        remove_tree(os.path.join(ROOT, "kubepods"))
        for p in runtime.processes.values():
            p.wait()

    def granted(self, lab, c, mib, gate=False, card=0):
        """MiB that a process of the container gets of that card of its cards, in pieces."""
        env = c.options["env"]
        cards = env["NVIDIA_VISIBLE_DEVICES"].split(",")
        env["NVIDIA_VISIBLE_DEVICES"] = ",".join(cards[card:] + cards[:card])
        p, got, _ = self.hold(lab, c, mib, gate, before=lambda p: enter(lab.kubelet.runtime._container_dirs(c)[0], p.pid))
        env["NVIDIA_VISIBLE_DEVICES"] = ",".join(cards)
        p.kill()
        p.wait()
        self.machine.wait_used(0, 0)
        return got

    def limited_to(self, lab, c, mib, card=0):
        """The driver's library takes some of it for its context."""
        got = self.granted(lab, c, mib + 4 * PIECE, card=card)
        self.assertTrue(mib - 3 * PIECE < got <= mib, f"{got} of {mib}")

    @contextlib.contextmanager
    def nvml(self, index=0):
        os.environ["ALIQUOT_SIM_DIR"] = self.machine.dir
        library = ctypes.CDLL(os.path.join(os.path.dirname(SIM), "sim", "libnvidia-ml.so.1"))
        card = ctypes.c_void_p()
        self.assertEqual(library.nvmlInit_v2(), 0)
        self.assertEqual(library.nvmlDeviceGetHandleByIndex_v2(index, ctypes.byref(card)), 0)
        yield library, card
        self.assertEqual(library.nvmlShutdown(), 0)

    def set_by_hand(self, path, mib):
        """Limits a cgroup, as an operator may do it."""
        with self.nvml() as (library, card):
            self.assertEqual(library.nvmlDeviceSetMemoryLimits_v1(card, ctypes.byref(Limits(path.encode(), 0, mib << 20))), 0)

    def limits_of(self, paths, index=0):
        """Of cgroups, as the account has them: MiB, None for no limit, or NOT_SUPPORTED."""
        found = []
        with self.nvml(index) as (library, card):
            for path in paths:
                limits = Limits(path.encode())
                code = library.nvmlDeviceGetMemoryLimits_v1(card, ctypes.byref(limits))
                self.assertIn(code, (0, NOT_SUPPORTED))
                found.append(code or (None if limits.hard == NO_LIMIT else limits.hard >> 20))
        return found

    def new_cgroups(self, n):
        paths = [os.path.join(ROOT, f"new-{i}") for i in range(n)]
        for path in paths:
            os.mkdir(path)
            self.addCleanup(os.rmdir, path)
        return paths

    def leave_limit(self, mib):
        """The next cgroup that is made has the entry of a removed one."""
        gone = os.path.join(ROOT, "gone")
        os.mkdir(gone)
        self.set_by_hand(gone, mib)
        os.rmdir(gone)

    def test_a_container_with_an_honoured_cgpu_disable(self):
        """The pod has no limit, and none of a removed cgroup; the library holds its other container all the same."""
        lab = self.limited("cgpu", "misc,reuse")
        self.leave_limit(1024)
        uid = self.place(lab, pod("a", container("main", 3), container("free", 2, env=[{"name": "CGPU_DISABLE", "value": "1"}])), 0)
        main, free = (self.started(lab, uid, name) for name in ("main", "free"))
        for gate in False, True:
            self.assertEqual(self.granted(lab, free, 8 * 1024, gate), 8 * 1024)
        self.assertEqual(self.granted(lab, main, 8 * 1024), 8 * 1024)
        self.assertLessEqual(self.granted(lab, main, 8 * 1024, gate=True), UNITS[3])
        self.assertEqual(lab.metrics()["aliquot_node_memory_limits"], 0)
        self.started(lab, self.place(lab, pod("b", container("main", 2)), 1))
        self.assertEqual(lab.metrics()["aliquot_node_memory_limits"], 1)

    def test_an_init_container(self):
        """It and later containers have the sum, in which devices that both have count once."""
        lab = self.limited("cgpu")
        uid = self.place(lab, pod("a", container("main", 3), init=[container("ini", 5)], annotations={"fake/run-ini": "100000"}), 0)
        self.limited_to(lab, self.started(lab, uid, "ini"), UNITS[5])
        lab.kubelet.finish(uid, "ini")
        self.limited_to(lab, self.started(lab, uid), UNITS[5])

    def test_a_pod_on_two_cards(self):
        lab = self.limited("cgpu")
        c = self.started(lab, self.place(lab, pod("a", container("main", 8), cards=2), 0, 1))
        other = self.started(lab, self.place(lab, pod("b", container("main", 2)), 1))
        for card in 0, 1:
            self.limited_to(lab, c, UNITS[4], card)
        self.limited_to(lab, other, UNITS[2])

    def test_what_is_charged_to_a_cgroup_above(self):
        """A new pod without an entry reads the use of the nearest one above, which is not the pod's."""
        lab = self.limited("cgpu")
        c = self.started(lab, self.place(lab, pod("a", container("main", 2)), 0))
        above, beside = os.path.join(ROOT, "kubepods"), os.path.join(ROOT, "kubepods", "beside")
        os.mkdir(beside)
        self.set_by_hand(above, 12 * 1024)
        p, got, _ = self.hold(lab, c, 2048, gate=False, before=lambda p: enter(beside, p.pid))
        self.assertEqual(got, 2048)
        c = self.started(lab, self.place(lab, pod("b", container("main", 3)), 0))
        p.kill()
        p.wait()
        self.machine.wait_used(0, 0)
        self.limited_to(lab, c, UNITS[3])

    def test_a_pod_that_shares_without_isolation(self):
        """It has no limit, and none of a removed cgroup."""
        lab = self.limited("share", "misc,reuse")
        self.leave_limit(1024)
        c = self.started(lab, self.place(lab, pod("a", container("main", 2)), 0))
        self.assertEqual(self.granted(lab, c, 8 * 1024), 8 * 1024)
        self.assertEqual(lab.metrics()["aliquot_node_memory_limits"], 0)

    def test_no_limit_is_left_by_pods_that_have_come_and_gone(self):
        """The kubelet reports the end of a pod, and removes its cgroup when volumes are unmounted. The next pod gets the devices, so that
        it starts after the record has gone: the limit is lifted before that of the next one is set."""
        lab = self.limited("cgpu", "misc,reuse")
        lab.kubelet.runtime.keeps = True  # this test removes the cgroups
        for i in range(2):  # their limits are read meanwhile
            self.started(lab, self.place(lab, pod(f"beside-{i}", container("main", 3)), 1))
        ended = None
        for i in range(rounds(50, 1000) + 1):
            uid = self.place(lab, pod(f"p{i}", container("main", 15), restartPolicy="Never"), 0)  # all devices of the card
            self.started(lab, uid)
            path = lab.kubelet.runtime._pod_dirs(uid)[0]
            if ended:
                self.assertEqual(self.limits_of([ended, path]), [None, 16160])
                os.rmdir(ended)
                lab.api.delete(f"{PODS}/p{i - 1}", grace=0)
            lab.kubelet.finish(uid, "main", lab.rng.randrange(2))
            lab.wait(lambda i=i: lab.kubelet.all_ended({f"p{i}"}), "its devices are free")
            ended = path
        lab.wait(lambda: self.limits_of([ended]) == [None], "that of the last one is lifted")
        os.rmdir(ended)
        left = self.limits_of(self.new_cgroups(8))
        self.assertIn(None, left)
        self.assertLessEqual(set(left), {None, NOT_SUPPORTED})

    def test_a_cgroup_that_is_removed_before_its_limit_is_lifted(self):
        """The entry keeps the limit, which the next cgroup has at that address."""
        lab = self.limited("cgpu", "misc,reuse")
        uid = self.place(lab, pod("a", container("main", 2), restartPolicy="Never"), 0)
        self.started(lab, uid)
        lab.kubelet.finish(uid, "main")  # the fake kubelet removes the cgroup before it reports the end
        lab.wait(lambda: lab.metrics()["aliquot_node_memory_limits"] == 0, "the agent has forgotten it", leap=1)
        self.assertEqual(self.limits_of(self.new_cgroups(8)).count(UNITS[2]), 1)


if __name__ == "__main__":
    run_tests(warnings="ignore")
