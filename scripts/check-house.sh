#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The house in numbers, from its includes: at most 16 rooms and 57 arrows, no circle, and at most 40
# .c files in a folder: scripts/house.py.
set -euo pipefail

exec python3 "$(dirname "$0")/house.py"
