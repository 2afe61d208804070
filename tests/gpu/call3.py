#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The third run: the compute suite with one variant of the library, and the card's turns with each."""
import json
import os
import sys

import results
from call import Call, need_card, options


def turns(call):
    """libcuda asks for preemption at any instruction (CILP). One variant refuses that: the lengths of runs tell what it is worth."""
    for variant in ("library", "forward", "no-cilp"):
        folder = os.path.join(call.folder, "turns-" + variant)
        results.run(call, "compute", variant, folder, 60, "turns")
        try:
            with open(os.path.join(folder, "results.json")) as f:
                call.say("%s: %s" % (variant, results.words(json.load(f)["tests"][0])))
        except (OSError, IndexError, ValueError):
            call.say("%s: turns: no result" % variant)


def main():
    chosen = options(__doc__)
    need_card()
    call = Call("call3", chosen)
    turns(call)
    status = results.suite(call, "compute", chosen.variant, ("",), "alone,beside,graph,utilisation,torch")
    call.finish()
    return status


if __name__ == "__main__":
    sys.exit(main())
