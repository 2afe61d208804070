# SPDX-License-Identifier: Apache-2.0
"""The node object: labels, resources by mode, and a change of mode under pods."""

import json
import os
import subprocess

import audit
import kube
import programs
import suite
from kube import container, pod


def condition(reason):
    found = [c for c in kube.get("node", suite.World.node)["status"]["conditions"] if c.get("reason") == reason]
    return found[0] if found else None


class Node(suite.Scenario):
    def test_what_it_says_of_its_cards(self):
        node = kube.get("node", suite.World.node)
        labels, notes = node["metadata"]["labels"], node["metadata"]["annotations"]
        cards = audit.cards_of(node)
        self.assertEqual(int(labels["aliyun.accelerator/nvidia_count"]), len(cards))
        self.assertEqual(labels["aliyun.accelerator/nvidia_name"], cards[0]["model"].replace(" ", "-"))
        self.assertRegex(labels["aliyun.accelerator/nvidia_mem"], r"^[0-9]+MiB$")
        self.assertEqual(notes["aliquot.dev/gpu-mem-unit"], "GiB")
        self.assertEqual(len({c["uuid"] for c in cards.values()}), len(cards))
        for at in ("capacity", "allocatable"):
            have = node["status"][at]
            self.assertEqual(int(have[kube.MEM]), sum(c["units"] for c in cards.values()))
            self.assertEqual(int(have[kube.COUNT]), len(cards))
            self.assertEqual(int(have.get(kube.CORE, 0)), 0)

    def test_resources_by_mode(self):
        for mode in ("share", "core_mem", "cgpu", "default", "share", "disabled", "core_mem"):
            with self.subTest(mode=mode):
                # waits until capacity and allocatable have the resource, and 0 for the others
                suite.switch_mode(mode)

    def test_a_removed_label_changes_nothing(self):
        before = suite.allocatable(kube.MEM)
        suite.node_labels(mode=None)
        self.run_pods(pod("still", container("main", 2)))
        self.assertEqual(suite.allocatable(kube.MEM), before)

    def test_mode_waits_for_the_last_slice(self):
        self.run_pods(pod("holder", container("main", 2)))
        suite.node_labels(mode="core_mem")
        said = kube.until("no condition tells of the wait", lambda: condition("GPUShareModeKept"))
        self.assertIn("holder", said["message"])
        kube.until("no Event tells of the wait", lambda: [e for e in kube.get("events", namespace="default")
                                                          if e["reason"] == "GPUShareModeKept"])
        self.assertEqual(suite.allocatable(kube.CORE), 0)
        self.assertEqual(kube.get("node", suite.World.node)["metadata"]["labels"].get("aliquot.dev/holds-slices"), "true")
        self.audit()
        kube.kubectl("delete", "pod", "holder", "-n", kube.NAMESPACE, "--wait=true")
        kube.until("the mode does not switch", lambda: suite.allocatable(kube.CORE) == 100 * suite.card_count())
        kube.until("the condition stays", lambda: not condition("GPUShareModeKept"))

    def test_inspect(self):
        self.run_pods(pod("a", container("main", 2)), pod("b", container("main", 3)))
        audits = self.audit()
        node = kube.get("node", suite.World.node)
        cards = audit.cards_of(node)
        env = {**os.environ, "PATH": os.path.dirname(programs.program("kubectl-inspect-cgpu")) + ":" + os.environ["PATH"]}
        out = subprocess.run([programs.program("kubectl-inspect-cgpu"), suite.World.node], capture_output=True, text=True,
                             check=True, env=env, timeout=60).stdout
        row = [line for line in out.splitlines() if line.startswith(suite.World.node)][0].split()
        want = [f"{sum(a.holds(i) for a in audits.values())}/{c['units']}" for i, c in sorted(cards.items())]
        total = sum(c["units"] for c in cards.values())
        self.assertEqual(row[2:], want + [f"5/{total}"])
        self.assertIn(f"5/{total} ({5 * 100 // total}%)", out)
        text = subprocess.run([programs.program("kubectl-inspect-cgpu"), "-o", "json"], capture_output=True, text=True,
                              check=True, env=env, timeout=60).stdout
        mine = [n for n in json.loads(text)["nodes"] if n["name"] == suite.World.node]
        self.assertEqual(mine, [n for n in suite.World.programs.inspect()["nodes"] if n["name"] == suite.World.node])


class Unit(suite.Scenario):
    """A change of the unit below running pods would change the meaning of every number on the node.
    """

    def setUp(self):
        super().setUp()
        self.restart_with = suite.World.programs.restart_with_unit
        if suite.World.programs.what == "deployed before":
            self.skipTest("the unit is an option of the agent: what others have deployed is not changed")

    def unit(self):
        return kube.get("node", suite.World.node)["metadata"]["annotations"].get("aliquot.dev/gpu-mem-unit")

    def test_kept_until_the_last_slice_is_gone(self):
        self.run_pods(pod("holder", container("main", 2)))
        self.addCleanup(lambda: kube.until("the unit does not come back", lambda: self.unit() == "GiB"))
        self.addCleanup(self.restart_with, "GiB")
        self.restart_with("512MiB")
        said = kube.until("no condition tells of the wait", lambda: condition("GPUMemoryUnitKept"))
        self.assertIn("holder", said["message"])
        self.assertEqual(self.unit(), "GiB")
        self.audit()
        kube.kubectl("delete", "pod", "holder", "-n", kube.NAMESPACE, "--wait=true")
        kube.until("the unit does not change", lambda: self.unit() == "512MiB")
        self.run_pods(pod("small", container("main", 3)))
        self.assertEqual(self.env("small")["ALIYUN_COM_GPU_MEM_UNIT"], "512MiB")
        self.audit()
        kube.kubectl("delete", "pod", "small", "-n", kube.NAMESPACE, "--wait=true")


class StaticPod(suite.Scenario):
    def test_placed_by_the_node(self):
        directory = os.environ.get("E2E_STATIC_DIR")
        if not directory:
            self.skipTest("E2E_STATIC_DIR, the kubelet's staticPodPath on this machine, is not given")
        static = pod("static", container("main", 4))
        static["metadata"]["namespace"] = kube.NAMESPACE
        path = os.path.join(directory, "aliquot-e2e.json")
        mirror = f"static-{suite.World.node}"
        self.addCleanup(lambda: kube.until("the static pod does not end", lambda: not kube.get("pod", mirror)))
        self.addCleanup(os.unlink, path)
        with open(path + ".new", "w", encoding="utf-8") as f:
            json.dump(static, f)
        os.rename(path + ".new", os.path.join(directory, "aliquot-e2e.json"))
        kube.until("the static pod does not run", lambda: (p := kube.get("pod", mirror)) and kube.settled(p))
        env = self.env(mirror)
        self.assertEqual((env["ALIYUN_COM_GPU_MEM_CONTAINER"], env["ALIYUN_COM_GPU_MEM_POD"]), ("4", "4"))
        self.run_pods(pod("beside", container("main", 3)))
        self.assertEqual(self.ledger()["usedGPU"], 7)
