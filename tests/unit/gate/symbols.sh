#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# symbols.sh LIBRARY: what libaliquot.so gives and takes. Every program of a container gets it, the oldest ones too.
set -eu

library=$1
fail() {
        echo "$library: $*" >&2
        exit 1
}

given=$(readelf --wide --dyn-syms "$library" | awk '$7 != "UND" && $7 != "Ndx" && NF == 8 { print $8 }' | sort | xargs)
[ "$given" = "ioctl mmap mmap64 munmap" ] || fail "exports \"$given\""

# Weak ones of the oldest version there is; none is needed.
taken=$(readelf --wide --dyn-syms "$library" | awk '$7 == "UND" && NF >= 8 { print $5, $8 }' | sort | xargs)
[ "$taken" = "WEAK __errno_location WEAK __libc_stack_end WEAK environ" ] || fail "asks for \"$taken\""

dynamic=$(readelf --wide --dynamic "$library")
for tag in NEEDED VERNEED INIT INIT_ARRAY FINI FINI_ARRAY TEXTREL RPATH RUNPATH; do
        case $dynamic in *"($tag)"*) fail "has $tag" ;; esac
done
case $dynamic in *BIND_NOW*) ;; *) fail "is bound lazily" ;; esac

segments=$(readelf --wide --segments "$library")
case $segments in *GNU_RELRO*) ;; *) fail "has no relro" ;; esac
case $segments in *TLS*) fail "has data of each thread" ;; esac
case $segments in *RWE*) fail "can be written where it can be run" ;; esac

size=$(wc -c <"$library")
[ "$size" -le 65536 ] || fail "has $size bytes, more than 64 KiB"
