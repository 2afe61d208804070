# SPDX-License-Identifier: Apache-2.0
"""A suite as a step of a run, and its results in a few lines: what has failed stands in front."""
import json
import os
import sys

LINE = 320


def words(test):
    if test["result"] == "ok":
        return "ok %s %s" % (test["name"], " ".join("%s=%s" % pair for pair in test["figures"].items()))
    return "%s %s: %s" % (test["result"], test["name"], test["why"])


def run(call, name, variant, folder, limit, only=""):
    command = [sys.executable, os.path.join(call.kit, "tests/gpu/run.py"), "--suite", name, "--build", os.path.join(call.kit, variant),
               "--out", folder, "--only", only, *(["--quick"] if call.quick else [])]
    return call.step(os.path.basename(folder) + "-output", limit, command, GPU_TEST_PATIENCE="45")[0]


def suite(call, name, variant, shown, quick):
    """shown: tests whose figures are in the summary; quick: which tests with --quick. The suite's status."""
    folder = os.path.join(call.folder, "suite")
    status = run(call, name, variant, folder, int(call.left()), quick if call.quick else "")
    try:
        with open(os.path.join(folder, "results.json")) as f:
            results = json.load(f)
    except (OSError, ValueError):
        call.say("the suite has left no results: status %s, suite-output.txt" % status)
        return 1
    tests = results["tests"]
    call.say("%s, driver %s, CUDA %s, variant %s" % (results["card"], results["driver"], results["cuda"], variant))
    for kind in ("not ok", "skip"):
        for test in tests:
            if test["result"] == kind:
                call.say(words(test)[:LINE])
    for test in tests:
        if test["result"] == "ok" and any(text in test["name"] for text in shown):
            call.say(words(test)[:LINE])
    if status == 124:
        call.say("the suite was stopped: its time was over after %s" % tests[-1]["name"])
    call.say("%d ok, %d not ok, %d skipped" % tuple(sum(t["result"] == kind for t in tests) for kind in ("ok", "not ok", "skip")))
    return status if status is not None else 1
