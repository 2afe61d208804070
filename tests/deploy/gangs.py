#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Gangs on the API server that KUBECONFIG names (rights on namespaces, nodes, pods and events).

Node objects without a kubelet are created. A kube-scheduler (KUBE_SCHEDULER names the program; the version of the API server) is started with
`aliquot scheduler --gangs` (ALIQUOT) as its extender, as deploy/ puts them beside each other. The gates that
the webhook would put on stand in the manifests. STOP_API and START_API are commands that end the API server at once and start it again; without
them that test is skipped. Nodes, pods and the namespace go away in the end. Exit status 77: something is missing, and is named."""

import collections
import http.client
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../..")
sys.path.insert(0, os.path.join(ROOT, "tests/fake"))

from api import Api, ApiError  # noqa: E402
from ports import free_port  # noqa: E402

KUBECTL = os.environ.get("KUBECTL", "kubectl")
KUBE_SCHEDULER = os.environ.get("KUBE_SCHEDULER", "kube-scheduler")
ALIQUOT = os.environ.get("ALIQUOT", os.path.join(ROOT, "build/aliquot"))
NAME = "aliquot-gang-test"
PROFILE = "ack-co-scheduler"  # no other profile is known before kube-scheduler asks about a pod of it, and pods wait behind a gate here
FURTHER = "further"  # its pods get no gate
MEM, COUNT = "aliyun.com/gpu-mem", "aliyun.com/gpu-count"
GROUP = "pod-group.scheduling.sigs.k8s.io"
GATE = "aliquot.dev/gang"
NODES, CARDS, UNITS = 4, 2, 16
LARGE = 200


def until(what, predicate, seconds=120, every=0.1):
    end = time.monotonic() + seconds
    while True:
        found = predicate()
        if found:
            return found
        if time.monotonic() > end:
            raise AssertionError(f"not within {seconds} s: {what() if callable(what) else what}")
        time.sleep(every)


def node(name, cards=CARDS, cpu="8", group="small"):
    offer = {"cpu": cpu, "memory": "256Gi", "pods": "500", MEM: str(UNITS * cards), COUNT: str(cards)}
    return {"apiVersion": "v1", "kind": "Node",
            "metadata": {"name": name, "labels": {NAME: group, "kubernetes.io/hostname": name, "ack.node.gpu.schedule": "cgpu"}},
            "status": {"capacity": offer, "allocatable": offer, "conditions": [{"type": "Ready", "status": "True", "reason": "Test"}]}}


def member(name, gang, least, mem=None, cpu="100m", gate=True, group="small", priority=None, scheduler=PROFILE):
    limits = {MEM: str(mem)} if mem else {}
    pod = {"apiVersion": "v1", "kind": "Pod",
           "metadata": {"name": name, "namespace": NAME, "labels": {GROUP + "/name": gang, GROUP + "/min-available": str(least)} if gang else {}},
           "spec": {"schedulerName": scheduler, "terminationGracePeriodSeconds": 0, "automountServiceAccountToken": False,
                    "tolerations": [{"operator": "Exists"}], "nodeSelector": {NAME: group},
                    "containers": [{"name": "main", "image": "none", "resources": {"limits": limits, "requests": {"cpu": cpu}}}]}}
    if gate and gang:
        pod["spec"]["schedulingGates"] = [{"name": GATE}]
    return pod


class Programs:
    """The API through kubectl proxy, aliquot scheduler, and kube-scheduler."""

    def __init__(self):
        self.folder = tempfile.TemporaryDirectory()
        self.port, self.proxy_port = free_port(), free_port()
        self.running = {}

    def start(self, name, *command):
        with open(self.path(name), "a") as log:
            self.running[name] = subprocess.Popen(command, stdout=log, stderr=subprocess.STDOUT)

    def path(self, name):
        return os.path.join(self.folder.name, name + ".log")

    def start_aliquot(self):
        self.start("aliquot", ALIQUOT, "scheduler", "--kubeconfig", os.environ["KUBECONFIG"], "--no-leader-election", "--gangs",
                   "-v", "--listen", f"127.0.0.1:{self.port}")

    def start_kube_scheduler(self):
        self.start("kube-scheduler", KUBE_SCHEDULER, "--config", self.config, "--secure-port=0", "--v=2")

    def up(self):
        self.start("proxy", KUBECTL, "proxy", f"--port={self.proxy_port}")
        self.api = Api(f"127.0.0.1:{self.proxy_port}")
        until("no proxy", self.answers)
        url = f"http://127.0.0.1:{self.port}/gpushare-scheduler"
        config = {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration",
                  "clientConnection": {"kubeconfig": os.environ["KUBECONFIG"], "qps": 200, "burst": 400}, "leaderElection": {"leaderElect": False},
                  "percentageOfNodesToScore": 100, "profiles": [{"schedulerName": PROFILE}, {"schedulerName": FURTHER}],
                  "extenders": [{"urlPrefix": url, "filterVerb": "filter", "prioritizeVerb": "prioritize", "preemptVerb": "preempt",
                                 "weight": 200, "nodeCacheCapable": True, "httpTimeout": "10s"},
                                {"urlPrefix": url, "bindVerb": "bind", "nodeCacheCapable": True, "httpTimeout": "40s"}]}
        self.config = os.path.join(self.folder.name, "config.json")
        with open(self.config, "w") as f:
            json.dump(config, f)
        self.start_aliquot()
        until("aliquot is not ready", lambda: self.ask("/readyz") == "ok\n")
        self.start_kube_scheduler()

    def answers(self):
        try:
            return self.api.get("/version")
        except (OSError, http.client.HTTPException, ApiError):
            return None

    def ask(self, path):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=10)
        try:
            connection.request("GET", "/gpushare-scheduler" + path)
            return connection.getresponse().read().decode()
        except OSError:
            return ""
        finally:
            connection.close()

    def kill(self, name):
        self.running[name].send_signal(signal.SIGKILL)
        self.running[name].wait()

    def down(self):
        for p in self.running.values():
            p.terminate()
        for p in self.running.values():
            p.wait()
        if os.environ.get("LOGS"):
            subprocess.run(["cp", "-r", self.folder.name + "/.", os.environ["LOGS"]], check=False)
        self.folder.cleanup()


class Gangs(unittest.TestCase):
    maxDiff = None

    @classmethod
    def setUpClass(cls):
        cls.programs = Programs()
        cls.addClassCleanup(cls.programs.down)
        cls.programs.up()
        cls.api = cls.programs.api
        cls.addClassCleanup(cls.clean)
        cls.clean()
        until("the namespace stays", cls.make_namespace)
        until("no service account", lambda: cls.found(f"/api/v1/namespaces/{NAME}/serviceaccounts/default"))
        for i in range(NODES):
            cls.api.post("/api/v1/nodes", node(f"gang-{i}"))
        for i in range(LARGE // 32 + 1):
            cls.api.post("/api/v1/nodes", node(f"gang-large-{i}", cards=8, cpu="64", group="large"))

    @classmethod
    def found(cls, path):
        try:
            return cls.api.get(path)
        except ApiError as e:
            if e.status != 404:
                raise
            return None

    @classmethod
    def make_namespace(cls):
        try:
            return cls.api.post("/api/v1/namespaces", {"metadata": {"name": NAME}})
        except ApiError:
            return None

    @classmethod
    def clean(cls):
        for n in cls.api.get(f"/api/v1/nodes?labelSelector={NAME}")["items"]:
            cls.api.delete("/api/v1/nodes/" + n["metadata"]["name"])
        if cls.found(f"/api/v1/namespaces/{NAME}"):
            cls.clear()
            cls.api.delete(f"/api/v1/namespaces/{NAME}")

    @classmethod
    def clear(cls):
        cls.api.call("DELETE", f"/api/v1/namespaces/{NAME}/pods", {"gracePeriodSeconds": 0})
        until("pods stay", lambda: not cls.pods())

    def tearDown(self):
        self.clear()

    @classmethod
    def pods(cls, gang=None):
        selector = f"?labelSelector={GROUP}/name%3D{gang}" if gang else ""
        return cls.api.get(f"/api/v1/namespaces/{NAME}/pods{selector}")["items"]

    def bound(self, gang=None):
        return [p["metadata"]["name"] for p in self.pods(gang) if p["spec"].get("nodeName")]

    def create(self, *pods):
        for p in pods:
            self.api.post(f"/api/v1/namespaces/{NAME}/pods", p)

    def delete(self, name):
        self.api.delete(f"/api/v1/namespaces/{NAME}/pods/{name}", grace=0)

    def gang(self, name):
        try:
            return next((g for g in json.loads(self.programs.ask("/gangs")) if g["name"] == name and g["namespace"] == NAME), {})
        except ValueError:
            return {}

    def wait_bound(self, gang, n, seconds=60):
        until(lambda: f"{gang}: {len(self.bound(gang))} of {n} bound; {self.gang(gang)}", lambda: len(self.bound(gang)) == n, seconds)

    def wait_state(self, gang, *states, seconds=60):
        return until(lambda: f"{gang}: {self.gang(gang)}", lambda: self.gang(gang).get("state") in states and self.gang(gang), seconds)

    def message(self, name):
        pod = self.api.get(f"/api/v1/namespaces/{NAME}/pods/{name}")
        return next((c.get("message", "") for c in pod["status"].get("conditions", []) if c["type"] == "PodScheduled"), "")

    def events(self, name, reason):
        path = f"/api/v1/namespaces/{NAME}/events?fieldSelector=involvedObject.name%3D{name},reason%3D{reason}"
        return [e["message"] for e in self.api.get(path)["items"]]

    def sums_are_zero(self):
        """Nothing is charged by a plan."""
        text = self.programs.ask("/metrics")
        used = [line for line in text.split("\n") if line.startswith("aliquot_scheduler_memory_used_bytes ")]
        return all(line.endswith(" 0") for line in used)

    # tests

    def test_members_with_and_without_gpu(self):
        self.create(*[member(f"worker-{i}", "mixed", 5, mem=8) for i in range(4)])
        until("no members", lambda: self.gang("mixed").get("ready") == 4)
        self.assertEqual("waiting", self.gang("mixed")["state"])
        self.assertEqual([], self.bound())
        self.create(member("ps", "mixed", 5))
        self.wait_bound("mixed", 5)
        self.wait_state("mixed", "satisfied")
        self.assertTrue(self.events("worker-0", "GangAssembling"))

    def test_without_gates_filter_refuses_until_all_are_there(self):
        self.create(*[member(f"open-{i}", "open", 3, mem=8, gate=False) for i in range(2)])
        until("no refusal", lambda: "gang open waits for members: 2 of 3" in self.message("open-0"))
        self.assertEqual([], self.bound())
        self.create(member("open-2", "open", 3, mem=8, gate=False))
        self.wait_bound("open", 3)

    def test_three_gangs_that_fit_one_at_a_time(self):
        gangs = ["one", "two", "three"]
        self.create(*[member(f"{g}-{i}", g, 6, mem=UNITS) for i in range(6) for g in gangs])
        left = set(gangs)
        while left:
            first = until(lambda: [self.gang(g) for g in gangs], lambda: next((g for g in left if len(self.bound(g)) == 6), None), 200)
            single = member(f"single-{first}", None, 1, mem=UNITS)
            self.create(single)  # single pods run in between
            until("the single pod waits", lambda: f"single-{first}" in self.bound())
            for g in left - {first}:
                self.assertEqual([], self.bound(g))
            self.delete(f"single-{first}")
            for i in range(6):
                self.delete(f"{first}-{i}")
            left.remove(first)

    def test_no_cpu_for_one_member(self):
        fillers = [member(f"filler-{i}", None, 1, cpu="7800m") for i in range(NODES)]
        self.create(*fillers)
        until("fillers wait", lambda: len(self.bound()) == NODES)
        self.create(*[member(f"thin-{i}", "thin", 3, mem=8, cpu="100m" if i else "1") for i in range(3)])
        self.wait_state("thin", "backoff")
        self.assertEqual([], self.bound("thin"))
        until("plans stay", self.sums_are_zero)
        until("no Event", lambda: self.events("thin-1", "GangWaiting"))
        until("no cpu reason", lambda: "Insufficient cpu" in self.message("thin-0"))
        self.delete("filler-0")
        self.wait_bound("thin", 3, 100)

    def test_too_large_for_the_cluster(self):
        n = NODES * CARDS + 1
        self.create(*[member(f"huge-{i}", "huge", n, mem=UNITS, gate=False) for i in range(n)])
        # The large nodes have room: so that the gang can never fit, the members may not use them.
        self.wait_state("huge", "backoff", "ready")
        until("no reason", lambda: "gang huge" in self.message("huge-0"))
        self.assertEqual([], self.bound())

    def test_another_profile(self):
        """Its members count once kube-scheduler has asked about one, also after a restart."""
        members = [member(f"further-{i}", "further", 3, mem=8, gate=False, scheduler=FURTHER) for i in range(3)]
        self.create(*members[:2])
        until(lambda: self.gang("further"), lambda: self.gang("further").get("ready") == 2)
        self.assertEqual([], self.bound("further"))
        self.programs.kill("aliquot")
        self.programs.start_aliquot()
        until("aliquot is not ready", lambda: self.programs.ask("/readyz") == "ok\n")
        self.create(members[2])
        self.wait_bound("further", 3)

    @staticmethod
    def large_members(name, n=LARGE):
        return [member(f"{name}-{i}", name, n, mem=4, cpu="10m", group="large") for i in range(n)]

    def large(self, name, n=LARGE):
        self.create(*self.large_members(name, n))
        return time.monotonic()

    def test_large(self):
        created = self.large("large")
        until(lambda: self.gang("large"), lambda: self.gang("large").get("bound") == LARGE, 100, 0.02)
        print(f"gang of {LARGE}: {time.monotonic() - created:.2f} s from the last member's creation to all bound", flush=True)
        self.assertEqual(LARGE, len(self.bound("large")))

    def kill_while_held(self, name, kill, n=LARGE):
        self.large(name, n)
        self.wait_held(name)
        kill()
        self.assertIn(len(self.bound(name)), (0, n))

    def wait_held(self, name):
        until(lambda: self.gang(name), lambda: self.gang(name).get("held", 0) > 10, 60, 0.005)

    # Each program is killed in each state of a gang. A state is a generator: it yields when the
    # gang is in that state, and goes on after the kill.

    def while_gated(self, name):
        """One member is missing. It comes while the program is away, or later where that is the API server."""
        self.create(*self.large_members(name)[1:])
        until(lambda: self.gang(name), lambda: self.gang(name).get("ready") == LARGE - 1)
        self.assertEqual("waiting", self.gang(name)["state"])
        yield
        until("no API server", self.programs.answers)
        self.assertEqual([], self.bound(name))
        self.create(self.large_members(name)[0])

    def while_woken(self, name):
        """kube-scheduler stands still, so the gates go and no member is planned."""
        kube_scheduler = self.programs.running["kube-scheduler"]
        kube_scheduler.send_signal(signal.SIGSTOP)
        try:
            self.large(name)
            self.wait_state(name, "assembling")
            self.assertEqual(0, self.gang(name)["held"])
            yield
        finally:
            kube_scheduler.send_signal(signal.SIGCONT)

    def while_planned(self, name):
        """From the first filter call on, the places of all members are charged."""
        self.large(name)
        until(lambda: self.gang(name), lambda: not self.sums_are_zero(), 60, 0.001)
        yield

    def while_held(self, name):
        self.large(name)
        self.wait_held(name)
        yield

    def while_bound_in_part(self, name):
        """All Bindings may be written between two looks. Then another gang is tried."""
        self.large(name)
        while until(lambda: self.gang(name), lambda: self.gang(name).get("bound"), 60, 0.001) == LARGE:
            self.clear()
            self.large(name)
        yield

    def check_gang(self, name, uids):
        """All members are bound; none was made again, and no card has more than it holds."""
        self.wait_bound(name, LARGE, 300)
        self.wait_state(name, "satisfied")
        pods = self.pods(name)
        self.assertEqual(uids | {p["metadata"]["uid"] for p in pods}, {p["metadata"]["uid"] for p in pods})
        given = collections.Counter()
        for p in pods:
            for card, units in json.loads(p["metadata"]["annotations"]["scheduler.framework.gpushare.allocation"])["0"].items():
                given[p["spec"]["nodeName"], card] += units
        self.assertEqual(4 * LARGE, sum(given.values()))
        self.assertLessEqual(max(given.values()), UNITS)

    def kill_in_each_state(self, what, kill):
        for state in self.while_gated, self.while_woken, self.while_planned, self.while_held, self.while_bound_in_part:
            name = f"{what}-{state.__name__.replace('_', '-')}"
            with self.subTest(name):
                killed = state(name)
                next(killed)
                seen = self.gang(name)
                uids = {p["metadata"]["uid"] for p in self.pods(name)}
                kill()
                for _ in killed:
                    self.fail("a state has one moment")
                until("no API server", self.programs.answers)
                at_once = len(self.bound(name))
                if state != self.while_bound_in_part and what != "outage":
                    self.assertIn(at_once, (0, LARGE))
                self.check_gang(name, uids)
                self.clear()
                until("something of the gang stays charged", self.sums_are_zero)
                print(f"{name}: killed with {seen.get('held')} held, {seen.get('bound')} bound; {at_once} bound soon after, {LARGE} in the end", flush=True)
            self.clear()

    def test_kill_of_aliquot(self):
        def kill():
            self.programs.kill("aliquot")
            self.programs.start_aliquot()
        self.kill_in_each_state("crash", kill)

    def test_kill_of_kube_scheduler(self):
        def kill():
            self.programs.kill("kube-scheduler")
            self.programs.start_kube_scheduler()
        self.kill_in_each_state("orphan", kill)

    @unittest.skipUnless("STOP_API" in os.environ, "STOP_API and START_API name no commands")
    def test_kill_of_the_api_server(self):
        def kill():
            subprocess.run(os.environ["STOP_API"], shell=True, check=True)
            subprocess.run(os.environ["START_API"], shell=True, check=True)
        self.kill_in_each_state("outage", kill)

    def test_a_member_deleted_while_held(self):
        self.kill_while_held("short", lambda: self.delete("short-0"))
        until(lambda: self.gang("short"), lambda: self.gang("short").get("state") in ("waiting", "satisfied"))
        if self.gang("short")["state"] == "waiting":
            self.assertEqual([], self.bound("short"))
            self.create(member("short-0", "short", LARGE, mem=4, cpu="10m", group="large"))
            self.wait_bound("short", LARGE, 100)

    def priority(self, pod, name, value):
        classes = "/apis/scheduling.k8s.io/v1/priorityclasses"
        self.addCleanup(self.api.delete, f"{classes}/{NAME}-{name}")
        self.api.post(classes, {"metadata": {"name": f"{NAME}-{name}"}, "value": value})
        return {**pod, "spec": {**pod["spec"], "priorityClassName": f"{NAME}-{name}"}}

    def test_a_preemption_waits_for_the_gang(self):
        """kube-scheduler would preempt a pod of priority 50. The last member has no cpu, so the gang gives its cards back."""
        n = (LARGE // 32 + 1) * 32  # all cards of the large nodes
        fifty = self.priority(member("fifty", None, 1, mem=UNITS), "fifty", 50)
        self.create(*[{**fifty, "metadata": {**fifty["metadata"], "name": f"fifty-{i}"}} for i in range(NODES * CARDS)])
        until("pods wait", lambda: len(self.bound()) == NODES * CARDS)
        top = self.priority(member("top", None, 1, mem=UNITS), "top", 100)
        del top["spec"]["nodeSelector"]
        self.create(*[member(f"vain-{i}", "vain", n, mem=4, cpu="10m" if i < n - 1 else "1000", group="large") for i in range(n)])
        until(lambda: self.gang("vain"), lambda: self.gang("vain").get("held", 0) > 40, 60, 0.005)
        self.create(top)
        until("top waits", lambda: "top" in self.bound())
        names = [p["metadata"]["name"] for p in self.pods()]
        self.assertEqual(NODES * CARDS, len([name for name in names if name.startswith("fifty-")]))
        self.assertEqual([], self.bound("vain"))

    def test_bad_input(self):
        self.create(member("low", "torn", 2, mem=4, gate=False), member("wrong", "wrong", "many", mem=4, gate=False))
        until("no refusal", lambda: "gang wrong: min-available must be a number from 1 to 1024" in self.message("wrong"))
        until(lambda: f"no refusal: {self.message('low')}", lambda: "gang torn waits for members: 1 of 2" in self.message("low"))
        self.assertEqual([], self.bound())


def missing():
    """What the test needs and this machine does not have."""
    programs = {"KUBECTL": KUBECTL, "KUBE_SCHEDULER": KUBE_SCHEDULER, "ALIQUOT": ALIQUOT}
    return [f"{name}: no program {path}" for name, path in programs.items() if not shutil.which(path)] + (
        [] if "KUBECONFIG" in os.environ else ["KUBECONFIG is not set"])


if __name__ == "__main__":
    if missing():
        print(f"skipped: {'; '.join(missing())}")
        sys.exit(77)
    unittest.main(verbosity=2)
