#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A user's view of the simulated driver: libcuda.so.1, libnvidia-ml.so.1 and nvidia-smi on a
mounted aliquot-sim.

    cuda.py ALIQUOT_SIM CUDA_RUN SHOW_CARDS LIBRARY_FOLDER MAP
"""
import json
import os
import re
import subprocess
import sys
import tempfile
import unittest

from patience import until
from sim_lab import Machine, enter_namespace

SIM, RUN, SHOW_CARDS, FOLDER, MAP = sys.argv[1:6]
SMI = os.path.join(FOLDER, "nvidia-smi")
MIB = 1 << 20
CONTEXT = 300 * MIB


def group_bytes(machine):
    """The driver's own memory for the channel group of a context, as it reports it."""
    return sum(c["groups"] for client in machine.status()["clients"] for c in client["cards"])


class Program:
    """A cuda-run that reads commands line by line."""

    def __init__(self, test, machine, *arguments):
        self.process = subprocess.Popen([RUN, *arguments], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1,
                                        env=environment(machine))
        test.addCleanup(self.end)

    def hears(self):
        line = self.process.stdout.readline().strip()
        if not line:
            raise AssertionError("the program ended with %s" % self.process.wait())
        return line

    def says(self):
        self.process.stdin.write("\n")

    def end(self):
        self.process.kill()
        self.process.wait()
        self.process.stdin.close()
        self.process.stdout.close()


def environment(machine, **more):
    return dict(os.environ, ALIQUOT_SIM_DIR=machine.dir, LD_LIBRARY_PATH=FOLDER, **more)


def smi(machine, *arguments, status=0):
    p = subprocess.run([SMI, *arguments], env=environment(machine), capture_output=True, text=True)
    if p.returncode != status:
        raise AssertionError("nvidia-smi %s ended with %d: %s%s" % (arguments, p.returncode, p.stdout, p.stderr))
    return p.stdout


def devices(machine, **more):
    out = subprocess.run([RUN, "devices"], env=environment(machine, **more), check=True, capture_output=True, text=True).stdout
    return out.split()


class Programs(unittest.TestCase):
    def test_every_family(self):
        for options in ([], ["--reserved", "100"]):
            with self.subTest(options):
                m = Machine(self, SIM, "2xTesla-V100-SXM2-16GB:16160MiB", *options)
                p = subprocess.run([RUN], env=environment(m), stdin=subprocess.DEVNULL, capture_output=True, text=True)
                self.assertEqual(p.returncode, 0, p.stdout + p.stderr)
                self.assertGreaterEqual(p.stdout.count("ok "), 28)
                self.assertEqual(m.used(), [0, 0])

    def test_on_a_small_card(self):
        m = Machine(self, SIM, "2xT:2GiB")
        p = subprocess.run([RUN], env=environment(m), stdin=subprocess.DEVNULL, capture_output=True, text=True)
        self.assertEqual(p.returncode, 0, p.stdout + p.stderr)

    def test_memory_of_a_killed_process_comes_back(self):
        m = Machine(self, SIM)
        p = Program(self, m, "hold", "100")
        p.hears()
        self.assertEqual(m.used(), [CONTEXT + 100 * MIB + group_bytes(m), 0])
        p.process.kill()
        m.wait_used(0, 0)

    def test_two_processes(self):
        m = Machine(self, SIM)
        owner = Program(self, m, "hold", "100")
        handle = owner.hears()
        guest = Program(self, m, "open", handle)
        self.assertEqual(guest.hears(), "opened")
        self.assertEqual(m.used()[0], 2 * CONTEXT + 100 * MIB + group_bytes(m))  # once
        owner.says()
        self.assertEqual(owner.hears(), "changed")
        guest.says()
        self.assertEqual(guest.hears(), "closed")
        owner.says()
        guest.says()
        self.assertEqual((owner.process.wait(), guest.process.wait()), (0, 0))
        m.wait_used(0, 0)

    def test_shared_memory_survives_its_owner(self):
        m = Machine(self, SIM)
        owner = Program(self, m, "hold", "100")
        guest = Program(self, m, "open", owner.hears())
        self.assertEqual(guest.hears(), "opened")
        owner.process.kill()
        owner.process.wait()
        until(lambda: len(m.status()["clients"]) == 2, "the owner's clients gone, CUDA's and NVML's of the guest left")
        self.assertEqual(m.used()[0], CONTEXT + 100 * MIB + group_bytes(m))
        guest.says()
        self.assertEqual(guest.hears(), "closed")
        self.assertEqual(m.used()[0], CONTEXT + group_bytes(m))

    def test_an_unknown_handle(self):
        m = Machine(self, SIM)
        owner = Program(self, m, "hold", "1")
        handle = owner.hears()
        owner.process.kill()
        owner.process.wait()
        p = subprocess.run([RUN, "open", handle], env=environment(m), stdin=subprocess.DEVNULL, capture_output=True, text=True)
        self.assertIn("cuIpcOpenMemHandle_v2", p.stderr)
        self.assertIn("is 1, expected 0", p.stderr)

    def test_visible_devices(self):
        m = Machine(self, SIM, "3xT:1GiB")
        uuids = [c["uuid"] for c in m.status()["cards"]]
        flat = [u[4:].replace("-", "") for u in uuids]
        self.assertEqual(devices(m), flat)
        for visible, want in (("2,0", [2, 0]), ("1", [1]), ("", []), ("0,9,1", [0]), ("1,1", []), ("-1", []), ("x", []),
                              (uuids[1], [1]), (uuids[2][:12] + ",0", [2, 0])):
            with self.subTest(visible):
                self.assertEqual(devices(m, CUDA_VISIBLE_DEVICES=visible), [flat[i] for i in want])

    def test_a_container_with_one_card(self):
        """Only the files of one card exist, as in a container."""
        m = Machine(self, SIM, "3xT:1GiB")
        flat = [c["uuid"][4:].replace("-", "") for c in m.status()["cards"]]
        with tempfile.TemporaryDirectory() as inside:
            for name in ("nvidiactl", "nvidia-uvm", "nvidia1"):
                os.symlink(os.path.join(m.dir, name), os.path.join(inside, name))
            self.assertEqual(devices_in(inside), [flat[1]])

    def test_no_driver(self):
        with tempfile.TemporaryDirectory() as empty:
            self.assertEqual(devices_in(empty), [])


def devices_in(folder):
    env = dict(os.environ, ALIQUOT_SIM_DIR=folder, LD_LIBRARY_PATH=FOLDER)
    return subprocess.run([RUN, "devices"], env=env, check=True, capture_output=True, text=True).stdout.split()


class Nvml(unittest.TestCase):
    def test_the_node_agent_finds_the_cards(self):
        m = Machine(self, SIM, "2xTesla-V100-SXM2-16GB:16160MiB,1xA10:23028MiB")
        p = subprocess.Popen([SHOW_CARDS, "library=" + os.path.join(FOLDER, "libnvidia-ml.so.1"), "rescan=30"],
                             stdout=subprocess.PIPE, text=True, env=environment(m))
        self.addCleanup(p.stdout.close)
        self.addCleanup(p.wait)
        self.addCleanup(p.kill)
        said = json.loads(p.stdout.readline())
        cards = [(c["uuid"], c["model"], c["mib"], c["minor"], c["pci"], c["healthy"]) for c in said["cards"]]
        self.assertEqual(cards, [(c["uuid"], c["model"], c["bytes"] // MIB, i, "00000000:%02X:00.0" % (i + 1), True)
                                 for i, c in enumerate(m.status()["cards"])])


    def test_the_agent_sees_the_links(self):
        """Those of the simulator's description, as NVML's calls tell them."""
        m = Machine(self, SIM, "4xTesla-V100-SXM2-16GB:16160MiB/0-1=NV2/0-3=PHB/2-3=SW6")
        p = subprocess.Popen([SHOW_CARDS, "library=" + os.path.join(FOLDER, "libnvidia-ml.so.1"), "rescan=30"],
                             stdout=subprocess.PIPE, text=True, env=environment(m))
        self.addCleanup(p.stdout.close)
        self.addCleanup(p.wait)
        self.addCleanup(p.kill)
        phb = 4 << 5
        self.assertEqual([c["peers"] for c in json.loads(p.stdout.readline())["cards"]],
                         [[0, phb | 2, phb, phb], [phb | 2, 0, phb, phb], [phb, phb, 0, phb | 6],
                          [phb, phb, phb | 6]])


class Smi(unittest.TestCase):
    def test_the_table(self):
        m = Machine(self, SIM)
        p = Program(self, m, "hold", "100")
        p.hears()
        out = smi(m)
        lines = out.splitlines()[1:]  # the first is the date
        self.assertEqual({len(line) for line in lines if line}, {91}, out)
        self.assertEqual([line for line in lines if line.startswith("|-") or line.startswith("|=")], [
            "|" + "-" * 41 + "+" + "-" * 24 + "+" + "-" * 22 + "+", "|" + "=" * 41 + "+" + "=" * 24 + "+" + "=" * 22 + "|", "|" + "=" * 89 + "|"])
        self.assertIn("| %dMiB /  16160MiB |" % (m.used()[0] // MIB), re.sub(" +([0-9]+MiB /)", r" \1", out))
        self.assertRegex(out, r"NVIDIA-SMI 595\.45\.04 +Driver Version: 595\.45\.04 +CUDA Version: 13\.2")
        self.assertRegex(out, r"\|    0   N/A  N/A +%d      C   \S*cuda-run +400MiB \|" % p.process.pid)
        p.process.kill()
        m.wait_used(0, 0)
        self.assertIn("No running processes found", smi(m))

    def test_the_cuda_version_is_the_drivers(self):
        for driver, cuda in (("535.161.07", "12.2"), ("545.29.06", "12.3"), ("565.77", "12.7"), ("580.142", "13.0"), ("590.48.01", "13.1"),
                             ("610.57.04", "13.3"), ("615.71.09", "13.4"), ("620.70.06", "13.5")):
            out = smi(Machine(self, SIM, "1xH200:256MiB", "--driver", driver))
            self.assertRegex(out, r"Driver Version: %s +CUDA Version: %s " % (re.escape(driver), re.escape(cuda)))

    def test_the_list(self):
        m = Machine(self, SIM)
        self.assertEqual(smi(m, "-L"), "".join("GPU %d: %s (UUID: %s)\n" % (c["index"], c["model"], c["uuid"])
                                               for c in m.status()["cards"]))

    def test_queries(self):
        m = Machine(self, SIM)
        uuids = [c["uuid"] for c in m.status()["cards"]]
        p = Program(self, m, "hold", "100")
        p.hears()
        used = m.used()[0] // MIB
        fields = "--query-gpu=index,name,uuid,memory.total,memory.used,memory.free,utilization.gpu,driver_version"
        self.assertEqual(smi(m, fields, "--format=csv").splitlines(), [
            "index, name, uuid, memory.total [MiB], memory.used [MiB], memory.free [MiB], utilization.gpu [%], driver_version",
            "0, Tesla-V100-SXM2-16GB, %s, 16160 MiB, %d MiB, %d MiB, 0 %%, 595.45.04" % (uuids[0], used, 16160 - used),
            "1, Tesla-V100-SXM2-16GB, %s, 16160 MiB, 0 MiB, 16160 MiB, 0 %%, 595.45.04" % uuids[1]])
        self.assertEqual(smi(m, "--query-gpu=memory.used", "--format=csv,noheader,nounits", "-i", "0"), "%d\n" % used)
        self.assertEqual(smi(m, "--query-gpu=index", "--format=csv,noheader", "-i", uuids[1]), "1\n")
        self.assertEqual(smi(m, "--query-compute-apps=pid,process_name,used_memory", "--format=csv,noheader"),
                         "%d, %s, 400 MiB\n" % (p.process.pid, RUN))

    def test_refusals(self):
        m = Machine(self, SIM)
        self.assertIn('Field "memory.lost" is not a valid field', smi(m, "--query-gpu=memory.lost", "--format=csv", status=2))
        smi(m, "--query-gpu=index", status=2)
        smi(m, "--query-gpu=index", "--format=json", status=2)
        smi(m, "-i", "7", status=6)
        smi(m, "nonsense", status=2)

    def test_no_driver(self):
        with tempfile.TemporaryDirectory() as empty:
            env = dict(os.environ, ALIQUOT_SIM_DIR=empty, LD_LIBRARY_PATH=FOLDER)
            p = subprocess.run([SMI], env=env, capture_output=True, text=True)
        self.assertEqual(p.returncode, 9)
        self.assertIn("couldn't communicate with the NVIDIA driver", p.stdout)


class Exports(unittest.TestCase):
    def test_exactly_what_the_list_says(self):
        with open(MAP) as f:
            want = set(re.findall(r"\bcu\w+(?=;)", f.read()))
        out = subprocess.run(["nm", "-D", "--defined-only", os.path.join(FOLDER, "libcuda.so.1")], check=True,
                             capture_output=True, text=True).stdout
        have = {line.split()[2].split("@")[0] for line in out.splitlines() if line.split()[1] in "TW"}
        self.assertEqual(have, want)
        self.assertGreater(len(want), 200)

    def test_nothing_but_nvml(self):
        out = subprocess.run(["nm", "-D", "--defined-only", os.path.join(FOLDER, "libnvidia-ml.so.1")], check=True,
                             capture_output=True, text=True).stdout
        names = {line.split()[2] for line in out.splitlines()} - {"__bss_start", "_edata", "_end"}  # gold exports where sections end
        self.assertEqual([n for n in names if not n.startswith("nvml")], [])


if __name__ == "__main__":
    enter_namespace(SIM)
    unittest.main(argv=[sys.argv[0]] + sys.argv[6:])
