#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Limits of the driver on the memory of pods, as `aliquot node` keeps them on a simulated driver of 615.

Usage: node_limits.py ALIQUOT STORE_SERVER CLOCK_SHIM SIM GATE SAMPLE

The kubelet's cgroups are plain directories, mounted at /sys/fs/cgroup in the namespace of the test. A test writes what
the kernel's controller would count. That such limits hold for processes is shown by memory_limits.py."""

import os
import subprocess

import node_simulated
from node_simulated import CARDS, GATE, SIM, SimulatedNode
from node_lab import PODS, container, pod
from grpc_process import run_tests
from sim_lab import Machine

ROOT = "/sys/fs/cgroup"
REGIONS = ["nvidia/00000000:%02X:00.0/vidmem" % bus for bus in (1, 2)]
MIB = 1 << 20
CONDITION = "GPUShareMemoryLimitsUnavailable"


class LimitedNode(SimulatedNode):
    def limited(self, annotation="both", limits="dmem", driver="615.71.09", style="v2", probe=True, mode="cgpu", extra=(), prepare=None):
        """prepare: what is done with the tree of cgroups before the agent begins."""
        self.machine = Machine(self, SIM, CARDS, "--name", "n1", "--driver", driver, "--memory-limits", limits)
        lab = self.lab(cards=CARDS, mode=mode, driver=self.machine.dir, start=False, style=style,
                       annotations={"aliquot.dev/memory-isolation": annotation})
        lab.kubelet.runtime.dmem = True
        subprocess.run(["mount", "--bind", lab.cgroup, ROOT], check=True)
        self.addCleanup(subprocess.run, ["umount", "-l", ROOT], check=True)
        if probe:
            self.files(os.path.join(ROOT, "aliquot.probe"))
        if prepare:
            prepare()
        lab.library = GATE
        lab.proc = os.path.join(lab.dir, "proc")
        os.mkdir(lab.proc)
        lab.cgroup = ROOT
        lab.extra += ["--census", "20", "--proc", lab.proc, *extra]
        lab.start_agent()
        lab.wait_ready()
        return lab

    @staticmethod
    def files(directory):
        os.makedirs(directory, exist_ok=True)
        for name in "dmem.max", "dmem.current":
            with open(os.path.join(directory, name), "a"):
                pass


class Limits(LimitedNode):
    @staticmethod
    def pod_dir(lab, uid):
        return lab.kubelet.runtime._pod_dirs(uid)[0].replace(lab.kubelet.runtime.root, ROOT)

    def limit(self, lab, uid, card):
        """MiB; None: no limit."""
        try:
            with open(os.path.join(self.pod_dir(lab, uid), "dmem.max")) as f:
                values = dict(line.split() for line in f)
        except FileNotFoundError:
            return None
        value = values.get(REGIONS[card], "max")
        return None if value == "max" else int(value) / MIB

    def write(self, lab, uid, name, card, value):
        path = os.path.join(self.pod_dir(lab, uid), name)
        with open(path + ".new", "w") as f:
            f.write("%s %s\n" % (REGIONS[card], value))
        os.rename(path + ".new", path)

    def mechanism(self, lab):
        return [k for k in lab.metrics() if k.startswith("aliquot_node_memory_isolation")]

    def test_a_limit_is_in_force_before_the_container_starts(self):
        for style in "v2", "systemd":
            with self.subTest(style=style):
                lab = self.limited(style=style)
                lab.wait(lambda: self.mechanism(lab) == ['aliquot_node_memory_isolation{mechanism="both",backend="dmem"}'], "both are in force")
                uid = self.place(lab, pod("a", container("main", 2), container("other", 3)), 1)
                self.started(lab, uid, "other")
                self.assertEqual(self.limit(lab, uid, 1), 2154 + 3232)
                self.assertIsNone(self.limit(lab, uid, 0))
                self.assertEqual(lab.metrics()["aliquot_node_memory_limits"], 1)
                lab.wait(lambda lab=lab: lab.condition(CONDITION).get("reason") == "LimitedByDriver", "the condition says so")
                self.assertEqual((lab.condition(CONDITION)["status"], lab.condition(CONDITION)["message"]),
                                 ("False", "memory is isolated by the library and by limits of the driver (dmem)"))
                self.doCleanups()

    def test_what_cannot_be_limited_does_not_start(self):
        for driver, limits, why in (("615.71.09", "none", r"Not Supported \(3\)"), ("610.57.04", "dmem", r"\(13\)"),
                                    ("615.71.09", "dmem", r"Not Found \(6\)")):
            with self.subTest(driver=driver, limits=limits):
                lab = self.limited(limits=limits, driver=driver, probe="Not Found" not in why)
                uid = self.place(lab, pod("a", container("main", 2)), 1)
                self.not_started(lab, "the driver does not limit memory here: .*" + why)
                lab.wait(lambda: lab.condition(CONDITION).get("status") == "True", "the condition says so")
                self.assertRegex(lab.condition(CONDITION)["message"], why)
                lab.wait(lambda: lab.events("GPUMemoryLimitsUnavailable"), "an Event says so")
                self.assertEqual(lab.running(uid), [])
                lab.annotate(memory_isolation="preload")
                self.started(lab, uid)
                lab.wait(lambda: lab.condition(CONDITION).get("status") == "False", "the condition has ended")
                self.doCleanups()

    def test_a_mode_that_isolates_nothing_has_no_condition(self):
        """Whatever the driver can do: nothing is limited there, and nothing is missing."""
        for limits in "dmem", "none":
            lab = self.limited(mode="share", limits=limits)
            lab.wait(lambda: self.mechanism(lab) and "untried" not in self.mechanism(lab)[0], "the driver was tried")
            uid = self.place(lab, pod("a", container("main", 2)), 1)
            self.started(lab, uid)
            lab.wait(lambda: lab.condition("GPUShareChangePending"), "conditions are written")
            self.assertEqual((lab.condition(CONDITION), lab.events("GPUMemoryLimitsUnavailable")), ({}, []))
            self.doCleanups()

    def test_a_trial_that_failed_is_repeated(self):
        lab = self.limited(probe=False)  # as a kernel whose controller comes later
        lab.wait(lambda: lab.condition(CONDITION).get("status") == "True", "the condition says so")
        self.files(os.path.join(ROOT, "aliquot.probe"))
        lab.wait(lambda: self.mechanism(lab) == ['aliquot_node_memory_isolation{mechanism="both",backend="dmem"}'], "both are in force", leap=10)
        uid = self.place(lab, pod("a", container("main", 2)), 1)
        self.started(lab, uid)
        self.assertEqual(self.limit(lab, uid, 1), 2154)

    def test_the_controller_is_delegated(self):
        """As libcontainer does it. The files of the trial's cgroup would come with it; here there are none."""
        control = os.path.join(ROOT, "cgroup.subtree_control")

        def prepare():
            with open(control, "w"):
                pass
        lab = self.limited(probe=False, prepare=prepare)
        lab.wait(lambda: lab.condition(CONDITION).get("status") == "True", "the condition says so")
        with open(control) as f:
            self.assertEqual(f.read(), "+dmem")

    def test_a_machine_without_cgroups_of_version_2(self):
        lab = self.limited(prepare=lambda: os.remove(os.path.join(ROOT, "cgroup.controllers")))
        lab.wait(lambda: "the machine has no cgroup version 2 at " + ROOT in lab.condition(CONDITION).get("message", ""), "the condition says so")
        self.place(lab, pod("a", container("main", 2)), 1)
        self.not_started(lab, "the machine has no cgroup version 2")

    def test_files_that_another_writer_takes_away(self):
        """What runs goes on. Other pods start, as long as their cgroups have the files, and the limit comes back with them."""
        lab = self.limited()
        uid = self.place(lab, pod("a", container("main", 2)), 0)
        self.started(lab, uid)
        lab.wait(lambda: lab.metrics()["aliquot_node_memory_limits"] == 1, "the limit is known")
        for name in "dmem.max", "dmem.current":
            os.remove(os.path.join(self.pod_dir(lab, uid), name))
        lab.wait(lambda: lab.metrics()["aliquot_node_memory_limits_failed_total"] > 0, "it is counted", leap=3)
        other = self.place(lab, pod("b", container("main", 3)), 0)
        self.started(lab, other)
        self.assertEqual((self.limit(lab, other, 0), self.limit(lab, uid, 0)), (3232, None))
        self.files(self.pod_dir(lab, uid))
        lab.wait(lambda: self.limit(lab, uid, 0) == 2154, "it is back", leap=3)
        self.assertTrue(lab.running(uid))

    def test_the_library_alone_isolates_unless_both_are_asked_for(self):
        lab = self.limited("auto")
        uid = self.place(lab, pod("a", container("main", 2)), 0)
        self.started(lab, uid)
        self.assertIsNone(self.limit(lab, uid, 0))
        self.assertEqual(self.mechanism(lab), ['aliquot_node_memory_isolation{mechanism="preload",backend=""}'])
        self.assertEqual(lab.condition(CONDITION), {})
        lab.annotate(memory_isolation="driver")
        lab.wait(lambda: "there is no isolation by the driver alone" in lab.condition("GPUShareMisconfigured").get("message", ""),
                 "the word is refused")
        lab.annotate(memory_isolation="both")  # also for what runs
        lab.wait(lambda: self.limit(lab, uid, 0) == 2154, "the running pod is limited", leap=1)
        lab.wait(lambda: lab.condition(CONDITION).get("reason") == "LimitedByDriver", "the condition is there")
        lab.annotate(memory_isolation="preload")
        lab.wait(lambda: self.limit(lab, uid, 0) is None and lab.metrics()["aliquot_node_memory_limits"] == 0, "it is lifted", leap=1)
        lab.wait(lambda: lab.condition(CONDITION).get("reason") == "AsAsked", "the condition says so")

    def test_memory_that_the_driver_does_not_charge_is_named(self):
        lab = self.limited()
        c = self.started(lab, self.place(lab, pod("a", container("main", 2)), 1))
        _, got, _ = self.hold(lab, c, 5120, gate=False)
        self.assertEqual(got, 5120)  # the process is in no cgroup of the pod, so the driver charges the pod for nothing
        lab.wait(lambda: lab.events("GPUMemoryExceeded"), "an Event says so")
        self.assertIn("; the driver charges the pod for 0 MiB, and not for memory of clients that outlived their creator",
                      lab.events("GPUMemoryExceeded")[0])

    def test_a_limit_that_has_vanished_is_set_again(self):
        lab = self.limited()
        uid = self.place(lab, pod("a", container("main", 2)), 0)
        self.started(lab, uid)
        lab.wait(lambda: lab.metrics()["aliquot_node_memory_limits"] == 1, "the limit is known")
        self.write(lab, uid, "dmem.max", 0, "max")
        lab.wait(lambda: self.limit(lab, uid, 0) == 2154, "it is back", leap=5)
        lab.wait(lambda: lab.events("GPUMemoryLimitRestored"), "an Event says so")
        self.assertIn("was none, and is set again to 2154 MiB", lab.events("GPUMemoryLimitRestored")[0])
        lab.restart_agent()
        self.write(lab, uid, "dmem.max", 0, 5 * MIB)
        lab.wait(lambda: self.limit(lab, uid, 0) == 2154, "it is as the record says", leap=5)

    def test_a_resized_slice_takes_its_limit_along(self):
        lab = self.limited()
        uid = self.place(lab, pod("a", container("main", 6)), 0)
        self.started(lab, uid)
        whole = self.limit(lab, uid, 0)
        self.write(lab, uid, "dmem.current", 0, 4000 * MIB)
        lab.annotate(f"{PODS}/a", gpu_mem="2")
        lab.wait(lambda: self.limit(lab, uid, 0) == 4000, "the limit has sunk to what is used", leap=1)
        self.assertGreater(whole, 4000)
        self.write(lab, uid, "dmem.current", 0, 3000 * MIB)
        lab.wait(lambda: self.limit(lab, uid, 0) == 3000, "it follows the use", leap=1)
        self.write(lab, uid, "dmem.current", 0, 100 * MIB)
        lab.wait(lambda: self.limit(lab, uid, 0) == 2154, "it is that of the slice", leap=1)
        self.assertEqual(lab.metrics()["aliquot_node_memory_limits_failed_total"], 0)

    def test_a_limit_that_is_accepted_and_not_in_force_starts_nothing(self):
        lab = self.limited()
        uid = self.place(lab, pod("a", container("main", 2), restartPolicy="Always"), 0)
        c = self.started(lab, uid)
        self.write(lab, uid, "dmem.current", 0, 4000 * MIB)  # as if a part of the container still held it
        self.write(lab, uid, "dmem.max", 0, "max")
        lab.kubelet.finish(uid, "main", 1)
        self.not_started(lab, r"no limit of 2154 MiB on GPU-\S+: 4000 MiB are charged there, 0 MiB of them from a removed cgroup, and "
                         "the driver takes none below that")
        self.write(lab, uid, "dmem.current", 0, 0)
        lab.wait(lambda: lab.kubelet.runtime.of(uid, "main") is not c and lab.running(uid), "it runs again", leap=1)
        self.assertEqual(self.limit(lab, uid, 0), 2154)


class Both(LimitedNode):
    """In place of a SimulatedNode: the driver limits memory, too."""

    def simulated(self, mode="core_mem", *extra, sim=()):
        lab = self.limited(mode=mode, extra=extra)
        lab.wait(lambda: any('mechanism="both"' in k for k in lab.metrics()), "both are in force")
        return lab


class Isolation(Both, node_simulated.Simulated):
    """The tests of isolation again."""


if __name__ == "__main__":
    run_tests(warnings="ignore")
