#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Cards of a node that take no new slice: node_health.py ALIQUOT STORE_SERVER CLOCK_SHIM NVML"""

import json
import os
import sys
import urllib.request

NVML = sys.argv[4]
del sys.argv[4]

from node_case import TWO_CARDS, Node
from node_lab import GPU_CORE, GPU_MEM, NODE, NODE_PATH, PODS, by_card, container, pod
from grpc_process import run_tests

FOUR_CARDS = "4xTesla-V100-SXM2-16GB:16160MiB"
CORDONED = "GPUShareCardsCordoned"
NOTE = ": no new slices (annotation aliquot.dev/cordon-cards); "


def out_of_service(lab):
    """The lines that the agent writes for `aliquot smi`."""
    try:
        with open(lab.slices + ".out-of-service", encoding="utf-8") as f:
            return f.read().splitlines()
    except FileNotFoundError:
        return []


class Cordon(Node):
    def filter(self, lab, mem, cards=1):
        probe = pod("probe", container("main", mem), cards=cards)
        body = {"Pod": probe, "NodeNames": [NODE]}
        request = urllib.request.Request(f"http://{lab.extender_address}/gpushare-scheduler/filter", json.dumps(body).encode(),
                                         {"Content-Type": "application/json"})
        with urllib.request.urlopen(request, timeout=60) as answer:
            return json.load(answer)

    def fits(self, lab, mem, cards=1):
        return self.filter(lab, mem, cards)["NodeNames"] == [NODE]

    def healthy(self, lab, resource=GPU_MEM):
        """Devices that the kubelet may give out, by card."""
        return by_card(lab.kubelet.manager.healthy[resource])

    def is_said(self, lab, reason, message):
        lab.wait(lambda: lab.condition(CORDONED).get("message") == message, f"the condition says: {message}; {lab.condition(CORDONED)}")
        self.assertEqual([lab.condition(CORDONED)[k] for k in ("status", "reason")], ["True", reason])
        lab.wait(lambda: lab.events(reason) == [message], "an Event says so, once")

    def is_lifted(self, lab):
        lab.wait(lambda: [lab.condition(CORDONED).get(k) for k in ("status", "reason")] == ["False", "InService"], "the cordon is lifted")

    def test_running_slices_go_on_and_none_comes(self):
        lab = self.lab(cards=FOUR_CARDS)
        uid = self.place(lab, pod("a", container("main", 4, 20)), 1)
        lab.wait_phase("a", "Running")
        lab.schedule(with_extender=True)
        self.assertEqual(lab.condition(CORDONED), {}, "no card was ever cordoned")
        lab.annotate(cordon_cards="1, 3")
        self.is_said(lab, "GPUCardsDraining", "gpu1, gpu3" + NOTE + "held by default/a")
        lab.wait(lambda: [line.split(" ", 1)[1] for line in out_of_service(lab)] ==
                 2 * ["cordoned by annotation aliquot.dev/cordon-cards of the node"], "the file for `aliquot smi` says so")
        lab.wait(lambda: not self.fits(lab, 3, 3), "two cards are left")
        lab.wait(lambda: self.fits(lab, 30, 2), "they take slices")
        # what the pod holds stays allocatable, as it stays requested
        lab.wait(lambda: self.healthy(lab) == {0: 15, 1: 4, 2: 15}, "memory is allocatable")
        lab.wait(lambda: self.healthy(lab, GPU_CORE) == {0: 100, 1: 20, 2: 100}, "percents are allocatable")
        # a pod that no scheduler placed
        for i in range(2):
            lab.create(pod(f"b{i}", container("main", 15), nodeName=NODE))
            lab.wait_phase(f"b{i}", "Running")
        lab.create(pod("c", container("main", 1), nodeName=NODE))
        lab.wait_phase("c", "Failed")
        self.assertEqual(lab.running(uid), ["main"])
        lab.kubelet.finish(uid, "main", 0)
        self.is_said(lab, "GPUCardsDrained", "gpu1, gpu3" + NOTE + "no slice is held there")
        lab.wait(lambda: self.healthy(lab) == {0: 15, 2: 15}, "freed devices are not allocatable")
        lab.annotate(cordon_cards=None)
        self.is_lifted(lab)
        lab.wait(lambda: out_of_service(lab) == [], "the file for `aliquot smi` has no card")
        lab.wait(lambda: self.healthy(lab) == {i: 15 for i in range(4)}, "all is allocatable")
        lab.wait(lambda: self.fits(lab, 30, 2), "the cards take slices")
        self.judged(lab, ["a", "b0", "b1"])

    def test_the_kubelet_begins_again(self):
        """It refuses pods with a container that has ended when their devices are unhealthy."""
        lab = self.lab(cards=FOUR_CARDS)
        uid = self.place(lab, pod("a", container("main", 4, 20), container("short", 2, 10)), 1)
        lab.wait_phase("a", "Running")
        lab.kubelet.finish(uid, "short", 0)
        lab.annotate(cordon_cards="1")
        lab.wait(lambda: self.healthy(lab) == {0: 15, 1: 6, 2: 15, 3: 15}, "the free devices are not allocatable")
        lab.kubelet.restart(serving=lab.resources)
        lab.wait(lambda: lab.kubelet.manager.sources_ready, "the kubelet has admitted its pods")
        lab.restart_agent()
        lab.wait_ready()
        lab.wait(lambda: self.healthy(lab) == {0: 15, 1: 6, 2: 15, 3: 15}, "as before")
        self.assertEqual(lab.condition(CORDONED)["message"], "gpu1" + NOTE + "held by default/a")
        self.assertEqual(lab.kubelet.rejections, [])
        self.assertEqual([lab.phase("a"), lab.running(uid)], ["Running", ["main"]])

    def test_a_deleted_pod_whose_process_runs(self):
        """The card is not drained, not even for the moment until the Node object names the pod."""
        lab = self.lab(cards=FOUR_CARDS)
        uid = self.place(lab, pod("a", container("main", 4), annotations={"fake/linger": "until-let-go"}), 1)
        lab.wait_phase("a", "Running")
        lab.annotate(cordon_cards="1")
        self.is_said(lab, "GPUCardsDraining", "gpu1" + NOTE + "held by default/a")
        lab.api.delete(f"{PODS}/a", grace=0)
        gone = "gpu1" + NOTE + "held by 1 deleted pods whose processes still run"
        lab.wait(lambda: lab.condition(CORDONED)["message"] == gone, "the condition says so")
        lab.wait(lambda: uid in lab.held(), "its slice is published")
        lab.restart_agent()
        lab.wait_ready()
        self.assertEqual(lab.condition(CORDONED)["message"], gone)
        self.assertEqual(lab.events("GPUCardsDrained"), [])
        lab.kubelet.let_go()
        self.is_said(lab, "GPUCardsDrained", "gpu1" + NOTE + "no slice is held there")

    def test_bound_before_the_cordon(self):
        """A pod that the scheduler has placed is admitted, on the card of its annotations."""
        lab = self.lab(cards=FOUR_CARDS)
        lab.kubelet.stop()
        self.place(lab, pod("a", container("main", 4, 20)), 1)
        lab.annotate(cordon_cards="1")
        self.is_said(lab, "GPUCardsDraining", "gpu1" + NOTE + "held by default/a")
        lab.kubelet.start(serving=lab.resources)
        lab.wait_phase("a", "Running")
        self.assertEqual(lab.events("GPUPlaceImpossible"), [])
        self.judged(lab)

    def test_a_card_that_is_not_there(self):
        """The others are cordoned all the same: a card that is taken out must not lift their cordon."""
        lab = self.lab(cards=FOUR_CARDS)
        lab.annotate(cordon_cards="2,7")
        wrong = "GPUShareMisconfigured"
        lab.wait(lambda: lab.condition(wrong).get("status") == "True", "the wrong card is said")
        self.assertIn('aliquot.dev/cordon-cards is "2,7", must be ', lab.condition(wrong)["message"])
        self.assertIn("the node has no gpu7", lab.condition(wrong)["message"])
        lab.wait(lambda: self.healthy(lab) == {0: 15, 1: 15, 3: 15}, "the other one is cordoned")
        lab.annotate(cordon_cards="x")
        lab.wait(lambda: '"x"' in lab.condition(wrong)["message"], "text is said")
        self.assertIn("; 2,7 stays in force", lab.condition(wrong)["message"])
        self.assertEqual(self.healthy(lab), {0: 15, 1: 15, 3: 15})
        lab.wait(lambda: len(lab.events(wrong)) == 2, "an Event for each of both")

    def test_waiting_pods_are_woken(self):
        lab = self.lab(cards=FOUR_CARDS)
        lab.annotate(cordon_cards="0,1,2,3")
        lab.schedule(with_extender=True)
        lab.wait(lambda: "only cordoned or unhealthy cards" in self.filter(lab, 1)["FailedNodes"].get(NODE, ""), "no card is left")
        lab.scheduler.stop()  # as kube-scheduler, which does not look again by itself
        made = lab.api.post(PODS, pod("a", container("main", 1)))
        body = {"Pod": made, "NodeNames": [NODE]}
        request = urllib.request.Request(f"http://{lab.extender_address}/gpushare-scheduler/filter", json.dumps(body).encode(),
                                         {"Content-Type": "application/json"})
        with urllib.request.urlopen(request, timeout=60) as answer:
            self.assertFalse(json.load(answer)["NodeNames"])
        lab.api.patch(NODE_PATH, {"metadata": {"annotations": {"aliquot.dev/cordon-cards": None}}})
        lab.wait(lambda: "aliquot.dev/kick" in lab.get("a")["metadata"].get("annotations", {}), "the pod is woken")


class Fences(Node):
    def events(self, lab, reason):
        """(pod, note) of each Event."""
        return sorted((e["involvedObject"]["name"], e.get("note") or e.get("message", ""))
                      for e in lab.api.get("/api/v1/namespaces/default/events")["items"] if e["reason"] == reason)

    def test_pods_are_told(self):
        """Those with slices of the card, once; also when it is in service again."""
        lab = self.lab(cards=TWO_CARDS, nvml=NVML, start=False)
        lab.machine(())
        lab.start_agent()
        lab.wait_ready()
        for i, card in enumerate((0, 1, 1)):
            self.place(lab, pod(f"p{i}", container("main", 2)), card)
            lab.wait_phase(f"p{i}", "Running")
        lab.machine((), more=["xid 1 1 48"])
        note = "gpu1 (GPU-1), of which the pod has a slice, is out of service: XID 48: uncorrectable ECC error; " \
               "the pod is not ended, and the card takes no new slice"
        lab.wait(lambda: self.events(lab, "GPUCardFenced") == [("p1", note), ("p2", note)], "both are told")
        lab.wait(lambda: out_of_service(lab) == ["GPU-1 XID 48: uncorrectable ECC error"], "the file for `aliquot smi` names the card")
        lab.machine(())
        lab.restart_agent()
        lab.wait(lambda: any("card index=1" in line and "XID 48" in line for line in list(lab.agent.log)), "it is still fenced")
        lab.agent.kill()
        with open(os.path.join(lab.state, "fences.json"), "w", encoding="utf-8") as f:
            f.write("{}")  # so that it lifts at once
        lab.start_agent()
        note = "gpu1 (GPU-1) is in service again"
        lab.wait(lambda: self.events(lab, "GPUCardRecovered") == [("p1", note), ("p2", note)], "both are told")
        self.assertEqual(len(self.events(lab, "GPUCardFenced")), 2, "no agent repeats it")
        for i in range(3):
            self.assertEqual(lab.phase(f"p{i}"), "Running")


class OtherPlugin(Node):
    CONDITION = "GPUShareOtherPlugin"
    WORDS = "another plugin gives out the cards that are shared here"

    def offer(self, lab, amount):
        lab.api.patch(NODE_PATH + "/status", {"status": {"allocatable": {"nvidia.com/gpu": amount, "nvidia.com/hostdev": "8"}}})

    def test_nvidia_gpu_beside_shared_slices(self):
        lab = self.lab(cards=TWO_CARDS)
        self.assertEqual(lab.condition(self.CONDITION), {})
        self.offer(lab, "2")
        lab.wait(lambda: lab.condition(self.CONDITION).get("status") == "True", "the condition is true")
        condition = lab.condition(self.CONDITION)
        self.assertEqual(condition["reason"], "GPUOtherPlugin")
        self.assertTrue(condition["message"].startswith("the node offers 2 nvidia.com/gpu, too: " + self.WORDS), condition)
        lab.wait(lambda: lab.events("GPUOtherPlugin") == [condition["message"]], "an Event says so, once")
        self.offer(lab, "0")
        lab.wait(lambda: lab.condition(self.CONDITION).get("status") == "False", "the condition is false")
        self.offer(lab, None)
        lab.wait(lambda: lab.condition(self.CONDITION)["reason"] == "NoOtherPlugin", "and says why")

    def label(self, lab):
        return lab.node()["metadata"]["labels"].get("nvidia.com/gpu.deploy.device-plugin")

    def test_the_label_is_the_users_without_the_option(self):
        lab = self.lab(cards=TWO_CARDS, start=False)
        lab.api.patch(NODE_PATH, {"metadata": {"labels": {"nvidia.com/gpu.deploy.device-plugin": "true"}}})
        lab.start_agent()
        lab.wait_ready()
        self.assertEqual(self.label(lab), "true")

    def test_nvidias_plugin_is_kept_off(self):
        """Nothing is shared before it is gone. A node that shares goes on when it comes."""
        lab = self.lab(cards=TWO_CARDS, start=False, extra=["--keep-nvidia-plugin-off"])
        lab.api.patch(NODE_PATH, {"metadata": {"labels": {"nvidia.com/gpu.deploy.device-plugin": "true"}}})
        self.offer(lab, "2")
        lab.start_agent()
        lab.wait(lambda: self.label(lab) == "false", "the label keeps the plugin off")
        lab.wait(lambda: lab.condition(self.CONDITION).get("status") == "True", "the other plugin is named")
        lab.wait(lambda: lab.condition("GPUShareChangePending").get("message") ==
                 "label ack.node.gpu.schedule asks for mode core_mem: no card is shared before the other plugin is gone", "what it waits for")
        self.assertEqual(by_card(lab.kubelet.manager.healthy.get(GPU_MEM, ())), {})
        lab.agent.kill()
        lab.api.patch(NODE_PATH, {"metadata": {"labels": {"nvidia.com/gpu.deploy.device-plugin": "true"}}})
        lab.start_agent()
        lab.wait(lambda: self.label(lab) == "false", "the next agent keeps it off, too")
        self.assertEqual(by_card(lab.kubelet.manager.healthy.get(GPU_MEM, ())), {})
        self.offer(lab, "0")
        lab.wait_ready()
        lab.wait(lambda: lab.condition(self.CONDITION).get("status") == "False", "no other plugin is there")
        self.place(lab, pod("a", container("main", 4, 20)), 1)
        lab.wait_phase("a", "Running")
        self.offer(lab, "2")
        lab.wait(lambda: lab.condition(self.CONDITION).get("status") == "True", "it came back")
        self.assertEqual(by_card(lab.kubelet.manager.healthy[GPU_MEM]), {0: 15, 1: 15})
        lab.api.patch(NODE_PATH, {"metadata": {"labels": {"ack.node.gpu.schedule": "default"}}})
        lab.wait(lambda: "held by default/a" in lab.condition("GPUShareChangePending").get("message", ""), "the slice keeps the mode")
        self.assertEqual(self.label(lab), "false")
        lab.api.delete(f"{PODS}/a", grace=0)
        lab.wait(lambda: self.label(lab) is None, "the node is NVIDIA's again")

    def test_a_node_that_shares_nothing(self):
        lab = self.lab(cards=TWO_CARDS, mode="default", start=False)
        self.offer(lab, "2")
        lab.start_agent()
        lab.wait(lambda: lab.node()["metadata"]["labels"].get("aliyun.accelerator/nvidia_count") == "2", "the agent has published")
        self.assertEqual(lab.condition(self.CONDITION), {})
        lab.api.patch(NODE_PATH, {"metadata": {"labels": {"ack.node.gpu.schedule": "share"}}})
        lab.wait(lambda: lab.condition(self.CONDITION).get("status") == "True", "the condition is true")


class OutOfService(Node):
    """Cards that the driver keeps out of service from the agent's start: the Node says which, and why."""
    CONDITION, EVENT = "GPUShareCardsOutOfService", "GPUCardsOutOfService"

    def says(self, expect, *faults, mode="cgpu"):
        """Starts an agent on a driver with these faults; the condition and one Event have the text."""
        lab = self.lab(cards=TWO_CARDS, mode=mode, nvml=NVML, start=False)
        lab.machine((), more=faults)
        lab.start_agent()
        lab.wait(lambda: lab.condition(self.CONDITION).get("message") == expect, f"the condition: {lab.condition(self.CONDITION)}")
        self.assertEqual([lab.condition(self.CONDITION)[k] for k in ("status", "reason")], ["True", self.EVENT])
        lab.wait(lambda: lab.events(self.EVENT) == [expect], "an Event says so, once")
        return lab

    def test_no_minor_number(self):
        text = "gpu%d (GPU-%d): NVML cannot tell its minor number: Some Error"
        lab = self.says("; ".join(text % (i, i) for i in range(2)), "fail minor * 3")
        lab.machine(())
        lab.wait(lambda: lab.condition(self.CONDITION).get("status") == "False", "the driver serves the cards", leap=60)
        self.assertEqual(lab.condition(self.CONDITION)["reason"], "InService")
        lab.wait(lambda: by_card(lab.kubelet.manager.healthy[GPU_MEM]) == {0: 15, 1: 15}, "they are offered")
        lab.machine((), more=["fail minor 1 3"])
        lab.wait(lambda: lab.condition(self.CONDITION).get("message") == text % (1, 1), "one fails later", leap=60)
        lab.wait(lambda: lab.events(self.EVENT)[-1] == text % (1, 1), "an Event says so")

    def test_no_memory_info(self):
        text = "gpu%d (GPU-%d): NVML cannot tell its memory: Some Error"
        self.says("; ".join(text % (i, i) for i in range(2)), "fail memory * 3", "fail memory2 * 3")

    def test_mig(self):
        self.says("gpu1 (GPU-1): MIG is on; a card is shared only as a whole (nvidia-smi -mig 0)", "mig 1", mode="share")

    def test_a_card_that_cannot_be_opened(self):
        self.says("card 1 of the driver: NVML cannot tell its handle: GPU is lost", "fail handle 1 15")

    def test_the_first_card_cannot_be_opened(self):
        self.says("card 0 of the driver: NVML cannot tell its handle: GPU is lost", "fail handle 0 15", mode="core_mem")

    def test_no_card_can_be_opened(self):
        self.says("2 cards of the driver, the first is card 0: NVML cannot tell its handle: GPU is lost", "fail handle * 15")

    def nodes(self, lab):
        """The device node of each card, by the specification that the container runtime reads."""
        try:
            with open(os.path.join(lab.cdi, "aliquot.dev-gpu.json"), encoding="utf-8") as f:
                return {d["name"]: d["containerEdits"]["deviceNodes"][0]["path"] for d in json.load(f)["devices"]}
        except FileNotFoundError:
            return None

    def without_the_first(self, *more):
        """A lab where GPU-0 is lost, the driver was loaded again, and calls the other card by the number of the lost one."""
        lab = self.lab(cards=TWO_CARDS, nvml=NVML)
        self.assertEqual(self.nodes(lab), {"GPU-0": "/dev/nvidia0", "GPU-1": "/dev/nvidia1"})
        lab.agent.stop()
        with open(os.path.join(lab.dir, "nvml"), "w", encoding="utf-8") as f:
            f.write("".join(line + "\n" for line in ("card GPU-1 0 16160 11 Tesla V100", *more)))
        return lab

    def test_a_lost_card_does_not_keep_the_device_node_of_another(self):
        lab = self.without_the_first()
        lab.start_agent()
        lab.wait(lambda: lab.condition(self.CONDITION).get("message", "").startswith("gpu0 (GPU-0): the driver does not list it"), "it is lost")
        lab.wait(lambda: self.nodes(lab) == {"GPU-1": "/dev/nvidia0"}, f"only the other one has the node: {self.nodes(lab)}")

    def test_no_card_has_a_device_node_that_the_driver_has_not_told(self):
        """After a reboot of the node: /run is empty."""
        lab = self.without_the_first("hang init *")
        os.unlink(os.path.join(lab.cdi, "aliquot.dev-gpu.json"))
        lab.start_agent()
        lab.wait(lambda: lab.logged("the driver hangs"), "the driver hangs", leap=10)
        self.assertEqual(self.nodes(lab), None)

    def test_nothing_starts_before_the_driver_has_answered(self):
        """The specification of the earlier run is still there, and names the device file of the lost card for the other one."""
        lab = self.without_the_first("hang init *")
        lab.start_agent()
        lab.wait_ready()
        uid = self.place(lab, pod("a", container("main", 4)), 1)
        self.not_started(lab, "the driver has not answered since the node agent began")
        self.assertEqual(lab.running(uid), [])
        with open(os.path.join(lab.dir, "nvml"), "w", encoding="utf-8") as f:
            f.write("card GPU-1 0 16160 11 Tesla V100\n")
        lab.wait(lambda: lab.running(uid), "it runs when the driver answers", leap=10)
        self.assertEqual(self.nodes(lab), {"GPU-1": "/dev/nvidia0"})

    def test_a_node_that_shares_nothing_has_no_condition(self):
        lab = self.lab(cards=TWO_CARDS, mode="default", nvml=NVML, start=False)
        lab.machine((), more=["fail minor 1 3"])
        lab.start_agent()
        lab.wait(lambda: lab.node()["metadata"]["labels"].get("aliyun.accelerator/nvidia_count") == "2", "the agent has published")
        self.assertEqual(lab.condition(self.CONDITION), {})


if __name__ == "__main__":
    run_tests(verbosity=2)
