#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# scripts/sources.sh SUFFIX...: our own text files with these suffixes, one per line; without one,
# all of them. What git ignores is not ours; what is not committed yet is. Fuzz corpora are left
# out. A clone that belongs to another user, as in CI, is read all the same.
set -euo pipefail

patterns=()
for suffix in "$@"; do
        patterns+=("*.$suffix")
done
git -c safe.directory='*' ls-files --cached --others --exclude-standard -- "${patterns[@]}" |
        { grep -v -E '^tests/fuzz/corpus/' || true; } |
        while IFS= read -r file; do
                if [ -f "$file" ]; then echo "$file"; fi # deleted, not committed
        done
