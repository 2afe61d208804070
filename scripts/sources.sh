#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# scripts/sources.sh SUFFIX...: our own text files with these suffixes, one per line; without one, all of them. What git
# ignores is not ours; what is not committed yet is. Negative examples of the lint and fuzz corpora are left out.
set -euo pipefail

patterns=()
for suffix in "$@"; do
        patterns+=("*.$suffix")
done
git ls-files --cached --others --exclude-standard -- "${patterns[@]}" |
        { grep -v -E '^tests/(fuzz/corpus|lint/bad)/' || true; } |
        while IFS= read -r file; do
                if [ -f "$file" ]; then echo "$file"; fi # deleted, not committed
        done
