/* SPDX-License-Identifier: Apache-2.0 */

/* The fuzz targets as ordinary tests, with any compiler. Inputs are every file of a corpus, every
 * prefix of a short one (a cut message is the commonest malformed one), and some mutations, the
 * same in each run. Each input is in an allocation of exactly its size, so that a sanitizer sees
 * the first byte read beyond the end. */

#include <dirent.h>
#include <errno.h>

#include "../unit/random.h"
#include "../unit/thorough.h"
#include "base/file.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { MAX_FILE = 1024 * 1024 };

static size_t n_runs;

static void run_one(const char *data, size_t size) {
        char *exact = malloc(size > 0 ? size : 1);

        if (!exact)
                return;
        if (size > 0)
                memcpy(exact, data, size);
        (void) LLVMFuzzerTestOneInput((const uint8_t *) exact, size); /* answers 0 by convention */
        free(exact);
        n_runs++;
}

static void run_prefixes(Str input) {
        size_t step = input.len / few_or_all(128, 1024) + 1; /* evenly spaced when the file is longer */

        for (size_t len = 0; len < input.len; len += step)
                run_one(input.data, len);
        run_one(input.data, input.len);
}

static void mutate(char *bytes, size_t *len, uint64_t random) {
        static const char spice[] = "{}[]\",:\\0-9eE \n\x00\xff\x80";
        size_t at = (size_t) (random >> 8) % *len, n = (size_t) (random >> 40) % (*len - at) + 1;

        switch (random % 4) {
        case 0: /* flip a bit */
                bytes[at] = (char) (bytes[at] ^ (1 << ((random >> 56) % 8)));
                break;
        case 1: /* a significant byte */
                bytes[at] = spice[(random >> 32) % (sizeof spice - 1)];
                break;
        case 2: /* drop a piece */
                memmove(bytes + at, bytes + at + n, *len - at - n);
                *len -= n;
                break;
        default: /* repeat a piece; the buffer has room for it */
                memmove(bytes + at + n, bytes + at, *len - at);
                *len += n;
                break;
        }
}

static void run_mutations(Str input) {
        Random random = {str_hash64(input, 1)};
        char *bytes = malloc(input.len * 2 + 1);
        unsigned n = few_or_all(64, 256);

        for (unsigned i = 0; bytes && input.len > 0 && i < n; i++) {
                size_t len = input.len;

                memcpy(bytes, input.data, input.len);
                mutate(bytes, &len, random_bits(&random));
                if (len > 0 && len <= input.len && i % 2 == 0)
                        mutate(bytes, &len, random_bits(&random));
                run_one(bytes, len);
        }
        free(bytes);
}

static int run_file(const char *directory, const char *name) {
        _cleanup_buf_ Buf input = BUF_NULL;
        _cleanup_buf_ Buf path = BUF_NULL;
        int r;

        buf_appendf(&path, "%s/%s", directory, name);
        r = buf_result(&path);
        if (r == 0)
                r = file_read(path.data, MAX_FILE, &input);
        if (r < 0) {
                (void) fprintf(stderr, "%s/%s: %s\n", directory, name, strerror(-r));
                return 1;
        }
        run_prefixes(buf_str(&input));
        run_mutations(buf_str(&input));
        return 0;
}

int main(int argc, char **argv) {
        int n_files = 0, failed = 0;

        for (int i = 1; i < argc; i++) {
                DIR *directory = opendir(argv[i]);
                const struct dirent *entry;

                if (!directory) {
                        (void) fprintf(stderr, "%s: %s\n", argv[i], strerror(errno));
                        return 1;
                }
                while ((entry = readdir(directory)))
                        if (entry->d_name[0] != '.') {
                                failed |= run_file(argv[i], entry->d_name);
                                n_files++;
                        }
                (void) closedir(directory);
        }
        run_one("", 0);
        printf("%d files, %zu runs\n", n_files, n_runs);
        return failed || n_files == 0; /* without a corpus nothing would be tested */
}
