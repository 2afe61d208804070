#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The admission webhook from outside: `aliquot scheduler` against a small API server, with requests
over HTTPS as a real one sends them."""

import base64
import http.client
import http.server
import itertools
import json
import os
import queue
import random
import re
import signal
import socket
import ssl
import subprocess
import sys
import tempfile
import threading
import time
import unittest
import urllib.parse

from patience import PATIENCE, until
from wrong_values import CARDS, LABELS, LIMITS

ALIQUOT = sys.argv.pop(1)
SYSTEM = "/api/v1/namespaces/kube-system/"
SECRET = SYSTEM + "secrets/aliquot-webhook-tls"
LEASE = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/aliquot-scheduler"
HOOKS = "/apis/admissionregistration.k8s.io/v1/"
MUTATING, VALIDATING = (HOOKS + kind + "webhookconfigurations/aliquot" for kind in ("mutating", "validating"))
HOST = "aliquot-webhook.kube-system.svc"
DRAIN = 5  # seconds: src/scheduler/main.c
PREFIX = "/gpushare-scheduler/webhook/"
OBJECT = re.compile(r"(?P<group>/api/v1|/apis/[^/]+/[^/]+)(/namespaces/(?P<ns>[^/]+))?/(?P<kind>[a-z]+)(/(?P<name>[^/]+))?$")


class Api:
    """Objects by path, with versions, watches, the three kinds of writes that are used, and
    refusals on demand."""

    def __init__(self):
        self.lock = threading.RLock()
        self.objects, self.history, self.watches = {}, [], []
        self.version, self.writes, self.refused = 0, [], {}
        self.server_version = {"major": "1", "minor": "36", "gitVersion": "v1.36.2"}
        api = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *args):
                pass

            def do(self):
                body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
                api.answer(self, self.command, urllib.parse.urlsplit(self.path), body)

            do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = do

        class Server(http.server.ThreadingHTTPServer):
            daemon_threads = True

            def handle_error(self, *args):
                pass  # connections of killed peers

        self.server = Server(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        self.url = "http://127.0.0.1:%d" % self.server.server_port

    def close(self):
        with self.lock:
            for _, events in self.watches:
                events.put(None)
        self.server.shutdown()
        self.server.server_close()

    # what tests change

    def get(self, path):
        with self.lock:
            return json.loads(json.dumps(self.objects.get(path)))

    def put(self, path, what):
        with self.lock:
            kind = "MODIFIED" if path in self.objects else "ADDED"
            self.version += 1
            what = json.loads(json.dumps(what))
            what.setdefault("metadata", {}).update(name=path.rsplit("/", 1)[1], resourceVersion=str(self.version))
            self.objects[path] = what
            self.tell(kind, path, what)
            return what

    def delete(self, path):
        with self.lock:
            self.version += 1
            what = self.objects.pop(path)
            self.tell("DELETED", path, merge(what, {"metadata": {"resourceVersion": str(self.version)}}))

    # requests

    def tell(self, kind, path, what):
        self.history.append((kind, path, what))
        for wants, events in self.watches:
            if wants(path, what):
                events.put({"type": kind, "object": what})

    @staticmethod
    def selector(url, where):
        query = dict(urllib.parse.parse_qsl(url.query))
        fields = dict(part.split("=", 1) for part in query.get("fieldSelector", "").split(",") if part)
        labels = dict(part.split("=", 1) for part in query.get("labelSelector", "").split(",") if part)

        def wants(path, what):
            at = OBJECT.match(path)
            meta = what["metadata"]
            return (at["group"] == where["group"] and at["kind"] == where["kind"] and
                    where["ns"] in (None, at["ns"]) and
                    fields.get("metadata.name", meta["name"]) == meta["name"] and
                    all((meta.get("labels") or {}).get(k) == v for k, v in labels.items()))
        return wants, query

    @staticmethod
    def respond(handler, status, what):
        text = json.dumps(what).encode()
        handler.send_response(status)
        handler.send_header("Content-Type", "application/json")
        handler.send_header("Content-Length", str(len(text)))
        handler.end_headers()
        handler.wfile.write(text)

    def refuse(self, handler, status, reason):
        self.respond(handler, status, {"kind": "Status", "status": "Failure", "code": status, "reason": reason,
                                       "message": reason})

    def answer(self, handler, method, url, body):
        where = OBJECT.match(url.path)
        for (refused, prefix), status in list(self.refused.items()):
            if method == refused and url.path.startswith(prefix):
                with self.lock:
                    status = status if isinstance(status, int) else next(status)  # None: this one is not refused
                if status:
                    return self.refuse(handler, status, "Forbidden")
        if url.path == "/version":
            return self.respond(handler, 200, self.server_version)
        if not where:
            return self.refuse(handler, 404, "NotFound")
        if method != "GET":
            with self.lock:
                return self.write(handler, method, url.path, where, body)
        if where["name"]:
            what = self.get(url.path)
            return self.respond(handler, 200, what) if what else self.refuse(handler, 404, "NotFound")
        wants, query = self.selector(url, where)
        if query.get("watch"):
            return self.watch(handler, wants, int(query.get("resourceVersion", 0)))
        with self.lock:
            items = [what for path, what in self.objects.items() if wants(path, what)]
            return self.respond(handler, 200, {"kind": "List", "metadata": {"resourceVersion": str(self.version)},
                                               "items": items})

    def watch(self, handler, wants, version):
        events = queue.Queue()
        with self.lock:
            for kind, path, what in self.history:
                if wants(path, what) and int(what["metadata"]["resourceVersion"]) > version:
                    events.put({"type": kind, "object": what})
            self.watches.append((wants, events))
        handler.send_response(200)
        handler.send_header("Content-Type", "application/json")
        handler.send_header("Transfer-Encoding", "chunked")
        handler.end_headers()
        while True:
            event = events.get()
            if event is None:
                handler.close_connection = True
                return
            line = json.dumps(event).encode() + b"\n"
            handler.wfile.write(b"%x\r\n%s\r\n" % (len(line), line))
            handler.wfile.flush()

    def write(self, handler, method, path, where, body):
        what = json.loads(body) if body else {}
        if method == "POST":
            path += "/" + (what["metadata"].get("name") or what["metadata"].get("generateName", "") + str(self.version))
            if path in self.objects:
                return self.refuse(handler, 409, "AlreadyExists")
        elif path not in self.objects:
            return self.refuse(handler, 404, "NotFound")
        self.writes.append((method, path))
        old = self.get(path)
        if method == "PATCH" and handler.headers["Content-Type"] == "application/json-patch+json":
            try:
                what = json_patch(old, what)
            except (KeyError, IndexError, AssertionError):
                return self.refuse(handler, 422, "Invalid")
        elif method == "PATCH":
            wanted = what.get("metadata", {}).get("resourceVersion")
            if wanted and wanted != old["metadata"]["resourceVersion"]:
                return self.refuse(handler, 409, "Conflict")
            what = merge(old, what)
        elif method == "PUT" and what["metadata"].get("resourceVersion") != old["metadata"]["resourceVersion"]:
            return self.refuse(handler, 409, "Conflict")
        return self.respond(handler, 201 if method == "POST" else 200, self.put(path, what))


def merge(into, patch):
    if not isinstance(patch, dict):
        return patch
    into = dict(into) if isinstance(into, dict) else {}
    for key, value in patch.items():
        into.pop(key, None) if value is None else into.__setitem__(key, merge(into.get(key), value))
    return into


def json_patch(what, steps):
    for step in steps:
        *path, last = [part.replace("~1", "/").replace("~0", "~") for part in step["path"].split("/")[1:]]
        at = what
        for part in path:
            at = at[int(part) if isinstance(at, list) else part]
        if step["op"] == "test":
            assert at[last] == step["value"]
        else:
            assert step["op"] == "add"
            at[last] = step["value"]
    return what


def configuration():
    ours = {"namespace": "kube-system", "name": "aliquot-webhook", "path": PREFIX + "x", "port": 443}
    return {"metadata": {"labels": {"a": "b"}}, "webhooks": [
        {"name": "one.aliquot.dev", "clientConfig": {"service": ours}, "failurePolicy": "Fail"},
        {"name": "other.example.com", "clientConfig": {"url": "https://example.com", "caBundle": "T1RIRVI="}},
        {"name": "two.aliquot.dev", "clientConfig": {"service": ours, "caBundle": "Cg=="}},
    ]}


class Replica:
    """One `aliquot scheduler`."""

    def __init__(self, test, *options, pod=None, listen="127.0.0.1:0"):
        environment = {k: v for k, v in os.environ.items() if not k.startswith(("POD_", "KUBE"))}
        if pod:
            environment.update(POD_NAME=pod, POD_NAMESPACE="kube-system")
        self.process = subprocess.Popen(
            [ALIQUOT, "scheduler", "--kubeconfig", test.kubeconfig, "--listen", "127.0.0.1:0", "--webhook-listen",
             listen, *options], stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, env=environment)
        self.log = []
        self.reader = threading.Thread(target=lambda: self.log.extend(iter(self.process.stderr.readline, "")), daemon=True)
        self.reader.start()
        test.addCleanup(self.end)
        self.port = int(self.logged(r" listening port=(\d+) server")[1])
        self.webhook_port = int(self.logged(r"webhook listening port=(\d+)")[1])

    def logged(self, pattern):
        return until(lambda: next(filter(None, (re.search(pattern, line) for line in self.log)), None), pattern)

    def end(self):
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGCONT)
            self.process.terminate()
        code = self.process.wait(PATIENCE)
        self.reader.join(PATIENCE)
        self.process.stderr.close()
        if code:
            raise AssertionError("exit %d: %s" % (code, "".join(self.log)))

    def ask(self, path):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE)
        connection.request("GET", path)
        answer = connection.getresponse()
        text = answer.read().decode()
        connection.close()
        return answer.status, text

    def kept(self, path):
        """None, or "close" when the answer ends the connection."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE)
        connection.request("GET", path)
        found = connection.getresponse().getheader("Connection")
        connection.close()
        return found

    def connect(self, authorities, host=HOST):
        """A verified connection, like the API server's."""
        context = ssl.create_default_context(cadata=authorities)
        raw = socket.create_connection(("127.0.0.1", self.webhook_port), timeout=PATIENCE)
        try:
            connection = http.client.HTTPConnection(host)
            connection.sock = context.wrap_socket(raw, server_hostname=host)
        except Exception:
            raw.close()
            raise
        return connection

    def serial(self):
        """The certificate of a new connection; None when there is none."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        try:
            with socket.create_connection(("127.0.0.1", self.webhook_port), timeout=PATIENCE) as raw, \
                    context.wrap_socket(raw) as tls:
                return tls.getpeercert(True)
        except ssl.SSLError:
            return None


def pod(limits, labels=None, **spec):
    limits = {"aliyun.com/" + key: value for key, value in limits.items()}
    return {"metadata": {"name": "a", "labels": labels or {}},
            "spec": dict(spec, containers=[{"name": "main", "resources": {"limits": limits}}])}


def post(connection, task, body, method="POST"):
    if not isinstance(body, bytes):
        body = json.dumps(body).encode()
    connection.request(method, PREFIX + task + "?timeout=10s", body, {"Content-Type": "application/json"})
    answer = connection.getresponse()
    text = answer.read()
    return answer.status, json.loads(text) if answer.status == 200 else text.decode()


def review(connection, task, what, kind=("", "Pod"), operation="CREATE", **more):
    status, answer = post(connection, task, {
        "kind": "AdmissionReview", "apiVersion": "admission.k8s.io/v1",
        "request": {"uid": "7", "kind": {"group": kind[0], "version": "v1", "kind": kind[1]}, "operation": operation,
                    "object": what, "oldObject": None, **more}})
    assert status == 200, (status, answer)
    assert answer["response"]["uid"] == "7"
    return answer["response"]


def is_closed(connection):
    """The peer has closed it. What else came is a session ticket, which is read here."""
    connection.sock.setblocking(False)
    try:
        return connection.sock.recv(1) == b""
    except ssl.SSLWantReadError:
        return False
    except OSError:
        return True
    finally:
        connection.sock.settimeout(PATIENCE)


class KeepingClient:
    """Keeps its connections as the API server does (net/http of Go). The one used last is used next, and one that the peer has closed
    is replaced. A request whose connection is closed after it was sent fails."""

    def __init__(self, dial):
        self.dial, self.idle, self.lock = dial, [], threading.Lock()

    def take(self):
        while True:
            with self.lock:
                connection = self.idle.pop() if self.idle else None
            if not connection:
                return self.dial()
            if not is_closed(connection):
                return connection
            connection.close()

    def create(self):
        connection = self.take()
        try:
            assert review(connection, "validate", pod({}))["allowed"]
        except BaseException:
            connection.close()
            raise
        if connection.sock:
            with self.lock:
                self.idle.append(connection)

    def close(self):
        for connection in self.idle:
            connection.close()


class WebhookTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        self.api = Api()
        self.addCleanup(self.api.close)
        self.kubeconfig = os.path.join(self.folder, "config")
        with open(self.kubeconfig, "w") as f:
            json.dump({"current-context": "c", "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
                       "clusters": [{"name": "c", "cluster": {"server": self.api.url}}],
                       "users": [{"name": "u", "user": {}}]}, f)
        self.api.put(MUTATING, configuration())
        self.api.put(VALIDATING, configuration())

    def data(self, key, default=""):
        return base64.b64decode(((self.api.get(SECRET) or {}).get("data") or {}).get(key, default)).decode()

    def authorities(self):
        return until(lambda: self.data("ca.crt"), "a CA")

    def injected(self):
        """The bundle, once both configurations have it wherever they name our Service."""
        wanted = base64.b64encode(self.data("ca.crt").encode()).decode()
        for path in MUTATING, VALIDATING:
            now = self.api.get(path)
            found = [hook["clientConfig"].get("caBundle") for hook in now["webhooks"]]
            if found != [wanted, "T1RIRVI=", wanted]:
                return None
            for hook, was in zip(now["webhooks"], configuration()["webhooks"]):
                hook["clientConfig"].pop("caBundle")
                was["clientConfig"].pop("caBundle", None)
                self.assertEqual(hook, was)
            self.assertEqual(now["metadata"]["labels"], {"a": "b"})
        return wanted

    def holder(self):
        return (self.api.get(LEASE) or {"spec": {}})["spec"].get("holderIdentity", "")

    def ready(self, replica):
        until(lambda: replica.ask("/readyz")[0] == 200, "ready")

    def answers_on(self, one):
        """False: the requests were sent when the time in which a pod answers on was nearly over."""
        until(lambda: self.holder() != "", "it leads")
        self.assertIsNone(one.kept("/version"))
        until(lambda: one.serial() is not None, "it has its certificate")
        connections = [one.connect(self.authorities()) for _ in range(2)]
        for connection in connections:
            self.addCleanup(connection.close)
            self.assertTrue(review(connection, "validate", pod({}))["allowed"])
            self.assertIsNotNone(connection.sock)
        ends = time.monotonic()
        one.process.terminate()
        until(lambda: self.holder() == "", "it has given the Lease back")
        sent = time.monotonic()
        try:
            for connection in [*connections, one.connect(self.authorities())]:
                sent = time.monotonic()
                if is_closed(connection):  # it was idle for a second
                    continue
                self.assertTrue(review(connection, "validate", pod({}))["allowed"])
                self.assertIsNone(connection.sock)
            sent = time.monotonic()
            self.assertEqual(one.kept("/version"), "close")
        except (OSError, http.client.HTTPException):
            if sent - ends < DRAIN / 2:
                raise
            one.process.wait(PATIENCE)
            return False
        one.end()  # a second signal, and an exit status of 0
        return True


class Admission(WebhookTest):
    """What it answers to requests."""

    def test_system_keys(self):
        replica = Replica(self, "--no-leader-election", "--system-accounts", "one,system:serviceaccount:kube-system:old")
        self.ready(replica)
        connection = replica.connect(self.authorities())
        self.addCleanup(connection.close)
        key = "gpushare.alibabacloud.com/core-percentage"
        was = pod({})
        now = dict(was, metadata={"name": "a", "namespace": "default", "annotations": {key: "{}", "aliquot.dev/gpu-mem": "1"}})
        answer = review(connection, "mutate", now)
        self.assertEqual((answer["allowed"], answer["warnings"]), (True, [
            f"annotation {key} is set by the scheduler; it was removed",
            "pod default/a: annotation aliquot.dev/gpu-mem resizes a running pod, and a new pod has the size of its limits; it was removed"]))
        self.assertEqual(json.loads(base64.b64decode(answer["patch"])),
                         [{"op": "remove", "path": "/metadata/annotations/gpushare.alibabacloud.com~1core-percentage"},
                          {"op": "remove", "path": "/metadata/annotations/aliquot.dev~1gpu-mem"}])
        for subresource in "", "status":
            def update(user, *groups, subresource=subresource):
                return review(connection, "validate", now, operation="UPDATE", oldObject=was, subResource=subresource,
                              userInfo={"username": user, "groups": groups})
            answer = update("eve", "system:authenticated")
            self.assertFalse(answer["allowed"])
            self.assertEqual(answer["status"]["message"],
                             f'pod default/a: annotation {key} is "", must not become "{{}}": aliquot\'s scheduler and node agent write it, and '
                             'user "eve" is none of the system accounts (--system-accounts)')
            for user in "one", "system:serviceaccount:kube-system:old", "system:serviceaccount:kube-system:aliquot-node":
                self.assertTrue(update(user)["allowed"])
            self.assertTrue(update("eve", "system:masters")["allowed"])

    def test_visible_devices(self):
        asks = pod({"gpu-mem": 2})
        asks["spec"]["containers"][0]["env"] = [{"name": "NVIDIA_VISIBLE_DEVICES", "value": "all"}]
        for access, allowed in ("runtime", False), ("cdi", True):
            replica = Replica(self, "--no-leader-election", "--device-access", access)
            self.ready(replica)
            connection = replica.connect(self.authorities())
            self.addCleanup(connection.close)
            self.assertEqual(review(connection, "validate", asks)["allowed"], allowed)
            self.assertTrue(review(connection, "validate", pod({"gpu-mem": 2}))["allowed"])

    def test_wrong_values(self):
        """kubectl prints field, value and rule of what the extender would refuse. A larger card may come."""
        replica = Replica(self, "--no-leader-election")
        self.ready(replica)
        connection = replica.connect(self.authorities())
        self.addCleanup(connection.close)
        for table, place in (LIMITS, "limits"), (LABELS, "labels"), (CARDS, "annotations"):
            for key, values in table.items():
                for value, (status, text) in values.items() if table is not CARDS else [(v, (1, t)) for v, t in values.items()]:
                    o = pod({"gpu-mem": "4"})
                    (o["metadata"] if place != "limits" else o["spec"]["containers"][0]["resources"]).setdefault(place, {})[key] = value
                    answer = review(connection, "validate", o)
                    with self.subTest(key=key, value=value):
                        self.assertEqual(answer["allowed"], status == 0 or text.startswith("no card is large enough"))
                        if not answer["allowed"]:
                            self.assertIn(key, answer["status"]["message"])
                            self.assertRegex(answer["status"]["message"], rf'^(spec.containers\[0\].resources.limits|metadata.{place})\["[^"]+"\]: '
                                             r'.*(must|; write 3|has a character|exceeds|wants only)')

    def test_a_misspelt_limit(self):
        """The pod is let in: another device plugin may offer the resource. kubectl prints the warning."""
        replica = Replica(self, "--no-leader-election")
        self.ready(replica)
        connection = replica.connect(self.authorities())
        self.addCleanup(connection.close)
        for limit, meant in (("gpu-memory", "gpu-mem"), ("gpu-core", "gpu-core.percentage"), ("gpucount", "gpu-count")):
            answer = review(connection, "validate", {"spec": {"template": pod({limit: "3"})}}, ("apps", "Deployment"))
            self.assertEqual((answer["allowed"], answer.get("warnings")),
                             (True, [f'container "main": limit aliyun.com/{limit} is no resource of aliquot: did you mean aliyun.com/{meant}?']))
        self.assertNotIn("warnings", review(connection, "validate", pod({"gpu": "1"})))

    def test_bad_requests(self):
        replica = Replica(self, "--no-leader-election")
        self.ready(replica)
        connection = replica.connect(self.authorities())
        self.addCleanup(connection.close)
        for body in b"", b"{", b"\xff\xfe", b"null", b"[" * 100000, b"{}":
            status, text = post(connection, "validate", body)
            self.assertEqual((status, text.count("\n")), (400, 1), text)
        self.assertEqual(post(connection, "validate", b"", "PUT")[0], 405)
        self.assertEqual(post(connection, "else", b"{}")[0], 404)
        self.assertEqual(post(connection, "../filter", b"{}")[0], 404)
        large = b" " * (7 << 20)
        self.assertEqual(post(connection, "validate", large)[0], 400)
        connection.putrequest("POST", PREFIX + "validate")
        connection.putheader("Content-Length", str(len(large) + 1))
        connection.endheaders()  # refused by its announced length
        self.assertEqual(connection.getresponse().status, 413)

    def test_the_log_names_the_version_of_the_api_server(self):
        Replica(self).logged(r" info the API server is Kubernetes v1\.36\.2$")
        self.api.server_version = {"major": "1", "minor": "21", "gitVersion": "v1.21.9"}
        Replica(self).logged(r" warning the API server is Kubernetes v1\.21\.9, older than 1\.22, the floor$")

    def test_usage(self):
        for options, said in ((["--webhook-service", "x"], "must be NAMESPACE/NAME"),
                              (["--filter-best", "31"], "must be 0, or a number from 32 to 1000"),
                              (["--filter-best", "1001"], "must be 0, or a number from 32 to 1000"),
                              (["--node-order", "spread"], "must be binpack or fragmentation"),
                              (["--webhook-service", "a/B"], "must be NAMESPACE/NAME"),
                              (["--webhook-service", "a/b/c"], "must be NAMESPACE/NAME"),
                              (["--webhook-tls-cert", "x"], "go together")):
            run = subprocess.run([ALIQUOT, "scheduler", *options], capture_output=True, text=True)
            self.assertEqual(run.returncode, 2)
            self.assertIn(said, run.stderr)
        run = subprocess.run([ALIQUOT, "scheduler", "--kubeconfig", self.kubeconfig, "--listen", "127.0.0.1:0",
                              "--webhook-listen", "127.0.0.1:0", "--webhook-tls-cert", "/proc/self/absent", "--webhook-tls-key",
                              "/proc/self/absent"], capture_output=True, text=True)
        self.assertEqual(run.returncode, 3)
        self.assertIn("cannot read /proc/self/absent", run.stderr)


class Certificates(WebhookTest):
    def test_from_nothing(self):
        replica = Replica(self, "--no-leader-election")
        self.ready(replica)
        authorities = self.authorities()
        until(self.injected, "the caBundle")
        self.assertEqual(self.api.get(SECRET)["type"], "kubernetes.io/tls")
        for host in HOST, HOST + ".cluster.local", "aliquot-webhook.kube-system":
            replica.connect(authorities, host).close()
        with self.assertRaises(ssl.SSLCertVerificationError):
            replica.connect(authorities, "aliquot-webhook.default.svc")
        connection = replica.connect(authorities)
        self.addCleanup(connection.close)
        answer = review(connection, "mutate", pod({"gpu-mem": "8"}, schedulerName="default-scheduler"))
        self.assertEqual((answer["allowed"], answer["patchType"]), (True, "JSONPatch"))
        self.assertEqual(json.loads(base64.b64decode(answer["patch"])),
                         [{"op": "add", "path": "/spec/schedulerName", "value": "ack-co-scheduler"},
                          {"op": "add", "path": "/spec/tolerations",
                           "value": [{"key": "aliyun.com/gpu-mem", "operator": "Exists", "effect": "NoSchedule"}]}])
        answer = review(connection, "mutate", pod({"gpu": "1"}, schedulerName="ack-co-scheduler"))
        self.assertEqual([step["path"] for step in json.loads(base64.b64decode(answer["patch"]))], ["/spec/tolerations"])
        self.assertEqual(review(connection, "mutate", pod({})), {"uid": "7", "allowed": True})
        answer = review(connection, "validate", {"spec": {"template": pod({"gpu-mem": 8, "gpu-core.percentage": 33})}},
                        ("apps", "Deployment"))
        self.assertFalse(answer["allowed"])
        self.assertEqual(answer["status"]["message"],
                         'spec.template.spec.containers[0].resources.limits["aliyun.com/gpu-core.percentage"]: container '
                         '"main": aliyun.com/gpu-core.percentage is 33, must be a multiple of 5 from 5 to 100')
        metrics = replica.ask("/metrics")[1]
        for line in 'reviews_total{verdict="patched"} 2', 'reviews_total{verdict="refused"} 1':
            self.assertIn(line, metrics)
        self.assertIn("webhook_certificate_end_seconds", metrics)
        self.assertIn("webhook_ca_end_seconds", metrics)

    def test_openssl_agrees(self):
        replica = Replica(self, "--no-leader-election")
        self.ready(replica)
        for name, text in (("ca", self.authorities()), ("crt", self.data("tls.crt"))):
            with open(os.path.join(self.folder, name), "w") as f:
                f.write(text)
        said = subprocess.run(["openssl", "verify", "-x509_strict", "-purpose", "sslserver", "-verify_hostname", HOST,
                               "-CAfile", os.path.join(self.folder, "ca"), os.path.join(self.folder, "crt")],
                              capture_output=True, text=True)
        self.assertEqual((said.returncode, said.stderr), (0, ""), said.stdout + said.stderr)

    def test_two_at_once_serve_one_certificate(self):
        replicas = [Replica(self) for _ in range(2)]
        for replica in replicas:
            self.ready(replica)
        until(self.injected, "the caBundle")
        for replica in replicas:
            replica.connect(self.authorities()).close()
        self.assertEqual(replicas[0].serial(), replicas[1].serial())
        self.assertEqual([w for w in self.api.writes if w[1] == SECRET], [("POST", SECRET)])

    def test_a_secret_made_beforehand_is_filled(self):
        self.api.refused[("POST", SYSTEM + "secrets")] = 403
        self.api.put(SECRET, {"metadata": {"labels": {"keep": "me"}}, "type": "Opaque"})
        replica = Replica(self)
        self.ready(replica)
        secret = self.api.get(SECRET)
        self.assertEqual((secret["type"], secret["metadata"]["labels"]), ("Opaque", {"keep": "me"}))
        replica.connect(self.authorities()).close()

    def test_overwritten_bundles_come_back(self):
        Replica(self, "--no-leader-election")
        until(self.injected, "the caBundle")
        for path in VALIDATING, MUTATING:
            self.api.put(path, configuration())
            until(self.injected, "the caBundle")
        self.api.delete(MUTATING)
        self.api.put(MUTATING, configuration())
        until(self.injected, "the caBundle")

    def test_a_refused_bundle_is_tried_again(self):
        self.api.refused[("PATCH", HOOKS)] = 403
        replica = Replica(self, "--no-leader-election")
        replica.logged("mutatingwebhookconfigurations/aliquot: caBundle cannot be written: .* HTTP 403 Forbidden")
        self.api.refused.clear()
        until(self.injected, "the caBundle")

    def test_every_second_write_of_a_bundle_is_refused(self):
        for path in VALIDATING, MUTATING:
            self.api.refused["PATCH", path] = itertools.cycle((409, None, 429, None))
        Replica(self, "--no-leader-election")
        until(self.injected, "the caBundle")
        for path in VALIDATING, MUTATING:
            self.api.put(path, configuration())
        until(self.injected, "the caBundle again")
        for path in VALIDATING, MUTATING:
            self.api.put(path, self.api.get(path))  # nothing is missing in this one
        self.api.delete(SECRET)
        until(lambda: self.api.get(SECRET), "the Secret, which is written later")
        for path in VALIDATING, MUTATING:
            self.assertLessEqual(self.api.writes.count(("PATCH", path)), 4, "two, and once more where the watch was late")

    def test_a_follower_fills_an_empty_bundle(self):
        """A Lease of an earlier installation: no replica leads, while API servers still need the
        bundle."""
        self.api.put(LEASE, {"spec": {"holderIdentity": "gone", "leaseDurationSeconds": 3600, "leaseTransitions": 1}})
        other = configuration()
        other["webhooks"][0]["clientConfig"]["caBundle"] = base64.b64encode(b"-----BEGIN CERTIFICATE-----\nolder").decode()
        self.api.put(MUTATING, other)
        replicas = [Replica(self) for _ in range(2)]
        for replica in replicas:
            self.ready(replica)

        def bundles(path):
            return [h["clientConfig"].get("caBundle") for h in self.api.get(path)["webhooks"]]
        ours = base64.b64encode(self.authorities().encode()).decode()
        until(lambda: bundles(VALIDATING)[::2] == [ours, ours], "one is filled")
        self.assertEqual(bundles(MUTATING), [h["clientConfig"].get("caBundle") for h in other["webhooks"]],
                         "a bundle that is there is the leader's to replace")
        self.api.put(LEASE, {"spec": {"holderIdentity": "", "leaseDurationSeconds": 1, "leaseTransitions": 1}})
        until(lambda: bundles(MUTATING)[::2] == [ours, ours], "the other is replaced")

    def test_renewed_while_connections_live(self):
        replicas = [Replica(self) for _ in range(2)]
        for replica in replicas:
            self.ready(replica)
        until(self.injected, "the caBundle")
        authorities, old = self.authorities(), replicas[0].serial()
        connections = [replica.connect(authorities) for replica in replicas]
        secret = self.api.get(SECRET)
        secret["data"]["tls.crt"] = ""
        self.api.put(SECRET, secret)
        for replica in replicas:
            until(lambda: replica.serial() not in (None, old), "another certificate")
            replica.connect(authorities).close()  # signed by the same CA
        for connection in connections:
            self.assertTrue(review(connection, "validate", pod({"gpu-mem": 8}))["allowed"])
            connection.close()
        self.assertEqual(self.authorities(), authorities)
        self.assertEqual(replicas[0].serial(), replicas[1].serial())

    def test_a_lost_authority_is_replaced(self):
        replica = Replica(self, "--no-leader-election")
        self.ready(replica)
        until(self.injected, "the caBundle")
        before, secret = self.authorities(), self.api.get(SECRET)
        secret["data"].pop("ca.key")
        self.api.put(SECRET, secret)
        until(lambda: self.data("ca.crt") not in ("", before) and self.injected(), "another CA")
        self.assertTrue(self.authorities().endswith(before))  # the certificate in use stays trusted
        until(lambda: replica.serial() == ssl.PEM_cert_to_DER_cert(self.data("tls.crt")), "its certificate")
        replica.connect(self.authorities()).close()

    def test_an_authority_that_is_thrown_away_is_trusted_no_more(self):
        replica = Replica(self, "--no-leader-election")
        self.ready(replica)
        until(self.injected, "the caBundle")
        before, secret = self.authorities(), self.api.get(SECRET)
        del secret["data"]["ca.crt"], secret["data"]["ca.key"]
        self.api.put(SECRET, secret)
        until(lambda: self.data("ca.crt") not in ("", before) and self.injected(), "another CA")
        self.assertNotIn(before, self.authorities())

    def test_what_is_no_authority_is_not_injected(self):
        replica = Replica(self, "--no-leader-election")
        self.ready(replica)
        until(self.injected, "the caBundle")
        before, secret = self.authorities(), self.api.get(SECRET)
        secret["data"]["ca.crt"] = base64.b64encode(b"junk").decode()
        self.api.refused[("PATCH", SECRET)] = 403  # no replica repairs it
        self.api.put(SECRET, secret)
        until(lambda: sum("cannot be written" in line for line in replica.log) > 3, "refusals")
        del self.api.refused[("PATCH", SECRET)]
        until(lambda: self.data("ca.crt") not in ("", "junk", before) and self.injected(), "another CA")
        told = [what for _, path, what in self.api.history if path in (MUTATING, VALIDATING)]
        self.assertNotIn("anVuaw==", json.dumps(told))

    def test_a_deleted_secret_comes_back_as_it_was(self):
        replica = Replica(self, "--no-leader-election")
        self.ready(replica)
        secret, serial = self.api.get(SECRET), replica.serial()
        self.api.delete(SECRET)
        until(lambda: (self.api.get(SECRET) or {}).get("data") == secret["data"], "the Secret")
        self.assertEqual(replica.serial(), serial)
        replica.logged("was deleted")
        replica.logged("writing back what is served")

    def test_a_restart_takes_what_is_there(self):
        first = Replica(self, "--no-leader-election")
        self.ready(first)
        serial = first.serial()
        first.end()
        second = Replica(self, "--no-leader-election")
        self.ready(second)
        self.assertEqual(second.serial(), serial)

    def test_not_ready_without_a_certificate(self):
        self.api.refused[("GET", SYSTEM + "secrets")] = 403
        replica = Replica(self, "--no-leader-election")
        replica.logged("Secret kube-system/aliquot-webhook-tls: cannot be followed: .* HTTP 403 Forbidden")
        until(lambda: "certificate" in replica.ask("/readyz")[1], "the view")
        self.assertEqual(replica.ask("/readyz"), (503, "the webhook has no certificate yet\n"))
        self.assertIsNone(replica.serial())
        self.api.refused.clear()
        self.ready(replica)

    def test_not_ready_before_it_is_trusted(self):
        """No replica leads, as after an installation that left its Lease: what is ready has its bundle in both configurations."""
        self.api.refused[("PATCH", VALIDATING)] = 403
        self.api.refused[("POST", LEASE.rsplit("/", 1)[0])] = 403
        replica = Replica(self)
        until(lambda: "caBundle" in replica.ask("/readyz")[1], "the view")
        self.assertEqual(replica.ask("/readyz"), (503, "the webhook's configuration has no caBundle yet\n"))
        replica.logged("validatingwebhookconfigurations/aliquot: caBundle cannot be written")
        self.assertEqual(replica.ask("/readyz")[0], 503)
        del self.api.refused[("PATCH", VALIDATING)]
        self.ready(replica)
        self.assertTrue(self.injected())

    def test_ready_without_configurations(self):
        """They are absent, or may not be read."""
        self.api.delete(MUTATING)
        self.api.refused[("GET", VALIDATING.rsplit("/", 1)[0])] = 403
        self.ready(Replica(self))

    def test_files(self):
        cert, key = (os.path.join(self.folder, name) for name in ("crt", "key"))
        subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days",
                        "2", "-subj", "/CN=x", "-addext", "subjectAltName=DNS:" + HOST, "-keyout", key, "-out", cert],
                       check=True, capture_output=True)
        replica = Replica(self, "--no-leader-election", "--webhook-tls-cert", cert, "--webhook-tls-key", key)
        self.ready(replica)
        with open(cert) as f:
            connection = replica.connect(f.read())
        self.assertTrue(review(connection, "validate", pod({"gpu-mem": 8}))["allowed"])
        connection.close()
        self.assertEqual(self.api.writes, [])
        self.assertIsNone(self.api.get(SECRET))


class Leader(WebhookTest):
    """The leader, and the end of a replica."""

    def test_a_pod_answers_on_at_its_end(self):
        """A request that arrives before the Services change is answered, and the connection is
        closed."""
        for _ in range(3):
            if self.answers_on(Replica(self, pod="one")):
                return
        self.fail("three times so busy a machine that the pod ended before it was asked")

    def test_creates_succeed_while_pods_end(self):
        """Each pod in turn ends while another one begins. The client hears of the end late, and it has idle connections to both."""
        for name in "one", "two", "next":
            self.api.put(SYSTEM + "pods/" + name, {"metadata": {"labels": {}}})
        replicas = [Replica(self, pod=name) for name in ("one", "two")]
        for replica in replicas:
            self.ready(replica)
        authorities, served, over, failures = self.authorities(), list(replicas), threading.Event(), []
        client = KeepingClient(lambda: random.choice(served).connect(authorities))
        self.addCleanup(client.close)

        def create():
            rng = random.Random()
            while not over.wait(rng.uniform(0, 0.05)):
                try:
                    client.create()
                except Exception as e:
                    failures.append(repr(e))
        spare = [client.take() for _ in range(20)]
        for connection in spare:
            review(connection, "validate", pod({}))
        client.idle.extend(spare)
        threads = [threading.Thread(target=create) for _ in range(4)]
        for thread in threads:
            thread.start()
        try:
            for ends in replicas:
                if ends is replicas[1]:
                    served.append(Replica(self, pod="next"))
                    self.ready(served[-1])
                ends.process.terminate()
                ends.logged("ending signal")
                over.wait(1)  # so late the Service hears of it
                served.remove(ends)
                ends.process.wait(PATIENCE)
        finally:
            over.set()
            for thread in threads:
                thread.join()
        client.create()
        self.assertEqual(failures, [])

    def test_a_pod_that_ends_takes_no_lease(self):
        """Otherwise it would end before it releases the lease, and no replica would lead for 15 s.
        """
        held = {"spec": {"holderIdentity": "other", "leaseDurationSeconds": 3600, "leaseTransitions": 1}}
        self.api.put(LEASE, held)
        one = Replica(self, pod="one")
        self.ready(one)
        one.process.terminate()
        one.logged("ending signal")
        self.api.put(LEASE, {"spec": dict(held["spec"], holderIdentity="")})
        self.assertEqual(one.process.wait(PATIENCE), 0)
        self.assertEqual(self.api.get(LEASE)["spec"]["holderIdentity"], "")

    def test_the_kubelet_may_ask_the_webhook(self):
        """Where it reaches no other port."""
        replica = Replica(self)
        self.ready(replica)
        connection = replica.connect(self.authorities())
        for method, path, status in (("GET", "/healthz", 200), ("POST", "/healthz", 404), ("GET", "/readyz", 404), ("GET", PREFIX + "mutate", 405)):
            connection.request(method, path)
            answer = connection.getresponse()
            answer.read()
            self.assertEqual(answer.status, status, (method, path))
        connection.close()


if __name__ == "__main__":
    unittest.main()
