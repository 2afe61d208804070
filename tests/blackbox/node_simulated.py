#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`aliquot node --simulate-dir` on a mounted aliquot-sim, with the real gate.

Usage: node_simulated.py ALIQUOT STORE_SERVER CLOCK_SHIM SIM GATE SAMPLE

A container is a process that uses the files of its mounts. Variables lead to them: one of the
loader to the libraries, one of the gate to the slices, one of the simulator to the driver's files.
They are the same files, and so have the same identity."""

import ctypes
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import unittest

from sim_lab import Machine, enter_namespace, skip

PIECE = 256 << 20


def inside(mib):
    """A program in a container. When it is told to begin, it allocates the amount piece by piece, prints
    what it got and whether more was possible, and waits."""
    sys.stdin.readline()
    cuda = ctypes.CDLL("libcuda.so.1")
    device, context = ctypes.c_int(), ctypes.c_void_p()
    for r in (cuda.cuInit(0), cuda.cuDeviceGet(ctypes.byref(device), 0),
              cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), device), cuda.cuCtxSetCurrent(context)):
        assert r == 0, r
    got, r = 0, 0
    while r == 0 and got < mib << 20:
        r = cuda.cuMemAlloc_v2(ctypes.byref(ctypes.c_uint64()), ctypes.c_size_t(PIECE))
        got += PIECE if r == 0 else 0
    print(got >> 20, r, flush=True)
    sys.stdin.readline()


if sys.argv[1] == "--inside":
    inside(int(sys.argv[2]))
    sys.exit(0)
if os.environ.get("ASAN_OPTIONS"):
    skip("the simulated libraries are sanitized here, and the programs that load them are not")
enter_namespace(sys.argv[4])
SAMPLE, GATE, SIM = (os.path.abspath(sys.argv.pop(i)) for i in (6, 5, 4))

from node_lab import Limits, container, pod  # noqa: E402
from grpc_process import run_tests  # noqa: E402
from node_case import ALIQUOT, Node  # reads its own arguments  # noqa: E402

CARDS = "2xTesla-V100-SXM2-16GB:16160MiB"
INSIDE = "/.aliquot"
LIBRARIES = "/usr/lib64"


class SimulatedNode(Node):
    def simulated(self, mode="core_mem", *extra, sim=()):
        self.machine = Machine(self, SIM, CARDS, "--name", "n1", *sim)
        lab = self.lab(cards=CARDS, mode=mode, driver=self.machine.dir, start=False)
        lab.library = GATE
        lab.proc = os.path.join(lab.dir, "proc")
        os.mkdir(lab.proc)
        lab.extra += ["--census", "20", "--proc", lab.proc, *extra]
        lab.start_agent()
        lab.wait_ready()
        return lab

    def started(self, lab, uid, name="main"):
        lab.wait(lambda: name in lab.running(uid), f"{name} runs")
        return lab.kubelet.runtime.of(uid, name)

    def environment(self, c, gate=True):
        mounts = {inside: host for inside, (host, _) in c.options["mounts"].items()}
        env = {"PATH": os.environ["PATH"], "LD_LIBRARY_PATH": os.path.dirname(mounts[LIBRARIES + "/libcuda.so.1"]),
               "ALIQUOT_SIM_DIR": os.path.dirname(mounts["/dev/nvidiactl"]),
               "CUDA_VISIBLE_DEVICES": c.options["env"]["NVIDIA_VISIBLE_DEVICES"]}  # of the container's card: the others are not mounted
        if gate and INSIDE + "/libaliquot.so" in mounts:
            slices = os.path.dirname(os.path.dirname(mounts[INSIDE + "/slice/0/limits"]))
            env.update(LD_PRELOAD=mounts[INSIDE + "/libaliquot.so"], ALIQUOT_SLICES=slices)
        return mounts, env

    def hold(self, lab, c, mib, gate=True, pod=True, before=lambda p: None):
        """A process of the container, or of none, that allocates so much. Returns it, what it got,
        and the last result of CUDA. before: is called with it before it begins."""
        p = subprocess.Popen([sys.executable, "-B", os.path.abspath(__file__), "--inside", str(mib)], stdin=subprocess.PIPE,
                             stdout=subprocess.PIPE, text=True, env=self.environment(c, gate)[1])

        def end():
            p.kill()
            p.wait()
            p.stdin.close()
            p.stdout.close()
        self.addCleanup(end)
        os.mkdir(os.path.join(lab.proc, str(p.pid)))
        with open(os.path.join(lab.proc, str(p.pid), "cgroup"), "w") as f:
            f.write(f"0::/kubepods/burstable/pod{c.uid}/{c.id}\n" if pod else "0::/system.slice/x.service\n")
        before(p)
        p.stdin.write("begin\n")  # not before: without a cgroup the memory would be no pod's
        p.stdin.flush()
        line = p.stdout.readline().split()
        return p, int(line[0]), int(line[1])


class Simulated(SimulatedNode):
    def smi(self, c):
        mounts, env = self.environment(c)
        return subprocess.run([mounts["/usr/bin/nvidia-smi"]], env=env, check=True, capture_output=True, text=True, timeout=120).stdout

    def test_cards_come_from_the_driver(self):
        lab = self.simulated()
        uuids = sorted(c["uuid"] for c in self.machine.status()["cards"])
        uid = self.place(lab, pod("a", container("main", 2)), 1)
        c = self.started(lab, uid)
        mounts = c.options["mounts"]
        self.assertIn(c.options["env"]["NVIDIA_VISIBLE_DEVICES"], uuids)
        for name in "nvidiactl", "nvidia1", "nvidia-uvm", "nvidia-uvm-tools":
            self.assertEqual(mounts["/dev/" + name], (os.path.join(self.machine.dir, name), False))
        self.assertNotIn("/dev/nvidia0", mounts)
        for inside in LIBRARIES + "/libcuda.so.1", LIBRARIES + "/libnvidia-ml.so.1", "/usr/bin/nvidia-smi":
            self.assertEqual(mounts[inside], (os.path.join(lab.state, "sim", os.path.basename(inside)), True))
        limits = Limits(mounts[INSIDE + "/slice/0/limits"][0])
        for file, name in zip(limits.files, ("nvidiactl", "nvidia1", "nvidia-uvm")):
            st = os.stat(os.path.join(self.machine.dir, name))
            self.assertEqual(file, (0, st.st_dev, st.st_ino), name)

    def test_a_slice_is_shown_and_enforced(self):
        lab = self.simulated()
        c = self.started(lab, self.place(lab, pod("a", container("main", 2)), 1))
        self.assertRegex(self.smi(c), r" 0MiB / +2154MiB ")
        _, got, error = self.hold(lab, c, 8192)
        self.assertEqual(error, 2, "out of memory, by CUDA's number")
        self.assertLessEqual(got, 2154)
        self.assertRegex(self.smi(c), r" \d{4}MiB / +2154MiB ")
        other = self.started(lab, self.place(lab, pod("b", container("main", 4)), 1))
        self.assertRegex(self.smi(other), r" 0MiB / +4309MiB ")

    def test_share_nodes_show_the_whole_card(self):
        lab = self.simulated("share")
        c = self.started(lab, self.place(lab, pod("a", container("main", 2)), 1))
        self.assertFalse([inside for inside in c.options["mounts"] if inside.startswith((INSIDE, "/etc"))])
        self.assertRegex(self.smi(c), r" 0MiB / +16160MiB ")

    def test_a_process_that_passes_the_gate_is_reported(self):
        lab = self.simulated("core_mem")
        c = self.started(lab, self.place(lab, pod("a", container("main", 2), container("second", 3)), 1))
        lab.wait(lambda: any(s.get("containerID") == "containerd://" + c.id for s in lab.get("a")["status"].get("containerStatuses", [])),
                 "its status names it")
        p, got, _ = self.hold(lab, c, 5120, gate=False)
        self.assertEqual(got, 5120)

        def notes():
            return [e.get("note") or e.get("message", "") for e in lab.api.get("/api/v1/namespaces/default/events")["items"]
                    if e["reason"] == "GPUMemoryExceeded"]
        lab.wait(notes, "an Event says so")
        note = notes()[0]  # of a census that may have come while it allocated
        self.assertRegex(note, f"^container main: holds [0-9]+ MiB of gpu1, and its slice is 2154 MiB: process {p.pid} ")
        self.assertGreater(int(note.split()[3]), 2154)

    def compute(self, lab, c, gate):
        """A process of the container that uses all of the card with kernels of a millisecond."""
        p = subprocess.Popen([SAMPLE, "--seconds", "600"], stdout=subprocess.PIPE, env=self.environment(c, gate)[1], start_new_session=True)

        def end():
            os.killpg(p.pid, signal.SIGKILL)
            p.wait()
            p.stdout.close()
        self.addCleanup(end)

        def child():
            with open(f"/proc/{p.pid}/task/{p.pid}/children") as f:
                return f.read().split()
        lab.wait(child, "its worker is there")
        p.worker = child()[0]
        os.mkdir(os.path.join(lab.proc, p.worker))
        with open(os.path.join(lab.proc, p.worker, "cgroup"), "w") as f:
            f.write(f"0::/kubepods/burstable/pod{c.uid}/{c.id}\n")
        return p

    def had(self, lab, p):
        """Percent of the card's time in the last census; None: the metric is absent."""
        return next((v for k, v in lab.metrics().items()
                     if k.startswith("DCGM_CUSTOM_PROCESS_SM_UTIL{") and f'ProcessId="{p.worker}"' in k), None)

    def test_more_time_than_its_share(self):
        """A process that the gate holds is never reported, in 2 s of the card's time: more than six
        windows. One that passes the gate is reported."""
        lab = self.simulated("core_mem", "--census", "100")
        c = self.started(lab, self.place(lab, pod("a", container("main", 2, 30)), 1))
        lab.wait(lambda: any(s.get("containerID") == "containerd://" + c.id for s in lab.get("a")["status"].get("containerStatuses", [])),
                 "its status names it")

        def excesses():
            return lab.metrics()["aliquot_node_compute_excesses_total"]

        def notes():
            return [e.get("note") or e.get("message", "") for e in lab.api.get("/api/v1/namespaces/default/events")["items"]
                    if e["reason"] == "GPUComputeExceeded"]
        held, seen = self.compute(lab, c, gate=True), []
        for _ in range(20):  # a line for each tenth of a second of the card's
            self.assertTrue(held.stdout.readline())
            seen.append(self.had(lab, held))
        self.assertEqual((excesses(), notes()), (0, []), f"what it had: {seen}")
        self.assertTrue(any(seen), "NVML says that it has something")
        free = self.compute(lab, c, gate=False)
        lab.wait(notes, "an Event says so")
        self.assertRegex(notes()[0], "^container main: has had [0-9.]+ % of the time of gpu1 for [0-9]+ s by the driver's word, and its share is "
                         f"30.0 %: process {free.worker}( or another one of the container)? is not held by the library$")
        self.assertEqual(excesses(), 1)

    def test_more_time_than_granted(self):
        """Weights of 1 and 3: a process that the gate holds is never reported. The first one is,
        once it passes the gate and has more than its quarter."""
        lab = self.simulated("cgpu", "--census", "100", "--policy", "2")
        pods = [pod(n, container("main", 2, env=[{"name": "ALIYUN_COM_GPU_SCHD_WEIGHT", "value": w}])) for n, w in (("a", "1"), ("b", "3"))]
        light, heavy = (self.started(lab, self.place(lab, p, 1)) for p in pods)
        for name, c in ("a", light), ("b", heavy):
            lab.wait(lambda name=name, c=c: any(s.get("containerID") == "containerd://" + c.id
                                                for s in lab.get(name)["status"].get("containerStatuses", [])), "its status names it")

        def notes():
            return [e.get("note") or e.get("message", "") for e in lab.api.get("/api/v1/namespaces/default/events")["items"]
                    if e["reason"] == "GPUComputeExceeded"]
        held = [self.compute(lab, c, gate=True) for c in (light, heavy)]
        for _ in range(20):  # a line for each tenth of a second of the card's
            self.assertTrue(held[1].stdout.readline())
        self.assertEqual((lab.metrics()["aliquot_node_compute_excesses_total"], notes()), (0, []))
        free = self.compute(lab, light, gate=False)
        lab.wait(notes, "an Event says so")
        self.assertRegex(notes()[0], "^container main: has had [0-9.]+ % of the time of gpu1 for [0-9]+ s by the driver's word, and by its windows, its part "
                         f"and what the others left it might have had [0-9.]+ %: process ({free.worker}|{held[0].worker})( or another one of the "
                         "container)? is not held by the library$")

    def test_a_process_of_no_pod_is_reported(self):
        lab = self.simulated()
        c = self.started(lab, self.place(lab, pod("a", container("main", 2)), 1))
        p, _, _ = self.hold(lab, c, 1024, gate=False, pod=False)

        def notes():
            return [e.get("note") or e.get("message", "") for e in lab.api.get("/api/v1/namespaces/default/events")["items"]
                    if e["reason"] == "GPUMemoryUnaccounted"]
        lab.wait(notes, "an Event of the node says so")
        self.assertRegex(notes()[0], f"no pod's; process {p.pid}, which is in no pod, holds ")

    def test_the_driver_overhead_is_accounted_for(self):
        """What the driver itself allocates for clients that keep to their slices is tolerated."""
        lab = self.simulated()
        c = self.started(lab, self.place(lab, pod("a", container("main", 8)), 1))
        held = [self.hold(lab, c, 256) for _ in range(3)]
        seen = lab.metrics()["aliquot_node_unaccounted_total"]
        self.assertEqual(([h[2] for h in held], seen), ([0, 0, 0], 0))

        def counted():
            metrics = lab.metrics()
            return all(any(f'ProcessId="{h[0].pid}"' in k and 'PodName="a"' in k for k in metrics) for h in held) and metrics
        found = {}
        lab.wait(lambda: found.update(counted() or {}) or found, "all of them are counted")
        stray = [v for k, v in found.items() if k.startswith("aliquot_node_unaccounted_bytes") and 'gpu="1"' in k]
        self.assertEqual(len(stray), 1)
        self.assertLessEqual(stray[0], 64 + 3 * 32 << 20)
        self.assertGreater(stray[0], 0, "the driver's own part is there, so that this shows something")

    def test_the_driver_is_missing(self):
        lab = self.simulated()
        first = self.started(lab, self.place(lab, pod("a", container("main", 2)), 1))
        self.assertTrue(first.options["mounts"])
        subprocess.run(["umount", "-l", self.machine.dir], check=True)  # the agent's NVML has it open
        self.addCleanup(subprocess.run, [SIM, "--cards", CARDS, "--dir", self.machine.dir, "--name", "n1"], check=True,
                        stdout=subprocess.DEVNULL)  # the machine unmounts it
        uid = self.place(lab, pod("b", container("main", 2)), 1)
        self.not_started(lab, "container main: .*the simulated driver's .*nvidiactl is not there")
        self.assertEqual(lab.running(uid), [])


class NoLocks(SimulatedNode):
    """A driver whose files cannot be locked, as in gVisor: no slice, said at start."""
    CONDITION, EVENT = "GPUShareDriverUnsupported", "GPUDriverUnsupported"
    MESSAGE = ("nvidiactl cannot be locked (as in gVisor), so memory cannot be counted: no container with an isolated slice "
               "starts")

    def is_told(self, lab):
        lab.wait(lambda: lab.condition(self.CONDITION).get("status") == "True", "the condition is true")
        self.assertEqual([lab.condition(self.CONDITION)[key] for key in ("reason", "message")],
                         ["DriverFilesUnlockable", self.MESSAGE])
        lab.wait(lambda: [e.get("note") or e.get("message", "") for e in lab.api.get("/api/v1/namespaces/default/events")["items"]
                          if e["reason"] == self.EVENT] == [self.MESSAGE], "an Event says so, once")

    def test_a_node_serves_no_slice(self):
        lab = self.simulated(sim=["--no-locks"])
        self.is_told(lab)
        lab.wait(lambda: lab.node()["metadata"]["annotations"].get("aliquot.dev/change-pending") == self.MESSAGE,
                 "the scheduler places nothing here")
        uid = self.place(lab, pod("a", container("main", 2)), 1)
        self.not_started(lab, re.escape(f"container main: it cannot be isolated: {self.MESSAGE}"))
        self.assertEqual(lab.running(uid), [])

    def test_a_node_shares_without_isolation(self):
        lab = self.simulated("share", sim=["--no-locks"])
        self.is_told(lab)
        self.started(lab, self.place(lab, pod("a", container("main", 2)), 1))

    def run_in_slice(self, *sim):
        machine = Machine(self, SIM, "1xT:4GiB", *sim)
        env = {"PATH": os.environ["PATH"], "ALIQUOT_SIM_DIR": machine.dir, "LD_LIBRARY_PATH": os.path.join(os.path.dirname(SIM), "sim")}
        return machine, subprocess.run([ALIQUOT, "run", "--slices", machine.dir + "-slices", "--gpu-mem", "1", "--", "echo", "runs"], env=env,
                                       capture_output=True, text=True, timeout=120)

    def test_aliquot_run(self):
        machine, p = self.run_in_slice("--no-locks")
        self.addCleanup(shutil.rmtree, machine.dir + "-slices", True)
        self.assertEqual((p.returncode, p.stdout, p.stderr),
                         (125, "", f"aliquot run: {machine.dir}/nvidiactl cannot be locked (as in gVisor), so memory cannot be counted\n"))
        machine, p = self.run_in_slice()
        self.addCleanup(shutil.rmtree, machine.dir + "-slices", True)
        self.assertEqual((p.returncode, p.stdout), (0, "runs\n"), p.stderr)


class Mig(unittest.TestCase):
    def test_aliquot_run(self):
        """A card with MIG on has no slices. The program has a folder of its own, because it prefers the simulator's NVML
        beside it."""
        machine = Machine(self, SIM, "1xT:4GiB")
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        run = shutil.copy(os.path.join(os.path.dirname(os.path.abspath(ALIQUOT)), "aliquot-run"), folder.name)
        shutil.copy(GATE, folder.name)
        text = machine.dir + "-nvml"
        self.addCleanup(os.remove, text)
        self.addCleanup(shutil.rmtree, machine.dir + "-slices", True)
        with open(text, "w") as f:
            f.write("card GPU-0 0 4096 10 T\nmig 0\n")
        env = {"PATH": os.environ["PATH"], "ALIQUOT_SIM_DIR": machine.dir, "FAKE_NVML": text,
               "LD_LIBRARY_PATH": os.path.join(os.path.dirname(SIM), "tests", "fake")}
        p = subprocess.run([run, "--slices", machine.dir + "-slices", "--gpu-mem", "1", "--", "echo", "runs"], env=env,
                           capture_output=True, text=True, timeout=120)
        self.assertEqual((p.returncode, p.stdout, p.stderr),
                         (125, "", "aliquot run: card 0: MIG is on; a card is shared only as a whole (nvidia-smi -mig 0)\n"))


class Usage(unittest.TestCase):
    def test_bad_options(self):
        for options, words in ((["--simulate-dir", "x"], "must be a path from the root"),
                               (["--simulate-dir", "/x", "--simulate", "A:1GiB"], "one of them")):
            p = subprocess.run([ALIQUOT, "node", "--node-name", "n", *options], capture_output=True,
                               text=True)
            self.assertEqual(p.returncode, 2)
            self.assertIn(words, p.stderr)


if __name__ == "__main__":
    run_tests(warnings="ignore")
