/* SPDX-License-Identifier: Apache-2.0 */
#include "node/kubelet/process_state.h"

#include <errno.h>
#include <unistd.h>

#include "base/file.h"

enum { CGROUP_FILE_MAX = 64 * 1024, STAT_FILE_MAX = 4096, STATE_FILE_MAX = 4096 };

/* ---- /proc/PID/stat ---- */

enum { FIELD_PARENT = 4, FIELD_START_TIME = 22 }; /* proc(5) */

/* "PID (NAME) STATE ...": a process can choose any NAME, so the fields are found behind the last
 * ")". Returns an empty string when there is none. */
static Str fields_behind_name(Str text) {
        const char *at = text.len > 0 ? memrchr(text.data, ')', text.len) : NULL;

        return at ? (Str){at + 1, text.len - (size_t) (at + 1 - text.data)} : (Str){0};
}

static bool is_in_state(Str text, char one, char other) {
        Str rest = fields_behind_name(text);

        return rest.len > 1 && rest.data[0] == ' ' && (rest.data[1] == one || rest.data[1] == other);
}

bool process_state_parse_stopped(Str text) {
        return is_in_state(text, 'T', 't');
}

bool process_state_parse_ended(Str text) {
        return is_in_state(text, 'Z', 'X');
}

static bool parse_field(Str text, int which, uint64_t *ret) {
        Str rest = fields_behind_name(text);

        for (int field = 2; field < which; field++)
                (void) str_split(&rest, ' ');
        return str_to_u64(str_split(&rest, ' '), ret);
}

bool process_state_parse_start_time(Str text, uint64_t *ret) {
        return parse_field(text, FIELD_START_TIME, ret);
}

/* ---- /proc/PID/cgroup ---- */

static bool names(Str list, Str controller) {
        if (str_is_empty(controller))
                return str_is_empty(list);
        while (!str_is_empty(list))
                if (str_eq(str_split(&list, ','), controller))
                        return true;
        return false;
}

static bool climbs(Str path) {
        while (!str_is_empty(path))
                if (str_eq(str_split(&path, '/'), STR("..")))
                        return true;
        return false;
}

Str process_state_cgroup_path(Str text, Str controller) {
        while (!str_is_empty(text)) {
                Str line = str_split(&text, '\n');

                (void) str_split(&line, ':'); /* hierarchy number */
                if (!names(str_split(&line, ':'), controller))
                        continue;
                while (str_has_prefix(line, STR("/../")))
                        line = (Str){line.data + 3, line.len - 3};
                return str_has_prefix(line, STR("/")) && !climbs(line) && !memchr(line.data, '\0', line.len)
                               ? line
                               : STR("");
        }
        return STR("");
}

int process_state_cgroup_file(const char *root, const char *tree, Str path, const char *file, Buf *ret) {
        static const char *const above[] = {"",
                                            "/kubepods",
                                            "/kubepods/burstable",
                                            "/kubepods/besteffort",
                                            "/kubepods.slice",
                                            "/kubepods.slice/kubepods-burstable.slice",
                                            "/kubepods.slice/kubepods-besteffort.slice"};

        for (size_t i = 0; i < ELEMENTSOF(above); i++) {
                _cleanup_buf_ Buf name = BUF_NULL;

                buf_appendf(&name, "%s%s%s" STR_FMT "/%s", root, tree, above[i], STR_ARG(path), file);
                if (buf_result(&name) < 0)
                        return -ENOMEM;
                if (access(name.data, F_OK) != 0)
                        continue;
                buf_append_str(ret, buf_str(&name));
                return buf_result(ret);
        }
        return -ENOENT;
}

/* Whether the file of that cgroup contains the word. */
static bool contains(const char *root, const char *tree, Str path, const char *file, Str word) {
        _cleanup_buf_ Buf name = BUF_NULL, text = BUF_NULL;

        return process_state_cgroup_file(root, tree, path, file, &name) == 0 &&
               file_read(name.data, STATE_FILE_MAX, &text) == 0 && text.data &&
               memmem(text.data, text.len, word.data, word.len);
}

static bool is_frozen(const char *root, Str cgroups) {
        Str one = process_state_cgroup_path(cgroups, STR("")),
            freezer = process_state_cgroup_path(cgroups, STR("freezer"));

        return (one.len > 1 && contains(root, "", one, "cgroup.events", STR("frozen 1"))) ||
               (freezer.len > 1 && contains(root, "/freezer", freezer, "freezer.state", STR("FROZEN")));
}

/* ---- one process ---- */

static bool read_of(const char *proc, uint32_t pid, const char *name, size_t limit, Buf *into) {
        _cleanup_buf_ Buf path = BUF_NULL;

        buf_appendf(&path, "%s/%u/%s", proc, pid, name);
        return buf_result(&path) == 0 && file_read(path.data, limit, into) == 0;
}

bool process_state_is_paused(const char *proc, const char *root, uint32_t pid) {
        _cleanup_buf_ Buf stat = BUF_NULL, cgroups = BUF_NULL;

        if (read_of(proc, pid, "stat", STAT_FILE_MAX, &stat) && process_state_parse_stopped(buf_str(&stat)))
                return true;
        return root && read_of(proc, pid, "cgroup", CGROUP_FILE_MAX, &cgroups) &&
               is_frozen(root, buf_str(&cgroups));
}

bool process_state_first_thread_has_ended(const char *proc, uint32_t pid) {
        _cleanup_buf_ Buf stat = BUF_NULL;

        return read_of(proc, pid, "stat", STAT_FILE_MAX, &stat) && process_state_parse_ended(buf_str(&stat));
}

bool process_state_start_time(const char *proc, uint32_t pid, uint64_t *ret) {
        _cleanup_buf_ Buf stat = BUF_NULL;

        return read_of(proc, pid, "stat", STAT_FILE_MAX, &stat) &&
               process_state_parse_start_time(buf_str(&stat), ret);
}

bool process_state_parent(const char *proc, uint32_t pid, uint32_t *ret) {
        _cleanup_buf_ Buf stat = BUF_NULL;
        uint64_t parent;

        if (!read_of(proc, pid, "stat", STAT_FILE_MAX, &stat) ||
            !parse_field(buf_str(&stat), FIELD_PARENT, &parent) || parent > UINT32_MAX)
                return false;
        *ret = (uint32_t) parent;
        return true;
}
