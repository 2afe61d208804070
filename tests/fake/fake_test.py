#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares the fake kubelet with the behaviour of a real one (1.36.2): fake_test.py STORE_SERVER"""

import os
import random
import subprocess
import sys
import tempfile
import threading
import time
import unittest
from concurrent.futures import ThreadPoolExecutor

from grpc_process import run_tests
import grpc_wire as wire
from api import Api, ApiError, StoreServer
from echo_plugin import EchoPlugin
from grpc_wire import GPU_CORE, GPU_MEM, grpc, pr
from kubelet import Kubelet
from poll import poll

STORE = sys.argv.pop(1)
NODE = "n1"
PODS = "/api/v1/namespaces/default/pods"


def container(name, mem=None, core=None, **more):
    limits = {r: str(n) for r, n in ((GPU_MEM, mem), (GPU_CORE, core)) if n}
    return dict({"name": name, "image": "none", "resources": {"limits": limits}}, **more)


def pod(name, *containers, init=(), annotations=None, **spec):
    return {"metadata": {"name": name, "annotations": annotations or {}},
            "spec": dict({"nodeName": NODE, "containers": list(containers), "initContainers": list(init),
                          "restartPolicy": "Never"}, **spec)}


class Fake(unittest.TestCase):
    style = "v2"

    def setUp(self):
        self.seed = random.randrange(1 << 32)
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.dir = directory.name
        store = StoreServer(STORE)
        self.addCleanup(store.stop)
        self.api = Api(store.address)
        self.api.post("/api/v1/nodes", {"metadata": {"name": NODE}})
        self.kubelet = Kubelet(self.api, NODE, self.dir, os.path.join(self.dir, "cgroup"), self.seed, self.style,
                               retry=(0.05, 0.1))
        self.kubelet.start()
        self.addCleanup(self.end)

    def end(self):
        self.kubelet.close()
        self.assertEqual(self.kubelet.crashes, [], f"seed {self.seed}")

    def plugins(self, **options):
        self.mem = EchoPlugin(self.dir, GPU_MEM, [f"{c}-{n}" for c in range(4) for n in range(15)], **options).start()
        self.core = EchoPlugin(self.dir, GPU_CORE, [f"c{c}-{n}" for c in range(4) for n in range(100)]).start()
        self.addCleanup(self.mem.stop)
        self.addCleanup(self.core.stop)
        self.assertTrue(self.kubelet.wait_serving(GPU_MEM, GPU_CORE))

    def create(self, obj):
        return self.api.post(PODS, obj)["metadata"]["uid"]

    def status(self, name):
        return self.api.get(f"{PODS}/{name}").get("status", {})

    def until(self, condition, what="it"):
        self.assertTrue(poll(condition, 60), f"{what}: seed {self.seed}")

    def until_phase(self, name, phase):
        self.until(lambda: self.status(name).get("phase") == phase, f"{name} is {phase}")

    def running(self, name):
        return [c for c in self.kubelet.runtime.running() if c.pod == "default/" + name]

    def listed(self):
        with wire.channel(os.path.join(self.dir, "pod-resources", "kubelet.sock")) as channel:
            call = channel.unary_unary("/v1.PodResourcesLister/List", request_serializer=lambda m: m.SerializeToString(),
                                       response_deserializer=pr.ListPodResourcesResponse.FromString)
            return {p.name: {c.name: [(d.resource_name, list(d.device_ids)) for d in c.devices] for c in p.containers}
                    for p in call(pr.ListPodResourcesRequest(), timeout=60).pod_resources}


class NoFork(unittest.TestCase):
    def run_with(self, code):
        return subprocess.run([sys.executable, "-c", "import os, subprocess, grpc_process\n" + code], capture_output=True, text=True, timeout=120,
                              env=dict(os.environ, PYTHONPATH=os.path.dirname(os.path.abspath(__file__))))

    def test_a_fork_is_refused(self):
        for code in "os.fork()", "subprocess.run(['true'], preexec_fn=os.getpid)":
            p = self.run_with(code)
            self.assertEqual(p.returncode, 1, code)
            self.assertIn("must not fork", p.stderr)

    def test_programs_start_without_one(self):
        p = self.run_with("print(subprocess.run(['echo', 'it runs'], start_new_session=True, restore_signals=False, text=True,"
                          " stdout=subprocess.PIPE).stdout)")
        self.assertEqual((p.returncode, p.stdout.strip()), (0, "it runs"), p.stderr)


class Admission(Fake):
    def test_order_of_calls(self):
        self.plugins()
        order, gate = [], threading.Lock()

        def note(plugin, name):
            original = getattr(plugin, name)

            def noting(*args):
                self.assertTrue(gate.acquire(blocking=False), "two serial calls at once")
                order.append((plugin.resource, name))
                try:
                    return original(*args)
                finally:
                    gate.release()
            setattr(plugin, name, noting)
        for plugin in self.mem, self.core:
            note(plugin, "preferred")
            note(plugin, "allocate")
        pods = 24  # the same order for all of them has a chance of one in eight million
        for i in range(pods):
            self.create(pod(f"p{i}", container("main", 2, 10)))
        for i in range(pods):
            self.until_phase(f"p{i}", "Running")
        self.assertEqual(len(order), 4 * pods)
        for at in range(0, 4 * pods, 4):  # GPA r1, Allocate r1, GPA r2, Allocate r2
            self.assertEqual([n for _, n in order[at:at + 4]], ["preferred", "allocate"] * 2)
            self.assertEqual({r for r, _ in order[at:at + 4:2]}, {GPU_MEM, GPU_CORE})
        self.assertEqual(len({r for r, _ in order[::4]}), 2, "the first resource is drawn at random")
        self.assertEqual(len([c for c in self.mem.calls if c[0] == "PreStartContainer"]), pods)

    def test_during_admission_the_pod_is_listed_without_its_devices(self):
        self.plugins()
        self.create(pod("old", container("main", 3)))
        self.until_phase("old", "Running")
        seen = []
        original = self.mem.preferred

        def look(request):
            seen.append(self.listed())
            return original(request)
        self.mem.preferred = look
        self.create(pod("new", container("main", 5)))
        self.until_phase("new", "Running")
        self.assertEqual(seen[0]["new"], {"main": []})
        self.assertEqual(len(seen[0]["old"]["main"]), 3, "one entry per ID")
        self.assertEqual(len(self.listed()["new"]["main"]), 5)

    def test_the_preference(self):
        self.plugins()
        free = [f"0-{n}" for n in range(15)]

        def given(name, mem, preferred):
            self.mem.preferred = preferred
            uid = self.create(pod(name, container("main", mem)))
            self.until_phase(name, "Running")
            return self.kubelet.manager.container_devices(uid, "main", GPU_MEM)
        self.assertEqual(given("exact", 5, lambda r: free[:5]), set(free[:5]))
        self.assertLess({"0-5", "0-6"}, given("few", 5, lambda r: ["0-5", "0-6"]))
        self.assertEqual(len(given("unknown", 3, lambda r: ["9-9", "0-0"])), 3)
        self.assertEqual(len(given("empty", 3, lambda r: [])), 3)
        many = [i for i in (f"3-{n}" for n in range(15))]
        self.assertEqual(len(given("many", 3, lambda r: many) - set(many)), 0)

    def test_errors_are_final(self):
        self.plugins()

        def refuse(*args):
            raise RuntimeError("no")
        self.mem.allocate = refuse
        self.create(pod("a", container("main", 5)))
        self.until_phase("a", "Failed")
        self.assertEqual(self.status("a")["reason"], "UnexpectedAdmissionError")
        self.assertRegex(self.status("a")["message"], r"^Allocate failed due to rpc error: code = Unknown desc = .*no")
        self.mem.allocate = lambda ids: {}
        self.create(pod("big", container("main", 61)))
        self.until_phase("big", "Failed")
        self.assertIn("requested number of devices unavailable for aliyun.com/gpu-mem. Requested: 61, Available: 60",
                      self.status("big")["message"])
        self.create(pod("fits", container("main", 60)))  # rejected pods hold nothing
        self.until_phase("fits", "Running")

    def test_init_containers_devices_are_used_again(self):
        self.plugins()
        asked = []
        original = self.mem.preferred

        def note(request):
            asked.append((sorted(request.must_include_deviceIDs), request.allocation_size))
            return original(request)
        self.mem.preferred = note
        uid = self.create(pod("full", container("main", 3), init=[container("i1", 5), container("i2", 7)]))
        self.until_phase("full", "Running")
        devices = self.kubelet.manager.container_devices
        i1, i2, main = (devices(uid, n, GPU_MEM) for n in ("i1", "i2", "main"))
        self.assertEqual([n for _, n in asked], [5, 7], "the main one's need is covered: it is not asked for")
        self.assertEqual(asked[1][0], sorted(i1), "and what i1 had must be in it")
        self.assertLess(i1, i2)
        self.assertLess(main, i2)
        self.assertEqual(self.listed()["full"].keys(), {"main"}, "init containers are never listed")
        asked.clear()
        uid = self.create(pod("car", container("main", 2), init=[container("ini", 4),
                                                                container("side", 3, restartPolicy="Always")]))
        self.until_phase("car", "Running")
        ini, side, main = (devices(uid, n, GPU_MEM) for n in ("ini", "side", "main"))
        self.assertLess(side, ini)
        self.assertFalse(side & main, "a sidecar's are not given again")
        self.assertEqual(asked[1], (sorted(ini - side), 2))
        self.assertEqual(self.listed()["car"].keys(), {"side", "main"})

    def test_two_answers_for_one_name(self):
        self.plugins()
        self.core.allocate = lambda ids: {"IDS": "core"}
        winners = set()
        for i in range(30):
            uid = self.create(pod(f"p{i}", container("main", 1, 5)))
            self.until_phase(f"p{i}", "Running")
            winners.add(self.kubelet.runtime.of(uid, "main").options["env"]["IDS"] == "core")
            if len(winners) == 2:
                break
        self.assertEqual(winners, {True, False})


class Starting(Fake):
    def test_prestart_is_tried_again_and_runs_beside_others(self):
        self.plugins()
        held = threading.Semaphore(0)
        self.addCleanup(held.release)  # a failed test must not leave a thread of the plugin waiting
        failures = iter([True, True])

        def first(ids, context):
            if next(failures, False):
                context.abort(grpc.StatusCode.UNAVAILABLE, "not yet")
            if "1-0" in ids:
                held.acquire()
        self.mem.prestart = first
        self.mem.preferred = lambda r: ["0-0"]  # otherwise the kubelet could choose the held device
        self.create(pod("slow", container("main", 1)))
        self.until_phase("slow", "Running")
        self.assertEqual([e[1:3] for e in self.kubelet.prestart_errors], [("default/slow", "main")] * 2)
        self.assertIn("device plugin PreStartContainer rpc failed with err: rpc error: code = Unavailable desc = not yet",
                      self.kubelet.prestart_errors[0][3])
        self.mem.preferred = lambda r: ["1-0"]
        self.create(pod("held", container("main", 1)))
        self.mem.preferred = lambda r: ["1-0"] if "1-0" in r.available_deviceIDs else ["2-0"]
        self.create(pod("beside", container("main", 1)))
        self.until_phase("beside", "Running")
        self.assertNotEqual(self.status("held").get("phase"), "Running")
        held.release()
        self.until_phase("held", "Running")

    def test_deadline_of_prestart(self):
        self.plugins()
        self.kubelet.prestart_timeout = 0.2
        release = threading.Event()
        self.mem.prestart = lambda ids, context: release.wait(20)
        self.create(pod("a", container("main", 1)))
        self.until(lambda: self.kubelet.prestart_errors)
        self.assertIn("DeadlineExceeded", self.kubelet.prestart_errors[0][3])
        self.kubelet.prestart_timeout = 30.0
        release.set()
        self.until_phase("a", "Running")

    def test_restart_of_a_container_asks_prestart_only(self):
        self.plugins()
        uid = self.create(pod("a", container("main", 4), restartPolicy="Always"))
        self.until_phase("a", "Running")
        before = self.kubelet.runtime.of(uid, "main")
        self.mem.calls.clear()
        self.kubelet.finish(uid, "main", 1)
        self.until(lambda: self.kubelet.runtime.of(uid, "main") is not before)
        self.assertEqual([n for n, _ in self.mem.calls], ["PreStartContainer"])
        self.assertEqual(self.kubelet.runtime.of(uid, "main").devices, before.devices)

    def test_end_and_deletion_free_devices(self):
        self.plugins()
        self.create(pod("once", container("main", 60), annotations={"fake/run-main": "0.05"}))
        self.until_phase("once", "Succeeded")
        self.create(pod("next", container("main", 60), annotations={"fake/linger": "until-let-go"}))
        self.until_phase("next", "Running")
        self.api.delete(f"{PODS}/next", grace=30)
        self.create(pod("early", container("main", 60)))
        self.until_phase("early", "Failed")  # terminating pods keep their devices
        self.kubelet.let_go()
        self.until(lambda: not self.running("next"))
        self.until(lambda: self.gone("next"))
        self.create(pod("late", container("main", 60)))
        self.until_phase("late", "Running")
        self.assertEqual(self.kubelet.runtime.violations, [])

    def gone(self, name):
        try:
            self.api.get(f"{PODS}/{name}")
        except ApiError as error:
            return error.status == 404
        return False

    def test_deletion_by_force_frees_devices_while_processes_live(self):
        self.plugins()
        uid = self.create(pod("old", container("main", 60), annotations={"fake/linger": "until-let-go"}))
        self.until_phase("old", "Running")
        self.api.delete(f"{PODS}/old", grace=0)
        self.until(lambda: uid not in self.kubelet.pods)
        self.assertTrue(self.kubelet.runtime.running(uid))
        self.create(pod("new", container("main", 60)))
        self.until_phase("new", "Running")
        self.assertTrue(self.kubelet.runtime.violations, "the judge sees it")
        self.kubelet.let_go()
        self.until(lambda: not self.kubelet.runtime.running(uid))

    def test_cgroups(self):
        self.plugins()
        uid = self.create(pod("a", container("main", 1)))
        self.until_phase("a", "Running")
        found = [os.path.join(d, f) for d, _, files in os.walk(os.path.join(self.dir, "cgroup")) for f in files
                 if f == "cgroup.procs" and uid.replace("-", "_") in d.replace("-", "_")]
        self.assertTrue(any(open(f).read() for f in found), found)
        self.api.delete(f"{PODS}/a", grace=1)
        self.until(lambda: self.gone("a"))
        self.assertFalse(any(os.path.exists(f) for f in found))

    def test_static_pod_and_its_mirror(self):
        self.plugins()
        uid = self.kubelet.add_static(pod("web", container("main", 2)))
        self.until(lambda: self.running("web-n1"))
        self.until_phase("web-n1", "Running")
        mirror = self.api.get(f"{PODS}/web-n1")
        self.assertEqual(mirror["metadata"]["annotations"]["kubernetes.io/config.mirror"], uid)
        self.assertNotEqual(mirror["metadata"]["uid"], uid)
        self.assertIn("web-n1", self.listed())


class Registration(Fake):
    def test_capacity_and_health(self):
        self.plugins()
        node = "/api/v1/nodes/" + NODE
        self.until(lambda: self.api.get(node)["status"].get("capacity", {}).get(GPU_MEM) == "60")
        self.mem.change(unhealthy=[f"1-{n}" for n in range(15)])
        self.until(lambda: self.api.get(node)["status"]["allocatable"][GPU_MEM] == "45")
        self.assertEqual(self.api.get(node)["status"]["capacity"][GPU_MEM], "60")
        self.mem.stop()
        self.until(lambda: self.api.get(node)["status"]["allocatable"][GPU_MEM] == "0")
        self.assertEqual(self.api.get(node)["status"]["capacity"][GPU_MEM], "60")
        self.create(pod("a", container("main", 1)))
        self.until_phase("a", "Failed")
        self.assertIn("no healthy devices present", self.status("a")["message"])

    def test_the_end_of_an_old_instance_disconnects_the_new_one(self):
        self.plugins()
        second = EchoPlugin(self.dir, GPU_MEM, ["0-0"], endpoint="second.sock").start()
        self.addCleanup(second.stop)
        self.until(lambda: len(self.kubelet.manager.healthy[GPU_MEM]) == 1)
        self.mem.stop()
        self.assertTrue(second.lost.wait(60))
        # Until both streams are seen to have ended, the next one would be disconnected as well.
        manager = self.kubelet.manager
        self.assertTrue(manager.wait_for(lambda: GPU_MEM not in {c.resource for c in manager.followed}, 60))
        self.assertFalse(manager.is_serving(GPU_MEM))
        second.register()
        self.assertTrue(self.kubelet.wait_serving(GPU_MEM))

    def test_kubelet_restart(self):
        self.plugins()
        running = self.create(pod("running", container("main", 4)))
        self.until_phase("running", "Running")
        done = self.create(pod("half", container("main", 4), container("job", 1), annotations={"fake/run-job": "0"}))
        self.until(lambda: self.kubelet.runtime.of(done, "job") and not self.kubelet.runtime.of(done, "job").running)
        self.until(lambda: self.running("half"))
        devices = self.kubelet.manager.container_devices(running, "main")
        self.kubelet.restart()  # no plugin registers
        self.until_phase("half", "Failed")
        self.assertIn("no healthy devices present", self.status("half")["message"])
        self.assertFalse(self.kubelet.runtime.running(done))
        self.assertTrue(self.kubelet.runtime.running(running))
        self.assertEqual(self.kubelet.manager.container_devices(running, "main"), devices)
        self.assertFalse(os.path.exists(os.path.join(self.dir, "device-plugins", self.mem.endpoint)), "sockets are wiped")

    def test_message_limit(self):
        self.plugins()
        many = EchoPlugin(self.dir, "example.com/many", ["%06d" % n for n in range(221000)]).start()
        self.addCleanup(many.stop)
        self.assertTrue(many.lost.wait(120))
        self.assertFalse(self.kubelet.manager.is_serving("example.com/many"))

    def test_rate_limit(self):
        self.plugins()

        def code(_):
            try:
                self.listed()
            except grpc.RpcError as error:
                return error.code()
            return None
        end = time.monotonic() + 60  # a slow machine asks less often than the limit
        codes = []
        with ThreadPoolExecutor(16) as pool:
            while grpc.StatusCode.RESOURCE_EXHAUSTED not in codes and time.monotonic() < end:
                codes = list(pool.map(code, range(100)))
        self.assertIn(grpc.StatusCode.RESOURCE_EXHAUSTED, codes)
        self.assertGreater(self.kubelet.manager.lists_rejected, 0)


class StartingV1(Starting):
    style = "v1"


class StartingSystemd(Starting):
    style = "systemd"


if __name__ == "__main__":
    run_tests(warnings="ignore")
