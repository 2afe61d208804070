#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# scripts/build.sh BUILD TARGET...: ninja, with about how long it takes in one line before. It shows
# its progress in one line on a terminal, nothing elsewhere unless something fails or warns, and
# each command with V=1.
set -euo pipefail

build=$1
shift
"$(dirname "$0")/setup.sh" "$build"
steps=$(ninja -C "$build" -n "$@" | sed -n 's/^\[[0-9]*\/\([0-9]*\)\].*/\1/p' | tail -n 1)
# A step takes about 0.3 s of processor time.
if [ "${steps:-0}" -gt 5 ]; then echo "$build: $steps steps, about $((steps * 3 / 10 / $(nproc) + 1)) s on $(nproc) processors"; fi
if [ -n "${V:-}" ]; then quiet=(-v); elif [ -t 1 ]; then quiet=(); else quiet=(--quiet); fi
exec ninja -C "$build" "${quiet[@]}" "$@"
