#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# scripts/deps.sh GROUP...: sees to it that the packages of these groups (scripts/packages.txt) are
# installed. Silent when they are. Installs as root or with a sudo that asks nothing; otherwise
# prints the one command to run.
set -euo pipefail

here=$(dirname "$0")

if ! command -v dpkg-query >/dev/null; then
        # Not Debian: the names would be wrong, and meson names what it does not find.
        echo "deps: no dpkg here; HACKING.md, \"Other distributions\", has the names of the packages ($*)" >&2
        exit 0
fi

missing=()
for group in "$@"; do
        wanted=$(sed -n "s/^$group //p" "$here/packages.txt")
        [ -n "$wanted" ] || { echo "deps: no group '$group' in scripts/packages.txt" >&2; exit 2; }
        for package in $wanted; do
                status=$(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null || true)
                [ "$status" = installed ] || missing+=("$package")
        done
done
[ ${#missing[@]} -gt 0 ] || exit 0

if [ "$(id -u)" -eq 0 ]; then
        as_root=(env)
elif command -v sudo >/dev/null && sudo -n true 2>/dev/null; then
        as_root=(sudo -n env)
else
        echo "deps: these Debian packages are missing. Run this, then try again:" >&2
        echo "  sudo apt-get update && sudo apt-get install -y ${missing[*]}" >&2
        exit 1
fi

echo "deps: installing ${missing[*]}" >&2
as_root+=(DEBIAN_FRONTEND=noninteractive apt-get -q)

# apt waits for the lock of dpkg alone. A machine that has just booted often updates itself.
run_apt() {
        local tries=0 words
        until words=$("${as_root[@]}" "$@" 2>&1 >/dev/null); do
                if [[ $words != *"Could not get lock"* ]] || [ "$tries" -ge 300 ]; then
                        echo "$words" >&2
                        exit 1
                fi
                [ "$tries" -gt 0 ] || echo "deps: another program uses apt; waiting for it, at most ten minutes" >&2
                tries=$((tries + 1))
                sleep "${DEPS_PAUSE:-2}"
        done
}

run_apt update
# --no-remove: another -dev package that stands in the way is its owner's to remove.
run_apt install -y --no-install-recommends --no-remove "${missing[@]}"
