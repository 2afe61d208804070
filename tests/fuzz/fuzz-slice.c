/* SPDX-License-Identifier: Apache-2.0 */

/* Any two files as a slice. A reader inside opens or refuses them and never hangs; a reader outside
 * stays within their bounds. The input is a list of changes to two good files. Each says which file
 * (0 limits, 1 counters, 2 and 3: truncate it there), where (two bytes), how many bytes, the
 * bytes. */

#include <assert.h>
#include <fcntl.h>
#include <string.h>

#include "slice/slice.h"
#include "slicedir/slice_files.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static char path[64];
static int directory = -1;

static void remove_all(void) {
        (void) unlinkat(directory, "limits", 0);
        (void) unlinkat(directory, "counters", 0);
        (void) unlinkat(directory, SLICE_DOORBELL, 0);
        (void) rmdir(path);
}

/* In a file system in memory if there is one: a disk would write every rename. */
static void make_directory(void) {
        (void) snprintf(path, sizeof path, "/dev/shm/fuzz-slice-XXXXXX");
        if (!mkdtemp(path)) {
                (void) snprintf(path, sizeof path, "/tmp/fuzz-slice-XXXXXX");
                assert(mkdtemp(path));
        }
        directory = open(path, O_DIRECTORY | O_RDONLY | O_CLOEXEC);
        assert(directory >= 0);
        assert(atexit(remove_all) == 0);
}

static void change_files(const uint8_t *data, size_t size) {
        int fds[2] = {openat(directory, "limits", O_RDWR | O_CLOEXEC),
                      openat(directory, "counters", O_RDWR | O_CLOEXEC)};

        assert(fds[0] >= 0 && fds[1] >= 0);
        while (size >= 4) {
                int fd = fds[data[0] % 2];
                off_t at = data[1] << 8 | data[2];
                size_t n = data[3] < size - 4 ? data[3] : size - 4;

                if (data[0] & 2)
                        assert(ftruncate(fd, at) == 0);
                else
                        assert(pwrite(fd, data + 4, n, at) == (ssize_t) n);
                data += 4 + n;
                size -= 4 + n;
        }
        (void) close(fds[0]);
        (void) close(fds[1]);
}

static void look_from_outside(void) {
        SliceReport report;
        SliceLimits limits;
        Fault fault = FAULT_NULL;

        if (slice_files_read_report(directory, &report) == 0)
                assert(report.dead + report.pinned <= report.used && report.n_alive <= SLICE_ROWS);
        if (slice_files_read_limits(directory, &limits) == 0) {
                assert(strlen(limits.uuid) < SLICE_UUID);
                assert(slice_files_set_size(directory, limits.limit / 2, 0, NULL, &fault) == 0);
        }
}

static void use_inside(void) {
        SliceUser s;

        if (slice_open(path, &s) < 0)
                return;
        if (slice_reserve(&s, slice_limit(&s) / 3) == 0)
                look_from_outside();
        slice_release(&s, 5 * SLICE_UNIT);
        (void) slice_reap(&s);
        (void) slice_used(&s);
        slice_close(&s);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
        SliceSpec spec = {.limit = UINT64_C(2154) << 20, .uuid = "GPU-0", .container = "a/b/c"};
        Fault fault = FAULT_NULL;

        if (directory < 0)
                make_directory();
        (void) unlinkat(directory, "counters", 0); /* good files would be kept */
        assert(slice_files_make(directory, &spec, &fault) == 0);
        change_files(data, size);
        look_from_outside();
        use_inside();
        look_from_outside();
        assert(slice_files_make(directory, &spec, &fault) == 0);
        return 0;
}
