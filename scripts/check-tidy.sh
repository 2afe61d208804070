#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# scripts/check-tidy.sh BUILD: clang-tidy over the files of scripts/changed.py that stand in the
# compile database, as many at once as there are cores. The checks and the reasons for those left
# out stand in .clang-tidy.
set -uo pipefail

build=$1 here=$(dirname "$0")
built=$(sed -n 's#.*"file": *"\(\.\./\)*\([^"]*\)".*#\2#p' "$build/compile_commands.json" | sort -u)
files=$("$here/changed.py") || exit 1
[ -n "$built" ] || { echo "tidy: $build/compile_commands.json names no file"; exit 1; }
grep -xF "$built" <<<"$files" | xargs -r -d '\n' -n 4 -P "$(nproc)" clang-tidy -p "$build" --quiet --warnings-as-errors='*' \
        --extra-arg=-Wno-unknown-warning-option 2>&1 |
        sed -nE 's#^(.*/)?\.\./##; /: (error|warning): /p' | sort -u # the path to a verdict: run clang-tidy on that file
exit "${PIPESTATUS[1]}"
