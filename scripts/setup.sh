#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# scripts/setup.sh BUILD ARGUMENT...: meson setup, or where BUILD is already, what a changed
# meson.build asks for. Says about how long it takes, and no more unless it fails, or with V=1.
set -euo pipefail

if [ -f "$1/build.ninja" ]; then
        command=(ninja -C "$1" build.ninja)
else
        command=(meson setup "$@")
        echo "$1: meson looks for compilers and libraries, about 10 s"
fi
[ -z "${V:-}" ] || exec "${command[@]}"
words=$("${command[@]}" 2>&1) || { printf '%s\n' "$words" >&2; exit 1; }
