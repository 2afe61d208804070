#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Wrong values of all that users write: wrong_values.py ALIQUOT SOURCE_ROOT

The tables say for each key which values are tried, what is said and where. Those of Nodes, of ConfigMaps and of a
container's environment are tried in keys.py, with a node agent; the others here. The tables must be complete: each key
of docs/reference/reference.md that users write has a row."""

import json
import os
import re
import subprocess
import sys
import tempfile
import unittest

# ---- tried in keys.py ----

# Keys of a Node that its administrator writes. The condition names a refused value, which changes
# nothing.
NODE_ANNOTATIONS = {
    "aliquot.dev/max-pods-per-card": ("20 ", "x", "-1", "99999999999999999999"),
    "aliquot.dev/allow-mixed": ("yes", "TRUE", "1"),
    "aliquot.dev/gpu-mem-unit": ("128Mi", "0GiB", "-1GiB", "99999999999GiB"),
    "aliquot.dev/policy": ("9", "x", "-1"),
    "aliquot.dev/max-inst": ("0", "x", "-1"),
    "aliquot.dev/prio-ratio": ("19", "100", "x"),
    "aliquot.dev/place-while-changing": ("yes", "1"),
    "aliquot.dev/gpu-mem-unit-change": ("now", "true"),
    "aliquot.dev/memory-isolation": ("driver", "Both", "x"),
    # 99: no such card; the last one has 129 characters
    "aliquot.dev/cordon-cards": ("x", "-1", "256", "0,", "0;1", "gpu0", "99", "0," * 64 + "0"),
}
NODE_LABELS = {"ack.node.gpu.schedule": ("core-mem", "x", "CGPU"), "ack.node.gpu.placement": ("Spread", "x")}
# Keys of the data of a ConfigMap that takes cards out of service. The cards that were fenced stay
# fenced.
FENCES = {
    "devices": ("[{", "x", "[{deviceId: -1, healthy: false}]", "[{deviceId: 256, healthy: false}]",
                "[{deviceId: 99999999999999999999, healthy: false}]"),
    "gpus": ("x", "-1", "256", "99999999999999999999", "0,,"),
}
# Variables of a container: the values, and the rule in the Event GPUComputeRefused. The container
# starts as if it had none.
ENVIRONMENT = {
    "ALIYUN_COM_GPU_SCHD_WEIGHT": (("0", "-1", "1.5", "x", "10001", "99999999999999999999"), "a whole number from 1 to 10000"),
    "ALIYUN_COM_GPU_HIGH_PRIO": (("true", "2", "-1", "x"), "0 or 1"),
    "CGPU_DISABLE": (("yes", "TRUE", "2", " 1"), "true, 1, false or 0"),
}

# ---- tried here ----

CORE = ", must be a multiple of 5 from 5 to 100"
COUNT = ", must be a whole number from 1 to 256"
AT_LEAST_0, INTEGER, QUANTITY = "must be greater than or equal to 0", "must be an integer", "quantities must match"
WHOLE = "aliyun.com/gpu"
# Limits of a container with gpu-mem: 4 unless the row says otherwise; WHOLE stands alone. Each
# value has the exit status of aliquot local and what it says. With 2 these are the words of the API
# server, which stores no such pod. With 1 the pod stays pending. With 0 the value asks for nothing.
LIMITS = {
    "aliyun.com/gpu-mem": {
        "3Gi": (1, "gpu-mem is 3Gi; write 3, the unit is GiB here"), "-1": (2, AT_LEAST_0), "1.5": (2, INTEGER), "x": (2, QUANTITY),
        "0": (0, ""), "101": (1, "no card is large enough for 101 GiB of gpu-mem"),
        "16843010": (1, "gpu-mem is 16843010, must be from 0 to 16843009"),
        "99999999999999999999": (2, "must be at most 9223372036854775807")},
    "aliyun.com/gpu-core.percentage": {
        "3Gi": (1, "gpu-core.percentage is 3Gi" + CORE), "-1": (2, AT_LEAST_0), "1.5": (2, INTEGER), "x": (2, QUANTITY),
        "0": (1, "gpu-core.percentage is 0" + CORE), "101": (1, "gpu-core.percentage is 101" + CORE),
        "7": (1, "gpu-core.percentage is 7" + CORE)},
    "aliyun.com/gpu-count": {
        "3Gi": (1, "Insufficient aliyun.com/gpu-count"), "-1": (2, AT_LEAST_0), "1.5": (2, INTEGER), "x": (2, QUANTITY),
        "7": (1, "Insufficient aliyun.com/gpu-count"), "101": (1, "Insufficient aliyun.com/gpu-count")},
    WHOLE: {
        "3Gi": (1, WHOLE + " is 3Gi" + COUNT), "257": (1, WHOLE + " is 257" + COUNT), "-1": (2, AT_LEAST_0), "1.5": (2, INTEGER), "x": (2, QUANTITY),
        "0": (0, ""), "1": (1, "not in mode topology, which aliyun.com/gpu needs")},
}
LABELS = {"aliyun.com/gpu-count": {
    "x": (1, 'gpu-count is x' + COUNT), "0": (1, 'gpu-count is 0' + COUNT),
    "1.5": (1, 'gpu-count is 1.5' + COUNT), "257": (1, 'gpu-count is 257' + COUNT),
    "3": (1, "gpu-mem is 4, must be a multiple of gpu-count, 3"), "-1": (2, "a valid label must be an empty string")}}
LONG = "a" * 96
NAMELESS, NEGATED = 'an entry must have a name after one "!"', 'an entry must not begin with "!" in this key'
BOTH = {"!": NAMELESS, "!!a": NAMELESS, LONG: "must have at most 95 characters",
        "\u00e4": "has a character that is not printable ASCII", ",".join("abcdefgh" * 9): "exceeds 64 entries",
        "a100,!a100": "wants only cards that the pod's annotations exclude"}
ONE_SENSE = {"!a100": NEGATED, LONG: BOTH[LONG], "\u00e4": BOTH["\u00e4"]}
CARDS = {
    **{f"aliquot.dev/gpu-{what}": BOTH for what in ("type", "uuid")},
    **{f"nvidia.com/{no}use-gpu{what}": ONE_SENSE for no in ("", "no") for what in ("type", "uuid")},
    **{f"nvidia.com/{word}-gpu-{what}": ONE_SENSE for word in ("include", "exclude") for what in ("type", "uuid")},
}
# Values of the chart: the option that each becomes, and values that the program refuses with status
# 2 before it starts. values.schema.json has the same rules; helm refuses there.
CHART = {
    "gpuMemoryUnit": ("node", "gpu-mem-unit", ("128Mi", "0GiB", "x")), "policy": ("node", "policy", ("6", "-1", "x")),
    "maxInst": ("node", "max-inst", ("0", "101", "x")), "prioRatio": ("node", "prio-ratio", ("19", "100", "x")),
    "maxPodsPerCard": ("node", "max-pods-per-card", ("-1", "20 ", "x")), "allowMixed": ("node", "allow-mixed", ("yes", "1")),
    "placeWhileChanging": ("node", "place-while-changing", ("yes", "1")), "deviceAccess": ("node", "device-access", ("auto", "x")),
    "ignoreCgpuDisable": ("node", "ignore-cgpu-disable", ("yes",)), "sayRefusals": ("node", "say-refusals", ("yes",)),
    "knownDriversOnly": ("node", "known-drivers-only", ("yes",)),
    "keepNvidiaPluginOff": ("node", "keep-nvidia-plugin-off", ("yes",)),
    "growBeyondLimits": ("node", "grow-beyond-limits", ("yes",)), "memoryIsolation": ("node", "memory-isolation", ("driver", "x")),
}

# Not wrong in any value, or tried elsewhere.
ELSEWHERE = {
    "aliquot.dev/webhook": "a selector in deploy/ reads it, tests/deploy/objects.py: any other value is no exception",
    "aliquot.dev/simulated-cards": "aliquot local alone reads it, tests/blackbox/local.py",
    **{group + "/name": "names a gang: each is possible" for group in ("pod-group.scheduling.sigs.k8s.io", "gang.scheduling.koordinator.sh")},
    "pod-group.scheduling.sigs.k8s.io": "names a gang: each is possible",
    **{group + "/min-available": "the webhook refuses it, tests/unit/scheduler/webhook/test-review.c; without a webhook tests/deploy/gangs.py"
       for group in ("pod-group.scheduling.sigs.k8s.io", "gang.scheduling.koordinator.sh")},
    "systemAccounts": "names of users: each is possible",
    **{f"NVIDIA_GPU_MEMORY_{what}": "the webhook refuses it with any value, tests/unit/scheduler/webhook/test-review.c" for what in ("LIMIT", "REQUEST")},
}

NODE_YAML = "apiVersion: v1\nkind: Node\nmetadata: {name: n1, labels: {ack.node.gpu.schedule: core_mem}, annotations: " \
            "{aliquot.dev/simulated-cards: '2xTesla-V100-SXM2-16GB:16160MiB'}}\n"


def written_by_users(page):
    """The keys that users write, by the first columns of the page's tables."""
    sections = {part.split("\n", 1)[0]: part for part in re.split(r"^##+ ", page, flags=re.M)[1:]}

    def rows(title):
        for line in sections[title].splitlines():
            if line.startswith("| "):
                yield [cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]]

    def keys(cell):
        return [re.split(r"[:\s]", span)[0] for span in re.findall(r"`([^`]+)`", cell)]
    found = []
    for row in rows("Keys of users"):
        found += [(row[0].split(" ")[0], key) for key in keys(row[0])]
    for row in rows("Which cards a pod may use"):
        if row[-1].startswith(("wanted", "cards")):
            found += [("annotation", key) for key in keys(row[0])]
    for row in rows("Environment of a container"):
        if row[1] == "user":
            found += [("variable", key) for key in keys(row[0])]
    for row in rows("Nodes"):
        if len(row) == 4 and row[0] != "key":
            found += [("label" if row[0].startswith("label") else "annotation", key) for key in keys(row[0])]
            found += [("value", key) for key in keys(row[2])]
    for row in rows("Values of the chart"):
        found += [("value", key) for key in keys(row[0])]
    return found


class Complete(unittest.TestCase):
    def test_every_key_has_a_row(self):
        with open(os.path.join(ROOT, "docs/reference/reference.md"), encoding="utf-8") as f:
            found = written_by_users(f.read())
        tables = {"limit": LIMITS, "label": LABELS | NODE_LABELS, "annotation": CARDS | NODE_ANNOTATIONS, "variable": ENVIRONMENT, "value": CHART}
        self.assertEqual({kind for kind, _ in found}, set(tables))
        missing = [(kind, key) for kind, key in found if key not in tables[kind] and key not in ELSEWHERE]
        self.assertEqual(missing, [], "keys of docs/reference/reference.md without a row in tests/blackbox/wrong_values.py")
        unknown = [(kind, key) for kind, table in tables.items() for key in table if (kind, key) not in found]
        self.assertEqual(unknown, [], "rows for keys that users do not write")
        self.assertLessEqual(set(ELSEWHERE), {key for _, key in found})

    def test_fences(self):
        with open(os.path.join(ROOT, "docs/use/cards.md"), encoding="utf-8") as f:
            rows = re.findall(r"^\| `(?:NODE-device-status|unhealthy-gpu-NODE)` \| `(\w+)`", f.read(), re.M)
        self.assertEqual(set(rows), set(FENCES))


class Pods(unittest.TestCase):
    """aliquot local: the same rules as the extender's and the API server's, and an exit status."""

    def place(self, limits, labels=None, annotations=None):
        pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p", "labels": labels or {}, "annotations": annotations or {}},
               "spec": {"containers": [{"name": "m", "image": "x", "resources": {"limits": limits}}]}}
        with tempfile.TemporaryDirectory() as folder:
            paths = [os.path.join(folder, name) for name in ("n.yaml", "p.json")]
            for path, text in zip(paths, (NODE_YAML, json.dumps(pod))):
                with open(path, "w", encoding="utf-8") as f:
                    f.write(text)
            p = subprocess.run([ALIQUOT, "local", "--once", "-f", paths[0], "-f", paths[1]], capture_output=True, text=True, timeout=60, check=False)
        self.assertIn("\n0/30 (0%)\n", p.stdout, "no memory is held")
        return p.returncode, p.stdout + p.stderr

    def check(self, expected, *where, **more):
        status, said = self.place(*where, **more)
        self.assertEqual(status, expected[0], said)
        self.assertIn(expected[1], said)

    def test_limits(self):
        for key, values in LIMITS.items():
            for value, expected in values.items():
                with self.subTest(key=key, value=value):
                    self.check(expected, {**({} if key == WHOLE else {"aliyun.com/gpu-mem": "4"}), key: value})

    def test_whole_cards_beside_a_share(self):
        self.check((1, "aliyun.com/gpu is 1, must not come together with another resource of a GPU"), {"aliyun.com/gpu-mem": "4", WHOLE: "1"})

    def test_labels(self):
        for key, values in LABELS.items():
            for value, expected in values.items():
                with self.subTest(key=key, value=value):
                    self.check(expected, {"aliyun.com/gpu-mem": "4"}, labels={key: value})

    def test_cards(self):
        for key, values in CARDS.items():
            for value, rule in values.items():
                with self.subTest(key=key, value=value):
                    self.check((1, rule), {"aliyun.com/gpu-mem": "4"}, annotations={key: value})


class Chart(unittest.TestCase):
    def test_options(self):
        for key, (verb, option, values) in CHART.items():
            for value in values:
                with self.subTest(key=key, value=value):
                    p = subprocess.run([ALIQUOT, verb, "--node-name", "n", f"--{option}={value}"], capture_output=True, text=True, timeout=60, check=False)
                    self.assertEqual((p.returncode, len(p.stderr.splitlines())), (2, 1), p.stderr)
                    self.assertRegex(p.stderr, rf'--{option} (is "{re.escape(value)}", must be |takes no value)')


if __name__ == "__main__":
    ALIQUOT, ROOT = sys.argv[1:3]
    del sys.argv[1:3]
    unittest.main(verbosity=2)
