#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What the node agent accepts and reports when its sources come in another order or contradict each
other: node_trust.py ALIQUOT STORE_SERVER"""

import sys
import threading
import time
import unittest

from node_lab import ALLOCATION, ASSIGNED, HELD, Lab, NODE, NODE_PATH, PODS, container, pod
from grpc_process import run_tests

ALIQUOT, STORE = sys.argv[1:3]
del sys.argv[1:3]
CARDS = "2xTesla-V100-SXM2-16GB:16160MiB"
MIRROR, UNIT = "kubernetes.io/config.mirror", "aliquot.dev/gpu-mem-unit"
NODE_IS_LATE = "fault delay 1 GET /api/v1/nodes 500000"  # the agent lists the pods before it gets the Node


class Trust(unittest.TestCase):
    def setUp(self):
        self.lab = Lab(ALIQUOT, STORE, cards=CARDS, unit="128MiB")
        self.addCleanup(self.lab.close)
        self.lab.schedule(with_extender=True)

    def run_pod(self, name, **more):
        uid = self.lab.create(pod(name, container("main", 10, 20), **more))
        self.lab.wait_phase(name, "Running")
        self.lab.wait(lambda: self.notes(name).get(ASSIGNED) == "true", "the pod is assigned")
        return uid

    def notes(self, name):
        return self.lab.get(name)["metadata"]["annotations"]

    def given(self):
        return {k: v for k, v in self.lab.metrics().items() if k.startswith("DCGM_CUSTOM_CONTAINER_MEM_ALLOCATED{")}

    def annotate(self, **notes):
        self.lab.api.patch(NODE_PATH, {"metadata": {"annotations": {
            "aliquot.dev/" + k.replace("_", "-"): v for k, v in notes.items()}}})

    def restart_with_late_node(self):
        self.lab.store.tell(NODE_IS_LATE)
        self.lab.restart_agent()
        self.lab.wait(lambda: self.lab.ready() == 200, "the agent is ready")

    # ---- mirror pods ----

    def test_a_mirror_does_not_take_the_uid_of_another_pod(self):
        """Users can write the annotation where no admission checks it."""
        victim = self.run_pod("victim", restartPolicy="Always")
        before = self.given()
        for name, units in (("plain", 0), ("sharing", 1)):
            self.lab.create(pod(name, container("main", units), annotations={MIRROR: victim}, nodeName=NODE))
            self.lab.wait(lambda n=name: self.lab.logged(f"passed over pod=default/{n}"), "the forged mirror is passed over")
        self.assertEqual(self.given(), before)
        self.assertFalse(self.lab.node_annotation(HELD))
        self.assertNotIn(ALLOCATION, self.notes("sharing"))
        running = self.lab.kubelet.runtime.running(victim)[0]
        self.lab.kubelet.runtime.end(running, 1)
        self.lab.kubelet._work(self.lab.kubelet.pods[victim])
        self.lab.wait(lambda: self.lab.running(victim), "the victim's container starts again")

    def test_a_static_pod_is_not_placed_by_its_manifest(self):
        uid = self.lab.kubelet.add_static(pod("web", container("main", 2), annotations={
            ALLOCATION: '{"0":{"1":2}}', "scheduler.framework.gpushare.assume-time": "5"}))
        self.lab.wait(lambda: self.lab.running(uid), "the static pod runs")

    # ---- orders of arrival ----

    def test_the_users_unit_survives_a_restart(self):
        self.annotate(gpu_mem_unit="512MiB")
        self.lab.wait(lambda: self.lab.node_annotation(UNIT + "-in-force") == "512MiB", "the unit is in force")
        for _ in range(3):
            self.restart_with_late_node()
            self.run_pod("probe")  # an agent that gets this far has seen its Node
            self.assertEqual(self.lab.node_annotation(UNIT), "512MiB")
            self.assertEqual(self.lab.node_annotation(UNIT + "-in-force"), "512MiB")
            self.lab.api.delete(f"{PODS}/probe", grace=0)
            self.lab.wait(lambda: not self.lab.get("probe"), "the probe is gone")

    def test_changes_while_the_agent_was_away(self):
        self.run_pod("a")
        good = self.notes("a")[ALLOCATION]
        self.lab.agent.kill()
        self.lab.api.patch(f"{PODS}/a", {"metadata": {"annotations": {"ALIYUN_COM_GPU_MEM_POD": "99", ALLOCATION: '{"0":{"1":10}}'}}})
        self.lab.store.tell(NODE_IS_LATE)
        self.lab.start_agent()
        self.lab.wait(lambda: self.notes("a")[ALLOCATION] == good, "the annotations are repaired")

    # ---- several reasons at once ----

    def test_all_pending_changes_are_told(self):
        self.run_pod("a")
        self.lab.api.patch(NODE_PATH, {"metadata": {"labels": {"ack.node.gpu.schedule": "cgpu"}}})
        self.lab.wait(lambda: "cgpu" in self.lab.condition().get("message", ""), "the change of mode is said")
        self.annotate(gpu_mem_unit="64GiB")
        self.lab.wait(lambda: "64GiB" in self.lab.condition()["message"], "the refused unit is said")
        for part in "cgpu", "default/a":
            self.assertIn(part, self.lab.condition()["message"])
        self.annotate(gpu_mem_unit="GiB", gpu_mem_unit_change="drain")
        self.lab.wait(lambda: "unit GiB" in self.lab.condition()["message"], "the unit that drains is said")
        for part in "cgpu", "default/a":
            self.assertIn(part, self.lab.condition()["message"])

    # ---- another writer ----

    def test_the_same_patch_again_waits(self):
        """Another writer undoes a label each time: the agent writes less often than that one."""
        label, times = "aliyun.accelerator/nvidia_name", []
        stop = threading.Event()

        def fight():
            while not stop.is_set():
                if self.lab.node()["metadata"]["labels"].get(label) != "mine":
                    times.append(time.monotonic())
                    self.lab.api.patch(NODE_PATH, {"metadata": {"labels": {label: "mine"}}})
                stop.wait(0.005)
        self.lab.wait(lambda: self.lab.node()["metadata"]["labels"].get(label), "the agent has written its labels")
        rival = threading.Thread(target=fight)
        rival.start()

        def waited():  # a lower bound, which a slow machine only exceeds
            return [b - a for a, b in zip(times, times[1:]) if b - a > 0.8]
        try:
            # A patch that also carries another field of the starting agent is not the same patch
            # and follows at once, so some are early. Without the rule all of them are.
            self.lab.wait(lambda: len(waited()) >= 2 or len(times) > 100, "the agent has waited twice")
        finally:
            stop.set()
            rival.join()
        self.assertGreaterEqual(len(waited()), 2, f"{len(times)} patches")


if __name__ == "__main__":
    run_tests(verbosity=2)
