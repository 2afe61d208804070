#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Every key that Aliquot reads from a Pod, a Node or a ConfigMap, with every kind of wrong value,
before a pod is bound and while it runs.

Usage: keys.py ALIQUOT STORE_SERVER KUBECTL_INSPECT CLOCK_SHIM

No admission stands in front of the API server here, so every value of a user arrives. After each
step the scheduler's ledger, the node agent and kubectl-inspect-cgpu must give the same sums as the
kubelet's devices. Other pods must keep their allocations."""

import json
import os
import re
import subprocess
import sys
import tempfile
import unittest
import urllib.request

from node_lab import ALLOCATION, GPU_CORE, GPU_MEM, INIT, Lab, Limits, NODE, NODE_PATH, PODS, by_card, container, create_many, pod
from grpc_process import run_tests
from wrong_values import ENVIRONMENT, FENCES, NODE_ANNOTATIONS, NODE_LABELS

ALIQUOT, STORE, INSPECT, SHIM = sys.argv[1:5]
del sys.argv[1:5]

CARDS = "4xTesla-V100-SXM2-16GB:16160MiB"
UNIT_MIB, CARD_MIB, UNITS = 128, 16160, 126
CORE_KEY = "gpushare.alibabacloud.com/core-percentage"
PREFIX = "scheduler.framework.gpushare."
MISCONFIGURED, FENCE_MISCONFIGURED = "GPUShareMisconfigured", "GPUFenceMisconfigured"

# Wrong values by kind, because a key with JSON and a key with a number are wrong in different ways.
# "other" is the value of another pod. "contradicting" names a card or an amount that is not the
# pod's.
JSON_VALUES = {
    "empty": "", "malformed": "{", "not-an-object": "[1]", "huge": '{"0":{"0":4294967295}}',
    "over": '{"0":{"0":99999999999999999999}}', "negative": '{"0":{"0":-1}}', "contradicting": '{"0":{"3":126,"2":126}}',
    "no-such-container": '{"7":{"0":100}}', "no-such-card": '{"0":{"255":1}}', "long": "{" + " " * 60000 + "}",
}
TEXT_VALUES = {"empty": "", "malformed": "x", "huge": "99999999999999999999", "negative": "-5", "contradicting": "3"}
SYSTEM_KEYS = {
    PREFIX + "allocation": JSON_VALUES, CORE_KEY: JSON_VALUES, INIT: JSON_VALUES,
    PREFIX + "assigned": TEXT_VALUES, PREFIX + "assume-time": TEXT_VALUES, "aliquot.dev/resize-status": TEXT_VALUES,
    "ALIYUN_COM_GPU_MEM_IDX": TEXT_VALUES, "ALIYUN_COM_GPU_MEM_DEV": TEXT_VALUES, "ALIYUN_COM_GPU_MEM_POD": TEXT_VALUES,
    "ALIYUN_COM_GPU_MEM_ASSIGNED": TEXT_VALUES, "ALIYUN_COM_GPU_MEM_ASSUME_TIME": TEXT_VALUES,
}
# No part writes these keys: they must stay as the user wrote them.
USER_KEYS = ("aliquot.dev/gpu-mem", "aliquot.dev/gpu-core", "aliquot.dev/gang")
# What the agent says of the user's keys that resize, with a value that is no size.
RESIZE_REFUSED = 'refused: annotation aliquot.dev/gpu-mem is "mine", must be a whole number'

# Names that are close to a key: what the condition says was meant.
MISSPELT = {
    ("annotations", "aliquot.dev/max-pod-per-card"): "annotation aliquot.dev/max-pods-per-card",
    ("annotations", "aliquot.dev/gpu-mem-units"): "annotation aliquot.dev/gpu-mem-unit",
    ("annotations", "ack.node.gpu.schedule"): "label ack.node.gpu.schedule",
    ("labels", "ack.node.gpu.shedule"): "label ack.node.gpu.schedule",
}
# Keys of a Node that its agent owns: values of other writers are replaced.
AGENT_KEYS = {
    "aliquot.dev/cards": ("", "[", '[{"index":0,"units":4294967295}]', '[{"index":0,"units":-1}]'),
    "aliquot.dev/held-slices": ("[", '[{"pod":"a/b","uid":"u","allocation":{"0":{"0":4294967295}}}]', "x"),
    "aliquot.dev/mode-in-force": ("", "x", "share"),
    "aliquot.dev/gpu-mem-unit-in-force": ("", "x", "GiB"),
    "aliquot.dev/change-pending": ("x",),
}


def cases():
    """(name, key, value) of every wrong system key. The value `absent` removes the key."""
    for k, (key, values) in enumerate(SYSTEM_KEYS.items()):
        yield f"k{k}-absent", key, None
        for kind, value in values.items():
            yield f"k{k}-{kind}", key, value


class Keys(unittest.TestCase):
    def setUp(self):
        self.lab = Lab(ALIQUOT, STORE, cards=CARDS, unit="128MiB", shim=SHIM, annotations={
            "aliquot.dev/max-pods-per-card": "200"})
        self.addCleanup(self.close)
        self.lab.schedule(with_extender=True)
        for i in range(2):
            self.lab.create(pod(f"neighbour-{i}", container("main", 30, 20)))
        for i in range(2):
            self.lab.wait_phase(f"neighbour-{i}", "Running")
        self.settle()
        self.neighbours = self.places("neighbour-")

    def close(self):
        self.lab.close()
        self.assertEqual(self.lab.faults(), [], self.lab.log_tail())

    # ---- the sums of each part of the system ----

    def pods(self, prefix=""):
        return [o for o in self.lab.api.get(PODS)["items"] if o["metadata"]["name"].startswith(prefix)]

    def devices(self):
        """Units by card that the kubelet's device manager has given to the pods."""
        given = [0] * len(self.lab.units)
        for o in self.pods():
            ids = set()
            for c in o["spec"].get("initContainers", []) + o["spec"]["containers"]:
                ids |= self.lab.kubelet.manager.container_devices(o["metadata"]["uid"], c["name"], GPU_MEM) or set()
            for card, n in by_card(ids).items():
                given[card] += n
        return given

    def ledger(self):
        found = self.lab.inspect()["nodes"]
        return [d["usedGPU"] for d in found[0]["devs"]] if found else []

    def inspected(self):
        """The sums of kubectl-inspect-cgpu over the same objects."""
        items = [dict(self.lab.node(), kind="Node", apiVersion="v1")]
        items += [dict(o, kind="Pod", apiVersion="v1") for o in self.pods()]
        with tempfile.NamedTemporaryFile("w", suffix=".json") as f:
            json.dump({"kind": "List", "apiVersion": "v1", "items": items}, f)
            f.flush()
            out = subprocess.run([INSPECT, "-o", "json", "--from", f.name], capture_output=True, text=True, check=False)
        self.assertEqual(out.returncode, 0, out.stderr)
        found = json.loads(out.stdout)["nodes"]
        return [d["usedGPU"] for d in found[0]["devs"]] if found else []

    def agents(self):
        """MiB of all containers in the agent's metrics."""
        metrics = self.lab.metrics()
        return sum(int(v) for k, v in metrics.items() if k.startswith("DCGM_CUSTOM_CONTAINER_MEM_ALLOCATED{"))

    def given_mib(self):
        return sum(CARD_MIB * n // UNITS for o in self.pods() for n in self.place_of(o).values())

    def place_of(self, o):
        ids = set()
        for c in o["spec"]["containers"]:
            ids |= self.lab.kubelet.manager.container_devices(o["metadata"]["uid"], c["name"], GPU_MEM) or set()
        return by_card(ids)

    def places(self, prefix):
        """The devices of a pod and the annotations that describe them."""
        return {o["metadata"]["name"]: (self.place_of(o), o["metadata"]["annotations"].get(ALLOCATION),
                                        o["metadata"]["annotations"].get(CORE_KEY) or None) for o in self.pods(prefix)}

    def settle(self, inspect=True):
        """Waits until all sums agree. The message names those that did not."""
        said = {}

        def agree():
            said.update(devices=self.devices(), ledger=self.ledger(), agent=self.agents(), given=self.given_mib())
            said["inspect"] = self.inspected() if inspect else said["devices"]
            return said["devices"] == said["ledger"] == said["inspect"] and said["agent"] == said["given"]
        try:
            self.lab.wait(agree, "the ledger, the agent and inspect agree")
        except AssertionError as error:
            raise AssertionError(f"{said}\n{error}") from None

    def unchanged(self):
        self.assertEqual(self.places("neighbour-"), self.neighbours)

    def condition(self, kind):
        for c in self.lab.node().get("status", {}).get("conditions", []):
            if c["type"] == kind:
                return c
        return {"status": "absent", "message": ""}

    def notes(self, reason, name=None):
        return [e.get("note") or e.get("message", "") for e in self.lab.api.get("/api/v1/namespaces/default/events")["items"]
                if e["reason"] == reason and name in (None, (e.get("regarding") or e.get("involvedObject"))["name"])]

    def filter(self, mem):
        body = {"Pod": pod("probe", container("main", mem)), "NodeNames": [NODE]}
        body["Pod"]["metadata"]["annotations"] = {}
        body["Pod"]["spec"]["containers"][0]["resources"]["limits"][GPU_CORE] = "5"
        request = urllib.request.Request(f"http://{self.lab.extender_address}/gpushare-scheduler/filter",
                                         json.dumps(body).encode(), {"Content-Type": "application/json"})
        with urllib.request.urlopen(request, timeout=60) as answer:
            return json.load(answer)

    def fits(self, mem):
        return self.filter(mem)["NodeNames"] == [NODE]

    def wrong_node_key(self, patch, undo, key, value):
        total = self.lab.units
        self.lab.api.patch(NODE_PATH, patch)
        self.lab.wait(lambda: self.condition(MISCONFIGURED)["status"] == "True" and
                      key in self.condition(MISCONFIGURED)["message"],
                      f"{key}={value!r} is said; {self.condition(MISCONFIGURED)}")
        self.settle()
        self.assertEqual([d["totalGPU"] for d in self.lab.inspect()["nodes"][0]["devs"]], total, (key, value))
        self.assertTrue(self.fits(UNITS - 60), (key, value))
        self.assertFalse(self.fits(UNITS + 1), (key, value))
        self.unchanged()
        self.lab.api.patch(NODE_PATH, undo)
        self.lab.wait(lambda: self.condition(MISCONFIGURED)["status"] != "True", f"{key} is right again")

    def fence(self, key, value):
        name = "unhealthy-gpu-" + NODE if key == "gpus" else NODE + "-device-status"
        path = "/api/v1/namespaces/kube-system/configmaps"
        body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": "kube-system"},
                "data": {key: value}}
        if any(o["metadata"]["name"] == name for o in self.lab.api.get(path)["items"]):
            self.lab.api.patch(f"{path}/{name}", {"data": {key: value}})
        else:
            self.lab.api.post(path, body)


class PodKeys(Keys):
    def test_pod_keys_before_binding(self):
        """The Binding overwrites the system keys that it sets and empties the others; user keys stay."""
        objects = []
        for name, key, value in cases():
            notes = {} if value is None else {key: value}
            notes.update({k: "mine" for k in USER_KEYS})
            objects.append(pod("before-" + name, container("main", 1, 0), annotations=notes))
        other = self.pods("neighbour-0")[0]["metadata"]["annotations"]
        for k, key in enumerate(SYSTEM_KEYS):
            if key in other:
                objects.append(pod(f"before-other-{k}", container("main", 1, 0), annotations={key: other[key]}))
        self.lab.api.patch(NODE_PATH, {"metadata": {"annotations": {"aliquot.dev/allow-mixed": "true"}}})
        names = create_many(self.lab, objects)
        for name in names:
            self.lab.wait_phase(name, "Running")
        self.lab.wait(lambda: all(o["metadata"]["annotations"].get("aliquot.dev/resize-status", "").startswith(RESIZE_REFUSED)
                                  for o in self.pods("before-") if "-other-" not in o["metadata"]["name"]), "each wrong size is refused")
        self.settle()
        self.unchanged()
        for o in self.pods("before-"):
            notes = o["metadata"]["annotations"]
            name = o["metadata"]["name"]
            (card, n), = self.place_of(o).items()
            self.assertEqual(json.loads(notes[ALLOCATION]), {"0": {str(card): 1}}, name)
            self.assertEqual(n, 1, name)
            self.assertEqual(notes.get(CORE_KEY, ""), "", name)
            self.assertEqual(notes.get(INIT, ""), "", name)
            if "-other-" in name:
                self.assertEqual(notes.get("aliquot.dev/resize-status", ""), "", name)
            self.assertEqual(notes["ALIYUN_COM_GPU_MEM_IDX"], str(card), name)
            self.assertEqual(notes["ALIYUN_COM_GPU_MEM_POD"], "1", name)
            if "-other-" not in name:
                self.assertEqual({k: notes.get(k) for k in USER_KEYS}, {k: "mine" for k in USER_KEYS}, name)

    def test_pods_without_requests(self):
        """A pod without our resources counts nothing, whatever its annotations are."""
        before = self.ledger()
        for i, values in enumerate(zip(JSON_VALUES.values(), list(TEXT_VALUES.values()) * 2)):
            notes = {k: values[0] if v is JSON_VALUES else values[1] for k, v in SYSTEM_KEYS.items()}
            self.lab.create(pod(f"nothing-{i}", container("main"), annotations=notes, nodeName=NODE))
        for i in range(len(JSON_VALUES)):
            self.lab.wait_phase(f"nothing-{i}", "Running")
        self.settle(inspect=False)
        self.assertEqual(self.ledger(), before)
        self.unchanged()

    def test_pod_keys_while_running(self):
        """Changes of a running pod's system keys are undone from the agent's records."""
        self.lab.api.patch(NODE_PATH, {"metadata": {"annotations": {"aliquot.dev/allow-mixed": "true"}}})
        found = list(cases())
        create_many(self.lab, [pod("while-" + name, container("main", 1, 0)) for name, _, _ in found])
        for name, _, _ in found:
            self.lab.wait_phase("while-" + name, "Running")
        self.lab.wait(lambda: all(o["metadata"]["annotations"].get(PREFIX + "assigned") == "true"
                                  for o in self.pods("while-")), "all are assigned")
        self.settle()
        own = self.places("while-")
        kept = {o["metadata"]["name"]: dict(o["metadata"]["annotations"]) for o in self.pods("while-")}
        for name, key, value in found:
            self.lab.api.patch(f"{PODS}/while-{name}", {"metadata": {"annotations": {key: value}}})

        def wrong():
            return [o["metadata"]["name"] for o in self.pods("while-") for k in SYSTEM_KEYS
                    if (o["metadata"]["annotations"].get(k) or "") != (kept[o["metadata"]["name"]].get(k) or "")
                    and "assume-time" not in k.lower().replace("_", "-")]
        self.lab.wait_repaired()
        self.lab.wait(lambda: not wrong(), "all annotations are repaired", 400, leap=1)
        self.settle()
        self.assertEqual(self.places("while-"), own)
        self.unchanged()

    def test_environment(self):
        """A wrong value counts as absent: an Event says it, and the container is isolated with weight 1."""
        wrong = {f"env-{k}-{i}": (key, value, rule) for k, (key, (values, rule)) in enumerate(ENVIRONMENT.items())
                 for i, value in enumerate(values)}
        for name, (key, value, _) in wrong.items():
            self.lab.create(pod(name, container("main", 1, 5, env=[{"name": key, "value": value}])))
        for name, (key, value, rule) in wrong.items():
            with self.subTest(key=key, value=value):
                self.lab.wait_phase(name, "Running")
                uid = self.lab.api.get(f"{PODS}/{name}")["metadata"]["uid"]
                said = f'container main: environment {key} is "{value}", must be {rule}; it is passed over'
                self.lab.wait(lambda: said in self.notes("GPUComputeRefused", name), f"an Event says: {said}")
                page = Limits(self.lab.kubelet.runtime.of(uid, "main").options["mounts"]["/.aliquot/slice/0/limits"][0])
                self.assertEqual((page.weight, page.high_priority, page.limit >> 20, page.core), (1, 0, CARD_MIB // UNITS, 5))
        self.settle()
        self.unchanged()


class NodeKeys(Keys):
    def test_node_annotations(self):
        for key, values in NODE_ANNOTATIONS.items():
            was = self.lab.node_annotation(key)
            for value in values:
                with self.subTest(key=key, value=value):
                    self.wrong_node_key({"metadata": {"annotations": {key: value}}},
                                        {"metadata": {"annotations": {key: was}}}, key, value)

    def test_unit_that_no_card_holds(self):
        """The unit is refused with its value and the rule, and nothing changes."""
        was = self.lab.node_annotation("aliquot.dev/gpu-mem-unit")
        self.lab.api.patch(NODE_PATH, {"metadata": {"annotations": {"aliquot.dev/gpu-mem-unit": "64GiB"}}})
        self.lab.wait(lambda: "64GiB" in self.lab.condition().get("message", ""), "the unit is refused")
        self.assertIn(f"{CARD_MIB}MiB", self.lab.condition()["message"])
        self.settle()
        self.assertTrue(self.fits(UNITS))
        self.unchanged()
        self.lab.api.patch(NODE_PATH, {"metadata": {"annotations": {"aliquot.dev/gpu-mem-unit": was}}})
        self.lab.wait(lambda: self.lab.condition().get("status") == "False", "the condition is taken back")

    def test_node_labels(self):
        for key, values in NODE_LABELS.items():
            was = self.lab.node()["metadata"]["labels"].get(key)
            for value in values:
                with self.subTest(key=key, value=value):
                    self.wrong_node_key({"metadata": {"labels": {key: value}}}, {"metadata": {"labels": {key: was}}},
                                        key, value)

    def test_misspelt_names(self):
        """They change nothing, and the condition and an Event say which key was probably meant."""
        for (kind, key), meant in MISSPELT.items():
            said = f"{kind[:-1]} {key} is not known and changes nothing, did you mean {meant}?"
            with self.subTest(key=key):
                self.wrong_node_key({"metadata": {kind: {key: "1"}}}, {"metadata": {kind: {key: None}}}, said, "1")
                self.lab.wait(lambda: said in self.notes(MISCONFIGURED), "an Event says so")
        self.lab.api.patch(NODE_PATH, {"metadata": {"annotations": {"aliquot.dev/owner": "x", "ack.node.gpu.health": "x",
                                                                    "aliquot.dev/allow-mixed": "maybe"}}})
        self.lab.wait(lambda: "allow-mixed" in self.condition(MISCONFIGURED)["message"], "the wrong value is said")
        self.assertNotIn("did you mean", self.condition(MISCONFIGURED)["message"], "a key that is close to none")

    def test_one_wrong_key_hides_no_other(self):
        """A fenced card and a held slice are seen while every other key is wrong."""
        wrong = {key: values[0] for key, values in NODE_ANNOTATIONS.items()}
        self.lab.api.patch(NODE_PATH, {"metadata": {"annotations": wrong}})
        self.lab.wait(lambda: all(key in self.condition(MISCONFIGURED)["message"] for key in
                                  ("aliquot.dev/max-pods-per-card", "aliquot.dev/allow-mixed", "aliquot.dev/gpu-mem-unit")),
                      "the condition names the wrong keys")
        self.assertTrue(self.fits(UNITS))
        self.fence("gpus", ",".join(str(i) for i in range(4)))
        self.lab.wait(lambda: not self.fits(1), "all cards are fenced")
        self.lab.api.delete("/api/v1/namespaces/kube-system/configmaps/unhealthy-gpu-" + NODE)
        self.lab.wait(lambda: self.fits(UNITS), "no card is fenced")
        self.lab.api.patch(NODE_PATH, {"metadata": {"labels": {"ack.node.gpu.schedule": "cgpu"}}})
        self.lab.wait(lambda: not self.fits(1), "a change of mode waits, and no new slice is placed")
        self.lab.api.patch(NODE_PATH, {"metadata": {"labels": {"ack.node.gpu.schedule": "core_mem"}}})
        self.lab.wait(lambda: self.fits(UNITS), "slices are placed again")
        self.unchanged()

    def test_keys_of_the_agent(self):
        for key, values in AGENT_KEYS.items():
            for value in values:
                with self.subTest(key=key, value=value):
                    was = self.lab.node_annotation(key)
                    self.lab.api.patch(NODE_PATH, {"metadata": {"annotations": {key: value}}})
                    self.lab.wait(lambda: (self.lab.node_annotation(key) or "") == (was or ""), f"{key} is put right")
                    self.lab.wait(lambda: self.fits(UNITS), "the node is as before")
                    self.settle()
                    self.unchanged()

    def test_fences(self):
        """A wrong value is reported, and the cards that were fenced before stay fenced."""
        good = {"devices": "[{deviceId: 0, deviceType: gpu, healthy: false}]", "gpus": "0"}
        for key, values in FENCES.items():
            self.fence(key, ",".join("0123") if key == "gpus" else
                       "[" + ",".join("{deviceId: %d, healthy: false}" % i for i in range(4)) + "]")
            self.lab.wait(lambda: not self.fits(1), "all cards are fenced")
            for value in values:
                with self.subTest(key=key, value=value):
                    self.fence(key, value)
                    self.lab.wait(lambda: self.condition(FENCE_MISCONFIGURED)["status"] == "True" and
                                  re.search(key, self.condition(FENCE_MISCONFIGURED)["message"]), f"{value!r} is said")
                    self.assertFalse(self.fits(1))
                    self.settle()
                    self.unchanged()
            self.fence(key, good[key])
            self.lab.wait(lambda: self.fits(UNITS), "one card is fenced")
            self.lab.wait(lambda: self.condition(FENCE_MISCONFIGURED)["status"] == "False", "it is right again")
            self.fence(key, "")


if __name__ == "__main__":
    os.environ.setdefault("PYTHONUNBUFFERED", "1")
    run_tests(verbosity=2)
