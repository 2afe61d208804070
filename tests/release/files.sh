#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# tests/release/files.sh TREE: what the release and the image of TREE have in them, made from the
# build that `make release` left there. 77 where a tool is missing.
set -euo pipefail

tree=$(realpath "$1")
build=$tree/build-release/$(dpkg --print-architecture)
[ -x "$build/aliquot" ] || { echo "skipped: there is no $build; make release makes it"; exit 77; }
for test in image release; do
        /usr/bin/python3 "$tree/tests/deploy/$test.py" "$build" "$tree" || exit
done
