#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Empty Debian roots below $scratch, for the scripts that source this. They end with 77 and the
# reason where root, mmdebstrap or Debian's mirrors are missing.
# shellcheck disable=SC2154 # scratch

if [ "$(id -u)" -ne 0 ]; then echo "skipped: only root can enter another root"; exit 77; fi
command -v mmdebstrap >/dev/null || { echo "skipped: there is no mmdebstrap (scripts/deps.sh release)"; exit 77; }

# A mirror that is some days old will do: nothing of it is kept.
make_root() { # SUITE
        local root=$scratch/$1
        rm -rf "${root:?}"
        mkdir -p "$scratch"
        if ! mmdebstrap --quiet --variant=apt --aptopt='Acquire::Check-Valid-Until "false"' "$1" "$root" >"$root.log" 2>&1; then
                cat "$root.log"
                echo "skipped: Debian $1 could not be installed into a folder"
                exit 77
        fi
}

# As a container runtime does: a root of its own by pivot_root, with processes of its own and the
# devices. The old root stays at /run/old: an empty Debian has no umount. In a chroot /proc/self/exe
# has the path outside once mounts were copied.
enter() { # ROOT COMMAND...
        unshare --mount --pid --fork --kill-child sh -c 'root=$1
                shift
                mount --bind "$root" "$root" && cd "$root" && mount -t proc proc proc && mount --rbind /dev dev && mount --rbind /sys sys &&
                mount -t tmpfs tmpfs run && mkdir run/old && pivot_root . run/old || exit 77
                exec chroot . env -i HOME=/root PATH=/usr/sbin:/usr/bin:/sbin:/bin DEBIAN_FRONTEND=noninteractive "$@"' sh "$@"
}
