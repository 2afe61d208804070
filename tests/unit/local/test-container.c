/* SPDX-License-Identifier: Apache-2.0 */
#include "local/container.h"

#include <errno.h>
#include <signal.h>
#include <sys/stat.h>

#include "test.h"

enum { SKIP = 77 };

static char env_path[] = "PATH=/usr/bin:/bin", env_hello[] = "HELLO=there";
static char *const plain_env[] = {env_path, env_hello, NULL};

static Container *start(char *const *argv) {
        ContainerSpec spec = {.hostname = "pod-0", .argv = argv, .envp = plain_env};
        Container *c;

        ASSERT_OK(container_new(&spec, &c));
        return c;
}

/* Reaching this timeout is a failure, not slowness. */
static void wait_for(Container *c) {
        ASSERT_OK(container_wait_all(&c, 1, clock_monotonic_usec() + 300 * USEC_PER_SEC, true));
}

static Container *shell(const char *script) {
        char *argv[] = {(char *) "sh", (char *) "-c", (char *) script, NULL};
        Container *c = start(argv);

        wait_for(c);
        return c;
}

static void gives_the_environment_and_nothing_else(void) {
        char *argv[] = {(char *) "env", NULL};
        _cleanup_(container_freep) Container *c = start(argv);

        wait_for(c);
        ASSERT_INT(container_state(c), CONTAINER_EXITED);
        ASSERT_INT(container_detail(c), 0);
        ASSERT_STR(buf_str(container_output(c)), STR("PATH=/usr/bin:/bin\nHELLO=there\n"));
}

static void is_alone_in_its_namespaces(void) {
        _cleanup_(container_freep) Container *c = shell("hostname; id -u; ls /dev; cat /proc/net/dev "
                                                        "2>/dev/null | grep -c eth; ls -A /tmp /run; echo .");

        ASSERT_STR(buf_str(container_output(c)),
                   STR("pod-0\n0\nfull\nnull\nrandom\nurandom\nzero\n0\n/run:\n\n/tmp:\n.\n"));
}

/* Each line is a way out of the container, or to more privileges, that must be closed. */
static void cannot_change_the_machine(void) {
        static const char *const attempts[] = {
                "touch /etc/aliquot-was-here",
                "touch /var/tmp/aliquot-was-here",
                "mount -o remount,rw /",
                "mount -t tmpfs none /mnt",
                "cat /etc/shadow",
                "chroot / true",
                "hostname other",
                "mknod /tmp/d b 8 0",
                "echo x > /proc/sys/kernel/core_pattern",
                "unshare -Ur mount -o remount,bind,rw /",
        };

        for (size_t i = 0; i < ELEMENTSOF(attempts); i++) {
                _cleanup_buf_ Buf script = BUF_NULL;
                _cleanup_(container_freep) Container *c = NULL;

                buf_appendf(&script, "{ %s; } >/dev/null 2>&1 && echo '%s worked'", attempts[i], attempts[i]);
                c = shell(script.data);
                if (container_output(c)->len > 0)
                        TEST_FAIL_("%s", container_output(c)->data);
        }
}

static void keeps_a_private_tmp(void) {
        _cleanup_(container_freep) Container *a = shell("echo secret > /tmp/f && cat /tmp/f");
        _cleanup_(container_freep) Container *b = shell("cat /tmp/f 2>/dev/null || echo none");

        ASSERT_STR(buf_str(container_output(a)), STR("secret\n"));
        ASSERT_STR(buf_str(container_output(b)), STR("none\n"));
}

static void tells_how_a_command_ended(void) {
        _cleanup_(container_freep) Container *failed = shell("echo out; echo err >&2; exit 3");
        _cleanup_(container_freep) Container *killed = shell("kill -TERM $$");

        ASSERT_INT(container_state(failed), CONTAINER_EXITED);
        ASSERT_INT(container_detail(failed), 3);
        ASSERT_STR(buf_str(container_output(failed)), STR("out\nerr\n"));
        ASSERT_INT(container_state(killed), CONTAINER_KILLED);
        ASSERT_INT(container_detail(killed), SIGTERM);
}

static void says_when_there_is_no_such_program(void) {
        char *argv[] = {(char *) "no-such-program-here", NULL};
        _cleanup_(container_freep) Container *c = start(argv);

        wait_for(c);
        ASSERT_INT(container_state(c), CONTAINER_NO_PROGRAM);
        ASSERT_INT(container_detail(c), ENOENT);
}

static void holds_without_a_command(void) {
        _cleanup_(container_freep) Container *c = start(NULL);

        wait_for(c);
        ASSERT_INT(container_state(c), CONTAINER_HOLDING);
}

static void cuts_output_at_its_bound(void) {
        _cleanup_(container_freep) Container *c = shell("head -c 3000000 /dev/zero");

        ASSERT_INT(container_state(c), CONTAINER_EXITED);
        ASSERT_INT(container_output(c)->len, CONTAINER_MAX_OUTPUT);
        ASSERT_TRUE(container_output_was_cut(c));
}

static void stops_what_goes_on(void) {
        char *argv[] = {(char *) "sh", (char *) "-c", (char *) "sleep 1000 & echo started; wait", NULL};
        _cleanup_(container_freep) Container *c = start(argv);

        while (container_output(c)->len == 0)
                ASSERT_OK(container_wait_all(&c, 1, clock_monotonic_usec() + USEC_PER_MSEC, false));
        ASSERT_INT(container_state(c), CONTAINER_RUNNING);
        ASSERT_OK(container_wait_all(&c, 1, clock_monotonic_usec(), true));
        ASSERT_INT(container_state(c), CONTAINER_TIMED_OUT);
        ASSERT_STR(buf_str(container_output(c)), STR("started\n"));
}

static void is_not_held_up_by_endless_output(void) {
        char *argv[] = {(char *) "yes", NULL};
        _cleanup_(container_freep) Container *c = start(argv);

        while (!container_output_was_cut(c))
                ASSERT_OK(container_wait_all(&c, 1, clock_monotonic_usec() + USEC_PER_MSEC, false));
        ASSERT_OK(container_wait_all(&c, 1, clock_monotonic_usec(), true));
        ASSERT_INT(container_state(c), CONTAINER_TIMED_OUT);
        ASSERT_INT(container_output(c)->len, CONTAINER_MAX_OUTPUT);
}

/* A process that outlives its container would hold the write end of our pipe, and there would be no
 * end of file. */
static void leaves_nothing_running(void) {
        int ends[2];
        char byte;

        ASSERT_OK(pipe(ends));
        ASSERT_INT(dup2(ends[1], 100), 100);
        (void) close(ends[1]);
        {
                _cleanup_(container_freep) Container *c = shell("sleep 1000 >/dev/null 2>&1 & echo left");

                ASSERT_INT(container_state(c), CONTAINER_EXITED);
        }
        (void) close(100);
        ASSERT_INT(read(ends[0], &byte, 1), 0);
        (void) close(ends[0]);
}

/* A directory, a file that the container may write, and one in /etc that the machine lacks. */
static void has_what_is_mounted(void) {
        char folder[] = "/tmp/aliquot-test-XXXXXX", file[64], script[512];
        SandboxMount mounts[] = {{folder, "/run/aliquot/a/folder", true},
                                 {file, "/run/aliquot/file", false},
                                 {file, "/dev/file", true},
                                 {file, "/etc/aliquot-test-file", true}};
        char *argv[] = {(char *) "sh", (char *) "-c", script, NULL};
        ContainerSpec spec = {.hostname = "pod-0",
                              .argv = argv,
                              .envp = plain_env,
                              .mounts = mounts,
                              .n_mounts = ELEMENTSOF(mounts)};
        _cleanup_(container_freep) Container *c = NULL;
        FILE *f;

        ASSERT_TRUE(mkdtemp(folder));
        ASSERT_OK(chmod(folder, 0755));
        (void) snprintf(file, sizeof file, "%s/file", folder);
        f = fopen(file, "w");
        ASSERT_TRUE(f && fputs("there\n", f) >= 0 && fclose(f) == 0);
        ASSERT_OK(chmod(file, 0666));
        (void) snprintf(
                script, sizeof script, "%s",
                "cat /run/aliquot/a/folder/file /dev/file /etc/aliquot-test-file; "
                "for i in /run/aliquot/a/folder/file /dev/file /etc/aliquot-test-file /etc/passwd /etc/new "
                "/run/aliquot/new; do { echo x > $i; } 2>/dev/null && echo $i; done; "
                "mv /run/aliquot /run/other 2>/dev/null && echo moved; "
                "test -s /etc/passwd && echo etc; "
                "echo changed > /run/aliquot/file; cat /dev/file");
        ASSERT_OK(container_new(&spec, &c));
        wait_for(c);
        ASSERT_INT(container_state(c), CONTAINER_EXITED);
        ASSERT_STR(buf_str(container_output(c)), STR("there\nthere\nthere\netc\nchanged\n"));
        (void) unlink(file);
        (void) rmdir(folder);
}

static void is_not_run_without_what_it_should_have(void) {
        SandboxMount mounts[] = {{"/proc/self/absent", "/dev/file", true}};
        char *argv[] = {(char *) "echo", (char *) "ran", NULL};
        ContainerSpec spec = {
                .hostname = "pod-0", .argv = argv, .envp = plain_env, .mounts = mounts, .n_mounts = 1};
        _cleanup_(container_freep) Container *c = NULL;

        ASSERT_OK(container_new(&spec, &c));
        wait_for(c);
        ASSERT_INT(container_state(c), CONTAINER_NO_ISOLATION);
        ASSERT_INT(container_detail(c), ENOENT);
        ASSERT_TEXT(container_failed_step(c), "taking its cards");
        ASSERT_INT(container_output(c)->len, 0);
}

int main(void) {
        _cleanup_(container_freep) Container *probe = start(NULL);

        wait_for(probe);
        if (container_state(probe) == CONTAINER_NO_ISOLATION) {
                printf("skipped: %s: %s\n", container_failed_step(probe), strerror(container_detail(probe)));
                return SKIP;
        }
        return TEST_MAIN(TEST(gives_the_environment_and_nothing_else), TEST(is_alone_in_its_namespaces),
                         TEST(cannot_change_the_machine), TEST(keeps_a_private_tmp),
                         TEST(tells_how_a_command_ended), TEST(says_when_there_is_no_such_program),
                         TEST(holds_without_a_command), TEST(cuts_output_at_its_bound),
                         TEST(stops_what_goes_on), TEST(is_not_held_up_by_endless_output),
                         TEST(leaves_nothing_running), TEST(has_what_is_mounted),
                         TEST(is_not_run_without_what_it_should_have));
}
