#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What `aliquot node` gives an isolated container: node_isolation.py ALIQUOT STORE_SERVER CLOCK_SHIM NVML"""

import ctypes
import fcntl
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

from isolation_case import (
    ALL, ALONE, DIRECTORIES, FOUR_CARDS, F_OFD_SETLK, INSIDE, LIBC, MIB, MNT_DETACH, MS_SHARED,
    Started, alone, slices)
from node_case import ONE_CARD, TWO_CARDS
from node_lab import GPU_MEM, PODS, container, pod
from grpc_process import run_tests
import page as layout
import slice_page


class Pages(Started):
    """The files of slices: what they say, and how long they stay."""

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
        self.not_started(lab, f"the pod with uid {uid} is not known from the API server yet")
        self.assertEqual(lab.running(uid), [])
        lab.store.tell("return")
        lab.wait(lambda: "main" in lab.running(uid), "it runs when the API server is back", leap=1)
        first = self.started(lab, uid)
        lab.store.tell("vanish")
        lab.restart_agent()
        lab.kubelet.finish(uid, "main", 1)
        lab.wait(lambda: lab.running(uid) and lab.kubelet.runtime.of(uid, "main") is not first, "all have started: it runs again")
        page = self.limits(lab.kubelet.runtime.of(uid, "main"))
        self.assertEqual((page.container, page.core), ("default/a/main", 30))
        lab.store.tell("return")

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

    def test_pages_go_when_their_pod_has_ended(self):
        """The object of an ended pod may stay for days. Another pod gets its devices, but not what its counters say."""
        lab = self.lab(cards=ONE_CARD)
        uid = self.place(lab, pod("a", container("main", 8)), 0)
        page = self.counters(self.started(lab, uid))
        with open(page, "r+b") as f:
            f.seek(layout.REFUSED)
            f.write(struct.pack("<Q", 44))
        lab.kubelet.finish(uid, "main")
        lab.wait_phase("a", "Succeeded")
        lab.wait(lambda: not os.path.exists(page), "its page is gone")
        self.assertEqual(slices(lab), [])
        self.assertEqual(self.counters(self.started(lab, self.place(lab, pod("b", container("main", 8)), 0))), page)
        with open(page, "rb") as f:
            self.assertEqual(struct.unpack_from("<Q", f.read(), layout.REFUSED), (0,))

    def test_counters_of_another_pod_with_these_devices_are_not_taken_over(self):
        """The kubelet gives the devices of an ended pod to the next one before the agent hears of the end."""
        lab = self.lab(cards=ONE_CARD)
        old = self.place(lab, pod("a", container("main", 15)), 0)
        page = self.counters(self.started(lab, old))
        with open(page, "r+b") as f:
            f.seek(layout.REFUSED)
            f.write(struct.pack("<Q", 44))
        lab.store.tell("fault delay 4 GET /api/v1/pods 1000000")
        lab.store.tell("fault cut-watch 2 - /api/v1/pods")
        lab.kubelet.finish(old, "main")
        lab.wait_phase("a", "Succeeded")
        uid = self.place(lab, pod("b", container("main", 15)), 0)
        lab.kubelet.events.put(("ADDED", lab.get("b")))
        self.assertEqual(self.counters(self.started(lab, uid)), page)
        with open(page, "rb") as f:
            self.assertEqual(struct.unpack_from("<Q", f.read(), layout.REFUSED), (0,))

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
            with open(lab.library, "w") as f:
                f.write("what is loaded into containers, second version")
            lab.start_agent()
            lab.wait_ready()
            lab.wait(lambda: not os.path.exists(self.counters(b)), "its page goes")
            self.assertEqual(os.stat(self.counters(a)).st_ino, inodes[0])
            self.assertNotEqual(os.stat(library).st_ino, inodes[1])
            self.assertIn("first version", old.read(), "a process that has the old file keeps it")
        with open(library) as f:
            self.assertIn("second version", f.read())

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

    def test_another_pod_of_its_name_has_no_part_in_it(self):
        """A pod with processes that write to their slice was deleted by force, and its controller has made the next one."""
        lab = self.lab(cards=TWO_CARDS, extra=["--census", "20"])
        old = self.place(lab, pod("a", container("main", 2), annotations={"fake/linger": "until-let-go"}), 1)
        counters = self.counters(self.started(lab, old))
        lab.api.delete(f"{PODS}/a", grace=0)
        lab.wait(lambda: old in lab.held(), "its processes live")
        self.started(lab, self.place(lab, pod("a", container("main", 2)), 1))
        with open(counters, "r+b") as f:
            f.truncate(1 << 30)
        lab.wait(lambda: lab.logged("had grown to"), "the log says so")
        self.assertTrue(lab.logged("(agent default/a/main): its slice's counters"))
        self.assertEqual(self.events(lab, "SliceFileGrown"), [])

    def test_no_row_for_a_process(self):
        """The library counts in the page what it refuses for want of a row. One Event, however often."""
        lab = self.lab(cards=TWO_CARDS, extra=["--census", "20"])
        c = self.started(lab, self.place(lab, pod("a", container("main", 2)), 1))
        rowless = 'aliquot_node_container_rowless_refusals_total'

        def write(n):
            with open(self.counters(c), "r+b") as f:
                f.seek(layout.ROWLESS)
                f.write(struct.pack("<Q", n))

        def value():
            return [v for name, v in lab.metrics().items() if name.startswith(rowless)]
        self.assertEqual(value(), [0])
        self.assertEqual(self.events(lab, "SliceRowsTaken"), [])
        write(1)
        lab.wait(lambda: self.events(lab, "SliceRowsTaken"), "an Event says so")
        self.assertRegex(self.events(lab, "SliceRowsTaken")[0],
                         r"^container main: memory of gpu1 was refused to a process: its slice has rows for 256 processes, and all")
        write(44)
        lab.wait(lambda: value() == [44], "the metric shows them")
        self.assertEqual(len(self.events(lab, "SliceRowsTaken")), 1)

    def test_refusals(self):
        """One Event of a container with their number, which the library counts in its page, and not one for each."""
        lab = self.lab(cards=TWO_CARDS, extra=["--census", "20", "--say-refusals"])
        c = self.started(lab, self.place(lab, pod("a", container("main", 2)), 1))
        with open(os.path.join(os.path.dirname(self.counters(c)), "limits"), "rb") as f:
            limits = f.read()
        self.assertEqual(struct.unpack_from("<I", limits, layout.FLAGS), (layout.FLAG_SAY,))
        self.assertEqual(limits[layout.ASKED:layout.ASKED + layout.ASKED_SIZE].rstrip(b"\0"), b"aliyun.com/gpu-mem: 2")
        self.assertEqual(struct.unpack_from("<Q", limits, layout.ASKED_LIMIT), struct.unpack_from("<Q", limits, layout.LIMIT))

        def write(n):
            with open(self.counters(c), "r+b") as f:
                f.seek(layout.REFUSED)
                f.write(struct.pack("<Q", n))

        def value():
            return [v for name, v in lab.metrics().items() if name.startswith("aliquot_node_container_memory_refusals_total")]
        self.assertEqual((value(), self.events(lab, "GPUMemoryRefused")), ([0], []))
        write(1)
        lab.wait(lambda: self.events(lab, "GPUMemoryRefused"), "an Event says so")
        self.assertRegex(self.events(lab, "GPUMemoryRefused")[0],
                         r"^container main: 1 allocation was refused on gpu1 since its slice was made: the slice is \d+ MiB \(aliyun.com/gpu-mem: 2\); "
                         r"the number is from counters that the container can write, and ")
        write(44)
        lab.wait(lambda: value() == [44], "the metric shows them")
        write(0)
        lab.wait(lambda: value() == [0], "whatever the container writes")
        self.assertEqual(len(self.events(lab, "GPUMemoryRefused")), 1)

    def test_counters_that_are_written_back(self):
        """A copy from before, as a container can make it. Operations only count up (src/slice/counter_word.h)."""
        lab = self.lab(cards=TWO_CARDS, extra=["--census", "20"])
        c = self.started(lab, self.place(lab, pod("a", container("main", 2)), 1))
        held = layout.ROWS + layout.LANE_HELD  # of the first lane of the first row

        def write(operation):
            with open(self.counters(c), "r+b") as f:
                f.seek(held)
                f.write(struct.pack("<Q", operation))
        done = 0

        def count():
            nonlocal done
            done += 1
            write(done)
            return done > 20
        lab.wait(count, "the counters go on")
        self.assertEqual(lab.metrics()["aliquot_node_slice_files_rewritten_total"], 0)

        def is_told():
            nonlocal done
            done += 1
            write(done if done % 2 else 0)
            return self.events(lab, "SliceFileRewritten")
        lab.wait(is_told, "an Event says so")
        self.assertRegex(self.events(lab, "SliceFileRewritten")[0], "^container main: its slice's counters .* are behind what they were")
        self.assertGreaterEqual(lab.metrics()["aliquot_node_slice_files_rewritten_total"], 1)

    def test_a_slice_of_no_pod(self):
        """`aliquot run` uses the slice directory of a Kubernetes node: the scheduler does not know it."""
        lab = self.lab(cards=TWO_CARDS, extra=["--census", "20"])
        c = self.started(lab, self.place(lab, pod("a", container("main", 2)), 1))

        def foreign():
            return sorted(v for k, v in lab.metrics().items() if k.startswith("aliquot_node_foreign_slices_bytes"))
        self.assertEqual(foreign(), [0, 0])
        run = os.path.join(lab.dir, "run-1")
        shutil.copytree(os.path.dirname(os.path.dirname(self.counters(c))), run, ignore=shutil.ignore_patterns("doorbell"))
        with open(os.path.join(run, "owner"), "w") as f:
            f.write("run 1 python3\n")
            f.flush()
            fcntl.fcntl(f, F_OFD_SETLK, struct.pack("hhqqi", fcntl.F_WRLCK, os.SEEK_SET, 0, 1, 0))
            os.rename(run, os.path.join(lab.slices, "run-1"))  # it comes with its owner: a slice without one is removed
            lab.wait(lambda: foreign() == [0, 2154 * MIB], "the metric has it")
            lab.wait(lambda: self.events(lab, "ForeignSlice"), "an Event of the node says so")
            self.assertRegex(self.events(lab, "ForeignSlice")[0], r"^slice run-1 \(run 1 python3\) has 2154 MiB of gpu1 \(GPU-")
        lab.wait(lambda: foreign() == [0, 0], "it is gone with its owner")
        self.assertEqual(len(self.events(lab, "ForeignSlice")), 1)


class Starts(Started):
    """What must be there before an isolated container starts."""

    def test_a_missing_preload_file_is_made(self):
        """Containers of the slice start again, also while the API server is away."""
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

    def test_the_state_of_another_version(self):
        """While a container runs the agent ends, and says why. Afterwards it begins with a new state."""
        lab = self.lab(cards=TWO_CARDS)
        uid = self.place(lab, pod("a", container("main", 2)), 1)
        page = self.started(lab, uid).options["mounts"][f"{INSIDE}/slice/0/limits"][0]
        lab.agent.stop()
        os.rename(os.path.join(lab.state, "records"), os.path.join(lab.state, "pods"))
        agent = lab.start_agent()
        lab.wait(lambda: agent.process.poll() is not None, "the agent ends")
        self.assertEqual(agent.process.returncode, 3)
        self.assertTrue(lab.logged(f"{lab.state} is of another version of aliquot, and the pod of {lab.state}/pods/{uid}.json still has processes"))
        self.assertTrue(os.path.exists(page))
        lab.kubelet.finish(uid, "main")
        lab.wait_phase("a", "Succeeded")
        lab.start_agent()
        lab.wait_ready()
        self.assertTrue(lab.logged("nothing of it is held: it was removed"))
        self.assertEqual((slices(lab), os.listdir(os.path.join(lab.state, "records"))), ([], []))
        self.started(lab, self.place(lab, pod("b", container("main", 2)), 1))

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
        self.not_started(lab, uid)
        self.assertEqual(lab.running(uid), [])

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
        os.unlink(lab.library)
        lab.start_agent()
        lab.wait_ready()
        uid = self.place(lab, pod("a", container("main", 2)), 1)
        self.not_started(lab, r"default/a: container main: it cannot be isolated: .*gate\.so")
        self.assertEqual(lab.running(uid), [])
        with open(lab.library, "w") as f:
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
            self.not_started(lab, re.escape(f"pod default/{name}: container main: {text}"))
            self.assertEqual(lab.running(uid), [])
        self.started(lab, self.place(lab, pod("beside", container("main", 2, volumeMounts=[{"name": "v", "mountPath": "/etc/config"}])), 1))

    def test_without_a_directory_nothing_isolated_starts(self):
        lab = self.lab(cards=TWO_CARDS, start=False)
        with open(lab.slices, "w"):
            lab.start_agent()
        lab.wait_ready()
        uid = self.place(lab, pod("a", container("main", 2)), 1)
        lab.wait(lambda: lab.kubelet.prestart_errors, "it says so", leap=1)
        self.assertEqual(lab.running(uid), [])
        os.unlink(lab.slices)
        lab.restart_agent()
        self.assertEqual(set(self.started(lab, uid).options["mounts"]), ALL)

    def test_nothing_starts_again_without_a_gate_while_the_api_server_is_away(self):
        lab = self.lab(cards=TWO_CARDS)
        uid = self.place(lab, pod("a", container("main", 2), restartPolicy="Always"), 1)
        first = self.started(lab, uid)
        os.rename(lab.library, lab.library + ".away")
        lab.store.tell("vanish")
        lab.restart_agent()
        lab.kubelet.finish(uid, "main", 1)
        lab.wait(lambda: lab.kubelet.prestart_errors, "it waits", leap=1)
        self.assertEqual(lab.running(uid), [])
        os.rename(lab.library + ".away", lab.library)
        lab.restart_agent()
        lab.wait(lambda: lab.running(uid), "it runs again")
        second = lab.kubelet.runtime.of(uid, "main")
        self.assertIsNot(second, first)
        lab.restart_agent()
        del lab.kubelet.prestart_errors[:]
        os.unlink(second.options["mounts"][f"{INSIDE}/libaliquot.so"][0])
        lab.kubelet.finish(uid, "main", 1)
        lab.wait(lambda: lab.kubelet.prestart_errors, "it waits for one that was taken away meanwhile, too", leap=1)
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
        self.not_started(lab, f"default/c: container main: cannot .*{lab.slices}")
        self.assertEqual(lab.running(uid), [])
        os.unlink(lab.slices)
        self.started(lab, uid)


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
        lab.wait(lambda: self.leases(a.options["mounts"]["/etc/ld.so.preload"][0]), "a pod may lease its own file")

    def test_the_agent_waits_for_no_lease(self):
        lab = self.lab(cards=TWO_CARDS)
        c = self.started(lab, self.place(lab, pod("a", container("main", 2)), 1))
        path = c.options["mounts"][f"{INSIDE}/libaliquot.so"][0]
        lab.agent.stop()
        with open(path, "rb") as f:
            text = f.read()
        mounted = path + ".mounted"
        os.link(path, mounted)
        lab.wait(lambda: self.leases(mounted), "no process has it open")
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
                lab.wait(lambda: self.leases(path, kind), "no process has it open")
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
            lab.wait(lambda pid=pid: resource.prlimit(pid, resource.RLIMIT_NOFILE)[0] >= min(hard, 4096), "it may have so many files open")

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
        lab.start_agent(before=["unshare", "--mount", "--propagation", "unchanged"])
        lab.wait_ready()

    def device(self, c):
        return os.stat(self.counters(c)).st_dev

    def slicedir(self, lab):
        return os.stat(lab.slices).st_dev

    def test_a_full_slice_hinders_no_other(self):
        lab = self.apart()
        c = self.started(lab, self.place(lab, pod("glutton", container("main", 1)), 0))
        self.assertNotEqual(self.device(c), self.slicedir(lab))
        self.assertNotEqual(self.slicedir(lab), os.stat(os.path.dirname(lab.slices)).st_dev)
        self.assertEqual(self.events(lab, "SliceDirUnbounded"), [])
        glutton = Glutton(self.counters(c))
        self.addCleanup(glutton.stop)
        lab.wait(lambda: glutton.full, "it has all that there is")
        others = [self.place(lab, pod(f"pod-{i}", container("main", 1)), i % 4) for i in range(50)]
        for uid in others:
            self.assertEqual(self.limits(self.started(lab, uid)).limit, 1077 * MIB)
        self.assertEqual(lab.kubelet.prestart_errors, [])
        full = glutton.full
        lab.wait(lambda: glutton.full > full, "it goes on")
        self.assertEqual(len({self.device(lab.kubelet.runtime.of(uid, "main")) for uid in others} - {self.slicedir(lab)}), 50)
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
        self.assertNotEqual(self.device(again), self.slicedir(lab))

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
        self.assertEqual(self.device(a), self.slicedir(lab))
        lab.agent.stop()
        self.start(lab, "1")
        lab.wait(lambda: self.events(lab, "SliceDirUnbounded"), "an Event says so")
        self.assertIn("1 slice is on it already", self.events(lab, "SliceDirUnbounded")[0])
        b = self.started(lab, self.place(lab, pod("b", container("main", 2)), 1))
        self.assertEqual((self.device(a), os.stat(self.counters(a)).st_ino), (self.slicedir(lab), inode))
        self.assertNotEqual(self.device(b), self.slicedir(lab))


if __name__ == "__main__":
    alone()
    run_tests(warnings="ignore")
