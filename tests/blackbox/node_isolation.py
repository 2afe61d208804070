#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What `aliquot node` gives an isolated container: node_isolation.py ALIQUOT STORE_SERVER CLOCK_SHIM NVML"""

import os
import struct
import subprocess
import sys
import unittest

from node_test import Node, ONE_CARD, PODS, TWO_CARDS, container, pod

NVML = sys.argv.pop(1)
INSIDE = "/run/aliquot"
MIB = 1 << 20


class Limits:
    """SliceLimits of src/slice/page.h."""

    def __init__(self, path):
        with open(path, "rb") as f:
            page = f.read()
        assert len(page) == 4096, len(page)
        (magic, self.major, self.minor, self.size, self.generation, self.limit, self.card_bytes, self.group_bytes) = \
            struct.unpack_from("<8sHHIQQQQ", page)
        assert magic == b"ALQLIMIT", magic
        _, self.card, self.core, self.flags = struct.unpack_from("<IIII", page, 48)
        self.uuid = page[64:112].rstrip(b"\0").decode()
        self.rdev = [struct.unpack_from("<QQQ", page, 112 + 24 * i)[0] for i in range(3)]
        self.container = page[184:440].rstrip(b"\0").decode()


def slices(lab):
    """Those on the board; beside them stand its locks."""
    return [name for name in os.listdir(lab.slices) if os.path.isdir(os.path.join(lab.slices, name))]


class Isolation(Node):
    def started(self, lab, uid, name="main"):
        lab.wait(lambda: name in lab.running(uid), f"{name} runs")
        return lab.kubelet.runtime.of(uid, name)

    def limits(self, c, number=0):
        host, read_only = c.options["mounts"][f"{INSIDE}/slice/{number}/limits"]
        self.assertTrue(read_only)
        return Limits(host)

    def counters(self, c, number=0):
        host, read_only = c.options["mounts"][f"{INSIDE}/slice/{number}/counters"]
        self.assertFalse(read_only)
        return host

    def test_what_is_mounted(self):
        lab = self.lab(cards=TWO_CARDS)
        c = self.started(lab, self.place(lab, pod("a", container("main", 2, 30)), 1))
        self.assertEqual(set(c.options["mounts"]), {f"{INSIDE}/libaliquot.so", "/etc/ld.so.preload",
                                                    f"{INSIDE}/slice/0/limits", f"{INSIDE}/slice/0/counters",
                                                    f"{INSIDE}/slice/0/bell"})
        page = self.limits(c)
        self.assertEqual((page.limit, page.card_bytes, page.card, page.core, page.flags),
                         (2154 * MIB, 16160 * MIB, 1, 30, 0))
        self.assertEqual(page.uuid, c.options["env"]["NVIDIA_VISIBLE_DEVICES"])
        self.assertEqual(page.container, "default/a/main")
        self.assertEqual(page.rdev[:2], [os.makedev(195, 255), os.makedev(195, 1)])
        self.assertGreater(os.path.getsize(self.counters(c)), 4096)
        for inside, read_only in (f"{INSIDE}/libaliquot.so", True), ("/etc/ld.so.preload", True):
            self.assertEqual(c.options["mounts"][inside][1], read_only)
        with open(c.options["mounts"]["/etc/ld.so.preload"][0]) as f:
            self.assertEqual(f.read(), f"{INSIDE}/libaliquot.so\n")
        with open(c.options["mounts"][f"{INSIDE}/libaliquot.so"][0]) as f:
            self.assertIn("first version", f.read())

    def test_several_cards(self):
        lab = self.lab()
        c = self.started(lab, self.place(lab, pod("a", container("main", 8), cards=4), 0, 2, 4, 6))
        pages = [self.limits(c, n) for n in range(4)]
        self.assertEqual([p.card for p in pages], [0, 2, 4, 6])
        self.assertEqual([p.limit for p in pages], [2154 * MIB] * 2 + [32510 * 2 // 31 * MIB] * 2)
        self.assertEqual(",".join(p.uuid for p in pages), c.options["env"]["NVIDIA_VISIBLE_DEVICES"])

    def test_containers_of_one_pod(self):
        lab = self.lab(cards=TWO_CARDS)
        uid = self.place(lab, pod("a", container("main", 3), container("second", 2), container("idle"),
                                  init=[container("ini", 5)]), 0)
        main, second, idle = (self.started(lab, uid, n) for n in ("main", "second", "idle"))
        self.assertEqual(self.limits(main).limit, 16160 * 3 // 15 * MIB)
        self.assertEqual(self.limits(second).limit, 2154 * MIB)
        self.assertEqual(self.limits(second).container, "default/a/second")
        self.assertEqual(idle.options["mounts"], {})

    def test_other_modes_have_none(self):
        lab = self.lab(cards=TWO_CARDS, mode="share")
        c = self.started(lab, self.place(lab, pod("a", container("main", 2)), 1))
        self.assertEqual(c.options["mounts"], {})
        self.assertEqual(slices(lab), [])

    def test_without_compute(self):
        lab = self.lab(cards=TWO_CARDS, mode="cgpu")
        self.assertEqual(self.limits(self.started(lab, self.place(lab, pod("a", container("main", 2)), 1))).core, 0)

    def test_pages_go_with_their_pod(self):
        lab = self.lab(cards=ONE_CARD)
        first = self.started(lab, self.place(lab, pod("a", container("main", 8)), 0))
        kept = self.started(lab, self.place(lab, pod("b", container("main", 4)), 0))
        lab.api.delete(f"{PODS}/a", grace=1)
        lab.wait(lambda: not os.path.exists(self.counters(first)), "its page is gone")
        self.assertTrue(os.path.exists(self.counters(kept)))
        lab.wait(lambda: len(slices(lab)) == 1, "and its directory")

    def test_of_the_dead_they_stay_as_long_as_their_processes(self):
        lab = self.lab(cards=ONE_CARD)
        uid = self.place(lab, pod("old", container("main", 8), annotations={"fake/linger": "until-let-go"}), 0)
        c = self.started(lab, uid)
        lab.api.delete(f"{PODS}/old", grace=0)
        lab.wait(lambda: uid in lab.held(), "its slice is published")
        self.assertTrue(os.path.exists(self.counters(c)))
        lab.kubelet.let_go()
        lab.wait(lambda: not os.path.exists(self.counters(c)), "its page is gone")

    def test_a_container_that_starts_again_keeps_its_counters(self):
        lab = self.lab(cards=ONE_CARD)
        uid = self.place(lab, pod("a", container("main", 8), restartPolicy="Always"), 0)
        first = self.started(lab, uid)
        before = os.stat(self.counters(first)).st_ino
        lab.kubelet.finish(uid, "main", 1)
        lab.wait(lambda: lab.kubelet.runtime.of(uid, "main") is not first, "it runs again")
        self.assertEqual(os.stat(self.counters(lab.kubelet.runtime.of(uid, "main"))).st_ino, before)

    def test_agent_restart(self):
        """Pages of what runs stay as they are; those of what went meanwhile go; a new gate is put beside by rename."""
        lab = self.lab(cards=TWO_CARDS)
        a = self.started(lab, self.place(lab, pod("a", container("main", 8)), 0))
        b = self.started(lab, self.place(lab, pod("b", container("main", 8)), 1))
        library = a.options["mounts"][f"{INSIDE}/libaliquot.so"][0]
        with open(library) as old:
            inodes = [os.stat(p).st_ino for p in (self.counters(a), library)]
            lab.agent.stop()
            lab.api.delete(f"{PODS}/b", grace=0)
            lab.wait(lambda: not lab.kubelet.runtime.running(b.uid), "b is gone")
            with open(lab.gate, "w") as f:
                f.write("what is loaded into containers, second version")
            lab.start_agent()
            lab.wait_ready()
            lab.wait(lambda: not os.path.exists(self.counters(b)), "its page goes")
            self.assertEqual(os.stat(self.counters(a)).st_ino, inodes[0])
            self.assertNotEqual(os.stat(library).st_ino, inodes[1])
            self.assertIn("first version", old.read(), "whoever has the old one keeps it")
        with open(library) as f:
            self.assertIn("second version", f.read())

    def test_disabled_by_its_user(self):
        lab = self.lab(cards=TWO_CARDS)
        for name, value in ("yes", "true"), ("one", "1"), ("no", "false"):
            c = self.started(lab, self.place(lab, pod(name, container("main", 2, env=[
                {"name": "CGPU_DISABLE", "value": value}])), 1))
            page = self.limits(c)
            self.assertEqual((page.flags, page.limit), (0, 2154 * MIB) if name == "no" else (1, 16160 * MIB))

    def test_unless_the_node_forbids_it(self):
        lab = self.lab(cards=TWO_CARDS, extra=["--ignore-cgpu-disable"])
        c = self.started(lab, self.place(lab, pod("a", container("main", 2, env=[
            {"name": "CGPU_DISABLE", "value": "true"}])), 1))
        self.assertEqual((self.limits(c).flags, self.limits(c).limit), (0, 2154 * MIB))

    def test_without_a_gate_nothing_isolated_starts(self):
        lab = self.lab(cards=TWO_CARDS, start=False)
        os.unlink(lab.gate)
        lab.start_agent()
        lab.wait_ready()
        uid = self.place(lab, pod("a", container("main", 2)), 1)
        lab.wait(lambda: lab.kubelet.prestart_errors, "it says so")
        self.assertRegex(lab.kubelet.prestart_errors[0][3], r"default/a: container main: it cannot be isolated: .*gate\.so")
        self.assertEqual(lab.running(uid), [])
        with open(lab.gate, "w") as f:
            f.write("repaired")
        lab.restart_agent()
        self.started(lab, uid)

    def test_a_board_that_is_not_there(self):
        """/run is cleaned by others: what is to be mounted must be where the mount says."""
        lab = self.lab(cards=TWO_CARDS)
        first = self.started(lab, self.place(lab, pod("a", container("main", 2)), 1))
        os.rename(lab.slices, lab.slices + ".away")
        second = self.started(lab, self.place(lab, pod("b", container("main", 3)), 1))
        self.assertEqual(self.limits(second).limit, 3232 * MIB)
        self.assertFalse(os.path.exists(self.counters(first)))
        os.rename(lab.slices, lab.slices + ".again")
        with open(lab.slices, "w"):
            uid = self.place(lab, pod("c", container("main", 2)), 1)
        lab.wait(lambda: lab.kubelet.prestart_errors, "it says so")
        self.assertRegex(lab.kubelet.prestart_errors[0][3], f"default/c: container main: cannot .*{lab.slices}")
        self.assertEqual(lab.running(uid), [])
        os.unlink(lab.slices)
        self.started(lab, uid)


class Audit(Node):
    """Processes are made up: what the driver says of them, and in which pod's cgroup they are."""

    def audited(self, *extra):
        lab = self.lab(cards=TWO_CARDS, nvml=NVML, start=False)
        lab.proc = os.path.join(lab.dir, "proc")
        os.mkdir(lab.proc)
        lab.extra += ["--census", "20", "--proc", lab.proc, *extra]
        lab.start_agent()
        lab.wait_ready()
        return lab

    def process(self, lab, pid, uid, style="/kubepods/burstable/pod%s/0123"):
        os.mkdir(os.path.join(lab.proc, str(pid)))
        with open(os.path.join(lab.proc, str(pid), "cgroup"), "w") as f:
            f.write("12:pids:/\n0::" + style % uid + "\n")

    def excesses(self, lab):
        return lab.metrics()["aliquot_node_excesses_total"]

    def notes(self, lab):
        return [e.get("note") or e.get("message", "") for e in lab.api.get("/api/v1/namespaces/default/events")["items"]
                if e["reason"] == "GPUMemoryExceeded"]

    def used(self, lab, name):
        return sum(v for k, v in lab.metrics().items() if k.startswith("DCGM_CUSTOM_PROCESS_MEM_USED") and
                   f'PodName="{name}"' in k)

    def censuses(self, lab, n=5):
        """So many more, at least: the driver is asked each time."""
        for i in range(n):
            lab.machine([*lab.told, (1, 900 + i, 7 + i)])
            lab.wait(lambda: self.used(lab, "") == 7 + i, "another census")

    def tell(self, lab, *processes):
        lab.told = processes
        lab.machine(processes)

    def test_over_the_slice(self):
        lab = self.audited()
        a = self.place(lab, pod("a", container("main", 2), container("second", 3)), 1)
        b = self.place(lab, pod("b", container("main", 4)), 1)
        for uid, name in (a, "main"), (a, "second"), (b, "main"):
            lab.wait(lambda: name in lab.running(uid), "they run")
        slice_a = 2154 + 16160 * 3 // 15
        self.process(lab, 101, a)
        self.process(lab, 102, a.replace("-", "_"), "/../kubepods-burstable-pod%s.slice/cri-containerd-0123.scope")
        self.process(lab, 103, b)
        self.tell(lab, (1, 101, 2000), (1, 102, slice_a - 2000 + 64), (1, 103, 4000))
        self.censuses(lab)
        self.assertEqual(self.excesses(lab), 0, "64 MiB above are not yet too many")
        self.assertEqual(self.used(lab, "a"), slice_a + 64)
        self.tell(lab, (1, 101, 2000), (1, 102, slice_a - 2000 + 65), (1, 103, 4000))
        lab.wait(lambda: self.excesses(lab) == 1, "one more is")
        lab.wait(lambda: self.notes(lab), "an Event says so")
        self.assertRegex(self.notes(lab)[0], f"holds {slice_a + 65} MiB of gpu1, and its slice is {slice_a} MiB: process 10[12] ")
        self.censuses(lab)
        self.assertEqual(self.excesses(lab), 1, "told once")
        self.tell(lab, (1, 101, 2000), (1, 103, 4000))
        self.censuses(lab)
        self.tell(lab, (1, 101, 9000), (1, 103, 4000))
        lab.wait(lambda: self.excesses(lab) == 2, "and once more when it was over in between")

    def test_disabled_ones_may(self):
        lab = self.audited()
        uid = self.place(lab, pod("a", container("main", 2, env=[{"name": "CGPU_DISABLE", "value": "1"}])), 1)
        lab.wait(lambda: lab.running(uid), "it runs")
        self.process(lab, 101, uid)
        self.tell(lab, (1, 101, 12000))
        self.censuses(lab)
        self.assertEqual(self.excesses(lab), 0)
        self.assertEqual(self.used(lab, "a"), 12000)

    def test_killed_where_that_is_wished(self):
        lab = self.audited("--on-excess", "kill")
        uid = self.place(lab, pod("a", container("main", 2)), 1)
        lab.wait(lambda: lab.running(uid), "it runs")
        guilty, other = (subprocess.Popen(["sleep", "600"]) for _ in range(2))
        self.addCleanup(lambda: [p.kill() or p.wait() for p in (guilty, other)])
        self.process(lab, guilty.pid, uid)
        self.process(lab, other.pid, "0" * 36)
        self.tell(lab, (1, guilty.pid, 9000), (1, other.pid, 9000))
        self.assertEqual(guilty.wait(120), -9)
        self.assertIsNone(other.poll())
        lab.wait(lambda: any("were killed" in n for n in self.notes(lab)), "an Event says so")


if __name__ == "__main__":
    unittest.main(warnings="ignore")
