# SPDX-License-Identifier: Apache-2.0
"""Faults of real nodes: killed agents, restarted kubelets, processes that outlive their pod."""

import collections
import json
import os
import random
import shlex
import subprocess
import time

import audit
import bursts_test
import kube
import programs
import suite
from kube import container, pod

KILLS = int(os.environ.get("E2E_KILLS", "5"))


AWAY, CUT = "no plugin", "call cut"


def reason_of(p):
    """Why the kubelet refused a pod: its plugin was away or ended during a call. Otherwise the
    kubelet's own reason. Canceled is the kubelet's: it reads the end of the stream and closes
    the connection below the waiting call."""
    text = p["status"].get("message", "")
    if "no healthy devices present" in text:
        return AWAY
    return CUT if "code = Unavailable" in text or "client connection is closing" in text else text


def fingerprint(pods):
    """What must not change for a pod that is left alone."""
    return {p["metadata"]["name"]: [(s["containerID"], s["restartCount"], s["state"]) for s in p["status"].get(
        "containerStatuses", [])] for p in pods}


class Agent(suite.Scenario):
    def some(self, n=4):
        self.run_pods(*[pod(f"keep-{i}", container("main", 2)) for i in range(n)])
        self.audit()
        return fingerprint(self.pods())

    def after(self, before, gap=False):
        """Earlier pods are unchanged, and new ones start as if nothing had happened. gap: the end
        of the agent's absence is not visible (the node's resources lag behind), so the kubelet
        may refuse pods until then."""
        programs.wait_offered(suite.World.node)
        refused = 0

        def next_runs():
            nonlocal refused
            found = self.run_pods(pod("next", container("main", 3)))["next"]
            if found["status"]["phase"] == "Running":
                return True
            self.assertTrue(gap and "no healthy devices" in found["status"].get("message", ""), kube.describe(found))
            refused += 1
            kube.kubectl("delete", "pod", "next", "-n", kube.NAMESPACE, "--wait=true")
            return False
        kube.until("the agent does not come back", next_runs)
        self.assertEqual({n: f for n, f in fingerprint(self.pods()).items() if n in before}, before)
        self.audit()
        return refused

    def test_killed(self):
        before = self.some()
        suite.World.programs.kill_agent()
        print(f"{self.after(before, gap=True)} pods refused in the gap", flush=True)

    def test_all_of_it_killed(self):
        before = self.some()
        suite.World.programs.kill_all_of_agent()
        print(f"{self.after(before, gap=True)} pods refused in the gap", flush=True)

    def test_upgraded(self):
        before = self.some()
        suite.World.programs.restart_agent()
        self.after(before)

    def test_killed_in_a_burst(self):
        """During the gap the kubelet refuses pods for good; these are counted. The claim is: no
        wrong card, and no pod lost."""
        rng = random.Random(bursts_test.SEED)
        refused = total = 0
        gaps, why = [], collections.Counter()
        for turn in range(KILLS):
            pods = bursts_test.mixed(rng, f"k{turn}", suite.allocatable(kube.MEM))
            kube.create(*pods)
            kube.until("not one pod is bound", lambda: any(p["spec"].get("nodeName") for p in self.pods()))
            time.sleep(rng.random())  # the random moment of the kill, not a wait for something
            at = suite.World.programs.kill_agent()
            found = self.wait_settled([p["metadata"]["name"] for p in pods], 240)
            turned_away = self.refusals(found.values())
            why.update(reason_of(p) for p in found.values() if p["status"].get("reason"))
            gaps += suite.World.programs.registered_after(at)
            self.assertLess(len(turned_away), len(pods), "all of a burst were refused: the gap is no gap")
            refused, total = refused + len(turned_away), total + len(pods)
            for p in found.values():
                if p["status"].get("phase") == "Failed":
                    kube.kubectl("delete", "pod", p["metadata"]["name"], "-n", kube.NAMESPACE, "--wait=true")
            self.audit()
            kube.kubectl("delete", "pod", "--all", "-n", kube.NAMESPACE, "--wait=true", timeout=150)
            self.empty()
            programs.wait_offered(suite.World.node)
        print(f"agent {suite.World.programs.killed} {KILLS} times: {refused} of {total} pods refused by the kubelet {dict(why)}; from kill to both resources "
              f"registered: {', '.join(f'{1000 * g:.0f} ms' for g in gaps) or 'not known here'}", flush=True)
        self.assertLessEqual(set(why), {AWAY, CUT}, "refused for another reason than that the agent was away")


class Kubelet(suite.Scenario):
    def setUp(self):
        super().setUp()
        self.command = os.environ.get("E2E_RESTART_KUBELET")
        if not self.command:
            self.skipTest("E2E_RESTART_KUBELET, a command that restarts the node's kubelet, is not given")

    def restart(self):
        subprocess.run(shlex.split(self.command), check=True, capture_output=True, timeout=120)

        def ready():
            conditions = kube.get("node", suite.World.node)["status"]["conditions"]
            return any(c["type"] == "Ready" and c["status"] == "True" for c in conditions)
        kube.until("the node is not Ready", ready)
        programs.wait_offered(suite.World.node)

    def test_running_pods_stay(self):
        self.run_pods(pod("pair", container("a", 2), container("b", 3)), pod("one", container("main", 4)))
        before = fingerprint(self.pods())
        self.restart()
        self.assertEqual(fingerprint(self.pods()), before)
        self.run_pods(pod("next", container("main", 3)))
        self.audit()

    def test_in_a_burst(self):
        pods = bursts_test.mixed(random.Random(bursts_test.SEED), "r", suite.allocatable(kube.MEM))
        kube.create(*pods)
        kube.until("not one pod is bound", lambda: any(p["spec"].get("nodeName") for p in self.pods()))
        self.restart()
        found = self.wait_settled([p["metadata"]["name"] for p in pods], 240)
        refused = self.refusals(found.values())
        print(f"kubelet restarted in a burst: {len(refused)} of {len(pods)} pods refused by it", flush=True)
        for p in found.values():
            if p["status"].get("phase") == "Failed":
                kube.kubectl("delete", "pod", p["metadata"]["name"], "-n", kube.NAMESPACE, "--wait=true")
        self.audit()


# Prints which container holds the lock; the other container holds it as long as one of its
# processes lives.
LOCK = "exec 9>/lock/held; command -v flock >/dev/null && {{ flock -n 9 && echo ALIYUN_COM_TEST=alone || echo " \
       "ALIYUN_COM_TEST=beside; }} || echo ALIYUN_COM_TEST=no-flock; " + kube.REPORT + "; {rest}"
LEAVE = "trap 'exit 0' TERM; sleep 1000000 & wait"


class Outliving(suite.Scenario):
    """The old process outlives its pod object: its slice is not free before the process has ended.
    """

    def setUp(self):
        super().setUp()
        self.units = audit.cards_of(kube.get("node", suite.World.node))[0]["units"]
        walls = [pod(f"wall-{i}", container("main", self.units)) for i in range(suite.card_count() - 1)]
        if walls:  # so that the next pod must go to the old one's card
            self.run_pods(*walls)

    def locker(self, name, rest, grace, units=None):
        """A pod that holds a lock of the node's file system as long as one of its processes lives.
        """
        mount = [{"name": "lock", "mountPath": "/lock"}]
        main = container("main", units or self.units, script=LOCK.format(rest=rest), volumeMounts=mount)
        volume = {"name": "lock", "hostPath": {"path": f"/var/tmp/{kube.RUN}", "type": "DirectoryOrCreate"}}
        return pod(name, main, grace=grace, volumes=[volume])

    def alone(self, name):
        """Whether the container found the lock free. Without flock in the image this is not known.
        """
        found = self.env(name)["ALIYUN_COM_TEST"]
        if found == "no-flock":
            self.skipTest(f"the image {kube.IMAGE} (E2E_IMAGE) has no flock")
        self.assertEqual(found, "alone")

    def test_the_lock_tells(self):
        """The control of the other tests: a container that runs beside a living holder reports it.
        """
        self.run_pods(self.locker("first", LEAVE, 1, units=2))
        self.alone("first")
        self.run_pods(self.locker("second", LEAVE, 1, units=2))
        self.assertEqual(self.env("second")["ALIYUN_COM_TEST"], "beside")

    def replaced(self, rest, *how):
        self.run_pods(self.locker("old", rest, 20))
        self.alone("old")
        kube.create(self.locker("new", LEAVE, 1))
        kube.until("the new pod does not find the node full", lambda: self.events("new", "FailedScheduling"))
        kube.kubectl("delete", "pod", "old", "-n", kube.NAMESPACE, "--wait=false", *how)
        found = self.wait_settled(["new"], 180)
        self.assertEqual(self.refusals(found.values()), [])
        self.assertEqual(self.env("new")["ALIYUN_COM_TEST"], "alone", "it runs beside the process that holds its slice")
        self.audit()

    def test_deleted_by_force(self):
        """The object disappears at once; the process stays until the kubelet kills it."""
        self.replaced("trap '' TERM; while :; do sleep 1; done", "--grace-period=0", "--force")
        kube.until("held-slices is not taken back", lambda: not json.loads(kube.get("node", suite.World.node)["metadata"][
            "annotations"].get("aliquot.dev/held-slices", "[]")))

    def test_deleted_with_grace(self):
        self.replaced("trap 'sleep 3; exit 0' TERM; sleep 1000000 & wait")
