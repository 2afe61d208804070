# SPDX-License-Identifier: Apache-2.0
"""kubectl, and the shapes of objects. Every login that kubectl supports works here; no other client
is needed."""

import json
import os
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "fake"))

import page as layout  # noqa: E402

KUBECTL = os.environ.get("KUBECTL", "kubectl")
NAMESPACE = os.environ.get("E2E_NAMESPACE", "aliquot-e2e")
IMAGE = os.environ.get("E2E_IMAGE", "busybox")
MEM, CORE, COUNT = "aliyun.com/gpu-mem", "aliyun.com/gpu-core.percentage", "aliyun.com/gpu-count"
WHOLE = "aliyun.com/gpu"
MODE, PLACEMENT = "ack.node.gpu.schedule", "ack.node.gpu.placement"
SCHEDULER = "ack-co-scheduler"
RUN = "aliquot-e2e"  # label of all objects that a test makes


class KubectlError(Exception):
    pass


def kubectl(*args, stdin=None, check=True, timeout=90):
    """stdout of `kubectl ARGS`; with check=False the finished process."""
    done = subprocess.run([KUBECTL, *args], input=stdin, capture_output=True, text=True, timeout=timeout)
    if not check:
        return done
    if done.returncode != 0:
        raise KubectlError(f"kubectl {' '.join(args)}: {done.stderr.strip()}")
    return done.stdout


def get(kind, name=None, selector=None, namespace=NAMESPACE, missing=None):
    """The object, or the list of items; `missing` when the object does not exist."""
    args = ["get", kind, "-o", "json", "-n", namespace]
    if name:
        args += [name, "--ignore-not-found"]
    if selector:
        args += ["-l", selector]
    text = kubectl(*args)
    if name:
        return json.loads(text) if text.strip() else missing
    return json.loads(text)["items"]


def as_list(objects):
    return json.dumps({"apiVersion": "v1", "kind": "List", "items": list(objects)})


def create(*objects):
    return kubectl("create", "-f", "-", "-n", NAMESPACE, stdin=as_list(objects))


def refused(obj):
    """The message with which the API server refuses an object; "" when it accepts it. Nothing is
    created in either case."""
    done = kubectl("create", "--dry-run=server", "-n", NAMESPACE, "-f", "-", stdin=json.dumps(obj), check=False)
    return done.stderr if done.returncode else ""


def read_manifest(path):
    """A manifest file as objects; kubectl reads the YAML, the standard library has no reader for it. kubectl prints the
    documents of one file one after the other."""
    text = kubectl("create", "--dry-run=client", "--validate=false", "-o", "json", "-n", NAMESPACE, "-f", path).strip()
    objects = []
    while text:
        obj, end = json.JSONDecoder().raw_decode(text)
        objects += obj["items"] if obj["kind"] == "List" else [obj]
        text = text[end:].lstrip()
    return objects


def until(what, predicate, seconds=90, every=0.3):
    """Waits until `predicate` returns a true value, and returns that. Reaching the deadline is a
    failure."""
    end = time.monotonic() + seconds
    while True:
        found = predicate()
        if found:
            return found
        if time.monotonic() > end:
            raise AssertionError(f"not within {seconds} s: {what() if callable(what) else what}")
        time.sleep(every)


# ---- pods ----

# Prints what a container was given: its environment, and of each slice page (src/slice/page.h) the
# limit, the card and the owner. Then it lives until it is killed.
PAGES = ("for d in /.aliquot/slice/*/; do l=$d/limits; [ -f $l ] || continue; "
         f"echo \"PAGE_$(basename $d)=$(od -An -tu8 -j{layout.LIMIT} -N8 $l | tr -d ' ')"
         f"/$(dd if=$l bs=1 skip={layout.UUID} count={layout.UUID_SIZE} 2>/dev/null | tr -d '\\0')"
         f"/$(dd if=$l bs=1 skip={layout.CONTAINER} count={layout.CONTAINER_SIZE} 2>/dev/null | tr -d '\\0')\"; "
         "(: >> $l) 2>/dev/null && echo PAGE_WRITABLE=$l; done; "
         "[ -f /etc/ld.so.preload ] && echo PRELOAD=$(cat /etc/ld.so.preload)")
REPORT = f"env | grep -E '^(ALIYUN_COM|NVIDIA_VISIBLE|CGPU)' | sort; {PAGES}; echo reported"
STAY = REPORT + "; trap 'exit 0' TERM; sleep 1000000 & wait"


def container(name, mem=None, core=None, script=STAY, whole=None, **more):
    limits = {k: str(v) for k, v in ((MEM, mem), (CORE, core), (WHOLE, whole)) if v is not None}
    return {"name": name, "image": IMAGE, "imagePullPolicy": "IfNotPresent", "command": ["sh", "-c", script],
            "resources": {"limits": limits}, **more}


def pod(name, *containers, init=(), labels=None, scheduler=SCHEDULER, restart="Never", grace=1, **spec):
    return {"apiVersion": "v1", "kind": "Pod",
            "metadata": {"name": name, "labels": {RUN: "true", **(labels or {})}},
            "spec": {"schedulerName": scheduler, "restartPolicy": restart, "terminationGracePeriodSeconds": grace,
                     "dnsPolicy": "Default", "enableServiceLinks": False, "automountServiceAccountToken": False,
                     "initContainers": list(init), "containers": list(containers), **spec}}


def deployment(name, replicas, template):
    labels = {"app": name, **template["metadata"]["labels"]}
    spec = {**template["spec"], "restartPolicy": "Always"}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name, "labels": {RUN: "true"}},
            "spec": {"replicas": replicas, "selector": {"matchLabels": {"app": name}},
                     "template": {"metadata": {"labels": labels}, "spec": spec}}}


def asks(c, resource=MEM):
    return int(c.get("resources", {}).get("limits", {}).get(resource, 0))


def is_sidecar(c):
    return c.get("restartPolicy") == "Always"


def settled(p):
    """Runs with all its containers, or has ended."""
    if p["status"].get("phase") in ("Succeeded", "Failed"):
        return True
    states = p["status"].get("containerStatuses", [])
    return len(states) == len(p["spec"]["containers"]) and all("running" in s["state"] for s in states)


def describe(p):
    """The state of a pod and its reason, in a line."""
    s = p["status"]
    waits = [f"{c['name']}: {c['state']['waiting'].get('reason')} {c['state']['waiting'].get('message', '')}"
             for c in s.get("initContainerStatuses", []) + s.get("containerStatuses", []) if "waiting" in c["state"]]
    why = [c.get("message", "") for c in s.get("conditions", []) if c["type"] == "PodScheduled" and c["status"] != "True"]
    return f"{p['metadata']['name']} {s.get('phase')} {s.get('reason', '')} {s.get('message', '')} {' '.join(why + waits)}"
