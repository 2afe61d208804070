/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/user/dmem.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { LINE_SIZE = 256, FILE_SIZE = 8192, PATH_SIZE = 4096 };

void dmem_region(uint32_t gpu, char ret[static DMEM_REGION]) {
        (void) snprintf(ret, DMEM_REGION, "nvidia/%08X:%02X:%02X.0/vidmem", gpu >> 16, gpu >> 8 & 0xff,
                        gpu & 0xff);
}

static bool is_line_of(const char *line, const char *region) {
        size_t n = strlen(region);

        return strncmp(line, region, n) == 0 && line[n] == ' ';
}

bool dmem_read(const char *file, const char *region, uint64_t *ret) {
        FILE *f = fopen(file, "re");
        char line[LINE_SIZE];

        if (!f)
                return false;
        *ret = UINT64_MAX;
        while (fgets(line, sizeof line, f))
                if (is_line_of(line, region)) {
                        const char *value = line + strlen(region) + 1;

                        *ret = strncmp(value, "max", 3) == 0 ? UINT64_MAX : strtoull(value, NULL, 10);
                }
        (void) fclose(f); /* it was only read */
        return true;
}

/* The other lines, and then the new one. */
static bool copy_lines(const char *file, const char *region, FILE *out) {
        FILE *f = fopen(file, "re");
        char line[LINE_SIZE];

        if (!f)
                return false;
        while (fgets(line, sizeof line, f))
                if (!is_line_of(line, region))
                        (void) fputs(line, out); /* fclose() tells an error */
        (void) fclose(f);                        /* it was only read */
        return true;
}

/* An error is told by fclose(). */
static void print_line(FILE *out, const char *region, uint64_t value) {
        if (value == UINT64_MAX)
                (void) fprintf(out, "%s max\n", region);
        else
                (void) fprintf(out, "%s %" PRIu64 "\n", region, value);
}

/* The kernel's own file takes one line, and no file can be made beside it. */
static bool write_line(const char *file, const char *region, uint64_t value) {
        FILE *f = fopen(file, "r+e");

        if (!f)
                return false;
        print_line(f, region, value);
        return fclose(f) == 0;
}

bool dmem_write(const char *file, const char *region, uint64_t value) {
        char temporary[PATH_SIZE];
        FILE *out;
        bool written;

        if (access(file, F_OK) != 0)
                return false;
        (void) snprintf(temporary, sizeof temporary, "%s.%d", file, (int) getpid()); /* it fits, or is cut */
        out = fopen(temporary, "we");
        if (!out)
                return errno == EACCES && write_line(file, region, value);
        written = copy_lines(file, region, out);
        print_line(out, region, value);
        written = fclose(out) == 0 && written && rename(temporary, file) == 0;
        if (!written)
                (void) unlink(temporary); /* it may be gone already */
        return written;
}
