#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Draws the house from its includes. A room is a folder of src, or sim; a folder inside a room belongs to it. Prints
rooms and arrows, and every circle: between rooms, between the folders of a room, and between the modules of a folder.
X.c and X.h are one module, and so are all files that share the structs of one X-internal.h. Fails above the ceilings,
for a circle that CIRCLES does not name, and for a folder with more than FILES .c files."""
import collections
import os
import re
import subprocess
import sys

ROOMS, ARROWS, FILES = 16, 57, 40
# Folders where files may still include each other in a circle, with what will end it.
CIRCLES = {"src/preload/launch": "compute isolation on one model of a card"}
INCLUDE = re.compile(r'^\s*#\s*include\s+"([^"]+)"', re.MULTILINE)


def room(path):
    return "sim" if path.startswith("sim/") else path.split("/")[1]


def circles(graph):
    """The strongly connected sets of more than one node (Tarjan)."""
    number, low, stack, found = {}, {}, [], []

    def visit(node):
        number[node] = low[node] = len(number)
        stack.append(node)
        for other in sorted(graph.get(node, ())):
            if other not in number:
                visit(other)
                low[node] = min(low[node], low[other])
            elif other in stack:
                low[node] = min(low[node], number[other])
        if low[node] == number[node]:
            at = stack.index(node)
            if len(stack) - at > 1:
                found.append(sorted(stack[at:]))
            del stack[at:]

    for node in sorted(graph):
        if node not in number:
            visit(node)
    return found


def read():
    """{FILE: the files of the tree that it includes}"""
    files = subprocess.run([os.path.join(os.path.dirname(__file__), "sources.sh"), "c", "h"], check=True, stdout=subprocess.PIPE,
                           text=True).stdout.split()
    files = {path for path in files if path.startswith("sim/") or path.count("/") > 1 and path.startswith("src/")}
    includes = {}
    for path in sorted(files):
        with open(path, encoding="utf-8") as f:
            names = INCLUDE.findall(f.read())
        includes[path] = {where for name in names for where in (f"src/{name}", name, os.path.normpath(f"{os.path.dirname(path)}/{name}"))
                          if where in files}
    return includes


def modules(includes):
    """{FILE: the name of its module}"""
    of = {path: re.sub(r"(-internal)?\.[ch]$", "", path) for path in includes}
    for path, targets in includes.items():
        for target in targets:
            if target.endswith("-internal.h") and os.path.dirname(target) == os.path.dirname(path):
                name, joined = of[path], of[target]
                of = {other: joined if module == name else module for other, module in of.items()}
    return of


def main():
    includes = read()
    unit = modules(includes).get
    graphs = [collections.defaultdict(set) for _ in range(3)]
    for path, targets in includes.items():
        for target in targets:
            for graph, name in zip(graphs, (room, os.path.dirname, unit)):
                if name(path) != name(target):
                    graph[name(path)].add(name(target))
    rooms, folders, files = graphs
    names = sorted({room(path) for path in includes})
    arrows = sum(len(targets) for targets in rooms.values())
    bad = len(names) > ROOMS or arrows > ARROWS
    print(f"{len(names)} rooms (at most {ROOMS}), {arrows} arrows (at most {ARROWS})")
    for name in names:
        print(f"  {name}: {' '.join(sorted(rooms[name]))}")
    for folder, n in sorted(collections.Counter(os.path.dirname(path) for path in includes if path.endswith(".c")).items()):
        if n > FILES:
            print(f"{folder}: {n} .c files in one folder (at most {FILES})")
            bad = True
    for circle in circles(rooms) + circles(folders):
        print("circle: " + " ".join(circle))
        bad = True
    for circle in circles(files):
        pending = {os.path.dirname(path) for path in circle} <= set(CIRCLES)
        print(("circle, known: " if pending else "circle: ") + " ".join(circle))
        bad = bad or not pending
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
