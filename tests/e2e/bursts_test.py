# SPDX-License-Identifier: Apache-2.0
"""Many pods at once, when a guess about the container of an Allocate call goes wrong."""

import os
import random
import threading

import kube
import suite
from kube import container, deployment, pod

ROUNDS = int(os.environ.get("E2E_ROUNDS", "3"))
PODS = int(os.environ.get("E2E_PODS", "30"))
SEED = int(os.environ.get("E2E_SEED", "1"))


def shape(rng, name):
    """A pod of any shape of memory only, and its units."""
    n = rng.randint(1, 3)
    report = kube.REPORT
    kind = rng.choice(("one", "one", "pair", "init-same", "init-less", "init-more", "side", "wide", "plain"))
    if kind == "pair":
        return pod(name, container("a", n), container("b", rng.randint(1, 2))), n + 2
    if kind == "init-same":
        return pod(name, container("main", n), init=[container("init", n, script=report)]), n
    if kind == "init-less":
        return pod(name, container("main", n + 1), init=[container("init", 1, script=report)]), n + 1
    if kind == "init-more":
        return pod(name, container("main", n), init=[container("init", n + 2, script=report)]), n + 2
    if kind == "side":
        return pod(name, container("main", n), init=[container("side", 1, restartPolicy="Always")]), n + 1
    if kind == "wide" and suite.card_count() > 1:
        return pod(name, container("main", 2 * n), labels={kube.COUNT: "2"}), 2 * n
    if kind == "plain":
        return pod(name, container("main", n), container("other")), n
    return pod(name, container("main", n)), n


def mixed(rng, prefix, units):
    """Pods of mixed shapes that fit together: three quarters of the node, so that fragments leave room for all."""
    made, used = [], 0
    for i in range(PODS):
        p, n = shape(rng, f"{prefix}-{i}")
        if used + n > units * 3 // 4:
            break
        made.append(p)
        used += n
    return made


class Burst(suite.Scenario):
    def setUp(self):
        super().setUp()
        self.rng = random.Random(SEED)

    def check(self, pods):
        found = self.run_pods(*pods, seconds=180)
        self.assertEqual(self.refusals(found.values()), [])
        self.audit()

    def test_mixed_shapes(self):
        for turn in range(ROUNDS):
            with self.subTest(round=turn, seed=SEED):
                self.check(mixed(self.rng, f"m{turn}", suite.allocatable(kube.MEM)))
                self.sweep()

    def sweep(self):
        kube.kubectl("delete", "pod", "--all", "-n", kube.NAMESPACE, "--wait=true", timeout=150)
        self.empty()

    def test_all_alike(self):
        """The pods differ in nothing but the container of the call: every guess gets this case
        wrong."""
        for turn in range(ROUNDS):
            self.check([pod(f"same{turn}-{i}", container("main", 2)) for i in range(min(PODS, suite.card_count() * 7))])
            self.sweep()

    def test_spread(self):
        suite.node_labels(placement="spread")
        self.check(mixed(self.rng, "s", suite.allocatable(kube.MEM)))

    def test_deleted_while_others_come(self):
        """Pods end and start at the same time: what one releases the next gets, never both."""
        n = min(PODS, suite.card_count() * 4)
        self.run_pods(*[pod(f"old-{i}", container("main", 2)) for i in range(n)])
        leave = threading.Thread(target=kube.kubectl, args=(
            "delete", "pod", "-n", kube.NAMESPACE, "--wait=false", *[f"old-{i}" for i in range(0, n, 2)]))
        leave.start()
        self.run_pods(*[pod(f"new-{i}", container("main", 2)) for i in range(n // 2)], seconds=180)
        leave.join()
        kube.until("the old ones do not go", lambda: len(self.pods()) == n - (n + 1) // 2 + n // 2)
        self.audit()


class ComputeBurst(Burst):
    mode = "core_mem"

    def test_mixed_shapes(self):
        made = []
        for i in range(min(PODS, suite.card_count() * 4)):
            mem, core = self.rng.randint(1, 3), 5 * self.rng.randint(1, 5)
            init = [container("init", 1, 5, script=kube.REPORT)] if i % 5 == 0 else []
            made.append(pod(f"c-{i}", container("main", mem, core), init=init))
        self.check(made)

    test_all_alike = test_spread = test_deleted_while_others_come = None


class Deployments(suite.Scenario):
    def test_scaled_up_and_down(self):
        """Controllers create the pods, all alike, again and again."""
        apps = {"small": (1, 6), "middle": (2, 5), "large": (4, 4)}
        kube.create(*[deployment(name, 0, pod("t", container("main", mem))) for name, (mem, _) in apps.items()])
        for _ in range(ROUNDS):
            for name, (_, replicas) in apps.items():
                kube.kubectl("scale", "deployment", name, f"--replicas={replicas}", "-n", kube.NAMESPACE)
            total = sum(n for _, n in apps.values())
            kube.until(lambda: "\n".join(map(kube.describe, self.pods())), lambda: self.running() == total, 180)
            self.assertEqual(self.refusals(self.pods()), [])
            self.audit()
            for name in apps:
                kube.kubectl("scale", "deployment", name, "--replicas=0", "-n", kube.NAMESPACE)
            kube.until("they do not end", lambda: not self.pods())
            self.empty()

    def running(self):
        pods = self.pods()
        return len(pods) if all(kube.settled(p) for p in pods) else -1

    def test_rolled(self):
        kube.create(deployment("rolled", 6, pod("t", container("main", 3))))
        kube.kubectl("rollout", "status", "deployment/rolled", "-n", kube.NAMESPACE, "--timeout=90s", timeout=100)
        kube.kubectl("rollout", "restart", "deployment/rolled", "-n", kube.NAMESPACE)
        kube.kubectl("rollout", "status", "deployment/rolled", "-n", kube.NAMESPACE, "--timeout=90s", timeout=100)
        kube.until("the old ones do not end", lambda: len(self.pods()) == 6)
        self.audit()
