/* SPDX-License-Identifier: Apache-2.0 */

/* The two files from outside: how they are made and kept, and what is read of files that a tenant
 * has changed. */

#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../slice/pages.h"
#include "slice/counter_word.h"

static ino_t inode(const Pages *p, const char *name, mode_t *ret_mode) {
        struct stat st;

        ASSERT_OK(fstatat(p->directory, name, &st, AT_SYMLINK_NOFOLLOW));
        *ret_mode = st.st_mode;
        return st.st_ino;
}

static void limits_are_those_of_the_spec(void) {
        Pages p = pages_make(UINT64_C(2154) << 20);
        SliceSpec spec = pages_spec(UINT64_C(2154) << 20);
        SliceLimits l;

        ASSERT_INT(slice_files_read_limits(p.directory, &l), 0);
        ASSERT_INT(l.version, SLICE_VERSION);
        ASSERT_INT(l.generation, 0);
        ASSERT_INT(l.limit, spec.limit);
        ASSERT_INT(l.card_bytes, spec.card_bytes);
        ASSERT_INT(l.group_bytes, spec.group_bytes);
        ASSERT_INT(l.card, 1);
        ASSERT_INT(l.core_percent, 30);
        ASSERT_INT(l.device.ino, 7);
        ASSERT_TEXT(l.uuid, spec.uuid);
        ASSERT_TEXT(l.container, spec.container);
        pages_remove(&p);
}

/* Whatever the umask is, any user of the container may count, and only the owner may write the
 * limit. */
static void modes(void) {
        mode_t old = umask(0077), mode;
        Pages p = pages_make(SLICE_UNIT);

        (void) umask(old);
        (void) inode(&p, "limits", &mode);
        ASSERT_INT(mode & 07777, 0644);
        (void) inode(&p, "counters", &mode);
        ASSERT_INT(mode & 07777, 0666);
        pages_remove(&p);
}

static void a_doorbell_is_made(void) {
        mode_t old = umask(0077), mode;
        Pages p = pages_make(SLICE_UNIT);
        SliceSpec spec = pages_spec(SLICE_UNIT);
        Fault fault = FAULT_NULL;
        ino_t doorbell = inode(&p, SLICE_DOORBELL, &mode);

        (void) umask(old);
        ASSERT_TRUE(S_ISFIFO(mode));
        ASSERT_INT(mode & 07777, 0666);
        ASSERT_INT(slice_files_make(p.directory, &spec, &fault),
                   0); /* it stays, because a container may have it mounted */
        ASSERT_INT(inode(&p, SLICE_DOORBELL, &mode), doorbell);
        ASSERT_OK(unlinkat(p.directory, SLICE_DOORBELL, 0));
        /* Planted by another process. */
        ASSERT_OK(symlinkat("/etc/passwd", p.directory, SLICE_DOORBELL));
        ASSERT_INT(slice_files_make(p.directory, &spec, &fault), 0);
        (void) inode(&p, SLICE_DOORBELL, &mode);
        ASSERT_TRUE(S_ISFIFO(mode));
        pages_remove(&p);
}

static void priority_is_written(void) {
        Pages p = pages_make(SLICE_UNIT);
        SliceSpec spec = pages_spec(SLICE_UNIT);
        Fault fault = FAULT_NULL;
        SliceLimits l;

        spec.request.weight = 3;
        spec.request.high_priority = true;
        spec.compute.policy = COMPUTE_SOFT;
        spec.compute.max_inst = 8;
        spec.compute.prio_ratio = 80;
        ASSERT_INT(slice_files_make(p.directory, &spec, &fault), 0);
        ASSERT_INT(slice_files_read_limits(p.directory, &l), 0);
        ASSERT_INT(l.weight, 3);
        ASSERT_INT(l.high_priority, 1);
        ASSERT_INT(l.policy, 5);
        ASSERT_INT(l.max_inst, 8);
        ASSERT_INT(l.prio_ratio, 80);
        ASSERT_INT(l.schedule.window | l.schedule.flags, 0);
        pages_remove(&p);
}

static void turn(const Pages *p, const SliceSchedule *turn) {
        pages_write(p, "limits", turn, sizeof *turn, offsetof(SliceLimits, schedule));
}

/* Written in place, beside what the arbiter writes, and not at all if nothing is new. */
static void the_policy_changes_in_place(void) {
        Pages p = pages_make(SLICE_UNIT);
        CardCompute soft = {.policy = COMPUTE_SOFT, .max_inst = 8, .prio_ratio = 30};
        SliceSchedule theirs = {.window = 7, .flags = SCHED_F_GATED, .granted = 99};
        uint64_t odd = 3;
        Fault fault = FAULT_NULL;
        SliceLimits before, l;
        mode_t mode;
        ino_t limits = inode(&p, "limits", &mode);

        turn(&p, &theirs);
        ASSERT_OK(slice_files_read_limits(p.directory, &before));
        ASSERT_OK(slice_files_set_compute(p.directory, &soft, &fault));
        ASSERT_OK(slice_files_read_limits(p.directory, &l));
        ASSERT_INT(l.policy, 5);
        ASSERT_INT(l.max_inst, 8);
        ASSERT_INT(l.prio_ratio, 30);
        ASSERT_INT(l.generation, 2);
        ASSERT_OK(memcmp((const char *) &l.schedule, (const char *) &theirs, sizeof theirs));
        before.generation = 2;
        before.policy = 5;
        before.max_inst = 8;
        before.prio_ratio = 30;
        /* Nothing else has changed. */
        ASSERT_OK(memcmp((const char *) &l, (const char *) &before, sizeof l));
        ASSERT_OK(slice_files_set_compute(p.directory, &soft, &fault));
        ASSERT_OK(slice_files_read_limits(p.directory, &l));
        ASSERT_INT(l.generation, 2);
        pages_write(&p, "limits", &odd, sizeof odd,
                    offsetof(SliceLimits, generation)); /* a writer was killed in between */
        ASSERT_OK(slice_files_set_compute(p.directory, &soft, &fault));
        ASSERT_OK(slice_files_read_limits(p.directory, &l));
        ASSERT_INT(l.generation, 6);
        ASSERT_INT(inode(&p, "limits", &mode), limits);
        pages_remove(&p);
}

/* Bytes and percent together, and nothing else of the page. */
static void the_size_changes_in_place(void) {
        Pages p = pages_make(4 * SLICE_UNIT);
        Fault fault = FAULT_NULL;
        SliceLimits before, l;
        uint64_t odd = 3;
        mode_t mode;
        ino_t limits = inode(&p, "limits", &mode);

        ASSERT_OK(slice_files_read_limits(p.directory, &before));
        ASSERT_OK(slice_files_set_size(p.directory, 9 * SLICE_UNIT, 35, NULL, &fault));
        ASSERT_OK(slice_files_read_limits(p.directory, &l));
        ASSERT_TRUE(l.limit == 9 * SLICE_UNIT && l.core_percent == 35 && l.generation == 2);
        l.limit = before.limit;
        l.core_percent = before.core_percent;
        l.generation = before.generation;
        ASSERT_TRUE(memcmp((const char *) &l, (const char *) &before, sizeof l) == 0);
        ASSERT_OK(slice_files_set_size(p.directory, 9 * SLICE_UNIT, 35, NULL, &fault));
        ASSERT_OK(slice_files_read_limits(p.directory, &l));
        ASSERT_INT(l.generation, 2);
        ASSERT_OK(slice_files_set_size(p.directory, 9 * SLICE_UNIT, 40, NULL, &fault));
        pages_write(&p, "limits", &odd, sizeof odd,
                    offsetof(SliceLimits, generation)); /* a writer was killed in between */
        ASSERT_OK(slice_files_set_size(p.directory, 9 * SLICE_UNIT, 40, NULL, &fault));
        ASSERT_OK(slice_files_read_limits(p.directory, &l));
        ASSERT_TRUE(l.generation == 6 && l.core_percent == 40);
        ASSERT_INT(inode(&p, "limits", &mode), limits);
        pages_remove(&p);
}

/* A row that is taken again does not keep its last owner's work. */
static void a_taken_row_has_no_work(void) {
        Pages p = pages_make(SLICE_UNIT);
        SliceWork dead = {.wants = 5, .busy = 6, .in_flight = 7, .drained = 8};
        const SliceWork *work;
        SliceUser s;

        for (size_t i = 0; i < SLICE_ROWS; i++)
                pages_write(&p, "counters", &dead, sizeof dead,
                            offsetof(SliceCounters, rows) + i * sizeof(SliceRow) + offsetof(SliceRow, work));
        ASSERT_OK(slice_open(p.path, &s));
        work = &s.counters->rows[s.row].work;
        ASSERT_TRUE(work->wants == 0 && work->busy == 0 && work->in_flight == 0 && work->drained == 0);
        slice_close(&s);
        pages_remove(&p);
}

static void names(void) {
        Pages p = pages_make(SLICE_UNIT);
        SliceSpec spec = pages_spec(SLICE_UNIT);
        Fault fault = FAULT_NULL;
        SliceLimits l;
        char text[512];

        memset(text, 'x', sizeof text - 1);
        text[sizeof text - 1] = '\0';
        spec.container = text;
        ASSERT_INT(slice_files_make(p.directory, &spec, &fault), 0);
        ASSERT_INT(slice_files_read_limits(p.directory, &l), 0);
        ASSERT_INT(strlen(l.container), sizeof l.container - 1);
        spec.uuid = text + sizeof text - SLICE_UUID; /* the longest uuid */
        ASSERT_INT(slice_files_make(p.directory, &spec, &fault), 0);
        spec.uuid--;
        ASSERT_INT(slice_files_make(p.directory, &spec, &fault), -EINVAL);
        ASSERT_CONTAINS(fault.text, "longer than 47 characters");
        ASSERT_INT(slice_files_read_limits(p.directory, &l), 0);
        ASSERT_INT(strlen(l.uuid), SLICE_UUID - 1);
        pages_remove(&p);
}

/* A container or an agent starts again: running processes go on counting where they were. */
static void counters_are_kept(void) {
        Pages p = pages_make(4 * SLICE_UNIT);
        SliceSpec spec = pages_spec(8 * SLICE_UNIT);
        Fault fault = FAULT_NULL;
        mode_t mode;
        ino_t limits = inode(&p, "limits", &mode), counters = inode(&p, "counters", &mode);
        SliceUser s;

        ASSERT_OK(slice_open(p.path, &s));
        ASSERT_OK(slice_reserve(&s, 3 * SLICE_UNIT));
        ASSERT_INT(slice_files_make(p.directory, &spec, &fault), 0);
        ASSERT_INT(inode(&p, "counters", &mode), counters);
        ASSERT_TRUE(inode(&p, "limits", &mode) != limits);
        ASSERT_INT(pages_report(&p).used, 3 * SLICE_UNIT);
        ASSERT_INT(slice_limit(&s), 4 * SLICE_UNIT); /* through the old mapping */
        slice_close(&s);
        ASSERT_OK(slice_files_set_size(p.directory, SLICE_UNIT, 0, NULL, &fault));
        limits = inode(&p, "limits", &mode);
        ASSERT_OK(slice_files_set_size(p.directory, 2 * SLICE_UNIT, 0, NULL, &fault));
        ASSERT_INT(inode(&p, "limits", &mode), limits);
        pages_remove(&p);
}

/* Bad counters are replaced and never written to: neither the target of a link, nor what a process
 * has mapped. */
static void bad_counters_are_replaced(void) {
        Pages p = pages_make(4 * SLICE_UNIT);
        SliceSpec spec = pages_spec(4 * SLICE_UNIT);
        Fault fault = FAULT_NULL;
        SliceReport report;
        mode_t mode;
        SliceUser s;

        ASSERT_OK(slice_open(p.path, &s));
        ASSERT_OK(slice_reserve(&s, SLICE_UNIT));
        s.counters->magic = 0;
        ASSERT_INT(slice_files_read_report(p.directory, &report), SLICE_FILES_E_DAMAGED);
        ASSERT_INT(slice_files_make(p.directory, &spec, &fault), 0);
        ASSERT_INT(pages_report(&p).used, 0);
        ASSERT_INT(slice_used(&s), SLICE_UNIT);
        slice_close(&s);

        ASSERT_OK(unlinkat(p.directory, "counters", 0));
        ASSERT_OK(symlinkat("limits", p.directory, "counters"));
        ASSERT_OK(symlinkat("limits", p.directory, "counters.new"));
        ASSERT_INT(slice_files_read_report(p.directory, &report), SLICE_FILES_E_DAMAGED);
        ASSERT_INT(slice_files_make(p.directory, &spec, &fault), 0);
        (void) inode(&p, "counters", &mode);
        ASSERT_TRUE(S_ISREG(mode));
        ASSERT_INT(slice_files_read_limits(p.directory, &(SliceLimits){.card = 0}), 0);

        ASSERT_OK(unlinkat(p.directory, "counters", 0));
        ASSERT_OK(mkfifoat(p.directory, "counters", 0666));
        ASSERT_INT(slice_files_read_report(p.directory, &report), SLICE_FILES_E_DAMAGED);
        ASSERT_INT(slice_files_make(p.directory, &spec, &fault), 0);
        ASSERT_INT(pages_report(&p).used, 0);
        pages_remove(&p);
}

static void faults_name_the_reason(void) {
        Pages p = pages_make(SLICE_UNIT);
        SliceSpec spec = pages_spec(SLICE_UNIT);
        Fault fault = FAULT_NULL;
        SliceReport report;
        SliceLimits l;

        pages_write(&p, "limits", "?", 1, 0);
        ASSERT_INT(slice_files_read_limits(p.directory, &l), SLICE_FILES_E_DAMAGED);
        ASSERT_INT(slice_files_set_size(p.directory, 1, 0, NULL, &fault), SLICE_FILES_E_DAMAGED);
        ASSERT_INT(slice_files_set_compute(p.directory, &(CardCompute){.policy = COMPUTE_FAIR}, &fault),
                   SLICE_FILES_E_DAMAGED);
        ASSERT_CONTAINS(fault.text, "version 2");
        ASSERT_OK(unlinkat(p.directory, "limits", 0));
        ASSERT_OK(unlinkat(p.directory, "counters", 0));
        ASSERT_INT(slice_files_read_limits(p.directory, &l), -ENOENT);
        ASSERT_INT(slice_files_read_report(p.directory, &report), -ENOENT);
        ASSERT_INT(slice_files_set_size(p.directory, 1, 0, NULL, &fault), -ENOENT);
        ASSERT_INT(slice_files_set_compute(p.directory, &(CardCompute){.policy = COMPUTE_FAIR}, &fault),
                   -ENOENT);
        ASSERT_OK(mkdirat(p.directory, "counters", 0700));
        ASSERT_TRUE(slice_files_make(p.directory, &spec, &fault) < 0);
        ASSERT_CONTAINS(fault.text, "cannot write the slice's counters");
        ASSERT_OK(unlinkat(p.directory, "counters", AT_REMOVEDIR));
        pages_remove(&p);
}

/* ---- the report ---- */

static void report(void) {
        Pages p = pages_make(16 * SLICE_UNIT);
        SliceReport report;
        SliceUser s[3];

        for (size_t i = 0; i < 3; i++) {
                ASSERT_OK(slice_open(p.path, &s[i]));
                ASSERT_OK(slice_reserve(&s[i], (i + 1) * SLICE_UNIT));
        }
        slice_release(&s[2], 2 * SLICE_UNIT);
        ASSERT_INT(slice_reserve(&s[0], 16 * SLICE_UNIT), -ENOMEM);
        slice_close(&s[1]);
        report = pages_report(&p);
        ASSERT_INT(report.used, 4 * SLICE_UNIT);
        ASSERT_INT(report.peak, 6 * SLICE_UNIT);
        ASSERT_INT(report.dead, 2 * SLICE_UNIT);
        /* Refused without reaping, because it alone is above the limit. */
        ASSERT_INT(report.refused, 1);
        ASSERT_INT(report.n_alive, 2);
        for (size_t i = 0; i < 3; i++) {
                ASSERT_INT(report.alive[s[i].row], i != 1);
                ASSERT_INT(report.held[s[i].row], (i == 2 ? 1 : i + 1) * SLICE_UNIT);
        }
        slice_close(&s[0]);
        slice_close(&s[2]);
        pages_remove(&p);
}

/* Cut at any length, also while it is read. No number is out of range. */
static void cut_counters(void) {
        Pages p = pages_make(SLICE_UNIT);
        int fd = openat(p.directory, "counters", O_RDWR | O_CLOEXEC);
        SliceReport report;

        ASSERT_TRUE(fd >= 0);
        for (off_t length = sizeof(SliceCounters) - 1; length >= 0; length -= length > 256 ? 997 : 1) {
                ASSERT_OK(ftruncate(fd, length));
                ASSERT_INT(slice_files_read_report(p.directory, &report), SLICE_FILES_E_DAMAGED);
        }
        (void) close(fd);
        pages_remove(&p);
}

static void counters_cut_while_they_are_read(void) {
        Pages p = pages_make(SLICE_UNIT);
        SliceCounters good = {.magic = SLICE_COUNTERS_MAGIC, .version = SLICE_VERSION, .size = sizeof good};
        SliceReport report;
        size_t n_good = 0, n_bad = 0;
        time_t end = time(NULL) + PAGES_DEADLINE;
        pid_t pid = pages_fork();

        if (pid == 0)
                for (;;) {
                        int fd = openat(p.directory, "counters", O_RDWR | O_CLOEXEC);

                        ASSERT_OK(ftruncate(fd, 0));
                        ASSERT_INT(pwrite(fd, &good, sizeof good, 0), sizeof good);
                        (void) close(fd);
                }
        while ((n_good < 20 || n_bad < 20) && time(NULL) < end) {
                int r = slice_files_read_report(p.directory, &report);

                ASSERT_TRUE(r == 0 || r == SLICE_FILES_E_DAMAGED);
                n_good += r == 0;
                n_bad += r != 0;
        }
        ASSERT_TRUE(n_good >= 20 && n_bad >= 20);
        ASSERT_OK(kill(pid, SIGKILL));
        (void) pages_wait(pid);
        pages_remove(&p);
}

static void numbers_of_any_size(void) {
        Pages p = pages_make(SLICE_UNIT);
        SliceCounters c;
        SliceReport report;

        memset((void *) &c, 0xff, sizeof c);
        c.magic = SLICE_COUNTERS_MAGIC;
        c.version = SLICE_VERSION;
        c.size = sizeof c;
        /* In sum the highest number of 42 bits. */
        for (size_t i = 0; i < SLICE_ROWS; i++)
                for (size_t k = 0; k < SLICE_LANES; k++)
                        c.rows[i].lanes[k].held = slice_word((UINT64_C(1) << 39) - 1, 5);
        pages_write(&p, "counters", &c, sizeof c, 0);
        report = pages_report(&p);
        ASSERT_INT(report.used, UINT64_C(0xffffffff) * SLICE_UNIT);
        ASSERT_INT(report.peak, UINT64_C(0xffffffff) * SLICE_UNIT);
        ASSERT_INT(report.dead, report.used);
        ASSERT_INT(report.refused, -1);
        ASSERT_INT(report.held[9], ((INT64_C(1) << 41) - 4) * SLICE_UNIT);
        for (size_t i = 0; i < SLICE_ROWS; i++)
                c.rows[i].lanes[0].held = slice_word(UINT64_C(1) << 41, 5);
        pages_write(&p, "counters", &c, sizeof c, 0);
        ASSERT_INT(pages_report(&p).dead, 0);
        pages_remove(&p);
}

/* A seccomp filter answers as Linux before 3.15. It cannot be removed, so it gets a process of its
 * own. */
static void old_kernels_are_refused(void) {
        struct sock_filter code[] = {
                BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
                BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_fcntl, 0, 3),
                BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[1])),
                BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, F_OFD_GETLK, 0, 1),
                BPF_JUMP(BPF_JMP | BPF_JGT | BPF_K, F_OFD_SETLKW, 0, 1),
                BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
                BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EINVAL),
        };
        struct sock_fprog program = {.len = sizeof code / sizeof *code, .filter = code};
        Pages p = pages_make(SLICE_UNIT);
        SliceSpec spec = pages_spec(SLICE_UNIT);
        Fault fault = FAULT_NULL;
        pid_t pid = fork();
        int status;

        if (pid == 0) {
                if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
                    prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0)
                        _exit(77);
                _exit(slice_files_make(p.directory, &spec, &fault) == -EOPNOTSUPP &&
                                      strstr(fault.text, "3.15")
                              ? 0
                              : 1);
        }
        ASSERT_TRUE(pid > 0 && waitpid(pid, &status, 0) == pid);
        if (status == 77 << 8)
                (void) fprintf(stderr, "no filter is to be had here: not tried\n");
        else
                ASSERT_INT(status, 0);
        pages_remove(&p);
}

static void write_held(const Pages *p, uint32_t lane, uint32_t sequence) {
        int fd = openat(p->directory, "counters", O_RDWR | O_CLOEXEC);
        uint64_t word = slice_word(7, sequence);
        size_t at = offsetof(SliceCounters, rows) + lane / SLICE_LANES * sizeof(SliceRow) +
                    offsetof(SliceRow, lanes) + lane % SLICE_LANES * sizeof(SliceLane) +
                    offsetof(SliceLane, held);

        ASSERT_TRUE(fd >= 0);
        ASSERT_INT(pwrite(fd, &word, sizeof word, (off_t) at), sizeof word);
        ASSERT_OK(close(fd));
}

static bool is_behind(const Pages *p, SliceSequences *s) {
        bool behind = true;

        ASSERT_OK(slice_files_read_sequences(p->directory, s, &behind));
        return behind;
}

/* Lanes count up, also over the end of the number. One that is behind was overwritten. */
static void lanes_that_are_behind(void) {
        static const uint32_t last = SLICE_ROWS * SLICE_LANES - 1;
        Pages p = pages_make(SLICE_UNIT);
        SliceSequences s = {.inode = 0};
        bool behind;

        write_held(&p, last, 5);
        ASSERT_FALSE(is_behind(&p, &s)); /* not known before */
        ASSERT_FALSE(is_behind(&p, &s));
        write_held(&p, 0, 1);
        write_held(&p, last, 6);
        ASSERT_FALSE(is_behind(&p, &s));
        write_held(&p, last, 5);
        ASSERT_TRUE(is_behind(&p, &s));
        ASSERT_FALSE(is_behind(&p, &s)); /* that is known now */
        write_held(&p, 0, 0);
        ASSERT_TRUE(is_behind(&p, &s));
        write_held(&p, 9, SLICE_SEQUENCE_MASK / 2);
        ASSERT_FALSE(is_behind(&p, &s));
        write_held(&p, 9, SLICE_SEQUENCE_MASK - 1);
        ASSERT_FALSE(is_behind(&p, &s));
        write_held(&p, 9, 3);
        ASSERT_FALSE(is_behind(&p, &s));
        s.inode++; /* another file */
        write_held(&p, 9, 2);
        ASSERT_FALSE(is_behind(&p, &s));
        ASSERT_OK(unlinkat(p.directory, "counters", 0));
        ASSERT_INT(slice_files_read_sequences(p.directory, &s, &behind), -ENOENT);
        ASSERT_FALSE(behind);
        pages_remove(&p);
}

int main(void) {
        return TEST_MAIN(TEST(limits_are_those_of_the_spec), TEST(modes), TEST(a_doorbell_is_made),
                         TEST(priority_is_written), TEST(the_policy_changes_in_place),
                         TEST(the_size_changes_in_place), TEST(a_taken_row_has_no_work), TEST(names),
                         TEST(counters_are_kept), TEST(bad_counters_are_replaced),
                         TEST(faults_name_the_reason), TEST(report), TEST(cut_counters),
                         TEST(counters_cut_while_they_are_read), TEST(numbers_of_any_size),
                         TEST(lanes_that_are_behind), TEST(old_kernels_are_refused));
}
