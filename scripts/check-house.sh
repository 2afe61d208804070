#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The house in numbers, from its includes: at most 16 rooms and 57 arrows, and no circle:
# scripts/house.py.
set -euo pipefail

exec python3 "$(dirname "$0")/house.py"
