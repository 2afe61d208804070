#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The kubectl plugin has nothing of Linux: src/cli/inspect, and the headers of ours that it
# includes. Each system header is POSIX's, but for <getopt.h>, which BSD has, too. Each file
# compiles where the C library declares what POSIX.1-2008 has. Two functions of POSIX.1-2024 are
# declared here.
set -euo pipefail

posix=' aio arpa/inet assert complex cpio ctype dirent dlfcn errno fcntl fenv float fmtmsg fnmatch ftw glob grp iconv inttypes iso646
 langinfo libgen limits locale math monetary mqueue ndbm net/if netdb netinet/in netinet/tcp nl_types poll pthread pwd regex sched
 search semaphore setjmp signal spawn stdalign stdarg stdbool stddef stdint stdio stdlib stdnoreturn string strings stropts
 sys/ipc sys/mman sys/msg sys/resource sys/select sys/sem sys/shm sys/socket sys/stat sys/statvfs sys/time sys/times sys/types
 sys/uio sys/un sys/utsname sys/wait syslog tar termios time unistd utime wchar wctype wordexp getopt '
newer=$(mktemp --suffix=.h)
trap 'rm -f "$newer"' EXIT
cat >"$newer" <<'END'
#include <stddef.h>
void *reallocarray(void *p, size_t n, size_t size);
void *memmem(const void *text, size_t n, const void *part, size_t m);
END
bad=0
read -ra compiler <<<"${CC:-cc}"

while IFS= read -r file; do
        "${compiler[@]}" -std=c11 -D_POSIX_C_SOURCE=200809L -DALIQUOT_VERSION='""' -Isrc -include "$newer" -fsyntax-only \
                -Werror=implicit-function-declaration "$file" || bad=1
done < <(git ls-files --cached --others --exclude-standard 'src/cli/inspect/*.c')

while IFS=: read -r file line text; do
        header=${text#*<} header=${header%%>*}
        [[ $posix =~ [[:space:]]"${header%.h}"[[:space:]] ]] || { echo "$file:$line: <$header> is no header of POSIX"; bad=1; }
done < <(git ls-files --cached --others --exclude-standard 'src/cli/inspect/*.c' |
        xargs -r "${compiler[@]}" -Isrc -MM | grep -oE 'src/[^ ]+' | sort -u | xargs -r grep -HnE '^#include <' || true)
exit "$bad"
