# SPDX-License-Identifier: Apache-2.0
"""Where the agent and the scheduler run. They are processes of this machine when it is the node
(E2E_HOST=1), pods that this suite deploys (ALIQUOT_IMAGE), or pods that already exist."""

import datetime
import json
import os
import re
import signal
import subprocess
import tempfile
import time
import urllib.request

import kube

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
CARDS = os.environ.get("E2E_CARDS", "8xTesla-V100-SXM2-16GB:16160MiB")
DRIVER = os.environ.get("E2E_DRIVER")
SIMULATED = ("simulate-dir", DRIVER) if DRIVER else ("simulate", CARDS)  # the agent's option
MEMORY_ISOLATION = os.environ.get("E2E_MEMORY_ISOLATION", "")
SYSTEM = "kube-system"
READS = 12347  # the port of the scheduler that only reads
DAEMONSET = "gpushare-device-plugin-ds"
HELM, CHART, RELEASE = os.environ.get("E2E_HELM"), os.path.join(ROOT, "deploy", "helm", "aliquot"), "aliquot"
OLD_IMAGE, OLD_CHART = os.environ.get("E2E_OLD_IMAGE"), os.environ.get("E2E_OLD_CHART")


def program(name):
    return os.environ.get({"aliquot": "ALIQUOT", "kubectl-inspect-cgpu": "INSPECT"}[name],
                          os.path.join(ROOT, "build", name))


def pids():
    return [int(entry) for entry in os.listdir("/proc") if entry.isdigit()]


def proc(pid, name):
    """A file of /proc; "" when the process has just ended."""
    try:
        with open(f"/proc/{pid}/{name}", encoding="utf-8", errors="replace") as f:
            return f.read()
    except (FileNotFoundError, ProcessLookupError):
        return ""


def cgroup_of(pid):
    return proc(pid, "cgroup")


def parent_of(pid):
    stat = proc(pid, "stat")
    return int(stat.rsplit(")", 1)[1].split()[1]) if stat else 0


def children(pid):
    """Child processes of `pid`."""
    return [p for p in pids() if parent_of(p) == pid]


def kill_each(found):
    """Sends SIGKILL to each and returns how many there were. One may have ended meanwhile, with
    another process or by itself."""
    killed = 0
    for pid in found:
        try:
            os.kill(pid, signal.SIGKILL)
            killed += 1
        except ProcessLookupError:
            pass
    return killed


class Host:
    """Both programs as processes of this machine, with the kubeconfig of the tests."""

    what = "processes of this machine"
    killed = "killed by SIGKILL"
    on_node = True

    def __init__(self, node):
        self.node = node
        self.dir = tempfile.mkdtemp(prefix="aliquot-e2e-")
        self.kubelet_dir = os.environ.get("E2E_KUBELET_DIR", "/var/lib/kubelet")
        self.listen = os.environ.get("E2E_EXTENDER", "127.0.0.1:18820")
        self.agent = self.scheduler = None
        self.unit, self.cards = "GiB", CARDS

    def spawn(self, name, *args):
        log = open(os.path.join(self.dir, name + ".log"), "ab")
        kubeconfig = ["--kubeconfig", os.environ["KUBECONFIG"]] if "KUBECONFIG" in os.environ else []
        with log:
            return subprocess.Popen([program("aliquot"), name, *kubeconfig, *args], stdout=log, stderr=log,
                                    stdin=subprocess.DEVNULL)

    def start_scheduler(self):
        self.scheduler = self.spawn("scheduler", "--listen", self.listen, "--no-leader-election")
        kube.until(lambda: "the extender is not ready:\n" + self.log("scheduler"), self.scheduler_ready)

    def scheduler_ready(self):
        if self.scheduler.poll() is not None:
            raise AssertionError("the extender has ended:\n" + self.log("scheduler"))
        try:
            with urllib.request.urlopen(f"http://{self.listen}/readyz", timeout=5) as answer:
                return answer.status == 200
        except OSError:
            return False

    def start_agent(self):
        access = os.environ.get("E2E_DEVICE_ACCESS", "cdi")
        self.agent = self.spawn("node", "--node-name", self.node, "--kubelet-dir", self.kubelet_dir, "--state-dir",
                                os.path.join(self.dir, "state"), "--cdi-dir", os.environ.get("E2E_CDI_DIR", "/var/run/cdi"),
                                "--cgroup-root", os.environ.get("E2E_CGROUP_ROOT", "/sys/fs/cgroup"),
                                "--{}={}".format(*SIMULATED), "--gpu-mem-unit", self.unit, "--device-access", access, "--verbose",
                                *(["--memory-isolation", MEMORY_ISOLATION] if MEMORY_ISOLATION else []))

    def start(self):
        self.start_scheduler()
        self.start_agent()

    def kill_agent(self):
        """Sends SIGKILL to the agent itself; its parent starts it again. Returns when it was sent.
        """
        found = children(self.agent.pid)
        at = time.time()  # the log has wall clock times, too
        kill_each(found)
        return at

    def kill_all_of_agent(self):
        """Sends SIGKILL to the agent and its parent at once, and starts both again."""
        self.agent.send_signal(signal.SIGSTOP)  # so that it starts nothing meanwhile
        kill_each(children(self.agent.pid) + [self.agent.pid])
        self.agent.wait(20)
        self.start_agent()

    def restart_agent(self):
        """An upgrade: a clean end, and a new start."""
        self.stop_agent()
        self.start_agent()

    def restart_with_unit(self, unit):
        self.unit = unit
        self.restart_agent()

    def stop_agent(self):
        if self.agent and self.agent.poll() is None:
            self.agent.terminate()
            self.agent.wait(30)

    def stop(self):
        self.stop_agent()
        if self.scheduler and self.scheduler.poll() is None:
            self.scheduler.terminate()
            self.scheduler.wait(30)

    def inspect(self):
        with urllib.request.urlopen(f"http://{self.listen}/gpushare-scheduler/inspect", timeout=20) as answer:
            return json.load(answer)

    def registered_after(self, at):
        with open(os.path.join(self.dir, "node.log"), encoding="utf-8", errors="replace") as f:
            return registered_after(f, at)

    def log(self, name, lines=25):
        try:
            with open(os.path.join(self.dir, name + ".log"), encoding="utf-8", errors="replace") as f:
                return "".join([line for line in f if " debug " not in line][-lines:])
        except FileNotFoundError:
            return ""

    def logs(self):
        return f"the last of {self.dir}/node.log:\n{self.log('node')}"


REGISTERED = re.compile(r"(\S+) info registered resource=(\S+)")



def registered_after(log, at):
    """Seconds from a moment to the end of the next registrations, by the agent's log."""
    found = {}
    for line in log:
        m = REGISTERED.match(line)
        when = m and datetime.datetime.strptime(m[1] + "+0000", "%Y-%m-%dT%H:%M:%S.%fZ%z").timestamp()
        if m and when >= at:
            found.setdefault(m[2], when - at)
    return [max(found.values())] if len(found) == 2 else []


OVERLAY = """apiVersion: kustomize.config.k8s.io/v1beta1
kind: Kustomization
resources:
- {base}
components: [{components}]
images:
- {{name: docker.io/library/aliquot, newName: {name}, newTag: "{tag}"}}
- {{name: kube-scheduler, newName: {scheduler_name}, newTag: "{scheduler_tag}"}}
patches:
- target: {{kind: DaemonSet, name: gpushare-device-plugin-ds}}
  patch: |-
    - {{op: add, path: /spec/template/spec/containers/0/args/-, value: "--{option}={value}"}}
{limits}"""
# What the chart does with memoryIsolation=both.
LIMITS = """
    - {op: add, path: /spec/template/spec/containers/0/args/-, value: "--memory-isolation=both"}
    - {op: add, path: /spec/template/spec/containers/0/args/-, value: "--cgroup-root=/sys/fs/cgroup"}
    - {op: add, path: /spec/template/spec/containers/0/volumeMounts/-, value: {name: cgroup, mountPath: /sys/fs/cgroup}}
    - {op: add, path: /spec/template/spec/volumes/-, value: {name: cgroup, hostPath: {path: /sys/fs/cgroup, type: Directory}}}
"""[1:]


def split_image(image):
    name, _, tag = image.rpartition(":")
    return (name, tag) if name and "/" not in tag else (image, "latest")


class Deployed:
    """Pods of the cluster. With images: of a deployment that this suite creates and removes; else
    the existing ones."""

    def __init__(self, node, image=None, scheduler_image=None):
        self.node, self.image, self.scheduler_image = node, image, scheduler_image
        self.what = "deployed by this suite" if image else "deployed before"
        self.made, self.stopped = None, False
        self.overlay = os.environ.get("E2E_OVERLAY")
        self.on_node = os.environ.get("E2E_HOST") == "1"
        self.killed = Host.killed if self.on_node else "pod deleted by force, which leaves the agent some seconds,"
        self.kubelet_dir = os.environ.get("E2E_KUBELET_DIR", "/var/lib/kubelet")

    def write_overlay(self, directory):
        name, tag = split_image(self.image)
        scheduler_name, scheduler_tag = split_image(self.scheduler_image)
        with open(os.path.join(directory, "kustomization.yaml"), "w", encoding="utf-8") as f:
            f.write(OVERLAY.format(base="../base", components=os.environ.get("E2E_COMPONENTS", ""), name=name, tag=tag, scheduler_name=scheduler_name,
                                   scheduler_tag=scheduler_tag, option=SIMULATED[0], value=SIMULATED[1],
                                   limits=LIMITS if MEMORY_ISOLATION == "both" else ""))

    def start(self):
        if not self.image:
            return
        self.stopped = False
        if not self.overlay:
            self.made = tempfile.mkdtemp(prefix=".e2e-", dir=os.path.join(ROOT, "deploy", "kustomize"))
            self.write_overlay(self.made)
        self.apply()

    def apply(self):
        kube.kubectl("apply", "-k", self.overlay or self.made)
        self.wait_rolled_out()

    @staticmethod
    def wait_rolled_out():
        for what in (f"daemonset/{DAEMONSET}", "deployment/aliquot-scheduler"):
            kube.kubectl("rollout", "status", what, "-n", SYSTEM, "--timeout=120s", timeout=150)

    def change_image(self, image):
        """Puts another version of all our programs into the deployment that this suite made."""
        self.image = image
        self.write_overlay(self.made)
        self.apply()

    def agent_pod(self):
        pods = [p for p in kube.get("pods", namespace=SYSTEM) if p["spec"].get("nodeName") == self.node and any(
            o["kind"] == "DaemonSet" and o["name"] == DAEMONSET for o in p["metadata"].get("ownerReferences", []))]
        return pods[0]["metadata"]["name"] if pods else None

    def agent_processes(self):
        """Processes of the agent's pod on this machine: the parent and its children."""
        uid = (kube.get("pod", self.agent_pod(), namespace=SYSTEM) or {"metadata": {"uid": "?"}})["metadata"]["uid"]
        return [pid for pid in pids() if uid in cgroup_of(pid) or uid.replace("-", "_") in cgroup_of(pid)]

    def kill(self, which):
        if not self.on_node:
            kube.kubectl("delete", "pod", self.agent_pod(), "-n", SYSTEM, "--grace-period=0", "--force", "--wait=false")
            return time.time()
        found = self.agent_processes()
        chosen = [pid for pid in found if which == "all" or parent_of(pid) in found]
        at = time.time()
        if not kill_each(chosen):
            raise AssertionError("no process of the agent's pod is on this machine: E2E_HOST=1 is wrong here")
        return at

    def kill_agent(self):
        return self.kill("child")

    def kill_all_of_agent(self):
        return self.kill("all")

    def restart_agent(self):
        kube.kubectl("rollout", "restart", f"daemonset/{DAEMONSET}", "-n", SYSTEM)
        self.wait_rolled()

    def restart_with_unit(self, unit):
        """A user's change: a patch of the DaemonSet."""
        args = kube.get("daemonset", DAEMONSET, namespace=SYSTEM)["spec"]["template"]["spec"]["containers"][0]["args"]
        at = [i for i, a in enumerate(args) if a.startswith("--gpu-mem-unit=")][-1]
        kube.kubectl("patch", "daemonset", DAEMONSET, "-n", SYSTEM, "--type=json", "-p", json.dumps(
            [{"op": "replace", "path": f"/spec/template/spec/containers/0/args/{at}", "value": f"--gpu-mem-unit={unit}"}]))
        self.wait_rolled()

    def restart_with_option(self, option):
        """Adds an argument of the agent by a patch of the DaemonSet. Of several with one name the
        last one counts."""
        kube.kubectl("patch", "daemonset", DAEMONSET, "-n", SYSTEM, "--type=json", "-p", json.dumps(
            [{"op": "add", "path": "/spec/template/spec/containers/0/args/-", "value": option}]))
        self.wait_rolled()

    def wait_rolled(self):
        kube.kubectl("rollout", "status", f"daemonset/{DAEMONSET}", "-n", SYSTEM, "--timeout=120s", timeout=150)

    def stop(self):
        if not self.image or self.stopped:
            return
        self.stopped = True
        # docs/operate/operate.md: first, so that no request waits for a webhook that goes
        kube.kubectl("delete", "mutatingwebhookconfiguration,validatingwebhookconfiguration", "aliquot", "--ignore-not-found")
        kube.kubectl("delete", "-k", self.overlay or self.made, "--ignore-not-found", "--wait=true", timeout=150)
        if self.made:
            os.unlink(os.path.join(self.made, "kustomization.yaml"))
            os.rmdir(self.made)

    def inspect(self):
        """Waits while no replica is ready: then the Service has no endpoint."""
        path = f"/api/v1/namespaces/{SYSTEM}/services/aliquot-scheduler:{READS}/proxy/gpushare-scheduler/inspect"

        def answer():
            done = kube.kubectl("get", "--raw", path, check=False)
            return done if done.returncode == 0 or "no endpoints available" not in done.stderr else None

        done = kube.until("no scheduler is ready", answer)
        if done.returncode:
            raise kube.KubectlError(f"kubectl get --raw {path}: {done.stderr.strip()}")
        return json.loads(done.stdout)

    def registered_after(self, at):
        if not self.on_node:
            return []
        return registered_after(kube.kubectl("logs", "-n", SYSTEM, self.agent_pod(), "--tail=-1").splitlines(), at)

    def logs(self):
        name = self.agent_pod()
        return kube.kubectl("logs", "-n", SYSTEM, name, "--tail=40", check=False).stdout if name else "no agent's pod"


def image_parts(image):
    """An image as the chart's values name it."""
    name, tag = split_image(image)
    registry, _, repository = name.partition("/")
    if not repository:
        registry, repository = "docker.io", f"library/{name}"
    return {"registry": registry, "repository": repository, "tag": tag}


class Released(Deployed):
    """Pods of a release of Helm, which this suite installs and takes away. The older image comes with the older chart."""

    def __init__(self, node, image, scheduler_image):
        super().__init__(node, image, scheduler_image)
        self.what, self.known = "a release of Helm", set()

    def helm(self, *args):
        done = subprocess.run([HELM, *args, "--namespace", SYSTEM], capture_output=True, text=True, timeout=300, check=False)
        if done.returncode:
            raise AssertionError(f"{HELM} {' '.join(args)}: {done.stderr.strip()}")

    def with_values(self, *args):
        values = {"images": {"aliquot": image_parts(self.image), "kubeScheduler": image_parts(self.scheduler_image)}, "simulate": CARDS}
        with tempfile.NamedTemporaryFile("w", suffix=".json", encoding="utf-8") as f:
            json.dump(values, f)
            f.flush()
            self.helm(*args, OLD_CHART if self.image == OLD_IMAGE else CHART, "--values", f.name)

    def start(self):
        self.stopped, self.known = False, {self.image}
        self.with_values("install", RELEASE)
        self.wait_rolled_out()

    def apply(self):
        self.start()

    def change_image(self, image):
        """As docs/operate/operate.md says it: forward by an upgrade, and back to a version that the release had by a rollback."""
        self.image = image
        if image == OLD_IMAGE and image in self.known:
            self.helm("rollback", RELEASE)
        else:
            self.with_values("upgrade", RELEASE, "--reset-then-reuse-values")
        self.known.add(image)
        self.wait_rolled_out()

    def stop(self):
        if self.stopped:
            return
        self.stopped = True
        kube.kubectl("delete", "mutatingwebhookconfiguration,validatingwebhookconfiguration", "aliquot", "--ignore-not-found")
        self.helm("uninstall", RELEASE)


def find(node):
    """How the programs are run here; None and a reason when they cannot be run."""
    image = os.environ.get("ALIQUOT_IMAGE")
    if image:
        if not os.environ.get("KUBE_SCHEDULER_IMAGE"):
            return None, "ALIQUOT_IMAGE needs KUBE_SCHEDULER_IMAGE beside it"
        if not os.path.isdir(os.path.join(ROOT, "deploy", "kustomize", "base")):
            return None, "deploy/kustomize/base is missing"
        if HELM and (DRIVER or os.environ.get("E2E_OVERLAY") or os.environ.get("E2E_COMPONENTS")):
            return None, "E2E_HELM installs the chart with simulated cards: without E2E_DRIVER, E2E_OVERLAY and E2E_COMPONENTS"
        return (Released if HELM else Deployed)(node, image, os.environ["KUBE_SCHEDULER_IMAGE"]), ""
    if kube.get("daemonset", DAEMONSET, namespace=SYSTEM):
        return Deployed(node), ""
    if os.environ.get("E2E_HOST") != "1":
        return None, ("nothing is deployed, and neither ALIQUOT_IMAGE (with KUBE_SCHEDULER_IMAGE) says what to deploy, nor "
                      "E2E_HOST=1 that this machine is the cluster's node")
    if not os.access(program("aliquot"), os.X_OK):
        return None, f"{program('aliquot')} is missing: run make"
    if subprocess.run([program("aliquot"), "node", "--help"], capture_output=True, check=False).returncode != 0:
        return None, f"{program('aliquot')} has no verb `node`"
    return Host(node), ""


def wait_offered(node, seconds=90):
    """The node offers the resources of its mode, and labels describe its cards."""
    def offers():
        n = kube.get("node", node)
        return n if int(n["status"]["allocatable"].get(kube.MEM, 0)) > 0 and "aliquot.dev/cards" in n["metadata"].get(
            "annotations", {}) else None
    return kube.until(f"node {node} offers no {kube.MEM}", offers, seconds)
