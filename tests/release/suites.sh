#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# tests/release/suites.sh SUITE SCRATCH: in an empty root of this Debian below SCRATCH, builds a
# clean clone with clang and with gcc, where a warning is an error, and runs `make test`. 77, with
# the reason: root, mmdebstrap or Debian's mirrors are missing.
set -euo pipefail

suite=$1 scratch=$(realpath -m "$2")
root=$scratch/$suite
cd "$(dirname "$0")/../.."
. tests/release/roots.sh

make_root "$suite"
git -c safe.directory='*' bundle create --quiet "$root/bundle" HEAD # the clone may belong to another user
git -c advice.detachedHead=false clone --quiet "$root/bundle" "$root/aliquot"
enter "$root" apt-get update -qq
enter "$root" sh -ec 'cd /aliquot
        apt-get install -yqq --no-install-recommends git >/dev/null
        scripts/deps.sh build test fuzz
        CC=clang meson setup --werror build-clang >/dev/null
        ninja --quiet -C build-clang
        rm -r build-clang
        CC=gcc meson setup --werror build >/dev/null
        ninja --quiet -C build
        make --no-print-directory test'
rm -rf "$root"
echo "Debian $suite: built with clang and gcc without a warning, and tested"
