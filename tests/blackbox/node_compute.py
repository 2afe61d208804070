#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What `aliquot node` writes about compute into slice pages: node_compute.py ALIQUOT STORE_SERVER
CLOCK_SHIM"""

import contextlib
import fcntl
import os
import signal
import struct
import subprocess
import time

from node_lab import NODE_PATH, PODS, Limits, container, pod
from grpc_process import run_tests
from node_case import Node, TWO_CARDS
import page as layout
import slice_page

WEIGHT, HIGH = "ALIYUN_COM_GPU_SCHD_WEIGHT", "ALIYUN_COM_GPU_HIGH_PRIO"
NATIVE, WEIGHTED, SOFT = 1 + 5, 1 + 2, 1 + 4


def says(**variables):
    return [{"name": k, "value": v} for k, v in variables.items()]


class Lab(Node):
    def started(self, lab, name, card, *environment, **options):
        uid = self.place(lab, pod(name, container("main", 2, env=list(environment), **options)), card)
        lab.wait(lambda: "main" in lab.running(uid), f"{name} runs")
        return lab.kubelet.runtime.of(uid, "main").options["mounts"]["/.aliquot/slice/0/limits"][0]

    def annotate(self, lab, **values):
        lab.api.patch(NODE_PATH, {"metadata": {"annotations": {"aliquot.dev/" + k.replace("_", "-"): v
                                                              for k, v in values.items()}}})

    def becomes(self, lab, page, **expected):
        def is_so():
            p = Limits(page)
            return p.generation % 2 == 0 and all(getattr(p, k) == v for k, v in expected.items())
        lab.wait(is_so, f"the page says {expected}")

    def notes(self, lab, reason):
        return [e.get("note") or e.get("message", "") for e in lab.api.get("/api/v1/namespaces/default/events")["items"]
                if e["reason"] == reason]


class Compute(Lab):
    def test_native_by_default(self):
        lab = self.lab(cards=TWO_CARDS, mode="cgpu")
        p = Limits(self.started(lab, "a", 0))
        self.assertEqual((p.policy, p.weight, p.high_priority, p.max_inst, p.prio_ratio, p.core), (NATIVE, 1, 0, 0, 0, 0))

    def test_the_chart_and_the_annotation(self):
        lab = self.lab(cards=TWO_CARDS, mode="cgpu", extra=["--policy", "4"])
        page = self.started(lab, "a", 0)
        self.assertEqual(Limits(page).policy, SOFT)
        self.annotate(lab, policy="0", max_inst="5", prio_ratio="60")
        self.becomes(lab, page, policy=1, max_inst=5, prio_ratio=60)
        self.annotate(lab, max_inst=None)
        self.becomes(lab, page, policy=1, max_inst=20)
        self.annotate(lab, policy=None, prio_ratio=None)
        self.becomes(lab, page, policy=SOFT, max_inst=0, prio_ratio=0)

    def test_settings_of_the_installation(self):
        lab = self.lab(cards=TWO_CARDS, mode="cgpu", extra=["--policy", "0", "--max-inst", "5", "--prio-ratio", "60"])
        page = self.started(lab, "a", 0)
        self.becomes(lab, page, policy=1, max_inst=5, prio_ratio=60)
        self.annotate(lab, max_inst="7")
        self.becomes(lab, page, policy=1, max_inst=7, prio_ratio=60)
        self.annotate(lab, max_inst=None)
        self.becomes(lab, page, policy=1, max_inst=5, prio_ratio=60)

    def test_malformed_settings(self):
        lab = self.lab(cards=TWO_CARDS, mode="cgpu")
        page = self.started(lab, "a", 0)
        self.annotate(lab, policy="1", max_inst="5")
        self.becomes(lab, page, policy=2, max_inst=5)
        self.annotate(lab, policy="six", max_inst="7")
        self.becomes(lab, page, policy=2, max_inst=7)
        lab.wait(lambda: self.notes(lab, "GPUShareMisconfigured"), "an Event says so")
        self.assertEqual(self.notes(lab, "GPUShareMisconfigured"),
                         ['annotation aliquot.dev/policy is "six", must be 0 to 5; 1 stays in force'])

    def test_core_mem_is_fixed(self):
        lab = self.lab(cards=TWO_CARDS, extra=["--policy", "0"])
        uid = self.place(lab, pod("a", container("main", 2, 30, env=says(**{WEIGHT: "7", HIGH: "1"}))), 1)
        lab.wait(lambda: lab.running(uid), "it runs")
        page = lab.kubelet.runtime.of(uid, "main").options["mounts"]["/.aliquot/slice/0/limits"][0]
        p = Limits(page)
        self.assertEqual((p.policy, p.core, p.weight, p.high_priority), (1 + 3, 30, 7, 1))
        self.annotate(lab, policy="5", prio_ratio="50")
        self.becomes(lab, page, policy=1 + 3, prio_ratio=50)

    def test_a_weight_is_enough_for_its_card(self):
        lab = self.lab(cards=TWO_CARDS, mode="cgpu")
        here, there = self.started(lab, "here", 0), self.started(lab, "there", 1)
        heavy = self.started(lab, "heavy", 0, *says(**{WEIGHT: "3"}))
        self.becomes(lab, heavy, policy=WEIGHTED, weight=3)
        self.becomes(lab, here, policy=WEIGHTED)
        self.becomes(lab, there, policy=NATIVE)
        self.annotate(lab, policy="5")
        self.becomes(lab, heavy, policy=NATIVE)
        self.becomes(lab, here, policy=NATIVE)
        self.annotate(lab, policy=None)
        self.becomes(lab, here, policy=WEIGHTED)
        lab.api.delete(f"{PODS}/heavy", grace=1)
        self.becomes(lab, here, policy=NATIVE)

    def test_a_container_of_high_priority(self):
        lab = self.lab(cards=TWO_CARDS, mode="cgpu")
        other, first = self.started(lab, "other", 0), self.started(lab, "first", 0, *says(**{HIGH: "1"}))
        self.becomes(lab, first, policy=WEIGHTED, high_priority=1)
        self.becomes(lab, other, policy=WEIGHTED)

    def test_wrong_settings_of_a_container(self):
        lab = self.lab(cards=TWO_CARDS, mode="cgpu")
        p = Limits(self.started(lab, "a", 0, {"name": WEIGHT, "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}},
                                {"name": HIGH, "value": "yes"}))
        self.assertEqual((p.weight, p.high_priority, p.policy), (1, 0, NATIVE))
        lab.wait(lambda: self.notes(lab, "GPUComputeRefused"), "an Event says so")
        self.assertEqual(self.notes(lab, "GPUComputeRefused"),
                         [f"container main: {WEIGHT} comes from elsewhere (valueFrom), which is not read; "
                          f'environment {HIGH} is "yes", must be 0 or 1; it is passed over'])

    def test_over_a_restart(self):
        lab = self.lab(cards=TWO_CARDS, mode="cgpu")
        page = self.started(lab, "a", 0)
        self.annotate(lab, policy="1")
        self.becomes(lab, page, policy=2)
        generation = Limits(page).generation
        lab.agent.stop()
        self.annotate(lab, policy="4")
        with open(page, "r+b") as f:
            f.seek(layout.GENERATION)
            f.write((generation + 1).to_bytes(8, "little"))  # as if killed while it wrote
        lab.start_agent()
        lab.wait_ready()
        self.becomes(lab, page, policy=SOFT)

    def test_the_metric_is_the_percentage(self):
        lab = self.lab(cards=TWO_CARDS)
        uid = self.place(lab, pod("a", container("main", 2, 30), container("second", 3, 60)), 1)
        lab.wait(lambda: set(lab.running(uid)) == {"main", "second"}, "they run")
        self.assertEqual({k.split('ContainerName="')[1].split('"')[0]: v for k, v in lab.metrics().items()
                          if k.startswith("DCGM_CUSTOM_CONTAINER_CP_ALLOCATED{")}, {"main": 0.3, "second": 0.6})


def arbiters(pid):
    """{arbiter: its keeper} below that process."""
    parents = {}
    names = {}
    for entry in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{entry}/stat") as f:
                text = f.read()
        except OSError:
            continue
        names[int(entry)] = text[text.index("(") + 1:text.rindex(")")]
        state, parent = text[text.rindex(")") + 2:].split()[:2]
        if state != "Z":
            parents[int(entry)] = int(parent)
    return {p: q for p, q in parents.items() if names[p] == "aliquot-arbiter" and parents.get(q) == pid}


class Arbiter(Lab):
    def seen(self, page):
        return slice_page.seen(page)

    def begun_again(self, **options):
        lab = self.lab(cards=TWO_CARDS, mode="cgpu", extra=["--policy", "1"], **options)
        page = self.started(lab, "a", 0)
        lab.wait(lambda: self.seen(page) > 0, "there is an arbiter")
        (first,) = arbiters(lab.agent.process.pid).items()
        os.kill(first[1], signal.SIGKILL)
        lab.wait(lambda: set(arbiters(lab.agent.process.pid).values()) - {first[1]}, "there is another one")
        before = self.seen(page)
        lab.wait(lambda: self.seen(page) > before, "which goes on")

    def test_restarted_by_the_supervisor(self):
        self.begun_again(supervised=True)

    def test_restarted_by_the_agent(self):
        self.begun_again()

    @contextlib.contextmanager
    def hanging(self, lab, page):
        """A made-up process: it has a row of the counters and wants the card. What it launched in
        its window stays in flight."""
        row = layout.ROWS
        with open(os.path.join(os.path.dirname(page), "counters"), "r+b", buffering=0) as f:
            fcntl.fcntl(f, 37, struct.pack("hhqqi4x", fcntl.F_WRLCK, os.SEEK_SET, row, 1, 0))  # F_OFD_SETLK

            def tell(busy, in_flight):
                os.pwrite(f.fileno(), struct.pack("<QQIIII", time.monotonic_ns(), busy, in_flight, 0, 0, 0), row + layout.ROW_WORK)
            tell(0, 1000000)

            def opened():
                with open(page, "rb") as g:
                    return struct.unpack_from("<I", g.read(), layout.WINDOW)[0] > 1
            lab.wait(opened, "its window is open")
            tell(0, 1000000)
            yield

    @contextlib.contextmanager
    def waiting(self, page):
        """Another process that wants the card, so that the window of the first one ends."""
        row = layout.ROWS
        with open(os.path.join(os.path.dirname(page), "counters"), "r+b", buffering=0) as f:
            fcntl.fcntl(f, 37, struct.pack("hhqqi4x", fcntl.F_WRLCK, os.SEEK_SET, row, 1, 0))  # F_OFD_SETLK
            os.pwrite(f.fileno(), struct.pack("<Q", time.monotonic_ns()), row + layout.ROW_WORK)
            yield

    def hung(self, lab):
        return lab.metrics()["aliquot_node_hung_kernels_total"]

    def test_a_kernel_that_does_not_end(self):
        lab = self.lab(cards=TWO_CARDS, mode="cgpu", extra=["--policy", "1"])
        page = self.started(lab, "a", 0)
        with self.hanging(lab, page):
            lab.wait(lambda: self.hung(lab) >= 1, "the arbiter tells of it")
            lab.wait(lambda: self.notes(lab, "GPUKernelHung"), "an Event says so")
        self.assertRegex(self.notes(lab, "GPUKernelHung")[0], "^container main: a kernel has run for [1-9][0-9]+ s on GPU-.* wait for the card$")
        self.assertEqual(lab.metrics()["aliquot_node_hung_killed_total"], 0)

    def process(self, lab, uid, name):
        """A sleeping process in the cgroup of that container, whose status names it."""
        c = lab.kubelet.runtime.of(uid, name)
        lab.wait(lambda: any(s.get("containerID") == "containerd://" + c.id
                             for s in lab.get(c.pod.split("/")[1]).get("status", {}).get("containerStatuses", [])),
                 f"{name}'s status names it")
        p = subprocess.Popen(["sleep", "600"])
        self.addCleanup(lambda: p.kill() or p.wait())
        os.mkdir(os.path.join(lab.proc, str(p.pid)))
        with open(os.path.join(lab.proc, str(p.pid), "cgroup"), "w") as f:
            f.write(f"0::/kubepods/burstable/pod{uid}/{c.id}\n")
        return p

    def ending(self, annotations=None, name="a", **options):
        """Two pods on a card where a kernel counts as hung after a second; the annotations are a's. Returns the lab, the
        page of a's container main, its UID, and b's."""
        lab = self.lab(cards=TWO_CARDS, mode="cgpu", start=False, **options)
        lab.proc = os.path.join(lab.dir, "proc")
        os.mkdir(lab.proc)
        lab.extra += ["--policy", "1", "--proc", lab.proc, "--hung-kernel", "1", "--on-hung-kernel", "kill"]
        lab.start_agent()
        lab.wait_ready()
        uid = self.place(lab, pod(name, container("main", 2), container("second", 3), annotations=annotations), 0)
        other = self.place(lab, pod("b", container("main", 2)), 0)
        lab.wait(lambda: set(lab.running(uid)) == {"main", "second"} and lab.running(other), "they run")
        return lab, lab.kubelet.runtime.of(uid, "main").options["mounts"]["/.aliquot/slice/0/limits"][0], uid, other

    def test_its_container_is_ended_with_that_option(self):
        lab, page, uid, other_uid = self.ending()
        guilty = [self.process(lab, uid, "main") for _ in range(3)]
        others = [self.process(lab, uid, "second"), self.process(lab, other_uid, "main")]
        with self.hanging(lab, page):
            for p in guilty:
                self.assertEqual(p.wait(120), -signal.SIGKILL)
        lab.wait(lambda: self.notes(lab, "GPUKernelHung"), "an Event says so")
        self.assertRegex(self.notes(lab, "GPUKernelHung")[0],
                         r"^container main: a kernel has run for [0-9]+ s on GPU-.*; 3 of its processes were killed \(all of the container's\)$")
        self.assertEqual([p.poll() for p in others], [None, None])
        metrics = lab.metrics()
        self.assertEqual((metrics["aliquot_node_hung_killed_total"], metrics["aliquot_node_killed_total"]), (3, 0))

    def test_a_container_of_the_longest_name_is_ended(self):
        """Its page names it by the pod's UID, which may be another pod's name."""
        lab, page, uid, other = self.ending(name="p" * 253)
        named = self.place(lab, pod(uid, container("main", 2)), 1)
        lab.wait(lambda: lab.running(named), "it runs, too")
        guilty, spared = self.process(lab, uid, "main"), self.process(lab, other, "main")
        with self.hanging(lab, page):
            self.assertEqual(guilty.wait(120), -signal.SIGKILL)
        lab.wait(lambda: self.notes(lab, "GPUKernelHung"), "an Event says so")
        self.assertIsNone(spared.poll())

    def test_another_pod_of_its_name_is_left_alone(self):
        """A pod with such a kernel was deleted by force, and its controller has made the next one."""
        lab, page, old, _ = self.ending({"fake/linger": "until-let-go"})
        lab.api.delete(f"{PODS}/a", grace=0)
        lab.wait(lambda: old in lab.held(), "its processes live")
        uid = self.place(lab, pod("a", container("main", 2)), 0)
        lab.wait(lambda: lab.running(uid), "the next one runs")
        p = self.process(lab, uid, "main")
        with self.hanging(lab, page):
            lab.wait(lambda: self.hung(lab) >= 1, "the arbiter tells of it")
        self.assertEqual(lab.metrics()["aliquot_node_hung_killed_total"], 0)
        self.assertIsNone(p.poll())
        self.assertEqual(self.notes(lab, "GPUKernelHung"), [])

    def spared(self, lab, page, other, p, pause, go_on):
        """While the process is paused, the Event says so and it is left alone. It is ended when it
        runs again and its kernel has not ended."""
        pause()
        with self.hanging(lab, page), self.waiting(lab.kubelet.runtime.of(other, "main").options["mounts"]["/.aliquot/slice/0/limits"][0]):
            lab.wait(lambda: self.notes(lab, "GPUKernelHung"), "an Event says so")
            self.assertRegex(self.notes(lab, "GPUKernelHung")[0], "a process of it is stopped or frozen, and cannot say that it has ended$")
            time.sleep(4)  # the arbiter reports it again each second
            self.assertIsNone(p.poll())
            self.assertEqual(lab.metrics()["aliquot_node_hung_killed_total"], 0)
            go_on()
            self.assertEqual(p.wait(120), -signal.SIGKILL)
        self.assertEqual(self.hung(lab), 1, "it is one kernel")

    def test_a_stopped_process_is_not_ended(self):
        lab, page, uid, other = self.ending()
        p = self.process(lab, uid, "main")
        os.symlink(f"/proc/{p.pid}/stat", os.path.join(lab.proc, str(p.pid), "stat"))
        self.spared(lab, page, other, p, lambda: p.send_signal(signal.SIGSTOP), lambda: p.send_signal(signal.SIGCONT))

    def test_a_frozen_process_is_not_ended(self):
        lab, page, uid, other = self.ending()
        p = self.process(lab, uid, "main")
        events = os.path.join(lab.cgroup, "kubepods", "burstable", "pod" + uid, lab.kubelet.runtime.of(uid, "main").id, "cgroup.events")
        os.makedirs(os.path.dirname(events), exist_ok=True)

        def freeze(frozen):
            with open(events + ".new", "w") as f:
                f.write(f"populated 1\nfrozen {frozen}\n")
            os.rename(events + ".new", events)
        self.spared(lab, page, other, p, lambda: freeze(1), lambda: freeze(0))

    def test_reported_while_the_agent_was_down(self):
        lab, page, uid, _ = self.ending(supervised=True)
        guilty, stopped = self.process(lab, uid, "main"), lab.agent.pid
        os.kill(stopped, signal.SIGSTOP)
        with self.hanging(lab, page):
            lab.wait(lambda: lab.logged("aliquot: a kernel of default/a/main"), "the arbiter says so")
            self.assertIsNone(guilty.poll())
            os.kill(stopped, signal.SIGKILL)
            self.assertEqual(guilty.wait(120), -signal.SIGKILL)


if __name__ == "__main__":
    run_tests(warnings="ignore")
