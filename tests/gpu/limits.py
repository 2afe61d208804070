# SPDX-License-Identifier: Apache-2.0
"""Limits of the driver on the memory of a cgroup: docs/internals/memory-limits.md. What a card answers is recorded. Judged is what the
agent relies on: a limit that was set reads back, holds to the byte, can be raised, and goes."""
import os

from slices import MIB
from tests import need

NO_LIMIT = (1 << 64) - 1


def limits(card):
    with card.case("limits", os.environ.get("GPU_TEST_CGROUPS", "/sys/fs/cgroup")) as p:
        told = p.until(None)
    told.pop("pid")
    if told["has-calls"] == 0:
        return {"mechanism": "preload", "why": "no calls for limits in NVML"}
    if told["trial-code"] != 0:
        return {"mechanism": "preload", "why": "NVML answers %d" % told["trial-code"]}
    limit = 64 * MIB
    need(told["set-read-back"] == limit, "a limit of %d reads back as %d", limit, told["set-read-back"])
    need(told["fence-status"] != 0 and told["fence-used"] <= limit, "%d bytes are held below a limit of %d", told["fence-used"], limit)
    need(told["raise-read-back"] == 2 * limit and told["raise-take-status"] == 0, "raised to %d, an allocation has status 0x%x",
         told["raise-read-back"], told["raise-take-status"])
    need(told["given-back-used"] <= told["fence-begin"], "%d bytes stay charged", told["given-back-used"])
    need(told["lift-code"] == 0 and told["lift-read-back"] == NO_LIMIT, "a lifted limit reads back as %d", told["lift-read-back"])
    return {"mechanism": "both", **told}
