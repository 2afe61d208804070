#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Every text file has a licence line and a last newline. It has no blanks at line ends, no tabs in
# C, no merge marks, and no paths of the machine it was written on. A header has `#pragma once`.
set -euo pipefail

here=$(dirname "$0")
elsewhere='(^|[^A-Za-z0-9_./-])/(work|root|home)/[a-z]'

"$here/sources.sh" c h sh py md build txt yaml 1 8 | { grep -v '^LICENSE' || true; } | xargs -r -d '\n' awk -v elsewhere="$elsewhere" '
function complain(line, text) {
        printf "%s:%d: %s\n", file, line, text
        bad = 1
}
function file_end() {
        if (file == "" )
                return
        if (licensed == 0 && file ~ /(\.[ch]|\.sh|\.py|\.[18])$/)
                complain(1, "no SPDX-License-Identifier in the first three lines")
        if (file ~ /\.h$/ && !once)
                complain(1, "no #pragma once")
}
FNR == 1 { file_end(); file = FILENAME; licensed = once = 0 }
FNR <= 3 && /SPDX-License-Identifier: Apache-2\.0/ { licensed = 1 }
/^#pragma once/ { once = 1 }
/[ \t\r]$/ { complain(FNR, "blank at the end of the line") }
/\t/ && FILENAME ~ /\.[ch]$/ { complain(FNR, "tab") }
/^(<<<<<<<|>>>>>>>) / { complain(FNR, "merge mark") }
$0 ~ elsewhere && FILENAME !~ /^tests\/lint\// { complain(FNR, "path of a machine") }
END { file_end(); exit bad }' && bad=0 || bad=1

while IFS= read -r file; do
        if [ -s "$file" ] && [ "$(tail -c 1 "$file" | od -An -tx1 | tr -d ' ')" != 0a ]; then
                echo "$file: no newline at the end"
                bad=1
        fi
done < <("$here/sources.sh" c h sh py md build)
exit "$bad"
