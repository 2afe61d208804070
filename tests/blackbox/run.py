#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`aliquot run` and `aliquot smi` on simulated cards: run.py ALIQUOT"""

import ctypes
import json
import os
import re
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import time
import unittest
import unittest.mock

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "fake"))

import page as layout  # noqa: E402
from patience import PATIENCE, until  # noqa: E402
from terminal import Terminal  # noqa: E402

V100 = "Tesla-V100-SXM2-16GB:16160MiB"


class Cuda:
    """The commands of the tests: this file, run again with --inside."""

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
    """A small language: alloc MIB, info, say TEXT, hold. One command per line."""
    cuda = Cuda()
    for word in words:
        verb, _, rest = word.partition(" ")
        if verb == "alloc":
            print("alloc", cuda.allocate(int(rest)), flush=True)
        elif verb == "close":
            os.closerange(100, 1000)
        elif verb == "leave":  # a child that inherits everything and outlives us
            if os.fork() != 0:
                return
            print("left", flush=True)
            time.sleep(3600)
        elif verb == "dir":
            print("dir", os.environ["ALIQUOT_SIM_DIR"], flush=True)
        elif verb == "info":
            print("info", *cuda.info(), flush=True)
        elif verb == "hold":
            print("holding", flush=True)
            time.sleep(3600)


class Base(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.slicedir = os.path.join(folder.name, "slices")

    @property
    def context(self):
        """MiB that a context takes, in a slice of 2 GiB."""
        if not hasattr(Base, "measured"):
            free, total = map(int, self.inside(["--gpu-mem", "2"], "info")[0].split()[1:])
            Base.measured = total - free
        return Base.measured

    def command(self, *arguments, cards="1x" + V100):
        return [ALIQUOT, "run", "--slices", self.slicedir, "--simulate", cards, *arguments]

    def run_to_end(self, *arguments, path=None, **options):
        return subprocess.run(self.command(*arguments, **options), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                              timeout=PATIENCE, env={**os.environ, "PATH": path} if path else None)

    def inside(self, options, *words, **more):
        p = self.run_to_end(*options, "--", sys.executable, os.path.abspath(__file__), "--inside", *words, **more)
        self.assertEqual(p.returncode, 0, p.stderr)
        return p.stdout.splitlines()

    def start(self, options, *words):
        return self.start_command(self.command(*options, "--", sys.executable, os.path.abspath(__file__), "--inside", *words))

    def start_command(self, command, **options):
        p = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, start_new_session=True, **options)

        def end():  # also the command, which may have outlived its `aliquot run`
            try:
                os.killpg(p.pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
            p.wait()
            for pipe in filter(None, (p.stdin, p.stdout)):
                pipe.close()
        self.addCleanup(end)
        return p

    def smi(self, *arguments):
        return subprocess.run([ALIQUOT, "smi", "--slices", self.slicedir, *arguments], stdout=subprocess.PIPE, text=True, check=True,
                              timeout=PATIENCE).stdout

    def slices(self):
        return json.loads(self.smi("-o", "json"))["slices"]


class Run(Base):
    def test_it_sees_its_slice(self):
        self.assertEqual(self.inside(["--gpu-mem", "2"], "info"), [f"info {2154 - self.context} 2154"])
        self.assertGreater(self.context, 0)
        p = self.run_to_end("--gpu-mem", "2", "--", "nvidia-smi")
        self.assertRegex(p.stdout, r" 0MiB / +2154MiB ")

    def test_refusals_are_said(self):
        """By the program that is refused, to where its standard error leads, once; in the words of the user."""
        inside = ["--", sys.executable, os.path.abspath(__file__), "--inside", "alloc 3000", "alloc 3000"]
        said = r"^aliquot: 3000 MiB refused: this container's slice of gpu0 is %d MiB, \d+ in use \(%s\)\n$"
        for asked, limit in ("--gpu-mem 2", 2154), ("--gpu-mem 16 --gpu-mem-unit 128MiB", 2052), ("--gpu-mem 2GiB", 2048):
            p = self.run_to_end(*asked.split(), *inside)
            self.assertEqual(p.stdout, "alloc 2\nalloc 2\n")
            self.assertRegex(p.stderr, said % (limit, asked))
        with unittest.mock.patch.dict(os.environ, ALIQUOT_LOG="0"):
            self.assertEqual(self.run_to_end("--gpu-mem", "2", *inside).stderr, "")
        with tempfile.TemporaryFile("w+") as f:
            subprocess.run(self.command("--gpu-mem", "2", *inside), stdout=subprocess.DEVNULL, stderr=f, timeout=PATIENCE, check=True)
            f.seek(0)
            self.assertRegex(f.read(), said % (2154, "--gpu-mem 2"))

    def test_it_sees_no_other_card(self):
        """As in a container, where the other cards have no device files."""
        p = self.run_to_end("--gpu-mem", "2", "--gpu", "1", "--", "sh", "-c", "nvidia-smi; nvidia-smi -i 1 -L; nvidia-smi -i 0", cards="2x" + V100)
        self.assertRegex(p.stdout, r"(?s)\|   1  Tesla.* 0MiB / +2154MiB .*\nGPU 1: Tesla.*\nNo devices were found\n$")
        self.assertNotIn("16160MiB", p.stdout)
        self.assertEqual(p.stdout.count("Tesla"), 2)

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

    def test_amounts(self):
        """What the command sees is what was written."""
        for amount, mib in ("2GiB", 2048), ("1.5Gi", 1536), ("512MiB", 512):
            (line,) = self.inside(["--gpu-mem", amount, "--gpu-core", "40%"], "info")
            self.assertEqual(line.split()[2], str(mib))

    def test_environment(self):
        p = self.run_to_end("--gpu-mem", "3", "--gpu-count", "2", "--", "env", cards="2x" + V100)
        env = dict(line.split("=", 1) for line in p.stdout.splitlines() if "=" in line)
        self.assertEqual([env["ALIYUN_COM_GPU_MEM_" + n] for n in ("CONTAINER", "DEV", "POD", "UNIT")], ["3", "15", "6", "GiB"])
        self.assertEqual(len(env["NVIDIA_VISIBLE_DEVICES"].split(",")), 2)
        self.assertEqual(env["CUDA_VISIBLE_DEVICES"], env["NVIDIA_VISIBLE_DEVICES"])

    @unittest.mock.patch.dict(os.environ, PATH="/usr/bin:/bin:/usr/sbin:/sbin")
    def test_status(self):
        """A folder in PATH that cannot be read would make 126 of 127, as execvp(3) says."""
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
        used = 1000 + self.context
        cards, slices = self.smi().split("\n\n")
        self.assertRegex(cards, rf"^CARD +MODEL .* TOTAL  ALLOCATED +FREE +USED +CORE +SLICES\nGPU0 +- .* 16160 +2154  14006 +{used} +30% +1$")
        self.assertRegex(slices, rf"^CONTAINER +CARD  USER +COMMAND .*\nrun-{p.pid} +GPU0  \w+ +python\S* +\d+s +{used}/2154 +{used} +0 +(-|0\.0)/30 +1\n"
                         rf"1 slice: {used} of 2154 MiB used, 0 refused\n$")
        self.assertGreaterEqual(one["age"], 0)
        self.assertIn("python", one["command"])

    def smi_beside(self, *arguments, cards="2x" + V100):
        """On a machine with simulated cards, outside of slices."""
        return self.run_to_end("--gpu-mem", "3", "--", "env", "-u", "LD_PRELOAD", "-u", "ALIQUOT_SLICES", ALIQUOT, "smi", "--slices", self.slicedir,
                               *arguments, cards=cards)

    def test_smi_shows_the_cards_first(self):
        """Those of the driver, also without slices."""
        p = self.smi_beside()
        self.assertEqual(p.stderr, "")
        self.assertRegex(p.stdout, r"(?s)^CARD .*\nGPU0  Tesla-V100-SXM2-16GB  \S+  16160 +3232  12928 +0 +0% +1\n"
                         r"GPU1  Tesla-V100-SXM2-16GB  \S+  16160 +0  16160 +0 +0% +0\n\nCONTAINER .*\nrun-\d+ +GPU0 +- +- .* 0/3232 .*\n1 slice: ")
        cards = json.loads(self.smi_beside("-o", "json").stdout)["cards"]
        self.assertEqual([(c["card"], c["model"], c["memory"]["total"] >> 20, c["memory"]["free"] >> 20, c["slices"]) for c in cards],
                         [(0, "Tesla-V100-SXM2-16GB", 16160, 12928, 1), (1, "Tesla-V100-SXM2-16GB", 16160, 16160, 0)])

    def test_smi_in_a_slice_does_not_take_it_for_the_card(self):
        p = self.run_to_end("--gpu-mem", "3", "--", ALIQUOT, "smi", "--slices", self.slicedir)
        self.assertEqual(p.stderr, "aliquot smi: cards: in a slice the driver tells the slice's size, not the card's\n")
        self.assertRegex(p.stdout, r"(?s)^CARD .*\nGPU0  - .* 16160 +3232  12928 ")

    def test_smi_of_cards_out_of_service(self):
        """As a node agent wrote it beside the slices, also of a card that the driver does not show."""
        fenced, cordoned = "XID 48: uncorrectable ECC error", "cordoned by annotation aliquot.dev/cordon-cards of the node"
        path, smi = self.slicedir + ".out-of-service", f"'{ALIQUOT}' smi --slices '{self.slicedir}'"
        # in one run, because each makes other cards
        script = f"""set -e; {smi} -o json; uuids=$({smi} -o json | grep -o '"uuid":"[^"]*","model' | cut -d'"' -f4)
            set -- $uuids; printf '%s\n' "$2 {fenced}; {cordoned}" '' 'GPU-gone a "[2J' "$1" last > '{path}'
            {smi} -o json; {smi} | sed -n '/takes no/p'; rm '{path}'; mkdir '{path}'; {smi} > /dev/null"""
        p = self.run_to_end("--gpu-mem", "3", "--", "env", "-u", "LD_PRELOAD", "-u", "ALIQUOT_SLICES", "sh", "-c", script, cards="2x" + V100)
        self.assertEqual((p.returncode, p.stderr), (0, f"aliquot smi: {path}: Is a directory\n"))
        before, after, *lines = p.stdout.splitlines()
        self.assertEqual([[c.get("outOfService") for c in json.loads(text)["cards"]] for text in (before, after)],
                         [[None, None], [None, f"{fenced}; {cordoned}"]])
        self.assertEqual(lines, [f"GPU1 takes no new slice: {fenced}; {cordoned}", 'GPU-gone takes no new slice: a "?[2J'])

    def test_smi_of_a_simulator_by_its_variable(self):
        """With ALIQUOT_SIM_DIR and no more, as the commands beside an aliquot-sim have it."""
        p = self.run_to_end("--gpu-mem", "3", "--", "env", "-u", "LD_PRELOAD", "-u", "ALIQUOT_SLICES", "-u", "LD_LIBRARY_PATH", ALIQUOT, "smi",
                            "--slices", self.slicedir, cards="2x" + V100)
        self.assertEqual(p.stderr, "")
        self.assertEqual(re.findall(r"GPU\d  Tesla-V100-SXM2-16GB ", p.stdout), ["GPU0  Tesla-V100-SXM2-16GB ", "GPU1  Tesla-V100-SXM2-16GB "])

    def test_smi_of_names_that_would_steer_the_terminal(self):
        p = self.smi_beside(cards='1xA"\x1b[2J\\B:16160MiB')
        self.assertEqual((p.returncode, p.stderr), (0, ""))
        self.assertRegex(p.stdout, r'GPU0  A"\?\[2J\\B  ')
        self.assertNotIn("\x1b", p.stdout)

    def test_smi_without_a_driver_or_slices(self):
        os.makedirs(self.slicedir)
        p = subprocess.run([ALIQUOT, "smi", "--slices", self.slicedir], capture_output=True, text=True, timeout=PATIENCE, check=False,
                           env=dict(os.environ, ALIQUOT_SIM_DIR=self.slicedir))
        self.assertEqual((p.returncode, p.stdout, p.stderr), (
            0, "No slices.\n", f"aliquot smi: cards: {self.slicedir}/nvidiactl is not there: no NVIDIA driver is loaded\n"))

    def test_smi_of_a_driver_that_hangs(self):
        os.makedirs(self.slicedir)
        with open(self.slicedir + "/nvidiactl", "w", encoding="utf-8"):
            pass
        p = subprocess.run(["cc", "-shared", "-fPIC", "-x", "c", "-", "-o", self.slicedir + "/libnvidia-ml.so.1"], text=True, check=False,
                           input="#include <unistd.h>\n__attribute__((constructor)) static void hang(void) { for (;;) pause(); }")
        if p.returncode != 0:
            self.skipTest("no compiler")
        # a copy, because the program prefers the simulator's NVML beside it
        smi = shutil.copy(os.path.join(os.path.dirname(os.path.abspath(ALIQUOT)), "aliquot-smi"), self.slicedir + "/aliquot-smi")
        p = subprocess.run([smi, "--slices", self.slicedir], capture_output=True, text=True, timeout=PATIENCE, check=False,
                           env=dict(os.environ, ALIQUOT_SIM_DIR=self.slicedir, LD_LIBRARY_PATH=self.slicedir))
        self.assertEqual((p.returncode, p.stdout, p.stderr), (
            0, "No slices.\n", "aliquot smi: cards: the driver does not answer within 5 seconds\n"))

    def test_smi_again_and_again(self):
        p = self.start(["--gpu-mem", "2"], "hold")
        self.assertEqual(p.stdout.readline(), "holding\n")
        loop = subprocess.Popen([ALIQUOT, "smi", "--slices", self.slicedir, "-l", "1"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        self.addCleanup(lambda: (loop.kill(), loop.wait(), loop.stdout.close()))
        lines = [loop.stdout.readline() for _ in range(15)]
        for start in 0, 8:
            self.assertRegex(lines[start], r"^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\n$")
            self.assertRegex(lines[start + 5], rf"^run-{p.pid} ")
        loop.send_signal(signal.SIGINT)
        self.assertEqual(loop.wait(PATIENCE), -signal.SIGINT)

    def test_smi_while_the_terminal_changes_its_size(self):
        """The signal ends the wait between two reports, and no wait for the driver or for a measurement."""
        out, smi = self.slicedir + ".out", f"'{ALIQUOT}' smi --slices '{self.slicedir}'"
        script = f""": > '{out}'; {smi} -l 1 >> '{out}' & until [ "$(grep -c '^2...-' '{out}')" -gt 20 ]; do kill -WINCH $!; done; kill $!; cat '{out}'"""
        p = self.run_to_end("--gpu-mem", "2", "--gpu-core", "30", "--", "env", "-u", "LD_PRELOAD", "-u", "ALIQUOT_SLICES", "sh", "-c", script)
        self.assertEqual(p.stderr, "")
        self.assertGreaterEqual(p.stdout.count("\nCARD "), 20)
        self.assertLess(p.stdout.count(" -/30 "), 5)

    def test_smi_on_a_terminal(self):
        """It fits, and a loop is drawn in place."""
        p = self.start(["--gpu-mem", "2"], "hold")
        self.assertEqual(p.stdout.readline(), "holding\n")
        for width in 40, 80, 100:
            status, text, _ = Terminal([ALIQUOT, "smi", "--slices", self.slicedir], width, env={"NO_COLOR": "1"}).end()
            self.assertEqual((status, [line for line in text.splitlines() if len(line) > width]), (0, []))
            self.assertRegex(text, rf"\nrun-{p.pid} +GPU0 ")
        t = Terminal([ALIQUOT, "smi", "--slices", self.slicedir, "-l", "1"], 100, 40)
        self.addCleanup(t.close)
        t.until(lambda: t.bytes.count(b"TOTAL") > 1, "a second report")
        t.until(lambda: len(t.screen()) == 8, "the same lines")

    def test_smi_tells_of_time(self):
        """The arbiter's counts of the slices with a limit; others have no figure."""
        sample = os.path.join(os.path.dirname(os.path.abspath(ALIQUOT)), "aliquot-sample")
        for core in "30", "0":
            self.start_command(self.command("--gpu-mem", "2", "--gpu-core", core, "--", sample, "--seconds", "600"))

        def told():
            by_limit = {s["compute"]["limit"]: s["compute"] for s in self.slices()} if os.path.exists(self.slicedir) else {}
            return len(by_limit) == 2 and 5 < by_limit[30].get("used", 0) < 60 and "used" not in by_limit[0]
        until(told, "about 30 percent")
        until(lambda: re.search(r" [1-5]?\d\.\d/30 +1\n", self.smi()) and re.search(r" 0 +- +1\n", self.smi()), "and in the table")

    def turn(self, p):
        """(flags, seen) of the slice of that `aliquot run`: slice/schedule.h."""
        with open(f"{self.slicedir}/run-{p.pid}/0/limits", "rb") as f:
            _, flags, _, _, seen = struct.unpack_from("=II3Q", f.read(), layout.WINDOW)
            return flags, seen

    def test_a_limited_run_has_an_arbiter(self):
        """The first run starts it; when that run ends, the second run's arbiter takes over."""
        runs = []
        for core in "0", "30", "50":  # the first one has the driver of all, and ends last
            runs.append(self.start(["--gpu-mem", "2", "--gpu-core", core], "hold"))
            self.assertEqual(runs[-1].stdout.readline(), "holding\n")
        free, first, second = runs
        until(lambda: all(self.turn(p) > (1, 0) for p in (first, second)), "they are gated")
        self.assertEqual(self.turn(free)[0], 0)
        first.send_signal(signal.SIGTERM)
        self.assertEqual(first.wait(PATIENCE), 128 + signal.SIGTERM)
        _, seen = self.turn(second)
        until(lambda: self.turn(second)[1] > seen + 10 ** 9, "somebody is there")
        second.kill()
        second.wait()

    def test_no_page_is_leased(self):
        """Even without an arbiter, as long as `aliquot run` lives."""
        script = os.path.join(os.path.dirname(os.path.abspath(__file__)), "leases.py")
        p = self.run_to_end("--gpu-mem", "2", "--", "sh", "-c", f'exec {sys.executable} {script} "$ALIQUOT_SLICES/0"')
        self.assertEqual(p.stdout.splitlines(), [f"{name} {kind} refused" for name in ("limits", "counters") for kind in (0, 1)], p.stderr)

    def test_signals_reach_the_command(self):
        p = self.start(["--gpu-mem", "2"], "hold")
        self.assertEqual(p.stdout.readline(), "holding\n")
        p.send_signal(signal.SIGTERM)
        self.assertEqual(p.wait(PATIENCE), 128 + signal.SIGTERM)
        self.assertEqual(self.slices(), [])

    def test_killed(self):
        """When an `aliquot run` with simulated cards is killed, nothing of it is left: command,
        driver, folder, slice."""
        p = self.start(["--gpu-mem", "2"], "dir", "alloc 100", "hold")
        folder = p.stdout.readline().split()[1]
        self.assertEqual([p.stdout.readline() for _ in range(2)], ["alloc 0\n", "holding\n"])
        self.assertTrue(os.path.isdir(folder))
        (one,) = self.slices()
        (pid,) = one["processes"]
        p.kill()
        p.wait()
        until(lambda: not os.path.exists(folder), "its folder is gone")
        until(lambda: not is_alive(pid), "its command is gone")
        until(lambda: self.slices() == [], "nobody has it")
        self.assertEqual(self.run_to_end("--gpu-mem", "15", "--", "true").returncode, 0)
        self.assertEqual(os.listdir(self.slicedir), ["lock"])

    def test_simulated_cards_take_all_with_them(self):
        """Also processes that a command leaves behind in a session of their own."""
        p = self.run_to_end("--gpu-mem", "2", "--", "sh", "-c", "setsid sleep 3600 > /dev/null 2>&1 & echo $! $ALIQUOT_SIM_DIR")
        pid, folder = p.stdout.split()
        until(lambda: not is_alive(int(pid)), "the process is gone")
        self.assertFalse(os.path.exists(folder))

    def waiting(self, *words, gpu_mem="5", cards="1x" + V100, cwd=None, stderr=None):
        """A run whose command waits for its input."""
        p = self.start_command(self.command("--gpu-mem", gpu_mem, "--", "sh", "-c", f"{' '.join(words)} echo $ALIQUOT_SIM_DIR $PWD; read x", cards=cards),
                               stdin=subprocess.PIPE, cwd=cwd, stderr=stderr)
        p.folder, p.cwd = p.stdout.readline().split()
        return p

    @staticmethod
    def end(p):
        p.stdin.close()
        return p.wait(PATIENCE)

    def test_runs_share_simulated_cards(self):
        """Those of the same cards and directory of slices."""
        one = self.waiting()
        two = self.waiting("nvidia-smi -L >/dev/null &&", cwd="/usr")
        self.assertEqual((two.folder, two.cwd), (one.folder, "/usr"))
        self.assertEqual(len({s["uuid"] for s in self.slices()}), 1)
        self.refused(self.run_to_end("--gpu-mem", "6", "--", "true"), "no room for 6 GiB on 1 card: gpu0 has 5.2 of 15.7 GiB")
        other = self.waiting(cards="1xTesla-T4:16160MiB")
        self.assertNotEqual(other.folder, one.folder)
        self.assertEqual(len({s["uuid"] for s in self.slices()}), 2)
        for p in other, two, one:
            self.assertEqual(self.end(p), 1)
        self.assertFalse(os.path.exists(one.folder))
        self.assertEqual(os.listdir(self.slicedir), ["lock"])

    def test_the_first_run_waits_for_those_that_joined(self):
        """Its own slice is free meanwhile, and another one can join."""
        one = self.waiting()
        two = self.waiting()
        one.stdin.close()
        until(lambda: len(self.slices()) == 1, "its slice is gone")
        three = self.waiting(gpu_mem="10")
        self.assertEqual(three.folder, two.folder)
        self.assertEqual((self.end(two), self.end(three), one.wait(PATIENCE)), (1, 1, 1))
        self.assertFalse(os.path.exists(one.folder))
        self.assertEqual(os.listdir(self.slicedir), ["lock"])

    def test_a_signal_that_ends_those_that_joined_is_told(self):
        """The first one goes to the command, and the second to the run that waits."""
        for number in signal.SIGINT, signal.SIGTERM, signal.SIGHUP:
            one, two = self.waiting(stderr=subprocess.PIPE), self.waiting()
            one.stdin.close()
            self.assertEqual(one.stderr.readline(), "aliquot run: waits for other commands on these simulated cards; Ctrl-C ends them\n")
            one.send_signal(number)
            self.assertEqual(one.stderr.read(), "aliquot run: ends the other commands on these simulated cards\n")
            one.stderr.close()
            self.assertEqual((one.wait(PATIENCE), two.wait(PATIENCE)), (-number, -signal.SIGKILL))
            until(lambda folder=one.folder: not os.path.exists(folder), "its folder is gone")

    def test_what_cannot_be_shared_is_told(self):
        """Where its file would be: a directory, a FIFO, a link, another user's file."""
        one = self.waiting()
        (name,) = (n for n in os.listdir(self.slicedir) if n.startswith(".sim-"))
        self.assertEqual(self.end(one), 1)
        path = os.path.join(self.slicedir, name)

        def of_another():
            with open(path, "w", encoding="utf-8"):
                os.chown(path, 65534, 65534)

        for make, why in ((lambda: os.mkdir(path), "Is a directory"), (lambda: os.mkfifo(path), "is no file"),
                          (lambda: os.symlink("/dev/null", path), "Too many levels of symbolic links"), (of_another, "is another user's")):
            if make is of_another and os.geteuid() != 0:
                continue
            make()
            p = self.run_to_end("--gpu-mem", "2", "--", "true")
            self.assertEqual((p.returncode, p.stderr), (0, f"aliquot run: shares its simulated cards with no other run: {path} {why}\n"))
            if os.path.isdir(path):
                os.rmdir(path)
            else:
                os.unlink(path)

    def test_a_killed_run_takes_those_that_joined_with_it(self):
        one = self.waiting()
        two = self.waiting()
        one.kill()
        one.wait()
        self.assertEqual(two.wait(PATIENCE), -signal.SIGKILL)
        until(lambda: not os.path.exists(one.folder), "its folder is gone")
        three = self.waiting(gpu_mem="15")
        self.assertNotEqual(three.folder, one.folder)
        self.assertEqual(self.end(three), 1)

    def test_no_run_joins_one_that_ended_and_was_not_waited_for(self):
        """As below a first process of a container that reaps nothing."""
        one = self.waiting()
        one.kill()
        until(lambda: not os.path.exists(one.folder), "its folder is gone")  # and it is a zombie: nothing has waited for it
        two = self.waiting(gpu_mem="10")
        three = self.waiting(gpu_mem="5")
        self.assertEqual((two.folder == one.folder, three.folder), (False, two.folder))
        self.refused(self.run_to_end("--gpu-mem", "6", "--", "true"), "no room for 6 GiB on 1 card")
        self.assertEqual((self.end(three), self.end(two)), (1, 1))
        one.wait()

    def test_no_run_joins_what_is_not_its_users(self):
        """Also not what a hand has written."""
        one = self.waiting()
        (name,) = (n for n in os.listdir(self.slicedir) if n.startswith(".sim-"))
        path = os.path.join(self.slicedir, name)
        with open(path, encoding="utf-8") as f:
            text = f.read()
        for wrong in "", "1 1 /\n", text.replace(" ", " 1", 1), text.replace("V100", "V101"), text.split("\n", maxsplit=1)[0]:
            with open(path, "w", encoding="utf-8") as f:
                f.write(wrong)
            two = self.waiting(gpu_mem="15")
            self.assertNotEqual(two.folder, one.folder)
            self.assertEqual(self.end(two), 1)
        with open(path, "w", encoding="utf-8") as f:
            f.write(text)
        if os.geteuid() == 0:
            os.chown(path, 65534, 65534)
            two = self.waiting(gpu_mem="15")
            self.assertNotEqual(two.folder, one.folder)
            self.assertEqual(self.end(two), 1)
            os.chown(path, 0, 0)
        two = self.waiting()
        self.assertEqual(two.folder, one.folder)
        self.assertEqual((self.end(two), self.end(one)), (1, 1))

    def refused(self, p, words):
        self.assertEqual((p.returncode, p.stdout), (125, ""), p.stderr)
        self.assertRegex(p.stderr, "(?m)^aliquot run: .*" + words)

    def test_a_directory_by_its_relative_path(self):
        os.makedirs(self.slicedir)
        p = subprocess.run([ALIQUOT, "run", "--slices", "slices", "--simulate", "1x" + V100, "--gpu-mem", "2", "--", "sh", "-c",
                            "cd / && exec nvidia-smi"], cwd=os.path.dirname(self.slicedir), capture_output=True, text=True,
                           timeout=PATIENCE, check=False)
        self.assertRegex(p.stdout, r" 0MiB / +2154MiB ", p.stderr)

    def test_our_sample_is_found_beside_us(self):
        """The example of its page, in a build tree: no PATH has it."""
        p = self.run_to_end("--gpu-mem", "2", "--", "aliquot-sample", "--gpu-mem-mib", "3000", "--refused", path="/usr/bin:/bin")
        self.assertEqual(p.returncode, 0, p.stderr)
        p = self.run_to_end("--gpu-mem", "2", "--", "aliquot-none", path="/usr/bin:/bin")
        self.assertEqual((p.returncode, p.stderr), (127, "aliquot run: cannot run aliquot-none: No such file or directory\n"))

    def test_our_sample_is_found_behind_a_path_that_cannot_be_searched(self):
        """execvp(3) goes on after such an entry, and has its error at the end: EACCES, as of a directory of that name, or ENOTDIR."""
        folder = os.path.dirname(self.slicedir)
        os.mkdir(folder + "/aliquot-sample")
        for entry in folder, ALIQUOT:
            p = self.run_to_end("--gpu-mem", "2", "--", "aliquot-sample", "--gpu-mem-mib", "3000", "--refused", path="/usr/bin:" + entry)
            self.assertEqual(p.returncode, 0, p.stderr)
        p = self.run_to_end("--gpu-mem", "2", "--", "aliquot-none", path="/usr/bin:" + ALIQUOT)
        self.assertEqual((p.returncode, p.stderr), (126, "aliquot run: cannot run aliquot-none: Not a directory\n"))

    def test_a_directory_that_the_gate_cannot_find(self):
        os.mkdir(self.slicedir)
        self.slicedir += "/" + "x" * 200
        self.refused(self.run_to_end("--gpu-mem", "2", "--", "echo", "ran"), "too long")
        self.assertEqual(os.listdir(self.slicedir), ["lock"])

    def installed(self, name):
        """A copy of the files that a run needs, in a folder of that name."""
        folder = os.path.join(os.path.dirname(self.slicedir), name)
        build = os.path.dirname(ALIQUOT)
        os.makedirs(folder + "/sim")
        for part in "aliquot", "aliquot-run", "aliquot-sim", "src/aliquot-sim", "libaliquot.so", "src/libaliquot.so":
            if os.path.isfile(f"{build}/{part}"):
                shutil.copy(f"{build}/{part}", folder)
        for part in os.listdir(build + "/sim"):
            if os.path.isfile(f"{build}/sim/{part}"):
                shutil.copy(f"{build}/sim/{part}", folder + "/sim", follow_symlinks=True)
        return folder

    def by(self, folder):
        return subprocess.run([folder + "/aliquot", *self.command("--gpu-mem", "2", "--", "echo", "ran")[1:]], capture_output=True, text=True,
                              timeout=PATIENCE, check=False)

    def test_a_gate_that_is_not_loaded(self):
        """Without the limit the command is not run: the loader would skip the gate, with a warning
        at best."""
        for name in "a b", "a:b", "a$LIB":
            self.refused(self.by(self.installed(name)), "blank, a colon or a dollar")
        folder = self.installed("good")
        self.assertEqual(self.by(folder).stdout, "ran\n")
        with open(folder + "/libaliquot.so", "wb") as f:
            f.write(b"no library")
        self.refused(self.by(folder), "is not loaded")

    def test_a_gate_that_finds_nothing(self):
        """A library that is loaded but limits nothing."""
        folder = self.installed("other")
        p = subprocess.run(["cc", "-shared", "-fPIC", "-x", "c", "-", "-o", folder + "/libaliquot.so"], text=True, check=False,
                           input="int ioctl(int fd, unsigned long request, ...) { (void) fd; (void) request; return 0; }")
        if p.returncode != 0:
            self.skipTest("no compiler")
        self.refused(self.by(folder), "does not find the slice")

    def test_none_within_one(self):
        p = self.run_to_end("--gpu-mem", "2", "--", *self.command("--gpu-mem", "1", "--", "echo", "ran"))
        self.refused(p, "in a slice already")

    def test_smi_inside(self):
        p = self.run_to_end("--gpu-mem", "2", "--", ALIQUOT, "smi", "-o", "json")
        (one,) = json.loads(p.stdout)["slices"]
        self.assertEqual(one["memory"]["limit"] >> 20, 2154)

    def test_smi_of_damaged_counters(self):
        damage = "truncate -s 100 $ALIQUOT_SLICES/0/counters; "
        p = self.run_to_end("--gpu-mem", "2", "--", "sh", "-c", f"{damage} {ALIQUOT} smi -o json")
        (one,) = json.loads(p.stdout)["slices"]
        self.assertEqual(one["memory"], {"damaged": True, "limit": 2154 << 20})
        p = self.run_to_end("--gpu-mem", "2", "--", "sh", "-c", f"{damage} {ALIQUOT} smi")
        self.assertRegex(p.stdout, r"GPU0 .* damaged/2154 ")

    def test_without_a_path(self):
        """A command is found as by a shell without PATH."""
        p = subprocess.run(self.command("--gpu-mem", "2", "--", "ls", "/etc/hostname"), env={}, stdout=subprocess.PIPE, text=True,
                           timeout=PATIENCE, check=False)
        self.assertEqual((p.returncode, p.stdout), (0, "/etc/hostname\n"))

    def test_wrong_use(self):
        for arguments, words in ((["--gpu-mem", "0", "--", "true"], '--gpu-mem is "0"'), (["--gpu-mem", "1", "--gpu-core", "7", "--", "true"],
                                 "multiple of 5"), (["--", "true"], "--gpu-mem is missing"), (["--gpu-mem", "1"], "no command"),
                                 (["--gpu-mem", "1", "--gpu-mem-unit", "GB", "--", "true"], '--gpu-mem-unit is "GB"'),
                                 (["--gpu-mem", "2000KiB", "--", "true"], '--gpu-mem is "2000KiB", must be a number of units from 1'),
                                 (["--gpu-mem", "1", "--gpu-count", "1k", "--", "true"], '--gpu-count is "1k"')):
            p = self.run_to_end(*arguments)
            self.assertEqual(p.returncode, 2, p.stderr)
            self.assertIn(words, p.stderr)

    def test_no_room(self):
        p = self.run_to_end("--gpu-mem", "16", "--", "true")
        self.assertEqual(p.returncode, 125)
        self.assertRegex(p.stderr, r"no room for 16 GiB on 1 card: gpu0 has 15\.7 of 15\.7 GiB and 100 % left")
        p = self.run_to_end("--gpu-mem", "20000MiB", "--gpu-core", "40%", "--", "true")
        self.assertRegex(p.stderr, r"no room for 20000 MiB and 40 % of compute on 1 card: gpu0 has 16160 of 16160 MiB and 100 % left")
        p = self.run_to_end("--gpu-mem", "1", "--gpu", "5", "--", "true", cards="2x" + V100)
        self.assertEqual(p.returncode, 125)
        self.assertRegex(p.stderr, r"--gpu 5: there is no such card; there are gpu0 \(GPU-[0-9a-f-]+\), gpu1 \(GPU-[0-9a-f-]+\)\n$")

    def test_a_simulator_that_does_not_start(self):
        p = self.run_to_end("--gpu-mem", "1", "--", "true", cards="33xA:1GiB")
        self.assertEqual(p.returncode, 125)
        self.assertIn("aliquot-sim: a driver has at most 32 cards", p.stderr)

    def test_malformed_cards_are_wrong_usage(self):
        for cards, words in (("1xTesla-V100", "must be COUNTxMODEL:MEMORY"), ("0xA:1GiB", "must be COUNTxMODEL:MEMORY"),
                             ("A:1GiB,,", '"" must be COUNTxMODEL:MEMORY'), ("257xA:1GiB", "more than 256 cards")):
            p = self.run_to_end("--gpu-mem", "2", "--", "true", cards=cards)
            self.assertEqual((p.returncode, p.stdout, p.stderr.count("\n")), (2, "", 1), p.stderr)
            self.assertTrue(p.stderr.startswith('aliquot run: --simulate: "'), p.stderr)
            self.assertIn(words, p.stderr)

    def test_messages_begin_with_the_program(self):
        for verb in "run", "smi":
            p = subprocess.run([ALIQUOT, verb, "--nothing"], capture_output=True, text=True, timeout=PATIENCE, check=False)
            self.assertEqual(p.returncode, 2)
            self.assertTrue(p.stderr.startswith(f"aliquot {verb}: "), p.stderr)


class Manual(unittest.TestCase):
    """The recipes of aliquot-run(1), as they are printed there."""

    def test_cards_that_stay(self):
        self.follow(1, "aliquot-sim --cards", ["2154", "8192"])

    def test_cards_that_end_with_the_commands(self):
        self.follow(2, "--simulate $cards", ["2154", "8618"])

    def follow(self, number, has, totals):
        with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "man", "aliquot-run.1"), encoding="utf-8") as f:
            recipe = f.read().split(".Bd -literal")[number].split("\n", 1)[1].split("\n.Ed")[0]
        self.assertIn(has, recipe)
        programs = os.path.dirname(os.path.abspath(ALIQUOT))
        with tempfile.TemporaryDirectory() as folder:
            p = subprocess.run(["unshare", "-m" if os.geteuid() == 0 else "-Urm", "sh", "-e", "-c", "mount -t tmpfs none /run\n" + recipe],
                               capture_output=True, text=True, timeout=PATIENCE, check=False, stdin=subprocess.DEVNULL,
                               env={"PATH": f"{programs}:/usr/bin:/bin:/usr/sbin:/sbin", "TMPDIR": folder})
            left = [name for name in os.listdir(folder) if os.listdir(os.path.join(folder, name))]
        self.assertEqual((p.returncode, left), (0, []), p.stdout + p.stderr)
        self.assertEqual(sorted(re.findall(r" 0MiB / +(\d+)MiB ", p.stdout)), totals)


class Shared(Base):
    """Several runs on one driver, as on a machine with cards."""

    def setUp(self):
        super().setUp()
        folder = os.path.join(os.path.dirname(self.slicedir), "dev")
        os.mkdir(folder)
        driver = subprocess.Popen([beside("aliquot-sim"), "--foreground", "--cards", "1x" + V100, "--dir", folder], stdout=subprocess.PIPE,
                                  stderr=subprocess.DEVNULL, text=True)

        def end():
            driver.terminate()
            driver.wait(PATIENCE)
            driver.stdout.close()
            subprocess.run(["umount", "-l", folder], stderr=subprocess.DEVNULL, check=False)
        self.addCleanup(end)
        if driver.stdout.readline() != "ready\n":
            self.skipTest("the simulated driver cannot be mounted here")
        libraries = os.path.join(os.path.dirname(ALIQUOT), "sim")
        self.environment = dict(os.environ, ALIQUOT_SIM_DIR=folder, LD_LIBRARY_PATH=libraries, PATH=libraries + ":" + os.environ["PATH"])

    def run_in(self, *arguments, before=(), stdin=None):
        """Starts `aliquot run`; its whole session ends with the test."""
        p = subprocess.Popen([*before, ALIQUOT, "run", "--slices", self.slicedir, *arguments], env=self.environment, stdin=stdin,
                             stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True)

        def end():
            try:
                os.killpg(p.pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
            p.communicate()
        self.addCleanup(end)
        return p

    def holding(self, p):
        self.assertEqual([p.stdout.readline() for _ in range(2)], ["alloc 0\n", "holding\n"])

    def status(self, *arguments):
        p = self.run_in(*arguments, "--", "true")
        p.communicate(timeout=PATIENCE)
        return p.returncode

    MYSELF = [sys.executable, os.path.abspath(__file__), "--inside"]

    def outside(self, mib):
        """A process that holds so much memory in no slice, as a program of another user does."""
        p = subprocess.Popen([*self.MYSELF, f"alloc {mib}", "hold"], env=self.environment, stdout=subprocess.PIPE, text=True, start_new_session=True)

        def end():
            p.kill()
            p.communicate()
        self.addCleanup(end)
        self.holding(p)
        return p

    def smi_beside(self, *arguments):
        return subprocess.run([ALIQUOT, "smi", "--slices", self.slicedir, *arguments], env=self.environment, capture_output=True, text=True, check=True,
                              timeout=PATIENCE).stdout

    def test_memory_outside_of_slices(self):
        """Shown by smi, and told by a run whose slice it takes the memory of."""
        self.assertEqual(self.status("--gpu-mem", "1"), 0)
        self.assertNotIn("outside", self.smi_beside() + self.smi_beside("-o", "json"))
        p = self.outside(12000)
        shown = re.search(r"\nGPU0: processes in none of these slices hold (\d+) MiB; by the driver (\d+) of 16160 MiB are used; by process "
                          rf"{p.pid} \(python3?[0-9.]*\) (\d+) MiB\n", self.smi_beside())
        held = int(shown[1])
        self.assertEqual(shown[1], shown[2])
        self.assertTrue(12000 < int(shown[3]) <= held, shown[3])  # the driver has a part of its own for each process
        self.assertEqual(json.loads(self.smi_beside("-o", "json"))["cards"][0]["outsideProcesses"], [p.pid])
        self.assertTrue(12000 < held < 13000, held)
        self.assertEqual(json.loads(self.smi_beside("-o", "json"))["cards"][0]["outside"] >> 20, held)
        for units, said in (("2", ""), ("15", f"aliquot run: processes outside of slices hold {held} MiB of gpu0; of the 16160 MiB of this slice "
                                              f"{16160 - held} are free now\n")):
            self.assertEqual(self.run_in("--gpu-mem", units, "--", "true").communicate(timeout=PATIENCE), ("", said))
        p.kill()
        p.wait()
        self.assertNotIn("outside", self.smi_beside())

    def test_a_start_script_that_replaces_the_library(self):
        """It is named beside its slice, and by doctor: the command has no library, and no limit."""
        self.on_a_machine()
        self.assertEqual(self.doctor_says()["reason"], "there is no slice")
        p = self.run_in("--gpu-mem", "2", "--", "env", "-u", "LD_PRELOAD", *self.MYSELF, "alloc 3000", "hold")
        self.holding(p)
        shown = re.search(r"\nGPU0: processes in none of these slices hold (\d+) MiB; .*; by process (\d+) \(python", self.smi_beside())
        self.assertGreater(int(shown[1]), 3000)
        with open(f"/proc/{shown[2]}/stat", encoding="utf-8") as f:
            self.assertEqual(int(f.read().rsplit(")", 1)[1].split()[1]), p.pid)
        found = self.doctor_says()
        self.assertEqual(found["result"], "warn", found)
        self.assertRegex(found["reason"], rf"^GPU0: processes in none of these slices hold \d+ MiB; .*; by process {shown[2]} \(python")
        self.assertIn("start the process by aliquot run", found["remedy"])

    def on_a_machine(self):
        """Slices are counted where aliquot doctor looks for them below a root."""
        self.root = os.path.dirname(self.slicedir)
        self.slicedir = self.root + "/run/aliquot/slices"
        os.makedirs(os.path.dirname(self.slicedir))

    def doctor_says(self):
        """What it finds about memory outside of slices."""
        p = subprocess.run([ALIQUOT, "doctor", "--root", self.root, "-o", "json", "--timeout", "60", "machine"], env=self.environment,
                           capture_output=True, text=True, timeout=PATIENCE, check=False)
        return {check["name"]: check for check in json.loads(p.stdout)["checks"]}["outside"]

    def test_memory_in_slices_is_none_outside(self):
        self.on_a_machine()
        p = self.run_in("--gpu-mem", "10", "--", *self.MYSELF, "alloc 9000", "hold")
        self.holding(p)
        self.assertNotIn("outside", self.smi_beside() + self.smi_beside("-o", "json"))
        self.assertEqual(self.doctor_says()["reason"], "no process outside of slices holds memory of a card")
        self.assertEqual(self.run_in("--gpu-mem", "5", "--", "true").communicate(timeout=PATIENCE), ("", ""))

    def test_a_warning_that_nobody_reads(self):
        """A full pipe, one without a reader, and a closed standard error: the command runs."""
        self.outside(12000)
        command = f"'{ALIQUOT}' run --slices '{self.slicedir}' --gpu-mem 15 -- sh -c 'exit 7'"
        full, no_reader = os.pipe(), os.pipe()
        os.set_blocking(full[1], False)
        with self.assertRaises(BlockingIOError):
            while True:
                os.write(full[1], bytes(65536))
        with self.assertRaises(BlockingIOError):
            while True:
                os.write(full[1], b"x")
        os.set_blocking(full[1], True)
        os.close(no_reader[0])
        for text, error in ((command, full[1]), (command, no_reader[1]), (command + " 2>&-", subprocess.DEVNULL)):
            p = subprocess.run(["sh", "-c", text], env=self.environment, stderr=error, timeout=PATIENCE, check=False)
            self.assertEqual(p.returncode, 7)
        for end in (*full, no_reader[1]):
            os.close(end)

    def test_what_is_left_behind_keeps_its_slice(self):
        """A child of a command that has ended; its memory stays its own meanwhile."""
        p = self.run_in("--gpu-mem", "10", "--", "sh", "-c", 'exec 4<&0; (read line <&4; exec "$@") & echo left', "sh", *self.MYSELF, "alloc 9000", "hold",
                        stdin=subprocess.PIPE)
        self.assertEqual(p.stdout.readline(), "left\n")
        self.assertEqual(p.wait(PATIENCE), 0)
        self.assertEqual(len(self.slices()), 1, "it may want something yet")
        p.stdin.write("go on\n")
        p.stdin.flush()
        self.holding(p)
        (one,) = self.slices()
        self.assertEqual(self.status("--gpu-mem", "6"), 125)
        self.assertEqual(self.status("--gpu-mem", "5"), 0)
        os.kill(one["processes"][0], signal.SIGKILL)
        until(lambda: self.slices() == [], "nobody has it")
        self.assertEqual(self.status("--gpu-mem", "15"), 0)

    def test_a_command_that_closes_everything(self):
        """Without the descriptor the row keeps the slice alive."""
        p = self.run_in("--gpu-mem", "10", "--", *self.MYSELF, "close", "alloc 9000", "leave")
        self.assertEqual([p.stdout.readline() for _ in range(2)], ["alloc 0\n", "left\n"])
        self.assertEqual(p.wait(PATIENCE), 0)
        (one,) = self.slices()
        self.assertEqual(self.status("--gpu-mem", "6"), 125)
        os.kill(one["processes"][0], signal.SIGKILL)
        until(lambda: self.slices() == [], "nobody has it")

    def test_a_runner_that_was_killed(self):
        """Its command, too, keeps the slice until it ends."""
        p = self.run_in("--gpu-mem", "10", "--", *self.MYSELF, "alloc 9000", "hold")
        self.holding(p)
        p.kill()
        p.wait()
        (one,) = self.slices()
        self.assertEqual(self.status("--gpu-mem", "6"), 125)
        os.kill(one["processes"][0], signal.SIGKILL)
        until(lambda: self.slices() == [], "nobody has it")
        self.assertEqual(self.status("--gpu-mem", "15"), 0)
        self.assertEqual(os.listdir(self.slicedir), ["lock"])

    def test_numbers_of_other_namespaces(self):
        """Three owners with the same pid in their namespaces."""
        before = ["unshare", "--pid", "--fork", "--mount-proc", "--kill-child"]
        if subprocess.run([*before, "true"], stderr=subprocess.DEVNULL, check=False).returncode != 0:
            self.skipTest("no pid namespace")
        for _ in range(3):
            p = self.run_in("--gpu-mem", "5", "--", "sh", "-c", "echo started; exec sleep 3600", before=before)
            self.assertEqual(p.stdout.readline(), "started\n")
        self.assertEqual(len(self.slices()), 3)
        self.assertEqual(self.status("--gpu-mem", "1"), 125)


def is_alive(pid):
    try:
        with open(f"/proc/{pid}/stat", encoding="ascii", errors="replace") as f:
            return f.read().rsplit(")", 1)[1].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


def beside(name):
    places = [os.path.join(os.path.dirname(ALIQUOT), folder, name) for folder in ("", "src")]
    return next(place for place in places if os.path.exists(place))


def missing():
    """Why simulated cards cannot be had here; None when they can."""
    p = subprocess.run([ALIQUOT, "run", "--slices", tempfile.mkdtemp(), "--simulate", "1x" + V100, "--gpu-mem", "1", "--", "true"],
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
