#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# scripts/fuzz.sh BUILD SECONDS [TARGET]: runs every libFuzzer program of BUILD for SECONDS, from
# its seeds in tests/fuzz/corpus, as many at once as there are processors. New inputs stay in
# BUILD/corpus; a crash leaves its input in BUILD/crashes: give it a name and add it to the seeds.
# FUZZ_SEED: of the mutations, at random unless set; how many of them run depends on the machine.
# The limit of an input is wall-clock time, so it is long.
set -euo pipefail

build=$1 seconds=$2

if [ $# -gt 2 ]; then # one target; what it says comes in one piece
        target=$3 name=${3##*/fuzz-}
        found=$build/corpus/$name seeds=tests/fuzz/corpus/$name log=$build/fuzz-$name.log
        mkdir -p "$found" "$build/crashes"
        if "$target" -max_total_time="$seconds" -timeout=120 -seed="${FUZZ_SEED:-0}" -rss_limit_mb=2048 -print_final_stats=1 -verbosity=1 \
                -artifact_prefix="$build/crashes/$name-" "$found" "$seeds" >"$log" 2>&1 </dev/null; then
                runs=$(sed -n 's/^stat::number_of_executed_units: *//p' "$log")
                words="fuzz $name: ok, ${runs:-?} runs in $seconds s"
        else
                words=$(echo "fuzz $name: FAILED, see $log"; tail -n 25 "$log" | sed 's/^/        /')
        fi
        flock "$build" printf '%s\n' "$words"
        exit
fi

mapfile -t targets < <(find "$build/tests/fuzz" -maxdepth 1 -name 'fuzz-*' -type f -executable | sort)
[ ${#targets[@]} -gt 0 ] || { echo "fuzz: $build has no targets"; exit 1; }
said=$build/fuzz.log
printf '%s\n' "${targets[@]}" | xargs -d '\n' -n 1 -P "$(nproc)" "$0" "$build" "$seconds" | tee "$said" || true
passed=$(grep -c '^fuzz [^ ]*: ok, ' "$said" || true)
failed=$((${#targets[@]} - passed)) # one that said nothing did not pass
echo "fuzz: $passed passed, $failed failed"
[ "$failed" -eq 0 ]
