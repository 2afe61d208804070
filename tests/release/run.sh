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
step tests/release/leaves-nothing.sh build
step tests/release/arm64.sh "$scratch/one/build-release/arm64"
step tests/release/install.sh "$scratch/one/dist" "$scratch/roots"
for suite in bookworm trixie sid; do step tests/release/suites.sh "$suite" "$scratch/suites"; done
echo "release: $passed passed, $failed failed, $skipped skipped"
[ "$failed" -eq 0 ]
