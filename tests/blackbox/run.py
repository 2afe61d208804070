#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`aliquot run` and `aliquot smi` on simulated cards: run.py ALIQUOT"""

import ctypes
import json
import os
import re
import signal
import struct
import subprocess
import sys
import tempfile
import time
import unittest

V100 = "Tesla-V100-SXM2-16GB:16160MiB"
PATIENCE = 120


class Cuda:
    """What the tests' commands do: this file, run again with --inside."""

    def __init__(self):
        self.lib = ctypes.CDLL("libcuda.so.1")
        self.must(self.lib.cuInit(0))
        device, context = ctypes.c_int(), ctypes.c_void_p()
        self.must(self.lib.cuDeviceGet(ctypes.byref(device), 0))
        self.must(self.lib.cuDevicePrimaryCtxRetain(ctypes.byref(context), device))
        self.must(self.lib.cuCtxSetCurrent(context))

    @staticmethod
    def must(r):
        if r != 0:
            raise RuntimeError(f"CUDA error {r}")

    def allocate(self, mib):
        """0, or CUDA's error."""
        return self.lib.cuMemAlloc_v2(ctypes.byref(ctypes.c_uint64()), ctypes.c_size_t(mib << 20))

    def info(self):
        free, total = ctypes.c_size_t(), ctypes.c_size_t()
        self.must(self.lib.cuMemGetInfo_v2(ctypes.byref(free), ctypes.byref(total)))
        return free.value >> 20, total.value >> 20


def inside(words):
    """A small language: alloc MIB, info, say TEXT, hold. A line each."""
    cuda = Cuda()
    for word in words:
        verb, _, rest = word.partition(" ")
        if verb == "alloc":
            print("alloc", cuda.allocate(int(rest)), flush=True)
        elif verb == "info":
            print("info", *cuda.info(), flush=True)
        elif verb == "hold":
            print("holding", flush=True)
            time.sleep(3600)


class Run(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.board = os.path.join(folder.name, "slices")

    @property
    def context(self):
        """MiB that a context takes by itself, in a slice of 2 GiB."""
        if not hasattr(Run, "measured"):
            free, total = map(int, self.inside(["--gpu-mem", "2"], "info")[0].split()[1:])
            Run.measured = total - free
        return Run.measured

    def command(self, *arguments, cards="1x" + V100):
        return [ALIQUOT, "run", "--board", self.board, "--simulate", cards, *arguments]

    def run_to_end(self, *arguments, **options):
        return subprocess.run(self.command(*arguments, **options), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                              timeout=PATIENCE)

    def inside(self, options, *words, **more):
        p = self.run_to_end(*options, "--", sys.executable, os.path.abspath(__file__), "--inside", *words, **more)
        self.assertEqual(p.returncode, 0, p.stderr)
        return p.stdout.splitlines()

    def start(self, options, *words):
        return self.start_command(self.command(*options, "--", sys.executable, os.path.abspath(__file__), "--inside", *words))

    def start_command(self, command):
        p = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, start_new_session=True)

        def end():  # the command, too, which may have outlived whoever started it
            try:
                os.killpg(p.pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
            p.wait()
            p.stdout.close()
        self.addCleanup(end)
        return p

    def smi(self, *arguments):
        return subprocess.run([ALIQUOT, "smi", "--board", self.board, *arguments], stdout=subprocess.PIPE, text=True, check=True,
                              timeout=PATIENCE).stdout

    def slices(self):
        return json.loads(self.smi("-o", "json"))["slices"]

    def until(self, condition, what):
        end = time.monotonic() + PATIENCE
        while not condition():
            self.assertLess(time.monotonic(), end, what)
            time.sleep(0.02)

    def test_it_sees_its_slice(self):
        self.assertEqual(self.inside(["--gpu-mem", "2"], "info"), [f"info {2154 - self.context} 2154"])
        self.assertGreater(self.context, 0)
        p = self.run_to_end("--gpu-mem", "2", "--", "nvidia-smi")
        self.assertRegex(p.stdout, r" 0MiB / +2154MiB ")

    def test_published_pairs(self):
        for mib, units, visible in (16130, 4, 4301), (16130, 3, 3226), (15079, 3, 3231), (15360, 3, 3072), (23028, 8, 8373):
            p = self.run_to_end("--gpu-mem", str(units), "--", "nvidia-smi", "--query-gpu=memory.total",
                                "--format=csv,noheader,nounits", cards=f"1xX:{mib}MiB")
            self.assertEqual(p.stdout.split(), [str(visible)])

    def test_no_more_than_that(self):
        lines = self.inside(["--gpu-mem", "2"], "alloc 1024", "alloc 1024", "alloc 512", "info", "alloc 600", "alloc 482", "info")
        left = 2154 - self.context - 1024 - 512
        self.assertEqual(lines, ["alloc 0", "alloc 2", "alloc 0", f"info {left} 2154", "alloc 2", "alloc 0", f"info {left - 482} 2154"])

    def test_units(self):
        (line,) = self.inside(["--gpu-mem", "16", "--gpu-mem-unit", "128MiB"], "info")
        self.assertEqual(line.split()[2], str(16160 * 16 // 126))

    def test_environment(self):
        p = self.run_to_end("--gpu-mem", "3", "--gpu-count", "2", "--", "env", cards="2x" + V100)
        env = dict(line.split("=", 1) for line in p.stdout.splitlines() if "=" in line)
        self.assertEqual([env["ALIYUN_COM_GPU_MEM_" + n] for n in ("CONTAINER", "DEV", "POD", "UNIT")], ["3", "15", "6", "GiB"])
        self.assertEqual(len(env["NVIDIA_VISIBLE_DEVICES"].split(",")), 2)
        self.assertEqual(env["CUDA_VISIBLE_DEVICES"], env["NVIDIA_VISIBLE_DEVICES"])

    def test_status(self):
        for code, command in ((0, ["true"]), (7, ["sh", "-c", "exit 7"]), (128 + 9, ["sh", "-c", "kill -9 $$"]), (127, ["no-such-command"]),
                              (126, ["/etc"])):
            self.assertEqual(self.run_to_end("--gpu-mem", "1", "--", *command).returncode, code, command)

    def test_smi(self):
        p = self.start(["--gpu-mem", "2", "--gpu-core", "30"], "alloc 1000", "hold")
        self.assertEqual([p.stdout.readline().strip() for _ in range(2)], ["alloc 0", "holding"])
        (one,) = self.slices()
        self.assertEqual((one["memory"]["used"] >> 20, one["memory"]["limit"] >> 20, one["compute"]["limit"]),
                         (1000 + self.context, 2154, 30))
        self.assertEqual(len(one["processes"]), 1)
        self.assertRegex(self.smi(), rf"GPU0 +{1000 + self.context}/2154 +(-|0\.0)/30 +1\n")

    def test_smi_tells_of_time(self):
        """What the arbiter has counted, of those that are held; others have no figure."""
        sample = os.path.join(os.path.dirname(os.path.abspath(ALIQUOT)), "aliquot-sample")
        for core in "30", "0":
            self.start_command(self.command("--gpu-mem", "2", "--gpu-core", core, "--", sample, "--seconds", "600"))

        def told():
            by_limit = {s["compute"]["limit"]: s["compute"] for s in self.slices()}
            return len(by_limit) == 2 and 5 < by_limit[30].get("used", 0) < 60 and "used" not in by_limit[0]
        self.until(told, "about 30 percent")
        self.until(lambda: re.search(r" [1-5]?\d\.\d/30 +1\n", self.smi()) and re.search(r" - +1\n", self.smi()), "and in the table")

    def turn(self, p):
        """(flags, seen) of the slice of that `aliquot run`: slice/turn.h."""
        with open(f"{self.board}/run-{p.pid}/0/limits", "rb") as f:
            _, flags, _, _, seen = struct.unpack_from("=II3Q", f.read(), 448)
            return flags, seen

    def test_who_is_limited_has_an_arbiter(self):
        """The first one brings it; when it ends, the second one's takes over."""
        first, second, free = (self.start(["--gpu-mem", "2", "--gpu-core", core], "hold") for core in ("30", "50", "0"))
        for p in first, second, free:
            self.assertEqual(p.stdout.readline(), "holding\n")
        self.until(lambda: all(self.turn(p) > (1, 0) for p in (first, second)), "they are gated")
        self.assertEqual(self.turn(free)[0], 0)
        first.send_signal(signal.SIGTERM)
        self.assertEqual(first.wait(PATIENCE), 128 + signal.SIGTERM)
        _, seen = self.turn(second)
        self.until(lambda: self.turn(second)[1] > seen + 10 ** 9, "somebody is there")
        second.kill()
        second.wait()

    def test_signals_reach_the_command(self):
        p = self.start(["--gpu-mem", "2"], "hold")
        self.assertEqual(p.stdout.readline(), "holding\n")
        p.send_signal(signal.SIGTERM)
        self.assertEqual(p.wait(PATIENCE), 128 + signal.SIGTERM)
        self.assertEqual(self.slices(), [])

    def test_killed(self):
        """Nothing is left of a command that was killed, nor of an `aliquot run` that was: its command may live on."""
        p = self.start(["--gpu-mem", "2"], "alloc 100", "hold")
        self.assertEqual([p.stdout.readline() for _ in range(2)], ["alloc 0\n", "holding\n"])
        (one,) = self.slices()
        (pid,) = one["processes"]
        p.kill()
        p.wait()
        self.assertEqual(len(self.slices()), 1)
        os.kill(pid, signal.SIGKILL)
        self.until(lambda: self.slices() == [], "nobody has it")
        self.assertEqual(self.run_to_end("--gpu-mem", "15", "--", "true").returncode, 0)
        self.assertEqual(os.listdir(self.board), ["lock"])

    def test_wrong_use(self):
        for arguments, words in ((["--gpu-mem", "0", "--", "true"], "--gpu-mem 0"), (["--gpu-mem", "1", "--gpu-core", "7", "--", "true"],
                                 "multiple of 5"), (["--", "true"], "--gpu-mem is missing"), (["--gpu-mem", "1"], "no command"),
                                 (["--gpu-mem", "1", "--gpu-mem-unit", "GB", "--", "true"], "--gpu-mem-unit GB")):
            p = self.run_to_end(*arguments)
            self.assertEqual(p.returncode, 2, p.stderr)
            self.assertIn(words, p.stderr)

    def test_no_room(self):
        p = self.run_to_end("--gpu-mem", "16", "--", "true")
        self.assertEqual(p.returncode, 125)
        self.assertRegex(p.stderr, r"no room for 16 x 1024 MiB .* gpu0 has 16160 of 16160 MiB")
        p = self.run_to_end("--gpu-mem", "1", "--gpu", "GPU-none", "--", "true")
        self.assertEqual(p.returncode, 125)

    def test_cards_that_are_none(self):
        p = self.run_to_end("--gpu-mem", "1", "--", "true", cards="rubbish")
        self.assertEqual(p.returncode, 125)
        self.assertIn("rubbish", p.stderr)


def missing():
    """Why simulated cards cannot be had here; None when they can."""
    p = subprocess.run([ALIQUOT, "run", "--board", tempfile.mkdtemp(), "--simulate", "1x" + V100, "--gpu-mem", "1", "--", "true"],
                       stderr=subprocess.PIPE, text=True, timeout=PATIENCE)
    if p.returncode == 125 and re.search("fuse|namespace|mount|permitted|denied", p.stderr, re.IGNORECASE):
        return p.stderr.strip()
    return None


if __name__ == "__main__":
    if sys.argv[1] == "--inside":
        inside(sys.argv[2:])
        sys.exit()
    ALIQUOT = os.path.abspath(sys.argv.pop(1))
    if os.environ.get("ASAN_OPTIONS"):
        print("skipped: the simulated libraries are sanitized here, and the programs that load them are not")
        sys.exit(77)
    if missing():
        print("skipped:", missing())
        sys.exit(77)
    unittest.main()
