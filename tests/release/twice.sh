#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# tests/release/twice.sh SCRATCH: builds the release of HEAD in two folders of different names and
# lengths, without a compiler cache, and compares every byte. RELEASE_ARCHES as for `make release`.
set -euo pipefail

scratch=$(realpath -m "$1")
cd "$(dirname "$0")/../.."
when=$(git -c safe.directory='*' log -1 --format=%ct)
for folder in one another/folder/of-a-second-build; do
        rm -rf "${scratch:?}/$folder"
        mkdir -p "$scratch/$folder"
        git -c safe.directory='*' archive HEAD | tar -x -C "$scratch/$folder"
        (cd "$scratch/$folder" && CCACHE_DISABLE=1 SOURCE_DATE_EPOCH=$when RELEASE_URL=https://example.test/r scripts/release.sh "$PWD/dist")
done
cmp "$scratch/one/dist/SHA256SUMS" "$scratch/another/folder/of-a-second-build/dist/SHA256SUMS" ||
        { diff "$scratch/one/dist/SHA256SUMS" "$scratch/another/folder/of-a-second-build/dist/SHA256SUMS"; exit 1; }
echo "$(wc -l <"$scratch/one/dist/SHA256SUMS") files, twice the same"
