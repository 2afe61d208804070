#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# docs/reference/reference.md lists what the source has, and nothing else: scripts/reference.py.
set -euo pipefail

exec python3 "$(dirname "$0")/reference.py" "$@"
