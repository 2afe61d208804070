# SPDX-License-Identifier: Apache-2.0
"""Another value for each value of the chart: for the tests of what it renders."""

import json
import os

from manifests import load

OTHER = {
    "namespace": "gpus", "policy": 3, "maxInst": 4, "prioRatio": 60, "maxPodsPerCard": 9, "allowMixed": True, "placeWhileChanging": True,
    "ignoreCgpuDisable": True, "sayRefusals": True, "knownDriversOnly": True, "keepNvidiaPluginOff": True, "systemAccounts": ["a"], "admissionPolicies": False,
    "hungKernel": 60, "onHungKernel": "kill", "onComputeExcess": "kill", "onExcess": "kill", "gpuMemoryUnit": "128MiB", "deviceAccess": "runtime",
    "evictForCards": True, "growBeyondLimits": True, "memoryIsolation": "both",
    "resourcePolicies": False, "filterBest": 0, "gangs": False, "spareIdleCards": True,
    "nodeOrder": "fragmentation", "page.enabled": True, "page.port": 8080, "page.hosts": ["a.example"], "page.cluster": "prod-1", "notSafeToEvict": True,
    "monitoring": "operator", "simulate": "1xT4:15360MiB", "simulatedDriver": "1xT4:15360MiB", "images.aliquot.registry": "host:5000",
    "images.aliquot.repository": "a/b", "images.aliquot.tag": "edge", "images.aliquot.digest": "sha256:" + 64 * "0",
    "images.kubeScheduler.registry": "host:5000", "images.kubeScheduler.repository": "a/b", "images.kubeScheduler.tag": "stock",
    "images.kubeScheduler.digest": "sha256:" + 64 * "0", "images.pullPolicy": "Always", "images.pullSecrets": [{"name": "s"}],
    "webhook.matchConditions": False, "scheduler.replicas": 3, "scheduler.readsOnLoopback": True,
    "scheduler.extraContainers": [{"name": "c", "image": "i"}], "scheduler.extraVolumes": [{"name": "v", "emptyDir": {}}],
    "test.gpuMem": 2, "test.gpuCorePercentage": 30}
for program in "node", "scheduler", "kubeScheduler", "simulator", "test":
    OTHER.update({f"{program}.resources": {"limits": {"cpu": "1"}}, f"{program}.affinity": {"podAffinity": {}},
                  f"{program}.nodeSelector": {"a": "b"}, f"{program}.tolerations": [],
                  f"{program}.priorityClassName": "", f"{program}.annotations": {"a": "b"}, f"{program}.labels": {"a": "b"},
                  f"{program}.extraArgs": ["--version"]})
# With these beside it.
NEEDS = {"page.hosts": ["page.enabled"], "page.cluster": ["page.enabled"], "page.port": ["page.enabled"],
         "images.kubeScheduler.digest": ["images.kubeScheduler.tag"],
         "simulator.resources": ["simulatedDriver"]}
# All others may stand beside each other.
CONTRADICT = {"simulate", "monitoring", "admissionPolicies"}
# From Kubernetes 1.30 on.
LATER = {"growBeyondLimits"}
# What changes nothing before some version.
NEWEST = {"growBeyondLimits", "gangs", "resourcePolicies", "webhook.matchConditions", "admissionPolicies", "deviceAccess"}


def leaves(value, path=""):
    if not isinstance(value, dict) or not value or path.split(".")[-1] in ("resources", "affinity", "nodeSelector"):
        return {path}
    return set().union(*(leaves(v, f"{path}.{k}".lstrip(".")) for k, v in value.items()))


def of_chart(chart):
    """the names of all values; one without another value here is an error"""
    (values,) = load(os.path.join(chart, "values.yaml"))
    names = leaves(values)
    if names - OTHER.keys():
        raise ValueError(f"no other value is known: {names - OTHER.keys()}")
    return names


def arguments(names):
    """of helm, to set these"""
    return [word for name in sorted(names) for word in ("--set-json", f"{name}={json.dumps(OTHER[name])}")]
