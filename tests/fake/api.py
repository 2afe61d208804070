# SPDX-License-Identifier: Apache-2.0
"""A small client of the Kubernetes API for the tests, and the store server as a child process."""

import http.client
import json
import re
import socket
import subprocess
import threading
import time
import urllib.parse

MERGE, STRATEGIC = "application/merge-patch+json", "application/strategic-merge-patch+json"


class ApiError(Exception):
    def __init__(self, status, body):
        super().__init__(f"{status}: {body.get('message', body) if isinstance(body, dict) else body}")
        self.status = status


class Api:
    """One connection per thread. A broken one is replaced, and the call repeated if it only reads."""

    def __init__(self, address):
        self.address = address
        self.local = threading.local()

    def _connection(self):
        if not getattr(self.local, "connection", None):
            self.local.connection = http.client.HTTPConnection(self.address, timeout=30)
        return self.local.connection

    def call(self, method, path, body=None, kind="application/json"):
        text = json.dumps(body) if body is not None else None
        headers = {"Content-Type": kind} if text is not None else {}
        for last in False, True:
            connection = self._connection()
            try:
                connection.request(method, path, text, headers)
                answer = connection.getresponse()
                raw = answer.read()
                break
            except (OSError, http.client.HTTPException):
                connection.close()
                self.local.connection = None
                if last or method != "GET":
                    raise
        try:
            value = json.loads(raw)
        except ValueError:
            value = raw.decode(errors="replace")
        if answer.status >= 300:
            raise ApiError(answer.status, value)
        return value

    def get(self, path):
        return self.call("GET", path)

    def post(self, path, body):
        return self.call("POST", path, body)

    def patch(self, path, body, kind=MERGE):
        return self.call("PATCH", path, body, kind)

    def delete(self, path, grace=None, uid=None):
        options = {}
        if grace is not None:
            options["gracePeriodSeconds"] = grace
        if uid:
            options["preconditions"] = {"uid": uid}
        return self.call("DELETE", path, options)


def pod_path(pod):
    meta = pod["metadata"]
    return f"/api/v1/namespaces/{meta.get('namespace', 'default')}/pods/{meta['name']}"


class Watch(threading.Thread):
    """Lists and watches for ever. Calls on_list(items) and on_event(type, object) in this thread."""

    def __init__(self, api, path, selector, on_list, on_event):
        super().__init__(daemon=True)
        self.api, self.path, self.selector = api, path, selector
        self.on_list, self.on_event = on_list, on_event
        self.stopping = threading.Event()
        self.connection = None
        self.start()

    def run(self):
        while not self.stopping.is_set():
            try:
                found = self.api.get(f"{self.path}?{self.selector}")
                self.on_list(found["items"])
                version = found["metadata"]["resourceVersion"]
                while not self.stopping.is_set():
                    version = self._follow(version)
            except (OSError, http.client.HTTPException, ValueError, ApiError, AttributeError):
                # AttributeError: another thread closed the connection in the middle of a line
                self.stopping.wait(0.02)

    def _follow(self, version):
        self.connection = http.client.HTTPConnection(self.api.address, timeout=60)
        try:
            self.connection.request("GET", f"{self.path}?watch=1&{self.selector}&resourceVersion={version}")
            answer = self.connection.getresponse()
            if answer.status != 200:
                raise ApiError(answer.status, answer.read().decode(errors="replace"))
            while True:
                line = answer.readline()
                if not line:
                    return version
                event = json.loads(line)
                if event["type"] == "ERROR":
                    raise ApiError(event["object"].get("code", 500), event["object"])
                version = event["object"]["metadata"]["resourceVersion"]
                if event["type"] != "BOOKMARK" and not self.stopping.is_set():
                    self.on_event(event["type"], event["object"])
        finally:
            self.connection.close()

    def stop(self):
        self.stopping.set()
        connection = self.connection
        if connection and connection.sock:
            try:
                connection.sock.shutdown(2)
            except OSError:
                pass
        if threading.current_thread() is not self:
            self.join(10)


class Relay:
    """Forwards all requests of one client to the API server and records them: [(method, path,
    body)]. If (method, path) is in `answers`, the request is answered here instead: with that object, or
    with the status and object that a function there returns for the body. A request whose path begins
    with a key of `late` is forwarded after so many seconds. While `watching` is cleared, no event of a
    watch is passed on."""

    REQUEST = re.compile(rb"(GET|POST|PUT|PATCH|DELETE) (\S+) HTTP/1\.1\r\n(.*?)\r\n\r\n", re.S)

    def __init__(self, address):
        host, port = address.rsplit(":", 1)
        self.target = (host, int(port))
        self.asked, self.answers, self.late, self.lock = [], {}, {}, threading.Lock()
        self.watching = threading.Event()
        self.watching.set()
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.address = "127.0.0.1:%d" % self.listener.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self):
        while True:
            try:
                client, _ = self.listener.accept()
            except OSError:
                return  # stopped
            try:
                server = socket.create_connection(self.target)
            except OSError:
                client.close()  # the API server is down and may return
                continue
            asked = []  # the path that this connection asked for last
            threading.Thread(target=self._pass, args=(client, server, self._requests(client, asked)), daemon=True).start()
            threading.Thread(target=self._pass, args=(server, client, self._events(asked)), daemon=True).start()

    def _events(self, asked):
        def take(data):
            if "watch=true" in asked[-1]:
                self.watching.wait()
            return data
        return take

    def _requests(self, client, asked):
        """Splits the bytes of one connection into requests, and yields those to forward."""
        rest = bytearray()

        def take(data):
            rest.extend(data)
            passed = b""
            while True:
                found = self.REQUEST.match(rest)
                length = found and re.search(rb"(?i)content-length: *(\d+)", found[3])
                end = found.end() + (int(length[1]) if length else 0) if found else 0
                if not found or len(rest) < end:
                    return passed
                asked[:] = [found[2].decode()]
                with self.lock:
                    self.asked.append((found[1].decode(), found[2].decode(), bytes(rest[found.end():end])))
                    answer = self.answers.get((found[1].decode(), found[2].decode()))
                status, answer = answer(bytes(rest[found.end():end])) if callable(answer) else (200, answer)
                time.sleep(next((n for start, n in self.late.items() if found[2].decode().startswith(start)), 0))
                if answer is None:
                    passed += bytes(rest[:end])
                else:
                    body = json.dumps(answer).encode()
                    client.sendall(b"HTTP/1.1 %d OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n" % (status, len(body)) + body)
                del rest[:end]
        return take

    @staticmethod
    def _pass(source, to, take):
        try:
            while True:
                data = source.recv(65536)
                if not data:
                    break
                to.sendall(take(data))
        except OSError:
            pass
        for s in source, to:
            try:
                s.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass

    def patches(self, path, text=""):
        """The bodies of the patches of this path that contain the text."""
        with self.lock:
            return [json.loads(b) for m, p, b in self.asked if m == "PATCH" and p.split("?")[0] == path and text in b.decode()]

    def stop(self):
        self.listener.close()


class StoreServer:
    """The API server of the tests. tell() sets faults: see store-server.c."""

    def __init__(self, program):
        self.process = subprocess.Popen([program, "127.0.0.1:0", "1000000"], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, text=True)
        self.url = self.process.stdout.readline().strip()
        self.address = urllib.parse.urlsplit(self.url).netloc
        self.lock = threading.Lock()

    def tell(self, line):
        with self.lock:
            self.process.stdin.write(line + "\n")
            self.process.stdin.flush()
            answer = self.process.stdout.readline()
        if answer != "ok 0\n":
            raise RuntimeError(f"store-server: {line}: {answer}")

    def kubeconfig(self, path, address=None):
        config = {"apiVersion": "v1", "kind": "Config", "current-context": "test",
                  "clusters": [{"name": "test", "cluster": {"server": "http://" + address if address else self.url}}],
                  "users": [{"name": "test", "user": {}}],
                  "contexts": [{"name": "test", "context": {"cluster": "test", "user": "test"}}]}
        with open(path, "w") as f:
            json.dump(config, f)  # JSON is YAML
        return path

    def stop(self):
        self.process.stdin.close()
        self.process.wait(60)
        self.process.stdout.close()
