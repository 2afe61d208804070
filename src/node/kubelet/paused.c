/* SPDX-License-Identifier: Apache-2.0 */
#include "node/kubelet/paused.h"

#include "base/file.h"

enum { CGROUP_FILE_MAX = 64 * 1024, STAT_FILE_MAX = 4096, STATE_FILE_MAX = 4096 };

bool process_stat_stopped(Str text) {
        const char *at = text.len > 0 ? memrchr(text.data, ')', text.len) : NULL;
        size_t rest = at ? text.len - (size_t) (at - text.data) : 0;

        return rest > 2 && at[1] == ' ' && (at[2] == 'T' || at[2] == 't');
}

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

Str process_cgroup_path(Str text, Str controller) {
        while (!str_is_empty(text)) {
                Str line = str_split(&text, '\n');

                (void) str_split(&line, ':'); /* number of the hierarchy */
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

/* Seen from within a cgroup namespace the first parts of a path are not there: they are the
 * kubelet's, of one of both drivers. */
static bool says(const char *root, const char *tree, Str path, const char *file, Str word) {
        static const char *const above[] = {"",
                                            "/kubepods",
                                            "/kubepods/burstable",
                                            "/kubepods/besteffort",
                                            "/kubepods.slice",
                                            "/kubepods.slice/kubepods-burstable.slice",
                                            "/kubepods.slice/kubepods-besteffort.slice"};

        for (size_t i = 0; i < ELEMENTSOF(above); i++) {
                _cleanup_buf_ Buf name = BUF_NULL, text = BUF_NULL;

                buf_appendf(&name, "%s%s%s" STR_FMT "/%s", root, tree, above[i], STR_ARG(path), file);
                if (buf_result(&name) == 0 && file_read(name.data, STATE_FILE_MAX, &text) == 0)
                        return text.data && memmem(text.data, text.len, word.data, word.len);
        }
        return false;
}

static bool is_frozen(const char *root, Str cgroups) {
        Str one = process_cgroup_path(cgroups, STR("")),
            freezer = process_cgroup_path(cgroups, STR("freezer"));

        return (one.len > 1 && says(root, "", one, "cgroup.events", STR("frozen 1"))) ||
               (freezer.len > 1 && says(root, "/freezer", freezer, "freezer.state", STR("FROZEN")));
}

static bool read_of(const char *proc, uint32_t pid, const char *name, size_t limit, Buf *into) {
        _cleanup_buf_ Buf path = BUF_NULL;

        buf_appendf(&path, "%s/%u/%s", proc, pid, name);
        return buf_result(&path) == 0 && file_read(path.data, limit, into) == 0;
}

bool process_is_paused(const char *proc, const char *root, uint32_t pid) {
        _cleanup_buf_ Buf stat = BUF_NULL, cgroups = BUF_NULL;

        if (read_of(proc, pid, "stat", STAT_FILE_MAX, &stat) && process_stat_stopped(buf_str(&stat)))
                return true;
        return root && read_of(proc, pid, "cgroup", CGROUP_FILE_MAX, &cgroups) &&
               is_frozen(root, buf_str(&cgroups));
}
