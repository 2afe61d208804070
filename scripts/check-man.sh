#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A page per program and per verb, and mandoc finds nothing to say about any.
set -euo pipefail

bad=0

want() { # PAGE OWNER
        compgen -G "man/$1.[18]" >/dev/null && return
        echo "$2: no man page man/$1.1 or man/$1.8"
        bad=1
}

while read -r program; do
        want "$program" meson.build
done < <(sed -n "s/^ *executable('\([a-z-]*\)'.*/\1/p" meson.build)
if [ -f src/main.c ]; then
        while read -r verb; do
                want "aliquot-$verb" src/main.c
        done < <(sed -n 's/^ *{"\([a-z]*\)", [a-z].*/\1/p' src/main.c) # NULL: aliquot(1) has it
fi

"$(dirname "$0")/sources.sh" 1 8 | xargs -r -d '\n' mandoc -Tlint -Wwarning || bad=1
exit "$bad"
