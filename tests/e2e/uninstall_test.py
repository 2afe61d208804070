# SPDX-License-Identifier: Apache-2.0
"""Uninstallation: running containers continue, and everything that is left on the node is named."""

import faults_test
import kube
import programs
import suite
from kube import container, pod


class Uninstall(suite.Scenario):
    """Runs last: none of our programs runs after it."""

    def clean(self):
        kube.kubectl("delete", "pod", "--all", "-n", kube.NAMESPACE, "--wait=true", timeout=150)

    def setUp(self):
        super().setUp()
        if suite.World.programs.what == "deployed before":
            self.skipTest("what others have deployed is not taken away")

    def test_installed_again(self):
        """What was held is still held: the next installation counts it and places pods beside it.
        """
        self.run_pods(pod("left", container("main", 2)), pod("pair", container("a", 3), container("b", 1)))
        self.audit()
        before = faults_test.fingerprint(self.pods())
        suite.World.programs.stop()
        kube.until(f"allocatable {kube.MEM} stays", lambda: suite.allocatable(kube.MEM) == 0)
        suite.World.programs.start()
        programs.wait_offered(suite.World.node)
        self.run_pods(pod("next", container("main", 4)))
        self.assertEqual({n: f for n, f in faults_test.fingerprint(self.pods()).items() if n in before}, before)
        self.audit()

    def test_pods_go_on(self):
        self.run_pods(pod("left", container("main", 2)), pod("plain", container("main")))
        self.audit(["left"])
        before = faults_test.fingerprint(self.pods())
        suite.World.programs.stop()
        kube.until(f"allocatable {kube.MEM} stays", lambda: suite.allocatable(kube.MEM) == 0)
        self.assertEqual(faults_test.fingerprint(self.pods()), before)
