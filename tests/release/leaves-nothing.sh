#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# tests/release/leaves-nothing.sh BUILD [ARGUMENT of meson test]...: runs the tests, and lists the
# files, processes, mounts, devices and network interfaces that they left. All file systems are
# covered by overlays; what is written to an upper layer was left. /tmp and /dev/shm begin empty.
# BUILD alone is the real folder. As root. With FAKES=1 programs named kubectl, helm, docker and
# podman are found first: each writes a file into its HOME and fails.
set -euo pipefail

self=$(realpath "$0")
source=$(realpath "$(dirname "$0")/../..")

# What can be left besides files and processes. A network namespace is there as long as a process or
# a mount holds it. A mount is named by its place, type and source.
things() {
        findmnt --noheadings --raw --output TARGET,FSTYPE,SOURCE | sed 's/^/mount /'
        find /dev -xdev | sed 's/^/device /'
        find /sys/class/net /run/netns -mindepth 1 2>/dev/null | sed 's/^/network /' || true
}

# The first process of the PID namespace, in the new root.
inside() { # BUILD ARGUMENT...
        local build=$1 status=0 left
        shift
        cd "$source"
        things | sort >"$build/leaves/before"
        meson test -C "$build" --no-rebuild --print-errorlogs --no-suite thorough --num-processes $((3 * $(nproc))) "$@" || status=$?
        things | sort >"$build/leaves/after"
        comm -13 "$build/leaves/before" "$build/leaves/after" >"$build/leaves/list"
        for left in /proc/[0-9]*; do
                [ "${left#/proc/}" -eq 1 ] || [ "${left#/proc/}" -eq "$BASHPID" ] || [ ! -s "$left/cmdline" ] ||
                        printf 'process %s\n' "$(tr '\0' ' ' <"$left/cmdline")" >>"$build/leaves/list"
        done 2>/dev/null
        return "$status"
}

over() { # FOLDER: as it is in the new root, with an upper layer of its own
        local layer=$scratch/layers/$((layers += 1))
        mkdir -p "$layer/upper" "$layer/work" "$root$1"
        chmod --reference="$1" "$layer/upper"
        chown --reference="$1" "$layer/upper"
        if mount -t overlay overlay -o "lowerdir=$1,upperdir=$layer/upper,workdir=$layer/work" "$root$1" 2>/dev/null; then
                echo "${1%/}" >"$layer/place"
        else
                mount --rbind "$1" "$root$1" && mount -o remount,bind,ro "$root$1"
        fi
}

new_root() { # BUILD
        local target
        mkdir -p "$root"
        layers=0
        over /
        findmnt --noheadings --raw --output TARGET | sort -u | while IFS= read -r target; do
                case $target in
                / | /proc | /proc/* | /sys | /sys/* | /dev | /dev/* | /tmp | "$scratch"*) continue ;;
                esac
                if [ -d "$target" ]; then over "$target"; else mount --bind "$target" "$root$target"; fi
        done
        for target in /dev /sys; do mount --rbind "$target" "$root$target"; done
        for target in /tmp /dev/shm; do mount -t tmpfs -o mode=1777 tmpfs "$root$target"; done
        case $source in /tmp/*) over "$source" ;; esac
        mkdir -p "$root$1"
        mount --bind "$1" "$root$1"
}

# Removed and changed files are in the upper layer, too: a removed one as a device 0/0.
written() {
        local layer
        for layer in "$scratch"/layers/*; do
                (cd "$layer/upper" && find . -mindepth 1 -printf '%y %P\n') | while read -r type path; do
                        if [ "$type" != d ] || [ ! -d "$(cat "$layer/place")/$path" ]; then
                                echo "file $(cat "$layer/place")/$path"
                        fi
                done
        done
        find "$root/tmp" "$root/dev/shm" -mindepth 1 -printf "file %p\n" | sed "s#^file $root#file #"
}

if [ "${1:-}" = --inside ]; then
        cd "$2"
        pivot_root . ".$3/leaves/old"
        mount -t proc proc /proc
        umount --lazy "$3/leaves/old"
        shift 2
        inside "$@"
        exit
fi

build=$(realpath -m "$1")
shift
[ "$(id -u)" -eq 0 ] || { echo "skipped: root covers the file systems of this machine with overlays"; exit 77; }
if [ -z "${LEAVES_NOTHING:-}" ]; then
        cd "$source"
        scripts/build.sh "$build" all
        LEAVES_NOTHING=1 exec unshare --mount --propagation private "$self" "$build" "$@"
fi
lists=$build/leaves scratch=$build/leaves/scratch root=$build/leaves/scratch/root
mkdir -p "$scratch" "$lists/old"
mount -t tmpfs tmpfs "$scratch"
new_root "$build"
if [ "${FAKES:-}" = 1 ]; then
        mkdir -p "$lists/fakes"
        for name in kubectl helm docker podman; do
                printf '#!/bin/sh\nmkdir -p "$HOME/.%s" && echo "$*" >>"$HOME/.%s/called"\nexit 1\n' "$name" "$name" >"$lists/fakes/$name"
                chmod +x "$lists/fakes/$name"
        done
        export PATH="$lists/fakes:$PATH"
fi
status=0
unshare --pid --fork --mount --propagation private --kill-child "$self" --inside "$root" "$build" "$@" || status=$?
written >>"$lists/list"
sed 's/^/left: /' "$lists/list"
[ ! -s "$lists/list" ] || status=1
exit "$status"
