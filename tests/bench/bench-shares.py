#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What tenants get of a simulated card's time, beside what is configured. Programs that always want
the card run under `aliquot run --gpu-core` with its arbiter and the gate. The meters of the
card's engine measure them over wall time. The last column is the same without a gate, by the
driver's time slices.

    bench-shares.py ALIQUOT ALIQUOT_SAMPLE ALIQUOT_SIM FOLDER_OF_SIMULATED_LIBRARIES LOAD_CARD [CAPS:KERNEL_US:PROCESSES...]
    bench-shares.py ... kinds|latency       one of the other tables

whole: from the first work on; later: without the first quarter. SHARES_SECONDS: length of each
case; half of it without a gate."""
import os
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "blackbox"))

from shares_lab import CARD, Lab, Tenant  # noqa: E402
from sim_lab import Machine, enter_namespace  # noqa: E402

ALIQUOT, SAMPLE, SIM, LIBRARIES, LOAD = map(os.path.abspath, sys.argv[1:6])
SECONDS = float(os.environ.get("SHARES_SECONDS", "20"))
CASES = [(caps, kernel, processes) for caps, processes in (((30,), 1), ((30,), 3), ((20, 60), 1), ((10, 30, 60), 1))
         for kernel in (10, 100, 1000, 20000, 200000)]
KINDS = [(caps, kernel, kind) for caps in ((30,), (20, 60)) for kernel in (100, 1000) for kind in ("stream", "streams", "graph", "cooperative")]
WEIGHTED = 2  # policy
SETTLE = 2500000  # us


class Cleanups:  # stands for a test case, for Machine
    def __init__(self):
        self.list = []

    def addCleanup(self, function, *arguments, **named):
        self.list.append((function, arguments, named))

    def run(self):
        for function, arguments, named in reversed(self.list):
            function(*arguments, **named)
        self.list = []


def make_lab(cleanups):
    return Lab(Machine(cleanups, SIM, CARD).dir, tempfile.mkdtemp(), ALIQUOT, SAMPLE, SIM, LIBRARIES)


def load(kind, kernel, *request):
    return [LOAD, kind] + [str(n) for n in (kernel, *request)]


def measure(caps, kernel, processes, gated, seconds, kind=None):
    """Two lists of percent, of the whole time and of the later part. kind: of load-card, in place
    of the sample."""
    cleanups = Cleanups()
    lab = make_lab(cleanups)
    command = load(kind, kernel) if kind else None
    tenants = [Tenant(lab, cap if gated else 0, kernel, processes, command=command) for cap in caps]
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
    if len(caps) == 1:  # a single tenant: only the time in which it computed without a pause counts
        first = first[0] - first[1][0], [0]
    later = next(look for look in looks if look[0] - looks[0][0] >= seconds * 1e9 / 4)
    return [[100 * (b - a) / (last[0] - since[0]) for a, b in zip(since[1], last[1])] for since in (first, later)]


def words(values):
    return " / ".join("%.1f" % v for v in values)


def pressure():
    """Percent of the time in which some process waited for a processor, if the kernel reports it.
    """
    try:
        return open("/proc/pressure/cpu").readline().split()[1].split("=")[1]
    except OSError:
        return "?"


def machine():
    return "%.1f, %s" % (os.getloadavg()[0], pressure())


def requests(kernel, request, rest, n, terms, neighbour=None):
    """Sorted us of n requests of that much work, beside a tenant that always wants the card with
    kernels of so many us. terms: of both; None: no gate."""
    cleanups = Cleanups()
    lab = make_lab(cleanups)
    tenants = []
    # the first requests meet an empty page and kernels without an estimate
    skip = SETTLE // (request + rest)
    try:
        if neighbour:
            tenants.append(Tenant(lab, 50 if terms else 0, neighbour, command=load("stream", neighbour), terms=terms and terms[1]))
            while not lab.meters(tenants)[1][0]:
                time.sleep(0.05)
            time.sleep(SETTLE / 1e6)  # the arbiter looks for new pages once a second
        tenants.append(Tenant(lab, 50 if terms else 0, kernel, command=load("stream", kernel, request, rest, n + skip), terms=terms and terms[0],
                              stdout=subprocess.PIPE))
        took = [int(line) for line in tenants[-1].process.stdout]
    finally:
        for t in tenants:
            t.end()
        lab.empty()
        cleanups.run()
    return sorted(took[skip:])


def part(values, percent):
    return values[min(len(values) - 1, len(values) * percent // 100)] / 1000


def latency():
    cases = [("idle owner wakes, weights 1 and 1, 1 ms of work", 100, 1000, 137000, 2000, (1, 0, WEIGHTED)),
             ("high priority, 20 ms requests of 200 us kernels", 200, 20000, 30000, 1000, (1, 1, WEIGHTED))]
    n = int(SECONDS * 10)
    print("| | alone p50, p99 | beside p50, p99, max | p99 beside / alone | without gate p50, p99 | load, % in which somebody waited |\n"
          "|---|---|---|---|---|---|", flush=True)
    for what, kernel, request, rest, neighbour, terms in cases:
        alone = requests(kernel, request, rest, n, (terms, None))
        beside = requests(kernel, request, rest, n, (terms, (1, 0, WEIGHTED)), neighbour)
        plain = requests(kernel, request, rest, n // 2, None, neighbour)
        print("| %s, beside kernels of %d us | %.2f, %.2f | %.2f, %.2f, %.2f ms | %.2f | %.2f, %.2f | %s |" % (
            what, neighbour, part(alone, 50), part(alone, 99), part(beside, 50), part(beside, 99), beside[-1] / 1000,
            part(beside, 99) / part(alone, 99), part(plain, 50), part(plain, 99), machine()), flush=True)


def kinds():
    print("| caps | kernel | launched by | later | sum | without gate | load, % in which somebody waited |\n|---|---|---|---|---|---|---|",
          flush=True)
    for caps, kernel, kind in KINDS:
        later = measure(caps, kernel, 1, True, SECONDS, kind)[1]
        plain = measure(caps, kernel, 1, False, SECONDS / 2, kind)[1]
        print("| %s | %d us | %s | %s | %.1f of %d | %s | %s |" % (" / ".join(map(str, caps)), kernel, kind, words(later), sum(later), sum(caps),
                                                             words(plain), machine()), flush=True)


def main():
    cases = [(tuple(map(int, c.split(":")[0].split("/"))), *map(int, c.split(":")[1:])) for c in sys.argv[6:]] or CASES
    print("| caps | kernel | processes each | whole | later | sum | without gate | load, % in which somebody waited |\n"
          "|---|---|---|---|---|---|---|---|", flush=True)
    for caps, kernel, processes in cases:
        whole, later = measure(caps, kernel, processes, True, SECONDS)
        plain = measure(caps, kernel, processes, False, SECONDS / 2)[1]
        print("| %s | %d us | %d | %s | %s | %.1f of %d | %s | %s |" % (" / ".join(map(str, caps)), kernel, processes, words(whole),
                                                                words(later), sum(later), sum(caps), words(plain), machine()), flush=True)


if __name__ == "__main__":
    enter_namespace(SIM)
    tables = {"kinds": kinds, "latency": latency}
    if sys.argv[6:] and sys.argv[6] in tables:
        tables[sys.argv[6]]()
    else:
        main()
    if not sys.argv[6:]:
        for table in tables.values():
            print()
            table()
