#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Layout is .clang-format's; `make format` applies it.
set -euo pipefail
"$(dirname "$0")/sources.sh" c h | xargs -r -d '\n' clang-format --dry-run --Werror
