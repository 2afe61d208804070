#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The suite for a real card, its tracer and its session, on a mounted aliquot-sim, with what
tests/gpu/prepare.sh has made: gpu.py ALIQUOT_SIM LIBRARY_FOLDER KIT CC... CLASS"""
import json
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
import unittest

from sim_lab import Machine, enter_namespace

SIM, FOLDER, KIT = map(os.path.abspath, sys.argv[1:4])
CC = sys.argv[4:-1]
ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
GPU = os.path.join(ROOT, "tests/gpu")
NVCC = shutil.which("nvcc") or "/usr/local/cuda/bin/nvcc"
PATIENCE = 600


def run(command, **env):
    return subprocess.run(command, env=dict(os.environ, CC=" ".join(CC), **env), stdin=subprocess.DEVNULL, capture_output=True, text=True,
                          timeout=PATIENCE)


class Case(unittest.TestCase):
    build = os.path.join(KIT, "library")

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def on(self, machine, command, **env):
        return run(command, ALIQUOT_SIM_DIR=machine.dir, LD_LIBRARY_PATH=FOLDER, PATH=FOLDER + ":" + os.environ["PATH"], **env)

    def suite(self, machine, *options, build=None):
        out = tempfile.mkdtemp(dir=self.folder)
        p = self.on(machine, [sys.executable, os.path.join(GPU, "run.py"), "--build", build or self.build, "--out", out, *options])
        with open(os.path.join(out, "results.json")) as f:
            return p, json.load(f)

    def check(self, cards):
        m = Machine(self, SIM, cards)
        p, results = self.suite(m)
        bad = [t for t in results["tests"] if t["result"] == "not ok"]
        self.assertEqual((p.returncode, bad), (0, []), p.stderr)
        skipped = {t["name"] for t in results["tests"] if t["result"] == "skip"}
        self.assertLessEqual(skipped, {"runtime-static", "runtime-shared", "torch", "torch-expandable", "torch-async", "nccl"})
        self.assertRegex(p.stdout, r"gpu-test: \d+ passed, 0 failed, %d skipped\n$" % len(skipped))
        self.assertTrue(results["simulated"])
        self.assertEqual(m.used(), [0] * len(m.used()))

    def archived(self, out, call):
        """A run leaves one page and one archive, in which the page is the first file. The page, and the archive's folder unpacked."""
        with open(os.path.join(out, call + ".txt")) as f:
            page = f.read()
        self.assertLessEqual(page.count("\n"), 45, page)
        path = os.path.join(out, call + ".tar.gz")
        with tarfile.open(path) as archive:
            self.assertEqual(archive.next().name, call + "/summary.txt")
        shutil.unpack_archive(path, os.path.join(out, "unpacked"))
        return page, os.path.join(out, "unpacked", call)


class Kit(Case):
    def test_gate(self):
        """Built without meson, the library also needs no other library."""
        p = run([os.path.join(ROOT, "tests/unit/preload/memory/symbols.sh"), os.path.join(self.build, "libaliquot.so"),
                 os.path.join(self.build, "libaliquot.map")])
        self.assertEqual(p.returncode, 0, p.stderr)

    def test_no_card(self):
        """Names what is missing, and builds nothing."""
        p = run([sys.executable, os.path.join(GPU, "run.py")], ALIQUOT_SIM_DIR=self.folder)
        self.assertEqual(p.returncode, 77, p.stderr)
        self.assertIn("nvidiactl is not there", p.stdout)
        p = run([os.path.join(GPU, "session.sh"), KIT], ALIQUOT_SIM_DIR=self.folder, OUT=os.path.join(self.folder, "none"))
        self.assertEqual(p.returncode, 77, p.stderr)

    def test_no_library(self):
        m = Machine(self, SIM, "T:1GiB")
        p = run([sys.executable, os.path.join(GPU, "run.py")], ALIQUOT_SIM_DIR=m.dir, LD_LIBRARY_PATH="")
        if os.path.exists("/dev/nvidiactl"):
            self.skipTest("this machine has a driver's library")
        self.assertEqual(p.returncode, 77, p.stdout + p.stderr)
        self.assertIn("libcuda.so.1", p.stdout)

    @unittest.skipUnless(os.path.exists(NVCC), "no nvcc")
    def test_runtime_programs_build(self):
        p = run([os.path.join(GPU, "runtime.sh"), self.folder], NVCC=NVCC)
        self.assertEqual(p.returncode, 0, p.stderr)
        for kind in ("static", "shared"):
            self.assertTrue(os.path.exists(os.path.join(self.folder, "runtime-" + kind)), p.stderr)


class Trace(Case):
    def traced(self, machine, *case):
        path = os.path.join(tempfile.mkdtemp(dir=self.folder), "trace")
        p = self.on(machine, [os.path.join(self.build, "gpu-case"), *case], RM_TRACE=path,
                    LD_PRELOAD=os.path.join(self.build, "librm-trace.so"))
        self.assertEqual(p.returncode, 0, p.stdout + p.stderr)
        vectors = path + ".vectors"
        p = run([os.path.join(self.build, "rm-trace"), "--vectors", vectors, path])
        self.assertEqual((p.returncode, p.stderr), (0, ""))
        with open(vectors) as f:
            return p.stdout, f.read()

    def test_trace(self):
        m = Machine(self, SIM)
        table, vectors = self.traced(m, "family", "plain", "256")
        self.assertRegex(table, r"0x2b ALLOC +0x00000040 NV01_MEMORY_LOCAL_USER +5 ")
        self.assertRegex(table, r"0x2a CONTROL +0x20801303 FB_GET_INFO_V2 ")
        self.assertRegex(table, r"\n +268435456 +268435456 0x00000000 +1 +268435456\n")
        self.assertRegex(table, r"0x20801303 0x16 HEAP_FREE ")
        self.assertRegex(table, r"NV01_ROOT_CLIENT +of 1: chosen 1, ")
        self.assertRegex(table, r"channel groups: 1\n")
        self.assertIn("live at the end 0, ", table)
        self.assertRegex(vectors, r"\nvector what=memory nr=0x2b size=48 inner-size=0 r=0 ")
        self.assertNotRegex(vectors, r"[0-9a-f]{4}(fe|ff)7f0000")  # addresses of a stack
        table, _ = self.traced(m, "family", "managed", "64")
        self.assertRegex(table, r"mmap +nvidia-uvm +0x[0-9a-f]+ length 67108864 .* = the address\n")
        table, _ = self.traced(m, "forked", "64")  # two processes in one file
        self.assertRegex(table, r"NV01_ROOT_CLIENT +of 2: ")

    def test_bad_traces(self):
        path = os.path.join(self.folder, "bad")
        with open(path, "w") as f:
            f.write("ioctl pid=1 nr=0x2b size=48 outer=00/00\nioctl pid=1 nr=0x\nrubbish\nioctl nr=0x2b size=56 outer=00/00\n")
        p = run([os.path.join(self.build, "rm-trace"), path])
        self.assertEqual(p.returncode, 0)
        self.assertIn("2 of 4 lines are none", p.stderr)
        self.assertIn("in sizes that it does not know: 1 ", p.stdout)
        self.assertEqual(run([os.path.join(self.build, "rm-trace"), path + "-absent"]).returncode, 3)
        self.assertEqual(run([os.path.join(self.build, "rm-trace")]).returncode, 2)


class SuiteOnOneCard(Case):
    def test_suite(self):
        self.check("1xTesla-V100-SXM2-16GB:16160MiB")


class SuiteOnTwoCards(Case):
    def test_suite(self):
        self.check("2xA10:23028MiB")


class SuiteWithoutGate(Case):
    def test_it_can_fail(self):
        """Without a gate no limit applies, and the suite says so."""
        build = os.path.join(self.folder, "broken")
        shutil.copytree(self.build, build)
        source = os.path.join(build, "nothing.c")
        with open(source, "w") as f:
            f.write("int nothing;\n")
        p = run([*CC, "-shared", "-fPIC", "-o", os.path.join(build, "libaliquot.so"), source])
        self.assertEqual(p.returncode, 0, p.stderr)
        m = Machine(self, SIM)
        for only in ("agree", "nvidia-smi", "family-plain", "over-vmm", "over-managed", "fill", "race-driver"):
            p, results = self.suite(m, "--only", only, build=build)
            self.assertEqual((p.returncode, [t["result"] for t in results["tests"]]), (1, ["not ok"]), p.stdout)


class Session(Case):
    def test_session(self):
        m = Machine(self, SIM)
        out = os.path.join(self.folder, "session")
        p = self.on(m, [os.path.join(KIT, "tests/gpu/session.sh"), KIT, "--quick"], OUT=out)
        self.assertEqual(p.returncode, 0, p.stdout + p.stderr)
        self.assertEqual(sorted(os.listdir(out)), sorted("call%d.%s" % (n, kind) for n in (1, 2, 3) for kind in ("txt", "tar.gz")))
        page, folder = self.archived(out, "call1")
        self.assertIn("\nunsupported: plain ", page)
        for variant in ("library", "forward"):
            self.assertIn("\n%s: plain lives, over lives, managed lives, runtime skipped\n" % variant, page)
        self.assertIn("\nvariant: library\n", page)
        self.assertIn("\nreleased while mapped, of 64 MiB: driver 64, slice 64\n", page)
        self.assertRegex(page, r"\nlatency, median of ns: launch \d+, ")
        for name, words in (("trace.txt", "Q8 mappings"), ("trace/vmm.txt", "Q8 mappings"), ("vectors.txt", "\nvector what=memory "),
                            ("trace/probe.output.txt", "\nsurface status 0x0 "), ("machine.txt", "\ncard ")):
            with open(os.path.join(folder, name)) as f:
                self.assertIn(words, f.read(), name)
        self.assertGreater(os.path.getsize(os.path.join(folder, "trace/ipc.trace.gz")), 0)
        page, folder = self.archived(out, "call2")
        self.assertRegex(page, r"\nok contexts first-counted=\d+ ")
        self.assertIn("\n5 ok, 0 not ok, 0 skipped\n", page)
        self.assertTrue(os.path.exists(os.path.join(folder, "suite/results.md")))
        page, _ = self.archived(out, "call3")
        for words in ("\nok alone-50us ", "\nok beside-20ms ", "\nok graph share-of-30=", "\nok utilisation ", "\nlibrary: ok turns ", "\nno-cilp: "):
            self.assertIn(words, "\n" + page)


class SessionThatFails(Case):
    def test_session_without_time(self):
        """A run whose time is over still says what it knows."""
        m = Machine(self, SIM)
        out = os.path.join(self.folder, "short")
        p = self.on(m, [os.path.join(KIT, "tests/gpu/call1.py"), "--seconds", "0"], OUT=out)
        self.assertEqual(p.returncode, 0, p.stderr)
        page, _ = self.archived(out, "call1")
        self.assertIn("machine: not run, no time left\n", page)
        self.assertEqual(self.on(m, [os.path.join(KIT, "tests/gpu/call2.py"), "--seconds", "0"], OUT=out).returncode, 1)

    def test_variant_without_library(self):
        """A variant in which no program lives is not chosen."""
        m = Machine(self, SIM)
        kit, out = os.path.join(self.folder, "dead"), os.path.join(self.folder, "dead-out")
        shutil.copytree(KIT, kit)
        os.unlink(os.path.join(kit, "library", "libaliquot.so"))
        p = self.on(m, [os.path.join(kit, "tests/gpu/call1.py"), "--quick"], OUT=out)
        self.assertEqual(p.returncode, 0, p.stderr)
        page, _ = self.archived(out, "call1")
        self.assertIn("\nlibrary: plain FAILS, over FAILS, managed FAILS, runtime skipped\n", page)
        self.assertIn("\nvariant: forward\n", page)


if __name__ == "__main__":
    if os.environ.get("ASAN_OPTIONS"):
        print("skipped: the simulated libraries are sanitized here, and the programs that load them are not")
        sys.exit(77)
    enter_namespace(SIM)
    unittest.main(argv=[sys.argv[0], sys.argv[-1]])
