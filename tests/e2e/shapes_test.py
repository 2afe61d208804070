# SPDX-License-Identifier: Apache-2.0
"""One pod, or two, of every shape: from an ACK manifest to the container's environment."""

import copy
import json
import os

import audit
import kube
import programs
import suite
from kube import container, pod


def sample(name):
    """The pod template of a sample, and the Job itself."""
    job = kube.read_manifest(os.path.join(programs.ROOT, "samples", name, "job.yaml"))[0]
    job["metadata"].pop("namespace", None)
    return job


def served(job, script=None):
    """The job with an available image, and a label to find it. A test cluster lacks the images that
    samples name; with E2E_SAMPLE_IMAGES=1 it has them, and the manifest stays unchanged."""
    job = copy.deepcopy(job)
    if script is None and os.environ.get("E2E_SAMPLE_IMAGES") == "1":
        return job
    for c in job["spec"]["template"]["spec"]["containers"]:
        c["image"], c["imagePullPolicy"] = kube.IMAGE, "IfNotPresent"
        if script:
            c["command"] = ["sh", "-c", script]
    return job


class Samples(suite.Scenario):
    def run_job(self, job):
        kube.create(job)
        name = job["metadata"]["name"]

        def its_pod():
            found = [p for p in self.pods() if p["metadata"].get("labels", {}).get("job-name") == name]
            return found[0] if found and kube.settled(found[0]) else None
        return kube.until(lambda: "\n".join(map(kube.describe, self.pods())), its_pod)

    def test_share_sample(self):
        p = self.run_job(served(sample("share")))
        out = kube.until("the sample prints nothing", lambda: kube.kubectl(
            "logs", "-n", kube.NAMESPACE, p["metadata"]["name"]).split())
        units = audit.cards_of(kube.get("node", suite.World.node))[0]["units"]
        self.assertEqual(out[:2], ["4", str(units)])
        self.assertAlmostEqual(float(out[2]), 4 / units, places=4)

    def test_registered_sample(self):
        job = served(sample("registered"), kube.STAY)
        suite.switch_mode("cgpu")
        p = self.run_job(job)
        self.assertEqual(p["spec"]["schedulerName"], "ack-co-scheduler")
        self.audit()

    def test_core_mem_sample(self):
        suite.switch_mode("core_mem")
        p = self.run_job(served(sample("core-mem"), kube.STAY))
        card = next(iter(self.audit()[p["metadata"]["name"]].used))
        self.assertEqual(audit.slices(p["metadata"]["annotations"][audit.CORE_ALLOCATION]), {0: {card: 30}})

    def test_many_cards_sample(self):
        if suite.card_count() < 4:
            self.skipTest("needs 4 cards")
        p = self.run_job(served(sample("many-cards"), kube.STAY))
        env = self.env(p["metadata"]["name"], ("tf-mnist-multigpu",))
        self.assertEqual((env["ALIYUN_COM_GPU_MEM_CONTAINER"], env["ALIYUN_COM_GPU_MEM_POD"]), ("2", "8"))
        self.assertEqual(len(set(env["NVIDIA_VISIBLE_DEVICES"].split(","))), 4)
        self.audit()


class Placement(suite.Scenario):
    def two(self):
        self.run_pods(pod("two", container("main", 2)))
        self.run_pods(pod("three", container("main", 3)))
        audits = self.audit()
        return audits["two"].used, audits["three"].used

    def test_binpack_fills_one_card(self):
        first, second = self.two()
        self.assertEqual(first, second)

    def test_spread_takes_another(self):
        if suite.card_count() < 2:
            self.skipTest("needs 2 cards")
        suite.node_labels(placement="spread")
        first, second = self.two()
        self.assertNotEqual(first, second)

    def test_two_cards_by_label(self):
        if suite.card_count() < 2:
            self.skipTest("needs 2 cards")
        self.run_pods(pod("wide", container("main", 8), labels={kube.COUNT: "2"}))
        self.assertEqual(list(self.grant("wide")[0].values()), [4, 4])
        env = self.env("wide")
        self.assertEqual((env["ALIYUN_COM_GPU_MEM_CONTAINER"], env["ALIYUN_COM_GPU_MEM_POD"]), ("4", "8"))
        self.assertEqual(len(env["ALIYUN_COM_GPU_MEM_IDX"].split(",")), 2)
        self.audit()

    def test_no_room_waits_and_says_what_there_is(self):
        """The node has room, but no single card: kube-scheduler alone would place the pod."""
        units = audit.cards_of(kube.get("node", suite.World.node))[0]["units"]
        n = suite.card_count()
        if n < 2:
            self.skipTest("needs 2 cards")
        self.run_pods(*[pod(f"full-{i}", container("main", units - 2)) for i in range(n)])
        kube.create(pod("late", container("main", 3)))
        text = kube.until("no FailedScheduling event", lambda: [
            e["message"] for e in self.events("late", "FailedScheduling") if "no card" in e["message"]])[-1]
        self.assertIn("no card has 3 GiB of gpu-mem free", text)
        kube.kubectl("delete", "pod", "full-0", "-n", kube.NAMESPACE, "--wait=false")
        self.wait_settled(["late"])
        kube.until("it does not end", lambda: not kube.get("pod", "full-0"))
        self.audit()


class Containers(suite.Scenario):
    def test_two_containers_share_a_card(self):
        self.run_pods(pod("pair", container("a", 2), container("b", 3), container("plain")))
        a = self.audit()["pair"]
        self.assertEqual(len(a.used), 1)
        self.assertNotIn("ALIYUN_COM_GPU_MEM_IDX", self.env("pair", ("plain",)))

    def init_pod(self, init, main):
        first = [container(f"init{i}", n, script=kube.REPORT) for i, n in enumerate(init)]
        self.run_pods(pod("staged", *[container(f"main{i}", n) for i, n in enumerate(main)], init=first))
        self.audit()

    def test_init_container_as_large(self):
        self.init_pod([3], [3])

    def test_init_container_smaller(self):
        self.init_pod([2], [5])

    def test_init_container_larger(self):
        self.init_pod([6], [2])

    def test_init_containers_and_two_others(self):
        self.init_pod([2, 7], [3, 2])

    def test_init_container_alone_asks(self):
        self.run_pods(pod("warm", container("main"), init=[container("init", 4, script=kube.REPORT)]))
        self.audit()

    def test_sidecar(self):
        side = container("side", 3, restartPolicy="Always")
        self.run_pods(pod("helped", container("main", 2), init=[side]))
        self.assertEqual(self.audit()["helped"].total(), 5)

    def test_sidecar_between_init_containers(self):
        init = [container("one", 4, script=kube.REPORT), container("side", 3, restartPolicy="Always"),
                container("two", 2, script=kube.REPORT)]
        self.run_pods(pod("mixed", container("main", 5), init=init))
        self.assertEqual(self.audit()["mixed"].total(), 8)

    def test_a_restart_sees_the_same(self):
        """The container ends by itself and the kubelet starts it again, with PreStart alone."""
        once = f"{kube.REPORT}; [ -e /keep/again ] && {{ trap 'exit 0' TERM; sleep 1000000 & wait; }}; touch /keep/again"
        main = container("main", 4, script=once, volumeMounts=[{"name": "keep", "mountPath": "/keep"}])
        kube.create(pod("again", main, restart="Always", volumes=[{"name": "keep", "emptyDir": {}}]))

        def restarted():
            s = self.pod("again")["status"].get("containerStatuses", [{}])[0]
            return s.get("restartCount", 0) >= 1 and "running" in s["state"]
        kube.until(lambda: kube.describe(self.pod("again")), restarted, 120)
        self.audit()


class Compute(suite.Scenario):
    mode = "core_mem"

    def test_memory_and_compute(self):
        self.run_pods(pod("both", container("main", 4, 30)))
        self.assertEqual(len(self.audit()["both"].used), 1)

    def test_two_containers_of_both(self):
        self.run_pods(pod("pair", container("a", 2, 25), container("b", 3, 45)))
        self.audit()

    def test_init_container_of_both(self):
        self.run_pods(pod("staged", container("main", 3, 20), init=[container("init", 2, 40, script=kube.REPORT)]))
        self.audit()

    def test_compute_fills_the_card_before_memory(self):
        if suite.card_count() < 2:
            self.skipTest("needs 2 cards")
        self.run_pods(pod("big", container("main", 1, 80)))
        self.run_pods(pod("more", container("main", 1, 30)))
        audits = self.audit()
        self.assertNotEqual(audits["big"].used, audits["more"].used)


class Strangers(suite.Scenario):
    """Pods that reach the node without our scheduler: the node places them."""

    def test_node_name_in_the_manifest(self):
        self.run_pods(pod("named", container("main", 4), nodeName=suite.World.node))
        self.placed("named")

    def test_bound_by_another_scheduler(self):
        kube.create(pod("foreign", container("main", 4), scheduler="none"))
        binding = {"apiVersion": "v1", "kind": "Binding", "metadata": {"name": "foreign"},
                   "target": {"apiVersion": "v1", "kind": "Node", "name": suite.World.node}}
        kube.kubectl("create", "--raw", f"/api/v1/namespaces/{kube.NAMESPACE}/pods/foreign/binding", "-f", "-",
                     stdin=json.dumps(binding))
        self.wait_settled(["foreign"])
        self.placed("foreign")

    def placed(self, name):
        kube.until(lambda: f"{name} has no place in its annotations", lambda: audit.ALLOCATION in self.pod(
            name)["metadata"].get("annotations", {}))
        self.audit()

    def test_beside_ours(self):
        self.run_pods(pod("ours", container("main", 5)), pod("named", container("main", 4), nodeName=suite.World.node),
                      pod("ours-too", container("main", 3)))
        self.placed("named")
