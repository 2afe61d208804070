# SPDX-License-Identifier: Apache-2.0
"""`aliquot doctor` in a cluster where all is well, in one that is spoilt, and as a user without rights."""

import json
import subprocess
import tempfile
import unittest

import kube
import programs
import suite
from kube import container, pod


def doctor(*options):
    """Its report on the cluster, by name of the check."""
    p = subprocess.run([programs.program("aliquot"), "doctor", "cluster", "-o", "json", *options], stdout=subprocess.PIPE, text=True,
                       timeout=120, check=False)
    return {c["name"]: c for c in json.loads(p.stdout)["checks"]}


def wrong(checks):
    return {name: (c["result"], c["reason"]) for name, c in checks.items() if c["result"] in ("FAIL", "warn")}


class Doctor(suite.Scenario):
    def setUp(self):
        if not isinstance(suite.World.programs, programs.Deployed):
            raise unittest.SkipTest("the checks are for deployed programs: set ALIQUOT_IMAGE and KUBE_SCHEDULER_IMAGE")
        super().setUp()

    def test_healthy_then_spoilt(self):
        self.run_pods(pod("a", container("main", 2)))
        kube.until(lambda: f"something is wrong: {wrong(doctor())}", lambda: not wrong(doctor()))
        kube.kubectl("annotate", "node", suite.World.node, "aliquot.dev/alow-mixed=true")
        try:
            self.assertIn("did you mean annotation aliquot.dev/allow-mixed?", doctor()["labels"]["reason"])
        finally:
            kube.kubectl("annotate", "node", suite.World.node, "aliquot.dev/alow-mixed-")

    def test_without_rights(self):
        kube.kubectl("create", "serviceaccount", "nobody", "-n", kube.NAMESPACE)
        token = kube.kubectl("create", "token", "nobody", "-n", kube.NAMESPACE)
        config = json.loads(kube.kubectl("config", "view", "--raw", "--minify", "-o", "json"))
        config["users"][0]["user"] = {"token": token.strip()}
        with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
            json.dump(config, file)
            file.flush()
            checks = doctor("--kubeconfig", file.name)
        self.assertEqual({c["result"] for name, c in checks.items() if name not in ("api", "clock")}, {"skipped"})
        self.assertIn("403", checks["nodes"]["reason"])
