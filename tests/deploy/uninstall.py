#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""deploy/uninstall.sh beside a kubectl and a helm that answer by rules and write down each call: what it asks, and what it leaves when a call
fails. Its list of what programs write to Nodes is that of the sources. tests/e2e/uninstall_test.py runs it on a cluster."""

import os
import re
import shlex
import subprocess
import sys
import tempfile
import unittest

ROOT = os.path.abspath(sys.argv.pop(1))
SCRIPT = os.path.join(ROOT, "deploy/uninstall.sh")

# A rule: words that all stand in the call, what is printed, the status. The first that fits
# answers; other calls succeed without a word.
FAKE = """#!/bin/sh
call="$(basename "$0") $*"
printf "%s\\n" "$call" >>{log}
{rules}
"""
DAEMONSET, CONDITIONS, CRDS, POLICIES = (["get daemonset", "-A"], ["get nodes", "conditions"], ["get crd"], ["get resourcepolicies", "-A"])
ADMISSION = (["--raw /apis/admissionregistration.k8s.io/v1"], '{"resources":[{"name":"validatingadmissionpolicies"}]}', 0)
SECRET = (["get secret", "-n team", "owner=helm,name=shares"], "secret/sh.helm.release.v1.shares.v1\n", 0)
OURS = (DAEMONSET, "gpus shares team\n", 0)
CRD = (CRDS, "customresourcedefinition.apiextensions.k8s.io/resourcepolicies.scheduling.alibabacloud.com\n", 0)
NODES = (CONDITIONS, 'node/n-1.a {"aliquot.dev/holds-slices":"false"} Ready\nnode/cpu {"x":"y"} Ready\n'
                     'node/once {"x":"y"} Ready GPUShareMisconfigured\nnode/fenced {"x":"y"} Ready GPUFenceMisconfigured\n', 0)
REFUSED = "Error from server (Forbidden): it is forbidden\n"


def source(path):
    with open(os.path.join(ROOT, path), encoding="utf-8") as f:
        return f.read()


def written(words, output, status):
    """the rule in the shell's words"""
    tests = " && ".join(f"[ -z \"${{call##*{shlex.quote(w)}*}}\" ]" for w in words)
    return f"if {tests}; then printf %s {shlex.quote(output)} >&{2 if status else 1}; exit {status}; fi"


class Uninstall(unittest.TestCase):
    def setUp(self):
        temporary = tempfile.TemporaryDirectory()
        self.addCleanup(temporary.cleanup)
        self.folder = temporary.name

    def run_it(self, *args, rules=(), helm=True, **environment):
        """the finished script, and the calls"""
        log = os.path.join(self.folder, "calls")
        for name in ("kubectl", "helm"):
            path = os.path.join(self.folder, name)
            with open(path, "w", encoding="utf-8") as f:
                f.write(FAKE.format(log=shlex.quote(log), rules="\n".join(written(*r) for r in [*rules, ADMISSION])))
            os.chmod(path, 0o755)
        open(log, "w", encoding="utf-8").close()
        clean = {k: v for k, v in os.environ.items() if k not in ("KUBECTL", "HELM", "RELEASE", "RELEASE_NAMESPACE")}
        done = subprocess.run([SCRIPT, *args], capture_output=True, text=True, timeout=120, check=False, env={
            **clean, "KUBECTL": os.path.join(self.folder, "kubectl"),
            "HELM": os.path.join(self.folder, "helm" if helm else "absent"), **environment})
        with open(log, encoding="utf-8") as f:
            return done, f.read().splitlines()

    def changes(self, calls):
        return [c for c in calls if not c.startswith("kubectl get")]

    def test_arguments(self):
        for args in (["--help"], ["--dry-run"], ["--anyway", "now"], [""]):
            done, calls = self.run_it(*args)
            self.assertEqual((done.returncode, calls), (2, []), args)
            self.assertIn("usage: uninstall.sh [--anyway]", done.stderr)

    def test_whole(self):
        done, calls = self.run_it(rules=[OURS, SECRET, NODES, CRD])
        self.assertEqual(done.returncode, 0, done.stderr)
        text = "\n".join(calls)
        self.assertIn("helm uninstall shares --namespace team", text)
        self.assertIn("delete -n gpus --ignore-not-found secret/aliquot-webhook-tls lease/aliquot-scheduler", text)
        self.assertIn("delete -n team --ignore-not-found pod/shares-test", text)
        self.assertIn("delete --ignore-not-found crd resourcepolicies", text)
        self.assertLess(text.index("mutatingwebhookconfiguration"), text.index("helm uninstall"))
        self.assertEqual(re.findall(r"label (\S+)", text), ["node/n-1.a", "node/once", "node/fenced"])
        self.assertIn(",podmonitor,prometheusrule", text)
        self.assertNotIn("podmonitor", str(self.run_it(rules=[(["monitoring.coreos.com"], "", 1)])[1]))
        self.assertTrue(done.stdout.endswith("node/n-1.a\nnode/once\nnode/fenced\n"), done.stdout)

    def test_nothing_there(self):
        done, calls = self.run_it()
        self.assertEqual((done.returncode, done.stdout), (0, "The cluster has nothing of aliquot.\n"), done.stderr)
        self.assertFalse([c for c in calls if "helm uninstall" in c or " crd resourcepolicies" in c or " node/" in c], calls)

    def test_holders(self):
        held = (["holds-slices=true"], "node/a\nnode/b\n", 0)
        done, calls = self.run_it(rules=[held])
        self.assertEqual((done.returncode, self.changes(calls)), (1, []))
        self.assertIn("pods hold slices on node/a node/b : end them first", done.stderr)
        self.assertEqual(self.run_it("--anyway", rules=[held])[0].returncode, 0)

    def test_questions_refused(self):
        """A question that is not answered ends it before anything is taken away."""
        for words in (["holds-slices=true"], CONDITIONS, DAEMONSET, ["get secret"], ["get lease"], CRDS, POLICIES, ["--raw /apis/admission"]):
            rules = [(words, REFUSED, 1)] + [r for r in (OURS, SECRET, NODES, CRD) if words != ["get lease"] or r != OURS]
            done, calls = self.run_it(rules=rules)
            self.assertEqual((done.returncode, self.changes(calls)), (1, []), words)
            self.assertIn("it is forbidden", done.stderr)

    def test_changes_refused(self):
        for words in (["delete", "mutatingwebhook"], ["delete", "validatingadmissionpolicy"], ["helm uninstall"], ["delete -n gpus -l"], ["delete -l"],
                      ["wait"], ["lease/aliquot"], ["pod/shares-test"], ["delete", "crd"]):
            done, _ = self.run_it(rules=[(words, REFUSED, 1), OURS, SECRET, NODES, CRD])
            self.assertEqual(done.returncode, 1, words)
            self.assertNotIn("has nothing of aliquot", done.stdout)

    def test_node_refused(self):
        """One node is left, the others are done, and the next run finds it by what it has: its labels go last."""
        for verb in ("annotate", "patch"):
            done, calls = self.run_it(rules=[([verb, "node/n-1.a"], REFUSED, 1), OURS, SECRET, NODES])
            self.assertEqual(done.returncode, 1)
            self.assertIn("still with keys of aliquot: node/n-1.a; run this again", done.stderr)
            self.assertEqual(re.findall(r"label (\S+)", "\n".join(calls)), ["node/once", "node/fenced"])

    def test_resource_policies(self):
        policy = (POLICIES, "resourcepolicy/a\n", 0)
        done, calls = self.run_it(rules=[OURS, CRD, policy])
        self.assertIn("their CRD stays", done.stderr)
        self.assertFalse([c for c in calls if "delete" in c and "crd" in c])

    def test_helm(self):
        done, calls = self.run_it(rules=[OURS, SECRET], helm=False)
        self.assertEqual((done.returncode, self.changes(calls)), (1, []))
        self.assertIn("Helm has the release shares in team, and there is no", done.stderr)
        self.assertEqual(self.run_it(rules=[(DAEMONSET, "gpus  \n", 0)], helm=False)[0].returncode, 0)
        named = (["get secret", "-n team", "name=mine"], "secret/s\n", 0)
        self.assertIn("helm uninstall mine --namespace team", self.run_it(rules=[named], RELEASE="mine", RELEASE_NAMESPACE="team")[1])

    def test_second_run(self):
        """The DaemonSet is gone; the Lease says where the rest is."""
        calls = self.run_it(rules=[(["get lease", "-A"], "gpus\n", 0)])[1]
        self.assertIn("kubectl delete -n gpus --ignore-not-found secret/aliquot-webhook-tls lease/aliquot-scheduler", calls)

    def test_lists(self):
        """What ValidatingAdmissionPolicies let our accounts write to Nodes is what the script takes away."""
        policy = source("deploy/helm/aliquot/objects/policies/own-nodes.yaml")
        calls = "\n".join(self.run_it(rules=[NODES])[1])
        keys = r"(?<= )(\S+)-(?= |$)"
        taken = {kind: set(re.findall(pattern, next(c for c in calls.splitlines() if f"kubectl {kind}" in c)))
                 for kind, pattern in (("label", keys), ("annotate", keys), ("patch", r'"type":"(\w+)"'))}
        listed = {name: set(re.findall(r"'([^']+)'", re.search(rf"- name: {name}\n    expression: \|-\n((?:      .*\n)+)", policy)[1]))
                  for name in ("ownAnnotations", "ownLabels", "ownConditions")}
        self.assertEqual(taken["annotate"], listed["ownAnnotations"])
        self.assertEqual(taken["label"], listed["ownLabels"] - {"nvidia.com/gpu.deploy.device-plugin"})
        self.assertEqual(taken["patch"], listed["ownConditions"])
        sources = re.findall(r'#define CONDITION_\w+\s+"(GPU\w+)"', source("src/node/publish/conditions.h") + source("src/wire/node.h"))
        self.assertEqual(taken["patch"], set(sources))


if __name__ == "__main__":
    unittest.main()
