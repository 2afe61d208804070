# SPDX-License-Identifier: Apache-2.0
"""Pods are created through the webhook, and the API server is restarted meanwhile, while other pods hold thousands of
connections to all listeners that a pod reaches. Those of the loopback, the verbs and the web page, are refused to them
(access_test). E2E_IMAGE needs python3 for this."""

import contextlib
import os
import re
import statistics
import subprocess
import time
import unittest

import kube
import programs
import suite
from failover_test import MARK, NODES, node
from kube import container, pod

CROWD = os.path.join(programs.ROOT, "tests", "blackbox", "crowd.py")
RESTART = os.environ.get("E2E_RESTART_APISERVER")
PODS, WAVE, RESTART_AFTER = 100, 10, 3  # waves
MEMBERS, OTHERS = 2000, 16  # connections to each listener of each replica, and the most pods that they come from
RATE = 200  # of those that were closed come again in a second
FORMS = ("idle", "half", "handshake")  # of tests/blackbox/crowd.py
LABEL = {"e2e-crowd": "true"}
POSTED = re.compile(r'POST.*/pods\b.*201 Created.*(?:milliseconds=| in )(\d+)')


def asks(name):
    """Without a scheduler: the webhook names it, and a pod that it has not seen is not bound."""
    found = pod(name, container("main", 1), nodeSelector={MARK: "true"}, tolerations=[{"operator": "Exists"}], grace=0)
    del found["spec"]["schedulerName"]
    return found


class Listeners(suite.Scenario):
    def setUp(self):
        super().setUp()
        replicas = kube.get("pods", selector="app.kubernetes.io/name=aliquot,app.kubernetes.io/component=scheduler", namespace=programs.SYSTEM)
        agent = kube.get("pod", suite.World.programs.agent_pod(), namespace=programs.SYSTEM) if replicas else None
        if not agent:
            self.skipTest("no scheduler and no agent are deployed in this cluster")
        scheduler = [p["status"]["podIP"] for p in replicas]
        # address, port, whether with TLS: the webhook, the port that reads, the agent's metrics
        self.peers = [(ip, 9443, True) for ip in scheduler] + [(ip, programs.READS, False) for ip in scheduler] + [(agent["status"]["podIP"], 9445, False)]
        self.addCleanup(kube.kubectl, "delete", "nodes", "-l", MARK + "=true", "--ignore-not-found", timeout=120)
        kube.create(*[node(f"listeners-{i}") for i in range(NODES)])
        self.strangers = [f"stranger-{i}" for i in range(OTHERS)]
        self.run_pods(*[pod(name, container("main"), labels=LABEL, nodeName=suite.World.node) for name in self.strangers])
        with open(CROWD, encoding="utf-8") as f:
            self.crowd_text = f.read()
        for name in self.strangers:
            done = self.shell(name, "cat > /crowd.py && python3 -c 'import ssl'", self.crowd_text)
            if done.returncode:
                self.skipTest("no python3 with the module ssl in the image")

    def shell(self, name, script, stdin=""):
        return kube.kubectl("exec", "-i", "-n", kube.NAMESPACE, name, "--", "sh", "-c", script, stdin=stdin, check=False)

    @contextlib.contextmanager
    def crowd(self, form, addresses):
        """MEMBERS connections to each listener of each replica. They are no children of `kubectl exec`, which ends with the API server."""
        members = []
        for number, (host, port, tls) in enumerate(self.peers):
            said = form if tls or form != "handshake" else "half"
            members.append(f"python3 /crowd.py {host} {port} {said} '' {int(tls)} {MEMBERS // addresses} {RATE // addresses} <>/end >/there-{number} 2>&1 &\n")
        strangers = self.strangers[:addresses]
        try:
            for name in strangers:
                self.shell(name, "rm -f /end /there-*; python3 -c 'import os; os.mkfifo(\"/end\")'; exec >/dev/null 2>&1\n" + "".join(members))
            for name in strangers:
                kube.until(lambda name=name: f"the crowd of {name} is not there: {self.shell(name, 'cat /there-*').stdout}",
                           lambda name=name: self.shell(name, "cat /there-*").stdout == "there\n" * len(members), 120, every=1)
            yield
            for name in strangers:  # each is still there
                self.assertEqual(len(self.shell(name, "grep -l 'crowd[.]py' /proc/[0-9]*/cmdline").stdout.split()), len(members))
        finally:
            for name in strangers:
                self.shell(name, "echo 1<>/end")  # which each of them sees, and none reads; it waits for no reader

    def create(self, prefix, restart):
        """Creates PODS pods, wave by wave, and each until it is there. Returns the milliseconds of each answer, and the seconds of all."""
        began, each, restarting = time.monotonic(), [], None
        for wave in range(PODS // WAVE):
            if restart and wave == RESTART_AFTER:
                restarting = subprocess.Popen(RESTART, shell=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, stdin=subprocess.DEVNULL)
            missing = {name: asks(name) for name in (f"{prefix}-{wave}-{i}" for i in range(WAVE))}

            def all_there(missing=missing):
                done = kube.kubectl("create", "-v=6", "-n", kube.NAMESPACE, "-f", "-", stdin=kube.as_list(missing.values()), check=False)
                each.extend(int(n) for n in POSTED.findall(done.stderr))
                for name in [*missing]:
                    if f"pod/{name} created" in done.stdout or f'pods "{name}" already exists' in done.stderr:
                        del missing[name]
                self.assertNotIn("denied the request", done.stderr)
                return not missing
            kube.until(lambda missing=missing: f"{len(missing)} of wave {wave} are not created", all_there, 120)
        seconds = time.monotonic() - began
        if restarting:
            self.assertEqual(restarting.wait(120), 0)
        return each, seconds

    def round(self, prefix, restart=True):
        """Creates the pods, waits until each is bound, and removes them. Returns what create() returns."""
        found = self.create(prefix, restart)

        def bound():
            return [p for p in self.pods() if p["metadata"]["name"].startswith(prefix) and p["spec"].get("nodeName")]
        kube.until(lambda: f"{len(bound())} of {PODS} are bound", lambda: len(bound()) == PODS, 120, every=1)
        kube.kubectl("delete", "pod", "-n", kube.NAMESPACE, "-l", f"{kube.RUN}=true,!e2e-crowd", "--force", "--grace-period=0", timeout=150)
        return found

    def say(self, what, found, calm):
        """One line: the answers to a create, and the time until all were there, beside those without a crowd."""
        (each, seconds), (calm_each, calm_seconds) = found, calm
        median, calm_median = statistics.median(each), statistics.median(calm_each)
        print(f"  {what}: median {median:.0f} ms of {calm_median:.0f}, ratio {median / max(calm_median, 1):.2f}, at most {max(each)} of {max(calm_each)}; "
              f"all within {seconds:.1f} s of {calm_seconds:.1f}", flush=True)

    @unittest.skipUnless(RESTART, "E2E_RESTART_APISERVER is not given")
    def test_pods_are_created(self):
        quiet = self.round("quiet", restart=False)
        calm = self.round("calm")
        self.say("without a crowd and a restart", quiet, calm)
        for form in FORMS:
            for addresses in (1, OTHERS):
                with self.subTest(form=form, addresses=addresses), self.crowd(form, addresses):
                    self.say(f"{form}, {addresses} addresses", self.round(f"{form}-{addresses}"), calm)
