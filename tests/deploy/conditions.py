#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Which objects the matchConditions let through to the webhook: asked of the API server that KUBECONFIG names.

Nobody answers as the webhook here, and failurePolicy is Fail: what matches is refused, what does not is created (all in a
dry run). The two configurations have names of their own and see one namespace only, which goes away in the end."""

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
WEBHOOKS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../deploy/helm/aliquot/objects/webhooks/webhooks.yaml")
NAME = "aliquot-conditions-test"
KINDS = ("mutatingwebhookconfiguration", "validatingwebhookconfiguration")


def kubectl(*arguments, stdin=None):
    return subprocess.run([KUBECTL, *arguments], input=stdin, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


def configuration(o, only):
    """one webhook of a configuration, cut off from the cluster"""
    o = copy.deepcopy(o)
    o["metadata"] = {"name": NAME}
    o["webhooks"] = [hook for hook in o["webhooks"] if hook["name"] == only]
    for hook in o["webhooks"]:
        hook["name"] = only.replace("aliquot.dev", "conditions-test.aliquot.dev")
        hook["failurePolicy"] = "Fail"
        hook["timeoutSeconds"] = 1
        hook["clientConfig"] = {"url": "https://127.0.0.1:1/"}
        hook["namespaceSelector"] = {"matchLabels": {"kubernetes.io/metadata.name": NAME}}
    return o


def container(name="c", **limits):
    keys = {"mem": "aliyun.com/gpu-mem", "core": "aliyun.com/gpu-core.percentage", "count": "aliyun.com/gpu-count", "cpu": "cpu",
            "whole": "aliyun.com/gpu", "misspelt": "aliyun.com/gpu-memory", "hami": "nvidia.com/gpumem", "hami_core": "nvidia.com/gpucores"}
    c = {"name": name, "image": "x"}
    if limits:
        c["resources"] = {"limits": {keys[k]: str(v) for k, v in limits.items()}}
    return c


def pod(*containers, init=(), labels=None, annotations=None, **spec):
    metadata = {"name": "p", "namespace": NAME}
    if labels:
        metadata["labels"] = labels
    if annotations:
        metadata["annotations"] = annotations
    spec["containers"] = list(containers)
    if init:
        spec["initContainers"] = list(init)
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}


def template(p, restart=None):
    spec = {**p["spec"], **({"restartPolicy": restart} if restart else {})}
    return {"metadata": {"labels": {"app": "a", **p["metadata"].get("labels", {})}}, "spec": spec}


def workload(kind, p):
    group = "batch/v1" if kind in ("Job", "CronJob") else "v1" if kind == "ReplicationController" else "apps/v1"
    o = {"apiVersion": group, "kind": kind, "metadata": {"name": "w", "namespace": NAME}}
    if kind == "Job":
        o["spec"] = {"template": template(p, "Never")}
    elif kind == "CronJob":
        o["spec"] = {"schedule": "0 0 * * *", "jobTemplate": {"spec": {"template": template(p, "Never")}}}
    else:
        selector = {"app": "a"} if kind == "ReplicationController" else {"matchLabels": {"app": "a"}}
        o["spec"] = {"selector": selector, "template": template(p)}
        if kind == "StatefulSet":
            o["spec"]["serviceName"] = "s"
    return o


TEMPLATES = ["ReplicationController", "Deployment", "StatefulSet", "DaemonSet", "ReplicaSet", "Job"]
PLAIN = [pod(container()), pod(container(cpu=1)), pod(container(), container("d", cpu=1), init=[container("i")]),
         pod(container(), labels={"team": "x"})]
OURS = [pod(container(mem=3)), pod(container(mem=3, core=30)), pod(container(), container("d", mem=1)),
        pod(container(), init=[container("i"), container("j", mem=1)]), pod(container(mem=4), labels={"aliyun.com/gpu-count": "2"}),
        pod(container(core=7)), pod(container(count=1)), pod(container(whole=1)), pod(container(), labels={"aliyun.com/gpu-count": "2"})]
WARNED = [pod(container(), init=[container("i", misspelt=3)]),  # they get a warning, and no scheduler
          pod(container(hami=3000)), pod(container(), init=[container("i", hami_core=30)])]


KEYS = ["scheduler.framework.gpushare.allocation", "gpushare.alibabacloud.com/core-percentage", "aliquot.dev/init-allocation",
        "aliquot.dev/resize-status", "ALIYUN_COM_GPU_MEM_ASSUME_TIME", "aliquot.dev/resource-policy"]
ACCOUNT = "system:serviceaccount:kube-system:aliquot-"


class Conditions(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        p = kubectl("create", "namespace", NAME)
        if p.returncode != 0 and "AlreadyExists" not in p.stdout:
            raise unittest.SkipTest(p.stdout)
        cls.mutating, cls.validating = load(WEBHOOKS)
        if kubectl("get", "mutatingwebhookconfiguration", "aliquot").returncode == 0:
            raise unittest.SkipTest("aliquot is installed here: its own webhooks would answer, too")

    @classmethod
    def tearDownClass(cls):
        for kind in (*KINDS, "namespace"):
            kubectl("delete", kind, NAME, "--ignore-not-found", "--wait=false")

    def use(self, configuration_, only):
        p = kubectl("create", "-f", "-", stdin=json.dumps(configuration(configuration_, only)))
        self.assertEqual(p.returncode, 0, p.stdout)

    def use_none(self):
        for kind in KINDS:
            kubectl("delete", kind, NAME, "--ignore-not-found")
        self.wait_for(OURS[0], False)
        self.wait_for(workload("Job", OURS[0]), False)
        self.wait_for(workload("CronJob", OURS[0]), False)

    setUp = use_none

    def wait_for(self, o, wanted):
        """The API server uses a configuration a moment later."""
        for _ in range(200):
            if self.matched(o) == wanted:
                return
        self.fail(f"still {not wanted}")

    def test_new_pods_with_system_keys(self):
        self.use(self.mutating, "system-keys.aliquot.dev")
        self.wait_for(pod(container(), annotations={KEYS[0]: "x"}), True)
        for key in KEYS:
            self.expect(True, [pod(container(), annotations={key: "x", "a": "b"}), pod(container(mem=1), annotations={key: "{}"}),
                               pod(container(), nodeName="n1", schedulerName="other", annotations={key: "x"}),
                               pod(container(), annotations={key: "x", "kubernetes.io/config.mirror": "x"}, nodeName="n1")])
            self.expect(False, [pod(container(), annotations={key: ""})])
        self.expect(False, PLAIN + OURS)
        self.expect(False, [pod(container(mem=1), annotations={"aliquot.dev/gpu-mem": "1", "aliquot.dev/gpu-type": "t", "a": "b"})])

    def test_new_pods_with_keys_of_a_resize(self):
        self.use(self.mutating, "resize-keys.aliquot.dev")
        self.wait_for(pod(container(), annotations={"aliquot.dev/gpu-mem": "1"}), True)
        for key in "aliquot.dev/gpu-mem", "aliquot.dev/gpu-core":
            self.expect(True, [pod(container(), annotations={key: "x"}),
                               pod(container(mem=1), nodeName="n1", schedulerName="other", annotations={key: "1", "a": "b"})])
            self.expect(False, [pod(container(mem=1), annotations={key: ""})])
        self.expect(False, PLAIN + OURS + [pod(container(mem=1), annotations={KEYS[0]: "x", "a": "b"})])

    def updated(self, who, *arguments):
        p = kubectl("-n", NAME, *who, *arguments, "--dry-run=server")
        self.assertTrue(p.returncode == 0 or "failed calling webhook" in p.stdout, p.stdout)
        return p.returncode != 0

    def test_updates_of_system_keys(self):
        o = pod(container(), annotations={KEYS[0]: "x"})
        o["metadata"]["name"] = "keys"
        for o in (o, {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role", "metadata": {"name": NAME, "namespace": NAME}, "rules": [
                {"apiGroups": [""], "resources": ["pods", "pods/status"], "verbs": ["get", "patch"]}]},
                  {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding", "metadata": {"name": NAME, "namespace": NAME},
                   "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": NAME},
                   "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": user}
                                for user in ("eve", ACCOUNT + "node", ACCOUNT + "scheduler")]}):
            p = kubectl("create", "-f", "-", stdin=json.dumps(o))
            self.assertEqual(p.returncode, 0, p.stdout)
        self.use(self.validating, "system-keys.aliquot.dev")
        eve = ["--as=eve"]
        for _ in range(200):
            if self.updated(eve, "annotate", "pod", "keys", KEYS[1] + "=x"):
                break
        for key in KEYS[1:]:
            self.assertTrue(self.updated(eve, "annotate", "pod", "keys", key + "=x"), key)
            self.assertFalse(self.updated(eve, "annotate", "pod", "keys", key + "="), key)
        self.assertTrue(self.updated(eve, "annotate", "--overwrite", "pod", "keys", KEYS[0] + "=y"))
        self.assertTrue(self.updated(eve, "annotate", "pod", "keys", KEYS[0] + "-"))
        self.assertFalse(self.updated(eve, "annotate", "--overwrite", "pod", "keys", KEYS[0] + "=x", "a=b", "aliquot.dev/gpu-mem=1"))
        self.assertFalse(self.updated(eve, "label", "pod", "keys", "team=x"))
        status = ["patch", "pod", "keys", "--subresource=status", "--type=merge", "-p"]
        self.assertFalse(self.updated(eve, *status, '{"status":{"reason":"r"}}'))
        self.assertTrue(self.updated(eve, *status, json.dumps({"metadata": {"annotations": {KEYS[2]: "x"}}})))
        self.assertFalse(self.updated([], "annotate", "pod", "keys", KEYS[1] + "=x"))  # system:masters
        for name in ("node", "scheduler"):
            self.assertFalse(self.updated(["--as=" + ACCOUNT + name], "annotate", "pod", "keys", KEYS[1] + "=x"))

    def matched(self, o, verb="create"):
        p = kubectl(verb, "--dry-run=server", "-f", "-", stdin=json.dumps(o))
        if p.returncode == 0:
            return False
        self.assertIn("failed calling webhook", p.stdout)
        return True

    def expect(self, wanted, objects, verb="create"):
        for o in objects:
            with self.subTest(o=o):
                self.assertEqual(self.matched(o, verb), wanted)

    def test_mutating(self):
        self.use(self.mutating, "pods.aliquot.dev")
        self.wait_for(OURS[0], True)
        self.expect(True, OURS)
        self.expect(False, PLAIN + WARNED)
        self.expect(True, [pod(container(**asks), schedulerName=name) for asks in ({"mem": 1}, {"whole": 1})
                           for name in ("default-scheduler", "ack-co-scheduler")])
        self.expect(False, [pod(container(mem=1), schedulerName="other"), pod(container(mem=1), nodeName="n1"),
                            pod(container(cpu=1), schedulerName="ack-co-scheduler")])
        self.expect(False, [workload(kind, OURS[0]) for kind in TEMPLATES + ["CronJob"]])

    def test_validating_pods(self):
        self.use(self.validating, "pods.aliquot.dev")
        self.wait_for(OURS[0], True)
        self.expect(True, OURS + WARNED)
        self.expect(True, [pod(container(mem=1), schedulerName="other"), pod(container(mem=1), nodeName="n1")])
        self.expect(False, PLAIN)
        self.expect(True, [pod(container(mem=1), nodeName="n1", annotations={"kubernetes.io/config.mirror": "x"})])

    def test_validating_members_of_gangs(self):
        def member(name, gate=False, gang=True, **asks):
            gates = {"schedulingGates": [{"name": "aliquot.dev/gang"}]} if gate else {}
            labels = {"pod-group.scheduling.sigs.k8s.io/name": "g"} if gang else {}
            return pod(container(**asks), labels=labels, schedulerName=name, **gates)
        self.use(self.validating, "gangs.aliquot.dev")
        self.wait_for(member("ack-co-scheduler"), True)
        self.expect(True, [member("ack-co-scheduler", gate=True), member("other", gate=True), member("other", gate=True, gang=False)])
        self.expect(False, PLAIN + [member("other"), member("ack-co-scheduler", mem=1), member("other", gate=True, mem=1)])

    def test_validating_updates_of_pods(self):
        for name, labels in (("a", {}), ("b", {"aliyun.com/gpu-count": "2"})):
            o = pod(container(mem=4), labels=labels)
            o["metadata"]["name"] = name
            p = kubectl("create", "-f", "-", stdin=json.dumps(o))
            self.assertEqual(p.returncode, 0, p.stdout)
        self.use(self.validating, "pods.aliquot.dev")
        self.wait_for(OURS[0], True)

        def changed(name, *arguments):
            p = kubectl("-n", NAME, *arguments[:1], "pod", name, *arguments[1:], "--dry-run=server")
            self.assertTrue(p.returncode == 0 or "failed calling webhook" in p.stdout, p.stdout)
            return p.returncode != 0
        self.assertFalse(changed("a", "annotate", "scheduler.framework.gpushare.assigned=true"))
        self.assertFalse(changed("a", "label", "team=x"))
        self.assertTrue(changed("a", "label", "aliyun.com/gpu-count=2"))
        self.assertFalse(changed("b", "annotate", "x=y"))
        self.assertTrue(changed("b", "label", "--overwrite", "aliyun.com/gpu-count=4"))
        self.assertTrue(changed("b", "label", "aliyun.com/gpu-count-"))

    def test_validating_templates(self):
        self.use(self.validating, "templates.aliquot.dev")
        self.wait_for(workload("Job", OURS[0]), True)
        for kind in TEMPLATES:
            self.expect(True, [workload(kind, p) for p in OURS + WARNED])
            self.expect(False, [workload(kind, p) for p in PLAIN])

    def test_validating_cronjobs(self):
        self.use(self.validating, "cronjobs.aliquot.dev")
        self.wait_for(workload("CronJob", OURS[0]), True)
        self.expect(True, [workload("CronJob", p) for p in OURS + WARNED])
        self.expect(False, [workload("CronJob", p) for p in PLAIN])


if __name__ == "__main__":
    if not os.environ.get("KUBECONFIG"):
        print("skipped: KUBECONFIG names no cluster to ask")
        sys.exit(77)
    unittest.main()
