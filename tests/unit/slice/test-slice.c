/* SPDX-License-Identifier: Apache-2.0 */

/* A process's view of its slice: exact limits, rows and their locks, and invalid pages. */

#include <errno.h>
#include <sys/resource.h>
#include <sys/time.h>

#include "pages.h"
#include "random.h"
#include "slice/pin.h"

#define MIB (UINT64_C(1) << 20)

/* ---- limits ---- */

static void limit_is_exact(void) {
        Pages p = pages_make(10 * SLICE_UNIT);
        SliceUser s;

        ASSERT_OK(slice_open(p.path, &s));
        ASSERT_INT(slice_limit(&s), 10 * SLICE_UNIT);
        ASSERT_OK(slice_reserve(&s, 9 * SLICE_UNIT));
        ASSERT_INT(slice_reserve(&s, SLICE_UNIT + 1), -ENOMEM);
        ASSERT_OK(slice_reserve(&s, 1)); /* counted as a whole unit */
        ASSERT_INT(slice_used(&s), 10 * SLICE_UNIT);
        ASSERT_INT(slice_reserve(&s, 1), -ENOMEM);
        ASSERT_INT(slice_try(&s, 1), -ENOMEM); /* not counted as refused */
        ASSERT_OK(slice_reserve(&s, 0));
        slice_release(&s, 0);
        slice_release(&s, 1);
        ASSERT_OK(slice_reserve(&s, SLICE_UNIT));
        slice_release(&s, 10 * SLICE_UNIT);
        ASSERT_INT(slice_used(&s), 0);
        ASSERT_INT(pages_report(&p).refused, 2);
        ASSERT_INT(pages_report(&p).peak, 10 * SLICE_UNIT);
        slice_close(&s);
        pages_remove(&p);
}

/* A limit that is not a multiple of the unit is rounded down. */
static void limit_between_units(void) {
        Pages p = pages_make(2 * SLICE_UNIT + SLICE_UNIT - 1);
        SliceUser s;

        ASSERT_OK(slice_open(p.path, &s));
        ASSERT_INT(slice_limit(&s), 3 * SLICE_UNIT - 1);
        ASSERT_INT(slice_reserve(&s, 3 * SLICE_UNIT - 1), -ENOMEM);
        ASSERT_OK(slice_reserve(&s, 2 * SLICE_UNIT));
        slice_close(&s);
        pages_remove(&p);
}

static void sizes_that_overflow(void) {
        static const uint64_t sizes[] = {UINT64_MAX, UINT64_MAX - SLICE_UNIT, UINT64_C(1) << 63,
                                         UINT64_C(1) << 44, (UINT64_C(1) << 44) + 1};
        Pages p = pages_make(UINT64_MAX);
        SliceUser s;

        ASSERT_OK(slice_open(p.path, &s));
        for (size_t i = 0; i < ELEMENTSOF(sizes); i++) {
                ASSERT_INT(slice_reserve(&s, sizes[i]), -ENOMEM);
                slice_release(&s, sizes[i]);
                ASSERT_INT(slice_used(&s), 0);
        }
        /* The largest number that can be counted. */
        ASSERT_OK(slice_reserve(&s, (UINT64_C(1) << 44) - SLICE_UNIT));
        ASSERT_INT(slice_reserve(&s, 1), -ENOMEM);
        slice_release(&s, (UINT64_C(1) << 44) - SLICE_UNIT);
        ASSERT_INT(slice_used(&s), 0);
        slice_close(&s);
        pages_remove(&p);
}

static void limit_of_zero(void) {
        Pages p = pages_make(0);
        SliceUser s;

        ASSERT_OK(slice_open(p.path, &s));
        ASSERT_INT(slice_reserve(&s, 1), -ENOMEM);
        ASSERT_OK(slice_reserve(&s, 0));
        slice_close(&s);
        pages_remove(&p);
}

/* Sequences wrap: the number of operations has no effect. */
static void sequences_wrap(void) {
        Pages p = pages_make(4 * SLICE_UNIT);
        SliceUser s;

        ASSERT_OK(slice_open(p.path, &s));
        for (uint32_t i = 0; i < SLICE_SEQUENCE_MASK / 2 + 10; i++) {
                ASSERT_OK(slice_reserve(&s, 3 * SLICE_UNIT));
                slice_release(&s, 3 * SLICE_UNIT);
        }
        ASSERT_INT(slice_used(&s), 0);
        ASSERT_INT(slice_word_sequence(s.counters->rows[s.row].lanes[0].held), 18);
        slice_close(&s);
        pages_remove(&p);
}

static void errno_is_kept(void) {
        Pages p = pages_make(SLICE_UNIT);
        SliceUser s;

        errno = EXDEV;
        ASSERT_OK(slice_open(p.path, &s));
        ASSERT_INT(slice_reserve(&s, 2 * SLICE_UNIT), -ENOMEM);
        ASSERT_OK(slice_reserve(&s, SLICE_UNIT));
        ASSERT_INT(slice_reserve(&s, SLICE_UNIT), -ENOMEM);
        slice_release(&s, SLICE_UNIT);
        ASSERT_INT(errno, EXDEV);
        slice_close(&s);
        pages_remove(&p);
}

/* ---- a limit that changes ---- */

static void limit_changes(void) {
        Pages p = pages_make(4 * SLICE_UNIT);
        Fault fault = FAULT_NULL;
        SliceUser s;

        ASSERT_OK(slice_open(p.path, &s));
        ASSERT_OK(slice_reserve(&s, 4 * SLICE_UNIT));
        ASSERT_OK(slice_files_set_size(p.directory, 5 * SLICE_UNIT, 0, NULL, &fault));
        ASSERT_INT(slice_limit(&s), 5 * SLICE_UNIT);
        ASSERT_OK(slice_reserve(&s, SLICE_UNIT));
        ASSERT_OK(slice_files_set_size(p.directory, 3 * SLICE_UNIT, 0, NULL, &fault));
        slice_release(&s, 2 * SLICE_UNIT);
        ASSERT_INT(slice_reserve(&s, SLICE_UNIT), -ENOMEM); /* 3 are still held */
        slice_release(&s, SLICE_UNIT);
        ASSERT_OK(slice_reserve(&s, SLICE_UNIT));
        slice_close(&s);
        pages_remove(&p);
}

/* The agent was killed while it wrote. The last good value holds, and a process that starts takes
 * the value that is there. */
static void limit_is_never_completed(void) {
        Pages p = pages_make(4 * SLICE_UNIT);
        uint64_t words[2] = {3, 8 * SLICE_UNIT};
        Fault fault = FAULT_NULL;
        SliceUser s, later;

        ASSERT_OK(slice_open(p.path, &s));
        pages_write(&p, "limits", words, sizeof words, offsetof(SliceLimits, generation));
        ASSERT_INT(slice_limit(&s), 4 * SLICE_UNIT);
        ASSERT_OK(slice_open(p.path, &later));
        ASSERT_INT(slice_limit(&later), 8 * SLICE_UNIT);
        /* Written by the next agent. */
        ASSERT_OK(slice_files_set_size(p.directory, 6 * SLICE_UNIT, 0, NULL, &fault));
        ASSERT_INT(slice_limit(&s), 6 * SLICE_UNIT);
        ASSERT_INT(slice_limit(&later), 6 * SLICE_UNIT);
        slice_close(&s);
        slice_close(&later);
        pages_remove(&p);
}

/* ---- rows ---- */

static size_t open_descriptors(void) {
        DIR *directory = opendir("/proc/self/fd");
        size_t n = 0;

        ASSERT_TRUE(directory != NULL);
        while (readdir(directory))
                n++;
        (void) closedir(directory);
        return n;
}

static void every_row_is_taken(void) {
        static SliceUser all[SLICE_ROWS];
        Pages p = pages_make(SLICE_ROWS * SLICE_UNIT);
        size_t before = open_descriptors();
        SliceUser one_more;

        for (size_t i = 0; i < SLICE_ROWS; i++) {
                ASSERT_OK(slice_open(p.path, &all[i]));
                ASSERT_OK(slice_reserve(&all[i], SLICE_UNIT));
        }
        ASSERT_INT(open_descriptors(), before);
        ASSERT_INT(slice_open(p.path, &one_more), -EUSERS);
        ASSERT_INT(pages_report(&p).n_alive, SLICE_ROWS);
        ASSERT_INT(slice_reserve(&all[0], SLICE_UNIT), -ENOMEM);
        slice_close(&all[77]);
        ASSERT_INT(pages_report(&p).dead, SLICE_UNIT);
        ASSERT_OK(slice_open(p.path, &one_more)); /* recovers the only free row */
        ASSERT_INT(one_more.row, all[77].row);
        ASSERT_INT(slice_used(&one_more), (SLICE_ROWS - 1) * SLICE_UNIT);
        ASSERT_OK(slice_reserve(&one_more, SLICE_UNIT));
        slice_close(&one_more);
        for (size_t i = 0; i < SLICE_ROWS; i++)
                if (i != 77)
                        slice_close(&all[i]);
        ASSERT_INT(pages_report(&p).n_alive, 0);
        ASSERT_INT(pages_report(&p).dead, SLICE_ROWS * SLICE_UNIT);
        pages_remove(&p);
}

/* Every process of the child holds a pipe end; the parent waits for the end of the pipe. */
static void await_end(int fd) {
        char byte;

        ASSERT_INT(read(fd, &byte, 1), 0);
}

static void say(int fd) {
        ASSERT_INT(write(fd, "x", 1), 1);
}

static void hear(int fd) {
        char byte;

        ASSERT_INT(read(fd, &byte, 1), 1);
}

/* Processes that only ask leave half of the rows to those that reserve. */
static void without_a_row(void) {
        enum { ASK = SLICE_EARLY_ROWS + 20 };
        static SliceUser all[SLICE_ROWS], ask[ASK];
        Pages p = pages_make(SLICE_ROWS * SLICE_UNIT);
        size_t before = open_descriptors();

        for (size_t i = 0; i < ASK; i++) {
                ASSERT_OK(slice_open_early(p.path, -1, pin_key_new(), &ask[i]));
                ASSERT_TRUE((ask[i].row == SLICE_NO_ROW) == (i >= SLICE_EARLY_ROWS));
        }
        for (size_t i = SLICE_EARLY_ROWS; i < SLICE_ROWS; i++) {
                ASSERT_OK(slice_open(p.path, &all[i]));
                ASSERT_OK(slice_reserve(&all[i], SLICE_UNIT));
        }
        for (size_t i = SLICE_EARLY_ROWS; i < ASK; i++) {
                ASSERT_INT(slice_limit(&ask[i]), SLICE_ROWS * SLICE_UNIT);
                ASSERT_INT(slice_used(&ask[i]), SLICE_EARLY_ROWS * SLICE_UNIT);
                ASSERT_INT(slice_need_row(&ask[i], -1, pin_key_new()), -EUSERS);
                ASSERT_INT(slice_reserve(&ask[i], SLICE_UNIT), -ENOMEM);
                slice_release(&ask[i], SLICE_UNIT);
        }
        ASSERT_INT(slice_used(&ask[0]), SLICE_EARLY_ROWS * SLICE_UNIT);
        slice_close(&all[SLICE_ROWS - 1]);
        ASSERT_OK(slice_need_row(&ask[ASK - 1], -1, pin_key_new()));
        ASSERT_INT(ask[ASK - 1].row, all[SLICE_ROWS - 1].row);
        ASSERT_OK(slice_need_row(&ask[ASK - 1], -1, pin_key_new())); /* the same */
        ASSERT_INT(slice_used(&ask[1]), (SLICE_EARLY_ROWS - 1) * SLICE_UNIT);
        ASSERT_OK(slice_reserve(&ask[ASK - 1], SLICE_UNIT));
        ASSERT_INT(slice_used(&ask[1]), SLICE_EARLY_ROWS * SLICE_UNIT);
        ASSERT_INT(pages_report(&p).n_alive, SLICE_ROWS);
        ASSERT_INT(open_descriptors(), before);
        for (size_t i = 0; i < ASK; i++)
                slice_close(&ask[i]);
        for (size_t i = SLICE_EARLY_ROWS; i < SLICE_ROWS - 1; i++)
                slice_close(&all[i]);
        ASSERT_INT(pages_report(&p).n_alive, 0);
        pages_remove(&p);
}

static void death_frees_a_row(void) {
        Pages p = pages_make(4 * SLICE_UNIT);
        int said[2];
        SliceUser s;
        pid_t pid;

        ASSERT_OK(slice_open(p.path, &s));
        ASSERT_OK(pipe2(said, O_CLOEXEC));
        pid = pages_fork();
        if (pid == 0) {
                SliceUser mine;

                ASSERT_OK(slice_open(p.path, &mine));
                ASSERT_OK(slice_reserve(&mine, 3 * SLICE_UNIT));
                say(said[1]);
                for (;;)
                        (void) pause();
        }
        hear(said[0]);
        ASSERT_INT(pages_report(&p).n_alive, 2);
        ASSERT_INT(slice_reap(&s), 0); /* the process lives */
        ASSERT_INT(slice_reserve(&s, 2 * SLICE_UNIT), -ENOMEM);
        ASSERT_OK(kill(pid, SIGKILL));
        (void) pages_wait(pid);
        pages_reap_to(&s, 0);
        ASSERT_INT(pages_report(&p).n_alive, 1);
        ASSERT_OK(slice_reserve(&s, 4 * SLICE_UNIT));
        slice_close(&s);
        (void) close(said[0]);
        (void) close(said[1]);
        pages_remove(&p);
}

/* A process that reaches the limit reaps before it is refused. */
static void refusal_reaps(void) {
        Pages p = pages_make(4 * SLICE_UNIT);
        time_t end = time(NULL) + PAGES_DEADLINE;
        SliceUser s;
        pid_t pid = pages_fork();
        int r;

        if (pid == 0) {
                ASSERT_OK(slice_open(p.path, &s));
                ASSERT_OK(slice_reserve(&s, 4 * SLICE_UNIT));
                _exit(0);
        }
        ASSERT_CHILD_OK(pid);
        ASSERT_OK(slice_open(p.path, &s));
        while ((r = slice_reserve(&s, SLICE_UNIT)) == -ENOMEM && time(NULL) < end)
                (void) sched_yield();
        ASSERT_OK(r);
        ASSERT_INT(slice_used(&s), SLICE_UNIT);
        slice_close(&s);
        pages_remove(&p);
}

/* The lock belongs to the mapping that parent and child share, so the row lives as long as one of
 * them. */
static void fork_keeps_a_row(void) {
        Pages p = pages_make(4 * SLICE_UNIT);
        int said[2], go[2], gone[2];
        SliceUser s;
        pid_t pid;

        ASSERT_OK(slice_open(p.path, &s));
        ASSERT_OK(pipe2(said, O_CLOEXEC) | pipe2(go, O_CLOEXEC) | pipe2(gone, O_CLOEXEC));
        pid = pages_fork();
        if (pid == 0) {
                SliceUser parent;

                (void) close(go[1]); /* if the test ends early, the child ends, too */
                slice_close(&s);
                ASSERT_OK(slice_open(p.path, &parent));
                ASSERT_OK(slice_reserve(&parent, 3 * SLICE_UNIT));
                if (fork() == 0) { /* lives on with the mapping, without a parent */
                        say(said[1]);
                        hear(go[0]);
                        _exit(0);
                }
                _exit(0);
        }
        ASSERT_CHILD_OK(pid);
        (void) close(gone[1]);
        hear(said[0]);
        ASSERT_INT(slice_reap(&s), 0);
        ASSERT_INT(slice_used(&s), 3 * SLICE_UNIT);
        ASSERT_INT(pages_report(&p).dead, 0);
        say(go[1]);
        await_end(gone[0]); /* the grandchild had the last copy */
        pages_reap_to(&s, 0);
        slice_close(&s);
        for (size_t i = 0; i < 2; i++) {
                (void) close(said[i]);
                (void) close(go[i]);
        }
        (void) close(gone[0]);
        pages_remove(&p);
}

/* exec frees the driver's memory, and the row. The process lives on without a row. */
static void exec_frees_a_row(void) {
        Pages p = pages_make(4 * SLICE_UNIT);
        int in[2], out[2];
        char byte;
        SliceUser s;
        pid_t pid;

        ASSERT_OK(slice_open(p.path, &s));
        ASSERT_OK(pipe2(in, O_CLOEXEC) | pipe2(out, O_CLOEXEC));
        pid = pages_fork();
        if (pid == 0) {
                ASSERT_OK(slice_open(p.path, &s));
                ASSERT_OK(slice_reserve(&s, 3 * SLICE_UNIT));
                ASSERT_TRUE(dup2(in[0], STDIN_FILENO) >= 0 && dup2(out[1], STDOUT_FILENO) >= 0);
                (void) execl("/bin/cat", "cat", (char *) NULL);
                _exit(1);
        }
        say(in[1]);
        ASSERT_INT(read(out[0], &byte, 1), 1); /* cat is running */
        pages_reap_to(&s, 0);
        ASSERT_INT(pages_report(&p).n_alive, 1);
        (void) close(in[1]);
        ASSERT_CHILD_OK(pid);
        slice_close(&s);
        (void) close(in[0]);
        (void) close(out[0]);
        (void) close(out[1]);
        pages_remove(&p);
}

/* Memory that one process reserved and another one released: both rows are exact, and one is
 * negative. */
static void released_by_another(void) {
        Pages p = pages_make(4 * SLICE_UNIT);
        SliceUser one, other;

        ASSERT_OK(slice_open(p.path, &one));
        ASSERT_OK(slice_open(p.path, &other));
        ASSERT_OK(slice_reserve(&one, 4 * SLICE_UNIT));
        slice_release(&other, 4 * SLICE_UNIT);
        ASSERT_INT(slice_used(&one), 0);
        ASSERT_INT(pages_report(&p).held[other.row], -4 * SLICE_UNIT);
        slice_close(&other);
        ASSERT_INT(slice_reap(&one), 1);
        ASSERT_INT(slice_used(&one), 4 * SLICE_UNIT);
        slice_release(&one, 4 * SLICE_UNIT);
        slice_close(&one);
        pages_remove(&p);
}

/* No row may be reaped without a descriptor, or through another file of the same name. */
static void reaping_needs_the_same_file(void) {
        Pages p = pages_make(4 * SLICE_UNIT);
        SliceSpec spec = pages_spec(4 * SLICE_UNIT);
        struct rlimit many, none;
        Fault fault = FAULT_NULL;
        SliceUser s, dead;

        ASSERT_OK(slice_open(p.path, &s));
        ASSERT_OK(slice_open(p.path, &dead));
        ASSERT_OK(slice_reserve(&dead, SLICE_UNIT));
        slice_close(&dead);
        ASSERT_OK(getrlimit(RLIMIT_NOFILE, &many));
        none = (struct rlimit){0, many.rlim_max};
        ASSERT_OK(setrlimit(RLIMIT_NOFILE, &none));
        ASSERT_INT(slice_reap(&s), 0);
        ASSERT_INT(slice_open(p.path, &dead), -EMFILE);
        ASSERT_OK(setrlimit(RLIMIT_NOFILE, &many));
        ASSERT_OK(unlinkat(p.directory, "counters", 0));
        ASSERT_INT(slice_reap(&s), 0);
        ASSERT_OK(slice_files_make(p.directory, &spec, &fault));
        ASSERT_INT(slice_reap(&s), 0);
        ASSERT_INT(slice_used(&s), SLICE_UNIT);
        ASSERT_OK(slice_reserve(&s, 3 * SLICE_UNIT)); /* the old mapping still works */
        slice_close(&s);
        pages_remove(&p);
}

/* A dead process with memory on an open file. The question is asked through any file of that inode,
 * a file of another inode, and none. */
static void memory_of_a_dead_process(void) {
        Pages p = pages_make(4 * SLICE_UNIT);
        char name[] = "/tmp/test-slice-XXXXXX";
        int file = mkostemp(name, O_CLOEXEC), same = open(name, O_RDWR | O_CLOEXEC), other;
        uint64_t key = pin_key_new();
        SliceUser s, dead;

        other = open(p.path, O_RDONLY | O_CLOEXEC);
        ASSERT_OK(unlink(name));
        ASSERT_TRUE(file >= 0 && same >= 0 && other >= 0);
        ASSERT_OK(slice_open(p.path, &s));
        ASSERT_OK(slice_open_with(p.path, -1, key, &dead));
        pin_note_inodes(&dead.counters->rows[dead.row], pin_inode(file, PIN_RM));
        ASSERT_OK(pin_file(file, key));
        ASSERT_OK(slice_reserve(&dead, 3 * SLICE_UNIT));
        slice_close(&dead);
        for (int i = 0; i < 3; i++) {
                s.file = i == 0 ? -1 : i == 1 ? same : other;
                ASSERT_INT(slice_reap(&s), 0);
                ASSERT_TRUE(pin_holds_row(&s.counters->rows[dead.row], s.file));
        }
        ASSERT_OK(pin_file(same, key)); /* a second file */
        (void) close(file);
        for (int i = 0; i < 3; i++) {
                s.file = i == 0 ? -1 : i == 1 ? same : other;
                ASSERT_INT(slice_reap(&s), 0);
        }
        ASSERT_INT(slice_used(&s), 3 * SLICE_UNIT);
        (void) close(same);
        s.file = -1;
        ASSERT_INT(slice_reap(&s), 1);
        ASSERT_INT(slice_used(&s), 0);
        slice_close(&s);
        (void) close(other);
        pages_remove(&p);
}

/* Pinned rows are not given to new processes. Free rows are, and rows without open files. */
static void pinned_rows_are_not_reused(void) {
        Pages p = pages_make(SLICE_ROWS * SLICE_UNIT);
        char name[] = "/tmp/test-slice-XXXXXX";
        int file = mkostemp(name, O_CLOEXEC);
        uint64_t key = pin_key_new();
        SliceUser s;

        ASSERT_TRUE(file >= 0);
        ASSERT_OK(unlink(name));
        ASSERT_OK(pin_file(file, key));
        for (unsigned i = 0; i < SLICE_ROWS; i++) {
                ASSERT_OK(slice_open_with(p.path, file, key, &s));
                pin_note_inodes(&s.counters->rows[s.row], pin_inode(file, PIN_RM));
                ASSERT_OK(slice_reserve(&s, SLICE_UNIT));
                slice_close(&s);
        }
        ASSERT_INT(slice_open_with(p.path, file, key, &s), -EUSERS);
        ASSERT_INT(slice_open(p.path, &s), -EUSERS);
        (void) close(file);
        ASSERT_OK(slice_open(p.path, &s));
        ASSERT_INT(slice_used(&s), (SLICE_ROWS - 1) * SLICE_UNIT);
        ASSERT_INT(s.counters->rows[s.row].key, 0);
        pages_reap_to(&s, 0);
        slice_close(&s);
        pages_remove(&p);
}

/* Keys that no process can have written, and a row with locks in an unknown inode. */
static void keys(void) {
        static SliceRow row;

        ASSERT_FALSE(pin_holds_row(&row, -1));
        row.key = pin_key_new();
        ASSERT_TRUE(row.key > 0 && row.key < UINT64_C(1) << 62);
        ASSERT_FALSE(pin_holds_row(&row, -1));
        pin_note_inodes(&row, 5);
        pin_note_inodes(&row, 5);
        ASSERT_INT(row.inode, 5);
        ASSERT_FALSE(pin_holds_row(&row, -1));
        pin_note_inodes(&row, UINT64_C(9) << 32);
        ASSERT_INT(row.inode, UINT64_C(9) << 32 | 5);
        pin_note_inodes(&row, 7);
        ASSERT_INT(row.inode, UINT64_C(9) << 32 | 0xFFFFFFFE); /* several */
        row.key = UINT64_MAX;
        ASSERT_FALSE(pin_holds_row(&row, 0));
        ASSERT_INT(pin_inode(-1, PIN_RM), 0);
        ASSERT_INT(pin_file(-1, 5), -EBADF);
}

/* ---- signal handlers ---- */

static SliceUser *handled;
static volatile sig_atomic_t n_handled;

static void on_signal(int number) {
        if (slice_reserve(handled, SLICE_UNIT) == 0)
                slice_release(handled, SLICE_UNIT);
        n_handled++;
}

/* The handler finds a lane, whatever it interrupts. */
static void signal_handlers_find_a_lane(void) {
        Pages p = pages_make(8 * SLICE_UNIT);
        struct itimerval often = {{0, 100}, {0, 100}}, never = {{0, 0}, {0, 0}};
        struct sigaction act = {.sa_handler = on_signal};
        SliceUser s;

        ASSERT_OK(slice_open(p.path, &s));
        handled = &s;
        ASSERT_OK(sigaction(SIGALRM, &act, NULL));
        ASSERT_OK(setitimer(ITIMER_REAL, &often, NULL));
        while (n_handled < 200) {
                ASSERT_OK(slice_reserve(&s, 3 * SLICE_UNIT));
                slice_release(&s, 3 * SLICE_UNIT);
        }
        ASSERT_OK(setitimer(ITIMER_REAL, &never, NULL));
        ASSERT_INT(slice_used(&s), 0);
        ASSERT_INT(pages_report(&p).held[s.row], 0);
        slice_close(&s);
        pages_remove(&p);
}

/* ---- invalid pages ---- */

static int open_and_close(const Pages *p) {
        SliceUser s;
        int r = slice_open(p->path, &s);

        if (r == 0)
                slice_close(&s);
        return r;
}

static int open_with(const char *name, size_t at, uint64_t value, size_t size) {
        Pages p = pages_make(SLICE_UNIT);
        int r;

        pages_write(&p, name, &value, size, at);
        r = open_and_close(&p);
        pages_remove(&p);
        return r;
}

static int open_cut(const char *name, off_t length) {
        Pages p = pages_make(SLICE_UNIT);
        int fd = openat(p.directory, name, O_WRONLY | O_CLOEXEC), r;

        ASSERT_TRUE(fd >= 0);
        ASSERT_OK(ftruncate(fd, length));
        (void) close(fd);
        r = open_and_close(&p);
        pages_remove(&p);
        return r;
}

static void versions(void) {
        ASSERT_INT(open_with("limits", offsetof(SliceLimits, magic), 1, 8), -EPROTO);
        ASSERT_INT(open_with("limits", offsetof(SliceLimits, version), 1, 4), -EPROTO);
        ASSERT_INT(open_with("limits", offsetof(SliceLimits, version), 0, 4), -EPROTO);
        ASSERT_INT(open_with("limits", offsetof(SliceLimits, version), 3, 4), -EPROTO);
        ASSERT_INT(open_with("limits", offsetof(SliceLimits, size), 4095, 4), -EPROTO);
        ASSERT_INT(open_with("limits", offsetof(SliceLimits, size), 4097, 4), -EPROTO);
        ASSERT_INT(open_with("counters", offsetof(SliceCounters, magic), 1, 8), -EPROTO);
        ASSERT_INT(open_with("counters", offsetof(SliceCounters, version), 1, 4), -EPROTO);
        ASSERT_INT(open_with("counters", offsetof(SliceCounters, version), 3, 4), -EPROTO);
        ASSERT_INT(open_with("counters", offsetof(SliceCounters, size), 0, 4), -EPROTO);
        ASSERT_INT(open_cut("limits", sizeof(SliceLimits) - 1), -EPROTO);
        ASSERT_INT(open_cut("limits", 0), -EPROTO);
        ASSERT_INT(open_cut("limits", 2 * sizeof(SliceLimits)), 0);
        ASSERT_INT(open_cut("counters", sizeof(SliceCounters) - 1), -EPROTO);
        ASSERT_INT(open_cut("counters", 0), -EPROTO);
        ASSERT_INT(open_cut("counters", sizeof(SliceCounters) + 1), 0);
}

static void paths(void) {
        Pages p = pages_make(SLICE_UNIT);
        char path[SLICE_PATH + 16];
        SliceUser s;

        ASSERT_INT(slice_open("/proc/self/absent", &s), -ENOENT);
        memset(path, '/', sizeof path);
        memcpy(path, p.path, strlen(p.path));
        path[SLICE_PATH - sizeof "/counters" + 1] = '\0';
        ASSERT_INT(slice_open(path, &s), -ENAMETOOLONG);
        path[SLICE_PATH - sizeof "/counters"] = '\0'; /* the longest path */
        ASSERT_OK(slice_open(path, &s));
        slice_close(&s);
        ASSERT_OK(unlinkat(p.directory, "counters", 0));
        ASSERT_INT(slice_open(p.path, &s), -ENOENT);
        ASSERT_OK(mkfifoat(p.directory, "counters", 0666));
        ASSERT_INT(slice_open(p.path, &s), -EPROTO); /* and did not block */
        pages_remove(&p);
}

static void scribble(SliceCounters *c, Random *random, size_t n) {
        uint64_t *words = (uint64_t *) (void *) c;

        for (size_t i = 0; i < n; i++)
                words[2 + random_below(random, sizeof *c / 8 - 2)] = random_bits(random);
}

static void use(SliceUser *s, Random *random) {
        uint64_t bytes = random_below(random, 64 * MIB);

        if (slice_reserve(s, bytes) == 0)
                slice_release(s, bytes);
        slice_release(s, random_bits(random));
        (void) slice_reap(s);
        (void) slice_used(s);
}

/* Any contents: each call ends, and only the container's own sums are wrong. */
static void counters_with_any_content(void) {
        Pages p = pages_make(64 * MIB);
        Random random = {20261121};
        SliceUser s, other;

        ASSERT_OK(slice_open(p.path, &s));
        for (unsigned i = 0; i < 200; i++) {
                scribble(s.counters, &random, 1000);
                use(&s, &random);
                (void) pages_report(&p);
                if (slice_open(p.path, &other) == 0) {
                        use(&other, &random);
                        slice_close(&other);
                }
        }
        slice_close(&s);
        pages_remove(&p);
}

static void counters_overwritten_meanwhile(void) {
        Pages p = pages_make(64 * MIB);
        Random random = {1};
        SliceUser s;
        pid_t pid = pages_fork();

        if (pid == 0) {
                ASSERT_OK(slice_open(p.path, &s));
                for (;;) {
                        scribble(s.counters, &random, 64);
                        atomic_store(&s.counters->used, random_bits(&random));
                }
        }
        ASSERT_OK(slice_open(p.path, &s));
        for (unsigned i = 0; i < 3000; i++) {
                use(&s, &random);
                if (i % 100 == 0)
                        (void) pages_report(&p);
        }
        ASSERT_OK(kill(pid, SIGKILL));
        (void) pages_wait(pid);
        slice_close(&s);
        pages_remove(&p);
}

int main(void) {
        return TEST_MAIN(TEST(limit_is_exact), TEST(limit_between_units), TEST(sizes_that_overflow),
                         TEST(limit_of_zero), TEST(sequences_wrap), TEST(errno_is_kept), TEST(limit_changes),
                         TEST(limit_is_never_completed), TEST(every_row_is_taken), TEST(without_a_row),
                         TEST(death_frees_a_row), TEST(refusal_reaps), TEST(fork_keeps_a_row),
                         TEST(exec_frees_a_row), TEST(released_by_another), TEST(reaping_needs_the_same_file),
                         TEST(memory_of_a_dead_process), TEST(pinned_rows_are_not_reused), TEST(keys),
                         TEST(signal_handlers_find_a_lane), TEST(versions), TEST(paths),
                         TEST(counters_with_any_content), TEST(counters_overwritten_meanwhile));
}
