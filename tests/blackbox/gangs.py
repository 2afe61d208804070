#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Gangs from outside: `aliquot scheduler --gangs` on the API server of the tests, beside a client that asks as kube-scheduler does. The client
assumes a pod and binds it in the background, parks what no node takes until its object changes, and counts cpu by itself."""

import collections
import contextlib
import http.client
import json
import os
import re
import resource
import signal
import subprocess
import sys
import tempfile
import threading
import time
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../fake"))

from api import Api, ApiError, StoreServer, Watch, pod_path  # noqa: E402
from patience import PATIENCE, until  # noqa: E402

ALIQUOT, STORE = sys.argv.pop(1), sys.argv.pop(1)
MEM, COUNT = "aliyun.com/gpu-mem", "aliyun.com/gpu-count"
GROUP, GATE, PROFILE = "pod-group.scheduling.sigs.k8s.io", "aliquot.dev/gang", "ack-co-scheduler"
PODS = "/api/v1/namespaces/default/pods"
NODES, UNITS, CPUS = 4, 16, 4


def node(name):
    offer = {"cpu": str(CPUS), MEM: str(UNITS), COUNT: "1"}
    return {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "labels": {"ack.node.gpu.schedule": "cgpu"}},
            "status": {"capacity": offer, "allocatable": offer}}


def member(name, gang, least, mem=None, cpu=1):
    limits = {MEM: str(mem)} if mem else {}
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "namespace": "default", "labels": {}},
           "spec": {"schedulerName": PROFILE,
                    "containers": [{"name": "main", "image": "none", "resources": {"limits": limits, "requests": {"cpu": str(cpu), **limits}}}]}}
    if gang:
        pod["metadata"]["labels"] = {GROUP + "/name": gang, GROUP + "/min-available": str(least)}
        pod["spec"]["schedulingGates"] = [{"name": GATE}]
    return pod


def cpu_of(pod):
    return int(pod["spec"]["containers"][0]["resources"]["requests"]["cpu"])


class KubeScheduler:
    """One cycle at a time; Binds run beside it. pause() holds the cycle back."""

    def __init__(self, api, port):
        self.api, self.port = api, port
        self.lock = threading.Condition()
        self.pods, self.assumed, self.queue = {}, {}, collections.deque()
        self.may_take = -1  # cycles that are left; -1: no bound
        self.stopping = False
        self.connections = set()
        self.watch = Watch(api, "/api/v1/pods", "", self._on_list, self._on_pod)
        self.thread = threading.Thread(target=self._run, daemon=True)
        self.thread.start()

    def _on_list(self, items):
        for pod in items:
            self._on_pod("ADDED", pod)

    def _on_pod(self, kind, pod):
        uid, spec = pod["metadata"]["uid"], pod["spec"]
        with self.lock:
            before = self.pods.pop(uid, None)
            if kind == "DELETED":
                self.assumed.pop(uid, None)
                return
            self.pods[uid] = pod
            waits = not spec.get("nodeName") and not spec.get("schedulingGates") and uid not in self.assumed
            changed = not before or before["spec"] != spec or before["metadata"].get("annotations") != pod["metadata"].get("annotations")
            if waits and changed and uid not in self.queue:
                self.queue.append(uid)
            self.lock.notify_all()

    def again(self):
        """As after an event about a node: everything that waits is tried."""
        with self.lock:
            self.queue.extend(u for u, p in self.pods.items() if not p["spec"].get("nodeName") and not p["spec"].get("schedulingGates") and
                              u not in self.assumed and u not in self.queue)
            self.lock.notify_all()

    def allow(self, cycles):
        with self.lock:
            self.may_take = cycles
            self.lock.notify_all()

    def stop(self, hard=False):
        with self.lock:
            self.stopping = True
            self.lock.notify_all()
            if hard:
                for c in self.connections:
                    with contextlib.suppress(AttributeError, OSError):  # its answer came and it is closed
                        c.sock.shutdown(2)
        self.watch.stop()
        self.thread.join(10)

    def _run(self):
        while True:
            with self.lock:
                while not self.stopping and not (self.queue and self.may_take != 0):
                    self.lock.wait()
                if self.stopping:
                    return
                uid = self.queue.popleft()
                pod = self.pods.get(uid)
                if not pod or pod["spec"].get("nodeName") or uid in self.assumed:
                    continue
                if self.may_take > 0:
                    self.may_take -= 1
                free = dict.fromkeys((f"n{i}" for i in range(NODES)), CPUS)
                for u, p in self.pods.items():
                    at = p["spec"].get("nodeName") or self.assumed.get(u)
                    if at:
                        free[at] -= cpu_of(p)
            self._schedule(uid, pod, [n for n, cpus in free.items() if cpus >= cpu_of(pod)])

    def _call(self, verb, body, timeout):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=timeout)
        with self.lock:
            self.connections.add(connection)
        try:
            connection.request("POST", "/gpushare-scheduler/" + verb, json.dumps(body), {"Content-Type": "application/json"})
            return json.loads(connection.getresponse().read())
        except (OSError, http.client.HTTPException, ValueError):
            return None
        finally:
            connection.close()
            with self.lock:
                self.connections.discard(connection)

    def _schedule(self, uid, pod, nodes):
        if not nodes:
            self._unschedulable(pod, "0/4 nodes are available: 4 Insufficient cpu.")
            return
        answer = self._call("filter", {"Pod": pod, "NodeNames": nodes}, PATIENCE)
        if answer is None:
            self._later(uid)
        elif not answer["NodeNames"]:
            self._unschedulable(pod, "0/4 nodes are available: " + ", ".join(sorted(set(answer["FailedNodes"].values()))))
        else:
            with self.lock:
                self.assumed[uid] = answer["NodeNames"][0]
            threading.Thread(target=self._bind, args=(uid, pod), daemon=True).start()

    def _bind(self, uid, pod):
        meta = pod["metadata"]
        answer = self._call("bind", {"PodName": meta["name"], "PodNamespace": "default", "PodUID": uid, "Node": self.assumed[uid]}, 40)
        if not answer or answer["Error"]:
            with self.lock:
                self.assumed.pop(uid, None)
            self._later(uid)

    def _later(self, uid):
        def add():
            with self.lock:
                if uid in self.pods and uid not in self.queue:
                    self.queue.append(uid)
                self.lock.notify_all()
        t = threading.Timer(1, add)
        t.daemon = True
        t.start()

    def _unschedulable(self, pod, message):
        condition = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": message}
        try:
            self.api.patch(pod_path(pod) + "/status", {"status": {"conditions": [condition]}})
        except (OSError, http.client.HTTPException, ApiError):
            pass


class GangTest(unittest.TestCase):
    def setUp(self):
        self.store = StoreServer(STORE)
        self.addCleanup(self.store.stop)
        self.api = Api(self.store.address)
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.kubeconfig = self.store.kubeconfig(os.path.join(self.folder.name, "kubeconfig"))
        for i in range(NODES):
            self.api.post("/api/v1/nodes", node(f"n{i}"))
        self.start_aliquot("127.0.0.1:0")
        self.addCleanup(lambda: (self.aliquot.kill(), self.aliquot.wait()))
        self.kube_scheduler = KubeScheduler(self.api, self.port)
        self.addCleanup(lambda: self.kube_scheduler.stop(hard=True))

    def start_aliquot(self, listen):
        log = os.path.join(self.folder.name, "log")
        with open(log, "w") as f:
            self.aliquot = subprocess.Popen([ALIQUOT, "scheduler", "--kubeconfig", self.kubeconfig, "--no-leader-election", "--gangs", "-v",
                                             "--listen", listen], stderr=f)
        self.port = until(lambda: self.listening(log), "no port")
        until(lambda: self.ask("/readyz") == "ok\n", "not ready")

    @staticmethod
    def listening(log):
        with open(log) as f:
            found = re.search(r"listening port=([0-9]+)", f.read())
        return int(found[1]) if found else None

    def ask(self, path):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE)
        try:
            connection.request("GET", "/gpushare-scheduler" + path)
            return connection.getresponse().read().decode()
        except OSError:
            return ""
        finally:
            connection.close()

    def gang(self, name):
        try:
            return next((g for g in json.loads(self.ask("/gangs")) if g["name"] == name), {})
        except ValueError:
            return {}

    def gang_that(self, condition):
        """Gang a if the condition holds for it, else None."""
        gang = self.gang("a")
        return gang if condition(gang) else None

    def create(self, *pods):
        for p in pods:
            self.api.post(PODS, p)

    def bound(self, prefix):
        return [p["metadata"]["name"] for p in self.api.get(PODS)["items"]
                if p["spec"].get("nodeName") and p["metadata"]["name"].startswith(prefix)]

    def wait_bound(self, prefix, n):
        until(lambda: len(self.bound(prefix)) == n, f"{prefix}: not {n} bound")

    def used(self):
        return sum(int(line.split()[-1]) for line in self.ask("/metrics").split("\n") if line.startswith("aliquot_scheduler_memory_used_bytes "))

    def hold(self, n, least=3):
        """A gang of which n members are held, and the others are not asked about. An attempt in which
        nothing is asked for two seconds is given up, which a busy machine can cause. So the cycles are
        allowed again in each further attempt."""
        self.kube_scheduler.allow(n)
        self.create(*[member(f"a{i}", "a", least, mem=UNITS) for i in range(least)])
        for _ in range(5):
            gang = until(lambda: self.gang_that(lambda g: g.get("held") == n or g.get("state") == "backoff"), "neither held nor given up")
            if gang["held"] == n:
                break
            self.kube_scheduler.allow(0)
            gang = until(lambda: self.gang_that(lambda g: g.get("attempts", 0) > gang["attempts"]), "not tried again")
            self.kube_scheduler.allow(n)
        else:
            self.fail("five attempts were given up")
        self.assertEqual([], self.bound("a"))


class Gangs(GangTest):
    def test_members_with_and_without_gpu(self):
        self.create(*[member(f"a{i}", "a", 4, mem=UNITS) for i in range(3)])
        until(lambda: self.gang("a").get("ready") == 3, "not seen")
        self.assertEqual(("waiting", "gang a waits for members: 3 of 4"), (self.gang("a")["state"], self.gang("a")["reason"]))
        self.create(member("a-ps", "a", 4))
        self.wait_bound("a", 4)
        until(lambda: self.gang("a").get("state") == "satisfied" and self.gang("a")["bound"] == 4, "not satisfied")
        for p in self.api.get(PODS)["items"]:
            self.assertNotIn("schedulingGates", p["spec"])
            with self.assertRaises(ApiError):  # a gate is never put back
                self.api.patch(pod_path(p), {"spec": {"schedulingGates": [{"name": GATE}]}})
            self.assertEqual("scheduler.framework.gpushare.allocation" in p["metadata"].get("annotations", {}), p["metadata"]["name"] != "a-ps")

    def test_gangs_that_fit_one_at_a_time(self):
        self.create(*[member(f"{g}{i}", g, 3, mem=UNITS) for i in range(3) for g in "abc"])
        left = set("abc")
        while left:
            first = until(lambda: next((g for g in left if len(self.bound(g)) == 3), None), "no gang is whole")
            for g in left - {first}:
                self.assertEqual([], self.bound(g))
            self.create(member("single" + first, None, 1, mem=UNITS))  # single pods run in between
            self.wait_bound("single" + first, 1)
            for name in [f"{first}{i}" for i in range(3)] + ["single" + first]:
                self.api.delete(f"{PODS}/{name}", grace=0)
            left.remove(first)

    def test_no_cpu_for_one_member(self):
        self.create(*[member(f"filler{i}", None, 1, cpu=CPUS - 1) for i in range(NODES)])
        self.wait_bound("filler", NODES)
        self.create(member("a0", "a", 3, mem=4, cpu=2), member("a1", "a", 3, mem=4), member("a2", "a", 3, mem=4))
        until(lambda: self.gang("a").get("state") == "backoff" and self.used() == 0, "not given up")
        self.assertEqual([], self.bound("a"))
        self.api.delete(f"{PODS}/filler0", grace=0)
        self.wait_bound("a", 3)

    def test_a_binding_is_refused(self):
        self.store.tell(f"fault status 1 POST {PODS}/a1/binding 403")
        self.create(*[member(f"a{i}", "a", 3, mem=UNITS) for i in range(3)])
        self.wait_bound("a", 3)
        self.assertGreaterEqual(self.gang("a")["attempts"], 2)

    def test_a_job_of_whole_cards(self):
        """Cards 0 and 3 are joined: alone a pod would get card 0, and the next one card 1."""
        rates = [[0, 5, 5, 50], [5, 0, 5, 5], [5, 5, 0, 5], [50, 5, 5, 0]]
        cards = [{"index": i, "uuid": f"GPU-{i}", "model": "m", "units": 1, "numa": 0, "healthy": True, "peers": rates[i]} for i in range(4)]
        self.api.patch("/api/v1/nodes/n3", {"metadata": {"labels": {"ack.node.gpu.schedule": "topology"},
                                                         "annotations": {"aliquot.dev/cards": json.dumps(cards)}}})
        for i in range(2):
            pod = member(f"job{i}", None, 0)
            pod["metadata"]["labels"] = {"gpu-topology": "job", "gpu-topology-replica": "2"}
            pod["spec"]["schedulingGates"] = [{"name": GATE}]
            for kind in ("limits", "requests"):
                pod["spec"]["containers"][0]["resources"][kind]["aliyun.com/gpu"] = "1"
            self.create(pod)
        self.wait_bound("job", 2)
        until(lambda: self.gang("gpu-topology/job").get("state") == "satisfied", "not satisfied")
        notes = [p["metadata"]["annotations"] for p in self.api.get(PODS)["items"]]
        self.assertEqual(["0", "3"], sorted(n["topology.kubernetes.io/gpu-group"] for n in notes))
        self.assertEqual(["0,3", "0,3"], [n["topology.kubernetes.io/gpu-visible"] for n in notes])

    def test_too_large_for_the_cluster(self):
        self.create(*[member(f"a{i}", "a", NODES + 1, mem=UNITS) for i in range(NODES + 1)])
        until(lambda: "gang a: the cluster has cards for 4 of 5 even when empty" in self.gang("a").get("reason", ""), "no reason")
        self.assertEqual(([], 0), (self.bound("a"), self.used()))
        self.api.post("/api/v1/nodes", node("n4"))
        until(lambda: self.gang("a").get("attempts", 0) > 0, "not tried")

    def test_a_fence_goes(self):
        """The gang waits for a card that is fenced. No node changes when the fence goes."""
        fences = "/api/v1/namespaces/kube-system/configmaps"
        self.api.post(fences, {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "unhealthy-gpu-n3", "namespace": "kube-system"},
                               "data": {"gpus": "0"}})
        self.create(*[member(f"a{i}", "a", NODES, mem=UNITS) for i in range(NODES)])
        until(lambda: "gang a: the cluster has cards for 3 of 4 even when empty" in self.gang("a").get("reason", ""), "no reason")
        self.api.delete(fences + "/unhealthy-gpu-n3", grace=0)
        self.wait_bound("a", NODES)

    def test_a_node_goes(self):
        self.create(*[member(f"filler{i}", None, 1, mem=UNITS) for i in range(NODES)])
        self.wait_bound("filler", NODES)
        self.create(*[member(f"a{i}", "a", NODES, mem=UNITS) for i in range(NODES)])
        until(lambda: "gang a: the cluster has room for 0 of 4 members" in self.gang("a").get("reason", ""), "not given up")
        self.api.delete("/api/v1/nodes/n3", grace=0)
        until(lambda: "gang a: the cluster has cards for 3 of 4 even when empty" in self.gang("a").get("reason", ""), "no reason")

    def test_many_connections_are_served(self):
        """More than 1,024, which is the usual soft limit of open files."""
        many = 1100
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        if 0 <= hard < 2 * many:
            self.skipTest("the hard limit of open files is too low")
        self.aliquot.kill()
        self.aliquot.wait()
        resource.setrlimit(resource.RLIMIT_NOFILE, (1024, hard))
        self.start_aliquot("127.0.0.1:0")
        resource.setrlimit(resource.RLIMIT_NOFILE, (2 * many, hard))
        self.addCleanup(resource.setrlimit, resource.RLIMIT_NOFILE, (soft, hard))
        for _ in range(many):
            connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE)
            self.addCleanup(connection.close)
            connection.connect()
        self.assertEqual("ok\n", self.ask("/readyz"))


class Held(GangTest):
    """What becomes of members that are held."""

    def test_a_member_is_deleted_while_held(self):
        self.hold(2)
        self.api.delete(PODS + "/a0", grace=0)
        until(lambda: self.gang("a").get("state") == "waiting" and self.used() == 0, "not given up")
        self.assertEqual([], self.bound("a"))
        self.kube_scheduler.allow(-1)
        self.create(member("a0", "a", 3, mem=UNITS))
        self.wait_bound("a", 3)

    def test_nothing_more_is_offered(self):
        self.hold(2)
        until(lambda: "kube-scheduler placed 2 of 3 members" in self.gang("a").get("reason", ""), "not given up")
        until(lambda: self.used() == 0, "places stay")
        self.assertEqual([], self.bound("a"))
        self.kube_scheduler.allow(-1)
        self.wait_bound("a", 3)

    def test_kill_of_aliquot(self):
        self.hold(2)
        self.aliquot.send_signal(signal.SIGKILL)
        self.aliquot.wait()
        self.start_aliquot("127.0.0.1:0")  # another program may have taken the port by now
        self.kube_scheduler.port = self.port
        self.assertEqual([], self.bound("a"))
        self.kube_scheduler.allow(-1)
        self.wait_bound("a", 3)

    def test_kill_of_kube_scheduler(self):
        self.hold(2)
        self.kube_scheduler.stop(hard=True)
        until(lambda: self.gang("a").get("held") == 0, "still held")
        self.assertEqual([], self.bound("a"))
        self.kube_scheduler = KubeScheduler(self.api, self.port)
        self.wait_bound("a", 3)

    def test_the_api_server_vanishes(self):
        self.hold(2)
        self.store.tell("vanish")
        time.sleep(1)
        self.store.tell("return")
        self.kube_scheduler.allow(-1)
        self.wait_bound("a", 3)


if __name__ == "__main__":
    unittest.main(verbosity=2)
