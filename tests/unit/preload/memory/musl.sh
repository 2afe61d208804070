#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# musl.sh LIBRARY: a program with musl asks for functions by name, with libaliquot.so preloaded.
set -eu

library=$(realpath "$1") # the loader looks for a name without a slash elsewhere
command -v musl-gcc >/dev/null || { echo "no musl-gcc (package musl-tools)"; exit 77; }
root=$(cd "$(dirname "$0")/../../../.." && pwd)
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

musl-gcc -D_GNU_SOURCE -O2 "$root/tests/unit/preload/memory/names.c" -o "$scratch/names"
musl-gcc -O2 -fPIC -shared -nostdlib -Wl,-soname,libcuda.so.1 "$root/tests/fake/idle-cuda.c" -o "$scratch/libcuda.so.1"
LD_PRELOAD="$library" "$scratch/names" "$scratch/libcuda.so.1"
