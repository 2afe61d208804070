# SPDX-License-Identifier: Apache-2.0
"""`aliquot local --once` from outside: local.py ALIQUOT KUBECTL_INSPECT_CGPU SOURCE_ROOT"""

import json
import os
import re
import subprocess
import sys
import tempfile
import unittest

from patience import until
from terminal import Terminal

ALIQUOT, INSPECT, ROOT = sys.argv[1:4]
SAMPLES = os.path.join(ROOT, "samples")


def node(name, cards, mode="share", annotations="", labels="", rest=""):
    return f"""
apiVersion: v1
kind: Node
metadata:
  name: {name}
  labels:
    ack.node.gpu.schedule: {mode}
{labels}
  annotations:
    aliquot.dev/simulated-cards: {cards}
{annotations}
{rest}
"""


def pod(name, mem=None, core=None, meta="", spec="", container="", namespace="default"):
    limits = "".join(f"        aliyun.com/{k}: {v}\n" for k, v in (("gpu-mem", mem), ("gpu-core.percentage", core))
                     if v is not None)
    return f"""
apiVersion: v1
kind: Pod
metadata:
  name: {name}
  namespace: {namespace}
{meta}
spec:
{spec}
  containers:
  - name: main
    image: none
{container}
    resources:
      limits:
{limits or "        cpu: 1"}
"""


def has_namespaces():
    return subprocess.run(["unshare", "-Urpmn", "--fork", "true"], capture_output=True).returncode == 0


def children_of(name):
    """Processes of that name on this machine, as (pid, parent)."""
    found = set()
    for entry in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{entry}/stat") as f:
                text = f.read()
        except OSError:
            continue
        if text[text.index("(") + 1:text.rindex(")")] == name:
            found.add(int(entry))
    return found


def command_of(pid):
    """The command line of a process; empty when the process has ended."""
    try:
        with open(f"/proc/{pid}/cmdline") as f:
            return f.read()
    except OSError:
        return ""


class Local(unittest.TestCase):
    maxDiff = None

    def setUp(self):
        self.dir = tempfile.TemporaryDirectory()
        self.addCleanup(self.dir.cleanup)
        self.count = 0

    def write(self, text):
        self.count += 1
        path = os.path.join(self.dir.name, f"m{self.count}.yaml")
        with open(path, "w") as f:
            f.write(text)
        return path

    def run_files(self, *files, options=(), status=0, stdin=None, env=None):
        args = [ALIQUOT, "local", "--once", *options]
        for f in files:
            args += ["-f", f]
        done = subprocess.run(args, capture_output=True, text=True, timeout=240, input=stdin,
                              env={"PATH": os.environ["PATH"], **(env or {})})
        self.assertEqual(done.returncode, status, f"{args}\n{done.stdout}\n{done.stderr}")
        return done

    def apply(self, *documents, options=(), status=0):
        return self.run_files(self.write("\n---\n".join(documents)), options=options, status=status)

    def sample(self, *names, options=(), status=0):
        if "--logs" in options:
            options = [*options, "--logs-timeout=100"]
        return self.run_files(*(os.path.join(SAMPLES, n) for n in names), options=options, status=status)

    def lines(self, text):
        return [line.rstrip() for line in text.splitlines()]

    def cluster(self, *documents, status=0):
        """name -> object of every pod and node in the final state."""
        done = self.apply(*documents, options=["--get", "nodes,pods"], status=status)
        return {o["metadata"]["name"]: o for o in json.loads(done.stdout)["items"]}


class Samples(Local):
    def test_frameworks(self):
        """Each of the samples alone, and all of them on the two cards of one node."""
        cards = {"pytorch": ("pytorch-train", "6 GiB, 50 %"), "vllm": ("vllm", "12 GiB, 50 %"), "triton": ("triton", "4 GiB, 20 %"),
                 "jupyter": ("jupyter-0", "4 GiB, 20 %")}
        self.assertEqual(sorted(os.listdir(os.path.join(SAMPLES, "frameworks"))), sorted(name + ".yaml" for name in ["node", *cards]))
        for names in [[name] for name in cards] + [list(cards)]:
            done = self.sample("frameworks/node.yaml", *(f"frameworks/{name}.yaml" for name in names))
            self.assertRegex(done.stderr, r"\A(aliquot local: not judged here: spec\..*; a cluster judges all: .*\n)?\Z")
            for name in names:
                self.assertRegex(done.stdout, r"(?m)^default/%s\S* +gpu-1 +gpu[01]: %s$" % cards[name])

    def test_share(self):
        done = self.sample("share/node.yaml", "share/job.yaml", options=["--logs"])
        # the second line where FUSE is missing
        self.assertRegex(done.stderr, r"\A(aliquot local: images are not used: .*\n)?(aliquot local: no simulated cards: .*\n)?\Z")
        self.assertEqual("images are not used: each command is a program of this machine, with its files\n" in done.stderr, has_namespaces())
        lines = self.lines(done.stdout)
        self.assertEqual(lines[0].split(), ["NAME", "IPADDRESS", "GPU0(Allocated/Total)", "GPU", "Memory(GiB)"])
        self.assertEqual(lines[1].split(), ["cn-beijing.192.168.1.10", "192.168.1.10", "4/16", "4/16"])
        self.assertRegex(lines[2], "^-+$")
        self.assertEqual(lines[3:5], ["Allocated/Total GPU Memory In Cluster:", "4/16 (25%)"])
        self.assertRegex(lines[7], r"^default/gpu-share-sample-[a-z0-9]{5} +cn-beijing\.192\.168\.1\.10 +gpu0: 4 GiB$")
        self.assertRegex(lines[8], r"^== default/gpu-share-sample-[a-z0-9]{5}/gpu-share-sample$")
        self.assertEqual(lines[9:14], ["ALIYUN_COM_GPU_MEM_CONTAINER=4", "ALIYUN_COM_GPU_MEM_DEV=16",
                                       "ALIYUN_COM_GPU_MEM_POD=4", "ALIYUN_COM_GPU_MEM_IDX=0",
                                       "ALIYUN_COM_GPU_MEM_UNIT=GiB"])
        self.assertRegex(lines[14], r"^NVIDIA_VISIBLE_DEVICES=GPU-[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$")
        if has_namespaces():
            self.assertEqual(lines[-3:], ["4", "16", "0.25"])

    def test_core_mem_shows_its_resources(self):
        done = self.sample("core-mem/node.yaml", options=["--get", "nodes"])
        status = json.loads(done.stdout)["items"][0]["status"]
        expected = {"aliyun.com/gpu-core.percentage": "400", "aliyun.com/gpu-count": "4", "aliyun.com/gpu-mem": "60"}
        self.assertEqual(status["capacity"], expected)
        self.assertEqual(status["allocatable"], expected)

    def test_core_mem_places(self):
        done = self.sample("core-mem/node.yaml", "core-mem/job.yaml", options=["--logs"])
        self.assertIn("2/60 (3%)", self.lines(done.stdout))
        self.assertIn("ALIYUN_COM_GPU_MEM_CONTAINER=2", self.lines(done.stdout))

    def test_registered(self):
        before = self.sample("registered/node.yaml")
        after = self.sample("registered/node.yaml", "registered/job.yaml")
        table = ["NAME                           IPADDRESS       GPU0(Allocated/Total)  GPU Memory(GiB)",
                 "cn-zhangjiakou.192.168.66.139  192.168.66.139  {0}/15                   {0}/15",
                 "-" * 75, "Allocated/Total GPU Memory In Cluster:", "{0}/15 ({1}%)"]
        self.assertEqual(self.lines(before.stdout), [t.format(0, 0) for t in table])
        self.assertEqual(self.lines(after.stdout.split("\nPOD ")[0]), [t.format(3, 20) for t in table])

    def test_unit(self):
        done = self.sample("unit/node.yaml", "unit/statefulset.yaml", options=["--logs"])
        lines = self.lines(done.stdout)
        self.assertIn("16/126 (12%)", lines)
        self.assertIn("== default/binpack-0/binpack", lines)
        self.assertIn("ALIYUN_COM_GPU_MEM_UNIT=128MiB", lines)
        self.assertTrue(lines[0].endswith("GPU Memory(128MiB)"), lines[0])

    def test_many_cards(self):
        done = self.sample("many-cards/node.yaml", "many-cards/job.yaml", options=["--logs"])
        lines = self.lines(done.stdout)
        self.assertEqual(lines[1].split()[2:], ["2/15", "2/15", "2/15", "2/15", "8/60"])
        self.assertIn("ALIYUN_COM_GPU_MEM_CONTAINER=2", lines)
        self.assertIn("ALIYUN_COM_GPU_MEM_POD=8", lines)

    def test_placement(self):
        lines = self.lines(self.sample("placement/nodes.yaml", "placement/pods.yaml").stdout)
        self.assertEqual(lines[1].split()[2:], ["5/15", "0/15", "5/30"])
        self.assertEqual(sorted(lines[2].split()[2:4]), ["2/15", "3/15"])
        fence = self.write(f"apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: unhealthy-gpu-{lines[1].split()[0]}, namespace: kube-system}}\n"
                           "data: {gpus: \"1\"}\n")
        fenced = self.lines(self.run_files(fence, os.path.join(SAMPLES, "placement/nodes.yaml")).stdout)
        self.assertEqual(fenced[-1], lines[1].split()[0] + ": GPU1 fenced")

    def test_refusals(self):
        done = self.sample("refusals/node.yaml", "refusals/pods.yaml", status=1)
        refused = dict(line.split(": ", 1) for line in done.stderr.splitlines())
        self.assertEqual(list(refused), [f"default/{n}" for n in ("percent-33", "percent-0", "percent-105", "uneven",
                                                                  "too-large", "mixed-kinds", "memory-only")])
        for name, part in (("percent-33", "is 33, must be a multiple of 5"), ("percent-0", "is 0, must be"),
                           ("percent-105", "is 105, must be"), ("uneven", "8"), ("too-large", "20"),
                           ("memory-only", "0/1 nodes are available: 1 ")):
            self.assertIn(part, refused[f"default/{name}"])
        self.assertIn("2/15 (13%)", self.lines(done.stdout))

    def test_pods_get_cards_that_they_chose(self):
        files = [node("n1", "1xTesla-V100-SXM2-16GB:16160MiB"), node("n2", "1xNVIDIA-A100-SXM4-80GB:81920MiB")]
        for name, key, value in (("a", "nvidia.com/use-gputype", "a100"), ("b", "aliquot.dev/gpu-type", "!A100"),
                                 ("c", "aliquot.dev/gpu-type", "H100")):
            files.append(pod(name, mem=2, meta=f"  annotations: {{{key}: '{value}'}}"))
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "all.yaml")
            with open(path, "w", encoding="utf-8") as file:
                file.write("---".join(files))
            done = subprocess.run([ALIQUOT, "local", "--once", "-f", path], capture_output=True, text=True, check=False)
        self.assertRegex(done.stdout, r"default/a +n2 +gpu0: 2 GiB")
        self.assertRegex(done.stdout, r"default/b +n1 +gpu0: 2 GiB")
        self.assertIn("2 node(s) have no card of type H100", done.stderr)

    def test_cluster_read_by_the_plugin(self):
        done = self.sample("placement/nodes.yaml", "placement/pods.yaml", options=["--get", "nodes,pods"])
        read = subprocess.run([INSPECT, "--from", "-"], input=done.stdout, capture_output=True, text=True, timeout=240)
        self.assertEqual(read.stdout, self.sample("placement/nodes.yaml", "placement/pods.yaml").stdout.split("\nPOD ")[0])


class Objects(Local):
    def test_resource_policy(self):
        """The units of the documents' example: two pods fill each, by cpu or by the card."""
        policy = """
apiVersion: scheduling.alibabacloud.com/v1alpha1
kind: ResourcePolicy
metadata: {name: web}
spec:
  selector: {app: web}
  units:
  - {nodeSelector: {paid: subscription}, max: 2}
  - {nodeSelector: {paid: hourly}, podLabels: {hourly: "yes"}}
"""
        units = [node(name, "1xA:16GiB", labels=f"    paid: {paid}") for name, paid in (("a", "hourly"), ("b", "subscription"), ("c", "none"))]
        for mem in (4, None):
            found = self.cluster(*units, policy, *[pod(f"p{i}", mem, meta="  labels: {app: web}") for i in range(3)])
            self.assertEqual([found[f"p{i}"]["spec"].get("nodeName") for i in range(3)], ["b", "b", "a"])
            last = found["p2"]["metadata"]
            self.assertEqual((last["labels"]["hourly"], last["annotations"]["controller.kubernetes.io/pod-deletion-cost"]), ("yes", "-100"))

    def test_annotations_of_a_placed_pod(self):
        p = self.cluster(node("n1", "2xA:16GiB"), pod("p", 4))["p"]
        a = p["metadata"]["annotations"]
        self.assertEqual(json.loads(a["scheduler.framework.gpushare.allocation"]), {"0": {"0": 4}})
        self.assertEqual(a["scheduler.framework.gpushare.assigned"], "true")
        self.assertRegex(a["scheduler.framework.gpushare.assume-time"], r"^\d{19}$")
        self.assertEqual([a[f"ALIYUN_COM_GPU_MEM_{k}"] for k in ("IDX", "DEV", "POD", "ASSIGNED")],
                         ["0", "16", "4", "true"])
        self.assertEqual(p["spec"]["nodeName"], "n1")
        self.assertEqual(p["status"]["phase"], "Running")

    def test_modes_and_labels_of_a_node(self):
        n = self.cluster(node("n1", "2xTesla-V100:16160MiB,A10:24GiB", "cgpu"))["n1"]
        self.assertEqual(n["status"]["allocatable"], {"aliyun.com/gpu-mem": "54", "aliyun.com/gpu-count": "3",
                                                      "aliyun.com/gpu-core.percentage": "0"})
        self.assertEqual(n["metadata"]["labels"]["aliyun.accelerator/nvidia_name"], "Tesla-V100")
        self.assertEqual([c["units"] for c in json.loads(n["metadata"]["annotations"]["aliquot.dev/cards"])],
                         [15, 15, 24])

    def test_node_as_it_is(self):
        done = self.apply("""
apiVersion: v1
kind: Node
metadata: {name: n1, labels: {ack.node.gpu.schedule: cgpu}}
status: {allocatable: {aliyun.com/gpu-mem: "30", aliyun.com/gpu-count: "2"}}
""", pod("p", 4))
        self.assertEqual(self.lines(done.stdout)[1].split(), ["n1", "unknown", "4/15", "0/15", "4/30"])

    def test_cards_among_the_limits_are_counted_as_kube_scheduler_does(self):
        limit = "        aliyun.com/gpu-mem: 2\n"
        pods = [pod(name, 2).replace(limit, limit + "        aliyun.com/gpu-count: 2\n") for name in "abc"]
        done = self.apply(node("n1", "4xA:16GiB"), *pods, status=1)
        self.assertEqual([line for line in done.stderr.splitlines() if "Insufficient" in line],
                         ["default/c: 0/1 nodes are available: 1 Insufficient aliyun.com/gpu-count"])
        labelled = [pod(name, 2, meta='  labels: {aliyun.com/gpu-count: "2"}') for name in "abc"]
        self.assertIn("6/64 (9%)", self.lines(self.apply(node("n1", "4xA:16GiB"), *labelled).stdout))

    def test_several_cards_are_joined_ones(self):
        two = 'labels: {aliyun.com/gpu-count: "2"}'
        linked = node("n1", "4xA:16GiB/0+2=NV2/1+3=NV2/0-3=PHB")
        objects = self.cluster(linked, *[pod(name, 32, meta="  " + two) for name in "ab"])
        cards = [json.loads(objects[name]["metadata"]["annotations"]["scheduler.framework.gpushare.allocation"])["0"]
                 for name in "ab"]
        self.assertEqual(sorted(sorted(c) for c in cards), [["0", "2"], ["1", "3"]])
        self.assertEqual([c["peers"] for c in json.loads(objects["n1"]["metadata"]["annotations"]["aliquot.dev/cards"])],
                         [[0, 10, 50, 10], [10, 0, 10, 50], [50, 10, 0, 10], [10, 50, 10, 0]])

    def test_whole_cards(self):
        """Mode topology: two cards that are joined, alone in the container's environment."""
        whole = 'resources: {limits: {aliyun.com/gpu: 2}}'
        pods = [f"""
apiVersion: v1
kind: Pod
metadata: {{name: {name}}}
spec: {{containers: [{{name: main, image: none, {whole}}}]}}
""" for name in "abc"]
        linked = node("n1", "4xA:16GiB/0+2=NV2/1+3=NV2/0-3=PHB", "topology")
        done = self.apply(linked, *pods, status=1)
        self.assertEqual(sorted(line.split(None, 2)[2] for line in done.stdout.splitlines() if line.startswith("default/")),
                         ["gpu0; gpu2", "gpu1; gpu3"])
        self.assertIn("0/1 nodes are available: 1 node(s) have fewer than 2 idle cards", done.stderr)
        n = self.cluster(linked)["n1"]
        self.assertEqual(n["status"]["allocatable"], {"aliyun.com/gpu": "4", "aliyun.com/gpu-mem": "0", "aliyun.com/gpu-count": "0",
                                                      "aliyun.com/gpu-core.percentage": "0"})
        self.assertEqual([c["units"] for c in json.loads(n["metadata"]["annotations"]["aliquot.dev/cards"])], [1] * 4)

    def test_links_that_are_none(self):
        done = self.apply(node("n1", "2xA:16GiB/0-2=NV2"), status=2)
        self.assertIn('aliquot.dev/simulated-cards: "0-2=NV2" names card 2 of 2 cards', done.stderr)

    def test_workloads(self):
        selector = "selector: {matchLabels: {app: a}}"
        template = """
  template:
    metadata: {labels: {app: a}}
    spec: {restartPolicy: %s, containers: [{name: m, image: none, resources: {limits: {aliyun.com/gpu-mem: 1}}}]}
"""
        workloads = [f"apiVersion: {api}\nkind: {kind}\nmetadata: {{name: {kind.lower()}}}\nspec:\n  {spec}{template % restart}"
                     for api, kind, spec, restart in (("apps/v1", "Deployment", f"replicas: 2\n  {selector}", "Always"),
                                                      ("apps/v1", "StatefulSet", f"replicas: 2\n  {selector}", "Always"),
                                                      ("batch/v1", "Job", "parallelism: 2", "Never"), ("apps/v1", "DaemonSet", selector, "Always"))]
        pods = [n for n, o in self.cluster(node("n1", "A:16GiB"), node("n2", "A:16GiB"), *workloads).items()
                if o["kind"] == "Pod"]
        self.assertEqual([re.sub("-[a-z0-9]{5}$", "-#", n) for n in pods],
                         ["daemonset-#"] * 2 + [re.sub("-[a-z0-9]{5}$", "-#", pods[2])] * 2 + ["job-#"] * 2 +
                         ["statefulset-0", "statefulset-1"])
        self.assertRegex(pods[2], "^deployment-[a-z0-9]{10}-[a-z0-9]{5}$")

    def test_ended_pods_hold_nothing(self):
        bound = """
  annotations: {ALIYUN_COM_GPU_MEM_IDX: "0", ALIYUN_COM_GPU_MEM_POD: "16"}"""
        ended = pod("ended", 16, meta=bound, spec="  nodeName: n1") + "status: {phase: Succeeded}\n"
        done = self.apply(node("n1", "A:16GiB"), ended, pod("new", 16))
        self.assertIn("16/16 (100%)", self.lines(done.stdout))

    def test_pod_with_a_node_of_its_own(self):
        objects = self.cluster(node("n1", "A:16GiB"), node("n2", "A:16GiB"), pod("p", 4, spec="  nodeName: n2"),
                               pod("full", 13, spec="  nodeName: n2"), pod("astray", 1, spec="  nodeName: n9"), status=1)
        self.assertEqual(json.loads(objects["p"]["metadata"]["annotations"]["scheduler.framework.gpushare.allocation"]),
                         {"0": {"0": 4}})
        self.assertEqual(objects["full"]["status"]["phase"], "Failed")

    def test_annotations_that_contradict_the_node(self):
        """Such annotations never reach a container as an empty NVIDIA_VISIBLE_DEVICES, and never
        give one slice twice."""
        def given(name, text, mem=4):
            meta = f"  annotations: {{scheduler.framework.gpushare.allocation: '{text}'}}"
            return pod(name, mem, meta=meta, spec="  nodeName: n1")

        done = self.apply(node("n1", "2xA:16GiB"), given("astray", '{"0":{"7":4}}'), given("first", '{"0":{"1":12}}', 12),
                          given("second", '{"0":{"1":12}}', 12), given("rest", '{"0":{"1":4}}'), given("garbled", '{"0":'),
                          status=1)
        self.assertEqual(self.lines(done.stderr), [
            """default/astray: the pod's annotations give it gpu7, a card that node "n1" has not""",
            """default/second: the pod's annotations give it 12 of gpu-mem on gpu1 of node "n1", """
            "where pods that run hold 12 of 16"])
        self.assertEqual(self.lines(done.stdout)[1].split(), ["n1", "unknown", "4/16", "16/16", "20/32"])

    def test_standard_input_and_lists(self):
        text = json.dumps({"apiVersion": "v1", "kind": "List", "items": [
            {"apiVersion": "v1", "kind": "Node", "metadata": {
                "name": "n1", "labels": {"ack.node.gpu.schedule": "share"},
                "annotations": {"aliquot.dev/simulated-cards": "A:16GiB"}}},
            {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": {"containers": [
                {"name": "m", "image": "x", "resources": {"limits": {"aliyun.com/gpu-mem": "2"}}}]}}]})
        self.assertIn("2/16 (12%)", self.lines(self.run_files("-", stdin=text).stdout))


class Refusals(Local):
    def refused(self, *documents):
        done = self.apply(*documents, status=1)
        self.assertEqual(len(done.stderr.splitlines()), 1, done.stderr)
        return done.stderr.rstrip("\n")

    def test_counts_nodes_and_reasons(self):
        said = self.refused(node("n1", "A:16GiB"), node("n2", "A:16GiB", rest="spec: {unschedulable: true}"),
                            node("n3", "A:16GiB", rest="spec: {taints: [{key: k, value: v, effect: NoSchedule}]}"),
                            pod("p", 2, spec="  nodeSelector: {zone: x}"))
        self.assertEqual(said, "default/p: 0/3 nodes are available: 1 node(s) didn't match Pod's node affinity/selector, "
                               "1 node(s) had untolerated taint {k: v}, 1 node(s) were unschedulable")

    def test_counts_a_node_once(self):
        said = self.refused(node("n1", "A:16GiB"), node("n2", "A:16GiB", "cgpu"), pod("p", 2, 30))
        self.assertEqual(said, "default/p: 0/2 nodes are available: "
                               "2 node(s) are not in mode core_mem, which compute percent needs")

    def test_the_nearest_node_is_named_first(self):
        """Its reason is the one that can be acted on, also where it is that of one node among many."""
        said = self.refused(*(node(f"m{i}", "A:16GiB", "cgpu") for i in range(3)), node("n1", "A:16GiB", "core_mem"),
                            node("z1", "A:8GiB", "core_mem"), pod("holds", 12, 50), pod("p", 10, 30))
        self.assertEqual(said, "default/p: 0/5 nodes are available: 1 no card has 10 GiB of gpu-mem and 30 percent of compute free, "
                               "3 node(s) are not in mode core_mem, which compute percent needs, "
                               "1 no card is large enough for 10 GiB of gpu-mem")

    def test_hides_no_reason_behind_that_of_the_others(self):
        said = self.refused(node("n1", "A:16GiB"), node("n2", "A:16GiB", "core_mem", rest="spec: {unschedulable: true}"),
                            pod("p", 2, 30))
        self.assertEqual(said, "default/p: 0/2 nodes are available: "
                               "1 node(s) are not in mode core_mem, which compute percent needs, "
                               "1 node(s) were unschedulable")

    def test_node_is_selected_by_the_labels_of_its_kubelet(self):
        """ACK's manifests select a node by kubernetes.io/hostname, a label that Node manifests
        usually lack."""
        placed = self.cluster(node("n1", "A:16GiB"), node("n2", "A:16GiB"),
                              pod("p", 2, spec="  nodeSelector: {kubernetes.io/hostname: n2, kubernetes.io/os: linux}"))
        self.assertEqual(placed["p"]["spec"]["nodeName"], "n2")
        named = self.cluster(node("n1", "A:16GiB", labels="    kubernetes.io/hostname: host-1"),
                             pod("p", 2, spec="  nodeSelector: {kubernetes.io/hostname: host-1}"))
        self.assertEqual(named["p"]["spec"]["nodeName"], "n1")

    def test_other_scheduler(self):
        self.assertEqual(self.refused(node("n1", "A:16GiB"), pod("p", 2, spec="  schedulerName: mine")),
                         'default/p: schedulerName "mine": no such scheduler here')

    def test_no_nodes(self):
        self.assertEqual(self.refused(pod("p", 2)), "default/p: no nodes available to schedule pods")

    def test_other_resources(self):
        said = self.refused(node("n1", "A:16GiB", rest="status: {allocatable: {cpu: 500m}}"), pod("p", None))
        self.assertEqual(said, "default/p: 0/1 nodes are available: 1 Insufficient cpu")

    def test_names_the_namespace(self):
        said = self.refused(node("n1", "A:16GiB"), pod("p", 17, namespace="team"))
        self.assertRegex(said, r"^team/p: .*17")

    def test_priority_goes_first(self):
        done = self.apply(node("n1", "A:16GiB"), pod("low", 10), pod("high", 10, spec="  priority: 100"), status=1)
        self.assertRegex(done.stderr, r"^default/low: [^\n]*\n$")

    def test_never_more_than_a_card(self):
        done = self.apply(node("n1", "2xA:16GiB"), *(pod(f"p{i}", 5) for i in range(8)), status=1)
        self.assertEqual(self.lines(done.stdout)[1].split()[2:], ["15/16", "15/16", "30/32"])
        self.assertEqual(len(done.stderr.splitlines()), 2)


class Input(Local):
    def broken(self, text, *parts):
        good = self.write(node("n1", "A:16GiB") + "\n---\n" + pod("q", 1))
        bad = self.write(text)
        done = self.run_files(good, bad, status=2)
        self.assertEqual(done.stdout, "")
        self.assertEqual(len(done.stderr.splitlines()), 1, done.stderr)
        for part in (bad, *parts):
            self.assertIn(part, done.stderr)

    def refused(self, text, *parts):
        """One object is wrong: it is named, and the others are placed."""
        good = self.write(node("n1", "A:16GiB") + "\n---\n" + pod("q", 1))
        bad = self.write(text)
        done = self.run_files(bad, good, status=2)
        self.assertEqual(self.lines(done.stdout)[-1].split(), ["default/q", "n1", "gpu0:", "1", "GiB"])
        self.assertEqual(len(done.stderr.splitlines()), 1, done.stderr)
        for part in ("aliquot local: ", bad, *parts):
            self.assertIn(part, done.stderr)

    def test_descriptors_that_are_closed(self):
        """A socket with the number of standard output would receive the output for people, and
        answer with SIGPIPE."""
        placed = self.write(node("n1", "A:16GiB") + "\n---\n" + pod("p", 1))
        refused = self.write(node("n1", "A:16GiB") + "\n---\n" + pod("p", 17))
        for path, closed, status in ((placed, [0], 0), (placed, [1], 3), (placed, [2], 0), (refused, [2], 1),
                                     (placed, [0, 1], 3), (placed, [0, 1, 2], 3)):
            done = subprocess.run([ALIQUOT, "local", "--once", "--logs", "-f", path], stdin=subprocess.DEVNULL,
                                  stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=240,
                                  preexec_fn=lambda: [os.close(fd) for fd in closed])
            self.assertEqual(done.returncode, status, (closed, done.stderr))
            if 1 in closed and 2 not in closed:
                self.assertIn("Bad file descriptor", done.stderr)

    def test_malformed_manifests(self):
        self.broken("a: [1", "document 1")
        self.broken("apiVersion: v1\nkind: Pod\nmetadata: {name: a}\n---\nkind: Pod\n", "document 2 (line 5)",
                    "apiVersion is missing")
        self.broken("a: 1\na: 2\n", "document 1")
        self.broken("a: b\x00\x01", "NUL byte at offset 4")
        self.broken("\x01", "document 1")
        self.broken("apiVersion: v1\nkind: Pod\n", "metadata is missing")
        self.broken("apiVersion: v1\nkind: Pod\nmetadata: {name: n}\n", "metadata.name is the boolean false, must be a string: quote it")
        self.broken("apiVersion: 1\nkind: Pod\nmetadata: {name: n}\n", "apiVersion is 1, must be a string: quote it")

    def test_texts_are_for_people(self):
        self.broken(pod("p", 99999999999999999999999), "a number is too large")
        self.broken(pod('"a\\0b"', 1), "a string has a NUL character")
        text = self.write(node("n1", "A:16GiB") + "\n---\n" + pod('"a\\e[2Jb"', 1))
        self.assertIn('"a?[2Jb"', self.run_files(text, status=2).stderr)

    def test_invalid_objects(self):
        self.refused(pod("Upper_Case", 1), "document 1", "Upper_Case", "metadata.name")
        self.refused(pod("p", 1.5), "1.5")
        self.refused(pod("p", -1), "-1")
        self.refused("apiVersion: v1\nkind: Pod\nmetadata: {name: a}\nspec: {containers: []}\n", "spec.containers")
        self.refused(node("n9", "banana"), "aliquot.dev/simulated-cards", "banana")
        self.refused("apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: d}\nspec: {replicas: -1}\n", "replicas")

    def test_the_same_object_twice(self):
        self.refused(pod("p", 1) + "\n---\n" + pod("p", 1), "document 2", "already exists")

    def test_a_folder(self):
        """Its manifests by name, and nothing else in it."""
        folder = os.path.join(self.dir.name, "folder")
        os.makedirs(folder + "/deeper.yaml.d")
        for name, text in (("b.yml", pod("b", 1)), ("a.yaml", pod("a", 2)), ("n.json", json.dumps({
                "apiVersion": "v1", "kind": "Node", "metadata": {"name": "n1", "labels": {"ack.node.gpu.schedule": "share"},
                                                                 "annotations": {"aliquot.dev/simulated-cards": "A:16GiB"}}})),
                           ("notes.txt", "no: [manifest"), ("deeper.yaml.d/c.yaml", "no: [manifest")):
            with open(os.path.join(folder, name), "w") as f:
                f.write(text)
        done = self.run_files(folder)
        self.assertEqual(done.stderr, "")
        self.assertEqual([line.split()[0] for line in self.lines(done.stdout)[-2:]], ["default/a", "default/b"])
        os.makedirs(folder + "/empty")
        self.assertIn("empty: has no .yaml, .yml or .json file", self.run_files(folder + "/empty", status=2).stderr)

    def test_missing_file(self):
        done = self.run_files("/proc/self/absent/x.yaml", status=2)
        self.assertIn("/proc/self/absent/x.yaml: cannot be read: No such file or directory", done.stderr)

    def test_utf16(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "m.yaml")
            with open(path, "wb") as f:
                f.write(pod("p", 1).encode("utf-16"))
            done = self.run_files(path, status=2)
            self.assertEqual(done.stderr, f"aliquot local: {path}: is UTF-16; save it as UTF-8\n")

    def test_other_kinds_are_passed_over(self):
        done = self.apply("apiVersion: networking.k8s.io/v1\nkind: Ingress\nmetadata: {name: i}\n",
                          node("n1", "A:16GiB"), pod("p", 1))
        self.assertRegex(done.stderr, r"^aliquot local: \S+: document 1 \(line 1\): kind Ingress is passed over, this cluster does not serve it\n$")

    def test_a_kind_of_another_group(self):
        """It is not taken for the one that this cluster serves, and the rest is applied."""
        for kind, version, ours in (("Job", "batch.volcano.sh/v1alpha1", "batch/v1"), ("Deployment", "extensions/v1beta1", "apps/v1"),
                                    ("Service", "serving.knative.dev/v1", "v1"), ("Node", "x.example/v1", "v1"), ("Pod", "x.example/v1", "v1"),
                                    ("CronJob", "x.example/v1", "batch/v1"), ("ReplicationController", "apps/v1", "v1")):
            other = f"apiVersion: {version}\nkind: {kind}\nmetadata: {{name: v}}\nspec: {{tasks: [], containers: 3}}\n"
            done = self.apply(node("n1", "A:16GiB"), other, pod("p", 1))
            self.assertIn(f"): kind {kind} is passed over, this cluster serves it as {ours} and not as {version}\n", done.stderr)
            self.assertIn("default/p", done.stdout)

    def test_fields_that_do_not_exist(self):
        """As kubectl's strict validation; none is passed over, because it could be the GPU."""
        def container(text):
            return "spec: {containers: [{name: a, image: x, " + text + "}]}"

        for spec, path, meant in (
                (container("resources: {limit: {aliyun.com/gpu-mem: 2}}"), "spec.containers[0].resources.limit", "limits"),
                (container("resource: {limits: {aliyun.com/gpu-mem: 2}}"), "spec.containers[0].resource", "resources"),
                (container("Resources: {limits: {aliyun.com/gpu-mem: 2}}"), "spec.containers[0].Resources", "resources"),
                (container("limits: {aliyun.com/gpu-mem: 2}"), "spec.containers[0].limits", None),
                (container("env: [{name: A, vaule: b}]"), "spec.containers[0].env[0].vaule", "value"),
                ("spec: {container: [{name: a, image: x}], containers: [{name: b, image: x}]}", "spec.container", "containers"),
                ("spec: {containers: [{name: a, image: x}]}\nstatu: {}", "statu", "status"),
                ("spec: {tolerations: [{keys: a}], containers: [{name: a, image: x}]}", "spec.tolerations[0].keys", "key"),
                ("spec: {volumes: [{name: v, emptyDirs: {}}], containers: [{name: a, image: x}]}", "spec.volumes[0].emptyDirs", "emptyDir")):
            done = self.apply(node("n1", "A:16GiB"), f"apiVersion: v1\nkind: Pod\nmetadata: {{name: p}}\n{spec}\n", pod("beside", 1), status=2)
            end = f"; did you mean {meant}?\n" if meant else "\n"
            self.assertRegex(done.stderr, re.escape(f'): Pod p: strict decoding error: unknown field "{path}"{end}') + "$")
            self.assertIn("default/beside", done.stdout)
        for object_, path in (("apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: d}\nspec: {replica: 2}", "spec.replica"),
                              ("apiVersion: batch/v1\nkind: Job\nmetadata: {name: d}\nspec: {template: {spec: {contaners: []}}}",
                               "spec.template.spec.contaners"),
                              ("apiVersion: v1\nkind: Node\nmetadata: {name: d, anotations: {}}", "metadata.anotations")):
            done = self.apply(object_ + "\n", status=2)
            self.assertIn(f'unknown field "{path}"; did you mean ', done.stderr)

    def test_a_dump_of_a_later_release(self):
        """A cluster has taken its objects, whose fields may be newer than the table."""
        done = self.apply(node("n1", "A:16GiB"), pod("p", 1, meta="  uid: 7c8a", spec="  newField: {a: 1}\n  ephemeralContainers: [{name: d, image: x}]"))
        self.assertEqual((done.stderr, "default/p" in done.stdout), ("", True))

    def test_what_a_cluster_refuses(self):
        for meta, spec, words in (
                ("", "  resources: {limits: {aliyun.com/gpu-mem: 2}}", 'spec.resources.limits[aliyun.com/gpu-mem]: Unsupported value: "aliyun.com/gpu-mem"'),
                ("", "  resources: {requests: {nvidia.com/gpu: 2}}", 'spec.resources.requests[nvidia.com/gpu]: Unsupported value'),
                ("  labels: {app: a b}", "", 'metadata.labels[app]: Invalid value: "a b"'),
                ("  labels: {app: -a}", "", 'metadata.labels[app]: Invalid value: "-a"'),
                (f"  labels: {{app: {'a' * 64}}}", "", "metadata.labels[app]: Invalid value"),
                ("", "  nodeSelector: {app: a/b}", 'spec.nodeSelector[app]: Invalid value: "a/b"'),
                ("", "  restartPolicy: Foo", 'spec.restartPolicy: Unsupported value: "Foo": supported values: "Always", "OnFailure", "Never"'),
                ("", "  tolerations: [{key: a, operator: Foo}]",
                 'spec.tolerations[0].operator: Unsupported value: "Foo": supported values: "Equal", "Exists"'),
                ("", "  tolerations: [{key: a}, {key: a, effect: NoStart}]", 'spec.tolerations[1].effect: Unsupported value: "NoStart"'),
                ("", "  affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: "
                 "[{matchExpressions: [{key: a, operator: Foo}]}]}}}",
                 'nodeSelectorTerms[0].matchExpressions[0].operator: Unsupported value: "Foo": supported values: "In", "NotIn", '),
                ("", "  initContainers: [{name: i, image: x, restartPolicy: always}]",
                 'spec.initContainers[0].restartPolicy: Unsupported value: "always"'),
                ("", "  tolerations: [{value: x}]", 'spec.tolerations[0].operator: Invalid value: "": operator must be Exists when `key` is empty'),
                ("", "  tolerations: [{key: a, operator: Exists, value: x}]", "spec.tolerations[0].value: Invalid value: \"x\": value must be empty"),
                *(("", "  affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: "
                   f"[{{matchExpressions: [{{{requirement}}}]}}]}}}}}}", f"nodeSelectorTerms[0].matchExpressions[0].{said}")
                  for requirement, said in (("key: a, values: [b]", "operator: Required value"), ("key: a, operator: In", "values: Required value"),
                                            ("operator: Exists", "key: Required value"), ("key: a, operator: Gt", "values: Required value"),
                                            ("key: a, operator: Exists, values: [b]", "values: Forbidden"))),
                ("  labels: {'a b': c}", "", "metadata.labels[a b]: Invalid value: \"a b\": name part must consist of"),
                ("  labels: {'/a': c}", "", "metadata.labels[/a]: Invalid value: \"/a\": prefix part must be non-empty"),
                ("  annotations: {'a/b/c': c}", "", "metadata.annotations[a/b/c]: Invalid value"),
                (f"  labels: {{{'a' * 64}: c}}", "", "name part must be no more than 63 characters"),
                ("", "  initContainers: [{name: i}]", "spec.initContainers[0].image: Required value"),
                ("", "  initContainers: [{name: i, image: ''}]", "spec.initContainers[0].image: Required value"),
                ("", "  ephemeralContainers: [{name: d, image: x}]", "spec.ephemeralContainers: Forbidden: cannot be set on create")):
            done = self.apply(node("n1", "A:16GiB"), pod("p", 1, meta=meta, spec=spec), status=2)
            self.assertIn(words, done.stderr)
        self.apply(node("n1", "A:16GiB"), pod("p", 1, meta=f"  labels: {{app: {'a' * 63}, b: '', c: A_b.c-d}}", spec="  resources: {limits: {cpu: 2}}"))

    def test_a_text_that_is_too_long(self):
        """The rule of its length, and not that of its characters."""
        text = pod("p", 1)
        for manifest, field, most in ((text.replace("name: p\n", f"name: {'a' * 254}\n"), "metadata.name", 253),
                                      (text.replace("name: main", f"name: {'a' * 64}"), "spec.containers[0].name", 63),
                                      (text.replace("namespace: default", f"namespace: {'a' * 64}"), "metadata.namespace", 63),
                                      (pod("p", 1, meta=f"  labels: {{app: {'a' * 64}}}"), "metadata.labels[app]", 63)):
            done = self.apply(node("n1", "A:16GiB"), manifest, status=2)
            self.assertRegex(done.stderr, rf' is invalid: {re.escape(field)}: Invalid value: "a+": must be no more than {most} characters\n\Z')

    def test_a_value_of_another_type(self):
        """One sentence, with the version of its kind, though the webhook and the API server both cannot read it."""
        for one, words in (
                (pod("p", 1, meta="  annotations: {aliquot.dev/gpu-type: 1}"),
                 'Pod in version "v1" cannot be handled as a Pod: metadata.annotations[aliquot.dev/gpu-type]: must be a string, is a number: quote it'),
                (pod("p", "[2]"), 'Pod in version "v1" cannot be handled as a Pod: spec.containers[0].resources.limits[aliyun.com/gpu-mem]: '
                 "must be a quantity: a string or a number"),
                ("apiVersion: batch/v1\nkind: Job\nmetadata: {name: j}\nspec: {template: {spec: {restartPolicy: Never, containers: "
                 "[{name: a, image: x, env: [{name: A, value: 1}], resources: {limits: {aliyun.com/gpu-mem: 1}}}]}}}\n",
                 'Pod in version "v1" cannot be handled as a Pod: spec.containers[0].env[0].value: must be a string, is a number: quote it'),
                ("apiVersion: scheduling.alibabacloud.com/v1alpha1\nkind: ResourcePolicy\nmetadata: {name: r, namespace: default, labels: {a: 1}}\n"
                 "spec: {selector: {app: a}, strategy: prefer, units: [{resource: ecs}]}\n",
                 'ResourcePolicy in version "v1alpha1" cannot be handled as a ResourcePolicy: metadata.labels[a]: must be a string, is a number: quote it')):
            done = self.apply(node("n1", "A:16GiB"), one, status=2)
            self.assertRegex(done.stderr, r"^aliquot local: \S+: document 2 \(line \d+\): " + re.escape(words) + "\n$")

    def test_a_kind_that_was_probably_meant(self):
        for kind, meant in (("Pods", "Pod"), ("pod", "Pod"), ("Deployement", "Deployment"), ("Role", None), ("JobSet", None)):
            done = self.apply(f"apiVersion: v1\nkind: {kind}\nmetadata: {{name: i}}\n", node("n1", "A:16GiB"))
            self.assertTrue(done.stderr.startswith("aliquot local: "), done.stderr)
            end = f"; did you mean {meant}?\n" if meant else " serve it\n"
            self.assertTrue(done.stderr.endswith(end), done.stderr)

    def test_a_mode_that_is_none(self):
        """The value and the rule, before the scheduler's reason."""
        text = ("apiVersion: v1\nkind: Node\nmetadata: {name: n1, labels: {ack.node.gpu.schedule: core-mem}, "
                "annotations: {aliquot.dev/simulated-cards: A:16GiB}}\n")
        done = self.apply(text, pod("p", 1), status=1)
        self.assertIn('Node n1: label ack.node.gpu.schedule is "core-mem", must be share, cgpu, core_mem, default, disabled,', done.stderr)

    def test_keys_of_a_node_are_judged(self):
        """In the words of its agent; each by itself, and a misspelt one."""
        for key, value, words in (
                ("aliquot.dev/policy", "9", "must be 0 to 5;"), ("aliquot.dev/max-inst", "0", "must be a whole number from 1 to 100;"),
                ("aliquot.dev/allow-mixed", "yes please", "must be true or false; false stays in force"),
                ("aliquot.dev/max-pods-per-card", "abc", "must be a whole number"), ("aliquot.dev/cordon-cards", "x", "must be indexes of cards"),
                ("aliquot.dev/prio-ratio", "1", "must be"), ("aliquot.dev/polcy", "1", "did you mean annotation aliquot.dev/policy?")):
            done = self.apply(node("n1", "A:16GiB", annotations=f'    {key}: "{value}"'), pod("p", 1))
            self.assertRegex(done.stderr, rf"^aliquot local: \S+: document 1 \(line \d+\): Node n1: annotation {re.escape(key)} .*{re.escape(words)}.*\n$")
        for cards, cordon, absent in (("A:16GiB", "9", "gpu9"), ("3xA:16GiB", "1, 3,2,7", "gpu3, gpu7")):
            done = self.apply(node("n1", cards, annotations=f'    aliquot.dev/cordon-cards: "{cordon}"'), pod("p", 1))
            self.assertIn(f'Node n1: annotation aliquot.dev/cordon-cards is "{cordon}", must be indexes of cards', done.stderr)
            self.assertIn(f": the node has no {absent}; what it says of other cards is in force\n", done.stderr)
        done = self.apply(node("n1", "2xA:16GiB", annotations='    aliquot.dev/cordon-cards: "1"'), pod("p", 1))
        self.assertEqual(done.stderr, "")
        done = self.apply(node("n1", "A:16GiB", labels="    ack.node.gpu.placement: Spread"), pod("p", 1))
        self.assertIn('Node n1: label ack.node.gpu.placement is "Spread", must be binpack or spread; binpack stays in force\n', done.stderr)

    def test_pods_are_judged_by_the_webhook(self):
        weight = "    env: [{name: ALIYUN_COM_GPU_SCHD_WEIGHT, value: x}]"
        for one, words in ((pod("p", 1, meta='  annotations: {nvidia.com/use-gputype: "A,"}'), "annotation nvidia.com/use-gputype has an empty entry"),
                           (pod("p", 1, container=weight), "container \"main\": environment ALIYUN_COM_GPU_SCHD_WEIGHT is \"x\", must be")):
            done = self.apply(node("n1", "A:16GiB", mode="cgpu"), one)
            self.assertRegex(done.stderr, r"^aliquot local: \S+: document 2 \(line \d+\): Pod p: " + re.escape(words) + ".*passed over\n$")
        job = ("apiVersion: batch/v1\nkind: Job\nmetadata: {name: j}\nspec:\n  parallelism: 3\n  template:\n    spec:\n      restartPolicy: Never\n"
               "      containers: [{name: main, image: x, env: [{name: ALIYUN_COM_GPU_SCHD_WEIGHT, value: x}], "
               "resources: {limits: {aliyun.com/gpu-mem: 1}}}]\n")
        done = self.apply(node("n1", "A:16GiB", mode="cgpu"), job)
        self.assertEqual(done.stderr.count("Job j: container \"main\": environment"), 1)

    def test_a_node_without_cards(self):
        """Its manifest names none, or misspells the name; not one of a dump, or of another mode."""
        text = "apiVersion: v1\nkind: Node\nmetadata: {name: n1, labels: {ack.node.gpu.schedule: %s}, annotations: {%s}}\n"
        for mode, annotation, words in (
                ("share", "a: b", "it has no cards: annotation aliquot.dev/simulated-cards names them, as 4xTesla-V100-SXM2-16GB:16160MiB"),
                ("topology", "a: b", "it has no cards: annotation"),
                ("share", "aliquot.dev/simulated-card: A:16GiB",
                 "annotation aliquot.dev/simulated-card is not known and changes nothing, did you mean annotation aliquot.dev/simulated-cards?")):
            self.assertIn(f"(line 1): Node n1: {words}", self.apply(text % (mode, annotation)).stderr)
        self.assertEqual(self.apply(text % ("default", "a: b")).stderr, "")
        self.assertEqual(self.apply(text % ("share", "a: b") + "status: {allocatable: {cpu: 1}}\n").stderr, "")

    def test_files_without_a_manifest(self):
        for text in "", "\n\n", "---\n---\n", "# none\n":
            self.assertEqual(self.run_files(self.write(text)).stderr, "aliquot local: the files have no manifest\n")

    def test_misspelt_keys_of_a_pod(self):
        known = "is not known and changes nothing, did you mean"
        for one, words in (
                (pod("p", 1, meta='  annotations: {aliquot.dev/gpu-memry: "3"}'), f"annotation aliquot.dev/gpu-memry {known} annotation aliquot.dev/gpu-mem?"),
                (pod("p", 1, meta="  labels: {pod-group.scheduling.sigs.k8s.io/min-availble: '3'}"),
                 f"label pod-group.scheduling.sigs.k8s.io/min-availble {known} label pod-group.scheduling.sigs.k8s.io/min-available?"),
                (pod("p", 1, container="    env: [{name: CGPU_DISABLED, value: 'true'}]"),
                 f'container "main": env CGPU_DISABLED {known} env CGPU_DISABLE?')):
            done = self.apply(node("n1", "A:16GiB", mode="cgpu"), one)
            self.assertRegex(done.stderr, r"^aliquot local: \S+: document 2 \(line \d+\): Pod p: " + re.escape(words) + "\n$")
        self.assertEqual(self.apply(node("n1", "A:16GiB"), pod("p", 1, meta='  annotations: {prometheus.io/scrape: "true"}')).stderr, "")

    def test_a_policy_is_judged_by_the_scheduler(self):
        """In the words of its Events; a policy in force, without a member that is passed over, has no line."""
        policy = ("apiVersion: scheduling.alibabacloud.com/v1alpha1\nkind: ResourcePolicy\nmetadata: {name: r, namespace: default}\n"
                  "spec: {selector: {app: a}, strategy: prefer, units: [{resource: %s, nodeSelector: {kind: a}%s}]}\n")
        head = r"^aliquot local: \S+: document 2 \(line \d+\): ResourcePolicy r: "
        for one, words in ((policy % ("ec2", ""), r'the policy is not in force: spec\.units\[0\]\.resource is "ec2", must be '),
                           (policy % ("ecs", ", max: -1"), r"the policy is not in force: spec\.units\[0\]\.max is "),
                           (policy % ("ecs", ", maxx: 1"), r"spec\.units\[0\]\.maxx is not known")):
            self.assertRegex(self.apply(node("n1", "A:16GiB"), one, pod("p", 1)).stderr, head + words + r".*\n\Z")
        self.assertEqual(self.apply(node("n1", "A:16GiB"), policy % ("ecs", ", max: 1"), pod("p", 1)).stderr, "")

    def test_a_gang_of_which_a_part_fits(self):
        """Pods are placed one by one here; what a cluster would do is said, and is the exit status."""
        def members(n, least, memory=4, gang="train"):
            labels = f"  labels: {{pod-group.scheduling.sigs.k8s.io/name: {gang}, pod-group.scheduling.sigs.k8s.io/min-available: \"{least}\"}}"
            return [pod(f"{gang}-{i}", memory, meta=labels) for i in range(n)]

        one = node("n1", "A:16GiB")
        done = self.apply(one, *members(5, 5), status=1)
        self.assertIn("default/gang train: 4 of 5 members have a node; a cluster with gangs binds none\n", done.stderr)
        done = self.apply(one, *members(3, 5), status=1)
        self.assertEqual(done.stderr.splitlines(keepends=True)[-1], "default/gang train: the gang waits for members: 3 of 5; a cluster with gangs binds none\n")
        for whole in (members(4, 4), members(4, 3), [*members(2, 2), *members(2, 2, gang="other")], members(1, "x")):
            self.assertNotIn("/gang ", self.apply(one, *whole).stderr)
        self.assertIn('Pod train-0: metadata.labels["pod-group.scheduling.sigs.k8s.io/min-available"]: is "x", must be a number from 1 to 1024\n',
                      self.apply(one, *members(1, "x")).stderr)
        self.assertNotIn("/gang ", self.apply(one, *members(5, 4), status=1).stderr)  # the fifth is by itself
        self.assertNotIn("/gang ", self.apply(one, *members(2, 2, 17), status=1).stderr)  # none is bound
        bound = pod("train-9", 4, meta="  labels: {pod-group.scheduling.sigs.k8s.io/name: train}", spec="  nodeName: n1")
        self.assertNotIn("/gang ", self.apply(one, bound, *members(4, 5), status=1).stderr)  # it was whole, perhaps

    def test_cards_of_different_size(self):
        cluster = self.cluster(node("n1", "1xA:10240MiB,1xB:20480MiB"), *(pod(f"p{n}", n) for n in (12, 10, 8, 1)), status=1)
        self.assertEqual([cluster[f"p{n}"]["metadata"].get("annotations", {}).get("ALIYUN_COM_GPU_MEM_IDX") for n in (12, 10, 8, 1)],
                         ["1", "0", "1", None])
        done = self.apply(node("n1", "1xA:10240MiB,1xB:20480MiB"), *(pod(f"p{n}", n) for n in (12, 10, 8, 1)), status=1)
        self.assertIn("default/p1: 0/1 nodes are available: 1 no card has 1 GiB of gpu-mem free", done.stderr)
        full = [pod(f"full-{i}", 24) for i in range(7)]
        done = self.apply(node("n1", "8xA:24GiB"), *full, *(pod(f"p{i}", 12) for i in range(3)), status=1)
        self.assertEqual(re.findall(r"(?m)^default/(p\d)", done.stdout), ["p0", "p1"])
        self.assertIn("default/p2: ", done.stderr)

    def test_rules_that_are_not_judged_are_named(self):
        for spec, rule in (("  affinity: {podAntiAffinity: {}}", "affinity.podAntiAffinity"), ("  affinity: {podAffinity: {}}", "affinity.podAffinity"),
                           ("  topologySpreadConstraints: [{maxSkew: 1}]", "topologySpreadConstraints"),
                           ("  priorityClassName: high", "priorityClassName"), ("  runtimeClassName: kata", "runtimeClassName"),
                           ("  serviceAccountName: mine", "serviceAccountName"),
                           ("  resourceClaims: [{name: c, resourceClaimName: x}]", "resourceClaims"),
                           ("  volumes: [{name: v, persistentVolumeClaim: {claimName: c}}]", "volumes[].persistentVolumeClaim")):
            done = self.apply(node("n1", "A:16GiB"), pod("p", 1, spec=spec))
            said = [line for line in done.stderr.splitlines() if "not judged here: spec.volumes;" not in line]
            self.assertEqual(len(said), 1)
            self.assertTrue(said[0].endswith(f"Pod p: spec.{rule} is not judged here, and can keep it off a node of a cluster"), done.stderr)
        done = self.apply(node("n1", "A:16GiB"), pod("p", 1, container="    ports: [{containerPort: 1, hostPort: 2}]"))
        self.assertIn("spec.containers[].ports[].hostPort is not judged here", done.stderr)
        for policy, said in (("restartPolicy: Always, ", 1), ("", 0)):  # kube-scheduler passes over ports of what ends
            init = "  initContainers: [{name: i, image: x, %sports: [{containerPort: 1, hostPort: 2}]}]" % policy
            done = self.apply(node("n1", "A:16GiB"), pod("p", 1, spec=init))
            self.assertEqual(done.stderr.count("spec.initContainers[].ports[].hostPort is not judged here, and can keep it off"), said, done.stderr)
        done = self.apply(node("n1", "A:16GiB"), pod("p", 1, spec="  serviceAccountName: default"))
        self.assertEqual(done.stderr, "")
        done = self.apply(node("n1", "A:16GiB"), pod("p", 1, container="    tty: true", spec="  affinity: {nodeAffinity: {}}\n  tolerations: []"))
        self.assertNotIn("spec.", done.stderr.replace("spec.containers[].tty", ""))

    def test_amounts_of_a_quota_are_not_judged(self):
        quota = "apiVersion: v1\nkind: ResourceQuota\nmetadata: {name: q}\nspec: {hard: {requests.aliyun.com/gpu-mem: 1}}\n"
        done = self.apply(node("n1", "A:16GiB"), quota, pod("p", 2))
        self.assertTrue(done.stderr.splitlines()[0].endswith("ResourceQuota q: its amounts are not judged here"), done.stderr)
        self.assertEqual(len(done.stderr.splitlines()), 1)

    def test_fields_that_only_a_cluster_judges(self):
        """One line for all manifests that were taken; none for a dump, where the cluster has judged them."""
        end = "; a cluster judges all: kubectl apply --dry-run=server -f FILE\n"
        one = pod("p", 1, container="    ports: [{containerPort: 99999}]\n    volumeMounts: [{name: v, mountPath: /v}]",
                  spec="  terminationGracePeriodSeconds: 30s")
        two = pod("q", 1, container="    ports: [{containerPort: 1}]", spec="  initContainers: [{name: i, image: x, tty: true}]")
        refused = pod("r", 1, spec="  restartPolicy: Foo\n  dnsPolicy: Foo")
        done = self.apply(node("n1", "A:16GiB"), one, two)
        self.assertEqual(done.stderr, "aliquot local: not judged here: spec.terminationGracePeriodSeconds, spec.containers[].ports, "
                         "spec.containers[].volumeMounts, spec.initContainers[].tty" + end)
        self.assertNotIn("dnsPolicy", self.apply(node("n1", "A:16GiB"), refused, status=2).stderr)
        self.assertEqual(self.apply(node("n1", "A:16GiB"), pod("p", 1, meta="  uid: u-1", spec="  dnsPolicy: Foo")).stderr, "")
        many = pod("p", 1, spec="\n".join(f"  {name}: true" for name in (
            "hostNetwork", "hostPID", "hostIPC", "shareProcessNamespace", "setHostnameAsFQDN", "automountServiceAccountToken", "enableServiceLinks")))
        self.assertEqual(self.apply(node("n1", "A:16GiB"), many).stderr.count("spec."), 6)
        job = ("apiVersion: batch/v1\nkind: Job\nmetadata: {name: j}\nspec: {template: {spec: {restartPolicy: Never, dnsPolicy: Default, "
               "containers: [{name: a, image: x}]}}}\n")
        self.assertEqual(self.apply(node("n1", "A:16GiB"), job).stderr, "aliquot local: not judged here: spec.dnsPolicy" + end)

    def test_a_cron_job_is_told_of(self):
        done = self.apply("apiVersion: batch/v1\nkind: CronJob\nmetadata: {name: c}\nspec: {}\n", node("n1", "A:16GiB"), pod("p", 1))
        self.assertIn("kind CronJob is passed over, it has no pods before its time; to try them, make a Job of its jobTemplate", done.stderr)

    def test_the_cards_column_has_the_sums_of_the_table(self):
        """A sidecar runs beside the init containers that start after it, and beside the main container."""
        def limits(mem, core):
            return f"resources: {{limits: {{aliyun.com/gpu-mem: {mem}, aliyun.com/gpu-core.percentage: {core}}}}}"

        sidecar, init = f"{{name: s, image: x, restartPolicy: Always, {limits(3, 10)}}}", f"{{name: i, image: x, {limits(10, 40)}}}"
        for inits, mem, core in (((sidecar, init), 13, 50), ((init, sidecar), 10, 40), ((sidecar,), 8, 30), ((init,), 10, 40)):
            spec = f"  initContainers: [{', '.join(inits)}]"
            done = self.apply(node("n1", "A:16GiB", mode="core_mem"), pod("p", 5, 20, spec=spec))
            self.assertIn(f" {mem}/16 ", self.lines(done.stdout)[1] + " ")
            self.assertRegex(done.stdout, rf"default/p +n1 +gpu0: {mem} GiB, {core} %\n")

    def test_the_view_for_a_terminal(self):
        """A row per card, and no line wider than the terminal: by default on one, and with -o cards. Elsewhere the older tools' table."""
        manifests = self.write("\n---\n".join([node("a-node-with-a-rather-long-name-1", "8xTesla-V100-SXM2-16GB:16160MiB", mode="core_mem"),
                                               pod("a-pod-with-a-rather-long-name", 3, 30), pod("p", 2, 15)]))
        command = [ALIQUOT, "local", "--once", "-f", manifests]
        table = self.run_files(manifests).stdout
        self.assertEqual(table, self.run_files(manifests, options=["-o", "table"]).stdout)
        self.assertGreater(max(map(len, table.splitlines())), 180)
        for width in (60, 80, 132):
            terminal = Terminal(command, width)
            self.addCleanup(terminal.close)
            status, text, errors = terminal.end()
            self.assertEqual((status, errors), (0, ""))
            plain = re.sub(r"\x1b\[[0-9;]*m", "", text)
            self.assertLessEqual(max(map(len, plain.splitlines())), width, plain)
            self.assertRegex(plain, r"1 node, 8 cards: allocated 5/120 GiB \(4%\), compute 45/800%")
            self.assertRegex(plain, r"(?m)^POD +NODE +CARDS$")
            self.assertRegex(plain, r"(?m)^default/p +a-node\S+ +gpu0: 2 GiB, 15 %$")
            piped = self.run_files(manifests, options=["-o", "cards"], env={"COLUMNS": str(width), "LANG": "C.UTF-8"}).stdout
            self.assertEqual(piped, plain)
            terminal = Terminal([*command, "-o", "table"], width)
            self.addCleanup(terminal.close)
            self.assertEqual(terminal.end()[1], table)
        self.assertIn('--output is "wide", must be cards or table; see', self.run_files(manifests, options=["-o", "wide"], status=2).stderr)

    def test_who_is_on_which_card(self):
        done = self.apply(node("n1", "A:16GiB", mode="core_mem"), node("n2", "A:16GiB", annotations="    aliquot.dev/gpu-mem-unit: 128MiB"),
                          pod("plain"), pod("core", 3, 30, spec="  nodeName: n1"), pod("unit", 16, spec="  nodeName: n2"),
                          pod("none", 999), status=1)
        at = done.stdout.index("\nPOD ")
        self.assertEqual([line.split(maxsplit=2) for line in self.lines(done.stdout[at + 1:])],
                         [["POD", "NODE", "CARDS"], ["default/core", "n1", "gpu0: 3 GiB, 30 %"], ["default/unit", "n2", "gpu0: 16 x 128MiB"]])

    def test_wrong_usage(self):
        for args in (["local"], ["local", "--once"], ["local", "-f", "x"], ["local", "--once", "--what"],
                     ["local", "--once", "-f", "x", "word"], ["local", "--once", "--logs-timeout=0", "-f", "x"]):
            done = subprocess.run([ALIQUOT, *args], capture_output=True, text=True, timeout=240)
            self.assertEqual(done.returncode, 2, args)
            self.assertEqual(done.stdout, "")
            self.assertTrue(done.stderr)
        done = self.apply(node("n1", "A:16GiB"), options=["--get", "bananas"], status=2)
        self.assertIn("--get bananas: no such resource here", done.stderr)
        done = self.apply(node("n1", "A:16GiB"), options=["--get", "services"])
        self.assertEqual(done.stderr, "aliquot local: --get services: there are none; no manifest has one\n")

    def test_hostile_annotations_do_not_break_the_sums(self):
        meta = """
  annotations:
    scheduler.framework.gpushare.allocation: '{"0":{"999999":4294967295}}'
    ALIYUN_COM_GPU_MEM_IDX: "-7"
"""
        done = self.apply(node("n1", "A:16GiB"), pod("hostile", 4, meta=meta, spec="  nodeName: n1"), pod("p", 4))
        self.assertRegex(done.stdout, r"(?m)^8/16")

    def test_full_output_is_an_error(self):
        path = self.write(node("n1", "A:16GiB"))
        with open("/dev/full", "w") as full:
            done = subprocess.run([ALIQUOT, "local", "--once", "-f", path], stdout=full, stderr=subprocess.PIPE,
                                  text=True, timeout=240)
        self.assertEqual(done.returncode, 3)
        self.assertIn("No space left", done.stderr)
        for word in ("--help", "--version"):
            with open("/dev/full", "w") as full:
                self.assertEqual(subprocess.run([ALIQUOT, word], stdout=full, timeout=240).returncode, 3, word)


class Containers(Local):
    @unittest.skipUnless(has_namespaces(), "no namespaces here")
    def test_working_directory(self):
        """One that cannot be entered is told of, and the command runs."""
        script = "    command: [sh, -c, pwd]\n    workingDir: "
        logs = self.logs(pod("usr", 1, container=script + "/usr"), pod("app", 1, container=script + "/proc/self/absent"))
        self.assertEqual(logs["default/usr/main"][-1], "/usr")
        self.assertEqual(logs["default/app/main"][-2:],
                         ["(workingDir /proc/self/absent of this machine: No such file or directory; the command runs in /)", "/"])

    def logs(self, *documents, options=("--logs-timeout=100",), status=0):
        out = self.apply(node("n1", "2xA:16GiB"), *documents, options=["--logs", *options], status=status).stdout
        parts = re.split(r"^== (.*)$", out, flags=re.M)[1:]
        return {parts[i]: self.lines(parts[i + 1])[1:] for i in range(0, len(parts), 2)}

    def test_order_and_environment(self):
        env = "    env: [{name: NVIDIA_VISIBLE_DEVICES, value: all}, {name: CGPU_DISABLE, value: 'true'}]"
        logs = self.logs(pod("b", 3), pod("a", 2, container=env), pod("z", 1, namespace="alpha"), pod("plain"))
        self.assertEqual(list(logs), ["alpha/z/main", "default/a/main", "default/b/main", "default/plain/main"])
        self.assertEqual(logs["default/a/main"][5:7], ["NVIDIA_VISIBLE_DEVICES=all", "CGPU_DISABLE=true"])
        self.assertEqual(logs["default/b/main"][0], "ALIYUN_COM_GPU_MEM_CONTAINER=3")
        if has_namespaces():
            self.assertEqual(logs["default/plain/main"],
                             ["(no command in the manifest; the container only holds its slice)"])

    @unittest.skipUnless(has_namespaces(), "no namespaces here")
    def test_commands(self):
        command = "    command: [sh, -c, '{}']\n    args: [{}]"
        logs = self.logs(
            pod("ok", 1, container=command.format("echo \"$0 $1\"; hostname", '"$(ALIYUN_COM_GPU_MEM_DEV)", "$$(X)"')),
            pod("fails", 1, container=command.format("exit 4", "")),
            pod("nowhere", 1, container="    command: [no-such-program]"))
        self.assertEqual(logs["default/ok/main"][6:], ["16 $(X)", "ok"])
        self.assertEqual(logs["default/fails/main"][6:], ["(exited with 4)"])
        self.assertEqual(logs["default/nowhere/main"][6:],
                         ["(no-such-program: not on this machine; the container only holds its slice)"])
        logs = self.logs(pod("forever", 1, container=command.format("echo on; sleep 1000", "")), options=["--logs-timeout=10"])
        self.assertEqual(logs["default/forever/main"][6:], ["on", "(still running after 10 s; stopped)"])

    @unittest.skipUnless(has_namespaces(), "no namespaces here")
    def test_init_containers(self):
        def init(code):
            return f"""  initContainers:
  - {{name: one, image: none, command: [sh, -c, 'echo first; exit {code}']}}
  - {{name: two, image: none, command: [sh, -c, 'echo second']}}"""
        main = "    command: [sh, -c, 'echo third']"
        logs = self.logs(pod("good", 1, spec=init(0), container=main), pod("bad", 1, spec=init(1), container=main))
        self.assertEqual(list(logs), [f"default/{p}/{c}" for p in ("bad", "good") for c in ("one", "two", "main")])
        self.assertEqual(logs["default/good/main"][-1], "third")
        self.assertEqual(logs["default/bad/one"], ["first", "(exited with 1)"])
        self.assertEqual(logs["default/bad/two"], ["(not started: an init container did not succeed)"])

    @unittest.skipUnless(has_namespaces(), "no namespaces here")
    def test_nothing_is_left_behind(self):
        seconds = f"98{os.getpid():07}"  # this test may run twice at the same time
        self.logs(pod("p", 1, container=f"    command: [sh, -c, 'setsid sleep {seconds} & sleep {seconds}']"),
                  options=["--logs-timeout=1"])
        until(lambda: not any(seconds in command_of(pid) for pid in children_of("sleep")), "the end of its processes")


class Repeats(Local):
    def test_twenty_runs_say_the_same(self):
        nodes = [node(f"n{i}", "2xA:16GiB", labels=f"    ack.node.gpu.placement: {'spread' if i % 2 else 'binpack'}")
                 for i in range(4)]
        pods = [pod(f"p{i}", 1 + i * 7 % 9) for i in range(40)]
        path = self.write("\n---\n".join(nodes + pods))
        first = None
        for _ in range(20):
            done = subprocess.run([ALIQUOT, "local", "--once", "-f", path], capture_output=True, text=True, timeout=240)
            said = (done.returncode, done.stdout, done.stderr)
            first = first or said
            self.assertEqual(said, first)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
