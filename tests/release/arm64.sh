#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# tests/release/arm64.sh BUILD: builds pure unit tests of the product for arm64 in BUILD, a build
# folder of `make release`, and runs them with qemu-user.
set -euo pipefail

build=$1
command -v qemu-aarch64 >/dev/null || { echo "skipped: there is no qemu-aarch64 (package qemu-user)"; exit 77; }
[ -f "$build/build.ninja" ] || { echo "skipped: there is no $build; make release makes it"; exit 77; }
# Rooms that neither start processes nor ask the kernel for more than memory.
mapfile -t tests < <(ninja -C "$build" -t targets all | grep -E '^tests/unit/(wire|share)/test-[a-z0-9-]*:' | cut -d: -f1)
[ ${#tests[@]} -gt 0 ] || { echo "no unit tests of wire and share in $build"; exit 1; }
ninja -C "$build" --quiet "${tests[@]}"
names=()
for test in "${tests[@]}"; do names+=("${test##*/test-}"); done
meson test -C "$build" --no-rebuild --print-errorlogs --timeout-multiplier 10 "${names[@]}"
