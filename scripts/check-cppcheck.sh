#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# cppcheck over src/. Exceptions stand at their line as `cppcheck-suppress`, with a reason.
set -euo pipefail
cppcheck --quiet --error-exitcode=1 --enable=warning,performance,portability --inline-suppr --std=c11 -j "$(nproc)" \
        --suppress=missingIncludeSystem --suppress=unknownMacro --template='{file}:{line}: {message} [{id}]' -I src src
