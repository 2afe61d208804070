#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# tests/gpu/runtime.sh FOLDER: the test programs that need the CUDA toolkit, if there is one. A
# failure is said, and costs only what needs the toolkit.
set -eu

out=$(cd "$1" && pwd)
cd "$(dirname "$0")/../.."
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
