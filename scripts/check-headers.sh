#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Every header compiles alone, so that the order of includes never matters.
set -uo pipefail
"$(dirname "$0")/sources.sh" h | xargs -r -d '\n' -n 1 -P "$(nproc)" sh -c '${CC:-cc} -std=gnu11 -D_GNU_SOURCE \
        -fsyntax-only -Wall -Werror -Wno-unused-function -I src -I . -I tests/unit -x c -include "$0" /dev/null'
