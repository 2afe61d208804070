# SPDX-License-Identifier: Apache-2.0
"""Whole cards on a node of mode topology. E2E_CARDS may give the simulated cards links."""

import itertools

import audit
import kube
import suite
from kube import container, pod


class Topology(suite.Scenario):
    mode = "topology"

    def cards(self, name):
        """The cards of a started pod: by its annotations, its environment and the ledger."""
        p = self.pod(name)
        cards = sorted(self.grant(name)[0])
        described = audit.cards_of(kube.get("node", suite.World.node))
        env = self.env(name)
        self.assertEqual(env["NVIDIA_VISIBLE_DEVICES"], ",".join(described[i]["uuid"] for i in cards))
        self.assertEqual([k for k in env if k.startswith("ALIYUN_COM_GPU_MEM")], [])
        notes = p["metadata"]["annotations"]
        self.assertEqual(notes["topology.kubernetes.io/gpu-group"], ",".join(map(str, cards)))
        kube.until(f"{name} is not marked as given out", lambda: self.pod(name)["metadata"]["annotations"][audit.ASSIGNED] == "true")
        held = {d["id"] for d in self.ledger()["devs"] for q in d["pods"] if q["name"] == name}
        self.assertEqual({int(str(i).lstrip("gpu")) for i in held}, set(cards))
        return cards

    def test_two_pods_of_two_cards(self):
        self.run_pods(*[pod(n, container("main", whole=2)) for n in ("a", "b")])
        a, b = self.cards("a"), self.cards("b")
        self.assertEqual((len(a), len(b), set(a) & set(b)), (2, 2, set()))
        described = audit.cards_of(kube.get("node", suite.World.node))
        if "peers" in described[0]:
            best = max(described[i]["peers"][k] for i, k in itertools.combinations(sorted(described), 2))
            self.assertEqual(max(described[x[0]]["peers"][x[1]] for x in (a, b)), best)

    def test_more_than_there_are(self):
        n = suite.card_count()
        self.run_pods(pod("all", container("main", whole=n)))
        self.assertEqual(self.cards("all"), list(range(n)))
        kube.create(pod("one", container("main", whole=1)))
        kube.until("the pod is not refused", lambda: [e for e in kube.get("events") if e["involvedObject"]["name"] == "one" and
                                                     ("idle card" in e["message"] or "Insufficient" in e["message"])])
        kube.kubectl("delete", "pod", "all", "-n", kube.NAMESPACE, "--wait=true")
        self.wait_settled(["one"], 120)
        self.assertEqual(len(self.cards("one")), 1)
