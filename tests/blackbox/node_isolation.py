#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What `aliquot node` gives an isolated container: node_isolation.py ALIQUOT STORE_SERVER CLOCK_SHIM NVML"""

import ctypes
import fcntl
import json
import os
import re
import resource
import shutil
import signal
import struct
import subprocess
import sys
import threading
import unittest

ARGUMENTS = list(sys.argv)  # a copy: the modules below change sys.argv

from node_lab import GPU_MEM, Limits
from node_test import Node, ONE_CARD, PODS, TWO_CARDS, container, pod
import slice_page

NVML = sys.argv.pop(1)
INSIDE, RUN = "/.aliquot", "/run/aliquot"  # the paths in this agent's answers, and in an older one's
ALONE = "ISOLATION_ALONE"  # environment: this process has its own mount namespace
MIB = 1 << 20
FOUR_CARDS = "4xTesla-V100-SXM2-16GB:16160MiB"
ALL = {"/etc/ld.so.preload", INSIDE} | {f"{INSIDE}/{name}" for name in (
    "libaliquot.so", "slice", "slice/0", "slice/0/limits", "slice/0/counters", "slice/0/bell")}
DIRECTORIES = {INSIDE, f"{INSIDE}/slice", f"{INSIDE}/slice/0"}
LIBC = ctypes.CDLL(None, use_errno=True)
CLONE_NEWNS, MS_SHARED, MNT_DETACH = 0x20000, 1 << 20, 2
F_OFD_SETLK = 37  # Linux; Python has it since 3.9


def slices(lab):
    """The slices in the slice directory, without its locks."""
    return [name for name in os.listdir(lab.slices) if os.path.isdir(os.path.join(lab.slices, name))]


class Events(Node):
    def events(self, lab, reason):
        return [e.get("note") or e.get("message", "") for e in lab.api.get("/api/v1/namespaces/default/events")["items"]
                if e["reason"] == reason]


class Started(Events):
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


class Isolation(Started):
    def test_what_is_mounted(self):
        lab = self.lab(cards=TWO_CARDS)
        c = self.started(lab, self.place(lab, pod("a", container("main", 2, 30)), 1))
        self.assertEqual(set(c.options["mounts"]), ALL)
        page = self.limits(c)
        self.assertEqual((page.limit, page.card_bytes, page.card, page.core, page.flags),
                         (2154 * MIB, 16160 * MIB, 1, 30, 0))
        self.assertEqual(page.uuid, c.options["env"]["NVIDIA_VISIBLE_DEVICES"])
        self.assertEqual(page.container, "default/a/main")
        self.assertEqual(page.rdev[:2], [os.makedev(195, 255), os.makedev(195, 1)])
        self.assertGreater(os.path.getsize(self.counters(c)), 4096)
        for inside in INSIDE, f"{INSIDE}/libaliquot.so", "/etc/ld.so.preload":
            self.assertTrue(c.options["mounts"][inside][1], f"{inside} is read-only")
        folder = c.options["mounts"][INSIDE][0]
        for inside in ALL - {INSIDE, "/etc/ld.so.preload"}:
            target = folder + inside[len(INSIDE):]
            if inside in DIRECTORIES:
                self.assertEqual(c.options["mounts"][inside], (target, True))
            else:
                self.assertTrue(os.path.isfile(target) and os.path.getsize(target) == 0, f"{target} can be mounted over")
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

    def test_init_containers_with_the_same_devices(self):
        """The kubelet gives an init container's devices to later ones, and PreStart names no container. The page must be that of
        the starting container with its share, also after a restart of the container or the agent."""
        lab = self.lab(cards=TWO_CARDS)
        uid = self.place(lab, pod("a", container("main", 2, 30), init=[container("one", 2, 5), container("two", 2, 10)],
                                  annotations={"fake/run-two": "100000"}, restartPolicy="Always"), 0)
        for name, core in ("two", 10), ("main", 30):
            page = self.limits(self.started(lab, uid, name))
            self.assertEqual((page.container, page.core), (f"default/a/{name}", core))
            lab.restart_agent()
            lab.wait_ready()
            if name == "two":
                lab.kubelet.finish(uid, "two")
        first = lab.kubelet.runtime.of(uid, "main")
        lab.kubelet.finish(uid, "main", 1)
        lab.wait(lambda: lab.kubelet.runtime.of(uid, "main") is not first, "it runs again")
        page = self.limits(lab.kubelet.runtime.of(uid, "main"))
        self.assertEqual((page.container, page.core), ("default/a/main", 30))

    def test_an_init_containers_page_is_not_taken_for_a_later_ones_while_the_api_server_is_away(self):
        lab = self.lab(cards=TWO_CARDS, seed=2132093050)  # main gets its memory right after the init container, from the same set
        uid = self.place(lab, pod("a", container("main", 2, 30), init=[container("ini", 2, 10)],
                                  annotations={"fake/run-ini": "100000"}, restartPolicy="Always"), 0)
        self.started(lab, uid, "ini")
        lab.store.tell("vanish")
        lab.restart_agent()
        lab.kubelet.finish(uid, "ini")
        lab.wait(lambda: lab.kubelet.prestart_errors, "it waits")
        self.assertIn(f"the pod with uid {uid} is not known from the API server yet", lab.kubelet.prestart_errors[0][3])
        self.assertEqual(lab.running(uid), [])
        lab.store.tell("return")
        first = self.started(lab, uid)
        lab.store.tell("vanish")
        lab.restart_agent()
        lab.kubelet.finish(uid, "main", 1)
        lab.wait(lambda: lab.running(uid) and lab.kubelet.runtime.of(uid, "main") is not first, "all have started: it runs again")
        page = self.limits(lab.kubelet.runtime.of(uid, "main"))
        self.assertEqual((page.container, page.core), ("default/a/main", 30))
        lab.store.tell("return")

    def test_a_missing_preload_file_is_made(self):
        """The slice was made by another version of the agent. Its containers start again, also while the API server is away."""
        lab = self.lab(cards=TWO_CARDS)
        uid = self.place(lab, pod("a", container("main", 2), restartPolicy="Always"), 1)
        first = self.started(lab, uid)
        os.unlink(first.options["mounts"]["/etc/ld.so.preload"][0])
        lab.store.tell("vanish")
        lab.restart_agent()
        lab.kubelet.finish(uid, "main", 1)
        lab.wait(lambda: lab.running(uid) and lab.kubelet.runtime.of(uid, "main") is not first, "it runs again")
        with open(first.options["mounts"]["/etc/ld.so.preload"][0]) as f:
            self.assertEqual(f.read(), f"{INSIDE}/libaliquot.so\n")
        lab.store.tell("return")

    def test_pods_that_an_older_agent_admitted(self):
        """The kubelet goes on using its earlier answers: all their paths exist and fit."""
        lab = self.lab(cards=TWO_CARDS, start=False)
        gate = os.path.join(lab.state, "gate")
        os.makedirs(gate)
        lab.start_agent()
        lab.wait_ready()
        c = self.started(lab, self.place(lab, pod("a", container("main", 2), restartPolicy="Always"), 1))
        slice_ = os.path.dirname(c.options["mounts"]["/etc/ld.so.preload"][0])
        with open(os.path.join(gate, "libaliquot.so")) as f:
            self.assertIn("first version", f.read())
        for path in os.path.join(gate, "ld.so.preload"), os.path.join(slice_, "preload"):
            with open(path) as f:
                self.assertEqual(f.read(), f"{RUN}/libaliquot.so\n")
            os.unlink(path)
        lab.restart_agent()
        lab.wait_ready()
        lab.kubelet.finish(c.uid, "main", 1)
        lab.wait(lambda: lab.running(c.uid) and lab.kubelet.runtime.of(c.uid, "main") is not c, "it runs again")
        for path in os.path.join(gate, "ld.so.preload"), os.path.join(slice_, "preload"):
            with open(path) as f:
                self.assertEqual(f.read(), f"{RUN}/libaliquot.so\n")

    def test_a_node_without_old_pods_has_no_old_paths(self):
        lab = self.lab(cards=TWO_CARDS)
        self.started(lab, self.place(lab, pod("a", container("main", 2)), 1))
        self.assertFalse(os.path.exists(os.path.join(lab.state, "gate")))

    def test_other_modes_have_no_pages(self):
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

    def test_pages_of_deleted_pods_stay_as_long_as_their_processes(self):
        lab = self.lab(cards=ONE_CARD)
        uid = self.place(lab, pod("old", container("main", 8), annotations={"fake/linger": "until-let-go"}), 0)
        c = self.started(lab, uid)
        lab.api.delete(f"{PODS}/old", grace=0)
        lab.wait(lambda: uid in lab.held(), "its slice is published")
        self.assertTrue(os.path.exists(self.counters(c)))
        lab.wait(lambda: lab.kubelet.lingering, "the kubelet has heard of it, too")
        lab.kubelet.let_go()
        lab.wait(lambda: not os.path.exists(self.counters(c)), "its page is gone")

    def test_a_pod_deleted_between_two_checks_does_not_start_without_pages(self):
        """The check of its percentage keeps a record of all that it got. The check of its memory makes the pages, and comes when
        the API server no longer has the pod."""
        lab = self.lab(cards=ONE_CARD)
        manager = lab.kubelet.manager
        timed, gone = manager._timed, []
        manager.rng.shuffle = lambda names: names.sort(key=lambda name: name == GPU_MEM)

        def between(call, resource, *rest):
            if (call, resource) == ("PreStartContainer", GPU_MEM) and not gone:
                lab.kubelet.watch.stop()
                gone.append(lab.api.delete(f"{PODS}/a", grace=0))
                lab.wait(lab.held, "the agent knows that it is gone")
            return timed(call, resource, *rest)
        manager._timed = between
        uid = self.place(lab, pod("a", container("main", 2, 30)), 0)
        lab.wait(lambda: lab.kubelet.prestart_errors, "it is not proved")
        self.assertIn(uid, lab.kubelet.prestart_errors[0][3])
        self.assertEqual(lab.running(uid), [])

    def test_a_restarted_container_keeps_its_counters(self):
        lab = self.lab(cards=ONE_CARD)
        uid = self.place(lab, pod("a", container("main", 8), restartPolicy="Always"), 0)
        first = self.started(lab, uid)
        before = os.stat(self.counters(first)).st_ino
        lab.kubelet.finish(uid, "main", 1)
        lab.wait(lambda: lab.kubelet.runtime.of(uid, "main") is not first, "it runs again")
        self.assertEqual(os.stat(self.counters(lab.kubelet.runtime.of(uid, "main"))).st_ino, before)

    def test_agent_restart(self):
        """Pages of running containers stay, and those of ended ones are removed. A new gate replaces the file by a rename."""
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
            self.assertIn("first version", old.read(), "a process that has the old file keeps it")
        with open(library) as f:
            self.assertIn("second version", f.read())

    def test_disabled_by_its_user(self):
        lab = self.lab(cards=TWO_CARDS)
        for name, value in ("yes", "true"), ("one", "1"), ("no", "false"):
            c = self.started(lab, self.place(lab, pod(name, container("main", 2, env=[
                {"name": "CGPU_DISABLE", "value": value}])), 1))
            page = self.limits(c)
            self.assertEqual((page.flags, page.limit), (0, 2154 * MIB) if name == "no" else (1, 16160 * MIB))

    def test_disabling_is_ignored_with_that_option(self):
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
        c = self.started(lab, uid)
        self.assertEqual(set(c.options["mounts"]), ALL, "the kubelet asks once, and that was before it was repaired")
        self.assertEqual(self.limits(c).limit, 2154 * MIB)
        for host, _ in c.options["mounts"].values():
            self.assertTrue(os.path.exists(host), host)

    def test_a_mount_over_the_gate_does_not_start(self):
        """The pod did not pass the webhook. CGPU_DISABLE changes nothing."""
        lab = self.lab(cards=TWO_CARDS)
        disabled = {"env": [{"name": "CGPU_DISABLE", "value": "1"}]}
        cases = (("preload", {"volumeMounts": [{"name": "v", "mountPath": "/data"}, {"name": "v", "mountPath": "/etc/ld.so.preload"}]},
                  'volumeMounts[1].mountPath: "/etc/ld.so.preload" must not be'),
                 ("limits", {"volumeMounts": [{"name": "v", "mountPath": "/.aliquot//slice/0/limits"}]},
                  'volumeMounts[0].mountPath: "/.aliquot//slice/0/limits" must not be'),
                 ("block", {"volumeDevices": [{"name": "v", "devicePath": "/.aliquot"}]}, 'volumeDevices[0].devicePath: "/.aliquot" must not be'),
                 ("words", {"terminationMessagePath": "/etc/ld.so.preload"}, 'terminationMessagePath: "/etc/ld.so.preload" must not be'),
                 ("etc", {"volumeMounts": [{"name": "v", "mountPath": "/etc/"}], **disabled}, 'volumeMounts[0].mountPath: "/etc/" must not be'))
        for name, more, text in cases:
            uid = self.place(lab, pod(name, container("main", 2, **more)), 1)
            lab.wait(lambda: any(f"default/{name}: " in e[3] for e in lab.kubelet.prestart_errors), f"{name} is refused")
            said = next(e[3] for e in lab.kubelet.prestart_errors if f"default/{name}: " in e[3])
            self.assertIn(f"pod default/{name}: container main: {text}", said)
            self.assertEqual(lab.running(uid), [])
        self.started(lab, self.place(lab, pod("beside", container("main", 2, volumeMounts=[{"name": "v", "mountPath": "/etc/config"}])), 1))

    def test_without_a_board_nothing_isolated_starts(self):
        lab = self.lab(cards=TWO_CARDS, start=False)
        with open(lab.slices, "w"):
            lab.start_agent()
        lab.wait_ready()
        uid = self.place(lab, pod("a", container("main", 2)), 1)
        lab.wait(lambda: lab.kubelet.prestart_errors, "it says so")
        self.assertEqual(lab.running(uid), [])
        os.unlink(lab.slices)
        lab.restart_agent()
        self.assertEqual(set(self.started(lab, uid).options["mounts"]), ALL)

    def test_nothing_starts_again_without_a_gate_while_the_api_server_is_away(self):
        lab = self.lab(cards=TWO_CARDS)
        uid = self.place(lab, pod("a", container("main", 2), restartPolicy="Always"), 1)
        first = self.started(lab, uid)
        os.rename(lab.gate, lab.gate + ".away")
        lab.store.tell("vanish")
        lab.restart_agent()
        lab.kubelet.finish(uid, "main", 1)
        lab.wait(lambda: lab.kubelet.prestart_errors, "it waits")
        self.assertEqual(lab.running(uid), [])
        os.rename(lab.gate + ".away", lab.gate)
        lab.restart_agent()
        lab.wait(lambda: lab.running(uid), "it runs again")
        second = lab.kubelet.runtime.of(uid, "main")
        self.assertIsNot(second, first)
        lab.restart_agent()
        del lab.kubelet.prestart_errors[:]
        os.unlink(second.options["mounts"][f"{INSIDE}/libaliquot.so"][0])
        lab.kubelet.finish(uid, "main", 1)
        lab.wait(lambda: lab.kubelet.prestart_errors, "it waits for one that was taken away meanwhile, too")
        self.assertEqual(lab.running(uid), [])
        lab.store.tell("return")

    def test_a_missing_slice_directory(self):
        """Other programs may clean /run: what is to be mounted must exist at the mount's path."""
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

    def test_counters_that_grow_are_cut_back(self):
        """Containers can write them, and they are on the host's /run."""
        lab = self.lab(cards=TWO_CARDS, extra=["--census", "20"])
        c = self.started(lab, self.place(lab, pod("a", container("main", 2)), 1))
        size = os.path.getsize(self.counters(c))
        with open(self.counters(c), "r+b") as f:
            before = f.read()
            f.seek(8 << 20)
            f.write(b"x" * (1 << 20))
        lab.wait(lambda: os.path.getsize(self.counters(c)) == size, "it has its size again")
        with open(self.counters(c), "rb") as f:
            self.assertEqual(f.read(), before, "and what it said")
        lab.wait(lambda: self.events(lab, "SliceFileGrown"), "an Event says so")
        self.assertRegex(self.events(lab, "SliceFileGrown")[0], r"^container main: its slice's counters .* had grown to \d+ KiB")
        with open(self.counters(c), "r+b") as f:
            f.truncate(1 << 30)
        lab.wait(lambda: os.path.getsize(self.counters(c)) == size, "each time")
        self.assertGreaterEqual(lab.metrics()["aliquot_node_slice_files_grown_total"], 2)
        self.assertEqual(len(self.events(lab, "SliceFileGrown")), 1, "but is not told of each time")

    def test_a_slice_of_no_pod(self):
        """`aliquot run` uses the slice directory of a Kubernetes node: the scheduler does not know it."""
        lab = self.lab(cards=TWO_CARDS, extra=["--census", "20"])
        c = self.started(lab, self.place(lab, pod("a", container("main", 2)), 1))

        def foreign():
            return sorted(v for k, v in lab.metrics().items() if k.startswith("aliquot_node_foreign_slices_mib"))
        self.assertEqual(foreign(), [0, 0])
        run = os.path.join(lab.slices, "run-1")
        shutil.copytree(os.path.dirname(os.path.dirname(self.counters(c))), run, ignore=shutil.ignore_patterns("bell"))
        with open(os.path.join(run, "owner"), "w") as f:
            f.write("run 1 python3\n")
            f.flush()
            fcntl.fcntl(f, F_OFD_SETLK, struct.pack("hhqqi", fcntl.F_WRLCK, os.SEEK_SET, 0, 1, 0))
            lab.wait(lambda: foreign() == [0, 2154], "the metric has it")
            lab.wait(lambda: self.events(lab, "ForeignSlice"), "an Event of the node says so")
            self.assertRegex(self.events(lab, "ForeignSlice")[0], r"^slice run-1 \(run 1 python3\) has 2154 MiB of gpu1 \(GPU-")
        lab.wait(lambda: foreign() == [0, 0], "it is gone with its owner")
        self.assertEqual(len(self.events(lab, "ForeignSlice")), 1)


class Tenant:
    """Takes a lease of a mounted file, gives it up when another process wants to open the file, and takes another one. It is a
    process of its own, because a signal tells the holder of a lease."""

    SCRIPT = """
import fcntl, os, signal, sys, time
signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGIO])
fd, kind = os.open(sys.argv[1], os.O_RDONLY), int(sys.argv[2])
def take():
    try:
        fcntl.fcntl(fd, fcntl.F_SETLEASE, kind)
    except BlockingIOError:
        return "refused"
    return "leased"
print(take(), flush=True)
while True:
    if signal.sigtimedwait([signal.SIGIO], 0.01):
        fcntl.fcntl(fd, fcntl.F_SETLEASE, fcntl.F_UNLCK)
        print("given up", flush=True)
        while take() == "refused":
            time.sleep(0.001)
"""

    def __init__(self, path, kind):
        self.process = subprocess.Popen([sys.executable, "-c", self.SCRIPT, path, str(kind)], stdout=subprocess.PIPE, text=True)
        self.said = self.process.stdout.readline().strip()

    def stop(self):
        self.process.kill()
        self.process.wait()
        self.process.stdout.close()


class Leases(Started):
    """Files that containers have mounted belong to root, and so do most processes of containers.
    They may take leases of them, and a process that opens such a file waits."""

    def tenant(self, path, kind=fcntl.F_WRLCK):
        tenant = Tenant(path, kind)
        self.addCleanup(tenant.stop)
        return tenant

    def leases(self, path, kind=fcntl.F_WRLCK):
        tenant = Tenant(path, kind)
        tenant.stop()
        return tenant.said == "leased"

    def held(self, lab, path):
        lab.wait(lambda: not self.leases(path), f"{path} is open somewhere")

    def test_shared_files_cannot_be_leased(self):
        lab = self.lab(cards=TWO_CARDS)
        a, b = (self.started(lab, self.place(lab, pod(name, container("main", 2)), 1)) for name in "ab")
        shared = {inside for inside in ALL if os.stat(a.options["mounts"][inside][0]).st_ino == os.stat(b.options["mounts"][inside][0]).st_ino}
        self.assertEqual(shared, DIRECTORIES | {f"{INSIDE}/libaliquot.so"}, "a directory cannot be leased")
        self.assertFalse(self.leases(a.options["mounts"][f"{INSIDE}/libaliquot.so"][0]))
        os.mkdir(os.path.join(lab.state, "gate"))
        lab.restart_agent()
        lab.wait_ready()
        for name in "libaliquot.so", "ld.so.preload":  # mounted in pods of an older agent
            self.assertFalse(self.leases(os.path.join(lab.state, "gate", name)))
        self.assertTrue(self.leases(a.options["mounts"]["/etc/ld.so.preload"][0]), "a pod may lease its own file")

    def test_the_agent_waits_for_no_lease(self):
        lab = self.lab(cards=TWO_CARDS)
        c = self.started(lab, self.place(lab, pod("a", container("main", 2)), 1))
        old = os.path.join(lab.state, "gate")  # for pods of an older agent
        os.mkdir(old)
        lab.restart_agent()
        lab.wait_ready()
        for path in c.options["mounts"][f"{INSIDE}/libaliquot.so"][0], f"{old}/libaliquot.so", f"{old}/ld.so.preload":
            lab.agent.stop()
            with open(path, "rb") as f:
                text = f.read()
            mounted = path + ".mounted"
            os.link(path, mounted)
            tenant = self.tenant(mounted)
            self.assertEqual(tenant.said, "leased")
            lab.start_agent()
            lab.wait_ready()
            self.assertFalse(os.path.samefile(path, mounted), "a new file is there, without a lease")
            with open(path, "rb") as f:
                self.assertEqual(f.read(), text)
            self.held(lab, path)
            self.held(lab, mounted)
            self.assertEqual(tenant.process.stdout.readline().strip(), "given up")

    def test_the_arbiter_opens_leased_pages(self):
        for name, kind in ("limits", fcntl.F_RDLCK), ("limits", fcntl.F_WRLCK), ("counters", fcntl.F_RDLCK), ("counters", fcntl.F_WRLCK):
            with self.subTest(name=name, kind=kind):
                lab = self.lab(cards=TWO_CARDS)
                c = self.started(lab, self.place(lab, pod("a", container("main", 2, 30)), 1))
                page, path = (c.options["mounts"][f"{INSIDE}/slice/0/{n}"][0] for n in ("limits", name))

                def seen():
                    return slice_page.seen(page)
                lab.wait(seen, "it is seen")
                self.assertFalse(self.leases(path, kind), "while there is an arbiter")
                lab.agent.kill()
                lab.wait(lambda: not any("aliquot-arbiter" in n for n in self.children(lab)), "it is gone, too")
                tenant = self.tenant(path, kind)
                self.assertEqual(tenant.said, "leased")
                lab.start_agent()
                lab.wait_ready()
                self.held(lab, path)
                if name == "limits":
                    before = seen()
                    lab.wait(lambda: seen() > before, "its turn is written")
                tenant.stop()
                lab.agent.stop()

    def refused(self, c):
        for name in "limits", "counters":
            for kind in fcntl.F_RDLCK, fcntl.F_WRLCK:
                self.assertFalse(self.leases(c.options["mounts"][f"{INSIDE}/slice/0/{name}"][0], kind), (name, kind))

    def test_a_new_page_cannot_be_leased(self):
        """This holds before the arbiter has opened the page: the arbiter is stopped here. It also holds for a page of an earlier
        agent whose arbiter was killed and not restarted."""
        lab = self.lab(cards=TWO_CARDS)
        lab.wait(lambda: self.arbiter(lab), "there is an arbiter")
        arbiter = self.arbiter(lab)
        os.kill(arbiter, signal.SIGSTOP)
        uid = self.place(lab, pod("a", container("main", 2, 30), restartPolicy="Always"), 1)
        first = self.started(lab, uid)
        page = first.options["mounts"][f"{INSIDE}/slice/0/limits"][0]
        inode = os.stat(page).st_ino
        self.refused(first)
        lab.kubelet.finish(uid, "main")
        lab.wait(lambda: "main" in lab.running(uid) and lab.kubelet.runtime.of(uid, "main") is not first, "it runs again")
        self.assertNotEqual(os.stat(page).st_ino, inode, "its limits were made anew")
        self.refused(lab.kubelet.runtime.of(uid, "main"))
        os.kill(arbiter, signal.SIGCONT)

        lab.restart_agent()
        lab.wait_ready()
        lab.wait(lambda: self.arbiter(lab), "there is another arbiter")
        arbiter = self.arbiter(lab)
        with open(f"/proc/{arbiter}/stat") as f:
            keeper = int(f.read().rsplit(")", 1)[1].split()[1])
        os.kill(keeper, signal.SIGSTOP)
        os.kill(arbiter, signal.SIGKILL)
        for name in "limits", "counters":
            self.held(lab, os.path.join(os.path.dirname(page), name))
        self.refused(first)
        os.kill(keeper, signal.SIGCONT)

    def test_there_may_be_many_pages(self):
        """The agent has two files of each page open, the arbiter three."""
        lab = self.lab(cards=TWO_CARDS)
        lab.wait(lambda: self.arbiter(lab), "there is an arbiter")
        hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
        for pid in lab.agent.process.pid, self.arbiter(lab):
            self.assertGreaterEqual(resource.prlimit(pid, resource.RLIMIT_NOFILE)[0], min(hard, 4096))

    def arbiter(self, lab):
        return next((pid for pid, name in self.processes(lab) if name == "aliquot-arbiter"), None)

    def children(self, lab):
        return [name for _, name in self.processes(lab)]

    def processes(self, lab):
        """PIDs of the processes that have the slice directory's lock open."""
        found = []
        for pid in filter(str.isdigit, os.listdir("/proc")):
            try:
                for fd in os.listdir(f"/proc/{pid}/fd"):
                    if os.readlink(f"/proc/{pid}/fd/{fd}").startswith(lab.slices):
                        with open(f"/proc/{pid}/comm") as f:
                            found.append((int(pid), f.read().strip()))
            except OSError:
                pass
        return found


class Glutton(threading.Thread):
    """Makes the counters larger, as fast as it can, until it is stopped."""

    def __init__(self, path):
        super().__init__(daemon=True)
        self.fd, self.full, self.over = os.open(path, os.O_RDWR), 0, False
        self.start()

    def run(self):
        while not self.over:
            try:
                os.lseek(self.fd, 0, os.SEEK_END)
                os.write(self.fd, bytes(1 << 16))
            except OSError:
                self.full += 1

    def stop(self):
        self.over = True
        self.join()
        os.close(self.fd)


@unittest.skipUnless(os.environ.get(ALONE), "no private mount namespace is to be had")
class Apart(Started):
    """Slices on file systems of their own. The agent is in one mount namespace, the kubelet and the containers in the host's."""

    def apart(self, size="1", **options):
        lab = self.lab(cards=FOUR_CARDS, start=False, **options)
        run, host = os.path.join(lab.dir, "run"), os.path.join(lab.dir, "proc")
        os.mkdir(run)
        self.assertEqual(LIBC.mount(b"run", run.encode(), b"tmpfs", 0, b"size=8m"), 0, ctypes.get_errno())
        self.addCleanup(LIBC.umount2, run.encode(), MNT_DETACH)
        self.assertEqual(LIBC.mount(None, run.encode(), None, MS_SHARED, None), 0)
        os.makedirs(os.path.join(host, "1"))
        os.symlink(f"/proc/{os.getpid()}/root", os.path.join(host, "1", "root"))
        lab.slices = os.path.join(run, "slices")
        lab.extra += ["--census", "20", "--proc", host]
        self.start(lab, size)
        return lab

    def start(self, lab, size):
        lab.extra = [x for x in lab.extra if not x.startswith("--slices-size")] + [f"--slices-size={size}"]
        lab.start_agent(preexec=lambda: LIBC.unshare(CLONE_NEWNS))
        lab.wait_ready()

    def device(self, c):
        return os.stat(self.counters(c)).st_dev

    def board(self, lab):
        return os.stat(lab.slices).st_dev

    def test_a_full_slice_hinders_no_other(self):
        lab = self.apart()
        c = self.started(lab, self.place(lab, pod("glutton", container("main", 1)), 0))
        self.assertNotEqual(self.device(c), self.board(lab))
        self.assertNotEqual(self.board(lab), os.stat(os.path.dirname(lab.slices)).st_dev)
        self.assertEqual(self.events(lab, "SliceBoardUnbounded"), [])
        glutton = Glutton(self.counters(c))
        self.addCleanup(glutton.stop)
        lab.wait(lambda: glutton.full, "it has all that there is")
        others = [self.place(lab, pod(f"pod-{i}", container("main", 1)), i % 4) for i in range(50)]
        for uid in others:
            self.assertEqual(self.limits(self.started(lab, uid)).limit, 1077 * MIB)
        self.assertEqual(lab.kubelet.prestart_errors, [])
        full = glutton.full
        lab.wait(lambda: glutton.full > full, "it goes on")
        self.assertEqual(len({self.device(lab.kubelet.runtime.of(uid, "main")) for uid in others} - {self.board(lab)}), 50)
        lab.wait(lambda: self.events(lab, "SliceFileGrown"), "it is told of all the same")

    def test_the_arbiter_maps_the_pages(self):
        """The arbiter starts before the slice directory is mounted, and maps the pages of slices that come and go."""
        lab = self.apart(supervised=True)

        def seen(c):
            return slice_page.seen(c.options["mounts"][f"{INSIDE}/slice/0/limits"][0])
        a, b = (self.started(lab, self.place(lab, pod(name, container("main", 2, 20)), 1)) for name in "ab")
        lab.wait(lambda: seen(a) > 0 and seen(b) > 0, "both are seen")
        lab.api.delete(f"{PODS}/a", grace=0)
        lab.wait(lambda: len(slices(lab)) == 1, "one is gone")
        before = seen(b)
        lab.wait(lambda: seen(b) > before, "the other one is seen")
        again = self.started(lab, self.place(lab, pod("c", container("main", 2, 20)), 1))
        lab.wait(lambda: seen(again) > 0, "and one that comes")
        self.assertNotEqual(self.device(again), self.board(lab))

    def test_mounts_go_with_their_pods(self):
        lab = self.apart()
        a, b = (self.started(lab, self.place(lab, pod(name, container("main", 2)), 1)) for name in "ab")
        inode = os.stat(self.counters(b)).st_ino
        with open(self.counters(a), "rb") as f:
            lab.agent.stop()
            self.start(lab, "1")
            self.assertEqual(len(slices(lab)), 2)
            lab.api.delete(f"{PODS}/a", grace=0)
            lab.wait(lambda: len(slices(lab)) == 1, "it is gone")
            self.assertEqual(f.read(8), b"ALQCOUNT", "a container that has the file keeps it")
        self.assertEqual((os.stat(self.counters(b)).st_ino, os.path.exists(self.counters(a))), (inode, False))
        with open("/proc/self/mountinfo") as f:
            self.assertEqual(sum(f" {lab.slices}/" in line for line in f), 1)

    def test_beside_older_slices(self):
        """An upgrade: running containers keep their mounted files, and new ones get a file system of their own."""
        lab = self.apart(size="0")
        a = self.started(lab, self.place(lab, pod("a", container("main", 2)), 1))
        inode = os.stat(self.counters(a)).st_ino
        self.assertEqual(self.device(a), self.board(lab))
        lab.agent.stop()
        self.start(lab, "1")
        lab.wait(lambda: self.events(lab, "SliceBoardUnbounded"), "an Event says so")
        self.assertIn("1 slice is on it already", self.events(lab, "SliceBoardUnbounded")[0])
        b = self.started(lab, self.place(lab, pod("b", container("main", 2)), 1))
        self.assertEqual((self.device(a), os.stat(self.counters(a)).st_ino), (self.board(lab), inode))
        self.assertNotEqual(self.device(b), self.board(lab))


class Audit(Events):
    """Processes are made up: what the driver reports about them, and the pod's cgroup that they are in."""

    def audited(self, *extra):
        lab = self.lab(cards=TWO_CARDS, nvml=NVML, start=False)
        lab.proc = os.path.join(lab.dir, "proc")
        os.mkdir(lab.proc)
        lab.extra += ["--census", "20", "--proc", lab.proc, *extra]
        lab.told, lab.used = (), ()
        lab.start_agent()
        lab.wait_ready()
        return lab

    def process(self, lab, pid, uid, style="/kubepods/burstable/pod%s/0123"):
        os.mkdir(os.path.join(lab.proc, str(pid)))
        with open(os.path.join(lab.proc, str(pid), "cgroup"), "w") as f:
            f.write("12:pids:/\n0::" + (style % uid if "%s" in style else style) + "\n")

    def of(self, lab, pid, uid, name, style="/kubepods/burstable/pod%s/%s"):
        """Adds a process of that container and waits until the pod's status names it."""
        c = lab.kubelet.runtime.of(uid, name)
        pod_name = c.pod.split("/")[1]
        lab.wait(lambda: any(s.get("containerID") == "containerd://" + c.id for kind in ("containerStatuses", "initContainerStatuses")
                             for s in lab.get(pod_name).get("status", {}).get(kind, [])), f"{name}'s status names it")
        self.process(lab, pid, None, style.replace("%s", uid, 1).replace("%s", c.id, 1))
        lab.machine([*lab.told, (0, pid, 1)], lab.used)
        lab.wait(lambda: self.container(lab, pid) == name, f"process {pid} is known as {name}'s")
        lab.machine(lab.told, lab.used)

    def container(self, lab, pid):
        for k in lab.metrics():
            if k.startswith("DCGM_CUSTOM_PROCESS_MEM_USED") and f'ProcessId="{pid}"' in k:
                return k.split('ContainerName="')[1].split('"')[0]
        return None

    def test_processes_have_their_names(self):
        """Processes choose their names: no byte of them breaks the line of a metric."""
        lab = self.audited()
        names = {100: (b"python3\n", "python3"), 101: (b'a"b\\c\n', 'a\\"b\\\\c'), 102: (b"\xff\x00\x1b\nx\n", "???"), 103: (b"y" * 200, ""),
                 104: (None, "")}
        for pid, (comm, _) in names.items():
            self.process(lab, pid, None, "/user.slice")
            if comm is not None:
                with open(os.path.join(lab.proc, str(pid), "comm"), "wb") as f:
                    f.write(comm)
        self.tell(lab, *((0, pid, 5) for pid in names))
        for pid, (_, shown) in names.items():
            lab.wait(lambda: self.process_mib(lab, pid) == 5, "it is known")
            self.assertEqual([k.split('ProcessName="')[1].split('",AllocateMode')[0] for k in lab.metrics()
                              if k.startswith("DCGM_CUSTOM_PROCESS_MEM_USED{") and f'ProcessId="{pid}"' in k], [shown])

    def excesses(self, lab):
        return lab.metrics()["aliquot_node_excesses_total"]

    def notes(self, lab):
        return [e.get("note") or e.get("message", "") for e in lab.api.get("/api/v1/namespaces/default/events")["items"]
                if e["reason"] == "GPUMemoryExceeded"]

    def used(self, lab, name):
        return sum(v for k, v in lab.metrics().items() if k.startswith("DCGM_CUSTOM_PROCESS_MEM_USED") and
                   f'PodName="{name}"' in k)

    def censuses(self, lab, n=5):
        """Waits for at least so many more reads of the driver."""
        for i in range(n):
            lab.machine([*lab.told, (1, 900 + i, 7 + i)], lab.used)
            lab.wait(lambda: self.process_mib(lab, 900 + i) == 7 + i, "another census")
        lab.machine(lab.told, lab.used)

    def tell(self, lab, *processes, used=()):
        lab.told, lab.used = processes, used
        lab.machine(processes, used)

    def process_mib(self, lab, pid):
        return sum(v for k, v in lab.metrics().items() if k.startswith("DCGM_CUSTOM_PROCESS_MEM_USED") and
                   f'ProcessId="{pid}"' in k)

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
        self.censuses(lab, 10)
        self.tell(lab, (1, 101, 9000), (1, 103, 4000))
        lab.wait(lambda: self.excesses(lab) == 2, "and once more when it was over in between")

    def test_by_container(self):
        """One of two containers uses what the other leaves: the pod's sum is right, the container's is not."""
        lab = self.audited()
        uid = self.place(lab, pod("a", container("main", 2), container("second", 3), init=[container("ini", 5)],
                                  annotations={"fake/run-ini": "0"}), 1)
        lab.wait(lambda: set(lab.running(uid)) == {"main", "second"}, "they run")
        self.of(lab, 101, uid, "main")
        self.of(lab, 102, uid, "second", "/../kubepods-burstable-pod%s.slice/cri-containerd-%s.scope/docker/0")
        self.tell(lab, (1, 101, 2154 + 64), (1, 102, 3232 + 64))
        self.censuses(lab)
        self.assertEqual(self.excesses(lab), 0, "64 MiB above are not yet too many, for each of them")
        self.tell(lab, (1, 101, 2154 + 65), (1, 102, 100))
        lab.wait(lambda: self.excesses(lab) == 1, "one more is, though the other has room")
        lab.wait(lambda: self.notes(lab), "an Event says so")
        self.assertRegex(self.notes(lab)[0], "^container main: holds 2219 MiB of gpu1, and its slice is 2154 MiB: process 101 is")
        self.assertEqual([(k.split('ContainerName="')[1].split('"')[0], v) for k, v in lab.metrics().items()
                          if k.startswith("aliquot_node_excess_mib{")], [("main", 65)])
        self.tell(lab, (1, 101, 2000), (1, 102, 9000))
        lab.wait(lambda: self.excesses(lab) == 2, "the other one")
        lab.wait(lambda: any("container second: holds 9000 MiB" in n for n in self.notes(lab)), "an Event says so")
        self.censuses(lab)
        self.assertEqual(self.excesses(lab), 2, "told once, and not of the pod again")

    def test_unknown_containers_count_for_the_pod(self):
        lab = self.audited()
        uid = self.place(lab, pod("a", container("main", 2), container("second", 3)), 1)
        lab.wait(lambda: set(lab.running(uid)) == {"main", "second"}, "they run")
        self.of(lab, 101, uid, "main")
        self.process(lab, 102, uid, "/kubepods/burstable/pod%s")
        self.tell(lab, (1, 101, 1000), (1, 102, 2154 + 3232 + 64 - 1000))
        self.censuses(lab)
        self.assertEqual(self.excesses(lab), 0)
        self.tell(lab, (1, 101, 1000), (1, 102, 2154 + 3232 + 65 - 1000))
        lab.wait(lambda: self.excesses(lab) == 1, "together it is too much")
        lab.wait(lambda: self.notes(lab), "an Event says so")
        self.assertRegex(self.notes(lab)[0], "^holds 5451 MiB of gpu1, and its slice is 5386 MiB: .*another one of the pod")

    def test_a_container_without_a_slice(self):
        """A container without a slice in a pod that has one: any memory is too much."""
        lab = self.audited()
        uid = self.place(lab, pod("a", container("main", 4), container("idle")), 1)
        lab.wait(lambda: set(lab.running(uid)) == {"main", "idle"}, "they run")
        self.of(lab, 101, uid, "idle")
        self.tell(lab, (1, 101, 64))
        self.censuses(lab)
        self.assertEqual(self.excesses(lab), 0)
        self.tell(lab, (1, 101, 65))
        lab.wait(lambda: any("container idle: holds 65 MiB of gpu1, and its slice is 0 MiB" in n for n in self.notes(lab)),
                 "an Event says so")

    def test_init_containers_are_audited(self):
        lab = self.audited()
        uid = self.place(lab, pod("a", container("main", 4), init=[container("ini", 2)], annotations={"fake/run-ini": "3600"}), 1)
        lab.wait(lambda: lab.running(uid) == ["ini"], "it runs")
        self.of(lab, 101, uid, "ini")
        self.tell(lab, (1, 101, 2154 + 65))
        lab.wait(lambda: any("container ini: holds 2219 MiB" in n for n in self.notes(lab)), "an Event says so")

    def test_disabled_containers_may_exceed(self):
        lab = self.audited()
        uid = self.place(lab, pod("a", container("main", 2, env=[{"name": "CGPU_DISABLE", "value": "1"}])), 1)
        lab.wait(lambda: lab.running(uid), "it runs")
        self.process(lab, 101, uid)
        self.tell(lab, (1, 101, 12000))
        self.censuses(lab)
        self.assertEqual(self.excesses(lab), 0)
        self.assertEqual(self.used(lab, "a"), 12000)

    def test_disabling_is_ignored_with_that_option(self):
        lab = self.audited("--ignore-cgpu-disable")
        uid = self.place(lab, pod("a", container("main", 2, env=[{"name": "CGPU_DISABLE", "value": "1"}])), 1)
        lab.wait(lambda: lab.running(uid), "it runs")
        self.process(lab, 101, uid)
        self.tell(lab, (1, 101, 12000))
        lab.wait(lambda: self.excesses(lab) == 1, "it is held to its slice")

    def test_one_container_disabled_does_not_free_the_other(self):
        lab = self.audited()
        uid = self.place(lab, pod("a", container("main", 2, env=[{"name": "CGPU_DISABLE", "value": "1"}]), container("second", 3)), 1)
        lab.wait(lambda: set(lab.running(uid)) == {"main", "second"}, "they run")
        self.of(lab, 101, uid, "main")
        self.of(lab, 102, uid, "second")
        self.tell(lab, (1, 101, 9000), (1, 102, 3000))
        self.censuses(lab)
        self.assertEqual(self.excesses(lab), 0)
        self.tell(lab, (1, 101, 9000), (1, 102, 4000))
        lab.wait(lambda: any("container second: holds 4000 MiB" in n for n in self.notes(lab)), "an Event says so")

    def test_only_the_exceeding_container_is_killed(self):
        lab = self.audited("--on-excess", "kill")
        uid = self.place(lab, pod("a", container("main", 2), container("second", 3)), 1)
        lab.wait(lambda: set(lab.running(uid)) == {"main", "second"}, "they run")
        guilty, other = (subprocess.Popen(["sleep", "600"]) for _ in range(2))
        self.addCleanup(lambda: [p.kill() or p.wait() for p in (guilty, other)])
        self.of(lab, guilty.pid, uid, "main")
        self.of(lab, other.pid, uid, "second")
        self.tell(lab, (1, guilty.pid, 9000), (1, other.pid, 3200))
        self.assertEqual(guilty.wait(120), -9)
        lab.wait(lambda: any("container main: " in n and "were killed" in n for n in self.notes(lab)), "an Event says so")
        self.assertIsNone(other.poll())

    def test_unaccounted_memory(self):
        lab = self.audited()
        uid = self.place(lab, pod("a", container("main", 8)), 1)
        lab.wait(lambda: lab.running(uid), "it runs")
        self.process(lab, 101, uid)
        self.process(lab, 102, "0" * 36)  # a cgroup like a pod's, but of no pod of this node
        os.mkdir(os.path.join(lab.proc, "103"))  # a process without a readable cgroup
        self.tell(lab, (1, 101, 4000), used=((0, 0), (1, 4000 + 64 + 32)))
        self.censuses(lab)
        self.assertEqual(self.unaccounted(lab), {"0": 0, "1": 96})
        self.assertEqual(self.strays(lab), 0, "the driver's own part of one process")
        self.tell(lab, (1, 101, 4000), used=((0, 0), (1, 4000 + 64 + 32 + 33)))
        lab.wait(lambda: self.strays(lab) == 1, "more is not")
        lab.wait(lambda: self.node_notes(lab), "an Event says so")
        self.assertRegex(self.node_notes(lab)[-1], "of the 4129 MiB that are in use of gpu1, 129 MiB are no pod's, and no process is listed")
        self.censuses(lab)
        self.assertEqual(self.strays(lab), 1, "told once")
        self.tell(lab, (1, 101, 4000), used=((0, 0), (1, 4000)))
        self.censuses(lab, 10)
        self.tell(lab, (1, 101, 4000), (1, 102, 200), (1, 103, 2000), used=((0, 0), (1, 6200)))
        lab.wait(lambda: self.strays(lab) == 2, "processes of no pod")
        lab.wait(lambda: any(re.search("2200 MiB are no pod's; process 103, which is in no pod, holds 2000 MiB", n)
                             for n in self.node_notes(lab)), "an Event says so")
        self.assertEqual(self.excesses(lab), 0)
        self.assertEqual(self.notes(lab), [])

    def test_an_older_driver_reports_no_total(self):
        lab = self.audited()
        self.tell(lab, (1, 103, 9000))
        self.censuses(lab)
        self.assertEqual((self.unaccounted(lab), self.strays(lab)), ({}, 0))

    def unaccounted(self, lab):
        return {k.split('gpu="')[1].split('"')[0]: v for k, v in lab.metrics().items()
                if k.startswith("aliquot_node_unaccounted_mib")}

    def strays(self, lab):
        return lab.metrics()["aliquot_node_unaccounted_total"]

    def node_notes(self, lab):
        return [e.get("note") or e.get("message", "") for e in lab.api.get("/api/v1/namespaces/default/events")["items"]
                if e["reason"] == "GPUMemoryUnaccounted"]

    def test_a_broken_card_stays_fenced_over_a_restart(self):
        lab = self.audited()

        def allocatable():
            return lab.node().get("status", {}).get("allocatable", {}).get(GPU_MEM)
        lab.wait(lambda: allocatable() == "30", "both are offered")
        lab.machine((), more=["xid 1 1 48"])
        lab.wait(lambda: allocatable() == "15", "one is fenced")
        fences = os.path.join(lab.state, "fences.json")
        lab.wait(lambda: os.path.exists(fences), "and remembered")
        with open(fences) as f:
            self.assertEqual([(x["uuid"], x["xid"]) for x in json.load(f)["fences"]], [("GPU-1", 48)])
        lab.machine(())  # the driver reports nothing more
        lab.restart_agent()

        def looked(words):
            return any("card index=1" in line and words in line for line in list(lab.agent.log))
        lab.wait(lambda: looked("healthy=false: XID 48"), "the first look is over")
        lab.wait(lambda: allocatable() == "15", "and one card is offered")  # none while no agent ran
        lab.agent.kill()
        with open(fences, "w") as f:
            f.write('{"fences":[{"uuid":"GPU-1","xid":')
        lab.start_agent()
        lab.wait(lambda: looked("healthy=true"), "without a fence it is a good card")
        self.assertTrue(lab.logged("passed over " + fences))
        lab.wait(lambda: allocatable() == "30", "and is offered")

    def test_killed_with_that_option(self):
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

    def test_killed_while_the_excess_lasts(self):
        """All processes are killed, however many there are, and also those that start within a census."""
        lab = self.audited("--on-excess", "kill")
        uid = self.place(lab, pod("a", container("main", 2)), 1)
        lab.wait(lambda: lab.running(uid), "it runs")
        many = [subprocess.Popen(["sleep", "600"]) for _ in range(80)]
        late = subprocess.Popen(["sleep", "600"])
        self.addCleanup(lambda: [p.kill() or p.wait() for p in (*many, late)])
        for p in (*many, late):
            self.process(lab, p.pid, uid)
        self.tell(lab, *((1, p.pid, 150) for p in many))
        for p in many:
            self.assertEqual(p.wait(120), -9)
        lab.wait(lambda: any("80 of its processes were killed" in n for n in self.notes(lab)), "an Event says how many")
        self.assertIsNone(late.poll())
        self.tell(lab, (1, late.pid, 9000))
        self.assertEqual(late.wait(120), -9)
        lab.wait(lambda: lab.metrics()["aliquot_node_killed_total"] == 81, "all are counted")

    def end(self, lab, pid):
        os.unlink(os.path.join(lab.proc, str(pid), "cgroup"))
        os.rmdir(os.path.join(lab.proc, str(pid)))

    def test_memory_of_ended_processes(self):
        """The driver names the process that allocated, but its memory lives on in another process's file."""
        lab = self.audited("--on-excess", "kill")
        uid = self.place(lab, pod("a", container("main", 2), container("second", 3)), 1)
        lab.wait(lambda: set(lab.running(uid)) == {"main", "second"}, "they run")
        heir, other = (subprocess.Popen(["sleep", "600"]) for _ in range(2))
        self.addCleanup(lambda: [p.kill() or p.wait() for p in (heir, other)])
        gone = subprocess.Popen(["true"])
        self.of(lab, gone.pid, uid, "main")
        self.of(lab, heir.pid, uid, "main")
        self.of(lab, other.pid, uid, "second")
        self.tell(lab, (1, gone.pid, 2000), (1, other.pid, 100), used=((1, 2100),))
        self.censuses(lab)
        self.end(lab, gone.pid)
        self.censuses(lab)
        self.assertEqual(self.container(lab, gone.pid), "main")
        self.assertEqual((self.excesses(lab), self.strays(lab)), (0, 0), "no container has too much")
        self.assertEqual(self.unaccounted(lab)["1"], 0)
        self.tell(lab, (1, gone.pid, 2000), (1, heir.pid, 2000), (1, other.pid, 100), used=((1, 4100),))
        self.assertEqual(heir.wait(120), -9)
        lab.wait(lambda: any(re.search("^container main: holds 4000 MiB .* 1 of 2 have ended .* were killed", n) for n in self.notes(lab)),
                 "an Event says so")
        self.assertIsNone(other.poll())
        gone.wait()

    def test_holders_that_the_driver_does_not_name(self):
        lab = self.audited("--on-excess", "kill")
        uid = self.place(lab, pod("a", container("main", 2), container("second", 3)), 1)
        lab.wait(lambda: set(lab.running(uid)) == {"main", "second"}, "they run")
        heir, other = (subprocess.Popen(["sleep", "600"]) for _ in range(2))
        self.addCleanup(lambda: [p.kill() or p.wait() for p in (heir, other)])
        for pid, name in (9999991, "main"), (heir.pid, "main"), (other.pid, "second"):  # the first PID is larger than any real one
            self.of(lab, pid, uid, name)
        self.tell(lab, (1, 9999991, 2000))
        self.censuses(lab)
        self.end(lab, 9999991)
        self.tell(lab, (1, 9999991, 9000))
        self.assertEqual(heir.wait(120), -9)
        lab.wait(lambda: any("all of the container" in n for n in self.notes(lab)), "an Event says so")
        self.assertIsNone(other.poll())

    def test_many_processes_on_a_card(self):
        lab = self.audited()
        uid = self.place(lab, pod("a", container("main", 2)), 1)
        lab.wait(lambda: lab.running(uid), "it runs")
        self.process(lab, 101, uid)
        crowd = [(1, 1000000 + i, 1) for i in range(1500)]
        self.tell(lab, *crowd, (1, 101, 9000), used=((0, 0), (1, 10500)))
        lab.wait(lambda: self.excesses(lab) == 1, "one behind all of them is seen")
        lab.wait(lambda: self.unaccounted(lab).get("1") == 1500, "and the card as a whole")
        self.assertEqual(self.events(lab, "GPUProcessesUntold"), [])
        self.tell(lab, *[(1, 1000000 + i, 1) for i in range(5000)], used=((0, 0), (1, 10500)))
        lab.wait(lambda: self.events(lab, "GPUProcessesUntold"), "more than that are told of")
        self.assertRegex(self.events(lab, "GPUProcessesUntold")[0], "GPU-1 has more than 4096 processes")
        lab.wait(lambda: "1" not in self.unaccounted(lab), "and no sum is made up")

    # ---- compute ----

    def use(self, lab, *uses, more=()):
        """Sets the time that the driver reports for processes: (card, pid, percent)."""
        lab.machine(lab.told, lab.used, more=["uses %d %d %d" % u for u in uses] + list(more))

    def util(self, lab):
        return {k.split('ProcessId="')[1].split('"')[0]: v for k, v in lab.metrics().items() if k.startswith("DCGM_CUSTOM_PROCESS_SM_UTIL{")}

    def windows(self, lab, n, *uses):
        """Waits for at least so many more windows of ten censuses."""
        for i in range(10 * n + 10):
            self.use(lab, *uses, (0, 900 + i, 7))
            lab.wait(lambda: str(900 + i) in self.util(lab), "another census")
        self.use(lab, *uses)

    def computing(self, *extra):
        lab = self.audited(*extra)
        uid = self.place(lab, pod("a", container("main", 2, 30), container("second", 3, 20)), 1)
        lab.wait(lambda: set(lab.running(uid)) == {"main", "second"}, "they run")
        return lab, uid

    def too_much(self, lab):
        return lab.metrics()["aliquot_node_compute_excesses_total"]

    def test_more_time_than_its_share(self):
        lab, uid = self.computing("--on-excess", "kill")  # the option for memory
        guilty = subprocess.Popen(["sleep", "600"])
        self.addCleanup(lambda: guilty.kill() or guilty.wait())
        self.of(lab, guilty.pid, uid, "main")
        self.of(lab, 102, uid, "second")
        self.windows(lab, 4, (1, guilty.pid, 35), (1, 102, 25))
        self.assertEqual(self.too_much(lab), 0, "5 points above are not yet too much")
        self.use(lab, (1, guilty.pid, 90), (1, 102, 10), (1, 103, 55))
        lab.wait(lambda: self.events(lab, "GPUComputeExceeded"), "an Event says so")
        self.assertRegex(self.events(lab, "GPUComputeExceeded")[0],
                         "^container main: has had [5-9][0-9].[0-9] % of the time of gpu1 for [0-9]+ s by the driver's word, and its share is "
                         f"30.0 %: process {guilty.pid} is not held by the gate$")
        excess = "aliquot_node_compute_excess_ratio{"
        lab.wait(lambda: [(k.split('ContainerName="')[1].split('"')[0], v) for k, v in lab.metrics().items()
                          if k.startswith(excess) and v > 0.3] , "as long as it lasts it is in the metrics")
        lab.wait(lambda: {p: v for p, v in self.util(lab).items() if p in (str(guilty.pid), "102", "103")} ==
                 {str(guilty.pid): 90, "102": 10, "103": 55}, "what each has is, too")
        self.windows(lab, 2, (1, guilty.pid, 90))
        self.assertEqual((self.too_much(lab), len(self.events(lab, "GPUComputeExceeded"))), (1, 1), "told once")
        self.windows(lab, 2, (1, guilty.pid, 10))
        self.assertEqual([k for k in lab.metrics() if k.startswith(excess)], [])
        self.assertIsNone(guilty.poll())
        self.assertEqual(lab.metrics()["aliquot_node_compute_killed_total"], 0)

    def test_ended_with_that_option(self):
        lab, uid = self.computing("--on-compute-excess", "kill")
        guilty, beside, other = (subprocess.Popen(["sleep", "600"]) for _ in range(3))
        self.addCleanup(lambda: [p.kill() or p.wait() for p in (guilty, beside, other)])
        for p, name in (guilty, "main"), (beside, "main"), (other, "second"):
            self.of(lab, p.pid, uid, name)
        self.use(lab, (1, guilty.pid, 90), (1, other.pid, 20))
        for p in guilty, beside:
            self.assertEqual(p.wait(120), -9)
        lab.wait(lambda: any("2 of its processes were killed" in n for n in self.events(lab, "GPUComputeExceeded")), "an Event says so")
        self.assertIsNone(other.poll())
        self.assertEqual(lab.metrics()["aliquot_node_compute_killed_total"], 2)

    def test_a_driver_that_does_not_report_use(self):
        lab, uid = self.computing()
        self.of(lab, 101, uid, "main")
        self.assertEqual(self.events(lab, "GPUUseUntold"), [])
        self.use(lab, (1, 101, 90), more=["fail uses 1 3"])
        lab.wait(lambda: self.events(lab, "GPUUseUntold"), "an Event of the node says so")
        self.assertRegex(self.events(lab, "GPUUseUntold")[0], "does not tell what processes use of GPU-1, .*: Some Error$")
        self.assertEqual(self.util(lab), {})


def alone():
    """Runs in its own mount namespace if possible, so that no mount stays behind."""
    if not os.environ.get(ALONE):
        way = ["unshare", "--mount"] if os.geteuid() == 0 else ["unshare", "--user", "--map-root-user", "--mount"]
        if not shutil.which("unshare") or subprocess.run([*way, "true"], stderr=subprocess.DEVNULL).returncode != 0:
            return
        os.environ[ALONE] = "1"
        os.execvp(way[0], [*way, sys.executable, *ARGUMENTS])


if __name__ == "__main__":
    alone()
    unittest.main(warnings="ignore")
