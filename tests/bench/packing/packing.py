#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Replays traces through the real placement. Prints for each order of nodes what is allocated of all
cards: the mean of all traces, and how far the worst trace is below FGD.

    packing.py BENCH-PACKING NODES.csv SEEDS PODS.csv...

bench-packing.c says what the orders, settings and phases are. docs/internals/packing.md says where
the traces come from. With --traces each trace has a line of its own.
"""
import collections
import concurrent.futures
import os
import subprocess
import sys

ORDERS = ("binpack", "fragmentation", "bestfit", "fgd")
SETTINGS = ("least", "off-idle", "none", "scored")
PHASES = ("fill", "leave")


def replay(bench, nodes, seeds, pods):
    """The mean of all seeds, by order, setting and phase."""
    out = subprocess.run([bench, nodes, pods, seeds], stdout=subprocess.PIPE, text=True, check=True).stdout
    values = collections.defaultdict(list)
    for line in out.splitlines():
        order, setting, phase, _, value = line.split()
        values[order, setting, phase].append(float(value))
    return {key: sum(v) / len(v) for key, v in values.items()}


def title(path):
    return os.path.basename(path).removesuffix(".csv").removeprefix("openb_pod_list_")


def summary(results):
    print("| pods without a GPU | phase | order | mean | beside FGD | worst trace |\n|---|---|---|---|---|---|")
    for setting in SETTINGS:
        for phase in PHASES:
            for order in ORDERS:
                key = order, setting, phase
                if not all(key in r for r in results.values()):
                    continue
                behind = {t: r[key] - r["fgd", setting, phase] for t, r in results.items()}
                worst = min(behind, key=behind.get)
                mean = sum(r[key] for r in results.values()) / len(results)
                print(f"| {setting} | {phase} | {order} | {mean:.2f} | {sum(behind.values()) / len(behind):+.2f} | "
                      f"{behind[worst]:+.2f} {worst} |")


def each(results):
    for trace, r in sorted(results.items()):
        for (order, setting, phase), value in sorted(r.items()):
            print(f"{trace} {setting} {phase} {order} {value:.2f}")


def main():
    words = [w for w in sys.argv[1:] if w != "--traces"]
    if len(words) < 4:
        sys.exit(__doc__)
    bench, nodes, seeds, traces = words[0], words[1], words[2], words[3:]
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        results = dict(zip(map(title, traces), pool.map(lambda t: replay(bench, nodes, seeds, t), traces)))
    if "--traces" in sys.argv:
        each(results)
    summary(results)


if __name__ == "__main__":
    main()
