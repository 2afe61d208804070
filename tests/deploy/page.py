#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The page with a login, with tokens of the API server that KUBECONFIG names (an administrator's), and the rights of the manifests.

    page.py ALIQUOT
"""
import json
import os
import re
import ssl
import subprocess
import sys
import tempfile
import time
import unittest
import urllib.error
import urllib.request

ALIQUOT = os.path.abspath(sys.argv.pop(1))
KUBECTL = os.environ.get("KUBECTL", "kubectl")
OBJECTS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../deploy/helm/aliquot/objects")
NAME, PATIENCE = "aliquot-page-test", 60
UNDECIDED = (503, "the API server did not say whether this token may read the page\n")


def kubectl(*arguments, stdin=None):
    done = subprocess.run([KUBECTL, *arguments], input=stdin, capture_output=True, text=True)
    if done.returncode:
        raise AssertionError(f"kubectl {' '.join(arguments)}: {done.stderr}")
    return done.stdout


def until(condition, what):
    end = time.monotonic() + PATIENCE
    while not condition():
        if time.monotonic() > end:
            raise AssertionError("not after a minute: " + what)
        time.sleep(0.2)


class Page(unittest.TestCase):
    """The scheduler runs here, with the token of its service account, and what the chart gives to that account."""

    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.folder.cleanup)
        cls.page = os.path.join(OBJECTS, "page/page-rbac.yaml")
        for path in os.path.join(OBJECTS, "fixed/scheduler-rbac.yaml"), os.path.join(OBJECTS, "crds/resourcepolicies-crd.yaml"), cls.page:
            cls.addClassCleanup(subprocess.run, [KUBECTL, "delete", "-f", path, "--ignore-not-found", "--wait=false"], capture_output=True)
            kubectl("apply", "-f", path)
        kubectl("create", "namespace", NAME)
        cls.addClassCleanup(subprocess.run, [KUBECTL, "delete", "namespace", NAME, "--wait=false"], capture_output=True)
        for account in "reader", "other":
            kubectl("-n", NAME, "create", "serviceaccount", account)
        cls.cert, cls.key = cls.path("crt"), cls.path("key")
        subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2", "-subj", "/CN=page",
                        "-addext", "subjectAltName=IP:127.0.0.1", "-keyout", cls.key, "-out", cls.cert], check=True, capture_output=True)
        cls.start()

    @classmethod
    def path(cls, name):
        return os.path.join(cls.folder.name, name)

    @classmethod
    def start(cls):
        config = json.loads(kubectl("config", "view", "--minify", "--raw", "--flatten", "-o", "json"))
        config["users"] = [{"name": config["contexts"][0]["context"]["user"], "user": {"token": cls.token("kube-system", "aliquot-scheduler")}}]
        with open(cls.path("config"), "w") as f:
            json.dump(config, f)
        with open(cls.path("log"), "w") as f:
            cls.process = subprocess.Popen([ALIQUOT, "scheduler", "--kubeconfig", cls.path("config"), "--no-leader-election", "--listen", "127.0.0.1:0",
                                            "--page-secure", "127.0.0.1:0", "--page-tls-cert", cls.cert, "--page-tls-key", cls.key], stderr=f)
        cls.addClassCleanup(cls.process.wait)
        cls.addClassCleanup(cls.process.kill)
        until(lambda: re.search(r"page with login listening port=(\d+)", cls.log()), "the port")
        cls.port = int(re.search(r"page with login listening port=(\d+)", cls.log())[1])

    @classmethod
    def log(cls):
        with open(cls.path("log")) as f:
            return f.read()

    @staticmethod
    def token(namespace, account):
        return kubectl("-n", namespace, "create", "token", account).strip()

    def ask(self, token, path="/icon.svg"):
        request = urllib.request.Request(f"https://127.0.0.1:{self.port}{path}", headers={"Authorization": "Bearer " + token})
        try:
            with urllib.request.urlopen(request, context=ssl.create_default_context(cafile=self.cert), timeout=PATIENCE) as answer:
                return answer.status, ""
        except urllib.error.HTTPError as e:
            return e.code, e.read().decode()

    def test_the_right_is_given_and_taken(self):
        reader = self.token(NAME, "reader")
        self.assertEqual(self.ask(reader), (403, f"the user system:serviceaccount:{NAME}:reader may not get the nonResourceURL /aliquot/page: "
                                                 "the ClusterRole aliquot-page-viewer has this right\n"))
        kubectl("create", "clusterrolebinding", NAME, "--clusterrole=aliquot-page-viewer", f"--serviceaccount={NAME}:reader")
        self.addCleanup(subprocess.run, [KUBECTL, "delete", "clusterrolebinding", NAME, "--ignore-not-found"], capture_output=True)
        until(lambda: self.ask(reader) == (200, ""), "the right counts")
        self.assertEqual(self.ask(self.token(NAME, "other"))[0], 403)
        self.assertEqual(self.ask(self.token("kube-system", "aliquot-scheduler"))[0], 403, "the scheduler's own account has no such right")
        kubectl("delete", "clusterrolebinding", NAME)
        until(lambda: self.ask(reader)[0] == 403, "the right is taken back")
        kubectl("-n", NAME, "delete", "serviceaccount", "reader")
        until(lambda: self.ask(reader) == (401, "the API server does not know this token\n"), "the token ends with its account")

    def test_tokens_that_are_none(self):
        other = self.token(NAME, "other")
        head, body, signature = other.split(".")
        for token in ("x", other[:-4] + "AAAA", f"{head}.{body}.", f"{head}.{body[:-2]}AA.{signature}", "." * 100, "A" * 8000):
            self.assertEqual(self.ask(token), (401, "the API server does not know this token\n"), token[:40])

    def test_an_administrator_may(self):
        kubectl("create", "clusterrolebinding", NAME + "-admin", "--clusterrole=cluster-admin", f"--serviceaccount={NAME}:other")
        self.addCleanup(kubectl, "delete", "clusterrolebinding", NAME + "-admin")
        token = self.token(NAME, "other")
        until(lambda: self.ask(token) == (200, ""), "cluster-admin has every nonResourceURL")

    def test_without_the_right_to_review(self):
        kubectl("delete", "-f", self.page)
        try:
            until(lambda: self.ask(self.token(NAME, "other")) == UNDECIDED, "no review")
            self.assertRegex(self.log(), "page: the API server reviews no tokens: .*tokenreviews.*403")
        finally:
            kubectl("apply", "-f", self.page)
        until(lambda: self.ask(self.token(NAME, "other"))[0] == 403, "reviews again")


if __name__ == "__main__":
    unittest.main()
