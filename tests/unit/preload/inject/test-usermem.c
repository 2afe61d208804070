/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "preload/inject/spin.h"
#include "preload/inject/usermem.h"
#include "test.h"

enum { PAGE = 4096 };

/* Three pages; the second cannot be accessed. */
static char *hole(void) {
        char *p = mmap(NULL, 3 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

        ASSERT_TRUE(p != MAP_FAILED);
        memset(p, 'x', 3 * PAGE);
        ASSERT_OK(
                mprotect(p + PAGE, PAGE, PROT_NONE)); /* not unmapped, so that nothing else is mapped there */
        return p;
}

static void copies(void) {
        char *far = hole(), near[32] = "near", got[160];

        memcpy(far, "far", 4);
        ASSERT_OK(usermem_read(got, (uintptr_t) far, 32));
        ASSERT_TEXT(got, "far");
        ASSERT_OK(usermem_read(got, (uintptr_t) near, 32));
        ASSERT_TEXT(got, "near");
        ASSERT_OK(usermem_write((uintptr_t) far, "there", 6));
        ASSERT_TEXT(far, "there");
        ASSERT_OK(usermem_write((uintptr_t) near, "here", 5));
        ASSERT_TEXT(near, "here");
        ASSERT_OK(usermem_write((uintptr_t) far + 1, "o", 1));
        ASSERT_TEXT(far, "toere");
}

static void faults(void) {
        static const uint64_t bad[] = {
                0, 8, 0x200000, UINT64_C(1) << 47, UINT64_C(0xFFFF800000000000), UINT64_MAX - 7, UINT64_MAX};
        char *p = hole(), got[160];

        for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
                ASSERT_INT(usermem_read(got, bad[i], 32), -EFAULT);
                ASSERT_INT(usermem_write(bad[i], got, 32), -EFAULT);
                ASSERT_INT(usermem_read(got, bad[i], 4), -EFAULT);
        }
        ASSERT_INT(usermem_read(got, (uintptr_t) p + PAGE - 31, 32), -EFAULT);
        ASSERT_OK(usermem_read(got, (uintptr_t) p + PAGE - 32, 32));
        ASSERT_OK(mprotect(p, PAGE, PROT_READ));
        ASSERT_INT(usermem_write((uintptr_t) p, got, 32), -EFAULT);
        ASSERT_OK(usermem_read(got, (uintptr_t) p, 32));
}

static void some(void) {
        char *p = hole(), got[160];

        ASSERT_INT(usermem_read_some(got, (uintptr_t) p + PAGE - 128, 160), 128);
        ASSERT_INT(got[127], 'x');
        ASSERT_INT(got[128], 0);
        ASSERT_INT(usermem_read_some(got, (uintptr_t) p, 160), 160);
        ASSERT_INT(usermem_read_some(got, (uintptr_t) p + PAGE, 160), 0);
        ASSERT_INT(usermem_read_some(got, 0, 160), 0);
}

static void *on_a_thread(void *unused) {
        copies();
        faults();
        some();
        return unused;
}

static void in_threads(void) {
        pthread_t thread;

        ASSERT_OK(pthread_create(&thread, NULL, on_a_thread, NULL));
        ASSERT_OK(pthread_join(thread, NULL));
}

/* A stack that the program made, with a guard page above it, and with the thread-local data near:
 * as coroutines have. */
static char *own_stack;
static int heard[4];

static void on_own_stack(int signal) {
        char got[160], *guard = own_stack + 16 * PAGE;

        (void) signal;
        heard[0] = usermem_read(got, (uintptr_t) guard + 64, 32);
        heard[1] = usermem_write((uintptr_t) guard + 64, got, 4);
        heard[2] = usermem_read(got, (uintptr_t) guard - 16, 32);
        heard[3] = usermem_write((uintptr_t) guard - 16, got, 32);
}

static void *has_own_stack(void *unused) {
        char *near = (char *) ((spin_self() & ~(uintptr_t) (PAGE - 1)) - 512 * (size_t) PAGE);
        stack_t stack = {.ss_size = 16 * (size_t) PAGE};
        struct sigaction action = {.sa_handler = on_own_stack, .sa_flags = SA_ONSTACK};

        own_stack =
                mmap(near, 17 * (size_t) PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        ASSERT_TRUE(own_stack != MAP_FAILED);
        ASSERT_OK(mprotect(own_stack + 16 * (size_t) PAGE, PAGE, PROT_NONE));
        stack.ss_sp = own_stack;
        ASSERT_OK(sigaltstack(&stack, NULL));
        ASSERT_OK(sigaction(SIGUSR1, &action, NULL));
        ASSERT_OK(raise(SIGUSR1));
        for (size_t i = 0; i < sizeof heard / sizeof *heard; i++)
                ASSERT_INT(heard[i], -EFAULT);
        stack.ss_flags = SS_DISABLE;
        ASSERT_OK(sigaltstack(&stack, NULL));
        return unused;
}

static void on_other_stacks(void) {
        pthread_attr_t small;
        pthread_t thread;

        (void) has_own_stack(NULL);
        ASSERT_OK(pthread_attr_init(&small));
        ASSERT_OK(pthread_attr_setstacksize(&small, 64 * (size_t) PAGE));
        ASSERT_OK(pthread_create(&thread, &small, has_own_stack, NULL));
        ASSERT_OK(pthread_join(thread, NULL));
        ASSERT_OK(pthread_attr_destroy(&small));
}

static bool forbid(unsigned one, unsigned other) {
        struct sock_filter code[] = {
                BPF_STMT(BPF_LD | BPF_W | BPF_ABS, 0),
                BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, one, 1, 0),
                BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, other, 0, 1),
                BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
                BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
        };
        struct sock_fprog program = {.len = sizeof code / sizeof *code, .filter = code};

        ASSERT_OK(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0));
        if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0)
                return true;
        (void) fprintf(stderr, "no filter is to be had here: not tried\n");
        return false;
}

static _Atomic bool enough;

static void *come_and_go(void *page) {
        while (!enough)
                if (mprotect(page, PAGE, PROT_NONE) != 0 || mprotect(page, PAGE, PROT_READ | PROT_WRITE) != 0)
                        break;
        return NULL;
}

/* Another thread unmaps the memory meanwhile: an answer, and no fault. */
static void while_unmapped_by_a_thread(void) {
        char *p = hole(), got[160];
        unsigned good = 0, bad = 0;
        pthread_t thread;

        enough = false;
        ASSERT_OK(pthread_create(&thread, NULL, come_and_go, p));
        for (unsigned i = 0; i < 20000; i++) {
                int r = i % 2 == 0 ? usermem_read(got, (uintptr_t) p, 128)
                                   : usermem_write((uintptr_t) p, got, 128);

                good += r == 0;
                bad += r == -EFAULT;
        }
        enough = true;
        ASSERT_OK(pthread_join(thread, NULL));
        ASSERT_INT(good + bad, 20000);
}

/* These two come last, because they stay. A sandbox forbids the kernel's copies, as old container
 * runtimes do. */
static void in_a_sandbox(void) {
        if (!forbid(SYS_process_vm_readv, SYS_process_vm_writev))
                return;
        (void) on_a_thread(NULL);
        while_unmapped_by_a_thread();
}

/* Pages are tried by a system call. */
static void without_pipes(void) {
        if (forbid(SYS_pipe2, SYS_pipe2))
                (void) on_a_thread(NULL);
}

/* ---- in a child that shares this memory, and outlives whom it shares it with ---- */

static int said[2];

static int orphan(void *text) {
        char got[32], word;

        while (getppid() == (pid_t) * (long *) text)
                (void) usleep(1000);
        word = usermem_read(got, (uintptr_t) text + sizeof(long), 16) == 0 && strcmp(got, "far") == 0 ? 'y'
                                                                                                      : 'n';
        if (usermem_read(got, 0x200000, 16) != -EFAULT)
                word = 'n';
        ASSERT_INT(write(said[1], &word, 1), 1);
        _exit(0);
}

static void in_an_orphan(void) {
        char *text = hole(), word = 0;
        char *stack =
                mmap(NULL, 64 * (size_t) PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        int status = -1;
        pid_t pid;

        ASSERT_TRUE(stack != MAP_FAILED);
        ASSERT_OK(pipe2(said, O_CLOEXEC));
        memcpy(text + sizeof(long), "far", 4);
        pid = fork();
        ASSERT_TRUE(pid >= 0);
        if (pid == 0) {
                char got[32];

                *(long *) (void *) text = getpid();
                ASSERT_OK(usermem_read(got, (uintptr_t) text + sizeof(long), 16));
                if (clone(orphan, stack + 64 * (size_t) PAGE, CLONE_VM | CLONE_FILES, text) < 0) {
                        ASSERT_INT(errno,
                                   EINVAL); /* qemu only has threads and children with their own memory */
                        ASSERT_INT(write(said[1], "y", 1), 1);
                }
                _exit(0);
        }
        ASSERT_INT(waitpid(pid, &status, 0), pid);
        ASSERT_INT(status, 0);
        (void) close(said[1]);
        ASSERT_INT(read(said[0], &word, 1), 1);
        ASSERT_INT(word, 'y');
        (void) close(said[0]);
}

int main(void) {
        return TEST_MAIN(TEST(copies), TEST(faults), TEST(some), TEST(in_an_orphan), TEST(in_threads),
                         TEST(on_other_stacks), TEST(while_unmapped_by_a_thread), TEST(in_a_sandbox),
                         TEST(without_pipes));
}
