# SPDX-License-Identifier: Apache-2.0
"""The project's claim, checked from outside. For every container its environment agrees with the
pod's annotation, with the devices that the kubelet gave it, and with the ledger; and no card is
given out twice."""

import collections
import json
import os
import re

import kube

ALLOCATION = "scheduler.framework.gpushare.allocation"
INIT = "aliquot.dev/init-allocation"
CORE_ALLOCATION = "gpushare.alibabacloud.com/core-percentage"
ASSIGNED = "scheduler.framework.gpushare.assigned"
LINE = re.compile(r"^\[pod/([^/]+)/([^\]]+)\] (.*)$")


def cards_of(node):
    return {c["index"]: c for c in json.loads(node["metadata"]["annotations"]["aliquot.dev/cards"])}


def slices(annotation):
    """{"0":{"1":4}} as {0: {1: 4}}"""
    return {int(i): {int(card): n for card, n in by.items()} for i, by in json.loads(annotation or "{}").items()}


def effective(containers, init, amount):
    """Kubernetes' formula: init containers by maximum, sidecars and the others by sum. amount: container -> number"""
    sidecars = most = 0
    for c in init:
        if kube.is_sidecar(c):
            sidecars += amount(c)
            most = max(most, sidecars)
        else:
            most = max(most, sidecars + amount(c))
    return max(most, sidecars + sum(amount(c) for c in containers))


def logs(selector="!no-such-label"):
    """{(pod, container): {variable: value}} from the containers' reports."""
    text = kube.kubectl("logs", "-n", kube.NAMESPACE, "-l", selector, "--all-containers", "--prefix", "--tail=-1",
                        "--ignore-errors", "--max-log-requests=1000", check=False).stdout
    found, whole = collections.defaultdict(dict), set()
    # When the kubelet cannot read a container's log, it prints a message without an end of line.
    # The next container's first line then follows on the same line.
    for line in text.replace("[pod/", "\n[pod/").splitlines():
        m = LINE.match(line)
        if not m:
            continue
        if m[3] == "reported":
            whole.add((m[1], m[2]))
        elif "=" in m[3]:
            name, value = m[3].split("=", 1)
            found[m[1], m[2]][name] = value
    return {key: found[key] for key in whole}


class PodAudit:
    """One pod: checks its annotations against its spec, and returns what follows from both."""

    def __init__(self, pod, cards):
        spec, notes = pod["spec"], pod["metadata"].get("annotations", {})
        self.pod, self.cards, self.notes = pod, cards, notes
        self.name, self.uid = pod["metadata"]["name"], pod["metadata"]["uid"]
        self.containers, self.init = spec["containers"], spec.get("initContainers", [])
        self.wanted_cards = int(pod["metadata"].get("labels", {}).get(kube.COUNT, 1))
        self.faults, self.stood_in = [], []
        main, first = slices(notes.get(ALLOCATION)), slices(notes.get(INIT))
        self.grants = {c["name"]: main.get(i, {}) for i, c in enumerate(self.containers)}
        self.grants.update({c["name"]: first.get(i, {}) for i, c in enumerate(self.init)})
        self.check_grants()

    def fault(self, text):
        self.faults.append(f"{self.name}: {text}")

    def check_grants(self):
        used = set()
        core = slices(self.notes.get(CORE_ALLOCATION))
        for i, c in enumerate(self.init + self.containers):
            mem, grant = kube.asks(c), self.grants[c["name"]]
            if sum(grant.values()) != mem:
                self.fault(f"{c['name']} asks for {mem}, the annotation grants {grant}")
            if mem and set(grant.values()) != {mem // self.wanted_cards}:
                self.fault(f"{c['name']}: uneven or wrong grant {grant} for {mem} of {self.wanted_cards} cards")
            used.update(grant)
            at = i - len(self.init)
            if at >= 0 and sum(core.get(at, {}).values()) != kube.asks(c, kube.CORE):
                self.fault(f"{c['name']} asks for {kube.asks(c, kube.CORE)} %, the annotation says {core.get(at)}")
        if len(used) != self.wanted_cards:
            self.fault(f"holds cards {sorted(used)}, {self.wanted_cards} were asked for")
        for card in used - set(self.cards):
            self.fault(f"card {card} is not on the node")
        if self.notes.get(ASSIGNED) not in ("true", "false"):
            self.fault(f"{ASSIGNED} is {self.notes.get(ASSIGNED)}")
        self.used = used
        if len(used) == 1:  # the older form has room for one card
            for name, want in (("IDX", next(iter(used))), ("POD", self.units()),
                               ("DEV", self.cards.get(next(iter(used)), {}).get("units"))):
                if self.notes.get("ALIYUN_COM_GPU_MEM_" + name) != str(want):
                    self.fault(f"annotation ALIYUN_COM_GPU_MEM_{name} is {self.notes.get('ALIYUN_COM_GPU_MEM_' + name)}, "
                               f"must be {want}")

    def holds(self, card):
        return effective(self.containers, self.init, lambda c: self.grants[c["name"]].get(card, 0))

    def total(self):
        return effective(self.containers, self.init, kube.asks)

    def units(self):
        """ALIYUN_COM_GPU_MEM_POD: the sum over containers that run side by side, or of init
        containers when only these ask."""
        together = sum(kube.asks(c) for c in self.containers + [c for c in self.init if kube.is_sidecar(c)])
        return together or max((kube.asks(c) for c in self.init), default=0)

    def environment(self, c):
        grant = self.grants[c["name"]]
        order = sorted(grant)
        return {"ALIYUN_COM_GPU_MEM_CONTAINER": str(grant[order[0]]),
                "ALIYUN_COM_GPU_MEM_DEV": str(max(self.cards[i]["units"] for i in order)),
                "ALIYUN_COM_GPU_MEM_IDX": ",".join(map(str, order)),
                "ALIYUN_COM_GPU_MEM_POD": str(self.units()),
                "NVIDIA_VISIBLE_DEVICES": ",".join(self.cards[i]["uuid"] for i in order)}

    def check_environment(self, seen):
        for c in self.init + self.containers:
            if not kube.asks(c) or not self.grants[c["name"]]:
                continue
            env = seen.get((self.name, c["name"]))
            if env is None:
                self.fault(f"{c['name']} has reported nothing")
                continue
            for name, value in self.environment(c).items():
                if env.get(name) != value:
                    self.fault(f"{c['name']}: {name} is {env.get(name)!r}, the annotation means {value!r}")

    def pages(self, c):
        """What isolates the container: a page per card, in the order of its cards, and the gate in
        every program."""
        grant, found = self.grants[c["name"]], {"PRELOAD": "/.aliquot/libaliquot.so"}
        off = any(e["name"] == "CGPU_DISABLE" and e.get("value") in ("true", "1") for e in c.get("env", []))
        for at, i in enumerate(sorted(grant)):
            card = self.cards[i]
            mib = card["mib"] if off else card["mib"] * grant[i] // card["units"]
            found[f"PAGE_{at}"] = f"{mib << 20}/{card['uuid']}/{kube.NAMESPACE}/{self.name}/{c['name']}"
        return found

    def pages_of_later(self, c):
        """An init container may start twice, when its first start was interrupted by a kill of the
        agent or the kubelet. It may then be taken for a later container of the pod with the same
        devices: node/allocate/start_verifier.c, check_place()."""
        if c not in self.init or kube.is_sidecar(c):
            return []
        later = self.init[self.init.index(c) + 1:] + self.containers
        return [self.pages(x) for x in later if kube.asks(x) == kube.asks(c) and self.grants[x["name"]]]

    def check_isolation(self, seen, isolated):
        for c in self.init + self.containers:
            want = self.pages(c) if isolated and kube.asks(c) and self.grants[c["name"]] else {}
            env = seen.get((self.name, c["name"]), {})
            has = {name: value for name, value in env.items() if name.startswith(("PAGE_", "PRELOAD"))}
            if has in self.pages_of_later(c):
                self.stood_in.append(c["name"])
            elif env and has != want:
                self.fault(f"{c['name']}: its pages are {has}, the annotation means {want}")

    def check_devices(self, given):
        """given: (uid, container, resource) -> IDs, as the kubelet keeps them."""
        for c in self.init + self.containers:
            for resource in (kube.MEM, kube.CORE):
                n = kube.asks(c, resource)
                ids = given.get((self.uid, c["name"], resource), [])
                if len(ids) != n:
                    self.fault(f"{c['name']}: the kubelet gave {len(ids)} of {resource}, {n} were asked for")
                by_card = collections.Counter(int(i.lstrip("c").split("-")[0]) for i in ids)
                if resource == kube.MEM and dict(by_card) != self.grants[c["name"]]:
                    self.fault(f"{c['name']}: devices {dict(by_card)}, annotation {self.grants[c['name']]}")
                if resource == kube.CORE and set(by_card) - self.used:
                    self.fault(f"{c['name']}: compute of cards {sorted(by_card)}, memory of {sorted(self.used)}")


def checkpoint(kubelet_dir):
    """The kubelet's own state: (pod uid, container, resource) -> device IDs. Readable on the node
    only."""
    with open(os.path.join(kubelet_dir, "device-plugins", "kubelet_internal_checkpoint"), encoding="utf-8") as f:
        entries = json.load(f)["Data"]["PodDeviceEntries"] or []
    found = {}
    for e in entries:
        ids = e["DeviceIDs"]  # by NUMA node since 1.20, a plain list before
        found[e["PodUID"], e["ContainerName"], e["ResourceName"]] = (
            [i for some in ids.values() for i in some] if isinstance(ids, dict) else ids)
    return found




def check_ledger(audits, inspect, node):
    """/inspect against the annotations: every card's sum and pods."""
    faults, cards = [], audits[0].cards if audits else {}
    found = [n for n in inspect["nodes"] if n["name"] == node]
    if not found:
        return [f"the ledger does not know node {node}"]
    for dev in found[0]["devs"]:
        want = {a.name: a.holds(dev["id"]) for a in audits if a.holds(dev["id"])}
        seen = {p["name"]: p["usedGPU"] for p in dev["pods"] if p["namespace"] == kube.NAMESPACE}
        if want != seen:
            faults.append(f"card {dev['id']}: annotations {want}, ledger {seen}")
        if dev["id"] in cards and dev["usedGPU"] > cards[dev["id"]]["units"]:
            faults.append(f"card {dev['id']}: {dev['usedGPU']} of {cards[dev['id']]['units']} units given out")
    return faults


def twice(pods, given):
    """Devices that two living pods hold. Devices of init containers are reused within their own
    pod."""
    holders = collections.defaultdict(set)
    alive = {p["metadata"]["uid"] for p in pods if p["status"].get("phase") not in ("Succeeded", "Failed")}
    for (uid, _, resource), ids in given.items():
        if uid in alive:
            for i in ids:
                holders[resource, i].add(uid)
    return [f"{key} is held by {sorted(uids)}" for key, uids in holders.items() if len(uids) > 1]
