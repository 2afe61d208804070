#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What a user reads about a pending pod, on the API server that KUBECONFIG names (rights on nodes, pods and events).

Node objects without a kubelet are created, 30 and then 1,000, with 8 cards each. A kube-scheduler (KUBE_SCHEDULER names the program; the
version of the API server) is started with `aliquot scheduler` (ALIQUOT) as its extender, under a profile name of this test. Pods that no node
takes get Events; the API server has accepted those that can be listed. Nodes, pods and the namespace go away in the end."""

import json
import os
import re
import subprocess
import sys
import tempfile
import time
import unittest
import urllib.request

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../..")
sys.path.insert(0, os.path.join(ROOT, "tests/fake"))

from ports import free_port  # noqa: E402

KUBECTL = os.environ.get("KUBECTL", "kubectl")
KUBE_SCHEDULER = os.environ.get("KUBE_SCHEDULER", "kube-scheduler")
ALIQUOT = os.environ.get("ALIQUOT", os.path.join(ROOT, "build/aliquot"))
INSPECT = os.environ.get("INSPECT", os.path.join(ROOT, "build/kubectl-inspect-cgpu"))
NAME = "aliquot-pending-test"
MEM, CORE, COUNT = "aliyun.com/gpu-mem", "aliyun.com/gpu-core.percentage", "aliyun.com/gpu-count"
EVENT_MAX = 300 + 165 + 40  # our reasons, what preemption found, and the head
FEW, MANY = 30, 1000


def kubectl(*arguments, stdin=None, check=True):
    done = subprocess.run([KUBECTL, *arguments], input=stdin, capture_output=True, text=True)
    if check and done.returncode != 0:
        raise AssertionError(f"kubectl {' '.join(arguments)}: {done.stderr.strip()}")
    return done.stdout


def create(objects):
    kubectl("create", "-f", "-", stdin=json.dumps({"apiVersion": "v1", "kind": "List", "items": list(objects)}))


def until(what, predicate, seconds=120):
    end = time.monotonic() + seconds
    while True:
        found = predicate()
        if found:
            return found
        if time.monotonic() > end:
            raise AssertionError(f"not within {seconds} s: {what() if callable(what) else what}")
        time.sleep(0.3)


def node(name, cards=8, mode="core_mem", group="wide", annotations=None):
    offer = {"cpu": "64", "memory": "256Gi", "pods": "110", MEM: str(15 * cards), COUNT: str(cards), CORE: str(100 * cards)}
    return {"apiVersion": "v1", "kind": "Node",
            "metadata": {"name": name, "annotations": annotations or {},
                         "labels": {NAME: group, "kubernetes.io/hostname": name, "ack.node.gpu.schedule": mode}},
            "status": {"capacity": offer, "allocatable": offer, "conditions": [{"type": "Ready", "status": "True", "reason": "Test"}]}}


def pod(name, mem, core=None, group="wide", labels=None, annotations=None, **spec):
    """Tolerates every taint: no kubelet renews the leases of these nodes."""
    limits = {k: str(v) for k, v in ((MEM, mem), (CORE, core)) if v is not None}
    return {"apiVersion": "v1", "kind": "Pod",
            "metadata": {"name": name, "namespace": NAME, "labels": labels or {}, "annotations": annotations or {}},
            "spec": {"schedulerName": NAME, "terminationGracePeriodSeconds": 0, "automountServiceAccountToken": False,
                     "tolerations": [{"operator": "Exists"}], "nodeSelector": {NAME: group} if group else {},
                     "containers": [{"name": "main", "image": "none", "resources": {"limits": limits}}], **spec}}


def holder(name, on, allocation, mem, core=None, labels=None):
    """A pod that is bound, with its cards."""
    return pod(name, mem, core, nodeName=on, group=None, labels=labels, annotations={
        "scheduler.framework.gpushare.allocation": json.dumps({"0": allocation}), "scheduler.framework.gpushare.assigned": "true"})


def events(name, reason):
    found = json.loads(kubectl("get", "events", "-n", NAME, "-o", "json", "--field-selector", f"involvedObject.name={name},reason={reason}"))
    return sorted(found["items"], key=lambda e: e["metadata"]["creationTimestamp"])


class Programs:
    """aliquot scheduler and kube-scheduler, as the README puts them beside each other"""

    def __init__(self):
        self.folder = tempfile.TemporaryDirectory()
        self.port = free_port()
        self.running = []

    def start(self, name, *command):
        with open(os.path.join(self.folder.name, name + ".log"), "w") as log:
            self.running.append(subprocess.Popen(command, stdout=log, stderr=subprocess.STDOUT))

    def log(self, name):
        with open(os.path.join(self.folder.name, name + ".log")) as log:
            return log.read()

    def up(self):
        self.start("aliquot", ALIQUOT, "scheduler", "--kubeconfig", os.environ["KUBECONFIG"], "--no-leader-election",
                   "--listen", f"127.0.0.1:{self.port}")
        config = {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration",
                  "clientConnection": {"kubeconfig": os.environ["KUBECONFIG"]}, "leaderElection": {"leaderElect": False},
                  "percentageOfNodesToScore": 100, "profiles": [{"schedulerName": NAME}],
                  "extenders": [{"urlPrefix": f"http://127.0.0.1:{self.port}/gpushare-scheduler", "filterVerb": "filter",
                                 "prioritizeVerb": "prioritize", "bindVerb": "bind", "preemptVerb": "preempt", "weight": 200,
                                 "nodeCacheCapable": True, "ignorable": False, "httpTimeout": "10s",
                                 "managedResources": [{"name": r, "ignoredByScheduler": False} for r in (MEM, CORE, COUNT)]}]}
        path = os.path.join(self.folder.name, "config.json")
        with open(path, "w") as f:
            json.dump(config, f)
        self.start("kube-scheduler", KUBE_SCHEDULER, "--config", path, "--secure-port=0")

    def down(self):
        for p in self.running:
            p.terminate()
        for p in self.running:
            p.wait()
        self.folder.cleanup()


class Pending(unittest.TestCase):
    maxDiff = None

    @classmethod
    def setUpClass(cls):
        cls.clean()
        kubectl("create", "namespace", NAME)
        until("no service account", lambda: kubectl("get", "serviceaccount", "default", "-n", NAME, "--ignore-not-found"))
        cls.programs = Programs()
        cls.addClassCleanup(cls.clean)
        cls.addClassCleanup(cls.programs.down)
        create(node(f"wide-{i:04}") for i in range(FEW))
        create(node(f"two-{i}", cards=2, group="two") for i in range(3))
        cls.programs.up()
        cls.n_nodes = len(kubectl("get", "nodes", "-o", "name").split())

    @staticmethod
    def clean():
        kubectl("delete", "namespace", NAME, "--ignore-not-found", "--wait=false")
        kubectl("delete", "pods", "-n", NAME, "--all", "--force", "--grace-period=0", "--wait=false", check=False)
        kubectl("delete", "nodes", "-l", NAME, "--wait=false")
        until("the namespace stays", lambda: not kubectl("get", "namespace", NAME, "--ignore-not-found"))

    def tearDown(self):
        kubectl("delete", "pods", "-n", NAME, "--all", "--force", "--grace-period=0")
        kubectl("annotate", "node", "-l", NAME, "aliquot.dev/change-pending-", "aliquot.dev/mode-in-force-")
        until("the ledger is not empty", lambda: not self.used())

    def used(self):
        with urllib.request.urlopen(f"http://127.0.0.1:{self.programs.port}/gpushare-scheduler/inspect") as answer:
            return sum(n["usedGPU"] for n in json.load(answer)["nodes"])

    def refused(self, wanted, expect, nodes):
        """Creates the pod; returns the message of the Event that has the text. The counts of the message add up."""
        name = wanted["metadata"]["name"]
        create([wanted])

        def said():
            return [e["message"] for e in events(name, "FailedScheduling")]
        message = until(lambda: f"no Event with {expect!r}: {said()}\n{self.programs.log('kube-scheduler')[-2000:]}",
                        lambda: [m for m in said() if expect in m])[-1]
        print(f"{len(message)} bytes: {message}", file=sys.stderr)
        self.assertNotIn("%", message)
        head = re.match(r"0/(\d+) nodes are available: (.*?)\.( |$)", message)
        self.assertTrue(head, message)
        self.assertEqual(int(head[1]), nodes)
        # A reason of ours may have a comma, and none has one before a number.
        parts = re.split(r", (?=\d+ )", head[2])
        self.assertEqual(sum(int(p.split(" ")[0]) for p in parts), nodes, message)
        theirs = [p for p in parts if "didn't match Pod's" in p or "Insufficient" in p]
        self.assertLessEqual(len(message) - sum(len(", " + p) for p in theirs), EVENT_MAX)
        self.assertIn(message, kubectl("describe", "pod", "-n", NAME, name))
        return message

    def test_a_pod_larger_than_every_card(self):
        message = self.refused(pod("large", 60, group=None), "no card is large enough", self.n_nodes)
        self.assertIn(f"{FEW} no card is large enough for 60 GiB of gpu-mem", message)

    def test_full_cards(self):
        label = {COUNT: "8"}
        create(holder(f"fill-{i}", f"wide-{i:04}", {str(c): 8 for c in range(8)}, 64, labels=label) for i in range(FEW))
        message = self.refused(pod("memory", 10), "of gpu-mem free", self.n_nodes)
        self.assertIn(f"{FEW} no card has 10 GiB of gpu-mem free", message)
        nearest = until("no Event GPUNearestCards", lambda: events("memory", "GPUNearestCards"))
        self.assertEqual(len(nearest), 1)
        self.assertIn("gpu0 of wide-0000: 7 of 15 GiB free (memory: 3 GiB missing)", nearest[0]["message"])
        print(f"{len(nearest[0]['message'])} bytes: {nearest[0]['message']}", file=sys.stderr)
        why = subprocess.run([INSPECT, "--why", f"{NAME}/memory", "--scheduler", f"http://127.0.0.1:{self.programs.port}"],
                             capture_output=True, text=True)
        self.assertEqual((why.returncode, why.stderr), (0, ""))
        self.assertIn(f"3 of {FEW + 3} GPU nodes can take it now", why.stdout)
        self.assertIn("\nwide-0000: no card has 10 GiB of gpu-mem free\n  gpu0  7 of 15 GiB free, 1 pod  memory: 3 GiB missing\n",
                      why.stdout)
        message = self.refused(pod("percent", 2, 30), "without compute percent", self.n_nodes)
        self.assertIn(f"{FEW} node(s) run pods without compute percent, and take none with it", message)
        self.refused(pod("nine", 9, labels={COUNT: "9"}), f"{FEW} node(s) have fewer than 9 healthy cards", self.n_nodes)

    def test_compute_without_room(self):
        create(holder(f"busy-{i}-{c}", f"two-{i}", {str(c): 2}, 2, 80) for i in range(3) for c in range(2))
        message = self.refused(pod("busy", 2, 30, group="two"), "of compute free", self.n_nodes)
        self.assertIn("3 no card has 2 GiB of gpu-mem and 30 percent of compute free", message)

    def test_a_wrong_amount(self):
        self.refused(pod("odd", 2, 33), f"{FEW} container main: gpu-core.percentage is 33, must be a multiple of 5", self.n_nodes)

    def test_nodes_with_different_reasons(self):
        kubectl("annotate", "node", "wide-0000", "wide-0001", "aliquot.dev/change-pending=mode core_mem -> cgpu")
        kubectl("annotate", "node", "wide-0002", "wide-0003", "aliquot.dev/mode-in-force=mig")
        message = self.refused(pod("various", 60), "take no new slice", self.n_nodes)
        self.assertIn("2 node(s) take no new slice while a change of mode or unit waits", message)  # the nearest ones
        self.assertIn(f"{FEW - 4} no card is large enough for 60 GiB of gpu-mem", message)
        self.assertIn("2 node(s) are not in mode share, cgpu or core_mem", message)

    def test_a_bound_pod_says_where_its_cards_are(self):
        create([pod("fits", 3, 30, group="two")])
        message = until("no Event GPUAssigned", lambda: events("fits", "GPUAssigned"))[-1]["message"]
        self.assertRegex(message, "^3 GiB and 30 percent of gpu[01] on two-[012]$")

    def test_z_many_nodes(self):
        create(node(f"wide-{i:04}") for i in range(FEW, MANY))
        n = len(kubectl("get", "nodes", "-o", "name").split())
        message = self.refused(pod("one-of-many", 60), f"{MANY} no card is large enough for 60 GiB of gpu-mem", n)
        self.assertIn(f"0/{n} nodes are available", message)


if __name__ == "__main__":
    if not os.environ.get("KUBECONFIG"):
        print("skipped: KUBECONFIG names no cluster")
        sys.exit(77)
    unittest.main(verbosity=2)
