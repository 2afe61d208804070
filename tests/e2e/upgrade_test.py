# SPDX-License-Identifier: Apache-2.0
"""Another version takes a node over while its containers run. Either version reads the other's
records, pages and annotations, and no container restarts. E2E_OLD_IMAGE names the image of the
version before, and with E2E_HELM E2E_OLD_CHART its chart."""

import faults_test
import kube
import programs
import suite
from kube import container, pod

OLD = programs.OLD_IMAGE
PAGE = "stat -c %i /.aliquot/slice/0/counters; od -An -tx1 -N64 /.aliquot/slice/0/limits"


class Upgrade(suite.Scenario):
    mode = "core_mem"

    def setUp(self):
        super().setUp()
        if not OLD:
            self.skipTest("E2E_OLD_IMAGE, the image of the version before, is not given")
        if not suite.World.programs.image or suite.World.programs.overlay:
            self.skipTest("what others have deployed is not replaced")
        if programs.HELM and not programs.OLD_CHART:
            self.skipTest("E2E_OLD_CHART, the chart of the version before, is not given")

    def use(self, image):
        suite.World.programs.change_image(image)
        programs.wait_offered(suite.World.node)

    def use_first(self):
        """The older version, as it was installed before there was this one: Helm can go back to a revision that was there."""
        if programs.HELM:
            suite.World.programs.stop()
            suite.World.programs.image = OLD
            suite.World.programs.start()
            programs.wait_offered(suite.World.node)
        else:
            self.use(OLD)

    def change(self, image):
        """Changes the version while pods of a Deployment come. The kubelet refuses some for good while no agent is there, and others follow them."""
        kube.create(kube.deployment("arrives", 2, pod("-", container("main", 1, 5))))
        self.use(image)

        def arrived():
            found = [p for p in self.pods() if p["metadata"]["name"].startswith("arrives")]
            return sum(p["status"]["phase"] == "Running" and kube.settled(p) for p in found) == 2
        kube.until(lambda: "\n".join(map(kube.describe, self.pods())), arrived, 120)
        kube.kubectl("delete", "deployment", "-n", kube.NAMESPACE, "arrives", "--cascade=foreground", "--wait=true", timeout=60)

    def page(self, name):
        """What the container sees of its page: the file itself, and its limits."""
        return kube.kubectl("exec", "-n", kube.NAMESPACE, name, "-c", "main", "--", "sh", "-c", PAGE)

    def begin(self, number):
        """Pods of this version: one that stays to the end, one that restarts under the next
        version, one that ends."""
        self.run_pods(pod(f"stays-{number}", container("main", 2, 10), container("second", 1, 5)),
                      pod(f"again-{number}", container("main", 1, 10), restart="Always"),
                      pod(f"ends-{number}", container("main", 2, 20)))
        self.audit()

    def start_again(self, name):
        """The container ends and the kubelet starts it: the agent proves the start by the other
        version's record. The end of the container may end the exec, too."""
        kube.kubectl("exec", "-n", kube.NAMESPACE, name, "-c", "main", "--", "kill", "1", check=False)

        def runs_again():
            status = self.pod(name)["status"]["containerStatuses"][0]
            return status["restartCount"] == 1 and "running" in status["state"]
        kube.until(lambda: f"{name} does not start again: {kube.describe(self.pod(name))}", runs_again)

    def test_both_directions(self):
        new = suite.World.programs.image
        self.addCleanup(self.use, new)
        self.use_first()
        self.begin(0)
        for number, image in enumerate((new, OLD, new), 1):
            before = faults_test.fingerprint(self.pods())
            pages = {name: self.page(name) for name in before}
            self.change(image)
            self.assertEqual(faults_test.fingerprint(self.pods()), before)
            self.assertEqual({name: self.page(name) for name in before}, pages)
            self.audit()
            self.start_again(f"again-{number - 1}")
            kube.kubectl("delete", "pod", "-n", kube.NAMESPACE, f"ends-{number - 1}", "--wait=true", timeout=60)
            self.audit()
            self.begin(number)
