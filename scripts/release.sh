#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# scripts/release.sh OUTPUT: builds the programs for each processor in RELEASE_ARCHES ("amd64 arm64"
# unless set) and writes the files of the release to OUTPUT. RELEASE_URL must be set. The builds lie
# in build-release/.
set -euo pipefail

output=$(realpath -m "$1")
cd "$(dirname "$0")/.."
scripts/release.py --check "$output"
native=$(dpkg --print-architecture)
read -ra arches <<<"${RELEASE_ARCHES:-amd64 arm64}"
groups=(build release)
for arch in "${arches[@]}"; do
        [ "$arch" = "$native" ] || groups+=(aarch64)
done
scripts/deps.sh "${groups[@]}"
here=$(pwd)
mapfile -t programs < <(scripts/release.py --targets)

builds=()
for arch in "${arches[@]}"; do
        build=build-release/$arch sysroot=
        echo "release: $arch" >&2
        if [ "$arch" = "$native" ]; then
                setup=()
        else
                sysroot=build-release/sysroot-$arch
                scripts/sysroot.sh "$arch" "$sysroot" >&2
                sysroot=$(realpath "$sysroot")
                setup=(--cross-file "$sysroot/cross.ini")
        fi
        # The debugging information would name these folders, and the build ID follows from it.
        arguments="${sysroot:+--sysroot=$sysroot -ffile-prefix-map=$sysroot=} -ffile-prefix-map=$here=."
        setup+=(-Dc_args="$arguments")
        mkdir -p build-release
        [ -f "$build/build.ninja" ] || meson setup "$build" "${setup[@]}" >"$build.log" || { tail "$build.log" >&2; exit 1; }
        ninja -C "$build" --quiet ${RELEASE_JOBS:+-j "$RELEASE_JOBS"} "${programs[@]}" >&2
        builds+=("$build${sysroot:+=$sysroot}")
done
scripts/release.py "$output" "${builds[@]}"
if [ -n "$(git -c safe.directory='*' status --porcelain --untracked-files=no 2>/dev/null)" ]; then
        echo "release: these files come from a tree with changes that are not committed" >&2
fi
