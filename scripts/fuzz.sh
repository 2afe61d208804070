#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# scripts/fuzz.sh BUILD SECONDS: runs every libFuzzer program of BUILD for SECONDS, from its seeds
# in tests/fuzz/corpus. New inputs stay in BUILD/corpus; a crash leaves its input in BUILD/crashes:
# give it a name and add it to the seeds. FUZZ_SEED: of the mutations, at random unless set; how
# many of them run depends on the machine. The limit of an input is wall-clock time, so it is long.
set -euo pipefail

build=$1 seconds=$2
failed=0 passed=0
mkdir -p "$build/crashes"

for target in "$build"/tests/fuzz/fuzz-*; do
        if [ ! -f "$target" ] || [ ! -x "$target" ]; then continue; fi
        name=${target##*/fuzz-}
        found=$build/corpus/$name seeds=tests/fuzz/corpus/$name log=$build/fuzz-$name.log
        mkdir -p "$found"
        if "$target" -max_total_time="$seconds" -timeout=120 -seed="${FUZZ_SEED:-0}" -rss_limit_mb=2048 -print_final_stats=1 -verbosity=1 \
                -artifact_prefix="$build/crashes/$name-" "$found" "$seeds" >"$log" 2>&1 </dev/null; then
                runs=$(sed -n 's/^stat::number_of_executed_units: *//p' "$log")
                echo "fuzz $name: ok, ${runs:-?} runs in $seconds s"
                passed=$((passed + 1))
        else
                echo "fuzz $name: FAILED, see $log"
                tail -n 25 "$log"
                failed=$((failed + 1))
        fi
done
echo "fuzz: $passed passed, $failed failed"
[ "$failed" -eq 0 ] && [ "$passed" -gt 0 ]
