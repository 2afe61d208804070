#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What `aliquot node` does with a driver that it does not know: node_driver.py ALIQUOT STORE_SERVER CLOCK_SHIM NVML"""

import re

from isolation_case import NVML, Started, alone
from node_case import TWO_CARDS
from node_lab import container, pod
from grpc_process import run_tests

CONDITION, EVENT = "GPUShareDriverUnsupported", "GPUDriverUnsupported"
PENDING = "aliquot.dev/change-pending"
OLD = ("driver 525.147.05 is older than 535, the oldest that the library of isolated containers understands: "
       "no container with an isolated slice starts")
NEW = "driver 620.70.06 is newer than 615, the newest that is known: "


class Driver(Started):
    def machine(self, *lines, mode="core_mem", extra=()):
        lab = self.lab(cards=TWO_CARDS, nvml=NVML, mode=mode, start=False)
        lab.extra += ["--census", "20", *extra]
        lab.machine((), more=lines)
        lab.start_agent()
        lab.wait_ready()
        return lab

    def annotation(self, lab):
        return lab.node()["metadata"].get("annotations", {}).get(PENDING)

    def is_told(self, lab, reason, message):
        lab.wait(lambda: lab.condition(CONDITION).get("status") == "True", "the condition is true")
        self.assertEqual([lab.condition(CONDITION)[key] for key in ("reason", "message")], [reason, message])
        lab.wait(lambda: self.events(lab, EVENT) == [message], "an Event says so, once")
        lab.wait(lambda: lab.logged(message), "the log says so")

    def test_too_old(self):
        """Nothing is placed there, and a pod that no scheduler placed does not start. With another driver it does."""
        lab = self.machine("driver 525.147.05")
        self.is_told(lab, "DriverTooOld", OLD)
        lab.wait(lambda: self.annotation(lab) == OLD, "the scheduler places nothing here")
        uid = self.place(lab, pod("a", container("main", 2)), 1)
        self.not_started(lab, re.escape(f"default/a: container main: it cannot be isolated: {OLD}"))
        self.assertEqual(lab.running(uid), [])
        lab.machine((), more=["driver 580.95.05"])
        lab.restart_agent()
        self.started(lab, uid)
        lab.wait(lambda: lab.condition(CONDITION).get("status") == "False", "the condition is false")
        self.assertEqual(lab.condition(CONDITION)["reason"], "Supported")
        lab.wait(lambda: self.annotation(lab) is None, "the scheduler places pods here")

    def test_too_old_to_isolate_but_not_to_share(self):
        lab = self.machine("driver 525.147.05", mode="share")
        self.is_told(lab, "DriverTooOld", OLD)
        self.assertIsNone(self.annotation(lab))
        self.started(lab, self.place(lab, pod("a", container("main", 2)), 1))

    def test_newer(self):
        lab = self.machine("driver 620.70.06")
        self.is_told(lab, "DriverTooNew", NEW + "slices are isolated by the numbers of that one")
        self.assertIsNone(self.annotation(lab))
        self.started(lab, self.place(lab, pod("a", container("main", 2)), 1))

    def test_newer_with_known_drivers_only(self):
        lab = self.machine("driver 620.70.06", extra=["--known-drivers-only"])
        message = NEW + "no container with an isolated slice starts (--known-drivers-only)"
        self.is_told(lab, "DriverTooNew", message)
        lab.wait(lambda: self.annotation(lab) == message, "the scheduler places nothing here")
        self.place(lab, pod("a", container("main", 2)), 1)
        lab.wait(lambda: lab.kubelet.prestart_errors, "PreStartContainer refuses it")

    def test_known_and_untold(self):
        """A driver of the table, and one that does not tell its version, leave no condition."""
        for lines in (("driver 580.95.05",), ("driver 535.54.03",), (), ("fail driver * 3", "driver 525.1")):
            lab = self.machine(*lines)
            self.started(lab, self.place(lab, pod("a", container("main", 2)), 1))
            self.assertEqual(lab.condition(CONDITION), {})
            self.assertEqual(self.events(lab, EVENT), [])


if __name__ == "__main__":
    alone()
    run_tests(warnings="ignore")
