#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Function 120 lines, file 1,000 (also Python and shell), header 120. Exceptions stand in
# scripts/ceilings.txt with the size they may have; the list shrinks: an exception larger than
# needed, or for nothing, is a failure, too.
set -euo pipefail

here=$(dirname "$0")
exceptions=$here/ceilings.txt

# The layout makes it easy: a body begins with a line that starts in column one and ends in {, and
# ends with a lone }.
"$here/sources.sh" c h py sh | xargs -r -d '\n' awk -v exceptions="$exceptions" '
function judge(what, size, ceiling, place) {
        if (what in allowed) {
                seen[what] = 1
                if (size < allowed[what]) {
                        printf "%s: %s has %d lines now, scripts/ceilings.txt still allows %d\n", place, what, size, allowed[what]
                        bad = 1
                }
                ceiling = allowed[what]
        }
        if (size > ceiling) {
                printf "%s: %s has %d lines, at most %d\n", place, what, size, ceiling
                bad = 1
        }
}
function file_end() {
        if (file != "")
                judge(file, lines, file ~ /\.h$/ ? 120 : 1000, file ":1")
}
BEGIN {
        while ((getline line < exceptions) > 0)
                if (line !~ /^#/ && split(line, field, " ") == 2)
                        allowed[field[1]] = field[2] + 0
}
FNR == 1 { file_end(); file = FILENAME; name = "" }
{ lines = FNR }
FILENAME !~ /\.[ch]$/ { next }
/^[a-zA-Z_].*[^;]$/ && /\(/ { header = $0; start = FNR }
/^[^ \t#].*\{$/ && !/^(struct|enum|union|typedef|static const|const) [^(]*\{$/ || (/^[ \t].*\) \{$/ && header != "" && FNR - start < 6 && name == "") {
        name = header
        sub(/\(.*/, "", name)
        sub(/.*[ *]/, "", name)
        body = start
}
/^\}/ && name != "" {
        judge(FILENAME ":" name, FNR - body + 1, 120, FILENAME ":" body)
        name = header = ""
}
END {
        file_end()
        for (what in allowed)
                if (!(what in seen) && exceptions != "") {
                        printf "scripts/ceilings.txt: no such thing any more: %s\n", what
                        bad = 1
                }
        exit bad
}'
