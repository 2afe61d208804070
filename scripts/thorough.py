#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""thorough.py BUILD [ROOM]: runs a room's tests with all of their seeds and cases. A room is a branch of
the driver (`blackbox-570`), the rest of meson's suite `thorough` (`blackbox`), or a folder of C tests. In such a folder
a test runs a part of them without THOROUGH=1 (tests/unit/thorough.h). Without ROOM: the room of the day, each in its turn."""
import datetime
import functools
import json
import os
import re
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


@functools.lru_cache(None)  # a folder has many tests
def has_parts(folder):
    for name in os.listdir(folder):
        if name.endswith(".c"):
            with open(os.path.join(folder, name), encoding="utf-8") as f:
                if "thorough.h\"" in f.read():
                    return True
    return False


def rooms(tests, build):
    """A room's name, and the names of its tests"""
    found = {}
    for test in tests:
        if any(suite.endswith("thorough") for suite in test["suite"]):
            branch = re.search(r"-[0-9]{3}$", test["name"])
            found.setdefault("blackbox" + (branch.group() if branch else ""), []).append(test["name"])
        room = os.path.relpath(os.path.dirname(test["cmd"][0]), os.path.join(os.path.abspath(build), "tests"))
        folder = os.path.join(ROOT, "tests", room)
        if not room.startswith("..") and os.path.isdir(folder) and has_parts(folder):
            found.setdefault(room, []).append(test["name"])
    return found


def main(build, room=None):
    tests = json.loads(subprocess.run(["meson", "introspect", "--tests", build], check=True, stdout=subprocess.PIPE).stdout)
    tests_of = rooms(tests, build)
    known = sorted(tests_of)
    room = room or known[datetime.date.today().toordinal() % len(known)]
    if room not in known:
        sys.exit(f"thorough: {room} is none of {', '.join(known)}")
    print(f"thorough: {room}", flush=True)
    os.environ["THOROUGH"] = "1"
    at_once = ["--num-processes", str(3 * os.cpu_count())] if room.startswith("blackbox") else []
    os.execvp("meson", ["meson", "test", "--print-errorlogs", *at_once, "-C", build, *tests_of[room]])


if __name__ == "__main__":
    main(*sys.argv[1:])
