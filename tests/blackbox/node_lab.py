# SPDX-License-Identifier: Apache-2.0
"""One node for tests: a stand-in for the API server, the fake kubelet, a scheduler, and `aliquot
node` between them."""

import collections
import json
import os
import random
import resource
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "fake"))

import page as layout  # noqa: E402
from api import Api, ApiError, Relay, StoreServer, pod_path  # noqa: E402
from clock import Clock  # noqa: E402
from device_manager import is_sidecar  # noqa: E402
from grpc_wire import GPU, GPU_CORE, GPU_MEM  # noqa: E402
from kubelet import Kubelet  # noqa: E402
from poll import poll  # noqa: E402
from ports import free_port  # noqa: E402
from scheduler import (ALLOCATION, ASSIGNED, CORE, COUNT_LABEL, HELD, INIT, Scheduler, cards_of, demand,  # noqa: E402
                       limit)

NODE = "n1"
PODS = "/api/v1/namespaces/default/pods"
NODE_PATH = "/api/v1/nodes/" + NODE
EIGHT_CARDS = "4xTesla-V100-SXM2-16GB:16160MiB,4xA10-32G:32510MiB"


def card_mib(cards):
    """The memory of each card of "2xA:16160MiB,1xB:24GiB/0-1=NV2"."""
    found = []
    for group in cards.split("/")[0].split(","):
        count, rest = group.split("x", 1)
        size = rest.rsplit(":", 1)[1].split("/")[0]
        mib = int(size[:-3]) * (1024 if size.endswith("GiB") else 1)
        found += [mib] * int(count)
    return found


def unit_mib(unit):
    number = unit[:-3] or "1"
    return int(number) * (1024 if unit.endswith("GiB") else 1)


def container(name, mem=0, core=0, cards=0, **more):
    limits = {r: str(n) for r, n in ((GPU_MEM, mem), (GPU_CORE, core), (GPU, cards)) if n}
    return dict({"name": name, "image": "none", "resources": {"limits": limits}}, **more)


def pod(name, *containers, init=(), annotations=None, cards=1, scheduler="ack-co-scheduler", **spec):
    meta = {"name": name, "namespace": "default", "annotations": dict(annotations or {})}
    if cards > 1:
        meta["labels"] = {COUNT_LABEL: str(cards)}
    spec = dict({"schedulerName": scheduler, "containers": list(containers), "restartPolicy": "Never"}, **spec)
    if init:
        spec["initContainers"] = list(init)
    return {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": spec}


class Agent:
    """`aliquot node` as a child. The last part of its log is kept."""

    def __init__(self, command, env=None):
        self.log = collections.deque(maxlen=4000)
        self.process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, env=env, restore_signals=False)
        self.reader = threading.Thread(target=self._read, daemon=True)
        self.reader.start()

    def _read(self):
        for line in self.process.stderr:
            self.log.append(line.decode(errors="replace").rstrip())

    @property
    def pid(self):
        """The PID of the agent: with a supervisor, its child named aliquot. The arbiter of compute
        is another child."""
        found = [p for p in self.children(self.process.pid) if self.name(p) == "aliquot"]
        return found[0] if found and self.supervised else self.process.pid

    supervised = False

    @staticmethod
    def children(pid):
        try:
            with open(f"/proc/{pid}/task/{pid}/children") as f:
                return [int(p) for p in f.read().split()]
        except OSError:
            return []

    @staticmethod
    def name(pid):
        try:
            with open(f"/proc/{pid}/comm") as f:
                return f.read().strip()
        except OSError:
            return ""

    def kill(self):
        """Sends SIGKILL to the agent. Only its own parent waits for it."""
        try:
            os.kill(self.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        if not self.supervised:
            self.process.wait(60)

    def stop(self, timeout=60):
        """Sends SIGTERM and returns the exit code."""
        if self.process.poll() is None:
            self.process.terminate()
        try:
            code = self.process.wait(timeout)
        except subprocess.TimeoutExpired:
            self.process.kill()
            code = self.process.wait()
        self.reader.join(5)
        self.process.stderr.close()
        return code

    def memory(self):
        """Private KiB."""
        with open(f"/proc/{self.pid}/smaps_rollup") as f:
            return sum(int(line.split()[1]) for line in f if line.startswith(("Private_Clean:", "Private_Dirty:")))

    def threads(self):
        return len(os.listdir(f"/proc/{self.pid}/task"))

    def cpu(self):
        """Seconds used so far."""
        with open(f"/proc/{self.pid}/stat") as f:
            fields = f.read().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


class Lab:
    def __init__(self, aliquot, store, seed=None, cards=EIGHT_CARDS, unit="GiB", mode="core_mem", style="v2",
                 supervised=False, annotations=None, retry=(0.05, 0.3), extra=(), shim=None, nvml=None, driver=None, start=True, **kubelet):
        self.seed = random.randrange(1 << 32) if seed is None else seed
        self.rng = random.Random(self.seed)
        self.aliquot, self.cards, self.unit = aliquot, cards, unit
        self.supervised, self.extra = supervised, list(extra)
        self.units = [mib // unit_mib(unit) for mib in card_mib(cards)]
        self.nvml, self.driver = nvml, driver  # a fake NVML; the mount of a simulated driver
        self.dir = tempfile.mkdtemp(prefix="aliquot-node-")
        self.clock = Clock(shim, os.path.join(self.dir, "clock"))  # the agent's
        self.store = StoreServer(store)
        self.api = Api(self.store.address)
        self.relay = Relay(self.store.address)  # between the agent and the API server; counts its requests
        self.kubeconfig = self.store.kubeconfig(os.path.join(self.dir, "kubeconfig"), self.relay.address)
        self.cgroup = os.path.join(self.dir, "cgroup")
        self.kubelet_dir, self.state, self.cdi, self.slices, self.library = (
            os.path.join(self.dir, d) for d in ("kubelet", "state", "cdi", "slices", "gate.so"))
        os.mkdir(self.kubelet_dir)
        with open(self.library, "w") as f:
            f.write("what is loaded into containers, first version")
        self.machine(())
        self.api.post("/api/v1/nodes", {"metadata": {"name": NODE, "labels": {"ack.node.gpu.schedule": mode},
                                                     "annotations": dict({"aliquot.dev/allow-mixed": "true"},
                                                                         **(annotations or {}))}})
        self.kubelet = Kubelet(self.api, NODE, self.kubelet_dir, self.cgroup, self.seed, style, retry=retry, **kubelet)
        self.kubelet.start()
        self.agent = self.scheduler = self.extender = None
        self.logs = []
        self.resources = {"core_mem": (GPU_MEM, GPU_CORE), "topology": (GPU,)}.get(mode, (GPU_MEM,))
        if start:
            self.start_agent()
            self.wait_ready()

    # ---- the driver ----

    def machine(self, processes, used=(), more=()):
        """Writes what the fake NVML reports, if there is one: the cards, (card, pid, MiB) of
        processes, (card, MiB) in use, and other lines."""
        text = "".join(f"card GPU-{i} {i} {mib} {16 + i:x} Tesla V100\n" for i, mib in enumerate(card_mib(self.cards)))
        with open(os.path.join(self.dir, "nvml.new"), "w") as f:
            f.write(text + "".join("process %d %d %d\n" % p for p in processes))
            f.write("".join("used %d %d 300\n" % u for u in used) + "".join(line + "\n" for line in more))
        os.rename(os.path.join(self.dir, "nvml.new"), os.path.join(self.dir, "nvml"))

    # ---- the agent ----

    def command(self):
        self.metrics_port = getattr(self, "metrics_port", None) or free_port()
        command = [self.aliquot, "node", "--kubeconfig", self.kubeconfig, "--node-name", NODE, "--kubelet-dir",
                   self.kubelet_dir, "--state-dir", self.state, "--cdi-dir", self.cdi, "--cgroup-root", self.cgroup,
                   "--slices-dir", self.slices, "--slices-size", "0", "--library", self.library, "--gpu-mem-unit", self.unit, "--metrics-listen",
                   f"127.0.0.1:{self.metrics_port}"] + self.extra
        command += ["--nvml", self.nvml] if self.nvml else ["--simulate-dir", self.driver] if self.driver else ["--simulate", self.cards]
        return command if self.supervised else command + ["--no-supervisor"] + os.environ.get("ALIQUOT_OPTIONS", "").split()

    def start_agent(self, before=()):
        """before: a command that executes the agent's."""
        env = dict(os.environ, FAKE_NVML=os.path.join(self.dir, "nvml"), **self.clock.environment())
        self.agent = Agent([*before, *self.command()], env)
        self.agent.supervised = self.supervised
        self.logs.append(self.agent.log)
        return self.agent

    def wait_ready(self, timeout=60):
        if not self.kubelet.wait_serving(*self.resources, timeout=timeout):
            raise AssertionError("the agent does not register:\n" + self.log_tail())
        self.wait(lambda: self.ready() == 200, "ready", timeout)

    def restart_agent(self):
        """Kills the agent and starts it again at once, as a supervisor would. Returns the time of
        the kill, and the seconds until the kubelet knew all its devices again."""
        manager, at = self.kubelet.manager, time.monotonic()
        self.agent.kill()
        if not self.supervised:
            self.start_agent()
        if not manager.wait_for(lambda: manager.is_registered_since(at, *self.resources), 60):
            raise AssertionError("the agent does not register again:\n" + self.log_tail())
        return at, time.monotonic() - at

    def ready(self):
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.metrics_port}/readyz", timeout=60) as answer:
                return answer.status
        except OSError as error:
            return getattr(error, "code", None)

    def metrics(self):
        with urllib.request.urlopen(f"http://127.0.0.1:{self.metrics_port}/metrics", timeout=60) as answer:
            text = answer.read().decode()
        return {line.rsplit(" ", 1)[0]: float(line.rsplit(" ", 1)[1]) for line in text.splitlines()
                if line and not line.startswith("#")}

    def log_tail(self, n=40):
        return "\n".join([line for log in self.logs[-3:] for line in list(log)][-n:])

    def logged(self, text):
        return any(text in line for log in self.logs for line in list(log))

    # ---- scheduling ----

    def schedule(self, with_extender=False, extra=()):
        if with_extender:
            port = free_port()
            self.extender = Agent([self.aliquot, "scheduler", "--kubeconfig", self.kubeconfig, "--listen",
                                   f"127.0.0.1:{port}", "--no-leader-election", *extra])
            self.extender_address = f"127.0.0.1:{port}"
            self.wait(lambda: self._extender_is_ready(port), "the extender is ready")
        self.scheduler = Scheduler(self.api, NODE, self.units, self.seed, self.extender and self.extender_address)

    @staticmethod
    def _extender_is_ready(port):
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/readyz", timeout=5) as answer:
                return answer.status == 200
        except OSError:
            return False

    def inspect(self):
        with urllib.request.urlopen(f"http://{self.extender_address}/gpushare-scheduler/inspect/{NODE}", timeout=60) as a:
            return json.load(a)

    # ---- pods ----

    def create(self, obj, bound=None):
        """bound: the annotations of a Binding; without them the scheduler binds the pod."""
        made = self.api.post(PODS, obj)
        if bound is not None:
            self.bind(made, bound)
        return made["metadata"]["uid"]

    def bind(self, made, annotations):
        meta = made["metadata"]
        self.api.post(pod_path(made) + "/binding", {
            "metadata": {"name": meta["name"], "uid": meta["uid"], "annotations": annotations},
            "target": {"kind": "Node", "name": NODE}})

    def get(self, name):
        """The pod, or None."""
        try:
            return self.api.get(f"{PODS}/{name}")
        except ApiError as error:
            if error.status != 404:
                raise
            return None

    def node(self):
        return self.api.get(NODE_PATH)

    def node_annotation(self, key):
        return self.node()["metadata"].get("annotations", {}).get(key)

    def held(self):
        return {d["uid"]: d for d in json.loads(self.node_annotation(HELD) or "[]")}

    def condition(self, kind="GPUShareChangePending"):
        for c in self.node().get("status", {}).get("conditions", []):
            if c["type"] == kind:
                return c
        return {}

    def annotate(self, path=NODE_PATH, **annotations):
        """An annotation, by its name behind aliquot.dev/ with _ for -."""
        self.api.patch(path, {"metadata": {"annotations": {"aliquot.dev/" + k.replace("_", "-"): v
                                                           for k, v in annotations.items()}}})

    def events(self, reason):
        return [e.get("note") or e.get("message", "") for e in self.api.get("/api/v1/namespaces/default/events")["items"]
                if e["reason"] == reason]

    def phase(self, name):
        found = self.get(name)
        return found.get("status", {}).get("phase") if found else None

    def running(self, uid):
        return [c.name for c in self.kubelet.runtime.running(uid)]

    def wait(self, condition, what, timeout=120, leap=0):
        """leap: seconds that the agent's clock leaps ten times a second, where an interval of the agent is waited for."""
        leapt = time.monotonic()

        def holds():
            nonlocal leapt
            value = condition()
            if not value and leap and time.monotonic() - leapt > 0.1:
                self.clock.leap(leap)
                leapt = time.monotonic()
            return value
        if not poll(holds, timeout):
            raise AssertionError(f"not within {timeout} s: {what} (seed {self.seed})\n{self.log_tail()}")

    def wait_repaired(self):
        """Waits until the agent sees no wrong key; its clock leaps over the pauses between two repairs."""
        self.wait(lambda: self.metrics()["aliquot_node_repairs_waiting"] == 0, "no pod has wrong keys", 400, leap=1)

    def wait_phase(self, name, *phases, timeout=120):
        self.wait(lambda: self.phase(name) in phases, f"{name} is {phases}", timeout)

    def faults(self):
        """What must never happen."""
        found = [f"two holders: {v}" for v in self.kubelet.runtime.violations]
        found += ["the fake kubelet itself: " + c for c in self.kubelet.crashes]
        logs = self.logs + ([self.extender.log] if self.extender else [])
        found += [line for log in logs for line in list(log) if "Sanitizer" in line or "runtime error" in line or "Assertion" in line]
        return found

    def close(self):
        self.code = None
        if self.scheduler:
            self.scheduler.stop()
        if self.extender:
            self.extender.stop()
        if self.agent:
            self.code = self.agent.stop()
        self.kubelet.close()
        self.relay.stop()
        self.store.stop()
        shutil.rmtree(self.dir, ignore_errors=True)


# judging what containers got

class Limits:
    """SliceLimits of src/slice/page.h."""

    def __init__(self, path):
        with open(path, "rb") as f:
            page = f.read()
        assert len(page) == layout.LIMITS_SIZE, len(page)
        (magic, self.version, self.size, self.generation, self.limit, self.card_bytes, self.group_bytes) = \
            struct.unpack_from("<8sIIQQQQ", page)
        assert magic == b"ALQLIMIT", magic
        _, self.card, self.core, self.flags = struct.unpack_from("<IIII", page, layout.CARD - 4)
        self.uuid = page[layout.UUID:layout.UUID + layout.UUID_SIZE].rstrip(b"\0").decode()
        self.files = [struct.unpack_from("<QQQ", page, layout.FILES + layout.FILE_SIZE * i) for i in range(3)]  # rdev; dev and inode
        self.rdev = [f[0] for f in self.files]
        self.container = page[layout.CONTAINER:layout.CONTAINER + layout.CONTAINER_SIZE].rstrip(b"\0").decode()
        self.weight, self.high_priority, self.policy, self.max_inst, self.prio_ratio = struct.unpack_from("<IIIII", page, layout.WEIGHT)


def parse(pod_object, key):
    return {int(i): {int(c): n for c, n in shares.items()}
            for i, shares in json.loads(pod_object["metadata"].get("annotations", {}).get(key) or "{}").items()}


def by_card(ids):
    return dict(collections.Counter(int(i.lstrip("c").split("-")[0]) for i in ids))


def index_of(pod_object, name):
    """the container's place in its pod"""
    for which in "initContainers", "containers":
        for i, c in enumerate(pod_object["spec"].get(which, [])):
            if c["name"] == name:
                return which, i
    raise KeyError(name)


class Judge:
    """Compares environment, annotations, devices and cards of each container."""

    def __init__(self, lab):
        self.lab = lab
        lab.wait(lambda: lab.node_annotation("aliquot.dev/cards"), "the agent describes its cards")
        self.described = {c["index"]: c for c in json.loads(lab.node_annotation("aliquot.dev/cards"))}

    def container(self, pod_object, c):
        """The faults of one started container, as texts."""
        where = f"{c.pod}/{c.name}"
        which, index = index_of(pod_object, c.name)
        spec = pod_object["spec"][which][index]
        mem, core = limit(spec, GPU_MEM), limit(spec, GPU_CORE)
        if not mem:
            return [f"{where}: asks for nothing and was given {c.devices}"] if c.devices else []
        faults = []

        def must(what, is_, should):
            if is_ != should:
                faults.append(f"{where}: {what} is {is_!r}, not {should!r}")
        place = parse(pod_object, ALLOCATION if which == "containers" else INIT).get(index, {})
        if not place:
            return [f"{where}: no place in the annotations {pod_object['metadata'].get('annotations')}"]
        must("devices of memory", by_card(c.devices.get(GPU_MEM, ())), place)
        must("devices of compute", sum(by_card(c.devices.get(GPU_CORE, ())).values()), core)
        if core:
            must("card of compute", set(by_card(c.devices.get(GPU_CORE, ()))), set(place))
            if which == "containers":
                must("compute in the annotations", parse(pod_object, CORE).get(index), {card: core for card in place})
        self._environment(pod_object, c, place, mem, must)
        return faults

    def _environment(self, pod_object, c, place, mem, must):
        env = {k: v for k, v in c.options["env"].items()}
        cards = sorted(place)
        uuids = [self.described[i]["uuid"] for i in cards]
        must("NVIDIA_VISIBLE_DEVICES", env.get("NVIDIA_VISIBLE_DEVICES"), ",".join(uuids))
        must("CDI devices", sorted(c.options["cdi"]), sorted("aliquot.dev/gpu=" + u for u in uuids))
        must("CONTAINER", env.get("ALIYUN_COM_GPU_MEM_CONTAINER"), str(mem // len(cards)))
        must("DEV", env.get("ALIYUN_COM_GPU_MEM_DEV"), str(max(self.described[i]["units"] for i in cards)))
        must("UNIT", env.get("ALIYUN_COM_GPU_MEM_UNIT"), self.lab.unit)
        if len(cards) == 1:
            must("IDX", env.get("ALIYUN_COM_GPU_MEM_IDX"), str(cards[0]))

    def pods(self, objects):
        """The faults of all started containers of these pods, and the number of these containers."""
        of = {o["metadata"]["uid"]: o for o in objects}
        faults, n = [], 0
        for c in list(self.lab.kubelet.runtime.started):
            if c.uid in of:
                faults += self.container(of[c.uid], c)
                n += 1
        return faults, n

    def sums(self, objects):
        """By the annotations of pods that have not ended, no card holds more than it has."""
        used = [0] * len(self.lab.units)
        for o in objects:
            if o.get("status", {}).get("phase") in ("Succeeded", "Failed"):
                continue
            cards = {c for key in (ALLOCATION, INIT) for shares in parse(o, key).values() for c in shares}
            for card in cards:
                used[card] += demand(o, GPU_MEM)
        return used


# many pods

def shapes(rng, name, scale=1, largest=15, life=None):
    """One of several shapes of pods. scale: units in place of 1 GiB."""
    run = {}

    def units(low, high):
        return rng.randint(low, high) * scale
    core = rng.choice([0, 0, 5, 10, 20])
    kind = rng.randrange(8)
    cards, init = 1, []
    if kind <= 1:
        main = [container("main", units(1, 5), core)]
    elif kind == 2:
        main = [container("main", units(1, 3), core), container("second", units(1, 3), core)]
    elif kind == 3:
        n = units(1, 4)
        main, init = [container("main", n, core)], [container("ini", n, core)]
    elif kind == 4:
        n = units(2, 4)
        main = [container("main", n, core)]
        init = [container("ini", n - scale, core), container("more", n + scale, core)]
    elif kind == 5:
        main = [container("main", units(1, 3), core)]
        init = [container("ini", units(1, 4), core), container("side", units(1, 2), core, restartPolicy="Always")]
    elif kind == 6:
        cards = 2
        main = [container("main", 2 * units(1, 4))]
        if rng.random() < 0.5:
            main.append(container("second", 2 * units(1, 2)))
    else:
        main = [container("main", rng.choice([units(1, 2), largest]), core), container("idle")]
    for c in main:
        if life is not None:
            run["fake/run-" + c["name"]] = "%.3f" % rng.uniform(*life)
    return pod(name, *main, init=init, cards=cards, annotations=run)


def create_many(lab, objects, threads=4):
    """Creates all at once and returns their names."""
    queue = collections.deque(objects)

    def work():
        while True:
            try:
                obj = queue.popleft()
            except IndexError:
                return
            lab.create(obj)
    workers = [threading.Thread(target=work) for _ in range(threads)]
    for w in workers:
        w.start()
    for w in workers:
        w.join()
    return [o["metadata"]["name"] for o in objects]


def limit_files(pid, size):
    """Limits the size of files that the process writes. 0 means a full disk, None means no limit."""
    hard = resource.prlimit(pid, resource.RLIMIT_FSIZE)[1]
    resource.prlimit(pid, resource.RLIMIT_FSIZE, (hard if size is None else size, hard))


__all__ = ["ALLOCATION", "ASSIGNED", "ApiError", "CORE", "EIGHT_CARDS", "GPU_CORE", "GPU_MEM", "INIT", "Judge", "Lab", "Limits",
           "NODE", "NODE_PATH", "PODS", "by_card", "cards_of", "container", "create_many", "demand", "free_port",
           "is_sidecar", "limit", "limit_files", "parse", "pod", "shapes", "time"]
