#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# scripts/check-tidy.sh BUILD: clang-tidy over the files of scripts/changed.py that stand in the
# compile database, as many at once as there are cores. The checks and the reasons for those left
# out stand in .clang-tidy. A file that several targets compile is read once for each set of
# definitions, and one of src/ or sim/ once, as the product compiles it. The analyzer follows a
# function's paths as far as in clang's shallow mode, which is a third of the time; with THOROUGH=1
# as far as it does by itself.
set -uo pipefail

build=$1 here=$(dirname "$0")
nodes=75000
[ "${THOROUGH:-0}" = 0 ] || nodes=225000
files=$("$here/changed.py") || exit 1
database=$(mktemp -d) || exit 1
trap 'rm -rf "$database"' EXIT

# Writes the reduced database, and prints the names of its files.
built=$(python3 - "$build" "$database" <<'PYTHON'
import json, os, re, sys
build, database = sys.argv[1:]
with open(os.path.join(build, "compile_commands.json"), encoding="utf-8") as f:
    entries = json.load(f)
kept = {}
for entry in sorted(entries, key=lambda entry: len(re.findall(r" -D| '?-include", entry["command"]))):
    path = os.path.relpath(os.path.join(entry["directory"], entry["file"]))
    words = re.findall(r" (?:-D|-include '?)\S+", entry["command"])
    kept.setdefault((path, *(sorted(words) if path.startswith("tests/") else ())), entry)
if not kept:
    sys.exit(f"tidy: {build}/compile_commands.json names no file")
with open(os.path.join(database, "compile_commands.json"), "w", encoding="utf-8") as f:
    json.dump(list(kept.values()), f)
print("\n".join(sorted({key[0] for key in kept})))
PYTHON
) || exit 1
grep -xF "$built" <<<"$files" | xargs -r -d '\n' -n 4 -P "$(nproc)" clang-tidy -p "$database" --quiet --warnings-as-errors='*' \
        --extra-arg=-Wno-unknown-warning-option \
        --extra-arg=-Xclang --extra-arg=-analyzer-config --extra-arg=-Xclang --extra-arg=max-nodes="$nodes" 2>&1 |
        sed -nE 's#^(.*/)?\.\./##; /: (error|warning): /p' | sort -u # the path to a verdict: run clang-tidy on that file
exit "${PIPESTATUS[1]}"
