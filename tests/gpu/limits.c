/* SPDX-License-Identifier: Apache-2.0 */

/* What a driver of 615 or later does with limits on the memory of a cgroup: the questions that
 * docs/internals/memory-limits.md leaves to a card. `limits ROOT` asks, and makes its cgroups below
 * ROOT, a mount of cgroup version 2. `limited CGROUP` is a process in one of them, which does
 * what the other tells it, a word and a number per line, and answers each line by a number. */

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "case.h"
#include "sim/user/driver.h"

#define NO_LIMIT   UINT64_MAX
#define PATH_BYTES 512
#define OBJECTS    4096

NvmlReturn nvmlShutdown(void);
NvmlReturn nvmlDeviceGetMemoryInfo_v2(NvmlHandle h, NvmlMemory2 *ret);
NvmlReturn nvmlDeviceSetMemoryLimits_v1(NvmlHandle h, NvmlSetLimits *p);
NvmlReturn nvmlDeviceGetMemoryLimits_v1(NvmlHandle h, NvmlGetLimits *p);

/* ---- the tenant ---- */

static struct {
        Driver driver;
        uint32_t objects[OBJECTS];
        size_t n;
} mine = {.driver.ctl = -1};

static long long enter(const char *cgroup) {
        char path[PATH_BYTES];
        FILE *f;

        (void) snprintf(path, sizeof path, "%s/cgroup.procs", cgroup); /* a longer one does not exist */
        f = fopen(path, "we");
        if (!f)
                return -errno;
        (void) fputs("0", f);
        return fclose(f) == 0 ? 0 : -errno;
}

static long long take(uint64_t bytes) {
        uint32_t status;

        if (mine.n == OBJECTS)
                return -ENOSPC;
        status = driver_alloc_memory(&mine.driver, &mine.driver.cards[0], &bytes, &mine.objects[mine.n]);
        mine.n += status == RM_OK;
        return status;
}

static long long drop(void) {
        long long status = 0;

        while (mine.n > 0 && status == 0)
                status = driver_free(&mine.driver, mine.objects[--mine.n]);
        return status;
}

/* CLIENT:OBJECT of another process */
static long long duplicate(const char *text) {
        unsigned client = 0, object = 0;
        uint32_t copy = 0;

        if (sscanf(text, "%u:%u", &client, &object) != 2)
                return -EINVAL;
        return driver_dup(&mine.driver, mine.driver.cards[0].device, client, object, &copy);
}

/* Average of an allocation with its release, ns. */
static long long pace(unsigned n) {
        unsigned long long begin = case_now();

        for (unsigned i = 0; i < n; i++)
                if (take(2 * MIB) != 0 || drop() != 0)
                        return -1;
        return n > 0 ? (long long) ((case_now() - begin) / n) : -1;
}

/* A child goes on with the client, and its maker ends. */
static long long orphan(void) {
        pid_t maker = getpid();

        if (fork() != 0)
                _exit(0);
        while (getppid() == maker)
                (void) sched_yield();
        return 0;
}

static long long see(const char *what) {
        size_t free_bytes, total;
        NvmlMemory1 one = {0};
        NvmlMemory2 two = {.version = NVML_MEMORY_V2};
        NvmlHandle h;

        if (strcmp(what, "cuda") == 0) {
                OK(CU(cuMemGetInfo_v2)(&free_bytes, &total));
                return (long long) total;
        }
        OK(CU(nvmlInit_v2)());
        OK(CU(nvmlDeviceGetHandleByIndex_v2)(0, &h));
        if (strcmp(what, "nvml1") == 0)
                return CU(nvmlDeviceGetMemoryInfo)(h, &one) == 0 ? (long long) one.total : -1;
        return CU(nvmlDeviceGetMemoryInfo_v2)(h, &two) == 0 ? (long long) two.total : -1;
}

static long long managed(uint64_t bytes) {
        CUdeviceptr at;
        CUresult r = CU(cuMemAllocManaged)(&at, bytes, CU_MEM_ATTACH_GLOBAL);

        if (r == 0)
                r = CU(cuMemsetD8_v2)(at, 1, bytes); /* on the card, so that its pages are there */
        return r != 0 ? (long long) r : (long long) CU(cuCtxSynchronize)();
}

/* Without the tree of cgroups, as most containers are. */
static long long hide(const char *root) {
        if (unshare(CLONE_NEWNS) < 0 || mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0)
                return -errno;
        return umount2(root, MNT_DETACH) < 0 ? -errno : 0;
}

static long long obey(const char *word, const char *text) {
        uint64_t number = strtoull(text, NULL, 10);

        if (strcmp(word, "open") == 0)
                return driver_open(&mine.driver);
        if (strcmp(word, "take") == 0)
                return take(number);
        if (strcmp(word, "drop") == 0)
                return drop();
        if (strcmp(word, "client") == 0)
                return mine.driver.client;
        if (strcmp(word, "object") == 0)
                return mine.n > 0 ? mine.objects[mine.n - 1] : 0;
        if (strcmp(word, "duplicate") == 0)
                return duplicate(text);
        if (strcmp(word, "pace") == 0)
                return pace((unsigned) number);
        if (strcmp(word, "orphan") == 0)
                return orphan();
        if (strcmp(word, "enter") == 0)
                return enter(text);
        if (strcmp(word, "context") == 0)
                return case_begin() ? 0 : -1;
        if (strcmp(word, "see") == 0)
                return see(text);
        if (strcmp(word, "managed") == 0)
                return managed(number);
        return hide(text);
}

int case_limited(char **arguments) {
        char word[16], text[PATH_BYTES];
        long long r = enter(arguments[0]);

        (void) printf("%lld\n", r);
        (void) fflush(stdout);
        while (r == 0 && scanf("%15s %511s", word, text) == 2) {
                (void) printf("%lld\n", obey(word, text));
                (void) fflush(stdout);
        }
        return 0;
}

/* ---- the one that asks ---- */

typedef struct Tenant {
        pid_t pid;
        FILE *to, *from;
} Tenant;

static NvmlHandle card;
static char top[PATH_BYTES - 64]; /* the cgroup of this run */
static const char *root;

static const char *cgroup_of(const char *name) {
        static char path[2][PATH_BYTES];
        static int turn;

        turn = !turn;
        (void) snprintf(path[turn], PATH_BYTES, "%s%s", top, name); /* it fits */
        return path[turn];
}

static void make(const char *name) {
        if (mkdir(cgroup_of(name), 0755) < 0 && errno != EEXIST)
                case_skip("no cgroup can be made at %s: %s", cgroup_of(name), strerror(errno));
}

/* As runtimes do for each controller; false where the kernel does not have it. */
static void delegate(const char *directory) {
        char path[PATH_BYTES];
        int fd;

        (void) snprintf(path, sizeof path, "%s/cgroup.subtree_control", directory); /* it fits */
        fd = open(path, O_WRONLY | O_CLOEXEC);
        (void) !write(fd, "+dmem", 5); /* fails where the driver keeps the account */
        (void) close(fd);
}

static int set_at(const char *path, uint64_t hard) {
        NvmlSetLimits p = {.path = path, .hard = hard};

        return (int) CU(nvmlDeviceSetMemoryLimits_v1)(card, &p);
}

static int set(const char *name, uint64_t hard) {
        return set_at(cgroup_of(name), hard);
}

static NvmlGetLimits get(const char *name) {
        NvmlGetLimits p = {.path = cgroup_of(name), .hard = NO_LIMIT};

        if (CU(nvmlDeviceGetMemoryLimits_v1)(card, &p) != 0)
                p.hard = NO_LIMIT;
        return p;
}

static long long answer(const Tenant *t) {
        char line[128];

        while (fgets(line, sizeof line, t->from))
                if (strncmp(line, "pid ", 4) != 0)
                        return strncmp(line, "skip: ", 6) == 0 ? -1 : strtoll(line, NULL, 10);
        return -1;
}

static long long tell(const Tenant *t, const char *word, const char *text) {
        (void) fprintf(t->to, "%s %s\n", word, text);
        (void) fflush(t->to);
        return answer(t);
}

static long long tell_number(const Tenant *t, const char *word, uint64_t number) {
        char text[24];

        (void) snprintf(text, sizeof text, "%llu", (unsigned long long) number);
        return tell(t, word, text);
}

static Tenant tenant(const char *name) {
        char path[PATH_BYTES];
        int to[2], from[2];
        Tenant t;

        (void) snprintf(path, sizeof path, "%s", cgroup_of(name));
        if (pipe2(to, O_CLOEXEC) < 0 || pipe2(from, O_CLOEXEC) < 0)
                case_fail("no pipes: %s", strerror(errno));
        t.pid = fork();
        if (t.pid == 0) {
                (void) dup2(to[0], STDIN_FILENO);
                (void) dup2(from[1], STDOUT_FILENO);
                (void) execl("/proc/self/exe", "gpu-case", "limited", path, (char *) NULL);
                _exit(127);
        }
        (void) close(to[0]);
        (void) close(from[1]);
        t.to = fdopen(to[1], "w");
        t.from = fdopen(from[0], "r");
        if (answer(&t) != 0)
                case_fail("no process enters %s", path);
        return t;
}

static Tenant opened(const char *name) {
        Tenant t = tenant(name);

        if (tell(&t, "open", "-") != 0)
                case_fail("the driver does not open in %s", cgroup_of(name));
        return t;
}

/* An orphan is not our child: its end is the end of its pipe. */
static void end(Tenant *t) {
        (void) fclose(t->to);
        while (fgetc(t->from) != EOF)
                ;
        (void) fclose(t->from);
        (void) waitpid(t->pid, NULL, 0);
}

static void ask_codes(void) {
        struct stat st;

        make("/gone");
        (void) rmdir(cgroup_of("/gone"));
        case_say("set-code", (unsigned) set("/a", 64 * MIB));
        case_say("set-read-back", get("/a").hard);
        case_say("set-1-byte-code", (unsigned) set("/a", 1));
        case_say("set-1-byte-read-back", get("/a").hard);
        (void) set("/a", 64 * MIB + 1);
        case_say("set-unaligned-read-back", get("/a").hard);
        case_say("set-zero-code", (unsigned) set("/a", 0));
        case_say("set-zero-read-back", get("/a").hard);
        case_say("lift-code", (unsigned) set("/a", NO_LIMIT));
        case_say("lift-read-back", get("/a").hard);
        case_say("root-code", (unsigned) set_at(root, 64 * MIB));
        case_say("removed-path-code", (unsigned) set("/gone", 64 * MIB));
        case_say("other-folder-code", (unsigned) set_at("/tmp", 64 * MIB));
        case_say("relative-path-code", (unsigned) set_at("a", 64 * MIB));
        case_say("has-dmem-files", stat(cgroup_of("/a/dmem.max"), &st) == 0);
        if (fork() == 0) {
                _exit(setuid(65534) == 0 ? set("/a", 64 * MIB) : 255);
        } else {
                int status = 0;

                (void) wait(&status);
                case_say("not-root-code", (unsigned) WEXITSTATUS(status));
        }
        (void) set("/a", NO_LIMIT);
}

/* Pieces, until one is refused: the driver's status, and the bytes that the account has then. */
static long long fill(const Tenant *t, uint64_t piece) {
        long long status;

        while ((status = tell_number(t, "take", piece)) == 0)
                ;
        return status;
}

static void ask_fence(void) {
        Tenant t;

        (void) set("/a", 64 * MIB);
        t = opened("/a");
        case_say("fence-begin", get("/a").used);
        case_say("fence-status", (unsigned long long) fill(&t, 2 * MIB));
        case_say("fence-used", get("/a").used);
        case_say("fence-small-status", (unsigned long long) fill(&t, 4096));
        case_say("fence-small-used", get("/a").used);
        case_say("lower-code", (unsigned) set("/a", 32 * MIB));
        case_say("lower-read-back", get("/a").hard);
        (void) set("/a", 128 * MIB);
        case_say("raise-read-back", get("/a").hard);
        case_say("raise-take-status", (unsigned long long) tell_number(&t, "take", 2 * MIB));
        (void) tell(&t, "drop", "-");
        case_say("given-back-used", get("/a").used);
        end(&t);
}

static void ask_steps(void) {
        static const uint64_t sizes[] = {1, 4097, 65537, 2 * MIB + 1};
        Tenant t = opened("/a");

        for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
                uint64_t before = get("/a").used;
                char key[32];

                (void) tell_number(&t, "take", sizes[i]);
                (void) snprintf(key, sizeof key, "charge-of-%llu", (unsigned long long) sizes[i]);
                case_say(key, get("/a").used - before);
        }
        end(&t);
}

/* H1: the maker of the client has ended. */
static void ask_orphan(void) {
        Tenant t;

        (void) set("/a", 64 * MIB);
        t = opened("/a");
        (void) tell(&t, "orphan", "-");
        (void) waitpid(t.pid, NULL, 0);
        case_say("orphan-status", (unsigned long long) tell_number(&t, "take", 256 * MIB));
        case_say("orphan-used", get("/a").used);
        end(&t);
}

static void ask_moved(void) {
        Tenant t;
        uint64_t a, b;

        (void) set("/a", 256 * MIB);
        (void) set("/b", 256 * MIB);
        t = opened("/a");
        a = get("/a").used;
        b = get("/b").used;
        (void) tell(&t, "enter", cgroup_of("/b"));
        (void) tell_number(&t, "take", 16 * MIB);
        case_say("moved-charge-of-old", get("/a").used - a);
        case_say("moved-charge-of-new", get("/b").used - b);
        end(&t);
        (void) set("/b", NO_LIMIT);
}

/* Memory of a that b duplicates, and that stays when a has ended. */
static void ask_shared(void) {
        char text[32];
        Tenant a, b;

        (void) set("/a", 64 * MIB);
        (void) set("/b", 64 * MIB);
        a = opened("/a");
        b = opened("/b");
        (void) tell_number(&a, "take", 16 * MIB);
        (void) snprintf(text, sizeof text, "%lld:%lld", tell(&a, "client", "-"), tell(&a, "object", "-"));
        case_say("duplicate-status", (unsigned long long) tell(&b, "duplicate", text));
        case_say("duplicate-charge-of-owner", get("/a").used);
        case_say("duplicate-charge-of-other", get("/b").used);
        end(&a);
        case_say("owner-ended-charge", get("/a").used);
        end(&b);
        case_say("both-ended-charge", get("/a").used);
        (void) set("/b", NO_LIMIT);
}

/* NVML's number of a process, as far as it is told. */
static uint64_t process_bytes(pid_t pid) {
        static NvmlProcess2 list[512];
        unsigned n = 512;

        if (CU(nvmlDeviceGetComputeRunningProcesses_v3)(card, &n, list) != 0)
                return 0;
        for (unsigned i = 0; i < n; i++)
                if (list[i].pid == (unsigned) pid)
                        return list[i].memory;
        return 0;
}

/* What NVML says is in use of the card, by all. */
static uint64_t card_bytes(void) {
        NvmlMemory2 two = {.version = NVML_MEMORY_V2};

        return CU(nvmlDeviceGetMemoryInfo_v2)(card, &two) == 0 ? two.used : 0;
}

static void ask_contexts(uint64_t whole) {
        uint64_t before;
        Tenant t;

        (void) set("/a", whole / 2);
        t = tenant("/a");
        if (tell(&t, "context", "-") != 0) {
                end(&t);
                return;
        }
        case_say("context-charge", get("/a").used);
        case_say("context-by-nvml", process_bytes(t.pid));
        before = card_bytes();
        case_say("managed-result", (unsigned long long) tell_number(&t, "managed", whole / 2 + 64 * MIB));
        case_say("managed-charge", get("/a").used);
        case_say("managed-by-nvml", process_bytes(t.pid));
        case_say("managed-of-card", card_bytes() - before);
        end(&t);
}

/* What is shown to a process in the limited cgroup, in one below it, and without the tree. */
static void ask_shown(uint64_t whole) {
        static const struct {
                const char *cgroup, *key;
                bool hidden;
        } places[] = {{"/a", "leaf", false}, {"/a/below", "below", false}, {"/a", "hidden", true}};
        static const char *const ways[] = {"cuda", "nvml1", "nvml2"};

        (void) set("/a", whole / 2);
        make("/a/below");
        for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
                Tenant t = tenant(places[i].cgroup);

                if ((!places[i].hidden || tell(&t, "hide", root) == 0) && tell(&t, "context", "-") == 0)
                        for (size_t k = 0; k < sizeof ways / sizeof *ways; k++) {
                                char key[48];

                                (void) snprintf(key, sizeof key, "shown-%s-%s", places[i].key, ways[k]);
                                case_say(key, (unsigned long long) tell(&t, "see", ways[k]));
                        }
                end(&t);
        }
        (void) rmdir(cgroup_of("/a/below"));
}

static void ask_times(void) {
        enum { TIMES = 200 };
        static const char *const levels[] = {"/b", "/b/c", "/b/c/d"};
        unsigned long long begin = case_now();
        Tenant t;

        for (unsigned i = 0; i < TIMES; i++)
                (void) set("/a", (64 + i) * MIB);
        case_say("set-ns", (case_now() - begin) / TIMES);
        begin = case_now();
        for (unsigned i = 0; i < TIMES; i++)
                (void) get("/a");
        case_say("get-ns", (case_now() - begin) / TIMES);
        make("/b/c");
        make("/b/c/d");
        t = opened("/b/c/d");
        case_say("take-without-limit-ns", (unsigned long long) tell_number(&t, "pace", TIMES));
        for (size_t i = 0; i < sizeof levels / sizeof *levels; i++) {
                char key[48];

                (void) set(levels[i], 64 * MIB);
                (void) snprintf(key, sizeof key, "take-below-%zu-ns", i + 1);
                case_say(key, (unsigned long long) tell_number(&t, "pace", TIMES));
        }
        end(&t);
        for (size_t i = sizeof levels / sizeof *levels; i-- > 0;) {
                (void) set(levels[i], NO_LIMIT);
                if (i > 0)
                        (void) rmdir(cgroup_of(levels[i]));
        }
}

/* The driver's own account knows a cgroup by its address in the kernel. */
static void ask_reuse(void) {
        enum { TIMES = 500 };
        unsigned inherited = 0;

        for (unsigned i = 0; i < TIMES; i++) {
                make("/once");
                inherited += get("/once").hard == 48 * MIB;
                (void) set("/once", 48 * MIB);
                (void) rmdir(cgroup_of("/once"));
        }
        case_say("inherited-of-500", inherited);
}

/* Whether limits live on when no file of the card is open. Nothing else may have one. */
static void ask_last_close(void) {
        (void) set("/b", 48 * MIB);
        OK(CU(nvmlShutdown)());
        OK(CU(nvmlInit_v2)());
        OK(CU(nvmlDeviceGetHandleByIndex_v2)(0, &card));
        case_say("kept-after-last-close", get("/b").hard == 48 * MIB);
        (void) set("/b", NO_LIMIT);
}

static void tidy(void) {
        static const char *const names[] = {"/a", "/b", ""};

        for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
                (void) set(names[i], NO_LIMIT);
                (void) rmdir(cgroup_of(names[i]));
        }
}

int case_limits(char **arguments) {
        NvmlMemory1 m = {0};
        int r;

        root = arguments[0];
        OK(CU(nvmlInit_v2)());
        OK(CU(nvmlDeviceGetHandleByIndex_v2)(0, &card));
        if (!dlsym(dlopen("libnvidia-ml.so.1", RTLD_NOW), "nvmlDeviceSetMemoryLimits_v1") ||
            set_at(root, 64 * MIB) == NVML_ERROR_FUNCTION_NOT_FOUND) {
                case_say("has-calls", 0);
                return 0;
        }
        case_say("has-calls", 1);
        (void) snprintf(top, sizeof top, "%s/aliquot-gpu-test-%d", root, (int) getpid()); /* it fits */
        make("");
        delegate(root);
        delegate(top);
        make("/a");
        make("/b");
        r = set("/a", 64 * MIB);
        case_say("trial-code", (unsigned) r);
        if (r == 0) {
                OK(CU(nvmlDeviceGetMemoryInfo)(card, &m));
                ask_last_close();
                ask_codes();
                ask_fence();
                ask_steps();
                ask_orphan();
                ask_moved();
                ask_shared();
                ask_contexts(m.total);
                ask_shown(m.total);
                ask_times();
                ask_reuse();
        }
        tidy();
        return 0;
}
