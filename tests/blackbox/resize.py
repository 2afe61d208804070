#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`aliquot resize`: other sizes for the slices of `aliquot run`, while their commands run: resize.py ALIQUOT SIM"""

import json
import os
import subprocess
import sys
import tempfile
import unittest

from patience import PATIENCE
from run import Cuda
from sim_lab import Machine, enter_namespace

MIB = 1 << 20


def inside():
    """A command that does what its standard input says, line by line."""
    cuda = Cuda()
    print("ready", flush=True)
    for line in sys.stdin:
        verb, *rest = line.split()
        if verb == "alloc":
            print("alloc", cuda.allocate(int(rest[0])), flush=True)
        else:
            print("info", *cuda.info(), flush=True)


class Resize(unittest.TestCase):
    def setUp(self):
        self.machine = Machine(self, SIM, "1xTesla-V100-SXM2-16GB:16160MiB")
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.slicedir = os.path.join(folder.name, "slices")
        self.env = dict(os.environ, ALIQUOT_SIM_DIR=self.machine.dir)

    def run_aliquot(self, verb, *words):
        return subprocess.run([ALIQUOT, verb, "--slices", self.slicedir, *words], env=self.env, capture_output=True, text=True,
                              timeout=PATIENCE, check=False)

    def start(self, *options):
        """A command in a slice, and the slice's name."""
        p = subprocess.Popen([ALIQUOT, "run", "--slices", self.slicedir, *options, "--", sys.executable, os.path.abspath(__file__), "--inside"],
                             env=self.env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

        def end():
            p.stdin.close()
            p.wait()
            p.stdout.close()
        self.addCleanup(end)
        self.assertEqual(p.stdout.readline(), "ready\n")
        return p, f"run-{p.pid}"

    @staticmethod
    def ask(p, line):
        p.stdin.write(line + "\n")
        p.stdin.flush()
        return p.stdout.readline().split()[1:]

    def sizes(self):
        slices = json.loads(self.run_aliquot("smi", "-o", "json").stdout)["slices"]
        return {s["container"]: (s["memory"]["limit"] // MIB, s["compute"]["limit"]) for s in slices}

    def resize(self, *words):
        p = self.run_aliquot("resize", *words)
        self.assertEqual((p.returncode, p.stderr), (0, ""))
        return p.stdout

    def refused(self, status, text, *words):
        before = self.sizes()
        p = self.run_aliquot("resize", *words)
        self.assertEqual((p.returncode, p.stdout), (status, ""), p.stderr)
        self.assertIn(text, p.stderr)
        self.assertEqual(p.stderr.count("\n"), 1, p.stderr)
        self.assertEqual(self.sizes(), before)

    def test_it_grows_and_shrinks(self):
        p, name = self.start("--gpu-mem", "4")
        self.assertEqual(self.ask(p, "info")[1], "4309")
        self.assertEqual(self.ask(p, "alloc 5000"), ["2"])
        self.assertEqual(self.resize(name, "--gpu-mem", "6"), f"{name}: gpu0: 6464 MiB\n")
        self.assertEqual(self.ask(p, "info")[1], "6464")
        self.assertEqual(self.ask(p, "alloc 5000"), ["0"])
        # Below what it holds: the command goes on, and gets nothing more.
        self.assertRegex(self.resize("--gpu-mem", "2", name), rf"^{name}: gpu0: 2154 MiB; it holds \d+ MiB and gets no more until that is less\n$")
        self.assertEqual(self.ask(p, "info"), ["0", "2154"])
        self.assertEqual(self.ask(p, "alloc 1"), ["2"])
        self.assertEqual(self.sizes(), {name: (2154, 0)})
        # And back.
        self.resize(name, "--gpu-mem", "4096MiB")
        self.assertEqual(self.ask(p, "info"), ["0", "4096"])
        self.resize(name, "--gpu-mem", "6GiB")
        self.assertEqual(self.ask(p, "alloc 500"), ["0"])

    def test_the_machine_counts_the_new_size(self):
        p, name = self.start("--gpu-mem", "4")
        _, other = self.start("--gpu-mem", "8")
        self.refused(1, f"{name}: gpu0 lacks 1076 MiB: the other slices leave 7.3 of 15.7 GiB, and 8.4 are wanted", name, "--gpu-mem", "8")
        self.refused(1, f"{name}: gpu0 has only 15.7 GiB", name, "--gpu-mem", "16")
        self.resize(name, "--gpu-mem", "7")
        self.assertEqual(self.sizes(), {name: (7541, 0), other: (8618, 0)})
        self.assertEqual(self.ask(p, "info")[1], "7541")
        self.assertEqual(self.run_aliquot("run", "--gpu-mem", "1", "--", "true").returncode, 125)
        self.resize(other, "--gpu-mem", "7")
        self.assertEqual(self.run_aliquot("run", "--gpu-mem", "1", "--", "true").returncode, 0)

    def test_memory_that_is_held_counts(self):
        p, name = self.start("--gpu-mem", "8")
        self.assertEqual(self.ask(p, "alloc 6000"), ["0"])
        self.resize(name, "--gpu-mem", "2")
        self.assertEqual(self.run_aliquot("run", "--gpu-mem", "10", "--", "true").returncode, 125)
        self.assertEqual(self.run_aliquot("run", "--gpu-mem", "9", "--", "true").returncode, 0)

    def test_compute(self):
        _, name = self.start("--gpu-mem", "2", "--gpu-core", "30")
        _, other = self.start("--gpu-mem", "2", "--gpu-core", "40")
        _, free = self.start("--gpu-mem", "2")
        self.assertEqual(self.resize(name, "--gpu-core", "60%"), f"{name}: gpu0: 2154 MiB, 60 % of compute\n")
        self.assertEqual(self.sizes(), {name: (2154, 60), other: (2154, 40), free: (2154, 0)})
        self.refused(1, f"{other}: gpu0 lacks 5 % of compute: the other slices leave 40 %, and 45 % are wanted", other, "--gpu-core", "45")
        # Both or nothing.
        self.refused(1, "lacks 5 % of compute", other, "--gpu-core", "45", "--gpu-mem", "3")
        self.resize(other, "--gpu-core", "5", "--gpu-mem", "3")
        self.assertEqual(self.sizes()[other], (3232, 5))
        self.refused(1, f"{free}: it was started without --gpu-core, so its compute cannot be limited", free, "--gpu-core", "5")
        self.refused(1, f"{name}: its compute is limited as long as it runs; 100 gives all of it", name, "--gpu-core", "0")

    def test_wrong_use(self):
        _, name = self.start("--gpu-mem", "2")
        for words, status, text in (([], 2, "NAME is missing"), ([name], 2, "--gpu-mem or --gpu-core is missing"),
                                    ([name, name, "--gpu-mem", "1"], 2, f"{name}: unexpected argument, NAME is {name} already"),
                                    ([name, "--gpu-mem", "0"], 2, '--gpu-mem is "0"'), ([name, "--gpu-core", "7"], 2, "multiple of 5"),
                                    ([name, "--gpu-core", "5", "--gpu-mem-unit", "GiB"], 2, "--gpu-mem-unit goes with --gpu-mem"),
                                    ([name, "--gpu-mem", "1GiB", "--gpu-mem-unit", "GiB"], 2, "--gpu-mem has its own unit"),
                                    (["run-0", "--gpu-mem", "1"], 1, f"run-0: no such slice in {self.slicedir}; `aliquot smi` lists them"),
                                    (["../slices/" + name, "--gpu-mem", "1"], 1, "no such slice")):
            self.refused(status, text, *words)

    def test_a_slice_of_the_agent(self):
        _, name = self.start("--gpu-mem", "2")
        with open(f"{self.slicedir}/{name}/owner", "w", encoding="utf-8") as f:
            f.write("agent default/pod/main\n")
        self.refused(1, f"{name}: a slice of the node agent; only it changes its size", name, "--gpu-mem", "1")


if __name__ == "__main__":
    if sys.argv[1:] == ["--inside"]:
        inside()
        sys.exit(0)
    ALIQUOT, SIM = sys.argv[1:3]
    enter_namespace(SIM)
    unittest.main(argv=sys.argv[:1], verbosity=2)
