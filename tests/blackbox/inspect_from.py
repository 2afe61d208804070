#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""kubectl-inspect-cgpu from outside: what is in a file, and what kubectl prints."""

import gzip
import json
import os
import subprocess
import sys
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

from inspect_case import PROGRAM, SUMMARY, Inspect, fence, mixed, node, pod, typed  # noqa: E402
from patience import rounds  # noqa: E402

WHOLE_SUMMARY = """
NAME  IPADDRESS  GPU0       GPU1  GPU2       GPUs(Allocated/Total)
t     10.0.0.9   default/j  -     default/j  2/2

Allocated/Total GPUs In Cluster:
2/2 (100%)
t: GPU1 unhealthy
"""

WHOLE_DETAILS = """
NAME:       t
IPADDRESS:  10.0.0.9

GPU0  default/j
GPU1  -  unhealthy
GPU2  default/j

GB/s  GPU0  GPU1  GPU2
GPU0  -     5     50
GPU1  5     -     5
GPU2  50    5     -

Allocated/Total GPUs In Cluster:
2/2 (100%)
"""

class FromFile(Inspect):
    def test_summary(self):
        path = self.write("cluster.json", mixed(node(), pod()))
        self.assertEqual(self.run_program("--from", path), (0, SUMMARY, ""))

    def test_standard_input(self):
        self.assertEqual(self.run_program("--from", "-", stdin=mixed(pod(), node())), (0, SUMMARY, ""))

    def test_byte_order_mark(self):
        self.assertEqual(self.run_program("--from", "-", stdin="\ufeff" + mixed(pod(), node())), (0, SUMMARY, ""))

    def test_details_and_one_node(self):
        text = mixed(node(), node("other"), pod())
        status, out, _ = self.run_program("-d", "other", "--from", "-", stdin=text)
        self.assertEqual(status, 0)
        self.assertIn("\nNAME:       other\n", out)
        self.assertNotIn("zhangjiakou", out)
        status, out, _ = self.run_program("--from=-", "--details", stdin=text)
        self.assertIn("binpack-0    default    3\n", out)

    def test_json(self):
        status, out, _ = self.run_program("-o", "json", "--from", "-", stdin=mixed(node(), pod()))
        self.assertEqual(status, 0)
        self.assertEqual(json.loads(out), {"nodes": [{
            "name": "cn-zhangjiakou.192.168.66.139", "totalGPU": 15, "usedGPU": 3,
            "devs": [{"id": 0, "totalGPU": 15, "usedGPU": 3,
                      "pods": [{"name": "binpack-0", "namespace": "default", "usedGPU": 3}]}]}]})

    def test_nodes_of_whole_cards(self):
        rates = [[0, 5, 50], [5, 0, 5], [50, 5, 0]]
        cards = [{"index": i, "units": 1, "healthy": i != 1, "peers": rates[i]} for i in range(3)]
        whole = {"metadata": {"name": "t", "annotations": {"aliquot.dev/cards": json.dumps(cards)}},
                 "status": {"allocatable": {"aliyun.com/gpu": "2", "aliyun.com/gpu-mem": "0"},
                            "addresses": [{"type": "InternalIP", "address": "10.0.0.9"}]}}
        job = {"metadata": {"name": "j", "namespace": "default",
                            "annotations": {"scheduler.framework.gpushare.allocation": '{"0":{"0":1,"2":1}}'}},
               "spec": {"nodeName": "t", "containers": [{"resources": {"limits": {"aliyun.com/gpu": "2"}}}]}, "status": {"phase": "Running"}}
        alone, both = typed("Node", whole), mixed(node(), whole, pod(), job)
        self.assertEqual((0, SUMMARY + WHOLE_SUMMARY, ""), self.run_program("--from", "-", stdin=both))
        self.assertEqual((0, WHOLE_DETAILS, ""), self.run_program("-d", "--from", "-", "t", stdin=both))
        self.assertNotIn("GPU Memory", self.run_program("--from", "-", stdin=alone)[1])
        cards = self.run_program("-o", "cards", "-d", "--from", "-", stdin=both)[1]
        self.assertIn("allocated 3/15 GiB (20%), 2/2 whole cards; 2 pods; 1 card unhealthy", cards)
        self.assertIn("GPU2  50    5     -\n", cards)
        nodes = json.loads(self.run_program("-o", "json", "--from", "-", stdin=both)[1])["nodes"]
        self.assertEqual([("cn-zhangjiakou.192.168.66.139", 15, 3), ("t", 2, 2)], [(n["name"], n["totalGPU"], n["usedGPU"]) for n in nodes])

    def test_unknown_node(self):
        status, out, err = self.run_program("nowhere", "--from", "-", stdin=mixed(node()))
        self.assertEqual((status, out), (1, ""))
        self.assertIn('node "nowhere"', err)

    def test_missing_file(self):
        status, out, err = self.run_program("--from", os.path.join(self.folder, "missing.json"))
        self.assertEqual((status, out), (2, ""))
        self.assertIn("missing.json: No such file or directory", err)
        status, out, err = self.run_program("--from", self.folder)
        self.assertEqual((status, out), (2, ""))
        self.assertIn("Is a directory", err)

    def test_every_cut_is_an_error(self):
        text = mixed(node(), pod())
        for cut in range(0, len(text), rounds(4 * 97, 97)):
            path = self.write("cut.json", text[:cut])
            status, out, err = self.run_program("--from", path)
            self.assertEqual((status, out), (2, ""), cut)
            self.assertIn("cut.json: ", err)

    def test_hostile_text(self):
        for text in ("[" * 100000, '{"items":' + "[" * 100000, '{"items":[' + '{"a":' * 100000, "\0" * 100, '{"items":[}',
                     '{"kind":"List","items":{}}', "\xff\xfe"):
            status, out, err = self.run_program("--from", "-", stdin=text)
            self.assertEqual((status, out), (2, ""), text[:20])
            self.assertIn("standard input: ", err)

    def test_objects_left_out_are_named(self):
        broken = mixed(node(), pod()).replace('"apiVersion"', '"items":[{"kind":"Pod","spec":[1]}],"apiVersion"', 1)
        status, out, err = self.run_program("--from", "-", stdin=broken)
        self.assertEqual((status, out), (1, SUMMARY))
        self.assertIn("standard input: items[0]: ", err)
        self.assertIn("spec", err)

    def test_files_that_are_no_json(self):
        for data, words in ((json.dumps({"apiVersion": "v1", "kind": "List", "items": []}).encode("utf-16"), "is UTF-16; save it as UTF-8"),
                            ("{}".encode("utf-16-be"), "is UTF-16; save it as UTF-8"), ("{}".encode("utf-16-le"), "is UTF-16; save it as UTF-8"),
                            (b"apiVersion: v1\nkind: List\n", "is YAML; what kubectl get -o json prints is read"),
                            (b"---\nkind: List\n", "is YAML;"),
                            (b"NAME   STATUS   ROLES\nn1     Ready    <none>\n", "is a table; what kubectl get -o json prints is read"),
                            (b"NAMESPACE   NAME   READY\ndefault     p      1/1\n", "is a table;"), (b"No resources found\n", "is no JSON;"),
                            (b"[{}]", "is an array and no List; what kubectl get -o json prints is read"), (b" \n[", "is an array and no List;"),
                            (gzip.compress(b"{}"), "is compressed by gzip; gzip -dc prints its text"), (b"PK\x03\x04x", "is a zip archive; unpack it first"),
                            (b"\x28\xb5\x2f\xfdx", "is compressed; unpack it first"),
                            (b"# a\nkind: List\n", "is YAML;"), (b"\n  kind: List\n", "is YAML;")):
            path = self.write("form", "")
            with open(path, "wb") as f:
                f.write(data)
            status, out, err = self.run_program("--from", path)
            self.assertEqual((status, out), (2, ""))
            self.assertTrue(err.endswith(words + "\n") or words in err, err)
            self.assertIn(path + ": ", err)

    def test_a_half_of_a_dump(self):
        """Without its nodes, or its pods, a cluster looks empty."""
        nodes = "has no nodes, so the report shows nothing; kubectl get nodes,pods -A -o json prints both\n"
        pods = "has no pods, so the report shows no pod's share; kubectl get nodes,pods -A -o json prints both\n"
        for text, words in ((mixed(pod()), nodes), (typed("Pod", pod()), nodes), (mixed(node()), pods), (typed("Node", node()), pods),
                            (mixed(node(), pod()), ""), (mixed(), "")):
            status, _, err = self.run_program("--from", "-", stdin=text)
            self.assertEqual((status, err), (0, f"standard input: {words}" if words else ""))

    def test_many_warnings_are_counted(self):
        text = typed("Pod", *({"spec": 7} for _ in range(50)))
        status, _, err = self.run_program("--from", "-", stdin=text)
        self.assertEqual(status, 1)
        self.assertEqual(len(err.splitlines()), 21)
        self.assertIn("and 31 more such lines", err)  # 50 pods, and that there are no nodes

    def test_names_cannot_steer_the_terminal(self):
        status, out, _ = self.run_program("--from", "-", stdin=mixed(node("a\x1b[2J\n\tb")))
        self.assertEqual(status, 0)
        self.assertIn("\na?[2J??b  ", out)
        status, out, err = self.run_program("--from", "-", stdin=mixed(node("a\x1b[2J", mem="-1")))
        self.assertEqual(status, 1)
        self.assertIn("node a?[2J: ", err)

    def test_differences_are_counted_beside_the_summary(self):
        """The table itself stays unchanged for programs that read it, with the amounts of the limits."""
        less = pod(name="less")
        less["spec"]["containers"][0]["resources"]["limits"]["aliyun.com/gpu-mem"] = "5"
        path = self.write("list", mixed(node(), less))
        self.assertEqual(self.run_program("--from", path), (
            0, SUMMARY.replace("3/15", "5/15").replace("20%", "33%"),
            "1 pod has annotations that differ from the limits, which are what counts: see -d\n"))
        status, out, err = self.run_program("-d", "--from", path)
        self.assertEqual((status, err), (0, ""))
        self.assertIn("\ndefault/less: annotation scheduler.framework.gpushare.allocation gives container 0 (\"\") 3 of "
                      "aliyun.com/gpu-mem, its limit is 5\n", out)

    def test_closed_output(self):
        with open("/dev/full", "w", encoding="utf-8") as full:
            done = subprocess.run([PROGRAM, "--from", "-"], input=mixed(node()), stdout=full, stderr=subprocess.PIPE,
                                  text=True, check=False)
        self.assertEqual(done.returncode, 3)
        self.assertIn("No space left", done.stderr)

    def test_no_output_at_all(self):
        done = subprocess.run([PROGRAM, "--from", self.write("list", mixed(node()))], stderr=subprocess.PIPE, text=True,
                              check=False, preexec_fn=lambda: os.close(1))
        self.assertEqual(done.returncode, 3)
        self.assertIn("Bad file descriptor", done.stderr)


class FromKubectl(Inspect):
    def test_summary(self):
        self.assertEqual(self.kubectl(), (0, SUMMARY, ""))
        self.assertEqual(self.calls(), [
            "get --raw /api/v1/nodes",
            "get --raw /api/v1/pods?fieldSelector=status.phase%21%3DSucceeded%2Cstatus.phase%21%3DFailed",
            "get --raw /api/v1/namespaces/kube-system/configmaps"])

    def test_a_mixed_list_for_every_question(self):
        both = mixed(node(), pod())
        self.assertEqual(self.kubectl(nodes=both, pods=both), (0, SUMMARY, ""))

    def test_fences(self):
        maps = json.dumps({"kind": "ConfigMapList", "items": [
            {"metadata": fence("unhealthy-gpu-cn-zhangjiakou.192.168.66.139")["metadata"], "data": {"gpus": "0"}}]})
        self.assertEqual(self.kubectl(configmaps=maps), (0, SUMMARY + "cn-zhangjiakou.192.168.66.139: GPU0 fenced\n", ""))

    def test_no_right_to_read_fences(self):
        forbidden = 'case "$last" in */configmaps*) echo "Error from server (Forbidden)" >&2; exit 1 ;; esac; exit 0'
        said = "cards that a ConfigMap fences may not be shown: the configmaps of kube-system could not be listed\n"
        for answer in "", "{", '{"kind":"ConfigMapList","items":[{"metadata":{"name":"unhealthy-gpu-cn-zha':
            self.assertEqual(self.kubectl(configmaps=answer, after=forbidden), (0, SUMMARY, said))
            self.assertEqual(self.kubectl(configmaps=answer), (0, SUMMARY, said))

    def test_one_node_is_asked_for_alone(self):
        self.kubectl("cn-zhangjiakou.192.168.66.139")
        self.assertEqual(self.calls()[0],
                         "get --raw /api/v1/nodes?fieldSelector=metadata.name%3Dcn-zhangjiakou.192.168.66.139")
        self.assertTrue(self.calls()[1].endswith("Failed%2Cspec.nodeName%3Dcn-zhangjiakou.192.168.66.139"))

    def test_a_strange_node_name_stays_one_value(self):
        status, out, err = self.kubectl("a&b=c,d/../e\n")
        self.assertEqual((status, out), (1, ""))
        self.assertEqual(self.calls()[0], "get --raw /api/v1/nodes?fieldSelector=metadata.name%3Da%26b%3Dc%2Cd%2F..%2Fe%0A")

    def test_options_are_handed_on(self):
        self.kubectl("--context", "prod", "--kubeconfig=/tmp/a b", "--as", "--token")
        self.assertEqual(self.calls()[0], "--context=prod --kubeconfig=/tmp/a b --as=--token get --raw /api/v1/nodes")

    def test_kubectl_fails(self):
        status, out, err = self.kubectl(nodes="", after='echo "error: You must be logged in" >&2; exit 1')
        self.assertEqual((status, out), (1, ""))
        self.assertIn("error: You must be logged in\n", err)
        self.assertIn("kubectl get --raw /api/v1/nodes: exit status 1", err)

    def test_kubectl_fails_behind_a_whole_list(self):
        status, out, err = self.kubectl(after="exit 7")
        self.assertEqual((status, out), (1, ""))
        self.assertIn("exit status 7", err)

    def test_kubectl_is_killed_in_the_middle(self):
        status, out, err = self.kubectl(nodes=typed("Node", node())[:-20], after="kill -9 $$")
        self.assertEqual((status, out), (1, ""))
        self.assertIn("killed by signal 9", err)

    def test_kubectl_breaks_off_without_a_word(self):
        status, out, err = self.kubectl(pods=typed("Pod", pod())[:-20])
        self.assertEqual((status, out), (1, ""))
        self.assertIn("kubectl get --raw /api/v1/pods", err)

    def test_kubectl_that_talks_on_is_ended(self):
        # As kubectl without a login, which waits for an answer.
        status, out, err = self.kubectl(nodes="Please enter Username: ", after="while :; do sleep 0.01; done")
        self.assertEqual((status, out), (1, ""))
        self.assertIn("where it asks for a user name, the kubeconfig has no login for this cluster", err)
        status, out, err = self.kubectl(nodes="this is no JSON", after="while :; do echo x; done")
        self.assertEqual((status, out), (1, ""))
        self.assertIn("kubectl get --raw /api/v1/nodes: ", err)

    def test_no_kubectl(self):
        status, out, err = self.run_program(env={"PATH": self.folder})
        self.assertEqual((status, out), (3, ""))
        self.assertIn("kubectl is not on PATH", err)


if __name__ == "__main__":
    unittest.main()
