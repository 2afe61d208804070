#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What the tests that were skipped said is missing: skipped.py BUILD, after `meson test`."""
import json
import os
import sys


def main(build):
    log = os.path.join(build, "meson-logs", "testlog.json")
    if not os.path.exists(log):
        return
    with open(log, encoding="utf-8") as f:
        tests = [json.loads(line) for line in f]
    for test in tests:
        if test["result"] == "SKIP":
            words = (test.get("stdout", "") + "\n" + test.get("stderr", "")).strip().splitlines() or ["it does not say why"]
            why = [line for line in words if "skip" in line and not line.startswith("OK (")] or words[-1:]
            print(f"skipped: {test['name'].split(' / ')[-1]}: {why[0].removeprefix('skipped: ')}")


if __name__ == "__main__":
    main(sys.argv[1])
