#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What `aliquot node` reports and ends by the driver's numbers: node_audit.py ALIQUOT STORE_SERVER CLOCK_SHIM NVML"""

import json
import os
import re
import subprocess

from isolation_case import NVML, Events, alone
from node_case import TWO_CARDS
from node_lab import GPU_MEM, container, pod
from grpc_process import run_tests


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
        lab.wait(lambda: lab.logged(f"holds {slice_a + 65} MiB of gpu1"), "the log has it, too, because an Event may be dropped")
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
                          if k.startswith("aliquot_node_excess_bytes{")], [("main", 65 << 20)])
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
        return {k.split('gpu="')[1].split('"')[0]: v / (1 << 20) for k, v in lab.metrics().items()
                if k.startswith("aliquot_node_unaccounted_bytes")}

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
        lab.wait(lambda: lab.logged("passed over " + fences), "the log says why")
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

    def test_the_third_kill_is_of_the_container(self):
        """Its parent makes a new process whenever one is killed. A zombie is one that takes time to end."""
        lab = self.audited("--on-excess", "kill")
        uid = self.place(lab, pod("a", container("main", 2), container("second", 3)), 1)
        lab.wait(lambda: set(lab.running(uid)) == {"main", "second"}, "they run")
        parent, other, *children = (subprocess.Popen(["sleep", "600"]) for _ in range(5))
        self.addCleanup(lambda: [p.kill() or p.wait() for p in (parent, other, *children)])
        self.of(lab, parent.pid, uid, "main")
        self.of(lab, other.pid, uid, "second")
        for p in children:
            self.assertIsNone(parent.poll())
            self.of(lab, p.pid, uid, "main")
            self.tell(lab, (1, p.pid, 9000))
            os.waitid(os.P_PID, p.pid, os.WEXITED | os.WNOWAIT)
        self.assertEqual(parent.wait(120), -9)
        self.assertIsNone(other.poll())
        lab.wait(lambda: any("all of the container" in n for n in self.notes(lab)), "the Event says so")
        events = [e for e in lab.api.get("/api/v1/namespaces/default/events")["items"] if e["reason"] == "GPUMemoryExceeded"]
        self.assertEqual([e["count"] for e in events], [3], "one Event, which is counted up")
        lab.wait(lambda: lab.metrics()["aliquot_node_killed_total"] == 4, "all are counted")

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
                         f"30.0 %: process {guilty.pid} is not held by the library$")
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
        self.assertRegex(self.events(lab, "GPUUseUntold")[0], "does not report what processes use of GPU-1, .*: Some Error$")
        self.assertEqual(self.util(lab), {})


if __name__ == "__main__":
    alone()
    run_tests(warnings="ignore")
