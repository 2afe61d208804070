# SPDX-License-Identifier: Apache-2.0
"""The answers of admission to pods and templates at submission."""

import copy
import json

import kube
import suite
from kube import container, deployment, pod


def job(name, template):
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": name, "labels": {kube.RUN: "true"}},
            "spec": {"template": {"metadata": {"labels": template["metadata"]["labels"]}, "spec": template["spec"]}}}


def cron_job(name, template):
    return {"apiVersion": "batch/v1", "kind": "CronJob", "metadata": {"name": name, "labels": {kube.RUN: "true"}},
            "spec": {"schedule": "0 0 1 1 *", "jobTemplate": {"spec": job(name, template)["spec"]}}}


def stateful_set(name, template):
    made = deployment(name, 1, template)
    made["kind"] = "StatefulSet"
    made["spec"]["serviceName"] = name
    return made


def daemon_set(name, template):
    made = deployment(name, 1, template)
    made["kind"] = "DaemonSet"
    del made["spec"]["replicas"]
    return made


class Webhook(suite.Scenario):
    mode = "core_mem"

    def setUp(self):
        super().setUp()
        hooks = kube.get("validatingwebhookconfigurations", "aliquot")
        if not hooks:
            self.skipTest("no ValidatingWebhookConfiguration `aliquot` in this cluster")
        self.assertTrue(all(h["clientConfig"].get("caBundle") for h in hooks["webhooks"]), "no caBundle was injected")

    def test_scheduler_is_given_to_pods_without_one(self):
        for before, after in (("default-scheduler", kube.SCHEDULER), (None, kube.SCHEDULER), ("mine", "mine")):
            with self.subTest(schedulerName=before):
                asks = pod("asks", container("main", 2), scheduler=before)
                if before is None:
                    del asks["spec"]["schedulerName"]
                self.assertEqual(self.made(asks)["spec"]["schedulerName"], after)

    def made(self, obj):
        """The object that would be stored."""
        return json.loads(kube.kubectl("create", "--dry-run=server", "-o", "json", "-n", kube.NAMESPACE, "-f", "-",
                                       stdin=json.dumps(obj)))

    def test_more_than_any_card_has_is_a_warning(self):
        """kubectl prints it; a larger card may come."""
        done = kube.kubectl("create", "--dry-run=server", "-n", kube.NAMESPACE, "-f", "-", check=False,
                            stdin=json.dumps(pod("large", container("main", 10000))))
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("Warning: no card in this cluster has 10000 units today, the largest has ", done.stderr)

    def test_an_amount_of_bytes_is_told_in_units(self):
        self.assertIn("aliyun.com/gpu-mem is 3Gi; write 3, the unit is GiB here",
                      kube.refused(pod("bytes", container("main", "3Gi"))))

    def test_others_are_not_touched(self):
        plain = pod("plain", container("main"), scheduler="default-scheduler")
        self.assertEqual(self.made(plain)["spec"]["schedulerName"], "default-scheduler")

    def all_refused(self, bad, *words):
        template = copy.deepcopy(bad)
        prefix = {"Pod": "spec", "CronJob": "spec.jobTemplate.spec.template.spec"}
        for obj in (bad, job("j", template), cron_job("c", template), deployment("d", 1, template),
                    stateful_set("s", template), daemon_set("ds", template)):
            with self.subTest(kind=obj["kind"], words=words):
                text = kube.refused(obj)
                self.assertTrue(text, "it is taken")
                for word in words:
                    self.assertIn(word, text)
                if "containers[0]" in text:
                    self.assertIn(prefix.get(obj["kind"], "spec.template.spec") + ".containers[0]", text)

    def test_compute_that_is_no_step_of_five(self):
        self.all_refused(pod("p", container("main", 2, 33)), kube.CORE, "33", "multiple of 5")

    def test_compute_without_memory(self):
        self.all_refused(pod("p", container("main", None, 30)), kube.CORE, kube.MEM)

    def test_cards_that_do_not_divide(self):
        self.all_refused(pod("p", container("main", 7), labels={kube.COUNT: "2"}), "7", "2", kube.COUNT)

    def test_cards_with_compute(self):
        self.all_refused(pod("p", container("main", 8, 30), labels={kube.COUNT: "2"}), kube.COUNT, "percent")

    def test_what_is_right_passes(self):
        for good in (pod("a", container("main", 2, 30)), pod("b", container("main", 8), labels={kube.COUNT: "2"})):
            for obj in (good, job("j", good), cron_job("c", good), deployment("d", 1, good)):
                with self.subTest(kind=obj["kind"]):
                    self.assertEqual(kube.refused(obj), "")
