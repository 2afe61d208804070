/* SPDX-License-Identifier: Apache-2.0 */

/* gpu-case NAME [ARGUMENT...]: one use of a card by a program, for tests/gpu/run.py. */

#include "case.h"

#include <dlfcn.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

/* ---- libraries ---- */

static void *find_in(const char *soname, const char *name) {
        void *library = dlopen(soname, RTLD_NOW | RTLD_GLOBAL);

        if (!library)
                case_skip("%s", dlerror());
        return dlsym(library, name);
}

void *case_find(const char *name) {
        void *found = find_in(strncmp(name, "nvml", 4) == 0 ? "libnvidia-ml.so.1" : "libcuda.so.1", name);

        if (!found)
                case_skip("the driver's library has no %s", name);
        return found;
}

/* ---- words ---- */

__attribute__((format(printf, 3, 0))) static _Noreturn void end(int status, const char *what,
                                                                const char *format, va_list arguments) {
        (void) printf("%s: ", what);
        (void) vprintf(format, arguments);
        (void) printf("\n");
        (void) fflush(stdout);
        _exit(status);
}

void case_fail(const char *format, ...) {
        va_list arguments;

        va_start(arguments, format);
        end(1, "fail", format, arguments);
}

void case_skip(const char *format, ...) {
        va_list arguments;

        va_start(arguments, format);
        end(77, "skip", format, arguments);
}

void case_check(int r, const char *call, const char *file, int line) {
        const char *slash = strrchr(file, '/');

        if (r != 0)
                case_fail("%s:%d: %s is %d", slash ? slash + 1 : file, line, call, r);
}

void case_say(const char *key, unsigned long long value) {
        (void) printf("%s %llu\n", key, value);
        (void) fflush(stdout);
}

void case_mark(const char *place) {
        char line[16];

        (void) printf("== %s\n", place);
        (void) fflush(stdout);
        (void) !fgets(line, sizeof line, stdin);
}

unsigned long long case_now(void) {
        struct timespec t;

        (void) clock_gettime(CLOCK_MONOTONIC, &t);
        return (unsigned long long) t.tv_sec * 1000000000ull + (unsigned long long) t.tv_nsec;
}

/* ---- the card ---- */

CUcontext case_begin(void) {
        CUcontext c = NULL;

        OK(CU(cuInit)(0));
        OK(CU(cuCtxCreate_v2)(&c, 0, 0));
        return c;
}

/* ---- which ---- */

static const struct {
        const char *name;
        int n;
        int (*run)(char **arguments);
} cases[] = {
        {"agree", 0, case_agree},     {"family", 2, case_family},   {"over", 2, case_over},
        {"fill", 1, case_fill},       {"hold", 1, case_hold},       {"contexts", 1, case_contexts},
        {"threads", 2, case_threads}, {"forked", 1, case_forked},   {"ipc", 1, case_ipc},
        {"shared", 1, case_shared},   {"race", 2, case_race},       {"crowd", 2, case_crowd},
        {"time", 1, case_time},       {"probe", 0, case_probe},     {"rate", 1, case_rate},
        {"work", 5, case_work},       {"gaps", 1, case_gaps},       {"latency", 0, case_latency},
        {"limits", 1, case_limits},   {"limited", 1, case_limited},
};

int main(int argc, char **argv) {
        (void) prctl(PR_SET_PDEATHSIG, SIGKILL);
        (void) signal(SIGPIPE, SIG_IGN);
        case_say("pid", (unsigned long long) getpid());
        for (size_t i = 0; argc > 1 && i < sizeof cases / sizeof *cases; i++)
                if (strcmp(cases[i].name, argv[1]) == 0 && argc - 2 == cases[i].n)
                        return cases[i].run(argv + 2);
        (void) fprintf(stderr,
                       "usage: gpu-case CASE [ARGUMENT...]; the cases are those of tests/gpu/run.py\n");
        return 2;
}
