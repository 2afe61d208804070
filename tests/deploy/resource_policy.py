#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""ResourcePolicies on the API server that KUBECONFIG names, with its controller-manager (rights on nodes, pods and CRDs; 1.25 or later).

Three Node objects without a kubelet are created, one for each unit. A kube-scheduler (KUBE_SCHEDULER names the program; the version of the API
server) is started with `aliquot scheduler` (ALIQUOT) as its extender, under a profile name of this test. No kubelet ends pods: the test does,
where they are terminating. Nodes, pods and the namespace go away in the end; the CRD of deploy/ stays."""

import json
import os
import sys
import time
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from pending import ALIQUOT, KUBE_SCHEDULER, MEM, ROOT, Programs, create, free_port, kubectl, until  # noqa: E402

NAME = "aliquot-policy-test"
CRD = os.path.join(ROOT, "deploy/helm/aliquot/objects/crds/resourcepolicies-crd.yaml")
UNITS = ["subscription", "pay-as-you-go", "virtual"]
COST = "controller.kubernetes.io/pod-deletion-cost"


def node(name, unit):
    offer = {"cpu": "2", "memory": "8Gi", "pods": "110", MEM: "16", "aliyun.com/gpu-count": "1"}
    labels = {NAME: "node", "kubernetes.io/hostname": name, "ack.node.gpu.schedule": "share"}
    labels["type" if unit == "virtual" else "paidtype"] = "virtual-kubelet" if unit == "virtual" else unit
    return {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "labels": labels},
            "status": {"capacity": offer, "allocatable": offer, "conditions": [{"type": "Ready", "status": "True", "reason": "Test"}]}}


def template(gpu=False, labels=None):
    """Two such pods fill a node, by cpu or by its card."""
    resources = {"limits": {MEM: "8"}} if gpu else {"requests": {"cpu": "1"}}
    return {"metadata": {"labels": labels or {"app": "web"}},
            "spec": {"schedulerName": NAME, "terminationGracePeriodSeconds": 0, "automountServiceAccountToken": False,
                     "tolerations": [{"operator": "Exists"}], "nodeSelector": {NAME: "node"},
                     "containers": [{"name": "main", "image": "none", "resources": resources}]}}


def pod(name, **kwargs):
    made = template(**kwargs)
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "namespace": NAME, **made["metadata"]}, "spec": made["spec"]}


def policy(name="web", units=None, **spec):
    return {"apiVersion": "scheduling.alibabacloud.com/v1alpha1", "kind": "ResourcePolicy",
            "metadata": {"name": name, "namespace": NAME},
            "spec": {"selector": {"app": "web"}, "strategy": "prefer", "units": units or worked_units(), **spec}}


def worked_units(**first):
    return [{"resource": "ecs", "nodeSelector": {"paidtype": "subscription"}, **first},
            {"resource": "ecs", "nodeSelector": {"paidtype": "pay-as-you-go"}}, {"resource": "eci"}]


def objects(kind):
    return json.loads(kubectl("get", kind, "-n", NAME, "-o", "json"))["items"]


class OurPrograms(Programs):
    def up(self):
        self.port = free_port()
        self.start("aliquot", ALIQUOT, "scheduler", "--kubeconfig", os.environ["KUBECONFIG"], "--no-leader-election",
                   "--listen", f"127.0.0.1:{self.port}")
        entry = {"urlPrefix": f"http://127.0.0.1:{self.port}/gpushare-scheduler", "nodeCacheCapable": True, "httpTimeout": "10s"}
        config = {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration",
                  "clientConnection": {"kubeconfig": os.environ["KUBECONFIG"]}, "leaderElection": {"leaderElect": False},
                  "percentageOfNodesToScore": 100,
                  "profiles": [{"schedulerName": NAME, "pluginConfig": [{"name": "NodeResourcesFit", "args": {
                      "apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "NodeResourcesFitArgs",
                      "ignoredResources": ["aliyun.com/gpu-count"]}}]}],
                  "extenders": [{**entry, "filterVerb": "filter", "prioritizeVerb": "prioritize", "preemptVerb": "preempt", "weight": 200},
                                {**entry, "bindVerb": "bind"}]}
        path = os.path.join(self.folder.name, "config.json")
        with open(path, "w", encoding="utf-8") as f:
            json.dump(config, f)
        self.start("kube-scheduler", KUBE_SCHEDULER, "--config", path, "--secure-port=0")


class ResourcePolicies(unittest.TestCase):
    maxDiff = None

    @classmethod
    def setUpClass(cls):
        cls.clean()
        kubectl("apply", "-f", CRD)
        kubectl("wait", "--for=condition=Established", "crd/resourcepolicies.scheduling.alibabacloud.com")
        kubectl("create", "namespace", NAME)
        until("no service account", lambda: kubectl("get", "serviceaccount", "default", "-n", NAME, "--ignore-not-found"))
        cls.addClassCleanup(cls.clean)
        create(node(f"unit-{i}", unit) for i, unit in enumerate(UNITS))
        cls.programs = OurPrograms()
        cls.addClassCleanup(cls.programs.down)
        cls.programs.up()

    @staticmethod
    def clean():
        kubectl("delete", "namespace", NAME, "--ignore-not-found", "--wait=false")
        kubectl("delete", "pods", "-n", NAME, "--all", "--force", "--grace-period=0", "--wait=false", check=False)
        kubectl("delete", "nodes", "-l", NAME, "--wait=false")
        until("the namespace stays", lambda: not kubectl("get", "namespace", NAME, "--ignore-not-found"))

    def tearDown(self):
        kubectl("delete", "deployments,resourcepolicies", "-n", NAME, "--all")
        kubectl("delete", "pods", "-n", NAME, "--all", "--force", "--grace-period=0")
        until("pods stay", lambda: not objects("pods"))

    def status(self, name="web"):
        found = json.loads(kubectl("get", "resourcepolicy", name, "-n", NAME, "-o", "json"))
        return found.get("status", {})

    def condition(self, kind, name="web"):
        return next((c for c in self.status(name).get("conditions", []) if c["type"] == kind), {})

    def counts(self):
        """How many living pods are on each unit's node; pods that are not bound yet are the last number."""
        for p in objects("pods"):
            if "deletionTimestamp" in p["metadata"]:
                kubectl("delete", "pod", "-n", NAME, p["metadata"]["name"], "--force", "--grace-period=0", check=False)
        names = [p["spec"].get("nodeName") for p in objects("pods") if "deletionTimestamp" not in p["metadata"]]
        return [names.count(f"unit-{i}") for i in range(len(UNITS))] + [names.count(None)]

    def reach(self, counts):
        until(lambda: f"{self.counts()}, expected {counts}\n{self.programs.log('aliquot')[-3000:]}", lambda: self.counts() == counts)

    def in_force(self, **kwargs):
        """Before its pods are created: those that come earlier are placed without it."""
        made = policy(**kwargs)
        create([made])
        until("the policy is not in force", lambda: self.condition("Accepted", made["metadata"]["name"]).get("status") == "True")

    def worked_example(self, gpu):
        self.in_force()
        create([{"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web", "namespace": NAME},
                 "spec": {"replicas": 2, "selector": {"matchLabels": {"app": "web"}}, "template": template(gpu)}}])
        self.reach([2, 0, 0, 0])
        for replicas, counts in ((4, [2, 2, 0, 0]), (6, [2, 2, 2, 0]), (4, [2, 2, 0, 0]), (2, [2, 0, 0, 0])):
            kubectl("scale", "deployment", "web", "-n", NAME, f"--replicas={replicas}")
            self.reach(counts)
        until(lambda: self.status(), lambda: self.status().get("pods") == 2)
        self.assertEqual([u["pods"] for u in self.status()["units"]], [2, 0, 0])
        self.assertEqual([u["nodes"] for u in self.status()["units"]], [1, 1, 1])

    def test_the_worked_example(self):
        self.worked_example(gpu=False)

    def test_the_worked_example_with_gpu(self):
        self.worked_example(gpu=True)

    def test_what_is_written_to_a_pod(self):
        units = worked_units(max=0)
        units[1].update(podLabels={"paid": "hourly"}, podAnnotations={"note": "x"})
        self.in_force(units=units)
        create([pod("p1")])
        self.reach([0, 1, 0, 0])
        until("no label", lambda: objects("pods")[0]["metadata"]["labels"].get("paid") == "hourly")
        written = objects("pods")[0]["metadata"]["annotations"]
        self.assertEqual((written["note"], written[COST], written["aliquot.dev/resource-policy"]), ("x", "-100", "web/-100"))

    def test_pods_that_were_there_get_a_cost(self):
        create([pod("p1")])
        until(lambda: self.counts(), lambda: self.counts()[3] == 0)
        on = objects("pods")[0]["spec"]["nodeName"]
        units = worked_units()
        if on == "unit-0":
            units = units[1:] + units[:1]
        create([policy(units=units)])
        until(lambda: objects("pods")[0]["metadata"], lambda: int(objects("pods")[0]["metadata"].get("annotations", {}).get(COST, "0")) < 0)

    def test_max_and_a_change_while_a_pod_waits(self):
        units = worked_units(max=1)
        units[1]["max"] = units[2]["max"] = 0
        self.in_force(units=units)
        create([pod("p1"), pod("p2")])
        self.reach([1, 0, 0, 1])
        until(lambda: self.status(), lambda: self.status().get("waiting") == 1)
        self.assertEqual(self.condition("PodsWait")["status"], "True")
        said = kubectl("get", "events", "-n", NAME, "-o", "json", "--field-selector", "reason=FailedScheduling")
        self.assertIn("of policy web is full", said)
        kubectl("apply", "-f", "-", stdin=json.dumps(policy(units=worked_units(max=2))))
        self.reach([2, 0, 0, 0])
        until(lambda: self.status(), lambda: self.condition("PodsWait").get("status") == "False")

    def test_a_pod_goes_on_after_the_timeout(self):
        self.in_force(units=worked_units(max=3), whenTryNextUnits={"policy": "TimeoutOrExceedMax", "timeout": "3s"})
        create([pod(f"p{i}") for i in range(3)])
        self.reach([2, 1, 0, 0])

    def test_a_deleted_policy_keeps_no_pod_off(self):
        units = worked_units(max=0)[:1]
        self.in_force(units=units)
        create([pod("p1")])
        until(lambda: self.status(), lambda: self.status().get("waiting") == 1)
        kubectl("delete", "resourcepolicy", "web", "-n", NAME)
        until(lambda: self.counts(), lambda: self.counts()[3] == 0)

    def test_two_policies_for_one_pod(self):
        self.in_force(name="first")
        time.sleep(1.1)  # of two policies the older applies, and creationTimestamp has whole seconds
        self.in_force(name="second", units=worked_units()[1:])
        create([pod("p1")])
        self.reach([1, 0, 0, 0])
        until("no Event", lambda: kubectl("get", "events", "-n", NAME, "-o", "name", "--field-selector", "reason=ResourcePolicyOverlap"))

    def refused(self, wanted, text):
        with self.assertRaises(AssertionError) as c:
            create([wanted])
        self.assertIn(text, str(c.exception))

    def test_what_the_api_server_refuses(self):
        for key in ("aliquot.dev/x", "topology.kubernetes.io/zone", "a.k8s.io/b", "scheduler.framework.gpushare.allocation"):
            units = worked_units(podAnnotations={key: "1"})
            self.refused(policy(units=units), "keys of Kubernetes and of aliquot must not be set by a policy")
        self.refused(policy(units=worked_units(podLabels={"aliyun.com/gpu-count": "1"})), "must not be set by a policy")
        self.refused(policy(strategy="spread"), "spec.strategy")
        self.refused(policy(preemptPolicy="Never"), "spec.preemptPolicy")
        self.refused(policy(whenTryNextUnits={"policy": "Soon"}), "spec.whenTryNextUnits.policy")
        self.refused(policy(units=worked_units(max=-1)), "max")
        self.refused(policy(units=worked_units(size=1)), "unknown field")

    def test_what_has_no_effect_is_said(self):
        units = worked_units() + worked_units()[:1] + [{"resource": "ecs", "nodeSelector": {"no": "node"}}]
        create([policy(units=units)])
        until(lambda: self.status(), lambda: self.condition("Accepted").get("reason") == "PartlyIgnored")
        until(lambda: self.status(), lambda: "spec.units[4] selects no node now" in self.condition("Accepted")["message"])
        self.assertIn("spec.units[3] never gets a node", self.condition("Accepted")["message"])


if __name__ == "__main__":
    if not os.environ.get("KUBECONFIG"):
        print("skipped: KUBECONFIG names no cluster")
        sys.exit(77)
    unittest.main(verbosity=2)
