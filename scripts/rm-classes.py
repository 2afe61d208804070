#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Takes the classes of src/gpu/rm/classes.txt out of NVIDIA's open kernel modules.

usage: rm-classes.py --git REPOSITORY
       rm-classes.py --header FILE

REPOSITORY is a clone of NVIDIA/open-gpu-kernel-modules. The releases are those of layouts.txt. For
each, the names in resource_list.h are looked for in its headers. Nothing of NVIDIA's is kept.
The last form writes a C header for the simulator: an X-macro with a row for each class.
"""
import argparse
import os
import re
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
RM = os.path.join(ROOT, "src/gpu/rm")
TABLE = os.path.join(RM, "classes.txt")
LIST = "src/nvidia/src/kernel/rmapi/resource_list.h"
HEADERS = "src/common/sdk/nvidia/inc"
HEAD = """\
# SPDX-License-Identifier: Apache-2.0
# The classes that a program can name in RM_ALLOC: those of the driver's resource_list.h, by release.
# scripts/rm-classes.py takes them out of NVIDIA's open kernel modules.
#
# The driver's name, the number, then the branches that have the class: FIRST-LAST, or FIRST- where
# the newest has it, too. Some cards do not have all of them.
# 610 and 615 have 15 more, none of memory or of channels. Their numbers were not to be had.
"""


def branch(version):
    return int(version.partition(".")[0])


def releases(repository):
    """Those of the table that the repository has."""
    tags = subprocess.run(["git", "-C", repository, "tag"], capture_output=True, text=True, check=True).stdout.split()
    with open(os.path.join(RM, "layouts.txt"), encoding="utf-8") as file:
        return [tag for tag in next(line.split()[1:] for line in file if line.startswith("releases ")) if tag in tags]


def classes(repository, tag, scratch):
    """The classes of a release: number -> name."""
    tree = os.path.join(scratch, tag)
    os.mkdir(tree)
    archive = subprocess.run(["git", "-C", repository, "archive", tag, "--", LIST, HEADERS], check=True, capture_output=True).stdout
    subprocess.run(["tar", "-x", "-C", tree], input=archive, check=True)
    with open(os.path.join(tree, LIST), encoding="utf-8") as file:
        names = re.findall(r"External Class\s*\*/\s*(\w+)", file.read())
    folder = os.path.join(tree, HEADERS)
    macros = {}
    for header in ["nvos.h"] + ["class/" + name for name in os.listdir(folder + "/class")]:
        with open(os.path.join(folder, header), encoding="utf-8") as file:
            macros.update(re.findall(r"^#define\s+(\w+)\s+\(?(0x[0-9A-Fa-f]+)U?\)?", file.read(), re.M))
    missing = [name for name in names if name not in macros]
    if not names or missing:
        sys.exit(f"rm-classes: {tag} has no number of {' '.join(missing)}")
    return {int(macros[name], 16): name for name in reversed(names)}


def spans(present, branches):
    """The branches of a class as FIRST-LAST, one for each run."""
    text, start = [], None
    for i, b in enumerate(branches + [None]):
        if b in present and start is None:
            start = b
        elif b not in present and start is not None:
            text.append(f"{start}-" + ("" if b is None else str(branches[i - 1])))
            start = None
    return " ".join(text)


def write_table(repository):
    found, names, branches = {}, {}, []
    with tempfile.TemporaryDirectory() as scratch:
        for tag in releases(repository):
            branches.append(branch(tag))
            for number, name in classes(repository, tag, scratch).items():
                found.setdefault(number, set()).add(branches[-1])
                names[number] = name
    with open(TABLE, "w", encoding="utf-8") as file:
        file.write(HEAD)
        for number in sorted(found):
            file.write(f"{names[number]} 0x{number:X} {spans(found[number], branches)}\n")


def write_header(path):
    with open(TABLE, encoding="utf-8") as file:
        rows = [line.split() for line in file if line.strip() and not line.startswith("#")]
    with open(path, "w", encoding="utf-8") as file:
        file.write("/* Made of classes.txt by scripts/rm-classes.py. */\n#define RM_CLASSES(ROW)")
        for _, number, *runs in rows:
            for first, _, last in (run.partition("-") for run in runs):
                file.write(f" \\\n        ROW({number}, {first}, {last or 0xFFFF})")
        file.write("\n")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--git")
    parser.add_argument("--header")
    args = parser.parse_args()
    if args.header:
        write_header(args.header)
    elif args.git:
        write_table(args.git)
    else:
        parser.error("neither --git nor --header")


if __name__ == "__main__":
    main()
