/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/meters.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>

#include "base/clock.h"
#include "sim/engine/engine.h"
#include "wire/json_write.h"

static void write_card(JsonWriter *w, unsigned minor, const EngineUsage *u) {
        json_write_object(w, NULL);
        json_write_u64(w, "minor", minor);
        json_write_u64(w, "now", u->now);
        json_write_u64(w, "busy", u->busy.all);
        json_write_array(w, "groups");
        for (unsigned g = 0; g < u->n; g++) {
                json_write_object(w, NULL);
                json_write_u64(w, "client", u->groups[g].client);
                json_write_u64(w, "pid", u->groups[g].pid);
                json_write_u64(w, "ran", u->groups[g].ran.all);
                json_write_object_end(w);
        }
        json_write_array_end(w);
        json_write_object_end(w);
}

static int read_card(const char *path, EngineUsage *ret) {
        _cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC);
        EngineShared *shared;
        Engine *e;

        if (fd < 0)
                return -errno;
        shared = mmap(NULL, sizeof *shared, PROT_READ, MAP_SHARED, fd, 0);
        if (shared == MAP_FAILED)
                return -errno;
        e = engine_new(shared);
        if (e)
                engine_usage(e, clock_nsec(CLOCK_MONOTONIC), ret);
        engine_free(e);
        (void) munmap(shared, sizeof *shared);
        return e ? 0 : -ENOMEM;
}

int sim_meters_write(const char *dir, Buf *out) {
        static EngineUsage usage; /* 15 KiB */
        unsigned minor = 0;
        JsonWriter w;
        int r = 0;

        json_write_init(&w, out);
        json_write_object(&w, NULL);
        json_write_array(&w, "cards");
        for (; r == 0; minor++) {
                _cleanup_buf_ Buf path = BUF_NULL;

                buf_appendf(&path, "%s/nvidia%u", dir, minor);
                r = buf_result(&path);
                if (r == 0)
                        r = read_card(path.data, &usage);
                if (r == 0)
                        write_card(&w, minor, &usage);
        }
        json_write_array_end(&w);
        json_write_object_end(&w);
        buf_append_char(out, '\n');
        return r == -ENOENT && minor > 1 ? buf_result(out) : r;
}
