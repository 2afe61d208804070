#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""NVIDIA's own libcuda, NVML and nvidia-smi on the simulated driver.

    run.py LIBALIQUOT ALIQUOT_SIM INTERPOSER FRONT

NATIVE_DRIVER: a folder with the unpacked packages of one or more drivers (tests/native/README.md).
Without it the libraries that are installed here are taken, where there are any. Exits with 77 when
there are none. NATIVE_OUT: a folder for traces and tables, one set for each driver. NATIVE_TESTS: words; only
the tests with one of them in their name run, for example "launch copies".
"""
import collections
import contextlib
import glob
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
sys.path[:0] = [HERE, os.path.join(ROOT, "tests", "blackbox")]

import answers  # noqa: E402
import gate_lab  # noqa: E402
from patience import until  # noqa: E402

INTERPOSER, FRONT = (os.path.abspath(name) for name in sys.argv[3:5])
PROGRAM = os.path.join(HERE, "program.py")
MIB = 1 << 20
CARD, MIB_OF_CARD, MIB_OF_SLICES = "NVIDIA-A10", 23028, (2048, 1024)
CARDS = len(MIB_OF_SLICES)
GROUP = 2 * MIB  # SLICE_GROUP_BYTES of src/slicedir: what a slice is charged for a channel group
PATIENCE = 120
PAGEABLE_MEMORY_ACCESS, READ_ONLY_HOST_REGISTER = "88", "113"  # CU_DEVICE_ATTRIBUTE_...
OUT_OF_MEMORY, NOT_INITIALIZED = 2, 3  # CUDA_ERROR_...
CHANNEL_GROUP, PAGEABLE_ON_GPU, ALLOC_POOL = 0xA06C, 70, 68
SERVICE_INTERRUPTS = 0x20801702  # libcuda calls it now and then while it waits for the card
BYTES_OF_GROUP = 16 * MIB  # SIM_GROUP_BYTES of sim/sim.h
SECOND = 10**9
PERCENT, FEW_PERCENT, LONG_LAUNCH = 30, 10, SECOND // 100
BALANCE = 44 * SECOND // 1000 + LONG_LAUNCH  # what a process may have saved and may have in flight (preload-launch.md), and one launch
GRAPHS, KERNELS_OF_GRAPH = 1100, 4
INSTALLED = ["/usr/lib/x86_64-linux-gnu", "/usr/lib64"]

Driver = collections.namedtuple("Driver", "version libraries programs")


def drivers():
    """Those of which all parts are there, and a sentence for each other one."""
    given = os.environ.get("NATIVE_DRIVER")
    found, lacks = {}, []
    for folder in [given] if given else INSTALLED:
        paths = glob.glob(folder + "/**/libcuda.so.[0-9]*.*", recursive=True)
        if not paths:
            lacks.append("%s has no libcuda.so.VERSION" % folder)
        for path in paths:
            version = path.rsplit("libcuda.so.", 1)[1]
            libraries = os.path.dirname(path)
            above = libraries.split("/usr/lib/", 1)[0]
            smi = [p for p in glob.glob(above + "/usr/lib/nvidia/**/nvidia-smi", recursive=True) + [above + "/usr/bin/nvidia-smi"] if os.path.exists(p)]
            names = ["%s.so.%s" % (name, version) for name in ("libnvidia-ml", "libnvidia-ptxjitcompiler")]
            missing = [name for name in names if not os.path.exists("%s/%s" % (libraries, name))] + ([] if smi else ["nvidia-smi"])
            if missing:
                lacks.append("%s has libcuda %s without %s" % (libraries, version, ", ".join(missing)))
            else:
                found[version] = Driver(version, libraries, os.path.dirname(smi[0]))
    return [found[version] for version in sorted(found)], lacks


def write(path, text):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w", encoding="ascii") as f:
        f.write(text)


def machine(folder, version):
    """What the driver shows in /proc: nvidia.c and nv-procfs.c."""
    write(folder + "/proc/driver/nvidia/version",
          "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  %s  Release Build\nGCC version:  gcc version 12.2.0\n" % version)
    write(folder + "/proc/driver/nvidia/params",
          "ModifyDeviceFiles: 1\nDeviceFileUID: 0\nDeviceFileGID: 0\nDeviceFileMode: 438\n")
    write(folder + "/proc/devices", "Character devices:\n  1 mem\n195 nvidia\n195 nvidiactl\n511 nvidia-uvm\n")
    write(folder + "/proc/modules", "nvidia_uvm 1 0 - Live 0x0\nnvidia 1 1 nvidia_uvm, Live 0x0\n")


class Trace:
    """The lines of one run, by kind of call."""

    def __init__(self, path):
        self.path = path
        self.lines = open(path, encoding="ascii").read().splitlines() if os.path.exists(path) else []

    def calls(self, kinds=("control", "alloc", "heap", "escape", "uvm")):
        for line in self.lines:
            words = line.split()
            if words[0] in kinds:
                yield words[0], int(words[1], 16), dict(w.split("=", 1) for w in words[2:])

    def ioctls(self):
        return sum(1 for _ in self.calls())

    def counts(self):
        """How often each call was answered with each status, but those whose number depends on time."""
        return collections.Counter((kind, nr, about.get("status", about.get("result"))) for kind, nr, about in self.calls()
                                   if nr != SERVICE_INTERRUPTS)

    def launches(self, with_blocks=False):
        """with_blocks: but those without a block, by which libcuda joins the kernels of a graph."""
        return sum(line.startswith("launch ") and not (with_blocks and " grid=0x" in line) for line in self.lines)

    def errors(self):
        """Errors that the card has reported."""
        return [line for line in self.lines if line.startswith("xid ")]


class Outcome:
    def __init__(self, process, trace):
        self.code, self.output, self.error, self.trace = process.returncode, process.stdout, process.stderr, trace

    def memory(self):
        """nvidia-smi's used and total MiB of each card."""
        return re.findall(r" (\d+)MiB / +(\d+)MiB ", self.output)

    def all_steps(self):
        return [tuple(json.loads(line)) for line in self.output.splitlines()]

    def steps(self):
        return {name: (result, told) for name, result, told in self.all_steps()}


class Base(unittest.TestCase):
    maxDiff = None
    driver = None

    @classmethod
    def setUpClass(cls):
        cls.sim = gate_lab.mounted("%dx%s:%dMiB" % (CARDS, CARD, MIB_OF_CARD), cls.driver.version)
        cls.folder = tempfile.mkdtemp(prefix="native-")
        machine(cls.folder + "/root", cls.driver.version)
        answers.write(cls.folder + "/answers")
        cls.slices = cls.sim.slices(*MIB_OF_SLICES, group=GROUP)

    @classmethod
    def tearDownClass(cls):
        cls.sim.close()
        shutil.rmtree(cls.folder)

    def trace_path(self, name, gate):
        out = os.path.join(os.environ.get("NATIVE_OUT", self.folder), self.driver.version)
        trace = "%s/%s%s.trace" % (out, name, "-gate" if gate else "")
        os.makedirs(out, exist_ok=True)
        if os.path.exists(trace):
            os.unlink(trace)
        return trace

    def environment(self, trace, slices):
        environment = dict(os.environ, NATIVE_DEV=self.sim.dir, NATIVE_ROOT=self.folder + "/root", NATIVE_ANSWERS=self.folder + "/answers",
                           NATIVE_TRACE=trace, NATIVE_VERSION=self.driver.version, LD_LIBRARY_PATH=self.driver.libraries,
                           CUDA_CACHE_DISABLE="1")
        environment.update({"ALIQUOT_SLICES": slices} if slices else {})
        return environment

    def run_program(self, name, arguments, gate=False, before=(), slices=None, front=()):
        trace = self.trace_path(name, gate)
        preload = [*front] + ([gate_lab.LIBRARY] if gate else []) + [INTERPOSER]
        process = subprocess.run([*before, "env", "LD_PRELOAD=" + ":".join(preload), *arguments], stdin=subprocess.DEVNULL,
                                 env=self.environment(trace, gate and (slices or self.slices)), stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                 text=True, timeout=PATIENCE, check=False)
        return Outcome(process, Trace(trace))

    @contextlib.contextmanager
    def running(self, name, *words, slices=None, until_step):
        """A program behind the gate if it has slices, from the end of that step on until it is killed."""
        trace = self.trace_path("running-" + name, bool(slices))
        preload = ([gate_lab.LIBRARY] if slices else []) + [INTERPOSER]
        process = subprocess.Popen(["env", "LD_PRELOAD=" + ":".join(preload), sys.executable, PROGRAM, name, *words],
                                   env=self.environment(trace, slices), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        try:
            step = next((step for step in map(json.loads, process.stdout) if step[0] == until_step), None)
            self.assertTrue(step, "the program ended before " + until_step)
            process.told = step[2]
            yield process, Trace(trace)
        finally:
            process.kill()
            process.wait()
            process.stdin.close()
            process.stdout.close()

    def holding(self, slices=None):
        return self.running("context", "hold", slices=slices, until_step="cuCtxSynchronize")

    def meters(self):
        """The first card's clock, and how long it has worked for each process, in ns."""
        text = subprocess.run([gate_lab.SIMULATOR, "--meters", self.sim.dir], stdout=subprocess.PIPE, check=True).stdout
        card, ran = json.loads(text)["cards"][0], collections.Counter()
        for group in card["groups"]:  # one of each context
            ran[group["pid"]] += group["ran"]
        return card["now"], ran

    def held(self):
        """Bytes of the card that the driver has given."""
        text = subprocess.run([gate_lab.SIMULATOR, "--status", self.sim.dir], stdout=subprocess.PIPE, check=True).stdout
        return json.loads(text)["cards"][0]["used"]

    def nvml(self, **options):
        return self.run_program("nvml", [sys.executable, PROGRAM, "nvml"], **options)

    def smi(self, **options):
        return self.run_program("smi", [self.driver.programs + "/nvidia-smi"], **options)

    def cuda(self, name, *words, **options):
        return self.run_program(name, [sys.executable, PROGRAM, name, *words], **options)

    def succeeds(self, name, *words, **options):
        outcome = self.cuda(name, *words, **options)
        self.assertEqual(outcome.code, 0, outcome.output + outcome.error)
        self.assertEqual(outcome.trace.errors(), [])
        return outcome


class Steps:
    """What programs do, with and without libaliquot.so alike."""

    gate = False

    def do(self, name, *words):
        return self.succeeds(name, *words, gate=self.gate)

    def total(self):
        return (MIB_OF_SLICES[0] if self.gate else MIB_OF_CARD) * MIB

    def test_context(self):
        outcome = self.do("context")
        self.assertEqual(outcome.all_steps()[-1][:2], ("cuCtxDestroy_v2", 0))
        self.assertEqual(outcome.steps()["cuMemGetInfo_v2"][1][0], self.total())

    def test_one_of_two_cards(self):
        self.succeeds("context", gate=self.gate, before=["env", "CUDA_VISIBLE_DEVICES=0"])

    def test_memory(self):
        """What is allocated is missing from what is free, to the byte, until it is given back."""
        steps = self.do("memory").steps()
        self.assertEqual([steps["taken"], steps["left"]], [(0, 100 * MIB), (0, 0)])

    def test_too_much_memory(self):
        outcome = self.cuda("memory", "mib=%d" % (self.total() // MIB), gate=self.gate)
        self.assertEqual(outcome.all_steps()[-1], ("cuMemAlloc_v2", OUT_OF_MEMORY, None))

    def test_pools(self):
        steps = self.do("pools").steps()
        self.assertEqual([steps["copied"], steps["left"]], [(0, "same"), (0, 0)])

    def test_what_an_allocation_takes(self):
        """The simulated libcuda has these numbers: sim/cuda/heap.c."""
        steps = self.do("grains").steps()
        for name, n, mib in (("cuMemAlloc_v2", 1, 2), ("cuMemAlloc_v2", MIB, 2), ("cuMemAlloc_v2", MIB + 1, 2), ("cuMemAlloc_v2", 3 * MIB, 4),
                             ("cuMemAllocAsync", 1, 32), ("cuMemAllocAsync", 33 * MIB, 64), ("cuMemAllocAsync", 2, 0)):
            self.assertEqual(steps["%s %d" % (name, n)], (0, mib * MIB), (name, n))

    def test_vmm(self):
        steps = self.do("vmm").steps()
        self.assertEqual([steps["copied"], steps["left"]], [(0, "same"), (0, 0)])

    def test_copies(self):
        """Within the card libcuda copies by a kernel, which computes nothing here."""
        outcome = self.do("copies")
        self.assertEqual({told for name, _, told in outcome.all_steps() if name.startswith("within")}, {False})
        self.assertGreater(outcome.trace.launches(), 0)

    def test_memory_of_the_host(self):
        self.do("pinned")
        self.do("managed")

    def test_lines_and_fills(self):
        self.assertEqual(self.do("planes").steps()["filled"], (0, True))

    def test_events(self):
        self.assertEqual(self.do("events").steps()["cuEventElapsedTime"], (0, True))

    def test_streams(self):
        self.do("streams")

    def test_launch(self):
        outcome = self.do("launch")
        self.assertEqual(outcome.trace.launches(), 3)
        self.assertEqual(outcome.all_steps()[-3], ("cuMemcpyDtoH_v2", 0, 7))

    def test_host_functions(self):
        self.assertEqual(self.do("host").steps()["called"], (0, [1, 2, 3]))

    def test_graph(self):
        steps = self.do("graph").steps()
        self.assertEqual([steps["cuGraphGetNodes"], steps["called"], steps["copied"]], [(0, 3), (0, [7, 7]), (0, "same")])

    def test_graphs_in_a_loop(self):
        """All kernels of each launch, more often than a channel's ring has entries."""
        self.assertEqual(self.do("graphs", "launches=%d" % GRAPHS).trace.launches(with_blocks=True), GRAPHS * KERNELS_OF_GRAPH)

    def test_two_processes_share_the_card(self):
        """One kernel takes ten minutes, and another process's work is done beside it: the card's time is
        shared by time slices."""
        slices = self.slices if self.gate else None
        with self.running("busy", "grid=600000000", "launches=1", slices=slices, until_step="launched") as (other, _):
            until(lambda: self.meters()[1][other.pid] > 0, "the long kernel has begun")
            self.assertEqual(self.do("launch").trace.launches(), 3)
            self.assertIsNone(other.poll())
            begin, before = self.meters()
            until(lambda: self.meters()[0] > begin + SECOND // 10, "the card's clock has gone on")
            end, after = self.meters()
            self.assertEqual(after[other.pid] - before[other.pid], end - begin)
        until(lambda: self.meters()[1][other.pid] == 0, "the killed process's work has ended")


    def test_two_cards(self):
        self.assertEqual(self.do("cards").trace.launches(), 2)

    def test_an_address_that_is_not_mapped(self):
        """A fault (Xid 31) ends the context of its process, and no other."""
        slices = self.slices if self.gate else None
        with self.running("busy", "grid=600000000", "launches=1", slices=slices, until_step="launched") as (other, _):
            outcome = self.cuda("outside", gate=self.gate)
            self.assertEqual(outcome.code, 0, outcome.output + outcome.error)
            self.assertEqual([line.split()[1] for line in outcome.trace.errors()], ["31"])
            self.do("launch")
            self.assertIsNone(other.poll())

    def test_killed_in_a_copy(self):
        slices = self.slices if self.gate else None
        with self.running("copying", slices=slices, until_step="ready") as (_, trace):
            until(lambda: any(line.startswith("copy ") for line in Trace(trace.path).lines), "a copy has begun")
        until(lambda: self.held() == 0, "the killed program's memory is free")
        self.do("memory")


class Native(Steps, Base):
    """Without libaliquot.so."""

    def test_nvml_tells_the_card(self):
        outcome = self.nvml()
        steps = outcome.steps()
        self.assertEqual(outcome.code, 0, outcome.output + outcome.error)
        self.assertEqual(steps["nvmlSystemGetDriverVersion"], (0, self.driver.version))
        self.assertEqual(steps["nvmlDeviceGetCount_v2"], (0, CARDS))
        self.assertEqual(steps["nvmlDeviceGetName"], (0, CARD))
        self.assertEqual(steps["nvmlDeviceGetMemoryInfo"], (0, [MIB_OF_CARD * MIB, MIB_OF_CARD * MIB, 0]))

    def test_smi_prints_its_table(self):
        outcome = self.smi()
        self.assertEqual(outcome.code, 0, outcome.output + outcome.error)
        self.assertRegex(outcome.output, r"Driver Version: %s " % re.escape(self.driver.version))
        self.assertEqual(outcome.memory(), [("0", str(MIB_OF_CARD))] * CARDS)

    def test_device(self):
        steps = self.succeeds("device").steps()
        self.assertEqual(steps["cuDeviceGetCount"], (0, CARDS))
        self.assertEqual(steps["cuDeviceGetName"], (0, CARD))
        self.assertEqual(steps["cuDeviceTotalMem_v2"], (0, MIB_OF_CARD * MIB))

    def test_no_call_passes_the_interposer(self):
        """strace sees the ioctls that the kernel gets, from whichever instruction they come."""
        if not shutil.which("strace"):
            self.skipTest("strace is missing")
        log = self.folder + "/strace"
        outcome = self.succeeds("memory", before=["strace", "-f", "-y", "-o", log, "-e", "trace=ioctl,openat,open"])
        with open(log, encoding="utf-8", errors="replace") as f:
            lines = f.read().splitlines()
        driver = [line for line in lines if re.search(r" ioctl\(\d+<%s/" % re.escape(self.sim.dir), line)]
        self.assertEqual(len(driver), outcome.trace.ioctls())
        self.assertEqual([line for line in lines if '"/dev/nvidia' in line], [])


class Gated(Steps, Base):
    """With libaliquot.so in front: what it changes, and that it changes nothing else."""

    gate = True

    def test_nvml_tells_the_slice(self):
        outcome = self.nvml(gate=True)
        self.assertEqual(outcome.code, 0, outcome.output + outcome.error)
        self.assertEqual(outcome.steps()["nvmlDeviceGetMemoryInfo"], (0, [MIB_OF_SLICES[0] * MIB, MIB_OF_SLICES[0] * MIB, 0]))

    def test_smi_prints_the_slice(self):
        outcome = self.smi(gate=True)
        self.assertEqual(outcome.code, 0, outcome.output + outcome.error)
        self.assertEqual(outcome.memory(), [("0", str(mib)) for mib in MIB_OF_SLICES])

    def test_device_is_the_same(self):
        steps, plain = self.succeeds("device", gate=True).steps(), self.succeeds("device").steps()
        self.assertEqual(steps.pop("cuDeviceTotalMem_v2"), (0, MIB_OF_SLICES[0] * MIB))
        del plain["cuDeviceTotalMem_v2"]
        for told, hmm in ((steps["cuDeviceGetAttribute"][1], 0), (plain["cuDeviceGetAttribute"][1], 1)):
            self.assertEqual(told.pop(PAGEABLE_MEMORY_ACCESS), hmm)
            told.pop(READ_ONLY_HOST_REGISTER)  # libcuda has it where it has not the other
        self.assertEqual(steps, plain)

    def test_a_library_in_front(self):
        """The tables of libcuda are changed, so that its calls come to the gate all the same."""
        outcome = self.succeeds("memory", gate=True, front=[FRONT])
        self.assertEqual(outcome.steps()["cuMemGetInfo_v2"][1][0], MIB_OF_SLICES[0] * MIB)
        self.assertEqual(outcome.trace.counts(), self.succeeds("memory", gate=True).trace.counts())

    def test_the_calls_are_the_same(self):
        """Not asked are the cards one by one, once the machine said no (HMM). The gate's own calls come on top."""
        with_gate, without = (self.succeeds("memory", gate=gate).trace.counts() for gate in (True, False))
        self.assertEqual(without - with_gate, {("uvm", PAGEABLE_ON_GPU, "0"): CARDS})

    def test_a_context_is_counted(self):
        """What the gate has counted is what the driver has given, but for what the group takes, which it
        counts as a constant. The semaphore pool, a mapping of uvm, is the host's memory."""
        with self.holding(self.slices) as (_, trace):
            counts, used = trace.counts(), gate_lab.used(self.slices)
            pools = sum(line.startswith("mmap uvm") for line in trace.lines)
            self.assertEqual([counts["alloc", CHANNEL_GROUP, "0"], counts["uvm", ALLOC_POOL, "0"], pools], [1, 1, 1])
            self.assertGreater(self.held(), BYTES_OF_GROUP)
            self.assertEqual(used, self.held() - BYTES_OF_GROUP + GROUP)
        until(lambda: self.held() == 0, "the killed program's memory is free")
        self.assertEqual(gate_lab.used(self.slices), used)
        self.nvml(gate=True)
        self.assertEqual(gate_lab.used(self.slices), 0)  # the next process has dropped what the killed one had

    def test_smi_beside_a_context(self):
        """Behind the gate nvidia-smi shows the slice's bytes, without it the card's."""
        with self.holding(self.slices):
            held, used = self.held(), gate_lab.used(self.slices)
            self.assertGreater(held, used)
            self.assertEqual(self.smi().memory()[0], (str(held // MIB), str(MIB_OF_CARD)))
            self.assertEqual(self.smi(gate=True).memory()[0], (str(used // MIB), str(MIB_OF_SLICES[0])))

    def test_a_slice_that_is_too_small(self):
        """The refusal comes out of cuCtxCreate as out of memory."""
        slices = self.sim.slices(6, 6, group=GROUP)
        outcome = self.cuda("context", gate=True, slices=slices)
        self.assertEqual(outcome.all_steps()[-1], ("cuCtxCreate_v2", OUT_OF_MEMORY, None))
        self.assertEqual(gate_lab.used(slices), 0)

    def limited(self):
        """A process under 30 % of compute has launched for half a second of the card's time."""
        slices = self.sim.slices(1024, 1024, group=GROUP, percent=PERCENT)
        with self.running("busy", "grid=%d" % (LONG_LAUNCH // 1000), "launches=1000000000", slices=slices, until_step="ready") as (process, _):
            until(lambda: self.meters()[1][process.pid] > 0, "its launches have begun")
            begin, before = self.meters()
            until(lambda: self.meters()[1][process.pid] > before[process.pid] + SECOND // 2, "it has had half a second")
            end, after = self.meters()
            self.assertLessEqual(after[process.pid] - before[process.pid], (end - begin) * PERCENT // 100 + BALANCE)
            return end - begin, after - before

    def test_compute_is_limited(self):
        self.limited()

    def test_compute_is_limited_beside_another_tenant(self):
        """The other process takes all it can get."""
        with self.running("busy", "grid=600000000", "launches=1", until_step="launched") as (other, _):
            nsec, ran = self.limited()
            self.assertGreater(ran[other.pid], nsec * (100 - PERCENT) // 100 - BALANCE)

    def test_a_capture_under_a_limit(self):
        """Of two cards: cuStreamGetCtx() ends a capture, so the gate must not ask it."""
        self.succeeds("graph", gate=True, slices=self.sim.slices(1024, 1024, group=GROUP, percent=PERCENT))

    def loops(self, process, names):
        """The calls of that process, each in a loop, take their share and no more."""
        for name in names:
            with self.subTest(name):
                begun = self.meters()[1]
                process.stdin.write(name + "\n")
                process.stdin.flush()
                until(lambda: self.meters()[1][process.pid] > begun[process.pid], "its kernels have begun")
                begin, before = self.meters()
                until(lambda: self.meters()[0] > begin + SECOND // 2, "half a second")
                end, after = self.meters()
                self.assertLessEqual(after[process.pid] - before[process.pid], (end - begin) * FEW_PERCENT // 100 + BALANCE)

    def test_kernels_of_libcuda_are_limited(self):
        """Copies and fills that libcuda does by a kernel: alone, and beside a process that takes all it can get."""
        slices = self.sim.slices(2048, 1024, group=GROUP, percent=FEW_PERCENT)
        with self.running("loops", slices=slices, until_step="ready") as (process, _):
            self.loops(process, process.told)
            with self.running("busy", "grid=600000000", "launches=1", until_step="launched") as (other, _):
                until(lambda: self.meters()[1][other.pid] > 0, "the long kernel has begun")
                self.loops(process, [name for name in process.told if "async" in name])

    def test_a_card_without_a_slice(self):
        """The gate refuses it to UVM, so a program that sees it has no libcuda. CUDA_VISIBLE_DEVICES helps."""
        slices = self.sim.slices(1024, group=GROUP)
        outcome = self.cuda("device", gate=True, slices=slices)
        self.assertEqual(outcome.all_steps(), [("cuInit", NOT_INITIALIZED, None)])
        steps = self.succeeds("device", gate=True, slices=slices, before=["env", "CUDA_VISIBLE_DEVICES=0"]).steps()
        self.assertEqual(steps["cuDeviceGetCount"], (0, 1))

    def test_all_is_given_back(self):
        self.succeeds("memory", gate=True)
        self.nvml(gate=True)
        self.assertEqual(gate_lab.used(self.slices), 0)


# ---- the table ----


def names():
    """Of controls: those of the table, and those that the sources of the simulator have."""
    found = {cmd: name for cmd, _, name, _ in answers.ANSWERS}
    for path in glob.glob(os.path.join(ROOT, "src/gpu/rm/*.h")):
        with open(path, encoding="ascii") as f:
            found.update({int(number, 16): name for name, number in re.findall(r"RM_CTRL_(\w+) = (0x[0-9A-Fa-f]+)", f.read())})
    return found


def table(driver, traces):
    """Each call that the libraries made, with the number of calls and the one that answered."""
    known, rows = names(), collections.Counter()
    for trace in traces:
        for kind, nr, about in trace.calls():
            rows[kind, nr, about.get("size", ""), about["by"], about.get("status", about.get("result"))] += 1
    lines = ["%s  %s" % (driver.version, "kind number size status answered-by calls name")]
    for (kind, nr, size, by, status), n in sorted(rows.items()):
        lines.append("%-7s %#-10x %6s %4s %-10s %4d %s" % (kind, nr, size, status, by, n, known.get(nr, "") if kind == "control" else ""))
    return "\n".join(lines) + "\n"


def report(found):
    out = os.environ.get("NATIVE_OUT")
    for driver in found if out else []:
        folder = os.path.join(out, driver.version)
        traces = [Trace(path) for path in sorted(glob.glob(folder + "/*.trace")) if "-gate" not in path]
        write(folder + "/calls.txt", table(driver, traces))
        print("%s/calls.txt" % folder)


def check_out():
    out = os.environ.get("NATIVE_OUT")
    try:
        if out:
            os.makedirs(out, exist_ok=True)
            tempfile.TemporaryFile(dir=out).close()
    except OSError as e:
        sys.exit("NATIVE_OUT=%s: %s" % (out, e.strerror))


def main():
    found, lacks = drivers()
    if not found:
        gate_lab.skip("no driver is here: %s; NATIVE_DRIVER=DIR names a folder with one (tests/native/README.md)" % "; ".join(lacks))
    check_out()
    gate_lab.alone()
    for lack in lacks if os.environ.get("NATIVE_DRIVER") else []:
        print("left out: " + lack, file=sys.stderr)
    loader, suite = unittest.TestLoader(), unittest.TestSuite()
    words = os.environ.get("NATIVE_TESTS", "").split()
    loader.testNamePatterns = ["*%s*" % word for word in words] or None
    for driver in found:
        for case in (Native, Gated):
            name = "%s_%s" % (case.__name__, driver.version.replace(".", "_"))
            suite.addTests(loader.loadTestsFromTestCase(type(name, (case,), {"driver": driver})))
    if suite.countTestCases() == 0:
        sys.exit("NATIVE_TESTS: no test's name has " + " or ".join(words))
    result = unittest.TextTestRunner(verbosity=2).run(suite)
    report(found)
    sys.exit(0 if result.wasSuccessful() else 1)


if __name__ == "__main__":
    main()
