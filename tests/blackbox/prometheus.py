#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Debian's Prometheus scrapes a node agent and a scheduler: prometheus.py ALIQUOT STORE_SERVER CLOCK_SHIM NVML ROOT

promtool judges metrics and rules, each query of the dashboard returns data, and each alert fires."""

import json
import math
import os
import re
import shutil
import subprocess
import sys
import urllib.parse
import urllib.request

for program in "prometheus", "promtool":
    if not shutil.which(program):
        print(f"skipped: {program} is not there (Debian: prometheus)")
        sys.exit(77)
try:
    import yaml
except ModuleNotFoundError:
    print("skipped: yaml is not there (Debian: python3-yaml)")
    sys.exit(77)

from isolation_case import MIB, NVML, Started, alone  # noqa: E402
from node_case import TWO_CARDS  # noqa: E402
from node_lab import container, free_port, layout, pod  # noqa: E402
from grpc_process import run_tests  # noqa: E402
from node_metrics import put  # noqa: E402
from patience import until  # noqa: E402

ROOT = os.path.abspath(sys.argv.pop(1))
RULES = os.path.join(ROOT, "deploy/helm/aliquot/objects/monitoring/prometheus-rules.yaml")
DASHBOARD = os.path.join(ROOT, "deploy/grafana/aliquot.json")
CASES = os.path.join(ROOT, "tests/deploy/alerts.yaml")
ACK_LABELS = "label names should be written in 'snake_case' not 'camelCase'"  # labels are those of ACK's exporter
NAME = re.compile(r"\b(?:aliquot_|DCGM_CUSTOM_)\w+")


def rules():
    with open(RULES, encoding="utf-8") as f:
        return yaml.safe_load(f)["spec"]


def alerts():
    return {rule["alert"]: rule for group in rules()["groups"] for rule in group["rules"]}


def queries():
    with open(DASHBOARD, encoding="utf-8") as f:
        return [(panel["title"], target["expr"]) for panel in json.load(f)["panels"] for target in panel["targets"]]


def promtool(*arguments, **options):
    return subprocess.run(["promtool", *arguments], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False, **options)


class Prometheus(Started):
    def setUp(self):
        self.node = lab = self.lab(cards=TWO_CARDS, nvml=NVML, start=False)
        lab.proc = os.path.join(lab.dir, "proc")
        os.mkdir(lab.proc)
        lab.extra += ["--census", "20", "--proc", lab.proc, "--policy", "3"]
        lab.machine((), [(0, 50), (1, 50)])
        lab.start_agent()
        lab.wait_ready()
        lab.schedule(with_extender=True)
        self.n, self.work = 0, lab.create(pod("worker", container("main", 2, 30)))
        self.started(lab, self.work)

    def text(self, address):
        with urllib.request.urlopen(f"http://{address}/metrics", timeout=60) as answer:
            return answer.read().decode()

    def both(self):
        return [self.text(f"127.0.0.1:{self.node.metrics_port}"), self.text(self.node.extender_address)]

    def serve(self, *more):
        """Starts Prometheus with the rules, which do not wait before they fire. more: addresses."""
        folder, port = os.path.join(self.node.dir, "prometheus"), free_port()
        os.mkdir(folder)
        now = rules()
        for group in now["groups"]:
            for rule in group["rules"]:
                rule.pop("for", None)
        config = {"global": {"scrape_interval": "1s", "evaluation_interval": "1s"}, "rule_files": ["rules.yaml"],
                  "scrape_configs": [{"job_name": "aliquot", "static_configs": [{"targets": [
                      f"127.0.0.1:{self.node.metrics_port}", self.node.extender_address, *more]}]}]}
        for name, content in ("rules.yaml", now), ("config.yaml", config):
            with open(os.path.join(folder, name), "w", encoding="utf-8") as f:
                yaml.safe_dump(content, f)
        with open(os.path.join(folder, "log"), "w", encoding="utf-8") as log:
            server = subprocess.Popen(["prometheus", f"--config.file={folder}/config.yaml", f"--storage.tsdb.path={folder}/data",
                                       f"--web.listen-address=127.0.0.1:{port}"], stdout=log, stderr=log)
        self.addCleanup(server.wait)
        self.addCleanup(server.terminate)
        self.address = f"http://127.0.0.1:{port}/api/v1/"
        until(lambda: len(self.ask("up == 1")) == 2 + len(more), "Prometheus has scraped all")

    def get(self, path):
        try:
            with urllib.request.urlopen(self.address + path, timeout=60) as answer:
                return json.load(answer)["data"]
        except OSError:
            return {}

    def ask(self, query):
        """The values of a query's series, without those that are not a number."""
        found = self.get("query?" + urllib.parse.urlencode({"query": query})).get("result", [])
        return [value for value in (float(series["value"][1]) for series in found) if not math.isnan(value)]

    def firing(self):
        return {a["labels"]["alertname"] for a in self.get("alerts").get("alerts", []) if a["state"] == "firing"}

    def live(self):
        """Pods come, and what the arbiter and the container's processes would write grows."""
        self.n += 1
        lab, c = self.node, self.node.kubelet.runtime.of(self.work, "main")
        put(self.counters(c), layout.USED, "<QQQ", (100 * MIB // layout.UNIT) << layout.USED_SHIFT, 300 * MIB // layout.UNIT, self.n)
        put(c.options["mounts"]["/.aliquot/slice/0/limits"][0], layout.SEEN + 8, "<QQ", self.n * 10 ** 8, self.n * 10 ** 8)
        lab.create(pod(f"p{self.n}", container("main", 1), annotations={"fake/run-main": "0.01"}))
        lab.wait_phase(f"p{self.n}", "Succeeded")
        lab.api.delete(f"/api/v1/namespaces/default/pods/p{self.n}", grace=0)
        return True

    # tests

    def test_promtool_takes_the_metrics(self):
        self.live()
        for text in self.both():
            p = promtool("check", "metrics", input=text)
            self.assertIn(p.returncode, (0, 3), p.stdout)  # 3: remarks
            self.assertEqual([line for line in p.stdout.splitlines() if not line.endswith(ACK_LABELS)], [])

    def test_promtool_takes_the_rules(self):
        path = os.path.join(self.node.dir, "rules.yaml")
        with open(path, "w", encoding="utf-8") as f:
            yaml.safe_dump(rules(), f)
        p = promtool("check", "rules", path)
        self.assertEqual(p.returncode, 0, p.stdout)

    def test_each_alert_fires(self):
        """promtool computes each alert from series whose names and labels the programs have."""
        with open(CASES, encoding="utf-8") as f:
            cases = yaml.safe_load(f)
        tested = {case["alertname"] for group in cases["tests"] for case in group["alert_rule_test"] if case["exp_alerts"]}
        self.assertEqual(tested, set(alerts()))
        real = [line.rsplit(" ", 1)[0] for text in self.both() for line in text.splitlines() if not line.startswith("#")]
        names = {series.split("{")[0] for series in real}
        rare = {"aliquot_node_excess_bytes", "aliquot_node_compute_excess_ratio"}  # no series while all is well
        optional = {"aliquot_scheduler_webhook_certificate_end_seconds", "aliquot_scheduler_webhook_ca_end_seconds"}  # of a scheduler with the webhook
        for group in cases["tests"]:
            for series in group["input_series"]:
                self.assertIn(series["series"].split("{")[0], names | rare | optional)
        used = {name for rule in alerts().values() for name in NAME.findall(rule["expr"])}
        self.assertEqual(used - names - rare - optional, set())
        cases["rule_files"] = ["rules.yaml"]
        for name, content in ("rules.yaml", rules()), ("cases.yaml", cases):
            with open(os.path.join(self.node.dir, name), "w", encoding="utf-8") as f:
                yaml.safe_dump(content, f)
        p = promtool("test", "rules", os.path.join(self.node.dir, "cases.yaml"))
        self.assertEqual(p.returncode, 0, p.stdout)

    def test_the_panels_have_data(self):
        self.serve()
        for title, query in queries():
            query = query.replace("$node", ".*").replace("$__rate_interval", "1m")
            until(lambda: self.live() and self.ask(query), f"{title}: {query} returns data")

    def test_a_cluster_of_one_process(self):
        """Prometheus scrapes `aliquot local`, at the address that it prints."""
        share = os.path.join(ROOT, "samples/share/")
        local = subprocess.Popen([self.node.aliquot, "local", "--page", "127.0.0.1:0", "-f", share + "node.yaml", "-f", share + "job.yaml"],
                                 stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        self.addCleanup(local.communicate)
        self.addCleanup(local.terminate)
        told = next(found[1] for found in (re.search("metrics at http://(.*)/metrics$", line) for line in local.stderr) if found)
        self.serve(told)
        until(lambda: self.ask(f'aliquot_scheduler_memory_used_bytes{{instance="{told}"}}') == [4 << 30], "what its pod holds")

    def test_alerts_of_running_programs(self):
        lab = self.node
        self.serve()
        until(lambda: not self.firing(), "all is well")
        until(lambda: self.live() and "AliquotMemoryRefused" in self.firing(), "refused memory")
        lab.create(pod("large", container("main", 16)))
        until(lambda: "AliquotPodsPending" in self.firing(), "a pod waits")
        lab.machine([(0, 999, 200)], [(0, 200)])
        until(lambda: "AliquotMemoryUnaccounted" in self.firing(), "memory of no pod")
        lab.machine((), more=["xid 1 1 48"])
        until(lambda: "AliquotCardOutOfService" in self.firing(), "a fenced card")
        lab.agent.stop()
        until(lambda: self.firing() & {"AliquotNodeAgentDown", "AliquotSchedulerAbsent"} == {"AliquotNodeAgentDown"}, "no agent, but a scheduler")
        lab.scheduler.stop()
        lab.scheduler = None
        lab.extender.stop()
        until(lambda: "AliquotSchedulerAbsent" in self.firing(), "no scheduler")
        until(lambda: not self.ask('{__name__=~"aliquot_node_.+|DCGM_.+"}'), "no series of the agent stays")


if __name__ == "__main__":
    alone()
    run_tests()
