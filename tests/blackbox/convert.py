# SPDX-License-Identifier: Apache-2.0
"""aliquot convert: convert.py ALIQUOT SOURCE_ROOT"""

import json
import os
import subprocess
import sys
import unittest

ALIQUOT, ROOT = sys.argv[1:3]
GPU, MEM, PERCENT, CORE, PRIORITY = ("nvidia.com/" + name for name in ("gpu", "gpumem", "gpumem-percentage", "gpucores", "priority"))
OUR_MEM, OUR_CORE, OUR_COUNT = "aliyun.com/gpu-mem", "aliyun.com/gpu-core.percentage", "aliyun.com/gpu-count"
V100 = ("--card", "16160MiB")
# memory.total in MiB: T4, V100 16 and 32 GB, A10, A30, L4, L40S, A100 40 and 80 GB, H20, H100, H200
CARDS = (15360, 16160, 32510, 23028, 24576, 23034, 46068, 40960, 81920, 97871, 81559, 143771)


def pod(*limits, **spec):
    containers = [{"name": f"c{i}", "image": "x:1", "resources": {"limits": one}} for i, one in enumerate(limits)]
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": {"containers": containers, **spec}}


def convert(text, *options):
    p = subprocess.run([ALIQUOT, "convert", *options, "-"], input=text, capture_output=True, text=True, timeout=240)
    return p.returncode, p.stdout, p.stderr


class Convert(unittest.TestCase):
    def limits(self, *limits, options=()):
        """The limits of the converted pod's containers, by a text of one line each."""
        status, out, said = convert(json.dumps(pod(*limits)), *options)
        amounts = [line.strip() for line in out.splitlines() if ".com/" in line]
        return status, amounts, said

    def test_amounts(self):
        for limits, options, expected, words in (
                ([{GPU: 1, MEM: 3000, CORE: 30}], V100, [f"{OUR_MEM}: 3", f"{OUR_CORE}: 30"], "3000 MiB become 3 of a card's 15 units, 3232 MiB"),
                ([{MEM: 2048}], (), [f"{OUR_MEM}: 2"], "ack.node.gpu.schedule=cgpu"),
                ([{GPU: "1", MEM: "2k", CORE: "31"}], ("--card", "80GiB"), [f"{OUR_MEM}: 2", f"{OUR_CORE}: 30"], "31 percent of compute become 30"),
                ([{MEM: 16000}], V100, [f"{OUR_MEM}: 15"], "16000 MiB become 15 of a card's 15 units, 16160 MiB"),
                ([{MEM: 16140}], (*V100, "--unit", "128MiB"), [f"{OUR_MEM}: 126"], "126 of a card's 126 units"),
                ([{MEM: 16160}], V100, [f"{OUR_MEM}: 15"], ""),
                ([{PERCENT: 50}], V100, [f"{OUR_MEM}: 7"], "8080 MiB become 7 of a card's 15 units, 7541 MiB"),
                ([{GPU: 2, MEM: 1024}], (), [f'{OUR_COUNT}: "2"', f"{OUR_MEM}: 2"], ""),
                ([{GPU: 2, PERCENT: 50}], ("--card", "80GiB"), [f'{OUR_COUNT}: "2"', f"{OUR_MEM}: 80"], ""),
                ([{GPU: 2, PERCENT: 100, CORE: 100}], ("--card", "16160MiB"), [f'{OUR_COUNT}: "2"', f"{OUR_MEM}: 30"], ""),
                ([{GPU: 1}], ("--card", "16160MiB"), [f"{OUR_MEM}: 15"], ""),
                ([{GPU: 1, MEM: 1024, PRIORITY: 0}], (), [f"{OUR_MEM}: 1"], "ALIYUN_COM_GPU_HIGH_PRIO"),
                ([{"nvidia.com/vgpu-number": 1, "nvidia.com/vgpu-memory": 4096, "nvidia.com/vgpu-cores": 20}], (),
                 [f"{OUR_MEM}: 4", f"{OUR_CORE}: 20"], "core_mem"),
                ([{GPU: 0}], (), [f"{GPU}: 0"], ""), ([{"cpu": 1}], (), [], "")):
            status, amounts, said = self.limits(*limits, options=options)
            self.assertEqual((status, amounts), (0, expected), said)
            self.assertIn(words, said)

    def test_kept(self):
        for limits, words in (([{GPU: 1}], "all of a card, and --card does not give its size"),
                              ([{PERCENT: 40}], "a percentage of a card"),
                              ([{PERCENT: 101}], "is over 100"), ([{MEM: 1, CORE: 101}], "is over 100"),
                              ([{GPU: 2, MEM: 1024, CORE: 30}], "compute of several cards"),
                              ([{GPU: 2, MEM: 1024}, {GPU: 1, MEM: 1024}], "different numbers of cards"),
                              ([{MEM: 1024, CORE: 30}, {MEM: 1024}], "one asks for compute"),
                              ([{MEM: 1024, CORE: 60}, {MEM: 1024, CORE: 60}], "120 percent of compute together"),
                              ([{MEM: 2048}, {OUR_MEM: 2}], "container c1 asks for aliyun.com/gpu-mem, and container c0 for nvidia.com/gpumem;"),
                              ([{MEM: 2048, OUR_MEM: 2}], "container c0 asks for aliyun.com/gpu-mem"),
                              ([{MEM: 2048}, {"aliyun.com/gpu": 1}], "container c1 asks for aliyun.com/gpu"),
                              ([{MEM: "3Gi"}], "nvidia.com/gpumem is in MiB; write 3072 for 3221225472 bytes;"),
                              ([{GPU: 1, "nvidia.com/gpuMem": 3000}], "nvidia.com/gpuMem is not known, nvidia.com/gpumem was probably meant;"),
                              ([{"nvidia.com/mig-3g.20gb": 1}], "nvidia.com/mig-3g.20gb has no equal here;"),
                              ([{MEM: 1024}, {"nvidia.com/mig-3g.20gb": 1}], "container c1: nvidia.com/mig-3g.20gb has no equal here;"),
                              ([{MEM: "1.5"}], "not a whole number"), ([{MEM: [1]}], "not a whole number"), ([{GPU: 65}], "is over 64")):
            status, amounts, said = self.limits(*limits)
            self.assertEqual(status, 1, said)
            self.assertEqual([line.split(":")[0] for line in amounts], [name for one in limits for name in one])
            self.assertIn(words, said)
            self.assertIn("kept as it is", said)

    def test_kept_on_a_card(self):
        """What has no room on a card of --card is kept, with a note."""
        for limits, words in (([{MEM: 16161}], "nvidia.com/gpumem is 16161, and a card of --card has 16160 MiB;"),
                              ([{MEM: 20000}], "a card of --card has 16160 MiB"), ([{GPU: 2, MEM: 20000}], "a card of --card has 16160 MiB"),
                              ([{MEM: 8000}, {MEM: 8000}], "become 16 units together, and a card of 16160 MiB has 15"),
                              ([{PERCENT: 60}, {PERCENT: 60}], "become 18 units together")):
            status, amounts, said = self.limits(*limits, options=V100)
            self.assertEqual((status, "aliyun" in "".join(amounts)), (1, False), said)
            self.assertIn(words, said)
            self.assertIn("the pod is kept as it is\n", said)
        status, amounts, said = self.limits({MEM: 1}, options=("--card", "512MiB"))
        self.assertEqual(status, 1, said)
        self.assertIn("a card of 512 MiB has no unit of 1024 MiB", said)

    def test_misspelt_keys(self):
        """They have no effect before and after; the pod is converted, and the status tells."""
        manifest = pod({GPU: 1, MEM: 2048})
        manifest["metadata"]["annotations"] = {"nvidia.com/use-gputyp": "A100", "nvidia.com/use-gpuuuid": "GPU-1", "team": "x"}
        status, out, said = convert(json.dumps(manifest))
        self.assertEqual(status, 1)
        self.assertIn("pod p: annotation nvidia.com/use-gputyp is not known and changes nothing, did you mean annotation nvidia.com/use-gputype?\n", said)
        self.assertEqual(said.count("did you mean"), 1)
        self.assertIn("aliyun.com/gpu-mem: ", out)

    def test_init_containers_share_the_card_in_turn(self):
        manifest = pod({MEM: 8000})
        manifest["spec"]["initContainers"] = [{"name": "i", "image": "x", "resources": {"limits": {MEM: 16160}}}]
        status, out, said = convert(json.dumps(manifest), *V100)
        self.assertEqual((status, out.count(f"{OUR_MEM}: 15\n"), out.count(f"{OUR_MEM}: 8\n")), (0, 1, 1), said)
        manifest["spec"]["initContainers"][0]["restartPolicy"] = "Always"
        status, out, said = convert(json.dumps(manifest), *V100)
        self.assertEqual((status, OUR_MEM in out), (1, False), said)

    def test_init_containers_share_the_compute_in_turn(self):
        manifest = pod({MEM: 7000, CORE: 60})
        manifest["spec"]["initContainers"] = [{"name": "i", "image": "x", "resources": {"limits": {MEM: 7000, CORE: 60}}}]
        status, out, said = convert(json.dumps(manifest), *V100)
        self.assertEqual((status, out.count(f"{OUR_CORE}: 60\n")), (0, 2), said)
        manifest["spec"]["initContainers"][0]["restartPolicy"] = "Always"
        status, out, said = convert(json.dumps(manifest), *V100)
        self.assertEqual((status, OUR_CORE in out), (1, False), said)

    def many(self, asks, *options):
        """The amounts of a container for each of these limits, converted together, and the notes by pod."""
        pods = []
        for i, limits in enumerate(asks):
            pods.append(pod(limits))
            pods[-1]["metadata"]["name"] = f"p{i}"
        status, out, said = convert("\n---\n".join(map(json.dumps, pods)), *options)
        documents = out.split("\n---\n")
        self.assertEqual(len(documents), len(asks), said)
        notes = {i: [] for i in range(len(asks))}
        for line in said.splitlines():
            if not line.startswith("aliquot convert: pods of different amounts: "):
                notes[int(line.split("pod p", 1)[1].split(":", 1)[0])].append(line)
        return status, documents, notes

    @staticmethod
    def amount(document, resource):
        found = [line for line in document.splitlines() if line.strip().startswith(resource + ":")]
        return int(found[0].split(":")[1]) if found else None

    def test_percentages_that_filled_a_card_fill_it(self):
        for card in CARDS:
            for unit in (1024, 128):
                _, documents, _ = self.many([{PERCENT: p, CORE: p} for p in range(1, 101)], "--card", f"{card}MiB", "--unit", f"{unit}MiB")
                units, cores = ([self.amount(d, resource) or 0 for d in documents] for resource in (OUR_MEM, OUR_CORE))
                self.assertEqual(units[99], card // unit)
                for p in range(1, 100):
                    self.assertLessEqual(units[p - 1] + units[99 - p], card // unit, (card, unit, p))
                    self.assertLessEqual(cores[p - 1] + cores[99 - p], 100, p)
                    self.assertGreater(units[p - 1], 0)

    def test_fewer_on_a_card_are_told(self):
        """Each amount: as many fit as before, or a note and exit status 1."""
        for card in CARDS:
            whole = card // 1024
            amounts = sorted({1, 300, 1000, 1024, 3000, 8000, 8192, card // 2, card // 3, card // 4, whole * 1024 - 1, whole * 1024,
                              whole * 1024 + 1, card - 1, card} & set(range(1, card + 1)))
            status, documents, notes = self.many([{MEM: mib} for mib in amounts], "--card", f"{card}MiB")
            fewer = False
            for i, mib in enumerate(amounts):
                before, now = card // mib, whole // self.amount(documents[i], OUR_MEM)
                said = f"{before} such pods fitted on a card of {card} MiB, now {now} fit" in "".join(notes[i])
                self.assertEqual(said, now < before, (card, mib, notes[i]))
                fewer |= said
            self.assertGreaterEqual(status, int(fewer))

    def test_pods_of_different_amounts(self):
        """Those that fitted on a card together and do not now are told once, whatever documents and files they stand in."""
        fitted = "aliquot convert: pods of different amounts: %s fitted on a card of 16160 MiB together, and their 16 units are more than its 15\n"
        for asks, words in (([{MEM: 6000}, {MEM: 10000}], "1 of 6000 MiB, 1 of 10000 MiB"), ([{MEM: 10000}, {MEM: 6000}], "1 of 10000 MiB, 1 of 6000 MiB"),
                            ([{MEM: 3000}, {MEM: 1024}], "5 of 3000 MiB, 1 of 1024 MiB"), ([{MEM: 5000}, {MEM: 6000}], "2 of 5000 MiB, 1 of 6000 MiB"),
                            ([{MEM: 5400}, {PERCENT: 7}], "2 of 5400 MiB, 4 of 1131 MiB"), ([{MEM: 6000}], None), ([{MEM: 6000}, {MEM: 6000}], None),
                            ([{MEM: 1024}, {MEM: 2048}, {MEM: 4096}], None), ([{PERCENT: 40}, {PERCENT: 60}, {PERCENT: 33}, {PERCENT: 1}], None),
                            ([{MEM: 6000}, {MEM: 20000}], None)):
            pods = [json.dumps(pod(limits)) for limits in asks]
            status, _, said = convert("\n---\n".join(pods), *V100)
            at = said.find("aliquot convert: ")
            self.assertEqual(at >= 0, words is not None, (asks, said))
            if words:
                self.assertEqual((status, said[at:]), (1, fitted % words), asks)
            listed = json.dumps({"apiVersion": "v1", "kind": "List", "items": [pod(limits) for limits in asks]})
            self.assertEqual("aliquot convert: " in convert(listed, *V100)[2], words is not None)
        self.assertNotIn("aliquot convert: ", convert("\n---\n".join(json.dumps(pod({MEM: m})) for m in (6000, 10000)))[2])

    def test_a_card_that_is_not_known(self):
        for limits, status, words in (({MEM: 3000}, 1, "with --card it is known"), ({MEM: 3072}, 0, "needs a node"), ({MEM: 16000}, 1, "with --card")):
            got, amounts, said = self.limits(limits)
            self.assertEqual((got, len(amounts)), (status, 1), said)
            self.assertIn(words, said)
        status, amounts, said = self.limits({MEM: 300}, options=("--unit", "128MiB"))
        self.assertEqual((status, amounts), (1, [f"{OUR_MEM}: 3"]), said)
        self.assertIn("300 MiB become 3 units of 128 MiB", said)

    def test_they_are_placed(self):
        """Two pods that had a V100 together have it after the conversion, by the scheduler's own judgement."""
        node = {"apiVersion": "v1", "kind": "Node", "metadata": {
            "name": "n1", "labels": {"ack.node.gpu.schedule": "core_mem"}, "annotations": {"aliquot.dev/simulated-cards": "1xTesla-V100-SXM2-16GB:16160MiB"}}}
        for first in (40, 50, 33, 1):
            _, documents, _ = self.many([{PERCENT: first, CORE: first}, {PERCENT: 100 - first, CORE: 100 - first}], *V100)
            p = subprocess.run([ALIQUOT, "local", "--once", "-f", "-"], input="\n---\n".join((json.dumps(node), *documents)), capture_output=True,
                               text=True, timeout=240)
            self.assertEqual(p.returncode, 0, p.stdout + p.stderr)

    def test_names_of_others(self):
        """Whatever of another system is left is told, with its path."""
        amounts = ("volcano.sh/vgpu-number", "volcano.sh/vgpu-memory", "volcano.sh/gpu-memory", "tencent.com/vcuda-core", "tke.cloud.tencent.com/qgpu-memory",
                   "4paradigm.com/vgpu", "4paradigm.com/vgpu-memory-percentage", "koordinator.sh/gpu-core", "koordinator.sh/gpu.shared")
        for name in amounts:
            for where in "limits", "requests":
                manifest = pod({})
                manifest["spec"]["containers"][0]["resources"] = {where: {name: 1}}
                status, _, said = convert(json.dumps(manifest))
                self.assertEqual((status, said.count("\n")), (1, 1), said)
                self.assertIn(f"Pod p: spec.containers[0].resources.{where}[{name}]: {name} is of ", said)
        for manifest, path in (
                (pod({GPU: 0, MEM: 3000}), f"spec.containers[0].resources.limits[{MEM}]"),
                ({"kind": "ResourceQuota", "metadata": {"name": "q"}, "spec": {"hard": {f"requests.{MEM}": "3000"}}}, f"q: spec.hard[requests.{MEM}]"),
                ({"kind": "ResourceQuota", "metadata": {"name": "q"}, "spec": {"hard": {f"limits.{GPU}": "3"}}}, f"q: spec.hard[limits.{GPU}]"),
                (pod({}, nodeSelector={"gpu": "on"}), "spec.nodeSelector.gpu"),
                (pod({GPU: 1, MEM: 1024}, nodeSelector={"gpu": "on"}), "spec.nodeSelector.gpu"),
                (pod({}, affinity={"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [
                    {"matchExpressions": [{"key": "gpu", "operator": "In", "values": ["on"]}]}]}}}), "nodeSelectorTerms[0].matchExpressions"),
                (pod({OUR_MEM: 3}, schedulerName="hami-scheduler"), "spec.schedulerName"),
                (pod({GPU: 1, MEM: 1024}, initContainers=[{"name": "i", "env": [{"name": "CUDA_DISABLE_CONTROL", "value": "true"}]}]),
                 "spec.initContainers[0].env[0].name"),
                (pod({OUR_MEM: 3}, initContainers=[{"name": "i", "env": [{"name": "CUDA_DEVICE_MEMORY_LIMIT_0", "value": "1g"}]}]),
                 "env[0].name"),
                ({"kind": "Pod", "metadata": {"name": "h", "annotations": {"hami.io/node-scheduler-policy": "spread"}}, "spec": {}},
                 "Pod h: metadata.annotations[hami.io/node-scheduler-policy]"),
                ({"kind": "Pod", "metadata": {"name": "h", "annotations": {"nvidia.com/vgpu-mode": "mig"}}, "spec": {}},
                 "metadata.annotations[nvidia.com/vgpu-mode]"),
                ({"kind": "InferenceService", "metadata": {"name": "s"}, "spec": {"predictor": {"model": {"resources": {"limits": {GPU: 1, MEM: 1}}}}}},
                 f"InferenceService s: spec.predictor.model.resources.limits[{MEM}]"),
                ({"kind": "ClusterQueue", "metadata": {"name": "c"}, "spec": {"resourceGroups": [{"coveredResources": ["cpu", MEM]}]}},
                 "spec.resourceGroups[0].coveredResources[1]"),
                ({"kind": "List", "items": [{"kind": "Pod", "metadata": {"name": "k", "annotations": {"gpu-fraction": "0.5"}}}]},
                 "Pod k: items[0].metadata.annotations.gpu-fraction")):
            status, _, said = convert(json.dumps(manifest))
            self.assertEqual(status, 1, said)
            self.assertIn(path + ": ", said)
        for manifest in (pod({}, tolerations=[{"key": GPU, "operator": "Exists"}]), pod({}, nodeSelector={"gpu": "off"}), pod({OUR_MEM: 1}),
                         {"kind": "ResourceQuota", "spec": {"hard": {f"requests.{OUR_MEM}": "3"}}}, pod({}, nodeSelector={"nvidia.com/gpu.present": "true"})):
            self.assertEqual(convert(json.dumps(manifest))[::2], (0, ""))

    def test_half_theirs_half_ours(self):
        """Of a List and of a stream only theirs change, and only theirs are told of."""
        ours, theirs = pod({OUR_MEM: 2}), pod({MEM: 2048})
        theirs["metadata"]["name"] = "theirs"
        for text in (json.dumps({"kind": "List", "items": [ours, theirs]}), f"{json.dumps(ours)}\n---\n{json.dumps(theirs)}\n"):
            status, out, said = convert(text, *V100)
            self.assertEqual((status, out.count(f"{OUR_MEM}: 2\n"), "nvidia.com" in out, "pod p:" in said), (0, 2, False, False), said)

    def test_many_documents(self):
        _, documents, notes = self.many([({MEM: 8192}, {OUR_MEM: 8})[i % 2] for i in range(10000)], "--card", "81920MiB")
        self.assertEqual({self.amount(d, OUR_MEM) for d in documents}, {8})
        self.assertEqual([len(notes[i]) for i in (0, 1, 9998, 9999)], [1, 0, 1, 0])

    def test_an_unknown_name_with_a_card(self):
        """No whole card in place of what was asked for under a name that is not known."""
        status, amounts, said = self.limits({GPU: 1, "nvidia.com/gpuMem": 3000}, options=("--card", "16160MiB"))
        self.assertEqual((status, amounts), (1, [f"{GPU}: 1", "nvidia.com/gpuMem: 3000"]), said)
        manifest = pod({})
        manifest["spec"]["containers"][0]["resources"] = {"requests": {"nvidia.com/gpuMem": 1}}
        self.assertEqual(convert(json.dumps(manifest))[0], 1)

    def test_what_the_scheduler_refuses_is_kept(self):
        manifest = pod({MEM: 1024})
        manifest["metadata"]["annotations"] = {"nvidia.com/use-gputype": "!A100"}
        status, out, said = convert(json.dumps(manifest))
        self.assertEqual((status, f"{MEM}: 1024" in out), (1, True), said)
        manifest = pod({MEM: 1024})
        manifest["metadata"]["labels"] = {OUR_COUNT: "2"}
        status, out, said = convert(json.dumps(manifest))
        self.assertEqual((status, f"{MEM}: 1024" in out), (1, True), said)
        self.assertIn("it has our label aliyun.com/gpu-count", said)

    def test_changes_are_told_of_written_pods_only(self):
        for limits in ([{MEM: 8000, CORE: 33}, {MEM: 1024}], [{GPU: 2, MEM: 8000, CORE: 30}]):
            status, _, said = self.limits(*limits)
            self.assertEqual((status, said.count("\n")), (1, 1), said)
            self.assertNotIn("become", said)

    def test_nodes_for_memory_alone(self):
        said = self.limits({MEM: 1024})[2]
        self.assertIn("label ack.node.gpu.schedule=cgpu or core_mem; of core_mem one without pods that ask for compute, or with "
                      "the annotation aliquot.dev/allow-mixed=true\n", said)
        self.assertIn("label ack.node.gpu.schedule=core_mem\n", self.limits({MEM: 1024, CORE: 30})[2])

    def test_no_member_that_is_not_needed(self):
        manifest = {"kind": "Deployment", "spec": {"template": {"spec": pod({MEM: 1024})["spec"]}}}
        self.assertNotIn("metadata", convert(json.dumps(manifest))[1])
        manifest["spec"]["template"]["spec"] = pod({GPU: 2, MEM: 1024})["spec"]
        self.assertIn(f'metadata:\n      labels:\n        {OUR_COUNT}: "2"\n', convert(json.dumps(manifest))[1])

    def test_wherever_a_pod_is(self):
        template = {key: value for key, value in pod({GPU: 1, MEM: 1024}).items() if key in ("metadata", "spec")}
        for manifest in ({"kind": "Deployment", "metadata": {"name": "outer"}, "spec": {"template": template}},
                         {"kind": "CronJob", "spec": {"jobTemplate": {"spec": {"template": template}}}},
                         {"kind": "List", "items": [pod({GPU: 1, MEM: 1024})]},
                         {"kind": "PyTorchJob", "spec": {"replicas": {"Worker": {"template": template}}}}):
            status, out, said = convert(json.dumps(manifest))
            self.assertEqual(status, 0, said)
            self.assertIn(f"{OUR_MEM}: 1\n", out)
            self.assertNotIn("nvidia.com", out)

    def test_the_rest_stays(self):
        texts = ["a\nb\n", "a\nb", "- x", "yes", "0x1", "1e3", "", " a", "a: b", "20Gi", "\u00e9", "a #b", "|", "~", "1:30", "a\n\n\nb\n\n"]
        manifest = pod({GPU: 1, MEM: 1024, "cpu": 0.1}, schedulerName="hami-scheduler", texts=texts, empty={}, none=None, list=[[1, [2]], []])
        status, out, said = convert(json.dumps(manifest))
        self.assertEqual(status, 0, said)
        self.assertIn("schedulerName hami-scheduler is removed", said)
        self.assertNotIn("schedulerName", out)
        self.assertIn("cpu: 0.1\n", out)
        self.assertEqual(convert(out)[1], out)
        p = subprocess.run(["/usr/bin/python3", "-c", "import yaml, json, sys; print(json.dumps(yaml.safe_load(sys.stdin)))"], input=out,
                           capture_output=True, text=True, timeout=240)
        if p.returncode != 0:
            self.skipTest("python3-yaml is not installed")
        self.assertEqual(json.loads(p.stdout)["spec"]["texts"], texts)

    def test_several_documents(self):
        text = json.dumps(pod({GPU: 1, MEM: 1024}))
        status, out, _ = convert(f"{text}\n---\n{text}\n")
        self.assertEqual((status, out.count("\n---\n"), out.count(OUR_MEM)), (0, 1, 2))

    def test_all_or_nothing(self):
        """A malformed document or file leaves no output of those before it."""
        text = json.dumps(pod({GPU: 1, MEM: 3000}))
        for options, stdin, words in (((), f"{text}\n---\na: [\n", "standard input: line"), (("/proc/self/absent",), text, "cannot be read")):
            p = subprocess.run([ALIQUOT, "convert", "-f", "-", *options], input=stdin, capture_output=True, text=True, timeout=240)
            self.assertEqual((p.returncode, p.stdout, p.stderr.count("\n")), (2, "", 1), p.stderr)
            self.assertIn(words, p.stderr)

    def test_half_converted(self):
        """By hand, or by another tool: what is left names the word, and the status is 1."""
        for limits, words in ({PERCENT: 20, OUR_MEM: 2}, "container c0 asks for aliyun.com/gpu-mem, and container c0 for nvidia.com/gpumem-percentage;"), (
                {GPU: 1, OUR_MEM: 2}, "and container c0 for nvidia.com/gpu;"):
            status, _, said = convert(json.dumps(pod(limits)), "--card", "16160MiB")
            self.assertEqual((status, words in said), (1, True), said)
        for more, words in (({"schedulerName": "hami-scheduler"}, "spec.schedulerName: hami-scheduler is of HAMi"),
                            ({"initContainers": [{"name": "i", "env": [{"name": "CUDA_DISABLE_CONTROL", "value": "true"}]}]},
                             "env[0].name: CUDA_DISABLE_CONTROL is of HAMi"),
                            ({"affinity": {"nodeAffinity": {"x": [{"matchExpressions": [{"key": "gpu", "operator": "In", "values": ["on"]}]}]}}},
                             "matchExpressions: gpu is of HAMi")):
            status, _, said = convert(json.dumps(pod({OUR_MEM: 3}, **more)))
            self.assertEqual((status, words in said), (1, True), said)

    def test_annotations_without_effect(self):
        manifest = pod({GPU: 1, MEM: 1024})
        manifest["metadata"]["annotations"] = {"hami.io/gpu-scheduler-policy": "spread", "nvidia.com/vgpu-mode": "hami-core", "a": "b"}
        status, out, said = convert(json.dumps(manifest))
        self.assertEqual((status, "hami" in out, "vgpu-mode" in out, "  a: b" in out or '"a": "b"' in out), (0, False, False, True), out)
        self.assertIn("the scheduler policies of hami.io are removed", said)

    def test_nothing(self):
        for text in "", "---\n", "# a comment\n":
            self.assertEqual(convert(text), (0, "", "aliquot convert: nothing to convert\n"))
        status, out, said = convert("only words\n")
        self.assertEqual((status, out), (2, ""))
        self.assertIn("standard input: the document at line 1 is no manifest, must be an object\n", said)

    def test_mig(self):
        manifest = pod({GPU: 1, MEM: 1024})
        manifest["metadata"]["annotations"] = {"nvidia.com/vgpu-mode": "mig"}
        status, out, said = convert(json.dumps(manifest))
        self.assertEqual((status, f"{MEM}: 1024" in out), (1, True), said)

    def test_wrong_use(self):
        for options, text, words in (((), "a: [", "standard input: line"), (("--card", "5x"), "", "must be the memory of a card"),
                                     (("--unit", "0GiB"), "", "must be a unit of memory"), (("/proc/self/absent",), "", "cannot be read")):
            status, _, said = convert(text, *options)
            self.assertEqual(status, 2, said)
            self.assertIn(words, said)
        p = subprocess.run([ALIQUOT, "convert"], capture_output=True, text=True, timeout=240)
        self.assertEqual((p.returncode, p.stdout), (2, ""))

    def test_runs(self):
        """The converted pod is placed, and has the memory of its slice."""
        manifest = pod({GPU: 1, MEM: 2048, CORE: 30})
        manifest["spec"]["containers"][0]["command"] = ["sh", "-c", "echo $ALIYUN_COM_GPU_MEM_CONTAINER of $ALIYUN_COM_GPU_MEM_DEV"]
        _, out, _ = convert(json.dumps(manifest))
        p = subprocess.run([ALIQUOT, "local", "--once", "--logs", "--logs-timeout", "60", "-f", os.path.join(ROOT, "samples/core-mem/node.yaml"),
                            "-f", "-"], input=out, capture_output=True, text=True, timeout=240)
        self.assertIn("2 of 15", p.stdout, p.stderr)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
