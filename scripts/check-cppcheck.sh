#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# cppcheck over the files of scripts/changed.py in src/ and sim/. Exceptions stand at their line as
# `cppcheck-suppress`, with a reason.
# memleak and legacyUninitvar are off, and uninitvar: cppcheck does not know
# __attribute__((cleanup)), uthash and out parameters; AddressSanitizer and gcc do. varFuncNullUB:
# NULL is a pointer in every libc we build with.
set -euo pipefail

files=$("$(dirname "$0")/changed.py" src/ sim/)
[ -n "$files" ] || exit 0
cppcheck --quiet --error-exitcode=1 --enable=warning,performance,portability --inline-suppr --std=c11 -j "$(nproc)" \
        --suppress=missingIncludeSystem --suppress=unknownMacro --suppress=memleak --suppress=legacyUninitvar \
        --suppress=varFuncNullUB --suppress=uninitvar \
        --template='{file}:{line}: {message} [{id}]' -I src -I . --file-list=- <<<"$files"
