# SPDX-License-Identifier: Apache-2.0
"""The start of every scenario: a node in the required mode, without pods of ours, and the audit."""

import json
import sys
import unittest

import audit
import kube
import programs


class World:
    """Set by run.py before the first scenario."""

    node = None
    programs = None
    node_before = {}
    mode = None  # in force; the label may request another one that waits


def node_labels(**labels):
    """Sets labels of the node; None removes one."""
    names = {"mode": kube.MODE, "placement": kube.PLACEMENT}
    patch = {"metadata": {"labels": {names[k]: v for k, v in labels.items()}}}
    kube.kubectl("patch", "node", World.node, "--type=merge", "-p", json.dumps(patch))


def allocatable(resource):
    return int(kube.get("node", World.node)["status"]["allocatable"].get(resource, 0))


def switch_mode(mode):
    """Waits until the kubelet reports the resources of this mode: all of them, or none."""
    node_labels(mode=mode)
    cards = card_count()
    wanted = {kube.COUNT: cards if mode in ("share", "cgpu", "core_mem") else 0,
              kube.CORE: 100 * cards if mode == "core_mem" else 0,
              kube.WHOLE: cards if mode == "topology" else 0}

    def there():
        found = kube.get("node", World.node)["status"]["allocatable"]
        return (all(int(found.get(k, 0)) == v for k, v in wanted.items()) and
                (int(found.get(kube.MEM, 0)) > 0) == (wanted[kube.COUNT] > 0))
    kube.until(lambda: f"node {World.node} in mode {mode}: {kube.get('node', World.node)['status']['allocatable']}", there)
    World.mode = mode
    if programs.MEMORY_ISOLATION == "both" and mode in ("cgpu", "core_mem"):
        kube.until(lambda: f"the driver does not limit memory: {limits_condition().get('message')}", driver_limits)


def limits_condition():
    found = [c for c in kube.get("node", World.node)["status"]["conditions"] if c["type"] == "GPUShareMemoryLimitsUnavailable"]
    return found[0] if found else {}


def driver_limits():
    """Whether the driver limits the memory of pods on this node, beside the library (docs/internals/memory-limits.md)."""
    return limits_condition().get("reason") == "LimitedByDriver"


def card_count():
    label = kube.get("node", World.node)["metadata"]["labels"].get("aliyun.accelerator/nvidia_count")
    return int(label) if label else sum(int(g.split("x", 1)[0]) for g in programs.CARDS.split("/")[0].split(","))


class Scenario(unittest.TestCase):
    mode = "share"
    placement = "binpack"
    maxDiff = None

    def setUp(self):
        kube.kubectl("delete", "pod,deployment,job,cronjob", "-n", kube.NAMESPACE, "-l", f"{kube.RUN}=true", "--wait=true",
                     "--ignore-not-found", timeout=150)
        self.empty()
        node_labels(placement=self.placement)
        switch_mode(self.mode)
        self.addCleanup(self.clean)

    def clean(self):
        outcome = self._outcome.result if hasattr(self._outcome, "result") else None
        if outcome and any(test is self for test, _ in outcome.failures + outcome.errors):
            for p in self.pods():
                sys.stderr.write(f"  {kube.describe(p)}\n")
            sys.stderr.write(World.programs.logs() + "\n")
        kube.kubectl("delete", "pod,deployment,job,cronjob", "-n", kube.NAMESPACE, "--all", "--wait=true", timeout=150)
        self.empty()

    def empty(self):
        """No pod of ours is left, and the ledger is empty: slices are released with their last
        process."""
        kube.until("pods of an earlier scenario are still there", lambda: not self.pods())
        kube.until(lambda: f"the ledger is not empty: {self.ledger()}",
                   lambda: not any(p["namespace"] == kube.NAMESPACE for d in self.ledger().get("devs", [])
                                   for p in d["pods"]))

    def ledger(self):
        found = [n for n in World.programs.inspect()["nodes"] if n["name"] == World.node]
        return found[0] if found else {}

    # ---- pods ----

    def pods(self):
        return kube.get("pods")

    def pod(self, name):
        found = kube.get("pod", name)
        self.assertIsNotNone(found, f"pod {name} is gone")
        return found

    def run_pods(self, *pods, seconds=90):
        """Creates pods at once and waits until each runs or has ended. Returns their objects by
        name."""
        kube.create(*pods)
        return self.wait_settled([p["metadata"]["name"] for p in pods], seconds)

    def wait_settled(self, names, seconds=90):
        found = {}

        def all_there():
            found.update({p["metadata"]["name"]: p for p in self.pods()})
            return all(n in found and kube.settled(found[n]) for n in names)

        def unsettled():
            return "\n".join(kube.describe(found[n]) if n in found else f"{n} is not there" for n in names
                             if n not in found or not kube.settled(found[n]))
        kube.until(unsettled, all_there, seconds, every=0.5)
        return {n: found[n] for n in names}

    def env(self, name, containers=("main",)):
        """What the containers of a pod have reported; one dict when there is one container."""
        def reported():
            seen = audit.logs()
            return seen if all((name, c) in seen for c in containers) else None
        seen = kube.until(f"pod {name} reports nothing", reported, 30)
        return seen[name, containers[0]] if len(containers) == 1 else [seen[name, c] for c in containers]

    def grant(self, name):
        return audit.slices(self.pod(name)["metadata"]["annotations"].get(audit.ALLOCATION))

    # ---- the audit ----

    def audit(self, names=None):
        """Every pod of ours: environment == annotation == the kubelet's devices == ledger; and no
        pod was refused."""
        node = kube.get("node", World.node)
        pods = [p for p in self.pods() if p["spec"].get("nodeName") == World.node and (
            not names or p["metadata"]["name"] in names) and not p["metadata"].get("deletionTimestamp")]
        self.assertTrue(pods, "no pod to audit")
        audits = [audit.PodAudit(p, audit.cards_of(node)) for p in pods]
        wanted = {(a.name, c["name"]) for a in audits for c in a.init + a.containers if kube.asks(c)}
        seen = {}

        def reported():
            seen.update(audit.logs())
            return wanted <= set(seen)
        kube.until(lambda: f"containers that report nothing: {sorted(wanted - set(seen))}", reported, 60, every=0.5)
        given = audit.checkpoint(World.programs.kubelet_dir) if World.programs.on_node else None
        faults = []
        for a in audits:
            a.check_environment(seen)
            a.check_isolation(seen, World.mode in ("cgpu", "core_mem"))
            if given is not None:
                a.check_devices(given)
            faults += a.faults
        faults += audit.twice(pods, given) if given is not None else []
        faults += self.refusals(pods)
        alive = [a for a in audits if a.pod["status"].get("phase") not in ("Succeeded", "Failed")]
        faults += settled_faults(lambda: audit.check_ledger(alive, World.programs.inspect(), World.node))
        self.assertEqual(faults, [])
        return {a.name: a for a in audits}

    def refusals(self, pods):
        return [kube.describe(p) for p in pods if p["status"].get("phase") == "Failed" and p["status"].get("reason")]

    def events(self, name, reason=None):
        return [e for e in kube.get("events") if e["involvedObject"].get("name") == name and (
            not reason or e["reason"] == reason)]


def settled_faults(check, seconds=10):
    """The ledger follows by watch, so its faults count once it had time to see the changes."""
    faults = [None]

    def none_left():
        faults[0] = check()
        return not faults[0]
    try:
        kube.until("", none_left, seconds)
    except AssertionError:
        return faults[0]
    return []
