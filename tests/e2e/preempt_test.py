# SPDX-License-Identifier: Apache-2.0
"""Preemption when a card, not the node, is full."""

import json

import audit
import kube
import programs
import suite
from kube import container, pod

CLASSES = {"aliquot-e2e-low": 10, "aliquot-e2e-high": 100000}


def priority(name, value, policy="PreemptLowerPriority"):
    return {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": name}, "value": value,
            "preemptionPolicy": policy}


def of_class(name, mem, priority_class, **more):
    return pod(name, container("main", mem), priorityClassName=priority_class, **more)


def evicts():
    """Was the deployed scheduler started with --evict-for-cards?"""
    found = kube.get("deployment", "aliquot-scheduler", namespace=programs.SYSTEM)
    return bool(found) and "--evict-for-cards" in found["spec"]["template"]["spec"]["containers"][0].get("args", [])


class Preemption(suite.Scenario):
    placement = "spread"

    def setUp(self):
        super().setUp()
        if suite.card_count() < 2:
            self.skipTest("needs 2 cards")
        for name, value in CLASSES.items():
            kube.kubectl("apply", "-f", "-", stdin=json.dumps(priority(name, value)))
            self.addCleanup(kube.kubectl, "delete", "priorityclass", name, "--ignore-not-found")
        self.units = audit.cards_of(kube.get("node", suite.World.node))[0]["units"]

    def card_of(self, name):
        return next(iter(self.grant(name)[0]))

    def gone(self, names):
        """The pods that no longer exist, or are ending."""
        alive = {p["metadata"]["name"] for p in self.pods() if not p["metadata"].get("deletionTimestamp")}
        return [n for n in names if n not in alive]

    def test_two_victims_of_one_card(self):
        """Full cards, each with three low-priority pods. kube-scheduler's two victims may lie on
        two cards, which frees none."""
        third = self.units // 3
        low = [f"low-{i}" for i in range(3 * suite.card_count())]
        self.run_pods(*[of_class(n, third, "aliquot-e2e-low") for n in low], seconds=180)
        cards = {n: self.card_of(n) for n in low}
        free = self.units - 3 * third
        self.run_pods(of_class("high", free + 2 * third, "aliquot-e2e-high"), seconds=120)
        victims = self.gone(low)
        self.assertEqual(len(victims), 2)
        self.assertEqual({cards[n] for n in victims}, {self.card_of("high")})
        self.audit()

    def test_room_in_pieces(self):
        """Each card has a little room, the node has enough: kube-scheduler evicts no pod, the
        evictor does."""
        if not evicts():
            self.skipTest("the deployed scheduler has no --evict-for-cards")
        left = self.units // 4
        low = [f"low-{i}" for i in range(suite.card_count())]
        self.run_pods(*[of_class(n, self.units - left, "aliquot-e2e-low") for n in low], seconds=180)
        cards = {n: self.card_of(n) for n in low}
        self.assertGreaterEqual(left * suite.card_count(), left + 2, "the node must have room for the pod")
        self.run_pods(of_class("high", left + 2, "aliquot-e2e-high"), seconds=120)
        victims = self.gone(low)
        self.assertEqual(len(victims), 1)
        self.assertEqual(cards[victims[0]], self.card_of("high"))
        self.assertTrue(self.events(victims[0], "Preempted"))
        self.assertTrue(self.events("high", "Preempting"))
        self.audit()

    def test_room_in_pieces_without_the_right_to_preempt(self):
        if not evicts():
            self.skipTest("the deployed scheduler has no --evict-for-cards")
        kube.kubectl("apply", "-f", "-", stdin=json.dumps(priority("aliquot-e2e-never", 100000, "Never")))
        self.addCleanup(kube.kubectl, "delete", "priorityclass", "aliquot-e2e-never", "--ignore-not-found")
        left = self.units // 4
        low = [f"low-{i}" for i in range(suite.card_count())]
        self.run_pods(*[of_class(n, self.units - left, "aliquot-e2e-low") for n in low], seconds=180)
        kube.create(of_class("never", left + 2, "aliquot-e2e-never"))
        kube.until("it is not refused for its cards", lambda: [
            e for e in self.events("never", "FailedScheduling") if "no card has" in e["message"]])
        # A pod that may preempt comes later and is placed. The first pod was refused before it and
        # has evicted no pod.
        self.run_pods(of_class("high", left + 2, "aliquot-e2e-high"), seconds=120)
        self.assertEqual(len(self.gone(low)), 1)
        self.assertFalse(self.events("never", "Preempting"))
