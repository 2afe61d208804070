#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""kubectl-inspect-cgpu from outside: files, a scripted kubectl on PATH, and the exit status."""

import json
import os
import subprocess
import sys
import tempfile
import unittest

PROGRAM = os.path.abspath(sys.argv.pop(1))

SUMMARY = """\
NAME                           IPADDRESS       GPU0(Allocated/Total)  GPU Memory(GiB)
cn-zhangjiakou.192.168.66.139  192.168.66.139  3/15                   3/15
---------------------------------------------------------------------------
Allocated/Total GPU Memory In Cluster:
3/15 (20%)
"""

# Answers from $ANSWERS/nodes and $ANSWERS/pods; logs its arguments in $ANSWERS/calls; then runs
# $AFTER.
KUBECTL = """\
#!/bin/sh
for last; do :; done
printf '%s\\n' "$*" >> "$ANSWERS/calls"
case "$last" in
*/nodes*) cat "$ANSWERS/nodes" ;;
*/pods*) cat "$ANSWERS/pods" ;;
esac
eval "$AFTER"
"""


def node(name="cn-zhangjiakou.192.168.66.139", ip="192.168.66.139", mem="15", count="1"):
    return {"metadata": {"name": name},
            "status": {"allocatable": {"aliyun.com/gpu-mem": mem, "aliyun.com/gpu-count": count},
                       "addresses": [{"type": "InternalIP", "address": ip}]}}


def pod(name="binpack-0", mem="3", card="0", on="cn-zhangjiakou.192.168.66.139"):
    return {"metadata": {"name": name, "namespace": "default",
                         "annotations": {"scheduler.framework.gpushare.allocation": '{"0":{"%s":%s}}' % (card, mem)}},
            "spec": {"nodeName": on, "containers": [{"resources": {"limits": {"aliyun.com/gpu-mem": mem}}}]},
            "status": {"phase": "Running"}}


def typed(kind, *items):
    return json.dumps({"kind": kind + "List", "apiVersion": "v1", "metadata": {}, "items": items})


def mixed(*items):
    """As kubectl prints it: keys in order, indented."""
    objects = [dict(i, apiVersion="v1", kind="Node" if "allocatable" in i["status"] else "Pod") for i in items]
    return json.dumps({"apiVersion": "v1", "items": objects, "kind": "List"}, indent=4, sort_keys=True)


class Inspect(unittest.TestCase):
    maxDiff = None

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def write(self, name, text, mode=0o644):
        path = os.path.join(self.folder, name)
        with open(path, "w", encoding="utf-8") as out:
            out.write(text)
        os.chmod(path, mode)
        return path

    def run_program(self, *args, stdin="", env=None):
        done = subprocess.run([PROGRAM, *args], input=stdin, env=env, capture_output=True, text=True, timeout=30,
                              check=False)
        return done.returncode, done.stdout, done.stderr

    def kubectl(self, *args, nodes=None, pods=None, after="exit 0"):
        self.write("kubectl", KUBECTL, 0o755)
        self.write("nodes", typed("Node", node()) if nodes is None else nodes)
        self.write("pods", typed("Pod", pod()) if pods is None else pods)
        env = dict(os.environ, PATH=self.folder + os.pathsep + os.environ["PATH"], ANSWERS=self.folder, AFTER=after)
        return self.run_program(*args, env=env)

    def calls(self):
        with open(os.path.join(self.folder, "calls"), encoding="utf-8") as lines:
            return lines.read().splitlines()


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
        for cut in range(0, len(text), 97):
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

    def test_many_warnings_are_counted(self):
        text = typed("Pod", *({"spec": 7} for _ in range(50)))
        status, _, err = self.run_program("--from", "-", stdin=text)
        self.assertEqual(status, 1)
        self.assertEqual(len(err.splitlines()), 21)
        self.assertIn("and 30 more such lines", err)

    def test_names_cannot_steer_the_terminal(self):
        status, out, _ = self.run_program("--from", "-", stdin=mixed(node("a\x1b[2J\n\tb")))
        self.assertEqual(status, 0)
        self.assertIn("\na?[2J??b  ", out)
        status, out, err = self.run_program("--from", "-", stdin=mixed(node("a\x1b[2J", mem="-1")))
        self.assertEqual(status, 1)
        self.assertIn("node a?[2J: ", err)

    def test_differences_are_counted_beside_the_summary(self):
        """The table itself stays unchanged for programs that read it."""
        less = pod(name="less")
        less["spec"]["containers"][0]["resources"]["limits"]["aliyun.com/gpu-mem"] = "5"
        path = self.write("list", mixed(node(), less))
        self.assertEqual(self.run_program("--from", path), (
            0, SUMMARY, "1 pod has annotations that differ from the limits, which are what counts: see -d\n"))
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
            "get --raw /api/v1/pods?fieldSelector=status.phase%21%3DSucceeded%2Cstatus.phase%21%3DFailed"])

    def test_a_mixed_list_for_every_question(self):
        both = mixed(node(), pod())
        self.assertEqual(self.kubectl(nodes=both, pods=both), (0, SUMMARY, ""))

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
        status, out, err = self.kubectl(nodes="this is no JSON", after="while :; do echo x; done")
        self.assertEqual((status, out), (1, ""))
        self.assertIn("kubectl get --raw /api/v1/nodes: ", err)

    def test_no_kubectl(self):
        status, out, err = self.run_program(env={"PATH": self.folder})
        self.assertEqual((status, out), (3, ""))
        self.assertIn("kubectl is not on PATH", err)


class Usage(Inspect):
    def test_wrong_usage(self):
        for args in (["-x"], ["--nonsense"], ["-o", "yaml"], ["-o"], ["a", "b"], [""], ["--from"]):
            status, out, err = self.run_program(*args)
            self.assertEqual((status, out), (2, ""), args)
            self.assertNotEqual(err, "")

    def test_help_and_version(self):
        status, out, err = self.run_program("--help")
        self.assertEqual((status, err), (0, ""))
        for option in ("-d, --details", "-o, --output", "--from FILE", "--kubeconfig FILE"):
            self.assertIn(option, out)
        status, out, err = self.run_program("--version")
        self.assertRegex(out, r"^kubectl-inspect-cgpu \d+\.\d+\.\d+\n$")
        self.assertEqual((status, err), (0, ""))


if __name__ == "__main__":
    unittest.main()
