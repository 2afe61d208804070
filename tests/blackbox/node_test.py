#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Pods on a node of `aliquot node`, and agents that are killed: node_test.py ALIQUOT STORE_SERVER CLOCK_SHIM"""

import itertools
import json
import os
import threading
import time

from node_case import ONE_CARD, TWO_CARDS, Node
from node_lab import ALLOCATION, ASSIGNED, GPU, GPU_CORE, GPU_MEM, INIT, NODE_PATH, PODS, Judge, by_card, container, create_many, parse, pod, shapes
from grpc_process import run_tests
from patience import rounds
from scheduler import annotations_for


def refuse_every_second():
    """An answer of the relay to writes: the first one is refused, and every second one from there."""
    statuses = itertools.cycle((409, None, 429, None))

    def answer(_):
        status = next(statuses)
        return (status, {"kind": "Status", "code": status, "message": "refused by the test"}) if status else (200, None)
    return answer


class Crowd(Node):
    PODS = rounds(60, 200)

    def test_many_pods_start_and_end(self):
        lab = self.lab()
        lab.schedule()
        names = self.run_to_end(lab, [shapes(lab.rng, f"p{i}", life=(0.005, 0.04)) for i in range(self.PODS)])
        self.assertGreaterEqual(self.judged(lab, names), self.PODS)
        self.assertEqual(lab.kubelet.rejections, [], f"seed {lab.seed}")
        self.assertEqual(lab.kubelet.prestart_errors, [], f"seed {lab.seed}")
        metrics = lab.metrics()
        self.assertEqual(metrics["aliquot_node_unknown_total"], 0)
        lab.wait(lambda: os.listdir(os.path.join(lab.state, "records")) == [], "records of ended pods are gone")

    def test_many_pods_stay(self):
        lab = self.lab(unit="128MiB", annotations={"aliquot.dev/max-pods-per-card": "100"})
        lab.schedule(with_extender=True)
        objects = [self.small(lab, i) for i in range(self.PODS)]
        create_many(lab, objects)
        lab.wait(lambda: all(o.get("status", {}).get("phase") == "Running" for o in lab.api.get(PODS)["items"]),
                 "all run", 300)
        self.assertGreaterEqual(self.judged(lab), self.PODS)
        self.assertEqual(lab.kubelet.rejections, [], f"seed {lab.seed}")
        lab.wait(lambda: all(o["metadata"]["annotations"].get(ASSIGNED) == "true"
                             for o in lab.api.get(PODS)["items"]), "all are assigned")
        lab.wait(lambda: lab.node()["metadata"]["labels"].get("aliquot.dev/holds-slices") == "true", "the label says that slices are held")
        self.agree(lab)

    def test_a_kubelet_that_does_not_list(self):
        """Pods of one shape wait, and List is silent during the first admission: it gets devices of its own card."""
        lab, silent_until = self.lab(cards=TWO_CARDS), []

        def between():
            silent_until.append(time.monotonic() + 7)  # longer than the agent waits for List
            time.sleep(max(0, silent_until[0] - time.monotonic()))
        lab.kubelet.manager.between = between
        uids = [self.place(lab, pod(f"p{i}", container("main", 1)), 0) for i in range(15)]
        lab.wait(lambda: all(lab.running(uid) for uid in uids), "all run")
        self.assertTrue(lab.logged("the kubelet does not list its pods"))
        self.judged(lab)

    @staticmethod
    def small(lab, i):
        obj = shapes(lab.rng, f"p{i}")
        for c in obj["spec"].get("initContainers", []) + obj["spec"]["containers"]:
            limits = c["resources"]["limits"]
            limits.pop(GPU_CORE, None)
            if GPU_MEM in limits:
                limits[GPU_MEM] = str(min(int(limits[GPU_MEM]), 4) // 2 * 2 or 2)
        return obj

    def agree(self, lab):
        """Annotations, the extender's ledger and the kubelet's devices have the same sums on each card."""
        items = lab.api.get(PODS)["items"]
        sums = Judge(lab).sums(items)
        lab.wait(lambda: [(d["totalGPU"], d["usedGPU"]) for d in lab.inspect()["nodes"][0]["devs"]] == list(zip(lab.units, sums)),
                 f"the extender's ledger has {sums}")
        given = [0] * len(lab.units)
        for o in items:
            ids = set()
            for c in o["spec"].get("initContainers", []) + o["spec"]["containers"]:
                ids |= lab.kubelet.manager.container_devices(o["metadata"]["uid"], c["name"], GPU_MEM) or set()
            for card, n in by_card(ids).items():
                given[card] += n
        self.assertEqual(given, sums)

    def test_devices_belong_to_no_numa_node(self):
        """The kubelet would choose among the devices of one NUMA node, and the scheduler may have chosen another."""
        lab = self.lab(cards="2xTesla-V100-SXM2-16GB:16160MiB/0=NUMA0/1=NUMA1")
        lab.wait(lambda: lab.node_annotation("aliquot.dev/cards"), "the node describes its cards")
        cards = json.loads(lab.node_annotation("aliquot.dev/cards"))
        self.assertEqual([card["numa"] for card in cards], [0, 1])
        self.assertEqual({resource: {tuple(nodes) for nodes in devices.values()}
                          for resource, devices in lab.kubelet.manager.devices.items() if devices},
                         {resource: {()} for resource in lab.resources})

    def test_share_mode(self):
        lab = self.lab(mode="share")
        lab.schedule()
        objects = [pod(f"p{i}", container("main", 1 + i % 4), annotations={"fake/run-main": "0.01"}) for i in range(40)]
        self.run_to_end(lab, objects)
        self.assertEqual(self.judged(lab), 40)
        self.assertEqual(lab.node()["status"]["allocatable"].get(GPU_CORE, "0"), "0")
        lab.wait(lambda: lab.node()["status"]["allocatable"].get("aliyun.com/gpu-count") == "8", "the number of cards")
        self.assertEqual(lab.kubelet.rejections, [])


class StartupTaint(Node):
    OURS = "startup-taint.cluster-autoscaler.kubernetes.io/aliquot"
    OTHER = {"key": "example.com/other", "value": "a \"quoted\" word", "effect": "NoSchedule"}

    def tainted(self, **options):
        lab = self.lab(start=False, **options)
        lab.api.patch(NODE_PATH, {"spec": {"taints": [{"key": self.OURS, "effect": "NoSchedule"}, self.OTHER,
                                                      {"key": self.OURS, "value": "x", "effect": "NoExecute"}]}})
        lab.start_agent()
        return lab

    def test_it_comes_off_when_all_resources_are_there(self):
        for mode, resources in (("core_mem", (GPU_MEM, GPU_CORE, "aliyun.com/gpu-count")), ("share", (GPU_MEM, "aliyun.com/gpu-count")),
                                ("topology", (GPU,))):
            lab = self.tainted(mode=mode)
            lab.wait(lambda: lab.node()["spec"]["taints"] == [self.OTHER], "the other taint alone")
            for resource in resources:
                self.assertNotIn(lab.node()["status"]["allocatable"].get(resource, "0"), ("", "0"))

    def test_it_stays_where_nothing_is_shared(self):
        lab = self.tainted(mode="none")
        lab.wait(lambda: lab.condition(), "the agent has written to the node")
        lab.annotate(policy="9")
        lab.wait(lambda: lab.condition("GPUShareMisconfigured").get("status") == "True", "and has seen it again")
        self.assertEqual(len(lab.node()["spec"]["taints"]), 3)

    def test_a_part_that_is_refused_for_good(self):
        """It keeps no other part of the node object from being written, and is written when it may."""
        lab = self.tainted()
        lab.wait(lambda: lab.node()["spec"]["taints"] == [self.OTHER], "the node has its resources")
        lab.store.tell("fault status 100000 PATCH " + NODE_PATH + "/status 403")
        lab.annotate(policy="9")
        lab.wait(lambda: lab.logged("the node object is not written"), "the condition is refused")
        lab.api.patch(NODE_PATH, {"spec": {"taints": [{"key": self.OURS, "effect": "NoSchedule"}, self.OTHER]}})
        lab.wait(lambda: lab.node()["spec"]["taints"] == [self.OTHER], "the taint goes", leap=1)
        self.assertEqual(lab.condition("GPUShareMisconfigured"), {})


class Topology(Node):
    """Whole cards, one device each, chosen by their links."""

    CARDS = "4xA:16GiB/0+2=NV2/1+3=NV2/0-3=PHB"

    def started(self, lab, uid):
        return next(c for c in lab.kubelet.runtime.started if c.uid == uid)

    def check(self, lab, name, cards):
        """The container has these cards, by devices, environment and annotations."""
        o = lab.get(name)
        c = self.started(lab, o["metadata"]["uid"])
        lab.wait(lambda: lab.node_annotation("aliquot.dev/cards"), "the node describes its cards")
        described = {d["index"]: d for d in json.loads(lab.node_annotation("aliquot.dev/cards"))}
        self.assertEqual(sorted(c.devices[GPU]), [f"{i}-0" for i in cards])
        env = {k: v for k, v in c.options["env"].items() if k.startswith(("NVIDIA", "ALIYUN"))}
        self.assertEqual(env, {"NVIDIA_VISIBLE_DEVICES": ",".join(described[i]["uuid"] for i in cards)})
        lab.wait(lambda: lab.get(name)["metadata"]["annotations"].get(ASSIGNED) == "true", "it is annotated")
        self.assertEqual(parse(lab.get(name), ALLOCATION), {0: {i: 1 for i in cards}})

    def test_whole_cards(self):
        lab = self.lab(mode="topology", cards=self.CARDS)
        lab.wait(lambda: lab.node()["status"]["allocatable"].get(GPU) == "4", "four cards")
        lab.wait(lambda: lab.node_annotation("aliquot.dev/mode-in-force") == "topology", "the mode is in force")
        amounts = lab.node()["status"]["allocatable"]
        self.assertEqual([amounts.get(r, "0") for r in (GPU_MEM, GPU_CORE, "aliyun.com/gpu-count")], ["0", "0", "0"])
        cards = json.loads(lab.node_annotation("aliquot.dev/cards"))
        self.assertEqual([(c["units"], c["peers"]) for c in cards],
                         [(1, [0, 10, 50, 10]), (1, [10, 0, 10, 50]), (1, [50, 10, 0, 10]), (1, [10, 50, 10, 0])])
        lab.create(pod("a", container("main", cards=2), nodeName="n1"))
        lab.wait_phase("a", "Running")
        self.check(lab, "a", [0, 2])
        lab.create(pod("toomany", container("main", cards=3), nodeName="n1"))
        lab.wait_phase("toomany", "Failed")
        lab.restart_agent()
        lab.create(pod("b", container("main", cards=2), nodeName="n1"))
        lab.wait_phase("b", "Running")
        self.check(lab, "b", [1, 3])

    def test_a_pod_that_is_known_before_the_node(self):
        """The agent has begun, and its watch of the Node is late: the pod waits for its cards."""
        lab = self.lab(mode="topology", cards=self.CARDS, start=False)
        lab.relay.late["/api/v1/nodes?"] = 1
        lab.start_agent()
        lab.wait(lambda: lab.node().get("status", {}).get("allocatable", {}).get(GPU) == "4", "four cards")
        lab.create(pod("a", container("main", cards=2), nodeName="n1"))
        lab.wait_phase("a", "Running")
        self.check(lab, "a", [0, 2])

    def test_the_cards_of_the_binding(self):
        """What the scheduler bound is what the container gets, whatever the kubelet would choose."""
        lab = self.lab(mode="topology", cards=self.CARDS)
        for name, cards in ("a", [1, 2]), ("b", [0, 3]):
            lab.create(pod(name, container("main", cards=2)),
                       {ALLOCATION: json.dumps({"0": {str(i): 1 for i in cards}}), ASSIGNED: "false"})
            lab.wait_phase(name, "Running")
            self.check(lab, name, cards)

    def test_beside_the_real_scheduler(self):
        lab = self.lab(mode="topology", cards=self.CARDS)
        lab.schedule(with_extender=True)
        for name in "ab":
            lab.create(pod(name, container("main", cards=2)))
            lab.wait_phase(name, "Running")
            self.check(lab, name, [0, 2] if name == "a" else [1, 3])
        notes = lab.get("b")["metadata"]["annotations"]
        self.assertEqual([notes["topology.kubernetes.io/gpu-" + k] for k in ("group", "visible")], ["1,3", "1,3"])
        lab.wait(lambda: [d["usedGPU"] for d in lab.inspect()["nodes"][0]["devs"]] == [1, 1, 1, 1], "the extender has all four")

    def test_one_card_has_no_keys_of_the_older_form(self):
        """The older form has memory only. A key of it on a whole card would be taken off again, as a foreign change."""
        lab = self.lab(mode="topology", cards=self.CARDS)
        lab.schedule(with_extender=True)
        lab.create(pod("a", container("main", cards=1)))
        lab.wait_phase("a", "Running")
        lab.wait(lambda: lab.get("a")["metadata"]["annotations"].get(ASSIGNED) == "true", "it is annotated")
        self.assertEqual([k for k in lab.get("a")["metadata"]["annotations"] if k.startswith("ALIYUN_COM_GPU_MEM")], [])
        self.assertEqual(lab.metrics()["aliquot_node_repairs_total"], 0, "nothing was wrong")

    def test_the_mode_changes_when_the_cards_are_free(self):
        lab = self.lab(mode="topology", cards=self.CARDS)
        lab.create(pod("a", container("main", cards=1), nodeName="n1"))
        lab.wait_phase("a", "Running")
        lab.api.patch("/api/v1/nodes/n1", {"metadata": {"labels": {"ack.node.gpu.schedule": "share"}}})
        lab.wait(lambda: lab.condition().get("status") == "True", "the change waits")
        self.assertIn("mode topology stays in force", lab.condition()["message"])
        self.assertEqual(lab.node()["status"]["allocatable"][GPU], "4")
        lab.api.delete(f"{PODS}/a", grace=0)
        lab.wait(lambda: lab.node()["status"]["allocatable"].get(GPU_MEM) == "64", "memory is offered")
        lab.wait(lambda: lab.node()["status"]["allocatable"].get(GPU) == "0", "no whole cards are")
        lab.wait(lambda: [c["units"] for c in json.loads(lab.node_annotation("aliquot.dev/cards"))] == [16] * 4, "the cards have units of memory")


class Log(Node):
    def test_it_names_the_version_of_the_api_server(self):
        lab = self.lab()
        lab.wait(lambda: lab.logged(" info the API server is Kubernetes v1.36."), "the line")


class Killed(Node):
    def test_killed_at_random(self):
        lab = self.lab()
        lab.schedule()
        stop, kills, trouble = threading.Event(), [], []

        def progress():
            return len(lab.kubelet.runtime.started) + len(lab.kubelet.rejections)

        def killer():
            try:
                while not stop.wait(lab.rng.uniform(0.05, 0.4)):
                    if len(kills) % 4 == 3:  # so that pods go on where a start takes longer than any pause between two kills
                        before = progress()
                        while progress() == before and not stop.wait(0.02):
                            pass
                    kills.append(lab.restart_agent())
            except AssertionError as error:
                trouble.append(error)
        thread = threading.Thread(target=killer)
        names, made = set(), 0
        thread.start()
        try:
            # A ReplicaSet replaces rejected pods. Where a start takes long, more pods are made.
            while (made < 120 + len(lab.kubelet.rejections) or len(kills) <= 3) and made < 400:
                batch = min(40, max(8, 120 + len(lab.kubelet.rejections) - made))
                names |= self.run_to_end(lab, [shapes(lab.rng, f"p{made + i}", life=(0.02, 0.1)) for i in range(batch)])
                made += batch
        finally:
            stop.set()
            thread.join()
        self.assertEqual(trouble, [])
        self.assertGreater(len(kills), 3)
        self.judged(lab, names)
        outside = [r for r in lab.kubelet.rejections
                   if not any(at <= r[0] and lab.kubelet.admissions[r[2]] <= at + gap for at, gap in kills)]
        self.assertEqual(outside, [], f"seed {lab.seed}: rejected while no agent was killed")

    def test_slices_are_not_lost(self):
        lab = self.lab(unit="128MiB", annotations={"aliquot.dev/max-pods-per-card": "100"})
        lab.schedule()
        for i in range(60):
            lab.create(pod(f"p{i}", container("main", 4), container("second", 2), annotations={"fake/linger": "until-let-go"}))
            if i % 12 == 11:  # while some of the twelve are left
                lab.wait(lambda: len({c.uid for c in lab.kubelet.runtime.started}) + len(lab.kubelet.rejections) > i - 4,
                         "most of them run")
                lab.restart_agent()
        lab.wait(lambda: all(o.get("status", {}).get("phase") in ("Running", "Failed")
                             for o in lab.api.get(PODS)["items"]), "all run", 300)
        self.judged(lab)
        lab.wait_ready()
        living = [o for o in lab.api.get(PODS)["items"] if o["status"]["phase"] == "Running"]
        self.assertGreater(len(living), 20)
        for o in living:
            lab.api.delete(f"{PODS}/{o['metadata']['name']}", grace=0)
        lab.restart_agent()  # deletions of that time must be known afterwards
        lab.wait(lambda: len(lab.held()) == len(living), "slices of deleted pods are published")
        for uid, dead in lab.held().items():
            units = sum(n for shares in dead["allocation"].values() for n in shares.values())
            self.assertEqual(units, 6, dead)
            self.assertIn(uid, {o["metadata"]["uid"] for o in living})
        lab.kubelet.let_go()
        lab.wait(lambda: lab.held() == {}, "and free when their processes have ended")

    def test_the_supervisor_restarts_the_agent(self):
        lab = self.lab(supervised=True)
        uid = self.place(lab, pod("a", container("main", 3)), 2)
        lab.wait_phase("a", "Running")
        first = lab.agent.pid
        self.assertNotEqual(first, lab.agent.process.pid)
        lab.restart_agent()
        lab.wait_ready()
        self.assertNotEqual(lab.agent.pid, first)
        self.place(lab, pod("b", container("main", 3)), 2)
        lab.wait_phase("b", "Running")
        self.assertEqual(lab.running(uid), ["main"])
        self.judged(lab)

    def test_clean_end_and_upgrade(self):
        lab = self.lab()
        self.place(lab, pod("a", container("main", 3, 10)), 6)
        lab.wait_phase("a", "Running")
        self.assertEqual(lab.agent.stop(), 0)
        self.assertEqual(lab.phase("a"), "Running")
        lab.start_agent()
        lab.wait_ready()
        self.place(lab, pod("b", container("main", 28, 90)), 6)
        lab.wait_phase("b", "Running")
        self.judged(lab)


class Pods(Node):
    def test_a_pod_without_annotations_is_placed(self):
        lab = self.lab(cards=TWO_CARDS)
        self.place(lab, pod("full", container("main", 12)), 0)
        lab.wait_phase("full", "Running")
        made = lab.api.post(PODS, pod("stranger", container("main", 5, 10), scheduler="other"))
        lab.bind(made, {})
        lab.wait_phase("stranger", "Running")
        lab.wait(lambda: lab.get("stranger")["metadata"]["annotations"].get(ASSIGNED) == "true", "it is annotated")
        self.assertEqual(parse(lab.get("stranger"), ALLOCATION), {0: {1: 5}})
        self.judged(lab)
        made = lab.api.post(PODS, pod("toomuch", container("main", 11), scheduler="other"))
        lab.bind(made, {})
        lab.wait_phase("toomuch", "Failed")
        self.assertEqual(lab.get("toomuch")["status"]["reason"], "UnexpectedAdmissionError")
        self.assertIn("default/toomuch", lab.get("toomuch")["status"]["message"])

    def bound_at_once(self, lab, sizes):
        """Binds pods of these sizes without cards, all at once; returns the names of those that run."""
        objects = [pod(f"s{i}", container("main", size), scheduler="other") for i, size in enumerate(sizes)]
        made = [lab.api.post(PODS, o) for o in objects]
        for m in made:
            lab.bind(m, {})
        for m in made:
            lab.wait_phase(m["metadata"]["name"], "Running", "Failed")
        self.judged(lab, {m["metadata"]["name"] for m in made if lab.phase(m["metadata"]["name"]) == "Running"})
        return [m["metadata"]["name"] for m in made if lab.phase(m["metadata"]["name"]) == "Running"]

    def test_of_pods_bound_at_once_as_many_run_as_fit(self):
        """Each of them counts on every card for the others, until the node has given it one."""
        lab = self.lab(cards=TWO_CARDS, mode="cgpu")
        self.assertEqual(len(self.bound_at_once(lab, [10, 10, 10])), 2)

    def test_more_pods_than_cards_bound_at_once(self):
        lab = self.lab(cards=TWO_CARDS.replace("2x", "4x"), mode="cgpu")
        self.assertEqual(len(self.bound_at_once(lab, [9, 12, 10, 15, 8, 11])), 4)

    def test_small_pods_bound_at_once(self):
        lab = self.lab(cards=TWO_CARDS, mode="cgpu")
        self.assertEqual(len(self.bound_at_once(lab, [5] * 7)), 6)

    def test_with_a_node_name(self):
        lab = self.lab(cards=TWO_CARDS)
        lab.create(pod("direct", container("main", 2), nodeName="n1", scheduler="default-scheduler"))
        lab.wait_phase("direct", "Running")
        lab.wait(lambda: ALLOCATION in lab.get("direct")["metadata"]["annotations"], "it is annotated")
        self.judged(lab)

    def test_static_pod_while_the_api_server_does_not_answer(self):
        """Each call waits as long as it may, and the kubelet is slow between the two. Compute must be on the card of memory, which
        the ledger would not choose for it."""
        lab = self.lab(cards=TWO_CARDS)
        manager = lab.kubelet.manager
        manager.rng.shuffle = lambda names: names.sort(key=lambda name: name == GPU_CORE)
        other = self.place(lab, pod("other", container("main", 4)), 1)
        lab.wait(lambda: lab.running(other), "it runs")
        lab.store.tell("fault delay 2 GET /api/v1/namespaces/default/pods/web 60000000")
        in_flight, preferred = [], manager._call_preferred

        def call(*request):
            lab.clock.leap(3)
            in_flight.append("asked")
            try:
                return preferred(*request)
            finally:
                in_flight.clear()

        def end_call():
            if len(in_flight) == 2:
                in_flight.append("its deadline is over")
                lab.clock.leap(11)
        manager._call_preferred = call
        manager.between = lambda: len(in_flight) == 1 and in_flight.append("the agent has it, and asks for pods")
        uid = lab.kubelet.add_static(pod("web", container("main", 4, 10), restartPolicy="Always"))
        lab.wait(lambda: lab.running(uid) or lab.kubelet.rejections or lab.kubelet.prestart_errors or end_call(), "it runs")
        self.assertEqual((lab.kubelet.rejections, lab.kubelet.prestart_errors), ([], []))

    def test_static_pod(self):
        lab = self.lab(cards=TWO_CARDS)
        uid = lab.kubelet.add_static(pod("web", container("main", 4), restartPolicy="Always"))
        lab.wait(lambda: lab.running(uid) == ["main"], "it runs")
        lab.wait(lambda: lab.get("web-n1")["metadata"]["annotations"].get(ASSIGNED) == "true", "its mirror says where")
        mirror = lab.get("web-n1")
        mirror["metadata"]["uid"] = uid
        self.assertEqual(Judge(lab).pods([mirror]), ([], 1))
        # The deletion of the mirror does not free what the static pod holds.
        lab.api.delete(f"{PODS}/web-n1", grace=0)
        lab.wait(lambda: uid in lab.held() or lab.metrics()["aliquot_node_dying_pods"] == 1, "it is still held")

    def test_killed_before_the_placement_was_written(self):
        lab = self.lab(cards=TWO_CARDS)
        lab.store.tell("fault status 12 PATCH /api/v1/namespaces/default/pods/stranger 500")
        lab.store.tell("fault status 12 PATCH /api/v1/namespaces/default/pods/web-n1 500")
        made = lab.api.post(PODS, pod("stranger", container("main", 5, 10), container("second", 2, 5), scheduler="other"))
        lab.bind(made, {})
        web = lab.kubelet.add_static(pod("web", container("main", 4)))
        for uid, names in (made["metadata"]["uid"], ["main", "second"]), (web, ["main"]):
            lab.wait(lambda: sorted(lab.running(uid)) == names, "it runs")
        if ALLOCATION in lab.get("stranger")["metadata"].get("annotations", {}):
            self.skipTest("so slow a machine that the agent was not refused often enough")
        lab.agent.kill()
        lab.start_agent()
        lab.wait_ready()
        for name in "stranger", "web-n1":
            lab.wait(lambda: lab.get(name)["metadata"].get("annotations", {}).get(ASSIGNED) == "true", "it is annotated")
        self.judged(lab, {"stranger"})

    def test_mirror_that_is_created_again(self):
        lab = self.lab(cards=TWO_CARDS)
        uid = lab.kubelet.add_static(pod("web", container("main", 4), restartPolicy="Always"))
        lab.wait(lambda: lab.running(uid) == ["main"], "it runs")
        lab.wait(lambda: lab.get("web-n1")["metadata"]["annotations"].get(ASSIGNED) == "true", "its mirror says where")
        mirror = lab.get("web-n1")
        place = parse(mirror, ALLOCATION)
        lab.api.delete(f"{PODS}/web-n1", grace=0)
        lab.wait(lambda: lab.metrics()["aliquot_node_dying_pods"] == 1, "it is still held")
        annotations = {k: v for k, v in mirror["metadata"]["annotations"].items() if k.startswith("kubernetes.io/")}
        lab.api.post(PODS, {"apiVersion": "v1", "kind": "Pod", "spec": mirror["spec"], "metadata": {
            "name": "web-n1", "namespace": "default", "annotations": annotations}})
        lab.wait(lambda: lab.get("web-n1")["metadata"]["annotations"].get(ASSIGNED) == "true", "the new one says it too")
        self.assertEqual(parse(lab.get("web-n1"), ALLOCATION), place)

    def test_every_second_write_is_refused(self):
        """Of the Node and of two pods: all is written in the end, and nothing again after that."""
        lab = self.lab(cards=TWO_CARDS, start=False)
        paths = NODE_PATH, NODE_PATH + "/status", f"{PODS}/a", f"{PODS}/stranger"
        for path in paths:
            lab.relay.answers["PATCH", path] = refuse_every_second()
        lab.start_agent()
        lab.wait_ready()
        self.place(lab, pod("a", container("main", 2)), 1)
        lab.bind(lab.api.post(PODS, pod("stranger", container("main", 5, 10), scheduler="other")), {})
        for name in "a", "stranger":
            lab.wait(lambda: lab.get(name)["metadata"].get("annotations", {}).get(ASSIGNED) == "true", "it is assigned")
        lab.wait(lambda: lab.node()["metadata"]["labels"].get("aliquot.dev/holds-slices") == "true", "the Node says so")
        lab.wait(lambda: lab.node()["status"]["capacity"].get("aliyun.com/gpu-count") == "2", "the Node has its cards")
        lab.wait(lambda: lab.condition().get("status") == "False", "the Node has its condition")
        written = [len(lab.relay.patches(path)) for path in paths]
        self.assertTrue(all(n % 2 == 0 and n <= 8 for n in written), written)
        self.place(lab, pod("b", container("main", 2)), 0)
        lab.wait(lambda: lab.get("b")["metadata"]["annotations"].get(ASSIGNED) == "true", "another one is assigned")
        self.assertEqual([len(lab.relay.patches(path)) for path in paths], written)
        self.judged(lab)

    def test_unserviceable(self):
        lab = self.lab(cards=TWO_CARDS)
        obj = pod("odd", container("main", 3, 7), scheduler="other")
        made = lab.api.post(PODS, obj)
        lab.bind(made, {})
        lab.wait_phase("odd", "Failed")
        self.assertIn("multiple of 5", lab.get("odd")["status"]["message"])

    def test_false_annotations(self):
        lab = self.lab(cards=TWO_CARDS)
        for i, text in enumerate(('{"0":{"7":3}}', "rubbish", '{"0":{"0":99}}', '{"0":{}}', '{"5":{"0":3}}', "")):
            made = lab.api.post(PODS, pod(f"lie{i}", container("main", 3)))
            lab.bind(made, {ALLOCATION: text, ASSIGNED: "false"})
        honest = self.place(lab, pod("honest", container("main", 6)), 1)
        lab.wait(lambda: lab.running(honest), "the honest one runs")
        lab.wait(lambda: all(lab.phase(f"lie{i}") in ("Failed", "Running") or lab.get(f"lie{i}")["status"].get(
            "containerStatuses", [{}])[0].get("state", {}).get("waiting", {}).get("message") for i in range(6)),
            "the others run where there is room, or say why not")
        for c in lab.kubelet.runtime.started:
            cards = by_card(c.devices[GPU_MEM])
            self.assertEqual(len(cards), 1, c.pod)
            self.assertEqual(c.options["env"]["ALIYUN_COM_GPU_MEM_IDX"], str(*cards))

    def test_init_containers_of_two_cards(self):
        lab = self.lab()
        self.place(lab, pod("even", container("main", 6), init=[container("ini", 6)], cards=2), 1, 5)
        lab.wait_phase("even", "Running")
        self.assertEqual(self.judged(lab), 2)
        # The kubelet takes any 4 of the 8: either 2 and 2 on the right cards, or an error.
        for i in range(3):
            uid = self.place(lab, pod(f"less{i}", container("main", 4), init=[container("ini", 8)], cards=2), 2, 7)
            lab.wait(lambda: lab.running(uid) or any(e[1] == f"default/less{i}" for e in lab.kubelet.prestart_errors),
                     "it runs, or says why not")
            lab.api.delete(f"{PODS}/less{i}", grace=1)
            lab.wait(lambda: lab.get(f"less{i}") is None, "it is gone")
        for error in lab.kubelet.prestart_errors:
            self.assertIn("container main was given", error[3])
        for c in lab.kubelet.runtime.started:
            self.assertEqual(len(set(by_card(c.devices[GPU_MEM]).values())), 1, c.pod)

    def test_preference_that_is_ignored(self):
        """If the kubelet takes other devices than preferred, no container starts on a wrong card."""
        lab = self.lab()
        manager = lab.kubelet.manager
        original = manager._call_preferred
        manager._call_preferred = lambda *a: (original(*a), set())[1]
        uids = [self.place(lab, pod(f"p{i}", container("main", 2)), i) for i in range(4)]
        lab.wait(lambda: len({e[1] for e in lab.kubelet.prestart_errors}) + len(lab.kubelet.runtime.started) >= 4,
                 "each of them runs or was told why not")
        self.judged(lab)
        for error in lab.kubelet.prestart_errors:
            self.assertRegex(error[3], r"container main was given .* by the kubelet, but its place is 2 of gpu")
        self.assertTrue(uids)

    def test_another_plugin_in_the_same_pod(self):
        """The admission may fail at another plugin's resource between our two resources."""
        from echo_plugin import EchoPlugin
        lab = self.lab()
        lab.schedule()
        other = EchoPlugin(lab.kubelet_dir, "example.com/nic", [f"nic{n}" for n in range(2)]).start()
        self.addCleanup(other.stop)
        lab.wait(lambda: lab.kubelet.manager.is_serving("example.com/nic"), "the other plugin serves")
        objects = []
        for i in range(30):
            obj = pod(f"p{i}", container("main", 2, 10), annotations={"fake/run-main": "0.01"})
            obj["spec"]["containers"][0]["resources"]["limits"]["example.com/nic"] = "1"
            objects.append(obj)
        self.run_to_end(lab, objects)
        self.judged(lab)
        for _, key, _, message in lab.kubelet.rejections:
            self.assertIn("example.com/nic", message)


SYSTEM_KEYS = [ALLOCATION, ASSIGNED, "scheduler.framework.gpushare.assume-time", "gpushare.alibabacloud.com/core-percentage", INIT,
               "aliquot.dev/resize-status", "ALIYUN_COM_GPU_MEM_IDX", "ALIYUN_COM_GPU_MEM_DEV", "ALIYUN_COM_GPU_MEM_POD",
               "ALIYUN_COM_GPU_MEM_ASSIGNED", "ALIYUN_COM_GPU_MEM_ASSUME_TIME"]
FORGED = {"absent": None, "empty": "", "malformed": "{", "huge": '{"0":{"1":4294967296}}', "negative": '{"0":{"1":-1}}',
          "anothers": '{"0":{"0":9}}', "contradicting": '{"0":{"0":1},"7":{"3":100}}', "number": "4294967295"}


class Tampered(Node):
    """System keys of pods with started containers are written back from the node's records."""

    def keys(self, lab, name):
        """Compares the content of allocations, because the test's scheduler and the agent format JSON differently."""
        def value(text):
            try:
                return json.loads(text)
            except (TypeError, ValueError):
                return text
        found = lab.get(name)["metadata"].get("annotations", {})
        return {k: found[k] if k.endswith(("assigned", "ASSIGNED")) else value(found[k]) for k in SYSTEM_KEYS if k in found}

    def started(self, lab, obj, *cards):
        name = obj["metadata"]["name"]
        uid = self.place(lab, obj, *cards)
        self.is_started(lab, name)
        return uid

    def is_started(self, lab, name):
        lab.wait_phase(name, "Running")
        lab.wait(lambda: self.keys(lab, name).get(ASSIGNED) == "true", "it is assigned")

    def forge(self, lab, name, annotations):
        lab.api.patch(f"{PODS}/{name}", {"metadata": {"annotations": annotations}})

    def repaired(self, lab, name, before):
        lab.wait(lambda: self.keys(lab, name) == before, f"{name} is repaired")

    @staticmethod
    def allocated(lab):
        return {k: v for k, v in lab.metrics().items() if k.startswith(("DCGM_CUSTOM_DEV_FB_ALLOCATED", "DCGM_CUSTOM_CONTAINER"))}

    def test_every_key_and_value(self):
        lab = self.lab(cards=TWO_CARDS, mode="core_mem")
        names = [f"value-{v}" for v in FORGED] + [f"key-{i}" for i in range(len(SYSTEM_KEYS))]
        for i, name in enumerate(names):
            self.place(lab, pod(name, container("main", 1, 5), init=[container("ini", 1, 5)]), i % 2)
        for name in names:
            self.is_started(lab, name)
        lab.wait(lambda: lab.metrics()["aliquot_node_patches_waiting"] == 0, "all reasons are told")
        before = {name: self.keys(lab, name) for name in names}
        allocated = self.allocated(lab)
        self.assertEqual(lab.metrics()["aliquot_node_repairs_total"], 0, "nothing was wrong")
        written = {name: len(lab.relay.patches(f"{PODS}/{name}")) for name in names}
        for value, text in FORGED.items():
            self.forge(lab, f"value-{value}", {k: text for k in SYSTEM_KEYS})
        for i, key in enumerate(SYSTEM_KEYS):
            self.forge(lab, f"key-{i}", {key: None if key in before[f"key-{i}"] else "added"})
        lab.wait(lambda: lab.metrics()["aliquot_node_repairs_total"] > 0, "the agent has seen it")
        self.assertEqual(self.allocated(lab), allocated, "the node's records are as before")
        lab.wait_repaired()
        for name in names:
            self.repaired(lab, name, before[name])
        self.assertEqual(self.allocated(lab), allocated)
        lab.wait_repaired()
        # A patch that the watch does not show in time is sent again.
        for name in names:
            patches = lab.relay.patches(f"{PODS}/{name}")[written[name]:]
            self.assertTrue(patches and all(p == patches[0] for p in patches), f"one patch repairs {name}: {patches}")
        self.assertEqual(lab.events("GPUAllocationTampered"), [])

    def test_changed_while_nothing_can_be_written(self):
        """The slice is given to no other pod meanwhile, and the container starts again."""
        lab = self.lab(cards=TWO_CARDS)
        uid = self.started(lab, pod("a", container("main", 12, 90), restartPolicy="Always"), 1)
        before = self.keys(lab, "a")
        lab.store.tell("fault status 100000 PATCH /api/v1/namespaces/default/pods/a 500")
        annotations = {ALLOCATION: '{"0":{"0":12}}', "ALIYUN_COM_GPU_MEM_IDX": "0"}
        lab.api.call("PUT", f"{PODS}/a", self.changed(lab, "a", annotations))
        lab.wait(lambda: lab.metrics()["aliquot_node_repairs_total"] >= 1, "the agent has seen it")
        old = lab.kubelet.runtime.of(uid, "main")
        lab.kubelet.finish(uid, "main", 1)
        lab.wait(lambda: lab.kubelet.runtime.of(uid, "main") is not old, "it starts again")
        self.assertEqual(lab.kubelet.runtime.of(uid, "main").devices, old.devices)
        self.assertEqual(lab.kubelet.prestart_errors, [])
        made = lab.api.post(PODS, pod("other", container("main", 12), scheduler="other"))
        lab.bind(made, {})
        lab.wait_phase("other", "Running")
        lab.wait(lambda: ALLOCATION in lab.get("other")["metadata"]["annotations"], "it is placed")
        self.assertEqual(parse(lab.get("other"), ALLOCATION), {0: {0: 12}}, "on the card that is free")
        self.assertNotEqual(self.keys(lab, "a"), before)

    @staticmethod
    def changed(lab, name, annotations):
        found = lab.get(name)
        found["metadata"]["annotations"].update(annotations)
        return found

    def test_changed_while_the_agent_was_away(self):
        lab = self.lab(cards=TWO_CARDS)
        uid = self.started(lab, pod("a", container("main", 12, 90), container("second", 2, 5), restartPolicy="Always"), 1)
        self.started(lab, pod("b", container("main", 12)), 0)
        before = {name: self.keys(lab, name) for name in "ab"}
        lab.agent.kill()
        self.forge(lab, "a", {ALLOCATION: '{"0":{"0":12},"1":{"0":2}}', "ALIYUN_COM_GPU_MEM_IDX": "0"})
        self.forge(lab, "b", {k: None for k in SYSTEM_KEYS})
        lab.start_agent()
        lab.wait_ready()
        old = lab.kubelet.runtime.of(uid, "main")
        lab.kubelet.finish(uid, "main", 1)
        lab.wait(lambda: lab.kubelet.runtime.of(uid, "main") is not old, "it starts again")
        self.assertEqual(lab.kubelet.prestart_errors, [])
        for name in "ab":
            self.repaired(lab, name, before[name])
        self.assertEqual(lab.running(uid), ["main", "second"])

    def test_pods_that_the_node_placed(self):
        lab = self.lab(cards=TWO_CARDS)
        lab.create(pod("direct", container("main", 2), nodeName="n1", scheduler="default-scheduler"))
        uid = lab.kubelet.add_static(pod("web", container("main", 4), restartPolicy="Always"))
        lab.wait(lambda: lab.running(uid) == ["main"], "it runs")
        for name in "direct", "web-n1":
            lab.wait(lambda: self.keys(lab, name).get(ASSIGNED) == "true", "it is assigned")
            before = self.keys(lab, name)
            self.forge(lab, name, {ALLOCATION: '{"0":{"0":15}}', ASSIGNED: "false", "ALIYUN_COM_GPU_MEM_IDX": None})
            self.repaired(lab, name, before)

    def test_changed_before_its_container_starts(self):
        """The pod keeps the placement of its Binding."""
        lab = self.lab(cards=ONE_CARD.replace("1x", "2x"))
        old = self.place(lab, pod("old", container("main", 15), annotations={"fake/linger": "until-let-go"}), 1)
        lab.wait_phase("old", "Running")
        lab.api.delete(f"{PODS}/old", grace=0)
        lab.wait(lambda: old in lab.held(), "its slice is published")
        new = self.place(lab, pod("new", container("main", 15)), 1)
        lab.wait(lambda: lab.metrics()["aliquot_node_starts_waiting"] == 1, "the new one waits")
        before = self.keys(lab, "new")
        self.forge(lab, "new", {ALLOCATION: '{"0":{"0":15}}', "ALIYUN_COM_GPU_MEM_IDX": "0"})
        lab.kubelet.let_go()
        lab.wait(lambda: lab.running(new), "it starts")
        before.update({ASSIGNED: "true", "ALIYUN_COM_GPU_MEM_ASSIGNED": "true"})
        self.repaired(lab, "new", before)

    def test_changed_again_and_again(self):
        lab = self.lab(cards=TWO_CARDS)
        self.started(lab, pod("a", container("main", 4)), 1)
        found = lab.get("a")
        found["metadata"]["managedFields"] = [{
            "manager": "kubectl-annotate", "operation": "Update", "time": "2026-01-02T03:04:05Z", "fieldsType": "FieldsV1",
            "apiVersion": "v1", "fieldsV1": {"f:metadata": {"f:annotations": {"f:" + ALLOCATION: {}}}}}]
        lab.relay.answers["GET", f"{PODS}/a"] = found  # a field that the store server drops
        n = 0
        while not lab.events("GPUAllocationTampered"):
            n += 1
            repaired = lab.metrics()["aliquot_node_repairs_total"]
            self.forge(lab, "a", {ALLOCATION: '{"0":{"0":%d}}' % n})
            lab.wait(lambda: lab.events("GPUAllocationTampered") or lab.metrics()["aliquot_node_repairs_total"] > repaired and
                     parse(lab.get("a"), ALLOCATION) == {0: {1: 4}}, "it is repaired, or told")
        self.assertGreater(n, 5)
        note = lab.events("GPUAllocationTampered")[0]
        for text in 'last by field manager "kubectl-annotate" (Update at 2026-01-02T03:04:05Z)', ALLOCATION, "5 times a minute":
            self.assertIn(text, note)
        lab.wait(lambda: parse(lab.get("a"), ALLOCATION) == {0: {1: 4}}, "and it is repaired all the same", leap=5)


class Impossible(Node):
    """Placements that a user wrote into a pod before it was bound."""

    def test_it_gets_another_placement(self):
        lab = self.lab(cards=TWO_CARDS)
        self.place(lab, pod("full", container("main", 14)), 0)
        lab.wait_phase("full", "Running")
        for name, place in ("nowhere", '{"0":{"7":3}}'), ("short", '{"0":{"0":3},"1":{"0":2}}'):
            made = lab.api.post(PODS, pod(name, container("main", 3), *[container("second", 2)] * (name == "short"),
                                          nodeName="n1", annotations={ALLOCATION: place, ASSIGNED: "false",
                                                                      "gpushare.alibabacloud.com/core-percentage": '{"0":{"1":50}}'}))
            uid = made["metadata"]["uid"]
            lab.wait(lambda: lab.running(uid), f"{name} runs")
            lab.wait(lambda: list(parse(lab.get(name), ALLOCATION)[0]) == [1], "its annotations say where")
            lab.wait(lambda: "gpushare.alibabacloud.com/core-percentage" not in lab.get(name)["metadata"]["annotations"], "nothing else has changed")
        for text in ("gpu7 is no card of this node; it is placed anew, on gpu1",
                     "gpu0 has 1 of aliyun.com/gpu-mem free, the pod needs 5 there; it is placed anew, on gpu1"):
            lab.wait(lambda: [note for note in lab.events("GPUPlaceImpossible") if text in note], f"an Event says: {text}")
        self.assertEqual(len(lab.events("GPUPlaceImpossible")), 2)
        self.judged(lab)


class Death(Node):
    def test_a_new_pod_waits_for_the_processes_of_the_old_one(self):
        lab = self.lab(cards=ONE_CARD)
        old = self.place(lab, pod("old", container("main", 15, 100), annotations={"fake/linger": "until-let-go"}), 0)
        lab.wait_phase("old", "Running")
        lab.api.delete(f"{PODS}/old", grace=0)
        lab.wait(lambda: old in lab.held(), "its slice is published")
        self.assertEqual(lab.held()[old]["allocation"], {"0": {"0": 15}})
        self.assertEqual(lab.held()[old]["core"], {"0": {"0": 100}})
        new = self.place(lab, pod("new", container("main", 15, 100)), 0)
        lab.wait(lambda: lab.metrics()["aliquot_node_starts_waiting"] == 1, "the new one waits")
        self.assertEqual(lab.running(new), [])
        lab.kubelet.let_go()
        lab.wait(lambda: lab.running(new), "the new one runs")
        self.assertEqual(lab.running(old), [], "the old pod does not run")
        lab.wait(lambda: lab.held() == {}, "deleted pods hold nothing")
        self.judged(lab)  # close() checks for double allocation

    def test_a_waiting_pod_may_see_the_last_process_end(self):
        """The pod that waits at PreStart sees the last process end before the timer does: the records still agree."""
        for _ in range(3):
            lab = self.lab(cards=ONE_CARD)
            old = self.place(lab, pod("old", container("main", 15), annotations={"fake/linger": "until-let-go"}), 0)
            lab.wait_phase("old", "Running")
            lab.api.delete(f"{PODS}/old", grace=0)
            lab.wait(lambda: old in lab.held(), "its slice is published")
            new = self.place(lab, pod("new", container("main", 15)), 0)
            lab.wait(lambda: lab.metrics()["aliquot_node_starts_waiting"] == 1, "the new one waits")
            lab.kubelet.let_go()
            lab.wait(lambda: lab.running(new), "the new one runs")
            lab.wait(lambda: lab.metrics()["aliquot_node_dying_pods"] == 0, "no pod has processes without an object")
            lab.wait(lambda: lab.node_annotation("aliquot.dev/held-slices") is None, "and the annotation is gone")
            lab.api.delete(f"{PODS}/new", grace=1)
            lab.wait(lambda: lab.node()["metadata"]["labels"].get("aliquot.dev/holds-slices") == "false", "no slice is held")

    def test_the_event_names_the_pod_that_it_waits_for(self):
        lab = self.lab(cards=ONE_CARD)
        old = self.place(lab, pod("old", container("main", 15), annotations={"fake/linger": "until-let-go"}), 0)
        lab.wait_phase("old", "Running")
        lab.api.delete(f"{PODS}/old", grace=0)
        lab.wait(lambda: old in lab.held(), "its slice is published")
        new = self.place(lab, pod("new", container("main", 4)), 0)
        self.not_started(lab, r"default/new waits: processes of pod default/old")
        lab.kubelet.let_go()
        lab.wait(lambda: lab.running(new), "and runs in the end")

    def test_terminating_pods_keep_their_slices(self):
        lab = self.lab(cards=ONE_CARD)
        lab.schedule()
        lab.create(pod("old", container("main", 10), annotations={"fake/linger": "2"}))
        lab.wait_phase("old", "Running")
        lab.api.delete(f"{PODS}/old", grace=30)
        new = lab.create(pod("new", container("main", 10)))
        lab.wait(lambda: lab.running(new), "the new one runs")
        self.assertEqual(lab.kubelet.rejections, [])
        self.judged(lab)

    def test_many_pods_deleted_by_force(self):
        lab = self.lab()
        lab.schedule()
        objects = [pod(f"p{i}", container("main", 1 + i % 5, 5 * (i % 3)), annotations={"fake/linger": "1"})
                   for i in range(40)]
        create_many(lab, objects)
        lab.wait(lambda: sum(lab.phase(f"p{i}") == "Running" for i in range(40)) >= 20, "they run")
        for i in range(40):
            lab.api.delete(f"{PODS}/p{i}", grace=0)
        create_many(lab, [pod(f"q{i}", container("main", 1 + i % 5)) for i in range(40)])
        lab.wait(lambda: all(lab.phase(f"q{i}") == "Running" for i in range(40)), "the next ones run", 300)
        self.judged(lab)
        # A pod may be deleted before the kubelet admits it; then it fails without effect.
        self.assertEqual([r for r in lab.kubelet.rejections if "is gone from the API server" not in r[3]], [])

    def test_unknown_pods_beside_deleted_ones(self):
        """The kubelet lists pods that the API server has deleted, and admits a pod that the agent's watch has not reported yet.
        Neither is taken for the other."""
        lab = self.lab(cards=TWO_CARDS)
        gone = [self.place(lab, pod(f"gone{i}", container("main", 1)), 0) for i in range(6)]
        lab.wait(lambda: all(lab.running(uid) for uid in gone), "they run")
        lab.kubelet.watch.stop()
        for i in range(6):
            lab.api.delete(f"{PODS}/gone{i}", grace=0)
        lab.wait(lambda: set(lab.held()) == set(gone), "the agent knows that they are gone")
        lab.store.tell("fault delay 2 GET /api/v1/pods 1500000")
        lab.store.tell("fault cut-watch 1 - /api/v1/pods")
        uid = self.place(lab, pod("new", container("main", 2, 10)), 1)
        lab.kubelet.events.put(("ADDED", lab.get("new")))
        lab.wait(lambda: lab.running(uid), "the new one runs")
        self.assertEqual(lab.kubelet.rejections, [])
        self.judged(lab, {"new"})

    def test_a_pod_that_ends_during_the_list(self):
        """The ended pod is listed without devices, like the pod during its admission."""
        lab = self.lab(cards=TWO_CARDS)
        manager = lab.kubelet.manager
        for i in range(6):
            ends = [self.place(lab, pod(f"ends{i}{k}", container("main", 2, 5)), 0) for k in range(3)]
            lab.wait(lambda: all(lab.running(uid) for uid in ends), "they run")
            made = lab.api.post(PODS, pod(f"new{i}", container("main", 3, 5), container("second", 2, 5)))
            new = made["metadata"]["uid"]

            def between():
                if manager.container_devices(new, "main") and not manager.container_devices(new, "second"):
                    for uid in ends:
                        lab.kubelet.pods[uid].terminal = True
            manager.between = between
            lab.bind(made, annotations_for(made, [1], lab.units))
            lab.wait(lambda: lab.running(new) == ["main", "second"], "the new one runs")
            self.judged(lab, {f"new{i}"})
            manager.between = lambda: None
            for name in [f"ends{i}{k}" for k in range(3)] + [f"new{i}"]:
                lab.api.delete(f"{PODS}/{name}", grace=0)
            lab.wait(lambda: not lab.kubelet.runtime.running(), "all are gone")

    def cgroups(self, style):
        lab = self.lab(cards=ONE_CARD, style=style)
        old = self.place(lab, pod("old", container("main", 8), annotations={"fake/linger": "until-let-go"}), 0)
        lab.wait_phase("old", "Running")
        lab.api.delete(f"{PODS}/old", grace=0)
        lab.wait(lambda: old in lab.held(), "its slice is published")
        new = self.place(lab, pod("new", container("main", 15)), 0)
        lab.kubelet.let_go()
        lab.wait(lambda: lab.running(new), "the new one runs")
        lab.wait(lambda: lab.held() == {}, "deleted pods hold nothing")

    def test_cgroup_v1(self):
        self.cgroups("v1")

    def test_cgroups_of_systemd(self):
        self.cgroups("systemd")


if __name__ == "__main__":
    run_tests(warnings="ignore")
