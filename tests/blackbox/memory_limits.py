#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Limits of device memory by cgroup, as the simulated driver of 615 keeps them, for real processes in real cgroups.

    memory_limits.py LIBRARY SIMULATOR SIM_FOLDER GPU_CASE [TEST...]
"""
import contextlib
import ctypes
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import unittest

from cgroup_lab import ROOT, enter_cgroups, make
from gate_lab import LIBRARY, Program, Simulator, skip, used
from rm_client import MIB, NO_MEMORY, OK, Client, inside, say, status_of, wait_for_word

GPU = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "gpu")
sys.path.append(GPU)
from limits import limits as judge  # noqa: E402
from slices import Failure  # noqa: E402

DRIVER, OLDER = "615.71.09", "610.57.04"
HARD_LIMIT = 0x8D
MAX = (1 << 64) - 1
NOT_SUPPORTED, NO_PERMISSION, NOT_FOUND, NO_FUNCTION, OPERATING_SYSTEM, INVALID = 3, 4, 6, 13, 17, 2


# ---- programs ----

def enter_leaf():
    with open(os.environ["LEAF"] + "/cgroup.procs", "w") as f:
        f.write("0")


@inside
def tenant():
    """Allocates as many bytes as it is told, and says the driver's status and the handle."""
    enter_leaf()
    c = Client()
    while word := wait_for_word():
        say(status=status_of(c.memory, int(word)))


@inside
def orphan():
    """A child allocates with the client of a process that has ended, whose descriptor it has inherited."""
    enter_leaf()
    reaped, ended = os.pipe(), os.pipe()
    maker = os.fork()
    if maker == 0:
        c = Client()
        if os.fork() == 0:
            os.close(ended[0])
            os.read(reaped[0], 1)
            say(status=status_of(c.memory, int(os.environ["BYTES"])))
            wait_for_word()
        os._exit(0)
    os.waitpid(maker, 0)
    os.write(reaped[1], b"x")
    os.close(ended[1])
    os.read(ended[0], 1)


# ---- NVML ----

class SetLimits(ctypes.Structure):
    _fields_ = [("path", ctypes.c_char_p), ("soft", ctypes.c_uint64), ("hard", ctypes.c_uint64)]


class GetLimits(ctypes.Structure):
    _fields_ = [*SetLimits._fields_, ("used", ctypes.c_uint64)]


class Memory2(ctypes.Structure):
    _fields_ = [("version", ctypes.c_uint), *((name, ctypes.c_ulonglong) for name in ("total", "reserved", "free", "used"))]


class Nvml:
    """A session of the simulated library in this process."""

    def __init__(self, directory):
        os.environ["ALIQUOT_SIM_DIR"] = directory
        self.library = ctypes.CDLL(SIM_FOLDER + "/libnvidia-ml.so.1")
        assert self.library.nvmlInit_v2() == 0
        self.card = self.handle(0)

    def handle(self, card):
        handle = ctypes.c_void_p()
        assert self.library.nvmlDeviceGetHandleByIndex_v2(card, ctypes.byref(handle)) == 0
        return handle

    def close(self):
        assert self.library.nvmlShutdown() == 0

    def set(self, path, hard, soft=0):
        return self.library.nvmlDeviceSetMemoryLimits_v1(self.card, ctypes.byref(SetLimits(path.encode(), soft, hard)))

    def get(self, path):
        """The limit and the use, or a code of NVML."""
        p = GetLimits(path.encode(), 1, 1, 1)
        r = self.library.nvmlDeviceGetMemoryLimits_v1(self.card, ctypes.byref(p))
        return (p.hard, p.used) if r == 0 else r

    def total(self):
        p = Memory2(version=ctypes.sizeof(Memory2) | 2 << 24)
        assert self.library.nvmlDeviceGetMemoryInfo_v2(self.card, ctypes.byref(p)) == 0
        return p.total


def in_child(function):
    """What a child of this process finds, a small number."""
    pid = os.fork()
    if pid == 0:
        with contextlib.suppress(BaseException):
            os._exit(function())
        os._exit(255)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


class Lab(unittest.TestCase):
    LIMITS = "misc"

    def start(self, limits=None, driver=DRIVER, options=(), cards=2, card_mib=1024):
        self.sim = Simulator(f"{cards}xT:{card_mib}MiB", driver, "--memory-limits", limits or self.LIMITS, *options)
        self.addCleanup(self.sim.close)
        if not self.sim.ready:
            skip("the simulated driver cannot be mounted here: " + self.sim.process.communicate()[1].strip())
        self.nvml = Nvml(self.sim.dir)
        self.addCleanup(self.nvml.close)

    def run_in(self, leaf, name="tenant", preload="", slices="", **environment):
        p = Program(name, slices, self.sim, LEAF=leaf, LD_PRELOAD=preload, **environment)
        self.addCleanup(p.kill)
        return p

    def hook(self, leaf, mib):
        """What NVIDIA's hook apply-cuda-memory-limits does with NVIDIA_GPU_MEMORY_REQUEST and _LIMIT, by whatever way they came."""
        self.assertEqual(self.nvml.set(leaf, mib * MIB, soft=mib * MIB), 0)

    @staticmethod
    def ask(program, size):
        program.go_on(str(size))
        return program.hear()["status"]


class Account(Lab):
    """The driver's own account, which kernels without the dmem controller have."""

    def test_the_hook_of_the_toolkit_hides_the_limit_of_the_pod(self):
        """Where it runs, by variables that no admission has seen. The audit finds what is held beyond; see Dmem below."""
        self.start()
        pod, leaf = make("hooked"), make("hooked", "leaf")
        self.assertEqual(self.nvml.set(pod, 64 * MIB), 0)
        self.hook(leaf, 128)
        self.assertEqual(self.ask(self.run_in(leaf), 100 * MIB), OK)
        self.assertEqual(self.nvml.get(pod), (64 * MIB, 0))

    def test_a_limit_holds_for_a_program_that_avoids_the_library(self):
        self.start()
        pod, other = make("pod"), make("other", "leaf")
        leaf = make("pod", "leaf")
        early, free = self.run_in(leaf), self.run_in(other)
        self.assertEqual(self.ask(early, 8 * MIB), OK)  # before the first limit: never counted
        self.assertEqual(self.nvml.get(pod), NOT_SUPPORTED)
        self.assertEqual(self.nvml.set(pod, 64 * MIB), 0)
        self.assertEqual(self.nvml.get(pod), (64 * MIB, 0))
        self.assertEqual(self.nvml.get(leaf), (64 * MIB, 0))
        self.assertEqual(self.ask(early, 60 * MIB), OK)
        self.assertEqual(self.ask(early, 5 * MIB), HARD_LIMIT)
        self.assertEqual(self.ask(self.run_in(leaf), 5 * MIB), HARD_LIMIT)
        self.assertEqual(self.ask(free, 512 * MIB), OK)
        self.assertEqual(self.nvml.set(pod, 32 * MIB), INVALID)  # below the use
        self.assertEqual(self.nvml.set(pod, 128 * MIB), 0)
        self.assertEqual(self.ask(early, 60 * MIB), OK)
        self.assertEqual(in_child(lambda: self.show(leaf)), 128)
        early.kill()
        self.assertEqual(self.nvml.get(pod), (128 * MIB, 0))
        self.assertEqual(self.nvml.set(leaf, MAX), 0)  # hides the pod's limit
        self.assertEqual(self.ask(self.run_in(leaf), 200 * MIB), OK)

    def show(self, leaf):
        with open(leaf + "/cgroup.procs", "w") as f:
            f.write("0")
        self.nvml.library.nvmlShutdown()  # the creator of the next session's client is in the leaf
        return 0 if self.nvml.library.nvmlInit_v2() else self.nvml.total() // MIB

    def test_a_client_whose_process_has_ended_is_not_charged(self):
        for limits, status in (("misc", OK), ("misc,orphans", HARD_LIMIT)):
            with self.subTest(limits=limits):
                self.start(limits)
                pod = make("h1")
                self.assertEqual(self.nvml.set(pod, 16 * MIB), 0)
                program = self.run_in(pod, "orphan", BYTES=str(64 * MIB))
                self.assertEqual(program.hear()["status"], status)
                self.assertEqual(self.nvml.get(pod), (16 * MIB, 0))
                program.end()
                self.doCleanups()

    def test_codes(self):
        self.start()
        pod = make("codes")
        self.assertEqual(self.nvml.set(ROOT, MIB), NOT_SUPPORTED)
        self.assertEqual(self.nvml.set(pod + "/missing", MIB), OPERATING_SYSTEM)
        self.assertEqual(self.nvml.get(pod + "/missing"), OPERATING_SYSTEM)
        self.assertEqual(self.nvml.set(self.sim.base, MIB), INVALID)  # no cgroup
        self.assertEqual(in_child(lambda: os.setuid(65534) or self.nvml.set(pod, MIB)), NO_PERMISSION)
        self.assertEqual(in_child(lambda: os.setuid(65534) or int(self.nvml.get(pod) == NOT_SUPPORTED)), 1)
        self.doCleanups()
        self.start("none")
        self.assertEqual(self.nvml.set(pod, MIB), NOT_SUPPORTED)
        self.doCleanups()
        self.start("misc", OLDER)
        self.assertEqual(self.nvml.set(pod, MIB), NO_FUNCTION)

    def test_limits_end_with_the_last_open_file_of_a_card(self):
        self.start("misc,forget")
        pod = make("forget")
        self.assertEqual(self.nvml.set(pod, MIB), 0)
        self.nvml.library.nvmlShutdown()
        self.assertEqual(self.nvml.library.nvmlInit_v2(), 0)
        self.assertEqual(self.nvml.get(pod), NOT_SUPPORTED)

    def test_a_new_cgroup_inherits_the_entry_of_a_removed_one(self):
        self.start("misc,reuse")
        pod, leaf = make("reuse"), make("reuse", "a")
        self.assertEqual(self.nvml.set(pod, 64 * MIB), 0)
        self.assertEqual(self.nvml.set(leaf, MAX), 0)
        os.rmdir(leaf)
        self.assertEqual(self.nvml.get(make("reuse", "b")), (MAX, 0))  # and so the pod's limit does not hold there

    def test_the_library_gives_its_charge_back(self):
        self.start()
        pod, slices = make("both"), self.sim.slices(256)
        self.assertEqual(self.nvml.set(pod, 64 * MIB), 0)
        program = self.run_in(pod, preload=LIBRARY, slices=slices)
        self.assertEqual(self.ask(program, 60 * MIB), OK)
        self.assertEqual(used(slices), 60 * MIB)
        for _ in range(4):
            self.assertEqual(self.ask(program, 100 * MIB), HARD_LIMIT)
        self.assertEqual(used(slices), 60 * MIB)
        self.assertEqual(self.nvml.set(pod, MAX), 0)
        self.assertEqual(self.ask(program, 196 * MIB), OK)
        self.assertEqual(self.ask(program, MIB), NO_MEMORY)


class DmemLab(Lab):
    """Files of the kernel's controller, at their real path; the cgroups are seen elsewhere."""
    LIMITS = "dmem"

    def setUp(self):
        self.tree = tempfile.mkdtemp()
        self.addCleanup(os.rmdir, self.tree)
        subprocess.run(["mount", "--bind", ROOT, self.tree], check=True)
        self.addCleanup(subprocess.run, ["umount", self.tree], check=True)
        subprocess.run(["mount", "-t", "tmpfs", "none", ROOT], check=True)
        self.addCleanup(subprocess.run, ["umount", ROOT], check=True)

    def make(self, *parts, files=True):
        """A cgroup, and its directory at the real path. Returns where its processes are named, and that path."""
        path = make(*parts)
        for name in ("dmem.max", "dmem.current") if files else ():
            with open(path + "/" + name, "a"):
                pass
        return make(*parts, root=self.tree), path

    def start(self, limits=None, driver=DRIVER, options=(), cards=2, card_mib=1024):
        super().start(limits, driver, ("--cgroups", self.tree, *options), cards, card_mib)


class Dmem(DmemLab):
    """The kernel's controller."""

    def test_every_ancestor_counts_and_limits(self):
        self.start()
        _, pod = self.make("dpod")
        procs, leaf = self.make("dpod", "leaf")
        program = self.run_in(procs)
        self.assertEqual(self.ask(program, 8 * MIB), OK)
        self.assertEqual(self.nvml.get(pod), (MAX, 8 * MIB))  # counted before the first limit
        self.assertEqual(self.nvml.set(pod, 64 * MIB), 0)
        self.assertEqual(self.nvml.set(leaf, 256 * MIB), 0)
        self.assertEqual(self.ask(program, 57 * MIB), HARD_LIMIT)
        self.assertEqual(self.ask(program, 56 * MIB), OK)
        self.assertEqual(self.nvml.get(leaf), (256 * MIB, 64 * MIB))
        self.assertEqual(self.nvml.set(pod, 32 * MIB), 0)  # succeeds, and is not in force
        self.assertEqual(self.nvml.get(pod), (64 * MIB, 64 * MIB))
        program.kill()
        self.assertEqual(self.nvml.set(pod, 32 * MIB), 0)
        self.assertEqual(self.nvml.get(pod), (32 * MIB, 0))
        with open(pod + "/dmem.max") as f:
            self.assertEqual(f.read(), "nvidia/00000000:01:00.0/vidmem %d\n" % (32 * MIB))

    def test_the_hook_of_the_toolkit_gives_nothing_beyond_the_pod(self):
        """The variables are worth nothing, whether they came by env, envFrom or an image's own ENV."""
        self.start()
        _, pod = self.make("dhooked")
        procs, leaf = self.make("dhooked", "leaf")
        self.assertEqual(self.nvml.set(pod, 64 * MIB), 0)
        for mib in 128, 1024, MAX // MIB, 64:
            self.hook(leaf, mib)
            program = self.run_in(procs)
            self.assertEqual(self.ask(program, 65 * MIB), HARD_LIMIT)
            self.assertEqual(self.ask(program, 64 * MIB), OK)
            program.kill()
        self.assertEqual(self.nvml.get(pod), (64 * MIB, 0))

    def test_a_leaf_without_files_has_the_limit_of_its_pod(self):
        self.start()
        _, pod = self.make("crun")
        procs, leaf = self.make("crun", "leaf", files=False)
        self.assertEqual(self.nvml.set(leaf, MIB), NOT_FOUND)
        self.assertEqual(self.nvml.set(pod, 16 * MIB), 0)
        self.assertEqual(self.nvml.get(leaf), (16 * MIB, 0))
        self.assertEqual(self.ask(self.run_in(procs), 17 * MIB), HARD_LIMIT)

    def test_limits_end_with_the_last_open_file_of_a_card(self):
        self.start("dmem,forget")
        _, pod = self.make("dforget")
        self.assertEqual(self.nvml.set(pod, MIB), 0)
        self.assertEqual(self.nvml.get(pod), (MIB, 0))
        self.nvml.library.nvmlShutdown()
        self.assertEqual(self.nvml.library.nvmlInit_v2(), 0)
        self.assertEqual(self.nvml.get(pod), (MAX, 0))


class Told:
    """A card whose questions have the given answers."""

    def __init__(self, figures):
        self.figures = figures

    def case(self, *unused):
        return contextlib.nullcontext(self)

    def until(self, _):
        return dict(self.figures)


@unittest.skipIf(os.environ.get("ASAN_OPTIONS"), "gpu-case, which loads the libraries, has no sanitizer")
class Suite(Lab):
    """What `make gpu-test` asks a card of."""

    def suite(self, limits, driver=DRIVER):
        self.start(limits, driver)
        p = subprocess.run([sys.executable, GPU + "/run.py", "--build", os.path.dirname(GPU_CASE), "--only", "limits", "--out", self.sim.dir + ".out"],
                           env=dict(os.environ, ALIQUOT_SIM_DIR=self.sim.dir, LD_LIBRARY_PATH=SIM_FOLDER), capture_output=True, text=True)
        self.assertEqual(p.returncode, 0, p.stdout + p.stderr)
        with open(self.sim.dir + ".out/results.json") as f:
            figures = json.load(f)["tests"][0]["figures"]
        shutil.rmtree(self.sim.dir + ".out")
        return figures

    def test_a_driver_with_limits(self):
        told = self.suite("misc")
        self.assertEqual(told["mechanism"], "both")
        expected = {"set-read-back": 64 * MIB, "fence-status": HARD_LIMIT, "fence-used": 64 * MIB, "lower-code": INVALID, "root-code": NOT_SUPPORTED,
                    "removed-path-code": OPERATING_SYSTEM, "not-root-code": NO_PERMISSION, "orphan-status": OK, "orphan-used": 0,
                    "moved-charge-of-new": 16 * MIB, "duplicate-charge-of-other": 0, "owner-ended-charge": 16 * MIB, "both-ended-charge": 0,
                    "shown-leaf-nvml2": 512 * MIB, "shown-below-cuda": 512 * MIB}
        self.assertEqual({key: told[key] for key in expected}, expected)
        self.assertEqual([name for name in os.listdir(ROOT) if name.startswith("aliquot-gpu-test")], [])
        for key, wrong in (("set-read-back", 0), ("fence-status", OK), ("fence-used", 65 * MIB), ("raise-take-status", HARD_LIMIT),
                           ("given-back-used", 2 * MIB), ("lift-read-back", 64 * MIB)):
            with self.subTest(key=key), self.assertRaises(Failure):
                judge(Told({"pid": 1, **told, key: wrong}))

    def test_what_a_removed_cgroup_leaves_is_counted(self):
        self.assertEqual(self.suite("misc,reuse")["inherited-of-500"], 499)

    def test_a_driver_without_limits(self):
        for kind, driver, why in (("misc", OLDER, "no calls for limits in NVML"), ("none", DRIVER, "NVML answers 3")):
            with self.subTest(kind=kind, driver=driver):
                self.assertEqual(self.suite(kind, driver), {"mechanism": "preload", "why": why})
                self.doCleanups()


def load_sanitizer(library):
    """Where the library is sanitized, this interpreter loads the sanitizer's runtime before all else. Programs that it starts do not."""
    if "PLAIN_OPTIONS" in os.environ:
        os.environ["ASAN_OPTIONS"] = os.environ.pop("PLAIN_OPTIONS")
        del os.environ["LD_PRELOAD"]
        return
    needed = subprocess.run(["ldd", library], capture_output=True, text=True, check=True).stdout
    if "libtsan.so" in needed:
        skip("ThreadSanitizer cannot be loaded into this interpreter")
    runtime = [line.split()[2] for line in needed.splitlines() if "libasan.so" in line]
    if runtime:
        options = os.environ.get("ASAN_OPTIONS", "")
        os.execve(sys.executable, [sys.executable, *sys.argv],
                  dict(os.environ, LD_PRELOAD=runtime[0], PLAIN_OPTIONS=options, ASAN_OPTIONS=options + ":detect_leaks=0"))


if __name__ == "__main__":
    if "PLAIN_OPTIONS" not in os.environ:
        enter_cgroups()
    load_sanitizer(os.path.abspath(sys.argv[3]) + "/libnvidia-ml.so.1")
    signal.alarm(600)
    SIM_FOLDER, GPU_CASE = map(os.path.abspath, sys.argv[3:5])
    del sys.argv[1:5]
    unittest.main()
