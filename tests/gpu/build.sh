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

# No libc at link time, and nothing that a compiler would take from libc: see
# src/preload/memory/meson.build.
$cc -E -P -x c -Isrc src/preload/memory/libaliquot.map.in -o "$out/libaliquot.map"
library() { # FILE MORE...
        file=$1
        shift
        # shellcheck disable=SC2086 # words, on purpose
        $cc $common $inline -U_FORTIFY_SOURCE -ffreestanding -fno-stack-protector -fno-builtin -fno-asynchronous-unwind-tables -fvisibility=hidden -fPIC -shared \
                -nostdlib -Wl,-Bsymbolic -Wl,-z,defs -Wl,-z,relro -Wl,-z,now -Wl,-z,noexecstack -Wl,--strip-all \
                -Wl,--version-script="$out/libaliquot.map" -o "$out/$file" src/preload/inject/*.c src/preload/memory/*.c src/preload/launch/*.c $page "$@"
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
mkdir -p "$out/objects"
rm -f "$out/objects/"*
for source in src/base/*.c src/slice/*.c src/slicedir/*.c src/arbiter/*.c src/cli/run/*.c $nvml $pure $simulated; do
        case $source in src/cli/run/main.c | src/cli/run/smi.c) continue ;; esac
        # shellcheck disable=SC2086
        $cc $common -DALIQUOT_VERSION="\"$version\"" -c "$source" -o "$out/objects/$(echo "${source#src/}" | tr / -).o"
done
ar rcs "$out/objects/parts.a" "$out/objects/"*.o

# shellcheck disable=SC2086
$cc $common -o "$out/aliquot-run" src/cli/run/main.c "$out/objects/parts.a" -ldl
# shellcheck disable=SC2086
$cc $common -o "$out/aliquot-smi" src/cli/run/smi.c "$out/objects/parts.a" -ldl

# shellcheck disable=SC2086
$cc $common -o "$out/gpu-case" tests/gpu/*.c sim/user/driver.c -ldl -lpthread
# shellcheck disable=SC2086
$cc $common -fvisibility=hidden -fPIC -shared -o "$out/librm-trace.so" tests/gpu/trace/record.c -ldl -lpthread
tracer=$(find tests/gpu/trace -name "*.c" ! -name record.c)
# shellcheck disable=SC2086
$cc $common -o "$out/rm-trace" $tracer "$out/objects/parts.a"

# What needs the toolkit. A failure there is said, and costs only what needs it.
nvcc=${NVCC:-$(command -v nvcc || echo /usr/local/cuda/bin/nvcc)}
if [ ! -x "$nvcc" ]; then
        echo "gpu-test: no nvcc: programs of the CUDA runtime are not built" >&2
        exit 0
fi
home=$(dirname "$(dirname "$nvcc")")
# Code for Hopper, and for other cards an intermediate form that the driver compiles.
arch="-gencode arch=compute_75,code=compute_75 -gencode arch=compute_90,code=sm_90"
cp -L "$home"/lib64/libcudart.so.[0-9][0-9] "$out/" 2>/dev/null || true
for kind in static shared; do
        # shellcheck disable=SC2086
        "$nvcc" -O2 $arch -cudart $kind -Xlinker -rpath='$ORIGIN':"$home/lib64" -o "$out/runtime-$kind" tests/gpu/runtime.cu >"$out/nvcc-$kind.log" 2>&1 ||
                echo "gpu-test: nvcc -cudart $kind failed: $out/nvcc-$kind.log" >&2
done
# shellcheck disable=SC2086
"$nvcc" -O2 $arch -I"$home/include" -Xlinker -rpath="$home/lib64" -o "$out/allreduce" tests/gpu/allreduce.cu -L"$home/lib64" -lnccl >"$out/nvcc-nccl.log" 2>&1 ||
        echo "gpu-test: no NCCL to build with: $out/nvcc-nccl.log" >&2
