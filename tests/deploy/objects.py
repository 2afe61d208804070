#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The objects of deploy/ against docs/reference/reference.md, against each other, and against the options of the programs. Needs no cluster."""

import os
import re
import subprocess
import sys
import unittest

try:
    import yaml
    from manifests import kustomization, load
except ModuleNotFoundError as e:
    print(f"skipped: {e.name} is not there (Debian: python3-yaml)")
    sys.exit(77)

PROGRAM = os.path.abspath(sys.argv.pop(1))
ROOT = os.path.abspath(sys.argv.pop(1))
KUSTOMIZE = os.path.join(ROOT, "deploy/kustomize")
CHART = os.path.join(ROOT, "deploy/helm/aliquot")

# Roles that Kubernetes itself makes.
SYSTEM_ROLES = {("ClusterRole", "system:kube-scheduler"), ("ClusterRole", "system:volume-scheduler"),
                ("Role", "extension-apiserver-authentication-reader")}
CLUSTER_WIDE = {"ClusterRole", "ClusterRoleBinding", "MutatingWebhookConfiguration", "ValidatingWebhookConfiguration",
                "ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding", "CustomResourceDefinition"}


def files(folder, *suffixes):
    for at, _, names in os.walk(folder):
        yield from (os.path.join(at, name) for name in names if name.endswith(suffixes))


def text(path):
    with open(path, encoding="utf-8") as f:
        return f.read()


def system_keys():
    """POD_SYSTEM_KEYS of src/wire/annotation.h, in its order"""
    header = text(os.path.join(ROOT, "src/wire/annotation.h"))
    values = dict(re.findall(r'^#define (ANNOTATION_\w+) +"(.*)"', header, re.M))
    return [values[name] for name in re.findall(r"^ +X\(\w+, (ANNOTATION_\w+)\)", header, re.M)]


SYSTEM_KEYS = system_keys()


class Case(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.base = kustomization(os.path.join(KUSTOMIZE, "base"))
        cls.middle = kustomization(os.path.join(KUSTOMIZE, "before-1.30"))
        cls.older = kustomization(os.path.join(KUSTOMIZE, "older"))

    def of(self, kind, name=None):
        found = [o for o in self.base.values() if o["kind"] == kind and name in (None, o["metadata"]["name"])]
        if name is None:
            return found
        self.assertEqual(len(found), 1, (kind, name))
        return found[0]

    def workloads(self):
        return self.of("DaemonSet") + self.of("Deployment")

    def container(self, kind, name, at=0):
        return self.of(kind, name)["spec"]["template"]["spec"]["containers"][at]


class References(Case):
    def test_every_file_is_listed(self):
        listed = set()
        for path in files(os.path.join(ROOT, "deploy"), "kustomization.yaml"):
            (k,) = load(path)
            names = k.get("resources", []) + [p["path"] for p in k.get("patches", []) if "path" in p]
            listed |= {os.path.normpath(os.path.join(os.path.dirname(path), name)) for name in names}
        folders = [KUSTOMIZE, os.path.join(CHART, "objects")]
        there = {p for folder in folders for p in files(folder, ".yaml") if not p.endswith("kustomization.yaml")}
        self.assertEqual(there, {p for p in listed if not os.path.isdir(p)})

    def test_namespace(self):
        for o in self.base.values():
            wanted = None if o["kind"] in CLUSTER_WIDE else "kube-system"
            self.assertEqual(o["metadata"].get("namespace"), wanted, o["metadata"]["name"])

    def test_service_accounts(self):
        accounts = {o["metadata"]["name"] for o in self.of("ServiceAccount")}
        used = {w["spec"]["template"]["spec"]["serviceAccountName"] for w in self.workloads()}
        bound = set()
        for binding in self.of("ClusterRoleBinding") + self.of("RoleBinding"):
            role = binding["roleRef"]["kind"], binding["roleRef"]["name"]
            ours = {(o["kind"], o["metadata"]["name"]) for o in self.of("ClusterRole") + self.of("Role")}
            self.assertIn(role, ours | SYSTEM_ROLES)
            for subject in binding["subjects"]:
                self.assertEqual((subject["kind"], subject["namespace"]), ("ServiceAccount", "kube-system"))
                bound.add(subject["name"])
        self.assertEqual(accounts, used)
        self.assertEqual(accounts, bound)

    def test_selectors(self):
        pods = [w["spec"]["template"]["metadata"]["labels"] for w in self.workloads()]
        for w in self.workloads():
            chosen = w["spec"]["selector"]["matchLabels"]
            self.assertEqual(sum(chosen.items() <= labels.items() for labels in pods), 1, w["metadata"]["name"])
            self.assertLessEqual(chosen.items(), w["spec"]["template"]["metadata"]["labels"].items())
        for o in self.of("PodDisruptionBudget"):
            chosen = o["spec"]["selector"]["matchLabels"]
            self.assertEqual(sum(chosen.items() <= labels.items() for labels in pods), 1)
        for s in self.of("Service"):
            self.assertEqual(sum(s["spec"]["selector"].items() <= labels.items() for labels in pods), 1, s["metadata"]["name"])

    def ports(self, w):
        """The ports of a workload's pods, by name; the kubelet looks for the name of a probe in its own container alone."""
        return {p["name"]: p["containerPort"] for c in w["spec"]["template"]["spec"]["containers"] for p in c["ports"]}

    def test_ports(self):
        names = self.ports(self.of("Deployment", "aliquot-scheduler")).keys()
        for s in self.of("Service"):
            self.assertLessEqual({p["targetPort"] for p in s["spec"]["ports"]}, names)
        for rule in self.of("NetworkPolicy", "aliquot-scheduler")["spec"]["ingress"]:
            self.assertLessEqual({p["port"] for p in rule["ports"]}, names)
        for w in self.workloads():
            for c in w["spec"]["template"]["spec"]["containers"]:
                for probe in ("readinessProbe", "livenessProbe"):
                    port = c[probe]["httpGet"]["port"]
                    self.assertIn(port, {p["name"] for p in c["ports"]} if isinstance(port, str) else self.ports(w).values())

    def test_volumes(self):
        for w in self.workloads():
            pod = w["spec"]["template"]["spec"]
            volumes = {v["name"]: v for v in pod.get("volumes", [])}
            self.assertEqual(volumes.keys(), {m["name"] for c in pod["containers"] for m in c.get("volumeMounts", [])})
            for v in volumes.values():
                if "configMap" in v:
                    self.of("ConfigMap", v["configMap"]["name"])


class Contract(Case):
    def test_node_agent(self):
        d = self.of("DaemonSet", "gpushare-device-plugin-ds")
        pod = d["spec"]["template"]["spec"]
        self.assertEqual(pod["priorityClassName"], "system-node-critical")
        self.assertTrue(pod["hostPID"])
        self.assertEqual(pod["tolerations"], [{"operator": "Exists"}])
        self.assertEqual(d["spec"]["updateStrategy"], {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 0, "maxUnavailable": 1}})
        terms = pod["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"]
        self.assertEqual([t["matchExpressions"] for t in terms], [
            [{"key": "ack.node.gpu.schedule", "operator": "In", "values": ["share", "cgpu", "core_mem", "topology"]}],
            [{"key": "aliquot.dev/holds-slices", "operator": "Exists"}]])

    def test_paths_of_the_node_agent_are_mounted(self):
        c = self.container("DaemonSet", "gpushare-device-plugin-ds")
        mounts = [m["mountPath"] for m in c["volumeMounts"]]
        flags = dict(a[2:].split("=", 1) for a in c["args"] if "=" in a)
        for path in (flags["state-dir"], "/run/aliquot", flags["cdi-dir"], flags["host-root"], flags["kubelet-dir"] + "/device-plugins",
                     flags["kubelet-dir"] + "/pod-resources"):
            self.assertIn(path, mounts)
        self.assertTrue(flags["cgroup-root"].startswith(flags["host-root"] + "/"))
        # Files that outlive the agent have the same path on the host.
        volumes = {v["name"]: v["hostPath"]["path"] for v in self.of("DaemonSet")[0]["spec"]["template"]["spec"]["volumes"]}
        for m in c["volumeMounts"]:
            self.assertEqual(volumes[m["name"]], "/" if m["name"] == "host" else m["mountPath"])
            self.assertEqual(m.get("readOnly", False), m["name"] == "host")

    def test_only_the_node_agent_is_root(self):
        for d in self.of("Deployment"):
            pod = d["spec"]["template"]["spec"]
            self.assertTrue(pod["securityContext"]["runAsNonRoot"])
            self.assertEqual(pod["securityContext"]["seccompProfile"], {"type": "RuntimeDefault"})
            for c in pod["containers"]:
                self.assertEqual(c["securityContext"], {
                    "allowPrivilegeEscalation": False, "readOnlyRootFilesystem": True, "capabilities": {"drop": ["ALL"]}})

    def option(self, name):
        (value,) = [a.split("=", 1)[1] for a in self.container("Deployment", "aliquot-scheduler")["args"] if a.startswith(name + "=")]
        return value

    def test_nothing_binds_but_on_the_loopback(self):
        """No port of the pod, no Service and no fence has the port of the verbs."""
        address, verbs = self.option("--listen").split(":")
        self.assertEqual(address, "127.0.0.1")
        d = self.of("Deployment", "aliquot-scheduler")
        self.assertNotIn("hostNetwork", d["spec"]["template"]["spec"])
        numbers = [p["containerPort"] for c in d["spec"]["template"]["spec"]["containers"] for p in c["ports"]]
        self.assertNotIn(int(verbs), numbers)
        self.assertEqual(self.option("--read-listen"), ":%d" % numbers[0])
        for s in self.of("Service"):
            self.assertTrue({p["targetPort"] for p in s["spec"]["ports"]} <= {"read", "webhook"}, s["metadata"]["name"])

    def test_the_file_of_the_lease_is_of_the_pod_alone(self):
        """It outlives the extender's container, and neither the pod nor a boot."""
        d = self.of("Deployment", "aliquot-scheduler")["spec"]["template"]["spec"]
        (volume,) = [v for v in d["volumes"] if "emptyDir" in v]
        self.assertEqual(volume["emptyDir"]["medium"], "Memory")
        mounts = {c["name"]: m["mountPath"] for c in d["containers"] for m in c["volumeMounts"] if m["name"] == volume["name"]}
        self.assertEqual(mounts, {"aliquot-scheduler": os.path.dirname(self.option("--lease-file"))})

    def test_extender(self):
        for objects, version in ((self.base, "v1"), (self.older, "v1beta2")):
            c = yaml.safe_load(objects["ConfigMap", "kube-system", "aliquot-scheduler"]["data"]["config.yaml"])
            self.assertEqual(c.pop("apiVersion"), "kubescheduler.config.k8s.io/" + version)
            self.assertEqual(c.pop("kind"), "KubeSchedulerConfiguration")
            self.assertEqual(c.pop("percentageOfNodesToScore"), 100)
            self.assertEqual(c.pop("profiles"), [{"schedulerName": "ack-co-scheduler"}])
            election = c.pop("leaderElection")
            self.assertTrue(election["leaderElect"])
            (lease,) = [r for r in self.of("Role", "aliquot-scheduler")["rules"] if r["resources"] == ["leases"] and "resourceNames" in r]
            self.assertEqual(lease["resourceNames"], [election["resourceName"]])
            self.assertEqual(self.option("--kube-scheduler-lease"), "%(resourceNamespace)s/%(resourceName)s" % election)
            e, binder = c.pop("extenders")
            self.assertEqual(c, {})
            for entry in (e, binder):
                self.assertEqual(entry.pop("urlPrefix"), f"http://{self.option('--listen')}/gpushare-scheduler")
                self.assertTrue(entry.pop("nodeCacheCapable"))
                self.assertFalse(entry.pop("ignorable"))
            self.assertGreater(e.pop("weight") * 10, 1200)
            # No managedResources: every pod of the profile.
            self.assertEqual(e, {"httpTimeout": "10s", **{verb + "Verb": verb for verb in ("filter", "prioritize", "preempt")}})
            self.assertEqual(binder, {"bindVerb": "bind", "httpTimeout": "40s"})

    def test_rules_are_narrow(self):
        for role in self.of("ClusterRole") + self.of("Role"):
            for rule in role["rules"]:
                self.assertNotIn("*", rule["verbs"] + rule["resources"] + rule["apiGroups"])
                self.assertNotIn("delete", rule["verbs"])
                if rule["resources"] in (["secrets"], ["leases"]) and rule["verbs"] != ["create"]:
                    self.assertEqual(len(rule["resourceNames"]), 1)

    def test_rules_are_enough(self):
        """A role allows the calls of its program: each of these functions is one call of the API."""
        calls = {"kube_get_pod": ("pods", "get"), "kube_bind": ("pods/binding", "create"),
                 "kube_merge_patch": ("pods", "patch"), "kube_event": ("events", "create"), "kube_event_recorder_new": ("events", "patch")}
        for name, rooms in (("aliquot-node", ["node"]), ("aliquot-scheduler", ["scheduler"])):
            source = "".join(text(path) for room in rooms for path in files(os.path.join(ROOT, "src", room), ".c"))
            allowed = {(resource, verb) for rule in self.of("ClusterRole", name)["rules"]
                       for resource in rule["resources"] for verb in rule["verbs"]}
            for function, needed in calls.items():
                if re.search(rf"\b{function}\(", source):
                    self.assertIn(needed, allowed, f"{name}: {function}")

    def test_evictions_are_off_unless_asked_for(self):
        used = [resource for role in self.of("ClusterRole") + self.of("Role") for rule in role["rules"] for resource in rule["resources"]]
        self.assertNotIn("pods/eviction", used)
        self.assertNotIn("--evict-for-cards", self.container("Deployment", "aliquot-scheduler")["args"])
        role, binding = load(os.path.join(CHART, "objects/eviction/eviction-rbac.yaml"))
        self.assertEqual(role["rules"], [{"apiGroups": [""], "resources": ["pods/eviction"], "verbs": ["create"]}])
        self.assertEqual(binding["roleRef"]["name"], role["metadata"]["name"])
        (component,) = load(os.path.join(KUSTOMIZE, "evict-for-cards/kustomization.yaml"))
        self.assertIn("--evict-for-cards", component["patches"][0]["patch"])
        self.assertIn("--evict-for-cards", subprocess.run([PROGRAM, "scheduler", "--help"], capture_output=True, text=True, check=True).stdout)

    def test_batching_goes_off_as_in_the_chart(self):
        """The chart knows the version; a kustomization names the component."""
        (gate,) = re.findall(r"^ +- (--feature-gates=\S+)$", text(os.path.join(CHART, "templates/scheduler.yaml")), re.M)
        (component,) = load(os.path.join(KUSTOMIZE, "opportunistic-batching-off/kustomization.yaml"))
        (patch,) = component["patches"]
        self.assertEqual((component["kind"], set(component)), ("Component", {"apiVersion", "kind", "patches"}))
        self.assertNotIn(gate, self.of(patch["target"]["kind"], patch["target"]["name"])["spec"]["template"]["spec"]["containers"][1]["args"])
        self.assertEqual(yaml.safe_load(patch["patch"]), [{"op": "add", "path": "/spec/template/spec/containers/1/args/-", "value": gate}])

    def test_growth_beyond_limits_is_off_unless_asked_for(self):
        used = [resource for role in self.of("ClusterRole") + self.of("Role") for rule in role["rules"] for resource in rule["resources"]]
        self.assertNotIn("resourcequotas", used)
        role, binding = load(os.path.join(CHART, "objects/growth/growth-rbac.yaml"))
        self.assertEqual([(rule["resources"], rule["verbs"]) for rule in role["rules"]], [(["nodes"], ["get", "patch"]), (["resourcequotas"], ["list"])])
        self.assertEqual(binding["roleRef"]["name"], role["metadata"]["name"])
        (component,) = load(os.path.join(KUSTOMIZE, "grow-beyond-limits/kustomization.yaml"))
        for verb, kind, name in (("scheduler", "Deployment", "aliquot-scheduler"), ("node", "DaemonSet", "gpushare-device-plugin-ds")):
            self.assertNotIn("--grow-beyond-limits", self.container(kind, name)["args"])
            self.assertIn("--grow-beyond-limits", [p for p in component["patches"] if p["target"]["name"] == name][0]["patch"])
            self.assertIn("--grow-beyond-limits", subprocess.run([PROGRAM, verb, "--help"], capture_output=True, text=True, check=True).stdout)

    def test_the_page_is_off_unless_asked_for(self):
        self.assertFalse([a for a in self.container("Deployment", "aliquot-scheduler")["args"] if "page" in a])

    def test_objects_for_prometheus_find_the_pods(self):
        """Each names a port that the pods have, and selects them by their labels."""
        pods = [o["spec"]["template"] for o in self.of("DaemonSet") + self.of("Deployment")]
        objects = [o for name in ("monitoring", "monitoring-service")
                   for path in files(os.path.join(CHART, "objects", name), ".yaml") for o in load(path) if "selector" in o.get("spec", {})]
        self.assertEqual(len(objects), 4)
        for o in objects:
            monitor = o["kind"] == "PodMonitor"
            labels = o["spec"]["selector"]["matchLabels"] if monitor else o["spec"]["selector"]
            port = o["spec"]["podMetricsEndpoints"][0]["port"] if monitor else o["spec"]["ports"][0]["targetPort"]
            (found,) = [p["spec"] for p in pods if labels.items() <= p["metadata"]["labels"].items()]
            numbers = {p["name"]: p["containerPort"] for c in found["containers"] for p in c.get("ports", [])}
            self.assertIn(port, numbers)
            if not monitor:
                self.assertEqual(o["metadata"]["annotations"]["prometheus.io/port"], str(numbers[port]))
        for name in "monitoring", "monitoring-service":
            (component,) = load(os.path.join(KUSTOMIZE, name, "kustomization.yaml"))
            self.assertTrue(os.path.isdir(os.path.join(KUSTOMIZE, name, component["resources"][0])))

    def test_the_documented_job_finds_the_same_ports(self):
        """The job for a Prometheus without the Operator keeps each port of the pods that a PodMonitor names."""
        page = text(os.path.join(ROOT, "docs/operate/monitoring.md"))
        (job,) = yaml.safe_load(re.search(r"^```\n(scrape_configs:\n.*?)^```", page, re.M | re.S)[1])["scrape_configs"]
        (rule,) = job["relabel_configs"]
        self.assertEqual(rule["source_labels"], ["__meta_kubernetes_pod_label_app_kubernetes_io_name", "__meta_kubernetes_pod_container_port_name"])
        kept = {port["name"] for w in self.workloads() for c in w["spec"]["template"]["spec"]["containers"] for port in c.get("ports", [])
                if re.fullmatch(rule["regex"], w["metadata"]["labels"]["app.kubernetes.io/name"] + ";" + port["name"])}
        monitors = load(os.path.join(CHART, "objects/monitoring/pod-monitors.yaml"))
        self.assertEqual(kept, {o["spec"]["podMetricsEndpoints"][0]["port"] for o in monitors})

    def test_rules_are_documented(self):
        page = text(os.path.join(ROOT, "docs/operate/admission.md")).split("\n## Rights\n")[1]
        rows = [[cell.strip().strip("`") for cell in line.strip("|").split("|")] for line in page.splitlines() if line.startswith("| `aliquot-")]
        documented = {(row[0], row[1].replace("`", ""), row[2]) for row in rows}
        self.assertTrue(all(row[3] for row in rows))
        used = set()
        for role in self.of("ClusterRole") + self.of("Role"):
            where = "" if role["kind"] == "ClusterRole" else " in kube-system"
            for rule in role["rules"]:
                names = " " + " ".join(rule["resourceNames"]) if "resourceNames" in rule else ""
                used |= {(role["metadata"]["name"], resource + names + where, " ".join(rule["verbs"])) for resource in rule["resources"]}
        self.assertEqual(used, documented)


class Webhooks(Case):
    def configurations(self, objects):
        return [o for o in objects.values() if o["kind"].endswith("WebhookConfiguration")]

    def test_common(self):
        for objects in (self.base, self.older):
            found = self.configurations(objects)
            self.assertEqual(sorted(o["kind"] for o in found), ["MutatingWebhookConfiguration", "ValidatingWebhookConfiguration"])
            for o in found:
                self.assertEqual(o["metadata"]["name"], "aliquot")
                verb = "mutate" if o["kind"].startswith("Mutating") else "validate"
                for hook in o["webhooks"]:
                    self.assertEqual(hook["clientConfig"], {"service": {
                        "namespace": "kube-system", "name": "aliquot-webhook", "port": 443,
                        "path": "/gpushare-scheduler/webhook/" + verb}})
                    self.assertEqual((hook["sideEffects"], hook["admissionReviewVersions"]), ("None", ["v1"]))
                    self.assertEqual(hook["namespaceSelector"]["matchExpressions"][0]["values"], ["kube-system"])
        self.assertEqual(self.of("Service", "aliquot-webhook")["spec"]["ports"][0]["port"], 443)

    def matched(self, o):
        return {(hook["name"], resource, op) for hook in o["webhooks"] for rule in hook["rules"]
                for resource in rule["resources"] for op in rule["operations"]}

    def test_rules(self):
        templates = ["replicationcontrollers", "deployments", "statefulsets", "daemonsets", "replicasets", "jobs"]
        both = ("CREATE", "UPDATE")
        for objects in (self.base, self.older):
            m, v = sorted(self.configurations(objects), key=lambda o: o["kind"])
            keys = objects is self.base
            gangs = {("gangs.aliquot.dev", "pods", "CREATE")} if keys else set()
            self.assertEqual(self.matched(m), {("pods.aliquot.dev", "pods", "CREATE")} | gangs |
                             ({("system-keys.aliquot.dev", "pods", "CREATE"), ("resize-keys.aliquot.dev", "pods", "CREATE")} if keys else set()))
            self.assertEqual(self.matched(v), {("pods.aliquot.dev", "pods", op) for op in both} | gangs |
                             ({("system-keys.aliquot.dev", resource, "UPDATE") for resource in ("pods", "pods/status")} if keys else set()) |
                             {("templates.aliquot.dev", t, op) for t in templates for op in both} |
                             {("cronjobs.aliquot.dev", "cronjobs", op) for op in both})

    def test_a_webhook_that_is_down_stops_nobody_else(self):
        for o in self.configurations(self.base):
            for hook in o["webhooks"]:
                own = {"gangs.aliquot.dev": "names-a-gang", "resize-keys.aliquot.dev": "carries-keys-of-a-resize"}.get(hook["name"])
                if own:
                    self.assertIn(own, [c["name"] for c in hook["matchConditions"]])
                    self.assertEqual(hook["failurePolicy"], "Ignore")
                    continue
                keys = hook["name"] == "system-keys.aliquot.dev"
                wanted = "asks-for-a-share" if not keys else "carries-system-keys" if o["kind"].startswith("Mutating") else "changes-system-keys"
                self.assertIn(wanted, [c["name"] for c in hook["matchConditions"]])
                self.assertEqual(hook["failurePolicy"], "Fail" if keys or o["kind"].startswith("Mutating") else "Ignore")
        for o in self.configurations(self.older):
            for hook in o["webhooks"]:
                self.assertEqual(hook["failurePolicy"], "Ignore")
                self.assertNotIn("matchConditions", hook)
                self.assertEqual(hook["objectSelector"]["matchExpressions"][0]["key"], "aliquot.dev/webhook")

    def test_pods_of_our_scheduler_are_asked_about(self):
        """They get toleration and annotation as well. Other schedulers' pods are left alone."""
        (ours,) = re.findall(r'^#define VERDICT_SCHEDULER +"(.*)"', text(os.path.join(ROOT, "src/scheduler/webhook/verdict.h")), re.M)
        (mutating,) = [o for o in self.configurations(self.base) if o["kind"].startswith("Mutating")]
        (hook,) = [hook for hook in mutating["webhooks"] if hook["name"] == "pods.aliquot.dev"]
        (named,) = [c["expression"] for c in hook["matchConditions"] if c["name"] == "no-scheduler-of-its-own"]
        self.assertEqual(named, f"!has(object.spec.schedulerName) || object.spec.schedulerName in ['', 'default-scheduler', '{ours}']")

    def test_our_gate_is_judged_on_pods_of_every_scheduler(self):
        (validating,) = [o for o in self.configurations(self.base) if o["kind"].startswith("Validating")]
        (hook,) = [hook for hook in validating["webhooks"] if hook["name"] == "gangs.aliquot.dev"]
        gate = "has(object.spec.schedulingGates) && object.spec.schedulingGates.exists(g, g.name == 'aliquot.dev/gang')"
        for c in hook["matchConditions"]:
            if "schedulerName" in c["expression"] or c["name"] == "names-a-gang":
                self.assertTrue(" ".join(c["expression"].split()).endswith("|| " + gate), c["name"])

    def test_conditions_ask_the_same_of_every_shape(self):
        for o in self.configurations(self.base):
            asks = set()
            for hook in o["webhooks"]:
                if hook["name"] in ("system-keys.aliquot.dev", "resize-keys.aliquot.dev", "gangs.aliquot.dev"):
                    continue
                (e,) = [c["expression"] for c in hook["matchConditions"] if c["name"] == "asks-for-a-share"]
                e = " ".join(e.replace("object.spec.jobTemplate.spec.template.", "object.").replace("object.spec.template.", "object.").split())
                e = e.replace("has(object.spec.jobTemplate.spec) && ", "").replace("has(object.spec.jobTemplate.spec.template) && ", "")
                e = e.replace("has(object.spec.template) && ", "").replace("has(object.metadata) && ", "")
                asks.add(re.sub(r"^has\(object\.spec\) && \( (.*)\)$", r"\1", e))
            self.assertEqual(len(asks), 1, asks)
            mutating = o["kind"].startswith("Mutating")  # only the other one warns of a misspelt limit
            for part in ("'aliyun.com/gpu-mem'", "'aliyun.com/gpu-core.percentage'") if mutating else ("startsWith('aliyun.com/gpu')",):
                self.assertIn(part, min(asks))
            self.assertIn("'aliyun.com/gpu-count'", min(asks))
            theirs = re.findall(r'STR\("(nvidia\.com/[\w-]+)"\)', text(os.path.join(ROOT, "src/wire/pod.c")))
            self.assertIn("nvidia.com/gpumem", theirs)
            self.assertEqual(re.findall(r"'(nvidia\.com/[\w-]+)'", min(asks)), [] if mutating else theirs)  # warned of, not ours

    def test_what_gangs_leave_is_asked_about_by_pods(self):
        (validating,) = [o for o in self.configurations(self.base) if o["kind"].startswith("Validating")]
        named = {c["name"]: c["expression"] for hook in validating["webhooks"] if hook["name"] in ("pods.aliquot.dev", "gangs.aliquot.dev")
                 for c in hook["matchConditions"]}
        asks, no = ("".join(named[name].split()) for name in ("asks-for-a-share", "asks-for-no-share"))
        limits, _, label = asks.rpartition("||")
        self.assertEqual(no, f"!{limits}&&!({label})")


class SystemKeys(Case):
    """The expressions repeat the list of src/wire/annotation.h."""

    def expressions(self):
        for o in self.base.values():
            if o["kind"].endswith("WebhookConfiguration"):
                for hook in o["webhooks"]:
                    yield from ((o["kind"] + " " + hook["name"], c["expression"]) for c in hook["matchConditions"])
            if o["kind"] == "ValidatingAdmissionPolicy":
                spec = o["spec"]
                for rule in spec.get("matchConditions", []) + spec.get("variables", []) + spec["validations"]:
                    yield o["metadata"]["name"], rule["expression"]

    def test_lists_are_whole(self):
        self.assertEqual(len(SYSTEM_KEYS), 11)
        found = {}
        for where, e in self.expressions():
            if SYSTEM_KEYS[0] in e:
                self.assertNotIn(where, found)
                found[where] = [key for key in re.findall(r"'([\w./-]+)'", e) if key in SYSTEM_KEYS or "gpushare" in key or "GPU_MEM" in key]
        self.assertEqual(set(found), {"MutatingWebhookConfiguration system-keys.aliquot.dev", "aliquot-system-keys", "aliquot-own-pods",
                                      "aliquot-scheduler-pods", "ValidatingWebhookConfiguration system-keys.aliquot.dev", "aliquot-own-bindings"})
        for where, keys in found.items():
            self.assertEqual(keys, SYSTEM_KEYS, where)
        # The mark of a ResourcePolicy is one for users alone: the scheduler patches it.
        marked = {where for where, e in self.expressions() if "'aliquot.dev/resource-policy'" in e}
        self.assertEqual(marked, {"MutatingWebhookConfiguration system-keys.aliquot.dev", "ValidatingWebhookConfiguration system-keys.aliquot.dev",
                                  "aliquot-system-keys"})

    def test_where_there_are_policies(self):
        def kinds(objects):
            return {o["kind"] for o in objects.values() if "AdmissionPolicy" in o["kind"]}
        self.assertEqual(kinds(self.base), {"ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding"})
        self.assertEqual(kinds(self.middle) | kinds(self.older), set())
        self.assertEqual({k: o for k, o in self.base.items() if "AdmissionPolicy" not in o["kind"]}, self.middle)

    def test_policies_are_bound(self):
        for o in self.of("ValidatingAdmissionPolicy"):
            name = o["metadata"]["name"]
            self.assertEqual(o["spec"]["failurePolicy"], "Fail")
            self.assertEqual(self.of("ValidatingAdmissionPolicyBinding", name)["spec"], {"policyName": name, "validationActions": ["Deny"]})

    def test_policies_name_accounts_that_are_there(self):
        accounts = {"system:serviceaccount:kube-system:" + o["metadata"]["name"] for o in self.of("ServiceAccount")}
        source = text(os.path.join(ROOT, "src/scheduler/webhook/review.h"))
        review = text(os.path.join(ROOT, "src/scheduler/webhook/review.c"))
        for name in ("kube-system", "aliquot-scheduler", "aliquot-node"):
            self.assertIn(f'STR("{name}")', review)
        named = set(re.findall(r"system:serviceaccount:[\w:-]+", " ".join(e for _, e in self.expressions()) + source))
        self.assertEqual(named, {"system:serviceaccount:kube-system:aliquot-scheduler", "system:serviceaccount:kube-system:aliquot-node"})
        self.assertLessEqual(named, accounts)

    def test_the_chart_finds_its_place(self):
        """templates/objects.yaml appends systemAccounts where this text ends, in system-keys.yaml alone."""
        policy = text(os.path.join(CHART, "objects/policies/system-keys.yaml"))
        self.assertEqual(policy.count("aliquot-node']"), 1)
        (accounts,) = [v for v in self.of("ValidatingAdmissionPolicy", "aliquot-system-keys")["spec"]["variables"] if v["name"] == "accounts"]
        self.assertTrue(accounts["expression"].endswith("aliquot-node']"))


class Programs(Case):
    def run_args(self, args):
        args = [a.replace("$(NODE_NAME)", "n1") for a in args]
        environment = {"PATH": os.environ["PATH"], "KUBECONFIG": "/proc/self/absent/kubeconfig"}
        return subprocess.run([PROGRAM, *args], env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=240)

    def test_args_parse(self):
        """Every argument is accepted: the program ends because there is no cluster."""
        for kind, name in (("DaemonSet", "gpushare-device-plugin-ds"), ("Deployment", "aliquot-scheduler")):
            with self.subTest(name=name):
                p = self.run_args(self.container(kind, name)["args"])
                self.assertEqual(p.returncode, 3, p.stdout)
                self.assertIn("/proc/self/absent/kubeconfig", p.stdout)

    def test_settings_that_only_the_chart_sets(self):
        both = ["--max-pods-per-card=0", "--allow-mixed=true"]
        for kind, name, more in (("DaemonSet", "gpushare-device-plugin-ds", ["--max-inst=4", "--prio-ratio=60", "--place-while-changing=true",
                                                                             "--ignore-cgpu-disable", "--say-refusals", "--known-drivers-only",
                                                                             "--keep-nvidia-plugin-off"]),
                                 ("Deployment", "aliquot-scheduler", ["--system-accounts=system:serviceaccount:kube-system:old", "--spare-idle-cards"])):
            for argument in both + more:
                self.assertIn(argument.split("=")[0], text(os.path.join(CHART, "templates/node.yaml" if kind == "DaemonSet" else "templates/scheduler.yaml")))
            p = self.run_args(self.container(kind, name)["args"] + both + more)
            self.assertEqual(p.returncode, 3, p.stdout)
            self.assertIn("/proc/self/absent/kubeconfig", p.stdout)

    def test_args_that_only_the_chart_sets(self):
        p = self.run_args(self.container("DaemonSet", "gpushare-device-plugin-ds")["args"] + ["--simulate=2xTesla-V100-SXM2-16GB:16160MiB"])
        self.assertEqual(p.returncode, 3, p.stdout)


class Text(Case):
    def test_no_registry(self):
        """Each cluster says where its images come from. The defaults are the name that `make image` gives its archive, and Kubernetes' own registry."""
        host = re.compile(r"\b[a-z0-9-]+(\.[a-z0-9-]+)*\.(io|com|cn|org|net|dev)(:\d+)?/[\w./-]+:(v?\d|latest)|registry\.|docker\.io|\bghcr\b|\bquay\b")
        ours = re.compile(r"docker\.io/library/aliquot:|^ +registry: (docker\.io|registry\.k8s\.io)$")
        for path in list(files(os.path.join(ROOT, "deploy"), ".yaml", ".json")) + [os.path.join(ROOT, "Dockerfile")]:
            for number, line in enumerate(text(path).splitlines(), 1):
                self.assertIsNone(host.search(ours.sub("aliquot:", line)), f"{path}:{number}: {line}")

    def test_kube_scheduler_has_no_default_without_the_chart(self):
        self.assertEqual(self.container("Deployment", "aliquot-scheduler", 1)["image"], "kube-scheduler")


class Values(Case):
    """Checks of the chart that need no helm; tests/deploy/chart.py has the others."""

    def leaves(self, value, path=()):
        if not isinstance(value, dict) or not value or path and path[-1] in ("resources", "affinity", "nodeSelector"):
            return {path}
        return set().union(*(self.leaves(v, path + (k,)) for k, v in value.items()))

    def test_all_values_are_used_and_there(self):
        (values,) = load(os.path.join(CHART, "values.yaml"))
        used = {tuple(m.split(".")) for path in files(os.path.join(CHART, "templates"), ".yaml", ".tpl", ".txt")
                for m in re.findall(r"\.Values\.([\w.]+)", text(path))}
        leaves = self.leaves(values)
        # A group is asked for by its own name, too, as an image is.
        self.assertEqual({u for u in used if not any(leaf[:len(u)] == u for leaf in leaves)}, set())
        self.assertEqual({leaf for leaf in leaves if not any(leaf[:len(u)] == u for u in used)}, set())

    def test_what_stops_an_installation_is_named(self):
        """An image that cannot be pulled and a runtime without CDI, after `helm install`; a cluster that is too old, before it."""
        notes = text(os.path.join(CHART, "templates/NOTES.txt"))
        self.assertIn("ImagePullBackOff names an image above", notes)
        self.assertIn("the node's container runtime may have CDI off", notes)
        self.assertIn("aliquot doctor", notes)
        self.assertIn("without Events no scheduler is ready", notes)
        (chart,) = load(os.path.join(CHART, "Chart.yaml"))
        self.assertEqual(chart["kubeVersion"], ">=1.22.0-0")  # test-server-version.c has the floor that doctor names

    def test_extra_args_double_no_option(self):
        """The chart refuses an option in extraArgs that a template has: _helpers.tpl lists them, with the value that sets each."""
        helpers = text(os.path.join(CHART, "templates/_helpers.tpl"))
        (values,) = load(os.path.join(CHART, "values.yaml"))
        for program, template in (("node", "node"), ("scheduler", "scheduler")):
            (listed,) = re.findall(r'\{\{- define "aliquot\.%sOptions" -\}\}\n(.*?)\{\{- end' % program, helpers, re.S)
            listed = yaml.safe_load(listed)
            first = re.split(r"\n +env:", text(os.path.join(CHART, f"templates/{template}.yaml")))[0]
            self.assertEqual(set(re.findall(r'^ +- (?:\{\{ printf ")?(--[a-z-]+)', first, re.M)), set(listed))
            for value in filter(None, listed.values()):
                at = values
                for name in value.split("."):
                    self.assertIn(name, at)
                    at = at[name]

    def test_schema_knows_the_values(self):
        (schema,) = load(os.path.join(CHART, "values.schema.json"))  # JSON is YAML
        (values,) = load(os.path.join(CHART, "values.yaml"))

        def known(value, s, path):
            s = schema["definitions"][s["$ref"].split("/")[-1]] if "$ref" in s else s
            if "properties" in s:
                self.assertFalse(s["additionalProperties"])
                for k, v in value.items():
                    self.assertIn(k, s["properties"], path)
                    known(v, s["properties"][k], path + [k])
        known(values, schema, [])

    def test_no_port_of_the_scheduler_is_taken_twice(self):
        """The chart excludes the ports of the pod: of the verbs, and of both containers."""
        (taken,) = re.findall(r"page\.port\)\) \(list ([^)]*)\)", text(os.path.join(CHART, "templates/_helpers.tpl")))
        fixed = [12345] + [p["containerPort"] for at in (0, 1) for p in self.container("Deployment", "aliquot-scheduler", at)["ports"]]
        self.assertEqual([int(port.strip('"')) for port in taken.split()], fixed)

    def test_defaults_are_those_of_kustomize(self):
        (values,) = load(os.path.join(CHART, "values.yaml"))
        self.assertEqual(values["kubeScheduler"], {"resources": self.container("Deployment", "aliquot-scheduler", 1)["resources"], "extraArgs": []})
        self.assertEqual(values["simulator"]["resources"], values["node"]["resources"])
        self.assertEqual(values["namespace"], "kube-system")
        self.assertFalse(values["scheduler"]["readsOnLoopback"])
        for key, kind, name in (("node", "DaemonSet", "gpushare-device-plugin-ds"), ("scheduler", "Deployment", "aliquot-scheduler")):
            o = self.of(kind, name)["spec"]
            self.assertEqual(values[key]["resources"], o["template"]["spec"]["containers"][0]["resources"])
            self.assertEqual(values[key]["affinity"], o["template"]["spec"]["affinity"])
            self.assertEqual(values[key].get("replicas"), o.get("replicas"))
            pod = o["template"]["spec"]
            for name in "tolerations", "priorityClassName":
                self.assertEqual(values[key][name], pod[name])
            self.assertEqual(values[key]["nodeSelector"], pod.get("nodeSelector", {}))
            self.assertEqual((values[key]["annotations"], values[key]["labels"], values[key]["extraArgs"]), ({}, {}, []))
        args = self.container("DaemonSet", "gpushare-device-plugin-ds")["args"]
        self.assertEqual(values["deviceAccess"], "auto")
        self.assertIn(f"--gpu-mem-unit={values['gpuMemoryUnit']}", args)
        self.assertEqual(values["policy"], 5)  # native: what a node agent does without being told
        self.assertEqual([a for a in args if "policy" in a], [])
        self.assertEqual((values["hungKernel"], values["onHungKernel"], values["onComputeExcess"], values["onExcess"]), (10,) + 3 * ("report",))
        self.assertEqual([a for a in args if "hung" in a or "excess" in a], [])
        self.assertEqual([values[key] for key in ("maxInst", "prioRatio", "maxPodsPerCard")], ["", "", ""])
        self.assertEqual([values[key] for key in ("allowMixed", "placeWhileChanging", "ignoreCgpuDisable", "sayRefusals", "knownDriversOnly",
                                                     "keepNvidiaPluginOff")], [False] * 6)
        self.assertEqual(values["memoryIsolation"], "auto")
        both = args + self.container("Deployment", "aliquot-scheduler")["args"]
        self.assertEqual([a for a in both if re.search("max-|prio|mixed|changing|ignore|refusals|known|accounts|memory-isolation", a)], [])
        self.assertEqual([a for a in both if "device-access" in a], 2 * ["--device-access=cdi"])
        self.assertEqual((values["systemAccounts"], values["admissionPolicies"]), ([], "auto"))

    def test_version(self):
        (chart,) = load(os.path.join(CHART, "Chart.yaml"))
        (values,) = load(os.path.join(CHART, "values.yaml"))
        version = subprocess.run([PROGRAM, "--version"], stdout=subprocess.PIPE, text=True, check=True).stdout.split()[1]
        self.assertEqual((chart["version"], chart["appVersion"]), (version, version))
        image = values["images"]["aliquot"]
        self.assertEqual((image["tag"], image["digest"]), ("", ""))  # the chart's version
        images = {self.container(kind, name)["image"] for kind, name in
                  (("DaemonSet", "gpushare-device-plugin-ds"), ("Deployment", "aliquot-scheduler"))}
        self.assertEqual(images, {f"{image['registry']}/{image['repository']}:{version}"})


if __name__ == "__main__":
    unittest.main()
