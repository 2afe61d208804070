/* SPDX-License-Identifier: Apache-2.0 */

/* The arbiter as a process, on a slice directory with real pages. The tests play the launch hooks
 * of the containers. */

#include "arbiter/daemon.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "arbiter/leased.h"
#include "arbiter/respawn.h"
#include "arbiter/slice_channel.h"
#include "base/clock.h"
#include "slice/slice.h"
#include "slicedir/slicedir.h"
#include "test.h"

enum { DEADLINE = 120 }; /* seconds; each wait takes far less than one */

static char home[64], path[128];

typedef struct Daemon {
        pid_t pid;
        int stop;
} Daemon;

static Daemon start(void) {
        Daemon d;

        d.pid = respawn_daemon(path, -1, 0, &d.stop);
        ASSERT_TRUE(d.pid > 0);
        return d;
}

static void stop(Daemon *d) {
        int status;

        ASSERT_OK(close(d->stop));
        ASSERT_INT(waitpid(d->pid, &status, 0), d->pid);
        ASSERT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

static Slicedir begin(void) {
        Fault fault = FAULT_NULL;
        Slicedir b;

        (void) snprintf(home, sizeof home, "/tmp/aliquot-desk-XXXXXX");
        ASSERT_TRUE(mkdtemp(home) != NULL);
        (void) snprintf(path, sizeof path, "%s/slices", home);
        ASSERT_OK(slicedir_open(&b, path, true, &fault));
        return b;
}

static void put_as(Slicedir *b, const char *id, uint32_t percent, uint32_t policy, const char *uuid) {
        SliceSpec spec = {.limit = 1 << 20,
                          .card_bytes = 1 << 24,
                          .request.percent = percent,
                          .compute.policy = policy,
                          .uuid = uuid,
                          .container = id};
        Fault fault = FAULT_NULL;

        ASSERT_OK(slicedir_update(b, id, "agent x", &spec, 1, &fault));
}

static void put(Slicedir *b, const char *id, uint32_t percent) {
        put_as(b, id, percent, 0, "GPU-a");
}

static void end(Slicedir *b) {
        static const char *const ids[] = {"one", "two", "bad"};
        char lock[160];

        for (size_t i = 0; i < ELEMENTSOF(ids); i++)
                slicedir_remove(b, ids[i]);
        slicedir_done(b);
        (void) snprintf(lock, sizeof lock, "%s/arbiter", path);
        (void) unlink(lock);
        (void) rmdir(path);
        (void) rmdir(home);
}

/* Closes the pages, which the process that made them keeps open. */
static void forget_maker(Slicedir *b) {
        Fault fault = FAULT_NULL;

        slicedir_done(b);
        ASSERT_OK(slicedir_open(b, path, true, &fault));
}

static uint64_t now_nsec(void) {
        return clock_nsec(CLOCK_MONOTONIC);
}

#define WAIT_FOR(condition)                                                                                  \
        do {                                                                                                 \
                uint64_t end_ = now_nsec() + DEADLINE * UINT64_C(1000000000);                                \
                while (!(condition)) {                                                                       \
                        struct timespec pause_ = {0, 100000};                                                \
                        if (now_nsec() > end_)                                                               \
                                TEST_FAIL_("%s never came", #condition);                                     \
                        (void) nanosleep(&pause_, NULL);                                                     \
                }                                                                                            \
        } while (0)

/* ---- a container's launch hook ---- */

typedef struct Gate {
        SliceUser slice;
        char doorbell[192];
} Gate;

static Gate *gate_at(const char *id, unsigned number) {
        Gate *g = calloc(1, sizeof *g);
        char directory[192];

        ASSERT_TRUE(g != NULL);
        (void) snprintf(directory, sizeof directory, "%s/%s/%u", path, id, number);
        (void) snprintf(g->doorbell, sizeof g->doorbell, "%s/%s/%u/" SLICE_DOORBELL, path, id, number);
        ASSERT_OK(slice_open(directory, &g->slice));
        return g;
}

static Gate *gate(const char *id) {
        return gate_at(id, 0);
}

static void gate_free(Gate *g) {
        slice_close(&g->slice);
        free(g);
}

static const SliceSchedule *schedule(const Gate *g) {
        return &g->slice.limits->schedule;
}

static SliceWork *work(const Gate *g) {
        return &g->slice.counters->rows[g->slice.row].work;
}

static uint32_t window(const Gate *g) {
        return atomic_load(&schedule(g)->window);
}

static bool is_open(const Gate *g) {
        return (window(g) & SCHED_WINDOW_OPEN) != 0 && now_nsec() < atomic_load(&schedule(g)->closes);
}

static void ring(const Gate *g) {
        int fd = open(g->doorbell, O_WRONLY | O_NONBLOCK | O_CLOEXEC);

        if (fd < 0)
                return; /* no arbiter listens */
        (void) !write(fd, "", 1);
        (void) close(fd);
}

static void want(const Gate *g) {
        atomic_store(&work(g)->wants, now_nsec());
        ring(g);
}

static void drain(const Gate *g, uint32_t number) {
        atomic_fetch_add(&work(g)->busy, 3000000);
        atomic_store(&work(g)->drained, number);
        atomic_store(&work(g)->in_flight, 0);
        ring(g);
}

/* Whether a window is open that was not drained. One whose end passes just now may be extended; the
 * arbiter gives it a new number when it reads the drain. */
static bool is_new(const Gate *g, uint32_t *number) {
        *number = window(g) >> 1;
        return is_open(g) && *number != atomic_load(&work(g)->drained);
}

/* Waits for a window, reports work on the card until it closes, and then reports the drain. Returns
 * the window's number. */
static uint32_t use_window(const Gate *g) {
        uint32_t number;

        WAIT_FOR(is_new(g, &number));
        atomic_store(&work(g)->in_flight, 100000);
        WAIT_FOR(window(g) >> 1 != number || !is_open(g));
        drain(g, number);
        return number;
}

/* ---- the tests ---- */

static void windows_follow_each_other(void) {
        Slicedir b = begin();
        Daemon d;
        Gate *g;
        uint32_t before = 0;

        put(&b, "one", 30);
        d = start();
        g = gate("one");
        WAIT_FOR(atomic_load(&schedule(g)->seen) != 0);
        ASSERT_INT(atomic_load(&schedule(g)->flags), SCHED_F_GATED);
        ASSERT_INT(window(g) & SCHED_WINDOW_OPEN, 0);
        want(g);
        for (unsigned i = 0; i < 20; i++) {
                uint32_t number = use_window(g);

                ASSERT_TRUE(number > before);
                ASSERT_TRUE(atomic_load(&schedule(g)->depth) > 0);
                before = number;
        }
        ASSERT_TRUE(atomic_load(&schedule(g)->granted) > 0);
        atomic_store(&work(g)->wants, 0);
        WAIT_FOR(!is_open(g));
        stop(&d);
        gate_free(g);
        end(&b);
}

static void one_window_at_a_time(void) {
        Slicedir b = begin();
        unsigned seen[2] = {0};
        Daemon d;
        Gate *g[2];

        put(&b, "one", 50);
        put(&b, "two", 50);
        d = start();
        g[0] = gate("one");
        g[1] = gate("two");
        want(g[0]);
        want(g[1]);
        while (seen[0] < 20 || seen[1] < 20) {
                for (unsigned i = 0; i < 2; i++) {
                        uint32_t mine = window(g[i]), others = window(g[1 - i]);

                        ASSERT_TRUE((mine & others & SCHED_WINDOW_OPEN) == 0 || window(g[i]) != mine);
                        if (mine & SCHED_WINDOW_OPEN && atomic_load(&work(g[i])->drained) != mine >> 1) {
                                (void) use_window(g[i]);
                                seen[i]++;
                        }
                }
                (void) sched_yield();
        }
        stop(&d);
        gate_free(g[0]);
        gate_free(g[1]);
        end(&b);
}

/* Waits until both cards have an open window, and uses both. */
static void use_both(Gate *const g[2]) {
        uint32_t numbers[2];

        WAIT_FOR(is_open(g[0]) && is_open(g[1]));
        for (unsigned i = 0; i < 2; i++) {
                numbers[i] = window(g[i]) >> 1;
                atomic_store(&work(g[i])->in_flight, 100000);
        }
        WAIT_FOR(!is_open(g[0]) && !is_open(g[1]));
        for (unsigned i = 0; i < 2; i++)
                drain(g[i], numbers[i]);
}

/* A container with two cards gets its windows on both at once. While another container has a window
 * on the second card, the first card waits for that too. */
static void cards_open_together(void) {
        SliceSpec specs[2] = {{.limit = 1 << 20,
                               .card_bytes = 1 << 24,
                               .request.percent = 50,
                               .uuid = "GPU-a",
                               .container = "one"}};
        Slicedir b = begin();
        Fault fault = FAULT_NULL;
        Gate *g[2], *other;
        uint32_t before;
        Daemon d;

        specs[1] = specs[0];
        specs[1].uuid = "GPU-b";
        ASSERT_OK(slicedir_update(&b, "one", "agent x", specs, 2, &fault));
        put_as(&b, "two", 50, 0, "GPU-b");
        d = start();
        for (unsigned i = 0; i < 2; i++)
                g[i] = gate_at("one", i);
        other = gate("two");
        want(g[1]);
        want(g[0]);
        for (unsigned i = 0; i < 5; i++)
                use_both(g);
        for (unsigned i = 0; i < 2; i++)
                atomic_store(&work(g[i])->wants, 0);
        want(other);
        do { /* the window may end before this thread goes on */
                WAIT_FOR(is_open(other));
                before = window(other);
                atomic_store(&work(other)->in_flight, 100000);
        } while (!(before & SCHED_WINDOW_OPEN) || window(other) != before);
        want(g[1]);
        want(g[0]);
        WAIT_FOR((window(g[0]) & SCHED_WINDOW_OPEN) || window(other) != before);
        ASSERT_TRUE(window(other) != before);
        atomic_store(&work(other)->wants, 0);
        drain(other, before >> 1);
        use_both(g);
        stop(&d);
        for (unsigned i = 0; i < 2; i++)
                gate_free(g[i]);
        gate_free(other);
        end(&b);
}

/* A second arbiter waits for the first one to end, and then continues where that one was. */
static void second_arbiter_takes_over(void) {
        Slicedir b = begin();
        uint32_t number;
        Daemon first, second;
        int status;
        Gate *g;

        put(&b, "one", 50);
        first = start();
        g = gate("one");
        want(g);
        number = use_window(g);
        second = start();
        WAIT_FOR(is_open(g));
        ASSERT_OK(kill(first.pid, SIGKILL)); /* during a window */
        ASSERT_INT(waitpid(first.pid, &status, 0), first.pid);
        ASSERT_OK(close(first.stop));
        for (unsigned i = 0; i < 5; i++) {
                uint32_t next = use_window(g);

                ASSERT_TRUE(next > number ||
                            (i == 0 && next == number)); /* the first one may be the old window, extended */
                number = next;
        }
        stop(&second);
        gate_free(g);
        end(&b);
}

static uint64_t granted(const Gate *g) {
        return atomic_load(&schedule(g)->granted);
}

/* Uses some windows. `granted` grows with them. Returns its value in the end. */
static uint64_t use_some(const Gate *g, uint64_t given) {
        uint64_t before = given;

        want(g);
        for (unsigned i = 0; i < 5; i++) {
                (void) use_window(g);
                ASSERT_TRUE(granted(g) >= before);
                before = granted(g);
        }
        WAIT_FOR(granted(g) > given);
        return granted(g);
}

static void end_somehow(Daemon *d, bool kills) {
        int status;

        if (!kills) {
                stop(d);
                return;
        }
        ASSERT_OK(kill(d->pid, SIGKILL)); /* during a window */
        ASSERT_INT(waitpid(d->pid, &status, 0), d->pid);
        ASSERT_OK(close(d->stop));
}

/* The agent compares `granted` with `used` over minutes. So the next arbiter continues both sums,
 * however the one before ended, and grants nothing for the time between. The page of the
 * container's next start begins at 0. */
static void granted_sum_continues(void) {
        uint64_t begun = now_nsec(), given = 0, charged = 0, came;
        Slicedir b = begin();
        Gate *g;
        Daemon d;

        put(&b, "one", 50);
        g = gate("one");
        for (unsigned life = 0; life < 4; life++) {
                came = now_nsec();
                d = start();
                WAIT_FOR(atomic_load(&schedule(g)->seen) >= came);
                ASSERT_TRUE(granted(g) >= given && atomic_load(&schedule(g)->used) >= charged);
                given = use_some(g, given);
                charged = atomic_load(&schedule(g)->used);
                end_somehow(&d, life % 2);
                given = granted(g);
                ASSERT_TRUE(given > 0 && charged > 0 && given <= now_nsec() - begun);
        }
        gate_free(g);
        put(&b, "one", 50);
        g = gate("one");
        ASSERT_INT(granted(g), 0);
        gate_free(g);
        end(&b);
}

static void page_is_made_again(void) {
        Slicedir b = begin();
        Daemon d;
        Gate *g, *again;

        put(&b, "one", 50);
        d = start();
        g = gate("one");
        WAIT_FOR(atomic_load(&schedule(g)->seen) != 0);
        put(&b, "one", 0); /* the container starts again, now without a limit */
        again = gate("one");
        WAIT_FOR(atomic_load(&schedule(again)->seen) != 0);
        ASSERT_INT(atomic_load(&schedule(again)->flags), 0);
        put(&b, "one", 20);
        gate_free(again);
        again = gate("one");
        WAIT_FOR(atomic_load(&schedule(again)->flags) == SCHED_F_GATED);
        want(again);
        (void) use_window(again);
        stop(&d);
        gate_free(g);
        gate_free(again);
        end(&b);
}

static void slices_come_and_go(void) {
        Slicedir b = begin();
        Daemon d = start();
        Gate *g;

        for (unsigned i = 0; i < 5; i++) {
                put_as(&b, i % 2 ? "one" : "two", 50, 2, i % 2 ? "GPU-a" : "GPU-b");
                g = gate(i % 2 ? "one" : "two");
                want(g);
                WAIT_FOR(is_open(g)); /* it stays open, because no other tenant wants the card */
                gate_free(g);
                slicedir_remove(&b, i % 2 ? "one" : "two");
        }
        stop(&d);
        end(&b);
}

/* A process is killed with work on the card. The other tenant still gets its windows. */
static void killed_process_does_not_block(void) {
        Slicedir b = begin();
        Gate *g, *dead;
        pid_t pid;
        Daemon d;

        put(&b, "one", 50);
        put(&b, "two", 50);
        d = start();
        g = gate("one");
        pid = fork();
        if (pid == 0) {
                dead = gate("two");
                want(dead);
                WAIT_FOR(is_open(dead));
                atomic_store(&work(dead)->in_flight, WORK_IN_FLIGHT_MAX);
                (void) raise(SIGKILL);
        }
        ASSERT_INT(waitpid(pid, NULL, 0), pid);
        want(g);
        for (unsigned i = 0; i < 10; i++)
                (void) use_window(g);
        stop(&d);
        gate_free(g);
        end(&b);
}

/* ---- slice directories of any content ---- */

static void spoil(const char *name, const void *bytes, size_t size) {
        char file[192];
        int fd;

        (void) snprintf(file, sizeof file, "%s/bad/0/%s", path, name);
        fd = open(file, O_WRONLY | O_TRUNC | O_CLOEXEC);
        ASSERT_TRUE(fd >= 0);
        ASSERT_INT(write(fd, bytes, size), size);
        (void) close(fd);
}

static void replace_doorbell(mode_t type) {
        char file[192];

        (void) snprintf(file, sizeof file, "%s/bad/0/" SLICE_DOORBELL, path);
        (void) unlink(file);
        if (type == S_IFREG)
                ASSERT_OK(close(open(file, O_WRONLY | O_CREAT | O_CLOEXEC, 0666)));
        else if (type == S_IFLNK)
                ASSERT_OK(symlink("/dev/zero", file));
}

static void damaged_pages(void) {
        static uint8_t garbage[sizeof(SliceCounters)];
        Slicedir b = begin();
        Gate *g;
        Daemon d;

        for (size_t i = 0; i < sizeof garbage; i++)
                garbage[i] = (uint8_t) (i * 2654435761u >> 13);
        put(&b, "one", 50);
        put(&b, "bad", 50);
        d = start();
        g = gate("one");
        want(g);
        (void) use_window(g);
        spoil("counters", garbage, sizeof garbage);
        for (unsigned i = 0; i < 10; i++)
                (void) use_window(g);
        spoil("counters", "", 0);
        spoil("limits", "", 0); /* the arbiter has it mapped */
        for (unsigned i = 0; i < 10; i++)
                (void) use_window(g);
        spoil("limits", garbage, sizeof(SliceLimits));
        replace_doorbell(S_IFREG);
        (void) use_window(g);
        replace_doorbell(S_IFLNK);
        for (unsigned i = 0; i < 10; i++)
                (void) use_window(g);
        ASSERT_INT(waitpid(d.pid, NULL, WNOHANG), 0);
        stop(&d);
        gate_free(g);
        replace_doorbell(S_IFREG);
        end(&b);
}

/* A tenant rings its doorbell as fast as it can. The other tenant still gets its windows. */
static void endless_doorbell(void) {
        Slicedir b = begin();
        Gate *g, *other;
        pid_t pid;
        Daemon d;

        put(&b, "one", 50);
        put(&b, "two", 50);
        d = start();
        g = gate("one");
        pid = fork();
        if (pid == 0) {
                other = gate("two");
                for (;;)
                        ring(other);
        }
        want(g);
        for (unsigned i = 0; i < 10; i++)
                (void) use_window(g);
        ASSERT_OK(kill(pid, SIGKILL));
        ASSERT_INT(waitpid(pid, NULL, 0), pid);
        stop(&d);
        gate_free(g);
        end(&b);
}

/* Rows that want the card and have no living process: the arbiter checks at most 8 of them at a
 * time, and all of them in the end. */
static void few_lock_checks_at_a_time(void) {
        Slicedir b = begin();
        char directory[192];
        TenantReport report;
        uint32_t dead = 0, before = 0, readings = 0;
        uint64_t now = now_nsec();
        SliceChannel s;
        Gate *g;
        int fd;

        put(&b, "one", 50);
        g = gate("one");
        for (uint32_t i = 0; i < SLICE_ROWS; i++)
                atomic_store(&g->slice.counters->rows[i].work.wants, 1);
        (void) snprintf(directory, sizeof directory, "%s/one/0", path);
        fd = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        ASSERT_TRUE(fd >= 0);
        ASSERT_OK(slice_channel_open(fd, &s));
        while (dead < SLICE_ROWS - 1 && ++readings < 100000) {
                dead = 0;
                slice_channel_read(&s, now += UINT64_C(5000000), true, readings % 2 != 0, &report);
                for (uint32_t i = 0; i < SLICE_ROWS; i++)
                        dead += s.dead[i];
                ASSERT_TRUE(dead <= before + 8);
                before = dead;
        }
        ASSERT_INT(dead, SLICE_ROWS - 1); /* all but the row of this process */
        ASSERT_TRUE(readings >= SLICE_ROWS / 8 - 1);
        ASSERT_TRUE(!s.dead[g->slice.row]);
        slice_channel_done(&s);
        (void) close(fd);
        gate_free(g);
        end(&b);
}

/* The process of a tenant that leases a page. When another process opens the page, it gives the
 * lease up and takes another one, again and again. It ends when the lease is refused a hundred
 * times in a row. */
static void lease_always(const char *file, int kind, int told) {
        int fd = open(file, O_RDONLY | O_CLOEXEC);
        sigset_t set;

        (void) sigemptyset(&set);
        (void) sigaddset(&set, SIGIO);
        (void) sigprocmask(SIG_BLOCK, &set, NULL);
        if (fd < 0 || fcntl(fd, F_SETLEASE, kind) < 0 || write(told, "", 1) != 1)
                _exit(1);
        for (;;) {
                unsigned refused = 0;

                (void) sigwaitinfo(&set, NULL);
                (void) fcntl(fd, F_SETLEASE, F_UNLCK);
                for (; fcntl(fd, F_SETLEASE, kind) < 0; (void) usleep(100))
                        if (++refused == 100)
                                _exit(0);
        }
}

static pid_t lease(const char *file, int kind) {
        char byte;
        pid_t pid;
        int ends[2];

        ASSERT_OK(pipe(ends));
        pid = fork();
        if (pid == 0)
                lease_always(file, kind, ends[1]);
        ASSERT_OK(close(ends[1]));
        ASSERT_INT(read(ends[0], &byte, 1), 1);
        ASSERT_OK(close(ends[0]));
        return pid;
}

static bool is_leasable(const char *file) {
        int fd = open(file, O_RDONLY | O_CLOEXEC);
        bool is = fcntl(fd, F_SETLEASE, F_RDLCK) == 0;

        ASSERT_OK(close(fd));
        return is;
}

static void leased_page(void) {
        static const char *const names[] = {"limits", "counters"};
        static const int kinds[] = {F_RDLCK, F_WRLCK};

        for (size_t i = 0; i < 4; i++) {
                Slicedir b = begin();
                char page[192], file[192];
                SliceLimits limits = {.magic = 0};
                pid_t tenant;
                Daemon d;
                int fd;

                put(&b, "one", 30);
                forget_maker(&b);
                (void) snprintf(file, sizeof file, "%s/one/0/%s", path, names[i / 2]);
                (void) snprintf(page, sizeof page, "%s/one/0/limits", path);
                tenant = lease(file, kinds[i % 2]);
                d = start();
                WAIT_FOR(waitpid(tenant, NULL, WNOHANG) == tenant);
                fd = open(page, O_RDONLY | O_CLOEXEC);
                WAIT_FOR(pread(fd, &limits, sizeof limits, 0) == sizeof limits &&
                         atomic_load(&limits.schedule.seen) != 0);
                ASSERT_OK(close(fd));
                WAIT_FOR(!is_leasable(file)); /* the arbiter has it open for writing */
                stop(&d);
                WAIT_FOR(is_leasable(file)); /* no process waits for it any more */
                end(&b);
        }
}

/* The supervisor's only child. */
static pid_t arbiter_of(const Daemon *d) {
        char name[64], text[32] = "";
        int fd;

        (void) snprintf(name, sizeof name, "/proc/%ld/task/%ld/children", (long) d->pid, (long) d->pid);
        fd = open(name, O_RDONLY | O_CLOEXEC);
        if (fd < 0 || read(fd, text, sizeof text - 1) < 0)
                text[0] = '\0';
        (void) close(fd);
        return (pid_t) strtol(text, NULL, 10);
}

/* Whether one of the arbiter's inotify watches includes changes of times, by which it learns of new
 * pages (slicedir/slicedir.h). */
static bool is_watching(pid_t arbiter) {
        for (int fd = 0; fd < 32; fd++) {
                char name[64], text[512] = "";
                const char *mask;
                int info;

                (void) snprintf(name, sizeof name, "/proc/%ld/fdinfo/%d", (long) arbiter, fd);
                info = open(name, O_RDONLY | O_CLOEXEC);
                if (info < 0)
                        continue;
                (void) !read(info, text, sizeof text - 1);
                (void) close(info);
                mask = strstr(text, "inotify wd:");
                mask = mask ? strstr(mask, "mask:") : NULL;
                if (mask && (strtoul(mask + strlen("mask:"), NULL, 16) & IN_ATTRIB) != 0)
                        return true;
        }
        return false;
}

static void arbiter_watches_for_new_pages(void) {
        Slicedir b = begin();
        Daemon d = start();

        WAIT_FOR(is_watching(arbiter_of(&d)));
        stop(&d);
        end(&b);
}

/* ---- processes that wait for leased files ---- */

static void ended_waiter_is_replaced(void) {
        Slicedir b = begin();
        Leased l = {.n = 0};
        char file[192], page[160];
        pid_t tenant, first;
        int directory;

        put(&b, "one", 30);
        forget_maker(&b);
        (void) snprintf(file, sizeof file, "%s/one/0/limits", path);
        (void) snprintf(page, sizeof page, "%s/one/0", path);
        directory = open(page, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        tenant = lease(file, F_RDLCK);
        ASSERT_OK(kill(tenant, SIGSTOP)); /* the waiter waits until this test has looked */
        leased_request(&l, directory, "limits");
        leased_end_unrequested(&l);
        ASSERT_INT(l.n, 1);
        first = l.files[0].pid;
        leased_request(&l, directory, "limits");
        leased_end_unrequested(&l);
        ASSERT_INT(l.files[0].pid, first); /* the waiter lives, so it stays */
        ASSERT_OK(kill(first, SIGKILL));
        ASSERT_OK(waitid(P_PID, (id_t) first, &(siginfo_t){0}, WEXITED | WNOWAIT));
        leased_request(&l, directory, "limits");
        leased_end_unrequested(&l);
        ASSERT_INT(l.n, 1);
        ASSERT_TRUE(l.files[0].pid != first);
        ASSERT_INT(waitpid(first, NULL, WNOHANG), -1); /* it was reaped */
        ASSERT_OK(kill(tenant, SIGCONT));
        WAIT_FOR(waitpid(tenant, NULL, WNOHANG) == tenant); /* it gets no other lease */
        WAIT_FOR(!is_leasable(file));
        leased_end_unrequested(&l); /* the file is not requested any more */
        ASSERT_INT(l.n, 0);
        ASSERT_TRUE(is_leasable(file));
        ASSERT_OK(close(directory));
        end(&b);
}

int main(void) {
        return TEST_MAIN(
                TEST(leased_page), TEST(ended_waiter_is_replaced), TEST(arbiter_watches_for_new_pages),
                TEST(windows_follow_each_other), TEST(one_window_at_a_time), TEST(cards_open_together),
                TEST(second_arbiter_takes_over), TEST(granted_sum_continues), TEST(page_is_made_again),
                TEST(slices_come_and_go), TEST(killed_process_does_not_block), TEST(damaged_pages),
                TEST(endless_doorbell), TEST(few_lock_checks_at_a_time));
}
