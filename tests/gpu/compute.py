# SPDX-License-Identifier: Apache-2.0
"""The compute tests. A tenant's share is its rate of fixed work divided by the rate alone, without libaliquot.so, in percent.

The figures of a simulated card are recorded and not judged: its time is this machine's, which has other things to do."""
import os
import sys
import time

from slices import Failure, Skip

HERE = os.path.dirname(os.path.abspath(__file__))
MIB = 4096  # of a slice
LENGTHS = {"50us": (50, 200), "1ms": (1000, 40), "20ms": (20000, 4)}  # a kernel's microseconds, launches between two waits
POINTS = {"50us": 10, "1ms": 5, "20ms": 5}  # by which a share may miss


class Bench:
    """Runs programs side by side. They begin to work at the same time, when all are ready."""

    def __init__(self, card, quick):
        self.card, self.quick = card, quick
        self.iterations, self.alone = {}, {}

    def seconds(self, n):
        return 1 if self.quick else n

    def calibrate(self, us):
        if us not in self.iterations:
            with self.card.case("rate", us) as p:
                self.iterations[us] = max(1, p.until(None)["iterations"])
        return self.iterations[us]

    def start(self, core, *case):
        """core: percent of a slice's compute, 0: no limit, None: without libaliquot.so"""
        if core is None:
            return self.card.case(*case)
        return self.card.run(MIB, [self.card.path("gpu-case"), *map(str, case)], core=core or None)

    def together(self, *pairs):
        """(core, case arguments) of each; the figures of each"""
        programs = [self.start(core, *case) for core, case in pairs]
        try:
            for p in programs:
                p.until("ready")
            for p in programs:
                p.go()
            return [dict(p.until(None)) for p in programs]
        finally:
            for p in programs:
                p.__exit__()

    def work(self, us, seconds, batch, nodes=0):
        return ("work", us, self.calibrate(us), self.seconds(seconds), batch, nodes)

    def rate_alone(self, us, batch, nodes=0):
        key = (us, batch, nodes)
        if key not in self.alone:
            self.alone[key] = rate(self.together((None, self.work(us, 4, batch, nodes)))[0])
        return self.alone[key]

    def shares(self, us, batch, seconds, *cores, nodes=0):
        """The shares of tenants side by side, and the longest batch of the first in ms."""
        alone = self.rate_alone(us, batch, nodes)
        told = self.together(*[(core, self.work(us, seconds, batch, nodes)) for core in cores])
        return [round(100 * rate(t) / alone, 1) for t in told], told[0]["longest-ns"] // 1000000

    def judge(self, figures, name, share, wanted, points):
        figures[name] = share
        if not self.card.env.get("ALIQUOT_SIM_DIR") and abs(share - wanted) > points:
            raise Failure("%s: %.1f of %d percent; %s" % (name, share, wanted, figures))


def rate(told):
    if told["ns"] == 0 or told["done"] == 0:
        raise Failure("no kernel was done: %s" % told)
    return told["done"] * 1e9 / told["ns"]


# ---- shares ----


def alone(bench, length):
    us, batch = LENGTHS[length]
    figures = {"kernels-a-second": round(bench.rate_alone(us, batch))}
    (share,), _ = bench.shares(us, batch, 4, 100)
    bench.judge(figures, "share-of-100", share, 100, 5)
    (share,), _ = bench.shares(us, batch, 8, 30)
    bench.judge(figures, "share-of-30", share, 30, POINTS[length])
    return figures


def beside(bench, length):
    us, batch = LENGTHS[length]
    figures = {}
    (figures["none-a"], figures["none-b"]), _ = bench.shares(us, batch, 6, None, None)
    (small, large), longest = bench.shares(us, batch, 10, 20, 60)
    figures["longest-ms-of-20"] = longest
    bench.judge(figures, "share-of-60", large, 60, POINTS[length])
    bench.judge(figures, "share-of-20", small, 20, POINTS[length])
    return figures


def graph(bench):
    (share,), _ = bench.shares(100, 20, 8, 30, nodes=20)
    figures = {}
    bench.judge(figures, "share-of-30", share, 30, 5)
    return figures


# ---- the card's own turns ----


def turns(bench):
    """Two kernels that always work, in slices without a limit. A run is as long as the card's turn if a kernel can be preempted at any
    instruction, and as long as the kernel otherwise."""
    length = bench.seconds(4) * 1000
    told = bench.together((0, ("gaps", length)), (0, ("gaps", length)))[0]
    return {key: told[key] for key in ("gaps", "clock-step-ns", "run-p50-ns", "run-p90-ns", "gap-p50-ns", "gap-p90-ns") if key in told}


# ---- NVML's utilisation ----


def utilisation(bench):
    """What NVML says of two processes that always work; the last answers."""
    seconds, since, last, asked = bench.seconds(10), 0, {}, 0
    programs = [bench.start(None, *bench.work(100, 12, 1)) for _ in range(2)]
    try:
        for p in programs:
            p.until("ready")
        for p in programs:
            p.go()
        for _ in range(seconds):
            time.sleep(1)
            r, samples = bench.card.host.utilisation(since)
            asked += 1
            for pid, percent, at in samples:
                last[pid], since = percent, max(since, at)
        figures = {"asked": asked, "status": r, "processes": len(last)}
        for i, p in enumerate(programs):
            figures["percent-%d" % i] = last.get(p.figures["pid"], "none")
        for p in programs:
            p.until(None)
    finally:
        for p in programs:
            p.__exit__()
    return figures


def torch(bench):
    command = [sys.executable, os.path.join(HERE, "torch_rate.py"), str(bench.seconds(4))]
    with bench.card.program(command) as p:
        alone_ = dict(p.until(None))
    with bench.card.run(8192, command, core=30) as p:
        limited = dict(p.until(None))
    figures = {}
    for key in ("matmul", "eager"):
        if alone_.get(key, 0) == 0:
            raise Skip("PyTorch has told no rate")
        figures[key + "-share-of-30"] = round(100 * limited[key] / alone_[key], 1)
    return figures


def suite(quick):
    """The tests in their order, with the card's calibration in common."""
    benches = []

    def on(test, *arguments):
        def run(card):
            if not benches:
                benches.append(Bench(card, quick))
            return test(benches[0], *arguments)
        return run

    lengths = ("1ms", "50us", "20ms")  # what is expected to hold best comes first
    listed = [("turns", on(turns))]
    listed += [("alone-" + length, on(alone, length)) for length in lengths]
    listed += [("beside-" + length, on(beside, length)) for length in lengths]
    return listed + [("graph", on(graph)), ("utilisation", on(utilisation)), ("torch-rates", on(torch))]
