#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The tests in which a sanitizer can find something, one per line: sanitized.py BUILD. All but those of tests/plain.txt."""
import fnmatch
import json
import os
import sys

PLAIN = os.path.join(os.path.dirname(__file__), "..", "tests", "plain.txt")


def main(build):
    with open(PLAIN, encoding="utf-8") as f:
        plain = [line.split()[0] for line in f if line.strip() and not line.startswith("#")]
    with open(os.path.join(build, "meson-info", "intro-tests.json"), encoding="utf-8") as f:
        names = [test["name"] for test in json.load(f)]
    print("\n".join(name for name in names if not any(fnmatch.fnmatchcase(name, pattern) for pattern in plain)))


if __name__ == "__main__":
    main(sys.argv[1])
