#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# symbols.sh LIBRARY: the objects that the preloaded library links import nothing but each other's
# symbols.
set -eu

nm -u "$1" | awk '$1 == "U" { print $2 }' | sort -u >"${TMPDIR:-/tmp}/slice-symbols.$$"
trap 'rm -f "${TMPDIR:-/tmp}/slice-symbols.$$"' EXIT
missing=$(nm --defined-only "$1" | awk 'NF == 3 { print $3 }' | sort -u | comm -23 "${TMPDIR:-/tmp}/slice-symbols.$$" -)
[ -z "$missing" ] || { echo "asks for: $missing" >&2; exit 1; }
