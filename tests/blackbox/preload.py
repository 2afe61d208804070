#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""libaliquot.so in programs without a GPU: it must not change their behaviour.

    preload.py LIBRARY CC
"""
import os
import shutil
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "fake"))

import page as layout  # noqa: E402
import slice_page  # noqa: E402

LIBRARY, CC = os.path.abspath(sys.argv[1]), sys.argv[2:]
PRELOAD = "/etc/ld.so.preload"
INTERPOSER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../fake/interposer-behind.c")

# Every libc function that the library interposes, with result and errno; and a use of stack and
# heap that ASan accepts.
PROGRAM = r"""
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <pthread.h>
#include <unistd.h>

#define CHECK(e) do { if (!(e)) { fprintf(stderr, "line %d: %s, errno %d\n", __LINE__, #e, errno); exit(1); } } while (0)

static void *thread(void *unused) {
        for (int i = 0; i < 1000; i++) {
                char block[184] = "";
                errno = 0;
                CHECK(ioctl(-1, 0xC020462B, block) == -1 && errno == EBADF);
                CHECK(ioctl(0, 0xC0B8464A, block) == -1 && errno != 0);
        }
        return unused;
}

int main(void) {
        int fds[2], n = -1;
        pthread_t threads[8];
        void *p;

        CHECK(pipe(fds) == 0 && write(fds[1], "12345", 5) == 5);
        CHECK(ioctl(fds[0], FIONREAD, &n) == 0 && n == 5);
        errno = 0;
        CHECK(ioctl(fds[0], TIOCGWINSZ, &n) == -1 && errno == ENOTTY);
        CHECK(ioctl(fds[0], 0xC020462B, (void *) 8) == -1 && errno == ENOTTY);
        p = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        CHECK(p != MAP_FAILED);
        memset(p, 1, 8192);
        p = mremap(p, 8192, 1 << 20, MREMAP_MAYMOVE);
        CHECK(p != MAP_FAILED && *(char *) p == 1);
        CHECK(mremap(p, 1 << 20, 8192, 0) == p);
        CHECK(mremap((void *) 1, 4096, 4096, 0) == MAP_FAILED && errno == EINVAL);
        CHECK(munmap(p, 8192) == 0);
        errno = 0;
        CHECK(mmap(NULL, 4096, PROT_READ, MAP_SHARED, -1, 0) == MAP_FAILED && errno == EBADF);
        CHECK(munmap((void *) 1, 4096) == -1 && errno == EINVAL);
        CHECK(mmap(NULL, 0, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) == MAP_FAILED && errno == EINVAL);
        for (int i = 0; i < 8; i++)
                CHECK(pthread_create(&threads[i], NULL, thread, NULL) == 0);
        for (int i = 0; i < 20; i++) {
                pid_t pid = fork();
                int status;
                CHECK(pid >= 0);
                if (pid == 0) {
                        thread(NULL);
                        _exit(7);
                }
                CHECK(waitpid(pid, &status, 0) == pid && WIFEXITED(status) && WEXITSTATUS(status) == 7);
        }
        for (int i = 0; i < 8; i++)
                CHECK(pthread_join(threads[i], NULL) == 0);
        free(malloc(1 << 22));
        puts("fine");
        return 0;
}
"""

USER = r"""
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

extern int seen[4], jump;
extern jmp_buf back;

static void *thread(void *unused) {
        void *p = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        memset(p, 1, 8192);
        munmap(p, 8192);
        return unused;
}

int main(void) {
        char block[184] = "";
        pthread_t threads[8];
        int before[4];
        void *p;

        memcpy(before, seen, sizeof before);
        p = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        p = mremap(p, 8192, 1 << 20, MREMAP_MAYMOVE);
        *(char *) p = 1;
        jump = 1;
        if (setjmp(back) == 0)
                munmap(p, 1 << 20);
        jump = 0;
        printf("%d", munmap(p, 1 << 20));
        printf(" %d", munmap((void *) 1, 4096));
        printf(" %d", errno);
        printf(" %d", mmap(NULL, 4096, PROT_READ, MAP_SHARED, -1, 0) == MAP_FAILED);
        printf(" %d", errno);
        printf(" %d", ioctl(-1, 0xC020462B, block)); /* as one for the driver looks */
        printf(" %d", errno);
        printf(" %d", ioctl(0, 0xC0B8464A, block));
        printf(" %d:", errno);
        printf(" %d %d %d %d", seen[0] - before[0], seen[1] - before[1], seen[2] - before[2], seen[3] - before[3]);
        for (int i = 0; i < 8; i++)
                pthread_create(&threads[i], NULL, thread, NULL);
        for (int i = 0; i < 8; i++)
                pthread_join(threads[i], NULL);
        puts(seen[0] - before[0] >= 10 ? " fine" : " too few");
        return 0;
}
"""

# Opens a library that opens another one beside itself, and prints which function each calls: its
# own or the program's.
OPENER = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

const char *whose(void) { return "the program's"; }

int main(int argc, char **argv) {
        const char *beside = dlopen("libbeside.so", RTLD_NOW) ? "found" : "not found";
        void *library = dlopen(argv[1], RTLD_NOW | atoi(argv[2]));
        void (*say)(void) = library ? dlsym(library, "say") : NULL;
        if (!say)
                puts(dlerror());
        else
                say();
        puts(beside);
        return 0;
}
"""

OPENED = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>

const char *whose(void) { return "its own"; }

void say(void) {
        Dl_info info;
        printf("%s, ", whose());
        printf("%s, ", dladdr((void *) ioctl, &info) && strstr(info.dli_fname, "libaliquot") ? "the gate's" : "libc's");
        printf("%s, ", dlopen("libbeside.so", RTLD_NOW) ? "found" : "not found");
}
"""

# Another library that interposes the C library's dlopen().
BEHIND = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>

void *dlopen(const char *path, int mode) {
        static void *(*real)(const char *, int);
        if (!real)
                real = dlsym(BY_HANDLE ? dlmopen(LM_ID_BASE, "libc.so.6", RTLD_NOW | RTLD_NOLOAD) : RTLD_NEXT, "dlopen");
        printf(mode & RTLD_DEEPBIND ? "deep " : "plain ");
        return real ? real(path, mode) : NULL;
}
"""


class Preload(unittest.TestCase):
    maxDiff = None

    @classmethod
    def setUpClass(cls):
        cls.base = tempfile.mkdtemp(prefix="preload-")
        with open(cls.base + "/program.c", "w") as f:
            f.write(PROGRAM)
        os.mkdir(cls.base + "/slices")

    @classmethod
    def tearDownClass(cls):
        shutil.rmtree(cls.base)

    def compiled(self, *flags):
        path = "%s/program%s" % (self.base, "".join(flags).replace("=", "").replace(",", ""))
        command = CC + ["-w", "-pthread", *flags, self.base + "/program.c", "-o", path]
        result = subprocess.run(command, capture_output=True, text=True, check=False)
        if result.returncode != 0:
            self.skipTest("cannot be built here: " + result.stderr.strip().splitlines()[-1])
        return path

    def both(self, *command, **environment):
        """With the library and without: the same output and exit status. Also with a slice
        directory."""
        plain = dict(os.environ, **environment)
        plain.pop("LD_PRELOAD", None)
        expected = subprocess.run(command, env=plain, capture_output=True, text=True, check=False)
        for more in ({}, {"ALIQUOT_SLICES": self.base + "/slices"}, {"ALIQUOT_SLICES": self.base + "/absent"}):
            result = subprocess.run(command, env=dict(plain, LD_PRELOAD=LIBRARY, **more), capture_output=True, text=True,
                                    check=False)
            self.assertEqual((result.returncode, result.stdout, result.stderr),
                             (expected.returncode, expected.stdout, expected.stderr))
        return expected

    def test_programs(self):
        self.assertEqual(self.both("/bin/true").returncode, 0)
        self.assertEqual(self.both("/bin/sh", "-c", "echo $((6 * 7)); exit 3").stdout, "42\n")
        self.assertEqual(self.both("bash", "-c", "for i in 1 2 3; do (echo $i | cat) & wait; done").stdout, "1\n2\n3\n")
        code = "import mmap, subprocess; m = mmap.mmap(-1, 9); m.close(); print(subprocess.run(['echo', 'x']).returncode)"
        self.assertEqual(self.both("python3", "-c", code).stdout, "x\n0\n")

    def test_interposed_names(self):
        self.assertEqual(self.both(self.compiled()).stdout, "fine\n")

    def user_of_interposer(self, *flags):
        """A program with a library of its own that interposes libc; it follows ours in the search
        order."""
        name = "behind" + "".join(flags).replace("-", "")
        library = "%s/lib%s.so" % (self.base, name)
        with open("%s/%s-user.c" % (self.base, name), "w") as f:
            f.write(USER)
        make = CC + ["-w", "-O2", "-pthread"]
        subprocess.run(make + ["-shared", "-fPIC", *flags, INTERPOSER, "-o", library, "-ldl"], check=True)
        subprocess.run(make + ["%s/%s-user.c" % (self.base, name), "-o", "%s/%s" % (self.base, name), "-Wl,--no-as-needed",
                               "-L" + self.base, "-l" + name, "-Wl,-rpath," + self.base], check=True)
        return "%s/%s" % (self.base, name)

    SEEN = "0 -1 22 1 9 -1 9 -1 25: 2 3 1 2 fine\n"

    def test_a_library_behind_sees_all_calls(self):
        """It is called as without the gate, with a slice and without; its results reach the kernel.
        """
        with open("/dev/null") as null:
            for flags in ((), ("-DBY_HANDLE",), ("-DGUARD", "-DBY_HANDLE"), ("-fno-optimize-sibling-calls", "-DBY_HANDLE")):
                program = self.user_of_interposer(*flags)
                with self.subTest(flags=flags):
                    expected = subprocess.run([program], stdin=null, capture_output=True, text=True, check=True, timeout=120)
                    for more in ({}, {"ALIQUOT_SLICES": self.base + "/slices"}):
                        p = subprocess.run([program], stdin=null, capture_output=True, text=True, check=False, timeout=120,
                                           env=dict(os.environ, LD_PRELOAD=LIBRARY, **more))
                        self.assertEqual((p.returncode, p.stdout, p.stderr), (0, expected.stdout, ""))
                        self.assertEqual(p.stdout, self.SEEN)

    def opened(self, program, flag, behind="", **environment):
        p = subprocess.run([program, self.base + "/opened/libopened.so", str(flag)], capture_output=True, text=True, check=False,
                           env=dict(os.environ, LD_PRELOAD=LIBRARY + behind, **environment), timeout=120)
        self.assertEqual((p.returncode, p.stderr), (0, ""))
        return p.stdout

    def test_opened_libraries(self):
        """RTLD_DEEPBIND (8) passes only in processes without a slice. The search paths are in any
        case those of the library that opens."""
        beside = self.base + "/opened"
        os.mkdir(beside)
        for name, source in (("opener", OPENER), ("opened", OPENED), ("beside", "int beside;")):
            with open("%s/%s.c" % (self.base, name), "w") as f:
                f.write(source)
        library = ["-fPIC", "-shared", "-Wl,--enable-new-dtags,-rpath,$ORIGIN"]
        for name, flags, made in (("opener", ["-rdynamic"], self.base + "/opener"), ("opened", library, beside + "/libopened.so"),
                                  ("beside", library, beside + "/libbeside.so")):
            subprocess.run(CC + ["-w", *flags, "%s/%s.c" % (self.base, name), "-o", made, "-ldl"], check=True)
        opener, limits = self.base + "/opener", "the program's, the gate's, found, not found\n"
        self.assertEqual(self.opened(opener, 0), limits)
        self.assertEqual(self.opened(opener, 8), "its own, libc's, found, not found\n")
        for slices in (self.base + "/slices", self.base + "/absent"):
            for flag in (0, 8):
                self.assertEqual(self.opened(opener, flag, ALIQUOT_SLICES=slices), limits)
        self.assertEqual(self.opened(opener, 8, ALIQUOT_SLICES=self.open_slice()), "its own, libc's, found, not found\n")

        self.check_behind(opener)

    def check_behind(self, opener):
        """It is called once for each, however it finds the next function; for search paths it is
        then the caller."""
        with open(self.base + "/behind-dlopen.c", "w") as f:
            f.write(BEHIND)
        for by_handle in (0, 1):
            behind = "%s/behind-dlopen%d.so" % (self.base, by_handle)
            subprocess.run(CC + ["-w", "-fPIC", "-shared", "-DBY_HANDLE=%d" % by_handle, self.base + "/behind-dlopen.c", "-o", behind, "-ldl"],
                           check=True)
            with self.subTest(by_handle=by_handle):
                self.assertEqual(self.opened(opener, 8, " " + behind, ALIQUOT_SLICES=self.base + "/absent"),
                                 "plain plain the program's, the gate's, plain not found, not found\n")
                self.assertEqual(self.opened(opener, 8, " " + behind).split()[:2], ["plain", "deep"])

    def open_slice(self):
        """As in a container with isolation switched off."""
        os.makedirs(self.base + "/open/0")
        with open(self.base + "/open/0/limits", "wb") as f:
            f.write(slice_page.limits(0, flags=layout.FLAG_OPEN))
        return self.base + "/open"

    def test_static_program(self):
        self.assertEqual(self.both(self.compiled("-static")).stdout, "fine\n")

    def test_address_sanitizer(self):
        program = self.compiled("-fsanitize=address", "-g")
        command = ["setarch", "-R", program] if shutil.which("setarch") else [program]
        if subprocess.run(command[:-1] + ["true"], capture_output=True, check=False).returncode != 0:
            command = [program]
        # The sanitizer must be first, or it refuses to start. The library itself tells it not to
        # check: with ld.so.preload, nothing can be before the library.
        self.assertEqual(self.both(*command).stdout, "fine\n")
        self.assertEqual(self.both(*command, ASAN_OPTIONS="verify_asan_link_order=0").stdout, "fine\n")
        told = self.asan_says(command, ASAN_OPTIONS="verify_asan_link_order=1")
        self.assertTrue(told.startswith("==") and "does not come first" in told, told)

    def asan_says(self, command, **environment):
        return subprocess.run(command, env=dict(os.environ, LD_PRELOAD=LIBRARY, **environment), capture_output=True, text=True,
                              check=False).stderr

    def test_address_sanitizer_sees(self):
        """It finds the same symbols as without the gate; options of a library behind it apply, too.
        """
        with open(self.base + "/options.c", "w") as f:
            f.write('const char *__asan_default_options(void) { return "exitcode=42:color=never"; }\n')
        with open(self.base + "/overrun.c", "w") as f:
            f.write('#include <stdlib.h>\nint main(int n, char **v) { char *p = malloc(8); p[7 + n] = 1; return p[7 + n] - 1; }\n')
        make = CC + ["-w", "-g", "-fsanitize=address"]
        library, program = self.base + "/liboptions.so", self.base + "/overrun"
        for arguments in (["-fPIC", "-shared", self.base + "/options.c", "-o", library],
                          [self.base + "/overrun.c", "-o", program]):
            if subprocess.run(make + arguments, capture_output=True, check=False).returncode != 0:
                self.skipTest("no AddressSanitizer here")
        command = ["setarch", "-R", program] if shutil.which("setarch") else [program]
        for behind, code in (("", 1), (" " + library, 42)):
            p = subprocess.run(command, env=dict(os.environ, LD_PRELOAD=LIBRARY + behind), capture_output=True, text=True, check=False)
            self.assertIn("heap-buffer-overflow", p.stderr)
            self.assertEqual(p.returncode, code)

    def test_said_only_when_asked(self):
        result = subprocess.run([self.compiled()], env=dict(os.environ, LD_PRELOAD=LIBRARY, ALIQUOT_LOG="1"),
                                capture_output=True, text=True, check=True)
        self.assertEqual(result.stderr, "")

    def test_ld_so_preload(self):
        """As in a container: mounted over the system's file, so that it also applies to cleared
        environments."""
        script = r"""
        mount --make-rprivate / 2>/dev/null
        if [ ! -e %(preload)s ]; then
                mkdir %(base)s/etc && cp -a /etc/. %(base)s/etc/ 2>/dev/null
                mount --bind %(base)s/etc /etc || exit 77
        fi
        echo %(library)s >%(base)s/ld.so.preload
        touch %(preload)s && mount --bind %(base)s/ld.so.preload %(preload)s || exit 77
        env -i /bin/grep -c libaliquot /proc/self/maps || exit 1
        env -i bash -c 'echo login; exit 0' && env -i %(program)s
        """ % {"base": self.base, "preload": PRELOAD, "library": LIBRARY, "program": self.compiled()}
        result = subprocess.run(["unshare", "--user", "--map-root-user", "--mount", "sh", "-c", script], capture_output=True,
                                text=True, check=False)
        if result.returncode == 77 or "unshare" in result.stderr:
            result = subprocess.run(["unshare", "--mount", "sh", "-c", script], capture_output=True, text=True, check=False)
        if result.returncode == 77 or "unshare" in result.stderr:
            self.skipTest("no mount namespace is to be had: " + result.stderr.strip())
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        self.assertEqual(result.stdout.splitlines()[1:], ["login", "fine"])


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
