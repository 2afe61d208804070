# SPDX-License-Identifier: Apache-2.0
"""Pods with memory and compute come and go for minutes, while every program of the cluster is
killed. Once a minute everything pauses for the audit: no allocation may be wrong, and none may
be left at the end.

It runs for E2E_CHURN_SECONDS (600 is the intended value), and is skipped without that variable."""

import collections
import os
import random
import shlex
import subprocess
import time
import unittest

import kube
import programs
import suite
from kube import container, pod

SECONDS = int(os.environ.get("E2E_CHURN_SECONDS", "0"))
PODS = int(os.environ.get("E2E_CHURN_PODS", "300"))
SEED = int(os.environ.get("E2E_SEED", "1"))
LIVE = 26            # pods that exist at a time
AUDITED = 20         # running containers that an audit must count to be complete
FULL_AUDITS = 5
RESTARTS = {"kubelet": os.environ.get("E2E_RESTART_KUBELET"), "apiserver": os.environ.get("E2E_RESTART_APISERVER")}


def shape(rng, name):
    """A pod with containers that ask for memory and for a percentage of one card."""
    mem, core = rng.randint(1, 2), 5 * rng.randint(1, 3)
    kind = rng.choice(("one", "one", "one", "pair", "pair", "init", "side", "ends"))
    if kind == "pair":
        return pod(name, container("main", mem, core), container("second", 1, 5))
    if kind == "init":
        return pod(name, container("main", mem, core), init=[container("init", mem, core, script=kube.REPORT)])
    if kind == "side":
        return pod(name, container("main", mem, core), init=[container("side", 1, 5, restartPolicy="Always")])
    if kind == "ends":
        return pod(name, container("main", mem, core, script=kube.REPORT))
    return pod(name, container("main", mem, core))


def running_containers(pods):
    return sum("running" in s["state"] for p in pods for s in
               p["status"].get("initContainerStatuses", []) + p["status"].get("containerStatuses", []))


def processes_of(name, program):
    """Processes of a program (aliquot, kube-scheduler) on this machine, in pods of our schedulers whose name begins so."""
    uids = [p["metadata"]["uid"] for p in kube.get("pods", namespace=programs.SYSTEM)
            if p["metadata"]["name"].startswith(name)]
    return [pid for pid in programs.pids() for uid in uids
            if (uid in programs.cgroup_of(pid) or uid.replace("-", "_") in programs.cgroup_of(pid))
            and programs.proc(pid, "comm").strip() == program]


@unittest.skipUnless(SECONDS > 0, "E2E_CHURN_SECONDS is not given; 600 is meant")
class Churn(suite.Scenario):
    mode = "core_mem"

    def setUp(self):
        super().setUp()
        self.rng = random.Random(SEED)
        self.made, self.stood_in = 0, []
        self.killed, self.refused, self.audits = collections.Counter(), collections.Counter(), []
        self.kills = [("agent", suite.World.programs.kill_agent),
                      ("all of the agent", suite.World.programs.kill_all_of_agent)]
        if suite.World.programs.on_node and not isinstance(suite.World.programs, programs.Host):
            for program in "aliquot", "kube-scheduler":
                self.kills.append((program, lambda p=program: programs.kill_each(processes_of("aliquot-scheduler", p)[:1])))
        for name, command in RESTARTS.items():
            if command:
                self.kills.append((name, lambda c=command: subprocess.run(shlex.split(c), check=True, capture_output=True,
                                                                          timeout=120)))

    # ---- steps ----

    def create(self):
        self.made += 1
        obj = shape(self.rng, f"c{self.made}")
        kube.until(f"pod c{self.made} is not created", lambda: self.try_create(obj), 120, every=1)

    @staticmethod
    def try_create(obj):
        try:
            kube.create(obj)
        except kube.KubectlError as error:
            # the API server or the webhook may be unavailable for a moment
            return "AlreadyExists" in str(error)
        return True

    def delete(self, name):
        how = self.rng.choice((["--grace-period=1"], ["--grace-period=0", "--force"], []))
        kube.kubectl("delete", "pod", name, "-n", kube.NAMESPACE, "--wait=false", "--ignore-not-found", *how, check=False)

    def bury(self, pods):
        """Deletes pods that have ended. Refusals by the kubelet while the agent was away are
        counted by reason."""
        for p in pods:
            if p["status"].get("phase") == "Failed" and p["status"].get("reason"):
                self.refused[p["status"]["reason"] + ": " + p["status"].get("message", "")[:60]] += 1
            if p["status"].get("phase") in ("Succeeded", "Failed"):
                kube.kubectl("delete", "pod", p["metadata"]["name"], "-n", kube.NAMESPACE, "--wait=false",
                             "--ignore-not-found", check=False)

    def kill(self):
        name, kill = self.rng.choice(self.kills)
        try:
            kill()
        except AssertionError:
            return  # still down since the last kill, in the kubelet's back-off
        self.killed[name] += 1

    # ---- the audit of each minute ----

    def reached(self):
        """The pods, once the API server answers."""
        try:
            return self.pods()
        except (kube.KubectlError, subprocess.TimeoutExpired):
            return None

    def drop_unbound(self, pods):
        """A pod that is unschedulable now may be bound during an audit, so it is deleted first.
        True: some pods are not bound."""
        unbound = [p for p in pods if not p["spec"].get("nodeName")]
        refused = [p["metadata"]["name"] for p in unbound for c in p["status"].get("conditions", [])
                   if c["type"] == "PodScheduled" and c["status"] == "False"]
        if refused:
            kube.kubectl("delete", "pod", "-n", kube.NAMESPACE, "--wait=false", "--ignore-not-found", *refused, check=False)
        return bool(unbound)

    def pause(self):
        """Creates, deletes and kills nothing until every pod is bound and has settled."""
        found = []

        def settled():
            pods = self.reached()
            if pods is None:
                return False
            self.bury(pods)
            found[:] = pods
            return not self.drop_unbound(pods) and all(
                kube.settled(p) and not p["metadata"].get("deletionTimestamp") and
                p["status"].get("phase") not in ("Succeeded", "Failed") for p in found)
        programs.wait_offered(suite.World.node)
        kube.until(lambda: "bound pods have not settled:\n" + "\n".join(
            kube.describe(p) for p in found if not kube.settled(p)), settled, 180, every=1)
        return running_containers(found)

    def minute(self):
        running = self.pause()
        while running < AUDITED and self.made < PODS * 2:
            for _ in range(4):
                self.create()
            before, running = running, self.pause()
            if running <= before and running >= LIVE:
                break
        found = self.audit()
        self.stood_in += [f"{a.name}/{name}" for a in found.values() for name in a.stood_in]
        self.audits.append(running)
        print(f"audit {len(self.audits)}: {running} running containers, {self.made} pods made, kills {dict(self.killed)}",
              flush=True)

    # ---- the whole ----

    def test_ten_minutes(self):
        end = time.monotonic() + SECONDS
        rest, next_audit = SECONDS / PODS, time.monotonic() + 60
        next_kill = time.monotonic() + 15
        while time.monotonic() < end or self.made < PODS or len(self.audits) < FULL_AUDITS:
            pods = self.reached() or []
            self.bury(pods)
            alive = [p for p in pods if not p["metadata"].get("deletionTimestamp")]
            if len(alive) >= LIVE:
                self.delete(self.rng.choice(alive)["metadata"]["name"])
            self.create()
            if time.monotonic() > next_kill:
                self.kill()
                next_kill = time.monotonic() + 15
            if time.monotonic() > next_audit:
                self.minute()
                next_audit = time.monotonic() + 60
                next_kill = time.monotonic() + 10
            time.sleep(rest * self.rng.random())  # the rate of creation, not a wait for something
        self.minute()
        full = [n for n in self.audits if n >= AUDITED]
        print(f"{self.made} pods, kills {dict(self.killed)}, audits with {self.audits} running containers, refused by the "
              f"kubelet {dict(self.refused)}, init containers that passed for a later one {sorted(set(self.stood_in))}", flush=True)
        self.assertGreaterEqual(len(full), FULL_AUDITS, f"audits with {AUDITED} running containers: {self.audits}")
        self.leaves_nothing()

    def leaves_nothing(self):
        kube.kubectl("delete", "pod", "--all", "-n", kube.NAMESPACE, "--wait=true", timeout=150)
        self.empty()

        def held():
            return kube.get("node", suite.World.node)["metadata"]["annotations"].get("aliquot.dev/held-slices", "[]")
        kube.until(lambda: f"slices are held after the last pod: {held()}", lambda: held() in ("", "[]"))
