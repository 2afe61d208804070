#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Who may bind: `aliquot scheduler` beside a kube-scheduler whose Lease decides, and its two ports."""

import datetime
import http.client
import json
import os
import re
import socket
import subprocess
import sys
import tempfile
import threading
import unittest
import uuid

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "fake"))

from api import Api, ApiError, StoreServer  # noqa: E402
from page_lab import node, pod  # noqa: E402
from patience import PATIENCE, until  # noqa: E402

ALIQUOT, STORE = sys.argv[1:3]
del sys.argv[1:3]
HOST = socket.gethostname()
LEASES = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases"
LEASE = LEASES + "/aliquot-scheduler"
PREFIX = "/gpushare-scheduler"
VERBS = "filter", "prioritize", "bind", "preempt"
RENEW = 2  # seconds, as client-go


class KubeScheduler:
    """Holds the Lease as a kube-scheduler of that host does. Its clock may differ from others' by `ahead` seconds."""

    def __init__(self, api, host=HOST, ahead=0, more=None, time="%Y-%m-%dT%H:%M:%S.%fZ"):
        self.api, self.ahead, self.more, self.time = api, ahead, more or {}, time
        self.identity = f"{host}_{uuid.uuid4()}"
        self.ending = threading.Event()
        self.renew()
        self.thread = threading.Thread(target=self._renew_often, daemon=True)
        self.thread.start()

    def write(self, holder, duration=15):
        now = (datetime.datetime.utcnow() + datetime.timedelta(seconds=self.ahead)).strftime(self.time)
        spec = {"holderIdentity": holder, "leaseDurationSeconds": duration, "renewTime": now, **self.more}
        try:
            self.api.patch(LEASE, {"spec": spec})
        except ApiError as e:
            if e.status != 404:
                raise
            self.api.post(LEASES, {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
                                   "metadata": {"name": "aliquot-scheduler", "namespace": "kube-system"}, "spec": spec})

    def renew(self):
        self.write(self.identity)

    def _renew_often(self):
        while not self.ending.wait(RENEW):
            try:
                self.renew()
            except (OSError, http.client.HTTPException, ApiError):
                pass  # the API server is away

    def kill(self):
        self.ending.set()
        self.thread.join(PATIENCE)

    def end(self):
        """As at SIGTERM: it gives the Lease back (ReleaseOnCancel)."""
        self.kill()
        self.write("", 1)


class Replica:
    """One `aliquot scheduler`, by default in the deployment's form."""

    FORM = "--kube-scheduler-lease", "kube-system/aliquot-scheduler", "--read-listen", "0.0.0.0:0"

    def __init__(self, case, *options, listen="127.0.0.1:0"):
        self.path = os.path.join(case.folder, f"log-{uuid.uuid4()}")
        with open(self.path, "w") as f:
            self.process = subprocess.Popen([ALIQUOT, "scheduler", "--kubeconfig", case.kubeconfig, "--listen", listen,
                                             *(options or self.FORM)], stderr=f)
        case.addCleanup(self.kill)
        self.port = int(until(lambda: re.search(r" listening port=(\d+) server", self.log()), "a port")[1])
        found = re.search(r"reads listening port=(\d+)", self.log())
        self.reads = int(found[1]) if found else None
        self.address = listen.split(":")[0] or "127.0.0.1"
        until(lambda: self.ask("GET", "/readyz")[0] == 200, "the view")

    def log(self):
        with open(self.path) as f:
            return f.read()

    def kill(self):
        self.process.kill()
        self.process.wait(PATIENCE)

    def end(self):
        self.process.terminate()
        self.process.wait(PATIENCE)

    def ask(self, method, path, body=None, port=None):
        connection = http.client.HTTPConnection(self.address, port or self.port, timeout=PATIENCE)
        try:
            connection.request(method, path, json.dumps(body) if body is not None else None)
            answer = connection.getresponse()
            return answer.status, answer.read().decode()
        finally:
            connection.close()

    def leads(self):
        return "aliquot_scheduler_leading 1\n" in self.ask("GET", "/metrics")[1]

    def bind(self, made, name="n"):
        """What kube-scheduler is told: "" or the error."""
        meta = made["metadata"]
        status, text = self.ask("POST", PREFIX + "/bind", {"PodName": meta["name"], "PodNamespace": meta["namespace"],
                                                           "PodUID": meta["uid"], "Node": name})
        assert status == 200, text
        return json.loads(text)["Error"]


class Case(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        self.store = StoreServer(STORE)
        self.addCleanup(self.store.stop)
        self.api = Api(self.store.address)
        self.kubeconfig = self.store.kubeconfig(os.path.join(self.folder, "config"))
        self.api.post("/api/v1/nodes", node("n"))
        self.pods = 0

    def scheduler(self, **options):
        made = KubeScheduler(self.api, **options)
        self.addCleanup(made.kill)
        return made

    def pod(self):
        self.pods += 1
        return self.api.post("/api/v1/namespaces/default/pods", pod(f"p{self.pods}", 1))

    def refused(self, replica, *reasons):
        """A bind is refused with these parts of a sentence, and nothing is bound."""
        made = self.pod()
        error = replica.bind(made)
        for part in ("this replica is not the leader, and does not bind: Lease kube-system/aliquot-scheduler ",) + reasons:
            self.assertIn(part, error)
        self.unbound(made)

    def unbound(self, made):
        self.assertNotIn("nodeName", self.api.get(f"/api/v1/namespaces/default/pods/{made['metadata']['name']}")["spec"])

    def binds(self, replica):
        """Until it has listed the pods as a leader it says so."""
        made = self.pod()

        def bound():
            error = replica.bind(made)
            self.assertTrue(error == "" or "not the leader" in error or "has become the leader just now" in error or
                            "not known" in error, error)
            return error == ""
        until(bound, "a bind")
        self.assertEqual(self.api.get(f"/api/v1/namespaces/default/pods/{made['metadata']['name']}")["spec"]["nodeName"], "n")


class Lease(Case):
    """The Lease of the kube-scheduler decides."""

    def test_binds_where_its_kube_scheduler_leads(self):
        replica = Replica(self)
        self.refused(replica, "does not exist")
        self.scheduler()
        self.binds(replica)
        self.assertTrue(replica.leads())

    def test_another_pod_holds_it(self):
        replica = Replica(self)
        self.scheduler(host="another")
        until(lambda: "is held by another_" in replica.bind(self.pod()), "the holder")
        self.refused(replica, "is held by another_", f"and not by the kube-scheduler of host {HOST}")

    def test_the_kube_scheduler_restarts_alone(self):
        """As it does after a kill: another holder of the same host, when the Lease has run out. And as after SIGTERM."""
        replica = Replica(self)
        first = self.scheduler()
        self.binds(replica)
        first.end()
        until(lambda: not replica.leads(), "the end of leading")
        self.refused(replica, "has no holder")
        second = self.scheduler()
        self.binds(replica)
        second.kill()
        until(lambda: not replica.leads(), "the end of leading")
        self.refused(replica, "was not seen renewed in time by " + second.identity)
        self.scheduler()
        self.binds(replica)

    def test_the_extender_restarts_alone(self):
        """It binds after a renewal that it has seen, and refuses before."""
        first = Replica(self)
        scheduler = self.scheduler()
        self.binds(first)
        first.kill()
        scheduler.kill()  # no renewal
        second = Replica(self)
        until(lambda: "was not seen renewed" in second.bind(self.pod()), "the Lease")
        self.assertFalse(second.leads())
        self.scheduler()
        self.binds(second)

    def with_file(self):
        return Replica(self, *Replica.FORM, "--lease-file", os.path.join(self.folder, "lease"))

    def test_the_extender_restarts_alone_with_its_file(self):
        """It binds without a renewal, also where its kube-scheduler's clock is a minute off: no time of day is compared."""
        for ahead in -60, 0, 60:
            with self.subTest(ahead=ahead):
                first = self.with_file()
                scheduler = self.scheduler(ahead=ahead)
                self.binds(first)
                first.kill()
                scheduler.kill()  # no renewal
                second = self.with_file()
                self.binds(second)
                until(lambda: not second.leads(), "the end of leading")
                self.refused(second, "was not seen renewed in time by " + scheduler.identity)
                second.kill()
                third = self.with_file()  # after the end of the term
                until(lambda: "was not seen renewed" in third.bind(self.pod()), "the Lease")
                third.kill()

    def test_the_lease_is_lost_while_the_extender_restarts(self):
        """To another pod's kube-scheduler: what the file says is over, also where the Lease comes back by hand."""
        first = self.with_file()
        mine = self.scheduler()
        self.binds(first)
        first.kill()
        mine.end()
        other = self.scheduler(host="another")
        second = self.with_file()
        until(lambda: "is held by another_" in second.bind(self.pod()), "the holder")
        self.refused(second, f"and not by the kube-scheduler of host {HOST}")
        second.kill()
        other.kill()
        mine = self.scheduler()  # over a holder that lives
        third = self.with_file()
        until(lambda: "from a holder that may still act" in third.bind(self.pod()), "the Lease")
        self.refused(third, f"went to {mine.identity} from a holder that may still act")
        self.binds(third)

    def test_edited_by_hand(self):
        """To another pod, and back: the replica waits until the other's would have stopped."""
        replica = Replica(self)
        mine = self.scheduler()
        self.binds(replica)
        mine.kill()
        self.api.patch(LEASE, {"spec": {"holderIdentity": "none-of-ours"}})
        until(lambda: not replica.leads(), "the end of leading")
        self.refused(replica, "is held by none-of-ours")
        mine = self.scheduler()
        until(lambda: "is held" not in replica.bind(self.pod()), "the Lease")
        self.refused(replica, f"went to {mine.identity} from a holder that may still act")
        self.binds(replica)

    def test_clocks_differ(self):
        for ahead in -60, 60:
            with self.subTest(ahead=ahead):
                replica = Replica(self)
                scheduler = self.scheduler(ahead=ahead)
                self.binds(replica)
                scheduler.end()
                replica.end()

    def test_kube_schedulers_of_other_minors(self):
        """The Lease may lack what newer ones write, and have what is not known here. Only the holder counts, not the preferred one."""
        for more in ({}, {"acquireTime": "2026-01-01T00:00:00.000000Z", "leaseTransitions": 7},
                     {"strategy": "OldestEmulationVersion", "preferredHolder": "another_1", "later": {"a": [1]}}):
            for time in "%Y-%m-%dT%H:%M:%S.%fZ", "%Y-%m-%dT%H:%M:%SZ":
                with self.subTest(more=more, time=time):
                    replica = Replica(self)
                    scheduler = self.scheduler(more=more, time=time)
                    self.binds(replica)
                    scheduler.end()
                    until(lambda: not replica.leads(), "the end of leading")
                    self.refused(replica, "has no holder")
                    replica.end()

    def test_two_kube_schedulers_on_one_extender(self):
        """Both ask for the same pods, for two nodes at once: each pod is bound once, and the other one is told why not. While a third
        holds the Lease, both are refused."""
        self.api.post("/api/v1/nodes", node("m"))
        replica = Replica(self)
        scheduler = self.scheduler()
        self.binds(replica)
        for _ in range(10):
            made, answers = self.pod(), {}
            asking = [threading.Thread(target=lambda name=name: answers.update({name: replica.bind(made, name)})) for name in "nm"]
            for thread in asking:
                thread.start()
            for thread in asking:
                thread.join(PATIENCE)
            bound = self.api.get(f"/api/v1/namespaces/default/pods/{made['metadata']['name']}")["spec"]["nodeName"]
            self.assertEqual(answers.pop(bound), "")
            (other,) = answers.values()
            self.assertRegex(other, "is being bound|is bound|already", made["metadata"]["name"])
        scheduler.kill()
        self.scheduler(host="another")
        until(lambda: "is held by another_" in replica.bind(self.pod()), "the holder")
        for name in "nm":
            made = self.pod()
            self.assertIn("this replica is not the leader, and does not bind", replica.bind(made, name))
            self.unbound(made)

    def test_the_api_server_is_away(self):
        """Without reads it stops by its own clock, and goes on when the API server is back."""
        replica = Replica(self)
        self.scheduler()
        self.binds(replica)
        self.store.tell("vanish")
        until(lambda: not replica.leads(), "the end of leading")
        self.store.tell("return")
        self.api.get("/api/v1/nodes")  # on a new connection
        self.binds(replica)

    def test_old_and_new_side_by_side(self):
        """An extender that elects itself by the same Lease, as every one did before, and one that follows it: an upgrade and
        the way back. At no look do both lead."""
        old = Replica(self, "--read-listen", "127.0.0.1:0")
        until(old.leads, "the old one leads")
        new = Replica(self)
        self.refused(new, f"is held by {HOST}_{old.process.pid}, and not")

        def only(leader, other):
            leads = leader.leads()
            self.assertFalse(leads and other.leads() and leader.leads())
            return leads
        self.binds(old)
        old.end()  # it gives the Lease back
        scheduler = self.scheduler()
        self.binds(new)
        old = Replica(self, "--read-listen", "127.0.0.1:0")
        self.assertFalse(old.leads())
        scheduler.end()
        until(lambda: only(old, new), "the old one leads")
        until(lambda: "is held by" in new.bind(self.pod()), "the new one has seen it")
        self.refused(new, f"is held by {HOST}_{old.process.pid}, and not")
        self.binds(old)

    def test_asked_before_the_watch_shows_the_end(self):
        """kube-scheduler saw first that another pod ended. It asks again after five minutes, or when the pod changes."""
        replica = Replica(self, "--no-leader-election")
        self.api.post("/api/v1/namespaces/default/pods", pod("old", 8 * 80, on="n", cards=8))
        waiting = self.pod()
        asked = {"Pod": waiting, "NodeNames": ["n"]}

        def refused():
            status, text = replica.ask("POST", PREFIX + "/filter", asked)
            return status == 200 and not json.loads(text)["NodeNames"]
        until(refused, "the pod does not fit")
        self.api.delete("/api/v1/namespaces/default/pods/old", grace=0)
        until(lambda: "aliquot.dev/kick" in self.api.get("/api/v1/namespaces/default/pods/p1")["metadata"].get("annotations", {}), "it is woken")

    def test_without_election(self):
        done = subprocess.run([ALIQUOT, "scheduler", "--no-leader-election", "--kube-scheduler-lease", "a/b"], capture_output=True,
                              text=True, timeout=PATIENCE)
        self.assertEqual(done.returncode, 2)
        self.assertIn("--no-leader-election and --kube-scheduler-lease exclude each other", done.stderr)

    def test_a_file_without_a_lease(self):
        done = subprocess.run([ALIQUOT, "scheduler", "--lease-file", "x"], capture_output=True, text=True, timeout=PATIENCE)
        self.assertEqual(done.returncode, 2)
        self.assertIn("--lease-file needs --kube-scheduler-lease", done.stderr)


class Ports(Case):
    """What another pod reaches: the port that reads, and nothing that binds."""

    def addresses(self):
        """Of this machine, besides 127.0.0.1."""
        text = subprocess.run(["hostname", "-I"], capture_output=True, text=True).stdout
        return ["127.0.0.2"] + [a for a in text.split() if ":" not in a]

    def test_the_verbs_are_not_there(self):
        replica = Replica(self)
        self.scheduler()
        self.binds(replica)
        made = self.pod()
        bodies = {"bind": {"PodName": made["metadata"]["name"], "PodNamespace": "default", "PodUID": made["metadata"]["uid"], "Node": "n"}}
        for address in self.addresses():
            with self.assertRaises(ConnectionRefusedError):
                socket.create_connection((address, replica.port), timeout=PATIENCE)
        for verb in VERBS:
            body = bodies.get(verb, {"Pod": made, "NodeNames": ["n"]})
            for path in (f"{PREFIX}/{verb}", f"/{verb}", f"{PREFIX}//{verb}", f"{PREFIX}/{verb}/"):
                for method in "POST", "GET", "PUT", "PATCH", "DELETE":
                    status, _ = replica.ask(method, path, body, replica.reads)
                    self.assertEqual(status, 404, (method, path))
        self.unbound(made)
        self.assertEqual(replica.bind(made), "")

    def test_verbs_elsewhere_are_refused(self):
        """Another address of the extender needs the option that says what it opens, also with TLS."""
        for address in ":0", "0.0.0.0:0", "[::]:0", "10.0.0.1:0", "[::ffff:127.0.0.1]:0", "[127.0.0.1]:0", "localhost:0", "127.0.0.1", "":
            for more in (), ("--tls-cert", "x", "--tls-key", "y"):
                with self.subTest(address=address, more=more):
                    done = subprocess.run([ALIQUOT, "scheduler", "--listen", address, *more], capture_output=True, text=True,
                                          timeout=PATIENCE)
                    self.assertEqual(done.returncode, 2)
                    self.assertIn(f'--listen is "{address}", must be 127.0.0.1:PORT or [::1]:PORT: whatever reaches another '
                                  "address can have pods bound to any node, which --insecure-listen permits", done.stderr)
        for address, reached in ("127.0.0.2:0", "127.0.0.2"), (":0", "127.0.0.3"):
            replica = Replica(self, "--no-leader-election", *(["--insecure-listen"] if address == ":0" else []), listen=address)
            connection = socket.create_connection((reached, replica.port), timeout=PATIENCE)
            connection.close()

    def test_what_only_reads_is_there(self):
        replica = Replica(self)
        self.scheduler()
        self.binds(replica)
        waiting = self.pod()
        until(lambda: replica.ask("GET", f"{PREFIX}/why/{waiting['metadata']['uid']}", port=replica.reads)[0] == 200, "the pod")
        for address in self.addresses():
            connection = socket.create_connection((address, replica.reads), timeout=PATIENCE)
            connection.close()
        for path in ("/healthz", "/readyz", "/metrics", "/version", PREFIX + "/inspect", PREFIX + "/inspect/n"):
            self.assertEqual(replica.ask("GET", path, port=replica.reads)[0], 200, path)
        for path in ("/healthz", PREFIX + "/inspect"):
            self.assertEqual(replica.ask("POST", path, {}, replica.reads)[0], 405, path)
        self.assertEqual(replica.ask("GET", "/", port=replica.reads)[0], 404)

    def test_gangs_are_the_leaders_to_tell(self):
        replica = Replica(self, *Replica.FORM, "--gangs")
        status, text = replica.ask("GET", PREFIX + "/gangs", port=replica.reads)
        self.assertEqual((status, text.startswith("this replica does not lead, and holds no gangs: Lease kube-system/")), (503, True), text)
        self.scheduler()
        self.binds(replica)
        self.assertEqual(replica.ask("GET", PREFIX + "/gangs", port=replica.reads), (200, "[]"))


if __name__ == "__main__":
    unittest.main()
