#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# tests/gpu/session.sh: learns all about a card within ten minutes, into $OUT (./gpu-session unless
# set): the suite, the questions to the driver, traces of programs. A step that hangs or fails costs
# its own time only; session.txt has the result of each. SESSION_SECONDS (540) limits the whole.
# Exit status: the suite's, 77 if there is no card.
set -u

root=$(cd "$(dirname "$0")/../.." && pwd)
out=${OUT:-./gpu-session}
mkdir -p "$out/trace"
out=$(cd "$out" && pwd)
seconds=${SESSION_SECONDS:-540}
began=$(date +%s)
build=$out/build
cd "$root" || exit 3

python3 tests/gpu/run.py --check || exit $?

# NAME SECONDS COMMAND...: at most so long, and no longer than what is left of the whole.
step() {
        name=$1 limit=$2
        shift 2
        left=$((seconds - ($(date +%s) - began)))
        if [ "$left" -lt 5 ]; then
                echo "$name: not run, no time left" | tee -a "$out/session.txt"
                return 1
        fi
        [ "$limit" -le "$left" ] || limit=$left
        from=$(date +%s)
        timeout -k 5 "$limit" "$@" >"$out/$name.txt" 2>&1 </dev/null
        status=$?
        echo "$name: status $status, $(($(date +%s) - from)) s" | tee -a "$out/session.txt"
        return "$status"
}

# NAME COMMAND...: with the tracer, and without the gate.
trace() {
        program=$1
        shift
        rm -f "$out/trace/$program.trace"
        step "trace/$program.output" 40 env RM_TRACE="$out/trace/$program.trace" LD_PRELOAD="$build/librm-trace.so" "$@"
        [ -s "$out/trace/$program.trace" ] || return 0
        "$build/rm-trace" "$out/trace/$program.trace" >"$out/trace/$program.txt" 2>&1
        traced="$traced $out/trace/$program.trace"
}

machine() {
        uname -a
        cat /proc/driver/nvidia/version
        ls -l /dev/nvidia* /dev/nvidia-caps "${ALIQUOT_SIM_DIR:-/dev}/nvidiactl"
        nvidia-smi
        nvidia-smi -q
        ${CC:-cc} --version
        "${NVCC:-nvcc}" --version || /usr/local/cuda/bin/nvcc --version
        python3 --version
        python3 -c 'import torch; print("torch", torch.__version__, torch.version.cuda)'
        id
        cat /proc/sys/kernel/yama/ptrace_scope
}

if [ "${1:-}" = machine ]; then
        machine
        exit 0
fi

: >"$out/session.txt"
traced=""
step machine 60 sh "$0" machine
step build 150 tests/gpu/build.sh "$build" || exit 3
step warm 60 "$build/gpu-case" contexts 1 # makes the driver's files
step probe 60 "$build/gpu-case" probe
step gate 60 env ALIQUOT_LOG=2 "$build/aliquot-run" --board "$out/board" --gpu-mem 4096 --gpu-mem-unit 1MiB --gpu 0 -- \
        "$build/gpu-case" family plain 256 # with its refusals, in case nothing works
step suite 300 env GPU_TEST_PATIENCE=90 python3 tests/gpu/run.py --build "$build" --out "$out"
suite=$?

for family in plain pieces pitched pool own-pool vmm external array mipmap managed graph host; do
        trace "$family" "$build/gpu-case" family $family 256
done
trace agree "$build/gpu-case" agree
trace contexts "$build/gpu-case" contexts 4
trace ipc "$build/gpu-case" ipc 64
trace shared "$build/gpu-case" shared 64
trace probe "$build/gpu-case" probe
trace nvidia-smi nvidia-smi
trace nvidia-smi-query nvidia-smi --query-gpu=memory.total,memory.used,memory.free --format=csv
for kind in static shared; do
        [ -x "$build/runtime-$kind" ] && trace "runtime-$kind" "$build/runtime-$kind" 64
done
trace torch python3 tests/gpu/torch_case.py
trace torch-expandable env PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True python3 tests/gpu/torch_case.py

# A program that makes the system call without libc evades the gate and the tracer; strace sees it.
if command -v strace >/dev/null; then
        step strace 60 strace -f -e trace=ioctl -o "$out/strace.log" "$build/gpu-case" family plain 256
        step strace-gate 60 strace -f -e trace=ioctl,mmap -o "$out/strace-gate.log" "$build/aliquot-run" --board "$out/board" \
                --gpu-mem 4096 --gpu-mem-unit 1MiB --gpu 0 -- "$build/gpu-case" family plain 256
fi

# shellcheck disable=SC2086 # words: without blanks, except those of the chosen folder
"$build/rm-trace" --vectors "$out/vectors.txt" $traced >"$out/trace.txt" 2>&1 || echo "trace.txt: incomplete" | tee -a "$out/session.txt"
grep -hE '^group |^(ok|not ok) contexts' "$out/probe.txt" "$out/suite.txt" >"$out/sizes.txt" # what a group and a context take
gzip -f "$out"/trace/*.trace 2>/dev/null
rm -rf "$build" "$out/board"
echo "all: $(($(date +%s) - began)) s" | tee -a "$out/session.txt"
exit "$suite"
