#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Mutants show that tests can fail. Each ROOM-NN.patch here makes one fault in that room, and its header names a test that fails
because of it.
    mutants.py run [NAME...]                builds each patch in a copy of the tree and runs the room's tests: `make mutants`
    mutants.py draw SEED COUNT ROOM...      draws faults until COUNT of each room are caught, and writes the patches
A mutant that hangs is caught: a test has ten times the processor time and the time that it takes without the mutant."""
import collections
import contextlib
import difflib
import hashlib
import json
import os
import random
import re
import resource
import signal
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
SCRATCH = os.path.join(ROOT, "build-mutants")  # the copy and its build; kept, so that the next run builds what changed only
TREE, BUILD = os.path.join(SCRATCH, "tree"), os.path.join(SCRATCH, "build")

# The folder of a room, and the folders of its tests.
ROOMS = {"allocate": ("src/node/allocate", ["tests/unit/node/allocate"]),
         "arbiter": ("src/arbiter", ["tests/unit/arbiter", "tests/unit/card"]),
         "launch": ("src/preload/launch", ["tests/unit/preload/launch", "tests/unit/card"]),
         "scheduler": ("src/scheduler", ["tests/unit/scheduler"]),
         "share": ("src/share", ["tests/unit/share"]),
         "slice": ("src/slice", ["tests/unit/slice"])}

OTHERS = {"<": ["<=", ">"], "<=": ["<", ">"], ">": [">=", "<"], ">=": [">", "<"], "==": ["!="], "!=": ["=="],
          "+": ["-"], "-": ["+"], "+=": ["-="], "-=": ["+="], "++": ["--"], "--": ["++"]}
KINDS = {"comparison": re.compile(r"(?<= )(?:[<>]=?|[!=]=)(?= )"),
         "constant": re.compile(r"(?<![\w.\"'])\d+(?![\w.\"'])"),
         "sign": re.compile(r"(?<= )[-+]=?(?= )|(?<=\w)(?:\+\+|--)(?=[;)])"),
         "deleted statement": re.compile(r"(?<=^        )\s*(?!return)[\w>.*\[\]-]+(?: [-+|&*]?= |\(| ?\+\+| ?--).*(?=;$)|(?<= )(?:continue|break)(?=;$)"),
         "swapped branch": re.compile(r"(?<=\bif \()(?:[^()]|\([^()]*\))+(?=\)(?: \{)?$)")}
DECLARES = re.compile(r"^\s*(?:static|const|extern|typedef|enum|struct|[A-Z]\w*|u?int\w*|bool|char|double|size_t|usec_t) .*[\w*\]]")


def read(path):
    with open(path, encoding="utf-8") as f:
        return f.read()


def write(path, text):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w", encoding="utf-8") as f:
        f.write(text)


def copy_tree():
    """A file that is the same stays untouched, so that nothing of it is built again."""
    names = subprocess.run(["scripts/sources.sh"], cwd=ROOT, check=True, stdout=subprocess.PIPE, text=True).stdout.splitlines()
    names += subprocess.run(["git", "ls-files", "tests/fuzz/corpus"], cwd=ROOT, check=True, stdout=subprocess.PIPE, text=True).stdout.splitlines()
    for name in names:
        source, copy = os.path.join(ROOT, name), os.path.join(TREE, name)
        with open(source, "rb") as f:
            data = f.read()
        if os.path.exists(copy):
            with open(copy, "rb") as f:
                if f.read() == data:
                    continue
        os.makedirs(os.path.dirname(copy), exist_ok=True)
        with open(copy, "wb") as f:
            f.write(data)
        os.chmod(copy, os.stat(source).st_mode)
    if not os.path.exists(os.path.join(BUILD, "build.ninja")):
        subprocess.run(["meson", "setup", BUILD, TREE], check=True, stdout=subprocess.DEVNULL)


def ninja(*targets):
    done = subprocess.run(["ninja", "-C", BUILD, *targets], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    return done.returncode == 0, done.stdout


class Tests:
    """The unit tests by folder, and what each takes without a mutant."""

    def __init__(self):
        ninja("build.ninja")
        self.all, self.took = {}, {}
        targets = {t["id"]: t["filename"] for t in self.introspect("--targets")}
        for test in self.introspect("--tests"):
            folder = os.path.dirname(os.path.relpath(test["cmd"][0], BUILD))
            if folder.startswith("tests/unit/"):
                needs = {os.path.relpath(f, BUILD) for i in test["depends"] for f in targets[i]} | {os.path.relpath(test["cmd"][0], BUILD)}
                self.all[test["name"]] = dict(test, folder=folder, needs=sorted(needs))

    @staticmethod
    def introspect(what):
        return json.loads(subprocess.run(["meson", "introspect", what, BUILD], check=True, stdout=subprocess.PIPE).stdout)

    def of(self, room):
        return [name for name, test in self.all.items() if any((test["folder"] + "/").startswith(f + "/") for f in ROOMS[room][1])]

    def build(self, names):
        return ninja(*sorted({need for name in names for need in self.all[name]["needs"]}))

    def fails(self, name):
        """False, or how it fails."""
        test, limits = self.all[name], self.took.get(name)

        def limit():
            if limits:
                resource.setrlimit(resource.RLIMIT_CPU, (int(5 + 10 * limits[1]),) * 2)
            resource.setrlimit(resource.RLIMIT_CORE, (0, 0))

        process = subprocess.Popen(test["cmd"], cwd=test["workdir"] or BUILD, env=dict(os.environ, **test["env"]), stdin=subprocess.DEVNULL,
                                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, preexec_fn=limit, start_new_session=True)
        try:
            status = process.wait(60 + 10 * limits[0] if limits else None)
        except subprocess.TimeoutExpired:
            return "hangs"
        finally:  # what the test started ends with it
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        return {0: False, 77: False, -signal.SIGKILL: "takes too long", -signal.SIGXCPU: "takes too long"}.get(status, "fails")

    def measure(self, names):
        """Runs the tests without a mutant, where they must pass."""
        for name in names:
            if name in self.took:
                continue
            before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
            if self.fails(name):
                sys.exit(f"mutants: {name} fails without a mutant")
            after = resource.getrusage(resource.RUSAGE_CHILDREN)
            self.took[name] = time.monotonic() - began, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def code_lines(text):
    """(NUMBER, LINE) of what can be mutated: no comment, no directive, no declaration of a name beside a folder's own scope."""
    comment = False
    for n, line in enumerate(text.split("\n")):
        if not comment and re.match(r"        +\w", line) and '"' not in line and "/*" not in line:
            yield n, line
        comment = (comment or "/*" in line) and "*/" not in line


def changes(kind, line):
    """Each (START, END, NEW) of this kind in a line."""
    if kind == "deleted statement" and DECLARES.match(line):
        return
    for match in KINDS[kind].finditer(line):
        old = match.group()
        if kind == "constant":
            new = [str(int(old) + 1)] + ([str(int(old) - 1)] if old != "0" else [])
        else:
            new = {"deleted statement": [""], "swapped branch": [f"!({old})"]}.get(kind) or OTHERS[old]
        for one in new:
            yield match.start(), match.end(), one


def candidates(room, seed):
    """(KIND, FILE, LINE NUMBER, NEW TEXT) without end of use, the kinds in turn."""
    rng, found = random.Random(f"{seed} {room}"), {kind: [] for kind in KINDS}
    folder = os.path.join(ROOT, ROOMS[room][0])
    for where, _, names in sorted(os.walk(folder)):
        for name in sorted(n for n in names if n.endswith(".c")):
            text = read(os.path.join(where, name))
            for n, line in code_lines(text):
                for kind in KINDS:
                    for start, end, new in changes(kind, line):
                        lines = text.split("\n")
                        lines[n] = (line[:start] + new + line[end:]).rstrip()
                        found[kind].append((kind, os.path.relpath(os.path.join(where, name), ROOT), n + 1, "\n".join(lines)))
    for several in found.values():
        rng.shuffle(several)
    while any(found.values()):
        for several in found.values():
            if several:
                yield several.pop()


def compiled_of(path):
    """An object that the room's tests have of a file, or None."""
    for c in json.loads(read(os.path.join(BUILD, "compile_commands.json"))):
        if os.path.normpath(os.path.join(c["directory"], c["file"])) == os.path.join(TREE, path) and os.path.exists(os.path.join(BUILD, c["output"])):
            return c["output"]
    return None


def digest(compiled):
    with open(os.path.join(BUILD, compiled), "rb") as f:
        return hashlib.sha256(f.read()).digest()


def try_mutant(tests, path, text, order, digests):
    """The test that catches it, with how; or None, and why it does not count."""
    compiled = compiled_of(path)
    if not compiled:
        return None, "is in no test"
    before = digests.setdefault(path, digest(compiled))
    write(os.path.join(TREE, path), text)
    try:
        for name in order:
            if not tests.build([name])[0]:
                return None, "does not build"
            if name == order[0] and ninja(compiled) and digest(compiled) == before:
                return None, "is the same program"
            how = tests.fails(name)
            if how:
                return name, how
        return None, "SURVIVES"
    finally:
        write(os.path.join(TREE, path), read(os.path.join(ROOT, path)))


def draw(seed, count, rooms):
    tests = Tests()
    for room in rooms:
        names = tests.of(room)
        if not tests.build(names)[0]:
            sys.exit("mutants: the tree does not build")
        tests.measure(names)
        order, tally, caught, digests = sorted(names, key=lambda name: tests.took[name][1]), collections.Counter(), 0, {}
        print(f"# {room}, seed {seed}: " + ", ".join(f"{name} {tests.took[name][1]:.1f} s" for name in order), flush=True)
        for kind, path, line, text in candidates(room, seed):
            stem = os.path.basename(path)[:-2].replace("_", "-")  # first the test that is named after the file
            test, how = try_mutant(tests, path, text, sorted(order, key=lambda name: not name.endswith(stem)), digests)
            print(f"{room}: {kind}, {path}:{line}: {how}{' ' + test if test else ''}", flush=True)
            tally[how] += 1
            if test:
                caught += 1
                diff = difflib.unified_diff(read(os.path.join(ROOT, path)).split("\n"), text.split("\n"), "a/" + path, "b/" + path, n=3, lineterm="")
                write(os.path.join(HERE, f"{room}-{caught:02}.patch"), f"Seed {seed}: {kind}\nCaught-by: {test}\n" + "\n".join(diff) + "\n")
            if caught == count:
                break
        print(f"# {room}: {dict(tally)}", flush=True)


def patched(text, patch):
    """The text with the patch's hunk at the nearest place where its lines stand, or None."""
    at, *hunk = patch.split("\n@@ -", 1)[1].rstrip("\n").split("\n")
    old, new = ([line[1:] for line in hunk if line[0] in signs] for signs in (" -", " +"))
    lines, wanted = text.split("\n"), int(at.split(",")[0]) - 1
    places = [i for i in range(len(lines)) if lines[i:i + len(old)] == old]
    if not places:
        return None
    place = min(places, key=lambda i: abs(i - wanted))
    return "\n".join(lines[:place] + new + lines[place + len(old):])


def run_one(tests, name):
    """None, or what is wrong."""
    text = read(os.path.join(HERE, name + ".patch"))
    first, room = re.search(r"^Caught-by: (.*)$", text, re.M).group(1), name.rsplit("-", 1)[0]
    path = re.search(r"^\+\+\+ b/(.*)$", text, re.M).group(1)
    if first not in tests.of(room):
        return f"{room} has no test {first}"
    mutant = patched(read(os.path.join(ROOT, path)), text) if os.path.exists(os.path.join(ROOT, path)) else None
    if not mutant:
        return "the patch does not apply any more: draw another one"
    if not tests.build([first])[0]:
        return "the tree does not build"
    tests.measure([first])
    write(os.path.join(TREE, path), mutant)
    try:
        for test in [first] + [t for t in tests.of(room) if t != first]:
            if not tests.build([test])[0]:
                return "does not build any more: draw another one"
            how = tests.fails(test)
            if how:
                print(f"{name}: {test} {how}", flush=True)
                return None
        return "no test of the room fails"
    finally:
        write(os.path.join(TREE, path), read(os.path.join(ROOT, path)))


def run(names):
    tests, caught, missed = Tests(), 0, 0
    for name in names or sorted(n[:-6] for n in os.listdir(HERE) if n.endswith(".patch")):
        wrong = run_one(tests, name)
        caught, missed = caught + (not wrong), missed + bool(wrong)
        if wrong:
            print(f"{name}: MISSED: {wrong}", flush=True)
    print(f"mutants: {caught} caught, {missed} missed")
    return 1 if missed else 0


def main(arguments):
    if len(arguments) < 1 or arguments[0] not in ("run", "draw") or arguments[0] == "draw" and len(arguments) < 4:
        sys.exit(__doc__)
    copy_tree()
    if arguments[0] == "run":
        sys.exit(run(arguments[1:]))
    draw(int(arguments[1]), int(arguments[2]), arguments[3:])


if __name__ == "__main__":
    main(sys.argv[1:])
