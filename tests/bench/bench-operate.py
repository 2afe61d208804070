#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""How long an administrator waits: bench-operate.py ALIQUOT STORE_SERVER CLOCK_SHIM NVML

From the annotation of a pod to the slice's page, for a shrink, a growth to the limit and one beyond
it. Beside it the time in which a patch of the same pod reaches a watcher. And `aliquot doctor` on a
healthy node and in a healthy cluster, beside the start of the program."""

import os
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "blackbox"))

import doctor  # noqa: E402  takes the arguments
sys.argv.insert(1, doctor.NVML)  # the next module takes this one, too
from isolation_case import MIB, Started  # noqa: E402
from node_growth import SWITCH  # noqa: E402
from node_lab import PODS, container, pod  # noqa: E402

ROUNDS = 50


def middle(times):
    times.sort()
    return times[len(times) // 2]


def tell(what, times, before):
    base = middle(before)
    print(f"{what:50} n={len(times)} p50={middle(times):.1f} ms p98={times[-1 - len(times) // 50]:.1f} ms max={times[-1]:.1f} ms, "
          f"{middle(times) / base:.1f} x the baseline of {base:.1f} ms")


def timed(action):
    began = time.monotonic()
    action()
    return 1000 * (time.monotonic() - began)


def until(condition):
    while not condition():
        time.sleep(0.0005)


class Operate(Started):
    def resize(self):
        lab = self.lab(cards="1xTesla-V100-SXM2-16GB:16160MiB", nvml=doctor.NVML, extra=SWITCH)
        lab.schedule(with_extender=True, extra=SWITCH)
        slice_ = self.started(lab, lab.create(pod("a", container("main", 6))))
        one_unit = self.limits(slice_).limit // 6 // MIB

        def until_size(size):
            lab.annotate(f"{PODS}/a", gpu_mem=str(size))
            until(lambda: self.limits(slice_).limit // MIB // one_unit == size)

        def until_seen(i):
            lab.annotate(f"{PODS}/a", probe=str(i))
            until(lambda: lab.get("a")["metadata"]["annotations"].get("aliquot.dev/probe") == str(i))
        until_size(10)
        until_size(6)
        patches = [timed(lambda: until_seen(i)) for i in range(ROUNDS)]
        times = {2: [], 6: [], 10: []}
        for _ in range(ROUNDS):
            for size in 2, 6, 10:
                times[size].append(timed(lambda: until_size(size)))
        for size, what in (2, "shrink, from annotation to page"), (6, "growth to the limit"), (10, "growth beyond the limit"):
            tell(what, times[size], patches)

    def ask_doctor(self):
        start = [timed(lambda: subprocess.run([doctor.ALIQUOT, "--version"], stdout=subprocess.DEVNULL, check=True)) for _ in range(ROUNDS)]
        case = doctor.OnNode()
        lab, root = case.node()
        answers = (0, 4)  # a warning: this agent gives a file of the test to its containers, and not the library
        times = [timed(lambda: self.assertIn(doctor.doctor(root=root, env={"ALIQUOT_SLICES": lab.slices}).returncode, answers))
                 for _ in range(ROUNDS)]
        tell("doctor on a node", times, start)
        case.doCleanups()
        doctor.InCluster.setUpClass()
        case = doctor.InCluster()
        cluster = case.cluster()
        times = [timed(lambda: self.assertEqual(case.ask(cluster).returncode, 0)) for _ in range(ROUNDS)]
        tell("doctor in a cluster", times, start)
        case.doCleanups()


operate = Operate()
try:
    operate.resize()
    operate.ask_doctor()
finally:
    operate.doCleanups()
