#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The port of the page that has a login, from outside: who may read it, what the API server is asked, and how often.

    page_login.py ALIQUOT STORE_SERVER
"""
import http.client
import http.server
import json
import os
import re
import socket
import ssl
import subprocess
import sys
import threading
import time
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../fake"))

from api import Relay  # noqa: E402
from page_browser_driver import PROGRAM, Browser  # noqa: E402
from page_lab import Lab, Viewer, node, pod  # noqa: E402
from patience import PATIENCE, until  # noqa: E402

ALIQUOT, STORE = sys.argv.pop(1), sys.argv.pop(1)
TOKENS, ACCESS = "/apis/authentication.k8s.io/v1/tokenreviews", "/apis/authorization.k8s.io/v1/subjectaccessreviews"
GROUPS, EXTRA = ["eng", "system:authenticated"], {"example.com/cost": ["a", "b"]}
BURST, RATE, KEPT, TIMEOUT = 20, 10, 10, 5  # page_peers.h, page_access.h
UNDECIDED = "the API server did not say whether this token may read the page\n"


class Reviewer:
    """Answers the two reviews as an API server does."""

    def __init__(self, relay):
        self.users = {"good": "ann", "poor": "bob", "odd": 'c"\\d<e>'}
        self.may = {"ann"}
        self.tokens, self.access = [], []
        self.fails = None  # (status, object) of every review
        relay.answers["POST", TOKENS] = self.token
        relay.answers["POST", ACCESS] = self.subject

    def token(self, body):
        spec = json.loads(body)["spec"]
        self.tokens.append(spec)
        if self.fails:
            return self.fails
        user = self.users.get(spec["token"])
        if user is None:
            return 201, {"kind": "TokenReview", "status": {"authenticated": False, "error": "secret reason"}}
        return 201, {"kind": "TokenReview", "status": {"authenticated": True, "user": {"username": user, "uid": "u1", "groups": GROUPS, "extra": EXTRA}}}

    def subject(self, body):
        spec = json.loads(body)["spec"]
        self.access.append(spec)
        return 201, {"kind": "SubjectAccessReview", "status": {"allowed": spec["user"] in self.may}}


class Login(unittest.TestCase):
    maxDiff = None

    def setUp(self):
        self.lab = Lab(self, ALIQUOT, STORE)
        self.relay = Relay(self.lab.store.address)
        self.addCleanup(self.relay.stop)
        self.reviewer = Reviewer(self.relay)
        self.cert, self.key = (os.path.join(self.lab.folder.name, name) for name in ("crt", "key"))
        self.certify("first")
        self.lab.api.post("/api/v1/nodes", node("n0", cards=2, units=16))
        options = ("--page-secure", "127.0.0.1:0", "--page-tls-cert", self.cert, "--page-tls-key", self.key)
        self.lab.start(*options, api=self.relay.address)
        self.port = int(self.logged(r"page with login listening port=(\d+)")[1])

    def certify(self, name):
        subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2", "-subj", "/CN=" + name,
                        "-addext", "subjectAltName=DNS:localhost", "-keyout", self.key, "-out", self.cert], check=True, capture_output=True)

    def connect(self, source="127.0.0.1"):
        """HTTPS, with the certificate checked."""
        context = ssl.create_default_context(cafile=self.cert)
        raw = socket.create_connection(("127.0.0.1", self.port), timeout=PATIENCE, source_address=(source, 0))
        return context.wrap_socket(raw, server_hostname="localhost")

    def ask(self, path="/node/n0", token=None, method="GET", source="127.0.0.1", **headers):
        connection = http.client.HTTPConnection("localhost", timeout=PATIENCE)
        connection.sock = self.connect(source)
        if token is not None:
            headers["Authorization"] = "Bearer " + token
        try:
            connection.request(method, path, None, {name.replace("_", "-"): value for name, value in headers.items()})
            answer = connection.getresponse()
            answer.text = answer.read().decode()
            return answer
        finally:
            connection.close()

    def said(self, *args, **keys):
        answer = self.ask(*args, **keys)
        return answer.status, answer.text

    # ---- the decisions ----

    def test_a_user_who_may(self):
        for path in ("/", "/page.js", "/page.css", "/icon.svg", "/node/n0", "/why/x"):
            self.assertEqual(self.ask(path, "good").status, self.lab.ask(path).status, path)
        self.assertEqual(self.ask("/", "good").text, self.lab.ask("/").text)
        self.assertTrue(self.ask("/", "good").getheader("Content-Security-Policy").startswith("default-src 'none';"))
        self.assertEqual(self.reviewer.tokens, [{"token": "good"}] * len(self.reviewer.tokens))
        self.assertEqual(self.reviewer.access[0], {"user": "ann", "uid": "u1", "groups": GROUPS, "extra": EXTRA,
                                                   "nonResourceAttributes": {"path": "/aliquot/page", "verb": "get"}})

    def test_the_stream(self):
        v = Viewer(self.lab, self.connect(), "good")
        self.addCleanup(v.close)
        self.assertEqual(v.next(), "state")
        self.lab.api.post("/api/v1/namespaces/default/pods", pod("p", 4, on="n0"))
        v.until(lambda: v.cards()["n0"][0] == (16, 4), "the pod")

    def test_who_may_not(self):
        answer = self.ask(token="poor")
        self.assertEqual((answer.status, answer.text), (403, "the user bob may not get the nonResourceURL /aliquot/page: the ClusterRole "
                                                             "aliquot-page-viewer has this right\n"))
        self.assertEqual(self.said(token="odd")[0], 403)
        self.assertEqual(self.reviewer.access[-1]["user"], 'c"\\d<e>')
        answer = self.ask(token="unknown")
        self.assertEqual((answer.status, answer.text, answer.getheader("WWW-Authenticate")),
                         (401, "the API server does not know this token\n", 'Bearer realm="aliquot"'))
        self.assertEqual(answer.getheader("Content-Type"), "text/plain; charset=utf-8")

    def test_without_a_token(self):
        need = (401, 'this page needs one header "Authorization: Bearer TOKEN"\n')
        for path in ("/", "/page.js", "/events", "/node/n0", "/use/n0", "/why/x", "/absent"):
            self.assertEqual(self.said(path), need, path)
        for header in ("", "Bearer", "Bearer ", "Basic Z29vZA==", "good", "Bearer  ", "Bearer good,", "Bearer go od", 'Bearer "good"', "Bearergood",
                       "Bearer g\xf6od", "Bearer " + "x" * 17000, "Bearer good\t1"):
            answer = self.ask(Authorization=header)
            self.assertIn(answer.status, (400, 401, 431), header)
        self.assertEqual(self.reviewer.tokens, [], "no review was needed")
        self.assertEqual(self.said(Authorization="bearer good")[0], 200, "the scheme has no case")
        with self.connect() as s:
            s.sendall(b"GET /node/n0 HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer good\r\nAuthorization: Bearer good\r\n\r\n")
            self.assertTrue(s.recv(4096).startswith(b"HTTP/1.1 401 "))
        self.assertEqual(self.said(path="/node/n0?access_token=good"), need)

    def test_what_it_refuses_before_the_login(self):
        self.assertEqual(self.ask("/", "good", "POST").status, 405)
        self.assertEqual(self.ask("/node/n0", "good", Sec_Fetch_Site="cross-site").status, 403)
        self.assertEqual(self.reviewer.tokens, [])
        self.assertEqual(self.ask("/", "good", Host="page.example").status, 200, "a name is right there")
        self.assertEqual(self.lab.ask("/", Host="page.example").status, 421, "and not on the loopback")

    def test_plain_http(self):
        with socket.create_connection(("127.0.0.1", self.port), timeout=PATIENCE) as s:
            s.sendall(b"GET / HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer good\r\n\r\n")
            try:
                self.assertNotIn(b"HTTP", s.recv(4096))
            except ConnectionResetError:
                pass
        self.assertEqual(self.reviewer.tokens, [])

    def test_connections_of_one_address_leave_room_for_another(self):
        def is_open(s):
            try:
                return s.recv(1) != b""
            except BlockingIOError:
                return True
            except OSError:
                return False

        def reached():
            """Idle connections are closed after a while, so the first one must still be open when the user is served."""
            held = []
            try:
                for _ in range(64):
                    held.append(socket.create_connection(("127.0.0.1", self.port), timeout=PATIENCE))
                    held[-1].setblocking(False)
                return self.ask(token="good", source="127.0.0.2").status == 200 and is_open(held[0])
            finally:
                for s in held:
                    s.close()
        until(reached, "a user at another address is served")

    # ---- a browser, with a proxy that logs its user in ----

    def proxy(self, token):
        """Adds the header to each request of the browser, and passes what comes without keeping it."""
        login = self

        class Proxy(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                connection = http.client.HTTPConnection("localhost", timeout=PATIENCE)
                connection.sock = login.connect()
                passed = {name: value for name, value in self.headers.items() if name.lower() not in ("connection", "authorization")}
                connection.request("GET", self.path, headers={**passed, "Authorization": "Bearer " + token()})
                answer = connection.getresponse()
                try:
                    self.send_response(answer.status)
                    for name, value in answer.getheaders():
                        if name.lower() not in ("connection", "transfer-encoding", "content-length"):
                            self.send_header(name, value)
                    self.end_headers()
                    while data := answer.read1(65536):
                        self.wfile.write(data)
                        self.wfile.flush()
                except (OSError, http.client.HTTPException):
                    pass  # one of the two sides has left
                finally:
                    connection.close()

            def log_message(self, *_):
                pass

        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Proxy)
        self.addCleanup(server.server_close)
        self.addCleanup(server.shutdown)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        return f"http://page.example:{server.server_port}/"

    @unittest.skipUnless(PROGRAM, "chromium is missing")
    def test_a_browser_behind_a_proxy(self):
        user = ["poor"]
        address = self.proxy(lambda: user[0])
        browser = Browser("--host-resolver-rules=MAP page.example 127.0.0.1")
        self.addCleanup(browser.close)
        browser.call("Page.navigate", url=address)
        until(lambda: browser.run("document.body?.innerText.includes('the user bob may not get')"), "the refusal is shown")
        user[0] = "good"
        browser.call("Page.navigate", url=address)
        until(lambda: browser.run("document.querySelector('#status')?.dataset.is === 'live'"), "the page is live")
        browser.run("document.getElementById('node/n0').querySelector('summary').click()")
        self.lab.api.post("/api/v1/namespaces/default/pods", pod("p", 4, on="n0"))
        until(lambda: browser.run("document.getElementById('node/n0').textContent.includes('default/p')"), "the pod is shown")
        user[0] = "unknown"
        browser.call("Page.navigate", url=address)
        until(lambda: browser.run("document.body?.innerText.includes('does not know this token')"), "the end of the login is shown")

    # ---- how often the API server is asked ----

    def test_an_answer_is_kept_for_a_short_time(self):
        begun = time.monotonic()
        for _ in range(30):
            self.assertEqual([self.ask(token=t).status for t in ("good", "poor", "unknown")], [200, 403, 401])
        most = 1 + (time.monotonic() - begun) / KEPT
        for token in ("good", "poor", "unknown"):
            self.assertLessEqual(self.reviewer.tokens.count({"token": token}), most)
        self.reviewer.users.pop("good")
        self.reviewer.users["unknown"] = "ann"
        until(lambda: self.ask(token="good").status == 401, "the token is taken back")
        until(lambda: self.ask(token="unknown").status == 200, "the other one is known now")
        self.reviewer.may.clear()
        until(lambda: self.ask(token="unknown").status == 403, "the right is taken back")

    def test_many_at_once_are_one_review(self):
        go, asked = threading.Event(), self.reviewer.token
        self.relay.answers["POST", TOKENS] = lambda body: (go.wait(PATIENCE), asked(body))[1]
        found = []
        threads = [threading.Thread(target=lambda: found.append(self.ask(token="good").status)) for _ in range(20)]
        for t in threads:
            t.start()
        until(lambda: any(p == TOKENS for _, p, _ in self.relay.asked), "the review")
        go.set()
        for t in threads:
            t.join()
        self.assertEqual(found, [200] * 20)
        self.assertEqual(len(self.reviewer.tokens), 1)

    def test_invented_tokens(self):
        """They cost the API server a bounded number of reviews, and a user that may read is served all the while."""
        self.assertEqual(self.ask(token="good").status, 200)
        begun, n, answers = time.monotonic(), 600, {}
        for i in range(n):
            status, text = self.said(token=f"invented-{i}")
            answers[status] = answers.get(status, 0) + 1
            if status == 503:
                self.assertEqual(text, "too many unknown tokens are sent to this page\n")
            if i % 50 == 0:
                self.assertEqual(self.ask(token="good").status, 200)
        most = BURST + RATE * (time.monotonic() - begun) + 2
        reviews = len([t for t in self.reviewer.tokens if t["token"] != "good"])
        print(f"{n} invented tokens: {reviews} reviews, answers {answers}", file=sys.stderr)
        self.assertLessEqual(reviews, most)
        # Where each answer takes so long that the rate allows all of them, none is refused.
        self.assertEqual(set(answers), {401, 503} if n > most else set(answers) & {401, 503})
        self.assertEqual(answers[401], reviews)

    def test_invented_tokens_of_one_address_leave_another_its_login(self):
        connection = http.client.HTTPConnection("localhost", timeout=PATIENCE)
        connection.sock = self.connect()
        self.addCleanup(connection.close)

        def refused():
            connection.request("GET", "/node/n0", headers={"Authorization": f"Bearer invented-{time.monotonic_ns()}"})
            answer = connection.getresponse()
            answer.read()
            return answer.status == 503
        # Where each answer takes so long that the rate allows all of them, none is refused.
        any(refused() for _ in range(600))
        done, ended = threading.Event(), []

        def go_on():
            while not done.is_set():
                refused()
            ended.append(True)
        flood = threading.Thread(target=go_on)
        flood.start()
        try:
            self.assertEqual(self.ask(token="good", source="127.0.0.2").status, 200)
        finally:
            done.set()
            flood.join()
        self.assertTrue(ended, "the flood went on all the while")

    def test_a_user_is_served_after_more_tokens_than_are_kept(self):
        self.assertEqual(self.ask(token="good").status, 200)
        seen = lambda: len(self.reviewer.tokens)  # noqa: E731
        turn = 0
        while seen() < 300:
            self.ask(token=f"invented-{turn}")
            turn += 1
        before = self.reviewer.tokens.count({"token": "good"})
        until(lambda: self.ask(token="good").status == 200, "the user")
        self.assertLessEqual(self.reviewer.tokens.count({"token": "good"}), before + 2, "invented tokens take no place of a user's")

    # ---- an API server that does not decide ----

    def logged(self, pattern):
        def found():
            with open(os.path.join(self.lab.folder.name, "log")) as f:
                return re.search(pattern, f.read())
        return until(found, "in the log: " + pattern)

    def test_an_api_server_that_refuses(self):
        self.reviewer.fails = 403, {"kind": "Status", "code": 403, "reason": "Forbidden", "message": "tokenreviews is forbidden"}
        answer = self.ask(token="good")
        self.assertEqual((answer.status, answer.text, answer.getheader("Retry-After")), (503, UNDECIDED, "5"))
        self.logged(r"warning page: the API server reviews no tokens: .*403")
        self.reviewer.fails = None
        self.assertEqual(self.ask(token="good").status, 200, "an error is not kept")
        self.logged("info page: the API server reviews tokens again")

    def test_a_broken_connection_to_the_api_server(self):
        """A review without an answer is sent once more."""
        for path, token in (TOKENS, "good"), (ACCESS, "second"):
            self.reviewer.users["second"] = "ann"
            answer, broken = self.relay.answers["POST", path], []

            def once(body):
                if not broken:
                    broken.append(body)
                    raise ConnectionResetError
                return answer(body)
            self.relay.answers["POST", path] = once

            def served():
                """On a busy machine the first one alone may take the time that a review has."""
                broken.clear()
                return self.ask(token=token).status == 200 and len(broken) == 1
            until(served, "a second review by " + path)

            def always(body):
                broken.append(body)
                raise ConnectionResetError
            self.relay.answers["POST", path] = always
            self.reviewer.users["third"] = "ann"
            self.assertEqual(self.said(token="third"), (503, UNDECIDED), path)
            self.assertLessEqual(len(broken), 3, "no more than twice")
            self.relay.answers["POST", path] = answer

    def test_answers_that_are_none(self):
        for body in ([], "x", {"status": []}, {"status": {"authenticated": "yes"}}, {"status": {"authenticated": True, "user": {"username": 7}}}):
            self.reviewer.fails = 201, body
            self.assertEqual(self.said(token="good"), (503, UNDECIDED), body)
        for body in ({}, {"status": {}}, {"status": {"authenticated": True}}, {"status": {"authenticated": True, "user": {"username": ""}}}):
            self.reviewer.fails = 201, body
            self.assertEqual(self.said(token=f"t{len(str(body))}")[0], 401, body)
        self.reviewer.fails = None
        self.relay.answers["POST", ACCESS] = lambda body: (201, {"status": {"allowed": True, "denied": True}})
        self.assertEqual(self.said(token="good")[0], 403)

    def test_an_api_server_that_hangs(self):
        """Requests wait for a bounded time. The scheduler goes on with all else, also with the page of the loopback."""
        go = threading.Event()
        self.addCleanup(go.set)
        self.relay.answers["POST", TOKENS] = lambda body: (go.wait(PATIENCE), (500, {}))[1]
        waiting, begun = [], time.monotonic()
        threads = [threading.Thread(target=lambda i=i: waiting.append(self.said(token=f"t{i % 4}"))) for i in range(40)]
        for t in threads:
            t.start()
        until(lambda: len([p for _, p, _ in self.relay.asked if p == TOKENS]) >= 4, "the reviews have begun")
        asked = json.dumps({"Pod": pod("x", 3), "NodeNames": ["n0"]})
        for _ in range(20):
            self.assertEqual(self.lab.ask("/gpushare-scheduler/filter", self.lab.port, "POST", asked).status, 200)
            self.assertEqual(self.lab.ask("/node/n0").status, 200)
        ended = list(waiting)
        if time.monotonic() - begun < TIMEOUT:
            self.assertEqual(ended, [], "no review has ended")
        for t in threads:
            t.join(PATIENCE)
        self.assertEqual(waiting, [(503, UNDECIDED)] * 40)

    def test_clients_that_leave_during_a_review(self):
        go, asked = threading.Event(), self.reviewer.token
        self.addCleanup(go.set)
        self.relay.answers["POST", TOKENS] = lambda body: (go.wait(PATIENCE), asked(body))[1]
        left = [self.connect() for _ in range(20)]
        for s in left:
            s.sendall(b"GET /events HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer good\r\n\r\n")
        until(lambda: any(p == TOKENS for _, p, _ in self.relay.asked), "the review")
        stays = self.connect()
        self.addCleanup(stays.close)
        stays.sendall(b"GET /node/n0 HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer good\r\n\r\n")
        for s in left:
            s.close()
        self.assertEqual(self.lab.ask("/").status, 200)
        go.set()
        self.assertTrue(stays.recv(4096).startswith(b"HTTP/1.1 200 "))
        self.assertEqual(self.ask(token="good").status, 200)

    def test_the_scheduler_ends_during_a_review(self):
        go = threading.Event()
        self.addCleanup(go.set)
        self.relay.answers["POST", TOKENS] = lambda body: (go.wait(PATIENCE), (500, {}))[1]
        s = self.connect()
        self.addCleanup(s.close)
        s.sendall(b"GET /events HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer good\r\n\r\n")
        until(lambda: any(p == TOKENS for _, p, _ in self.relay.asked), "the review")
        self.lab.process.terminate()
        self.assertEqual(self.lab.process.wait(timeout=PATIENCE), 0)

    # ---- the options ----

    def test_a_new_certificate(self):
        self.assertEqual(self.ask(token="good").status, 200)
        self.certify("second")
        # Until then the client does not trust the certificate that it is shown.

        def served():
            try:
                return self.ask(token="good").status == 200
            except ssl.SSLCertVerificationError:
                return False
        until(served, "the new certificate is served")

    def test_wrong_options(self):
        config = self.lab.store.kubeconfig(self.lab.folder.name + "/k")
        for options in (["--page-secure", ":0"], ["--page-secure", ":0", "--page-tls-cert", self.cert], ["--page-tls-cert", self.cert],
                        ["--page", "127.0.0.1:0", "--page-tls-key", self.key]):
            done = subprocess.run([ALIQUOT, "scheduler", "--kubeconfig", config, *options], capture_output=True, text=True, timeout=PATIENCE, check=False)
            self.assertEqual((done.returncode, "go together" in done.stderr), (2, True), options)
        absent = self.lab.folder.name + "/absent"
        for address, cert, said in (("x", self.cert, "listen address"), ("127.0.0.1:0", absent, absent), ("127.0.0.1:0", self.key, self.key)):
            done = subprocess.run([ALIQUOT, "scheduler", "--kubeconfig", config, "--listen", "127.0.0.1:0", "--page-secure", address, "--page-tls-cert",
                                   cert, "--page-tls-key", self.key], capture_output=True, text=True, timeout=PATIENCE, check=False)
            self.assertEqual((done.returncode, said in done.stderr), (3, True), done.stderr)


if __name__ == "__main__":
    unittest.main()
