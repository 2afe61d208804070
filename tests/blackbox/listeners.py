#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Each listener answers while a crowd holds connections to it: listeners.py ALIQUOT STORE_SERVER CLOCK_SHIM"""

import http.client
import json
import os
import re
import ssl
import statistics
import subprocess
import tempfile
import time
import unittest

from crowd import Crowd
from node_case import ALIQUOT, STORE, Node
from page_lab import Lab
from patience import PATIENCE, rounds, until

MANY = 2000  # at least, and more than the listener takes
ASKED = 100
ADDRESSES = (0, 16)  # that of the asking client, and others
REVIEW = json.dumps({"kind": "AdmissionReview", "apiVersion": "admission.k8s.io/v1", "request": {
    "uid": "7", "kind": {"group": "", "version": "v1", "kind": "Pod"}, "operation": "CREATE", "oldObject": None,
    "object": {"metadata": {"name": "a"}, "spec": {"containers": [{"name": "main"}]}}}})


class Listener:
    """One listener: `of_address` is its limit of connections that wait, `ask()` asks it once and checks the answer."""

    def connection(self):
        return http.client.HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE)

    def request(self, connection, method, path, body=None):
        connection.request(method, path, body)
        answer = connection.getresponse()
        text = answer.read().decode()
        self.assertEqual(answer.status, 200, text)
        return text

    def times(self):
        """Of requests that are each on a connection of their own."""
        found = []
        for _ in range(ASKED):
            begun = time.monotonic()
            connection = self.connection()
            try:
                self.ask(connection)
            finally:
                connection.close()
            found.append(time.monotonic() - begun)
        return found

    def closed(self):
        """{rule: connections} of this listener."""
        return {rule: int(n) for rule, n in
                re.findall(r'_connections_closed_total\{listener="%s",rule="(\w+)"\} (\d+)' % self.listener, self.metrics())}

    def hold(self, *forms):
        self.serve()
        for form in forms:
            with self.subTest(form):
                self.hold_as(form)

    def hold_as(self, form):
        """A connection that had a request before the crowd came stays, unless the crowd had requests after it."""
        kept = self.connection()
        self.addCleanup(kept.close)
        self.ask(kept)
        mine = kept.sock
        alone = self.times()
        slow = self.tls and form in ("half", "used")  # the crowd's own handshakes
        many = rounds(self.of_address + 200, self.many()) if slow else self.many()
        for addresses in rounds(ADDRESSES[:1], ADDRESSES) if slow else ADDRESSES:
            before = self.closed()
            with Crowd(self.port, form, addresses, self.tls, many, self.of_address // 5):
                held = self.times()
                if form != "used":
                    self.ask(kept)
                    self.assertIs(kept.sock, mine)
                after = self.closed()
            print(f"{self.listener} {form} from {addresses or 'its own'} addresses: median {statistics.median(held):.4f} s of "
                  f"{statistics.median(alone):.4f} s alone, at most {max(held):.4f} s; closed {after}", flush=True)
            self.assertEqual(after["refused"], 0)
            taken = min(self.all, max(addresses, 1) * self.of_address)  # of those that came first, the rest is closed
            self.assertGreaterEqual(sum(after.values()) - sum(before.values()), many - taken)
            if not slow:  # on a slow machine the first ones are late before the last one comes
                self.assertIn(f"connections at the limit listener={self.listener} rule=", self.log())

    def many(self):
        return max(MANY, self.all + 500)


class OfScheduler(Listener):
    tls = False

    def serve(self):
        self.lab = Lab(self, ALIQUOT, STORE)
        self.lab.start(*self.options())

    def options(self):
        return ()

    def log(self):
        with open(os.path.join(self.lab.folder.name, "log")) as f:
            return f.read()

    def metrics(self):
        return self.lab.ask("/metrics", self.lab.port).text


class OfHttp(OfScheduler):
    def serve(self):
        super().serve()
        self.port = self.found_port()

    def ask(self, connection):
        self.request(connection, "GET", self.path)


class Extender(OfHttp, unittest.TestCase):
    listener, all, of_address, path = "extender", 4096, 2048, "/gpushare-scheduler/inspect"

    def found_port(self):
        return self.lab.port

    def test_a_crowd(self):
        self.hold("idle", "half", "used")


class Reads(OfHttp, unittest.TestCase):
    listener, all, of_address, path = "reads", 256, 128, "/gpushare-scheduler/inspect"

    def options(self):
        return ("--read-listen", "127.0.0.1:0")

    def found_port(self):
        return int(re.search(r"reads listening port=(\d+)", self.log()).group(1))

    def test_a_crowd(self):
        self.hold("idle", "half", "used")


class Page(OfHttp, unittest.TestCase):
    listener, all, of_address, path = "page", 64, 48, "/"

    def found_port(self):
        return self.lab.page

    def test_a_crowd(self):
        self.hold("idle", "half", "used")


class OfWebhook(OfScheduler):
    listener, all, of_address, tls = "webhook", 2048, 1024, True

    def options(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        key, cert = (os.path.join(folder.name, name) for name in ("key", "cert"))
        subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2",
                        "-subj", "/CN=webhook", "-addext", "subjectAltName=IP:127.0.0.1", "-keyout", key, "-out", cert],
                       check=True, stderr=subprocess.DEVNULL)
        self.trusted = ssl.create_default_context(cafile=cert)
        return "--webhook-listen", "127.0.0.1:0", "--webhook-tls-cert", cert, "--webhook-tls-key", key

    def serve(self):
        super().serve()
        self.port = int(until(lambda: re.search(r"webhook listening port=(\d+)", self.log()), "the port of the webhook")[1])

    def connection(self):
        return http.client.HTTPSConnection("127.0.0.1", self.port, timeout=PATIENCE, context=self.trusted)

    def ask(self, connection):
        answer = json.loads(self.request(connection, "POST", "/gpushare-scheduler/webhook/validate", REVIEW))
        self.assertTrue(answer["response"]["allowed"])


class Webhook(OfWebhook, unittest.TestCase):
    def test_a_crowd_without_tls(self):
        self.hold("idle", "handshake")


class WebhookHeard(OfWebhook, unittest.TestCase):
    def test_a_crowd_after_its_handshakes(self):
        self.hold("half", "used")


class Metrics(Listener, Node):
    listener, all, of_address, tls = "metrics", 128, 64, False

    def serve(self):
        self.node = self.lab()
        self.port = self.node.metrics_port

    def ask(self, connection):
        self.request(connection, "GET", "/readyz")

    def test_a_crowd(self):
        self.hold("idle", "half", "used")

    def log(self):
        return self.node.log_tail(1000)

    def metrics(self):
        connection = self.connection()
        try:
            return self.request(connection, "GET", "/metrics")
        finally:
            connection.close()


if __name__ == "__main__":
    unittest.main()
