#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The samples, the kustomizations and the chart, as the API server that KUBECONFIG names takes them: in dry runs, with its own validation.

HELM and KUBECTL name the programs. The class Lifecycle installs the chart, upgrades it and takes it away again: it needs HELM, and no aliquot there.
OLD_CHART: a folder with an older chart, from which it upgrades; OLD_VALUES: its values, as a file."""

import glob
import json
import os
import shutil
import subprocess
import sys
import unittest
import urllib.error
import urllib.request

try:
    import flips
    import yaml
    from manifests import kustomization, load
except ModuleNotFoundError as e:
    print(f"skipped: {e.name} is not there (Debian: python3-yaml)")
    sys.exit(77)

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../..")
CHART = os.path.join(ROOT, "deploy/helm/aliquot")
KUBECTL = os.environ.get("KUBECTL", "kubectl")
HELM = shutil.which(os.environ.get("HELM", "helm"))
OLD_CHART, OLD_VALUES = os.environ.get("OLD_CHART"), os.environ.get("OLD_VALUES")
VERSIONS = "1.22.0", "1.25.3", "1.27.16+k3s1", "v1.29.1-gke.7", "v1.33.5-eks-113cf36", "1.36.2"
NAMESPACE = flips.OTHER["namespace"]
# Kinds that the Prometheus Operator brings, and one that our chart brings.
FOREIGN = ("PodMonitor", "PrometheusRule", "ResourcePolicy")


def run(*command, stdin=None):
    return subprocess.run(command, input=stdin, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


def kubectl(*arguments, stdin=None):
    return run(KUBECTL, *arguments, stdin=stdin)


class Server:
    """Creates objects in dry runs, with the server's strict validation of fields: an unknown or doubled one is refused."""

    def __init__(self):
        self.proxy = subprocess.Popen([KUBECTL, "proxy", "--port=0"], stdout=subprocess.PIPE, text=True)
        self.url = "http://" + self.proxy.stdout.readline().split()[-1]
        self.resources = {}

    def stop(self):
        self.proxy.kill()
        self.proxy.communicate()

    def answer(self, path, body=None):
        request = urllib.request.Request(self.url + path, data=body, headers={"Content-Type": "application/json"})
        try:
            with urllib.request.urlopen(request, timeout=60) as response:
                return json.load(response)
        except urllib.error.HTTPError as e:
            return json.load(e)

    def create(self, o):
        """what it says against that object; None when it takes it"""
        group = ("/apis/" if "/" in o["apiVersion"] else "/api/") + o["apiVersion"]
        if group not in self.resources:
            self.resources[group] = {r["kind"]: r for r in self.answer(group).get("resources", []) if "/" not in r["name"]}
        r = self.resources[group].get(o["kind"])
        if not r:
            return f"{group} has no {o['kind']}"
        namespace = f"/namespaces/{o['metadata'].get('namespace', 'default')}" if r["namespaced"] else ""
        answer = self.answer(f"{group}{namespace}/{r['name']}?dryRun=All&fieldValidation=Strict", json.dumps(o).encode())
        return answer["message"] if answer["kind"] == "Status" else None


class Case(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = Server()

    @classmethod
    def tearDownClass(cls):
        cls.server.stop()

    def accepts(self, objects, what):
        for o in objects:
            if o and o["kind"] not in FOREIGN:
                self.assertIsNone(self.server.create(o), (what, o["kind"], o["metadata"]["name"]))


class Manifests(Case):
    def test_samples(self):
        paths = glob.glob(os.path.join(ROOT, "samples/**/*.yaml"), recursive=True)
        self.assertGreater(len(paths), 20)
        for path in sorted(paths):
            if not path.endswith("refusals/pods.yaml"):
                with self.subTest(os.path.relpath(path, ROOT)):
                    self.accepts(load(path), path)

    def test_kustomizations(self):
        for name in ("base", "before-1.30", "older"):
            self.accepts(kustomization(os.path.join(ROOT, "deploy/kustomize", name)).values(), name)


@unittest.skipUnless(HELM, "there is no helm")
class Chart(Case):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        kubectl("create", "namespace", NAMESPACE)

    @classmethod
    def tearDownClass(cls):
        kubectl("delete", "namespace", NAMESPACE, "--wait=false")
        super().tearDownClass()

    def rendered(self, version, names):
        p = run(HELM, "template", "aliquot", CHART, "--namespace", "kube-system", "--kube-version", version, *flips.arguments(names))
        self.assertEqual(p.returncode, 0, p.stdout)
        return list(yaml.safe_load_all(p.stdout))

    def test_each_version(self):
        for i, version in enumerate(VERSIONS):
            later = flips.LATER if i < 4 else set()
            for names in set(), flips.of_chart(CHART) - flips.CONTRADICT - later:
                self.accepts(self.rendered(version, names), (version, sorted(names)))

    def test_each_value(self):
        """What differs from the objects of no value at all; those are tried above."""
        plain = self.rendered(VERSIONS[-1], [])
        for name in sorted(flips.of_chart(CHART)):
            with self.subTest(name):
                self.accepts([o for o in self.rendered(VERSIONS[-1], [name, *flips.NEEDS.get(name, [])]) if o not in plain], name)


@unittest.skipUnless(HELM, "there is no helm")
class Lifecycle(unittest.TestCase):
    def helm(self, *arguments):
        p = run(HELM, *arguments, "--namespace", "kube-system")
        self.assertEqual(p.returncode, 0, p.stdout)
        return p.stdout

    def ours(self):
        """kind and name of what carries our label, over all kinds of the server"""
        kinds = kubectl("api-resources", "--verbs=list", "-o", "name").stdout.split()
        p = kubectl("get", ",".join(k for k in kinds if k != "events.events.k8s.io"), "-A", "-l", "app.kubernetes.io/name=aliquot", "-o", "json")
        return {(o["kind"], o["metadata"]["name"]) for o in json.loads(p.stdout[p.stdout.index("{"):])["items"]}

    def test_installed_upgraded_and_gone(self):
        self.assertEqual(self.ours(), set(), "aliquot is there already")
        parts = ["--set-json", 'images={"aliquot": {"registry": "example.test"}}']  # with any value, those of the older release are dropped
        if OLD_CHART:
            self.helm("install", "aliquot", OLD_CHART, *(["-f", OLD_VALUES] if OLD_VALUES else []))
        notes = self.helm("upgrade" if OLD_CHART else "install", "aliquot", CHART, *parts)
        self.assertTrue(notes.rstrip().splitlines()[-1].lstrip().startswith("helm test aliquot "), notes)
        wanted = {(k[0], k[2]) for k in kustomization(os.path.join(ROOT, "deploy/kustomize/base"))}
        self.assertLessEqual(wanted, self.ours())
        self.helm("upgrade", "aliquot", CHART, "--set", "scheduler.replicas=3,policy=3")
        self.helm("uninstall", "aliquot")
        # The CRD has users' objects, and is kept.
        self.assertEqual({(kind, name) for kind, name in self.ours() if kind not in ("Pod", "ReplicaSet", "ControllerRevision", "EndpointSlice", "Endpoints")},
                         {("CustomResourceDefinition", "resourcepolicies.scheduling.alibabacloud.com")})
        kubectl("delete", "crd", "resourcepolicies.scheduling.alibabacloud.com")


if __name__ == "__main__":
    if kubectl("version").returncode != 0:
        print("skipped: no API server answers; KUBECONFIG must name one")
        sys.exit(77)
    unittest.main()
