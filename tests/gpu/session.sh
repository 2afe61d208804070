#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# tests/gpu/session.sh KIT [OPTION...]: the three runs one after another, into $OUT (./gpu-session
# unless set), with what prepare.sh has made in KIT. Options go to each run: --quick, --seconds N.
# Exit status: 0, 1 if a test failed, 77 if there is no card.
set -u

kit=$1
shift
export OUT="${OUT:-./gpu-session}"
scripts=$kit/tests/gpu

python3 "$scripts/call1.py" --kit "$kit" "$@" || exit $?
variant=$(sed -n 's/^variant: \([a-z]*\).*/\1/p' "$OUT/call1.txt")
python3 "$scripts/call2.py" --kit "$kit" --variant "${variant:-library}" "$@"
memory=$?
python3 "$scripts/call3.py" --kit "$kit" --variant "${variant:-library}" "$@"
compute=$?
[ "$memory" -eq 0 ] || exit "$memory"
exit "$compute"
