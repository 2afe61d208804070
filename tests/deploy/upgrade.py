#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""From an older version to this one and back, on the cluster that KUBECONFIG names, by the commands of docs/operate/operate.md.

    upgrade.py --old TREE --old-image NAME --new-image NAME --scheduler-image NAME --driver DIR --programs DIR

TREE is a checkout of the older version. Each version is installed by the kustomization of its own tree, with its own image. The cluster has one
node, this machine, which has the images. DIR of --driver: a mounted aliquot-sim with two cards, with the same path on the node and here. Both images
have the simulated libraries of its version, because a driver does not change with Aliquot. DIR of --programs: a folder of the node with
aliquot-sample. The pods run E2E_IMAGE, which has a shell and glibc. --drained: no pod with a slice runs at a change, as docs/operate/operate.md asks
between versions whose slices differ, and pods come meanwhile. Exit status 77: something is missing, and is named."""

import argparse
import hashlib
import os
import re
import subprocess
import sys
import tempfile
import time
import unittest

os.environ.setdefault("E2E_NAMESPACE", "aliquot-upgrade")
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "e2e"))

import audit  # noqa: E402
import kube  # noqa: E402
import programs  # noqa: E402
from kube import container, pod, until  # noqa: E402

NEW_TREE = os.path.dirname(os.path.dirname(HERE))
SYSTEM, KUBELET = "kube-system", "/var/lib/kubelet"
WORKLOADS = "daemonset/gpushare-device-plugin-ds", "deployment/aliquot-scheduler"
# Up to 64c94a13 kube-scheduler had a Deployment of its own. What only one of the two forms has, as
# docs/operate/operate.md removes it:
TWO_PODS = ("deployment/aliquot-kube-scheduler", "service/aliquot-extender", "configmap/aliquot-kube-scheduler", "role/aliquot-kube-scheduler",
            "rolebinding/aliquot-kube-scheduler", "rolebinding/aliquot-kube-scheduler-authentication", "serviceaccount/aliquot-kube-scheduler",
            "lease/ack-co-scheduler", "clusterrolebinding/aliquot-kube-scheduler", "clusterrolebinding/aliquot-kube-scheduler-volumes")
ONE_POD = ("service/aliquot-scheduler", "configmap/aliquot-scheduler", "rolebinding/aliquot-scheduler-authentication",
           "clusterrolebinding/aliquot-scheduler-kube-scheduler", "clusterrolebinding/aliquot-scheduler-volumes")
TAINT = "node-role.kubernetes.io/control-plane:NoSchedule"
POLICIES = "validatingadmissionpolicybinding,validatingadmissionpolicy"
SAMPLE = "/programs/aliquot-sample"
STAY = kube.REPORT + "; trap 'exit 0' TERM; sleep 1000000 & wait"
# Offsets of limit, card and owner (src/slice/page.h).
PAGE = ("cd /.aliquot/slice/0 && stat -c %i counters && "
        "for at in '24 -N16' '64 -N48' '184 -N128'; do od -An -v -tx1 -j$at limits; done")
LIBRARY = re.compile(r"\s(/\S*libaliquot\.so)(?: \(deleted\))?$", re.MULTILINE)  # in /proc/PID/maps
OPTIONS = argparse.Namespace()

OVERLAY = """apiVersion: kustomize.config.k8s.io/v1beta1
kind: Kustomization
resources: [../base]
images:
- {{name: aliquot, newName: {name}, newTag: "{tag}"}}
- {{name: docker.io/library/aliquot, newName: {name}, newTag: "{tag}"}}
- {{name: kube-scheduler, newName: {scheduler_name}, newTag: "{scheduler_tag}"}}
patches:
- target: {{kind: DaemonSet, name: gpushare-device-plugin-ds}}
  patch: |-
    - {{op: add, path: /spec/template/spec/containers/0/args/-, value: "--simulate-dir={driver}"}}
"""


def kubectl(*args, **more):
    return kube.kubectl(*args, **more)


class Version:
    """One version: its tree and its image."""

    def __init__(self, name, tree, image):
        self.name, self.tree, self.image = name, tree, image
        with open(os.path.join(tree, "build", "libaliquot.so"), "rb") as f:
            self.library = hashlib.sha256(f.read()).hexdigest()
        self.two_pods = os.path.exists(os.path.join(tree, "deploy/kustomize/workloads/kube-scheduler.yaml"))

    def kustomization(self):
        folder = tempfile.mkdtemp(prefix=".upgrade-", dir=os.path.join(self.tree, "deploy", "kustomize"))
        name, tag = programs.split_image(self.image)
        scheduler_name, scheduler_tag = programs.split_image(OPTIONS.scheduler_image)
        with open(os.path.join(folder, "kustomization.yaml"), "w", encoding="utf-8") as f:
            f.write(OVERLAY.format(name=name, tag=tag, scheduler_name=scheduler_name, scheduler_tag=scheduler_tag, driver=OPTIONS.driver))
        return folder

    def with_objects(self, *verb, **more):
        folder = self.kustomization()
        try:
            return kubectl(*verb, "-k", folder, **more)
        finally:
            os.unlink(os.path.join(folder, "kustomization.yaml"))
            os.rmdir(folder)

    def install(self):
        """The commands of docs/operate/operate.md, after which nothing of the other version runs."""
        begun = time.monotonic()
        self.with_objects("apply", timeout=120)
        for what in WORKLOADS + TWO_PODS[:1] * self.two_pods:
            kubectl("-n", SYSTEM, "rollout", "status", what, "--timeout=180s", timeout=200)
        kubectl("-n", SYSTEM, "delete", "--ignore-not-found", *(ONE_POD if self.two_pods else TWO_PODS), timeout=120)
        print(f"  {self.name} rolled out in {time.monotonic() - begun:.1f} s", flush=True)

    def remove(self):
        self.with_objects("delete", "--ignore-not-found", "--wait=true", timeout=180, check=False)


def processes(uid):
    """Processes of a pod on this machine that have the library: PID -> its path in the container."""
    found = {}
    for pid in programs.pids():
        if uid in programs.cgroup_of(pid) or uid.replace("-", "_") in programs.cgroup_of(pid):
            path = LIBRARY.search(programs.proc(pid, "maps"))
            if path:
                found[pid] = path[1]
    return found


def loaded(pid):
    """Device and inode of the library that a process has mapped."""
    lines = [line for line in programs.proc(pid, "maps").splitlines() if LIBRARY.search(line)]
    return {tuple(line.split()[3:5]) for line in lines}


def digest(pid, path):
    with open(f"/proc/{pid}/root{path}", "rb") as f:
        return hashlib.sha256(f.read()).hexdigest()


def program_pod(name, command, mem, core, **more):
    volume = {"name": "programs", "hostPath": {"path": OPTIONS.programs}}
    c = container("main", mem, core, script=command, volumeMounts=[{"name": "programs", "mountPath": "/programs", "readOnly": True}])
    return pod(name, c, volumes=[volume], **more)


class Upgrade(unittest.TestCase):
    maxDiff = None

    def setUp(self):
        node = OPTIONS.node
        self.old, self.new = OPTIONS.old_version, OPTIONS.new_version
        labels = kube.get("node", node)["metadata"]["labels"]
        self.addCleanup(kubectl, "label", "node", node, f"{kube.MODE}={labels[kube.MODE]}" if kube.MODE in labels else kube.MODE + "-", "--overwrite")
        self.addCleanup(self.remove_all)
        kubectl("create", "namespace", kube.NAMESPACE)
        until("the namespace has no service account", lambda: kube.get("serviceaccount", "default"))
        kubectl("label", "node", node, f"{kube.MODE}=core_mem", "--overwrite")

    def remove_all(self):
        kubectl("delete", "namespace", kube.NAMESPACE, "--wait=true", timeout=180, check=False)
        kubectl("delete", POLICIES, "-l", "app.kubernetes.io/name=aliquot", check=False)
        self.new.remove()
        self.old.remove()

    # ---- what is there ----

    @staticmethod
    def pods():
        return {p["metadata"]["name"]: p for p in kube.get("pods")}

    def inspect(self):
        (service,) = [s for s in kube.get("services", namespace=SYSTEM) if s["metadata"]["name"] in ("aliquot-extender", "aliquot-scheduler")]
        name, port = service["metadata"]["name"], service["spec"]["ports"][0]["port"]
        text = kubectl("get", "--raw", f"/api/v1/namespaces/{SYSTEM}/services/{name}:{port}/proxy/gpushare-scheduler/inspect")
        return audit.json.loads(text)

    def sums(self, but="-"):
        """By the ledger: of each card its sum, and of each pod what it holds there. but: pods whose name begins so are left out."""
        (node,) = [n for n in self.inspect()["nodes"] if n["name"] == OPTIONS.node]
        found = {}
        for dev in node["devs"]:
            held = {p["name"]: p["usedGPU"] for p in dev["pods"]}
            without = {name: n for name, n in held.items() if not name.startswith(but)}
            found[dev["id"]] = (dev["usedGPU"] - sum(held.values()) + sum(without.values()), without)
        return found

    def identity(self, name, p):
        """What must not change of a pod that runs."""
        given = {key[1:]: sorted(ids) for key, ids in audit.checkpoint(KUBELET).items() if key[0] == p["metadata"]["uid"]}
        states = [(s["containerID"], s["restartCount"], s["state"]) for s in p["status"].get("containerStatuses", [])]
        page = kubectl("exec", "-n", kube.NAMESPACE, name, "-c", "main", "--", "sh", "-c", PAGE)
        libraries = {pid: loaded(pid) for pid in processes(p["metadata"]["uid"])}
        return p["metadata"]["uid"], p["spec"]["nodeName"], p["metadata"]["annotations"], given, states, page, libraries

    def state(self):
        running = {name: p for name, p in self.pods().items() if p["status"]["phase"] == "Running"}
        return {name: self.identity(name, p) for name, p in running.items()}

    def blocks(self):
        """What the pods that launch kernels have printed: ms for each block of a tenth of a second of the card."""
        return {name: re.findall(r"in (\d+) ms", kubectl("logs", "-n", kube.NAMESPACE, name)) for name in ("loop-0", "loop-1")}

    def audit(self):
        """Environment, annotations, the kubelet's devices and the ledger say the same, and no card is over."""
        pods = [p for p in self.pods().values() if p["status"]["phase"] == "Running"]
        cards = audit.cards_of(kube.get("node", OPTIONS.node))
        given = audit.checkpoint(KUBELET)
        audits = [audit.PodAudit(p, cards) for p in pods]
        reports = audit.logs()
        for a in audits:
            if not a.name.startswith("loop"):
                a.check_environment(reports)
            a.check_devices(given)
        faults = [fault for a in audits for fault in a.faults] + audit.twice(pods, given)

        def ledger_faults():
            self.last = audit.check_ledger(audits, self.inspect(), OPTIONS.node)
            return not self.last
        until(lambda: self.last, ledger_faults, 30)
        self.assertEqual(faults, [])

    # ---- pods ----

    def wait_running(self, *names):
        def run():
            found = self.pods()
            return all(n in found and kube.settled(found[n]) for n in names)
        until(lambda: "\n".join(kube.describe(p) for n, p in self.pods().items() if n in names), run, 120)
        for name in names:
            p = self.pods()[name]
            said = kubectl("logs", "-n", kube.NAMESPACE, name, "--tail=5", check=False).stdout
            self.assertEqual(p["status"]["phase"], "Running", f"{kube.describe(p)}: {said}")

    def create(self, *pods):
        kube.create(*pods)
        self.wait_running(*[p["metadata"]["name"] for p in pods])

    def wait_pending(self, name):
        def told():
            p = self.pods()[name]
            return p["status"]["phase"] == "Pending" and not p["spec"].get("nodeName") and "0/1 nodes" in kube.describe(p)
        until(lambda: kube.describe(self.pods()[name]), told)

    def wait_arrived(self):
        """Those that the kubelet refused in the gap between two agents are failed, and have been replaced."""
        def arrived():
            found = [p for name, p in self.pods().items() if name.startswith("arrives")]
            phases = [p["status"]["phase"] for p in found]
            return phases if phases.count("Running") == 2 and all(kube.settled(p) for p in found) else None
        print(f"  pods that arrived meanwhile: {until('the Deployment has no two pods', arrived)}", flush=True)

    def refused_beyond(self, name):
        """The slice still ends where it did."""
        kubectl("exec", "-n", kube.NAMESPACE, name, "-c", "main", "--", SAMPLE, "--refused", "--gpu-mem-mib", "3000")
        kubectl("exec", "-n", kube.NAMESPACE, name, "-c", "main", "--", SAMPLE, "--gpu-mem-mib", "100")

    def start_again(self, name, count):
        """The container ends, and the kubelet starts it under the other version."""
        kubectl("exec", "-n", kube.NAMESPACE, name, "-c", "main", "--", "kill", "1", check=False)

        def runs_again():
            status = self.pods()[name]["status"]["containerStatuses"][0]
            return status["restartCount"] == count and "running" in status["state"]
        until(lambda: kube.describe(self.pods()[name]), runs_again, 120)
        self.refused_beyond(name)

    def check_library(self, version, *names):
        for name in names:
            uid = self.pods()[name]["metadata"]["uid"]
            found = until(f"no process of {name} has the library", lambda uid=uid: processes(uid))
            self.assertEqual({digest(pid, path) for pid, path in found.items()}, {version.library}, name)

    # ---- the steps ----

    def install_old(self):
        self.old.install()
        cards = int(programs.wait_offered(OPTIONS.node)["metadata"]["labels"]["aliyun.accelerator/nvidia_count"])
        self.assertEqual(cards, 2, "the pods of this test are for two cards")
        loop = f"exec {SAMPLE} --seconds 3600"
        # one of nine units for each card of 15, and seven in smaller pods: no card has five left
        self.create(*[pod(f"fill-{i}", container("main", 9, 10)) for i in range(cards)])
        self.create(program_pod("hold", f"{SAMPLE} --gpu-mem-mib 1500 -- sleep 1000000 & {STAY}", 2, 10),
                    program_pod("again", STAY, 1, 10, restart="Always"),
                    program_pod("loop-0", loop, 2, 20), program_pod("loop-1", loop, 2, 20))
        kube.create(pod("waits", container("main", 5, 5)))
        self.wait_pending("waits")
        self.audit()
        self.check_library(self.old, "again", "loop-0", "loop-1")

    def change(self, version):
        """Changes the version; all that ran goes on unchanged. Two pods of a Deployment arrive meanwhile."""
        before, sums, blocks = self.state(), self.sums(), self.blocks()
        kube.create(kube.deployment("arrives", 2, pod("-", container("main", 1, 5))))
        version.install()
        programs.wait_offered(OPTIONS.node)
        self.wait_pending("waits")
        after = self.state()
        self.assertEqual({name: after[name] for name in before}, before)
        until(lambda: f"{sums}, then {self.sums('arrives')}", lambda: self.sums("arrives") == sums, 30)
        for name, found in blocks.items():
            until(f"{name} launches no kernels", lambda name=name, n=len(found) + 10: len(self.blocks()[name]) > n, 60)
            print(f"  {name}: ms per block before {found[-10:]}, after {self.blocks()[name][-10:]}", flush=True)
        self.wait_arrived()
        self.audit()
        kubectl("delete", "deployment", "-n", kube.NAMESPACE, "arrives", "--cascade=foreground", "--wait=true", timeout=60)
        self.refused_beyond("again")

    def use(self, version, number):
        """New pods, a container that starts again, and a pod that waited."""
        self.create(program_pod(f"new-{number}", STAY, 1, 5))
        self.check_library(version, f"new-{number}")
        self.refused_beyond(f"new-{number}")
        self.start_again("again", number)
        self.check_library(version, "again")
        self.wait_pending("waits")
        kubectl("delete", "pod", "-n", kube.NAMESPACE, "fill-0", "--wait=true", timeout=60)
        self.wait_running("waits")
        self.audit()
        kubectl("delete", "pod", "-n", kube.NAMESPACE, "waits", "--wait=true", timeout=60)
        self.create(pod("fill-0", container("main", 9, 10)))
        kube.create(pod("waits", container("main", 5, 5)))
        self.wait_pending("waits")
        self.audit()

    def change_drained(self, version):
        """Changes the version while the node has no pod with a slice. The taint is one that the scheduler's own pods tolerate. Six pods of
        a Deployment come meanwhile, and each has its slice in the end."""
        kubectl("taint", "node", OPTIONS.node, TAINT)
        kube.create(kube.deployment("arrives", 6, program_pod("-", STAY, 1, 5)))
        version.install()
        programs.wait_offered(OPTIONS.node)
        kubectl("taint", "node", OPTIONS.node, TAINT + "-")

        def arrived():
            found = self.pods()
            running = [name for name, p in found.items() if p["status"]["phase"] == "Running" and kube.settled(p)]
            return running if len(running) == 6 else None
        running = until(lambda: "\n".join(map(kube.describe, self.pods().values())), arrived, 180)
        refused = [p for p in self.pods().values() if p["status"]["phase"] == "Failed"]
        print(f"  6 pods that came meanwhile run; refused by the kubelet and replaced before: {len(refused)}", flush=True)
        self.audit()
        self.check_library(version, *running)
        for name in running:
            self.refused_beyond(name)
        self.assertEqual(sum(used for used, _ in self.sums().values()), 6)
        kubectl("delete", "deployment", "-n", kube.NAMESPACE, "arrives", "--cascade=foreground", "--wait=true", timeout=60)
        until(lambda: f"{self.sums()}", lambda: not any(used for used, _ in self.sums().values()), 60)

    @unittest.skipUnless("--drained" in sys.argv, "with --drained")
    def test_there_and_back_drained(self):
        self.addCleanup(kubectl, "taint", "node", OPTIONS.node, TAINT + "-", check=False)
        self.change_drained(self.old)
        self.change_drained(self.new)
        kubectl("delete", POLICIES, "-l", "app.kubernetes.io/name=aliquot")  # the older version has none, and writes what they forbid
        self.change_drained(self.old)

    @unittest.skipIf("--drained" in sys.argv, "without --drained")
    def test_there_and_back(self):
        self.install_old()
        self.change(self.new)
        self.use(self.new, 1)
        kubectl("delete", POLICIES, "-l", "app.kubernetes.io/name=aliquot")  # the older version has none, and writes what they forbid
        self.change(self.old)
        self.use(self.old, 2)


def missing(o):
    """Why nothing can be tried here; "" when it can."""
    names = "old", "old_image", "new_image", "scheduler_image", "driver", "programs"
    absent = ["--" + n.replace("_", "-") for n in names if not getattr(o, n)]
    if absent:
        return f"{', '.join(absent)} not given"
    for tree in o.old, NEW_TREE:
        if not os.path.exists(os.path.join(tree, "build", "libaliquot.so")):
            return f"{tree} is not built"
    try:
        nodes = kube.get("nodes")
    except (FileNotFoundError, kube.KubectlError, subprocess.TimeoutExpired) as e:
        return f"no cluster: {e}"
    o.node = nodes[0]["metadata"]["name"]
    return "" if len(nodes) == 1 else f"the cluster has {len(nodes)} nodes, and this test uses one"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name in "old", "old-image", "new-image", "scheduler-image", "driver", "programs":
        parser.add_argument("--" + name)
    parser.add_argument("--drained", action="store_true")
    parser.parse_args(namespace=OPTIONS)
    why = missing(OPTIONS)
    if why:
        print("skipped: " + why)
        return 77
    OPTIONS.old_version = Version("the older version", os.path.abspath(OPTIONS.old), OPTIONS.old_image)
    OPTIONS.new_version = Version("this version", NEW_TREE, OPTIONS.new_image)
    return 0 if unittest.main(argv=sys.argv[:1], verbosity=2, exit=False).result.wasSuccessful() else 1


if __name__ == "__main__":
    sys.exit(main())
