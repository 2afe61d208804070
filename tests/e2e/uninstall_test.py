# SPDX-License-Identifier: Apache-2.0
"""Uninstallation: running containers continue, and everything that is left on the node is named."""

import os
import subprocess

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

    def left(self):
        """What names us in the API: objects of any kind, and keys and conditions of the node."""
        kinds = kube.kubectl("api-resources", "--verbs=list", "-o", "name").split()
        listed = kube.kubectl("get", ",".join(k for k in kinds if not k.startswith("events")), "-A", "-o", "name", check=False).stdout.split()
        node = kube.get("node", suite.World.node)
        keys = [k for k in {**node["metadata"]["labels"], **node["metadata"]["annotations"]} if k.startswith(("aliquot.dev/", "aliyun.accelerator/"))]
        conditions = [c["type"] for c in node["status"]["conditions"] if c["type"].startswith(("GPUShare", "GPUFence"))]
        count = [kube.COUNT] if kube.COUNT in {**node["status"]["capacity"], **node["status"]["allocatable"]} else []
        return [o for o in listed if "aliquot" in o and kube.NAMESPACE not in o or "gpushare" in o or "resourcepolicies" in o] + keys + conditions + count

    def script(self, *args):
        env = {**os.environ, "KUBECTL": kube.KUBECTL, "HELM": programs.HELM or "helm"}
        return subprocess.run([os.path.join(programs.ROOT, "deploy", "uninstall.sh"), *args], env=env, capture_output=True, text=True, timeout=300, check=False)

    def test_nothing_is_left(self):
        """deploy/uninstall.sh: it waits for the last slice, and what it leaves is on the nodes' disks."""
        self.run_pods(pod("left", container("main", 2)))
        kube.until("the node does not say that it holds slices",
                   lambda: kube.get("node", suite.World.node)["metadata"]["labels"].get("aliquot.dev/holds-slices") == "true")
        self.assertIn("pods hold slices on node/" + suite.World.node, self.script().stderr)
        self.assertNotEqual(self.left(), [])
        self.clean()
        kube.until("the slices are not released",
                   lambda: kube.get("node", suite.World.node)["metadata"]["labels"].get("aliquot.dev/holds-slices") == "false")
        done = self.script()
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(self.left(), [])
        self.assertIn("umount -R /run/aliquot/slices", done.stdout)
        suite.World.programs.apply()
        programs.wait_offered(suite.World.node)

    def test_pods_go_on(self):
        self.run_pods(pod("left", container("main", 2)), pod("plain", container("main")))
        self.audit(["left"])
        before = faults_test.fingerprint(self.pods())
        suite.World.programs.stop()
        kube.until(f"allocatable {kube.MEM} stays", lambda: suite.allocatable(kube.MEM) == 0)
        self.assertEqual(faults_test.fingerprint(self.pods()), before)
