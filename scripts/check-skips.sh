#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# scripts/check-skips.sh BUILD: every line of tests/skips.txt and tests/plain.txt is `TEST REASON`,
# and there is such a test; TEST may have wildcards. With a second argument, the names of tests that
# were skipped, one per line on standard input: prints each with its reason.
set -euo pipefail

build=$1 list=tests/skips.txt bad=0
if [ $# -gt 1 ]; then
        while IFS= read -r name; do
                reason=$(awk -v name="$name" '$1 == name { sub(/^[^ ]+ +/, ""); print; exit }' "$list")
                echo "skipped: $name: ${reason:-$list does not say why}"
        done
        exit 0
fi
tests=$(meson introspect --tests "$build" | python3 -c 'import json, sys; print("\n".join(t["name"] for t in json.load(sys.stdin)))')
for list in tests/skips.txt tests/plain.txt; do
        [ -f "$list" ] || continue
        while read -r name reason; do
                case $name in '' | '#'*) continue ;; esac
                if [ -z "$reason" ]; then echo "$list: $name has no reason"; bad=1; fi
                found=no
                # shellcheck disable=SC2053 # wildcards
                for test in $tests; do
                        if [[ $test == $name ]]; then found=yes; fi
                done
                if [ "$found" = no ]; then echo "$list: there is no test $name"; bad=1; fi
        done <"$list"
done
exit "$bad"
