#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Processes that share a simulated card in time. Their shares are measured on the card's own
timeline, by events, so no clock of this machine matters. Each process keeps enough work queued
that a pause of the process does not empty the queue.

    cuda_time.py ALIQUOT_SIM CUDA_RUN LIBRARY_FOLDER
"""
import json
import os
import signal
import subprocess
import sys
import unittest

from patience import until
from sim_lab import Machine, enter_namespace

SIM, RUN, FOLDER = sys.argv[1:4]
SMI = os.path.join(FOLDER, "nvidia-smi")
CARD = "1xTesla-V100-SXM2-16GB:16160MiB"


def environment(machine):
    return dict(os.environ, ALIQUOT_SIM_DIR=machine.dir, LD_LIBRARY_PATH=FOLDER)


class Tenant:
    """A process that always has kernels of so many microseconds queued."""

    def __init__(self, test, machine, us, kernels):
        self.process = subprocess.Popen([RUN, "saturate", str(us), str(kernels)], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        text=True, bufsize=1, env=environment(machine))
        test.addCleanup(self.end)

    def hears(self):
        line = self.process.stdout.readline().strip()
        if not line:
            raise AssertionError("the program ended with %s" % self.process.wait())
        return line

    def ask(self, what=""):
        self.process.stdin.write(what + "\n")

    def usage(self):
        self.ask("u")
        return int(self.hears())

    def share(self):
        self.ask()
        return float(self.hears())

    def end(self):
        self.process.kill()
        self.process.wait()
        self.process.stdin.close()
        self.process.stdout.close()


def tenants(test, machine, *lengths, kernels=40):
    all_ = [Tenant(test, machine, us, kernels) for us in lengths]
    for t in all_:
        test.assertEqual(t.hears(), "running")
    return all_


def shares(all_):
    for t in all_:
        t.ask()
    return [float(t.hears()) for t in all_]


class Shares(unittest.TestCase):
    def assertShares(self, got, want, delta):
        for g, w in zip(got, want):
            self.assertAlmostEqual(g, w, delta=delta, msg=str(got))

    def test_alone(self):
        m = Machine(self, SIM, CARD)
        self.assertShares(shares(tenants(self, m, 10000)), [1], 0.001)

    def test_two_get_half_each(self):
        m = Machine(self, SIM, CARD)
        self.assertShares(shares(tenants(self, m, 5000, 5000)), [0.5, 0.5], 0.01)

    def test_whatever_the_kernels_look_like(self):
        m = Machine(self, SIM, CARD)
        self.assertShares(shares(tenants(self, m, 3000, 20000)), [0.5, 0.5], 0.01)

    def test_longer_slices(self):
        """Kernels of 10 ms, each in a time slice of its own."""
        m = Machine(self, SIM, CARD, "--slice", "10000")
        self.assertShares(shares(tenants(self, m, 10000, 10000)), [0.5, 0.5], 0.02)

    def test_eight(self):
        m = Machine(self, SIM, CARD)
        self.assertShares(shares(tenants(self, m, *[4000] * 8)), [0.125] * 8, 0.005)

    def test_cards_are_apart(self):
        m = Machine(self, SIM, "2x" + CARD[2:])
        first = tenants(self, m, 10000)
        os.environ["CUDA_VISIBLE_DEVICES"] = "1"
        try:
            second = tenants(self, m, 10000)
        finally:
            del os.environ["CUDA_VISIBLE_DEVICES"]
        self.assertShares(shares(first + second), [1, 1], 0.001)

    def test_a_killed_process_leaves_the_card(self):
        m = Machine(self, SIM, CARD)
        stays, goes = tenants(self, m, 10000, 500000)  # 200 s of work
        self.assertShares([stays.share()], [0.5], 0.01)
        goes.process.kill()
        goes.process.wait()
        until(lambda: len(m.status()["clients"]) == 2, "the clients of one process only")
        self.assertShares([stays.share()], [1], 0.001)

    def test_work_of_a_stopped_process_goes_on(self):
        m = Machine(self, SIM, CARD)
        one, other = tenants(self, m, 10000, 100000)  # 40 s of work
        other.process.send_signal(signal.SIGSTOP)
        self.assertShares([one.share()], [0.5], 0.01)
        other.process.kill()

    def test_a_stopped_process_stops_no_other(self):
        m = Machine(self, SIM, CARD)
        one, other = tenants(self, m, 2000, 2000)
        other.process.send_signal(signal.SIGSTOP)
        until(lambda: one.share() > 0.999, "what it had given was done")
        other.process.send_signal(signal.SIGCONT)
        until(lambda: abs(one.share() - 0.5) < 0.01, "it has its half again")

    def test_many_die(self):
        """A process that is killed at any point leaves the others a working card."""
        m = Machine(self, SIM, CARD)
        stays = tenants(self, m, 10000)[0]
        for _ in range(5):
            for t in tenants(self, m, 5, 5, 5, 5):
                t.end()
        until(lambda: len(m.status()["clients"]) == 2, "the clients of one process only")
        self.assertShares([stays.share()], [1], 0.001)


class Meters(unittest.TestCase):
    def read(self, machine):
        text = subprocess.run([SIM, "--meters", machine.dir], check=True, capture_output=True, text=True).stdout
        return json.loads(text)["cards"]

    def test_to_the_nanosecond(self):
        """A card that always has work is always busy, and all its work is accounted to a process."""
        m = Machine(self, SIM, CARD + ",1xA10:1GiB")
        self.assertEqual([(c["minor"], c["busy"], c["groups"]) for c in self.read(m)], [(0, 0, []), (1, 0, [])])
        all_ = tenants(self, m, 50000, 60000, 70000)
        before, idle = self.read(m)
        shares(all_[:1])
        after, idle = self.read(m)
        self.assertEqual(after["busy"] - before["busy"], after["now"] - before["now"])
        self.assertEqual(idle["busy"], 0)
        ran = {g["pid"]: g["ran"] for g in before["groups"]}
        ran = {g["pid"]: g["ran"] - ran[g["pid"]] for g in after["groups"]}
        self.assertEqual(set(ran), {t.process.pid for t in all_})
        self.assertEqual(sum(ran.values()), after["busy"] - before["busy"])
        third = (after["now"] - before["now"]) / 3
        for ns in ran.values():
            self.assertAlmostEqual(ns, third, delta=2000000)  # two time slices

    def test_nothing_mounted(self):
        p = subprocess.run([SIM, "--meters", "/"], capture_output=True, text=True)
        self.assertEqual((p.returncode, p.stdout), (3, ""))


class Utilization(unittest.TestCase):
    def ask(self, machine):
        out = subprocess.run([SMI, "--query-gpu=utilization.gpu", "--format=csv,noheader,nounits"], env=environment(machine),
                             check=True, capture_output=True, text=True).stdout
        return [int(line) for line in out.split()]

    def test_is_what_the_card_does(self):
        m = Machine(self, SIM, CARD + ",1xA10:1GiB")
        self.assertEqual(self.ask(m), [0, 0])
        t = tenants(self, m, 500000)[0]
        until(lambda: self.ask(m) == [100, 0], "a whole window of work")
        t.end()
        until(lambda: self.ask(m) == [0, 0], "a whole window of rest")

    def test_of_processes(self):
        m = Machine(self, SIM, CARD)
        both = tenants(self, m, 3000, 50000)
        until(lambda: all(45 <= t.usage() <= 55 for t in both), "a whole window of work for both")


if __name__ == "__main__":
    enter_namespace(SIM)
    unittest.main(argv=[sys.argv[0]] + sys.argv[4:])
