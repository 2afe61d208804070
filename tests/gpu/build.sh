#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# tests/gpu/build.sh FOLDER: libaliquot.so, aliquot-run, aliquot-smi, the test programs and the
# tracer, with a C compiler and libc only. Programs that need nvcc are built if there is one. The
# folder is laid out like a build folder, so that programs find each other.
set -eu

out=$1
root=$(cd "$(dirname "$0")/../.." && pwd)
mkdir -p "$out"
out=$(cd "$out" && pwd)
cd "$root"
cc=${CC:-cc}
version=$(sed -n "s/^ *version : '\(.*\)',/\1/p" meson.build)
common="-std=gnu11 -O2 -g -D_GNU_SOURCE -fno-strict-aliasing -fno-common -Isrc -I."

# Some compilers for arm64 call a library of their own for each atomic operation.
inline=""
if $cc -mno-outline-atomics -E -x c /dev/null >/dev/null 2>&1; then inline=-mno-outline-atomics; fi

# Rooms that need libc only are built whole; of the others, the sources that their meson.build lists
# under a name.
listed() { # ROOM NAME
        found=$(awk -v name="$2" '$1 == name && $2 == "=" { on = 1 } on { print } on && /\)$/ { exit }' "src/$1/meson.build" |
                grep -o "'[a-z0-9_]*\.c'" | sed "s|'\(.*\)'|src/$1/\1|") || true
        if [ -z "$found" ]; then
                echo "gpu-test: src/$1/meson.build lists no sources under $2" >&2
                exit 1
        fi
        echo "$found"
}
page=$(listed slice slice_sources) # what libaliquot.so has of it
nvml=$(listed gpu/cards libnvml)
pure=$(listed preload/memory gate_pure)
# What reads the simulated cards that --simulate names.
simulated="$(listed gpu/cards libcards_list) src/share/memory_unit.c src/wire/json*.c"

# Objects of sources, each named by its path.
objects() { # FOLDER FLAGS SOURCE...
        folder=$1 flags=$2
        shift 2
        mkdir -p "$folder"
        rm -f "$folder"/*
        for source in "$@"; do
                # shellcheck disable=SC2086 # words, on purpose
                $cc $common $flags -c "$source" -o "$folder/$(echo "$source" | tr / -).o"
        done
}

# No libc at link time, and nothing that a compiler would take from libc: see
# src/preload/memory/meson.build.
$cc -E -P -x c -Isrc src/preload/memory/libaliquot.map.in -o "$out/libaliquot.map"
freestanding="$inline -U_FORTIFY_SOURCE -ffreestanding -fno-stack-protector -fno-builtin -fno-asynchronous-unwind-tables -fvisibility=hidden -fPIC"
# shellcheck disable=SC2086
objects "$out/objects/library" "$freestanding" src/preload/inject/*.c src/preload/memory/*.c src/preload/launch/*.c $page
library() { # FILE MORE...
        file=$1
        shift
        # shellcheck disable=SC2086
        $cc $common $freestanding -shared -nostdlib -Wl,-Bsymbolic -Wl,-z,defs -Wl,-z,relro -Wl,-z,now -Wl,-z,noexecstack -Wl,--strip-all \
                -Wl,--version-script="$out/libaliquot.map" -o "$out/$file" "$out/objects/library/"*.o "$@"
}
library libaliquot.so

# For call1.py and call3.py: the same with another answer to the controls of scheduling.
variant() { # NAME STATUS PREEMPTION_ONLY
        library "libaliquot-$1.so" tests/gpu/variant/controls.c -DVARIANT_STATUS="$2" -DVARIANT_PREEMPTION_ONLY="$3" -Wl,--wrap=rm_decode -Wl,--wrap=rm_admit
}
variant forward RM_OK 0
variant unsupported RM_ERR_NOT_SUPPORTED 0
variant no-cilp RM_ERR_NOT_SUPPORTED 1

# Everything else that more than one program is made of; the linker takes what each needs.
# shellcheck disable=SC2046,SC2086
objects "$out/objects/parts" "-DALIQUOT_VERSION=\"$version\"" src/base/*.c src/slice/*.c src/slicedir/*.c src/arbiter/*.c \
        $(printf '%s\n' src/cli/run/*.c | grep -Fv -e /main.c -e /smi.c) $nvml $pure $simulated
ar rcs "$out/objects/parts.a" "$out/objects/parts/"*.o

# shellcheck disable=SC2086
$cc $common -o "$out/aliquot-run" src/cli/run/main.c "$out/objects/parts.a" -ldl
# shellcheck disable=SC2086
$cc $common -o "$out/aliquot-smi" src/cli/run/smi.c "$out/objects/parts.a" -ldl

# shellcheck disable=SC2086
$cc $common -o "$out/gpu-case" tests/gpu/*.c sim/user/dmem.c sim/user/driver.c -ldl -lpthread
# shellcheck disable=SC2086
$cc $common -fvisibility=hidden -fPIC -shared -o "$out/librm-trace.so" tests/gpu/trace/record.c -ldl -lpthread
tracer=$(find tests/gpu/trace -name "*.c" ! -name record.c)
# shellcheck disable=SC2086
$cc $common -o "$out/rm-trace" $tracer "$out/objects/parts.a"

"$root/tests/gpu/runtime.sh" "$out"
