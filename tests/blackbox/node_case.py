# SPDX-License-Identifier: Apache-2.0
"""What the tests of `aliquot node` start from. Takes ALIQUOT STORE_SERVER CLOCK_SHIM out of the arguments."""

import re
import sys
import unittest

from node_lab import PODS, Judge, Lab, create_many
from scheduler import annotations_for

ALIQUOT, STORE, SHIM = sys.argv[1:4]
del sys.argv[1:4]
ONE_CARD = "1xTesla-V100-SXM2-16GB:16160MiB"
TWO_CARDS = "2xTesla-V100-SXM2-16GB:16160MiB"


class Node(unittest.TestCase):
    def lab(self, **options):
        lab = Lab(ALIQUOT, STORE, shim=SHIM, **options)
        self.addCleanup(self.close, lab)
        return lab

    def close(self, lab):
        lab.close()
        self.assertEqual(lab.faults(), [], f"seed {lab.seed}\n{lab.log_tail()}")
        self.assertIn(lab.code, (0, None), lab.log_tail())

    def place(self, lab, obj, *cards):
        """Creates the pod, bound to these cards as a scheduler would do it."""
        made = lab.api.post(PODS, obj)
        lab.bind(made, annotations_for(made, list(cards), lab.units))
        return made["metadata"]["uid"]

    def judged(self, lab, names=None):
        """Judges every started container against its annotations."""
        items = [o for o in lab.api.get(PODS)["items"] if names is None or o["metadata"]["name"] in names]
        faults, n = Judge(lab).pods(items)
        self.assertEqual(faults[:5], [], f"seed {lab.seed}: {len(faults)} of {n}\n{lab.log_tail()}")
        return n

    def not_started(self, lab, pattern):
        """Waits until the agent has refused a start with such words. On a busy machine other errors may come first."""
        lab.wait(lambda: any(re.search(pattern, e[3]) for e in lab.kubelet.prestart_errors),
                 f"PreStartContainer fails with {pattern}", leap=1)

    def run_to_end(self, lab, objects, timeout=500):
        names = set(create_many(lab, objects))

        def all_ended():
            if not lab.kubelet.all_ended(names):  # costs less than a list of all pods
                return False
            return all(o.get("status", {}).get("phase") in ("Succeeded", "Failed")
                       for o in lab.api.get(PODS)["items"] if o["metadata"]["name"] in names)
        lab.wait(all_ended, "all pods have ended", timeout)
        return names
