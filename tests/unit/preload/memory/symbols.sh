#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# symbols.sh LIBRARY MAP: the symbols that libaliquot.so exports and needs. Every program of a
# container loads it, also the oldest ones.
set -eu

library=$1 map=$2
fail() {
        echo "$library: $*" >&2
        exit 1
}

given=$(readelf --wide --dyn-syms "$library" | awk '$5 != "LOCAL" && $7 != "UND" && $7 != "Ndx" && NF == 8 { print $8 }' | sort | xargs)
wanted=$(tr -d ' ' <"$map" | sed -e 's/.*global://' -e 's/local:.*//' -e '/^#/d' | tr ';' '\n' | grep -v '[^A-Za-z0-9_]' | grep . | sort | xargs)
{ [ "$given" = "$wanted" ] && [ -n "$wanted" ]; } || fail "exports \"$given\", the map says \"$wanted\""

# Weak ones of the oldest version there is; none is needed.
taken=$(readelf --wide --dyn-syms "$library" | awk '$7 == "UND" && NF >= 8 { print $5, $8 }' | sort | xargs)
[ "$taken" = "WEAK __errno_location WEAK __libc_stack_end WEAK _dl_debug_addr WEAK _r_debug WEAK environ" ] || fail "asks for \"$taken\""

dynamic=$(readelf --wide --dynamic "$library")
# One constructor, which makes no call (preload/memory/discover.c).
case $dynamic in *"(INIT_ARRAYSZ)"*" 8 (bytes)"*) ;; *) fail "has not one constructor" ;; esac
for tag in NEEDED VERNEED INIT FINI FINI_ARRAY TEXTREL RPATH RUNPATH; do
        case $dynamic in *"($tag)"*) fail "has $tag" ;; esac
done
case $dynamic in *BIND_NOW*) ;; *) fail "is bound lazily" ;; esac

segments=$(readelf --wide --segments "$library")
case $segments in *GNU_RELRO*) ;; *) fail "has no relro" ;; esac
case $segments in *TLS*) fail "has data of each thread" ;; esac
case $segments in *RWE*) fail "can be written where it can be run" ;; esac

size=0 # of what is loaded: the file is padded to the machine's largest pages
for part in $(printf '%s\n' "$segments" | awk '$1 == "LOAD" { print $5 }'); do
        size=$((size + part))
done
{ [ "$size" -gt 0 ] && [ "$size" -le 204800 ]; } || fail "loads $size bytes, should be at most 200 KiB"
