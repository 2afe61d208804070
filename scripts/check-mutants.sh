#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# scripts/check-mutants.sh: each patch of tests/mutants applies to the tree as it is. Whether its
# test still fails is shown by `make mutants`.
set -uo pipefail

status=0
for patch in tests/mutants/*.patch; do
        if [ -e "$patch" ] && ! git apply --check "$patch" 2>/dev/null; then
                echo "$patch: does not apply any more; follow its file, or draw another one: tests/mutants/mutants.py"
                status=1
        fi
done
exit "$status"
