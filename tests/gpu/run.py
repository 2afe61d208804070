#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The GPU suites: run.py --build FOLDER [--suite memory|compute] [--out FOLDER] [--only TEXT,TEXT...] [--quick];
run.py --check says whether there is a card.

Runs what tests/gpu/build.sh has built in slices of card 0, and compares what the slice says, what the driver says on the host, and what
the program itself is told. One line per test; results.json and results.md in the folder. On a simulated driver with ALIQUOT_SIM_DIR and
LD_LIBRARY_PATH set as docs/internals/simulator-cuda.md says. Exit status: 0 all passed, 1 a test failed, 77 nothing to run on.
"""
import argparse
import os
import sys
import tempfile
import traceback

import compute
import memory
import report
from host import Missing, cuda_version
from slices import Card, Failure, Skip


def where():
    return os.environ.get("ALIQUOT_SIM_DIR") or "/dev"


def missing():
    """Why nothing can run here; None when it can."""
    ctl = os.path.join(where(), "nvidiactl")
    if not os.path.exists(ctl):
        return "%s is not there: no card, or no driver" % ctl
    try:
        cuda_version()
    except Missing as e:
        return str(e)
    return None


def run_one(name, test, card):
    try:
        return {"name": name, "result": "ok", "figures": test(card)}
    except Skip as e:
        return {"name": name, "result": "skip", "why": str(e)}
    except Failure as e:
        return {"name": name, "result": "not ok", "why": str(e)}
    except Exception:  # a fault of the suite costs its test, not the rest of the time on the card
        return {"name": name, "result": "not ok", "why": " | ".join(traceback.format_exc(-2).split("\n")[1:])}


def chosen(options):
    """The tests whose name contains one of the texts."""
    suite = memory.ALL if options.suite == "memory" else compute.suite(options.quick)
    return [(name, test) for name, test in suite if any(text in name for text in options.only.split(","))]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--build", default="build/gpu/library")
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--out")
    parser.add_argument("--only", default="")
    parser.add_argument("--suite", choices=("memory", "compute"), default="memory")
    parser.add_argument("--quick", action="store_true")
    options = parser.parse_args()
    why = missing()
    if why:
        print("gpu-test: skipped: " + why)
        return 77
    if options.check:
        return 0
    if options.out:
        os.makedirs(options.out, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="aliquot-gpu-") as scratch:
        try:
            card = Card(os.path.abspath(options.build), scratch)
        except Missing as e:
            print("gpu-test: skipped: %s" % e)
            return 77
        results = report.Results(card.host, cuda_version(), bool(os.environ.get("ALIQUOT_SIM_DIR")), options.out)
        for name, test in chosen(options):
            results.add(run_one(name, test, card))
    return results.summary()


if __name__ == "__main__":
    sys.exit(main())
