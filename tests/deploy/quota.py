#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The ResourceQuota of docs/operate/quota.md, asked of the API server that KUBECONFIG names, with a kube-controller-manager beside it. A namespace
is created and goes away in the end; its pods name a scheduler that does not exist."""

import json
import os
import re
import subprocess
import time
import unittest

KUBECTL = os.environ.get("KUBECTL", "kubectl")
NAME = "aliquot-quota-test"
PAGE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../docs/operate/quota.md")
PATIENCE = 120


def kubectl(*arguments, stdin=None):
    return subprocess.run([KUBECTL, *arguments], input=stdin, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


def pod(name, **amounts):
    return json.dumps({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "namespace": NAME}, "spec": {
        "schedulerName": "aliquot-test-none", "containers": [{"name": "c", "image": "none", "resources": {"limits": {
            {"mem": "aliyun.com/gpu-mem", "core": "aliyun.com/gpu-core.percentage"}[k]: str(v) for k, v in amounts.items()}}}]}})


class Quota(unittest.TestCase):
    def setUp(self):
        kubectl("create", "namespace", NAME)
        self.addCleanup(kubectl, "delete", "namespace", NAME, "--wait=false")
        with open(PAGE, encoding="utf-8") as page:
            recipe = re.search(r"```yaml\n(.*?)```", page.read(), re.S).group(1)
        made = kubectl("-n", NAME, "apply", "-f", "-", stdin=recipe)
        self.assertEqual(made.returncode, 0, made.stdout)
        end = time.monotonic() + PATIENCE
        while "requests.aliyun.com/gpu-mem" not in self.status("hard"):
            self.assertLess(time.monotonic(), end, "the quota has a status")
            time.sleep(0.2)

    def status(self, part):
        return json.loads(kubectl("-n", NAME, "get", "resourcequota", "gpu", "-o", "json").stdout).get("status", {}).get(part, {})

    def create(self, name, words, **amounts):
        made = kubectl("create", "-f", "-", stdin=pod(name, **amounts))
        self.assertEqual(made.returncode == 0, words is None, made.stdout)
        self.assertIn(words or "created", made.stdout)

    def test_sums(self):
        self.create("a", None, mem=40)
        self.create("b", None, mem=10, core=100)
        self.create("c", "exceeded quota: gpu, requested: requests.aliyun.com/gpu-mem=11, used: requests.aliyun.com/gpu-mem=50, "
                         "limited: requests.aliyun.com/gpu-mem=60", mem=11)
        self.create("d", "exceeded quota: gpu, requested: requests.aliyun.com/gpu-core.percentage=105", mem=1, core=105)
        self.create("e", None, mem=10)
        self.assertEqual(self.status("used"), {"requests.aliyun.com/gpu-mem": "60", "requests.aliyun.com/gpu-core.percentage": "100"})


if __name__ == "__main__":
    unittest.main()
