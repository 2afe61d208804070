#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# What a page links to in this tree is there, and so is its section. Sections are named as GitHub
# names them: in small letters, a dash for each blank, nothing else but letters, digits, dashes and
# underscores. A page that another file names by its path is there, too. docs/README.md, where the
# site of `make docs` begins, links to each page of docs.
set -euo pipefail

here=$(dirname "$0") bad=0

while IFS=: read -r file line page; do
        [ -f "$page" ] || { echo "$file:$line: there is no $page"; bad=1; }
done < <("$here/sources.sh" c h py yaml build md 1 8 | { grep -v -E '^(scripts|tests/lint)/' || true; } |
        xargs -r -d '\n' grep -HnoP '(?<![\w.-])(?<!\w/)docs/((begin|use|operate|reference|internals)/)?[A-Za-z_-]+\.md' || true)

sources=$("$here/sources.sh" md)
[ -n "$sources" ] || exit "$bad"
printf '%s\n' "$sources" | xargs -r -d '\n' awk '
function there(path) {
        if (path in exists)
                return exists[path]
        exists[path] = system("test -e \047" path "\047") == 0
        return exists[path]
}
function plain(path, before) { # a/../b is b
        do {
                before = path
                sub(/[^\/]+\/\.\.\//, "", path)
        } while (path != before)
        return path
}
FNR == 1 { code = 0; page[FILENAME] = 1 }
/^```/ { code = !code }
code { next }
/^#+ / {
        name = tolower($0)
        sub(/^#+ /, "", name)
        gsub(/[^a-z0-9_ -]/, "", name)
        gsub(/ /, "-", name)
        section[FILENAME "#" name] = 1
}
{
        rest = $0
        while (match(rest, /\]\([^) ]+\)/)) {
                link = substr(rest, RSTART + 2, RLENGTH - 3)
                rest = substr(rest, RSTART + RLENGTH)
                if (link ~ /^[a-z]+:/)
                        continue
                n++
                from[n] = FILENAME
                line[n] = FNR
                to[n] = link
        }
}
END {
        begin = "docs/README.md"
        for (i = 1; i <= n; i++) {
                folder = from[i]
                if (!sub(/\/[^\/]*$/, "/", folder))
                        folder = ""
                path = to[i] ~ /^#/ ? from[i] : plain(folder to[i])
                name = ""
                if (to[i] ~ /#/) {
                        name = to[i]
                        sub(/^[^#]*#/, "", name)
                        sub(/#.*/, "", path)
                }
                if (!there(path) || (name != "" && !((path "#" name) in section))) {
                        printf "%s:%d: there is no %s\n", from[i], line[i], to[i]
                        bad = 1
                }
                if (from[i] == begin)
                        listed[path] = 1
        }
        for (path in page)
                if ((begin in page) && path ~ /^docs\// && path != begin && !(path in listed)) {
                        printf "%s:1: %s does not link to it\n", path, begin
                        bad = 1
                }
        exit bad
}' || bad=1
exit "$bad"
