/* SPDX-License-Identifier: Apache-2.0 */
#include "base/selinux.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "scratch.h"
#include "test.h"

static char home[64];

static void write_text(const char *name, const char *text) {
        char path[128];
        FILE *f;

        (void) snprintf(path, sizeof path, "%s/%s", home, name);
        f = fopen(path, "we");
        ASSERT_TRUE(f && fputs(text, f) >= 0 && fclose(f) == 0);
}

static void it_is_on_with_a_policy(void) {
        char path[128];

        (void) snprintf(home, sizeof home, "/tmp/aliquot-selinux-XXXXXX");
        scratch_make(home);
        ASSERT_FALSE(selinux_is_on(home));
        write_text("filesystems", "nodev\tproc\nnodev\tselinuxfs\n\text4\n");
        ASSERT_FALSE(selinux_is_on(home)); /* no label can be read */
        (void) snprintf(path, sizeof path, "%s/self", home);
        ASSERT_OK(mkdir(path, 0755));
        (void) snprintf(path, sizeof path, "%s/self/attr", home);
        ASSERT_OK(mkdir(path, 0755));
        write_text("self/attr/current", "kernel");
        ASSERT_FALSE(selinux_is_on(home)); /* no policy is loaded */
        write_text("self/attr/current", "system_u:system_r:spc_t:s0");
        ASSERT_TRUE(selinux_is_on(home));
        write_text("filesystems", "nodev\tproc\n\text4\n"); /* AppArmor has such names, too */
        ASSERT_FALSE(selinux_is_on(home));
        scratch_remove(home);
}

static void a_label_is_read_again(void) {
        Fault fault = FAULT_NULL;
        char path[128];
        int fd, r;

        (void) snprintf(home, sizeof home, "/tmp/aliquot-selinux-XXXXXX");
        scratch_make(home);
        write_text("file", "text");
        (void) snprintf(path, sizeof path, "%s/file", home);
        ASSERT_FALSE(selinux_is_labelled(path));
        fd = open(path, O_RDONLY | O_CLOEXEC);
        r = selinux_label(fd, path, &fault);
        if (r < 0) { /* not as root, or by a kernel with SELinux and another policy */
                ASSERT_CONTAINS(fault.text, path);
                (void) printf("no label can be set here: %s\n", fault.text);
        } else
                ASSERT_TRUE(selinux_is_labelled(path));
        ASSERT_OK(close(fd));
        ASSERT_INT(selinux_label(-1, "the file", &fault), -EBADF);
        ASSERT_CONTAINS(
                fault.text,
                "SELinux is on, and the file cannot get the label system_u:object_r:container_file_t:s0");
        scratch_remove(home);
}

int main(void) {
        return TEST_MAIN(TEST(it_is_on_with_a_policy), TEST(a_label_is_read_again));
}
