/* SPDX-License-Identifier: Apache-2.0 */

/* Every allocation of the agent's part of this room fails once, one at a time. The answer is
 * -ENOMEM, the result is unchanged, and nothing leaks (the leak sanitizer checks that). The linker
 * puts these functions in malloc's place. */

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "failing.h"
#include "gpu/cards/card_source.h"
#include "gpu/cards/card_table.h"
#include "gpu/cards/cdi.h"
#include "gpu/cards/simulated_cards.h"
#include "tiny_elf.h"

static int simulate(void) {
        CardList l = {.n = 77};
        int r = cards_simulate(STR("3xA:1GiB"), STR("n"), &l, NULL);

        ASSERT_INT(l.n, r == 0 ? 3 : 77);
        if (r == 0)
                card_list_done(&l);
        return r;
}

static int read_list(void) {
        CardList l = {.n = 77};
        int r = card_list_read(STR("{\"cards\":[{\"uuid\":\"GPU-1\",\"model\":\"a\\nb\"}]}"), &l, NULL);

        ASSERT_INT(l.n, r == 0 ? 1 : 77);
        if (r == 0)
                card_list_done(&l);
        return r;
}

static int list_known(void) {
        static CardTable known;
        CardList l = {.n = 77};
        int r;

        card_table_init(&known, 1, NULL);
        r = card_table_list(&known, &l);
        ASSERT_INT(l.n, r == 0 ? 0 : 77);
        if (r == 0)
                card_list_done(&l);
        return r;
}

static char root[] = "/tmp/test-cards-XXXXXX";

static int find_driver(void) {
        DriverFiles f = {.n = 77};
        int r = driver_files_find(root, &f);

        ASSERT_INT(f.n, r == 0 ? 1 : 77);
        if (r == 0)
                driver_files_done(&f);
        return r;
}

static int write_cdi(void) {
        MachineCard card = {.uuid = "GPU-1"};
        char path[] = "/usr/lib64/libcuda.so.1", target[] = "libcuda.so.1";
        DriverFile file = {DRIVER_LIBRARY, path, target};
        _cleanup_buf_ Buf out = BUF_NULL;

        cdi_write(&(CardList){&card, 1}, &(DriverFiles){&file, 1}, false, &out);
        return buf_result(&out);
}

static sd_event *event;

static int new_source(void) {
        static const CardSourceHandler handler = {0}; /* no turn of the loop: never called */
        MachineCard card = {.uuid = "GPU-1"};
        CardList simulated = {&card, 1};
        CardSource *s = NULL;
        int r;

        r = card_source_new(event, &(CardSourceOptions){.simulated = &simulated}, &handler, NULL, &s);
        if (r == 0) {
                s = card_source_free(s);
                r = card_source_new(event, &(CardSourceOptions){.library = "x", .host_root = "/host"},
                                    &handler, NULL, &s);
        }
        ASSERT_TRUE((r == 0) == (s != NULL));
        card_source_free(s);
        return r;
}

static void put_library(void) {
        static const char *const folders[] = {"/usr", "/usr/lib64"};
        TinyElf e = tiny_elf("libcuda.so.1");
        char path[64];
        int fd;

        ASSERT_TRUE(mkdtemp(root));
        for (size_t i = 0; i < ELEMENTSOF(folders); i++) {
                (void) snprintf(path, sizeof path, "%s%s", root, folders[i]);
                ASSERT_OK(mkdir(path, 0755));
        }
        (void) snprintf(path, sizeof path, "%s/usr/lib64/libcuda.so.535.1", root);
        fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
        ASSERT_INT(write(fd, &e, sizeof e), sizeof e);
        (void) close(fd);
        (void) snprintf(path, sizeof path, "%s/usr/lib64/libcuda.so.1", root);
        ASSERT_OK(symlink("../../usr/lib64/./libcuda.so.535.1", path));
}

static void remove_library(void) {
        static const char *const names[] = {"/usr/lib64/libcuda.so.1", "/usr/lib64/libcuda.so.535.1",
                                            "/usr/lib64", "/usr", ""};
        char path[64];

        for (size_t i = 0; i < ELEMENTSOF(names); i++) {
                (void) snprintf(path, sizeof path, "%s%s", root, names[i]);
                ASSERT_OK(remove(path));
        }
}

static void lists(void) {
        failing_each(simulate);
        failing_each(read_list);
        failing_each(list_known);
}

static void drivers(void) {
        put_library();
        failing_each(find_driver);
        remove_library();
        failing_each(write_cdi);
}

static void sources(void) {
        ASSERT_TRUE(sd_event_new(&event) >= 0);
        failing_each(new_source);
        sd_event_unref(event);
}

int main(void) {
        return TEST_MAIN(TEST(lists), TEST(drivers), TEST(sources));
}
