#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The simulated libcuda serves what libaliquot.so hooks or calls, and what a test, a sample or a
# program of tests/gpu calls. cuGetExportTable is served for docs/internals/simulator-cuda.md.
set -euo pipefail

words=$("$(dirname "$0")/sources.sh" c h py sh cu | { grep -E '^(src|tests|samples)/' || true; } | { grep -v cuda_header || true; } |
        { xargs -r -d '\n' grep -ohE '\bcu[A-Z][A-Za-z0-9_]+' || true; } | sort -u)
grep -hoE 'X\(cu\w+, cu\w+' sim/cuda/names_*.h | tr -d ',' | sed 's/^X(//' | awk -v words="$words" '
BEGIN {
        n = split(words " cuGetExportTable", list)
        for (i = 1; i <= n; i++)
                named[list[i]] = 1
}
{
        served[$1] = served[$1] || named[$1] || named[$2]
}
END {
        for (name in served)
                if (!served[name]) {
                        print "sim/cuda: nothing hooks or calls " name
                        bad = 1
                }
        exit bad
}'
