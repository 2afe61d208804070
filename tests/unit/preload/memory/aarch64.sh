#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# aarch64.sh MAP TESTS SOURCE...: builds libaliquot.so for the other machine that has these cards,
# without libc, as here. qemu runs the unit tests of its pure parts (TESTS, each as ROOM/NAME), and
# a program that asks for functions by name with the library preloaded.
set -eu

map=$1 tests=$2
shift 2
compiler=aarch64-linux-gnu-gcc
for program in $compiler qemu-aarch64; do
        command -v "$program" >/dev/null || { echo "no $program (packages gcc-aarch64-linux-gnu, libc6-dev-arm64-cross, qemu-user)"; exit 77; }
done
root=$(cd "$(dirname "$0")/../../../.." && pwd)
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
compile() { $compiler -std=gnu11 -O2 -D_GNU_SOURCE -I"$root/src" -I"$root/tests/unit" -Wall -Wextra -Werror "$@"; }

# Each source is compiled once, as the library has it.
mkdir "$scratch/objects"
for source in "$@"; do
        compile -mno-outline-atomics -fPIC -ffreestanding -fno-stack-protector -fno-builtin -fno-asynchronous-unwind-tables \
                -c "$source" -o "$scratch/objects/$(basename "$source" .c).o"
done
compile -shared -nostdlib -Wl,-Bsymbolic,-z,defs,-z,relro,-z,now,-z,noexecstack,--strip-all,--version-script="$map" \
        "$scratch/objects/"*.o -o "$scratch/libaliquot.so"
"$root/tests/unit/preload/memory/symbols.sh" "$scratch/libaliquot.so" "$map"

compile -Wno-unused-parameter -fPIC -shared -nostdlib -Wl,-soname,libcuda.so.1 "$root/tests/fake/idle-cuda.c" -o "$scratch/libcuda.so.1"
compile "$root/tests/unit/preload/memory/names.c" -o "$scratch/names"
qemu-aarch64 -L /usr/aarch64-linux-gnu -E LD_PRELOAD="$scratch/libaliquot.so" "$scratch/names" "$scratch/libcuda.so.1" </dev/null

# The linker takes what a test needs from an archive, which leaves out what replaces parts of libc.
for part in asan builtins dl hook launch next; do rm -f "$scratch/objects/$part.o"; done
aarch64-linux-gnu-ar rcs "$scratch/parts.a" "$scratch/objects/"*.o
for test in $tests; do
        compile -O0 -pthread "$root/tests/unit/${test%/*}/test-${test##*/}.c" "$scratch/parts.a" -o "$scratch/test"
        qemu-aarch64 -L /usr/aarch64-linux-gnu "$scratch/test" </dev/null
done
