# SPDX-License-Identifier: Apache-2.0
"""Gangs where the leader dies. tests/deploy/gangs.py kills every program in every state of a gang, without replicas and without a kubelet.
Here another replica takes over, and the members run."""

import json
import os
import signal

import churn_test
import kube
import programs
import suite
from kube import container, pod

GROUP = "pod-group.scheduling.sigs.k8s.io"
MEMBERS_MAX = 24


def send(pids, number):
    for pid in pids:
        try:
            os.kill(pid, number)
        except ProcessLookupError:
            pass


class Gangs(suite.Scenario):
    def setUp(self):
        super().setUp()
        found = kube.get("deployment", "aliquot-scheduler", namespace=programs.SYSTEM)
        if not found or "--gangs" not in found["spec"]["template"]["spec"]["containers"][0].get("args", []):
            self.skipTest("no scheduler with --gangs is deployed")
        if not suite.World.programs.on_node:
            self.skipTest("this machine is not the node (E2E_HOST=1), so no process of a pod can be killed")
        self.n = min(MEMBERS_MAX, suite.allocatable(kube.MEM) // 2)

    def gang(self, name):
        """What the leader says of it; {} while no replica leads."""
        done = kube.kubectl("get", "--raw", f"/api/v1/namespaces/{programs.SYSTEM}/pods/{self.holder()}:{programs.READS}"
                            "/proxy/gpushare-scheduler/gangs", check=False)
        if done.returncode:
            return {}
        return next((g for g in json.loads(done.stdout) if (g["namespace"], g["name"]) == (kube.NAMESPACE, name)), {})

    def holder(self):
        """The pod that holds the Lease."""
        lease = kube.get("lease", "aliquot-scheduler", namespace=programs.SYSTEM)
        return lease["spec"].get("holderIdentity", "").split("_")[0]

    def kill_leader(self, program):
        leader = self.holder()
        self.assertTrue(programs.kill_each(churn_test.processes_of(leader, program)), f"no process of {leader} is on this machine")

    def members(self, name):
        labels = {f"{GROUP}/name": name, f"{GROUP}/min-available": str(self.n)}
        return [pod(f"{name}-{i}", container("main", 1), labels=labels) for i in range(self.n)]

    def bound(self, name):
        return [p for p in kube.get("pods", selector=f"{GROUP}/name={name}") if p["spec"].get("nodeName")]

    def try_create(self, p):
        """The webhook may be away for a moment after a kill."""
        done = kube.kubectl("create", "-f", "-", "-n", kube.NAMESPACE, stdin=json.dumps(p), check=False)
        return done.returncode == 0 or "AlreadyExists" in done.stderr

    def kill_in(self, program, name, there):
        seen = kube.until(lambda: f"{name}: {self.gang(name)}", lambda: (lambda g: g if there(g) else None)(self.gang(name)), every=0.05)
        self.kill_leader(program)
        print(f"{name}: {program} killed while {seen['state']}, {seen['ready']} ready, {seen['bound']} bound", flush=True)
        return {p["metadata"]["uid"] for p in self.pods()}

    def all_run(self, name, uids):
        """All members, and none of them was made again."""
        kube.until(lambda: f"{name}: {len(self.bound(name))} of {self.n} bound: {self.gang(name)}", lambda: len(self.bound(name)) == self.n, 240)
        self.wait_settled([p["metadata"]["name"] for p in self.members(name)], 180)
        self.assertLessEqual(uids, {p["metadata"]["uid"] for p in self.pods()})
        kube.until(lambda: f"{name}: {self.gang(name)}", lambda: self.gang(name).get("state") == "satisfied")
        self.audit()

    def killed_while_gated(self, program):
        members = self.members("gated")
        kube.create(*members[1:])
        uids = self.kill_in(program, "gated", lambda g: g.get("state") == "waiting" and g["ready"] == self.n - 1)
        self.assertEqual(self.bound("gated"), [])
        kube.until("the last member is not created", lambda: self.try_create(members[0]))
        self.all_run("gated", uids)

    def killed_while_assembling(self, program):
        """kube-scheduler stands still, so the gates go and nothing is placed."""
        frozen = churn_test.processes_of("aliquot-scheduler", "kube-scheduler")
        self.addCleanup(send, frozen, signal.SIGCONT)
        send(frozen, signal.SIGSTOP)
        kube.create(*self.members("woken"))
        uids = self.kill_in(program, "woken", lambda g: g.get("state") == "assembling")
        self.assertEqual(self.bound("woken"), [])
        send(frozen, signal.SIGCONT)
        self.all_run("woken", uids)

    def test_the_leader_is_killed_while_gated(self):
        self.killed_while_gated("aliquot")

    def test_the_leader_is_killed_while_assembling(self):
        self.killed_while_assembling("aliquot")

    def test_kube_scheduler_is_killed_while_gated(self):
        self.killed_while_gated("kube-scheduler")

    def test_kube_scheduler_is_killed_while_assembling(self):
        self.killed_while_assembling("kube-scheduler")
