# SPDX-License-Identifier: Apache-2.0
"""Annotations that a user writes: they take nothing from other pods, and what is written over a
running pod's annotations is restored."""

import json
import time

import audit
import kube
import programs
import suite
from kube import container, pod

OLD = "ALIYUN_COM_GPU_MEM_"
ALL_CARDS = json.dumps({"0": {str(i): 15 for i in range(8)}})
FORGED = {audit.ALLOCATION: ALL_CARDS, audit.INIT: ALL_CARDS, audit.CORE_ALLOCATION: json.dumps({"0": {"3": 100}}),
          audit.ASSIGNED: "true", "scheduler.framework.gpushare.assume-time": "1", "aliquot.dev/resize-status": "x",
          OLD + "IDX": "0", OLD + "POD": "15", OLD + "DEV": "15", OLD + "ASSIGNED": "true", OLD + "ASSUME_TIME": "1"}
PENDING, MISCONFIGURED = "GPUShareChangePending", "GPUShareMisconfigured"


def with_annotations(obj, notes):
    obj["metadata"]["annotations"] = dict(notes)
    return obj


def patch(kind, name, body, *args, namespace=kube.NAMESPACE):
    return kube.kubectl("patch", kind, name, "-n", namespace, "--type=merge", "-p", json.dumps(body), *args, check=False)


def condition(kind):
    found = kube.get("node", suite.World.node)["status"]["conditions"]
    return next((c for c in found if c["type"] == kind), {"status": "absent", "message": ""})


class Forged(suite.Scenario):
    mode = "core_mem"

    def used(self):
        return [d["usedGPU"] for d in self.ledger()["devs"]]

    def takes_nothing(self, obj, mem):
        """The pod counts with what its containers request, and another pod runs beside it."""
        before = sum(self.used())
        self.run_pods(obj)
        kube.until(lambda: f"the ledger has {self.used()}, {before + mem} units are asked for",
                   lambda: sum(self.used()) == before + mem)
        self.run_pods(pod("victim", container("main", 3, 10)))
        # annotations of a pod without resources mean nothing
        self.audit(None if mem else ["victim"])

    def test_pod_without_resources(self):
        self.takes_nothing(with_annotations(pod("forger", container("main"), scheduler="default-scheduler"), FORGED), 0)

    def test_pod_with_resources(self):
        self.takes_nothing(with_annotations(pod("forger", container("main", 1, 5)), FORGED), 1)

    def test_pod_that_names_its_node(self):
        self.takes_nothing(with_annotations(pod("forger", container("main", 1, 5), nodeName=suite.World.node), FORGED), 1)

    def test_mixing_rule(self):
        """A forged percentage does not give a memory-only pod compute."""
        suite.switch_mode("share")
        forged = {audit.CORE_ALLOCATION: json.dumps({"0": {"3": 100}})}
        self.run_pods(with_annotations(pod("forger", container("main", 1)), forged))
        self.run_pods(pod("victim", container("main", 2)))
        self.audit()

    def test_copied_manifest(self):
        """The output of `kubectl get -o yaml` applies under another name; a warning names what was
        dropped."""
        self.run_pods(pod("original", container("main", 2, 10)))
        copy = self.pod("original")
        copy["metadata"] = {k: copy["metadata"][k] for k in ("annotations", "labels")}
        copy["metadata"]["name"] = "copy"
        copy["spec"].pop("nodeName")
        copy.pop("status")
        done = kube.kubectl("create", "-n", kube.NAMESPACE, "-f", "-", stdin=json.dumps(copy), check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("Warning: ", done.stderr)
        self.assertIn(audit.ALLOCATION, done.stderr)
        self.wait_settled(["copy"])
        self.audit()

    def test_refused_update(self):
        """A tenant may not write system keys of its own pods; other updates pass."""
        self.run_pods(pod("honest", container("main", 4, 10)))
        role = {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role", "metadata": {"name": "tenant"},
                "rules": [{"apiGroups": [""], "resources": ["pods", "pods/status"], "verbs": ["*"]}]}
        binding = {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding", "metadata": {"name": "tenant"},
                   "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "tenant"},
                   "subjects": [{"kind": "User", "name": "tenant", "apiGroup": "rbac.authorization.k8s.io"}]}
        kube.create(role, binding)
        for key in FORGED:
            done = patch("pod", "honest", {"metadata": {"annotations": {key: "9"}}}, "--as=tenant")
            self.assertNotEqual(done.returncode, 0, key)
            self.assertIn(key, done.stderr)
            self.assertIn("scheduler", done.stderr)
        done = patch("pod", "honest", {"metadata": {"annotations": {audit.ALLOCATION: None}}}, "--as=tenant",
                     "--subresource=status")
        self.assertNotEqual(done.returncode, 0)
        for body in ({"metadata": {"annotations": {"a.b/c": "d"}}}, {"metadata": {"labels": {"x": "y"}}}):
            done = patch("pod", "honest", body, "--as=tenant")
            self.assertEqual(done.returncode, 0, done.stderr)
        self.audit()


class Repaired(suite.Scenario):
    """An administrator's change, which admission lets through, or a cluster without admission
    policies."""

    mode = "core_mem"

    def repaired(self, body):
        before = {k: v for k, v in self.pod("honest")["metadata"]["annotations"].items() if k in FORGED}
        done = patch("pod", "honest", body)
        self.assertEqual(done.returncode, 0, done.stderr)

        def back():
            now = self.pod("honest")["metadata"].get("annotations", {})
            return all((now.get(k) or "") == v for k, v in before.items() if "ssume" not in k and "SSUME" not in k)
        at = time.monotonic()
        kube.until("the annotations are not put back", back, 60)
        print(f"repaired after {time.monotonic() - at:.1f} s", flush=True)
        self.audit()

    def test_running_pod(self):
        self.run_pods(pod("honest", container("main", 4, 10)), pod("neighbour", container("main", 2, 10)))
        kube.until("not assigned", lambda: self.pod("honest")["metadata"]["annotations"].get(audit.ASSIGNED) == "true")
        self.repaired({"metadata": {"annotations": {audit.ALLOCATION: '{"0":{"0":1}}'}}})
        self.repaired({"metadata": {"annotations": dict.fromkeys(FORGED)}})
        self.repaired({"metadata": {"annotations": {audit.ALLOCATION: "{"}}})


class Changes(suite.Scenario):
    """A pending change of mode is made when its pods have ended, although others keep coming."""

    mode = "share"

    def pending(self):
        return kube.until("the change is not said", lambda: condition(PENDING)["status"] == "True" and condition(PENDING))

    def test_mode(self):
        self.run_pods(*[pod(f"old-{i}", container("main", 1)) for i in range(4)])
        suite.node_labels(mode="core_mem")
        said = self.pending()
        self.assertIn("e2e/old-0, ", said["message"])
        kube.create(*[pod(f"new-{i}", container("main", 2, 10)) for i in range(2)], pod("more", container("main", 1)))
        kube.until("the new pods are not refused", lambda: self.events("more", "FailedScheduling"))
        self.assertFalse(self.pod("more")["spec"].get("nodeName"))
        kube.kubectl("delete", "pod", "-n", kube.NAMESPACE, "more", *[f"old-{i}" for i in range(4)], "--wait=true")
        suite.World.mode = "core_mem"
        kube.until("the new mode is not in force", lambda: suite.allocatable(kube.CORE) > 0)
        found = self.wait_settled(["new-0", "new-1"])
        self.assertEqual(self.refusals(found.values()), [])
        self.audit(["new-0", "new-1"])

    def test_one_patch_per_change(self):
        self.run_pods(*[pod(f"old-{i}", container("main", 1)) for i in range(6)])
        suite.node_labels(mode="core_mem")
        first = self.pending()
        for i in range(8):
            patch("pod", f"old-{i % 6}", {"metadata": {"labels": {"turn": str(i)}}})
            # changes as the pods of a busy node make them, not a wait for something
            time.sleep(0.5)
        now = condition(PENDING)
        self.assertEqual((now["message"], now["lastTransitionTime"], now["lastHeartbeatTime"]),
                         (first["message"], first["lastTransitionTime"], first["lastHeartbeatTime"]))
        suite.node_labels(mode="share")
        kube.until("the condition is not taken back", lambda: condition(PENDING)["status"] != "True")

    def test_removed_label(self):
        self.run_pods(pod("old", container("main", 1)))
        suite.node_labels(mode=None)
        self.run_pods(pod("next", container("main", 1)))
        self.assertNotEqual(condition(PENDING)["status"], "True")
        self.audit()

    def test_mistyped_label(self):
        self.run_pods(pod("old", container("main", 1)))
        suite.node_labels(mode="core-mem", placement="Spread")
        said = kube.until("the typos are not said", lambda: condition(MISCONFIGURED)["status"] == "True" and
                          condition(MISCONFIGURED))["message"]
        self.assertIn("core-mem", said)
        self.assertIn("Spread", said)
        self.run_pods(pod("next", container("main", 1)))
        self.audit()
        suite.node_labels(mode="share", placement="binpack")
        kube.until("the condition is not taken back", lambda: condition(MISCONFIGURED)["status"] == "False")


class OneKey(suite.Scenario):
    mode = "share"

    def tearDown(self):
        kube.kubectl("annotate", "node", suite.World.node, "aliquot.dev/max-pods-per-card-", "aliquot.dev/allow-mixed-",
                     "aliquot.dev/gpu-mem-unit-change-", check=False)

    def test_wrong_annotation_leaves_others_counted(self):
        kube.kubectl("annotate", "node", suite.World.node, "aliquot.dev/max-pods-per-card=20 ", "aliquot.dev/allow-mixed=yes")
        kube.until("it is not said", lambda: "max-pods-per-card" in condition(MISCONFIGURED)["message"] and
                   "allow-mixed" in condition(MISCONFIGURED)["message"])
        name = f"unhealthy-gpu-{suite.World.node}"
        cards = ",".join(str(i) for i in range(suite.card_count()))
        kube.kubectl("create", "configmap", name, "-n", programs.SYSTEM, f"--from-literal=gpus={cards}")
        try:
            kube.create(pod("waits", container("main", 1)))
            kube.until("the pod is not refused", lambda: self.events("waits", "FailedScheduling"))
        finally:
            kube.kubectl("delete", "configmap", name, "-n", programs.SYSTEM)
        self.run_pods(pod("next", container("main", 1)))
