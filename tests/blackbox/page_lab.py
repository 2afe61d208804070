# SPDX-License-Identifier: Apache-2.0
"""A scheduler with a page, on the API server of the tests, and a viewer of its stream."""

import contextlib
import http.client
import http.server
import json
import os
import random
import re
import socket
import subprocess
import tempfile
import threading

from api import Api, StoreServer
from clock import Clock
from patience import PATIENCE, until

MEM, COUNT, CORE = "aliyun.com/gpu-mem", "aliyun.com/gpu-count", "aliyun.com/gpu-core.percentage"
ALLOCATION, ASSIGNED = "scheduler.framework.gpushare.allocation", "scheduler.framework.gpushare.assigned"


def node(name, cards=8, units=80, mode="cgpu"):
    offer = {"cpu": "64", MEM: str(cards * units), COUNT: str(cards)}
    if mode == "core_mem":
        offer[CORE] = str(cards * 100)
    return {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "labels": {"ack.node.gpu.schedule": mode}},
            "status": {"capacity": offer, "allocatable": offer}}


def pod(name, mem, on=None, card=0, core=None, namespace="default", cards=1):
    """on: the node that it is bound to, with its slice on that card, or a part of it on each of so many cards from that one on."""
    limits = {MEM: str(mem)}
    if core:
        limits[CORE] = str(core)
    made = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "namespace": namespace},
            "spec": {"schedulerName": "ack-co-scheduler", "containers": [{"name": "main", "image": "none", "resources": {"limits": limits}}]}}
    if on:
        made["spec"]["nodeName"] = on
        made["metadata"]["annotations"] = {ASSIGNED: "true", ALLOCATION: json.dumps({"0": {str(card + i): mem // cards for i in range(cards)}})}
        made["metadata"]["labels"] = {"aliyun.com/gpu-count": str(cards)} if cards > 1 else {}
        if core:
            made["metadata"]["annotations"]["scheduler.framework.gpushare.core"] = json.dumps({"0": {str(card): core}})
    return made


def limits(status, reason, message):
    """The node's condition about limits of the driver on memory."""
    return {"status": {"conditions": [{"type": "GPUShareMemoryLimitsUnavailable", "status": status, "reason": reason, "message": message}]}}


def fence(name, *cards):
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "unhealthy-gpu-" + name, "namespace": "kube-system"},
            "data": {"gpus": ",".join(map(str, cards))}}


class Agent:
    """A node's agent as the page asks it: its pod, and its metrics on an address of the loopback of its own."""

    PORT = 9445

    def __init__(self, case, api, name, metrics, address=None):
        """metrics: the text, or what returns it; None: the agent takes connections and does not answer; False: it does not listen."""
        self.asked = 0
        self.address = address or f"127.{random.randrange(1, 250)}.{random.randrange(250)}.{random.randrange(1, 250)}"
        pods = "/api/v1/namespaces/kube-system/pods"
        labels = {"app.kubernetes.io/name": "aliquot", "app.kubernetes.io/component": "node"}
        api.post(pods, {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "agent-" + name, "namespace": "kube-system", "labels": labels},
                        "spec": {"nodeName": name, "containers": [{"name": "agent", "image": "none"}]}})
        api.patch(f"{pods}/agent-{name}/status", {"status": {"phase": "Running", "podIP": self.address}})
        if metrics is False:
            return
        if metrics is None:
            silent = socket.create_server((self.address, self.PORT))
            case.addCleanup(silent.close)
            return
        self.metrics, agent = metrics, self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                agent.asked += 1
                agent.request = (self.path, dict(self.headers))
                self.send_response(200)
                self.end_headers()
                text = agent.metrics() if callable(agent.metrics) else agent.metrics
                self.wfile.write(text.encode())

            def log_message(self, *_):
                pass

        server = http.server.ThreadingHTTPServer((self.address, self.PORT), Handler)
        case.addCleanup(server.server_close)
        case.addCleanup(server.shutdown)
        threading.Thread(target=server.serve_forever, daemon=True).start()


def measured(card, used, namespace=None, name=None, container="main", xid=0):
    """Lines of an agent's metrics: of the card, or of a container on it."""
    of_card = f'UUID="GPU-{card}",device="nvidia{card}",gpu="{card}",modelName="A10",NodeName="n"'
    if name:
        return f'aliquot_node_container_memory_used_bytes{{{of_card},NamespaceName="{namespace}",PodName="{name}",ContainerName="{container}"}} {used << 20}\n'
    return (f"aliquot_node_card_memory_used_bytes{{{of_card}}} {used << 20}\naliquot_node_card_healthy{{{of_card}}} {int(not xid)}\n"
            f"aliquot_node_card_fence_xid{{{of_card}}} {xid}\n")


def timed(card, namespace, name, share, used, held, container="main"):
    """Lines of an agent's metrics about a container whose compute is limited; seconds since it began."""
    of = f'{{gpu="{card}",NamespaceName="{namespace}",PodName="{name}",ContainerName="{container}"}}'
    return (f"aliquot_node_container_compute_share_ratio{of} {share:.6g}\naliquot_node_container_compute_used_seconds_total{of} {used:.6f}\n"
            f"aliquot_node_container_compute_held_seconds_total{of} {held:.6f}\n")


class Lab:
    """case: the test, which ends all of it."""

    def __init__(self, case, aliquot, store, shim=None):
        self.folder = tempfile.TemporaryDirectory()
        case.addCleanup(self.folder.cleanup)
        self.store = StoreServer(store)
        case.addCleanup(self.store.stop)
        self.api = Api(self.store.address)
        self.aliquot = aliquot
        self.case = case
        self.clock = Clock(shim, os.path.join(self.folder.name, "clock"))  # the scheduler's

    def start(self, *options, api=None):
        """api: the address of the API server, if another one than the store's."""
        log = os.path.join(self.folder.name, "log")
        config = self.store.kubeconfig(os.path.join(self.folder.name, "config"), api)
        with open(log, "w") as f:
            self.process = subprocess.Popen([self.aliquot, "scheduler", "--kubeconfig", config,
                                             "--no-leader-election", "--listen", "127.0.0.1:0", "--page", "127.0.0.1:0", *options],
                                            env={**os.environ, **self.clock.environment()}, stderr=f)
        self.case.addCleanup(self.stop)

        def ports():
            with open(log) as f:
                text = f.read()
            return [re.search(what + r"port=(\d+)", text) for what in (r" listening ", r"page listening ")]

        found = until(lambda: all(ports()) and ports(), "no ports in the log")
        self.port, self.page = (int(m[1]) for m in found)
        until(lambda: self.ask("/readyz", self.port).status == 200, "the scheduler is not ready")

    @contextlib.contextmanager
    def hurry(self):
        """The scheduler's clock runs some ten times as fast, and something is asked so that it sees that."""
        over = threading.Event()

        def leap():
            while not over.wait(0.1):
                self.clock.leap(1)
                self.ask("/healthz", self.port)
        thread = threading.Thread(target=leap)
        thread.start()
        try:
            yield
        finally:
            over.set()
            thread.join()

    def stop(self):
        self.process.kill()
        self.process.wait()

    def ask(self, path, port=None, method="GET", body=None, **headers):
        connection = http.client.HTTPConnection("127.0.0.1", port or self.page, timeout=PATIENCE)
        try:
            connection.request(method, path, body, {name.replace("_", "-"): value for name, value in headers.items()})
            answer = connection.getresponse()
            answer.text = answer.read().decode()
            return answer
        finally:
            connection.close()

    def inspect(self):
        """{node: {card: (units, used)}} as the extender answers."""
        told = json.loads(self.ask("/gpushare-scheduler/inspect", self.port).text)["nodes"]
        return {n["name"]: {int(d["id"]): (d["totalGPU"], d["usedGPU"]) for d in n["devs"]} for n in told}


class Viewer:
    """What a browser does with the stream: the state, and each difference on top of it."""

    def __init__(self, lab, connection=None, token=None):
        """connection: to a port with a login, which takes the token."""
        self.socket = connection or socket.create_connection(("127.0.0.1", lab.page), timeout=PATIENCE)
        login = f"Authorization: Bearer {token}\r\n" if token else ""
        self.socket.sendall(f"GET /events HTTP/1.1\r\nHost: localhost\r\n{login}\r\n".encode())
        self.answer = http.client.HTTPResponse(self.socket)
        self.answer.begin()
        self.nodes, self.waiting, self.cluster, self.seq = {}, None, None, None
        self.events, self.bytes = [], 0

    def close(self):
        self.answer.close()
        self.socket.close()

    def next(self):
        """Reads one event, and returns its kind."""
        kind, data = None, None
        while True:
            line = self.answer.readline()
            if not line:
                raise EOFError("the stream ended")
            self.bytes += len(line)
            line = line.decode().rstrip("\n")
            if line.startswith("event: "):
                kind = line[len("event: "):]
            elif line.startswith("data: "):
                data = json.loads(line[len("data: "):])
            elif not line and kind == "alive":
                kind = None
            elif not line and kind:
                break
        if kind == "state":
            self.nodes = {}
        elif data["seq"] != self.seq + 1:
            raise AssertionError(f"event {data['seq']} after {self.seq}")
        self.seq = data["seq"]
        self.cluster = data.get("cluster", self.cluster)
        self.waiting = data.get("waiting", self.waiting)
        self.nodes.update({n["name"]: n for n in data.get("nodes", [])})
        for name in data.get("gone", []):
            del self.nodes[name]
        self.events.append((kind, data))
        return kind

    def cards(self):
        return {name: {c[0]: (c[1], c[2]) for c in n["cards"]} for name, n in self.nodes.items()}

    def until(self, condition, what):
        """Reads events until the condition holds. The socket's own deadline ends it."""
        while not condition():
            try:
                self.next()
            except OSError as e:
                raise AssertionError(f"no such event: {what}") from e
