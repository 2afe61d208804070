#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The node agent under load: bench-node.py ALIQUOT STORE_SERVER [ROUNDS [KILLS]]

Rounds of 200 pods of mixed shapes, created at once on one node with 8 cards, against the fake
kubelet. Each container's environment, devices and annotation are compared. Latencies are the
kubelet's, beside those of a plugin that does nothing. Then the same while the agent is killed at
random. Exits with 1 when anything was wrong."""

import os
import sys
import threading
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "blackbox"))

from node_lab import (EIGHT_CARDS, GPU_CORE, GPU_MEM, Judge, Lab, PODS, by_card, card_mib, container,  # noqa: E402
                      create_many, pod, shapes)
from echo_plugin import EchoPlugin  # noqa: E402

ALIQUOT, STORE = sys.argv[1:3]
ROUNDS = int(sys.argv[3]) if len(sys.argv) > 3 else 3
KILLS = int(sys.argv[4]) if len(sys.argv) > 4 else 10
PODS_PER_ROUND = 200
CALLS = ("GetPreferredAllocation", "Allocate", "PreStartContainer")


def percentile(values, q):
    values = sorted(values)
    return values[min(len(values) - 1, int(len(values) * q))] if values else float("nan")


def line(name, values, scale=1000.0, unit="ms"):
    print(f"{name:44} n={len(values):<7} p50={scale * percentile(values, 0.5):8.2f} {unit}  "
          f"p99={scale * percentile(values, 0.99):8.2f} {unit}  max={scale * max(values, default=0):8.2f} {unit}")


def ended(lab, names):
    def all_ended():
        return all(o.get("status", {}).get("phase") in ("Succeeded", "Failed")
                   for o in lab.api.get(PODS)["items"] if o["metadata"]["name"] in names)
    lab.wait(all_ended, "all pods have ended", 120)


class Total:
    def __init__(self):
        self.containers, self.faults, self.seconds = 0, [], []

    def round(self, lab, number, n=PODS_PER_ROUND):
        objects = [shapes(lab.rng, f"r{number}-{i}", life=(0.005, 0.04)) for i in range(n)]
        began = time.monotonic()
        names = set(create_many(lab, objects))
        ended(lab, names)
        self.seconds.append(time.monotonic() - began)
        found = [o for o in lab.api.get(PODS)["items"] if o["metadata"]["name"] in names]
        faults, judged = Judge(lab).pods(found)
        self.containers += judged
        self.faults += faults
        failed = [o for o in found if o["status"]["phase"] == "Failed"]
        for o in found:
            lab.api.delete(f"{PODS}/{o['metadata']['name']}", grace=0)
        lab.kubelet.runtime.started.clear()
        return len(failed)


def baseline():
    """A plugin that answers at once and does nothing, in the same language as the fake kubelet."""
    lab = Lab(ALIQUOT, STORE, seed=1, start=False)
    plugins = [EchoPlugin(lab.kubelet_dir, GPU_MEM, [f"{c}-{n}" for c, u in enumerate(lab.units) for n in range(u)]),
               EchoPlugin(lab.kubelet_dir, GPU_CORE, [f"c{c}-{n}" for c in range(8) for n in range(100)])]
    for p in plugins:
        p.start()
    lab.wait(lambda: lab.kubelet.manager.is_serving(GPU_MEM, GPU_CORE), "the baseline serves")
    lab.schedule()
    ended(lab, set(create_many(lab, [shapes(lab.rng, f"b{i}", life=(0.005, 0.04)) for i in range(PODS_PER_ROUND)])))
    for name in CALLS:
        line("baseline (Python, nothing done) " + name, lab.kubelet.latencies()[name])
    for p in plugins:
        p.stop()
    lab.close()


def rounds():
    total = Total()
    lab = Lab(ALIQUOT, STORE)
    print(f"seed {lab.seed}")
    before = lab.agent.memory()
    cpu = lab.agent.cpu()
    lab.schedule()
    stuck = []
    for i in range(ROUNDS):
        try:
            total.round(lab, i)
        except AssertionError as error:  # a pod that never ends would disturb the next rounds
            stuck.append(f"round {i}: {error}"[:400])
            break
    used = lab.agent.cpu() - cpu
    metrics = lab.metrics()
    print(f"rounds {len(total.seconds)} of {PODS_PER_ROUND} pods, {total.containers} containers: wrong {len(total.faults)}, "
          f"UnexpectedAdmissionError {len(lab.kubelet.rejections)}, PreStart errors {len(lab.kubelet.prestart_errors)}, "
          f"double {len(lab.kubelet.runtime.violations)}")
    line("round", total.seconds, 1.0, "s")
    for name in CALLS:
        line("agent " + name, lab.kubelet.latencies()[name])
    line("  of which the kubelet's List", lab.kubelet.latencies()["List"])
    print(f"lists {metrics['aliquot_node_lists_total']:.0f}, turned away {metrics['aliquot_node_lists_limited_total']:.0f}; "
          f"strayed {metrics['aliquot_node_strayed_total']:.0f}, unknown {metrics['aliquot_node_unknown_total']:.0f}")
    print(f"agent: {used:.2f} s of CPU, private memory {before} KiB before, {lab.agent.memory()} KiB after, "
          f"threads {lab.agent.threads()}, children {len(lab.agent.children(lab.agent.pid))}")
    faults = total.faults + lab.faults() + stuck + [r[3] for r in lab.kubelet.rejections] + lab.kubelet.prestart_errors
    for f in faults[:5]:
        print("WRONG:", f)
    lab.close()
    return not faults


def alone():
    """Latencies without the limit of the kubelet's List: one pod after the other."""
    lab = Lab(ALIQUOT, STORE)
    lab.kubelet.manager.limiter.rate = 1e6
    lab.kubelet.manager.limiter.burst = 1e6
    lab.schedule()
    for i in range(100):
        lab.create(pod(f"p{i}", container("main", 1 + i % 3, 5), annotations={"fake/run-main": "0.001"}))
        lab.wait_phase(f"p{i}", "Succeeded")
    for name in CALLS:
        line("agent, List not limited " + name, lab.kubelet.latencies()[name])
    cpu, began = lab.agent.cpu(), time.monotonic()
    time.sleep(5)
    print(f"idle: {100 * (lab.agent.cpu() - cpu) / (time.monotonic() - began):.2f} % of a core, private memory "
          f"{lab.agent.memory()} KiB")
    lab.close()


def kills():
    """SIGKILL at random moments while pods come and go. A refused pod is created again, as by a
    ReplicaSet."""
    lab = Lab(ALIQUOT, STORE)
    print(f"seed {lab.seed}")
    lab.schedule()
    total, stop, done, trouble = Total(), threading.Event(), [], []

    def killer():
        while len(done) < KILLS and not stop.wait(lab.rng.uniform(0.1, 0.6)):
            try:
                done.append(lab.restart_agent())
            except AssertionError as error:
                trouble.append(str(error))
    thread = threading.Thread(target=killer)
    thread.start()
    number = 0
    while thread.is_alive():
        total.round(lab, number, 60)
        number += 1
    stop.set()
    thread.join()
    gaps = [gap for _, gap in done]
    outside = [r for r in lab.kubelet.rejections if not any(at <= r[0] <= at + gap for at, gap in done)]
    line("from SIGKILL to all devices known again", gaps)
    print(f"kills {len(done)}, {total.containers} containers started: wrong {len(total.faults)}, "
          f"double {len(lab.kubelet.runtime.violations)}; refused by the kubelet in the gaps "
          f"{len(lab.kubelet.rejections) - len(outside)}, outside {len(outside)}; "
          f"PreStart errors {len(lab.kubelet.prestart_errors)}")
    # Nothing is lost: running pods that are not published yet are published when they are deleted
    # by force.
    create_many(lab, [pod(f"last{i}", container("main", 2), annotations={"fake/linger": "3"}) for i in range(40)])
    lab.wait(lambda: all(lab.phase(f"last{i}") == "Running" for i in range(40)), "the last ones run")
    lab.restart_agent()
    items = [o for o in lab.api.get(PODS)["items"] if o["metadata"]["name"].startswith("last")]
    for o in items:
        lab.api.delete(f"{PODS}/{o['metadata']['name']}", grace=0)
    lab.wait(lambda: len(lab.held()) == len(items), "all are published")
    print(f"slices of {len(items)} pods deleted by force after a kill: {len(lab.held())} published")
    faults = total.faults + lab.faults() + trouble + [r[3] for r in outside]
    for f in faults[:5]:
        print("WRONG:", f)
    lab.close()
    return not faults


print(f"8 cards ({EIGHT_CARDS}): {sum(mib // 1024 for mib in card_mib(EIGHT_CARDS))} units of 1 GiB")
assert by_card(["3-1"]) == {3: 1}
baseline()
alone()
good = rounds()
good = kills() and good
sys.exit(0 if good else 1)
