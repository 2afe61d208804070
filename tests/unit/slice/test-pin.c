/* SPDX-License-Identifier: Apache-2.0 */

/* How memory of a dead process is recognised as still allocated, whatever else is locked of the
 * same inode. And rows that outlive their process with it. */

#include <errno.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>

#include "pages.h"
#include "slice/pin.h"

typedef struct Files { /* of one inode */
        int one, two, neighbour;
} Files;

static Files files_make(void) {
        char name[] = "/tmp/test-hold-XXXXXX";
        Files f = {.one = mkostemp(name, O_CLOEXEC)};

        f.two = open(name, O_RDWR | O_CLOEXEC);
        f.neighbour = open(name, O_RDWR | O_CLOEXEC);
        ASSERT_OK(unlink(name));
        ASSERT_TRUE(f.one >= 0 && f.two >= 0 && f.neighbour >= 0);
        return f;
}

static void files_close(Files *f) {
        int *all[] = {&f->one, &f->two, &f->neighbour};

        for (size_t i = 0; i < ELEMENTSOF(all); i++)
                if (*all[i] >= 0)
                        (void) close(*all[i]);
}

/* length 0: to the end */
static void lock(int fd, short type, uint64_t start, uint64_t length) {
        struct flock l = {
                .l_type = type, .l_whence = SEEK_SET, .l_start = (off_t) start, .l_len = (off_t) length};

        ASSERT_OK(fcntl(fd, F_OFD_SETLK, &l));
}

/* nvidiactl and nvidia-uvm have neighbouring inodes in most containers. */
static void neighbouring_inodes_differ(void) {
        Files files[16];

        for (size_t i = 0; i < ELEMENTSOF(files); i++)
                files[i] = files_make();
        for (size_t i = 0; i < ELEMENTSOF(files); i++) {
                ASSERT_TRUE(pin_inode(files[i].one, PIN_RM) == pin_inode(files[i].two, PIN_RM));
                for (size_t k = 0; k < i; k++)
                        ASSERT_TRUE(pin_inode(files[i].one, PIN_RM) != pin_inode(files[k].one, PIN_RM));
        }
        for (size_t i = 0; i < ELEMENTSOF(files); i++)
                files_close(&files[i]);
}

/* ---- the kernel's list ---- */

typedef struct Looked {
        bool key, others;
} Looked;

static bool look(void *userdata, uint64_t key) {
        Looked *l = userdata;

        l->key |= key == 77;
        l->others |= key != 77 && key < PIN_KEY_END;
        return false;
}

static Looked found(const char *text, size_t piece) {
        Looked l = {false, false};
        PinScan scan = PIN_SCAN(look, &l);

        for (size_t at = 0, n = strlen(text); at < n; at += piece)
                pin_scan(&scan, text + at, n - at < piece ? n - at : piece);
        return l;
}

static void lists(void) {
        static const struct {
                const char *text;
                bool key, others; /* is key 77 found; is another one */
        } cases[] = {
                {"1: OFDLCK ADVISORY  READ -1 00:1f:77 77 77\n", true, false},
                {"lock:\t1: OFDLCK  ADVISORY  READ -1 00:05:123 77 77\n", true, false},
                {"1: POSIX  ADVISORY  WRITE 77 08:01:77 0 EOF\n", false, false},
                {"1: OFDLCK ADVISORY  READ -1 00:1f:1 0 9223372036854775806\n", false, false},
                {"1: OFDLCK ADVISORY  READ -1 00:1f:1 77 78\n", false, false},
                {"1: OFDLCK ADVISORY  READ -1 00:1f:1 76 77\n", false, false},
                {"1: OFDLCK ADVISORY  READ -1 00:1f:1 77 EOF\n", false, false},
                {"1: FLOCK  ADVISORY  WRITE 77 00:1f:1 0 EOF\n2: OFDLCK ADVISORY  READ -1 00:1f:1 77 77\n",
                 true, false},
                {"1: OFDLCK ADVISORY  READ -1 00:1f:1 78 78\n", false, true},
                {"1: OFDLCK ADVISORY  READ -1 00:1f:1 4611686018427387904 4611686018427387904\n", false,
                 false},
                {"1: OFDLCK ADVISORY  READ -1 00:1f:1 18446744073709551693 18446744073709551693\n", false,
                 false},
                {"1: OFDLCK ADVISORY  READ -1 00:1f:1 77 77", false, false}, /* not a whole line */
                {"77\n77 \n77\t77x\nx77 77 -77\n", false, false},
                {"pos:\t0\nflags:\t02\nmnt_id:\t77\nino:\t77\n", false, false},
                {"0 0\n\n \n", false, false},
                {"77  77\n", true, false},
        };

        for (size_t i = 0; i < ELEMENTSOF(cases); i++)
                for (size_t piece = 1; piece < 100; piece += 7) {
                        ASSERT_INT(found(cases[i].text, piece).key, cases[i].key);
                        ASSERT_INT(found(cases[i].text, piece).others, cases[i].others);
                }
}

static void many_at_once(void) {
        Files f = files_make();
        uint64_t keys[4];
        bool listed[4];

        for (size_t i = 0; i < ELEMENTSOF(keys); i++)
                keys[i] = pin_key_new();
        keys[3] = 0; /* no key, though that byte is locked */
        lock(f.neighbour, F_RDLCK, 0, 1);
        ASSERT_OK(pin_file(f.one, keys[2]));
        pin_find_listed(keys, listed, ELEMENTSOF(keys));
        ASSERT_TRUE(!listed[0] && !listed[1] && listed[2] && !listed[3]);
        files_close(&f);
}

/* ---- locks that end while the list is read ---- */

enum { AHEAD = 1000, PART = 10, DISTURBED = 2 };

static void lock_ahead(int fd) {
        for (unsigned i = 0; i < AHEAD; i++)
                lock(fd, F_WRLCK, 1 + 2 * i, 1);
}

/* The number of a system call that the child enters; -1: another stop, or its end. */
static long next_call(pid_t child, int *ret_status) {
        struct __ptrace_syscall_info info = {.op = PTRACE_SYSCALL_INFO_NONE};

        ASSERT_OK(ptrace(PTRACE_SYSCALL, child, NULL, NULL));
        ASSERT_INT(waitpid(child, ret_status, 0), child);
        if (!WIFSTOPPED(*ret_status))
                return -1;
        ASSERT_TRUE(ptrace(PTRACE_GET_SYSCALL_INFO, child, sizeof info, &info) > 0);
        return info.op == PTRACE_SYSCALL_INFO_ENTRY ? (long) info.entry.nr : -1;
}

/* In the middle of the first two readings all locks before the key's end, so that its line gets a
 * number that was read already. The kernel puts younger locks of a processor first. */
static void locks_end_during_a_reading(void) {
        Files f = files_make(), others = files_make();
        uint64_t key = pin_key_new();
        unsigned opened = 0, reads = 0;
        cpu_set_t all, one;
        int status;
        pid_t child;

        ASSERT_OK(sched_getaffinity(0, sizeof all, &all));
        CPU_ZERO(&one);
        CPU_SET((size_t) sched_getcpu(), &one);
        ASSERT_OK(sched_setaffinity(0, sizeof one, &one));
        ASSERT_OK(pin_file(f.one, key));
        child = pages_fork();
        if (child == 0) {
                bool listed;

                ASSERT_OK(ptrace(PTRACE_TRACEME, 0, NULL, NULL));
                (void) raise(SIGSTOP);
                pin_find_listed(&key, &listed, 1);
                _exit(listed ? 0 : 1);
        }
        ASSERT_INT(waitpid(child, &status, 0), child);
        ASSERT_OK(ptrace(PTRACE_SETOPTIONS, child, NULL, (void *) PTRACE_O_TRACESYSGOOD));
        while (!WIFEXITED(status)) {
                long call = next_call(child, &status);

                if (call == SYS_openat) {
                        lock_ahead(others.one);
                        opened++;
                        reads = 0;
                }
                if (call == SYS_read && ++reads == PART && opened <= DISTURBED)
                        lock(others.one, F_UNLCK, 0, 0);
        }
        ASSERT_INT(WEXITSTATUS(status), 0);
        ASSERT_TRUE(opened > DISTURBED);
        ASSERT_OK(sched_setaffinity(0, sizeof all, &all));
        files_close(&others);
        files_close(&f);
}

/* ---- exactly one byte ---- */

static void larger_locks_do_not_count(void) {
        Files f = files_make();
        uint64_t key = pin_key_new();

        ASSERT_INT(pin_ask(f.two, key, false), PIN_NO);
        lock(f.neighbour, F_RDLCK, 0, 0);
        ASSERT_INT(pin_ask(f.two, key, false), PIN_UNSURE);
        ASSERT_OK(pin_file(f.one, key)); /* behind the other lock */
        ASSERT_INT(pin_ask(f.two, key, false), PIN_UNSURE);
        lock(f.neighbour, F_UNLCK, 0, 0);
        ASSERT_INT(pin_ask(f.two, key, false), PIN_YES);
        ASSERT_INT(pin_ask(f.two, key + 1, false), PIN_NO);
        lock(f.neighbour, F_RDLCK, key - 1, 3);
        ASSERT_TRUE(pin_ask(f.two, key, false) != PIN_NO);
        (void) close(f.one);
        f.one = -1;
        ASSERT_INT(pin_ask(f.two, key, false), PIN_UNSURE);
        ASSERT_INT(pin_ask(-1, key, false), PIN_UNSURE);
        lock(f.neighbour, F_WRLCK, 0, 0);
        ASSERT_INT(pin_file(f.two, key), -EAGAIN);
        files_close(&f);
}

/* No lock can come to hide it, so a larger one shows that it is gone. */
static void keys_of_one_file(void) {
        Files f = files_make();
        struct flock all = {.l_type = F_RDLCK, .l_whence = SEEK_SET};
        uint64_t key = pin_key_new() | PIN_KEY_END;
        bool alone = false;

        ASSERT_OK(pin_file_alone(f.one, key, &alone));
        ASSERT_TRUE(alone);
        ASSERT_TRUE(fcntl(f.neighbour, F_OFD_SETLK, &all) < 0);
        ASSERT_INT(pin_ask(f.two, key, true), PIN_YES);
        (void) close(f.one);
        f.one = -1;
        ASSERT_INT(pin_ask(f.two, key, true), PIN_NO);
        lock(f.neighbour, F_RDLCK, 0, 0);
        ASSERT_INT(pin_ask(f.two, key, true), PIN_NO);
        ASSERT_OK(pin_file_alone(f.two, key, &alone)); /* beside the neighbour's */
        ASSERT_FALSE(alone);
        files_close(&f);
}

static void sum_up(void *userdata, uint64_t key) {
        *(uint64_t *) userdata += key;
}

static uint64_t exports_of(int fd) {
        uint64_t sum = 0;

        ASSERT_OK(pin_each_export(fd, sum_up, &sum));
        return sum;
}

/* The locks of the open file, not of the inode, also behind a lock of another process. */
static void exports_of_a_file(void) {
        Files f = files_make();
        uint64_t one = PIN_KEY_END | pin_key_new(), two = PIN_KEY_END | pin_key_new(), sum = 0;

        lock(f.neighbour, F_RDLCK, 0, 0);
        ASSERT_OK(pin_file(f.one, pin_key_new())); /* the key of a row */
        ASSERT_INT(exports_of(f.one), 0);
        ASSERT_OK(pin_file(f.one, one));
        ASSERT_OK(pin_file(f.two, two));
        ASSERT_INT(exports_of(f.one), one);
        ASSERT_OK(pin_file(f.one, two));
        ASSERT_INT(exports_of(f.one), one + two);
        pin_release(f.one, one);
        ASSERT_INT(exports_of(f.one), two);
        ASSERT_INT(exports_of(f.two), two);
        ASSERT_INT(pin_each_export(-1, sum_up, &sum), -EBADF);
        files_close(&f);
}

static void a_row_behind_a_larger_lock(void) {
        Files f = files_make();
        static SliceRow row;

        row.key = pin_key_new();
        pin_note_inodes(&row, pin_inode(f.one, PIN_RM));
        lock(f.neighbour, F_RDLCK, 0, 0);
        ASSERT_FALSE(pin_holds_row(&row, f.two));
        ASSERT_OK(pin_file(f.one, row.key));
        ASSERT_TRUE(pin_holds_row(&row, f.two));
        files_close(&f);
}

/* In the driver's directory, under the driver's names. */
typedef struct Directory {
        char name[32], rm[48], uvm[48];
} Directory;

static Directory directory_make(void) {
        Directory d = {.name = "/tmp/test-pin-XXXXXX"};

        ASSERT_TRUE(mkdtemp(d.name));
        (void) snprintf(d.rm, sizeof d.rm, "%s/nvidiactl", d.name);
        (void) snprintf(d.uvm, sizeof d.uvm, "%s/nvidia-uvm", d.name);
        return d;
}

static int make_file(const char *name) {
        int fd = open(name, O_RDWR | O_CREAT | O_CLOEXEC, 0600);

        ASSERT_TRUE(fd >= 0);
        return fd;
}

static PinAnswer answer_of(const SliceRow *row, int file) {
        PinFiles files = PIN_FILES(file);
        PinAnswer answer = pin_query_row(row, &files);

        pin_files_close(&files);
        return answer;
}

/* Without the list: the other inode is opened beside the file at hand. */
static void rows_of_two_inodes(void) {
        Directory d = directory_make();
        int rm = make_file(d.rm), uvm = make_file(d.uvm), held_rm, held_uvm;
        static SliceRow row;

        row.key = pin_key_new();
        pin_note_inodes(&row, pin_merge_inodes(pin_inode(rm, PIN_RM), pin_inode(uvm, PIN_UVM)));
        for (unsigned i = 0; i < 4; i++) {
                PinAnswer want = i > 0 ? PIN_YES : PIN_NO;

                held_rm = open(d.rm, O_RDWR | O_CLOEXEC);
                held_uvm = open(d.uvm, O_RDWR | O_CLOEXEC);
                ASSERT_OK(i & 1 ? pin_file(held_rm, row.key) : 0);
                ASSERT_OK(i & 2 ? pin_file(held_uvm, row.key) : 0);
                ASSERT_INT(answer_of(&row, rm), want);
                ASSERT_INT(answer_of(&row, uvm), want);
                (void) close(held_rm);
                (void) close(held_uvm);
                ASSERT_INT(answer_of(&row, rm), PIN_NO);
        }
        ASSERT_TRUE(answer_of(&row, -1) != PIN_NO);
        ASSERT_OK(unlink(d.uvm));
        if (access("/dev/nvidia-uvm", F_OK) < 0)
                ASSERT_INT(answer_of(&row, rm), PIN_YES);
        (void) close(make_file(d.uvm)); /* another inode under that name */
        ASSERT_INT(answer_of(&row, rm), PIN_UNSURE);
        ASSERT_INT(answer_of(&row, uvm), PIN_NO);
        pin_note_inodes(&row, pin_inode(uvm, PIN_OTHER));
        ASSERT_INT(answer_of(&row, rm), PIN_UNSURE);
        ASSERT_OK(pin_file(rm, row.key));
        ASSERT_INT(answer_of(&row, rm), PIN_YES);
        (void) close(rm);
        (void) close(uvm);
        ASSERT_OK(unlink(d.uvm));
        ASSERT_OK(unlink(d.rm));
        ASSERT_OK(rmdir(d.name));
}

static void shared_files_are_recognised(void) {
        Files f = files_make();
        uint64_t key = pin_key_new();

        ASSERT_FALSE(pin_is_shared(f.one, &key, 1));
        ASSERT_FALSE(pin_is_shared(-1, &key, 1));
        ASSERT_OK(pin_file(f.one, key));
        ASSERT_FALSE(pin_is_shared(f.one, &key, 1));
        ASSERT_OK(pin_file(f.two, pin_key_new()));
        /* A lock of the same inode, not of this file. */
        ASSERT_FALSE(pin_is_shared(f.one, &key, 1));
        ASSERT_OK(pin_file(f.one, pin_key_new() | PIN_KEY_END));
        ASSERT_FALSE(pin_is_shared(f.one, &key, 1)); /* not the key of a row */
        ASSERT_OK(pin_file(f.one, pin_key_new()));
        ASSERT_TRUE(pin_is_shared(f.one, &key, 1));
        files_close(&f);
}

static void several_own_keys(void) {
        uint64_t keys[] = {pin_key_new(), pin_key_new()};
        Files f = files_make();

        ASSERT_OK(pin_file(f.one, keys[0]));
        ASSERT_OK(pin_file(f.one, keys[1]));
        ASSERT_FALSE(pin_is_shared(f.one, keys, 2));
        ASSERT_TRUE(pin_is_shared(f.one, keys, 1));
        ASSERT_OK(pin_file(f.one, pin_key_new()));
        ASSERT_TRUE(pin_is_shared(f.one, keys, 2));
        files_close(&f);
}

/* ---- further rows ---- */

static void rows_end_separately(void) {
        Pages p = pages_make(16 * SLICE_UNIT);
        Files f = files_make();
        uint64_t key = pin_key_new();
        SliceUser s, dead, beside;

        ASSERT_OK(slice_open(p.path, &s));
        ASSERT_OK(slice_open_with(p.path, -1, pin_key_new(), &dead));
        ASSERT_OK(slice_open_row(&dead, -1, key, false, &beside));
        ASSERT_TRUE(beside.row != dead.row);
        ASSERT_INT(slice_limit(&beside), 16 * SLICE_UNIT);
        pin_note_inodes(&beside.counters->rows[beside.row], pin_inode(f.one, PIN_RM));
        ASSERT_OK(pin_file(f.one, key));
        ASSERT_OK(slice_reserve(&dead, 16 * SLICE_UNIT));
        ASSERT_OK(slice_move(&dead, &beside, 5 * SLICE_UNIT));
        ASSERT_INT(slice_used(&s), 16 * SLICE_UNIT);
        ASSERT_INT(pages_report(&p).peak, 16 * SLICE_UNIT);
        ASSERT_INT(pages_report(&p).held[beside.row], 5 * SLICE_UNIT);
        ASSERT_INT(slice_move(&dead, &beside, UINT64_MAX - SLICE_UNIT), -ENOMEM);
        slice_close(&beside);
        slice_close(&dead);
        s.file = f.two;
        ASSERT_INT(slice_reap(&s), 1);
        ASSERT_INT(slice_used(&s), 5 * SLICE_UNIT);
        ASSERT_INT(pages_report(&p).pinned, 5 * SLICE_UNIT);
        ASSERT_INT(pages_report(&p).dead, 0);
        (void) close(f.one);
        f.one = -1;
        ASSERT_INT(pages_report(&p).pinned, 0);
        ASSERT_INT(pages_report(&p).dead, 5 * SLICE_UNIT);
        ASSERT_INT(slice_reap(&s), 1);
        ASSERT_INT(slice_used(&s), 0);
        slice_close(&s);
        files_close(&f);
        pages_remove(&p);
}

/* More rows than one look at the list can decide. Every third one's memory is still there. */
static void rows_end_behind_a_larger_lock(void) {
        enum { DEAD = PIN_BATCH_MAX + 40 };
        Pages p = pages_make(SLICE_ROWS * SLICE_UNIT);
        Files f = files_make();
        static SliceUser dead[DEAD];
        SliceUser s;

        ASSERT_OK(slice_open(p.path, &s));
        for (size_t i = 0; i < DEAD; i++) {
                uint64_t key = pin_key_new();

                ASSERT_OK(slice_open_with(p.path, -1, key, &dead[i]));
                pin_note_inodes(&dead[i].counters->rows[dead[i].row], pin_inode(f.one, PIN_RM));
                if (i % 3 == 0)
                        ASSERT_OK(pin_file(f.one, key));
                ASSERT_OK(slice_reserve(&dead[i], SLICE_UNIT));
        }
        for (size_t i = 0; i < DEAD; i++)
                slice_close(&dead[i]);
        lock(f.neighbour, F_RDLCK, 0, 0);
        s.file = f.two;
        ASSERT_INT(slice_reap(&s), DEAD - (DEAD + 2) / 3);
        ASSERT_INT(slice_used(&s), (DEAD + 2) / 3 * SLICE_UNIT);
        ASSERT_INT(slice_reap(&s), 0);
        (void) close(f.one);
        f.one = -1;
        ASSERT_INT(slice_reap(&s), (DEAD + 2) / 3);
        ASSERT_INT(slice_used(&s), 0);
        slice_close(&s);
        files_close(&f);
        pages_remove(&p);
}

/* Many processes that end one after the other need one row, as long as what they leave is there. */
static void rows_are_adopted(void) {
        Pages p = pages_make(2 * SLICE_ROWS * SLICE_UNIT);
        Files f = files_make();
        uint32_t first = 0;
        uint64_t key;
        SliceUser s, each;

        ASSERT_OK(slice_open(p.path, &s));
        key = slice_shared_key(&s);
        ASSERT_TRUE(key > 0 && key < PIN_KEY_END);
        ASSERT_INT(slice_shared_key(&s), key);
        ASSERT_OK(pin_file(f.one, key));
        for (unsigned i = 0; i < SLICE_ROWS + 10; i++) {
                ASSERT_OK(slice_open_row(&s, f.two, key, true, &each));
                first = i == 0 ? each.row : first;
                ASSERT_INT(each.row, first);
                pin_note_inodes(&each.counters->rows[each.row], pin_inode(f.one, PIN_RM));
                ASSERT_OK(slice_reserve(&each, SLICE_UNIT));
                slice_close(&each);
        }
        ASSERT_INT(slice_used(&s), (SLICE_ROWS + 10) * SLICE_UNIT);
        ASSERT_OK(slice_open_row(&s, f.two, key, true, &each));
        s.file = f.two;
        ASSERT_INT(slice_reap(&s), 0); /* it has an owner */
        slice_close(&each);
        ASSERT_INT(slice_reap(&s), 0);
        (void) close(f.one);
        f.one = -1;
        /* A row without memory is not adopted. */
        ASSERT_OK(slice_open_row(&s, f.two, key, true, &each));
        (void) slice_reap(&s);
        ASSERT_INT(slice_used(&s), 0);
        slice_close(&each);
        slice_close(&s);
        files_close(&f);
        pages_remove(&p);
}

static void a_further_row_needs_the_same_file(void) {
        Pages p = pages_make(4 * SLICE_UNIT);
        SliceSpec spec = pages_spec(4 * SLICE_UNIT);
        Fault fault = FAULT_NULL;
        SliceUser s, beside;

        ASSERT_OK(slice_open(p.path, &s));
        ASSERT_OK(unlinkat(p.directory, "counters", 0));
        ASSERT_INT(slice_open_row(&s, -1, 5, false, &beside), -ENOENT);
        ASSERT_OK(slice_files_make(p.directory, &spec, &fault));
        ASSERT_INT(slice_open_row(&s, -1, 5, true, &beside), -ESTALE);
        slice_close(&s);
        pages_remove(&p);
}

/* ---- fork ---- */

/* A child that lives on and has only its parent's mappings. */
static void in_a_child(SliceUser *s, bool keeps, int *ret_go, pid_t *ret_child) {
        int go[2];

        ASSERT_OK(pipe2(go, O_CLOEXEC));
        *ret_child = pages_fork();
        if (*ret_child == 0) {
                char byte;

                (void) close(go[1]);
                if (!keeps)
                        slice_close_after_fork(s);
                _exit(read(go[0], &byte, 1) == 0 ? 0 : 1);
        }
        (void) close(go[0]);
        *ret_go = go[1];
}

static void children_do_not_inherit_keyed_rows(void) {
        Pages p = pages_make(4 * SLICE_UNIT);

        for (int kept = 0; kept < 2; kept++) {
                SliceUser s, dying;
                pid_t child;
                int go;

                ASSERT_OK(slice_open(p.path, &s));
                ASSERT_OK(slice_open_with(p.path, -1, pin_key_new(), &dying));
                ASSERT_OK(slice_reserve(&dying, SLICE_UNIT));
                if (kept)
                        slice_inherit_on_fork(&dying);
                in_a_child(&dying, true, &go, &child);
                slice_close(&dying);
                if (kept)
                        ASSERT_INT(slice_reap(&s), 0);
                else
                        pages_reap_to(&s, 0);
                (void) close(go);
                ASSERT_CHILD_OK(child);
                pages_reap_to(&s, 0);
                slice_close(&s);
        }
        pages_remove(&p);
}

/* A child unmaps its copies of the counters, and nothing else. */
static void children_unmap_only_their_copies(void) {
        Pages p = pages_make(4 * SLICE_UNIT);
        SliceUser s;
        pid_t pid;

        ASSERT_OK(slice_open_with(p.path, -1, pin_key_new(), &s));
        pid = pages_fork();
        if (pid == 0) {
                char *mine = mmap((void *) s.counters, sizeof *s.counters, PROT_READ | PROT_WRITE,
                                  MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);

                ASSERT_TRUE(mine == (char *) s.counters); /* the address was free */
                mine[7] = 5;
                slice_close_after_fork(&s);
                ASSERT_INT(mine[7], 5);
                _exit(0);
        }
        ASSERT_CHILD_OK(pid);
        slice_close(&s);
        pages_remove(&p);
}

int main(void) {
        return TEST_MAIN(TEST(neighbouring_inodes_differ), TEST(lists), TEST(many_at_once),
                         TEST(locks_end_during_a_reading), TEST(larger_locks_do_not_count),
                         TEST(keys_of_one_file), TEST(exports_of_a_file), TEST(rows_of_two_inodes),
                         TEST(a_row_behind_a_larger_lock), TEST(shared_files_are_recognised),
                         TEST(several_own_keys), TEST(rows_end_separately),
                         TEST(rows_end_behind_a_larger_lock), TEST(rows_are_adopted),
                         TEST(a_further_row_needs_the_same_file), TEST(children_do_not_inherit_keyed_rows),
                         TEST(children_unmap_only_their_copies));
}
