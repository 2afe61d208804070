# SPDX-License-Identifier: Apache-2.0
"""A pod without any right tries to have another pod bound, by each address at which it reaches our
scheduler. SECURITY.md says that none answers there. E2E_IMAGE needs wget for this."""

import json

import kube
import programs
import suite
from kube import container, pod

READS = programs.READS
PLAIN, TLS = (12345, READS), (9443, 443)  # of the verbs, the reads and the webhook


class Access(suite.Scenario):
    mode = "core_mem"

    def setUp(self):
        super().setUp()
        self.replicas = kube.get("pods", selector="app.kubernetes.io/name=aliquot,app.kubernetes.io/component=scheduler", namespace=programs.SYSTEM)
        if not self.replicas:
            self.skipTest("no scheduler is deployed in this cluster")

    def addresses(self):
        """Of each replica, of the Services, of the node."""
        found = [p["status"]["podIP"] for p in self.replicas]
        for service in kube.get("services", selector="app.kubernetes.io/name=aliquot", namespace=programs.SYSTEM):
            found.append(service["spec"]["clusterIP"])
        node = kube.get("node", suite.World.node)
        found += [a["address"] for a in node["status"]["addresses"] if a["type"] in ("InternalIP", "ExternalIP")]
        return [a for a in dict.fromkeys(found) if a != "None"]

    def shell(self, script, stdin=""):
        return kube.kubectl("exec", "-i", "-n", kube.NAMESPACE, "stranger", "--", "sh", "-c", script, stdin=stdin, timeout=300)

    def ask(self, questions):
        """The status by URL, or 0 where no answer comes."""
        for verb, question in questions.items():
            self.shell(f"cat > /{verb}", json.dumps(question))
        urls = {f"{'http' if port in PLAIN else 'https'}://{address}:{port}/gpushare-scheduler/{verb}": verb
                for address in self.addresses() for port in (*PLAIN, *TLS) for verb in questions}
        told = self.shell("".join(f"echo '{url}' $(wget -S -T 3 -q --no-check-certificate -O /dev/null --header 'Content-Type: application/json' "
                                  f"--post-data \"$(cat /{verb})\" '{url}' 2>&1 | grep HTTP/)\n" for url, verb in urls.items()))
        answers = [line.split() for line in told.splitlines()]
        return {words[0]: int(words[2]) if len(words) > 2 else 0 for words in answers}

    def test_no_address_binds_for_a_pod(self):
        self.run_pods(pod("stranger", container("main")))
        if kube.kubectl("exec", "-n", kube.NAMESPACE, "stranger", "--", "sh", "-c", "command -v wget", check=False).returncode:
            self.skipTest("no wget in the image")
        kube.create(pod("waits", container("main", 10000)))  # more than any card has
        kube.until("the pod is not asked about", lambda: self.events("waits", "FailedScheduling"))
        waits = self.pod("waits")
        node = kube.get("node", suite.World.node)
        questions = {"bind": {"PodName": "waits", "PodNamespace": kube.NAMESPACE, "PodUID": waits["metadata"]["uid"], "Node": suite.World.node},
                     "preempt": {"Pod": waits, "NodeNameToVictims": {suite.World.node: {"Pods": []}}},
                     "filter": {"Pod": waits, "NodeNames": [node["metadata"]["name"]]},
                     "prioritize": {"Pod": waits, "NodeNames": [node["metadata"]["name"]]}}
        tried = self.ask(questions)
        print("access: " + ", ".join(f"{url} {status or 'no answer'}" for url, status in tried.items()), flush=True)
        self.assertEqual([url for url, status in tried.items() if 200 <= status < 300], [])
        for verb in questions:
            self.assertIn(404, [status for url, status in tried.items() if url.endswith(f":{READS}/gpushare-scheduler/{verb}")],
                          f"the port of the reads was reached and has no {verb}")
        self.assertNotIn("nodeName", self.pod("waits")["spec"])
