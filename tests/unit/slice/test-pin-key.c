/* SPDX-License-Identifier: Apache-2.0 */

/* Keys without random numbers, and locks by the access mode of a file. */

#include "slice/pin.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "test.h"

enum { CHILDREN = 16, EACH = 64, KEYS = CHILDREN * EACH };

/* ---- keys ---- */

/* A seccomp filter without random numbers, files and time, as in a strict sandbox. False: seccomp
 * is not available. */
static bool deny(void) {
        struct sock_filter filter[] = {
                BPF_STMT(BPF_LD | BPF_W | BPF_ABS, 0),
                BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_getrandom, 2, 0),
                BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_openat, 1, 0),
                BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_clock_gettime, 0, 1),
                BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSYS),
                BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
        };
        struct sock_fprog program = {.len = sizeof filter / sizeof *filter, .filter = filter};

        return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
               prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

static int compare(const void *a, const void *b) {
        uint64_t x = *(const uint64_t *) a, y = *(const uint64_t *) b;

        return x < y ? -1 : x > y;
}

static void check_keys(uint64_t *keys) {
        qsort(keys, KEYS, sizeof *keys, compare);
        for (size_t i = 0; i < KEYS; i++) {
                ASSERT_TRUE(keys[i] > 0 && keys[i] < UINT64_C(1) << 62);
                ASSERT_TRUE(i == 0 || keys[i] != keys[i - 1]);
        }
}

/* Children of one process, which differ by their numbers only. */
static void make_keys(uint64_t *keys, bool denied) {
        for (size_t i = 0; i < CHILDREN; i++) {
                pid_t pid = fork();
                int status;

                ASSERT_TRUE(pid >= 0);
                if (pid == 0) {
                        if (denied && !deny())
                                _exit(77);
                        for (size_t k = 0; k < EACH; k++)
                                keys[i * EACH + k] = pin_key_new();
                        _exit(0);
                }
                ASSERT_INT(waitpid(pid, &status, 0), pid);
                if (WIFEXITED(status) && WEXITSTATUS(status) == 77)
                        exit(77);
                ASSERT_OK(status);
        }
}

static void all_keys_differ(void) {
        uint64_t *keys =
                mmap(NULL, KEYS * sizeof *keys, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

        ASSERT_TRUE(keys != MAP_FAILED);
        for (int denied = 0; denied < 2; denied++) {
                make_keys(keys, denied);
                check_keys(keys);
        }
        ASSERT_OK(munmap(keys, KEYS * sizeof *keys));
}

/* ---- locks ---- */

typedef struct Node {
        char name[32];
        uint64_t key;
        SliceRow row;
} Node;

static Node node_make(void) {
        Node n = {.name = "/tmp/test-keys-XXXXXX", .key = pin_key_new()};
        int fd = mkostemp(n.name, O_CLOEXEC);

        ASSERT_TRUE(fd >= 0);
        n.row.key = n.key;
        pin_note_inodes(&n.row, pin_inode(fd, PIN_RM));
        (void) close(fd);
        return n;
}

static int node_open(const Node *n, int mode) {
        int fd = open(n->name, mode | O_CLOEXEC);

        ASSERT_TRUE(fd >= 0);
        return fd;
}

/* Asks through a file of that inode, whatever its access mode, and through none. */
static void check_held(const Node *n, bool held) {
        for (int mode = O_RDONLY; mode <= O_RDWR; mode++) {
                int fd = node_open(n, mode);

                ASSERT_INT(pin_holds_row(&n->row, fd), held);
                (void) close(fd);
        }
        ASSERT_INT(pin_holds_row(&n->row, -1), held);
}

static void every_access_mode(void) {
        for (int mode = O_RDONLY; mode <= O_RDWR; mode++) {
                Node n = node_make();
                int fd = node_open(&n, mode);

                ASSERT_OK(pin_file(fd, n.key));
                ASSERT_OK(pin_file(fd, n.key)); /* a second time */
                check_held(&n, true);
                (void) close(fd);
                check_held(&n, false);
                (void) unlink(n.name);
        }
}

/* Several files of one inode, in any order. */
static void several_files(void) {
        for (int first = O_RDONLY; first <= O_RDWR; first++)
                for (int second = O_RDONLY; second <= O_RDWR; second++) {
                        Node n = node_make();
                        int a = node_open(&n, first), b = node_open(&n, second);

                        ASSERT_OK(pin_file(a, n.key));
                        ASSERT_OK(pin_file(b, n.key));
                        check_held(&n, true);
                        (void) close(b);
                        check_held(&n, true);
                        (void) close(a);
                        check_held(&n, false);
                        (void) unlink(n.name);
                }
}

/* A lock that is not available: another process has locked more of the inode, or the file is open
 * for neither reading nor writing. */
static void locks_that_are_not_available(void) {
        struct flock all = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
        Node n = node_make();
        int a = node_open(&n, O_RDWR), b = node_open(&n, O_RDWR), c = node_open(&n, O_WRONLY),
            neither = node_open(&n, O_WRONLY | O_RDWR);

        ASSERT_INT(pin_file(neither, n.key), -EBADF);
        ASSERT_OK(fcntl(a, F_OFD_SETLK, &all));
        ASSERT_TRUE(pin_file(b, n.key) < 0);
        ASSERT_TRUE(pin_file(c, n.key) < 0);
        (void) close(a);
        ASSERT_OK(pin_file(b, n.key));
        ASSERT_OK(pin_file(c, n.key));
        (void) close(b);
        (void) close(c);
        (void) close(neither);
        (void) unlink(n.name);
}

int main(void) {
        return TEST_MAIN(TEST(all_keys_differ), TEST(every_access_mode), TEST(several_files),
                         TEST(locks_that_are_not_available));
}
