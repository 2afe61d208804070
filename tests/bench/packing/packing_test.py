#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The benchmark of packing on a small trace: packing_test.py BENCH-PACKING. Every row is there, the same
seed gives the same figures, and files that are not a trace are refused by name."""
import os
import subprocess
import sys
import tempfile
import unittest

BENCH = sys.argv.pop(1)
HERE = os.path.dirname(os.path.abspath(__file__))
NODES, PODS = (os.path.join(HERE, "synthetic", name) for name in ("nodes.csv", "pods.csv"))


def run(*words):
    return subprocess.run([BENCH, *words], capture_output=True, text=True)


class Packing(unittest.TestCase):
    def test_every_row(self):
        done = run(NODES, PODS, "2")
        self.assertEqual(done.returncode, 0, done.stderr)
        rows = [line.split() for line in done.stdout.splitlines()]
        settings = {order: {r[1] for r in rows if r[0] == order} for order in ("binpack", "fragmentation", "fgd", "bestfit")}
        ours, baselines = {"least", "off-idle", "none"}, {"least", "off-idle", "none", "scored"}
        self.assertEqual(settings, {"binpack": ours, "fragmentation": ours, "fgd": baselines, "bestfit": baselines})
        self.assertEqual(len(rows), (2 * 3 + 2 * 4) * 2 * 2)
        for order, setting, phase, seed, value in rows:
            self.assertTrue(50 < float(value) <= 100, (order, setting, phase, seed, value))

    def test_a_seed_gives_the_same_again(self):
        self.assertEqual(run(NODES, PODS, "1", "fragmentation").stdout, run(NODES, PODS, "1", "fragmentation").stdout)

    def test_the_orders_differ(self):
        values = {order: [line.split()[1:] for line in run(NODES, PODS, "3", order).stdout.splitlines()]
                  for order in ("binpack", "fragmentation")}
        self.assertNotEqual(values["binpack"], values["fragmentation"])

    def test_the_table(self):
        done = subprocess.run([sys.executable, os.path.join(HERE, "packing.py"), BENCH, NODES, "1", PODS],
                              capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(len(done.stdout.splitlines()), 2 + (3 * 4 + 2) * 2)
        self.assertIn("| off-idle | leave | fgd | ", done.stdout)

    def test_bad_input(self):
        with tempfile.NamedTemporaryFile("w", suffix=".csv") as bad:
            bad.write("name,cpu_milli,memory_mib,num_gpu,gpu_milli\npod,1,1,many,1000\n")
            bad.flush()
            for words, said in (((NODES, bad.name, "1"), bad.name + ": num_gpu"), ((NODES, NODES, "1"), "num_gpu"),
                                ((PODS, PODS, "1"), "gpu"), (("/proc/self/absent", PODS, "1"), "/proc/self/absent: cannot be opened"),
                                ((NODES, PODS, "0"), "usage")):
                done = run(*words)
                self.assertEqual(done.returncode, 1)
                self.assertIn(said, done.stderr)


if __name__ == "__main__":
    unittest.main()
