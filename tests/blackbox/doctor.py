# SPDX-License-Identifier: Apache-2.0
"""`aliquot doctor` on a machine, on a node with an agent and a kubelet, and in a cluster that a small server plays:
doctor.py ALIQUOT STORE_SERVER CLOCK_SHIM NVML"""

import contextlib
import http.server
import json
import os
import shutil
import subprocess
import sys
import tempfile
import threading
import time

NVML = os.path.abspath(sys.argv.pop(4))

from node_case import ALIQUOT, TWO_CARDS, Node  # noqa: E402
from node_lab import container, pod  # noqa: E402
from grpc_process import run_tests  # noqa: E402

SYSTEM = "/api/v1/namespaces/kube-system"
EXTENDER = f"{SYSTEM}/services/aliquot-scheduler:12347/proxy"
ADMISSION = "/apis/admissionregistration.k8s.io/v1"
MACHINE = ["kernel", "driver", "devices", "uvm", "nvml", "cards", "locks", "slices", "outside", "library", "selinux"]
LOCAL = ["kubelet", "kubelet-policy", "runtime", "cdi", "run-shared", "agent", "records", "other-plugin"]


def utc(ago=0):
    return time.strftime("%Y-%m-%dT%H:%M:%S.000000Z", time.gmtime(time.time() - ago))


def write(root, path, text=""):
    full = root + path
    os.makedirs(os.path.dirname(full), exist_ok=True)
    with open(full, "w", encoding="utf-8") as f:
        f.write(text)


class Root:
    """The root of a machine with two cards, as far as the checks look at it."""

    def __init__(self, lab=None):
        self.path = tempfile.mkdtemp(prefix="aliquot-doctor-")
        for name in "nvidiactl", "nvidia0", "nvidia1", "nvidia-uvm":
            write(self.path, f"/dev/{name}")
        self.driver("580.95.05")
        for card in "0000:10:00.0", "0000:11:00.0":
            os.makedirs(f"{self.path}/proc/driver/nvidia/gpus/{card}")
        write(self.path, "/proc/filesystems", "nodev\tproc\n")
        write(self.path, "/proc/1/mountinfo", "1 0 8:1 / / rw shared:1 - ext4 /dev/sda rw\n")
        write(self.path, "/run/containerd/containerd.sock")
        write(self.path, "/etc/containerd/config.toml", "version = 2\nenable_cdi = true\n")
        write(self.path, "/nvml", "".join(f"card GPU-{i} {i} 16160 {16 + i:x} Tesla V100\n" for i in range(2)) + "driver 580.95.05\n")
        if lab:
            os.makedirs(self.path + "/var/lib")
            os.symlink(lab.kubelet_dir, self.path + "/var/lib/kubelet")
            os.symlink(lab.state, self.path + "/var/lib/aliquot")
            os.makedirs(self.path + "/var/run")
            os.symlink(lab.cdi, self.path + "/var/run/cdi")
            write(self.path, "/var/lib/kubelet/config.yaml", "kind: KubeletConfiguration\ncpuManagerPolicy: none\n")

    def driver(self, version):
        write(self.path, "/proc/driver/nvidia/version", f"NVRM version: NVIDIA UNIX x86_64 Kernel Module  {version}  Thu Oct 19\n")

    def remove(self):
        shutil.rmtree(self.path, ignore_errors=True)


def doctor(*arguments, root=None, env=None):
    """The process, with its report by name of the check."""
    folder = tempfile.mkdtemp(prefix="aliquot-doctor-lib-")
    os.symlink(NVML, f"{folder}/libnvidia-ml.so.1")
    kept = {key: value for key, value in os.environ.items() if not key.startswith(("KUBE", "ALIQUOT_S"))}
    patience = [] if "--timeout" in arguments else ["--timeout", "60"]  # of each question, on a busy machine
    command = [ALIQUOT, "doctor", "-o", "json", *(["--root", root.path] if root else []), *patience, *arguments]
    try:
        p = subprocess.run(command, capture_output=True, text=True, timeout=240, check=False, stdin=subprocess.DEVNULL,
                           env=kept | {"LD_LIBRARY_PATH": folder, "HOME": folder, "FAKE_NVML": f"{root.path}/nvml" if root else ""} | (env or {}))
    finally:
        shutil.rmtree(folder)
    p.checks = {c["name"]: c for c in json.loads(p.stdout)["checks"]} if p.stdout.startswith("{") else {}
    return p


class Case(Node):
    def root(self, lab=None):
        root = Root(lab)
        self.addCleanup(root.remove)
        return root

    def results(self, p, *names):
        return {name: p.checks[name]["result"] for name in names} if names else {n: c["result"] for n, c in p.checks.items()}

    def all_ok(self, p, names):
        self.assertEqual(p.stderr, "")
        self.assertEqual({n: (c["result"], c["reason"]) for n, c in p.checks.items() if c["result"] != "ok"}, {})
        self.assertEqual((p.returncode, list(p.checks)), (0, names))


class Machine(Case):
    def test_healthy(self):
        p = doctor("machine", root=self.root())
        self.all_ok(p, MACHINE)
        self.assertIn("NVML answers, with 2 cards", p.checks["nvml"]["reason"])

    def test_found_by_itself(self):
        self.assertEqual(list(doctor(root=self.root()).checks), MACHINE)

    def test_files_that_selinux_keeps_from_containers(self):
        root = self.root()
        library = "/var/lib/aliquot/inside/libaliquot.so"
        write(root.path, library)
        for kernel, label, result in (("nodev\tproc\n", "u:r:t:s0", "ok"), ("nodev\tselinuxfs\n", "kernel", "ok"),
                                      ("nodev\tselinuxfs\n", "u:r:t:s0", "FAIL")):
            write(root.path, "/proc/filesystems", kernel)
            write(root.path, "/proc/self/attr/current", label)
            found = doctor("machine", root=root).checks["selinux"]
            self.assertEqual(found["result"], result, found)
        self.assertIn(f"SELinux is on, and {root.path}{library} has not the label", found["reason"])

    def test_without_a_driver(self):
        root = self.root()
        shutil.rmtree(root.path + "/dev")
        shutil.rmtree(root.path + "/proc/driver")
        p = doctor(root=root)
        self.assertEqual(p.returncode, 1)
        self.assertEqual(self.results(p, "driver", "devices", "uvm", "nvml", "locks"),
                         {"driver": "FAIL", "devices": "FAIL", "uvm": "FAIL", "nvml": "skipped", "locks": "skipped"})
        self.assertIn("modprobe nvidia", p.checks["driver"]["remedy"])

    def test_driver(self):
        root = self.root()
        root.driver("525.60.13")
        p = doctor("machine", root=root)
        self.assertEqual((p.returncode, self.results(p, "driver", "nvml")), (1, {"driver": "FAIL", "nvml": "FAIL"}))
        self.assertIn("NVML is of driver 580.95.05, and the loaded one is 525.60.13", p.checks["nvml"]["reason"])

    def test_warnings_only(self):
        root = self.root()
        root.driver("900.1")
        write(root.path, "/nvml", "card GPU-0 0 16160 10 Tesla V100\ncard GPU-1 1 16160 11 Tesla V100\ndriver 900.1\n")
        p = doctor("machine", root=root)
        self.assertEqual((p.returncode, self.results(p, "driver", "nvml")), (4, {"driver": "warn", "nvml": "ok"}))

    def test_a_card_is_missing(self):
        root = self.root()
        os.unlink(root.path + "/dev/nvidia1")
        self.assertIn("the driver has 2 cards", doctor("machine", root=root).checks["devices"]["reason"])

    def test_driver_hangs(self):
        root = self.root()
        write(root.path, "/nvml", "card GPU-0 0 16160 10 Tesla V100\nhang init *\n")
        p = doctor("machine", "--timeout", "1", root=root)
        self.assertEqual((p.returncode, self.results(p, "nvml", "cards")), (1, {"nvml": "FAIL", "cards": "skipped"}))
        self.assertIn("does not answer in time", p.checks["nvml"]["reason"])

    def test_driver_crashes(self):
        root = self.root()
        write(root.path, "/nvml", "card GPU-0 0 16160 10 Tesla V100\ncrash init *\n")
        self.assertIn("has ended", doctor("machine", root=root).checks["nvml"]["reason"])

    def test_mig(self):
        root = self.root()
        write(root.path, "/nvml", "card GPU-0 0 16160 10 Tesla V100\nmig 0\n")
        p = doctor("machine", root=root)
        self.assertEqual(p.checks["cards"]["result"], "FAIL")
        self.assertIn("MIG", p.checks["cards"]["reason"])

    def test_a_card_that_nvml_cannot_open(self):
        root = self.root()
        for cards in 1, 2:
            write(root.path, "/nvml", "".join(f"card GPU-{i} {i} 16160 1{i} Tesla V100\n" for i in range(cards)) + f"fail handle {cards - 1} 15\n")
            p = doctor("machine", root=root)
            self.assertEqual(p.checks["cards"], {**p.checks["cards"], "result": "FAIL", "reason":
                                                 f"gpu{cards - 1}: NVML cannot tell its handle: GPU is lost"})

    def test_text(self):
        root = self.root()
        os.unlink(root.path + "/dev/nvidia-uvm")
        p = subprocess.run([ALIQUOT, "doctor", "machine", "--root", root.path], capture_output=True, text=True, timeout=240, check=False)
        self.assertRegex(p.stdout, r"(?s)\Amachine\n  ok       kernel +Linux .*\n  FAIL     uvm +\S+/nvidia-uvm is not there.*\n +-> modprobe nvidia-uvm")
        self.assertRegex(p.stdout, r"\n\d+ ok, \d+ warn, \d+ FAIL, \d+ skipped\n\Z")
        self.assertNotIn("\033", p.stdout)

    def test_usage(self):
        for arguments, text in ((["clutser"], '"clutser" is nothing to check, must be machine, node or cluster'),
                                (["--root", "x"], '--root is "x", must be a path from the root'),
                                (["--server", "x"], '--server is "x", must be the URL of kubectl proxy: http://127.0.0.1:8001'),
                                (["--timeout", "0"], '--timeout is "0", must be a whole number from 1 to 300')):
            p = doctor(*arguments)
            self.assertEqual((p.returncode, p.stderr), (2, f"aliquot doctor: {text}; see `aliquot doctor --help`\n"))


class OnNode(Case):
    def node(self):
        lab = self.lab(cards=TWO_CARDS)
        self.place(lab, pod("a", container("main", 2, 30)), 1)
        lab.wait_phase("a", "Running")
        return lab, self.root(lab)

    def test_node(self):
        """Agent, kubelet and pod are there; then each of them is spoilt."""
        lab, root = self.node()
        p = doctor(root=root, env={"ALIQUOT_SLICES": lab.slices})
        # the agent here gives a file of the test to its containers, and not the library
        self.assertEqual(p.checks.pop("library")["result"], "warn")
        self.assertEqual({n: (c["result"], c["reason"]) for n, c in p.checks.items() if c["result"] != "ok"}, {})
        self.assertEqual(list(p.checks), [name for name in MACHINE if name != "library"] + LOCAL)
        self.assertIn("2 containers' devices", p.checks["records"]["reason"].replace("1 c", "2 c"))
        self.spoil_records(lab, root)
        self.spoil_configuration(root)
        lab.agent.stop()
        lab.kubelet.stop()
        p = doctor("node", "--timeout", "1", root=root)
        self.assertEqual(p.returncode, 1)
        self.assertEqual(self.results(p, "agent", "kubelet", "records"), {"agent": "FAIL", "kubelet": "FAIL", "records": "skipped"})

    def spoil_records(self, lab, root):
        lab.wait(lambda: len(self.records(lab)) == 1, "one record")
        ((name, record),) = self.records(lab).items()

        def records_with(text):
            """What doctor says of this text in place of the record, None: of none. The agent may write
            its record once more, with what it has seen of the container: then it is asked again."""
            for _ in range(20):
                if text is None:
                    os.unlink(f"{lab.state}/records/{name}")
                else:
                    write(f"{lab.state}/records/", name, text)
                check = doctor("node", root=root).checks["records"]
                if self.records(lab).get(name) == text:
                    return check
            raise AssertionError("the agent writes the record again and again")

        self.assertEqual(records_with(record.replace('1-0', '0-0', 1))["result"], "FAIL", record)
        self.assertIn("and no record", records_with(None)["reason"])
        self.assertEqual(records_with("{nonsense")["result"], "skipped")
        self.assertEqual(records_with(record)["result"], "ok")
        # Earlier pods of this name were deleted by force, and live on. Files have any order.
        for i in range(8):
            write(f"{lab.state}/records/", f"old-{i}.json", record.replace('1-0', f'0-{i}', 1))
        check = doctor("node", root=root).checks["records"]
        self.assertEqual(check["result"], "ok", check)

    @staticmethod
    def records(lab):
        """The agent's records of pods: name -> text."""
        found = {}
        for name in os.listdir(f"{lab.state}/records"):
            with contextlib.suppress(FileNotFoundError), open(f"{lab.state}/records/{name}", encoding="utf-8") as f:
                found[name] = f.read()
        return found

    def spoil_configuration(self, root):
        write(root.path, "/etc/containerd/config.toml", "enable_cdi = false\n")
        write(root.path, "/proc/1/mountinfo", "1 0 8:1 / / rw - ext4 /dev/sda rw\n")
        write(root.path, "/var/lib/kubelet/config.yaml", "cpuManagerPolicy: static\n")
        write(root.path, "/var/lib/kubelet/device-plugins/nvidia-gpu.sock")
        p = doctor("node", root=root)
        self.assertEqual(self.results(p, "cdi", "run-shared", "kubelet-policy", "other-plugin"),
                         {"cdi": "FAIL", "run-shared": "FAIL", "kubelet-policy": "FAIL", "other-plugin": "FAIL"})
        write(root.path, "/var/lib/kubelet/config.yaml", "a: [\n")
        self.assertEqual(doctor("node", root=root).returncode, 1)


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        path = self.path.split("?")[0]
        self.server.asked.append(path)
        status, body = self.server.answers.get(path, (404, {"kind": "Status", "code": 404, "reason": "NotFound", "message": "no such object"}))
        if self.server.status:
            status, body = self.server.status, {"kind": "Status", "code": self.server.status, "reason": "Forbidden", "message": "cannot create resource"}
        if body is None:
            self.server.over.wait(30)
            return
        data = body.encode() if isinstance(body, str) else json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def do_POST(self):
        self.rfile.read(int(self.headers["Content-Length"]))
        self.do_GET()

    def date_time_string(self, timestamp=None):
        return super().date_time_string(time.time() + self.server.skew)

    def log_message(self, *args):
        pass


class Server(http.server.ThreadingHTTPServer):
    request_queue_size = 64  # all questions come at once


class Cluster:
    """An API server with one sharing node, on which all is well."""

    def __init__(self, ca):
        self.server = Server(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.server.answers, self.server.asked, self.server.status, self.server.skew = self.healthy(ca), [], 0, 0
        self.server.over = threading.Event()
        self.answers = self.server.answers
        threading.Thread(target=self.server.serve_forever, args=(0.05,), daemon=True).start()

    @property
    def url(self):
        return "http://127.0.0.1:%d" % self.server.server_address[1]

    @staticmethod
    def healthy(ca):
        def own(name, component, *containers):
            return {"metadata": {"name": name, "namespace": "kube-system",
                                 "ownerReferences": [{"kind": "ReplicaSet", "name": "aliquot-scheduler-5d4f8"}],
                                 "labels": {"app.kubernetes.io/name": "aliquot", "app.kubernetes.io/component": component}},
                    "spec": {"nodeName": "n1", "containers": [{"name": c, "image": "aliquot:1"} for c in containers]},
                    "status": {"conditions": [{"type": "Ready", "status": "True"}],
                               "containerStatuses": [{"name": c, "ready": True} for c in containers]}}

        def slice_of(service):
            return {"metadata": {"labels": {"kubernetes.io/service-name": service}}, "endpoints": [{"conditions": {"ready": True}}]}
        webhook = {"webhooks": [{"name": "pods.aliquot.dev", "clientConfig": {"caBundle": ca}}]}
        node = {"metadata": {"name": "n1", "uid": "u", "labels": {"ack.node.gpu.schedule": "core_mem"}, "annotations": {}},
                "status": {"allocatable": {"aliyun.com/gpu-mem": "30"}, "conditions": [{"type": "Ready", "status": "True"}],
                           "nodeInfo": {"containerRuntimeVersion": "containerd://2.1.0"}}}
        return {
            "/version": (200, {"major": "1", "minor": "36", "gitVersion": "v1.36.2"}),
            "/api/v1/nodes": (200, {"items": [node, {"metadata": {"name": "other", "uid": "v"}}]}),
            f"{SYSTEM}/pods": (200, {"items": [
                own("agent-1", "node", "aliquot-node"), own("scheduler-1", "scheduler", "aliquot-scheduler", "kube-scheduler")]}),
            "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/aliquot-scheduler": (200, {"spec": {
                "holderIdentity": "scheduler-1_11112222-3333-4444-5555-666677778888", "leaseDurationSeconds": 15, "renewTime": utc(1)}}),
            "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases": (200, {"items": [
                {"metadata": {"name": "n1"}, "spec": {"renewTime": utc(5)}}]}),
            "/apis/discovery.k8s.io/v1/namespaces/kube-system/endpointslices": (200, {"items": [
                slice_of("aliquot-scheduler"), slice_of("aliquot-webhook")]}),
            f"{EXTENDER}/readyz": (200, "ok\n"),
            f"{EXTENDER}/metrics": (200, f"aliquot_scheduler_webhook_certificate_end_seconds {int(time.time()) + 8640000}\n"),
            f"{ADMISSION}/mutatingwebhookconfigurations/aliquot": (200, webhook),
            f"{ADMISSION}/validatingwebhookconfigurations/aliquot": (200, webhook),
            "/apis/networking.k8s.io/v1/namespaces/kube-system/networkpolicies": (200, {"items": [{"metadata": {"name": "aliquot-scheduler"}}]}),
            "/api/v1/namespaces/default/events": (200, {"items": []}),
            "/api/v1/namespaces/default/pods": (201, {"spec": {"schedulerName": "ack-co-scheduler"}}),
            "/api/v1/nodes/n1/proxy/configz": (200, {"kubeletconfig": {"cpuManagerPolicy": "none"}}),
            f"{SYSTEM}/pods/agent-1:9445/proxy/readyz": (200, "ok\n"),
        }

    def stop(self):
        self.server.over.set()
        self.server.shutdown()
        self.server.server_close()


def make_ca():
    """A CA in base64, or a reason why there is none."""
    with tempfile.TemporaryDirectory() as folder:
        p = subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-subj", "/CN=ca",
                            "-days", "30", "-keyout", f"{folder}/key", "-out", f"{folder}/cert"], capture_output=True, check=False)
        p = subprocess.run(["base64", "-w0", f"{folder}/cert"], capture_output=True, text=True, check=p.returncode == 0)
        return p.stdout


class InCluster(Case):
    @classmethod
    def setUpClass(cls):
        cls.ca = make_ca()

    def cluster(self):
        cluster = Cluster(self.ca)
        self.addCleanup(cluster.stop)
        return cluster

    def ask(self, cluster, *more):
        return doctor("cluster", "--server", cluster.url, *more)

    def test_healthy(self):
        cluster = self.cluster()
        p = self.ask(cluster)
        self.assertEqual({n: (c["result"], c["reason"]) for n, c in p.checks.items() if c["result"] != "ok"}, {})
        self.assertEqual((p.returncode, p.stderr), (0, ""))
        self.assertEqual(sorted(set(cluster.server.asked)), sorted(cluster.answers), "each question, and no other")

    def test_a_namespace_of_its_own(self):
        """The webhook's configuration, which only administrators write, names it."""
        cluster = self.cluster()
        answers = json.loads(json.dumps(cluster.answers).replace("kube-system", "gpus"))
        for kind in "mutating", "validating":
            answers[f"{ADMISSION}/{kind}webhookconfigurations/aliquot"][1]["webhooks"][0]["clientConfig"]["service"] = {"namespace": "gpus"}
        cluster.answers.clear()
        cluster.answers.update(answers)
        p = self.ask(cluster)
        self.assertEqual({n: (c["result"], c["reason"]) for n, c in p.checks.items() if c["result"] != "ok"}, {})
        self.assertEqual(sorted(set(cluster.server.asked)), sorted(cluster.answers), "each question, and no other")
        cluster.answers["/api/v1/namespaces/gpus/services/aliquot-scheduler:12347/proxy/readyz"] = (503, "not yet")
        p = self.ask(cluster)
        self.assertIn("kubectl -n gpus ", " ".join(c.get("remedy", "") for c in p.checks.values()))
        self.assertNotIn("kube-system", json.dumps(p.checks))

    def test_one_fault_each(self):
        slices = "/apis/discovery.k8s.io/v1/namespaces/kube-system/endpointslices"
        for path, answer, check, result, text in (
                ("/api/v1/nodes/n1/proxy/configz", (200, {"kubeletconfig": {"cpuManagerPolicy": "static"}}), "kubelet-policies", "FAIL", "static"),
                (f"{SYSTEM}/pods", (200, {"items": []}), "agents", "FAIL", "n1 has no node agent"),
                (f"{ADMISSION}/mutatingwebhookconfigurations/aliquot", (404, {}), "webhook", "FAIL", "there is no Mutating"),
                ("/api/v1/namespaces/default/pods", (500, {"kind": "Status", "code": 500, "message": "failed calling webhook"}), "admission", "FAIL",
                 "failed calling webhook"),
                ("/apis/networking.k8s.io/v1/namespaces/kube-system/networkpolicies", (200, {"items": []}), "network", "FAIL", "no NetworkPolicy"),
                ("/api/v1/namespaces/default/events", (200, {"items": [{
                    "reason": "GPUMemoryUnaccounted", "involvedObject": {"name": "n1"}, "message": "4000 MiB are no pod's; they may be with d/a"}]}),
                 "memory", "warn", "they may be with d/a"),
                (f"{EXTENDER}/metrics", (200, "x 1\n"), "certificate", "skipped", "tells no"),
                (slices, (200, {"items": []}), "webhook", "FAIL", "aliquot-webhook has no endpoint")):
            cluster = self.cluster()
            cluster.answers[path] = answer
            found = self.ask(cluster).checks[check]
            self.assertEqual((found["result"], text in found["reason"]), (result, True), found)

    def test_a_pod_with_the_labels_of_our_services(self):
        """It may be what answers in the extender's place."""
        cluster = self.cluster()
        pods = cluster.answers[f"{SYSTEM}/pods"][1]["items"]
        for name, owners in (("a", None), ("b", [{"kind": "ReplicaSet", "name": "other-5d4f8"}])):
            pods.append(json.loads(json.dumps(pods[1])))
            pods[-1]["metadata"].update({"name": name, "ownerReferences": owners})
        found = self.ask(cluster).checks["extender"]
        self.assertEqual(found["result"], "warn", found)
        self.assertIn("pod a has the labels of the Services", found["reason"])
        self.assertIn("; pod b has the labels", found["reason"])
        self.assertEqual(found["remedy"], "kubectl -n kube-system label pod a app.kubernetes.io/component-")
        cluster.answers[f"{EXTENDER}/readyz"] = (500, "what is this")
        self.assertEqual(self.ask(cluster).checks["extender"]["result"], "warn")
        pods.pop()
        pods[-1]["metadata"]["labels"].pop("app.kubernetes.io/component")
        self.assertNotIn("pod a", self.ask(cluster).checks["extender"]["reason"])

    def test_an_image_that_cannot_be_pulled(self):
        cluster = self.cluster()
        pods = cluster.answers[f"{SYSTEM}/pods"][1]["items"]
        pods[1]["status"]["containerStatuses"][0].update({"image": "aliquot:1", "ready": False, "state": {"waiting": {"reason": "ImagePullBackOff"}}})
        found = self.ask(cluster).checks["versions"]
        self.assertEqual((found["result"], found["reason"]), ("FAIL", "scheduler-1: the node n1 has no image aliquot:1 (ImagePullBackOff)"))
        self.assertIn("import it on the node", found["remedy"])

    def test_node_faults(self):
        cluster = self.cluster()
        node = cluster.answers["/api/v1/nodes"][1]["items"][0]
        node["metadata"]["labels"]["ack.node.gpu.placement"] = "Spread"
        node["metadata"]["annotations"]["aliquot.dev/change-pending"] = "mode core_mem -> cgpu"
        node["status"]["allocatable"]["nvidia.com/gpu"] = "2"
        node["status"]["nodeInfo"]["containerRuntimeVersion"] = "containerd://1.6.1"
        p = self.ask(cluster)
        self.assertEqual(self.results(p, "labels", "changes", "other-plugins", "runtimes"),
                         {"labels": "FAIL", "changes": "warn", "other-plugins": "FAIL", "runtimes": "FAIL"})
        self.assertIn('n1: label ack.node.gpu.placement is "Spread", must be binpack or spread', p.checks["labels"]["reason"])

    def test_texts_of_others(self):
        cluster = self.cluster()
        node = cluster.answers["/api/v1/nodes"][1]["items"][0]
        node["metadata"]["annotations"]["aliquot.dev/change-pending"] = "mode\033[2J\nx"
        p = subprocess.run([ALIQUOT, "doctor", "cluster", "--timeout", "60", "--server", cluster.url], capture_output=True, text=True, timeout=240,
                           check=False)
        self.assertIn("n1 takes no new slice: mode?[2J?x\n", p.stdout)
        self.assertEqual(self.ask(cluster).checks["changes"]["reason"], "n1 takes no new slice: mode\033[2J\nx")

    def test_without_rights(self):
        """A cluster that answers, and lets this user read nothing."""
        cluster = self.cluster()
        cluster.server.status = 403
        p = self.ask(cluster)
        results = self.results(p)
        clock = results.pop("clock")
        self.assertEqual((p.returncode, p.stderr, clock, set(results.values())), (0, "", "ok", {"skipped"}))
        self.assertIn("HTTP 403", p.checks["agents"]["reason"])
        self.assertEqual(p.checks["nodes"]["remedy"], "ask as a user with the right to list nodes")

    def test_login_is_not_valid(self):
        """As with an expired token. No right would help."""
        cluster = self.cluster()
        cluster.server.status = 401
        p = self.ask(cluster)
        self.assertEqual((p.returncode, p.checks["api"]["result"], p.checks["nodes"]["result"]), (1, "FAIL", "skipped"))
        self.assertIn("HTTP 401", p.checks["api"]["reason"])
        self.assertIn("login", p.checks["api"]["remedy"])
        self.assertNotIn("right", p.checks["nodes"].get("remedy") or "")

    def test_agent_does_not_answer(self):
        cluster = self.cluster()
        cluster.answers[f"{SYSTEM}/pods/agent-1:9445/proxy/readyz"] = (200, None)
        p = self.ask(cluster, "--timeout", "10")  # the others answer within that
        self.assertEqual((p.returncode, p.checks["agents"]["result"]), (4, "warn"))
        self.assertIn("n1: the node agent agent-1 does not answer", p.checks["agents"]["reason"])

    def test_nothing_answers(self):
        cluster = self.cluster()
        for path in cluster.answers:
            cluster.answers[path] = (200, None)
        p = self.ask(cluster, "--timeout", "1")
        self.assertEqual((p.returncode, p.checks["api"]["result"], p.checks["nodes"]["result"]), (1, "FAIL", "skipped"))

    def test_nonsense(self):
        for body in "", "<html>login</html>", "[1,2]", '{"items":{"a":1}}', '{"items":[1,"x",null,{}]}', '{"items":[{"metadata":{"name":7}}]}', "{" * 5000:
            cluster = self.cluster()
            for path in cluster.answers:
                cluster.answers[path] = (200, body)
            p = self.ask(cluster)
            self.assertIn(p.returncode, (0, 1, 4), body[:20])
            self.assertEqual(p.stderr, "")

    def test_clock(self):
        cluster = self.cluster()
        cluster.server.skew = -600
        p = self.ask(cluster)
        self.assertEqual(p.checks["clock"]["result"], "FAIL")
        self.assertRegex(p.checks["clock"]["reason"], r"this machine's clock is \d+ s ahead of the API server's")

    def test_kubeconfig(self):
        cluster = self.cluster()
        with tempfile.TemporaryDirectory() as folder:
            config = {"clusters": [{"name": "c", "cluster": {"server": cluster.url}}], "users": [{"name": "u", "user": {}}],
                      "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u"}}], "current-context": "x"}
            write(folder, "/config", json.dumps(config))
            self.assertEqual(doctor("cluster", "--kubeconfig", f"{folder}/config").returncode, 0)
            self.assertEqual(doctor("cluster", env={"KUBECONFIG": f"{folder}/config"}).returncode, 0)
            config["users"][0]["user"] = {"exec": {"command": "login"}}
            write(folder, "/config", json.dumps(config))
            p = doctor("cluster", "--kubeconfig", f"{folder}/config")
            self.assertEqual((p.returncode, p.checks["api"]["result"], p.checks["nodes"]["result"]), (1, "FAIL", "skipped"))
            self.assertIn("exec plugin", p.checks["api"]["reason"])
            self.assertIn("kubectl proxy", p.checks["api"]["remedy"])
        p = doctor("cluster")
        self.assertEqual((p.returncode, p.checks["api"]["result"]), (1, "FAIL"))
        why = p.checks["api"]["reason"].split(": ", 1)[1]
        self.assertEqual([name for name, c in p.checks.items() if why in c["reason"]], ["api"], "one check has the reason")
        self.assertEqual({c["reason"] for name, c in p.checks.items() if name != "api"}, {"the cluster is not asked"})


if __name__ == "__main__":
    run_tests(verbosity=2)
