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
                ([{GPU: 1, MEM: 3000, CORE: 30}], (), [f"{OUR_MEM}: 3", f"{OUR_CORE}: 30"], "3000 MiB become 3 units of 1024 MiB"),
                ([{MEM: 2048}], (), [f"{OUR_MEM}: 2"], "ack.node.gpu.schedule=cgpu"),
                ([{GPU: "1", MEM: "2k", CORE: "31"}], (), [f"{OUR_MEM}: 2", f"{OUR_CORE}: 35"], "31 percent of compute become 35"),
                ([{MEM: 300}], ("--unit", "128MiB"), [f"{OUR_MEM}: 3"], "300 MiB become 3 units of 128 MiB"),
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
                              ([{MEM: "3Gi"}], "nvidia.com/gpumem is in MiB; write 3072 for 3221225472 bytes;"),
                              ([{GPU: 1, "nvidia.com/gpuMem": 3000}], "nvidia.com/gpuMem is not known, nvidia.com/gpumem was probably meant;"),
                              ([{"nvidia.com/mig-3g.20gb": 1}], "nvidia.com/mig-3g.20gb has no equal here;"),
                              ([{MEM: 1024}, {"nvidia.com/mig-3g.20gb": 1}], "container c1: nvidia.com/mig-3g.20gb has no equal here;"),
                              ([{MEM: "1.5"}], "not a whole number"), ([{MEM: [1]}], "not a whole number"), ([{GPU: 65}], "is over 64")):
            status, amounts, said = self.limits(*limits)
            self.assertEqual(status, 1, said)
            self.assertEqual(len(amounts), sum(map(len, limits)), amounts)
            self.assertNotIn("aliyun", "".join(amounts))
            self.assertIn(words, said)
            self.assertIn("kept as it is", said)

    def test_an_unknown_name_with_a_card(self):
        """No whole card in place of what was asked for under a name that is not known."""
        status, amounts, said = self.limits({GPU: 1, "nvidia.com/gpuMem": 3000}, options=("--card", "16160MiB"))
        self.assertEqual((status, amounts), (1, [f"{GPU}: 1", "nvidia.com/gpuMem: 3000"]), said)
        manifest = pod({})
        manifest["spec"]["containers"][0]["resources"] = {"requests": {"nvidia.com/gpuMem": 1}}
        self.assertEqual(convert(json.dumps(manifest))[0], 1)

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
