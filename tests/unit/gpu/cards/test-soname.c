/* SPDX-License-Identifier: Apache-2.0 */
#include "gpu/cards/soname.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "test.h"
#include "tiny_elf.h"

static int read_bytes(const void *bytes, size_t n, char (*ret)[SONAME_SIZE]) {
        _cleanup_close_ int fd = memfd_create("elf", MFD_CLOEXEC);

        ASSERT_INT(write(fd, bytes, n), n);
        return soname_read(fd, ret);
}

static void gives(const TinyElf *e, const char *name) {
        char soname[SONAME_SIZE] = "";

        ASSERT_OK(read_bytes(e, sizeof *e, &soname));
        ASSERT_TEXT(soname, name);
}

static void refuses(const TinyElf *e) {
        char soname[SONAME_SIZE] = "before";

        ASSERT_INT(read_bytes(e, sizeof *e, &soname), SONAME_E_NONE);
        ASSERT_TEXT(soname, "before");
}

static void reads_a_soname(void) {
        TinyElf e = tiny_elf("libcuda.so.1");

        gives(&e, "libcuda.so.1");
}

static void reads_the_c_librarys(void) {
        static const char *const paths[] = {"/lib/x86_64-linux-gnu/libc.so.6",
                                            "/lib/aarch64-linux-gnu/libc.so.6", "/lib64/libc.so.6"};
        char soname[SONAME_SIZE];

        for (size_t i = 0; i < ELEMENTSOF(paths); i++) {
                _cleanup_close_ int fd = open(paths[i], O_RDONLY | O_CLOEXEC);

                if (fd < 0)
                        continue;
                ASSERT_OK(soname_read(fd, &soname));
                ASSERT_TEXT(soname, "libc.so.6");
                return;
        }
        printf("(no libc.so.6 in the usual places)\n");
}

static void refuses_other_machines(void) {
        TinyElf e = tiny_elf("a.so.1");

        e.header.e_ident[EI_CLASS] = ELFCLASS32;
        refuses(&e);
        e = tiny_elf("a.so.1");
        e.header.e_ident[EI_DATA] = ELFDATA2MSB;
        refuses(&e);
        e = tiny_elf("a.so.1");
        e.header.e_machine = EM_386;
        refuses(&e);
        e = tiny_elf("a.so.1");
        e.header.e_type = ET_REL;
        refuses(&e);
        e = tiny_elf("a.so.1");
        e.header.e_ident[0] = 'x';
        refuses(&e);
}

static void refuses_counts_out_of_bounds(void) {
        TinyElf e = tiny_elf("a.so.1");

        e.header.e_phnum = 0;
        refuses(&e);
        e.header.e_phnum = 65;
        refuses(&e);
        e.header.e_phnum = UINT16_MAX;
        refuses(&e);
        e = tiny_elf("a.so.1");
        e.header.e_phentsize++;
        refuses(&e);
        e = tiny_elf("a.so.1");
        e.dynamic.p_filesz =
                UINT64_MAX; /* what lies behind the file is not read, and the end mark is found */
        gives(&e, "a.so.1");
        e.dynamic.p_filesz = 2 * sizeof(Elf64_Dyn); /* ends before the SONAME */
        refuses(&e);
}

static void refuses_places_outside_of_the_file(void) {
        static const uint64_t wild[] = {sizeof(TinyElf), INT64_MAX, (uint64_t) INT64_MAX + 1, UINT64_MAX,
                                        UINT64_MAX - sizeof(Elf64_Phdr)};

        for (size_t i = 0; i < ELEMENTSOF(wild); i++) {
                TinyElf e = tiny_elf("a.so.1");

                e.header.e_phoff = wild[i];
                refuses(&e);
                e = tiny_elf("a.so.1");
                e.dynamic.p_offset = wild[i];
                refuses(&e);
                e = tiny_elf("a.so.1");
                e.load.p_offset = wild[i];
                refuses(&e);
                e = tiny_elf("a.so.1");
                e.soname.d_un.d_val = wild[i];
                refuses(&e);
                e.strsz.d_un.d_val = UINT64_MAX;
                refuses(&e);
                e = tiny_elf("a.so.1");
                e.strtab.d_un.d_ptr = wild[i];
                refuses(&e);
        }
}

static void refuses_a_name_behind_the_string_table(void) {
        TinyElf e = tiny_elf("a.so.1");

        e.strsz.d_un.d_val = 1;
        refuses(&e);
        e.strsz.d_un.d_val = 2;
        gives(&e, "a.so.1");
}

static void refuses_names_that_are_no_file_names(void) {
        static const char *const names[] = {"", ".", "..", "a/b", "../a", "a b", "a\nb", "\xff", "a\x7f"};

        for (size_t i = 0; i < ELEMENTSOF(names); i++) {
                TinyElf e = tiny_elf(names[i]);

                refuses(&e);
        }
}

static void a_name_ends_within_the_file(void) {
        TinyElf e = tiny_elf("");

        memset(e.strings + 1, 'a', sizeof e.strings - 1);
        refuses(&e);
        e.strings[sizeof e.strings - 1] = '\0';
        gives(&e, e.strings + 1);
}

static void refuses_every_prefix(void) {
        TinyElf e = tiny_elf("a.so.1");
        size_t whole = offsetof(TinyElf, strings) + sizeof "\0a.so.1" - 1;
        char soname[SONAME_SIZE];

        for (size_t n = 0; n < whole; n++)
                ASSERT_INT(read_bytes(&e, n, &soname), SONAME_E_NONE);
        ASSERT_OK(read_bytes(&e, whole + 1, &soname));
}

int main(void) {
        return TEST_MAIN(TEST(reads_a_soname), TEST(reads_the_c_librarys), TEST(refuses_other_machines),
                         TEST(refuses_counts_out_of_bounds), TEST(refuses_places_outside_of_the_file),
                         TEST(refuses_a_name_behind_the_string_table),
                         TEST(refuses_names_that_are_no_file_names), TEST(a_name_ends_within_the_file),
                         TEST(refuses_every_prefix));
}
