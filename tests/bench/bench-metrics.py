#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""How long a scrape takes: bench-metrics.py ALIQUOT STORE_SERVER NVML

Of a node agent with 100 isolated slices whose processes the driver names, and of a scheduler with
1,000 nodes of 8 cards. Prints times, sizes, series and private memory. Then the processor time of
an agent with 200 slices, with limits of the driver on their pods and without."""

import os
import sys
import time
import urllib.request

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "blackbox"))

from node_lab import EIGHT_CARDS, Agent, Lab, container, create_many, free_port, pod  # noqa: E402
from api import Api, StoreServer  # noqa: E402

ALIQUOT, STORE, NVML = sys.argv[1:4]
SLICES, NODES, ROUNDS = 100, 1000, 50
LIMITED, LIMITED_CARDS, SECONDS = 200, "14xTesla-V100-SXM2-16GB:16160MiB", 30


def scrape(what, port, program):
    times, text, before, cpu = [], "", program.memory(), program.cpu()
    for _ in range(ROUNDS):
        began = time.monotonic()
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=60) as answer:
            text = answer.read().decode()
        times.append(1000 * (time.monotonic() - began))
    cpu = 1000 * (program.cpu() - cpu) / ROUNDS
    times.sort()
    series = sum(1 for line in text.splitlines() if line and line[0] != "#")
    print(f"{what:40} n={ROUNDS} p50={times[ROUNDS // 2]:.2f} ms p98={times[-2]:.2f} ms max={times[-1]:.2f} ms, "
          f"{cpu:.1f} ms of CPU  {series} series, {len(text) / 1024:.0f} KiB; private memory {before} KiB before, {program.memory()} KiB after")


def wait_running(lab, n):
    def runs():
        return sum(1 for o in lab.api.get("/api/v1/namespaces/default/pods")["items"] if o.get("status", {}).get("phase") == "Running")
    lab.wait(lambda: runs() == n, "all of them run", 300)


def node():
    lab = Lab(ALIQUOT, STORE, nvml=NVML, start=False)
    proc = os.path.join(lab.dir, "proc")
    os.mkdir(proc)
    lab.extra += ["--proc", proc, "--policy", "3"]
    lab.start_agent()
    lab.wait_ready()
    lab.schedule()
    create_many(lab, [pod(f"p{i}", container("main", 1, 5)) for i in range(SLICES)])
    wait_running(lab, SLICES)
    processes = []
    for i, o in enumerate(lab.api.get("/api/v1/namespaces/default/pods")["items"]):
        os.mkdir(os.path.join(proc, str(1000 + i)))
        found = lab.kubelet.runtime.of(o["metadata"]["uid"], "main")
        for name, text in ("cgroup", f"0::/kubepods/pod{o['metadata']['uid']}/{found.id}\n"), ("comm", "python3\n"):
            with open(os.path.join(proc, str(1000 + i), name), "w", encoding="utf-8") as f:
                f.write(text)
        processes.append((i % 8, 1000 + i, 500))
    lab.machine(processes, [(card, 8000) for card in range(8)])
    lab.wait(lambda: sum(k.startswith("aliquot_node_container_memory_used_bytes") and v > 0 for k, v in lab.metrics().items()) > 0, "a census")
    scrape(f"node agent, {SLICES} slices of {EIGHT_CARDS}", lab.metrics_port, lab.agent)
    lab.close()


def cpu_each_second(lab):
    """Milliseconds of the agent, and of its children, of which one asks the driver."""
    def used(pid):
        with open(f"/proc/{pid}/stat") as f:
            fields = f.read().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
    pids = [lab.agent.pid, *lab.agent.children(lab.agent.pid)]
    before, began = [used(pid) for pid in pids], time.monotonic()
    time.sleep(SECONDS)
    agent, *children = (1000 * (used(pid) - was) / (time.monotonic() - began) for pid, was in zip(pids, before))
    return agent, sum(children)


def limits():
    """The fake NVML looks for a limit in a file of all that were ever set, so the second process is slower than with a driver."""
    lab = Lab(ALIQUOT, STORE, nvml=NVML, cards=LIMITED_CARDS, mode="cgpu")
    lab.schedule()
    create_many(lab, [pod(f"p{i}", container("main", 1)) for i in range(LIMITED)])
    wait_running(lab, LIMITED)
    for mechanism, n in ("preload", 0), ("both", LIMITED), ("preload", 0), ("both", LIMITED):
        lab.annotate(memory_isolation=mechanism)
        lab.wait(lambda n=n: lab.metrics()["aliquot_node_memory_limits"] == n, "the mechanism is in force")
        agent, children = cpu_each_second(lab)
        print(f"node agent, {LIMITED} slices, {mechanism:24} {agent:.1f} ms of CPU a second, and {children:.1f} of its children")
    lab.close()


def scheduler():
    store, port = StoreServer(STORE), free_port()
    api = Api(store.address)
    sizes = {"aliyun.com/gpu-mem": "120", "aliyun.com/gpu-count": "8"}
    for i in range(NODES):
        api.post("/api/v1/nodes", {"metadata": {"name": f"node-{i:04}", "labels": {"ack.node.gpu.schedule": "core_mem"}},
                                   "status": {"capacity": sizes, "allocatable": sizes}})
    path = os.path.join("/tmp", f"aliquot-bench-metrics-{os.getpid()}")
    program = Agent([ALIQUOT, "scheduler", "--kubeconfig", store.kubeconfig(path), "--listen", f"127.0.0.1:{port}", "--no-leader-election"])
    while True:
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=60) as answer:
                if f"aliquot_scheduler_node_cards{{node=\"node-{NODES - 1:04}\"}} 8" in answer.read().decode():
                    break
        except OSError:
            pass
        time.sleep(0.1)
    scrape(f"scheduler, {NODES} nodes of 8 cards", port, program)
    program.stop()
    store.stop()
    os.unlink(path)


node()
limits()
scheduler()
