#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# tests/gpu/prepare.sh FOLDER: builds all that the three runs need, on any machine. A machine with a
# card then only runs it. FOLDER/library, forward and unsupported have the programs, each with its
# own variant of libaliquot.so; FOLDER/tests/gpu has the scripts. FOLDER.tar.gz is the same.
set -eu

here=$(cd "$(dirname "$0")" && pwd)
mkdir -p "$1"
kit=$(cd "$1" && pwd)
rm -rf "$kit/library" "$kit/forward" "$kit/unsupported" "$kit/no-cilp" "$kit/tests"
"$here/build.sh" "$kit/library"
rm -rf "$kit/library/objects"
for variant in forward unsupported no-cilp; do
        cp -R "$kit/library" "$kit/$variant"
        mv "$kit/library/libaliquot-$variant.so" "$kit/$variant/libaliquot.so"
done
rm -f "$kit"/*/libaliquot-*.so
mkdir -p "$kit/tests/gpu"
cp "$here"/*.py "$here"/*.sh "$kit/tests/gpu/"
tar -C "$(dirname "$kit")" -czf "$kit.tar.gz" "$(basename "$kit")"
echo "gpu-test: $kit and $kit.tar.gz: $(du -sm "$kit" | cut -f1) MiB"
