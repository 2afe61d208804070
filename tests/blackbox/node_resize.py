#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Other sizes for running slices, as their pods' annotations ask: node_resize.py ALIQUOT STORE_SERVER CLOCK_SHIM NVML"""

import fcntl
import os
import re
import signal

from isolation_case import FOUR_CARDS, MIB, Started, alone
from node_case import ONE_CARD, TWO_CARDS
from node_lab import PODS, container, limit_files, pod
from grpc_process import run_tests

STATUS = "aliquot.dev/resize-status"
REASON = "GPUResizeRefused"


class Resize(Started):
    def ask(self, lab, name="a", **sizes):
        """gpu_mem and gpu_core; None removes the annotation."""
        lab.annotate(f"{PODS}/{name}", **sizes)

    def status(self, lab, name="a"):
        return lab.get(name)["metadata"].get("annotations", {}).get(STATUS)

    def size(self, c, number=0):
        page = self.limits(c, number)
        return page.limit // MIB, page.core

    def until(self, lab, c, size, status, name="a"):
        lab.wait(lambda: self.size(c) == size and self.status(lab, name) == status, f"{size}, {status}", leap=1)

    def refused(self, lab, c, text, before, name="a"):
        """The page stays as it is; status and Event say why."""
        lab.wait(lambda: text in (self.status(lab, name) or ""), f"the status says {text}")
        self.assertRegex(self.status(lab, name), "^refused: .*; in force: container 0: gpu-mem ")
        lab.wait(lambda: any(text in e for e in lab.events(REASON)), "an Event says it")
        self.assertEqual(self.size(c), before)

    def test_it_shrinks_and_grows_back(self):
        lab = self.lab(cards=ONE_CARD)
        c = self.started(lab, self.place(lab, pod("a", container("main", 6, 60)), 0))
        inode = os.stat(c.options["mounts"]["/.aliquot/slice/0/limits"][0]).st_ino
        placed = {k: v.replace(" ", "") for k, v in lab.get("a")["metadata"]["annotations"].items() if "assigned" not in k.lower()}
        self.ask(lab, gpu_mem="2")
        self.until(lab, c, (2154, 60), "in force: container 0: gpu-mem 2 of 6, gpu-core 60 of 60")
        self.ask(lab, gpu_core="25")
        self.until(lab, c, (2154, 25), "in force: container 0: gpu-mem 2 of 6, gpu-core 25 of 60")
        self.ask(lab, gpu_mem="4", gpu_core='{"0":40}')
        self.until(lab, c, (4309, 40), "in force: container 0: gpu-mem 4 of 6, gpu-core 40 of 60")
        self.ask(lab, gpu_mem=None, gpu_core=None)
        self.until(lab, c, (6464, 60), None)
        self.assertEqual(os.stat(c.options["mounts"]["/.aliquot/slice/0/limits"][0]).st_ino, inode)
        now = lab.get("a")["metadata"]["annotations"]
        self.assertEqual({k: now.get(k, "").replace(" ", "") for k in placed}, placed)
        self.assertEqual(lab.events(REASON), [])

    def test_restarts(self):
        """Of the container, the agent and the kubelet; and a wish of a time without an agent."""
        lab = self.lab(cards=TWO_CARDS)
        uid = self.place(lab, pod("a", container("main", 6, 60), restartPolicy="Always"), 1)
        c = self.started(lab, uid)
        self.ask(lab, gpu_mem="2", gpu_core="30")
        status = "in force: container 0: gpu-mem 2 of 6, gpu-core 30 of 60"
        self.until(lab, c, (2154, 30), status)
        lab.kubelet.finish(uid, "main", 1)
        lab.wait(lambda: lab.kubelet.runtime.of(uid, "main") is not c and lab.running(uid), "it runs again")
        c = lab.kubelet.runtime.of(uid, "main")
        self.assertEqual(self.size(c), (2154, 30))
        lab.restart_agent()
        lab.wait_ready()
        lab.kubelet.finish(uid, "main", 1)
        lab.wait(lambda: lab.kubelet.runtime.of(uid, "main") is not c and lab.running(uid), "it runs again, by a new agent")
        c = lab.kubelet.runtime.of(uid, "main")
        self.until(lab, c, (2154, 30), status)
        lab.agent.stop()
        self.ask(lab, gpu_mem="4", gpu_core=None)
        lab.start_agent()
        lab.wait_ready()
        status = "in force: container 0: gpu-mem 4 of 6, gpu-core 60 of 60"
        self.until(lab, c, (4309, 60), status)
        lab.kubelet.restart()
        lab.wait_ready()
        # The limit of a shrunk pod is not free for another one.
        other = self.started(lab, self.place(lab, pod("b", container("main", 9, 40)), 1))
        self.assertEqual((self.size(other), self.size(c)), ((9696, 40), (4309, 60)))
        lab.agent.stop()
        self.ask(lab, gpu_mem=None)
        lab.start_agent()
        lab.wait_ready()
        self.until(lab, c, (6464, 60), None)

    def test_killed_between_record_and_page(self):
        """The record is the truth: the next agent completes the page."""
        lab = self.lab(cards=ONE_CARD)
        uid = self.place(lab, pod("a", container("main", 6)), 0)
        c = self.started(lab, uid)
        self.ask(lab, gpu_mem="2")
        self.until(lab, c, (2154, 0), "in force: container 0: gpu-mem 2 of 6")
        path, status = c.options["mounts"]["/.aliquot/slice/0/limits"][0], self.status(lab)

        def start_again(limit, expected):
            lab.agent.kill()
            lab.api.patch(f"{PODS}/a", {"metadata": {"annotations": {STATUS: status}}})
            with open(path, "r+b") as f:  # generation and limit, as if they had not been written
                f.seek(16)
                f.write((1).to_bytes(8, "little") + (limit * MIB).to_bytes(8, "little"))
            lab.start_agent()
            lab.wait_ready()
            lab.wait(lambda: self.size(c) == (expected, 0) and self.limits(c).generation % 2 == 0, "the page is completed")
        start_again(6464, 2154)
        self.ask(lab, gpu_mem=None)
        self.until(lab, c, (6464, 0), None)
        start_again(2154, 6464)

    def test_the_record_cannot_be_written(self):
        """The status does not say that a size is in force which no page has, and the agent tries again."""
        lab = self.lab(cards=ONE_CARD)
        c = self.started(lab, self.place(lab, pod("a", container("main", 6)), 0))
        limit_files(lab.agent.pid, 0)
        self.ask(lab, gpu_mem="2")
        lab.wait(lambda: re.match("waits: .*: File too large; in force: container 0: gpu-mem 6 of 6$", self.status(lab) or ""),
                 f"the status says what is in force: {self.status(lab)}")
        self.assertEqual(self.size(c), (6464, 0))
        limit_files(lab.agent.pid, None)
        self.until(lab, c, (2154, 0), "in force: container 0: gpu-mem 2 of 6")
        self.assertEqual(lab.events(REASON), [])

    @staticmethod
    def leased(f):
        try:
            fcntl.fcntl(f, fcntl.F_SETLEASE, fcntl.F_RDLCK)
        except BlockingIOError:
            return False  # the arbiter of the killed agent has not ended
        return True

    def test_the_page_cannot_be_written(self):
        """A process leased it while no agent had it open."""
        lab = self.lab(cards=ONE_CARD)
        c = self.started(lab, self.place(lab, pod("a", container("main", 6)), 0))
        lab.agent.kill()
        self.ask(lab, gpu_mem="2")
        signal.signal(signal.SIGIO, signal.SIG_IGN)  # the kernel's word that another process wants the file
        with open(c.options["mounts"]["/.aliquot/slice/0/limits"][0], "rb") as f:
            lab.wait(lambda: self.leased(f), "no process has it open to write any more")
            lab.start_agent()
            lab.wait_ready()
            lab.wait(lambda: self.status(lab) == "waits: cannot write the slice's limits: Resource temporarily unavailable",
                     "the status says that the size waits")
            self.assertEqual(self.size(c), (6464, 0))
        self.until(lab, c, (2154, 0), "in force: container 0: gpu-mem 2 of 6")
        self.assertEqual(lab.events(REASON), [])

    def test_killed_before_the_page_and_then_refused(self):
        """A wish that is refused leaves the size of the record in force, so the page must have it."""
        lab = self.lab(cards=ONE_CARD)
        c = self.started(lab, self.place(lab, pod("a", container("main", 6)), 0))
        self.ask(lab, gpu_mem="2")
        self.until(lab, c, (2154, 0), "in force: container 0: gpu-mem 2 of 6")
        lab.agent.kill()
        with open(c.options["mounts"]["/.aliquot/slice/0/limits"][0], "r+b") as f:
            f.seek(16)
            f.write((1).to_bytes(8, "little") + (6464 * MIB).to_bytes(8, "little"))
        self.ask(lab, gpu_mem="x")
        lab.start_agent()
        lab.wait_ready()
        self.refused(lab, c, 'is "x", must be a whole number', (2154, 0))

    def test_two_wishes_in_a_row(self):
        """The second status is known while the patch with the first is under way."""
        lab = self.lab(cards=ONE_CARD)
        c = self.started(lab, self.place(lab, pod("a", container("main", 6, 60)), 0))
        lab.wait(lambda: lab.metrics()["aliquot_node_patches_waiting"] == 0, "all is written")
        lab.relay.late[f"{PODS}/a"] = 2
        self.ask(lab, gpu_mem="4")
        lab.wait(lambda: lab.relay.patches(f"{PODS}/a", "gpu-mem 4 of 6"), "the first status is sent")
        self.ask(lab, gpu_core="25")
        self.until(lab, c, (4309, 25), "in force: container 0: gpu-mem 4 of 6, gpu-core 25 of 60")
        self.assertEqual(lab.metrics()["aliquot_node_repairs_total"], 0)

    def test_the_pods_are_known_before_the_cards(self):
        """No annotation says that a card holds nothing."""
        lab = self.lab(cards=ONE_CARD)
        c = self.started(lab, self.place(lab, pod("a", container("main", 6)), 0))
        lab.wait(lambda: lab.metrics()["aliquot_node_patches_waiting"] == 0, "all is written")
        lab.agent.kill()
        self.ask(lab, gpu_mem="2")
        lab.relay.late["/api/v1/nodes?"] = 1
        lab.start_agent()
        self.until(lab, c, (2154, 0), "in force: container 0: gpu-mem 2 of 6")
        found = [p["metadata"]["annotations"]["ALIYUN_COM_GPU_MEM_DEV"] for p in lab.relay.patches(f"{PODS}/a", "resize-status")]
        self.assertEqual(set(found), {"15"})

    def test_a_long_value(self):
        """It is cut at a character, so that the API server stores the status as it was sent."""
        lab = self.lab(cards=ONE_CARD)
        c = self.started(lab, self.place(lab, pod("a", container("main", 6)), 0))
        self.ask(lab, gpu_mem="a" * 63 + "\u00e9")
        self.refused(lab, c, "a" * 63 + '", must be a whole number', (6464, 0))
        self.ask(lab, gpu_mem="2")
        self.until(lab, c, (2154, 0), "in force: container 0: gpu-mem 2 of 6")
        self.assertEqual(lab.metrics()["aliquot_node_repairs_total"], 0)

    def test_bad_input(self):
        lab = self.lab(cards=ONE_CARD)
        c = self.started(lab, self.place(lab, pod("a", container("main", 6, 60)), 0))
        self.ask(lab, gpu_mem="4")
        self.until(lab, c, (4309, 60), "in force: container 0: gpu-mem 4 of 6, gpu-core 60 of 60")
        for sizes, text in (({"gpu_mem": "x"}, 'is "x", must be a whole number'), ({"gpu_mem": "-1"}, 'is "-1", must be'),
                            ({"gpu_mem": "99999999999999999999"}, "must be a whole number"), ({"gpu_mem": '{"0":{"0":1}}'}, "must be a whole number"),
                            ({"gpu_mem": "0"}, "must be 1 at least"), ({"gpu_mem": "7"}, "a slice does not grow beyond its limit"),
                            ({"gpu_mem": "16"}, '("main") 16, and its limit of aliyun.com/gpu-mem is 6'),
                            ({"gpu_mem": "1", "gpu_core": "7"}, "must be a multiple of 5"),
                            ({"gpu_mem": "1", "gpu_core": "65"}, "its limit of aliyun.com/gpu-core.percentage is 60"),
                            ({"gpu_mem": '{"1":1}', "gpu_core": None}, "names container 1, which has no limit")):
            self.ask(lab, **sizes)
            self.refused(lab, c, text, (4309, 60))
        self.ask(lab, gpu_mem="5")
        self.until(lab, c, (5386, 60), "in force: container 0: gpu-mem 5 of 6, gpu-core 60 of 60")

    def test_several_containers(self):
        lab = self.lab(cards=ONE_CARD)
        uid = self.place(lab, pod("a", container("main", 6), container("idle"), container("second", 4)), 0)
        main, second = self.started(lab, uid), self.started(lab, uid, "second")
        self.ask(lab, gpu_mem="2")
        self.refused(lab, main, "2 containers of the pod have a limit of aliyun.com/gpu-mem: it must name each", (6464, 0))
        self.ask(lab, gpu_mem='{"2": 1}')
        self.until(lab, main, (6464, 0), "in force: container 0: gpu-mem 6 of 6; container 2: gpu-mem 1 of 4")
        self.assertEqual(self.size(second), (1077, 0))

    def test_several_cards(self):
        lab = self.lab(cards=FOUR_CARDS)
        c = self.started(lab, self.place(lab, pod("a", container("main", 12), cards=4), 0, 1, 2, 3))
        self.ask(lab, gpu_mem="6")
        self.refused(lab, c, "must be a multiple of its 4 cards", (3232, 0))
        self.ask(lab, gpu_mem="8")
        self.until(lab, c, (2154, 0), "in force: container 0: gpu-mem 8 of 12")
        self.assertEqual([self.size(c, n) for n in range(4)], [(2154, 0)] * 4)

    def test_nothing_to_resize(self):
        lab = self.lab(cards=ONE_CARD)
        c = self.started(lab, self.place(lab, pod("a", container("main", 6, env=[{"name": "CGPU_DISABLE", "value": "1"}])), 0))
        self.ask(lab, gpu_mem="2")
        self.refused(lab, c, "container main is not isolated (CGPU_DISABLE)", (16160, 0))
        self.place(lab, pod("b", container("main", 2)), 0)
        lab.wait_phase("b", "Running")

    def test_a_node_that_isolates_nothing(self):
        lab = self.lab(cards=ONE_CARD, mode="share")
        self.started(lab, self.place(lab, pod("a", container("main", 6)), 0))
        self.ask(lab, gpu_mem="2")
        lab.wait(lambda: self.status(lab) == "refused: its node is in mode share, which isolates no container: there is nothing to resize; "
                 "in force: container 0: gpu-mem 6 of 6", "the status says it")

    def test_a_pod_that_is_ending(self):
        lab = self.lab(cards=ONE_CARD)
        c = self.started(lab, self.place(lab, pod("a", container("main", 6), annotations={"fake/linger": "until-let-go"}), 0))
        lab.api.delete(f"{PODS}/a", grace=30)
        lab.wait(lambda: lab.get("a")["metadata"].get("deletionTimestamp"), "it is ending")
        self.ask(lab, gpu_mem="2")
        self.refused(lab, c, "the pod is ending", (6464, 0))
        lab.kubelet.let_go()
        lab.wait(lambda: not lab.get("a"), "it is gone")

    def test_a_forged_status(self):
        lab = self.lab(cards=ONE_CARD)
        c = self.started(lab, self.place(lab, pod("a", container("main", 6)), 0))
        self.ask(lab, gpu_mem="2")
        status = "in force: container 0: gpu-mem 2 of 6"
        self.until(lab, c, (2154, 0), status)
        self.ask(lab, resize_status="in force: container 0: gpu-mem 6 of 6")
        lab.wait(lambda: self.status(lab) == status, "it is written back")
        self.assertEqual(self.size(c), (2154, 0))


if __name__ == "__main__":
    alone()
    run_tests(verbosity=2)
