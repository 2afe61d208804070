#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The ValidatingAdmissionPolicies of deploy/, asked of the API server that KUBECONFIG names: 1.30 or later, with rights to impersonate.

Copies of the policies with names of their own are installed unless aliquot's are there. Two Nodes, a namespace, a ClusterRole and its
binding are created, and go away in the end. Requests are dry runs wherever a later one does not build on them."""

import copy
import json
import os
import subprocess
import sys
import unittest

try:
    from manifests import load
except ModuleNotFoundError as e:
    print(f"skipped: {e.name} is not there (Debian: python3-yaml)")
    sys.exit(77)

KUBECTL = os.environ.get("KUBECTL", "kubectl")
POLICIES = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../deploy/helm/aliquot/objects/policies")
NAME = "aliquot-policies-test"
N1, N2 = NAME + "-1", NAME + "-2"
ACCOUNT = "system:serviceaccount:kube-system:aliquot-"
CLAIM = "authentication.kubernetes.io/node-name"
ASSIGNED = "scheduler.framework.gpushare.assigned"
KEYS = ["scheduler.framework.gpushare.allocation", ASSIGNED, "scheduler.framework.gpushare.assume-time",
        "gpushare.alibabacloud.com/core-percentage", "aliquot.dev/init-allocation", "aliquot.dev/resize-status"]
KEYS += ["ALIYUN_COM_GPU_MEM_" + key for key in ("IDX", "DEV", "POD", "ASSIGNED", "ASSUME_TIME")]
MARK = "aliquot.dev/resource-policy"  # a system key for users; the scheduler patches it
GATES = [{"name": "aliquot.dev/gang"}, {"name": "kueue.x-k8s.io/admission"}]
COST = "controller.kubernetes.io/pod-deletion-cost"
FOREIGN = ["kubernetes.io/x", "app.kubernetes.io/name", "k8s.io/x", "a.k8s.io/x", "x.aliquot.dev/y"]
USER_KEYS = ["aliquot.dev/gpu-type", "aliquot.dev/gpu-uuid", "aliquot.dev/gang", "x/y"]
RESIZE_KEYS = ["aliquot.dev/gpu-mem", "aliquot.dev/gpu-core"]


def kubectl(*arguments, stdin=None):
    stdin = json.dumps(stdin) if isinstance(stdin, dict) else stdin
    return subprocess.run([KUBECTL, *arguments], input=stdin, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


def policies():
    """the shipped objects, under names of this test's own"""
    (listed,) = load(os.path.join(POLICIES, "kustomization.yaml"))
    for path in listed["resources"]:
        for o in load(os.path.join(POLICIES, path)):
            if not o["kind"].startswith("Validating"):
                continue
            o = copy.deepcopy(o)
            o["metadata"] = {"name": o["metadata"]["name"].replace("aliquot", NAME)}
            if o["kind"].endswith("Binding"):
                o["spec"]["policyName"] = o["metadata"]["name"]
            yield o


def eve():
    return ["--as=eve"]


def agent(node):
    return ["--as=" + ACCOUNT + "node", *([f"--as-user-extra={CLAIM}={node}"] if node else [])]


def scheduler():
    return ["--as=" + ACCOUNT + "scheduler"]


def role():
    yield {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": {"name": NAME}, "rules": [
        {"apiGroups": [""], "resources": ["pods", "pods/status", "nodes", "nodes/status"], "verbs": ["get", "create", "patch"]},
        {"apiGroups": [""], "resources": ["configmaps"], "verbs": ["get", "create", "patch"]},
        {"apiGroups": [""], "resources": ["pods/binding", "bindings"], "verbs": ["create"]}]}
    users = ["eve", "ada", ACCOUNT + "node", ACCOUNT + "scheduler"]
    yield {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding", "metadata": {"name": NAME},
           "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": NAME},
           "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": user} for user in users]}
    yield {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role", "metadata": {"name": NAME, "namespace": NAME}, "rules": [
        {"apiGroups": [""], "resources": ["pods/resize"], "verbs": ["update"], "resourceNames": ["one"]}]}
    yield {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding", "metadata": {"name": NAME, "namespace": NAME},
           "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": NAME},
           "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "ada"}]}


def pod(name="new", annotations=None, labels=None, namespace=NAME, **spec):
    """A pod that no scheduler of the cluster takes: it stays unbound unless the test binds it."""
    return {"apiVersion": "v1", "kind": "Pod",
            "metadata": {"name": name, "namespace": namespace, "annotations": annotations or {}, "labels": labels or {}},
            "spec": {"containers": [{"name": "c", "image": "x"}], "automountServiceAccountToken": False,
                     "schedulerName": NAME, **spec}}


def annotations(**values):
    return {"metadata": {"annotations": values}}


class Policies(unittest.TestCase):
    @classmethod
    def make(cls, o):
        p = kubectl("create", "-f", "-", stdin=o)
        if p.returncode != 0 and "AlreadyExists" not in p.stdout:
            raise unittest.SkipTest(p.stdout)

    @classmethod
    def setUpClass(cls):
        cls.made = []
        cls.addClassCleanup(cls.clean)  # also when this fails halfway
        if kubectl("get", "validatingadmissionpolicy", "aliquot-system-keys").returncode != 0:
            cls.made = list(policies())
        for o in [{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAME}}, *role(),
                  *({"apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "annotations": {"a/b": "c"}, "labels": {"l": "m"}}}
                    for name in (N1, N2))]:
            cls.make(o)
        cls.wait(lambda: kubectl("-n", NAME, "get", "serviceaccount", "default").returncode == 0, "the service account")
        big = {f"k{i:05}": "" for i in range(21000)}  # nearly 256 KiB, the API server's limit
        for p in (pod("one", {"a/b": "c", "aliquot.dev/gpu-type": "t"}, {"l": "m"}, nodeName=N1), pod("two", nodeName=N2), pod("free"),
                  pod("big", big, nodeName=N1), pod("gated", {"a/b": "c", "aliquot.dev/kick": "1", KEYS[0]: ""}, {"l": "m"}, schedulingGates=GATES,
                                                     tolerations=[{"key": "t", "operator": "Exists"}])):
            cls.make(p)
        for o in cls.made:
            cls.make(o)
        cls.wait_for_policies()
        status = {"capacity": {"cpu": "4"}, "allocatable": {"cpu": "4"}, "addresses": [{"type": "InternalIP", "address": "192.0.2.1"}],
                  "conditions": [{"type": "Ready", "status": "True", "reason": "r", "message": "m"}]}
        for name in (N1, N2):
            kubectl("patch", "node", name, "--subresource=status", "--type=merge", "-p", json.dumps({"status": status}))

    @classmethod
    def clean(cls):
        for o in cls.made:
            kubectl("delete", o["kind"].lower(), o["metadata"]["name"], "--ignore-not-found", "--wait=false")
        for p in ("one", "two", "free", "big", "gated"):
            kubectl("-n", NAME, "delete", "pod", p, "--ignore-not-found", "--force", "--grace-period=0", "--wait=false")
        for kind, name in (("namespace", NAME), ("node", N1), ("node", N2), ("clusterrolebinding", NAME), ("clusterrole", NAME)):
            kubectl("delete", kind, name, "--ignore-not-found", "--timeout=60s")

    @classmethod
    def wait_for_policies(cls):
        """The API server enforces a policy a moment later: a request is repeated until it is refused."""
        label = '{"metadata":{"labels":{"probe":"x"}}}'
        binding = {"apiVersion": "v1", "kind": "Binding", "metadata": {"name": "free", "namespace": NAME, "annotations": {"k8s.io/y": "z"}},
                   "target": {"apiVersion": "v1", "kind": "Node", "name": N1}}
        for name, arguments, stdin in (
                ("system-keys", ["create", "-f", "-"], pod(annotations={ASSIGNED: "true"})),
                ("own-pods", [*agent(N1), "-n", NAME, "patch", "pod", "one", "-p", label], None),
                ("scheduler-pods", [*scheduler(), "-n", NAME, "patch", "pod", "one", "-p", label.replace("probe", "k8s.io/probe")], None),
                ("own-nodes", [*scheduler(), "patch", "node", N1, "-p", label], None),
                ("user-resize", [*eve(), "-n", NAME, "patch", "pod", "one", "-p", label.replace("labels", "annotations").replace("probe", RESIZE_KEYS[0])],
                 None),
                ("own-bindings", [*scheduler(), "create", "-f", "-", "--validate=false"], binding)):
            cls.wait(lambda a=arguments, i=stdin, n=name: f"-{n}'" in kubectl(*a, "--dry-run=server", stdin=i).stdout, "the policy " + name)

    @staticmethod
    def wait(seen, what):
        for _ in range(200):
            if seen():
                return
        raise AssertionError("never: " + what)

    def ask(self, who, words, *arguments, stdin=None):
        """words: None, or a part of the refusal"""
        self.judge(kubectl(*who, *arguments, "--dry-run=server", stdin=stdin), words, f"{who} {arguments} {stdin}")

    def judge(self, p, words, request):
        if words is None:
            self.assertEqual(p.returncode, 0, p.stdout)
            return
        self.assertNotEqual(p.returncode, 0, request)
        self.assertIn("ValidatingAdmissionPolicy", p.stdout)
        self.assertIn(words, p.stdout)

    def create(self, who, words, o):
        with self.subTest(who=who, o=o):
            self.ask(who, words, "create", "-f", "-", stdin=o)

    def patch(self, who, words, kind, name, body, subresource=None, kind_of_patch="merge"):
        with self.subTest(who=who, name=name, body=body, subresource=subresource):
            self.ask(who, words, *(["-n", NAME] if kind == "pod" else []), "patch", kind, name, "--type=" + kind_of_patch,
                     "-p", json.dumps(body), *(["--subresource=" + subresource] if subresource else []))

    def test_the_checker_finds_nothing(self):
        p = kubectl("get", "validatingadmissionpolicies", "-o", "json")
        for o in json.loads(p.stdout)["items"]:
            if "aliquot" in o["metadata"]["name"]:
                self.assertNotIn("expressionWarnings", json.dumps(o.get("status", {})))

    def test_new_pods(self):
        for key in KEYS + [MARK]:
            self.create([], f"annotation {key} is set by the scheduler and must not be in a new pod", pod(annotations={key: "x"}))
            self.create([], None, pod(annotations={key: ""}))
        self.create([], f"pod kube-system/new: annotation {ASSIGNED}", pod(annotations={ASSIGNED: "x"}, namespace="kube-system"))
        self.create(eve(), ASSIGNED, pod(annotations={ASSIGNED: "x", "a": "b"}))
        self.create(eve(), None, pod(annotations={key: "x" for key in USER_KEYS}))

    def test_mirror_pods(self):
        kubelet = ["--as=system:node:" + N1, "--as-group=system:nodes", "--as-group=system:authenticated"]
        mirror = pod(annotations={ASSIGNED: "x", "kubernetes.io/config.mirror": "h", "kubernetes.io/config.hash": "h"}, nodeName=N1)
        node = json.loads(kubectl("get", "node", N1, "-o", "json").stdout)
        mirror["metadata"]["ownerReferences"] = [{"apiVersion": "v1", "kind": "Node", "name": N1, "controller": True,
                                                  "uid": node["metadata"]["uid"]}]  # NodeRestriction asks for it
        self.create(kubelet, None, mirror)
        resized = copy.deepcopy(mirror)
        resized["metadata"]["annotations"].update({key: "1" for key in RESIZE_KEYS})
        self.create(kubelet, None, resized)
        self.create(eve(), "only kubelets create such pods", pod(annotations={"kubernetes.io/config.mirror": "h"}, nodeName=N1))
        self.create(eve(), ASSIGNED, mirror)

    def test_system_keys_of_pods(self):
        for key in KEYS + [MARK]:
            self.patch(eve(), f'annotation {key} is "", must not become "x"', "pod", "one", annotations(**{key: "x"}))
        self.patch(eve(), None, "pod", "one", annotations(**{key: "x" for key in USER_KEYS}))
        self.patch(eve(), None, "pod", "one", {"metadata": {"labels": {"a": "b"}, "finalizers": ["a/b"]}})
        self.patch(eve(), None, "pod", "one", {"status": {"reason": "r"}}, "status")
        self.patch(eve(), f"pod {NAME}/one: annotation {ASSIGNED}", "pod", "one", annotations(**{ASSIGNED: "x"}), "status")
        self.patch(eve(), 'must not become "' + 64 * "y" + '": only ' + ACCOUNT, "pod", "one", annotations(**{ASSIGNED: 70 * "y"}))
        self.patch([], None, "pod", "one", annotations(**{ASSIGNED: "x"}))  # system:masters
        self.patch(agent(N1), None, "pod", "one", annotations(**{ASSIGNED: "x"}))

    def test_keys_that_resize(self):
        """ada may update pods/resize of pod one, eve of none."""
        for key in RESIZE_KEYS:
            self.patch(eve(), f"pod {NAME}/one: the annotations aliquot.dev/gpu-mem and aliquot.dev/gpu-core resize it, and user eve may not",
                       "pod", "one", annotations(**{key: "1"}))
            self.patch(eve(), "may not update pods/resize", "pod", "one", annotations(**{key: "1"}), "status")
            self.patch(["--as=ada"], None, "pod", "one", annotations(**{key: "1"}))
            self.patch(["--as=ada"], "user ada may not update pods/resize", "pod", "two", annotations(**{key: "1"}))
            self.patch([], None, "pod", "two", annotations(**{key: "1"}))  # system:masters
            self.patch(eve(), None, "pod", "one", annotations(**{key: ""}))  # as if it were absent
            self.create(eve(), f"pod {NAME}/new: the annotations aliquot.dev/gpu-mem and aliquot.dev/gpu-core resize it, and user eve may not",
                        pod(annotations={key: "1"}))
            nameless = pod(annotations={key: "1"})
            nameless["metadata"]["generateName"] = nameless["metadata"].pop("name") + "-"
            self.create(eve(), "user eve may not update pods/resize", nameless)
            self.create(["--as=ada"], "user ada may not update pods/resize", nameless)
            self.create(eve(), "user eve may not update pods/resize", pod(annotations={key: "1"}, namespace="kube-system"))
            self.create([], None, nameless)  # system:masters
            self.create([], None, pod(annotations={key: "1"}))
            self.create(eve(), None, pod(annotations={key: ""}))
            self.create(eve(), None, pod())

    def test_system_keys_that_are_there(self):
        kubectl("-n", NAME, "annotate", "pod", "two", ASSIGNED + "=false")
        self.patch(eve(), f'{ASSIGNED} is "false", must not become ""', "pod", "two", annotations(**{ASSIGNED: None}))
        self.patch(eve(), f'{ASSIGNED} is "false", must not become "true"', "pod", "two", annotations(**{ASSIGNED: "true"}))
        self.patch(eve(), None, "pod", "two", annotations(**{ASSIGNED: "false", "x": "y"}))
        self.patch(eve(), None, "pod", "two", {"metadata": {"labels": {"a": "b"}}})

    def test_bindings(self):
        def binding(keys=(), **labels):
            return {"apiVersion": "v1", "kind": "Binding", "metadata": {"name": "free", "namespace": NAME, "labels": labels,
                    "annotations": {key: "" if key == KEYS[4] else "x" for key in keys}}, "target": {"apiVersion": "v1", "kind": "Node", "name": N1}}
        for path in ("bindings", "pods/free/binding"):
            def bind(who, words, body, path=path):
                raw = f"/api/v1/namespaces/{NAME}/{path}?dryRun=All"
                p = kubectl(*who, "create", "--raw", raw, "-f", "-", stdin=body)
                with self.subTest(path=path, who=who, body=body):
                    self.assertEqual(p.returncode == 0, words is None, p.stdout)
                    self.assertIn(words or "", p.stdout)
            bind(scheduler(), None, binding(KEYS))
            bind(scheduler(), None, binding())
            bind(scheduler(), None, binding(KEYS + ["x/y", "y", COST, "aliquot.dev/unit"], a="b", **{"x.y/z": "w"}))
            for key in FOREIGN:
                bind(scheduler(), "this annotation is not the scheduler's to write into a Binding", binding(KEYS + [key]))
                bind(scheduler(), "this label is not the scheduler's to write into a Binding", binding(KEYS, **{key: "x"}))
            bind(scheduler(), "this label is not the scheduler's", binding(**{"aliquot.dev/any": "true"}))
            bind(eve(), None, binding())
            bind(eve(), None, binding(["x/y"]))
            bind(eve(), f"annotation {KEYS[0]}", binding(KEYS))
            bind(eve(), f"annotation {MARK}", binding([MARK]))
            for key in RESIZE_KEYS:
                bind(eve(), f"pod {NAME}/free: the annotations aliquot.dev/gpu-mem and aliquot.dev/gpu-core resize it, and user eve may not",
                     binding([key]))
                bind([], None, binding([key]))  # system:masters

    def test_pods_of_the_node_agent(self):
        every = annotations(**{key: "x" for key in KEYS})
        self.patch(agent(N1), None, "pod", "one", every)
        self.patch(agent(N1), None, "pod", "big", every)
        self.patch(agent(N1), f'is on node "{N2}", and the node agent of node "{N1}"', "pod", "two", every)
        self.patch(agent(N1), 'is on node ""', "pod", "free", every)
        self.patch(agent(None), "names no node", "pod", "one", every)
        spec = {"spec": {"containers": [{"name": "c", "image": "other"}]}}
        self.patch(agent(N1), "spec and status of a pod", "pod", "one", spec, kind_of_patch="strategic")
        self.patch(agent(N1), "spec and status of a pod", "pod", "one", {"status": {"phase": "Failed"}}, "status")
        for key in USER_KEYS:
            self.patch(agent(N1), "only the system keys", "pod", "one", annotations(**{key: "x"}))
        self.patch(agent(N1), "only the system keys", "pod", "one", annotations(**{"a/b": None}))
        self.patch(agent(N1), "only the system keys", "pod", "big", annotations(**{"k00000": "x"}))
        for labels in ({"l": "x"}, {"l": None}, {"a": "b"}, {"aliquot.dev/any": "true"}):
            self.patch(agent(N1), "the labels of a pod", "pod", "one", {"metadata": {"labels": labels}})
        self.patch(agent(N1), "finalizers", "pod", "one", {"metadata": {"finalizers": ["a/b"]}})

    def test_metadata_that_the_scheduler_writes(self):
        change = lambda words, body: self.patch(scheduler(), words, "pod", "gated", {"metadata": body})  # noqa: E731
        for key in ("aliquot.dev/kick", "aliquot.dev/any", COST, "a/b", "x", "user.example/unit"):
            change(None, {"annotations": {key: "2"}})
        change(None, {"annotations": {"aliquot.dev/kick": None}})
        for key in KEYS + FOREIGN:
            change("this annotation of a pod", {"annotations": {key: "x"}})
        change("this annotation of a pod", {"annotations": {"a/b": None}})
        change("this annotation of a pod", {"annotations": {KEYS[0]: None}})
        for key in ("l", "x", "user.example/unit"):
            change(None, {"labels": {key: "2"}})
        for key in FOREIGN + ["aliquot.dev/any"]:
            change("this label of a pod", {"labels": {key: "x"}})
        change("this label of a pod", {"labels": {"l": None}})
        change("finalizers", {"finalizers": ["a/b"]})
        change("finalizers", {"ownerReferences": [{"apiVersion": "v1", "kind": "Pod", "name": "one", "uid": "u"}]})
        self.patch(scheduler(), None, "pod", "big", annotations(**{"aliquot.dev/kick": "1"}))

    def test_spec_that_the_scheduler_writes(self):
        change = lambda words, body, kind="merge": self.patch(scheduler(), words, "pod", "gated", {"spec": body}, kind_of_patch=kind)  # noqa: E731
        there = json.loads(kubectl("-n", NAME, "get", "pod", "gated", "-o", "json").stdout)["spec"]["tolerations"]
        new = {"key": "virtual-kubelet.io/provider", "operator": "Exists", "effect": "NoSchedule"}
        change(None, {"schedulingGates": GATES[1:]})
        change(None, {"tolerations": [*there, new]})
        change(None, {"tolerations": [*there, new], "schedulingGates": GATES[1:]})
        for gates in ([], GATES[:1]):
            change("of the scheduling gates", {"schedulingGates": gates})
        change("of the tolerations", {"tolerations": [{**t, "tolerationSeconds": 1} if "tolerationSeconds" in t else t for t in there]})
        image = {"containers": [{"name": "c", "image": "other"}]}
        selected = {"nodeSelector": {"a": "b"}}  # may be added to while the pod has gates
        for body in (image, selected, {"activeDeadlineSeconds": 5}):
            change("of the spec of a pod", body, "strategic")
        self.patch(eve(), None, "pod", "gated", {"spec": selected})

    def test_status_that_kube_scheduler_writes(self):
        """It has the same account, because it is in the same pod."""
        change = lambda words, body: self.patch(scheduler(), words, "pod", "gated", {"status": body}, "status", "strategic")  # noqa: E731

        def condition(kind, status="False"):
            return {"conditions": [{"type": kind, "status": status, "reason": "r", "message": "m"}]}
        change(None, condition("PodScheduled"))
        change(None, condition("DisruptionTarget", "True"))
        change(None, {**condition("PodScheduled"), "nominatedNodeName": N1})
        for kind in ("Ready", "ContainersReady", "Initialized", "a.example/b"):
            change("of the conditions of a pod", condition(kind, "True"))
        for body in ({"phase": "Failed"}, {"message": "m"}, {"podIP": "10.0.0.1"}, {"reason": "r"}):
            change("of the status of a pod", body)
        for key in KEYS + FOREIGN:
            self.patch(scheduler(), "this annotation of a pod", "pod", "gated", annotations(**{key: "x"}), "status")

    def test_nodes_of_the_node_agent(self):
        own = {"aliquot.dev/" + key: "x" for key in
               ("cards", "gpu-mem-unit", "held-slices", "mode-in-force", "gpu-mem-unit-in-force", "change-pending", "grown-slices")}
        labels = {"aliyun.accelerator/nvidia_" + key: "x" for key in ("name", "mem", "count")}
        self.patch(agent(N1), None, "node", N1, {"metadata": {"annotations": own, "labels": {
            **labels, "aliquot.dev/holds-slices": "true", "nvidia.com/gpu.deploy.device-plugin": "false"}}})
        self.patch(agent(N1), f'the node agent of node "{N1}" may not change Node "{N2}"', "node", N2, annotations(**own))
        self.patch(agent(None), "names no node", "node", N1, annotations(**own))
        for subresource in (None, "status"):
            for key in ("a/b", "aliquot.dev/policy", "aliquot.dev/max-inst", "aliquot.dev/allow-mixed", "aliquot.dev/place-while-changing"):
                self.patch(agent(N1), "this annotation of a Node", "node", N1, annotations(**{key: "x"}), subresource)
            self.patch(agent(N1), "this annotation of a Node", "node", N1, annotations(**{"a/b": None}), subresource)
            for changed in ({"l": "x"}, {"l": None}, {"ack.node.gpu.schedule": "share"}, {"node-role.kubernetes.io/master": ""}):
                self.patch(agent(N1), "this label of a Node", "node", N1, {"metadata": {"labels": changed}}, subresource)
        self.patch(agent(N1), "the spec of a Node", "node", N1, {"spec": {"unschedulable": True}})
        self.patch(agent(N1), "finalizers", "node", N1, {"metadata": {"finalizers": ["a/b"]}})

    def test_taints_of_nodes(self):
        """The agent takes the startup taint off, and touches no other."""
        ours = {"key": "startup-taint.cluster-autoscaler.kubernetes.io/aliquot", "effect": "NoSchedule"}
        other = {"key": "a", "value": "b", "effect": "NoSchedule"}
        self.addCleanup(kubectl, "patch", "node", N1, "-p", json.dumps({"spec": {"taints": None}}), "--type=merge")

        def change(who, words, *taints):
            """The node controller taints a Node without a kubelet at any time: its taints are kept, and a stale list is sent anew."""
            with self.subTest(who=who, taints=taints):
                for _ in range(20):
                    node = json.loads(kubectl("get", "node", N1, "-o", "json").stdout)
                    kept = [t for t in node["spec"].get("taints", []) if t["key"].startswith("node.kubernetes.io/")]
                    body = {"metadata": {"resourceVersion": node["metadata"]["resourceVersion"]}, "spec": {"taints": [*kept, *taints]}}
                    p = kubectl(*who, "patch", "node", N1, "--type=merge", "-p", json.dumps(body), "--dry-run=server")
                    if "the object has been modified" not in p.stdout:
                        break
                self.judge(p, words, f"{who} {body}")
        change(agent(N1), "of the taints of a Node", other)
        change(agent(N1), "of the taints of a Node", ours)
        p = kubectl("patch", "node", N1, "--type=merge", "-p", json.dumps({"spec": {"taints": [ours, other]}}))
        self.assertEqual(p.returncode, 0, p.stdout)
        for taints in ((), (ours,), (ours, {**other, "value": "c"}), (ours, other, {**other, "key": "c"})):
            change(agent(N1), "of the taints of a Node", *taints)
        change(scheduler(), "of the taints of a Node", other)
        change(agent(N1), None, other)

    def condition(self, who, words, node, kind, status="True"):
        body = {"status": {"conditions": [{"type": kind, "status": status, "reason": "r", "message": "n"}]}}
        self.patch(who, words, "node", node, body, "status", "strategic")

    def test_status_of_nodes(self):
        count = {"status": {"capacity": {"aliyun.com/gpu-count": "4"}, "allocatable": {"aliyun.com/gpu-count": "4"}}}
        self.patch(agent(N1), None, "node", N1, count, "status")
        self.patch(agent(N1), "may not change Node", "node", N2, count, "status")
        self.patch(scheduler(), "only aliyun.com/gpu-count", "node", N1, count, "status")
        for resources in ({"aliyun.com/gpu-mem": "60"}, {"cpu": "8"}, {"cpu": None}):
            for part in ("capacity", "allocatable"):
                self.patch(agent(N1), "only aliyun.com/gpu-count", "node", N1, {"status": {part: resources}}, "status")
        self.patch(agent(N1), "this part of the status", "node", N1, {"status": {"addresses": []}}, "status")
        self.patch(agent(N1), "this part of the status", "node", N1, {"status": {"phase": "Running"}}, "status")
        for kind in ("GPUShareChangePending", "GPUShareMisconfigured", "GPUShareDriverUnsupported", "GPUShareCardsCordoned",
                     "GPUShareOtherPlugin", "GPUShareCardsOutOfService", "GPUShareMemoryLimitsUnavailable"):
            self.condition(agent(N1), None, N1, kind)
            self.condition(scheduler(), "GPUFenceMisconfigured", N1, kind)
        self.condition(scheduler(), None, N1, "GPUFenceMisconfigured")
        self.condition(scheduler(), None, N2, "GPUFenceMisconfigured")
        self.condition(agent(N1), "GPUShareDriverUnsupported, GPUShareCardsCordoned, GPUShareOtherPlugin, GPUShareCardsOutOfService, "
                                  "GPUShareMemoryLimitsUnavailable", N1, "GPUFenceMisconfigured")
        for who in (agent(N1), scheduler()):
            self.condition(who, "conditions of a Node", N1, "Ready", "False")
            self.patch(who, "conditions of a Node", "node", N1, {"status": {"conditions": []}}, "status")
        self.patch(scheduler(), "this annotation of a Node", "node", N1, annotations(**{"aliquot.dev/cards": "x"}), "status")
        self.patch(scheduler(), None, "node", N1, annotations(**{"aliquot.dev/grown-slices": "x"}), "status")
        self.patch(scheduler(), "this label of a Node", "node", N1, {"metadata": {"labels": {"aliquot.dev/holds-slices": "true"}}})
        # These policies do not limit other accounts.
        self.condition(eve(), None, N1, "Ready", "False")


if __name__ == "__main__":
    if not os.environ.get("KUBECONFIG"):
        print("skipped: KUBECONFIG names no cluster to ask")
        sys.exit(77)
    unittest.main()
