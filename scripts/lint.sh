#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# scripts/lint.sh BUILD: every check, each one passing or failing as a whole; the last line counts
# them.
set -uo pipefail

build=$1 here=$(dirname "$0")
passed=0 failed=0

check() { # NAME COMMAND...
        local name=$1 output
        shift
        if output=$("$@" 2>&1 </dev/null); then
                echo "lint $name: ok"
                passed=$((passed + 1))
        else
                echo "lint $name: FAILED"
                printf '%s\n' "$output" | head -n 60
                failed=$((failed + 1))
        fi
}

check self-test tests/lint/run.sh
check rooms "$here/check-rooms.sh"
check house "$here/check-house.sh"
check names "$here/check-names.sh"
check tunables "$here/check-tunables.sh"
check served "$here/check-served.sh"
check ceilings "$here/check-ceilings.sh"
check words "$here/check-words.sh"
check prose "$here/check-prose.sh"
check text "$here/check-text.sh"
check links "$here/check-links.sh"
check reference "$here/check-reference.sh"
check man "$here/check-man.sh"
check shell "$here/check-shell.sh"
check python "$here/check-python.sh"
check mutants "$here/check-mutants.sh"
check commits "$here/check-commits.sh"
check skips "$here/check-skips.sh" "$build"
check headers "$here/check-headers.sh"
check plugin "$here/check-plugin.sh"
check includes "$here/check-includes.sh"
check format "$here/check-format.sh"
echo "lint: cppcheck and tidy look at $("$here/changed.py" --count)"
check cppcheck "$here/check-cppcheck.sh"
check tidy "$here/check-tidy.sh" "$build"

echo "lint: $passed passed, $failed failed"
[ "$failed" -eq 0 ]
