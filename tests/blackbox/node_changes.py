#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`aliquot node` while the kubelet, the settings of its node and the API server change:
node_changes.py ALIQUOT STORE_SERVER CLOCK_SHIM"""

import json
import os
import signal
import socket
import struct
import subprocess
import tempfile
import time

from node_case import ALIQUOT, ONE_CARD, TWO_CARDS, Node
from node_lab import ALLOCATION, ASSIGNED, EIGHT_CARDS, GPU, GPU_CORE, GPU_MEM, NODE_PATH, PODS, container, limit_files, parse, pod, shapes
from grpc_process import run_tests
from grpc_wire import PluginCalls, channel, dp, grpc
from scheduler import annotations_for


class KubeletRestarts(Node):
    def test_registered_again(self):
        lab = self.lab()
        running = self.place(lab, pod("running", container("main", 4, 20)), 3)
        lab.wait_phase("running", "Running")
        lab.kubelet.restart(add_delay=0.3)
        self.assertTrue(lab.kubelet.wait_serving(GPU_MEM, GPU_CORE))
        self.place(lab, pod("later", container("main", 4, 20)), 3)
        lab.wait_phase("later", "Running")
        self.assertEqual(lab.running(running), ["main"])
        self.assertEqual(lab.phase("running"), "Running")
        self.judged(lab)

    def test_backlog(self):
        """Pods that were bound while the kubelet was down are admitted in any order."""
        lab = self.lab(unit="128MiB")
        lab.kubelet.stop()
        for i in range(30):
            self.place(lab, pod(f"p{i}", container("main", 1 + i % 7), container("second", 2)), i % 8)
        lab.kubelet.start(serving=lab.resources)
        lab.wait(lambda: all(lab.phase(f"p{i}") in ("Running", "Failed") for i in range(30)), "all run", 300)
        self.assertEqual(lab.kubelet.rejections, [])
        self.assertEqual(self.judged(lab), 60)

    def test_restart_while_many_pods_start(self):
        lab = self.lab()
        lab.schedule()
        for i in range(60):
            lab.create(shapes(lab.rng, f"p{i}", life=(0.02, 0.1)))
        for _ in range(3):
            time.sleep(lab.rng.uniform(0.05, 0.3))  # any moment will do
            lab.kubelet.restart(add_delay=0.2)
        lab.wait(lambda: all(o.get("status", {}).get("phase") in ("Succeeded", "Failed")
                             for o in lab.api.get(PODS)["items"]), "all have ended", 300)
        self.judged(lab)

    def test_container_restart(self):
        lab = self.lab()
        uid = self.place(lab, pod("a", container("main", 4, 20), restartPolicy="Always"), 3)
        lab.wait_phase("a", "Running")
        lab.wait(lambda: lab.get("a")["metadata"]["annotations"][ASSIGNED] == "true", "assigned")
        for trouble in None, "vanish":
            before = lab.kubelet.runtime.of(uid, "main")
            if trouble:
                lab.store.tell(trouble)  # the API server is away: a verified container starts again
            lab.kubelet.finish(uid, "main", 1)
            lab.wait(lambda: lab.kubelet.runtime.of(uid, "main") is not before, "it runs again")
            self.assertEqual(lab.kubelet.runtime.of(uid, "main").devices, before.devices)
        lab.store.tell("return")

    def test_dropped_without_notice(self):
        """The kubelet has dropped the agent but keeps its stream: the periodic check finds it."""
        lab = self.lab(cards=TWO_CARDS)
        manager = lab.kubelet.manager
        registered = lab.metrics()["aliquot_node_registrations_total"]
        for name in lab.resources:
            manager.drop(name)
        lab.wait(lambda: lab.metrics()["aliquot_node_registrations_total"] == registered + 2, "both once more", leap=1)
        self.assertTrue(lab.kubelet.wait_serving(*lab.resources, timeout=300), lab.log_tail())
        self.assertEqual(lab.metrics()["aliquot_node_dropped_total"], 2)
        lab.wait(lambda: lab.logged("the kubelet lists none of the 30 devices of aliyun.com/gpu-mem"), "the log says so")
        uid = self.place(lab, pod("a", container("main", 4, 20)), 1)
        lab.wait(lambda: lab.running(uid), "it runs")
        asked = manager.allocatable_asked
        lab.wait(lambda: manager.allocatable_asked > asked, "it is asked again", 300, leap=1)
        self.assertEqual(lab.metrics()["aliquot_node_dropped_total"], 2, "and what it lists is left alone")

    def test_second_instance(self):
        """An upgrade that starts the new agent first: the kubelet disconnects the newer one at the end of the older one."""
        lab = self.lab()
        old = lab.agent
        lab.metrics_port = None
        lab.start_agent()
        lab.wait(lambda: len(lab.kubelet.manager.registrations) >= 4, "the second registers")
        old.stop()
        # A kubelet that notices the end late drops the newer one: the periodic check finds that.
        lab.wait(lambda: len(lab.kubelet.manager.registrations) >= 6, "the second registers again", 300, leap=1)
        for i in range(50):  # a disconnection may come late, and the kubelet refuses pods until it is repaired
            self.assertTrue(lab.kubelet.wait_serving(*lab.resources, timeout=300), lab.log_tail())
            self.place(lab, pod(f"a{i}", container("main", 3, 10)), 5)
            lab.wait_phase(f"a{i}", "Running", "Failed")
            if lab.phase(f"a{i}") == "Running":
                break
        self.assertEqual(lab.phase(f"a{i}"), "Running")
        self.judged(lab)


class Lagging(Node):
    """The kubelet and the agent learn of pods, and of their end, in any order."""

    def lagging(self, lab):
        """Watches are cut and come back later. Meanwhile the test passes pods to the kubelet."""
        lab.store.tell("fault delay 4 GET /api/v1/pods 1000000")
        lab.store.tell("fault cut-watch 2 - /api/v1/pods")

    def tell(self, lab, kind, obj):
        lab.kubelet.events.put((kind, obj))

    def place_and_tell(self, lab, obj, *cards):
        uid = self.place(lab, obj, *cards)
        self.tell(lab, "ADDED", lab.get(obj["metadata"]["name"]))
        return uid

    def test_another_pod_of_the_same_name(self):
        lab = self.lab(cards=TWO_CARDS)
        self.place(lab, pod("a", container("main", 4, 10)), 0)
        lab.wait_phase("a", "Running")
        self.lagging(lab)
        old = lab.get("a")
        lab.api.delete(f"{PODS}/a", grace=0)
        self.tell(lab, "DELETED", old)
        uid = self.place_and_tell(lab, pod("a", container("main", 4, 10)), 1)
        lab.wait(lambda: lab.running(uid), "the new one runs")
        self.assertEqual(lab.kubelet.prestart_errors, [])
        self.judged(lab)

    def test_a_third_pod_is_deleted(self):
        """A pod that was deleted by force but is still listed does not make another one fail."""
        lab = self.lab(cards=TWO_CARDS)
        kubelet = lab.kubelet
        for name, size in ("with", 4), ("without", 0):
            self.place(lab, pod(name, container("main", size)), 0)
            lab.wait_phase(name, "Running")
        remove, kubelet._remove = kubelet._remove, lambda obj: None
        kubelet.manager.active_pods = lambda: kubelet._active_pods()[::-1]  # in any order
        for name in "with", "without":
            lab.api.delete(f"{PODS}/{name}", grace=0)
        lab.wait(lambda: lab.held(), "the agent heard of it")
        self.lagging(lab)
        uid = self.place_and_tell(lab, pod("a", container("main", 4)), 1)
        lab.wait(lambda: lab.running(uid) or kubelet.rejections, "it runs")
        self.assertEqual(kubelet.rejections, [])
        self.judged(lab)
        kubelet._remove = remove

    def test_ended_pods_are_listed(self):
        """Kubelets before 1.34 list ended and rejected pods as well."""
        lab = self.lab(cards=TWO_CARDS)
        kubelet = lab.kubelet
        made = lab.api.post(PODS, pod("toomuch", container("main", 16), scheduler="other"))
        lab.bind(made, {})
        lab.wait_phase("toomuch", "Failed")
        ended = self.place(lab, pod("ended", container("main", 4), annotations={"fake/run-main": "0.01"}), 0)
        lab.wait_phase("ended", "Succeeded")
        gone = [(o["metadata"]["uid"], o) for o in (lab.get("ended"), lab.get("toomuch"))]
        kubelet.manager.listed_pods = lambda: kubelet._active_pods() + gone
        lab.wait(lambda: not lab.kubelet.runtime.running(ended), "it has ended")
        for i in range(4):
            uid = self.place(lab, pod(f"a{i}", container("main", 4)), 1 - i % 2)
            lab.wait(lambda: lab.running(uid), "it runs")
        self.assertEqual(kubelet.prestart_errors, [])
        self.judged(lab)

    def test_the_init_container_of_an_ended_pod_had_these_devices(self):
        """main gets its devices from its own init container, and the kubelet does not ask for a preference."""
        lab = self.lab(cards="1xTesla-V100-SXM2-16GB:16160MiB")
        old = self.place(lab, pod("old", container("main", 15), init=[container("ini", 15)]), 0)
        lab.wait(lambda: lab.running(old) == ["main"], "it runs")
        self.lagging(lab)
        lab.kubelet.finish(old, "main")
        lab.wait_phase("old", "Succeeded")
        uid = self.place_and_tell(lab, pod("a", container("main", 8), container("second", 4), init=[container("ini", 8)]), 0)
        lab.wait(lambda: "main" in lab.running(uid), "it runs")
        self.assertEqual(lab.kubelet.runtime.of(uid, "main").options["env"]["ALIYUN_COM_GPU_MEM_POD"], "12")
        self.judged(lab, {"a"})

    def test_the_pods_were_not_listed(self):
        """An agent that begins knows no pod of its node. Most pods have no slice, and so no devices in the kubelet's List."""
        lab = self.lab(cards=TWO_CARDS)
        for i in range(40):
            self.place(lab, pod(f"plain{i}", container("main")))
        lab.wait(lambda: all(lab.phase(f"plain{i}") == "Running" for i in range(40)), "they run")
        lab.agent.kill()
        lab.store.tell("fault delay 1 GET /api/v1/pods 2000000")
        lab.restart_agent()
        uid = self.place(lab, pod("a", container("main", 4, 10)), 1)
        lab.wait(lambda: lab.running(uid) or lab.kubelet.rejections, "it runs")
        self.assertEqual((lab.kubelet.rejections, lab.kubelet.prestart_errors), ([], []))
        self.judged(lab, {"a"})

    def test_the_node_was_not_read(self):
        self.not_read(self.lab(cards=TWO_CARDS))

    def test_the_checkpoint_is_not_written(self):
        lab = self.lab(cards=TWO_CARDS)
        lab.kubelet.manager._write_checkpoint = lambda: None
        self.not_read(lab)

    def test_impossible_cards_before_the_node_was_read(self):
        """Other cards can only be chosen when the node's are known."""
        lab = self.lab(cards=TWO_CARDS)
        self.not_read(lab, {ALLOCATION: '{"0":{"7":5}}'})
        self.assertIn("gpu7 is no card of this node; it is placed anew", " ".join(lab.events("GPUPlaceImpossible")))

    def not_read(self, lab, annotations=None):
        lab.agent.kill()
        lab.store.tell("fault delay 1 GET /api/v1/nodes 2000000")
        lab.restart_agent()
        made = lab.api.post(PODS, pod("stranger", container("main", 5, 10), scheduler="other"))
        lab.bind(made, annotations or {})
        lab.wait_phase("stranger", "Running", "Failed")
        self.assertEqual(lab.kubelet.rejections, [])
        lab.wait(lambda: lab.get("stranger")["metadata"]["annotations"].get(ASSIGNED) == "true", "it is annotated")
        self.judged(lab)


class Changes(Node):
    def events(self, lab):
        return {(e["reason"], e.get("note") or e.get("message", "")) for path in
                ("/api/v1/namespaces/default/events", "/apis/events.k8s.io/v1/namespaces/default/events")
                for e in self.listed(lab, path)}

    @staticmethod
    def listed(lab, path):
        try:
            return lab.api.get(path)["items"]
        except Exception:
            return []  # this request fails

    def set_label(self, lab, mode):
        lab.api.patch(NODE_PATH, {"metadata": {"labels": {"ack.node.gpu.schedule": mode}}})

    def allocatable(self, lab, resource):
        return lab.node()["status"].get("allocatable", {}).get(resource)

    def offered(self, lab, resource, units, why):
        """Two lists may show an older status, because the kubelet writes it with delay."""
        lab.wait(lambda: self.allocatable(lab, resource) == units, f"{resource} is {units}: {why}")

    def test_mode(self):
        lab = self.lab()
        self.place(lab, pod("a", container("main", 3, 10)), 5)
        lab.wait_phase("a", "Running")
        self.set_label(lab, "share")
        lab.wait(lambda: lab.condition().get("status") == "True", "the condition says that it waits")
        self.assertEqual(lab.condition()["reason"], "GPUShareModeKept")
        self.assertIn("default/a", lab.condition()["message"])
        self.offered(lab, GPU_CORE, "800", "kept")
        lab.wait(lambda: any(r == "GPUShareModeKept" and "default/a" in n for r, n in self.events(lab)), "the Event is written")
        lab.restart_agent()
        lab.wait_ready()
        self.offered(lab, GPU_CORE, "800", "nor does a restart change it")
        lab.api.delete(f"{PODS}/a", grace=1)
        self.offered(lab, GPU_CORE, "0", "the last slice is gone: the mode is in force")
        lab.wait(lambda: lab.condition().get("status") == "False", "and nothing is pending")
        self.offered(lab, GPU_MEM, "184", "memory is in either mode")

    def test_to_whole_cards(self):
        lab = self.lab()
        self.set_label(lab, "default")
        lab.wait(lambda: [self.allocatable(lab, r) for r in (GPU_MEM, GPU_CORE, "aliyun.com/gpu-count")] == ["0"] * 3,
                 "nothing of ours is offered")
        self.set_label(lab, "cgpu")
        lab.wait(lambda: self.allocatable(lab, GPU_MEM) == "184" and self.allocatable(lab, "aliyun.com/gpu-count") == "8",
                 "and again")
        self.offered(lab, GPU_CORE, "0", "this mode has none")

    def test_label_deleted(self):
        lab = self.lab()
        lab.api.patch(NODE_PATH, {"metadata": {"labels": {"ack.node.gpu.schedule": None}}})
        self.place(lab, pod("a", container("main", 3, 10)), 5)
        lab.wait_phase("a", "Running")
        self.offered(lab, GPU_MEM, "184", "it stays in its mode")

    def test_unit(self):
        lab = self.lab(cards=TWO_CARDS)
        self.place(lab, pod("a", container("main", 3, 10)), 1)
        lab.wait_phase("a", "Running")
        lab.agent.stop()
        lab.unit = "128MiB"
        lab.start_agent()
        lab.wait(lambda: lab.condition().get("status") == "True", "the condition says that it waits")
        self.assertEqual(lab.condition()["reason"], "GPUMemoryUnitKept")
        for text in "128MiB", "GiB", "default/a":
            self.assertIn(text, lab.condition()["message"])
        lab.wait_ready()
        self.offered(lab, GPU_MEM, "30", "in the unit that is kept")
        lab.api.delete(f"{PODS}/a", grace=1)
        self.offered(lab, GPU_MEM, "252", "the last slice is gone: the unit is in force")
        lab.wait(lambda: lab.node_annotation("aliquot.dev/gpu-mem-unit") == "128MiB", "the Event is written")
        lab.units = [126, 126]
        self.place(lab, pod("b", container("main", 100)), 1)
        lab.wait_phase("b", "Running")
        self.judged(lab, {"b"})

    def test_unit_too_small(self):
        lab = self.lab(cards="8xH200:144384MiB", unit="MiB", start=False)
        lab.start_agent()
        lab.wait(lambda: lab.condition().get("reason") == "GPUMemoryUnitRefused", "it is refused")
        self.assertIn("the smallest unit that fits is", lab.condition()["message"])
        lab.wait(lambda: lab.logged("nothing is offered"), "the log says so")
        self.assertFalse(lab.kubelet.manager.is_serving(GPU_MEM))

    def test_two_warnings_at_once(self):
        """Each is told once, however often the Node object changes."""
        lab = self.lab(cards=TWO_CARDS)
        self.place(lab, pod("a", container("main", 3, 10)), 1)
        lab.wait_phase("a", "Running")

        def annotate(unit, seen):
            lab.api.patch(NODE_PATH, {"metadata": {"labels": {"ack.node.gpu.schedule": "cgpu"}, "annotations": {
                "aliquot.dev/gpu-mem-unit": unit, "seen": seen}}})

        def said(reason):
            return [line for log in lab.logs for line in list(log) if reason in line]
        for unit in "some", "none":
            for i in range(5):
                annotate(unit, unit + str(i))
            lab.wait(lambda: lab.logged(f'GPUShareMisconfigured: annotation aliquot.dev/gpu-mem-unit is "{unit}"'), "it is refused")
        lab.wait(lambda: lab.logged("GPUShareModeKept: "), "the mode is kept")
        annotate("last", "last")
        lab.wait(lambda: lab.logged('GPUShareMisconfigured: annotation aliquot.dev/gpu-mem-unit is "last"'), "all of them were seen")
        self.assertEqual([len(said(reason)) for reason in ('unit is "some"', 'unit is "none"', 'unit is "last"', "GPUShareModeKept: ")],
                         [1, 1, 1, 1])

    def in_force(self, lab):
        found = lab.node()["metadata"].get("annotations", {})
        return [found.get("aliquot.dev/" + k) for k in ("mode-in-force", "gpu-mem-unit-in-force", "change-pending")]

    def says(self, lab, *words):
        lab.wait(lambda: self.in_force(lab) == list(words), f"the node says {words}")

    def test_in_force_is_published(self):
        lab = self.lab(cards=TWO_CARDS, mode="cgpu")
        self.says(lab, "cgpu", "GiB", None)
        lab.annotate(mode_in_force="share", gpu_mem_unit_in_force=None, change_pending="mode a -> b")
        self.says(lab, "cgpu", "GiB", None)
        self.place(lab, pod("a", container("main", 3)), 1)
        lab.wait_phase("a", "Running")
        self.set_label(lab, "share")
        self.says(lab, "cgpu", "GiB", "mode cgpu -> share")
        lab.annotate(place_while_changing="true")
        self.says(lab, "cgpu", "GiB", None)
        lab.wait(lambda: "place-while-changing" in lab.condition()["message"], "the condition says why")
        lab.annotate(place_while_changing="false", change_pending=None)
        self.says(lab, "cgpu", "GiB", "mode cgpu -> share")
        self.set_label(lab, None)
        self.says(lab, "cgpu", "GiB", None)
        self.set_label(lab, "default")
        self.says(lab, "cgpu", "GiB", "mode cgpu -> default")
        lab.restart_agent()
        self.says(lab, "cgpu", "GiB", "mode cgpu -> default")
        lab.api.delete(f"{PODS}/a", grace=1)
        self.says(lab, None, None, None)
        self.set_label(lab, "core_mem")
        self.says(lab, "core_mem", "GiB", None)

    def test_unit_is_refused_or_drained(self):
        lab = self.lab(cards=TWO_CARDS)
        self.place(lab, pod("a", container("main", 3)), 1)
        lab.wait_phase("a", "Running")
        lab.annotate(gpu_mem_unit="128MiB")
        lab.wait(lambda: lab.condition().get("reason") == "GPUMemoryUnitKept", "it is refused while a slice is held")
        for text in "128MiB", "refused while slices are held", "default/a", "aliquot.dev/gpu-mem-unit-change to drain":
            self.assertIn(text, lab.condition()["message"])
        self.says(lab, "core_mem", "GiB", None)
        lab.annotate(gpu_mem_unit_change="drain")
        self.says(lab, "core_mem", "GiB", "gpu-mem-unit GiB -> 128MiB")
        lab.wait(lambda: lab.condition()["reason"] == "GPUMemoryUnitDraining", "the condition says that it drains")
        made = lab.api.post(PODS, pod("direct", container("main", 2), scheduler="other"))
        lab.bind(made, {})
        lab.wait_phase("direct", "Running")  # a pod of another scheduler is admitted
        self.judged(lab)
        for name in "a", "direct":
            lab.api.delete(f"{PODS}/{name}", grace=1)
        self.says(lab, "core_mem", "128MiB", None)
        self.offered(lab, GPU_MEM, "252", "in the new unit")

    def test_unit_of_a_user_is_not_written_over(self):
        """A user writes the unit while a patch of the agent is on its way. It is the patch of the unit itself, or
        another one, whose answer shows the user's unit before the watch does."""
        for path, patch in (NODE_PATH, "gpu-mem-unit"), (NODE_PATH + "/status", "aliyun.com/gpu-count"):
            lab = self.lab(cards=TWO_CARDS, start=False)
            met = []

            def meet(body):
                if patch in body.decode() and not met:
                    met.append(body)
                    if path != NODE_PATH:
                        lab.relay.watching.clear()
                    lab.annotate(gpu_mem_unit="128MiB")
                return 200, None  # forwarded
            lab.relay.answers["PATCH", path] = meet
            lab.start_agent()
            lab.wait(lambda: met and len(lab.relay.patches(NODE_PATH + "/status")) > 1, "more is written after it")
            lab.relay.watching.set()
            lab.wait_ready()
            self.says(lab, "core_mem", "128MiB", None)
            self.offered(lab, GPU_MEM, "252", "in the user's unit")
            self.assertEqual(lab.node()["metadata"]["annotations"]["aliquot.dev/gpu-mem-unit"], "128MiB")

    def test_one_patch_for_each_change(self):
        lab = self.lab(unit="128MiB", annotations={"aliquot.dev/max-pods-per-card": "100"})
        for i in range(24):
            self.place(lab, pod(f"p{i:02}", container("main", 1)), i % 8)
        lab.wait(lambda: all(lab.phase(f"p{i:02}") == "Running" for i in range(24)), "all run")
        self.set_label(lab, "share")
        lab.wait(lambda: lab.condition().get("status") == "True", "the condition says that it waits")
        first = lab.condition()
        self.assertIn("held by " + ", ".join(f"default/p{i:02}" for i in range(8)) + " and 16 more", first["message"])
        for k in range(5):  # changes that the agent must check again
            lab.annotate(seen=str(k))
            for i in range(24):
                lab.api.patch(f"{PODS}/p{(i * 7 + k) % 24:02}", {"metadata": {"labels": {"seen": str(k)}}})
        self.set_label(lab, "cgpu")  # the new change is told, and the one before is over
        lab.wait(lambda: "mode cgpu" in lab.condition()["message"], "the other change is told")
        second = lab.condition()
        self.assertEqual(second["lastTransitionTime"], first["lastTransitionTime"], "it was True all the time")
        waiting = lab.relay.patches(NODE_PATH + "/status", "GPUShareModeKept")
        self.assertEqual(len(waiting), 2, [c["status"]["conditions"][0]["message"] for c in waiting])
        lab.wait(lambda: len(lab.events("GPUShareModeKept")) == 2, "an Event is written for each")
        lab.restart_agent()
        lab.wait_ready()
        lab.annotate(seen="after")
        self.set_label(lab, "share")
        lab.wait(lambda: "mode share" in lab.condition()["message"], "another Event is written")
        self.assertEqual(lab.condition()["lastTransitionTime"], first["lastTransitionTime"], "nor does a restart move it")
        self.assertEqual(len(lab.relay.patches(NODE_PATH + "/status", "GPUShareModeKept")), 3, "nor is it written again by one")

    def test_unit_larger_than_a_card(self):
        lab = self.lab(cards="1xTesla-V100-SXM2-16GB:16160MiB,1xA10-32G:32510MiB", unit="20GiB", start=False)
        lab.start_agent()
        lab.wait(lambda: lab.condition().get("reason") == "GPUMemoryUnitRefused", "it is refused")
        for text in "20GiB", "gpu0 cannot hold one", "at most 16160MiB":
            self.assertIn(text, lab.condition()["message"])
        self.assertNotIn("gpu1", lab.condition()["message"])
        lab.wait(lambda: lab.events("GPUMemoryUnitRefused"), "an Event says so")
        lab.wait(lambda: "20GiB is larger than a card" in (self.in_force(lab)[2] or ""), "so can the scheduler")
        self.assertEqual(self.in_force(lab)[:2], ["core_mem", None])
        self.assertFalse(lab.kubelet.manager.is_serving(GPU_MEM))
        lab.annotate(gpu_mem_unit="2GiB")
        lab.wait_ready()
        self.says(lab, "core_mem", "2GiB", None)
        lab.annotate(gpu_mem_unit="16161MiB")
        lab.wait(lambda: lab.condition().get("reason") == "GPUMemoryUnitRefused", "another one is refused")
        self.says(lab, "core_mem", "2GiB", None)
        self.offered(lab, GPU_MEM, "22", "what was in force stays")
        lab.annotate(gpu_mem_unit="GiB")
        lab.wait(lambda: lab.condition().get("status") == "False", "the condition is False")

    def test_misconfigured(self):
        lab = self.lab(cards=TWO_CARDS)
        self.says(lab, "core_mem", "GiB", None)
        kind = "GPUShareMisconfigured"
        self.assertEqual(lab.condition(kind), {}, "nothing was ever wrong")
        wrong = {"aliquot.dev/gpu-mem-unit": "128Mi", "aliquot.dev/policy": "6", "aliquot.dev/max-inst": "0",
                 "aliquot.dev/prio-ratio": "10", "aliquot.dev/max-pods-per-card": "20 ", "aliquot.dev/allow-mixed": "yes",
                 "aliquot.dev/place-while-changing": "1", "aliquot.dev/gpu-mem-unit-change": "Drain"}
        labels = {"ack.node.gpu.schedule": "core-mem", "ack.node.gpu.placement": "Spread"}
        lab.api.patch(NODE_PATH, {"metadata": {"annotations": wrong, "labels": labels}})
        lab.wait(lambda: lab.condition(kind).get("status") == "True", "the condition says so")
        condition = lab.condition(kind)
        self.assertEqual(condition["reason"], "InvalidKey")
        for key, value in {**wrong, **labels}.items():
            self.assertIn(f'{key} is "{value}", must be ', condition["message"])
            lab.wait(lambda: [n for n in lab.events(kind) if f'{key} is "{value}"' in n], "an Event says so")
        self.assertEqual(condition["message"].count("in force"), len(wrong) + len(labels))
        self.says(lab, "core_mem", "GiB", None)
        lab.annotate(seen="again")
        lab.annotate(policy="5")  # one key is repaired, the others stay wrong
        lab.wait(lambda: "aliquot.dev/policy" not in lab.condition(kind)["message"], "it is no longer named")
        self.assertEqual(len(lab.events(kind)), len(wrong) + len(labels), "one Event for each that became wrong")
        lab.api.patch(NODE_PATH, {"metadata": {"annotations": {k: None for k in wrong}, "labels": {
            "ack.node.gpu.schedule": "core_mem", "ack.node.gpu.placement": None}}})
        lab.wait(lambda: [lab.condition(kind).get(k) for k in ("status", "reason")] == ["False", "Valid"], "all are repaired")

    def test_unknown_mode(self):
        lab = self.lab(cards=TWO_CARDS)
        self.says(lab, "core_mem", "GiB", None)
        self.set_label(lab, "core-mem")
        lab.wait(lambda: lab.condition("GPUShareMisconfigured").get("status") == "True", "it is said")
        self.assertIn('label ack.node.gpu.schedule is "core-mem", must be share, cgpu, core_mem', lab.condition("GPUShareMisconfigured")["message"])
        lab.restart_agent()
        lab.wait_ready()
        self.says(lab, "core_mem", "GiB", None)
        self.offered(lab, GPU_MEM, "30", "the mode stays")
        lab.wait(lambda: lab.node()["metadata"]["labels"].get("aliquot.dev/holds-slices") == "false", "and so does the DaemonSet")
        new = self.lab(cards=TWO_CARDS, mode="Share", start=False)
        new.start_agent()
        new.wait(lambda: new.events("GPUShareMisconfigured"), "a node that never shared has the condition")
        self.assertIn('is "Share", must be share, cgpu', new.events("GPUShareMisconfigured")[0])
        new.wait(lambda: new.condition("GPUShareMisconfigured").get("status") == "True", "and its condition")
        self.assertEqual(self.in_force(new), [None, None, None])
        self.assertFalse(new.kubelet.manager.is_serving(GPU_MEM))

    def test_the_published_unit_survives_a_full_disk(self):
        """An agent that has lost its state would take the unit that it published for a user's."""
        full = ["prlimit", "--fsize=0:"]
        if subprocess.run([*full, ALIQUOT, "--version"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False).returncode:
            self.skipTest("ThreadSanitizer's runtime writes a file before main()")
        lab = self.lab(cards=TWO_CARDS, start=False)
        lab.start_agent(before=full)
        lab.wait(lambda: lab.node_annotation("aliquot.dev/gpu-mem-unit") == "GiB", "it is said")
        terms = os.path.join(lab.state, "terms.json")
        self.assertFalse(os.path.exists(terms))
        limit_files(lab.agent.process.pid, None)
        lab.api.patch(NODE_PATH, {"metadata": {"annotations": {"something": "changed"}}})
        lab.wait(lambda: os.path.exists(terms), "it is remembered")
        with open(terms) as f:
            self.assertEqual(json.load(f)["saidUnit"], "GiB")

    def test_what_the_node_object_has(self):
        lab = self.lab(cards=EIGHT_CARDS)
        words = {"aliyun.accelerator/nvidia_name": "Tesla-V100-SXM2-16GB", "aliyun.accelerator/nvidia_mem": "16160MiB",
                 "aliyun.accelerator/nvidia_count": "8"}
        lab.wait(lambda: words.items() <= lab.node()["metadata"]["labels"].items(), "labels")
        lab.wait(lambda: lab.node_annotation("aliquot.dev/gpu-mem-unit") == "GiB", "unit")
        lab.wait(lambda: lab.node()["status"]["allocatable"] == {GPU_MEM: "184", GPU_CORE: "800", GPU: "0",
                                                                 "aliyun.com/gpu-count": "8"}, "allocatable")
        lab.wait(lambda: lab.node()["status"]["capacity"] == lab.node()["status"]["allocatable"], "capacity")


class DeviceAccess(Node):
    def test_runtime_gives_cards_by_mounts_as_well(self):
        """The volume mounts that the nvidia toolkit reads with accept-nvidia-visible-devices-as-volume-mounts, for cards of this
        container only."""
        for access, wanted in (("runtime", 1), ("cdi", 0)):
            lab = self.lab(cards=TWO_CARDS, mode="share", extra=["--device-access", access])
            uid = self.place(lab, pod("a", container("main", 2)), 1)
            lab.wait(lambda lab=lab, uid=uid: "main" in lab.running(uid), "it runs")
            options = lab.kubelet.runtime.of(uid, "main").options
            given = {path: m for path, m in options["mounts"].items() if path.startswith("/var/run/nvidia-container-devices/")}
            self.assertEqual(len(given), wanted)
            self.assertEqual(len(options["cdi"]), 1 - wanted)
            for path, mount in given.items():
                self.assertEqual(path, "/var/run/nvidia-container-devices/" + options["env"]["NVIDIA_VISIBLE_DEVICES"])
                self.assertEqual(mount, ("/dev/null", True))


class Serving(Node):
    """Bad input and failures give a clear message: no crash, and no lost state."""

    def socket_path(self, lab, name="aliquot-gpu-mem.sock"):
        return os.path.join(lab.kubelet_dir, "device-plugins", name)

    def alive(self, lab, name="after"):
        """The agent serves as before and was not restarted."""
        self.assertIsNone(lab.agent.process.poll(), lab.log_tail())
        uid = self.place(lab, pod(name, container("main", 2, 5)), len(lab.units) - 1)
        lab.wait(lambda: lab.running(uid), "it serves as before")
        self.judged(lab)

    def calls(self, lab, name="aliquot-gpu-mem.sock"):
        c = channel(self.socket_path(lab, name))
        self.addCleanup(c.close)
        return c, PluginCalls(c)

    def refused(self, call, request, *codes):
        with self.assertRaises(grpc.RpcError) as caught:
            call(request, timeout=60)
        self.assertIn(caught.exception.code(), codes, caught.exception.details())
        return caught.exception.details()

    def allocation(self, *sets):
        return dp.AllocateRequest(container_requests=[dp.ContainerAllocateRequest(devices_ids=s) for s in sets])


class Calls(Serving):
    """What is sent to the sockets of the agent."""

    def test_hostile_frames(self):
        lab = self.lab()
        preface = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
        settings = b"\0\0\0\4\0\0\0\0\0"

        def frame(kind, flags, stream, body=b"", length=None):
            return struct.pack(">I", len(body) if length is None else length)[1:] + bytes([kind, flags]) + struct.pack(
                ">I", stream) + body
        attacks = [b"", b"\0" * 4096, b"GET / HTTP/1.1\r\n\r\n", preface[:10], preface + b"\xff" * 9000,
                   preface + settings + frame(0, 0, 1, b"x"), preface + settings + frame(1, 4, 1, b"\xff" * 40),
                   preface + settings + frame(0, 0, 0, b"", 0xffffff), preface + settings + frame(1, 4, 2, b"\x82"),
                   preface + settings + frame(4, 0, 0, b"\0\4\xff\xff\xff\xff"), preface + settings + frame(8, 0, 0, b"\0" * 4),
                   preface + settings + frame(9, 4, 1, b"\0" * 100), preface + settings + frame(6, 0, 0, b"12345678") * 2000,
                   preface + settings + frame(1, 5, 1, b"\x82\x86\x84") + frame(3, 0, 1, b"\0\0\0\x08")]
        attacks += [preface + settings + os.urandom(2000) for _ in range(20)]
        for name in "aliquot-gpu-mem.sock", "aliquot-gpu-core.sock":
            for attack in attacks:
                with socket.socket(socket.AF_UNIX) as s:
                    s.settimeout(1)
                    s.connect(self.socket_path(lab, name))
                    try:
                        s.sendall(attack)
                        s.recv(4096)
                    except OSError:
                        pass  # closed or unanswered: both are allowed
        self.alive(lab)

    def test_many_connections(self):
        lab = self.lab()
        crowd = []
        for _ in range(300):
            s = socket.socket(socket.AF_UNIX)
            s.settimeout(5)
            try:
                s.connect(self.socket_path(lab))
            except OSError:
                s.close()
                break
            crowd.append(s)
        self.alive(lab)
        for s in crowd:
            s.close()

    def test_wrong_devices(self):
        lab = self.lab(cards=TWO_CARDS)
        _, mem = self.calls(lab)
        bad = grpc.StatusCode.INVALID_ARGUMENT
        for ids in ([], ["9-0"], ["0-15"], ["0-99999999999999999999"], ["c0-1"], ["0-0", "0-0"], ["-1-3"], ["0-"], [""],
                    ["0-1\x00"], ["0 -1"], ["00-1"], ["0-01"], ["x" * 70000], ["0-0"] * 10000):
            self.refused(mem.allocate, self.allocation(ids), bad)
            if ids:
                self.refused(mem.prestart, dp.PreStartContainerRequest(devices_ids=ids), bad, grpc.StatusCode.UNAVAILABLE)
        self.refused(mem.allocate, self.allocation(["0-0"], ["0-1"]), bad)
        self.refused(mem.allocate, dp.AllocateRequest(), bad)
        for available, size in ((["0-0"], 0), (["0-0"], 2), ([], 1), (["0-0"], -1), (["zz"], 1)):
            request = dp.PreferredAllocationRequest()
            request.container_requests.add(available_deviceIDs=available, allocation_size=size)
            self.refused(mem.preferred, request, bad)
        self.alive(lab)

    def test_malformed_messages(self):
        lab = self.lab(cards=TWO_CARDS)
        c, _ = self.calls(lab)
        for method in "GetPreferredAllocation", "Allocate", "PreStartContainer", "ListAndWatches", "../x":
            call = c.unary_unary("/v1beta1.DevicePlugin/" + method, request_serializer=lambda b: b,
                                 response_deserializer=lambda b: b)
            for body in (b"\xff", b"\x0a\xff\xff\xff\xff\x0f", b"\x0a\x05\x0a\xf0\xf0\xf0\x0f", b"\x0b", b"\x08\x01",
                         os.urandom(300)):
                with self.assertRaises(grpc.RpcError) as caught:
                    call(body, timeout=60)
                self.assertIn(caught.exception.code(),
                              (grpc.StatusCode.INVALID_ARGUMENT, grpc.StatusCode.UNIMPLEMENTED, grpc.StatusCode.INTERNAL,
                               grpc.StatusCode.UNAVAILABLE), method)
        self.alive(lab)

    def test_oversize_message(self):
        lab = self.lab(cards=TWO_CARDS)
        _, mem = self.calls(lab)
        before = lab.agent.memory()
        with self.assertRaises(grpc.RpcError):
            mem.allocate(self.allocation(["0-%d" % n for n in range(3000000)]), timeout=120)
        self.assertLess(lab.agent.memory() - before, 16 << 10)
        self.alive(lab)

    def test_allocate_twice(self):
        lab = self.lab(cards=TWO_CARDS)
        uid = self.place(lab, pod("a", container("main", 4)), 0)
        lab.wait_phase("a", "Running")
        ids = lab.kubelet.manager.container_devices(uid, "main", GPU_MEM)
        _, mem = self.calls(lab)
        for _ in range(3):
            try:
                mem.allocate(self.allocation(sorted(ids)), timeout=10)
            except grpc.RpcError:
                pass  # both are allowed, if nothing changes
        lab.wait(lambda: lab.get("a")["metadata"]["annotations"][ASSIGNED] == "true", "assigned")
        self.assertEqual(parse(lab.get("a"), ALLOCATION), {0: {0: 4}})
        self.alive(lab)
        self.place(lab, pod("rest", container("main", 11)), 0)
        lab.wait_phase("rest", "Running")
        self.judged(lab)

    def test_prestart_of_free_devices(self):
        lab = self.lab(cards=TWO_CARDS)
        _, mem = self.calls(lab)
        text = self.refused(mem.prestart, dp.PreStartContainerRequest(devices_ids=["0-0", "0-1"]),
                            grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.FAILED_PRECONDITION)
        self.assertIn("2 of aliyun.com/gpu-mem", text)
        self.alive(lab)

    def test_cancelled_calls(self):
        lab = self.lab(cards=TWO_CARDS)
        _, mem = self.calls(lab)
        for _ in range(20):
            call = mem.prestart.future(dp.PreStartContainerRequest(devices_ids=["0-0"]), timeout=10)
            call.cancel()
        self.alive(lab)

    def test_kubelet_ends_during_a_call(self):
        lab = self.lab(cards=TWO_CARDS)
        for i in range(4):
            # List is refused, so that GetPreferredAllocation is under way when the kubelet ends.
            lab.kubelet.manager.limiter.tokens = -40.0
            self.place(lab, pod(f"p{i}", container("main", 2)), i % 2)
            time.sleep(0.1)  # at some moment of the call
            lab.kubelet.restart()
            self.assertTrue(lab.kubelet.wait_serving(GPU_MEM, GPU_CORE))
        lab.wait(lambda: all(lab.phase(f"p{i}") in ("Running", "Failed") for i in range(4)), "they are admitted")
        self.alive(lab)


class Trouble(Serving):
    def test_api_server_away(self):
        lab = self.lab(cards=TWO_CARDS)
        made = [lab.api.post(PODS, pod(f"p{i}", container("main", 3))) for i in range(4)]
        for i, m in enumerate(made):
            lab.bind(m, annotations_for(m, [i % 2], lab.units))
        lab.store.tell("vanish")
        lab.store.tell("return")
        lab.wait(lambda: all(lab.phase(f"p{i}") in ("Running", "Failed") for i in range(4)), "they are admitted", 300)
        self.judged(lab)
        self.assertEqual(lab.kubelet.rejections, [])
        self.alive(lab)

    def test_api_server_with_faults(self):
        lab = self.lab()
        lab.schedule()
        for fault in ("status 8 PATCH /api/v1/namespaces/default/pods 500", "lose 5 PATCH /api/v1/namespaces",
                      "cut 5 PATCH /api/v1", "cut-watch 3 - /api/v1/pods", "status 3 PATCH /api/v1/nodes 429",
                      "delay 10 PATCH /api/v1/namespaces 100000"):
            lab.store.tell("fault " + fault)
        names = self.run_to_end(lab, [shapes(lab.rng, f"p{i}", life=(0.02, 0.1)) for i in range(60)])
        lab.store.tell("forget")
        self.judged(lab, names)
        self.assertEqual(lab.kubelet.rejections, [])
        stays = lab.create(pod("stays", container("main", 2)))
        lab.wait(lambda: lab.running(stays), "it runs")
        lab.wait(lambda: lab.get("stays")["metadata"]["annotations"].get(ASSIGNED) == "true", "and is assigned")

    def test_full_disk(self):
        lab = self.lab(cards=TWO_CARDS)
        limit_files(lab.agent.process.pid, 0)
        uid = self.place(lab, pod("a", container("main", 2, 5)), 1)
        self.not_started(lab, lab.state)
        self.assertEqual(lab.running(uid), [])
        self.assertIsNone(lab.agent.process.poll())
        limit_files(lab.agent.process.pid, None)
        lab.wait(lambda: lab.running(uid), "there is room again: it starts")
        self.alive(lab)

    def test_corrupted_state(self):
        lab = self.lab(cards=TWO_CARDS)
        uid = self.place(lab, pod("a", container("main", 2, 5)), 1)
        lab.wait_phase("a", "Running")
        lab.agent.stop()
        for directory, _, files in os.walk(lab.state):
            for name in files:
                os.chmod(os.path.join(directory, name), 0o600)  # some are read-only, also for their owner
                with open(os.path.join(directory, name), "wb") as f:
                    f.write(lab.rng.choice([b"", b"{", b"\0" * 100, b'{"mode":7}', os.urandom(64)]))
        lab.start_agent()
        lab.wait_ready()
        lab.api.delete(f"{PODS}/a", grace=0)
        self.alive(lab)
        self.assertEqual(lab.running(uid), [])

    def test_clock_jumps(self):
        lab = self.lab(cards=TWO_CARDS)
        if not lab.clock.shim:
            self.skipTest("the shim must be the first library, and so must the sanitizer's")
        for i, seconds in enumerate((86400 * 365, -86400 * 365 * 20, 0)):
            lab.clock.set_wall(seconds)
            uid = self.place(lab, pod(f"p{i}", container("main", 2, 5)), i % 2)
            lab.wait(lambda: lab.running(uid), "it runs")
        lab.wait(lambda: all(lab.get(f"p{i}")["metadata"]["annotations"][ASSIGNED] == "true" for i in range(3)),
                 "assigned")
        self.alive(lab)

    def test_usage(self):
        def run(*args):
            done = subprocess.run([ALIQUOT, "node", *args], capture_output=True, text=True, timeout=120)
            return done.returncode, done.stderr
        for args, text in ((["--simulate", "8xA:1MiB"], "--node-name is required"),
                           (["--node-name", "n", "--simulate", "many"], "--simulate"),
                           (["--node-name", "n", "--gpu-mem-unit", "1.5GiB"], "--gpu-mem-unit"),
                           (["--node-name", "n", "--device-access", "magic"], "cdi or runtime"),
                           (["--node-name", "n", "--on-excess", "event"], "--on-excess"),
                           (["--node-name", "n", "--on-compute-excess", ""], "--on-compute-excess"),
                           (["--node-name", "n", "--on-hung-kernel", "event"], "--on-hung-kernel"),
                           (["--node-name", "n", "--hung-kernel", "0"], "--hung-kernel"),
                           (["--node-name", "n", "--hung-kernel", "86401"], "--hung-kernel"),
                           (["--node-name", "n", "more"], "more")):
            code, said = run(*args)
            self.assertEqual(code, 2, args)
            self.assertIn(text, said)
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        code, said = run("--node-name", "n", "--kubeconfig", folder.name + "/absent", "--no-supervisor", "--slices-dir", folder.name + "/slices",
                         "--slices-size", "0")
        self.assertEqual(code, 3)
        self.assertIn(folder.name + "/absent", said)

    def test_metrics_server(self):
        lab = self.lab(cards=TWO_CARDS)
        made = lab.api.post(PODS, pod("a", container("main", 3, 10)))
        lab.bind(made, {**annotations_for(made, [1], lab.units), ALLOCATION: '{"0":{"1":2}}'})  # which differs from its limit
        lab.wait_phase("a", "Running")
        metrics = lab.metrics()
        fits = {k: v for k, v in metrics.items() if k.startswith("DCGM_CUSTOM_CONTAINER_MEM_ALLOCATED") and 'PodName="a"' in k}
        self.assertEqual(list(fits.values()), [16160 * 3 // 15])
        self.assertEqual(sorted(v for k, v in metrics.items() if k.startswith("DCGM_CUSTOM_DEV_FB_TOTAL")), [16160] * 2)

    def test_ends_on_a_signal(self):
        for supervised in False, True:
            for number in signal.SIGTERM, signal.SIGINT:
                lab = self.lab(cards=ONE_CARD, supervised=supervised)
                lab.agent.process.send_signal(number)
                self.assertEqual(lab.agent.process.wait(120), 0, (supervised, number))


if __name__ == "__main__":
    run_tests(warnings="ignore")
