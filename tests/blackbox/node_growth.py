#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Slices that grow beyond the limits of their pods: node_growth.py ALIQUOT STORE_SERVER CLOCK_SHIM NVML"""

import json
import os

from isolation_case import INSIDE, MIB, Started, alone
from node_case import ONE_CARD, TWO_CARDS
from node_lab import PODS, container, pod
from grpc_process import run_tests

import page as layout  # on the path of node_lab

GROWTH = "aliquot.dev/grown-slices"
STATUS = "aliquot.dev/resize-status"
REFUSED = "GPUGrowthRefused"
SWITCH = ["--grow-beyond-limits"]


class Grown(Started):
    def grown(self, cards=ONE_CARD):
        lab = self.lab(cards=cards, extra=SWITCH)
        lab.wait(lambda: lab.node_annotation(GROWTH), "the agent lets slices grow")
        lab.schedule(with_extender=True, extra=SWITCH)
        return lab

    def run_pod(self, lab, name, mem, core=0, **spec):
        uid = lab.create(pod(name, container("main", mem, core), **spec))
        return uid, self.started(lab, uid)

    def ask(self, lab, name="a", **sizes):
        lab.annotate(f"{PODS}/{name}", **sizes)

    def until(self, lab, c, mib, status, name="a"):
        def is_so():
            found = lab.get(name)["metadata"].get("annotations", {}).get(STATUS)
            return self.limits(c).limit // MIB == mib and found == status
        lab.wait(is_so, f"{mib} MiB, {status}: {lab.get(name)['metadata'].get('annotations', {}).get(STATUS)}", leap=1)

    def entries(self, lab):
        return {(e["uid"], e["card"]): (e["mem"], e["core"]) for e in json.loads(lab.node_annotation(GROWTH))["slices"]}

    def charges(self, lab):
        """Of each slice of the card, above its limit or below it."""
        return {e["uid"]: e["mem"] - e.get("lessMem", 0) for e in json.loads(lab.node_annotation(GROWTH))["slices"]}

    def used(self, lab):
        """What the scheduler's ledger counts of the card."""
        return lab.inspect()["nodes"][0]["devs"][0]["usedGPU"]

    def ratios(self, lab):
        """The share of each card's time that the agent's metrics show as held."""
        return [v for k, v in lab.metrics().items() if k.startswith("aliquot_node_card_compute_allocated_ratio")]

    def status(self, lab, name="a"):
        return lab.get(name)["metadata"].get("annotations", {}).get(STATUS) or ""

    def hold(self, c, mib):
        """Sets the counter of what processes hold."""
        with open(self.counters(c), "r+b") as f:
            f.seek(layout.USED)
            f.write((mib * MIB // layout.UNIT << layout.USED_SHIFT).to_bytes(8, "little"))

    def both(self):
        """Two pods that have all of the card; "a" was shrunk from 8 to 4, and "b" has grown from 7 to 11."""
        lab = self.grown()
        pods = [self.run_pod(lab, name, mem, restartPolicy="Always") for name, mem in (("a", 8), ("b", 7))]
        self.ask(lab, gpu_mem="4")
        self.until(lab, pods[0][1], 4309, "in force: container 0: gpu-mem 4 of 8")
        self.ask(lab, "b", gpu_mem="11")
        self.until(lab, pods[1][1], 11850, "in force: container 0: gpu-mem 11 of 7", "b")
        self.assertEqual(self.charges(lab), {pods[0][0]: -4, pods[1][0]: 4})
        return lab, pods[0], pods[1]

    def lose(self, lab, *uids, pages=()):
        """The agent's records of these pods, and pages, are lost while it is away. The new one has looked at the pods."""
        records = [os.path.join(lab.state, "records", f"{uid}.json") for uid in uids]
        lab.agent.stop()
        for path in (*records, *pages):
            os.remove(path)
        lab.start_agent()
        lab.wait_ready()
        lab.wait(lambda: all(os.path.exists(path) for path in records), "the records are written again")


class Growth(Grown):
    def test_it_grows_and_shrinks(self):
        lab = self.grown()
        uid, c = self.run_pod(lab, "a", 6, 40)
        self.ask(lab, gpu_mem="10", gpu_core="60")
        self.until(lab, c, 10773, "in force: container 0: gpu-mem 10 of 6, gpu-core 60 of 40")
        self.assertEqual((self.entries(lab), self.limits(c).core), ({(uid, 0): (4, 20)}, 60))
        lab.wait(lambda: self.used(lab) == 10, "the ledger counts it")
        # What is left of the card is all that another pod gets.
        late = lab.create(pod("b", container("main", 7)))
        self.hold(c, 9000)
        self.ask(lab, gpu_mem=None, gpu_core=None)
        self.until(lab, c, 6464, None)
        lab.wait(lambda: self.entries(lab).get((uid, 0)) == (3, 0), "9000 MiB are 9 units")
        self.assertEqual(lab.running(late), [])
        self.hold(c, 1000)
        lab.wait(lambda: self.entries(lab) == {}, "nothing is charged above the limit", leap=1)
        lab.wait(lambda: self.used(lab) in (6, 13), "the ledger counts the limit")
        self.started(lab, late)
        lab.wait(lambda: self.used(lab) == 13, "both limits")

    def test_without_room(self):
        lab = self.grown()
        self.run_pod(lab, "b", 8)
        uid, c = self.run_pod(lab, "a", 4)
        self.ask(lab, gpu_mem="12")
        text = "gpu0 of node n1 has 3 of gpu-mem free, 8 more are needed: 5 are missing"
        lab.wait(lambda: any(text in e for e in lab.events(REFUSED)), "an Event says what is missing")
        self.assertEqual((self.limits(c).limit // MIB, self.entries(lab)), (4309, {}))
        lab.api.delete(f"{PODS}/b")
        self.until(lab, c, 12928, "in force: container 0: gpu-mem 12 of 4")
        self.assertEqual(self.entries(lab), {(uid, 0): (8, 0)})

    def test_a_quota(self):
        lab = self.grown()
        _, c = self.run_pod(lab, "a", 4)
        lab.api.post("/api/v1/namespaces/default/resourcequotas", {
            "metadata": {"name": "team"}, "spec": {"hard": {"requests.aliyun.com/gpu-mem": "8"}}})
        self.ask(lab, gpu_mem="6")
        lab.wait(lambda: any('quota "team"' in e for e in lab.events(REFUSED)), "an Event names the quota")
        self.assertEqual((self.limits(c).limit // MIB, self.entries(lab)), (4309, {}))
        self.assertEqual(self.used(lab), 4)

    def test_a_container_that_is_not_isolated(self):
        """The scheduler does not know the agent's options; the agent gives the permit back."""
        lab = self.grown()
        uid = lab.create(pod("a", container("main", 6, env=[{"name": "CGPU_DISABLE", "value": "true"}])))
        self.started(lab, uid)
        self.ask(lab, gpu_mem="9")
        lab.wait(lambda: any("is not isolated" in e for e in lab.events("GPUResizeRefused")), "it is refused")
        lab.wait(lambda: any("growth permitted" in line for line in list(lab.extender.log)), "a permit")
        lab.wait(lambda: self.entries(lab) == {}, "the agent gives it back")
        lab.wait(lambda: self.used(lab) == 6, "the ledger counts the limit")

    def test_restarts(self):
        """Of the agent, of the scheduler, of the container; each has what the API and the records say."""
        lab = self.grown()
        uid, c = self.run_pod(lab, "a", 6)
        self.ask(lab, gpu_mem="9")
        status = "in force: container 0: gpu-mem 9 of 6"
        self.until(lab, c, 9696, status)
        lab.restart_agent()
        lab.extender.kill()
        lab.wait_ready()
        lab.schedule(with_extender=True, extra=SWITCH)
        lab.wait(lambda: self.used(lab) == 9, "a new ledger counts it")
        self.until(lab, c, 9696, status)
        self.ask(lab, gpu_mem="12")
        self.until(lab, c, 12928, "in force: container 0: gpu-mem 12 of 6")
        # An agent that finds the annotation gone writes it from its records.
        lab.annotate(grown_slices=None)
        lab.wait(lambda: lab.node_annotation(GROWTH) and self.entries(lab) == {(uid, 0): (6, 0)}, "it is there again")
        lab.wait(lambda: self.used(lab) == 12, "and is counted")
        lab.api.delete(f"{PODS}/a")
        lab.wait(lambda: self.entries(lab) == {}, "nothing is left of it")
        lab.wait(lambda: self.used(lab) == 0, "the card is free")

    def test_on_two_cards(self):
        lab = self.grown(TWO_CARDS)
        uid = lab.create(pod("a", container("main", 8), cards=2))
        c = self.started(lab, uid)
        self.ask(lab, gpu_mem="14")
        self.until(lab, c, 7541, "in force: container 0: gpu-mem 14 of 8")
        self.assertEqual((self.limits(c, 1).limit // MIB, self.entries(lab)), (7541, {(uid, 0): (3, 0), (uid, 1): (3, 0)}))
        self.ask(lab, gpu_mem=None)
        self.until(lab, c, 4309, None)
        lab.wait(lambda: self.entries(lab) == {}, "nothing is charged above the limit", leap=1)

    def test_a_container_and_the_kubelet_start_again(self):
        lab = self.grown()
        uid = lab.create(pod("a", container("main", 6), restartPolicy="Always"))
        c = self.started(lab, uid)
        self.ask(lab, gpu_mem="9")
        status = "in force: container 0: gpu-mem 9 of 6"
        self.until(lab, c, 9696, status)
        lab.kubelet.finish(uid, "main", 1)
        lab.wait(lambda: lab.kubelet.runtime.of(uid, "main") is not c and lab.running(uid), "it runs again")
        lab.kubelet.restart()
        lab.wait_ready()
        self.until(lab, lab.kubelet.runtime.of(uid, "main"), 9696, status)
        self.assertEqual((self.entries(lab), self.used(lab)), ({(uid, 0): (3, 0)}, 9))

    def test_a_pod_that_is_deleted_by_force(self):
        """What its processes may hold is charged until they have ended."""
        lab = self.grown()
        uid, c = self.run_pod(lab, "a", 6)
        self.ask(lab, gpu_mem="12")
        self.until(lab, c, 12928, "in force: container 0: gpu-mem 12 of 6")
        kubelet = lab.kubelet
        remove, kubelet._remove = kubelet._remove, lambda obj: None  # its processes run on
        old = lab.get("a")
        lab.api.delete(f"{PODS}/a", grace=0)
        lab.wait(lambda: lab.held(), "the agent heard of it")
        lab.wait(lambda: self.used(lab) == 12, "the ledger counts the slice and its growth")
        self.assertEqual(self.entries(lab), {(uid, 0): (6, 0)})
        late = self.place(lab, pod("b", container("main", 6)), 0)
        self.not_started(lab, "leave no room")
        kubelet._remove = remove
        kubelet.events.put(("DELETED", old))
        lab.wait(lambda: self.entries(lab) == {}, "its processes have ended")
        self.started(lab, late)
        lab.wait(lambda: self.used(lab) == 6, "the card has the other pod alone")

    def test_nonsense(self):
        lab = self.grown()
        uid, c = self.run_pod(lab, "a", 6)
        for text in "4294967295", "18446744073709551616", "0", "-1", "1e3", '{"0":4294967295}', '{"0":9,"0":9}', '{"7":9}', "[9]":
            self.ask(lab, gpu_mem=text)
            lab.wait(lambda: self.status(lab).startswith(("refused: ", "waits: ")), text)
            self.assertEqual((self.limits(c).limit // MIB, self.entries(lab), self.used(lab)), (6464, {}, 6), text)
            self.ask(lab, gpu_mem=None)
            self.until(lab, c, 6464, None)
        self.ask(lab, gpu_mem="9")
        self.until(lab, c, 9696, "in force: container 0: gpu-mem 9 of 6")
        for text in "x", '{"serial":0,"slices":[]}', '{"serial":1,"slices":[{"uid":"","mem":9}]}', '{"serial":9}':
            lab.annotate(grown_slices=text)
            lab.wait(lambda t=text: lab.node_annotation(GROWTH) != t, f"{text} is written again")
            lab.wait(lambda: self.entries(lab) == {(uid, 0): (3, 0)}, "as the record says")
        lab.wait(lambda: self.used(lab) == 9, "the ledger counts it")

    def test_it_is_switched_off_again(self):
        """What is in force stays, and nothing more is accepted."""
        lab = self.grown()
        uid, c = self.run_pod(lab, "a", 6)
        self.ask(lab, gpu_mem="9")
        self.until(lab, c, 9696, "in force: container 0: gpu-mem 9 of 6")
        lab.agent.stop()
        self.ask(lab, gpu_mem="12")
        lab.wait(lambda: self.entries(lab) == {(uid, 0): (6, 0)}, "the scheduler permits it")
        lab.extra = []
        lab.start_agent()
        lab.wait_ready()
        lab.wait(lambda: self.status(lab).startswith("waits: "), "it waits")
        lab.wait(lambda: self.entries(lab) == {(uid, 0): (3, 0)}, "the agent gives it back")
        self.assertEqual(self.limits(c).limit // MIB, 9696)
        self.ask(lab, gpu_mem=None)
        self.until(lab, c, 6464, None)
        lab.wait(lambda: lab.node_annotation(GROWTH) is None, "the annotation is gone")
        lab.wait(lambda: self.used(lab) == 6, "the ledger counts the limit")

    def test_it_waits_where_other_schedulers_placed_a_pod(self):
        """kube-scheduler alone counts limits: the container starts when the slice has shrunk."""
        lab = self.grown()
        _, c = self.run_pod(lab, "a", 6)
        self.ask(lab, gpu_mem="12")
        self.until(lab, c, 12928, "in force: container 0: gpu-mem 12 of 6")
        late = self.place(lab, pod("b", container("main", 6)), 0)
        self.not_started(lab, "slices of gpu0 that have grown beyond their limits leave no room")
        self.ask(lab, gpu_mem=None)
        self.until(lab, c, 6464, None)
        self.started(lab, late)

    def test_counters_with_any_number(self):
        """They count up to the pod's entry: without one, a container cannot hold up its neighbours."""
        lab = self.grown()
        _, c = self.run_pod(lab, "a", 4)
        uid, grown = self.run_pod(lab, "b", 4)
        self.hold(c, 1 << 20)
        self.ask(lab, "b", gpu_mem="6")
        self.until(lab, grown, 6464, "in force: container 0: gpu-mem 6 of 4", "b")
        self.hold(grown, 1 << 20)
        self.run_pod(lab, "late", 5)
        self.ask(lab, "b", gpu_mem=None)
        self.until(lab, grown, 4309, None, "b")
        # The counters of a slice that has grown keep its own charge, and nothing beyond it.
        self.assertEqual(self.entries(lab), {(uid, 0): (2, 0)})
        self.hold(grown, 0)
        lab.wait(lambda: self.entries(lab) == {}, "nothing is charged above the limit", leap=1)

    def test_a_permit_without_room(self):
        """The agent looks itself: two containers do not both get the units that one of them has room for."""
        lab = self.grown()
        uid = lab.create(pod("a", container("one", 2), container("two", 2)))
        one, two = self.started(lab, uid, "one"), self.started(lab, uid, "two")
        self.run_pod(lab, "b", 7)
        self.ask(lab, gpu_mem='{"0":6,"1":6}')
        lab.wait(lambda: lab.events(REFUSED), "the scheduler refuses it")
        slices = [{"uid": uid, "container": i, "card": 0, "mem": 4, "core": 0} for i in (0, 1)]
        lab.annotate(grown_slices=json.dumps({"serial": 100, "slices": slices}))  # as a wrong scheduler would
        text = "waits: growth of container 1 is permitted, but gpu0 of the node has no room for it yet"
        lab.wait(lambda: self.status(lab).startswith(text), "the second one waits")
        self.assertEqual([self.limits(c).limit // MIB for c in (one, two)], [6464, 2154])
        lab.api.delete(f"{PODS}/b")
        self.until(lab, two, 6464, "in force: container 0: gpu-mem 6 of 2; container 1: gpu-mem 6 of 2")

    def test_a_container_that_has_not_started(self):
        """Its size above the limit counts from the record on, and its start waits for room beside the others."""
        lab = self.grown()
        start, late = lab.kubelet._start_container, {"two"}
        lab.kubelet._start_container = lambda p, c, init: c["name"] not in late and start(p, c, init)
        uid = lab.create(pod("a", container("one", 2), container("two", 2)))
        self.started(lab, uid, "one")
        self.ask(lab, gpu_mem='{"1":9}')
        lab.wait(lambda: self.status(lab).endswith("container 1: gpu-mem 9 of 2"), "its record has the size")
        self.assertEqual(self.entries(lab), {(uid, 0): (7, 0)})
        self.started(lab, self.place(lab, pod("b", container("main", 5)), 0))
        late.clear()
        lab.kubelet._work(lab.kubelet.pods[uid])
        self.not_started(lab, "default/a waits: slices of gpu0 that have grown beyond their limits leave no room")
        lab.api.delete(f"{PODS}/b")
        self.assertEqual(self.limits(self.started(lab, uid, "two")).limit // MIB, 9696)

    def test_compute_that_others_have(self):
        """Neither a start nor a permit of a wrong scheduler takes what another slice has of the card."""
        lab = self.grown()
        uid, c = self.run_pod(lab, "a", 4, 40)
        self.ask(lab, gpu_core="60")
        self.until(lab, c, 4309, "in force: container 0: gpu-mem 4 of 4, gpu-core 60 of 40")
        late = self.place(lab, pod("b", container("main", 4, 50)), 0)
        self.not_started(lab, "slices of gpu0 that have grown beyond their limits leave no compute")
        self.ask(lab, gpu_core=None)
        self.started(lab, late)
        self.ask(lab, gpu_core="60")
        lab.wait(lambda: lab.events(REFUSED), "the scheduler refuses it")
        lab.annotate(grown_slices=json.dumps(
            {"serial": 100, "slices": [{"uid": uid, "container": 0, "card": 0, "mem": 0, "core": 20}]}))
        text = "waits: growth of container 0 is permitted, but gpu0 of the node has no compute for it yet"
        lab.wait(lambda: self.status(lab).startswith(text), "it waits")
        self.assertEqual(self.limits(c).core, 40)

    def test_the_switch_of_the_agent_is_off(self):
        lab = self.lab(cards=ONE_CARD)
        lab.schedule(with_extender=True, extra=SWITCH)
        _, c = self.run_pod(lab, "a", 6)
        self.ask(lab, gpu_mem="7")
        lab.wait(lambda: any("lets no slice grow" in e for e in lab.events(REFUSED)), "an Event of the scheduler")
        lab.wait(lambda: any("does not grow beyond its limit" in e for e in lab.events("GPUResizeRefused")), "and of the agent")
        self.assertEqual((self.limits(c).limit // MIB, lab.node_annotation(GROWTH)), (6464, None))


class Shrunk(Grown):
    """Slices below their limits, and what they have given up."""

    def test_a_shrink_serves_growth(self):
        """What it frees is for slices that grow, once the processes have freed it, and never for a new pod."""
        lab = self.grown()
        a, held = self.run_pod(lab, "a", 8)
        b, grown = self.run_pod(lab, "b", 7)
        self.hold(held, 6000)
        self.ask(lab, "b", gpu_mem="11")
        lab.wait(lambda: any("4 are missing" in e for e in lab.events(REFUSED)), "the card is full")
        self.ask(lab, gpu_mem="4")
        self.until(lab, held, 4309, "in force: container 0: gpu-mem 4 of 8")
        lab.wait(lambda: self.charges(lab) == {a: -2}, "6000 MiB are 6 units")
        lab.wait(lambda: any("2 are missing" in e for e in lab.events(REFUSED)), "the rest is not given away", leap=1)
        self.assertEqual(self.limits(grown).limit // MIB, 7541)
        late = lab.create(pod("c", container("main", 1)))
        self.hold(held, 4000)
        self.until(lab, grown, 11850, "in force: container 0: gpu-mem 11 of 7", "b")
        self.assertEqual(self.charges(lab), {a: -4, b: 4})
        self.hold(held, 1 << 20)  # counters have any number
        self.assertEqual((lab.running(late), self.used(lab)), ([], 15))
        # Its limit is what Kubernetes counts; it has it again when the other slice has shrunk.
        self.ask(lab, gpu_mem=None)
        text = "gpu0 of node n1 has 0 of gpu-mem free, 4 more are needed to return to the limit: 4 are missing"
        lab.wait(lambda: any(text in e for e in lab.events(REFUSED)), "an Event says what is missing")
        lab.wait(lambda: self.status(lab).startswith("waits: ") and self.status(lab).endswith("gpu-mem 4 of 8"), "it waits")
        self.assertEqual((self.limits(held).limit // MIB, self.charges(lab)), (4309, {a: -4, b: 4}))
        self.ask(lab, "b", gpu_mem="9")
        lab.wait(lambda: self.charges(lab) == {a: -4, b: 2}, "a part of it is free")
        self.ask(lab, gpu_mem="6")
        self.until(lab, held, 6464, "in force: container 0: gpu-mem 6 of 8")
        self.ask(lab, "b", gpu_mem=None)
        self.ask(lab, gpu_mem=None)
        self.until(lab, held, 8618, None)
        lab.wait(lambda: self.charges(lab) == {}, "both have their limits")
        self.assertEqual((lab.running(late), self.used(lab)), ([], 15))

    def test_a_return_needs_the_scheduler(self):
        """Once the smaller charge is in the API, the scheduler may have promised the rest."""
        lab = self.grown()
        a, c = self.run_pod(lab, "a", 8)
        self.ask(lab, gpu_mem="4")
        lab.wait(lambda: self.charges(lab) == {a: -4}, "the smaller charge")
        lab.extender.kill()
        self.ask(lab, gpu_mem=None)
        lab.wait(lambda: self.status(lab).startswith("waits: the scheduler has not permitted"), "it waits")
        self.assertEqual((self.limits(c).limit // MIB, self.charges(lab)), (4309, {a: -4}))
        lab.schedule(with_extender=True, extra=SWITCH)
        self.until(lab, c, 8618, None)
        self.assertEqual(self.charges(lab), {})

    def test_an_init_container_keeps_the_limit(self):
        """It has all of it when the sandbox begins again, and the slice returns without the scheduler."""
        lab = self.grown()
        _, c = self.run_pod(lab, "a", 8, initContainers=[container("first", 8)])
        self.run_pod(lab, "b", 7)
        self.ask(lab, gpu_mem="4")
        self.until(lab, c, 4309, "in force: container 0: gpu-mem 4 of 8")
        self.ask(lab, "b", gpu_mem="8")
        lab.wait(lambda: any("1 are missing" in e for e in lab.events(REFUSED)), "nothing is given up")
        self.assertEqual(self.charges(lab), {})
        lab.extender.kill()
        self.ask(lab, gpu_mem=None)
        self.until(lab, c, 8618, None)

    def test_compute_of_a_shrunk_slice(self):
        lab = self.grown()
        a, small = self.run_pod(lab, "a", 4, 60)
        _, grown = self.run_pod(lab, "b", 4, 40)
        self.ask(lab, gpu_core="20")
        self.until(lab, small, 4309, "in force: container 0: gpu-mem 4 of 4, gpu-core 20 of 60")
        self.ask(lab, "b", gpu_core="80")
        self.until(lab, grown, 4309, "in force: container 0: gpu-mem 4 of 4, gpu-core 80 of 40", "b")
        self.assertEqual(self.ratios(lab), [1], "the metrics have each part of the card once")
        self.ask(lab, gpu_core=None)
        lab.wait(lambda: any("40 more are needed to return to the limit" in e for e in lab.events(REFUSED)), "it waits")
        self.assertEqual((self.limits(small).core, self.limits(grown).core), (20, 80))
        self.ask(lab, "b", gpu_core=None)
        self.until(lab, small, 4309, None)
        self.assertEqual(self.limits(small).core, 60)

    def test_a_shrunk_slice_after_restarts(self):
        """Agent, scheduler, container and kubelet begin again, and the annotation is lost: no sum changes."""
        lab, (a, small), (b, grown) = self.both()

        def is_so():
            lab.wait(lambda: lab.node_annotation(GROWTH) and self.charges(lab) == {a: -4, b: 4}, "the charges")
            lab.wait(lambda: self.used(lab) == 15, "the ledger")
            self.until(lab, lab.kubelet.runtime.of(a, "main"), 4309, "in force: container 0: gpu-mem 4 of 8")
            self.until(lab, lab.kubelet.runtime.of(b, "main"), 11850, "in force: container 0: gpu-mem 11 of 7", "b")

        lab.restart_agent()
        lab.extender.kill()
        lab.wait_ready()
        lab.schedule(with_extender=True, extra=SWITCH)
        is_so()
        lab.annotate(grown_slices=None)
        is_so()
        for uid in a, b:
            before = lab.kubelet.runtime.of(uid, "main")
            lab.kubelet.finish(uid, "main", 1)
            lab.wait(lambda u=uid, c=before: lab.kubelet.runtime.of(u, "main") is not c and lab.running(u), "it runs again")
        lab.kubelet.restart()
        lab.wait_ready()
        is_so()
        # The new leader knows the wish of a pod that has no annotation any more.
        self.ask(lab, gpu_mem=None)
        lab.wait(lambda: any("return to the limit" in e for e in lab.events(REFUSED)), "it waits")
        lab.annotate(grown_slices=None)  # a wish is no permit
        lab.wait(lambda: lab.node_annotation(GROWTH), "it is there again")
        self.assertEqual(self.charges(lab), {a: -4, b: 4})
        lab.extender.kill()
        lab.schedule(with_extender=True, extra=SWITCH)
        self.ask(lab, "b", gpu_mem=None)
        self.until(lab, lab.kubelet.runtime.of(a, "main"), 8618, None)
        lab.wait(lambda: self.charges(lab) == {}, "both have their limits")

    def test_a_lost_record_of_a_shrunk_slice(self):
        """Its size is that of its page. The limit would be more than the card has beside the slice that has grown."""
        lab, (a, small), (b, grown) = self.both()
        self.ask(lab, gpu_mem=None)
        lab.wait(lambda: self.status(lab).startswith("waits: "), "it waits for its limit")
        written = [self.limits(c).generation for c in (small, grown)]
        for lost in (a,), (b,), (a, b):
            self.lose(lab, *lost)
            self.assertEqual([self.limits(c).limit // MIB for c in (small, grown)], [4309, 11850], lost)
            lab.wait(lambda: self.charges(lab) == {a: -4, b: 4} and self.used(lab) == 15, f"the charges: {self.charges(lab)}")
        self.assertEqual([self.limits(c).generation for c in (small, grown)], written, "no page had another size meanwhile")
        lab.kubelet.finish(a, "main", 1)
        lab.wait(lambda: lab.kubelet.runtime.of(a, "main") is not small and lab.running(a), "it runs again")
        small = lab.kubelet.runtime.of(a, "main")
        lab.extender.kill()
        lab.kubelet.restart()
        lab.wait_ready()
        lab.schedule(with_extender=True, extra=SWITCH)
        self.assertEqual((self.limits(small).limit // MIB, self.charges(lab)), (4309, {a: -4, b: 4}))
        self.ask(lab, "b", gpu_mem=None)
        self.until(lab, small, 8618, None)
        lab.wait(lambda: self.charges(lab) == {}, "both have their limits")

    def test_a_lost_record_beside_a_lost_annotation(self):
        """The pages say what the annotation is written from, memory and compute."""
        lab = self.grown()
        (a, small), (b, grown) = (self.run_pod(lab, name, mem, core) for name, mem, core in (("a", 8, 60), ("b", 7, 40)))
        self.ask(lab, gpu_mem="4", gpu_core="20")
        self.until(lab, small, 4309, "in force: container 0: gpu-mem 4 of 8, gpu-core 20 of 60")
        self.ask(lab, "b", gpu_mem="11", gpu_core="80")
        self.until(lab, grown, 11850, "in force: container 0: gpu-mem 11 of 7, gpu-core 80 of 40", "b")
        self.ask(lab, gpu_mem=None, gpu_core=None)
        lab.wait(lambda: self.status(lab).startswith("waits: "), "it waits for its limit")
        lab.annotate(grown_slices=None)
        self.lose(lab, a, b)
        lab.wait(lambda: lab.node_annotation(GROWTH) and self.charges(lab) == {a: -4, b: 4}, "the charges")
        self.assertEqual([(self.limits(c).limit // MIB, self.limits(c).core) for c in (small, grown)], [(4309, 20), (11850, 80)])

    def test_a_lost_record_without_a_page(self):
        """As after a reboot: the slice has its limit, and its container starts when the card has room for it."""
        lab, (a, small), (b, grown) = self.both()
        self.ask(lab, gpu_mem=None)
        lab.wait(lambda: self.status(lab).startswith("waits: "), "it waits for its limit")
        start, late = lab.kubelet._start_container, {a}
        lab.kubelet._start_container = lambda p, c, init: p.uid not in late and start(p, c, init)
        lab.kubelet.finish(a, "main", 1)
        self.lose(lab, a, pages=[small.options["mounts"][f"{INSIDE}/slice/0/limits"][0]])
        lab.wait(lambda: self.charges(lab) == {b: 4}, "the limit is charged")
        late.clear()
        lab.kubelet._work(lab.kubelet.pods[a])
        self.not_started(lab, "default/a waits: slices of gpu0 that have grown beyond their limits leave no room")
        self.assertEqual(self.limits(grown).limit // MIB, 11850)
        self.ask(lab, "b", gpu_mem=None)
        self.assertEqual(self.limits(self.started(lab, a)).limit // MIB, 8618)

    def test_a_shrunk_pod_that_ends(self):
        """The growth beside it rests on nothing else: a new pod sees the card without it."""
        lab, _, (b, grown) = self.both()
        late = lab.create(pod("c", container("main", 5)))
        lab.api.delete(f"{PODS}/a")
        lab.wait(lambda: self.charges(lab) == {b: 4} and self.used(lab) == 11, "the limit of the pod is free")
        self.started(lab, lab.create(pod("d", container("main", 4))))
        self.assertEqual((lab.running(late), self.limits(grown).limit // MIB), ([], 11850))

    def test_a_switch_that_is_off_beside_a_shrunk_slice(self):
        """Nothing grows any more; the shrunk slice has its limit again when the card has room."""
        lab, (_, small), (b, _) = self.both()
        lab.agent.stop()
        lab.extra = []
        lab.start_agent()
        lab.wait_ready()
        lab.wait(lambda: self.charges(lab) == {b: 4}, "no other slice may have it")
        self.ask(lab, gpu_mem=None)
        lab.wait(lambda: "no room for it yet" in self.status(lab), "the other slice has it")
        self.assertEqual(self.limits(small).limit // MIB, 4309)
        self.ask(lab, "b", gpu_mem=None)
        self.until(lab, small, 8618, None)
        lab.wait(lambda: lab.node_annotation(GROWTH) is None, "the annotation is gone")

    def test_what_a_container_before_its_start_has_given_up(self):
        """It takes nothing from what the other container of its pod still holds."""
        lab = self.grown()
        start = lab.kubelet._start_container
        lab.kubelet._start_container = lambda p, c, init: c["name"] != "two" and start(p, c, init)
        a = lab.create(pod("a", container("one", 4), container("two", 4)))
        self.hold(self.started(lab, a, "one"), 4000)
        b, grown = self.run_pod(lab, "b", 4)
        self.ask(lab, gpu_mem='{"0":1,"1":1}')
        lab.wait(lambda: self.charges(lab) == {a: -3}, "one holds its limit, two has given up 3")
        self.ask(lab, "b", gpu_mem="10")
        self.until(lab, grown, 10773, "in force: container 0: gpu-mem 10 of 4", "b")
        self.assertEqual(self.charges(lab), {a: -3, b: 6})
        late = self.place(lab, pod("c", container("main", 3)), 0)  # by limits, 15 of 15
        self.not_started(lab, "default/c waits: slices of gpu0 that have grown beyond their limits leave no room")
        self.ask(lab, "b", gpu_mem="8")
        self.started(lab, late)

    def test_a_lost_annotation_after_a_shrink(self):
        """What the processes still hold is charged again, up to what was permitted, and keeps others from starting."""
        lab = self.grown()
        uid, c = self.run_pod(lab, "a", 4)
        self.ask(lab, gpu_mem="12")
        self.until(lab, c, 12928, "in force: container 0: gpu-mem 12 of 4")
        self.hold(c, 10000)
        self.ask(lab, gpu_mem=None)
        self.until(lab, c, 4309, None)
        lab.wait(lambda: self.entries(lab) == {(uid, 0): (6, 0)}, "10000 MiB are 10 units")
        lab.agent.stop()
        lab.annotate(grown_slices=None)
        self.hold(c, 1 << 20)
        lab.start_agent()
        lab.wait_ready()
        lab.wait(lambda: lab.node_annotation(GROWTH) and self.entries(lab) == {(uid, 0): (6, 0)}, "no more than before")
        late = self.place(lab, pod("b", container("main", 6)), 0)
        self.not_started(lab, "slices of gpu0 that have grown beyond their limits leave no room")
        self.hold(c, 1000)
        lab.wait(lambda: self.entries(lab) == {}, "nothing is charged above the limit", leap=1)
        self.started(lab, late)
        self.hold(c, 1 << 20)
        lab.annotate(grown_slices=None)
        lab.wait(lambda: lab.node_annotation(GROWTH), "it is there again")
        self.assertEqual(self.entries(lab), {})


if __name__ == "__main__":
    alone()
    run_tests(verbosity=2)
