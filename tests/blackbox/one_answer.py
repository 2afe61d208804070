# SPDX-License-Identifier: Apache-2.0
"""Inspect, the scheduler's inspect, its page, its metrics and the node agents say the same of the same cluster:
one_answer.py ALIQUOT INSPECT SHOW-ROSTER

Each node is a state of its own: slices of deleted pods, annotations of another scheduler, a unit that waits, resizes and growth
beyond limits. Cards are out of service by ConfigMaps, which an agent does not know, and by annotations."""

import json
import os
import random
import re
import subprocess
import sys
import tempfile
import unittest
import urllib.request

from patience import PATIENCE

ALIQUOT, INSPECT, ROSTER = sys.argv[1:4]
SEED, STATES = int(os.environ.get("SEED", "31")), 200
ALLOCATION, INIT = "scheduler.framework.gpushare.allocation", "aliquot.dev/init-allocation"
MIB = 1 << 20
METRICS = "cards", "cards_unhealthy", "memory_bytes", "memory_used_bytes", "compute_cards", "compute_used_cards"
STATES_OF_PAGE = None, "fenced", "unhealthy", None, "cordoned"


def text(value):
    return json.dumps(value, separators=(",", ":"))


class State:
    """A node, its pods and its ConfigMaps."""

    def __init__(self, rng, index):
        self.rng, self.name = rng, f"n{index:03}"
        self.cards, self.units, self.core = rng.randint(1, 4), rng.choice((15, 31, 126)), rng.random() < 0.5
        self.unit = "128MiB" if self.units == 126 else "GiB"
        self.pods = [self.pod(i) for i in range(rng.randint(0, 5))]
        self.node = {"apiVersion": "v1", "kind": "Node", "metadata": {
            "name": self.name, "labels": {"ack.node.gpu.schedule": "core_mem" if self.core else "cgpu"},
            "annotations": {"aliquot.dev/simulated-cards": f"{self.cards}xA10:{self.units * 128 if self.unit == '128MiB' else self.units * 1024}MiB",
                            "aliquot.dev/gpu-mem-unit": self.unit}}}
        self.annotate()
        self.maps = self.fences()

    def card(self):
        return str(self.rng.randrange(self.cards + (self.rng.random() < 0.1)))

    def container(self, name, kind):
        limits = {"aliyun.com/gpu-mem": self.rng.randint(1, 6)}
        if self.core:
            limits["aliyun.com/gpu-core.percentage"] = 5 * self.rng.randint(1, 4)
        return {"name": name, "image": "x", "resources": {"limits": limits}, **({"restartPolicy": "Always"} if kind == "sidecar" else {})}

    def allocation(self, containers):
        """Of another scheduler the amounts are any."""
        lies = self.rng.random() < 0.4
        return {str(i): {self.card(): self.rng.randint(1, 9) if lies else c["resources"]["limits"]["aliyun.com/gpu-mem"]}
                for i, c in enumerate(containers)}

    def pod(self, index):
        rng = self.rng
        main = [self.container(f"m{i}", "main") for i in range(rng.randint(1, 2))]
        init = [self.container(f"i{i}", rng.choice(("init", "sidecar"))) for i in range(rng.choice((0, 0, 1, 2)))]
        how = rng.choice(("both", "both", "both", "older", "none", "malformed", "main"))
        annotations = {}
        if how in ("both", "main"):
            annotations[ALLOCATION] = text(self.allocation(main))
        if how == "both" and init:
            annotations[INIT] = text(self.allocation(init))
        if how == "older":
            annotations["ALIYUN_COM_GPU_MEM_IDX"] = self.card()
        if how == "malformed":
            annotations[ALLOCATION] = '{"0":'
        if rng.random() < 0.3:
            limit = main[0]["resources"]["limits"]
            core = f", gpu-core 5 of {limit['aliyun.com/gpu-core.percentage']}" if self.core else ""
            annotations["aliquot.dev/resize-status"] = f"in force: container 0: gpu-mem 1 of {limit['aliyun.com/gpu-mem']}{core}"
        return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": f"{self.name}-p{index}", "namespace": rng.choice("ab"),
                                                                "uid": f"u-{self.name}-{index}", "annotations": annotations},
                "spec": {"nodeName": self.name, "containers": main, "initContainers": init},
                "status": {"phase": rng.choice(("Running", "Running", "Running", "Pending", "Succeeded", "Failed"))}}

    def annotate(self):
        rng, annotations = self.rng, self.node["metadata"]["annotations"]
        held = []
        for i in range(rng.choice((0, 0, 1, 2))):
            uid = rng.choice(self.pods)["metadata"]["uid"] if self.pods and rng.random() < 0.3 else f"gone-{self.name}-{i}"
            held.append({"pod": f"a/{rng.choice(('gone', self.name + '-p0'))}", "uid": uid, "allocation": {"0": {self.card(): rng.randint(1, 5)}},
                         **({"core": {"0": {"0": 10}}} if self.core else {})})
        if held:
            annotations["aliquot.dev/held-slices"] = text(held) if rng.random() < 0.9 else "[{}]"
        if rng.random() < 0.3:
            annotations["aliquot.dev/growth"] = text({"serial": 3, "slices": [
                {"uid": f"u-{self.name}-{i}", "container": 0, "card": 0, "mem": rng.choice((0, 2)), "core": 0,
                 **({"lessMem": 1} if rng.random() < 0.3 else {})} for i in range(2)]})
        if rng.random() < 0.2:
            annotations["aliquot.dev/gpu-mem-unit-in-force"] = self.unit
            annotations["aliquot.dev/change-pending"] = f"unit {self.unit} -> 2GiB"
            annotations["aliquot.dev/gpu-mem-unit"] = "2GiB"
        if rng.random() < 0.2:
            annotations["aliquot.dev/cordon-cards"] = rng.choice(("0", "1,0", "1,x", "7"))

    def fences(self):
        rng, maps = self.rng, []
        devices = "".join(f"- deviceId: {self.card()}\n  deviceType: {rng.choice(('gpu', 'gpu', 'gpu', 'nic'))}\n"
                          f"  healthy: {rng.choice(('false', 'false', 'true', 'perhaps'))}\n" for _ in range(rng.randint(0, 3)))
        if rng.random() < 0.4:
            maps.append((self.name + "-device-status", {"devices": devices}))
        if rng.random() < 0.3:
            maps.append(("unhealthy-gpu-" + self.name, {"gpus": rng.choice(("", "0", "1, 2", "0,x", "9"))}))
        return [{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": "kube-system"}, "data": data} for name, data in maps]


class OneAnswer(unittest.TestCase):
    maxDiff = 3000

    def start(self, path):
        process = subprocess.Popen([ALIQUOT, "local", "--page", "127.0.0.1:0", "-f", path], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        self.addCleanup(process.communicate)
        self.addCleanup(process.kill)
        said = ""
        for line in process.stderr:
            said += line
            found = re.search(r"page at (http://\S+/) until", line)
            if found:
                return re.search(r"metrics at (http://127\.0\.0\.1:\d+)/metrics\n", said)[1], found[1]
        raise AssertionError(said)

    @staticmethod
    def get(url):
        with urllib.request.urlopen(url, timeout=PATIENCE) as answer:
            return answer.read().decode()

    def page(self, url):
        with urllib.request.urlopen(url + "events", timeout=PATIENCE) as answer:
            for line in answer:
                if line.startswith(b"data: "):
                    return json.loads(line[len("data: "):])
        raise AssertionError("the stream ended")

    @staticmethod
    def without(nodes):
        """What the scheduler does not say: sizes in force, and which annotations differ."""
        for node in nodes:
            node.pop("differences", None)
            for pods in [card["pods"] for card in node["devs"]] + [node.get("pending", {}).get("pods", [])]:
                for pod in pods:
                    for key in "inForceGPU", "inForceCore":
                        pod.pop(key, None)
                pods.sort(key=text)
        return {node["name"]: node for node in nodes}

    @staticmethod
    def agents(said):
        nodes = {}
        for line in said.splitlines():
            name, *numbers, state = line.split()
            nodes.setdefault(name, []).append([int(n) for n in numbers] + [None if state == "-" else state])
        return nodes

    def test_200_states(self):
        rng = random.Random(SEED)
        states = [State(rng, i) for i in range(STATES)]
        items = [o for s in states for o in (s.node, *s.pods, *s.maps)]
        with tempfile.TemporaryDirectory() as folder:
            path, dump = os.path.join(folder, "m.json"), os.path.join(folder, "dump.json")
            with open(path, "w", encoding="utf-8") as f:
                json.dump({"apiVersion": "v1", "kind": "List", "items": items}, f)
            metrics_url, page_url = self.start(path)
            with open(dump, "wb") as f:
                done = subprocess.run([ALIQUOT, "local", "--once", "--get", "nodes,pods,configmaps", "-f", path], stdout=f, stderr=subprocess.PIPE,
                                      timeout=PATIENCE, check=False)
            self.assertIn(done.returncode, (0, 1), done.stderr)
            done = subprocess.run([INSPECT, "-o", "json", "--from", dump], capture_output=True, text=True, timeout=PATIENCE, check=True)
            with open(dump, "rb") as f:
                agents = self.agents(subprocess.run([ROSTER], stdin=f, capture_output=True, text=True, timeout=PATIENCE, check=True).stdout)
        inspect = self.without(json.loads(done.stdout)["nodes"])
        scheduler = self.without(json.loads(self.get(metrics_url + "/gpushare-scheduler/inspect"))["nodes"])
        page = {node["name"]: node["cards"] for node in self.page(page_url)["nodes"]}
        metrics = {(name, node): float(value) for name, node, value in
                   re.findall(r'aliquot_scheduler_node_(\w+)\{node="(\w+)"\} (\S+)', self.get(metrics_url + "/metrics"))}
        held = fenced = waiting = 0
        for s in states:
            with self.subTest(seed=SEED, node=s.name):
                mine = inspect[s.name]
                self.assertEqual(mine, scheduler[s.name])
                self.assertEqual([[c["id"], c["totalGPU"], c["usedGPU"], c.get("usedCore", 0), len(c["pods"])] for c in mine["devs"]],
                                 [card[:5] for card in page[s.name]])
                self.assertEqual([c.get("health") for c in mine["devs"]], [STATES_OF_PAGE[card[5] if len(card) > 5 else 0] for card in page[s.name]])
                self.assertEqual([[c["id"], c["totalGPU"], c["usedGPU"], c.get("usedCore", 0), len(c["pods"])] for c in mine["devs"]],
                                 [card[:5] for card in agents[s.name]])
                self.assertEqual([c.get("health") for c in mine["devs"] if c.get("health") != "fenced"],
                                 [agent[5] for c, agent in zip(mine["devs"], agents[s.name]) if c.get("health") != "fenced"])
                unit = 128 * MIB if s.unit == "128MiB" else 1024 * MIB
                self.assertEqual({name: metrics[name, s.name] for name in METRICS},
                                 {"cards": s.cards, "cards_unhealthy": sum(c.get("health") is not None for c in mine["devs"]),
                                  "memory_bytes": sum(c["totalGPU"] for c in mine["devs"]) * unit,
                                  "memory_used_bytes": sum(c["usedGPU"] for c in mine["devs"]) * unit,
                                  "compute_cards": s.cards if s.core else 0,
                                  "compute_used_cards": sum(c.get("usedCore", 0) for c in mine["devs"]) / 100})
                fenced += sum(c.get("health") == "fenced" for c in mine["devs"])
                held += sum(pod.get("deleted", False) for c in mine["devs"] for pod in c["pods"])
                waiting += "aliquot.dev/change-pending" in s.node["metadata"]["annotations"]
        self.assertGreater(held, 20)
        self.assertGreater(waiting, 20)
        self.assertGreater(fenced, 40)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
