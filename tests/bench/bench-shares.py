#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What tenants get of a simulated card's time, beside what they shall: `aliquot run --gpu-core` with its arbiter and the gate, and
programs that always want the card. Measured by the meters of the card's engine over the time of the wall. The same without any
gate, that is by the driver's time slices, stands in the last column.

    bench-shares.py ALIQUOT ALIQUOT_SAMPLE ALIQUOT_SIM FOLDER_OF_SIMULATED_LIBRARIES [CAPS:KERNEL_US:PROCESSES...]

whole: from the first work on; later: without the first quarter. SHARES_SECONDS: how long each case runs; without a gate, half of that."""
import os
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "blackbox"))

from shares_lab import CARD, Lab, Tenant  # noqa: E402
from sim_lab import Machine, enter_namespace  # noqa: E402

ALIQUOT, SAMPLE, SIM, LIBRARIES = map(os.path.abspath, sys.argv[1:5])
SECONDS = float(os.environ.get("SHARES_SECONDS", "20"))
CASES = [(caps, kernel, processes) for caps, processes in (((30,), 1), ((30,), 3), ((20, 60), 1), ((10, 30, 60), 1))
         for kernel in (10, 100, 1000, 20000, 200000)]


class Cleanups:  # of a test, for Machine
    def __init__(self):
        self.list = []

    def addCleanup(self, function, *arguments, **named):
        self.list.append((function, arguments, named))

    def run(self):
        for function, arguments, named in reversed(self.list):
            function(*arguments, **named)
        self.list = []


def measure(caps, kernel, processes, gated, seconds):
    """Two lists of percent, of the whole time and of the later one."""
    cleanups = Cleanups()
    lab = Lab(Machine(cleanups, SIM, CARD).dir, tempfile.mkdtemp(), ALIQUOT, SAMPLE, SIM, LIBRARIES)
    tenants = [Tenant(lab, cap if gated else 0, kernel, processes) for cap in caps]
    looks = []
    try:
        while not looks or looks[-1][0] - looks[0][0] < seconds * 1e9:
            time.sleep(0.05 if not looks else 0.25)
            look = lab.meters(tenants)
            if looks or all(look[1]):
                looks.append(look)
    finally:
        for t in tenants:
            t.end()
        lab.empty()
        cleanups.run()
    first, last = looks[0], looks[-1]
    if len(caps) == 1:  # nobody was before it: the time in which it computed without a pause counts
        first = first[0] - first[1][0], [0]
    later = next(look for look in looks if look[0] - looks[0][0] >= seconds * 1e9 / 4)
    return [[100 * (b - a) / (last[0] - since[0]) for a, b in zip(since[1], last[1])] for since in (first, later)]


def words(values):
    return " / ".join("%.1f" % v for v in values)


def main():
    cases = [(tuple(map(int, c.split(":")[0].split("/"))), *map(int, c.split(":")[1:])) for c in sys.argv[5:]] or CASES
    print("| caps | kernel | processes each | whole | later | sum | without gate |\n|---|---|---|---|---|---|---|", flush=True)
    for caps, kernel, processes in cases:
        whole, later = measure(caps, kernel, processes, True, SECONDS)
        plain = measure(caps, kernel, processes, False, SECONDS / 2)[1]
        print("| %s | %d us | %d | %s | %s | %.1f of %d | %s |" % (" / ".join(map(str, caps)), kernel, processes, words(whole), words(later),
                                                           sum(later), sum(caps), words(plain)), flush=True)
    print("\nload of the machine at the end: %.1f on %d cores" % (os.getloadavg()[0], os.cpu_count()))


if __name__ == "__main__":
    enter_namespace(SIM)
    main()
