#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A check that cannot fail is a defect. Each check is shown a small tree with one fault, where it
# must fail and name the fault, and the same tree without the fault, where it must pass.
set -uo pipefail

root=$(cd "$(dirname "$0")/../.." && pwd)
tree=$(mktemp -d)
trap 'rm -rf "$tree"' EXIT
bad=0 n=0
unset CI_BASE # of the tree that is judged

fresh() {
        rm -rf "${tree:?}"/* "$tree"/.git "$tree"/.clang-format "$tree"/.clang-tidy
        git -C "$tree" init -q
        mkdir -p "$tree"/{src/base,src/wire,src/share,src/kube,src/cli/inspect,src/node/kubelet,sim,man,build,scripts,tests/unit}
        cp "$root/.clang-format" "$root/.clang-tidy" "$tree"
        cp "$root"/scripts/*.sh "$root"/scripts/*.py "$tree/scripts"
        : >"$tree/scripts/ceilings.txt"
        : >"$tree/meson.build"
        write src/wire/good.h '#pragma once' '#include "base/plain.h"' 'int good(int a);'
        write src/base/plain.h '#pragma once'
        write src/wire/good.c '#include "wire/good.h"' '' 'int good(int a) {' '        return a + 1;' '}'
        printf '[{"directory":"%s","file":"src/wire/good.c","command":"cc -Isrc -c src/wire/good.c"}]\n' "$tree" \
                >"$tree/build/compile_commands.json"
}

write() { # FILE LINE...
        local file=$tree/$1
        shift
        { echo '/* SPDX-License-Identifier: Apache-2.0 */'; printf '%s\n' "$@"; } >"$file"
}

says() { # CHECK TEXT: the check fails with this text; without it, the check passes
        local check=$1 text=${2:-} output status
        n=$((n + 1))
        output=$(cd "$tree" && "scripts/check-$check.sh" build 2>&1 </dev/null)
        status=$?
        if [ -z "$text" ] && [ "$status" -ne 0 ]; then
                printf 'check-%s fails without a fault: %s\n' "$check" "$output"
                bad=1
        elif [ -n "$text" ] && { [ "$status" -eq 0 ] || [[ $output != *"$text"* ]]; }; then
                printf 'check-%s does not say "%s", status %d: %s\n' "$check" "$text" "$status" "$output"
                bad=1
        fi
}

commit() { # SUBJECT BODY
        git -C "$tree" add -A
        git -C "$tree" -c user.name=x -c user.email=x@example.com commit -q --allow-empty -m "$1" -m "$2"
}

lines() { # N: as many statements
        local i
        for ((i = 0; i < $1; i++)); do echo '        a += 1;'; done
}

fresh
for check in rooms house names tunables ceilings words prose text links format headers includes cppcheck tidy man shell python; do says "$check"; done

write src/wire/x.c '#include "kube/client.h"'
says rooms 'src/wire/x.c:2: wire includes kube'
write src/wire/x.c '#include "wire/good.h"'
write src/share/x.c '#include "kube/client.h"'
says rooms 'src/share/x.c:2: share includes kube'
rm "$tree/src/share/x.c"
write src/cli/inspect/x.c '#include "kube/client.h"'
says rooms 'cli/inspect includes kube; it may include: base wire share'
rm "$tree/src/cli/inspect/x.c"
write src/base/x.h '#pragma once' '#include <sys/epoll.h>'
write src/cli/inspect/x.c '#include "base/x.h"'
says plugin 'src/base/x.h:3: <sys/epoll.h> is no header of POSIX'
rm "$tree/src/base/x.h"
write src/cli/inspect/x.c '#include <unistd.h>' 'int x(int *both);' 'int x(int *both) { return pipe2(both, 0); }'
says plugin pipe2
write src/cli/inspect/x.c '#include <unistd.h>' 'int x(int *both);' 'int x(int *both) { return pipe(both); }'
says plugin
rm "$tree/src/cli/inspect/x.c"
write src/node/kubelet/x.c '#include "node/agent.h"'
says rooms 'src/node/kubelet/x.c:2: node/kubelet includes node; '
write src/node/kubelet/x.c '#include "node/allocate/resolver.h"'
says rooms 'src/node/kubelet/x.c:2: node/kubelet includes node/allocate; '
write src/node/kubelet/x.c '#include "net/grpc/rpc_client.h"'
says rooms
mkdir -p "$tree/src/scheduler/bind"
for line in 'int gangs_held;' '#include "scheduler/question/policy_bind.h"' 'int ledger_growth_of(void);' 'Evictor *e;'; do
        write src/scheduler/bind/x.c "$line"
        says rooms 'src/scheduler/bind/x.c:2: verbs, bind and view name no feature that has hooks'
done
write src/scheduler/bind/x.c '/* a gang */' 'const char *x = "gang"; /* of a gang */'
says rooms
mkdir -p "$tree/src/scheduler/view"
for line in 'bool has_gangs;' '#include "scheduler/gang/gangs.h"' 'int ledger_growth_of(void);' 'Evictor *e;'; do
        write src/scheduler/view/x.c "$line"
        says rooms 'src/scheduler/view/x.c:2: verbs, bind and view name no feature that has hooks'
done
write src/scheduler/view/x.c 'PolicyTable *policies;'
says rooms
rm -r "$tree/src/scheduler"
write src/wire/x.c '#include "sim/sim.h"'
says rooms 'src/wire/x.c:2: wire includes sim'
rm "$tree/src/wire/x.c"
write sim/x.c '#include "kube/client.h"'
says rooms 'sim/x.c:2: sim includes kube'

fresh
mapfile -t body < <(lines 118)
write src/base/x.c 'static int just(int a) {' "${body[@]}" '}'
says ceilings
mapfile -t body < <(lines 119)
write src/base/x.c 'static int long_one(int a,' '                    int b) {' "${body[@]}" '}'
says ceilings 'src/base/x.c:2: src/base/x.c:long_one has 122 lines, at most 120'
echo 'src/base/x.c:long_one 122' >"$tree/scripts/ceilings.txt"
says ceilings
echo 'src/base/x.c:long_one 130' >"$tree/scripts/ceilings.txt"
says ceilings 'still allows 130'
echo 'src/base/gone.c:none 130' >"$tree/scripts/ceilings.txt"
says ceilings 'no such thing any more: src/base/gone.c:none'
: >"$tree/scripts/ceilings.txt"
mapfile -t body < <(lines 1000)
write src/base/x.c "${body[@]}"
says ceilings 'src/base/x.c has 1001 lines, at most 1000'
mapfile -t body < <(lines 120)
write src/base/x.c 'int x;'
write src/base/x.h "${body[@]}"
says ceilings 'src/base/x.h has 121 lines, at most 120'

fresh
printf 'src/base/ 1\n' >"$tree/scripts/ceilings.txt"
says ceilings 'no such thing any more: src/base/'
: >"$tree/scripts/ceilings.txt"
printf '# SPDX-License-Identifier: Apache-2.0\n%s' "$(printf 'x = 1\n%.0s' {1..1000})" >"$tree/scripts/x.py"
says ceilings 'scripts/x.py has 1001 lines, at most 1000'

fresh
for word in strcpy strcat sprintf vsprintf atoi atol strtok gets system alloca; do
        write src/base/x.c "int x = $word(y);"
        says words "src/base/x.c:2: $word() is banned; use "
done
write src/base/x.c '/* atoi() cannot tell */' 'int x = snprintf(b, n, "system()") + my_system(2);'
says words
write src/base/x.c '/* TODO later */'
says words 'src/base/x.c:2: unfinished:'
write src/base/x.c '/* this is a stub */'
says words 'unfinished'
rm "$tree/src/base/x.c"
write tests/unit/test-x.c 'int x = open("/nonexistent/file", 0);'
says words 'tests/unit/test-x.c:2: can be there'
write tests/unit/test-x.c 'int x = open("/proc/self/absent/file", 0);'
says words

fresh
echo 'int x;' >"$tree/src/base/x.c"
says text 'src/base/x.c:1: no SPDX'
write src/base/x.c 'int x; '
says text 'src/base/x.c:2: blank at the end'
write src/base/x.c $'\tint x;'
says text 'src/base/x.c:2: tab'
write src/base/x.c '/* see /home/me/notes */'
says text 'src/base/x.c:2: path of a machine'
write src/base/x.c '<<<<<<< HEAD'
says text 'merge mark'
printf '/* SPDX-License-Identifier: Apache-2.0 */\nint x;' >"$tree/src/base/x.c"
says text 'src/base/x.c: no newline at the end'
write src/base/x.c 'int x;'
write src/base/x.h 'int x;'
says text 'src/base/x.h:1: no #pragma once'

fresh
mkdir "$tree/docs"
printf '# Good\n\n[here](#good), [there](../README.md#the-end), [out](https://example.com/x#y)\n' >"$tree/docs/good.md"
printf '# Read me\n\n## The end\n\n[good](docs/good.md)\n' >"$tree/README.md"
says links
printf '[bad](docs/bad.md)\n' >>"$tree/README.md"
says links 'README.md:6: there is no docs/bad.md'
printf '# Read me\n' >"$tree/README.md"
says links 'docs/good.md:3: there is no ../README.md#the-end'
printf '# Good\n' >"$tree/docs/good.md"
printf '# All\n' >"$tree/docs/README.md"
says links 'docs/good.md:1: docs/README.md does not link to it'
printf '[good](good.md#good)\n' >>"$tree/docs/README.md"
says links
write src/base/x.c '/* docs/good.md, docs/moved.md */'
says links 'src/base/x.c:2: there is no docs/moved.md'

fresh
write src/base/x.c 'int  x;'
says format 'src/base/x.c:2'
fresh
write src/base/x.h '#pragma once' 'size_t x(void);'
says headers 'unknown type name'
fresh
write src/base/x.c '#include "base/x.h"' 'int f = open("a", O_RDONLY), x(void);' '/* AT_FDCWD */' 'char *y = "PATH_MAX";'
write src/base/x.h '#pragma once' '#include <fcntl.h>'
says includes
write src/base/x.h '#pragma once' '#include <sys/stat.h>'
says includes 'src/base/x.c:3: open is used without <fcntl.h>'
write src/base/x.c '#include <sys/stat.h>' '' 'int x = AT_EMPTY_PATH;'
says includes 'src/base/x.c:4: AT_EMPTY_PATH is used without <fcntl.h>'
write src/base/x.c 'struct stat;' 'int open(struct stat *s);' 'int open(struct stat *s) {' '        return s->O_RDWR == 0;' '}'
says includes
fresh
mkdir "$tree/tests/mutants"
printf '%s\n' '--- a/src/wire/good.c' '+++ b/src/wire/good.c' '@@ -4,3 +4,3 @@' ' int good(int a) {' '-        return a + 1;' \
        '+        return a - 1;' ' }' >"$tree/tests/mutants/wire-01.patch"
says mutants
write src/wire/good.c '#include "wire/good.h"' '' 'int good(int a) {' '        return 1 + a;' '}'
says mutants 'tests/mutants/wire-01.patch: does not apply'
fresh
write src/base/x.c 'int x(void);' 'int x(void) {' '        int a[2];' '        a[2] = 1;' '        return a[0];' '}'
says cppcheck 'src/base/x.c:5: Array'
fresh
write src/wire/good.c '#include <string.h>' '#include "wire/good.h"' 'int good(int a) {' \
        '        return a ? memcmp("a", "b", 1) == 0 && a == a : 0;' '}'
says tidy 'misc-redundant-expression'
write tests/unit/test-good.c 'int test(int a);' 'int test(int a) {' '        return a == a;' '}'
printf '[{"directory":"%s","file":"../tests/unit/test-good.c","command":"cc -c ../tests/unit/test-good.c"}]\n' "$tree/build" \
        >"$tree/build/compile_commands.json"
says tidy tests/unit/test-good.c:4
echo '[]' >"$tree/build/compile_commands.json"
says tidy 'names no file'

# What changed, and every file that includes a changed header; the fault of known.c was there before
fresh
write src/wire/size.h '#pragma once' '#define SIZE 3'
write src/wire/good.h '#pragma once' '#include "wire/size.h"' 'int good(int a);'
write src/wire/good.c '#include "wire/good.h"' '' 'int good(int a) {' '        return a / SIZE;' '}'
write src/base/known.c 'int known(int a);' 'int known(int a) {' '        return a / 0;' '}'
printf '[{"directory":"%s","file":"src/wire/good.c","command":"cc -Isrc -c src/wire/good.c"},
{"directory":"%s","file":"src/base/known.c","command":"cc -Isrc -c src/base/known.c"}]\n' "$tree" "$tree" >"$tree/build/compile_commands.json"
commit 'wire: begin' 'It is the base.'
git -C "$tree" tag base
export CI_BASE=base
says cppcheck src/base/known.c:4 # the merge base is HEAD
write src/share/new.h '#pragma once'
commit 'share: change what no file includes' 'It hides nothing.'
says cppcheck
says tidy
CI_BASE=none says cppcheck src/base/known.c:4
write src/wire/size.h '#pragma once' '#define SIZE 0'
says cppcheck src/wire/good.c:5
says tidy src/wire/good.c:5
commit 'wire: divide by zero' 'The file that shows it did not change.'
says cppcheck src/wire/good.c:5
git -C "$tree" reset -q --hard HEAD^
: >"$tree/src/base/meson.build"
says cppcheck src/base/known.c:4
rm "$tree/src/base/meson.build"
write src/base/known.c 'int known(int a);' 'int known(int a) {' '        return a /  0;' '}'
says cppcheck src/base/known.c:4
git -C "$tree" reset -q --hard
for file in .clang-tidy meson.build scripts/check-tidy.sh scripts/packages.txt; do
        echo '# changed' >>"$tree/$file"
        says cppcheck src/base/known.c:4
        git -C "$tree" reset -q --hard
        git -C "$tree" clean -q -f -d
done
mkdir "$tree/src/arbiter"
write src/arbiter/x.c '#include "made.h"' 'int x(int a);' 'int x(int a) {' '        return a / 0;' '}'
commit 'arbiter: include what is generated' 'Its input is another file.'
CI_BASE=HEAD^ says cppcheck src/arbiter/x.c:5
git -C "$tree" tag -f base >/dev/null
echo 1 >"$tree/src/arbiter/made.txt"
commit 'arbiter: change the input' 'What is made of it counts as changed.'
says cppcheck src/arbiter/x.c:5
write src/arbiter/step.h '#pragma once'
echo "x = ['-include', 'step.h']" >"$tree/src/share/meson.build"
commit 'arbiter: include by an option' 'No file shows it.'
git -C "$tree" tag -f base >/dev/null
write src/arbiter/step.h '#pragma once' '#define A'
commit 'arbiter: change that header' 'It stands for all.'
says cppcheck src/base/known.c:4
unset CI_BASE

fresh
mkdir -p "$tree/docs/reference" "$tree/deploy"
write src/wire/key.h '#pragma once' '#define KEY "aliquot.dev/thing"'
printf '| `aliquot.dev/thing: disabled` | it |\n' >"$tree/docs/reference/reference.md"
says reference
printf 'Not `aliquot.dev/thing`.\n| it | `aliquot.dev/other` |\n' >"$tree/docs/reference/reference.md"
says reference
printf '| `aliquot.dev/things` | it |\n' >"$tree/docs/reference/reference.md"
says reference 'src/wire/key.h: aliquot.dev/thing is not in docs/reference/reference.md'
says reference 'docs/reference/reference.md:1: aliquot.dev/things is not in the source'
printf '| `aliquot.dev/thing` | it |\n' >"$tree/docs/reference/reference.md"
echo 'aliquot.dev/gone' >"$tree/docs/reference/names.txt"
says reference 'docs/reference/names.txt: aliquot.dev/gone was promised'
rm "$tree/docs/reference/names.txt"
write src/base/metric.c '#define REASON_BAD "GPUBad"' 'f("aliquot_node_x_bucket{le=");'
says reference 'src/base/metric.c: GPUBad is not in'
says reference 'src/base/metric.c: aliquot_node_x is not in'
rm "$tree/src/base/metric.c"
mkdir -p "$tree/docs/operate" "$tree/deploy/helm/aliquot"
printf 'gangs: true\npage:\n  port: 1\n' >"$tree/deploy/helm/aliquot/values.yaml"
printf '# The chart\n\n## Values\n\n| `gangs`, `page.port` | it |\n\n## Images\n\n| `tag` | it |\n' >"$tree/docs/operate/chart.md"
says reference
printf '\n## Values\n\n| `gangs`, `pages` | `page` |\n' >"$tree/docs/operate/chart.md"
says reference 'deploy/helm/aliquot/values.yaml: page is not in docs/operate/chart.md'
says reference 'docs/operate/chart.md: pages is no value of the chart'
rm "$tree/docs/operate/chart.md"
echo '- containerPort: 99' >"$tree/deploy/x.yaml"
says reference 'deploy/x.yaml: 99 is not in'

fresh
echo "executable('nobody', 'main.c')" >"$tree/meson.build"
says man 'meson.build: no man page man/nobody.1'
printf '.Dd now\n.Sh NAME\n' >"$tree/man/nobody.1"
says man 'nobody.1'
fresh
printf '#!/bin/bash\nrm $1\n' >"$tree/scripts/x.sh"
says shell 'SC2086'

fresh
write src/wire/x.h '#pragma once' '#include "share/y.h"'
write src/share/y.h '#pragma once' '#include "wire/x.h"'
says house 'circle: share wire'
fresh
write src/wire/x.h '#pragma once' '#include "wire/y.h"'
write src/wire/y.h '#pragma once' '#include "wire/x.h"'
says house 'circle: src/wire/x src/wire/y'
fresh
for room in a b c d e f g h i j k l m n o; do
        mkdir "$tree/src/$room"
        write "src/$room/$room.h" '#pragma once'
done
says house '17 rooms (at most 16)'

fresh
for i in {1..40}; do write "src/share/x$i.c" 'int x;'; done
says house
write src/share/x41.c 'int x;'
says house 'src/share: 41 .c files in one folder (at most 40)'

fresh
write src/kube/good.h '#pragma once'
says names 'good: a file of this name is in src/kube, src/wire'
fresh
write src/wire/good.h '#pragma once' 'int good(int a);' 'typedef struct Thing {' '        int a;' '} Thing;'
says names
write src/kube/thing.h '#pragma once' 'typedef struct Thing Thing;' 'struct Thing {' '        int b;' '};'
says names 'Thing: a type of this name is in src/kube/thing.h, src/wire/good.h'
rm "$tree/src/kube/thing.h"
write src/kube/alone.c 'static int x;'
says names 'src/kube/alone.c:1: no header of its own'
write src/kube/room.h '#pragma once' '/* One of two files, with alone.c. */' 'void room_enter(void);' 'void kube_enter(void);'
says names
write src/kube/room.h '#pragma once' '/* One of two files, with alone.c. */' 'void *other_enter(void);'
says names 'src/kube/room.h:4: other_enter() begins with none of room, kube'
rm "$tree/src/kube/room.h" "$tree/src/kube/alone.c"
long=()
for i in {1..150}; do long+=("/* $i */"); done
write src/wire/good.c 'static int find(int a) {' '        return a;' '}'
says names
write src/wire/good.c "${long[@]}" 'static int find_a(int a) {' '        return a;' '}' 'static int x = sizeof(int);'
says names
write src/wire/good.c "${long[@]}" 'static int find(int a) {' '        return a;' '}'
says names 'src/wire/good.c:152: find() has one word'

fresh
mkdir "$tree/src/arbiter"
write src/arbiter/x.c '#define WAIT UINT64_C(100000)'
says tunables 'src/arbiter/x.c:2: the time constant WAIT belongs into src/arbiter/tunables.h'
write src/arbiter/x.c 'enum { COUNT = 4 };' 'enum {' '        WAIT_US = 20,' '};'
says tunables 'src/arbiter/x.c:4: the time constant WAIT_US'
rm "$tree/src/arbiter/x.c"
write src/arbiter/tunables.h '#pragma once' '#define WAIT_NS UINT64_C(100000) /* the longest wait */'
says tunables 'src/arbiter/tunables.h:3: WAIT_NS says neither'
write src/arbiter/tunables.h '#pragma once' '#define WAIT_NS UINT64_C(100000) /* the longest wait; guess */'
says tunables

fresh
mkdir -p "$tree/sim/cuda" "$tree/tests/gpu"
write sim/cuda/names_x.h '#define SERVED_X(X) X(cuInit, cuInit, 2000, false) X(cuMemAlloc, cuMemAlloc_v2, 3020, false)'
write src/base/x.c 'int cuInit(unsigned flags);'
says served 'sim/cuda: nothing hooks or calls cuMemAlloc'
write tests/gpu/x.c 'int cuMemAlloc_v2(void);'
says served

fresh
write src/base/x.c '/* Who asks, whose card it is, and whether somebody told him. */'
says prose 'src/base/x.c:2: "Who": src/base has '
write src/base/x.c '/* The caller "who asks" takes `who` as it is: whose, who, who. */'
says prose
write src/base/x.c "/* $(printf 'word %.0s' {1..15})" " * $(printf 'word %.0s' {1..16}) */"
says prose 'src/base/x.c:2: a sentence of 31 words'
write src/base/x.c "/* $(printf 'word %.0s' {1..15})" ' *' " * $(printf 'word %.0s' {1..16}) */"
says prose
write src/base/x.c "/* $(printf '0123456789%.0s' {1..10}) */"
says prose 'src/base/x.c:2: a comment line of more than 100 columns'
write src/base/x.c '/* This was measured as 3.5 ms. */'
says prose 'src/base/x.c:2: a measured figure'
rm "$tree/src/base/x.c"
printf '"""%s"""\n' "$(printf 'word %.0s' {1..31})" >"$tree/scripts/x.py"
says prose 'scripts/x.py:1: a sentence of 31 words'
printf 'x = """\n# %s\n"""\n' "$(printf 'word %.0s' {1..31})" >"$tree/scripts/x.py"
says prose
rm "$tree/scripts/x.py"
mkdir "$tree/docs"
{ echo '# Long'; for ((i = 0; i < 250; i++)); do echo 'One two three four five six seven eight nine ten eleven.'; done; } >"$tree/docs/long.md"
says prose 'docs/long.md:1: a page of 27'

fresh
printf '#!/usr/bin/env python3\n# SPDX-License-Identifier: Apache-2.0\nprint(nothing)\n' >"$tree/scripts/x.py"
says python "undefined name 'nothing'"

fresh
printf "project('x', 'c')\ntest('here', find_program('true'))\n" >"$tree/meson.build"
rm -rf "$tree/build"
meson setup "$tree/build" "$tree" >"$tree/scripts/log" 2>&1
echo 'here it needs another machine' >"$tree/tests/skips.txt"
says skips
echo 'here' >"$tree/tests/skips.txt"
says skips 'tests/skips.txt: here has no reason'
echo 'gone it needs another machine' >"$tree/tests/skips.txt"
says skips 'tests/skips.txt: there is no test gone'
rm "$tree/tests/skips.txt"
echo 'her* it has nothing for a sanitizer' >"$tree/tests/plain.txt"
says skips
echo 'her it has nothing for a sanitizer' >"$tree/tests/plain.txt"
says skips 'tests/plain.txt: there is no test her'

fresh
commit 'what came before the check is not judged' ''
says commits
commit 'wire: read lists' 'They are short.'
says commits
commit 'Some change' 'It has a reason.'
says commits 'the subject is not `room: what`: Some change'
commit 'wire: read lists' ''
says commits 'no body that says why: wire: read lists'
commit "wire: $(printf 'x%.0s' {1..70})" 'It has a reason.'
says commits 'the subject has 76 columns, at most 72'

echo "$n examples"
exit "$bad"
