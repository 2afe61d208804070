#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""kubectl-inspect-cgpu from outside: a scripted kubectl on PATH, a terminal, and the exit status."""

import json
import os
import signal
import subprocess
import sys
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

from inspect_case import DEVICES, KUBECTL, PROGRAM, SUMMARY, Inspect, fence, mixed, node, pod, typed  # noqa: E402
from patience import PATIENCE, rounds  # noqa: E402
from terminal import Terminal  # noqa: E402

# Answers with $ANSWERS/pod and $ANSWERS/why; an absent file is a NotFound.
KUBECTL_WHY = """\
#!/bin/sh
for last; do :; done
printf '%s\\n' "$*" >> "$ANSWERS/calls"
case "$last" in
*/namespaces/$OTHER/*/why/*) file=why_there ;;
*/why/*) file=why ;;
*/v1/pods*) file=schedulers ;;
*) file=pod ;;
esac
cat "$ANSWERS/$file" 2>/dev/null || { echo "Error from server (NotFound)" >&2; exit 1; }
"""


class Why(Inspect):
    ANSWER = "asks for 60 of gpu-mem on one card; 0 of 1 GPU nodes can take it now, by their cards\n"

    def why(self, *args, pod=None, answer=ANSWER):
        self.write("kubectl", KUBECTL_WHY, 0o755)
        if pod:
            self.write("pod", json.dumps(pod))
        if answer:
            self.write("why", answer)
        env = dict(os.environ, PATH=self.folder + os.pathsep + os.environ["PATH"], ANSWERS=self.folder, OTHER="gpus")
        return self.run_program("--why", *args, env=env)

    def pending(self, **limits):
        wanted = {"aliyun.com/gpu-" + k: v for k, v in (limits or {"mem": "60"}).items()}
        return {"metadata": {"name": "p", "namespace": "team", "uid": "0a1b-2c"}, "status": {"phase": "Pending"},
                "spec": {"schedulerName": "ack-co-scheduler", "containers": [{"name": "main", "resources": {"limits": wanted}}]}}

    def test_the_scheduler_answers(self):
        self.assertEqual(self.why("team/p", pod=self.pending()),
                         (0, "team/p (scheduler: ack-co-scheduler) " + self.ANSWER, ""))
        self.assertEqual(self.calls(), ["get --raw /api/v1/namespaces/team/pods/p",
                                        "--request-timeout=10s get --raw /api/v1/namespaces/kube-system/services/aliquot-scheduler:12347/proxy"
                                        "/gpushare-scheduler/why/0a1b-2c"])

    def test_the_namespace_may_be_an_option(self):
        self.assertEqual(self.why("p", "-n", "team", "--context=c", pod=self.pending())[0], 0)
        self.assertEqual(self.calls()[0], "--context=c get --raw /api/v1/namespaces/team/pods/p")

    def test_another_scheduler(self):
        self.why("team/p", "--scheduler", "gpu/extender:80", pod=self.pending())
        self.assertIn("/namespaces/gpu/services/extender:80/proxy/", self.calls()[1])
        self.why("team/p", "--scheduler", "http://127.0.0.1:12347", "--token=secret", pod=self.pending())
        self.assertEqual(self.calls()[3], "--request-timeout=10s --server=http://127.0.0.1:12347 --kubeconfig=/dev/null get --raw "
                                          "/gpushare-scheduler/why/0a1b-2c")

    def test_an_unknown_pod(self):
        status, out, err = self.why("team/p")
        self.assertEqual((status, out), (1, ""))
        self.assertIn("pod team/p is not known, or kubectl cannot read it", err)

    def schedulers(self, *namespaces):
        self.write("schedulers", json.dumps({"kind": "PodList", "apiVersion": "v1", "items": [
            {"metadata": {"name": f"aliquot-scheduler-{i}", "namespace": name}} for i, name in enumerate(namespaces)]}))

    def test_a_scheduler_in_a_namespace_of_its_own(self):
        self.write("why_there", self.ANSWER)
        self.schedulers("gpus", "gpus")
        self.assertEqual(self.why("team/p", pod=self.pending(), answer=None), (0, "team/p (scheduler: ack-co-scheduler) " + self.ANSWER, ""))
        self.assertEqual(self.calls()[-1], "--request-timeout=10s get --raw /api/v1/namespaces/gpus/services/aliquot-scheduler:12347/proxy"
                                           "/gpushare-scheduler/why/0a1b-2c")
        self.schedulers("gpus", "other")
        status, out, err = self.why("team/p", pod=self.pending(), answer=None)
        self.assertEqual((status, out), (1, ""))
        self.assertIn("the scheduler at kube-system/aliquot-scheduler:12347 does not answer; where it is in another namespace: --scheduler NAMESPACE/", err)

    def test_no_answer_of_the_scheduler(self):
        status, out, err = self.why("team/p", pod=self.pending(), answer=None)
        self.assertEqual((status, out), (1, ""))
        self.assertIn("the scheduler at kube-system/aliquot-scheduler:12347 does not answer", err)
        self.assertIn("port-forward", err)

    def test_a_pod_with_its_cards(self):
        self.assertEqual(self.why("default/binpack-0", pod=pod()),
                         (0, "default/binpack-0 has its cards: node cn-zhangjiakou.192.168.66.139, gpu0 with 3 of gpu-mem\n", ""))
        self.assertEqual(len(self.calls()), 1)

    def resized(self, status=None, core=0, **wish):
        one = share("p", 0, 8, core)
        one["metadata"]["annotations"].update({"aliquot.dev/" + k.replace("_", "-"): v for k, v in wish.items()})
        if status is not None:
            one["metadata"]["annotations"]["aliquot.dev/resize-status"] = status
        status, out, err = self.why("default/p", pod=one)
        self.assertEqual((status, err, out.splitlines()[0].split(":")[0]), (0, "", "default/p has its cards"))
        return out.splitlines()[1:]

    def test_a_resize(self):
        done, waits = "in force: container 0: gpu-mem 6 of 8", "waits for the agent of node gpu-worker-01, which decides as soon as the containers run"
        self.assertEqual(self.resized(), [])
        self.assertEqual(self.resized(gpu_mem="6"), [f"resize: {waits}; resize-status: none yet"])
        self.assertEqual(self.resized(done, gpu_mem="6"), ["resize: " + done])
        self.assertEqual(self.resized(done, gpu_mem="4"), [f"resize: {waits}; resize-status: {done}"])
        self.assertEqual(self.resized(done), [f"resize: {waits}; resize-status: {done}"])
        refused = "refused: its node is in mode share, which isolates no container: there is nothing to resize; in force: container 0: gpu-mem 8 of 8"
        self.assertEqual(self.resized(refused, gpu_mem="4"), ["resize: " + refused])
        self.assertEqual(self.resized(done + ", gpu-core 30 of 60", 60, gpu_mem="6", gpu_core="30"), [f"resize: {done}, gpu-core 30 of 60"])
        self.assertEqual(self.resized(done + ", gpu-core 60 of 60", 60, gpu_mem="6", gpu_core="30"),
                         [f"resize: {waits}; resize-status: {done}, gpu-core 60 of 60"])

    def test_a_pod_that_asks_for_nothing(self):
        status, out, err = self.why("team/p", pod=self.pending(other="1"))
        self.assertEqual((status, out), (1, ""))
        self.assertIn("team/p asks for no aliyun.com/gpu-mem", err)

    def test_a_pod_that_fits_no_node_ever(self):
        status, out, err = self.why("team/p", pod=self.pending(**{"mem": "2", "core.percentage": "33"}))
        self.assertEqual((status, out), (1, ""))
        self.assertIn("team/p fits no node, now or later: container \"main\": aliyun.com/gpu-core.percentage is 33, must be", err)

    def test_a_pod_that_has_ended(self):
        ended = self.pending()
        ended["status"]["phase"] = "Succeeded"
        status, _, err = self.why("team/p", pod=ended)
        self.assertEqual(status, 1)
        self.assertIn("team/p has ended", err)

    def test_wrong_usage(self):
        for args in (["../nodes/x"], ["a/b/c"], ["team/p", "--from", "x"], ["team/p", "node"], [""],
                     ["team/p", "--scheduler", "extender"]):
            self.assertEqual(self.why(*args)[0], 2, args)
        for args in (["-o", "json"], ["-o", "table"], ["-w"], ["-d"], ["--used"]):
            self.assertEqual(self.why("team/p", *args),
                             (2, "", f"kubectl inspect cgpu: --why does not go with {args[0]}; see `kubectl inspect cgpu --help`\n"))
        self.assertEqual(self.run_program("--scheduler", "kube-system/x:1"),
                         (2, "", "kubectl inspect cgpu: --scheduler goes with --why alone; see `kubectl inspect cgpu --help`\n"))


def worker(name="gpu-worker-01", cards=8, mode="core_mem", units=15, model="Tesla-V100-SXM2-16GB", sick=(), unit="GiB", conditions=(),
           more=None):
    """A node as its agent describes it."""
    described = [{"index": i, "uuid": "GPU-%d" % i, "model": model, "units": units, "healthy": i not in sick} for i in range(cards)]
    allocatable = {"aliyun.com/gpu-mem": str(units * cards), "aliyun.com/gpu-count": str(cards)}
    if mode == "core_mem":
        allocatable["aliyun.com/gpu-core.percentage"] = str(100 * cards)
    return {"metadata": {"name": name, "annotations": {"aliquot.dev/cards": json.dumps(described), "aliquot.dev/mode-in-force": mode,
                                                       "aliquot.dev/gpu-mem-unit-in-force": unit, **(more or {})}},
            "status": {"allocatable": allocatable, "conditions": [
                {"type": "Ready", "status": "True", "message": "the kubelet is ready"},
                *({"type": t, "status": "True", "message": m} for t, m in conditions)]}}


def share(name, card, mem, core=0, on="gpu-worker-01", namespace="default"):
    one = pod(name, str(mem), str(card), on)
    one["metadata"]["namespace"] = namespace
    if card is None:
        del one["metadata"]["annotations"]
    if core:
        one["spec"]["containers"][0]["resources"]["limits"]["aliyun.com/gpu-core.percentage"] = str(core)
    return one


CARDS_100 = """\
NODE           CARD  MODEL                 MODE      MEMORY         ALLOCATED  CORE  PODS  HEALTH
gpu-worker-01     0  Tesla-V100-SXM2-16GB  core_mem  █████████████  15/15 GiB  100%     1  ok
gpu-worker-01     1  Tesla-V100-SXM2-16GB  core_mem  ██████░░░░░░░   7/15 GiB   50%     2  ok
gpu-worker-01     2  Tesla-V100-SXM2-16GB  core_mem  █░░░░░░░░░░░░   1/15 GiB    0%     1  ok
gpu-worker-01     3  Tesla-V100-SXM2-16GB  core_mem  ░░░░░░░░░░░░░   0/15 GiB    0%     0  unhealthy
gpu-worker-01     4  Tesla-V100-SXM2-16GB  core_mem  ░░░░░░░░░░░░░   0/15 GiB    0%     0  ok
gpu-worker-01     5  Tesla-V100-SXM2-16GB  core_mem  ░░░░░░░░░░░░░   0/15 GiB    0%     0  ok
gpu-worker-01     6  Tesla-V100-SXM2-16GB  core_mem  ░░░░░░░░░░░░░   0/15 GiB    0%     0  ok
gpu-worker-01     7  Tesla-V100-SXM2-16GB  core_mem  ████████████░  14/15 GiB    0%     1  ok
1 node, 8 cards: allocated 37/120 GiB (30%), compute 150/800% (18%); 5 pods; 1 card unhealthy
"""

CARDS_80_ASCII = """\
NODE           CARD  MODE      MEMORY           ALLOCATED  CORE  PODS  HEALTH
gpu-worker-01     0  core_mem  [#############]  15/15 GiB  100%     1  ok
gpu-worker-01     1  core_mem  [######.......]   7/15 GiB   50%     2  ok
gpu-worker-01     2  core_mem  [#............]   1/15 GiB    0%     1  ok
gpu-worker-01     3  core_mem  [.............]   0/15 GiB    0%     0  unhealthy
gpu-worker-01     4  core_mem  [.............]   0/15 GiB    0%     0  ok
gpu-worker-01     5  core_mem  [.............]   0/15 GiB    0%     0  ok
gpu-worker-01     6  core_mem  [.............]   0/15 GiB    0%     0  ok
gpu-worker-01     7  core_mem  [############.]  14/15 GiB    0%     1  ok
1 node, 8 cards: allocated 37/120 GiB (30%), compute 150/800% (18%); 5 pods; 1
  card unhealthy
"""


PODS_120 = """\
NODE           NAMESPACE  POD    CARD  ALLOCATED  CORE    IN FORCE
gpu-worker-01  default    a         1      3 GiB   20%
gpu-worker-01  default    small     2      8 GiB   60%  6 GiB  50%
gpu-worker-01  default    torn      4      4 GiB
gpu-worker-01  default    wide      5      4 GiB             2 GiB
gpu-worker-01  default    wide      6      4 GiB             2 GiB
"""

PODS_80_LONG = """\
NODE          NAMESPACE  POD                   CARD  ALLOCATED  CORE    IN FORCE
gpu-w..e.com  default    trainer-x..xxxxxxxxx     0      8 GiB   60%  6 GiB  50%
"""


def resized(one, status, **wish):
    one["metadata"]["annotations"]["aliquot.dev/resize-status"] = status
    return one


class OnATerminal(Inspect):
    eight = (worker(sick=[3]), share("train", 0, 15, 100), share("a", 1, 3, 20), share("b", 1, 4, 30, namespace="team"),
             share("c", 2, 1), share("d", 7, 14))

    def show(self, *args, objects=eight, width=100, env=None):
        path = self.write("cluster.json", mixed(*objects))
        return Terminal([PROGRAM, "--color=never", "--from", path, *args], width, env=env).end()

    def test_eight_cards_in_100_columns(self):
        self.assertEqual(self.show(), (0, CARDS_100, ""))

    def test_100_columns_hold_long_names_and_units(self):
        name = "cn-zhangjiakou.192.168.66.139.example.com"
        out = self.show(objects=(worker(sick=[1]), worker(name, 1, "cgpu", 126, "NVIDIA A10", unit="128MiB"), share("p", 0, 16, on=name),
                                 share("ghost", 3, 2, on=name)))[1].splitlines()
        self.assertEqual(out[0].split(), ["NODE", "CARD", "MODEL", "MODE", "MEMORY", "ALLOCATED", "CORE", "PODS", "HEALTH"])
        self.assertRegex(out[1], r"^cn-zhan..ple.com +0  NVIDIA A10 +cgpu +█░+  16/126 x128MiB +1  ok$")

    def test_80_columns_without_utf8(self):
        self.assertEqual(self.show(width=80, env={"LC_ALL": "C"}), (0, CARDS_80_ASCII, ""))

    def test_no_line_is_ever_wider_than_the_terminal(self):
        objects = (*self.eight, worker("cn-zhangjiakou.192.168.66.139." + "x" * 200, 2, "cgpu", 126, "A model of many words", unit="128MiB",
                                       conditions=[("GPUShareMisconfigured", "annotation " + "y" * 300 + " is wrong, " * 20)]))
        for width in range(20, 260, rounds(13, 3)):
            status, out, _ = self.show("-d", objects=objects, width=width)
            self.assertEqual((status, [line for line in out.split("\n") if len(line) > width]), (0, []), width)
            for row in out.split("\n\n")[0].splitlines()[1:9]:
                self.assertRegex(row, r"^(gp|cn)\S+ +\d", width)

    def test_columns_go_in_the_order_of_the_manual(self):
        order = ["MODEL", "MODE", "PODS", "MEMORY", "CORE", "HEALTH"]
        seen = [[c for c in order if c not in self.show(width=width)[1].splitlines()[0].split()] for width in range(120, 19, rounds(-4, -1))]
        self.assertEqual(seen[0], [])
        self.assertEqual(seen[-1], order)
        for gone in seen:
            self.assertEqual(gone, order[:len(gone)])

    def test_a_wide_terminal_has_longer_bars(self):
        self.assertIn("  " + "█" * 23 + "  15/15 GiB", self.show(width=110)[1])

    def test_each_row_in_its_unit(self):
        status, out, err = self.show(objects=(worker(cards=1), worker("n2", 1, "cgpu", 126, "A10", unit="128MiB"), worker("n3", 1, "share", 80),
                                              share("p", 0, 16, on="n2"), share("q", 0, 81, on="n3")))
        rows = [line.split() for line in out.splitlines()]
        self.assertEqual([" ".join(r[-5:]) if i == 0 else " ".join(r[-4:]) for i, r in enumerate(rows[1:4])],
                         ["0/15 GiB 0% 0 ok", "16/126 x128MiB 1 ok", "81/80 GiB 1 ok"])
        self.assertIn("allocated 84992/113408 MiB", out)

    def test_pods_without_a_card_and_cards_that_are_not_there(self):
        status, out, err = self.show(objects=(worker(cards=1), share("waits", None, 3, 30), share("ghost", 7, 2)))
        self.assertRegex(out, r"\ngpu-worker-01     7 +core_mem  █+ +2/0 GiB    0%     1  missing\n")
        self.assertRegex(out, r"\ngpu-worker-01  none +core_mem +3 GiB   30%     1\n")
        self.assertIn("; 1 pod without a card\n", out)

    def test_growth_beyond_limits_counts(self):
        grown = {"serial": 3, "slices": [{"uid": "u", "container": 0, "card": 0, "mem": 4, "core": 20},
                                         {"uid": "v", "container": 0, "card": 1, "mem": 1, "core": 0}]}
        node = worker(cards=1, more={"aliquot.dev/grown-slices": json.dumps(grown)})
        _, out, _ = self.show("-o", "cards", objects=(node, share("a", 0, 2, 30)))
        self.assertRegex(out, r"\ngpu-worker-01 +0 .* 6/[0-9]+ GiB +50% +1  ok\n")
        self.assertRegex(out, r"\ngpu-worker-01 +1 .* 1/0 GiB +0% +0  missing\n")
        self.assertIn("allocated 7/", out)
        self.assertIn("SlicesGrown: the sums include 5 of gpu-mem and 20 percent of gpu-core above limits of pods", " ".join(out.split()))
        _, out, _ = self.show("-o", "json", objects=(node, share("a", 0, 2, 30)))
        self.assertEqual([(c["usedGPU"], c.get("usedCore", 0)) for c in json.loads(out)["nodes"][0]["devs"]], [(6, 50), (1, 0)])
        node["metadata"]["annotations"]["aliquot.dev/grown-slices"] = "nonsense"
        status, out, err = self.show("-o", "cards", objects=(node, share("a", 0, 2, 30)))
        self.assertEqual(status, 0)
        self.assertIn(" 2/", out)
        self.assertIn("aliquot.dev/grown-slices", err)

    def test_growth_that_rests_on_a_shrunk_slice(self):
        """The card has it once; without growth, the limit counts."""
        less = {"uid": "u", "container": 0, "card": 0, "mem": 0, "core": 0, "lessMem": 4, "lessCore": 30}
        more = {"uid": "v", "container": 0, "card": 0, "mem": 3, "core": 20}
        pods = share("a", 0, 8, 60), share("b", 0, 7, 40)
        for slices in [less], [less, more]:
            node = worker(cards=1, more={"aliquot.dev/grown-slices": json.dumps({"serial": 3, "slices": slices})})
            _, out, _ = self.show("-o", "json", objects=(node, *pods))
            shown = json.loads(out)["nodes"][0]
            self.assertEqual([(c["usedGPU"], c["usedCore"]) for c in shown["devs"]], [(15, 100)])
            self.assertEqual(shown["usedGPU"], 15)

    def test_cordoned_cards(self):
        said = ("GPUShareCardsCordoned", "gpu1, gpu2 take no new slice; held by default/a")
        node = worker(cards=3, sick=[2], conditions=[said], more={"aliquot.dev/cordon-cards": "1, 2"})
        _, out, _ = self.show(objects=(node,))
        self.assertEqual([line.split()[-1] for line in out.splitlines()[1:4]], ["ok", "cordoned", "cordoned"])
        self.assertIn("GPUShareCardsCordoned: gpu1, gpu2 take no new slice; held by default/a", " ".join(out.split()))
        self.assertIn("; 1 card unhealthy", out)
        node["metadata"]["annotations"]["aliquot.dev/cordon-cards"] = "1,x"
        _, out, _ = self.show(objects=(node,))
        self.assertEqual([line.split()[-1] for line in out.splitlines()[1:4]], ["ok", "cordoned", "unhealthy"])

    def test_many_cards_out_of_service(self):
        node = worker("n" * 60, cards=32, sick=range(32))
        _, out, _ = self.show("-o", "table", objects=(node,))
        self.assertIn(": " + ", ".join("GPU%d" % i for i in range(32)) + " unhealthy\n", out)

    def test_fenced_cards(self):
        """As the scheduler takes them out of service; older tools' bytes only where no card is out of service."""
        maps = [fence("gpu-worker-01-device-status", devices=DEVICES), fence("unhealthy-gpu-plain", gpus="0, 9"),
                fence("unhealthy-gpu-gpu-worker-01", "other", gpus="0"), fence("kube-root-ca.crt", gpus="0"), fence("unhealthy-gpu-gone", gpus="0")]
        objects = (worker(cards=4, sick=[1, 2], more={"aliquot.dev/cordon-cards": "1,3"}), node("plain", count="2"), pod(on="other"), *maps)
        status, out, err = self.show(objects=objects)
        self.assertEqual((status, err), (0, ""))
        self.assertEqual([line.split()[-1] for line in out.splitlines()[1:7]], ["ok", "cordoned", "unhealthy", "fenced", "fenced", "-"])
        for args in (["-o", "table"], ["-o", "table", "-d"]):
            said = [line for line in self.show(*args, objects=objects)[1].splitlines() if ": GPU" in line]
            self.assertEqual(said, ["gpu-worker-01: GPU3 fenced; GPU1 cordoned; GPU2 unhealthy", "plain: GPU0 fenced"])
        nodes = json.loads(self.show("-o", "json", objects=objects)[1])["nodes"]
        self.assertEqual([[card.get("health") for card in n["devs"]] for n in nodes], [[None, "cordoned", "unhealthy", "fenced"], ["fenced", None]])
        self.assertEqual(self.show("-o", "table", objects=(node(), pod(), *maps))[1], SUMMARY)

    def test_a_fence_of_a_card_that_is_not_there(self):
        gap = worker(cards=3)
        cards = json.loads(gap["metadata"]["annotations"]["aliquot.dev/cards"])
        gap["metadata"]["annotations"]["aliquot.dev/cards"] = json.dumps([cards[0], cards[2]])
        out = self.show("-o", "table", objects=(gap, fence("unhealthy-gpu-gpu-worker-01", gpus="1,2")))[1]
        self.assertTrue(out.endswith("\ngpu-worker-01: GPU2 fenced\n"), out)

    def test_a_fence_that_is_not_understood(self):
        maps = [fence("gpu-worker-01-device-status", devices="- {deviceId: 0, healthy: false}\n- {deviceId: x, healthy: false}\n"),
                fence("gpu-worker-01-device-status", devices="- {deviceId: 1, healthy: false}\n- {deviceId: x}\n")]
        status, out, err = self.show(objects=(worker(cards=3), *maps))
        self.assertEqual([line.split()[-1] for line in out.splitlines()[1:4]], ["ok", "fenced", "ok"])
        self.assertIn('items[2]: configmap kube-system/gpu-worker-01-device-status: data.devices[1] is {"deviceId":"x"}, deviceId must be', err)
        self.assertEqual(status, 0)

    def test_fenced_whole_cards(self):
        whole = worker(cards=2, mode="topology", sick=[1])
        whole["status"]["allocatable"] = {"aliyun.com/gpu": "2"}
        objects = (whole, fence("unhealthy-gpu-gpu-worker-01", gpus="0"))
        self.assertTrue(self.show("-o", "table", objects=objects)[1].endswith("\ngpu-worker-01: GPU0 fenced; GPU1 unhealthy\n"))
        self.assertIn("GPU0  -  fenced\nGPU1  -  unhealthy\n", self.show("-o", "table", "-d", objects=objects)[1])

    def test_conditions(self):
        """Equal ones once; also of a node that offers nothing."""
        wrong = ("GPUShareMisconfigured", "label ack.node.gpu.schedule is \"core-mem\"")
        nodes = [worker("n%d" % i, 1, conditions=[wrong]) for i in range(3)]
        nodes[2]["status"]["allocatable"] = {"aliyun.com/gpu-mem": "0"}
        nodes[0]["metadata"]["annotations"]["aliquot.dev/change-pending"] = "mode core_mem -> cgpu"
        nodes[1]["status"]["conditions"][0] = {"type": "Ready", "status": "Unknown", "message": "no news"}
        nodes[1]["spec"] = {"unschedulable": True}
        nodes[1]["metadata"]["annotations"]["aliquot.dev/held-slices"] = json.dumps([{"pod": "ns/old", "uid": "u", "allocation": {"0": {"0": 4}}}])
        status, out, err = self.show(objects=[*nodes, pod(on="other")], width=120)
        self.assertEqual((status, err), (0, ""))
        self.assertIn("  core_mem*  ", out.splitlines()[1])
        self.assertEqual(out.splitlines()[4:], [
            "n0: GPUShareChangePending: mode core_mem -> cgpu",
            "n0 and 2 more: GPUShareMisconfigured: label ack.node.gpu.schedule is \"core-mem\"",
            "n1: NotReady: no news", "n1: SchedulingDisabled: the node takes no new pods",
            "n1: SlicesHeld: processes of deleted pods hold slices: ns/old"])

    def test_how_memory_is_isolated_is_a_detail(self):
        """Nothing is wrong, so the table alone does not say it."""
        kind, text = "GPUShareMemoryLimitsUnavailable", "memory is isolated by the library and by limits of the driver (dmem)"
        nodes = [worker("n%d" % i, 1) for i in range(2)]
        for one, reason in zip(nodes, ("LimitedByDriver", "AsAsked")):
            one["status"]["conditions"].append({"type": kind, "status": "False", "reason": reason, "message": text})
        self.assertNotIn("memory is isolated", self.show(objects=nodes)[1])
        self.assertIn("n0: MemoryIsolation: " + text + "\n", self.show("-d", objects=nodes, width=160)[1])

    def test_no_nodes(self):
        self.assertEqual(self.show(objects=()), (0, "No node offers aliyun.com/gpu-mem or aliyun.com/gpu.\n", ""))
        status, out, err = self.show("nowhere")
        self.assertEqual((status, out), (1, ""))
        self.assertIn('node "nowhere"', err)

    def test_details(self):
        status, out, _ = self.show("-d")
        self.assertEqual(out.split("\n\n")[1].splitlines()[:3], [
            "NODE           NAMESPACE  POD    CARD  ALLOCATED  CORE",
            "gpu-worker-01  default    a         1      3 GiB   20%", "gpu-worker-01  default    c         2      1 GiB"])

    small = resized(share("small", 2, 8, 60), "in force: container 0: gpu-mem 6 of 8, gpu-core 50 of 60")
    torn = resized(share("torn", 4, 4), "what an agent of another release says")
    wide = resized(share("wide", 5, 8), "refused: annotation aliquot.dev/gpu-mem is \"9\"; in force: container 0: gpu-mem 4 of 8")
    wide["metadata"]["annotations"]["scheduler.framework.gpushare.allocation"] = '{"0":{"5":4,"6":4}}'
    wide["metadata"]["labels"] = {"aliyun.com/gpu-count": "2"}

    def pods(self, width, *objects):
        status, out, err = self.show("-d", objects=objects, width=width)
        self.assertEqual((status, err), (0, ""))
        return out.split("\n\n")[1].split("\n1 node, ")[0] + "\n"

    def test_sizes_in_force(self):
        self.assertEqual(self.pods(120, worker(), share("a", 1, 3, 20), self.small, self.torn, self.wide), PODS_120)
        name = "gpu-worker-01.example.com"
        long = resized(share("trainer-" + "x" * 40, 0, 8, 60, on=name), "in force: container 0: gpu-mem 6 of 8, gpu-core 50 of 60")
        self.assertEqual(self.pods(80, worker(name), long), PODS_80_LONG)

    def test_no_column_without_a_resize(self):
        same = resized(share("same", 2, 8, 60), "in force: container 0: gpu-mem 8 of 8, gpu-core 60 of 60")
        self.assertNotIn("IN FORCE", self.pods(120, worker(), same, self.torn))

    def test_sizes_in_force_for_programs(self):
        path = self.write("cluster.json", mixed(worker(), share("a", 1, 3, 20), self.small, self.wide))
        devs = json.loads(self.run_program("-o", "json", "--from", path)[1])["nodes"][0]["devs"]
        self.assertEqual(devs[1]["pods"], [{"name": "a", "namespace": "default", "usedGPU": 3, "usedCore": 20}])
        self.assertEqual(devs[2]["pods"], [{"name": "small", "namespace": "default", "usedGPU": 8, "usedCore": 60, "inForceGPU": 6,
                                            "inForceCore": 50}])
        self.assertEqual([devs[k]["pods"] for k in (5, 6)], 2 * [[{"name": "wide", "namespace": "default", "usedGPU": 4, "inForceGPU": 2}]])
        self.assertEqual([devs[k]["usedGPU"] for k in (1, 2, 5)], [3, 8, 4])

    def test_a_limit_that_its_cards_do_not_divide(self):
        """The agent divides another size evenly: the sum over the cards is the size."""
        one = resized(share("wide", 5, 10), "in force: container 0: gpu-mem 9 of 10")
        one["metadata"]["annotations"]["scheduler.framework.gpushare.allocation"] = '{"0":{"5":4,"6":3,"7":3}}'
        path = self.write("cluster.json", mixed(worker(), one))
        devs = json.loads(self.run_program("-o", "json", "--from", path)[1])["nodes"][0]["devs"]
        self.assertEqual([(devs[k]["pods"][0]["usedGPU"], devs[k]["pods"][0]["inForceGPU"]) for k in (5, 6, 7)], [(4, 3), (3, 3), (3, 3)])

    def test_differences(self):
        objects = (worker(cards=1), share("less", 0, 3))
        objects[1]["spec"]["containers"][0]["resources"]["limits"]["aliyun.com/gpu-mem"] = "5"
        self.assertIn("\n1 pod has annotations that differ from the limits, which are what counts: see -d\n", self.show(objects=objects)[1])
        self.assertIn("\ndefault/less: annotation scheduler.framework", self.show("-d", objects=objects)[1])

    def test_namespace(self):
        status, out, _ = self.show("-n", "team")
        self.assertRegex(out, r"\ngpu-worker-01     1 .* 4/15 GiB   30%     1  ok\n")
        self.assertIn("; 1 pod of namespace team, others are\n", out)

    def test_colours(self):
        path = self.write("cluster.json", mixed(*self.eight))

        def is_coloured(*args, **env):
            return "\x1b[" in Terminal([PROGRAM, "--from", path, *args], 100, env=env).end()[1]
        self.assertEqual([is_coloured(), is_coloured(NO_COLOR="1"), is_coloured(NO_COLOR=""), is_coloured(TERM="dumb"),
                          is_coloured("--color=never"), is_coloured("--color=always", NO_COLOR="1"), is_coloured("-o", "table")],
                         [True, False, True, False, False, True, False])

    def test_no_colour_into_pipes(self):
        path = self.write("cluster.json", mixed(*self.eight))
        for args in ([], ["-d"], ["-o", "cards"], ["-o", "json"], ["-o", "table", "--color=always"]):
            self.assertNotIn("\x1b", self.run_program("--from", path, *args)[1], args)

    def test_the_old_table_for_programs_and_on_request(self):
        objects = (node(), pod())
        self.assertEqual(self.show("-o", "table", objects=objects), (0, SUMMARY, ""))
        path = self.write("cluster.json", mixed(*objects))
        self.assertEqual(self.run_program("--from", path, env={"COLUMNS": "40", "LANG": "C.UTF-8"}), (0, SUMMARY, ""))
        cards = self.run_program("-o", "cards", "--from", path)[1]
        self.assertRegex(cards, r"^NODE .*\ncn-zhangjiakou.192.168.66.139     0  \S+   3/15 GiB     1  -\n")

    def test_nothing_reaches_the_terminal_raw(self):
        evil = "x\x1b[2J\x07\u009b31m\r\n\t\u202e"
        one = worker(evil, 1, evil, model=evil, unit=evil, conditions=[("GPUShare" + evil, evil)], more={"aliquot.dev/change-pending": evil})
        one["metadata"]["annotations"]["aliquot.dev/held-slices"] = json.dumps([{"pod": evil}])
        held = share(evil, 0, 3, on=evil, namespace=evil)
        held["spec"]["containers"][0]["resources"]["limits"]["aliyun.com/gpu-mem"] = "5"
        held["spec"]["containers"][0]["name"] = evil
        for args in ([], ["-d"]):
            status, out, err = self.show(*args, objects=(one, held))
            self.assertEqual(status, 0)
            self.assertRegex(out + err, r"^[ -~\n█░]+$")
        status, out, err = self.show("a\x1b[2J", objects=())
        self.assertRegex(err, r"^[ -~\n]+$")

    def test_forged_objects(self):
        for key, value in (("aliquot.dev/cards", "[{"), ("aliquot.dev/cards", '[{"index":0,"units":-1}]'), ("aliquot.dev/cards", "7"),
                           ("aliquot.dev/held-slices", "[{]"), ("aliquot.dev/held-slices", '{"pod":1}'), ("aliquot.dev/held-slices", '[{"pod":1}]'),
                           ("aliquot.dev/gpu-mem-unit-in-force", "9" * 400), ("aliquot.dev/mode-in-force", "m" * 4000)):
            status, out, err = self.show(objects=(worker(cards=2, more={key: value}), share("p", 1, 3)))
            self.assertEqual((status, max(map(len, out.splitlines())) <= 100), (0, True), value)
            self.assertRegex(out, r"\ngpu-worker-01 +1 .* 3/1?[0-9]+ \S*[a-zA-Z]+ +0% +1 ", value)
        for conditions in (7, [7], [{"type": 7}], {"type": "Ready"}):
            one = worker(cards=1)
            one["status"]["conditions"] = conditions
            status, out, err = self.show(objects=(one,))
            self.assertIn(status, (0, 1))


METRICS = """\
# HELP DCGM_CUSTOM_PROCESS_MEM_USED Memory of the card that the process holds, in MiB, by the driver.
DCGM_CUSTOM_PROCESS_MEM_USED{UUID="GPU-0",device="nvidia0",gpu="0",modelName="V }100",ProcessName="a"} 1500
DCGM_CUSTOM_PROCESS_MEM_USED{UUID="GPU-0",device="nvidia0",gpu="0",modelName="V",ProcessName="b"} 36
DCGM_CUSTOM_PROCESS_MEM_USED{UUID="GPU-1",device="nvidia1",gpu="1",modelName="V",ProcessName="c"} 7
DCGM_CUSTOM_PROCESS_MEM_USED{UUID="GPU-9",gpu="9"} 1
DCGM_CUSTOM_PROCESS_MEM_USED{UUID="GPU-1",gpu="1"} -5
DCGM_CUSTOM_PROCESS_MEM_USED{UUID="GPU-1",gpu="x"} 5
DCGM_CUSTOM_PROCESS_MEM_USED{UUID="GPU-1",gpu="1
DCGM_CUSTOM_PROCESS_MEM_USED
DCGM_CUSTOM_PROCESS_SM_UTIL{UUID="GPU-0",gpu="0"} 90
"""


class Used(Inspect):
    """What processes hold, from the agents' metrics through the API server."""

    def agent(self, name, on):
        return {"metadata": {"name": name, "namespace": "kube-system"}, "spec": {"nodeName": on, "containers": []}, "status": {"phase": "Running"}}

    def used(self, *args, agents=(), **more):
        self.write("kubectl", KUBECTL.replace("*/nodes*)", """\
*labelSelector*) cat "$ANSWERS/agents"; exit 0 ;;
*/proxy/metrics) cat "$ANSWERS/${last##*pods/}" ;;
*/nodes*)""").replace("*/proxy/metrics) cat", "*/proxy/metrics) name=${last##*/pods/}; cat").replace("${last##*pods/}", "metrics-${name%%:*}"), 0o755)
        self.write("agents", typed("Pod", *agents))
        self.write("metrics-ds-1", METRICS)
        self.write("nodes", typed("Node", worker(cards=3), worker("n2", 1)))
        self.write("pods", typed("Pod", share("a", 0, 3)))
        return Terminal([PROGRAM, "--color=never", "--used", *args], 120, env={
            "PATH": self.folder + os.pathsep + os.environ["PATH"], "ANSWERS": self.folder, "AFTER": more.get("after", "")}).end()

    def test_used(self):
        status, out, err = self.used(agents=(self.agent("ds-1", "gpu-worker-01"),))
        self.assertEqual((status, err), (0, ""))
        self.assertRegex(out.splitlines()[0], r" ALLOCATED +USED +CORE ")
        self.assertEqual([line.split("GiB")[-1].split() for line in out.splitlines()[1:5]],
                         [["1536", "MiB", "0%", "1", "ok"], ["7", "MiB", "0%", "0", "ok"], ["0%", "0", "ok"], ["0%", "0", "ok"]])
        self.assertIn("--request-timeout=10s get --raw /api/v1/namespaces/kube-system/pods/ds-1:9445/proxy/metrics", self.calls())

    def test_an_agent_that_is_stopped(self):
        """It accepts connections and never answers; without a limit kubectl waits for ever."""
        agents = (self.agent("ds-1", "gpu-worker-01"), self.agent("ds-2", "n2"))
        stopped = 'case "$*" in *--request-timeout=*ds-2:9445*) exit 1 ;; *ds-2:9445*) exec sleep 3600 ;; esac'
        status, out, err = self.used(agents=agents, after=stopped)
        self.assertEqual((status, err), (0, "used memory: 1 of 2 node agents did not answer (the right to get pods/proxy is needed)\n"))
        self.assertIn("  1536 MiB  ", out)

    def test_agents_that_do_not_answer(self):
        agents = [self.agent("ds-%d" % i, "gpu-worker-01") for i in range(1, 21)] + [self.agent("../../x", "n2"), self.agent("a/b", "n2")]
        status, out, err = self.used(agents=agents, after="case $last in *:9445*) test -f $ANSWERS/metrics-${name%%:*} ;; esac")
        self.assertEqual((status, err), (0, "used memory: 19 of 20 node agents did not answer (the right to get pods/proxy is needed)\n"))
        self.assertIn("  1536 MiB  ", out)
        self.assertFalse([c for c in self.calls() if "x:9445" in c or "b:9445" in c])

    def test_no_agents(self):
        self.assertEqual(self.used()[2], "used memory: no node agent of Aliquot was found\n")

    def test_one_node(self):
        self.used("n2", agents=(self.agent("ds-1", "gpu-worker-01"),))
        self.assertFalse([c for c in self.calls() if "proxy" in c])


class Watch(Inspect):
    def watch(self, *args, width=100, height=30):
        path = self.write("cluster.json", mixed(worker(cards=2), share("a", 0, 3, 20)))
        t = Terminal([PROGRAM, "-w", "--from", path, *args], width, height)
        self.addCleanup(t.close)
        return t

    def change(self, *objects):
        os.replace(self.write("new.json", mixed(*objects)), os.path.join(self.folder, "cluster.json"))

    def test_it_is_drawn_in_place(self):
        t = self.watch()
        t.until(lambda: " 3/15 GiB " in t.line(1), "the first report")
        self.change(worker(cards=2), share("b", 1, 7))
        t.until(lambda: " 0/15 GiB " in t.line(1) and " 7/15 GiB " in t.line(2), "the change")
        t.until(lambda: [line[:4] for line in t.screen()] == ["NODE", "gpu-", "gpu-", "1 no", ""], "the same lines")
        self.change(worker(cards=1))
        t.until(lambda: len(t.screen()) == 4, "a shorter report")
        t.process.send_signal(signal.SIGINT)
        self.assertEqual(t.process.wait(PATIENCE), -signal.SIGINT)
        self.assertEqual(t.line(-1), "")  # the shell's prompt comes below
        self.assertTrue(t.bytes.endswith(b"\x1b[J"))
        self.assertEqual(t.process.stderr.read(), b"")

    def test_another_size(self):
        t = self.watch()
        t.until(lambda: any("MODEL" in line for line in t.screen()), "the first report")
        t.resize(60, 30)
        t.process.send_signal(signal.SIGWINCH)
        t.until(lambda: "MODEL" not in t.line(0) and t.line(0).startswith("NODE") and max(map(len, t.screen())) <= 60, "the narrow report")

    def test_more_than_the_screen_holds(self):
        self.write("many.json", mixed(*(worker("n%02d" % i) for i in range(100))))
        t = Terminal([PROGRAM, "-w", "--from", os.path.join(self.folder, "many.json")], 100, 12)
        self.addCleanup(t.close)
        t.until(lambda: len(t.screen()) == 12, "a full screen")
        self.assertEqual(t.screen()[9:], ["... and 792 more", "100 nodes, 800 cards: allocated 0/12000 GiB (0%), compute 0/80000% (0%); 0 pods", ""])

    def test_a_cluster_that_cannot_be_read_for_a_while(self):
        t = self.watch()
        t.until(lambda: " 3/15 GiB " in t.line(1), "the first report")
        self.write("cluster.json", "{")
        self.assertIn(b"cluster.json: ", t.process.stderr.readline())
        self.change(worker(cards=2), share("b", 1, 7))
        t.until(lambda: " 7/15 GiB " in t.line(-3), "the report below")

    def test_the_first_reading_must_succeed(self):
        status, out, err = Terminal([PROGRAM, "-w", "--from", os.path.join(self.folder, "missing")], 100).end()
        self.assertEqual((status, out), (2, ""))

    def test_it_is_appended_when_piped(self):
        path = self.write("cluster.json", mixed(node(), pod()))
        p = subprocess.Popen([PROGRAM, "-w", "--from", path], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.addCleanup(lambda: (p.kill(), p.wait(), p.stdout.close(), p.stderr.close()))
        self.assertEqual("".join(p.stdout.readline() for _ in range(5)), SUMMARY)
        self.change(node(), pod(mem="4"))
        self.assertEqual([p.stdout.readline() for _ in range(6)][-1], "4/15 (26%)\n")
        p.send_signal(signal.SIGINT)
        self.assertEqual((p.wait(PATIENCE), p.stdout.read(), p.stderr.read()), (-signal.SIGINT, "", ""))

    def test_it_ends_with_its_reader(self):
        """Also while nothing changes, so that nothing is written."""
        path = self.write("cluster.json", mixed(node(), pod()))
        p = subprocess.Popen([PROGRAM, "-w", "--from", path], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.addCleanup(lambda: (p.kill(), p.wait(), p.stderr.close()))
        self.assertEqual("".join(p.stdout.readline() for _ in range(5)), SUMMARY)
        p.stdout.close()
        self.assertEqual((p.wait(PATIENCE), p.stderr.read()), (3, ""))

    def test_kubectl_answers_from_the_cache(self):
        self.write("kubectl", KUBECTL, 0o755)
        self.write("nodes", typed("Node", node()))
        self.write("pods", typed("Pod", pod()))
        t = Terminal([PROGRAM, "-w", "-n", "team-a"], 100, 30,
                     env={"PATH": self.folder + os.pathsep + os.environ["PATH"], "ANSWERS": self.folder, "AFTER": "exit 0"})
        self.addCleanup(t.close)
        t.until(lambda: len(t.screen()) > 2, "a report")
        self.assertEqual(self.calls()[:2], [
            "get --raw /api/v1/nodes?resourceVersion=0",
            "get --raw /api/v1/namespaces/team-a/pods?fieldSelector=status.phase%21%3DSucceeded%2Cstatus.phase%21%3DFailed&resourceVersion=0"])


class Usage(Inspect):
    def test_needs_no_library(self):
        """Static, so that it runs with any C library."""
        with open(PROGRAM, "rb") as program:
            data = program.read()
        if b"__asan_init" in data or b"__tsan_init" in data or b"__gcov_init" in data:
            self.skipTest("sanitized programs and those with coverage are linked dynamically")
        self.assertNotIn(b"/ld-linux", data[:4096])

    def test_wrong_usage(self):
        for args in (["-x"], ["--nonsense"], ["-o", "yaml"], ["-o"], ["a", "b"], [""], ["--from"], ["--color", "red"], ["-n", ""], ["-n", "../x"],
                     ["-n", "A"], ["-n"], ["-w", "--from", "-"], ["--used", "--from", "-"]):
            status, out, err = self.run_program(*args)
            self.assertEqual((status, out), (2, ""), args)
            self.assertNotEqual(err, "")

    def test_wrong_options(self):
        for args, words in ((["--detials"], "--detials: no such option; did you mean --details? See"), (["--nonsense"], "--nonsense: no such option; see"),
                            (["--" + "x" * 500], "x: no such option; see"), (["-x"], "no such option: -x; see"),
                            (["-dx"], "no such option: -x; see"), (["-o"], "a value is missing after -o; see"),
                            (["--from"], "a value is missing after --from; see"), (["--used=1"], "this option takes no value: --used=1; see"),
                            (["node", "--wat", "--whi"], "--whi: no such option; did you mean --why? See")):
            status, out, err = self.run_program(*args)
            self.assertEqual((status, out, err.count("\n")), (2, "", 1), args)
            self.assertTrue(err.startswith("kubectl inspect cgpu: "), err)
            self.assertTrue(err.endswith(f"{words} `kubectl inspect cgpu --help`\n"), err)

    def test_help_and_version(self):
        status, out, err = self.run_program("--help")
        self.assertEqual((status, err), (0, ""))
        self.assertRegex(out, r"\nExit status: 0 done, 1 .*, 2 wrong usage or\nFILE, 3 something broke\.\n$")
        for option in ("-d, --details", "-n, --namespace NAME", "-o, --output", "-w, --watch", "--color WHEN", "--from FILE", "--kubeconfig FILE"):
            self.assertIn(option, out)
        status, out, err = self.run_program("--version")
        self.assertRegex(out, r"^kubectl-inspect-cgpu \d+\.\d+\.\d+\n$")
        self.assertEqual((status, err), (0, ""))


if __name__ == "__main__":
    unittest.main()
