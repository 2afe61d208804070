#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""kubectl-inspect-cgpu --from FILE on 5,000 nodes and 100,000 pods of 4 KiB: seconds, MiB, and two
baselines.

    bench-inspect.py KUBECTL-INSPECT-CGPU [NODES PODS]

The baselines read the same bytes in the same run: `wc -l`, which only counts lines, and Python's
json.load (C code), which builds every object. The latter gets a tenth of the cluster, because the
whole would take gigabytes, and is compared per byte. Each program runs three times and the best
counts; the first run also warms the page cache.

Then the report for a terminal, `-o cards`, of 1,000 nodes with 8 cards, without pods and with
8,000. It runs in turns with the old table and with `wc -l`, which read the same file, and the
medians are printed.
"""
import os
import statistics
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
LOAD = "import json, sys; json.load(open(sys.argv[1]))"


def generate(path, nodes, pods):
    with open(path, "wb") as out:
        subprocess.run([sys.executable, os.path.join(HERE, "gen-cluster.py"), str(nodes), str(pods)], stdout=out, check=True)
    return os.path.getsize(path)


def run(*command):
    """Best seconds and peak MiB of three runs."""
    best, peak = None, 0
    for _ in range(3):
        start = time.monotonic()
        child = subprocess.Popen(command, stdout=subprocess.DEVNULL)
        _, status, usage = os.wait4(child.pid, 0)
        seconds = time.monotonic() - start
        child.returncode = os.waitstatus_to_exitcode(status)
        if child.returncode != 0:
            sys.exit(f"{command[0]}: exit status {child.returncode}")
        best = seconds if best is None else min(best, seconds)
        peak = max(peak, usage.ru_maxrss / 1024)
    return best, peak


def seconds_of(*command):
    start = time.monotonic()
    subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=True)
    return time.monotonic() - start


def draw(program, folder, nodes, pods, turns=15):
    path = os.path.join(folder, "draw.json")
    size = generate(path, nodes, pods)
    commands = {"inspect -o cards": [program, "-o", "cards", "--from", path], "inspect -o table": [program, "-o", "table", "--from", path],
                "wc -l": ["wc", "-l", path]}
    times = {name: [] for name in commands}
    for _ in range(turns):
        for name, command in commands.items():
            times[name].append(seconds_of(*command))
    print(f"\n{nodes} nodes with 8 cards, {pods} pods, {size / 1e6:.0f} MB, medians of {turns} turns")
    for name, seconds in times.items():
        print(f"{name:28}{statistics.median(seconds) * 1000:8.1f} ms")


def main():
    program = sys.argv[1]
    nodes, pods = (int(a) for a in sys.argv[2:4]) if len(sys.argv) > 3 else (5000, 100000)
    with tempfile.TemporaryDirectory() as folder:
        whole, tenth = os.path.join(folder, "cluster.json"), os.path.join(folder, "tenth.json")
        size, tenth_size = generate(whole, nodes, pods), generate(tenth, nodes // 10, pods // 10)
        print(f"{nodes} nodes, {pods} pods, {size / 1e6:.0f} MB")
        rows = [("inspect --from", size, run(program, "--from", whole)),
                ("inspect -d --from", size, run(program, "-d", "--from", whole)),
                ("wc -l", size, run("wc", "-l", whole)),
                ("python json.load, a tenth", tenth_size, run(sys.executable, "-c", LOAD, tenth))]
    speed = rows[0][1] / rows[0][2][0]
    print(f"{'':28}{'s':>8}{'MiB':>9}{'MB/s':>8}   speed of inspect to it")
    for name, read, (seconds, peak) in rows:
        print(f"{name:28}{seconds:8.2f}{peak:9.1f}{read / seconds / 1e6:8.0f}   {speed / (read / seconds):.2f}x")
    with tempfile.TemporaryDirectory() as folder:
        draw(program, folder, 1000, 0)
        draw(program, folder, 1000, 8000)


main()
