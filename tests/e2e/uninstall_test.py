# SPDX-License-Identifier: Apache-2.0
"""The end: what runs goes on, and what is left on the node is said."""

import faults_test
import kube
import suite
from kube import container, pod


class Uninstall(suite.Scenario):
    """Comes last: nothing of ours runs behind it."""

    def clean(self):
        kube.kubectl("delete", "pod", "--all", "-n", kube.NAMESPACE, "--wait=true", timeout=150)

    def test_pods_go_on(self):
        programs = suite.World.programs
        if programs.what == "deployed before":
            self.skipTest("what others have deployed is not taken away")
        self.run_pods(pod("left", container("main", 2)), pod("plain", container("main")))
        self.audit(["left"])
        before = faults_test.fingerprint(self.pods())
        programs.stop()
        kube.until(f"allocatable {kube.MEM} stays", lambda: suite.allocatable(kube.MEM) == 0)
        self.assertEqual(faults_test.fingerprint(self.pods()), before)
