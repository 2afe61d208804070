#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""usage: mutated.py SOURCE-ROOT SCRATCH CC...: test-layouts.c holds each number of layouts.txt

A copy of the table in which each number is one more must fail one assertion of each row, and a
table without a row must be refused. Offsets and bytes of fields are changed one after the other.
"""
import os
import re
import subprocess
import sys

KINDS = ("size ", "field ", "start ", "value ")
root, scratch, *cc = sys.argv[1:]
clang = "clang" in subprocess.run([*cc, "--version"], capture_output=True, text=True, check=True).stdout
os.makedirs(scratch, exist_ok=True)
rm = os.path.join(root, "src/gpu/rm")
headers = sorted(os.path.join(rm, n) for n in os.listdir(rm) if n.endswith(".h") and n != "release.h")
table = os.path.join(scratch, "layouts.txt")
made = os.path.join(scratch, "layouts-of-releases.h")
with open(os.path.join(rm, "layouts.txt"), encoding="utf-8") as file:
    lines = file.read().splitlines()


def more(number):
    return f"0x{int(number, 16) + 1:X}" if number.startswith("0x") else str(int(number) + 1)


def changed(line, bytes_):
    """The row with each number one more, or each number of bytes."""
    if not line.startswith(KINDS):
        return line
    kind, ours, theirs, *words = line.split()
    for i, word in enumerate(words):
        if word == "as":
            break
        number, at, first = word.partition("@")
        offset, slash, size = number.partition("/")
        if number != "-" and (slash or not bytes_):
            number = f"{offset}/{more(size)}" if bytes_ else more(offset) + slash + size
        words[i] = number + at + first
    return " ".join([kind, ours, theirs, *words])


def header(text):
    with open(table, "w", encoding="utf-8") as file:
        file.write("\n".join(text) + "\n")
    return subprocess.run([sys.executable, os.path.join(root, "scripts/rm-layouts.py"), "--table", table,
                           "--header", made, *headers], capture_output=True, text=True, check=False)


def failed():
    done = subprocess.run([*cc, "-std=gnu11", "-fsyntax-only", "-DLAYOUTS_ONLY", "-ferror-limit=0" if clang else "-fmax-errors=0",
                           "-I" + scratch, "-I" + os.path.join(root, "src"),
                           os.path.join(root, "tests/unit/gpu/rm/test-layouts.c")],
                          capture_output=True, text=True, env={**os.environ, "LC_ALL": "C"}, check=False)
    return set(re.findall(r'error: static.assert.*"(\S+): ', done.stderr)), done


assert header(lines).returncode == 0
ours, done = failed()
assert done.returncode == 0, done.stderr
for bytes_, kinds in ((False, KINDS), (True, ("field ",))):
    rows = {line.split()[1] for line in lines if line.startswith(kinds)}
    assert header([changed(line, bytes_) for line in lines]).returncode == 0
    ours, done = failed()
    assert ours == rows, (bytes_, sorted(rows ^ ours)[:10], done.stderr[:2000])
    print(f"ok {len(rows)} rows, {'bytes' if bytes_ else 'numbers'} changed")
for row in ("value RM_ESC_FREE ", "field RmHeapRange.size ", "size RmDup "):
    refused = header([line for line in lines if not line.startswith(row)])
    assert refused.returncode != 0 and row.split()[1] in refused.stderr, refused.stderr
refused = header([*lines, "value RM_ESC_NEW NV_ESC_NEW ?"])
assert refused.returncode != 0 and "no numbers yet: RM_ESC_NEW" in refused.stderr, refused.stderr
row = next(i for i, line in enumerate(lines) if line.startswith("size RmFbRegion "))
refused = header([*lines[:row], lines[row].partition(" as ")[0], *lines[row + 1:]])
assert refused.returncode != 0 and "RmFbRegion differs" in refused.stderr, refused.stderr
print("ok tables that lack a row, or what a difference is for")
