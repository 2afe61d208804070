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
report=$scratch/report
missed=$scratch/missed
: >"$report"
: >"$missed"
failures=0
checks=0
skipped=0

bold='' dim='' red='' off=''
if [ -t 1 ] && [ "${TERM:-dumb}" != dumb ]; then
        bold=$(printf '\033[1;36m') dim=$(printf '\033[2m') red=$(printf '\033[1;31m') off=$(printf '\033[0m')
fi

# What is shown is captured, and has the form for a terminal where it is shown on one.
view=''
if [ -t 1 ]; then
        view='-o cards'
        COLUMNS=$(stty size <&1 2>/dev/null | cut -d ' ' -f 2)
        [ "${COLUMNS:-0}" -gt 0 ] || COLUMNS=80
        export COLUMNS
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
        failures_before=$failures
        shift
        checks=$((checks + 1))
        printf '%s$ %s%s\n' "$dim" "$*" "$off"
        "$@" >"$out" 2>&1
        status=$?
        cat "$out"
        [ "$status" -eq "$expected" ] || wrong "the exit status is $status, should be $expected"
}

# has LINE...: each is a line of what was shown last; blanks at its ends do not matter.
has() {
        for line; do
                checks=$((checks + 1))
                sed 's/^ *//; s/[ ,]*$//' "$out" | grep -qxF -- "$line" || wrong "no line \"$line\""
        done
}

# has_sum SUM...: as 4/16 (25%), in either view.
has_sum() {
        for sum; do
                checks=$((checks + 1))
                sed -E 's# x?[0-9]*[GM]iB \(# (#' "$out" | grep -qwF -- "$sum" || wrong "nowhere the sum \"$sum\""
        done
}

# has_part TEXT...
has_part() {
        for part; do
                checks=$((checks + 1))
                grep -qF -- "$part" "$out" || wrong "nowhere \"$part\""
        done
}

# skip N WHY: so many checks cannot be made on this machine.
skip() {
        skipped=$((skipped + $1))
        why=${2#no simulated cards: }
        printf '%s(checks skipped: %d; %s)%s\n' "$dim" "$1" "$why" "$off"
        printf '%s\n' "$why" >>"$missed"
}

# without TEXT...: why the containers shown last did not run, or not with cards; empty where they
# did. A machine where namespaces cannot be made (such as a container without privileges) runs no
# command of a manifest; one where FUSE cannot be mounted has no simulated cards.
without() {
        grep -hm 1 -o "$@" "$out"
}

# prints LINE...: the same as has, for the output of a container's own command.
prints() {
        if why=$(without -e 'this machine cannot isolate it: [^)]*'); then
                skip $# "$why"
        else
                has "$@"
        fi
}

# has_card TEXT...: parts of the output of a container's own command that needs a simulated card.
has_card() {
        if why=$(without -e 'this machine cannot isolate it: [^)]*' -e 'no simulated cards: [^;]*'); then
                skip $# "$why"
        else
                has_part "$@"
        fi
}

# proved ASKED GOT: a line of the table at the end. Nothing, where what was shown last did not run,
# or was not as told.
proved() {
        [ "$failures" -eq "$failures_before" ] || return 0
        without -e 'this machine cannot isolate it' -e 'no simulated cards: ' >/dev/null || printf '  %-42s %s\n' "$@" >>"$report"
}

# blocks JOB: how many blocks of work its container has done, by what was shown last.
blocks() {
        sed -n "/^== default\/$1-/,/^== /s/^done \([0-9]*\) blocks in .*/\1/p" "$out"
}

# copies JOB: ms that the copies of its container took, by what was shown last.
copies() {
        sed -n "/^== default\/$1-/,/^== /s/^copy .* in \([0-9.]*\) ms/\1/p" "$out" | awk '{ sum += $1 } END { printf "%d", sum }'
}

# share JOB PERCENT OTHER: JOB has PERCENT of a card, and has done fewer blocks than OTHER, which
# has all of one.
share() {
        has_card 'done ' "== default/$1-"
        mine=$(blocks "$1") all=$(blocks "$3")
        [ "${mine:-0}" -gt 0 ] && [ "${all:-0}" -gt 0 ] || return 0
        [ "$mine" -lt "$all" ] || wrong "$1 has not done fewer blocks than $3"
        proved "asked for $2 % of a card's compute" "got $((100 * mine / all)) %: $mine blocks of work, and $all with a card for itself"
}

# fewer JOB OTHER: the first has done fewer blocks than the other, or what they did is not there. A
# busy machine can hold up the job that has a card for itself: then both are run again.
fewer() {
        mine=$(blocks "$1") all=$(blocks "$2")
        [ -z "$mine" ] || [ -z "$all" ] || [ "$mine" -lt "$all" ]
}

local_once() {
        status=$1
        shift
        # shellcheck disable=SC2086 # two words, or none
        shows "$status" "$aliquot" local --once $view "$@"
}

heading '1. Share mode: the container computes its own fraction' \
        'A Job asks for 4 of the 16 GiB of a V100. Look at the environment it gets, and at what it prints: 4, 16 and 0.25.'
local_once 0 --logs --logs-timeout 60 -f samples/share/node.yaml -f samples/share/job.yaml
has ALIYUN_COM_GPU_MEM_CONTAINER=4 ALIYUN_COM_GPU_MEM_DEV=16
has_sum '4/16 (25%)'
prints 4 16 0.25
printf 'The whole card stays visible to it:\n'
local_once 0 --logs --logs-timeout 60 -f samples/share/node.yaml -f samples/share/memory.yaml
has_card '0 MiB, 16384 MiB'
proved 'share mode, asked for 4 of 16 GiB' 'was told 4 of 16, and sees 16384 MiB: nothing holds it'

heading '2. Memory and compute: a node with 4 cards of 16160 MiB' \
        'The node shows 400 percent, 4 cards and 60 GiB, in capacity and allocatable alike; the Job takes 2 GiB and 30 %.'
printf '%s$ %s%s\n' "$dim" "$aliquot local --once --get nodes -f samples/core-mem/node.yaml | grep ..." "$off"
"$aliquot" local --once --get nodes -f samples/core-mem/node.yaml >"$scratch/nodes" || wrong "no node"
grep -E '"(capacity|allocatable)"|"aliyun.com/' "$scratch/nodes" >"$out"
cat "$out"
has '"aliyun.com/gpu-core.percentage": "400"' '"aliyun.com/gpu-count": "4"' '"aliyun.com/gpu-mem": "60"'
[ "$(grep -c '"400"' "$out")" -eq 2 ] || wrong "capacity and allocatable differ"
local_once 0 --logs --logs-timeout 60 -f samples/core-mem/node.yaml -f samples/core-mem/job.yaml
has ALIYUN_COM_GPU_MEM_CONTAINER=2 ALIYUN_COM_GPU_MEM_DEV=15
has_sum '2/60 (3%)'
printf 'Inside, its 2 GiB are 2154 of the 16160 MiB; what a program allocates is counted, and more is refused:\n'
local_once 0 --logs --logs-timeout 60 -f samples/core-mem/node.yaml -f samples/core-mem/memory.yaml
has_card ' 336MiB /   2154MiB ' 'CUDA_ERROR_OUT_OF_MEMORY (2)'
proved 'asked for 2 of 15 GiB' 'sees 2154 of 16160 MiB, and is refused more'

printf 'Shares of a card: two Jobs have 30 and 60 %% of one, the third has a card for itself. Look at the blocks each has done:\n'
for _ in 1 2 3; do
        local_once 0 --logs --logs-timeout 60 -f samples/core-mem/node.yaml -f samples/core-mem/compute.yaml -f samples/core-mem/compute-whole.yaml
        if fewer compute-30 compute-100 && fewer compute-60 compute-100; then break; fi
done
share compute-30 30 compute-100
share compute-60 60 compute-100

printf 'Copies to the card wait for the same limit. Each line is a copy of 31 MiB and its time:\n'
local_once 0 --logs --logs-timeout 60 -f samples/core-mem/node.yaml -f samples/core-mem/copy.yaml
has_card '== default/copy-30-' '== default/copy-100-' 'copy 1: 31 MiB in '
proved 'asked for 30 % of a card, for copies' "ten took $(copies copy-30) ms, and $(copies copy-100) ms with all of a card"

heading '3. A registered cluster: schedulerName ack-co-scheduler' 'Before: 0/15. After: 3/15 (20%).'
local_once 0 -f samples/registered/node.yaml
has_sum '0/15 (0%)'
local_once 0 -f samples/registered/node.yaml -f samples/registered/job.yaml
has_sum '3/15 (20%)'

heading '4. Another unit: 128 MiB' 'gpu-mem: 16 is 2 GiB on a node that counts in units of 128 MiB.'
local_once 0 --logs --logs-timeout 60 -f samples/unit/node.yaml -f samples/unit/statefulset.yaml
has ALIYUN_COM_GPU_MEM_CONTAINER=16 ALIYUN_COM_GPU_MEM_UNIT=128MiB
has_sum '16/126 (12%)'
prints '2 GiB'
proved 'asked for 16 units of 128 MiB' 'was told 2 GiB'

heading '5. One pod on several cards' 'The label aliyun.com/gpu-count: "4" takes 8 GiB from 4 cards: 2 from each.'
local_once 0 --logs --logs-timeout 60 -f samples/many-cards/node.yaml -f samples/many-cards/job.yaml
has ALIYUN_COM_GPU_MEM_CONTAINER=2 ALIYUN_COM_GPU_MEM_POD=8
has_sum '8/60 (13%)'
local_once 0 --logs --logs-timeout 60 -f samples/many-cards/node.yaml -f samples/many-cards/memory.yaml
has_card '0, 0 MiB, 2154 MiB' '3, 0 MiB, 2154 MiB'
proved 'asked for 8 GiB from 4 cards' 'sees 2154 MiB of each of them'

heading '6. Binpack and spread' \
        'Pods of 2 and of 3 GiB on two nodes. The first node fills GPU0 with both; the second gives each its own card.' \
        'The same cluster is then read by the kubectl plugin, from what `kubectl get nodes,pods -A -o json` would print.'
local_once 0 -f samples/placement/nodes.yaml -f samples/placement/pods.yaml
has_part '5/15' '0/15' '3/15' '2/15'
"$aliquot" local --once --get nodes,pods -f samples/placement/nodes.yaml -f samples/placement/pods.yaml \
        >"$scratch/cluster.json" || wrong 'the cluster could not be printed'
# shellcheck disable=SC2086
shows 0 "$inspect" -d $view --from "$scratch/cluster.json"
has_sum '10/60 (16%)'

heading '7. Refusals' 'Each pod that cannot be placed is named with the value and the rule. The exit status is 1.'
local_once 1 -f samples/refusals/node.yaml -f samples/refusals/pods.yaml
has_part 'default/percent-33: ' 'default/percent-0: ' 'default/percent-105: ' 'default/uneven: ' 'default/too-large: ' \
        'default/mixed-kinds: ' 'default/memory-only: ' 'is 33' 'multiple of 5'
has_sum '2/15 (13%)'

heading '8. A program in its slice' 'The driver is simulated and answers real system calls; the program sees 2154 of the 16160 MiB, as cGPU would show it.'
if "$aliquot" run --slices "$scratch/slices" --simulate 1xTesla-V100-SXM2-16GB:16160MiB --gpu-mem 2 -- true >"$out" 2>&1; then
        shows 0 "$aliquot" run --slices "$scratch/slices" --simulate 1xTesla-V100-SXM2-16GB:16160MiB --gpu-mem 2 -- nvidia-smi
        has_part '0MiB /   2154MiB'
        proved 'aliquot run, asked for 2 of 15 GiB' 'nvidia-smi shows 2154MiB'
else
        skip 2 "$(sed -n '$s/^aliquot run: //p' "$out")"
fi

heading 'What this showed'
if [ -s "$report" ]; then
        printf 'Shares, beside what was asked:\n'
        cat "$report"
fi
if [ "$skipped" -ne 0 ]; then
        printf '\n%sSkipped: %d checks, because this machine has not what they need:%s\n' "$bold" "$skipped" "$off"
        sort -u "$missed" | sed 's/^/  /'
fi
if [ "$failures" -ne 0 ]; then
        printf '\n%s%d of %d checks failed.%s\n' "$red" "$failures" "$checks" "$off"
        exit 1
fi
printf '\n%s%s %d checks were as told%s.%s ' "$bold" "$([ "$skipped" -eq 0 ] && echo All || echo The other)" "$checks" \
        "$([ "$skipped" -eq 0 ] || echo ", $skipped were skipped")" "$off"
printf 'Next: write your own manifests, and run %s local --once --logs -f FILE\n' "$aliquot"
