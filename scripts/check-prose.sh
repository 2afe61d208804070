#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Comments and pages are in plain technical English, as far as a machine can judge:
# scripts/prose.py.
set -euo pipefail

exec python3 "$(dirname "$0")/prose.py" "${@:2}"
