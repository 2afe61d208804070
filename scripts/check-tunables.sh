#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The time constants of the arbiter and of the preloaded library stand in one tunables.h per room.
# Each has its unit in the name and its source behind it: "measured on CARD, DRIVER", or "guess". A
# value that was tuned on the simulated card is a guess.
set -euo pipefail

"$(dirname "$0")/sources.sh" c h | { grep -E '^src/(arbiter|preload)/' || true; } | xargs -r -d '\n' awk '
function complain(text) {
        printf "%s:%d: %s\n", FILENAME, FNR, text
        bad = 1
}
FNR == 1 { above = "" }
{
        code = $0
        sub(/\/\*.*/, "", code)
        tunables = FILENAME ~ /\/tunables\.h$/
        constant = code ~ /^[ \t]*(#[ \t]*define[ \t]+)?[A-Z][A-Z0-9_]*([ \t]*=|[ \t]+[U(0-9])/ || code ~ /^static const .*=/
        name = code
        sub(/^[ \t]*(#[ \t]*define[ \t]+)?/, "", name)
        sub(/[^A-Z0-9_].*/, "", name)
        unit = name ~ /_(NS|US|MS|NSEC|USEC|MSEC|SECONDS)$/
        value = code ~ /(NSEC|USEC)_PER_|\* ?1000+([^0-9]|$)|[^0-9][1-9][0-9]*00000([^0-9]|$)/
        if (constant && !tunables && (unit || value) && name !~ /(_PPM|_PER_.*|_TURNS|_YIELDS|_TRIES)$/)
                complain("the time constant " name " belongs into " (FILENAME ~ /arbiter/ ? "src/arbiter" : "the room\047s") "/tunables.h")
        if (constant && tunables && $0 !~ /(measured on [A-Z]|guess)/ && above !~ /(measured on [A-Z]|guess)/)
                complain(name " says neither \"measured on CARD, DRIVER\" nor \"guess\"")
        if ($0 ~ /^[ \t]*(\/\*|\* )/)
                above = above $0
        else
                above = ""
}
END { exit bad }'
