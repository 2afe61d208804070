# SPDX-License-Identifier: Apache-2.0
"""What tests of kubectl-inspect-cgpu share: objects of a small cluster, and the program with a scripted kubectl on PATH."""

import json
import os
import subprocess
import sys
import tempfile
import unittest

PROGRAM = os.path.abspath(sys.argv.pop(1))

SUMMARY = """\
NAME                           IPADDRESS       GPU0(Allocated/Total)  GPU Memory(GiB)
cn-zhangjiakou.192.168.66.139  192.168.66.139  3/15                   3/15
---------------------------------------------------------------------------
Allocated/Total GPU Memory In Cluster:
3/15 (20%)
"""

# Answers from $ANSWERS/nodes, $ANSWERS/pods and $ANSWERS/configmaps, by default an empty list;
# logs its arguments in $ANSWERS/calls; then runs $AFTER.
KUBECTL = """\
#!/bin/sh
for last; do :; done
printf '%s\\n' "$*" >> "$ANSWERS/calls"
case "$last" in
*/nodes*) cat "$ANSWERS/nodes" ;;
*/pods*) cat "$ANSWERS/pods" ;;
*/configmaps*) cat "$ANSWERS/configmaps" 2>/dev/null || echo '{"kind":"ConfigMapList","items":[]}' ;;
esac
eval "$AFTER"
"""


def node(name="cn-zhangjiakou.192.168.66.139", ip="192.168.66.139", mem="15", count="1"):
    return {"metadata": {"name": name},
            "status": {"allocatable": {"aliyun.com/gpu-mem": mem, "aliyun.com/gpu-count": count},
                       "addresses": [{"type": "InternalIP", "address": ip}]}}


def pod(name="binpack-0", mem="3", card="0", on="cn-zhangjiakou.192.168.66.139"):
    return {"metadata": {"name": name, "namespace": "default",
                         "annotations": {"scheduler.framework.gpushare.allocation": '{"0":{"%s":%s}}' % (card, mem)}},
            "spec": {"nodeName": on, "containers": [{"resources": {"limits": {"aliyun.com/gpu-mem": mem}}}]},
            "status": {"phase": "Running"}}


def fence(name, namespace="kube-system", **data):
    """A ConfigMap that takes cards out of service."""
    return {"kind": "ConfigMap", "metadata": {"name": name, "namespace": namespace}, "data": data}


DEVICES = "- deviceId: 0\n  deviceType: gpu\n  healthy: true\n- deviceId: 3\n  deviceType: gpu\n  healthy: false\n"


def typed(kind, *items):
    return json.dumps({"kind": kind + "List", "apiVersion": "v1", "metadata": {}, "items": items})


def mixed(*items):
    """As kubectl prints it: keys in order, indented."""
    objects = [dict(i, apiVersion="v1", kind=i.get("kind") or ("Node" if "allocatable" in i["status"] else "Pod")) for i in items]
    return json.dumps({"apiVersion": "v1", "items": objects, "kind": "List"}, indent=4, sort_keys=True)


class Inspect(unittest.TestCase):
    maxDiff = None

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def write(self, name, text, mode=0o644):
        path = os.path.join(self.folder, name)
        with open(path, "w", encoding="utf-8") as out:
            out.write(text)
        os.chmod(path, mode)
        return path

    def run_program(self, *args, stdin="", env=None):
        done = subprocess.run([PROGRAM, *args], input=stdin, env=env, capture_output=True, text=True, timeout=240,
                              check=False)
        return done.returncode, done.stdout, done.stderr

    def kubectl(self, *args, nodes=None, pods=None, configmaps=None, after="exit 0"):
        self.write("kubectl", KUBECTL, 0o755)
        self.write("nodes", typed("Node", node()) if nodes is None else nodes)
        self.write("pods", typed("Pod", pod()) if pods is None else pods)
        if configmaps is not None:
            self.write("configmaps", configmaps)
        env = dict(os.environ, PATH=self.folder + os.pathsep + os.environ["PATH"], ANSWERS=self.folder, AFTER=after)
        return self.run_program(*args, env=env)

    def calls(self):
        with open(os.path.join(self.folder, "calls"), encoding="utf-8") as lines:
            return lines.read().splitlines()
