#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Walks through the samples with the real programs, says what to look at, and fails when a result
# differs from what it says.
#     samples/demo.sh [BUILD_DIRECTORY]
set -u
cd "$(dirname "$0")/.." || exit 3
build=${1:-build}
aliquot=$build/aliquot
inspect=$build/kubectl-inspect-cgpu
scratch=$(mktemp -d) || exit 3
trap 'rm -rf "$scratch"' EXIT
out=$scratch/out
failures=0

bold='' dim='' red='' off=''
if [ -t 1 ] && [ "${TERM:-dumb}" != dumb ]; then
        bold=$(printf '\033[1;36m') dim=$(printf '\033[2m') red=$(printf '\033[1;31m') off=$(printf '\033[0m')
fi

heading() {
        printf '\n%s%s%s\n' "$bold" "$1" "$off"
        shift
        printf '%s\n' "$@"
}

wrong() {
        printf '%sNOT AS TOLD: %s%s\n' "$red" "$1" "$off"
        failures=$((failures + 1))
}

# shows STATUS COMMAND...: prints the command and what it prints, and checks how it ends.
shows() {
        expected=$1
        shift
        printf '%s$ %s%s\n' "$dim" "$*" "$off"
        "$@" >"$out" 2>&1
        status=$?
        cat "$out"
        [ "$status" -eq "$expected" ] || wrong "the exit status is $status, should be $expected"
}

# has LINE...: each is a line of what was shown last; blanks at its ends do not matter.
has() {
        for line; do
                sed 's/^ *//; s/[ ,]*$//' "$out" | grep -qxF -- "$line" || wrong "no line \"$line\""
        done
}

# prints LINE...: the same for the output of a container's own command. A machine where namespaces
# cannot be made (such as a container without privileges) runs no commands of manifests. The lines
# above then say so, and nothing is missing.
prints() {
        if grep -qF '(not run: this machine cannot isolate it' "$out"; then
                printf '%s(this machine cannot isolate commands, so that this one was not run)%s\n' "$dim" "$off"
        else
                has "$@"
        fi
}

# has_card TEXT...: parts of the output of a container's own command that needs a simulated card. A
# machine without FUSE, or where it cannot be mounted, has none. The run then says so on standard
# error.
has_card() {
        if grep -qF -e 'aliquot local: no simulated cards: ' -e '(not run: this machine cannot isolate it' "$out"; then
                printf '%s(this machine has no simulated cards: %s)%s\n' "$dim" \
                        "$(grep -hm 1 -e 'no simulated cards: ' -e '(not run: ' "$out")" "$off"
        else
                has_part "$@"
        fi
}

# has_part TEXT...
has_part() {
        for part; do
                grep -qF -- "$part" "$out" || wrong "nowhere \"$part\""
        done
}

# blocks JOB: how many blocks of work its container has done, by what was shown last.
blocks() {
        sed -n "/^== default\/$1-/,/^== /s/^done \([0-9]*\) blocks in .*/\1/p" "$out"
}

# fewer_blocks JOB OTHER
fewer_blocks() {
        has_card 'done '
        grep -q '^done ' "$out" || return 0
        [ "$(blocks "$1")" -lt "$(blocks "$2")" ] || wrong "$1 has not done fewer blocks than $2"
}

local_once() {
        status=$1
        shift
        shows "$status" "$aliquot" local --once "$@"
}

heading '1. Share mode: the container computes its own fraction' \
        'A Job asks for 4 of the 16 GiB of a V100. Look at the environment it gets, and at what it prints: 4, 16 and 0.25.'
local_once 0 --logs -f samples/share/node.yaml -f samples/share/job.yaml
has ALIYUN_COM_GPU_MEM_CONTAINER=4 ALIYUN_COM_GPU_MEM_DEV=16 '4/16 (25%)'
prints 4 16 0.25
printf 'The whole card stays visible to it:\n'
local_once 0 --logs -f samples/share/node.yaml -f samples/share/memory.yaml
has_card '0 MiB, 16384 MiB'

heading '2. Memory and compute: a node with 4 cards of 16160 MiB' \
        'The node shows 400 percent, 4 cards and 60 GiB, in capacity and allocatable alike; the Job takes 2 GiB and 30 %.'
printf '%s$ %s%s\n' "$dim" "$aliquot local --once --get nodes -f samples/core-mem/node.yaml | grep ..." "$off"
"$aliquot" local --once --get nodes -f samples/core-mem/node.yaml >"$scratch/nodes" || wrong "no node"
grep -E '"(capacity|allocatable)"|"aliyun.com/' "$scratch/nodes" >"$out"
cat "$out"
has '"aliyun.com/gpu-core.percentage": "400"' '"aliyun.com/gpu-count": "4"' '"aliyun.com/gpu-mem": "60"'
[ "$(grep -c '"400"' "$out")" -eq 2 ] || wrong "capacity and allocatable differ"
local_once 0 --logs -f samples/core-mem/node.yaml -f samples/core-mem/job.yaml
has ALIYUN_COM_GPU_MEM_CONTAINER=2 ALIYUN_COM_GPU_MEM_DEV=15 '2/60 (3%)'
printf 'Inside, its 2 GiB are 2154 of the 16160 MiB; what a program allocates is counted, and more is refused:\n'
local_once 0 --logs -f samples/core-mem/node.yaml -f samples/core-mem/memory.yaml
has_card ' 0MiB /   2154MiB ' '336 MiB, 2154 MiB' 'CUDA_ERROR_OUT_OF_MEMORY (2)' refused

printf 'Shares of a card: two Jobs have 30 and 60 %% of one, the third has a card for itself. Look at the blocks each has done:\n'
local_once 0 --logs --logs-timeout 30 -f samples/core-mem/node.yaml -f samples/core-mem/compute.yaml -f samples/core-mem/compute-whole.yaml
fewer_blocks compute-30 compute-100

heading '3. A registered cluster: schedulerName ack-co-scheduler' 'Before: 0/15. After: 3/15 (20%).'
local_once 0 -f samples/registered/node.yaml
has '0/15 (0%)'
local_once 0 -f samples/registered/node.yaml -f samples/registered/job.yaml
has '3/15 (20%)'

heading '4. Another unit: 128 MiB' 'gpu-mem: 16 is 2 GiB on a node that counts in units of 128 MiB.'
local_once 0 --logs -f samples/unit/node.yaml -f samples/unit/statefulset.yaml
has ALIYUN_COM_GPU_MEM_CONTAINER=16 ALIYUN_COM_GPU_MEM_UNIT=128MiB '16/126 (12%)'
prints '2 GiB'

heading '5. One pod on several cards' 'The label aliyun.com/gpu-count: "4" takes 8 GiB from 4 cards: 2 from each.'
local_once 0 --logs -f samples/many-cards/node.yaml -f samples/many-cards/job.yaml
has ALIYUN_COM_GPU_MEM_CONTAINER=2 ALIYUN_COM_GPU_MEM_POD=8 '8/60 (13%)'
local_once 0 --logs -f samples/many-cards/node.yaml -f samples/many-cards/memory.yaml
has_card '0, 0 MiB, 2154 MiB' '3, 0 MiB, 2154 MiB'

heading '6. Binpack and spread' \
        'Pods of 2 and of 3 GiB on two nodes. The first node fills GPU0 with both; the second gives each its own card.' \
        'The same cluster is then read by the kubectl plugin, from what `kubectl get nodes,pods -A -o json` would print.'
local_once 0 -f samples/placement/nodes.yaml -f samples/placement/pods.yaml
has_part '5/15' '0/15' '3/15' '2/15'
"$aliquot" local --once --get nodes,pods -f samples/placement/nodes.yaml -f samples/placement/pods.yaml \
        >"$scratch/cluster.json" || wrong 'the cluster could not be printed'
shows 0 "$inspect" -d --from "$scratch/cluster.json"
has_part 'Allocated/Total GPU Memory In Cluster:  10/60 (16%)'

heading '7. Refusals' 'Each pod that cannot be placed is named with the value and the rule. The exit status is 1.'
local_once 1 -f samples/refusals/node.yaml -f samples/refusals/pods.yaml
has_part 'default/percent-33: ' 'default/percent-0: ' 'default/percent-105: ' 'default/uneven: ' 'default/too-large: ' \
        'default/mixed-kinds: ' 'default/memory-only: ' 'is 33' 'multiple of 5' '2/15 (13%)'

heading '8. A program in its slice' 'The driver is simulated and answers real system calls; the program sees 2154 of the 16160 MiB, as cGPU would show it.'
if "$aliquot" run --board "$scratch/slices" --simulate 1xTesla-V100-SXM2-16GB:16160MiB --gpu-mem 2 -- true >"$out" 2>&1; then
        shows 0 "$aliquot" run --board "$scratch/slices" --simulate 1xTesla-V100-SXM2-16GB:16160MiB --gpu-mem 2 -- nvidia-smi
        has_part '0MiB /   2154MiB'
else
        printf '%s(not on this machine: %s)%s\n' "$dim" "$(tail -n 1 "$out")" "$off"
fi

if [ "$failures" -ne 0 ]; then
        printf '\n%s%d of the things told were not so.%s\n' "$red" "$failures" "$off"
        exit 1
fi
printf '\n%sAll as told.%s Next: write your own manifests, and run %s local --once --logs -f FILE\n' "$bold" "$off" "$aliquot"
