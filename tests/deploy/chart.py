#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The Helm chart against the kustomizations, object by object, and its refusals. HELM and KUBECTL name the programs."""

import json
import os
import shutil
import subprocess
import sys
import unittest

try:
    import flips
    import yaml
    from manifests import identity, kustomization
except ModuleNotFoundError as e:
    print(f"skipped: {e.name} is not there (Debian: python3-yaml)")
    sys.exit(77)

ROOT = os.path.abspath(sys.argv.pop(1))
CHART = os.path.join(ROOT, "deploy/helm/aliquot")


def working(name, *words):
    """The path of a program that answers these words with success; None if there is none."""
    path = shutil.which(os.environ.get(name.upper(), name))
    return path if path and subprocess.run([path, *words], capture_output=True, check=False).returncode == 0 else None


HELM, KUBECTL = working("helm", "version"), working("kubectl", "version", "--client")
IMAGES = ["--set", "images.kubeScheduler.tag=stock"]  # a tag without a version: the cluster's counts


TEST = "helm.sh/hook"  # the pod of `helm test` is no part of an installation


def read(text):
    return {identity(o): o for o in yaml.safe_load_all(text) if o and TEST not in o["metadata"].get("annotations", {})}


def helm(*arguments):
    return subprocess.run([HELM, "template", "aliquot", CHART, "--namespace", "kube-system", *arguments],
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


GATE = "--feature-gates=OpportunisticBatching=false"


def without_gate(objects):
    """kustomizations do not know kube-scheduler's version, and never have the gate, a registry or a tag"""
    container = objects["Deployment", "kube-system", "aliquot-scheduler"]["spec"]["template"]["spec"]["containers"][1]
    container["args"] = [a for a in container["args"] if a != GATE]
    container["image"] = container["image"].split("/")[-1].split(":")[0]
    return objects


def parsed_configuration(objects):
    """as kube-scheduler reads it: without comments"""
    for o in objects.values():
        if o["kind"] == "ConfigMap":
            o["data"] = {k: yaml.safe_load(v) for k, v in o["data"].items()}
    return objects


@unittest.skipUnless(KUBECTL, "there is no kubectl")
class Kustomize(unittest.TestCase):
    def test_reads_as_our_own_reader_does(self):
        for name in ("base", "before-1.30", "older"):
            folder = os.path.join(ROOT, "deploy/kustomize", name)
            p = subprocess.run([KUBECTL, "kustomize", folder], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
            self.assertEqual((p.returncode, p.stderr), (0, ""))
            self.assertEqual(read(p.stdout), kustomization(folder))


@unittest.skipUnless(HELM, "there is no helm that works")
class Chart(unittest.TestCase):
    maxDiff = None

    def rendered(self, *arguments):
        p = helm(*arguments)
        self.assertEqual(p.returncode, 0, p.stderr)
        return read(p.stdout)

    def refused(self, word, *arguments):
        p = helm(*arguments)
        self.assertNotEqual(p.returncode, 0)
        self.assertIn(word, p.stderr)

    def same(self, name, *arguments):
        ours = parsed_configuration(kustomization(os.path.join(ROOT, "deploy/kustomize", name)))
        theirs = without_gate(parsed_configuration(self.rendered(*IMAGES, *arguments)))
        self.assertEqual(theirs.keys(), ours.keys())
        for key, o in ours.items():
            self.assertEqual(theirs[key], o, key)

    def test_same_objects(self):
        self.same("base", "--kube-version", "1.30.0")
        self.same("base", "--kube-version", "v1.36.2-vendor.1")
        self.same("before-1.30", "--kube-version", "1.28.0", "--set", "deviceAccess=cdi")
        self.same("before-1.30", "--kube-version", "1.29.0")
        self.same("before-1.30", "--kube-version", "1.36.0", "--set", "admissionPolicies=false")

    def test_same_objects_older(self):
        # 1.27 has what the same kustomization for 1.22 leaves out
        self.same("older", "--kube-version", "1.27.16", "--set", "gangs=false,resourcePolicies=false")
        self.same("older", "--kube-version", "1.22.0")

    def test_conditions_by_hand(self):
        def has(objects):
            return "matchConditions" in objects["MutatingWebhookConfiguration", "", "aliquot"]["webhooks"][0]
        self.assertFalse(has(self.rendered(*IMAGES, "--kube-version", "1.30.0", "--set", "webhook.matchConditions=false")))
        self.assertTrue(has(self.rendered(*IMAGES, "--kube-version", "1.28.0", "--set", "webhook.matchConditions=true")))
        self.assertTrue(has(self.rendered(*IMAGES, "--kube-version", "1.28.0-vendor.1")))
        for version in "1.27.0", "1.27.16-vendor.1", "1.22.3":
            self.refused("webhook.matchConditions", *IMAGES, "--kube-version", version, "--set", "webhook.matchConditions=true")

    def test_values_arrive(self):
        cards = "2xTesla-V100-SXM2-16GB:16160MiB"
        o = self.rendered(*IMAGES, "--set", "policy=3,gpuMemoryUnit=128MiB,deviceAccess=runtime,images.pullSecrets[0].name=s,scheduler.replicas=1",
                          "--set-string", "simulate=" + cards)
        pod = o["DaemonSet", "kube-system", "gpushare-device-plugin-ds"]["spec"]["template"]["spec"]
        for argument in ("--policy=3", "--gpu-mem-unit=128MiB", "--device-access=runtime", "--simulate=" + cards):
            self.assertIn(argument, pod["containers"][0]["args"])
        self.assertEqual(pod["imagePullSecrets"], [{"name": "s"}])
        self.assertEqual(o["Deployment", "kube-system", "aliquot-scheduler"]["spec"]["replicas"], 1)

    def test_evictions_are_off_unless_asked_for(self):
        for switch in (False, True):
            o = self.rendered(*IMAGES, "--set", f"evictForCards={str(switch).lower()}")
            args = o["Deployment", "kube-system", "aliquot-scheduler"]["spec"]["template"]["spec"]["containers"][0]["args"]
            self.assertEqual("--evict-for-cards" in args, switch)
            self.assertEqual(("ClusterRole", "", "aliquot-scheduler-eviction") in o, switch)

    def test_growth_beyond_limits_is_off_unless_asked_for(self):
        for switch in (False, True):
            o = self.rendered(*IMAGES, "--kube-version", "1.30.0", "--set", f"growBeyondLimits={str(switch).lower()}")
            for key in (("Deployment", "kube-system", "aliquot-scheduler"), ("DaemonSet", "kube-system", "gpushare-device-plugin-ds")):
                self.assertEqual("--grow-beyond-limits" in o[key]["spec"]["template"]["spec"]["containers"][0]["args"], switch)
            self.assertEqual(("ClusterRole", "", "aliquot-scheduler-growth") in o, switch)
        self.refused("growBeyondLimits", *IMAGES, "--kube-version", "1.29.0", "--set", "growBeyondLimits=true")
        self.refused("growBeyondLimits", *IMAGES, "--kube-version", "1.30.0", "--set", "growBeyondLimits=true,admissionPolicies=false")

    def test_objects_for_prometheus_where_asked_for(self):
        monitors = {("PodMonitor", "kube-system", "aliquot-node"), ("PodMonitor", "kube-system", "aliquot-scheduler"),
                    ("PrometheusRule", "kube-system", "aliquot")}
        services = {("Service", "kube-system", "aliquot-node-metrics"), ("Service", "kube-system", "aliquot-scheduler-metrics")}
        for value, more in ("none", set()), ("operator", monitors), ("service", services):
            self.assertEqual(self.rendered(*IMAGES, "--set", f"monitoring={value}").keys() & (monitors | services), more)

    def test_gangs_where_there_are_gates(self):
        for cluster, switch, on in (("1.36.2", "true", True), ("1.27.0", "true", True), ("1.26.9", "true", False), ("1.36.2", "false", False)):
            o = self.rendered(*IMAGES, "--kube-version", cluster, "--set", f"gangs={switch}")
            args = o["Deployment", "kube-system", "aliquot-scheduler"]["spec"]["template"]["spec"]["containers"][0]["args"]
            self.assertEqual("--gangs" in args, on)

    def test_idle_cards_are_spared_where_asked_for(self):
        for switch in (False, True):
            o = self.rendered(*IMAGES, "--set", f"spareIdleCards={str(switch).lower()}")
            args = o["Deployment", "kube-system", "aliquot-scheduler"]["spec"]["template"]["spec"]["containers"][0]["args"]
            self.assertEqual("--spare-idle-cards" in args, switch)

    def test_batching_is_off_where_kube_scheduler_knows_it(self):
        digest = "sha256:1.35.0".replace(".", "0") + 58 * "0"  # no version is read out of it
        for cluster, tag, off in (("1.34.9", "stock", False), ("1.35.0", "stock", True), ("1.36.2", "stock", True), ("1.37.1", "stock", True),
                                  ("1.38.0", "stock", False), ("1.35.1", "v1.34.1", False), ("1.38.1", "v1.37.2", True), ("1.36.2", "", True),
                                  ("1.36.2", "v1.36.2-0", True), ("1.34.4", "", False), ("1.38.0", "1.38.0", False)):
            for more in [], ["--set", "images.kubeScheduler.digest=" + digest] if tag else []:
                o = self.rendered("--set", "images.kubeScheduler.tag=" + tag, "--kube-version", cluster, *more)
                args = o["Deployment", "kube-system", "aliquot-scheduler"]["spec"]["template"]["spec"]["containers"][1]["args"]
                self.assertEqual(GATE in args, off, (cluster, tag))
        self.refused("images.kubeScheduler.tag is missing", "--set", "images.kubeScheduler.digest=" + digest)
        for cluster, tag in (("1.36.2", "v1.34.1"), ("1.34.1", "v1.35.0"), ("1.34.1", "v2.34.1")):
            self.refused("images.kubeScheduler.tag: " + tag, "--set", "images.kubeScheduler.tag=" + tag, "--kube-version", cluster)

    def images(self, *arguments):
        o = self.rendered(*arguments)
        pods = [o[key]["spec"]["template"]["spec"] for key in (("DaemonSet", "kube-system", "gpushare-device-plugin-ds"),
                                                               ("Deployment", "kube-system", "aliquot-scheduler"))]
        return [c["image"] for pod in pods for c in pod["containers"]]

    def test_no_value_is_mandatory(self):
        """The version of the cluster names kube-scheduler, without what a distribution adds."""
        for cluster, version in (("v1.31.4", "v1.31.4"), ("1.31.4+k3s1", "v1.31.4"), ("v1.31.4+rke2r1", "v1.31.4"), ("v1.33.5-eks-113cf36", "v1.33.5"),
                                 ("v1.32.9-gke.1010000", "v1.32.9"), ("v1.31.1-aliyun.1", "v1.31.1"), ("v1.37.0-rc.1", "v1.37.0-rc.1"),
                                 ("v1.37.0-alpha.2.15+abcdef", "v1.37.0-alpha.2")):
            own, same, kube = self.images("--kube-version", cluster)
            self.assertEqual((own, kube), (same, "registry.k8s.io/kube-scheduler:" + version), cluster)

    def test_parts_of_an_image(self):
        digest = "sha256:" + 64 * "a"
        own, _, kube = self.images("--set", "images.aliquot.registry=host:5000,images.aliquot.repository=team/aliquot,images.aliquot.tag=edge,"
                                            f"images.aliquot.digest={digest},images.kubeScheduler.registry=,images.kubeScheduler.tag=v1.36.2",
                                   "--kube-version", "1.36.2")
        self.assertEqual((own, kube), ("host:5000/team/aliquot:edge@" + digest, "kube-scheduler:v1.36.2"))
        for name in "aliquot", "kubeScheduler":  # as charts before this one had it
            self.refused(f"images.{name}: has parts", "--set", f"images.{name}=REGISTRY/{name}:1.31.4")
            for value in "https://host:5000", "host/", "host:port", "host:5000/":  # no kubelet pulls these
                self.refused("registry", "--set", f"images.{name}.registry={value}")

    def test_filter_best(self):
        for value, given in ((None, 32), (0, 0), (1000, 1000)):
            o = self.rendered(*IMAGES, *(["--set", f"filterBest={value}"] if value is not None else []))
            args = o["Deployment", "kube-system", "aliquot-scheduler"]["spec"]["template"]["spec"]["containers"][0]["args"]
            self.assertIn(f"--filter-best={given}", args)
        for value in ("31", "1001", "-1", "all"):
            self.refused("filterBest", *IMAGES, "--set", f"filterBest={value}")

    def test_pods_are_safe_to_evict_unless_asked_for(self):
        for switch in (False, True):
            o = self.rendered(*IMAGES, "--set", f"notSafeToEvict={str(switch).lower()}")
            args = o["Deployment", "kube-system", "aliquot-scheduler"]["spec"]["template"]["spec"]["containers"][0]["args"]
            self.assertEqual("--not-safe-to-evict" in args, switch)

    def test_page(self):
        for more, given in (([], None), (["--set", "page.enabled=true"], "--page=127.0.0.1:12346"),
                            (["--set", "page.enabled=true,page.port=8080"], "--page=127.0.0.1:8080")):
            o = self.rendered(*IMAGES, *more)
            args = o["Deployment", "kube-system", "aliquot-scheduler"]["spec"]["template"]["spec"]["containers"][0]["args"]
            self.assertEqual([a for a in args if a.startswith("--page")], [given] if given else [])
        for port in 12345, 12347:
            self.refused(f"page.port: {port} is another port", *IMAGES, "--set", f"page.port={port}")

    def test_a_login_before_the_page(self):
        pod = self.rendered(*IMAGES)["Deployment", "kube-system", "aliquot-scheduler"]["spec"]["template"]["spec"]
        self.assertEqual([c["name"] for c in pod["containers"]], ["aliquot-scheduler", "kube-scheduler"])
        self.assertEqual([v["name"] for v in pod["volumes"]], ["config", "lease"])
        login = {"name": "login", "image": "proxy:1", "ports": [{"name": "page", "containerPort": 8443}]}
        volume = {"name": "login", "secret": {"secretName": "aliquot-page-login"}}
        o = self.rendered(*IMAGES, "--set", "page.enabled=true", "--set", "page.hosts={gpus.example.com,gpus}",
                          "--set-json", "scheduler.extraContainers=" + json.dumps([login]), "--set-json", "scheduler.extraVolumes=" + json.dumps([volume]))
        pod = o["Deployment", "kube-system", "aliquot-scheduler"]["spec"]["template"]["spec"]
        self.assertEqual(pod["containers"][2:], [login])
        self.assertEqual(pod["volumes"][2:], [volume])
        self.assertEqual([a for a in pod["containers"][0]["args"] if a.startswith("--page")], ["--page=127.0.0.1:12346", "--page-hosts=gpus.example.com,gpus"])
        self.refused("hosts", *IMAGES, "--set", "page.hosts={gpus:8443}")
        self.refused("extraContainers", *IMAGES, "--set", "scheduler.extraContainers[0].name=login")

    def test_reads_on_the_loopback(self):
        """The kubelet then asks the webhook's port, which it reaches by the address of the pod."""
        for value, listen, port, more in (("false", ":12347", 12347, {}), ("true", "127.0.0.1:12347", 9443, {"scheme": "HTTPS"})):
            o = self.rendered(*IMAGES, "--set", f"scheduler.readsOnLoopback={value}")
            extender, kube = o["Deployment", "kube-system", "aliquot-scheduler"]["spec"]["template"]["spec"]["containers"]
            self.assertIn("--read-listen=" + listen, extender["args"])
            ready = "/readyz" if value == "false" else "/healthz"
            self.assertEqual(extender["readinessProbe"]["httpGet"], {"path": ready, "port": port, **more})
            for c in extender, kube:
                self.assertEqual(c["livenessProbe"]["httpGet"], {"path": "/healthz", "port": port, **more})
        self.refused("readsOnLoopback", *IMAGES, "--set", "scheduler.readsOnLoopback=maybe")
        for gone in "replicas=2", "affinity.a=b":
            self.refused("kubeScheduler", *IMAGES, "--set", "kubeScheduler." + gone)

    def test_node_order(self):
        for value in (None, "binpack", "fragmentation"):
            o = self.rendered(*IMAGES, *(["--set", f"nodeOrder={value}"] if value is not None else []))
            args = o["Deployment", "kube-system", "aliquot-scheduler"]["spec"]["template"]["spec"]["containers"][0]["args"]
            self.assertEqual("--node-order=fragmentation" in args, value == "fragmentation")
            self.assertFalse("--node-order=binpack" in args, "binpack is the program's own default")
        self.refused("nodeOrder", *IMAGES, "--set", "nodeOrder=spread")

    def test_settings_of_nodes(self):
        o = self.rendered(*IMAGES, "--set", "maxInst=4,prioRatio=60,maxPodsPerCard=0,allowMixed=true,placeWhileChanging=true,"
                                            "ignoreCgpuDisable=true,sayRefusals=true,knownDriversOnly=true,keepNvidiaPluginOff=true,memoryIsolation=both")
        agent = o["DaemonSet", "kube-system", "gpushare-device-plugin-ds"]["spec"]["template"]["spec"]["containers"][0]["args"]
        both = ["--max-pods-per-card=0", "--allow-mixed=true"]
        for argument in both + ["--max-inst=4", "--prio-ratio=60", "--place-while-changing=true", "--ignore-cgpu-disable", "--say-refusals",
                                "--known-drivers-only", "--keep-nvidia-plugin-off", "--memory-isolation=both", "--cgroup-root=/sys/fs/cgroup"]:
            self.assertIn(argument, agent)
        scheduler = o["Deployment", "kube-system", "aliquot-scheduler"]["spec"]["template"]["spec"]["containers"][0]["args"]
        for argument in both:
            self.assertIn(argument, scheduler)
        self.assertIn("--max-pods-per-card=4294967295",
                      self.rendered(*IMAGES, "--set", "maxPodsPerCard=4294967295")["Deployment", "kube-system", "aliquot-scheduler"]
                      ["spec"]["template"]["spec"]["containers"][0]["args"])

    def test_system_accounts(self):
        old = "system:serviceaccount:kube-system:old"
        o = self.rendered(*IMAGES, "--kube-version", "1.30.0", "--set", f"systemAccounts={{{old},a}}")
        args = o["Deployment", "kube-system", "aliquot-scheduler"]["spec"]["template"]["spec"]["containers"][0]["args"]
        self.assertIn(f"--system-accounts={old},a", args)
        policy = o["ValidatingAdmissionPolicy", "", "aliquot-system-keys"]["spec"]
        (accounts,) = [v["expression"] for v in policy["variables"] if v["name"] == "accounts"]
        self.assertTrue(accounts.endswith(f"aliquot-node', '{old}', 'a']"), accounts)
        for name in ("aliquot-own-pods", "aliquot-scheduler-pods", "aliquot-own-nodes"):
            self.assertNotIn(old, str(o["ValidatingAdmissionPolicy", "", name]))

    def test_what_becomes_of_those_who_take_too_much(self):
        o = self.rendered(*IMAGES, "--set", "hungKernel=60,onHungKernel=kill,onComputeExcess=kill,onExcess=kill")
        pod = o["DaemonSet", "kube-system", "gpushare-device-plugin-ds"]["spec"]["template"]["spec"]
        for argument in ("--hung-kernel=60", "--on-hung-kernel=kill", "--on-compute-excess=kill", "--on-excess=kill"):
            self.assertIn(argument, pod["containers"][0]["args"])

    def test_a_simulated_driver(self):
        cards = "2xTesla-V100-SXM2-16GB:16160MiB"
        o = self.rendered(*IMAGES, "--set-string", "simulatedDriver=" + cards)
        pod = o["DaemonSet", "kube-system", "gpushare-device-plugin-ds"]["spec"]["template"]["spec"]
        agent, driver = pod["containers"]
        self.assertIn("--simulate-dir=/run/aliquot/sim", agent["args"])
        self.assertEqual(driver["args"], ["--cards=" + cards, "--dir=/run/aliquot/sim", "--name=$(NODE_NAME)", "--foreground"])
        self.assertEqual([m.get("mountPropagation") for m in agent["volumeMounts"] if m["name"] == "slices"], ["Bidirectional"])
        self.assertLessEqual({m["name"] for c in pod["containers"] for m in c["volumeMounts"]}, {v["name"] for v in pod["volumes"]})
        self.refused("one of them", *IMAGES, "--set-string", "simulatedDriver=" + cards, "--set-string", "simulate=" + cards)

    def test_where_pods_go(self):
        """Of each program: labels, annotations, placement, priority, resources, and further options."""
        for key, program, extra in ((("DaemonSet", "kube-system", "gpushare-device-plugin-ds"), "node", "--census=500"),
                                    (("Deployment", "kube-system", "aliquot-scheduler"), "scheduler", "--log-format=json")):
            given = {"labels": {"team": "a"}, "annotations": {"note": "b"}, "nodeSelector": {"pool": "gpu"}, "tolerations": [{"key": "k"}],
                     "affinity": {"nodeAffinity": {}}, "priorityClassName": "high", "resources": {"limits": {"memory": "1Gi"}}, "extraArgs": [extra]}
            o = self.rendered("--set-json", f"{program}={json.dumps(given)}")[key]
            pod = o["spec"]["template"]
            self.assertEqual(o["metadata"]["annotations"], {"note": "b"})
            self.assertEqual(pod["metadata"]["annotations"], {"note": "b"})
            self.assertLessEqual({"team": "a", **o["spec"]["selector"]["matchLabels"]}.items(), pod["metadata"]["labels"].items())
            container = pod["spec"]["containers"][0]
            self.assertEqual(container["args"][-1], extra)
            self.assertEqual(container["resources"]["limits"], {"memory": "1Gi"})
            self.assertIn("nodeAffinity", pod["spec"]["affinity"])
            for name in "tolerations", "priorityClassName":
                self.assertEqual(pod["spec"][name], given[name])
            self.assertEqual(pod["spec"]["nodeSelector"]["pool"], "gpu")
            self.refused(f"{program}.labels: app.kubernetes.io/name", "--set-json", program + '.labels={"app.kubernetes.io/name": "x"}')
            self.refused(f"{program}.extraArgs: --allow-mixed is given already: set the value allowMixed", "--set", program + ".extraArgs={--allow-mixed=true}")
            self.refused("extraArgs", "--set", program + ".extraArgs={census}")
        o = self.rendered("--set", "kubeScheduler.extraArgs={--v=4},kubeScheduler.resources.limits.cpu=1")
        kube = o["Deployment", "kube-system", "aliquot-scheduler"]["spec"]["template"]["spec"]["containers"][1]
        self.assertEqual((kube["args"][-1], kube["resources"]["limits"]), ("--v=4", {"cpu": 1}))
        self.refused("kubeScheduler.extraArgs: --config", "--set", "kubeScheduler.extraArgs={--config=x}")

    def test_a_namespace_of_its_own(self):
        usual, other = self.rendered(*IMAGES), self.rendered(*IMAGES, "--set", "namespace=gpus")
        stays = {"aliquot-scheduler-fences", "aliquot-scheduler-authentication"}  # in kube-system, for accounts of the other namespace
        for (kind, namespace, name), o in usual.items():
            moved = namespace if name in stays else "gpus" if namespace else ""
            self.assertIn((kind, moved, name), other)
            text = json.dumps(other[kind, moved, name])
            if kind.endswith("WebhookConfiguration"):
                self.assertEqual(text.count('["kube-system", "gpus"]'), text.count('"operator": "NotIn"'))
                text = text.replace('["kube-system", "gpus"]', "")
            self.assertEqual("kube-system" in text, name in stays, (kind, name))
            self.assertEqual(text.count("gpus") >= json.dumps(o).count("kube-system") - (name in stays), True)
        self.refused("namespace default", "--set", "namespace=default")

    def test_pod_of_helm_test(self):
        p = helm("--set", "test.gpuMem=3,test.gpuCorePercentage=30,images.pullSecrets[0].name=s,test.labels.team=a")
        self.assertEqual(p.returncode, 0, p.stderr)
        (pod,) = [o for o in yaml.safe_load_all(p.stdout) if o and TEST in o["metadata"].get("annotations", {})]
        (container,) = pod["spec"]["containers"]
        self.assertEqual(container["resources"]["limits"], {"aliyun.com/gpu-mem": 3, "aliyun.com/gpu-core.percentage": 30})
        self.assertEqual((pod["metadata"]["name"], pod["metadata"]["labels"]["team"], pod["spec"]["schedulerName"]), ("aliquot-test", "a", "ack-co-scheduler"))
        self.assertEqual(container["image"], self.images()[0])

    def test_values_that_contradict_each_other(self):
        for sentence, *arguments in (
                ("monitoring: with scheduler.readsOnLoopback", "--set", "monitoring=service,scheduler.readsOnLoopback=true"),
                ("page.hosts: there is no page", "--set", "page.hosts={a}"), ("page.cluster: there is no page", "--set", "page.cluster=a"),
                ("admissionPolicies: need Kubernetes 1.30, and this is v1.29.3", "--set", "admissionPolicies=true", "--kube-version", "1.29.3"),
                ("deviceAccess: the kubelet of Kubernetes v1.27.0", "--set", "deviceAccess=cdi", "--kube-version", "1.27.0")):
            self.refused(sentence, *arguments)

    def test_each_value_changes_over_the_versions(self):
        """Each value takes another one than its default, alone and beside all others; what it renders is read."""
        values = flips.of_chart(CHART)
        versions = "1.22.0", "1.25.3", "1.27.16+k3s1", "v1.29.1-gke.7", "v1.33.5-eks-113cf36", "1.36.2"

        def render(version, names):
            return helm("--kube-version", version, *flips.arguments(names))
        plain = {}
        for i, version in enumerate(versions):
            plain[version] = render(version, [])
            beside = render(version, values - flips.CONTRADICT - (flips.LATER if i < 4 else set()))
            self.assertEqual((plain[version].returncode, beside.returncode), (0, 0), plain[version].stderr + beside.stderr)
            self.assertTrue(read(beside.stdout))
        for i, name in enumerate(sorted(values)):
            version = "1.36.2" if name in flips.NEWEST else versions[i % len(versions)]
            alone = render(version, [name, *flips.NEEDS.get(name, [])])
            without = render(version, flips.NEEDS[name]) if name in flips.NEEDS else plain[version]
            self.assertEqual((alone.returncode, alone.stderr), (0, ""), name)
            self.assertTrue(list(yaml.safe_load_all(alone.stdout)) != list(yaml.safe_load_all(without.stdout)), name)

    def test_refusals(self):
        for value in ("policy=6", "policy=-1", "gpuMemoryUnit=128", "gpuMemoryUnit=0GiB", "deviceAccess=vfio", "polcy=3",
                      "maxInst=0", "maxInst=101", "prioRatio=19", "maxPodsPerCard=-1", "allowMixed=yes", "systemAccounts={a'b}", "admissionPolicies=maybe",
                      "hungKernel=0", "onHungKernel=event", "onComputeExcess=", "onExcess=maybe", "simulate=2x", "simulatedDriver=2xTesla-V100"):
            with self.subTest(value=value):
                self.refused(value.split("=")[0], *IMAGES, "--set", value)
        for value in ("policy", "page", "images", "namespace", "images.aliquot", "images.aliquot.repository", "images.pullPolicy",
                      "webhook", "webhook.matchConditions", "scheduler",
                      "scheduler.replicas", "node", "kubeScheduler", "hungKernel", "maxInst", "page.enabled", "gpuMemoryUnit", "filterBest"):
            with self.subTest(null=value):
                self.refused(value.split(".")[-1], *IMAGES, "--set", value + "=null")
        for value in "node.affinity", "scheduler.resources":  # a user may take these away
            self.rendered(*IMAGES, "--set", value + "=null")
        self.refused("1.21", *IMAGES, "--kube-version", "1.21.0")
        self.refused("2x is no list of cards, as 2xTesla-V100-SXM2-16GB:16160MiB", *IMAGES, "--set", "simulate=2x")


if __name__ == "__main__":
    for program, name in ((HELM, "helm"), (KUBECTL, "kubectl")):
        if not program:
            print(f"there is no {name} here that works: what needs it is skipped")
    if not HELM and not KUBECTL:
        sys.exit(77)
    result = unittest.main(exit=False).result
    sys.exit(1 if not result.wasSuccessful() else 0 if HELM else 77)
