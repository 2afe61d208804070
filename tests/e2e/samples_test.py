# SPDX-License-Identifier: Apache-2.0
"""The samples of the README with the image of `make image`: what they say in `kubectl logs`."""

import json
import os
import unittest

import kube
import suite

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
IMAGE = "docker.io/library/aliquot:0.1.0"


def sample(name):
    """The objects of a manifest. Only the image's name changes, where the cluster has it under another one."""
    objects = json.dumps(kube.read_manifest(os.path.join(ROOT, "samples", name)))
    return json.loads(objects.replace(IMAGE, os.environ.get("ALIQUOT_IMAGE", IMAGE)))


@unittest.skipUnless(os.environ.get("E2E_DRIVER"), "E2E_DRIVER names no simulated driver")
class SampleImages(suite.Scenario):
    mode = "core_mem"

    def run_sample(self, name):
        """Applies a sample and waits for its Jobs. Returns the logs by Job and container."""
        jobs = sample(name)
        for job in jobs:
            job["metadata"]["namespace"] = kube.NAMESPACE
            kube.kubectl("apply", "-n", kube.NAMESPACE, "-f", "-", stdin=json.dumps(job))
        logs = {}
        for job in jobs:
            own = job["metadata"]["name"]
            kube.kubectl("wait", "-n", kube.NAMESPACE, "--for=condition=complete", f"job/{own}", "--timeout=120s", timeout=150)
            spec = job["spec"]["template"]["spec"]
            for container in [*spec.get("initContainers", []), *spec["containers"]]:
                logs[own, container["name"]] = kube.kubectl("logs", "-n", kube.NAMESPACE, f"job/{own}", "-c", container["name"])
        return logs

    def test_job(self):
        logs = self.run_sample("core-mem/job.yaml")
        self.assertIn("2154 MiB in all", logs["cuda-sample", "cuda-sample"])
        self.assertRegex(logs["cuda-sample", "cuda-sample"], r"\d+MiB / +2154MiB")

    def test_memory(self):
        logs = self.run_sample("core-mem/memory.yaml")
        self.assertIn("CUDA_ERROR_OUT_OF_MEMORY (2)", logs["cuda-memory", "too-much"])
        self.assertIn("2154 MiB in all", logs["cuda-memory", "cuda-memory"])

    def test_compute(self):
        logs = self.run_sample("core-mem/compute.yaml")
        for job in "compute-30", "compute-60":
            self.assertRegex(logs[job, "work"], r"(?m)^done \d+ blocks in ")
