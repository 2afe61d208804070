#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Functions that stand before the gate's, by LD_PRELOAD or in the program itself: the driver's
library calls the gate all the same.

    front.py LIBRARY ALIQUOT_SIM FOLDER CC...
"""
import glob
import os
import shutil
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "fake"))

import slice_page  # noqa: E402
from sim_lab import Machine, enter_namespace  # noqa: E402

LIBRARY, SIM, FOLDER, CC = *(os.path.abspath(a) for a in sys.argv[1:4]), sys.argv[4:]
FAKE = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "fake")
MIB = 1 << 20
REAL = os.environ.get("FRONTS", "/usr/lib")
PATIENCE = 120

# What a program gets of a slice: managed memory in blocks of 10 MiB, one of them again after it was
# freed, and the rest as plain memory.
PROGRAM = r"""
#include <dlfcn.h>
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

/* No page changes its rights any more. */
static void forbid(void) {
        struct sock_filter filter[] = {
                BPF_STMT(BPF_LD | BPF_W | BPF_ABS, 0),
                BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_mprotect, 0, 1),
                BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
                BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
        };
        struct sock_fprog program = {sizeof filter / sizeof *filter, filter};
        if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program))
                exit(77);
}

static void *begin(void *init) {
        return (void *) (long) ((int (*)(unsigned)) init)(0);
}

/* Several threads at once. */
static int all(int (*init)(unsigned)) {
        pthread_t threads[8];
        void *r, *bad = NULL;
        for (int i = 0; i < 8; i++)
                pthread_create(&threads[i], NULL, begin, init);
        for (int i = 0; i < 8; i++) {
                pthread_join(threads[i], &r);
                bad = r ? r : bad;
        }
        return (int) (long) bad;
}

#ifdef LINKED
#define GET(f) f
int cuInit(unsigned), cuCtxCreate_v2(void **, unsigned, int), cuMemAllocManaged(void **, size_t, unsigned);
int cuMemAlloc_v2(void **, size_t), cuMemFree_v2(void *);
#else
#define GET(f) dlsym(cuda, #f)
#endif
int main(void) {
        void *context, *at, *first = NULL;
        int managed = 0, again, plain = 0, r;
#ifndef LINKED
        void *cuda = dlopen("libcuda.so.1", RTLD_NOW);
        if (!cuda)
                return puts(dlerror()), 1;
#endif
        int (*init)(unsigned) = GET(cuInit), (*create)(void **, unsigned, int) = GET(cuCtxCreate_v2);
        int (*map)(void **, size_t, unsigned) = GET(cuMemAllocManaged), (*allocate)(void **, size_t) = GET(cuMemAlloc_v2);
        int (*release)(void *) = GET(cuMemFree_v2);
        if (getenv("FORBIDS"))
                forbid();
        if ((r = getenv("FORBIDS") ? init(0) : all(init)) != 0 || (r = create(&context, 0, 0)) != 0)
                return printf("error %d\n", r), 1;
        for (; managed < 50 && map(&at, 10 << 20, 1) == 0; managed++)
                first = at;
        again = first && release(first) == 0 && map(&at, 10 << 20, 1) == 0 && map(&at, 10 << 20, 1) != 0 && release(at) == 0;
        for (; plain < 50 && allocate(&at, 4 << 20) == 0; plain++)
                ;
        printf("%d %d %d\n", managed, again, plain);
        return 0;
}
"""

LAUNCHER = r"""
#include <stdio.h>
int cuLaunchKernel(void *f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz, unsigned shared, void *stream,
                   void **params, void **extra);
int main(void) {
        printf("%d\n", cuLaunchKernel(0, 1, 1, 1, 1, 1, 1, 0, 0, 0, 0));
        return 0;
}
"""

OPENER = r"""
#include <dlfcn.h>
#include <stdio.h>
int main(int n, char **arguments) {
        void *library = dlopen(arguments[1], RTLD_LAZY);
        void (*use)(void) = library ? dlsym(library, "use_uvm") : NULL;
        if (!use)
                return puts(dlerror()), 1;
        use();
        return 0;
}
"""

FRONTS = {"maps": ["-DMAPS"], "all": ["-DMAPS", "-DIOCTL"], "ioctl": ["-DIOCTL"]}


class Front(unittest.TestCase):
    maxDiff = None

    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.base = folder.name
        for name, text in (("program", PROGRAM), ("opener", OPENER), ("launcher", LAUNCHER)):
            with open("%s/%s.c" % (cls.base, name), "w") as f:
                f.write(text)

    def setUp(self):
        self.machine = Machine(self, SIM, "T:1GiB")
        self.slices = self.slice_of(100)

    def made(self, name, *flags):
        path = "%s/%s" % (self.base, name)
        if not os.path.exists(path):
            subprocess.run(CC + ["-std=gnu11", "-w", "-O2", "-pthread", "-o", path, *flags, "-ldl"], check=True)
        return path

    def front(self, name, *flags):
        return self.made("lib%s.so" % name, "-shared", "-fPIC", *flags, FAKE + "/interposer-before.c")

    def slice_of(self, mib, flags=0):
        base = tempfile.mkdtemp(dir=self.base)
        files = [self.machine.dir + "/" + name for name in ("nvidiactl", "nvidia0", "nvidia-uvm")]
        os.mkdir(base + "/0")
        for name, data in (("limits", slice_page.limits(mib * MIB, flags=flags, files=files)), ("counters", slice_page.counters())):
            with open("%s/0/%s" % (base, name), "wb") as f:
                f.write(data)
        os.mkfifo(base + "/0/doorbell")
        return base

    def said(self, *command, fronts=(), slices=None, **more):
        environment = dict(os.environ, LD_PRELOAD=" ".join([*fronts, LIBRARY]), ALIQUOT_SLICES=slices or self.slices,
                           ALIQUOT_SIM_DIR=self.machine.dir, LD_LIBRARY_PATH=":".join([FOLDER, *glob.glob(REAL + "/*-linux-gnu")]), **more)
        p = subprocess.run(command, env=environment, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=PATIENCE, check=False)
        self.assertEqual(p.stderr, "")
        return p.stdout

    CUDA = ["-Wl,--no-as-needed", "-L" + FOLDER, "-l:libcuda.so.1"]

    def programs(self):
        return (self.made("opens", self.base + "/program.c"), self.made("linked", "-DLINKED", self.base + "/program.c", *self.CUDA))

    def alone(self, *command):
        words = self.said(*command)
        self.assertRegex(words, r"^[3-9] 1 \d\n$")
        return words

    def test_in_front(self):
        """By LD_PRELOAD, whichever calls the library makes by itself: the program gets as much as
        without it."""
        for program in self.programs():
            expected = self.alone(program)
            for name, flags in FRONTS.items():
                with self.subTest(program=os.path.basename(program), front=name):
                    self.assertEqual(self.said(program, fronts=[self.front(name, *flags)]), expected)

    def test_linked_in(self):
        for name, flags in FRONTS.items():
            program = self.made("with-" + name, "-rdynamic", *flags, self.base + "/program.c", FAKE + "/interposer-before.c")
            with self.subTest(front=name):
                self.assertEqual(self.said(program), self.alone(self.programs()[0]))

    def test_a_library_that_passes_on(self):
        """A library that passes calls on sees the driver's mappings as usual. When a library behind
        it does not pass them on, the gate passes over both."""
        maps = self.front("maps", "-DMAPS")
        for name, flags in (("passes", []), ("handle", ["-DBY_HANDLE"])):
            with self.subTest(front=name):
                self.check_passing(self.front(name, "-DPASSES", *flags), maps)

    def check_passing(self, passes, maps):
        for program in self.programs():
            words = self.alone(program)
            seen = "seen %d\n" % (int(words.split()[0]) + 3)
            self.assertEqual(self.said(program, fronts=[passes], FRONT_SAYS="1"), words + seen)
            self.assertEqual(self.said(program, fronts=[passes, maps]), words)

    def test_address_sanitizer(self):
        """In the program itself, as clang links it: it passes calls on, stays in front, and works.
        """
        expected = self.alone(self.programs()[0])
        try:
            program = self.made("sanitized", "-fsanitize=address", "-static-libasan" if "gcc" in self.version() else "-static-libsan",
                                self.base + "/program.c")
        except subprocess.CalledProcessError:
            self.skipTest("no AddressSanitizer here")
        self.assertEqual(self.said("setarch", "-R", program, ASAN_OPTIONS="detect_leaks=0"), expected)

    def version(self):
        return "clang" if "clang" in subprocess.run(CC + ["--version"], capture_output=True, text=True, check=True).stdout else "gcc"

    def test_that_cannot_be_had(self):
        """Where page protection cannot be changed, libcuda does not initialise, with a library in
        front or without."""
        for program in self.programs():
            self.assertEqual(self.said(program, FORBIDS="1"), self.alone(program))
            self.assertEqual(self.said(program, fronts=[self.front("maps", "-DMAPS")], FORBIDS="1"), "error 304\n")
            self.assertEqual(self.said(program, fronts=[self.front("passes", "-DPASSES")], FORBIDS="1"), self.alone(program))

    def test_another_gate(self):
        """A copy of the gate from another file, in front: it is a gate as well, and memory is
        counted once."""
        other = self.base + "/libother.so"
        shutil.copy(LIBRARY, other)
        for program in self.programs():
            expected = self.alone(program)
            self.assertEqual(self.said(program, fronts=[other]), expected)
            self.assertEqual(self.said(program, fronts=[self.front("maps", "-DMAPS"), other]), expected)

    def test_names_of_libcuda(self):
        """A program that loads libcuda by itself may have such a library and an allocator."""
        program = self.made("with-names", "-rdynamic", "-DMAPS", "-DLAUNCHES", self.base + "/program.c", FAKE + "/interposer-before.c")
        self.assertEqual(self.said(program), self.alone(self.programs()[0]))

    def test_launches(self):
        """A library in front of a launch that asks for the next function gets the gate's."""
        launcher = self.made("launcher", self.base + "/launcher.c", *self.CUDA)
        alone = self.said(launcher)
        self.assertEqual(self.said(launcher, fronts=[self.front("launches", "-DLAUNCHES")]), "launch " + alone)

    def test_without_a_limit(self):
        """Nothing is changed."""
        opened = self.slice_of(100, flags=1)
        maps = self.front("maps", "-DMAPS")
        self.assertEqual(self.said(self.programs()[0], fronts=[maps], slices=opened, FRONT_SAYS="1").split()[0::4], ["50", "52"])

    LIBRARIES = {"lazy": ["-Wl,-z,lazy"], "now": ["-Wl,-z,now"], "lazy-sealed": ["-Wl,-z,lazy,-z,relro"],
                 "open": ["-Wl,-z,now,-z,norelro"], "without-plt": ["-fno-plt"], "old-hash": ["-Wl,--hash-style=sysv,-z,now"]}

    def test_other_libraries(self):
        """A program or library that initialises uvm, however it was built."""
        opener = self.made("opener", self.base + "/opener.c")
        fronted = self.made("opener-with-maps", "-rdynamic", "-DMAPS", self.base + "/opener.c", FAKE + "/interposer-before.c")
        fixed = self.made("opener-fixed", "-no-pie", "-fno-pie", self.base + "/opener.c")
        maps = self.front("maps", "-DMAPS")
        for name, flags in self.LIBRARIES.items():
            library = self.made("libuvm-%s.so" % name, "-shared", "-fPIC", *flags, FAKE + "/uvm-user.c")
            with self.subTest(library=name):
                self.assertEqual(self.said(opener, library), "10 1\n")
                self.assertEqual(self.said(opener, library, fronts=[maps]), "10 1\n")
                self.assertEqual(self.said(fixed, library, fronts=[maps]), "10 1\n")
                self.assertEqual(self.said(fronted, library), "10 1\n")

    def test_programs_of_the_driver(self):
        """The program itself initialises uvm. A program with an allocator inside calls the function
        without a slot, and is refused."""
        maps, own = self.front("maps", "-DMAPS"), ["-rdynamic", "-DMAPS", FAKE + "/interposer-before.c"]
        for name, flags in (("pie", ["-fPIE", "-pie"]), ("fixed", ["-no-pie", "-fno-pie"])):
            with self.subTest(program=name):
                program = self.made("uvm-" + name, "-DPROGRAM", *flags, FAKE + "/uvm-user.c")
                self.assertEqual(self.said(program), "10 1\n")
                self.assertEqual(self.said(program, fronts=[maps]), "10 1\n")
        program = self.made("uvm-own", "-DPROGRAM", *own, FAKE + "/uvm-user.c")
        self.assertEqual(self.said(program), "no uvm: 12, status 0\n")
        passing = self.made("uvm-passes", "-DPROGRAM", "-rdynamic", "-DPASSES", FAKE + "/interposer-before.c", FAKE + "/uvm-user.c")
        self.assertEqual(self.said(passing), "10 1\n")

    def test_real_ones(self):
        """Where they are installed: tcmalloc maps by system calls of its own, libv4l makes its
        ioctl() by them."""
        fronts = [p for name in ("*/libtcmalloc*.so.4", "*/libv4l/v4l[12]*.so") for p in sorted(glob.glob(REAL + "/" + name))]
        if not fronts:
            self.skipTest("neither libtcmalloc nor libv4l is here (packages libtcmalloc-minimal4, libgoogle-perftools4, libv4l-0)")
        for program in self.programs():
            expected = self.alone(program)
            for front in fronts:
                with self.subTest(program=os.path.basename(program), front=os.path.basename(front)):
                    self.assertEqual(self.said(program, fronts=[front]), expected)


if __name__ == "__main__":
    if os.environ.get("ASAN_OPTIONS"):
        print("skipped: the simulated libraries are sanitized here, and the programs that load them are not")
        sys.exit(77)
    enter_namespace(SIM)
    unittest.main(argv=sys.argv[:1], verbosity=2, defaultTest=os.environ.get("ONLY"))
