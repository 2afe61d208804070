#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""thorough.py BUILD [ROOM]: runs a room's tests with all of their seeds and cases. A room is a folder of tests in which a
test runs a part of them without THOROUGH=1 (tests/unit/thorough.h), or `blackbox`: the tests of meson's suite `thorough`.
Without ROOM: the room of the day, each in its turn."""
import datetime
import json
import os
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


def rooms():
    for folder, _, names in os.walk(os.path.join(ROOT, "tests")):
        for name in names:
            if name.endswith(".c"):
                with open(os.path.join(folder, name), encoding="utf-8") as f:
                    if "thorough.h\"" in f.read():
                        yield os.path.relpath(folder, os.path.join(ROOT, "tests"))
                        break


def main(build, room=None):
    known = sorted([*rooms(), "blackbox"])
    room = room or known[datetime.date.today().toordinal() % len(known)]
    if room not in known:
        sys.exit(f"thorough: {room} is none of {', '.join(known)}")
    tests = json.loads(subprocess.run(["meson", "introspect", "--tests", build], check=True, stdout=subprocess.PIPE).stdout)
    folder = os.path.join(os.path.abspath(build), "tests", room)
    if room == "blackbox":
        names = [test["name"] for test in tests if any(suite.endswith("thorough") for suite in test["suite"])]
    else:
        names = [test["name"] for test in tests if os.path.dirname(test["cmd"][0]) == folder]
    print(f"thorough: {room}", flush=True)
    os.environ["THOROUGH"] = "1"
    at_once = ["--num-processes", str(3 * os.cpu_count())] if room == "blackbox" else []
    os.execvp("meson", ["meson", "test", "--print-errorlogs", *at_once, "-C", build, *names])


if __name__ == "__main__":
    main(*sys.argv[1:])
