# SPDX-License-Identifier: Apache-2.0
"""Slices that grow beyond the limits of their pods. The deployment needs the component grow-beyond-limits
(E2E_COMPONENTS=../grow-beyond-limits)."""

import json
import os
import shlex
import subprocess

import audit
import faults_test
import kube
import programs
import suite
from kube import container, pod

SWITCH = "--grow-beyond-limits"
MEM, CORE, STATUS = "aliquot.dev/gpu-mem", "aliquot.dev/gpu-core", "aliquot.dev/resize-status"
ENTRIES = "aliquot.dev/grown-slices"
LIMITS = (f"od -An -tu8 -j{kube.layout.LIMIT} -N8 /.aliquot/slice/0/limits; "
          f"od -An -tu4 -j{kube.layout.CORE_PERCENT} -N4 /.aliquot/slice/0/limits")


def arguments(kind, name):
    found = kube.get(kind, name, namespace=programs.SYSTEM)
    return found["spec"]["template"]["spec"]["containers"][0].get("args", []) if found else []


class Growth(suite.Scenario):
    mode = "core_mem"

    def setUp(self):
        super().setUp()
        if not all(SWITCH in arguments(*of) for of in (("deployment", "aliquot-scheduler"), ("daemonset", programs.DAEMONSET))):
            self.skipTest(f"the deployed scheduler and agent have no {SWITCH}")
        kube.until("the agent does not say that slices may grow", lambda: self.node_note() is not None)
        self.card = audit.cards_of(kube.get("node", suite.World.node))[0]
        self.units = self.card["units"]
        walls = [pod(f"wall-{i}", container("main", self.units, 100)) for i in range(suite.card_count() - 1)]
        if walls:  # so that all other pods share one card
            self.run_pods(*walls)

    # ---- what is seen ----

    def node_note(self):
        return kube.get("node", suite.World.node)["metadata"]["annotations"].get(ENTRIES)

    def entries(self):
        """What is charged above the limits: (uid, container) -> (units, percent)."""
        return {(e["uid"], e["container"]): (e["mem"], e["core"]) for e in json.loads(self.node_note())["slices"]}

    def uid(self, name):
        return self.pod(name)["metadata"]["uid"]

    def sees(self, name):
        """Units and percent by the page that the running container has."""
        text = kube.kubectl("exec", "-n", kube.NAMESPACE, name, "--", "sh", "-c", LIMITS).split()
        return (int(text[0]) >> 20, int(text[1]))

    def mib(self, units):
        return self.card["mib"] * units // self.units

    def used(self, name):
        """The units of the card that the scheduler counts, where this pod is."""
        card = next(iter(self.grant(name)[0]))
        return next(d["usedGPU"] for d in self.ledger()["devs"] if d["id"] == card)

    def status(self, name):
        return self.pod(name)["metadata"]["annotations"].get(STATUS)

    # ---- what is done ----

    def ask(self, name, mem=None, core=None):
        notes = [f"{key}={value}" if value is not None else f"{key}-" for key, value in ((MEM, mem), (CORE, core))]
        kube.kubectl("annotate", "pod", "-n", kube.NAMESPACE, name, *notes, "--overwrite")

    def wait_size(self, name, units, core, status):
        kube.until(lambda: f"{name} sees {self.sees(name)}, {self.status(name)}, {self.node_note()}",
                   lambda: self.sees(name) == (self.mib(units), core) and self.status(name) == status)

    def wait_used(self, name, units):
        kube.until(lambda: f"the ledger: {self.ledger()}", lambda: self.used(name) == units)

    def one_has_grown(self):
        """Pod "a" of 4 units has 9, pod "b" 3, on one card."""
        self.run_pods(pod("a", container("main", 4, 30)), pod("b", container("main", 3, 10)))
        self.audit()
        self.ask("a", mem=9, core=50)
        self.wait_grown()
        return faults_test.fingerprint(self.pods())

    def wait_grown(self):
        self.wait_size("a", 9, 50, "in force: container 0: gpu-mem 9 of 4, gpu-core 50 of 30")
        self.wait_used("a", 12)
        self.assertEqual(self.entries(), {(self.uid("a"), 0): (5, 20)})
        self.assertEqual(self.sees("b"), (self.mib(3), 10))

    def assert_as_before(self, before):
        self.assertEqual(faults_test.fingerprint([p for p in self.pods() if p["metadata"]["name"] in before]), before)

    def shrink(self):
        self.ask("a")
        self.wait_size("a", 4, 30, None)
        kube.until(self.node_note, lambda: self.entries() == {})

    def waits(self, name, units):
        """The pod needs what the other has above its limit, and an Event says what each card has."""
        kube.create(pod(name, container("main", units, 10)))
        text = f"no card has {units} GiB of gpu-mem"
        kube.until(lambda: kube.describe(self.pod(name)),
                   lambda: any(text in e["message"] for e in self.events(name, "FailedScheduling")))
        self.assertIsNone(self.pod(name)["spec"].get("nodeName"))

    # ---- tests ----

    def test_it_grows_and_shrinks(self):
        before = self.one_has_grown()
        self.waits("late", self.units - 7)
        self.shrink()
        self.wait_settled(["late"])
        self.assert_as_before(before)
        self.audit()

    def test_without_room(self):
        self.run_pods(pod("a", container("main", 4, 30)), pod("b", container("main", self.units - 6, 10)))
        before = faults_test.fingerprint([self.pod("a")])
        self.ask("a", mem=9)
        text = "has 2 of gpu-mem free, 5 more are needed: 3 are missing"
        kube.until(lambda: self.events("a"), lambda: any(text in e["message"] for e in self.events("a", "GPUGrowthRefused")))
        self.assertEqual(self.sees("a"), (self.mib(4), 30))
        self.assertEqual(self.entries(), {})
        kube.kubectl("delete", "pod", "-n", kube.NAMESPACE, "b", "--wait=true")
        self.wait_size("a", 9, 30, "in force: container 0: gpu-mem 9 of 4, gpu-core 30 of 30")
        self.assert_as_before(before)

    def test_a_quota(self):
        self.run_pods(pod("a", container("main", 4, 30)))
        kube.create({"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "team"},
                     "spec": {"hard": {f"requests.{kube.MEM}": str(100 * self.units)}}})
        self.addCleanup(kube.kubectl, "delete", "resourcequota", "team", "-n", kube.NAMESPACE, "--ignore-not-found")
        self.ask("a", mem=9)
        kube.until(lambda: self.events("a"), lambda: any('quota "team"' in e["message"] for e in self.events("a", "GPUGrowthRefused")))
        self.assertEqual(self.sees("a"), (self.mib(4), 30))
        kube.kubectl("delete", "resourcequota", "team", "-n", kube.NAMESPACE)
        self.wait_size("a", 9, 30, "in force: container 0: gpu-mem 9 of 4, gpu-core 30 of 30")

    def test_deleted_while_grown(self):
        self.one_has_grown()
        self.waits("late", self.units - 7)
        kube.kubectl("delete", "pod", "-n", kube.NAMESPACE, "a", "--wait=true")
        self.wait_settled(["late"])
        kube.until(self.node_note, lambda: self.entries() == {})
        self.audit()

    def test_deleted_by_force_while_grown(self):
        """Its process lives for some seconds without the pod's object, and keeps what it has."""
        main = container("main", 4, 30, script=f"{kube.REPORT}; trap 'sleep 5; exit 0' TERM; sleep 1000000 & wait")
        self.run_pods(pod("a", main, grace=20), pod("b", container("main", 3, 10)))
        self.ask("a", mem=9, core=50)
        self.wait_grown()
        self.waits("late", self.units - 7)
        kube.kubectl("delete", "pod", "-n", kube.NAMESPACE, "a", "--grace-period=0", "--force")
        self.wait_settled(["late"])
        self.assertEqual(self.refusals(self.pods()), [])
        kube.until(self.node_note, lambda: self.entries() == {})
        self.audit()

    def test_a_container_that_starts_again(self):
        self.run_pods(pod("a", container("main", 4, 30), restart="Always"), pod("b", container("main", 3, 10)))
        self.ask("a", mem=9, core=50)
        self.wait_grown()
        kube.kubectl("exec", "-n", kube.NAMESPACE, "a", "--", "sh", "-c", "kill 1", check=False)

        def runs_again():
            status = self.pod("a")["status"]["containerStatuses"][0]
            return status["restartCount"] == 1 and "running" in status["state"]
        kube.until(lambda: kube.describe(self.pod("a")), runs_again)
        self.wait_grown()

    def agent_again(self, how):
        """The annotation of the node tells no restart, so a new pod shows that the agent is there."""
        how()
        programs.wait_offered(suite.World.node)

        def next_runs():
            found = self.run_pods(pod("next", container("main", 1, 5)))["next"]
            kube.kubectl("delete", "pod", "next", "-n", kube.NAMESPACE, "--wait=true")
            return found["status"]["phase"] == "Running"
        kube.until("the agent does not come back", next_runs)

    def scheduler_again(self):
        kube.kubectl("delete", "pod", "-n", programs.SYSTEM, "-l", "app.kubernetes.io/component=scheduler", "--grace-period=0", "--force")
        kube.kubectl("rollout", "status", "deployment/aliquot-scheduler", "-n", programs.SYSTEM, "--timeout=120s", timeout=150)

    def stays_grown(self, restart):
        before = self.one_has_grown()
        restart()
        self.wait_grown()
        self.assert_as_before(before)
        self.waits("late", self.units - 7)
        self.shrink()
        self.wait_settled(["late"])
        self.assert_as_before(before)
        self.audit()

    def test_the_agent_is_killed(self):
        self.stays_grown(lambda: self.agent_again(suite.World.programs.kill_agent))

    def test_the_agent_is_upgraded(self):
        self.stays_grown(lambda: self.agent_again(suite.World.programs.restart_agent))

    def test_all_schedulers_are_killed(self):
        self.stays_grown(self.scheduler_again)

    def test_the_kubelet_starts_again(self):
        command = os.environ.get("E2E_RESTART_KUBELET")
        if not command:
            self.skipTest("E2E_RESTART_KUBELET, a command that restarts the node's kubelet, is not given")
        self.stays_grown(lambda: self.agent_again(lambda: subprocess.run(shlex.split(command), check=True, capture_output=True, timeout=120)))

    def test_killed_while_it_grows(self):
        """Each program is killed right after the wish is written, and the wish comes into force."""
        self.run_pods(pod("a", container("main", 4, 30)), pod("b", container("main", 3, 10)))
        before = faults_test.fingerprint(self.pods())
        for kill in suite.World.programs.kill_agent, suite.World.programs.kill_all_of_agent, self.scheduler_again:
            self.ask("a", mem=9, core=50)
            kill()
            self.wait_grown()
            self.ask("a")
            kill()
            self.wait_size("a", 4, 30, None)
            kube.until(self.node_note, lambda: self.entries() == {})
            self.wait_used("a", 7)
        programs.wait_offered(suite.World.node)
        self.assert_as_before(before)
        self.audit()
