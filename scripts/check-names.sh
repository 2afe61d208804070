#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# One name for one thing, and a name that says where it lives: scripts/names.py.
set -euo pipefail

exec python3 "$(dirname "$0")/names.py"
