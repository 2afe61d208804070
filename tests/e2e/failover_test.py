# SPDX-License-Identifier: Apache-2.0
"""Containers of the leading scheduler pod are killed while many pods wait for a node. The pods go to
Node objects of the test's own, which have no kubelet, so that the scheduler is alone tried."""

import collections
import contextlib
import os
import signal
import threading
import time

import audit
import kube
import programs
import suite
from kube import container, pod

PODS = int(os.environ.get("E2E_BURST", "300"))
NODES, CARDS, CARD_GIB = 10, 8, 16
LEASE = "aliquot-scheduler"
MARK = "aliquot-e2e-failover"


def node(name):
    offer = {"cpu": "64", "memory": "256Gi", "pods": "110", kube.MEM: str(CARDS * CARD_GIB), kube.COUNT: str(CARDS)}
    return {"apiVersion": "v1", "kind": "Node",
            "metadata": {"name": name, "labels": {MARK: "true", kube.MODE: "share", "kubernetes.io/hostname": name}},
            "status": {"capacity": offer, "allocatable": offer, "conditions": [{"type": "Ready", "status": "True", "reason": "Test"}]}}


def small(name):
    return pod(name, container("main", 1), nodeSelector={MARK: "true"}, tolerations=[{"operator": "Exists"}], grace=0)


class Failover(suite.Scenario):
    def setUp(self):
        super().setUp()
        found = kube.get("pods", selector="app.kubernetes.io/name=aliquot,app.kubernetes.io/component=scheduler", namespace=programs.SYSTEM)
        if not found:
            self.skipTest("no scheduler is deployed in this cluster")
        self.uids = {p["metadata"]["name"]: p["metadata"]["uid"] for p in found}
        if not self.leading("aliquot"):
            self.skipTest("the scheduler's processes are not of this machine (E2E_HOST)")
        self.addCleanup(kube.kubectl, "delete", "nodes", "-l", MARK + "=true", "--ignore-not-found", timeout=120)
        kube.create(*[node(f"failover-{i}") for i in range(NODES)])

    def holder(self):
        lease = kube.get("lease", LEASE, namespace=programs.SYSTEM) or {"spec": {}}
        return lease["spec"].get("holderIdentity", "").rsplit("_", 1)[0]

    def leading(self, comm):
        """The processes of that name in the leading pod."""
        uid = self.uids.get(self.holder(), "-")
        return [pid for pid in programs.pids() if uid in programs.cgroup_of(pid) and programs.proc(pid, "comm").strip() == comm]

    def kill(self, *comms):
        """True when there was a leader to kill."""
        found = [pid for comm in comms for pid in self.leading(comm)]
        for pid in found:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        return bool(found)

    def bound(self, prefix):
        return [p for p in self.pods() if p["metadata"]["name"].startswith(prefix) and p["spec"].get("nodeName")]

    def check_sums(self, pods):
        """Each card holds what the annotations say, no more than it has, and the ledger counts the same."""
        sums = collections.Counter()
        for p in pods:
            for _, cards in audit.slices(p["metadata"]["annotations"].get(audit.ALLOCATION)).items():
                for card, units in cards.items():
                    sums[p["spec"]["nodeName"], str(card)] += units
        self.assertEqual(sum(sums.values()), len(pods))
        self.assertLessEqual(max(sums.values()), CARD_GIB)

        def counted():
            found = suite.World.programs.inspect()["nodes"]
            return {(n["name"], str(d["id"])): d["usedGPU"] for n in found if n["name"].startswith("failover-") for d in n["devs"] if d["usedGPU"]}
        kube.until(lambda: f"{dict(sums)}, and the ledger has {counted()}", lambda: counted() == dict(sums), 60)

    def burst(self, prefix):
        """PODS pods at once. Returns when they began to be made. A create that a killed replica of the webhook has in its hands fails, and is
        repeated, as a controller does."""
        began = time.monotonic()
        for wave in range(3):
            wanted = [small(f"{prefix}-{wave}-{i}") for i in range(PODS // 3)]
            for _ in range(10):
                with contextlib.suppress(kube.KubectlError):
                    kube.create(*wanted)
                there = {p["metadata"]["name"] for p in self.pods()}
                wanted = [p for p in wanted if p["metadata"]["name"] not in there]
                if not wanted:
                    break
            self.assertEqual(len(wanted), 0, "pods that cannot be made")
        return began

    def all_bound(self, prefix, began):
        kube.until(lambda: f"{len(self.bound(prefix))} of {PODS} are bound", lambda: len(self.bound(prefix)) == PODS, 300, every=1)
        return time.monotonic() - began

    def test_a_burst_with_kills(self):
        # as many without kills, to compare with
        calm = self.all_bound("calm", self.burst("calm"))
        self.check_sums(self.bound("calm"))
        done, killed = threading.Event(), collections.Counter()

        def work():
            while not done.wait(4):
                comm = ("aliquot", "kube-scheduler")[sum(killed.values()) % 2]
                killed[comm] += self.kill(comm)
        killer = threading.Thread(target=work)
        killer.start()
        try:
            began = self.burst("burst")
            kube.until(lambda: f"{dict(killed)} kills", lambda: sum(killed.values()) >= 6, 300, every=1)
        finally:
            done.set()
            killer.join()
        seconds = self.all_bound("burst", began)
        print(f"  {PODS} pods bound in {calm:.0f} s; as many in {seconds:.0f} s with {dict(killed)} killed", flush=True)
        self.check_sums(self.bound("calm") + self.bound("burst"))

    def test_the_next_pod_is_bound(self):
        for number, comms in enumerate([(), ("aliquot",), ("kube-scheduler",), ("aliquot", "kube-scheduler")]):
            kube.until("no replica leads", lambda comms=comms: not comms or all(self.leading(c) for c in comms), 120)
            self.assertTrue(not comms or self.kill(*comms))
            began = time.monotonic()
            kube.create(small(f"next-{number}"))
            kube.until(f"a pod is not bound after {comms}", lambda number=number: self.bound(f"next-{number}"), 120, every=0.1)
            print(f"  {' and '.join(comms) or 'nothing'} killed: a new pod is bound after {time.monotonic() - began:.1f} s", flush=True)
        self.check_sums(self.bound("next"))
