#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes what `kubectl get nodes,pods -A -o json` prints for a cluster of NODES nodes and PODS pods
to standard output.

Indented by four blanks and with keys in kubectl's order. Environment variables fill each pod up to
4 KiB. One template is made per kind, and only names and cards are inserted, so that 400 MB are
written in seconds.
"""
import json
import sys

CARDS = 8
UNITS = 15


def node():
    labels = {f"feature.node.kubernetes.io/label-{i}": "true" for i in range(8)}
    labels["ack.node.gpu.schedule"] = "cgpu"
    amounts = {"aliyun.com/gpu-count": str(CARDS), "aliyun.com/gpu-mem": str(CARDS * UNITS), "cpu": "96",
               "memory": "1056300000Ki", "pods": "110"}
    return {
        "apiVersion": "v1", "kind": "Node",
        "metadata": {"labels": labels, "name": "@NODE@", "uid": "0b1c2d3e-0000-0000-0000-000000000000"},
        "status": {
            "addresses": [{"address": "10.@A@.@B@.1", "type": "InternalIP"}, {"address": "@NODE@", "type": "Hostname"}],
            "allocatable": amounts, "capacity": amounts,
            "images": [{"names": [f"registry.example/team/image-{i}@sha256:{i:064x}"], "sizeBytes": 123456789 + i}
                       for i in range(4)],
        },
    }


def pod(n_env, filler):
    container = {
        "env": [{"name": f"SETTING_{i}", "value": "some text with \"quotes\" in it"} for i in range(n_env)],
        "image": "registry.example/team/app:v1.2.3", "name": "main",
        "resources": {"limits": {"aliyun.com/gpu-mem": "2"}, "requests": {"aliyun.com/gpu-mem": "2"}},
        "volumeMounts": [{"mountPath": "/var/run/secrets/kubernetes.io/serviceaccount", "name": "token"}],
    }
    return {
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {
            "annotations": {
                "example.com/filler": filler,
                "scheduler.framework.gpushare.allocation": '{"0":{"@CARD@":2}}',
                "scheduler.framework.gpushare.assigned": "true",
                "scheduler.framework.gpushare.assume-time": "1700000000000000000",
            },
            "creationTimestamp": "2026-01-01T00:00:00Z", "labels": {"app": "app", "pod-template-hash": "5d4f8c7b9"},
            "name": "@POD@", "namespace": "team-@TEAM@",
            "ownerReferences": [{"apiVersion": "apps/v1", "controller": True, "kind": "ReplicaSet", "name": "app-5d4f8c7b9",
                                 "uid": "7f000000-0000-0000-0000-000000000000"}],
            "resourceVersion": "123456789", "uid": "1b000000-0000-0000-0000-000000000000",
        },
        "spec": {
            "containers": [container], "nodeName": "@NODE@", "schedulerName": "ack-co-scheduler",
            "tolerations": [{"effect": "NoExecute", "key": "node.kubernetes.io/not-ready", "operator": "Exists",
                             "tolerationSeconds": 300}],
            "volumes": [{"name": "token", "projected": {"defaultMode": 420, "sources": []}}],
        },
        "status": {
            "conditions": [{"lastProbeTime": None, "lastTransitionTime": "2026-01-01T00:00:00Z", "status": "True",
                            "type": t} for t in ("Initialized", "Ready", "ContainersReady", "PodScheduled")],
            "containerStatuses": [{"name": "main", "ready": True, "restartCount": 0,
                                   "state": {"running": {"startedAt": "2026-01-01T00:00:00Z"}}}],
            "phase": "Running", "podIP": "10.0.0.1",
        },
    }


def template(value):
    return "\n".join(" " * 8 + line for line in json.dumps(value, indent=4).split("\n"))


def pod_template(size):
    n_env = 0
    while len(template(pod(n_env + 1, ""))) <= size:
        n_env += 1
    return template(pod(n_env, "x" * max(0, size - len(template(pod(n_env, ""))))))


def main():
    n_nodes, n_pods = int(sys.argv[1]), int(sys.argv[2])
    node_text, pod_text = template(node()), pod_template(4096)
    out = sys.stdout
    out.write('{\n    "apiVersion": "v1",\n    "items": [\n')
    for i in range(n_nodes):
        out.write(node_text.replace("@NODE@", f"node-{i:05d}").replace("@A@", str(i // 250)).replace("@B@", str(i % 250)))
        out.write(",\n" if i + 1 < n_nodes or n_pods else "\n")
    for i in range(n_pods):
        text = pod_text.replace("@POD@", f"app-5d4f8c7b9-{i:06d}").replace("@NODE@", f"node-{i % n_nodes:05d}")
        out.write(text.replace("@CARD@", str(i // n_nodes % CARDS)).replace("@TEAM@", str(i % 100)))
        out.write(",\n" if i + 1 < n_pods else "\n")
    out.write('    ],\n    "kind": "List",\n    "metadata": {\n        "resourceVersion": ""\n    }\n}\n')


main()
