# SPDX-License-Identifier: Apache-2.0
"""What isolates a container: its pages and the gate, as the runtime mounts them. The audit of every
other scenario checks them, too; this file has what only isolation does."""

import kube
import suite
from kube import container, pod

INODE = "stat -c %i /.aliquot/slice/0/counters"


class Isolation(suite.Scenario):
    mode = "core_mem"

    def test_each_container_has_its_own(self):
        self.run_pods(pod("two", container("main", 2, 30), container("second", 3, 10), container("none")))
        seen = self.env("two", ("main", "second", "none"))
        self.assertEqual([len([k for k in env if k.startswith("PAGE_")]) for env in seen], [1, 1, 0])
        self.audit()

    def test_two_cards_two_pages(self):
        if suite.card_count() < 2:
            self.skipTest("needs 2 cards")
        self.run_pods(pod("wide", container("main", 4), labels={kube.COUNT: "2"}))
        self.assertEqual({k for k in self.env("wide") if k.startswith("PAGE_")}, {"PAGE_0", "PAGE_1"})
        self.audit()

    def test_disabled_by_its_user(self):
        """It has a page with all of the card as its limit."""
        self.run_pods(pod("free", container("main", 2, env=[{"name": "CGPU_DISABLE", "value": "true"}])))
        self.audit()

    def test_shared_without_isolation(self):
        suite.switch_mode("share")
        self.run_pods(pod("shared", container("main", 2)))
        self.assertEqual([k for k in self.env("shared") if k.startswith(("PAGE_", "PRELOAD"))], [])
        self.audit()

    def test_counters_outlive_a_container(self):
        """A container that restarts continues with its counters."""
        script = (f"{INODE} >> /keep/seen; [ $(wc -l < /keep/seen) -gt 1 ] || exit 1; "
                  f"echo COUNTERS_SEEN=$(sort -u /keep/seen | wc -l); {kube.STAY}")
        self.run_pods(pod("again", container("main", 2, script=script, volumeMounts=[{"name": "keep", "mountPath": "/keep"}]),
                          restart="Always", volumes=[{"name": "keep", "emptyDir": {}}]))
        self.assertEqual(self.env("again")["COUNTERS_SEEN"], "1")
        self.audit()

    def test_slices_end_with_their_pods(self):
        """The next pod on the same devices starts with new counters."""
        script = f"echo COUNTERS=$(od -An -tu8 -j{kube.layout.USED} -N8 /.aliquot/slice/0/counters | tr -d ' '); {kube.STAY}"
        for name in "first", "next":
            self.run_pods(pod(name, container("main", 15, script=script)))
            self.assertEqual(self.env(name)["COUNTERS"], "0")
            kube.kubectl("delete", "pod", "-n", kube.NAMESPACE, name, "--wait=true", timeout=60)
