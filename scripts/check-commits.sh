#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Subjects of commits are `room: imperative`, at most 72 columns, and a body says why. Judged are
# the commits after the one that brought this check; merges, reverts, and what a shallow clone does
# not have, are passed over.
set -euo pipefail

begin=$(git -c safe.directory='*' log --diff-filter=A --format=%H -- scripts/check-commits.sh | tail -n 1)
[ -n "$begin" ] || exit 0
git -c safe.directory='*' log --no-merges --format='%h%x09%s%x09%b%x00' "$begin..HEAD" | tr '\n\0' ' \n' | awk -F '\t' '
function complain(text) {
        sub(/^ /, "", $1)
        printf "%s: %s: %s\n", $1, text, $2
        bad = 1
}
NF < 2 || $2 ~ /^Revert / { next }
length($2) > 72 { complain("the subject has " length($2) " columns, at most 72") }
$2 !~ /^[a-z0-9_., \/-]+: [^ ]/ { complain("the subject is not `room: what`") }
$3 ~ /^ *$/ { complain("no body that says why") }
END { exit bad }'
