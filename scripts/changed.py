#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The C sources for checks that take long: changed.py [--count] [FOLDER/...]

Prints those that changed since the merge base with CI_BASE (origin/main unless set), and those that include a changed
header, directly or not. Prints all where the merge base is HEAD or cannot be had, and after a change of EVERYTHING.
--count says in one line how many they are.

A changed meson.build stands for the sources of its folder, because it may have changed their options. A header that a
meson.build includes by an option stands for all. Any other changed file of these folders, and any script, may be what
a header is generated from: a name that none of our files has counts as changed then."""
import os
import re
import subprocess
import sys

EVERYTHING = {".clang-tidy", "meson.build", "meson_options.txt", "scripts/changed.py", "scripts/check-cppcheck.sh",
              "scripts/check-tidy.sh", "scripts/packages.txt", "scripts/sources.sh"}
GENERATES = re.compile(r"(src|sim|tests/unit)/|scripts/[^/]*\.py$")
INCLUDE = re.compile(r'^\s*#\s*include\s+"(?:\.\./)*([^"]+)"', re.MULTILINE)
BY_OPTION = re.compile(r"'-include'.*?([\w-]+\.h)'")


def git(*words):
    """What git prints, in parts that end in NUL or a line's end; None if git fails or is not there."""
    try:
        done = subprocess.run(["git", "-c", "safe.directory=*", *words], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    except OSError:
        return None
    return [part for part in re.split("[\0\n]", done.stdout) if part] if done.returncode == 0 else None


def since_base():
    """(the merge base, the files that differ from it), or two None where everything counts"""
    base = git("merge-base", os.environ.get("CI_BASE") or "origin/main", "HEAD")
    if not base or base == git("rev-parse", "HEAD"):
        return None, None
    differ, untracked = git("diff", "--name-only", "--no-renames", "-z", base[0]), git("ls-files", "--others", "--exclude-standard", "-z")
    if differ is None or untracked is None or EVERYTHING & set(differ + untracked):
        return None, None
    return base[0], set(differ + untracked)


def ours(*suffixes):
    script = os.path.join(os.path.dirname(__file__), "sources.sh")
    return subprocess.run([script, *suffixes], check=True, stdout=subprocess.PIPE, text=True).stdout.splitlines()


def found_in(pattern, path):
    with open(path, encoding="utf-8", errors="replace") as f:
        return set(pattern.findall(f.read()))


def endings(path):
    """`a/b/c.h` is included as that, as `b/c.h` and as `c.h`: which folders are searched is not asked."""
    parts = path.split("/")
    return {"/".join(parts[i:]) for i in range(len(parts))}


def union(sets):
    return set().union(*sets)


def affected(files, changed):
    """Those of files that the changed ones reach."""
    builds = [path for path in ours("build") if os.path.basename(path) == "meson.build"]
    by_option = union(found_in(BY_OPTION, path) for path in builds)
    if any(os.path.basename(path) in by_option for path in changed):
        return set(files)
    names = {path: found_in(INCLUDE, path) for path in files}
    folders = tuple(os.path.dirname(path) + "/" for path in changed if os.path.basename(path) == "meson.build")
    found = {path for path in files if path in changed or path.startswith(folders)}
    reached = union(map(endings, found | changed))
    if any(GENERATES.match(path) and not path.endswith((".c", ".h", "/meson.build")) for path in changed):
        reached |= union(names.values()) - union(map(endings, files))
    while True:
        more = {path for path in files if path not in found and names[path] & reached}
        if not more:
            return found
        found |= more
        reached = union(map(endings, more))


def main(words):
    files = ours("c", "h")
    base, changed = since_base()
    found = files if base is None else affected(files, changed)
    sources = [path for path in files if path.endswith(".c")]
    taken = [path for path in sources if path in set(found)]
    if words[:1] == ["--count"]:
        print(f"{len(taken)} of {len(sources)} C files" + (f": what differs from {base[:12]}, and what includes it" if base else ""))
        return
    for path in taken:
        if not words or path.startswith(tuple(words)):
            print(path)


if __name__ == "__main__":
    main(sys.argv[1:])
