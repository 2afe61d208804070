#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The release as a whole: `make release-test`. Last line: `release: N passed, N failed, N skipped`.
set -uo pipefail

cd "$(dirname "$0")/../.." || exit 1
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
passed=0 failed=0 skipped=0
step() {
        "$@"
        case $? in
        0) passed=$((passed + 1)) ;;
        77) skipped=$((skipped + 1)) ;;
        *) failed=$((failed + 1)) && echo "release: failed: $*" ;;
        esac
}
step tests/release/twice.sh "$scratch"
step tests/release/files.sh "$scratch/one"
