/* SPDX-License-Identifier: Apache-2.0 */

/* Any bytes as /proc/PID/cgroup: the result is a UID and an ID that may stand in a path, or
 * nothing. Also as /proc/PID/stat. */

#include <assert.h>

#include "base/process_stat.h"
#include "node/kubelet/process_owner.h"
#include "node/kubelet/process_state.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(const char *text, size_t size) {
        assert(strnlen(text, size) < size);
        for (; *text; text++)
                assert(*text == '-' || (*text >= '0' && *text <= '9') || (*text >= 'a' && *text <= 'z') ||
                       (*text >= 'A' && *text <= 'Z'));
}

/* It must not lead upwards. */
static void check_path(Str path) {
        assert(path.len == 0 || path.data[0] == '/');
        assert(!memmem(path.data, path.len, "/../", 4) && memchr(path.data, 0, path.len) == NULL);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
        ProcessOwner owner;
        uint64_t start;

        (void) process_stat_parse_stopped((Str){(const char *) data, size});
        (void) process_stat_parse_ended((Str){(const char *) data, size});
        check_path(process_state_cgroup_path((Str){(const char *) data, size}, STR("")));
        check_path(process_state_cgroup_path((Str){(const char *) data, size}, STR("freezer")));
        (void) process_stat_parse_start_time((Str){(const char *) data, size}, &start);
        memset(&owner, '/', sizeof owner);
        if (!process_owner_parse((Str){(const char *) data, size}, &owner)) {
                assert(owner.uid[0] == '/' && owner.container[0] == '/');
                return 0;
        }
        check(owner.uid, sizeof owner.uid);
        check(owner.container, sizeof owner.container);
        assert(owner.uid[0] != '\0');
        return 0;
}
