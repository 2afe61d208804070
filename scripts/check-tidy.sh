#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# scripts/check-tidy.sh BUILD: clang-tidy over every file of the compile database that is ours, as
# many at once as there are cores. The checks and the reasons for those left out stand in
# .clang-tidy.
set -uo pipefail

build=$1 here=$(dirname "$0")
"$here/sources.sh" c | { while IFS= read -r file; do
        if grep -qF "${file}\"" "$build/compile_commands.json"; then echo "$file"; fi
done; } | xargs -r -d '\n' -n 4 -P "$(nproc)" clang-tidy -p "$build" --quiet --warnings-as-errors='*' \
        --extra-arg=-Wno-unknown-warning-option 2>&1 |
        sed -nE 's#^(.*/)?\.\./##; /: (error|warning): /p' | sort -u # the path to a verdict: run clang-tidy on that file
exit "${PIPESTATUS[2]}"
