#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The second run: the memory suite with one variant of the library."""
import sys

import results
from call import Call, need_card, options

# Of tests that have passed, too: these figures answer questions of README.md.
FIGURES = ("agree", "family-plain", "family-vmm-late", "contexts", "over-managed", "ipc", "shared-vmm", "limits", "times")
QUICK = "agree,family-plain,contexts,over-managed,family-vmm-late"


def main():
    chosen = options(__doc__)
    need_card()
    call = Call("call2", chosen)
    status = results.suite(call, "memory", chosen.variant, FIGURES, QUICK)
    call.finish()
    return status


if __name__ == "__main__":
    sys.exit(main())
