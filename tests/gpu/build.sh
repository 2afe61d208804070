#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# tests/gpu/build.sh FOLDER: the gate, aliquot-run, aliquot-smi, the test programs and the tracer, with a C compiler and libc only; what
# needs nvcc is built where there is one. The folder is laid out as a build folder is: programs find each other.
set -eu

out=$1
root=$(cd "$(dirname "$0")/../.." && pwd)
mkdir -p "$out"
out=$(cd "$out" && pwd)
cd "$root"
cc=${CC:-cc}
common="-std=gnu11 -O2 -g -D_GNU_SOURCE -fno-strict-aliasing -fno-common -Isrc"

# Some compilers for arm64 call a library of their own for each atomic operation.
inline=""
if $cc -mno-outline-atomics -E -x c /dev/null >/dev/null 2>&1; then inline=-mno-outline-atomics; fi

# The gate is a guest: no libc at link time, and nothing that a compiler would ask libc for (src/gate/meson.build).
$cc -E -P -x c -Isrc src/gate/libaliquot.map.in -o "$out/libaliquot.map"
# shellcheck disable=SC2086 # words, on purpose
$cc $common $inline -U_FORTIFY_SOURCE -ffreestanding -fno-stack-protector -fno-builtin -fno-asynchronous-unwind-tables -fvisibility=hidden -fPIC -shared \
        -nostdlib -Wl,-z,defs -Wl,-z,relro -Wl,-z,now -Wl,-z,noexecstack -Wl,--strip-all \
        -Wl,--version-script="$out/libaliquot.map" -o "$out/libaliquot.so" src/gate/*.c src/slice/change.c src/slice/hold.c src/slice/key.c src/slice/slice.c

library="src/base/buf.c src/base/fault.c src/base/file.c src/base/quantity.c src/base/str.c src/slice/board.c src/slice/change.c src/slice/files.c src/slice/hold.c
        src/slice/slice.c src/cards/driver.c src/cards/nvml.c src/cards/soname.c"
# shellcheck disable=SC2086
$cc $common -o "$out/aliquot-run" src/run/keeper.c src/run/launch.c src/run/machine.c src/run/main.c src/run/probe.c src/run/processes.c src/run/programs.c \
        src/run/slicing.c src/beside/find.c src/beside/simulator.c src/arbiter/*.c $library -ldl
# shellcheck disable=SC2086
$cc $common -o "$out/aliquot-smi" src/run/smi.c src/run/compute.c src/run/processes.c $library -ldl

# shellcheck disable=SC2086
$cc $common -o "$out/gpu-case" tests/gpu/case.c tests/gpu/cases.c tests/gpu/families.c tests/gpu/probe.c \
        tests/gpu/processes.c src/sim/user/driver.c -ldl -lpthread
# shellcheck disable=SC2086
$cc $common -fvisibility=hidden -fPIC -shared -o "$out/librm-trace.so" tests/gpu/trace/record.c -ldl -lpthread
# shellcheck disable=SC2086
$cc $common -o "$out/rm-trace" tests/gpu/trace/main.c tests/gpu/trace/line.c tests/gpu/trace/table.c tests/gpu/trace/vector.c \
        tests/gpu/trace/names.c src/gate/admit.c

# What needs the toolkit. A failure there is said, and costs only what needs it.
nvcc=${NVCC:-$(command -v nvcc || echo /usr/local/cuda/bin/nvcc)}
if [ ! -x "$nvcc" ]; then
        echo "gpu-test: no nvcc: programs of the CUDA runtime are not built" >&2
        exit 0
fi
home=$(dirname "$(dirname "$nvcc")")
for kind in static shared; do
        "$nvcc" -O2 -cudart $kind -Xlinker -rpath="$home/lib64" -o "$out/runtime-$kind" tests/gpu/runtime.cu >"$out/nvcc-$kind.log" 2>&1 ||
                echo "gpu-test: nvcc -cudart $kind failed: $out/nvcc-$kind.log" >&2
done
"$nvcc" -O2 -I"$home/include" -Xlinker -rpath="$home/lib64" -o "$out/allreduce" tests/gpu/allreduce.cu -L"$home/lib64" -lnccl >"$out/nvcc-nccl.log" 2>&1 ||
        echo "gpu-test: no NCCL to build with: $out/nvcc-nccl.log" >&2
