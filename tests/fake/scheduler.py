# SPDX-License-Identifier: Apache-2.0
"""A scheduler for one node. It places the pods that name it, as kube-scheduler with our extender
does.

It decides by itself (Placer: a random card that fits, so that the agent cannot be right by chance),
or calls the real extender (filter, prioritize, bind)."""

import http.client
import json
import random
import threading
import time

from api import ApiError, Watch, pod_path
from device_manager import int_or_zero, is_sidecar
from grpc_wire import GPU_CORE, GPU_MEM

ALLOCATION = "scheduler.framework.gpushare.allocation"
CORE = "gpushare.alibabacloud.com/core-percentage"
INIT = "aliquot.dev/init-allocation"
ASSIGNED = "scheduler.framework.gpushare.assigned"
ASSUME_TIME = "scheduler.framework.gpushare.assume-time"
HELD = "aliquot.dev/held-slices"
COUNT_LABEL = "aliyun.com/gpu-count"


def limit(container, resource):
    return int_or_zero(container.get("resources", {}).get("limits", {}).get(resource, 0))


def cards_of(pod):
    return int(pod["metadata"].get("labels", {}).get(COUNT_LABEL, 1))


def demand(pod, resource):
    """What the pod holds of each card: containers and sidecars together, or the largest sum before."""
    spec, m = pod["spec"], cards_of(pod) if resource == GPU_MEM else 1
    beside, most = 0, 0
    for c in spec.get("initContainers", []):
        n = limit(c, resource) // m
        if is_sidecar(c):
            beside += n
            most = max(most, beside)
        else:
            most = max(most, beside + n)
    return max(most, beside + sum(limit(c, resource) // m for c in spec["containers"]))


def is_over(pod):
    return pod.get("status", {}).get("phase") in ("Succeeded", "Failed")


def annotations_for(pod, cards, units):
    """cards: indexes. units: those of each card of the node."""
    spec, m = pod["spec"], len(cards)

    def shares(containers, resource, divide):
        return {str(i): {str(c): limit(k, resource) // divide for c in cards}
                for i, k in enumerate(containers) if limit(k, resource)}
    found = {ALLOCATION: json.dumps(shares(spec["containers"], GPU_MEM, m)), ASSIGNED: "false",
             ASSUME_TIME: str(time.time_ns())}
    core = shares(spec["containers"], GPU_CORE, 1)
    init = shares(spec.get("initContainers", []), GPU_MEM, m)
    if core:
        found[CORE] = json.dumps(core)
    if init:
        found[INIT] = json.dumps(init)
    if m == 1:
        found.update({"ALIYUN_COM_GPU_MEM_IDX": str(cards[0]), "ALIYUN_COM_GPU_MEM_DEV": str(units[cards[0]]),
                      "ALIYUN_COM_GPU_MEM_POD": str(sum(limit(k, GPU_MEM) for k in spec["containers"])),
                      "ALIYUN_COM_GPU_MEM_ASSIGNED": "false", "ALIYUN_COM_GPU_MEM_ASSUME_TIME": found[ASSUME_TIME]})
    return found


def bind(api, pod, node, annotations):
    meta = pod["metadata"]
    api.post(pod_path(pod) + "/binding", {
        "apiVersion": "v1", "kind": "Binding",
        "metadata": {"name": meta["name"], "namespace": meta.get("namespace", "default"), "uid": meta["uid"],
                     "annotations": annotations},
        "target": {"apiVersion": "v1", "kind": "Node", "name": node}})


class Scheduler:
    """Places pods with spec.schedulerName NAME and no node. extender: "host:port" of the real one,
    or None."""

    def __init__(self, api, node, units, seed, extender=None, name="ack-co-scheduler"):
        self.api, self.node, self.units, self.name = api, node, units, name
        self.rng = random.Random(seed)
        self.extender = extender
        self.condition = threading.Condition()
        self.waiting = {}   # uid -> pod
        self.holding = {}   # uid -> {card: (mem, core)}
        self.held = {}      # slices of deleted pods, by the node's annotation
        self.bound = 0
        self.refusals = []
        self.stopping = False
        self.news = 0
        self.watches = [Watch(api, "/api/v1/pods", "", self._on_list, self._on_pod),
                        Watch(api, "/api/v1/nodes", f"fieldSelector=metadata.name%3D{node}", self._on_nodes,
                              lambda kind, obj: self._on_nodes([obj]))]
        self.thread = threading.Thread(target=self._run, daemon=True)
        self.thread.start()

    def stop(self):
        with self.condition:
            self.stopping = True
            self.condition.notify_all()
        for w in self.watches:
            w.stop()
        self.thread.join(10)

    def _on_list(self, items):
        with self.condition:
            gone = (set(self.waiting) | set(self.holding)) - {p["metadata"]["uid"] for p in items}
        for uid in gone:
            self._on_pod("DELETED", {"metadata": {"uid": uid}})
        for pod in items:
            self._on_pod("ADDED", pod)

    def _on_pod(self, kind, pod):
        uid = pod["metadata"]["uid"]
        with self.condition:
            self.news += 1
            if kind == "DELETED" or is_over(pod):
                self.waiting.pop(uid, None)
                self.holding.pop(uid, None)
            elif pod["spec"].get("nodeName"):
                self.waiting.pop(uid, None)
                self.holding[uid] = self._charge(pod)
            elif pod["spec"].get("schedulerName") == self.name and uid not in self.holding:
                self.waiting.setdefault(uid, pod)
            self.condition.notify_all()

    def _charge(self, pod):
        """Slices by the pod's annotations, from any writer."""
        notes = pod["metadata"].get("annotations", {})
        cards = {c for text in (notes.get(ALLOCATION), notes.get(INIT)) if text
                 for shares in json.loads(text).values() for c in shares}
        return {int(c): (demand(pod, GPU_MEM), demand(pod, GPU_CORE)) for c in cards}

    def _on_nodes(self, items):
        held = {}
        for node in items:
            for dead in json.loads(node["metadata"].get("annotations", {}).get(HELD) or "[]"):
                for which, key in enumerate(("allocation", "core")):
                    for shares in dead.get(key, {}).values():
                        for card, n in shares.items():
                            held.setdefault(dead["uid"], {}).setdefault(int(card), [0, 0])[which] += n
        with self.condition:
            self.held = held
            self.news += 1
            self.condition.notify_all()

    def free(self):
        """[(units, percent)] by card."""
        left = [[u, 100] for u in self.units]
        for uid, charge in list(self.holding.items()) + [(u, c) for u, c in self.held.items() if u not in self.holding]:
            for card, (mem, core) in charge.items():
                left[card][0] -= mem
                left[card][1] -= core
        return left

    def choose(self, pod):
        mem, core, m = demand(pod, GPU_MEM), demand(pod, GPU_CORE), cards_of(pod)
        fits = [i for i, (units, percent) in enumerate(self.free()) if units >= mem and percent >= core]
        return sorted(self.rng.sample(fits, m)) if len(fits) >= m else None

    def _run(self):
        while True:
            with self.condition:
                if self.stopping:
                    return
                seen = self.news
                pods = list(self.waiting.items())
            for uid, pod in pods:
                if self.stopping:
                    return
                try:
                    self._schedule(uid, pod)
                except (OSError, ApiError, http.client.HTTPException) as error:
                    self.refusals.append(str(error))
            with self.condition:
                if self.news == seen and not self.stopping:
                    self.condition.wait(0.2)

    def _schedule(self, uid, pod):
        if self.extender:
            self._ask(uid, pod)
            return
        with self.condition:
            cards = self.choose(pod) if uid in self.waiting else None
            if cards is None:
                return
            self.holding[uid] = {c: (demand(pod, GPU_MEM), demand(pod, GPU_CORE)) for c in cards}
        try:
            bind(self.api, pod, self.node, annotations_for(pod, cards, self.units))
            self.bound += 1
        except ApiError as error:
            with self.condition:
                self.holding.pop(uid, None)
                if error.status in (404, 409):
                    self.waiting.pop(uid, None)
            if error.status not in (404, 409):
                raise
        with self.condition:
            self.waiting.pop(uid, None)

    def _ask(self, uid, pod):
        fits = self._extend("filter", {"Pod": pod, "NodeNames": [self.node]})
        if fits.get("Error"):
            raise ApiError(500, fits["Error"])
        if self.node not in (fits.get("NodeNames") or []):
            return
        self._extend("prioritize", {"Pod": pod, "NodeNames": [self.node]})
        meta = pod["metadata"]
        answer = self._extend("bind", {"PodName": meta["name"], "PodNamespace": meta.get("namespace", "default"),
                                       "PodUID": uid, "Node": self.node})
        if answer.get("Error"):
            self.refusals.append(answer["Error"])
            return
        self.bound += 1
        with self.condition:
            self.waiting.pop(uid, None)

    def _extend(self, verb, body):
        connection = http.client.HTTPConnection(self.extender, timeout=30)
        try:
            connection.request("POST", "/gpushare-scheduler/" + verb, json.dumps(body), {"Content-Type": "application/json"})
            answer = connection.getresponse()
            text = answer.read()
            if answer.status >= 300:
                raise ApiError(answer.status, text.decode(errors="replace"))
            return json.loads(text)
        finally:
            connection.close()
