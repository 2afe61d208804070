#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Calls that have a better one, with its name; marks that say "not finished"; and paths that a test
# takes to be absent.
set -euo pipefail

here=$(dirname "$0")

"$here/sources.sh" c h | xargs -r -d '\n' awk '
BEGIN {
        instead["strcpy"] = instead["strcat"] = "buf_append(), or memcpy() with a length that was checked"
        instead["sprintf"] = instead["vsprintf"] = "buf_appendf() or snprintf()"
        instead["atoi"] = instead["atol"] = "str_to_u32() or str_to_u64(): they tell malformed from 0"
        instead["strtok"] = "str_split()"
        instead["gets"] = "file_read() or getline()"
        instead["system"] = "posix_spawn() with an argument vector"
        instead["alloca"] = "arena_alloc()"
}
{
        code = $0
        gsub(/"([^"\\]|\\.)*"/, "\"\"", code)
        sub(/\/\*.*/, "", code)
        if (code ~ /^ \*/)
                next
        for (word in instead)
                if (code ~ "(^|[^_a-zA-Z0-9.>])" word "[ \t]*\\(") {
                        printf "%s:%d: %s() is banned; use %s\n", FILENAME, FNR, word, instead[word]
                        bad = 1
                }
}
END { exit bad }' && words=0 || words=1

# Marks, in code, scripts and pages alike. This file names them, and tests/lint uses them on
# purpose.
marks='\b(TODO|FIXME|XXX|HACK)\b|\b([Nn]ot implemented|[Ss]tub)\b'
"$here/sources.sh" c h sh py md 1 8 build | { grep -v -E '^(scripts/check-words\.sh|tests/lint/|HACKING\.md|docs/internals/CODING_STYLE\.md)' || true; } |
        { xargs -r -d '\n' grep -HnE "$marks" || true; } |
        sed -E 's/^([^:]*:[0-9]+):(.*)$/\1: unfinished:\2/' | { ! grep . ; } && marked=0 || marked=1

# A program that a test starts can make such a path: kubectl makes its HOME. No process can make one
# below /proc/self, nor below the new folder of a test.
"$here/sources.sh" c h sh py | { grep '^tests/' | grep -v '^tests/lint/' || true; } |
        { xargs -r -d '\n' grep -HnE "[\"' :]/(nonexistent|nowhere|no/such|no-such|does-not)\b" || true; } |
        sed -E 's/^([^:]*:[0-9]+):(.*)$/\1: can be there; take \/proc\/self\/absent:\2/' | { ! grep . ; } && absent=0 || absent=1

exit $((words | marked | absent))
