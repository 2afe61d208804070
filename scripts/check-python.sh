#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# flake8 over every Python file, for what is wrong (names, imports, syntax, comparisons) and for
# lines of more than 160 columns; it does not judge blanks.
set -euo pipefail

"$(dirname "$0")/sources.sh" py | xargs -r -d '\n' flake8 --isolated --max-line-length 160 --select F,E501,E7,E9,W6 --extend-ignore E731
