#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A file includes the system header of what it uses: scripts/includes.py.
set -euo pipefail

exec python3 "$(dirname "$0")/includes.py"
