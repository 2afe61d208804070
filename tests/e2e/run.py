#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""All scenarios on a real cluster: tests/e2e/run.py [-k PATTERN] [-f]

KUBECONFIG names the cluster. One of its nodes is used (E2E_NODE, or the only one) and its labels
are changed. Pods are made in a namespace of their own, which is removed at the end. Exit status 77:
something is missing, and is named. README.md lists the variables."""

import argparse
import json
import os
import re
import subprocess
import sys
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import audit  # noqa: E402
import kube  # noqa: E402
import programs  # noqa: E402
import suite  # noqa: E402

MODULES = ("node_test", "topology_test", "doctor_test", "shapes_test", "samples_test", "isolation_test", "attacks_test", "keys_test",
           "webhook_test", "access_test", "listeners_test", "preempt_test", "growth_test", "gangs_test", "bursts_test", "faults_test", "failover_test",
           "upgrade_test", "churn_test", "uninstall_test")


class Missing(Exception):
    pass


def choose_node():
    nodes = kube.get("nodes")
    wanted = os.environ.get("E2E_NODE")
    if not wanted and len(nodes) != 1:
        raise Missing(f"the cluster has {len(nodes)} nodes: E2E_NODE says which one may be used")
    found = [n for n in nodes if not wanted or n["metadata"]["name"] == wanted]
    if not found:
        raise Missing(f"the cluster has no node {wanted}")
    return found[0]


def find_cluster():
    try:
        kube.kubectl("version", "--output=json", timeout=20)
    except FileNotFoundError as e:
        raise Missing(f"{kube.KUBECTL} is not there (KUBECTL names another)") from e
    except (kube.KubectlError, subprocess.TimeoutExpired) as e:
        raise Missing(f"no cluster: {e}") from e


def show_versions(node):
    versions = json.loads(kube.kubectl("version", "--output=json"))
    info = node["status"]["nodeInfo"]
    print(f"server {versions['serverVersion']['gitVersion']}, kubelet {info['kubeletVersion']}, "
          f"{info['containerRuntimeVersion']}, kernel {info['kernelVersion']}, {info['osImage']}, "
          f"kubectl {versions['clientVersion']['gitVersion']}")


def make_namespace():
    if not kube.get("namespace", kube.NAMESPACE):
        kube.kubectl("create", "namespace", kube.NAMESPACE)
    kube.until("the namespace has no service account", lambda: kube.get("serviceaccount", "default"))


def probe():
    """One pod from end to end: if the scheduler does not call our extender, no other scenario can
    pass."""
    kube.create(kube.pod("probe", kube.container("main", 1)))

    def runs():
        found = kube.get("pod", "probe")
        return kube.settled(found) and audit.ALLOCATION in found["metadata"].get("annotations", {})
    kube.until(lambda: f"the first pod does not run with a place in its annotations: {kube.describe(kube.get('pod', 'probe'))}"
               f"\n{suite.World.programs.logs()}", runs, 60)


def restore_node(before):
    labels = before["metadata"].get("labels", {})
    suite.node_labels(mode=labels.get(kube.MODE), placement=labels.get(kube.PLACEMENT))


def load(patterns):
    tests = unittest.TestSuite()
    for name in MODULES:
        loaded = unittest.defaultTestLoader.loadTestsFromName(name)
        for case in loaded:
            for test in case:
                if not patterns or any(re.search(p, test.id()) for p in patterns):
                    tests.addTest(test)
    return tests


def run_all(args):
    tests = load(args.k)
    result = unittest.TextTestRunner(verbosity=2, failfast=args.failfast).run(tests)
    skipped = len(result.skipped)
    bad = len(result.failures) + len(result.errors)
    for test, why in result.skipped:
        print(f"skipped {test.id()}: {why}")
    print(f"{result.testsRun - skipped - bad} passed, {bad} failed, {skipped} skipped")
    return result.wasSuccessful()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-k", action="append", metavar="PATTERN", help="only scenarios with a matching name")
    parser.add_argument("-f", "--failfast", action="store_true", help="end with the first failure")
    args = parser.parse_args()
    try:
        find_cluster()
        node = choose_node()
        suite.World.node = node["metadata"]["name"]
        suite.World.programs, why = programs.find(suite.World.node)
        if not suite.World.programs:
            raise Missing(why)
    except Missing as e:
        print(f"e2e: {e}", file=sys.stderr)
        return 77
    show_versions(node)
    print(f"node {suite.World.node}, programs: {suite.World.programs.what}")
    make_namespace()
    try:
        suite.node_labels(mode="share")
        suite.World.programs.start()
        programs.wait_offered(suite.World.node)
        probe()
        return 0 if run_all(args) else 1
    except (AssertionError, kube.KubectlError) as e:
        print(f"e2e: {e}", file=sys.stderr)
        return 1
    finally:
        kube.kubectl("delete", "namespace", kube.NAMESPACE, "--wait=true", timeout=150, check=False)
        suite.World.programs.stop()
        restore_node(node)


if __name__ == "__main__":
    sys.exit(main())
