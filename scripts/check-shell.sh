#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
set -euo pipefail
{ "$(dirname "$0")/sources.sh" sh bash; if [ -f .ci/run ]; then echo .ci/run; fi; } | xargs -r -d '\n' shellcheck -e SC2016 # awk programs stand in single quotes
