# SPDX-License-Identifier: Apache-2.0
"""A pod without any right tries to have another pod bound, by each address at which it reaches our
scheduler, and reads what the port that reads tells. SECURITY.md says what it finds."""

import json
import os
import re

import kube
import programs
import suite
from kube import container, pod

READS = programs.READS
PLAIN, TLS = (12345, READS), (9443, 443)  # of the verbs, the reads and the webhook
PREFIX = "/gpushare-scheduler"
ENFORCED = os.environ.get("E2E_POLICIES") == "1"  # the network enforces NetworkPolicies
SECRET = "not-to-be-read"  # stands in the manifest of a pod with a share, where the port that reads has no business

PYTHON = """import ssl, sys, urllib.request as r
q = r.Request(sys.argv[1], open(sys.argv[2], 'rb').read() if sys.argv[2] else None, {'Content-Type': 'application/json'})
try: a = r.urlopen(q, timeout=3, context=ssl._create_unverified_context())
except r.HTTPError as e: a = e
except OSError: sys.exit()
print('HTTP/1.1', a.status); print(a.read().decode())"""
# What may be in the image, the best first, each tried by CHECKS. It asks $1 with the body in file
# $2, if any, and prints the status and the answer. bash knows no TLS.
CHECKS = {"python3": "python3 -c 'import ssl, urllib.request'", "curl": "command -v curl", "wget": "command -v wget", "bash": "command -v bash"}
CLIENTS = {
    "python3": "python3 /ask.py \"$1\" \"$2\"",
    "curl": "curl -sik -m 3 -H 'Content-Type: application/json' ${2:+--data-binary @$2} \"$1\"",
    "wget": "wget -S -T 3 -q --no-check-certificate -O - --header 'Content-Type: application/json' ${2:+--post-file $2} \"$1\" 2>&1",
    "bash": "timeout 3 bash -c 'h=${1#http://}; p=/${h#*/}; h=${h%%/*}; exec 3<>/dev/tcp/${h%:*}/${h#*:} && { "
            "printf \"%s $p HTTP/1.1\\r\\nHost: $h\\r\\nConnection: close\\r\\n\" $([ \"$2\" ] && echo POST || echo GET); "
            "[ -z \"$2\" ] || printf \"Content-Length: %d\\r\\n\" $(wc -c <$2); printf \"\\r\\n\"; [ -z \"$2\" ] || cat $2; } >&3; "
            "cat <&3' - \"$1\" \"$2\" 2>/dev/null",
}


class Access(suite.Scenario):
    mode = "core_mem"

    def setUp(self):
        super().setUp()
        self.replicas = kube.get("pods", selector="app.kubernetes.io/name=aliquot,app.kubernetes.io/component=scheduler", namespace=programs.SYSTEM)
        if not self.replicas:
            self.skipTest("no scheduler is deployed in this cluster")
        self.run_pods(pod("stranger", container("main")))
        there = self.shell("".join(f"{check} >/dev/null 2>&1 && echo {name}\n" for name, check in CHECKS.items()) + "true").split()
        if not there:
            self.skipTest(f"none of {', '.join(CLIENTS)} in the image")
        self.client = there[0]
        self.shell("cat > /ask.py", PYTHON)

    def addresses(self):
        """Of each replica, of the Services, of the node."""
        found = [p["status"]["podIP"] for p in self.replicas]
        for service in kube.get("services", selector="app.kubernetes.io/name=aliquot", namespace=programs.SYSTEM):
            found.append(service["spec"]["clusterIP"])
        node = kube.get("node", suite.World.node)
        found += [a["address"] for a in node["status"]["addresses"] if a["type"] in ("InternalIP", "ExternalIP")]
        return [a for a in dict.fromkeys(found) if a != "None"]

    def shell(self, script, stdin=""):
        return kube.kubectl("exec", "-i", "-n", kube.NAMESPACE, "stranger", "--", "sh", "-c", script, stdin=stdin, timeout=600)

    def ask(self, urls):
        """urls: by URL the file of a POST's body, or "". The answer by URL: its status, 0 where none comes, and all that was said."""
        told = self.shell(f"ask() {{ {CLIENTS[self.client]}; }}\n" + "".join(f"echo '==> {url}'; ask '{url}' '{file}'; echo\n" for url, file in urls.items()))
        found = {}
        for url, answer in re.findall(r"^==> (\S+)\n(.*?)(?=^==> |\Z)", told, re.S | re.M):
            status = re.search(r"HTTP/1\.[01] (\d{3})", answer)
            found[url] = (int(status[1]) if status else 0, answer)
        self.assertEqual(list(found), list(urls))
        return found

    def verbs(self, questions):
        """The status by URL."""
        for verb, question in questions.items():
            self.shell(f"cat > /{verb}", json.dumps(question))
        ports = {**dict.fromkeys(PLAIN, "http"), **({} if self.client == "bash" else dict.fromkeys(TLS, "https"))}
        answers = self.ask({f"{scheme}://{address}:{port}{PREFIX}/{verb}": "/" + verb
                            for address in self.addresses() for port, scheme in ports.items() for verb in questions})
        return {url: status for url, (status, _) in answers.items()}

    def waiting(self):
        """A pod that asks for more than any card has, once it was refused."""
        kube.create(pod("waits", container("main", 10000)))
        kube.until("the pod is not asked about", lambda: self.events("waits", "FailedScheduling"))
        return self.pod("waits")

    def test_no_address_binds_for_a_pod(self):
        waits = self.waiting()
        node = kube.get("node", suite.World.node)
        questions = {"bind": {"PodName": "waits", "PodNamespace": kube.NAMESPACE, "PodUID": waits["metadata"]["uid"], "Node": suite.World.node},
                     "preempt": {"Pod": waits, "NodeNameToVictims": {suite.World.node: {"Pods": []}}},
                     "filter": {"Pod": waits, "NodeNames": [node["metadata"]["name"]]},
                     "prioritize": {"Pod": waits, "NodeNames": [node["metadata"]["name"]]}}
        tried = self.verbs(questions)
        print(f"access by {self.client}: " + ", ".join(f"{url} {status or 'no answer'}" for url, status in tried.items()), flush=True)
        self.assertEqual([url for url, status in tried.items() if 200 <= status < 300], [])
        for verb in {} if ENFORCED else questions:
            self.assertIn(404, [status for url, status in tried.items() if url.endswith(f":{READS}{PREFIX}/{verb}")],
                          f"the port of the reads was reached and has no {verb}")
        self.assertNotIn("nodeName", self.pod("waits")["spec"])

    def test_what_a_pod_reads(self):
        """Names of pods with a share, and nothing else of a manifest."""
        env = [{"name": "TOKEN", "value": SECRET}]
        shares = pod("shares", container("main", 1, 5, env=env, workingDir="/", args=[SECRET]), labels={"label": SECRET})
        shares["metadata"]["annotations"] = {"annotation": SECRET}
        self.run_pods(shares, pod("has-no-share", container("main", env=env)))
        why = "/why/" + self.waiting()["metadata"]["uid"]
        paths = [PREFIX + path for path in ("/inspect", f"/inspect/{suite.World.node}", why, "/gangs")]
        paths += ["/version", "/healthz", "/readyz", "/metrics"]
        none = ["/", PREFIX, PREFIX + "/bind", PREFIX + "/filter", "/api/v1/pods", "/debug/pprof/", "/gpushare-scheduler/inspect/../../etc/passwd"]
        answers = self.ask({f"http://{p['status']['podIP']}:{READS}{path}": "" for p in self.replicas for path in paths + none})
        said = {path: [a for url, a in answers.items() if url.endswith(f":{READS}{path}")] for path in paths + none}
        print(f"reads by {self.client}: " + ", ".join(f"{path} {[s for s, _ in found]}" for path, found in said.items()), flush=True)
        if ENFORCED:
            self.assertEqual({status for status, _ in answers.values()}, {0})
            return
        self.assertEqual([path for path in paths if 200 not in [status for status, _ in said[path]]], [])
        self.assertEqual([path for path in none if any(200 <= status < 300 for status, _ in said[path])], [])
        self.assertTrue(any("shares" in text for _, text in said[PREFIX + "/inspect"]))
        everything = "\n".join(text for _, text in answers.values())
        for word in (SECRET, "has-no-share"):
            self.assertNotIn(word, everything)
        self.assertNotIn("nodeName", self.pod("waits")["spec"])
