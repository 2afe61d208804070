#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The store from outside: real sockets, real watches, and injected faults."""

import http.client
import json
import subprocess
import sys
import unittest
import urllib.parse

SERVER = sys.argv.pop(1)
PODS = "/api/v1/namespaces/default/pods"


def pod(name, **metadata):
    return {"metadata": dict(metadata, name=name), "spec": {"containers": [{"name": "c"}]}}


class Store(unittest.TestCase):
    history = "65536"

    def setUp(self):
        self.server = subprocess.Popen([SERVER, "127.0.0.1:0", self.history], stdin=subprocess.PIPE,
                                       stdout=subprocess.PIPE, text=True)
        self.address = urllib.parse.urlsplit(self.server.stdout.readline().strip()).netloc
        self.connection = self.connect()

    def tearDown(self):
        self.connection.close()
        self.server.stdin.close()
        self.assertEqual(self.server.wait(60), 0)  # ends cleanly, even with open watches
        self.server.stdout.close()

    def connect(self):
        connection = http.client.HTTPConnection(self.address, timeout=60)
        self.addCleanup(connection.close)
        return connection

    def tell(self, line):
        self.server.stdin.write(line + "\n")
        self.server.stdin.flush()
        self.assertEqual(self.server.stdout.readline(), "ok 0\n")

    def call(self, method, path, body=None, kind="application/json", connection=None):
        connection = connection or self.connection
        if body is not None and not isinstance(body, (str, bytes)):
            body = json.dumps(body)
        connection.request(method, path, body, {"Content-Type": kind} if body is not None else {})
        answer = connection.getresponse()
        self.headers = answer.headers
        text = answer.read()
        try:
            return answer.status, json.loads(text)
        except ValueError:
            return answer.status, text

    def patch(self, path, body):
        return self.call("PATCH", path, body, "application/merge-patch+json")

    def watch(self, path):
        connection = self.connect()
        connection.request("GET", path)
        answer = connection.getresponse()
        return answer

    def event(self, watch):
        event = json.loads(watch.readline())
        return event["type"], event["object"]

    def test_life_of_a_pod(self):
        self.assertEqual(self.call("POST", PODS, pod("a"))[0], 201)
        watch = self.watch("/api/v1/pods?watch=1&resourceVersion=1")
        self.assertEqual(self.event(watch)[0], "ADDED")
        binding = {"metadata": {"annotations": {"k": "v"}}, "target": {"kind": "Node", "name": "n"}}
        self.assertEqual(self.call("POST", PODS + "/a/binding", binding)[0], 201)
        kind, seen = self.event(watch)
        self.assertEqual((kind, seen["spec"]["nodeName"], seen["metadata"]["annotations"]), ("MODIFIED", "n", {"k": "v"}))
        self.assertEqual(self.patch(PODS + "/a/status", {"status": {"phase": "Succeeded"}})[0], 200)
        self.assertEqual(self.event(watch)[1]["status"]["phase"], "Succeeded")
        self.assertEqual(self.call("DELETE", PODS + "/a")[0], 200)
        self.assertEqual(self.event(watch)[0], "DELETED")
        self.assertEqual(self.call("GET", PODS + "/a")[1]["reason"], "NotFound")

    def test_timeout_ends_a_watch_with_a_bookmark(self):
        self.call("POST", PODS, pod("a"))
        watch = self.watch("/api/v1/pods?watch=1&resourceVersion=2&allowWatchBookmarks=true&timeoutSeconds=1")
        kind, seen = self.event(watch)
        self.assertEqual((kind, seen["metadata"]["resourceVersion"]), ("BOOKMARK", "2"))
        self.assertEqual(watch.readline(), b"")

    def test_large_first_state_and_large_backlog(self):
        for i in range(300):  # several times what one stream may hold in memory
            self.call("POST", PODS, pod("p%03d" % i, annotations={"x": "y" * 4096}))
        late = self.watch("/api/v1/pods?watch=1&resourceVersion=1")
        whole = self.watch("/api/v1/pods?watch=1")
        self.call("POST", PODS, pod("z"))
        for watch in late, whole:
            names = [self.event(watch)[1]["metadata"]["name"] for _ in range(301)]
            self.assertEqual(names, ["p%03d" % i for i in range(300)] + ["z"])

    def test_pages(self):
        for i in range(7):
            self.call("POST", PODS, pod("p%d" % i))
        names, token = [], ""
        while True:
            status, page = self.call("GET", "/api/v1/pods?limit=3&continue=" + token)
            self.assertEqual((status, page["kind"], page["metadata"]["resourceVersion"]), (200, "PodList", "8"))
            names += [item["metadata"]["name"] for item in page["items"]]
            self.assertNotIn("kind", page["items"][0])
            token = page["metadata"].get("continue", "")
            if not token:
                break
        self.assertEqual(names, ["p%d" % i for i in range(7)])

    def test_forgotten(self):
        self.call("POST", PODS, pod("a"))
        self.tell("forget")
        kind, status = self.event(self.watch("/api/v1/pods?watch=1&resourceVersion=1"))
        self.assertEqual((kind, status["code"], status["reason"]), ("ERROR", 410, "Expired"))

    def test_body_limit(self):
        connection = self.connect()
        connection.putrequest("POST", PODS)
        connection.putheader("Content-Length", str(3 * 1024 * 1024 + 1))
        connection.endheaders()  # refused by its announced length, before a byte of it is sent
        self.assertEqual(connection.getresponse().status, 413)

    def test_rubbish(self):
        for body in b"", b"\xff\xfe", b"{", b"[" * 100000, b'{"a":1}{', b'{"metadata":{"name":"\\ud800"}}':
            self.assertIn(self.call("POST", PODS, body)[0], (400, 422))
        self.assertEqual(self.call("GET", "/api/v1/pods")[1]["metadata"]["resourceVersion"], "1")

    def test_injected_status(self):
        self.tell("fault status 2 POST /api/v1/namespaces 429")
        for _ in range(2):
            status, body = self.call("POST", PODS, pod("a"))
            self.assertEqual((status, body["reason"], self.headers["Retry-After"]), (429, "TooManyRequests", "1"))
        self.assertEqual(self.call("POST", PODS, pod("a"))[0], 201)

    def test_lost_answer_and_cut(self):
        self.tell("fault lose 1 POST -")
        self.tell("fault cut 1 POST -")
        for name, found in (("carried", 200), ("cut", 404)):
            with self.assertRaises((http.client.HTTPException, ConnectionError)):
                self.call("POST", PODS, pod(name), connection=self.connect())
            self.assertEqual(self.call("GET", PODS + "/" + name)[0], found)

    def test_cut_watch(self):
        watch = self.watch("/api/v1/pods?watch=1&resourceVersion=1")
        self.tell("fault cut-watch 1 - /api/v1/pods")
        self.call("POST", PODS, pod("a"))
        with self.assertRaises((http.client.HTTPException, ConnectionError, ValueError)):
            self.event(watch)
        self.assertEqual(self.event(self.watch("/api/v1/pods?watch=1&resourceVersion=1"))[0], "ADDED")

    def test_delay(self):
        """Only the answer that is delayed waits. The delay is longer than this test may stand still."""
        others = "/api/v1/namespaces/others/pods"
        self.tell("fault delay 1 POST " + others + " 4000000")
        slow = self.connect()
        slow.request("POST", others, json.dumps(pod("slow")))
        self.assertEqual(self.call("POST", PODS, pod("fast"))[0], 201)
        self.assertEqual(slow.getresponse().status, 201)
        slow.close()
        versions = [self.call("GET", path)[1]["metadata"]["resourceVersion"] for path in (PODS + "/fast", others + "/slow")]
        self.assertEqual(versions, ["2", "3"])

    def test_delayed_caller_leaves(self):
        self.tell("fault delay 1 POST - 60000000")
        slow = self.connect()
        slow.request("POST", PODS, json.dumps(pod("slow")))
        slow.close()
        self.assertEqual(self.call("POST", PODS, pod("a"))[0], 201)

    def test_vanish_and_return(self):
        self.call("POST", PODS, pod("a"))
        watch = self.watch("/api/v1/pods?watch=1&resourceVersion=2")
        self.tell("vanish")
        with self.assertRaises(ConnectionError):
            self.call("GET", PODS + "/a", connection=self.connect())
        try:
            self.assertEqual(watch.readline(), b"")
        except (http.client.HTTPException, ConnectionError):
            pass
        self.tell("return")
        self.assertEqual(self.call("GET", PODS + "/a", connection=self.connect())[0], 200)


class ShortHistory(Store):
    """The same with a very short history: only what needs no history may still work."""

    history = "4"
    test_large_first_state_and_large_backlog = None
    test_life_of_a_pod = None
    test_vanish_and_return = None

    def test_pages(self):
        for i in range(7):
            self.call("POST", PODS, pod("p%d" % i))
        _, page = self.call("GET", "/api/v1/pods?limit=3")
        for i in range(7):
            self.patch(PODS + "/p%d" % i, {"metadata": {"labels": {"a": "b"}}})
        status, body = self.call("GET", "/api/v1/pods?limit=3&continue=" + page["metadata"]["continue"])
        self.assertEqual((status, body["reason"]), (410, "Expired"))


if __name__ == "__main__":
    unittest.main()
