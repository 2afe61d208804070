#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Faults of a driver that limits the memory of pods: node_limit_faults.py ALIQUOT STORE_SERVER CLOCK_SHIM NVML

The fake NVML keeps limits and fails as it is told. Codes are those that others have seen: docs/internals/memory-limits.md."""

import contextlib
import os
import re
import shutil
import signal

from isolation_case import NVML, Started, slices
from node_case import TWO_CARDS
from node_lab import PODS, container, pod
from grpc_process import run_tests
from patience import rounds

MIB = 1 << 20
TEN_CARDS = "10xTesla-V100-SXM2-16GB:16160MiB"
QUEUE = 128  # requests about limits that may wait: LIMIT_QUEUE_MAX
NO_LIMIT = (1 << 64) - 1
CONDITION = "GPUShareMemoryLimitsUnavailable"


class Faults(Started):
    def limited(self, annotation="both", more=(), cards=TWO_CARDS, mode="cgpu", **options):
        lab = self.lab(cards=cards, mode=mode, nvml=NVML, start=False, annotations={"aliquot.dev/memory-isolation": annotation}, **options)
        lab.machine((), more=more)
        lab.start_agent()
        lab.wait_ready()
        return lab

    @staticmethod
    def lines(lab):
        """(card, limit, path) of each that was set, in order."""
        try:
            with open(os.path.join(lab.dir, "nvml.limits")) as f:
                return [(int(card), int(hard), path) for card, hard, path in map(str.split, f)]
        except FileNotFoundError:
            return []

    def forget_limits(self, lab, uid=None):
        """As by a reset of the card. uid: of this pod alone."""
        kept = [line for line in self.lines(lab) if uid and uid not in line[2].replace("_", "-")]
        path = os.path.join(lab.dir, "nvml.limits")
        with open(path + ".new", "w") as f:
            f.write("".join("%d %d %s\n" % line for line in kept))
        os.rename(path + ".new", path)

    def limit(self, lab, uid, card=0):
        """MiB; None: no limit."""
        name = "pod" + uid
        found = [hard for c, hard, path in self.lines(lab) if c == card and path.endswith((name, name.replace("-", "_") + ".slice"))]
        return found[-1] // MIB if found and found[-1] != NO_LIMIT else None

    @staticmethod
    def tried(lab, leap=0):
        lab.wait(lambda: any('mechanism="both"' in k for k in lab.metrics()), "the driver was tried", leap=leap)

    @staticmethod
    def give_up(lab, begin):
        """The kubelet gives up the start that `begin` causes, before the driver answers."""
        lab.kubelet.prestart_timeout = 1
        children = lab.agent.children(lab.agent.pid)
        for child in children:
            os.kill(child, signal.SIGSTOP)
        result = begin()
        lab.wait(lambda: lab.kubelet.prestart_errors, "the kubelet gives up")
        for child in children:
            os.kill(child, signal.SIGCONT)
        return result

    def given_up(self, lab):
        """The limit is set of a pod whose start was given up."""
        self.tried(lab)
        uid = self.give_up(lab, lambda: self.place(lab, pod("a", container("main", 2)), 0))
        lab.wait(lambda: self.limit(lab, uid) == 2154, "it is limited")
        return uid

    def told(self, lab):
        return self.events(lab, "GPUMemoryLimitFailed")

    @staticmethod
    def logged(lab, text):
        return sum(text in line for line in list(lab.agent.log))

    def limited_pod(self, lab, name="a"):
        uid = self.place(lab, pod(name, container("main", 2)), 0)
        self.started(lab, uid)
        lab.wait(lambda: self.limit(lab, uid) == 2154, "it is limited")
        return uid

    def test_a_start_that_cannot_be_limited_fails_and_is_repeated(self):
        """No right; the path is gone; a driver's own words; a driver that does not answer."""
        for name, fault, why in (("right", "fail set-limits * 4", r"\(4\)"), ("path", "fail set-limits * 17", r"\(17\)"),
                                 ("files", "fail set-limits * 6", r"\(6\)"), ("other", "fail set-limits * 999", r"\(999\)"),
                                 ("invalid", "fail set-limits * 2", r"no limit of 2154 MiB on GPU-1: 0 MiB are charged there, .* none below that: .*\(2\)"),
                                 ("read", "fail get-limits * 3", r"\(3\)"), ("hang", "hang set-limits *", "does not answer|hangs")):
            with self.subTest(fault=fault):
                lab = self.limited()
                self.limited_pod(lab, "first")  # what runs is not ended by what comes
                lab.machine((), more=[fault])
                uid = self.place(lab, pod(name, container("main", 2)), 1)
                self.not_started(lab, "main: .*(" + why + ")")
                self.assertEqual(lab.running(uid), [])
                self.assertTrue(lab.running(lab.get("first")["metadata"]["uid"]))
                lab.machine(())
                lab.wait(lambda lab=lab, uid=uid: lab.running(uid), "it starts when the driver can", leap=1)
                self.assertEqual(self.limit(lab, uid, 1), 2154)
                self.doCleanups()

    def test_an_answer_that_no_start_takes_is_dropped(self):
        """The kubelet gives up a PreStart, and does not repeat it. The pod's limit is looked after all the same."""
        lab = self.limited()
        uid = self.limited_pod(lab)
        lab.machine((), more=["hang set-limits *"])
        with self.assertRaisesRegex(Exception, "PreStartContainer"):
            lab.kubelet.manager.prestart(uid, lab.get("a")["spec"]["containers"][0], timeout=1)
        lab.machine(())
        failed = "aliquot_node_memory_limits_failed_total"
        lab.wait(lambda: lab.metrics()[failed] > 0, "the driver has not answered", leap=1)
        self.forget_limits(lab)
        lab.wait(lambda: self.limit(lab, uid) == 2154, "it is limited again", leap=1)

    def test_an_answer_that_no_first_start_takes_is_dropped(self):
        """The pod has a limit before it has started, which is looked after, and no later start takes the old answer."""
        lab = self.limited(retry=(3600, 3600))
        uid = self.given_up(lab)
        self.forget_limits(lab)
        lab.wait(lambda: self.limit(lab, uid) == 2154, "it is limited again", leap=1)
        lab.machine((), more=["fail set-limits * 999"])
        with self.assertRaisesRegex(Exception, r"\(999\)"):
            lab.kubelet.manager.prestart(uid, lab.get("a")["spec"]["containers"][0])

    def test_an_answer_for_another_size_starts_nothing(self):
        """The kubelet gave up a start for the larger one."""
        lab = self.limited(retry=(3600, 3600))
        uid = self.place(lab, pod("a", container("main", 2), restartPolicy="Always"), 0)
        self.started(lab, uid)
        sets = len(self.lines(lab))
        self.give_up(lab, lambda: lab.kubelet.finish(uid, "main", 1))
        lab.wait(lambda: len(self.lines(lab)) > sets, "the driver has answered")
        lab.annotate(f"{PODS}/a", gpu_mem="1")
        lab.wait(lambda: "gpu-mem 1 of 2" in lab.get("a")["metadata"]["annotations"].get("aliquot.dev/resize-status", ""), "the size is in force")
        lab.kubelet.manager.prestart(uid, lab.get("a")["spec"]["containers"][0])
        self.assertEqual(self.limit(lab, uid), 1077)

    def test_a_pod_that_ends_before_its_container_has_started(self):
        """Its limit was set, and is lifted, also by an agent that began after that."""
        for restarts in False, True:
            with self.subTest(restarts=restarts):
                lab = self.limited(retry=(3600, 3600))
                uid = self.given_up(lab)
                if restarts:
                    lab.restart_agent()
                    lab.wait(lambda lab=lab: lab.metrics()["aliquot_node_memory_limits"] == 1, "the limit is known", leap=1)
                lab.kubelet.runtime.keeps = True
                lab.api.delete(f"{PODS}/a", grace=0)
                lab.wait(lambda lab=lab, uid=uid: self.limit(lab, uid) is None, "it is lifted", leap=1)
                lab.wait(lambda lab=lab: lab.metrics()["aliquot_node_memory_limits"] == 0, "no limit is left", leap=1)
                self.doCleanups()

    def test_a_pod_that_ends_while_its_start_waits_for_the_driver(self):
        """The limit is set by the driver all the same, and lifted after that."""
        lab = self.limited(retry=(3600, 3600))
        self.tried(lab)
        lab.kubelet.runtime.keeps = True
        children = lab.agent.children(lab.agent.pid)
        for child in children:
            os.kill(child, signal.SIGSTOP)
        uid = self.place(lab, pod("a", container("main", 2)), 0)
        lab.wait(lambda: lab.metrics()["aliquot_node_memory_limits"] == 1, "the driver is asked")
        lab.api.delete(f"{PODS}/a", grace=0)
        lab.wait(lambda: not os.listdir(os.path.join(lab.state, "records")), "the record is gone")
        for child in children:
            with contextlib.suppress(ProcessLookupError):  # where it was stopped for long, it is ended
                os.kill(child, signal.SIGCONT)
        lab.wait(lambda: lab.metrics()["aliquot_node_memory_limits"] == 0, "the limit is lifted", leap=1)
        self.assertIsNone(self.limit(lab, uid))

    def test_a_pod_that_ends_while_its_limit_is_set(self):
        """No limit was set first. That one is there then is no other writer's work. Also where the agent has given up the driver."""
        for hangs in False, True:
            with self.subTest(hangs=hangs):
                lab = self.limited(retry=(3600, 3600))
                self.tried(lab)
                lab.kubelet.runtime.keeps = True
                lab.machine((), more=["slow"])
                uid = self.place(lab, pod("a", container("main", 2)), 0)
                lab.wait(lambda lab=lab, uid=uid: self.limit(lab, uid) == 2154, "the limit is set, and the driver has not answered")
                if hangs:
                    lab.wait(lambda lab=lab: self.logged(lab, "no answer about a memory limit"), "the driver's process is ended", leap=1)
                lab.api.delete(f"{PODS}/a", grace=0)
                lab.wait(lambda lab=lab: not os.listdir(os.path.join(lab.state, "records")), "the record is gone")
                self.assertEqual(lab.metrics()["aliquot_node_memory_limits"], 1)
                lab.machine(())
                lab.wait(lambda lab=lab: lab.metrics()["aliquot_node_memory_limits"] == 0, "the limit is lifted", leap=1)
                self.assertIsNone(self.limit(lab, uid))
                self.assertEqual(lab.metrics()["aliquot_node_memory_limits_restored_total"], 0)
                self.doCleanups()

    def test_a_driver_that_hangs_where_nothing_is_isolated(self):
        """No start fails by it: what it would be asked for is to lift what a removed cgroup may have left."""
        lab = self.limited(mode="share", retry=(3600, 3600))
        self.tried(lab)
        lab.machine((), more=["hang get-limits *"])
        uid = self.place(lab, pod("a", container("main", 2)), 0)
        self.started(lab, uid)
        self.assertEqual(lab.kubelet.prestart_errors, [])

    def test_a_start_before_the_driver_was_tried_where_nothing_is_isolated(self):
        """As of an agent that has just begun. The pod has the limit of a removed cgroup."""
        lab = self.limited(mode="share", more=["slow"], retry=(3600, 3600))
        uid = self.place(lab, pod("a", container("main", 2)), 0)
        with open(os.path.join(lab.dir, "nvml.limits"), "a") as f:
            f.write(f"0 {MIB} /sys/fs/cgroup/kubepods/burstable/pod{uid}\n")
        lab.wait(lambda: lab.metrics()["aliquot_node_starts_waiting"] == 1, "it waits")
        self.assertEqual(self.limit(lab, uid), 1)
        lab.machine(())
        self.started(lab, uid)
        self.assertIsNone(self.limit(lab, uid))

    def test_a_start_before_the_node_was_read(self):
        """An agent that was started again has what the annotation said in its state directory."""
        lab = self.limited()
        self.limited_pod(lab)
        lab.agent.kill()
        lab.relay.late = {"/api/v1/nodes": 4}
        lab.restart_agent()
        uid = self.place(lab, pod("b", container("main", 2)), 1)
        self.started(lab, uid)
        self.assertEqual(self.limit(lab, uid, 1), 2154)

    def test_a_wrong_word_after_a_restart(self):
        """What the annotation said last stays in force, whatever the default is."""
        for said, default, size in ("both", "preload", 2154), ("preload", "both", None), ("both", "auto", 2154):
            with self.subTest(said=said):
                lab = self.limited(said, extra=["--memory-isolation", default])
                self.started(lab, self.place(lab, pod("a", container("main", 2)), 0))
                lab.annotate(memory_isolation="Both")
                told = f"; {said} stays in force"
                lab.wait(lambda lab=lab, told=told: told in lab.condition("GPUShareMisconfigured").get("message", ""), "the condition says so")
                events = len(self.events(lab, "GPUShareMisconfigured"))
                lab.restart_agent()
                lab.wait(lambda lab=lab, n=events: len(self.events(lab, "GPUShareMisconfigured")) > n, "the Node was read")
                self.assertEqual([e for e in self.events(lab, "GPUShareMisconfigured") if told not in e], [])
                uid = self.place(lab, pod("b", container("main", 2)), 1)
                self.started(lab, uid)
                self.assertEqual(self.limit(lab, uid, 1), size)
                self.doCleanups()

    def test_a_word_that_changed_while_no_agent_ran(self):
        """The limits that the last agent set are lifted by one that never had them."""
        lab = self.limited()
        uid = self.limited_pod(lab)
        lab.agent.kill()
        lab.annotate(memory_isolation="preload")
        lab.restart_agent()
        lab.wait(lambda: self.limit(lab, uid) is None, "it is lifted", leap=1)
        lab.wait(lambda: lab.metrics()["aliquot_node_memory_limits"] == 0, "no limit is left", leap=1)
        self.assertTrue(lab.running(uid))

    def test_a_container_that_starts_again_while_the_api_server_is_away(self):
        """Its pod is known by the record alone, which has the size of the limit."""
        lab = self.limited()
        uid = self.place(lab, pod("a", container("main", 2), restartPolicy="Always"), 0)
        c = self.started(lab, uid)
        lab.agent.kill()
        lab.relay.late = {"/api/v1/nodes": 6, "/api/v1/pods": 6}
        self.forget_limits(lab)
        lab.restart_agent()
        lab.kubelet.finish(uid, "main", 1)
        lab.wait(lambda: lab.kubelet.runtime.of(uid, "main") is not c and lab.running(uid), "it runs again")
        self.assertEqual(self.limit(lab, uid), 2154)

    def test_the_limit_of_a_deleted_pod_whose_processes_run(self):
        """It is looked after until they have ended."""
        lab = self.limited()
        uid = self.place(lab, pod("a", container("main", 2), annotations={"fake/linger": "until-let-go"}), 0)
        self.started(lab, uid)
        lab.wait(lambda: lab.metrics()["aliquot_node_memory_limits"] == 1, "the limit is known")
        lab.api.delete(f"{PODS}/a", grace=0)
        lab.wait(lambda: uid in lab.held(), "its slice is published")
        self.forget_limits(lab)
        lab.wait(lambda: self.limit(lab, uid) == 2154, "it is set again", leap=1)
        lab.wait(lambda: lab.kubelet.lingering, "the kubelet has heard of it, too")
        lab.kubelet.let_go()
        lab.wait(lambda: lab.metrics()["aliquot_node_memory_limits"] == 0, "it is lifted", leap=1)

    def test_what_a_removed_cgroup_left_is_added(self):
        """In the driver's own account a new pod can inherit an entry with its use, which it can neither hold nor give back."""
        lab = self.limited()
        self.tried(lab)
        lab.machine((), more=["charged 5000"])  # more than the pod's own limit, which would be refused
        uid = self.place(lab, pod("b", container("main", 2)), 1)
        self.started(lab, uid)
        self.assertEqual((self.limit(lab, uid, 1), lab.kubelet.prestart_errors), (2154 + 5000, []))
        lab.machine((), more=["charged 100"])
        uid = self.place(lab, pod("a", container("main", 2)), 0)
        self.started(lab, uid)
        self.assertEqual(self.limit(lab, uid), 2154 + 100)
        lab.machine((), more=["charged 5000"])
        lab.wait(lambda: lab.metrics()["aliquot_node_memory_limits"] == 2, "the limits are known")
        self.forget_limits(lab)
        lab.wait(lambda: self.limit(lab, uid) == 5000, "a lower limit would not be in force", leap=3)
        lab.machine((), more=["charged 100"])
        lab.wait(lambda: self.limit(lab, uid) == 2154 + 100, "it follows the use down", leap=3)

    def test_a_container_that_starts_again_while_too_much_is_charged(self):
        """The refusal says how much, and why. A limit in force below the charge is left alone by the rounds before."""
        lab = self.limited()
        uid = self.place(lab, pod("a", container("main", 2), restartPolicy="Always"), 0)
        c = self.started(lab, uid)
        other = self.limited_pod(lab, "b")
        lab.wait(lambda: lab.metrics()["aliquot_node_memory_limits"] == 2, "the limits are known")
        lab.machine((), more=["charged 5000"])
        self.forget_limits(lab, other)
        lab.wait(lambda: self.limit(lab, other) == 5000, "a round has seen the charge", leap=1)
        self.assertEqual(self.limit(lab, uid), 2154)
        lab.kubelet.finish(uid, "main", 1)
        self.not_started(lab, "pod default/a: container main: no limit of 2154 MiB on GPU-0: 5000 MiB are charged there, 0 MiB of them from a removed "
                         "cgroup, and the driver takes none below that")
        lab.machine(())
        lab.wait(lambda: lab.kubelet.runtime.of(uid, "main") is not c and lab.running(uid), "it runs again", leap=1)
        self.assertEqual(self.limit(lab, uid), 2154)

    def test_more_pods_than_requests_that_may_wait(self):
        """The limit of each of them is read and set again."""
        lab = self.limited(cards=TEN_CARDS)
        n = QUEUE + 12
        uids = [self.place(lab, pod(f"p{i}", container("main", 1)), i % 10) for i in range(n)]
        for uid in uids:
            self.started(lab, uid)
        lab.wait(lambda: lab.metrics()["aliquot_node_memory_limits"] == n, "all are limited")
        last = self.lines(lab)[-1][2]
        for forgotten in "/nothing", last:  # all, and that of the pod that was limited last
            kept = [] if forgotten == "/nothing" else [line for line in self.lines(lab) if line[2] != forgotten]
            path = os.path.join(lab.dir, "nvml.limits")
            with open(path + ".new", "w") as f:
                f.write("".join("%d %d %s\n" % line for line in kept))
            os.rename(path + ".new", path)
            lab.wait(lambda: len({p for _, hard, p in self.lines(lab) if hard == 1077 * MIB}) == n, "all are limited again", leap=1)

    def test_no_limit_is_left_by_pods_that_have_come_and_gone(self):
        """Neither for a driver that forgets removed cgroups, nor for one that keeps what was set last."""
        lab = self.limited()
        total = rounds(56, 1000)
        for i in range(0, total, 28):
            uids = [self.place(lab, pod(f"p{j}", container("main", 1), restartPolicy="Never"), j % 2) for j in range(i, min(i + 28, total))]
            for uid in uids:
                self.started(lab, uid)
            lab.wait(lambda n=len(uids): lab.metrics()["aliquot_node_memory_limits"] == n, "all are limited")
            for uid in uids:
                lab.kubelet.finish(uid, "main", lab.rng.randrange(2))
            lab.wait(lambda: lab.metrics()["aliquot_node_memory_limits"] == 0, "all are lifted", leap=1)
            for j in range(i, i + len(uids)):
                lab.api.delete(f"{PODS}/p{j}", grace=0)
        last = {(card, path): hard for card, hard, path in self.lines(lab)}
        self.assertEqual(sum("pod" in path for _, path in last), total)
        self.assertEqual({hard for hard in last.values()}, {NO_LIMIT})

    def test_a_node_that_cannot_be_limited_at_all(self):
        """Forced, it is told and starts nothing; otherwise it is as a node without limits."""
        lab = self.limited(more=["fail set-limits * 4"])
        lab.wait(lambda: lab.condition(CONDITION).get("status") == "True", "the condition says so")
        self.assertIn("(4)", lab.condition(CONDITION)["message"])
        self.doCleanups()
        lab = self.limited("auto", more=["fail set-limits * 4"])
        self.started(lab, self.place(lab, pod("a", container("main", 2)), 0))
        self.assertEqual((self.lines(lab), lab.condition(CONDITION)), ([], {}))

    def test_a_trial_that_cannot_read_what_it_has_set(self):
        """Its cgroup stays until the limit is lifted: the driver's own account would keep it for the next cgroup there."""
        lab = self.limited(more=["fail get-limits * 999"])
        lab.wait(lambda: lab.condition(CONDITION).get("status") == "True", "the condition says so")
        probe = os.path.join(lab.cgroup, "aliquot.probe")
        self.assertTrue(os.path.isdir(probe))
        lab.machine(())
        self.tried(lab, leap=10)
        self.assertFalse(os.path.exists(probe))
        self.assertEqual({card: hard for card, hard, path in self.lines(lab) if path.endswith("/aliquot.probe")}, {0: NO_LIMIT, 1: NO_LIMIT})

    def test_limits_of_a_driver_that_fails_for_a_while(self):
        """What runs goes on, and its limit is set again when the driver answers. The codes: no right, no files of the controller, a cgroup
        that was removed, the driver's own words."""
        for code in 4, 6, 17, 999:
            with self.subTest(code=code):
                lab = self.limited()
                uid = self.limited_pod(lab)
                failed = lab.metrics()["aliquot_node_memory_limits_failed_total"]
                lab.machine((), more=[f"fail get-limits * {code}"])
                lab.wait(lambda lab=lab, n=failed: lab.metrics()["aliquot_node_memory_limits_failed_total"] > n, "it is counted", leap=3)
                self.forget_limits(lab)
                lab.machine(())
                lab.wait(lambda lab=lab, uid=uid: self.limit(lab, uid) == 2154, "it is set again", leap=3)
                self.assertTrue(lab.running(uid))
                self.doCleanups()

    def test_a_driver_that_hangs_under_running_pods(self):
        """Each child that does not answer is ended. The condition says why no other container starts, and what runs goes on."""
        lab = self.limited()
        uid = self.limited_pod(lab)
        lab.machine((), more=["hang get-limits *"])
        lab.wait(lambda: lab.condition(CONDITION).get("status") == "True", "the condition says so", leap=3)
        lab.wait(lambda: self.told(lab), "an Event of the pod says so")
        self.assertIn("the driver does not answer", self.told(lab)[0])
        self.forget_limits(lab)
        lab.machine(())
        lab.wait(lambda: lab.condition(CONDITION).get("status") == "False", "the driver is tried again", leap=3)
        lab.wait(lambda: self.limit(lab, uid) == 2154, "it is set again", leap=3)
        self.assertTrue(lab.running(uid))

    def test_a_pod_whose_limit_is_not_kept_is_told(self):
        """Once for each failure that is another one, and at most once a minute. Its end is logged."""
        lab = self.limited()
        uid = self.limited_pod(lab)
        lab.wait(lambda: lab.metrics()["aliquot_node_memory_limits"] == 1, "the limit is known")
        for n, (call, code) in enumerate((("get", 4), ("get", 999), ("set", 999), (None, 0), ("get", 17))):
            lab.machine((), more=[f"fail {call}-limits * {code}"] if call else [])
            self.forget_limits(lab)
            if not call:
                lab.wait(lambda: self.logged(lab, "its limit of the driver is kept again") == 1, "the end is logged", leap=1)
                continue
            words = {"get": "cannot read", "set": "cannot set"}[call], f"({code})"
            lab.wait(lambda words=words: any(all(w in note for w in words) for note in self.told(lab)), "an Event says so", leap=3)
            n = n if code == 17 else n + 1  # Events so far
            failed = lab.metrics()["aliquot_node_memory_limits_failed_total"]
            lab.wait(lambda n=failed: lab.metrics()["aliquot_node_memory_limits_failed_total"] > n + 3, "it fails again", leap=3)
            self.assertEqual((len(self.told(lab)), self.logged(lab, "its limit of the driver is not kept")), (n, n))
        self.assertEqual(len(self.told(lab)), 4)
        self.assertTrue(lab.running(uid))

    def test_a_limit_that_is_accepted_and_not_in_force_is_told(self):
        """Of a pod that runs. It is tried on, counted, and told once."""
        lab = self.limited()
        uid = self.limited_pod(lab)
        lab.wait(lambda: lab.metrics()["aliquot_node_memory_limits"] == 1, "the limit is known")
        lab.machine((), more=["deaf"])
        self.forget_limits(lab)
        lab.wait(lambda: self.told(lab), "an Event says so", leap=1)
        failed = lab.metrics()["aliquot_node_memory_limits_failed_total"]
        self.assertGreater(failed, 1)
        lab.wait(lambda: lab.metrics()["aliquot_node_memory_limits_failed_total"] > failed + 3, "it is tried on", leap=1)
        self.assertEqual(self.told(lab), ["its limit of the driver is not kept: the driver accepted the limit 2154 MiB on GPU-0, and another one is "
                                          "in force: none"])
        lab.machine(())
        lab.wait(lambda: self.logged(lab, "its limit of the driver is kept again") == 1, "the end is logged", leap=1)
        self.assertEqual(self.limit(lab, uid), 2154)
        self.assertTrue(lab.running(uid))

    def test_a_writer_that_changes_limits_all_the_time(self):
        """Each change is undone and counted; an Event comes once a minute."""
        lab = self.limited()
        uid = self.limited_pod(lab)
        lab.wait(lambda: lab.metrics()["aliquot_node_memory_limits"] == 1, "the limit is known")
        restored = "aliquot_node_memory_limits_restored_total"

        def notes():
            return self.events(lab, "GPUMemoryLimitRestored")
        for n in range(1, 6):
            self.forget_limits(lab)
            lab.wait(lambda n=n: lab.metrics()[restored] == n and self.limit(lab, uid) == 2154, "it is set again", leap=1)
        lab.wait(notes, "an Event says so")
        self.assertEqual(len(notes()), 1)
        lab.wait(lambda: self.forget_limits(lab) or len(notes()) > 1, "the next minute has another Event", leap=3)
        told = [int(re.search("were set again ([0-9]+) times so far$", note)[1]) for note in notes()]
        self.assertEqual(min(told), 1)
        self.assertGreater(max(told), 5)

    def test_a_slice_that_is_resized_while_its_start_waits_for_the_driver(self):
        """Page and limit have the new size."""
        lab = self.limited()
        uid = self.place(lab, pod("first", container("main", 2)), 1)
        self.started(lab, uid)
        known = set(slices(lab))
        children = lab.agent.children(lab.agent.pid)
        for child in children:
            os.kill(child, signal.SIGSTOP)  # where it stays so for long, the child is ended, and the start is tried again
        uid = self.place(lab, pod("a", container("main", 6)), 0)
        lab.wait(lambda: any(os.path.exists(os.path.join(lab.slices, name, "0", "limits")) for name in set(slices(lab)) - known), "it has pages")
        lab.annotate(f"{PODS}/a", gpu_mem="2")
        lab.wait(lambda: "gpu-mem 2 of 6" in lab.get("a")["metadata"]["annotations"].get("aliquot.dev/resize-status", ""), "the size is in force")
        for child in children:
            with contextlib.suppress(ProcessLookupError):
                os.kill(child, signal.SIGCONT)
        c = self.started(lab, uid)
        self.assertEqual(self.limits(c).limit // MIB, 2154)
        lab.wait(lambda: self.limit(lab, uid) == 2154, "the limit is that of the slice", leap=1)

    def test_the_limit_of_a_pod_that_ends_is_lifted(self):
        """Also where the driver fails just then: it is tried again."""
        for fault in [], ["fail set-limits * 999"]:
            with self.subTest(fault=fault):
                lab = self.limited()
                uid = self.place(lab, pod("a", container("main", 2), restartPolicy="Never"), 0)
                self.started(lab, uid)
                self.assertEqual(self.limit(lab, uid), 2154)
                lab.machine((), more=fault)
                lab.kubelet.runtime.keeps = bool(fault)  # a limit is lifted only where the cgroup is
                lab.kubelet.finish(uid, "main", 0)
                if fault:
                    lab.wait(lambda lab=lab: lab.metrics()["aliquot_node_memory_limits_failed_total"] > 0, "it is tried", leap=1)
                    lab.machine(())
                lab.wait(lambda lab=lab, uid=uid: self.limit(lab, uid) is None, "it is lifted", leap=1)
                lab.wait(lambda lab=lab: lab.metrics()["aliquot_node_memory_limits"] == 0, "no limit is left", leap=1)
                self.doCleanups()

    def test_an_ended_pod_whose_limit_cannot_be_lifted_is_forgotten(self):
        """The driver refuses for good, and the cgroup stays or is removed."""
        for removed in False, True:
            with self.subTest(removed=removed):
                lab = self.limited()
                uid = self.place(lab, pod("a", container("main", 2), restartPolicy="Never"), 0)
                self.started(lab, uid)
                lab.kubelet.runtime.keeps = True
                lab.machine((), more=["fail get-limits * 6"])
                lab.kubelet.finish(uid, "main", 0)
                lab.wait(lambda lab=lab: lab.metrics()["aliquot_node_memory_limits_failed_total"] > 2, "it is tried", leap=1)
                if removed:
                    shutil.rmtree(lab.kubelet.runtime._pod_dirs(uid)[0])
                lab.wait(lambda lab=lab: lab.metrics()["aliquot_node_memory_limits"] == 0, "it is forgotten", leap=1)
                if not removed:  # the log is read by a thread of its own
                    lab.wait(lambda lab=lab: self.logged(lab, "limit of the driver is not lifted"), "the log says so")
                self.assertEqual(self.logged(lab, "limit of the driver is not lifted"), not removed)
                self.doCleanups()


if __name__ == "__main__":
    run_tests(warnings="ignore")
