#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Shares of a card's time, enforced by `aliquot run --gpu-core` with its arbiter and the gate, on a
simulated card with time. The measure is the work that the card's engine reports. That no tenant
gets more than its share is asserted; how near it comes to the share depends on the machine.

    shares.py ALIQUOT ALIQUOT_SAMPLE ALIQUOT_SIM FOLDER_OF_SIMULATED_LIBRARIES LOAD_CARD TURN_RUN [CLASS]
"""
import os
import sys
import tempfile
import time
import unittest

from patience import until
from shares_lab import CARD, Lab, Tenant
from sim_lab import Machine, enter_namespace

ALIQUOT, SAMPLE, SIM, LIBRARIES, LOAD, TURN = map(os.path.abspath, sys.argv[1:7])
PATIENCE = 300  # seconds
MSEC = 1000000
# The burst, whatever the length of kernels: a window's credit, one kernel in flight, the work that
# passes until its length is known, and delays on a busy machine. A block of the sample is 100 ms,
# and so is one launch of it.
BURST = 250 * MSEC
# And the work that passes until a function's varying lengths are known: of 50 ms kernels 8 on
# average, and more than 40 once in ten thousand times.
VARIED = 2000 * MSEC


class Shares(unittest.TestCase):
    def watch(self, tenants, lab, seconds, burst=BURST):
        """Reads the meters until so many seconds of the card have passed since the first work. At
        each look no tenant may have had more than its share of the time since it began, plus the
        burst. What it had before the first look is not counted."""
        first, now, end = None, 0, time.monotonic() + PATIENCE
        before, earlier = lab.meters(tenants)
        while not first or now - first < seconds * 1000 * MSEC:
            self.assertLess(time.monotonic(), end, "the card computes")
            for t in tenants:
                self.assertIsNone(t.process.poll(), "the sample goes on")
            time.sleep(0.05)
            now, sums = lab.meters(tenants)
            ran = [had - at_first for had, at_first in zip(sums, earlier)]
            if not first and all(ran):
                first = now
            for t, had in zip(tenants, ran):
                self.assertLessEqual(had, (now - before) * t.percent / 100 + burst + t.kernel_us * 1000,
                                     "%d %% after %d ms" % (t.percent, (now - before) / MSEC))
            if not any(ran):
                before = now
        return [100 * had / (now - before) for had in ran]

    def start(self, *cases):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        lab = Lab(Machine(self, SIM, CARD).dir, os.path.join(folder.name, "slices"), ALIQUOT, SAMPLE, SIM, LIBRARIES)
        self.addCleanup(lab.empty)
        tenants = []
        for case in cases:
            tenants.append(Tenant(lab, *case))
            self.addCleanup(tenants[-1].end)
        return lab, tenants

    def check(self, *cases, seconds=6):
        lab, tenants = self.start(*cases)
        got = self.watch(tenants, lab, seconds)
        print("# " + ", ".join("%.1f of %d" % (g, t.percent) for g, t in zip(got, tenants)), flush=True)
        for g, t in zip(got, tenants):
            self.assertGreater(g, t.percent / 10, "it computes at all")


class Alone(Shares):
    def test_alone_with_short_kernels(self):
        self.check((30, 50))

    def test_alone_with_kernels_of_a_millisecond(self):
        self.check((30, 1000))

    def test_alone_with_kernels_longer_than_windows(self):
        self.check((30, 50000))

    def test_three_processes(self):
        self.check((30, 2000, 3))


class Long(Shares):
    def test_alone_with_long_kernels(self):
        self.check((30, 500000), seconds=8)

    def test_now_short_now_long(self):
        lab, tenants = self.start((10, 50000, 1, 3600, [LOAD, "varied", "50000"]))
        got = self.watch(tenants, lab, 10, burst=BURST + VARIED)
        print("# %.1f of 10" % got[0], flush=True)
        self.assertGreater(got[0], 1, "it computes at all")


class Beside(Shares):
    def test_two_tenants(self):
        self.check((20, 1000), (60, 1000))

    def test_two_tenants_with_kernels_longer_than_windows(self):
        self.check((20, 20000), (60, 20000))


class Waiting(Shares):
    def test_work_behind_something_that_waits_for_it(self):
        """A program with work that waits for a later launch gets that launch in, alone and beside
        another tenant."""
        for others in (), ((60, 1000),):
            with self.subTest(len(others)), tempfile.NamedTemporaryFile() as counter:
                counter.truncate(4096)
                behind = [TURN, "local", counter.name, "behind", "kernel", "30", "1000"]
                _, tenants = self.start((30, 1000, 1, 3600, behind), *others)
                until(lambda: tenants[0].process.poll() is not None, "all of it is launched")
                self.assertEqual(tenants[0].process.returncode, 0)

    def test_functions_of_the_host_that_want_a_lock_which_launches_hold(self):
        """Work queued behind such a function neither delays the next window nor is charged."""
        for others in (), ((60, 1000),):
            with self.subTest(len(others)), tempfile.NamedTemporaryFile() as counter:
                counter.truncate(4096)
                self.check((30, 1000, 1, 3600, [TURN, "local", counter.name, "locked", "kernel", str(1 << 24), "1000"]), *others)


if __name__ == "__main__":
    if os.environ.get("ASAN_OPTIONS"):
        print("skipped: the simulated libraries are sanitized here, and the program that loads them is not")
        sys.exit(77)
    enter_namespace(SIM)
    unittest.main(argv=sys.argv[:1] + sys.argv[7:])
